#!/usr/bin/env bash
# shoal config and shoal init: the configuration file is checked, explained, documented and written.
. "$(dirname "$0")/lib.sh"

run 0 config reference
diff -u "$root/docs/CONFIG.md" "$tmp/out" ||
    fail "docs/CONFIG.md is not what the program says: shoal config reference > docs/CONFIG.md"

# explain
run 0 config explain; has out "limits.body "; has out "cluster.heartbeat "
run 0 config explain limits.body; has out "limits.body: size"; has out "Default: 16MiB."
run 0 config explain models.kv; has out "models[].kv: choice of f16, q8"; has out "after a restart"
run 0 config explain limits; has out "idle_timeout"
run 0 config explain deadline.max --json; same key "$(field key)" deadline.max; same default "$(field default)" 0
run 1 config explain limits.bdy; has err "there is no key 'limits.bdy' (did you mean 'limits.body'?)"
run 1 config explain heartbeat; has err "did you mean 'cluster.heartbeat'?"

# check
cat >good.yaml <<EOF
listen: [127.0.0.1:0]
models:
  - {name: m, path: "$root/models/reply-draft.gguf", context: 128}
limits: {in_flight: 4}
EOF
run 0 config check good.yaml; has out "good.yaml is valid: 5 keys are set, 1 model"
run 0 config check good.yaml --json; same valid "$(field valid)" true
has out '"models[m].context":"128"'
printf 'limits:\n  in_flght: 4\n' >bad.yaml
run 1 config check bad.yaml; empty out
has err "bad.yaml:2:3: unknown key 'in_flght' in limits (did you mean 'in_flight'?)"
run 1 config check bad.yaml --json; empty err
same valid "$(field valid)" false; same line "$(field line)" 2; same column "$(field column)" 3
same error "$(field error)" "unknown key 'in_flght' in limits (did you mean 'in_flight'?)"
printf 'models: [{name: m, path: /nowhere.gguf}]\n' >missing.yaml
run 1 config check missing.yaml; has err "missing.yaml:1:26: models[].path: cannot open /nowhere.gguf"
run 1 config check nowhere.yaml; has err "nowhere.yaml"
# an adapter is checked beside its base, in either form
printf 'models: [{name: m, path: "%s/folders/llama", adapters: [{name: a, path: "%s/lora/llama"}, {name: b, path: "%s/lora/llama.gguf"}]}]\n' \
    "$root/tests/data" "$root/tests/data" "$root/tests/data" >adapters.yaml
run 0 serve --check --config adapters.yaml
sed -i 's#lora/llama"#lora/gptneox"#' adapters.yaml
run 1 serve --check --config adapters.yaml; has err "adapters.yaml:1:"; has err ": the model 'm:a': "
run 2 config check

# names: every one is resolved, and the nearest right one is named
wrong() { # wrong MESSAGE <<EOF: the file
    cat >names.yaml
    run 1 config check names.yaml; has err "$1"
    run 1 serve --check --config names.yaml; has err "$1"
}
export SHOAL_COLLECTIONS=$PWD/collections
mkdir collections
wrong "names.yaml:1:30: routes[r].models[repli].name: there is no model 'repli' (did you mean 'reply'?)" <<EOF
routes: [{name: r, models: [ repli ]}]
EOF
wrong "names.yaml:1:19: 'redis:/x' is not a session store" <<EOF
sessions: {store: "redis:/x"}
EOF
wrong "there is no collection 'manuals'" <<EOF
alarms: {manuals: manuals}
EOF
wrong "models[m].labels: there is no label set 'snipz' (did you mean 'snips'?)" <<EOF
models: [{name: m, path: "$root/models/encoder", task: classify, labels: snipz}]
EOF
wrong "models[m].labels: 'm' writes text and has no label sets: leave it out" <<EOF
models: [{name: m, path: "$root/models/reply-draft.gguf", labels: nosuch}]
EOF
wrong "names.yaml:3:5: the keys 'a' and 'b' are the same: each name needs a key of its own" <<EOF
keys:
  - {name: a, sha256: c2ee7195c6e40b50ba61576394dd66f870e592e2333947c51c39cc11bd332f7a}
  - {name: b, sha256: C2EE7195c6e40b50ba61576394dd66f870e592e2333947c51c39cc11bd332f7a}
