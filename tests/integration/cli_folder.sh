#!/usr/bin/env bash
# Hugging Face folders: model show, convert and quantize accept them; errors say what is wrong.
. "$(dirname "$0")/lib.sh"
folders=$root/tests/data/folders

for f in gpt2 gptneo llama llama3 mistral qwen2 qwen3 phi; do
    run 0 model show "$folders/$f" --json
    same "$f is a decoder" "$(field architecture.kind)" decoder
    field memory.weights_bytes >/dev/null || fail "$f"
    params=$(field n_params)
    run 0 model convert "$folders/$f" $f.gguf --json; same "$f: size" "$(field bytes_to)" "$(stat -c %s $f.gguf)"
    run 0 model show $f.gguf --json
    same "$f: parameters" "$(field n_params)" "$params"
    run 0 model show $f.gguf --kv general.name; same "$f: name" "$(cat out)" $f
    run 0 model show $f.gguf --kv huggingface.config; same "$f: config" "$(cat out)" "$(cat "$folders/$f/config.json")"
    run 0 model show $f.gguf --kv tokenizer.huggingface.json
    same "$f: tokenizer" "$(cat out)" "$(cat "$folders/$f/tokenizer.json")"
    # both ways of loading give the same answers, also from the cache of tiled weights
    run 0 generate -m "$folders/$f" -n 16 --seed 7 --ignore-end --json "The old harbour"; answer=$(field tokens)
    run 0 generate -m "$folders/$f" -n 16 --seed 7 --ignore-end --json "The old harbour"
    same "$f: cached" "$(field tokens)" "$answer"
    run 0 generate -m $f.gguf -n 16 --seed 7 --ignore-end --json "The old harbour"
    same "$f: converted" "$(field tokens)" "$answer"
done
run 0 model show "$folders/llama"; has out "4 safetensors files"
run 0 model show "$root/tests/data/t5/t5-relu" --json; same "t5" "$(field architecture.kind)" encoder-decoder
run 0 model show "$root/models/encoder" --json; same "encoder" "$(field architecture.kind)" encoder

# specialists: both ways of loading
specialist() { # FOLDER ARGS...: runs a command on the folder and on its converted file
    local f=$1 name
    name=$(basename "$1")
    shift
    run 0 model convert "$f" "$name.gguf"
    run 0 "$1" -m "$f" --json "${@:2}"; sed -E 's/"([a-z_]*_ms|batch)":[^,}]*//g' out >folder.json
    run 0 "$1" -m "$name.gguf" --json "${@:2}"; sed -E 's/"([a-z_]*_ms|batch)":[^,}]*//g' out >file.json
    sed -i "s|$f|$name.gguf|g" folder.json
    cmp folder.json file.json || fail "$name: $1 differs"
}
specialist "$root/tests/data/t5/t5-relu" summarize "the old harbour wakes"
specialist "$root/models/encoder" classify "turn off the kitchen lights" "what is my balance"
specialist "$root/models/encoder" tag "set the heating in the bedroom to 19 degrees"
specialist "$root/models/encoder" embed "the pump is hot"
for type in q8_0 q4_0; do # weights quantized in the file: the same label, nearly the same confidence
    run 0 model convert "$root/models/encoder" enc-$type.gguf --type $type
    run 0 classify -m enc-$type.gguf --json "turn off the kitchen lights"; same "$type" "$(field label)" turn_off
    same "$type: sure" "$(field confidence | cut -c1-3)" 0.9
done

# types: unchanged by default, smaller on request; norms and heads keep their bits
run 0 model convert "$folders/llama3" l.gguf --name mine --tensors
has out "attn_q.weight              F16    -> F16"; has out "attn_norm.weight           F16    -> F32"
run 0 model show l.gguf --kv general.name; same "name" "$(cat out)" mine
run 0 model convert "$root/models/encoder" e.gguf --type q4_0
run 0 model show e.gguf --tensors
same "layers" "$(grep -c 'blk.*weight *Q4_0' out)" 18
same "heads" "$(grep -c -E '(cls|cls.output|tag.output).weight *Q8_0' out)" 3
same "transitions" "$(grep -c 'tag.transitions.* F32' out)" 4
run 0 model quantize "$folders/qwen2" q.gguf --type f16; run 0 model convert "$folders/qwen2" c.gguf --type f16
cmp q.gguf c.gguf || fail "quantize and convert of a folder differ"

# errors
mkdir bare broken
run 1 model show bare; has err "bare is a folder without config.json"
run 1 model convert bare x.gguf; has err "bare is a folder without config.json"
run 1 generate -m bare hello; has err "bare is a folder without config.json"
cp "$folders/qwen3/"* broken/
sed -i 's/"qwen3"/"qwen9"/' broken/config.json
run 1 model convert broken x.gguf; has err 'broken: model_type "qwen9" (known: bert, '
sed -i 's/"qwen9"/"llama"/' broken/config.json
run 1 model convert broken x.gguf; has err "k_norm.weight is not part of the llama architecture"
truncate -s 1000 broken/model.safetensors
run 1 model show broken; has err "broken/model.safetensors: "
run 2 model convert "$folders/qwen2" x.gguf --tokenizer t.bin; has err "contains its tokenizer"
run 2 model convert nowhere x.gguf; has err "--tokenizer"
run 2 model convert "$folders/qwen2" x.gguf --type q9; has err "--type is q9"
run 1 model convert "$folders/qwen2" bare; has err "bare: not a regular file"
run 1 model convert "$folders/qwen2" no/x.gguf; has err "cannot create no/x.gguf"
(ulimit -f 64; trap '' XFSZ; "$shoal" model convert "$folders/qwen2" big.gguf >out 2>err) && fail "wrote past the limit"
has err "cannot write big.gguf"
left=$(find . -name '*.part*' -o -name x.gguf -o -name big.gguf)
same "nothing is left of failures" "$left" ""
finish
