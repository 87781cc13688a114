#!/usr/bin/env bash
# classify, tag, embed, rerank, score, eval and ask with the models that come with Shoal.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models
scorers=$root/tests/data/scorers

# classify: arguments, lines, label sets, names of the pack
run 0 classify -m intent "turn off the kitchen lights"; same "label" "$(cut -d' ' -f1 out)" turn_off
run 0 classify -m intent --labels snips --json "play some jazz by miles davis"
same "snips" "$(field label)" PlayMusic
run 0 classify -m router --json --top 2 "turn off the kitchen lights"; same "router" "$(field label)" home
same "two labels" "$(grep -o '"score"' out | wc -l)" 2
run 0 classify -m intent "who won the world cup in 1966"; same "out of scope" "$(cut -d' ' -f1 out)" oos
printf 'play some jazz\n\nset a timer for ten minutes\n' >lines
run 0 classify -m intent -f lines --json; same "a line each" "$(wc -l <out)" 2
cp out from_file
"$shoal" classify -m intent --json <lines >piped
same "stdin" "$(grep -o '"label":"[a-z_]*"' piped | head -n 9)" "$(grep -o '"label":"[a-z_]*"' from_file | head -n 9)"
seq -f 'turn on light %g' 300 >many
run 0 classify -m intent -f many; same "all lines" "$(wc -l <out)" 300
run 1 classify -m intent --labels nosuch "x"; has err 'available: snips'
run 1 classify -m reply "x"; has err "it can: generate"
run 1 generate -m intent "x"; has err "cannot generate"
echo x | "$shoal" chat -m intent >out 2>err; has err "cannot generate"
run 1 classify -m nosuch "x"; has err "reply, reply-draft, intent"

# without -m: the included model of the task, whatever the current folder contains
mkdir intent
run 0 classify --json "turn off the kitchen lights"; same "default" "$(field model) $(field label)" "intent turn_off"
run 0 tag --json "dim the bedroom lamp"; same "default" "$(field model)" entities
run 0 embed --json "x"; same "default" "$(field model)" embed
run 0 rerank --json "hot" "cold"; same "default" "$(field model)" embed
run 0 summarize --json "It was hot."; same "default" "$(field model)" summary
run 0 score 20 21 20; same "a score each" "$(wc -l <out)" 3
run 0 generate --json -n 1 "Once"; same "default" "$(field model)" reply
rmdir intent
mkdir other; echo '{"version":1,"models":[]}' >other/models.json
SHOAL_MODELS=$tmp/other run 1 classify "x"; has err "other has none named intent: use -m MODEL"
SHOAL_MODELS=$tmp/nosuch run 1 classify "x"; has err "no model given (use -m MODEL): cannot open"
run 2 classify -m intent -f lines "x"
run 1 classify -m intent -f /nonexistent; has err "cannot open"
run 1 classify -f .; has err "cannot read .: Is a directory"
run 1 eval classify -m intent .; has err "cannot read .: Is a directory"
for k in scalar; do # the same bits on every kernel set
    run 0 classify -m intent --json "dim the bedroom lamp"; best=$(field confidence)
    run 0 classify -m intent --json --kernels $k -t 1 "dim the bedroom lamp"
    same "$k" "$(field confidence)" "$best"
done

# tag: offsets count characters
run 0 tag -m entities "set the heating in the bedroom to 19 degrees"
same "tag" "$(cat out)" "device=heating  room=bedroom  value=19 degrees"
run 0 tag -m entities --json "tell zoë her mail is zoe@example.org"
has out '"text":"zoe@example.org","start":21,"end":36'
run 0 tag -m entities ""; same "nothing" "$(cat out)" ""

# embed: length 1, truncated dimensions, similar texts are close
run 0 embed -m embed --json "the pump is hot"; same "dimensions" "$(field embedding | tr ',' '\n' | wc -l)" 384
run 0 embed -m embed -d 64 "the pump is hot"
same "length" "$(awk '{for (i = 1; i <= NF; i++) s += $i * $i; printf "%.3f", s}' out)" 1.000
run 1 embed -m embed -d 4000 "x"; has err "384"

run 0 rerank -m embed "the pump is too hot" "Play some jazz." "Check the coolant of the pump."
same "best first" "$(head -n 1 out | cut -d' ' -f3-)" "Check the coolant of the pump."
printf 'Play some jazz.\nCheck the coolant of the pump.\n' >docs
run 0 rerank -m embed --top 1 --json -f docs "the pump is too hot"; same "index" "$(field index)" 1
run 2 rerank -m embed "query"; has err "no documents"

