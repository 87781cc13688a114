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
# lines can be edited, and come back from the history, also in the next chat
if ldconfig -p 2>/dev/null | grep -q libedit.so.2; then
    cat >script <<'S'
expect > 
send uno
key A
send first 
key E
send  dos\n
expect gu gu
expect > 
key P
send  tres\n
expect gu gu
expect > 
send /save talk3.json\n
expect messages saved
key D
exit 0
S
    checked=$((checked + 1))
    TERM=xterm "$tool" pty script "$shoal" chat "${says_gu[@]}" -n 4 || fail "edited lines"
    same "edited" "$("$tool" json 'messages[0].content' <talk3.json)" "first uno dos"
    same "from the history" "$("$tool" json 'messages[2].content' <talk3.json)" "first uno dos tres"
    printf 'expect > \nkey P\nkey P\nsend \\n\nexpect gu gu\nexpect > \nsend /save talk4.json\\n\nexpect messages saved\nkey D\nexit 0\n' >script
    checked=$((checked + 1))
    TERM=xterm "$tool" pty script "$shoal" chat "${says_gu[@]}" -n 4 || fail "history"
    same "of the chat before" "$("$tool" json 'messages[0].content' <talk4.json)" "first uno dos tres"
    same "for the owner alone" "$(stat -c %a "$XDG_STATE_HOME/shoal/chat-history")" 600
fi
# errors are red at a terminal, unless NO_COLOR says otherwise
printf 'expect \033[31mshoal chat:\nexit 1\n' | sed 's/\\033/\x1b/' >script
checked=$((checked + 2))
TERM=xterm "$tool" pty script "$shoal" chat -m nosuch.gguf hi || fail "a red error"
printf 'expect shoal chat: \nexit 1\n' >script
TERM=xterm NO_COLOR=1 "$tool" pty script "$shoal" chat -m nosuch.gguf hi || fail "NO_COLOR"

# a running server answers: the same texts, streamed; Ctrl-C ends an answer, not the chat
printf 'pack: false\nmodels: [{name: draft, path: "%s"}, {name: long, path: "%s", context: 131072}]\n' "$reply" "$model" >server.yaml
"$shoal" serve --config server.yaml --listen "unix:$tmp/s.sock" >server 2>&1 &
server=$!
for _ in $(seq 600); do [ -S s.sock ] && break; sleep 0.1; done
at=(--server "unix:$tmp/s.sock")
run 0 generate -m "$reply" --temp 0 -n 9 "was it"; cp out want
run 0 generate "${at[@]}" --temp 0 -n 9 "was it"; cmp -s out want || fail "generate: $(cat out) instead of $(cat want)"
SHOAL_HOST=unix:$tmp/s.sock run 0 generate -m draft --temp 0 -n 9 --json "was it"; same "by SHOAL_HOST" "$(field text)" "$(cat want)"; same "tokens" "$(field generated_tokens)" 9
printf 'Hi\nAnd again\n' >in
run 0 chat -m "$reply" --temp 0 -n 9 --system Short <in; cp out want
run 0 chat "${at[@]}" --temp 0 -n 9 --system Short <in; cmp -s out want || fail "chat: $(cat out) instead of $(cat want)"
cat >script <<'S'
expect > 
send Hello\n
wait 300
key C
expect cancelled]
expect > 
send /help\n
expect /reset
key D
exit 0
S
checked=$((checked + 1))
"$tool" pty script "$shoal" chat "${at[@]}" -m long --temp 0 -n 0 --stats || fail "terminal with a server"
run 1 chat "${at[@]}" -m nosuch hi; has err "does not exist"; has err "shoal ps --server"
run 2 chat "${at[@]}" --ctx 64 hi; has err "configure the server"
run 2 generate "${at[@]}" --regex x hi; has err "works with a model of this process"
kill $server; wait $server
run 1 generate "${at[@]}" hi; has err "start it with 'shoal serve'"
finish
