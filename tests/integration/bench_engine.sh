#!/usr/bin/env bash
# The driver of the engine benchmark with our own program on both sides and a tiny model under the
# name of a real shape. Checks that figures are measured and reported, not what they are.
driver=$(realpath "$3")
. "$(dirname "$0")/lib.sh"
mkdir models
cp "$refs/llama-gqa.gguf" models/s15m-q8_0.gguf

script() { # NAME: stdin becomes a program of that name
    { echo '#!/bin/sh'; cat; } >"$1"
    chmod +x "$1"
}
script twin <<<"exec '$shoal' bench --peer-protocol"
script dead <<<'echo "no such library" >&2; exit 3'
script mute <<<'exec sleep 600'
script odd <<<'while read -r line; do echo "what?"; done'
# answers everything but what the pattern in $BREAK says, where it does what $HOW says
script frail <<'END'
while read -r line; do
    case $line in *"\"op\":\"$BREAK\""*) eval "$HOW" ;; esac
    case $line in *'"quit"'*) echo '{"id":1,"ok":true}'; exit 0 ;; esac
    echo '{"id":1,"ok":true,"load_ms":1,"ms":1,"tok_s":100,"step_ms_min":1,"rss_bytes":1,"anon_bytes":1}'
done
END

# bench CODE ARGS...: runs the driver; rows of $tmp/rows.json land in $tmp/out for field().
bench() {
    local want=$1 got
    shift
    checked=$((checked + 1))
    "$driver" --ours "$shoal" --models models --json rows.json --no-limits --quick --rounds 1 \
        --answer 20 "$@" >text 2>err
    got=$?
    [ "$got" = "$want" ] || { fail "bench_engine $*: exit code $got, expected $want"; head -n 5 err; }
    cp rows.json out 2>/dev/null || : >out
}
children() { # how many of the programs started here are still running
    find /proc -maxdepth 2 -name cwd -lname "$tmp" 2>/dev/null | sed 's/cwd$/comm/' |
        xargs cat 2>/dev/null | grep -cxE 'bench_engine|frail|shoal|sleep|twin'
}

# every field, the table, the JSON lines file; rows of other parts are kept
echo '{"rows":[{"part":"trees","name":"kept"},{"part":"engine","name":"old"}],"trees":{"cpu":"x"}}' >rows.json
bench 0 --peer ./twin --tests decode,prompt --one-thread --jsonl lines --threads 1,2
same "rows" "$(field rows.length)" 9
same "other part" "$(field 'rows[0].name')" kept
same "about another part" "$(field trees.cpu)" x
same "first row" "$(field 'rows[1].name')" "s15m q8_0 decode"
same "second row" "$(field 'rows[2].name')" "s15m q8_0 decode, 1 thread"
same "last row" "$(field 'rows[8].name')" "s15m q8_0 prompt 512, 1 thread"
keys='["part","name","ours","peer","unit","ratio","roofline","target","met"'
same "lines" "$("$tool" jsonl <lines)" 8
for i in 1 2 3 4 5 6 7 8; do
    same "fields of row $i" "$(sed -n "${i}p" lines | grep -oE '"[a-z]+":' | head -n 9 | tr -d ':' | paste -sd, | sed 's/^/[/')" "$keys"
    for key in ours peer ratio; do
        checked=$((checked + 1))
        field "rows[$i].$key" | grep -qE '^[0-9.e+]+$' || fail "row $i: $key is $(field "rows[$i].$key")"
    done
    same "part of row $i" "$(field "rows[$i].part")" engine
    same "unit of row $i" "$(field "rows[$i].unit")" tok/s
    same "roofline of row $i" "$(field "rows[$i].roofline")" null
done
same "target" "$(field 'rows[3].target')" "1.4x peer"
same "not measured" "$(field engine.not_measured.length)" 0
same "failures" "$(field engine.failures.length)" 0
same "threads tried" "$(field 'rows[1].by_threads.peer.length')" 2
has text "s15m q8_0 prompt 128"; has text "targets met"
has err "s15m q8_0 decode"

# sequences, busy neighbours, load; pinned
bench 0 --peer ./twin --tests seqs,busy,load --cpus "$(taskset -pc $$ | grep -oE '[0-9]+' | sed -n 2p)"
same "rows" "$(field rows.length)" 11
same "quiet" "$(field 'rows[2].name')" "s15m q8_0 quiet, 1 threads"
same "beside" "$(field 'rows[3].target')" "4x peer"
same "memory" "$(field 'rows[9].unit')" MiB
same "first part" "$(field 'rows[0].name')" kept

