#!/usr/bin/env bash
# Files that are missing, truncated, or not what they claim to be: exit code 1 and a message, never
# a crash.
. "$(dirname "$0")/lib.sh"
model=$refs/qwen3.gguf

run 1 generate -m nowhere.gguf hello
has err "cannot open nowhere.gguf: No such file or directory"; empty out
run 1 generate -m / hello; empty out
: >nothing.gguf
printf 'GGUF' >four.gguf
head -c 100000 /dev/urandom >noise.gguf
head -c 3000 "$model" >cut-header.gguf
head -c 100000 "$model" >cut-data.gguf
{ head -c 8 "$model"; printf '\377\377\377\377\377\377\377\177'; tail -c +17 "$model"; } >liar.gguf
for f in nothing four noise cut-header cut-data liar; do
    for c in "generate hello" "tokenize hello" "logits --text hello" "chat"; do
        # shellcheck disable=SC2086
        run 1 ${c%% *} -m $f.gguf $(echo "$c" | cut -s -d' ' -f2-) </dev/null
        empty out
        has err "shoal ${c%% *}: "
    done
    run 1 model show $f.gguf; has err "shoal model show: "
    run 1 model quantize $f.gguf out.gguf --type q8_0; has err "shoal model quantize: "
    [ ! -e out.gguf ] || fail "quantize left a file"
done
run 1 model convert noise.gguf out.gguf --tokenizer "$model"; has err "shoal model convert: "
run 1 perplexity -m "$model" nowhere.txt; has err "cannot open nowhere.txt"
echo short >short.txt
run 1 perplexity -m "$model" short.txt; has err "tokens"
run 1 generate -m "$model" -f nowhere.txt; has err "cannot open nowhere.txt"
run 1 generate -m "$model" --kernels best hello; has err "no kernel set named best"
run 1 generate -m "$model" --ctx 4 "more than four tokens"; has err "the context holds only 4"
run 1 generate -m "$model" --tokens 1,999999; has err "999999"
run 1 generate -m "$model" --logit-bias 999999=1 hello; has err "999999"
run 1 generate -m "$model" ""; has err "the prompt is empty"
run 1 detokenize -m "$model" 999999; has err "999999"
run 2 detokenize -m "$model" 1 x2; has err "x2 is not a token id"
run 1 logits -m "$model" --tokens 999999; has err "999999"
run 1 model show "$model" --kv no.such.key; has err "no.such.key"
run 1 doctor --no-measure --kernels best; has err "no kernel set named best"
run 1 model quantize "$refs/quant-a.gguf" out.gguf --type q4_0; has err "requantize"
# a full disk
if [ -w /dev/full ]; then
    for c in "version" "tokenize -m $model hello" "generate -m $model -n 5 hello" "model show $model"; do
        checked=$((checked + 1))
        # shellcheck disable=SC2086
        "$shoal" $c >/dev/full 2>"$tmp/err"
        same "shoal $c on a full disk" $? 1
    done
fi
finish
