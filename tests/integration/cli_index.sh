#!/usr/bin/env bash
# shoal index: documents of several formats in, passages out, by meaning and by words.
. "$(dirname "$0")/lib.sh"
export SHOAL_MODELS=$root/models SHOAL_COLLECTIONS=$tmp/collections

cat >pump.md <<'END'
# Pump

## Cooling

The pump runs hot when the coolant is low. Refill it to the upper mark.

## Noise

A grinding noise means that the bearing is worn. Replace the bearing.
END
cat >faq.html <<'END'
<title>Questions</title><h1>Warranty</h1><p>The warranty ends after 24 months.</p>
<h1>Delivery</h1><p>Orders arrive within five days &amp; are free.</p>
END
printf '%s\n' '{"id": "E42", "title": "Error E42", "text": "The door is open. Close the door."}' \
    '{"id": "E43", "text": "The filter is blocked. Clean the filter."}' >errors.jsonl

run 0 index stats; empty out; has err "no collections"
run 0 index add shop pump.md faq.html errors.jsonl; same "added" "$(cat out)" "3 added (6 passages), 0 unchanged"
printf "The warranty is 24 months.\n" >one.txt; run 0 index add single one.txt; same "one" "$(cat out)" "1 added (1 passage), 0 unchanged"
run 0 index remove single --all
run 0 index add shop pump.md; same "unchanged" "$(cat out)" "0 added (0 passages), 1 unchanged"
run 0 index query shop --json -n 1 "my machine is overheating"
same "by meaning" "$(field document)" pump.md; same "heading" "$(field heading)" Cooling
run 0 index query shop --by words --json -n 1 "E42"
same "by words" "$(field ref)" E42; has out '"rank_by_words":1'
run 0 index query shop -n 2 "how long is the warranty"; has out "faq.html: Warranty"; has out "24 months"
run 0 index query shop --by meaning -n 1 --json "it makes a grinding sound"; same "noise" "$(field heading)" Noise

# the sentence that answers, where it is from and its score; a question without an answer; a model's words are checked
run 0 index ask shop "when does the warranty end"; has out "The warranty ends after 24 months."; has out "faq.html: Warranty (score 0."
run 0 index ask shop --json "when does the warranty end"; has out '"found":true'; has out '"by":"quote"'; has out '"document":"faq.html"'
run 3 index ask shop "who founded the city of Madrid"; same "not found" "$(head -1 out)" "not found"; has out "nearest (score 0."
run 0 index ask shop -m reply -n 2 --max-tokens 16 --json "when does the warranty end"; has out '"generated":{'; has out '"supported":true'
run 1 index ask shop -m intent "when does the warranty end"; has err "generate"

# shoal ask: what the home cannot answer is looked up; what it does is not
run 0 ask --documents shop --json "what does a grinding noise mean?"
same "found" "$(field 'actions[0].action')/$(field 'actions[0].document')/$(field 'actions[0].result')" "find_document/pump.md/done"
has out '"reply":"A grinding noise means that the bearing is worn. That is from pump.md."'
run 0 ask --documents shop --json "who founded the city of Madrid?"; has out '"reply":"I don'"'"'t know."'
run 0 ask --documents shop --no-reply "turn on the kitchen lights"; has out '"action":"turn_on"'; same "lookups" "$(grep -c find_document out)" 0
run 1 ask --documents nothing "hello"; has err "no collection 'nothing'"

# a changed file replaces the old one; a document from stdin
echo "The pump was replaced by a compressor." >pump.md
run 0 index add shop --json pump.md; same "replaced" "$(field passages)" 1
run 0 index query shop --by words "coolant"; empty out; has err "nothing was found"
echo "Compressors hum." | "$shoal" index add shop --name hum - >out 2>err; has out "1 added"
run 0 index stats shop; has out "4 documents"; has out "  hum"
run 0 index stats --json shop; same "passages" "$(field passages)" 6; has out '"names":["errors.jsonl","faq.html","hum","pump.md"]'
run 0 index remove shop hum
run 1 index remove shop hum; has err "no document 'hum'"
run 0 index stats; has out "3 documents"

# a folder with all below it: changed files are replaced, those that are gone leave, and one that cannot be read is named
mkdir -p docs/deep docs/.hidden; echo "The gate opens at noon." >docs/gate.md; echo "The lamp is green." >docs/deep/lamp.txt
echo x >docs/deep/prog.c; echo "hidden" >docs/.hidden/h.md; echo '{"no": 1}' >docs/bad.jsonl
run 3 index add tree docs; same "folder" "$(cat out)" "2 added (2 passages), 0 unchanged, 1 left out"; has err "docs/bad.jsonl is left out"
run 0 index stats --json tree; has out '"names":["docs/deep/lamp.txt","docs/gate.md"]'
rm docs/bad.jsonl docs/gate.md; echo "The lamp is red." >docs/deep/lamp.txt; echo "other" >other.txt
run 0 index add tree other.txt docs/; same "synced" "$(cat out)" "2 added (2 passages), 0 unchanged, 1 removed"
run 0 index query tree --by words green; empty out
run 2 index add tree docs --title x; has err "--title is for a file"
run 1 index add tree docs nosuch; has err "nosuch"
run 2 index add tree other.txt --watch; has err "--watch needs"
"$shoal" index add tree docs --watch >watch 2>&1 &
watcher=$!
wait_for() { for _ in $(seq 600); do "$shoal" index stats --json tree 2>/dev/null | grep -q "$1" && return; sleep 0.1; done; fail "the watch did not see: $1"; }
for _ in $(seq 600); do grep -q watching watch && break; sleep 0.1; done
mkdir docs/new; echo "The owl sleeps." >docs/new/owl.md; wait_for "docs/new/owl.md"
rm docs/deep/lamp.txt; wait_for '"names":\["docs/new/owl.md","other.txt"\]'
kill $watcher; wait $watcher
run 0 index remove tree --all
mkdir many; for i in $(seq 25); do echo "Text $i." >many/$i.txt; done; run 0 index add many many
run 0 index stats many; has out "and 5 more: --all names them"; same "lines" "$(wc -l <out)" 22
run 0 index stats many --all; same "all lines" "$(wc -l <out)" 26; run 0 index remove many --all

# errors say what to do
run 1 index add shop nosuch.txt; has err "nosuch.txt"
echo '{"nothing": 1}' >bad.jsonl
run 1 index add shop bad.jsonl; has err 'line 1 has no "text"'
: >empty.txt
run 1 index add shop empty.txt; has err "has no text"
run 1 index query nosuch x; has err "no collection 'nosuch'"
run 1 index add ../up pump.md; has err "cannot be the name"
run 2 index add shop --format docx pump.md; has err "text, markdown, html, jsonl or pdf"
run 2 index add other --chunk-tokens 20 --overlap 10 pump.md; has err "less than half"
run 2 index remove shop; has err "use --all"
run 1 index add shop -m intent pump.md; has err "create another collection"
if command -v pdftotext >/dev/null; then
    printf '%%PDF-1.4\nnothing' >bad.pdf
    run 1 index add shop bad.pdf; has err "pdftotext cannot read it"
fi
cp -r "$root/models/encoder" weights; run 0 index add kept -m ./weights pump.md
run 0 index query kept hot; echo >>weights/tokenizer_config.json # stands for other weights of the same name
run 1 index query kept hot; has err "another model (version fp_"; has err "add its documents again"
run 0 index query kept --by words compressor; has out "pump.md"; run 0 index remove kept --all
run 0 index remove shop --all
run 1 index query shop x; has err "no collection 'shop'"
same "nothing is left" "$(ls collections)" ""
finish
