#!/usr/bin/env bash
# `shoal eval ask` on the committed sets: only commands are acted on, and at least 86 of 100 rows
# are entirely right. A set with wrong expectations is detected. Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
sets=$root/tests/data/ask
export SHOAL_MODELS=$root/models
run 0 eval ask "$sets/eval.jsonl" "$sets/eval-hand.jsonl" --json
rows=$(field all.rows) right=$(field all.right) nothing=$(field all.nothing) acted=$(field all.acted)
echo "$right of $rows rows wholly right, $acted of $nothing non-commands acted on"
checked=$((checked + 3))
[ "$rows" -ge 1500 ] || fail "$rows rows, expected 1,500 or more"
[ $((right * 100)) -ge $((rows * 86)) ] || fail "$right of $rows rows are wholly right, expected 86 %"
[ "$nothing" -ge 1000 ] || fail "$nothing non-commands, expected 1,000 or more"
[ $((acted * 200)) -le "$nothing" ] || fail "$acted of $nothing non-commands are acted on, expected 0.5 % at most"
run 0 eval ask "$sets/eval-slips.jsonl" --json
rows=$(field all.rows) right=$(field all.right) acted=$(field all.acted)
echo "typos, slips, pronouns, states: $right of $rows rows wholly right, $acted non-commands acted on"
checked=$((checked + 1))
[ $((right * 100)) -ge $((rows * 88)) ] || fail "$right of $rows rows with typos and slips are wholly right, expected 88 %"
[ "$acted" -le 1 ] || fail "$acted misspelt non-commands are acted on, expected 1 at most"
run 0 eval ask "$sets/eval-fresh.jsonl" --json
rows=$(field all.rows) right=$(field all.right) nothing=$(field all.nothing) acted=$(field all.acted)
echo "written afresh: $right of $rows rows wholly right, $acted of $nothing non-commands acted on"
checked=$((checked + 3))
[ "$rows" -ge 300 ] || fail "$rows rows, expected 300 or more"
[ $((right * 100)) -ge $((rows * 92)) ] || fail "$right of $rows rows written afresh are wholly right, expected 92 %"
[ $((acted * 100)) -le "$nothing" ] || fail "$acted of $nothing non-commands are acted on, expected 1 % at most"
run 0 eval ask "$sets/eval-turns.jsonl" --json
rows=$(field all.rows) right=$(field all.right) acted=$(field all.acted)
echo "turns that are not whole, times in front, what is left over: $right of $rows rows wholly right"
checked=$((checked + 1))
[ "$rows" -ge 25 ] || fail "$rows rows of turns, expected 25 or more"
[ $((right * 100)) -ge $((rows * 75)) ] || fail "$right of $rows rows of turns are wholly right, expected 75 %"
[ "$acted" -le 3 ] || fail "$acted turns that are no command were acted on, expected 3 at most"
run 0 eval ask "$sets/eval-wild.jsonl" "$sets/eval-unseen.jsonl" --json
rows=$(field all.rows) right=$(field all.right) nothing=$(field all.nothing) acted=$(field all.acted)
echo "in other styles: $right of $rows rows wholly right, $acted of $nothing non-commands acted on"
checked=$((checked + 2))
[ $((right * 100)) -ge $((rows * 91)) ] || fail "$right of $rows rows in other styles are wholly right, expected 91 %"
[ $((acted * 100)) -le $((nothing * 2)) ] || fail "$acted of $nothing non-commands in other styles are acted on, expected 2 % at most"
run 0 eval ask "$sets/eval-voices.jsonl" --json
rows=$(field all.rows) right=$(field all.right)
echo "in other voices: $right of $rows rows wholly right"
checked=$((checked + 1))
[ $((right * 100)) -ge $((rows * 75)) ] || fail "$right of $rows rows in other voices are wholly right, expected 75 %"
same "non-commands in other voices acted on" "$(field all.acted)" 0
run 0 eval ask "$sets/eval-people.jsonl" --json
rows=$(field all.rows) right=$(field all.right)
echo "said by other people: $right of $rows rows wholly right"
checked=$((checked + 1))
[ $((right * 100)) -ge $((rows * 85)) ] || fail "$right of $rows rows said by other people are wholly right, expected 85 %"
same "non-commands of other people acted on" "$(field all.acted)" 0
for home in hotel workshop; do
    run 0 eval ask --home "$sets/homes/$home.yaml" "$sets/eval-wild-$home.jsonl" "$sets/eval-unseen-$home.jsonl" --json
    rows=$(field all.rows) right=$(field all.right)
    echo "in a $home: $right of $rows rows wholly right"
    checked=$((checked + 1))
    [ $((right * 100)) -ge $((rows * 90)) ] || fail "$right of $rows rows in a $home are wholly right, expected 90 %"
    same "non-commands in a $home acted on" "$(field all.acted)" 0
    run 0 eval ask --home "$sets/homes/$home.yaml" "$sets/eval-voices-$home.jsonl" --json
    rows=$(field all.rows) right=$(field all.right)
    checked=$((checked + 1))
    [ $((right * 100)) -ge $((rows * 75)) ] || fail "$right of $rows rows in a $home are wholly right, expected 75 %"
    same "non-commands in other voices in a $home acted on" "$(field all.acted)" 0
    run 0 eval ask --home "$sets/homes/$home.yaml" "$sets/eval-people-$home.jsonl" --json
    rows=$(field all.rows) right=$(field all.right)
    checked=$((checked + 1))
    [ $((right * 100)) -ge $((rows * 65)) ] || fail "$right of $rows rows of other people in a $home are wholly right, expected 65 %"
    same "non-commands of other people in a $home acted on" "$(field all.acted)" 0
done
for home in kitchen plant boat care; do
    run 0 eval ask --home "$sets/safety/$home.yaml" "$sets/safety/$home.jsonl" --json
    rows=$(field all.rows) right=$(field all.right)
    echo "dangerous things in a $home: $right of $rows rows wholly right"
    checked=$((checked + 2))
    [ "$rows" -ge 36 ] || fail "$rows rows of $home, expected 36 or more"
    [ $((right * 100)) -ge $((rows * 90)) ] || fail "$right of $rows rows in $home are wholly right, expected 90 %"
    same "non-commands in $home acted on" "$(field all.acted)" 0
done
echo '{"text": "turn off the kitchen lights", "kind": "negated", "actions": []}' >wrong.jsonl
run 0 eval ask wrong.jsonl --json
same "a command in place of a non-command" "$(field all.acted)" 1
same "rows right there" "$(field all.right)" 0
echo '{"text": 5}' >bad.jsonl
run 1 eval ask bad.jsonl
has err bad.jsonl
finish
