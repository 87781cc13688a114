#!/usr/bin/env bash
# shoal summarize with generative models: folders and converted files, by beam search, greedy,
# sampled.
. "$(dirname "$0")/lib.sh"
t5=$root/tests/data/t5

for m in t5-relu t5-gated mt5 marian; do
    for i in 0 1 2; do
        text=$("$tool" json "[$i].text" <"$t5/$m.json")
        run 0 summarize -m "$t5/$m" "$text"; same "$m $i" "$(cat out)" "$("$tool" json "[$i].summary" <"$t5/$m.json")"
        run 0 summarize -m "$t5/$m" --beams 1 "$text"
        same "$m $i, greedy" "$(cat out)" "$("$tool" json "[$i].greedy" <"$t5/$m.json")"
    done
    printf %s "$text" >text.txt
    summary=$("$tool" json "[2].summary" <"$t5/$m.json")
    run 0 summarize -m "$t5/$m" -f text.txt --json; same "$m, json" "$(field summary)" "$summary"
    same "$m, tokens" "$(field tokens)" "$("$tool" json "[2].ids.length" <"$t5/$m.json")"
    # both ways of loading give the same answers
    run 0 model convert "$t5/$m" $m.gguf
    run 0 summarize -m $m.gguf -f text.txt; same "$m, converted" "$(cat out)" "$summary"
    run 0 summarize -m "$t5/$m" --max-tokens 1 --beams 1 --json "$text"; short=$(field summary)
    [ ${#short} -lt ${#summary} ] || fail "$m: one token is '$short'"
    run 0 summarize -m "$t5/$m" --temp 1 --seed 3 "$text"; drawn=$(cat out)
    run 0 summarize -m $m.gguf --temp 1 --seed 3 -t 2 "$text"; same "$m, drawn again" "$(cat out)" "$drawn"
    run 0 summarize -m "$t5/$m" --temp 1 --seed 4 "$text"; differ "$m, another seed" "$(cat out)" "$drawn"
    run 0 summarize -m "$t5/$m" --int8 "$text"
done
run 0 model convert "$t5/t5-relu" q8.gguf --type q8_0; run 0 summarize -m q8.gguf -f text.txt
run 0 model convert "$t5/t5-relu" q4.gguf --type q4_0; run 0 summarize -m q4.gguf -f text.txt --beams 2

run 1 summarize -m "$t5/t5-relu" --temp 1 --beams 2 hello; has err "sampling and a search with 2 beams exclude each other"
run 1 summarize -m "$t5/t5-relu" --max-tokens 65 hello; has err "cannot write 65 tokens, the model's limit is 64"
run 1 summarize -m "$t5/t5-relu" --beams 64 --max-tokens 64 hello; has err "pages of keys and values, there are"
run 2 summarize -m "$t5/t5-relu" --beams 65 hello; has err "--beams"
run 1 classify -m "$t5/t5-relu" hello; has err "it can: summarize"
run 1 generate -m "$t5/t5-relu" hello; has err "summarize"
# a language of the vocabulary in front of the text is one token
run 0 summarize -m "$t5/marian" --json ">>fra<< The boats wait."; same "marian, language" "$(field tokens)" "$("$tool" json "[3].ids.length" <"$t5/marian.json")"
mkdir pickled && cp "$t5/marian/"*.json "$t5/marian/source.spm" pickled && touch pickled/pytorch_model.bin
run 1 summarize -m pickled hello; has err "pytorch_model.bin is not read: save it as safetensors"
mkdir broken && cp "$t5/t5-relu/"* broken/
sed -i 's/"num_beams": 3/"num_beams": 300/' broken/config.json
run 1 summarize -m broken hello; has err "task_specific_params.summarization: num_beams must be a number from 0 to 64"
sed -i 's/"num_beams": 300/"num_beams": 3/; s/"num_heads": 4/"num_heads": 5/' broken/config.json
run 1 summarize -m broken hello; has err "attn_q.weight is 64 x 64, expected 80 x 64"
finish
