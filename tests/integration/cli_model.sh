#!/usr/bin/env bash
# model show, convert and quantize; logits, perplexity, bench, doctor: JSON and figures that agree.
. "$(dirname "$0")/lib.sh"
model=$refs/qwen3.gguf

run 0 model show "$model"; has out "qwen3"; has out "F16"
run 0 model show "$model" --json --tensors
same "architecture" "$(field architecture.name)" qwen3
same "tensors" "$(field tensors.length)" "$(field n_tensors)"
same "layers" "$(field architecture.n_layers)" 2
run 0 model show "$model" --kv general.architecture; same "one key" "$(cat out)" qwen3
run 0 model show "$model" --kv tokenizer.ggml.tokens; same "an array" "$(field '[299]')" "<|im_end|>"
for m in "$refs"/*.gguf; do
    run 0 model show "$m" --json; field memory.weights_bytes >/dev/null || fail "$m"
done

# the last row of --every equals the result for the last position alone, in text, JSON and binary
run 0 logits -m "$model" --text "was the" --json; top=$(field 'positions[0].top[0].logit') n=$(field tokens.length)
run 0 logits -m "$model" --text "was the" --every --json; same "every" "$(field positions.length)" "$n"
same "last row" "$(field "positions[$((n - 1))].top[0].logit")" "$top"
run 0 logits -m "$model" --text "was the" --all --json; same "all" "$(field 'positions[0].logits.length')" "$(field n_vocab)"
vocab=$(field n_vocab)
run 0 logits -m "$model" --text "was the" --every --out rows.f32; empty out
same "binary rows" "$(stat -c %s rows.f32)" $((4 * n * vocab))
run 0 logits -m "$model" --text "was the" --out row.f32
tail -c $((4 * vocab)) rows.f32 | cmp - row.f32 || fail "the last binary row differs"
run 0 logits -m "$model" --tokens "$("$shoal" tokenize -m "$model" "was the" | tr ' ' ,)" -k 3 --json
same "by ids" "$(field 'positions[0].top[0].logit')" "$top"
same "three" "$(field 'positions[0].top.length')" 3
next=$(field 'positions[0].top[0].token')
run 0 generate -m "$model" --temp 0 -n 1 --ignore-end --json "was the"; same "greedy token" "$(field 'tokens[0]')" "$next"
run 0 logits -m "$model" --text "was the"; has out "%"

# perplexity: file and stdin agree, chunks are counted
run 0 perplexity -m "$model" --ctx 64 --json "$root/bench/PROTOCOL.md"; ppl=$(field ppl)
same "scored" "$(field n)" $(($(field n_chunks) * 31))
run 0 perplexity -m "$model" --ctx 64 --json - <"$root/bench/PROTOCOL.md"; same "stdin" "$(field ppl)" "$ppl"
run 0 perplexity -m "$model" --ctx 64 --chunks 3 --json "$root/bench/PROTOCOL.md"; same "chunks" "$(field n_chunks)" 3
run 0 perplexity -m "$model" --ctx 64 -t 1 --chunk 16 --json "$root/bench/PROTOCOL.md"; same "small chunks" "$(field ppl)" "$ppl"
run 0 perplexity -m "$model" --ctx 64 "$root/bench/PROTOCOL.md"; has out "perplexity "

# quantize: sizes, types, perplexity of the same text with and without calibration
run 0 model quantize "$model" q8.gguf --type q8_0 --perplexity "$root/bench/PROTOCOL.md" --ctx 64 --json
same "before" "$(field perplexity.before)" "$ppl"
same "size" "$(field bytes_to)" "$(stat -c %s q8.gguf)"
run 0 generate -m q8.gguf --temp 0 -n 4 "was the"
for t in q4_0 q4_k mixed; do
    run 0 model quantize "$model" $t.gguf --type $t --calibrate "$root/bench/PROTOCOL.md" --tensors
    has out "calibrated with"; has out "error"
    run 0 generate -m $t.gguf --temp 0 -n 4 "was the"
done
run 0 model quantize "$model" mixed16.gguf --type mixed --attention f16 --json
run 0 model show mixed16.gguf --tensors; has out "blk.0.attn_output.weight"
same "attention" "$(grep -c 'attn_[qkv].*F16' out)" 6
same "feed-forward" "$(grep -c 'ffn_[a-z]*.weight *Q4_0' out)" 6

# bench and doctor
run 0 bench -m "$model" -p 8,16 -n 4 --seqs 1,2 --reps 2 --threads-list 1,2 --json
same "rows" "$(field results.length)" 8
run 0 bench -m "$model" -p 8 -n 4 --reps 1 --no-roofline; has out "pp8"; has out "tg4"
# a new version as a patch of the old one
run 0 model quantize "$model" new.gguf --type q8_0 --pure
run 0 model delta "$model" new.gguf -o patch; has err "as differences"
[ "$(stat -c %s patch)" -lt $(($(stat -c %s new.gguf) / 4)) ] || fail "a patch of $(stat -c %s patch) bytes"
run 0 model patch "$model" patch -o made.gguf; cmp -s new.gguf made.gguf || fail "another file"
run 1 model patch new.gguf patch -o no.gguf; has err "it is for another file than new.gguf"
head -c 500 patch >cut
run 1 model patch "$model" cut -o no.gguf; has err "ends too early: fetch it again"
run 1 model patch "$model" new.gguf -o no.gguf; has err "not a patch of 'shoal model delta'"
run 1 model delta "$model" new.gguf; has err "say -o FILE"
[ ! -e no.gguf ] && [ ! -e no.gguf.new ] || fail "half a model was left"

echo '{"id":7,"op":"hello"}' >hello
run 0 bench --peer-protocol <hello; same "protocol" "$(field id)" 7
run 0 doctor --no-measure --json; kernels=$(field kernels)
same "unmeasured" "$(field bandwidth.length)" 0
same "same kernels" "$("$shoal" bench --peer-protocol <hello | "$tool" json kernels)" "$kernels"
case $(field clock_synchronized) in true|false) ;; *) fail "doctor says nothing about the clock" ;; esac
run 0 doctor --no-measure; has out "in use"
run 0 doctor --json
[ "$(field bandwidth.length)" -ge 2 ] || fail "doctor measured no bandwidth"
[ "$(field peak.length)" -ge 1 ] || fail "doctor measured no peak"

finish