EOF
wrong "names.yaml:2:30: sensors[a].machine: there is no machine 'motor4' (did you mean 'motor3'?)" <<EOF
machines: [{name: motor3}]
sensors: [{name: a, machine: motor4}]
EOF
wrong "a subscription needs 'mqtt.broker'" <<EOF
mqtt: {subscribe: [{topic: a, sensor: b}]}
EOF
wrong "names.yaml:1:7: home: cannot open /nowhere.yaml" <<EOF
home: /nowhere.yaml
EOF
wrong "'reply' writes text and has no labels to vote for" <<EOF
routes: [{name: v, vote: {models: [intent, reply]}}]
EOF
wrong "routes[reply].name: 'reply' is the name of a model" <<EOF
routes: [{name: reply, models: [intent]}]
EOF
wrong "the sensor 's{2}' uses {2}, but 'a/+/b' has 1 wildcard" <<EOF
mqtt: {broker: "mqtt://127.0.0.1", subscribe: [{topic: a/+/b, sensor: "s{2}"}]}
EOF
wrong "routes[r].callers: there is no key 'ap'" <<EOF
routes: [{name: r, models: [reply], callers: [ap]}]
EOF
# what is found after the whole file was read has its place too
wrong "names.yaml:1:22: two sensors are named 'a'" <<EOF
sensors: [{name: a}, {name: a, unit: bar}]
EOF
wrong "names.yaml:2:41: deeds[1].topic: via: mqtt needs 'mqtt.broker'" <<EOF
listen: 127.0.0.1:0
deeds: [{things: "*", via: mqtt, topic: "a/{id}"}]
EOF
wrong "names.yaml:1:34: machines[].learned: cannot open pump.json" <<EOF
machines: [{name: pump, learned: pump.json}]
EOF
wrong "names.yaml:2:20: add 10.0.0.5:8000 to alarms.allow to call it" <<EOF
alarms:
  webhooks: [{url: "http://10.0.0.5:8000/a"}]
EOF
wrong "names.yaml:1:58: there is no tag p.q" <<EOF
deeds: [{things: heater.x, ability: t, via: modbus, tag: p.q}]
EOF
wrong "names.yaml:2:9: 127.0.0.1:99999: the port must be" <<EOF
pack: true
listen: 127.0.0.1:99999
EOF
# every path that is read must be there, with its line and column; what the server makes needs room
while read -r key yaml; do
    printf '%s\n' "$yaml" >path.yaml
    run 1 config check path.yaml; has err ": $key: cannot open /nowhere"; has err "path.yaml:1:"
done <<'EOF'
table table: /nowhere/table.json
tls.client_ca tls: {client_ca: /nowhere/ca.pem}
model_dirs model_dirs: [/tmp, /nowhere]
privacy.key_file privacy: {key_file: /nowhere/key}
collections.watch collections: {watch: [manuals=/nowhere]}
mqtt.password_file mqtt: {broker: "mqtt://127.0.0.1", password_file: /nowhere/password}
mqtt.ca mqtt: {broker: "mqtts://127.0.0.1", ca: /nowhere/ca.pem}
flows_allow.ca flows_allow: {ca: /nowhere/ca.pem}
EOF
touch file
printf 'home_state: file/below/states.json\n' >path.yaml
run 1 config check path.yaml; has err "path.yaml:1:13: home_state: cannot make file/below/states.json: Not a directory"
printf 'home_state: new/states.json\ncollections: {dir: new/collections}\n' >path.yaml
run 0 config check path.yaml
wrong "names.yaml:1:13: tls.cert: cannot open /nowhere.pem" <<EOF
tls: {cert: /nowhere.pem, key: /nowhere.key}
EOF
unset SHOAL_COLLECTIONS

# init writes a valid file
mkdir models
cp "$root/models/reply-draft.gguf" "models/it's one.gguf"
cp -r "$root/tests/data/encoders/bert" models/bert
echo nothing >models/broken.gguf
run 0 init models; has out "wrote shoal.yaml"
cp shoal.yaml "$tmp/out"
has out "name: it-s-one"; has out "name: bert"
checked=$((checked + 1))
grep -q broken shoal.yaml && fail "a file that is no model is in shoal.yaml"
run 0 config check shoal.yaml; has out "2 models"
run 1 init models; has err "shoal.yaml exists: --force replaces it"
run 0 init models --force -o shoal.yaml
mkdir empty
run 1 init empty; has err "has no GGUF file"
run 1 init nowhere; has err "cannot read the folder nowhere"
(cd empty && "$shoal" init -o -) >"$tmp/out" 2>"$tmp/err"
has out "those included with Shoal"
finish
