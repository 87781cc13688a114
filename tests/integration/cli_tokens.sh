#!/usr/bin/env bash
# shoal tokenize and detokenize.
. "$(dirname "$0")/lib.sh"
model=$refs/llama-gqa.gguf

run 0 tokenize -m "$model" "hello world"; ids=$(cat out)
run 0 tokenize -m "$model" --json "hello world"
same "json" "$(field tokens | tr -d '[]' | tr , ' ')" "$ids"
same "pieces" "$(field pieces.length)" "$(field n)"
run 0 tokenize -m "$model" --count "hello world"; same "count" "$(cat out)" "$(echo "$ids" | wc -w)"
run 0 tokenize -m "$model" --no-bos "hello world"; same "no BOS" "1 $(cat out)" "$ids"
run 0 tokenize -m "$model" --pieces "hello"; same "first piece" "$(head -n 1 out)" "$(printf '1\t"<s>"')"
run 0 tokenize -m "$model" --no-bos --special "a</s>b"; special=$(wc -w <out)
run 0 tokenize -m "$model" --no-bos "a</s>b"; differ "special" "$special" "$(wc -w <out)"
# shellcheck disable=SC2086
run 0 detokenize -m "$model" $ids; same "back" "$(cat out)" "hello world"
run 0 detokenize -m "$model" "[${ids// /, }]"; same "back from a list" "$(cat out)" "hello world"
run 0 detokenize -m "$model" --special 1 2; same "special" "$(cat out)" "<s></s>"
run 0 detokenize -m "$model" --json 1; same "json" "$(field text)" ""
# any bytes survive the round trip
head -c 5000 /dev/urandom >bytes
printf '\0\0 caf\xc3\xa9 \xf0\x9f\x90\x9f\r\n\t\xff' >>bytes
for m in llama-gqa qwen3 gpt2; do
    "$shoal" tokenize -m "$refs/$m.gguf" -f bytes | "$shoal" detokenize -m "$refs/$m.gguf" >back
    cmp bytes back || fail "$m: bytes differ after a round trip"
    "$shoal" tokenize -m "$refs/$m.gguf" <bytes | "$shoal" detokenize -m "$refs/$m.gguf" - >back
    cmp bytes back || fail "$m: bytes differ after a round trip by stdin"
done
finish
