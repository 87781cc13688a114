#!/usr/bin/env bash
# shoal chat: pipe and terminal.
. "$(dirname "$0")/lib.sh"
model=$refs/qwen3.gguf
end=$("$shoal" model show "$model" --json | "$tool" json tokenizer.eos)
gu=$("$shoal" tokenize -m "$model" " gu")
says_gu=(-m "$model" --temp 0 --logit-bias "$gu=100")

# from a pipe: each line is one turn; commands are not turns
printf 'Hi\nAnd again\n\n/help\n//slash\n/frob\n' >in
run 0 chat "${says_gu[@]}" -n 40 --json <in
same "turns" "$("$tool" jsonl <out)" 3
has err "/reset"; has err "unknown command /frob"
sed -n 1p out >one; sed -n 2p out >two; sed -n 3p out >three
same "nothing is cached at first" "$("$tool" json cached_tokens <one)" 0
# the second prompt starts with the first and its answer: whole 16-token pages come from the cache
seen=$(($("$tool" json prompt_tokens <one) + $("$tool" json generated_tokens <one)))
same "cached" "$("$tool" json cached_tokens <two)" $(((seen - 1) / 16 * 16))
same "content" "$("$tool" json content <one)" "$(printf ' gu%.0s' $(seq 40))"
run 0 chat "${says_gu[@]}" -n 3 <in; same "text" "$(head -n 1 out)" " gu gu gu"
same "lines" "$(wc -l <out)" 3
# the same seed gives the same chat; a reset starts over
sampled=(-m "$model" --temp 1.5 --seed 9 -n 20 --json --logit-bias "$end=-inf")
printf 'Hi\nHi\n' | "$shoal" chat "${sampled[@]}" | "$tool" jsonl >/dev/null || fail "json lines"
content() { while read -r line; do printf '%s' "$line" | "$tool" json content; done; }
printf 'Hi\nHi\n' | "$shoal" chat "${sampled[@]}" | content >a
printf 'Hi\nHi\n' | "$shoal" chat "${sampled[@]}" | content >b
printf 'Hi\n/reset\nHi\n' | "$shoal" chat "${sampled[@]}" 2>/dev/null | content >c
cmp -s a b || fail "the same chat gives other answers"
same "after /reset" "$(sed -n 2p c)" "$(sed -n 1p c)"
differ "without /reset" "$(sed -n 2p a)" "$(sed -n 1p a)"
printf 'Hi\n/system Be brief\nHi\n/save talk.json\n' | "$shoal" chat "${says_gu[@]}" -n 2 >out 2>err
same "saved" "$("$tool" json 'messages[0].role' <talk.json)" system
same "saved" "$("$tool" json messages.length <talk.json)" 5
same "saved answer" "$("$tool" json 'messages[4].content' <talk.json)" " gu gu"
# a full context drops the oldest turns and goes on
for i in 1 2 3 4 5 6 7 8; do echo "line $i"; done >in
run 0 chat "${says_gu[@]}" --ctx 160 -n 20 --json <in
same "turns" "$("$tool" jsonl <out)" 8; has err "dropped the"
run 1 chat "${says_gu[@]}" --ctx 32 <in; has err "no room for an answer"
run 2 chat "${says_gu[@]}" --var thinking <in; has err "NAME=JSON"
run 0 chat "${says_gu[@]}" --var thinking=false -n 2 <in

# a model trained on its template: the prompt equals the hand-written one, with one BOS in front and
# the end token as a special token; the second turn reuses the pages of the first
reply=$root/models/reply-draft.gguf
ask="act: turn_off; device: lights; room: kitchen; result: done"
printf '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n' "$ask" >prompt
run 0 generate -m "$reply" --special --temp 0 --json "$(cat prompt)
"
want=$(field text) n=$(field prompt_tokens)
printf '%s\n%s\n' "$ask" "act: turn_on; device: fan; room: bedroom; result: done" >in
run 0 chat -m "$reply" --temp 0 --json <in
sed -n 1p out >one; sed -n 2p out >two
same "template" "$("$tool" json content <one)" "$want"
same "template's tokens" "$("$tool" json prompt_tokens <one)" "$n"
differ "an answer" "$want" ""
seen=$((n + $("$tool" json generated_tokens <one)))
same "cached" "$("$tool" json cached_tokens <two)" $(((seen - 1) / 16 * 16))
same "finish" "$("$tool" json finish <two)" stop
# a template that cannot be parsed: the model loads, the chat says why
sed 's/{% for message in messages %}/{% fro message in messages %}/' "$reply" >bad.gguf
run 0 generate -m bad.gguf --temp 0 -n 2 hello
run 1 chat -m bad.gguf <in; has err "chat template"; empty out
# at a terminal: Ctrl-C stops the answer but not the program, Ctrl-D exits
cat >script <<'S'
expect > 
send Hello\n
expect gu gu gu
key C
expect cancelled]
expect > 
key C
expect press Ctrl-D or type /exit
expect > 
send again\n
expect gu gu gu
key C
expect cancelled]
expect > 
send /help\n
expect /reset
expect > 
send one \\n
expect . 
send two\n
expect gu gu gu
key C
expect > 
send /save talk2.json\n
expect messages saved
key D
exit 0
S
checked=$((checked + 1))
"$tool" pty script "$shoal" chat "${says_gu[@]}" --ctx 131072 -n 0 --stats || fail "terminal"
same "long message" "$("$tool" json 'messages[4].content' <talk2.json | tr '\n' '|')" "one |two|"
finish
