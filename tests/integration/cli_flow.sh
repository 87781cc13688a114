#!/usr/bin/env bash
# shoal flow: the example flows with the included models, traces, pictures, invalid files.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models SHOAL_COLLECTIONS=$tmp/collections
flows=$root/examples/flows

# check
for f in helper manual ask; do run 0 flow check "$flows/$f.yaml"; has out "$f: "; done
run 0 flow check "$flows/manual_llm.yaml"; has out "manual: 6 steps"
run 0 flow check "$flows/helper.yaml" --json; same "kind" "$(field '[0].steps[1].do')" tag; same "lazy" "$(field '[0].steps[2].lazy')" true
sed 's/slots.values.place}/slotz.values.place}/' "$flows/helper.yaml" >bad.yaml
run 1 flow check bad.yaml; has err "bad.yaml:32:42: there is no step 'slotz' (did you mean 'slots'?)"
echo 'threads: 1' >none.yaml
run 1 flow check none.yaml; has err "none.yaml has no flows"
run 2 flow check

# classify, tag and template
run 0 flow run "$flows/helper.yaml" "what is the weather like in Bern tomorrow"; has out "the weather in Bern"; empty err
run 0 flow trace "$flows/helper.yaml" --json "what is the weather like in Bern tomorrow"
same "flow" "$(field flow)" helper; same "degraded" "$(field degraded)" false
same "tag" "$(field 'steps[1].output.values.place')" Bern; same "chosen" "$(field 'steps[4].output.case')" 1
same "not chosen" "$(field 'steps[3].state')" unused
run 0 flow trace "$flows/helper.yaml" "how is the weather"; has out "Where do you want to know"; has out "STEP"; has out "switch"
run 0 flow run "$flows/helper.yaml" - <<<"what is the weather like in Bern tomorrow"; has out "in Bern"

# a deadline that no step can meet: the fallback answers and says so
run 0 flow run "$flows/helper.yaml" --budget 0.001 "hello"; has out "I cannot answer that now."; has err "degraded"
run 2 flow run "$flows/helper.yaml" --input 3 "hello"; has err "--input must be a JSON object"
run 1 flow run "$flows/helper.yaml" --input '{"room": "hall"}' "hello"; has err "has no input 'room'"
run 1 flow run "$flows/helper.yaml" --flow nope "hello"; has err "no flow 'nope'"

# retrieve, generate, verify: claims that the passages do not support are not made
printf '# Pump\n\n## Cooling\n\nThe pump runs hot when the coolant is low. Refill it to the upper mark.\n' >pump.md
run 0 index add manual pump.md
run 0 flow trace "$flows/manual.yaml" --json "the pump is too hot"
same "found" "$(field 'steps[0].output.passages[0].document')" pump.md
same "checked" "$(field 'steps[2].state')" done; has out '"verdict":"'
run 0 flow run "$flows/manual.yaml" "the pump is too hot"; has out "1]"
SHOAL_COLLECTIONS="" HOME="" XDG_STATE_HOME="" STATE_DIRECTORY="" run 1 flow run "$flows/manual.yaml" "the pump is too hot"
has err "there is no folder for the collection 'manual': use --dir"

# the home flow
run 0 flow run "$flows/ask.yaml" "turn on the kitchen lights"; has out "kitchen"

# calls a program: no shell sees its arguments, its output is JSON
cat >call.yaml <<END
flows:
  - name: outside
    output: \${get.json.temperature} degrees, \${say.text}
    inputs: [{name: room, default: hall}, {name: list, type: texts, default: ""}]
    steps:
      - {name: get, do: call, via: command, json: true, command: [/bin/echo, '{"temperature": 21}']}
      - {name: say, do: call, via: command, command: [/bin/echo, -n, '\$(id) in \${input.room} \${input.text}']}
      - {name: each, do: map, over: '\${input.list}', step: one}
      - {name: one, do: template, text: '<\${item}>'}
      - {name: all, do: merge, from: ['\${each.items[0].text}', '\${each.items[1].text}'], how: join, separator: ' '}
  - {name: mapped, output: '\${x.text}', steps: [{name: x, do: template, text: 'only \${input.text}'}]}
flows_allow: {commands: [/bin/echo]}
END
sed -i 's/degrees, ${say.text}/degrees, ${say.text} ${all.value}/' call.yaml
run 0 flow run call.yaml --flow outside --input '{"room": "cellar", "list": ["a", "b"]}' "x y"
same "a command" "$(cat out)" '21 degrees, $(id) in cellar x y <a> <b>'
run 2 flow run call.yaml "x"; has err "--flow NAME"
sed 's/commands: .*/commands: []}/' call.yaml >refused.yaml
run 1 flow check refused.yaml; has err "refused.yaml:6:"; has err "add /bin/echo to flows_allow.commands"

# a picture that an XML parser accepts
run 0 flow draw "$flows/helper.yaml"; has out "<svg "; has out ">answer<"
same "one box for each step, the input and the output" "$(grep -c '<rect' out)" 7
if command -v xmllint >/dev/null; then xmllint --noout out || fail "the picture is not XML"; fi
run 2 flow draw call.yaml; has err "--flow NAME"
finish
