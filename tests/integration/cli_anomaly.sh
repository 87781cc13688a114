#!/usr/bin/env bash
# shoal anomaly: learns a machine, detects faults, reports them.
. "$(dirname "$0")/lib.sh"

# a pump at 1 Hz: noise from a small generator, so that every run is the same
pump() { # rows shift-at column-value
    awk -v n="$1" -v at="$2" -v to="$3" 'BEGIN { print "time,vibration,temperature"; s = 7
        for (i = 0; i < n; i++) { s = (s * 16807) % 2147483647; a = s / 2147483647; s = (s * 16807) % 2147483647; b = s / 2147483647
            printf "2026-03-09 %02d:%02d:%02d,%.3f,%.3f\n", int(i / 3600), int(i % 3600 / 60), i % 60, (i >= at ? to : 2.5) + a * 0.4, 60 + b } }'
}
pump 1200 9999 0 >normal.csv
pump 900 600 7.5 >broken.csv

run 0 anomaly fit normal.csv -o pump.json; has out "also monitored together"; has out "vibration"
run 0 anomaly fit --json -c vibration normal.csv -o one.json; has out '"type":"shoal_machine"'
run 0 anomaly run -l pump.json normal.csv; same "nothing in normal times" "$(cat out)" ""
run 0 anomaly run -l pump.json --name "motor 3" broken.csv; has out "row 601  alarm 1 raised"
has out "vibration on motor 3 rose from"; same "one alarm" "$(grep -c raised out)" 1
run 0 anomaly run -l pump.json --json broken.csv; has out '"change":"raised","kind":'
run 0 anomaly run broken.csv; has out "row 601  alarm 1 raised"
run 0 anomaly run -l pump.json --scores broken.csv; same "a score a row" "$(wc -l <out)" 900
same "no alarm before" "$(head -n 600 out | cut -d' ' -f2 | sort -u)" 0
same "alarm at once" "$(sed -n 601p out | cut -d' ' -f2)" 1
"$shoal" anomaly run -l pump.json <broken.csv >piped; has piped "row 601  alarm 1 raised"

run 2 anomaly fit normal.csv; has err "use -o FILE"
head -n 20 normal.csv >short.csv
run 1 anomaly fit short.csv -o x.json; has err "at least 32 are needed"
run 1 anomaly fit nosuch.csv -o x.json; has err "cannot open nosuch.csv"
echo '{}' >empty.json
run 1 anomaly run -l empty.json broken.csv; has err "not a file of"
printf 'a,b\n1,2\n' >other.csv
run 1 anomaly run -l pump.json other.csv; has err "no column vibration"
finish
