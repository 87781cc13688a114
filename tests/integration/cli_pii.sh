#!/usr/bin/env bash
# `shoal pii`: lines, masks, JSON; `shoal eval pii` on the committed set: what the rules find, and that they find nothing in
# texts without personal data.  Arguments: shoal, cli_tool.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models
text='write to anna@example.org or call +49 171 2345678'
run 0 pii "$text"
has out anna@example.org
same "hits" "$(wc -l <out)" 2
run 0 pii --mask "$text"
same "masked" "$(cat out)" 'write to [email] or call [phone]'
run 0 pii --mask --find phone "$text"
same "phones alone" "$(cat out)" 'write to anna@example.org or call [phone]'
run 0 pii --json "$text"
same "kind" "$(field found[1].kind)" phone
same "form" "$(field found[1].form)" international
same "place" "$(field found[0].start)-$(field found[0].end)" 9-25
printf 'no personal data\nin two lines' >plain.txt
run 0 pii --mask -f plain.txt
same "a text without" "$(cat out)" "$(cat plain.txt)"
run 0 pii --mask --find person,place,email 'Anna Schmidt, a@b.org, lives in Berlin'
same "names by the model" "$(cat out)" '[person], [email], lives in [place]'
run 2 pii --find emails x
has err "'emails'"
run 0 eval pii "$root/tests/data/pii/eval.jsonl" --json
for kind in email phone card iban ip id birth; do
    checked=$((checked + 1))
    awk -v p="$(field kinds.$kind.precision)" -v r="$(field kinds.$kind.recall)" 'BEGIN { exit !(p >= 0.98 && r >= 0.98) }' ||
        fail "$kind: precision $(field kinds.$kind.precision), recall $(field kinds.$kind.recall), expected 0.98"
done
same "hits in texts without personal data" "$(field rows_without_hit)" 0
checked=$((checked + 1))
[ "$(field rows_without)" -ge 300 ] || fail "$(field rows_without) texts without personal data, expected 300"
echo '{"text": "a@b.org", "spans": []}' >wrong.jsonl
run 0 eval pii wrong.jsonl --json
same "a hit where none is expected" "$(field rows_without_hit)" 1
echo '{"text": "x", "spans": [{"kind": "email", "start": 0, "end": 9}]}' >bad.jsonl
run 1 eval pii bad.jsonl
has err bad.jsonl:1
finish