# score
run 0 score -m "$scorers/trees/missing.txt" --json "1,2,3,4,nan,6,7,8"
same "a score" "$(wc -l <out)" 1
run 1 score -m "$scorers/trees/missing.txt" "1,2"; has err "the model reads"
run 1 score -m "$scorers/trees/missing.txt" "1,2,x,4,5,6"; has err "no row of numbers"
run 1 score -m intent "1"; has err "does not score numbers"
awk 'BEGIN { print "timestamp,temperature,pressure,anomaly"
    for (i = 0; i < 1200; i++) { f = i >= 900 && i < 960; srand(i)
        printf "2026-03-09 %02d:%02d:%02d,%.3f,%.3f,%d\n", i / 3600, i / 60 % 60, i % 60,
            20 + sin(i / 9) + rand() / 5 + 9 * f, 5 + rand() / 3 - 4 * f, f } }' >series.csv
run 0 score -m anomaly -f series.csv; has err "ignored columns: timestamp, anomaly;"
same "a score a row" "$(wc -l <out)" 1200
same "alarms before" "$(sed -n 1,900p out | awk '{n += $2} END {print n}')" 0
[ "$(sed -n 901,960p out | awk '{n += $2} END {print n}')" -gt 30 ] || fail "no alarm in the fault"
run 0 score -m anomaly -c temperature --json -f series.csv; has out '"alarm":1'
run 1 score -m anomaly -c timestamp -f series.csv; has err "column timestamp contains times, not numbers"
run 2 score -m anomaly -c nosuch -f series.csv; has err "nosuch is not in the file"
run 0 score -m anomaly --json 20 21 20; same "no names" "$(wc -l <out)" 3

# extractive summaries
run 0 summarize -m summary --sentences 1 --json "Pump 3 stood still for two hours on Monday. It was hot. Gloves must be worn. Nina replaced the bearing."
has out '"summary":"Pump 3 stood still for two hours on Monday."'; has out '"start":0,"end":43'
run 1 summarize -m summary "  "; has err "no sentence"
echo '{"text":"Pump 3 stood still. It was hot.","summary":"Pump 3 stood still."}' >sums.jsonl
run 0 eval summarize -m summary --sentences 1 --json sums.jsonl; same "rouge" "$(field rouge1)" 1

# eval
cat >rows.jsonl <<'ROWS'
{"text":"turn off the kitchen lights","label":"turn_off","tokens":["turn","off","the","kitchen","lights"],"tags":["O","O","O","B-room","B-device"]}
{"text":"set a timer for ten minutes","label":"set_timer","tokens":["set","a","timer","for","ten","minutes"],"tags":["O","O","O","O","B-duration","I-duration"]}
{"text":"who won the world cup in 1966","label":"oos","tokens":["who"],"tags":["O"]}
{"text":"set a timer for two hours","label":"turn_off","tokens":["set","a","timer","for","two","hours"],"tags":["O","O","O","O","B-duration","O"]}
ROWS
run 0 eval classify -m intent --json rows.jsonl
same "accuracy" "$(field accuracy)" 0.75
same "out of scope" "$(field oos_recall)" 1
field latency_ms.p99 >/dev/null || fail "no latency"
for i in 1 2 3 4 5 6; do cat rows.jsonl; done >many.jsonl
run 0 calibrate -m intent -o intent.calibration.json --json many.jsonl
same "held out" "$(field figures.held_out_rows)" 12
same "the file" "$(cat intent.calibration.json)" "$(cat out)"
# fitted on rows that are all right, held-out rows all wrong: a temperature would only do harm
for i in 1 2 3 4 5 6 7 8 9 10; do sed -n '1p;4p' rows.jsonl; done >harm.jsonl
run 0 calibrate -m intent -o harm.json --json harm.jsonl
same "it stays 1" "$(field temperature) $(field figures.ece_after)" "1 $(field figures.ece_before)"
differ "what was fitted" "$(field figures.fitted_temperature)" 1
run 0 calibrate -m intent harm.jsonl; has out "confidences stay unchanged"
sort harm.jsonl >help.jsonl # half of each part is right
run 0 calibrate -m intent --json help.jsonl
differ "a temperature that helps" "$(field temperature)" 1
run 0 eval cascade -m intent --large intent --json rows.jsonl
same "the small one" "$(field small_accuracy)" 0.75
same "no better" "$(field reach)" null
same "nor here" "$(field held_out)" null
run 1 eval cascade -m intent --large intent --calibration rows.jsonl rows.jsonl; has err "rows.jsonl"
run 2 eval cascade -m intent rows.jsonl; has err "--large MODEL"
run 1 calibrate -m intent rows.jsonl; has err "at least 20"
run 1 calibrate -m intent --labels snips many.jsonl; has err "choose the label set with --labels"
run 0 eval tag -m entities --json rows.jsonl
same "f1" "$(printf %.3f "$(field f1)")" 0.667 # 3 of 4 spans are found; 2 of the 5 predicted ones are false
run 0 eval embed -m embed --json rows.jsonl; field recall@5 >/dev/null || fail "no recall"
echo '{"query":"hot pump","relevant":[7]}' >queries.jsonl
printf '{"id":7,"text":"the pump is hot"}\n{"id":8,"text":"play some jazz"}\n' >docs.jsonl
run 0 eval embed -m embed --json --docs docs.jsonl queries.jsonl; same "found" "$(field recall@1)" 1
run 0 eval embed -m embed --beside embed --json --docs docs.jsonl queries.jsonl; same "both" "$(wc -l <out)" 2
run 2 eval clasify -m intent rows.jsonl; has err "did you mean classify"
echo '{"text":1}' >bad.jsonl
run 1 eval classify -m intent bad.jsonl; has err "bad.jsonl:1"
echo 'text' >bad.jsonl
run 1 eval classify -m intent bad.jsonl; has err "not a JSON object"
: >empty.jsonl
run 1 eval classify -m intent empty.jsonl; has err "no rows"
run 0 eval score -m anomaly --json series.csv
same "the fault is found" "$(field found) of $(field windows)" "1 of 1"
same "no false alarm" "$(field false_alarms_per_hour)" 0
field baselines.z_score.event_f1 >/dev/null || fail "no z-score"
field baselines.threshold.point_f1 >/dev/null || fail "no threshold"
field latency_ms.p99 >/dev/null || fail "no latency of points"
run 0 eval score -m anomaly -c temperature --tune series.csv series.csv; has out "plain threshold"
cut -d, -f1-3 series.csv >plain.csv
run 1 eval score -m anomaly plain.csv; has err "plain.csv: no column label or anomaly"
echo '{"x/plain.csv": [["2026-03-09 00:15:00", "2026-03-09 00:15:59"]]}' >windows.json
run 1 eval score -m anomaly --windows windows.json plain.csv; has err "not in the list of windows"
mkdir x && mv plain.csv x/
run 0 eval score -m anomaly --windows windows.json --json x/plain.csv
same "a window" "$(field found) of $(field windows)" "1 of 1"
awk 'BEGIN { print "a,b,c,d,e,f,g,h,label"
    for (i = 0; i < 50; i++) print i % 3 ",1,2," i % 5 ",4,0,7,1," i % 2 }' >rows.csv
