#!/usr/bin/env bash
# shoal home: check, list, import; and shoal ask with a custom home. Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models
cat >home.yaml <<'Y'
name: my house
rooms: [{id: kitchen}]
devices:
  - {id: light.kitchen, name: ceiling light, kind: light, room: kitchen}
  - {id: lock.front, name: front door, kind: door}
Y
run 0 home check home.yaml; has out "3 things, no error"; empty err
run 0 home check --json home.yaml; same "things" "$(field things)" 3
run 0 home list home.yaml; has out "light.kitchen"; has out "power, brightness, color"
run 0 home list --json home.yaml; same "id" "$(field 'devices[1].id')" lock.front
cp out again.json; run 0 home check again.json; has out "3 things"
run 0 home list; has out "demo home"; has out "kitchen_lights"
printf 'devices:\n  - {id: a, kind: light}\n  - {id: b, name: a, kind: light}\n' >same.yaml
run 0 home check same.yaml; has err "a and b have a name in common"
sed 's/kind: door/kind: dor/' home.yaml >bad.yaml
run 1 home check bad.yaml; has err "bad.yaml:5:5: unknown kind 'dor' (did you mean 'door'?)"
sed 's/rooms:/room:/' home.yaml >bad.yaml
run 1 home check bad.yaml; has err "bad.yaml:2:1: unknown key 'room' (did you mean 'rooms'?)"
run 1 home check missing.yaml; has err "missing.yaml"
run 2 home frob; run 2 home check

# ask with this home: ids, unknown things, stored states
run 0 ask --no-reply --home home.yaml --state states.json "turn on the kitchen light"
same "action" "$(cat out)" '{"action":"turn_on","device":"ceiling light","room":"kitchen","id":"light.kitchen","result":"simulated"}'
run 0 ask --home home.yaml --state states.json --json "is the kitchen light on?"
same "state" "$(field 'actions[0].state')" on
run 0 ask --home home.yaml --json "turn on the saw"
same "unknown" "$(field 'actions[0].unknown')" saw
same "says so" "$(field reply)" "I know no saw here."
run 1 ask --home bad.yaml "turn on the light"; has err "bad.yaml:2:1"
echo '{' >states.json; run 1 ask --home home.yaml --state states.json "turn on the light"; has err states.json
echo '{"text": "turn on the ceiling lihgt", "actions": [{"action": "turn_on", "device": "ceiling light", "room": "kitchen", "id": "light.kitchen"}]}' >rows.jsonl
run 0 eval ask --home home.yaml --json rows.jsonl; same "right" "$(field all.right)" 1

# import
mkdir storage
echo '{"data":{"areas":[{"id":"kitchen","name":"Kitchen"}]}}' >storage/core.area_registry
echo '{"data":{"devices":[{"id":"d1","area_id":"kitchen","name":"Hue"}]}}' >storage/core.device_registry
echo '{"data":{"entities":[{"entity_id":"light.hue","device_id":"d1","original_name":"Counter light"},{"entity_id":"sun.sun"}]}}' >storage/core.entity_registry
run 0 home import storage; has err "1 room, 1 thing; 1 entity left out"
cp out made.yaml; run 0 ask --no-reply --home made.yaml "turn on the counter light"; has out '"id":"light.hue"'
rm storage/core.entity_registry; run 1 home import storage; has err "core.entity_registry"
echo '{}' >storage/core.entity_registry; run 1 home import storage; has err "data.entities"
finish
