#!/usr/bin/env bash
# shoal sim: the shipped scenarios, the same figures for the same seed, errors with their position.
. "$(dirname "$0")/lib.sh"
scenarios=$root/examples/sim

# Only this_machine differs from run to run.
figures() { # out file
    sed 's/"this_machine":{[^}]*}//' "$1"
}
for name in home factory; do
    run 0 sim "$scenarios/$name.yaml" --json; empty err
    cp out first
    run 0 sim --json "$scenarios/$name.yaml"
    same "$name with the same seed" "$(figures out)" "$(figures first)"
    same "scenario" "$(field scenario)" "$name"
    run 0 sim --json --seed 2 "$scenarios/$name.yaml"
    differ "$name with another seed" "$(figures out)" "$(figures first)"
done
# The largest one, made smaller: all of its 200 models answer.
run 0 sim "$scenarios/campus.yaml" --nodes 200 --json
same "nodes" "$(field nodes)" 200
same "models" "$(field models)" 200
[ "$(field requests)" -gt 5000 ] || fail "only $(field requests) requests"
run 0 sim "$scenarios/home.yaml"; has out "home: 86400 s with 4 nodes and 3 models, seed 1"
has out "placement "; has out "planner "; empty err

# A node dies, and its replica is loaded elsewhere; no request is lost.
cat >one.yaml <<'YAML'
name: one
duration: 30m
nodes:
  - {class: a, count: 3, memory: 1GiB, bandwidth: 10GB/s, zones: [x, y, z]}
models:
  - {name: m, memory: 500MiB, min: 2, spread: yes, budget: 5s, tokens: 20, arrivals: {rate: 1/s, steady: yes}}
events:
  - {at: 10m, do: crash, class: a}
YAML
run 0 sim one.yaml --json
same "availability" "$(field availability)" 1
same "crashes" "$(field churn.crash)" 1
same "nodes at the end" "$(field nodes_at_end)" 2
same "replicas at the end" "$(field ready)" 2
same "loads" "$(field loads)" "$(field replaced)"

run 0 sim one.yaml --steps
has out "0.0 s  load   m on a-"; has out ": new model: replica 1 of 2"
grep -qE '^ +60[0-9]\.. s  load   m on a-[123]: node a-[123] left$' out || fail "the lost replica is not explained"
run 0 sim one.yaml --steps --json
has out '"steps":[{"at_s":0,"do":"load","model":"m","node":"a-'
same "a field after the steps" "$(field churn.crash)" 1

# Nothing fits: the report says so.
sed 's/memory: 500MiB/memory: 2GiB/' one.yaml >large.yaml
run 0 sim large.yaml; has out "needs 2.0 GiB, largest node has 1.0 GiB"
same "nothing answers" "$(run 0 sim large.yaml --json; field availability)" 0

bad() { # expected error, scenario
    printf '%b' "$2" >bad.yaml
    run 1 sim bad.yaml; empty out; has err "shoal sim: $1"
}
bad "bad.yaml:2:1: unknown key 'node' (did you mean 'nodes'?)" 'name: x\nnode: []\n'
bad "bad.yaml:1:9: nodes need class, memory and bandwidth" 'nodes: [{class: a}]\n'
bad "bad.yaml:1:45: bandwidth: 'mb' is not a unit here" 'nodes: [{class: a, memory: 1GiB, bandwidth: 1mb}]\n'
bad "bad.yaml: 0 nodes; 1 to 65536 are possible" 'name: x\n'
bad "bad.yaml: duration must be longer than warmup" 'duration: 1s\n'
nodes='nodes: {class: a, memory: 1GiB, bandwidth: 1GB/s}\n'
bad "bad.yaml: 0 models; 1 to 4096 are possible" "$nodes"
bad "bad.yaml:2:9: min 3 is above max 2" "${nodes}models: {name: m, memory: 1MiB, min: 3, max: 2}\n"
bad "bad.yaml:3:9: partition needs a zone" "${nodes}models: {name: m, memory: 1MiB}\nevents: {do: partition}\n"
bad "bad.yaml:3:9: no nodes above have class b" "${nodes}models: {name: m, memory: 1MiB}\nevents: {do: crash, class: b}\n"
bad "bad.yaml: 3600 million requests" "${nodes}models: {name: m, memory: 1MiB, arrivals: {rate: 1000000}}\n"
run 1 sim nowhere.yaml; has err "cannot open nowhere.yaml"
run 2 sim; has err "SCENARIO"
run 2 sim one.yaml --schedules 1; has err "SCENARIO"

# Schedules of faults: nothing is broken, and a seed decides everything but the time that it takes.
run 0 sim --schedules 10 --seed 7 --json; empty err
same "schedules" "$(field schedules)" 10
[ "$(field terms)" -ge 10 ] || fail "only $(field terms) controllers"
cp out first
run 0 sim --schedules 10 --seed 7 --json
same "schedules with the same seed" "$(figures out)" "$(figures first)"
run 0 sim --schedules 100 --streams --json
[ "$(field tokens)" -gt 10000 ] || fail "only $(field tokens) tokens"
run 2 sim --nodes 0 one.yaml; has err "nodes"
run 1 sim "$scenarios/campus.yaml" --nodes 65536; has err "65536"
finish