run 0 eval score -m "$scorers/trees/dart.txt" --json rows.csv
field auc >/dev/null || fail "no figure of trees that say yes or no"
run 0 eval score -m "$scorers/trees/regression.txt" --json rows.csv
field rmse >/dev/null || fail "no figure of trees that say how much"
run 1 eval score -m intent rows.csv; has err "does not score numbers"

# ask
run 0 ask "turn off the kitchen lights"
same "action" "$(head -n 1 out)" '{"action":"turn_off","device":"lights","room":"kitchen","id":"kitchen_lights","result":"simulated"}'
run 0 ask --json --explain "set a timer for ten minutes"
field steps >/dev/null || fail "no steps"
field reply >/dev/null || fail "no reply"
run 0 ask --no-reply "mute the tv"; same "no reply" "$(wc -l <out)" 1
echo "mute the tv" | "$shoal" ask --no-reply -f - >out; same "stdin" "$(wc -l <out)" 1
run 1 ask ""; has err "empty"
run 1 ask --budget-ms 1 "tell me a joke"
run 1 ask --models /nonexistent "x"; has err "models.json"
mkdir broken && cp -r "$root/models/." broken/ && printf x >>broken/reply.gguf
run 1 ask --models broken "mute the tv"; has err "does not match the manifest"
cp "$root/models/reply.gguf" broken/ && printf ' ' >>broken/home.json
run 1 ask --models broken "mute the tv"; has err "home.json does not match the manifest"

# ask with a custom table
table=("--table" "$root/tests/data/ask/workshop.json" "--home" "$root/tests/data/ask/workshop.yaml")
run 0 ask --yes --no-reply "${table[@]}" "start compressor 2 and set the pressure of pump 3 to 4 bar"
has out '{"action":"start_machine","machine":"compressor 2","id":"compressor_2"'
has out '{"action":"set_machine","machine":"pump 3","sensor":"pressure","value":4,"unit":"barg","id":"pump_3"'
run 0 ask --no-reply --json "${table[@]}" "good morning"
same "talk does nothing" "$(field actions.length)" 0
run 1 ask --table /nonexistent/t.json "x"; has err "cannot open /nonexistent/t.json"
sed 's/"slots": \["machine"\]/"slots": ["motor"]/' "$root/tests/data/ask/workshop.json" >bad.json
run 1 ask --table bad.json "x"; has err 'bad.json: actions.start_machine.slots[0]: unknown slot "motor"'
sed 's/"version": 2,/"version": 1, "labels": {},/' "$root/tests/data/ask/workshop.json" >old.json
run 1 ask --table old.json "x"; has err 'old.json: this is a table for an encoder'
finish