# ours alone; a missing file is created
bench 0 --no-peer --tests decode
same "no peer" "$(field 'rows[1].peer')" null
mv models/s15m-q8_0.gguf tiny
bench 0 --no-peer --files
same "made" "$(cat text)" models/s15m-q8_0.gguf
run 0 model show models/s15m-q8_0.gguf
[ ! -e models/s15m-f16.gguf ] || fail "the F16 file is left"
mv tiny models/s15m-q8_0.gguf

# a peer that is missing, dies, or never says a word
bench 1 --peer ./nowhere; has err "bench/build-peer"
bench 1 --ours ./nowhere --peer ./twin; has err "run make to build it"
for p in dead mute odd; do
    bench 0 --peer ./$p --tests decode --answer 4
    has err "measuring ours only"
    same "$p: peer" "$(field 'rows[1].peer')" null
    same "$p: failures" "$(field engine.failures.length)" 1
done
has err "not JSON"
# a peer that hangs, dies or returns nonsense halfway: the row says so, and the next row is measured
# again
BREAK=decode HOW='exec sleep 600' bench 0 --peer ./frail --tests decode,prompt --answer 4 --threads 1
same "hangs: peer" "$(field 'rows[1].peer')" null
same "hangs: note" "$(field 'rows[1].notes[0]')" "peer: no answer to decode in 4 s (1 thread)"
same "hangs: below" "$(field 'rows[1].peer_below')" 2
same "hangs: next" "$(field 'rows[2].peer')" 100
has text "< 2"
BREAK=decode HOW='exec sleep 600' bench 0 --peer ./frail --tests busy --answer 4 --threads 1
same "hangs: beside" "$(field 'rows[2].peer_below')" 1
BREAK=prompt HOW='echo bad >&2; exit 4' bench 0 --peer ./frail --tests prompt --threads 1
same "dies: note" "$(field 'rows[1].notes[0]')" "peer: exited with code 4: bad  (1 thread)"
BREAK=load HOW='kill -9 $$' bench 0 --peer ./frail --tests load
same "killed: load" "$(field 'rows[1].peer')" null
same "killed: note" "$(field 'rows[1].notes[0]')" "peer: killed by signal 9"
BREAK=threads HOW="echo '{\"ok\":false,\"error\":\"no threads\"}'; continue" bench 0 --peer ./frail --tests decode
same "refuses: note" "$(field 'rows[1].notes[0]')" "peer: threads: no threads (1 thread)"

# the time limit expires halfway; a signal
BREAK=prompt HOW='exec sleep 600' bench 0 --peer ./frail --tests decode,prompt --threads 1 --limit 8 --answer 600
same "limit: rows" "$(field rows.length)" 2
same "limit: left" "$(field 'engine.not_measured[0]')" "s15m q8_0 prompt 32"
has text "not measured: s15m q8_0 prompt 32, s15m q8_0 prompt 128, s15m q8_0 prompt 512"
for sig in INT KILL; do
    # the fourth request for tokens is the first that runs beside a busy process
    BREAK=decode HOW='n=$((n + 1)); [ $n = 4 ] && exec sleep 600' "$driver" --ours "$shoal" --peer ./frail \
        --models models --json rows.json --no-limits --quick --tests busy --threads 1 --rounds 1 --answer 600 \
        >text 2>err &
    pid=$!
    for _ in $(seq 1200); do # the driver, ours, the peer and a busy process
        [ "$(children)" = 4 ] && break
        sleep 0.05
    done
    same "running before $sig" "$(children)" 4
    kill -$sig $pid
    wait $pid 2>/dev/null
    got=$?
    [ $sig = KILL ] || { same "signal" $got 130; has text "interrupted"; }
    for _ in $(seq 600); do [ "$(children)" = 0 ] && break; sleep 0.1; done
    same "left running after $sig" "$(children)" 0
done

# options
for bad in "--shape x" "--shapes s15m,huge" "--types q9" "--tests decode,x" "--rounds 0" "--rounds x" \
    "--threads 1,x" "--cpus 1-0" "--cpus 1023" "--limit" "--quick=1" "--no-peer --peer ./twin" "--answer 0"; do
    # shellcheck disable=SC2086
    bench 2 $bad
    has err "bench_engine: --"; has err "--help"
done
bench 0 --help; has text "examples:"; has text "--peer-libs DIR"
bench 1 --no-peer --json /dev/null/x --tests decode; has err "cannot write /dev/null/x"
bench 1 --no-peer --jsonl /nowhere/x; has err "cannot open /nowhere/x"

same "left running" "$(children)" 0
finish
