#!/usr/bin/env bash
# shoal generate: streams, repeats itself with a seed, continues from tokens, stops where it should.
. "$(dirname "$0")/lib.sh"
model=$refs/qwen3.gguf
greedy=(-m "$model" --temp 0 --ignore-end)

# argument, file and stdin give the same prompt; stdin is read only without the others
run 0 generate "${greedy[@]}" -n 24 "was the"; cp out want; empty err
printf 'was the\n' >p.txt
run 0 generate "${greedy[@]}" -n 24 -f p.txt; cmp -s out want || fail "-f FILE differs"
run 0 generate "${greedy[@]}" -n 24 <p.txt; cmp -s out want || fail "stdin differs"
run 0 generate "${greedy[@]}" -n 24 - <p.txt; cmp -s out want || fail "- differs"
run 0 generate "${greedy[@]}" -n 24 -f - <p.txt; cmp -s out want || fail "-f - differs"
echo other | "$shoal" generate "${greedy[@]}" -n 24 "was the" >out; cmp -s out want || fail "stdin was read"
printf 'was the' | "$shoal" generate "${greedy[@]}" -n 24 >out; cmp -s out want || fail "no newline differs"
run 0 generate "${greedy[@]}" -n 24 --echo "was the"
same "echo" "$(head -c 7 out)" "was the"
tail -c +8 out | cmp -s - want || fail "--echo changes the text"
run 0 generate "${greedy[@]}" -n 24 --stats "was the"; cmp -s out want || fail "--stats changes stdout"
has err "tokens/s"

# every kernel set, thread count and chunk size gives the same text
for k in $("$shoal" doctor --no-measure --json | "$tool" json kernels_usable | tr -d '[]"' | tr , ' '); do
    run 0 generate "${greedy[@]}" -n 24 --kernels="$k" "was the"; cmp -s out want || fail "kernels $k differ"
done
run 0 generate "${greedy[@]}" -n 24 -t 2 "was the"; cmp -s out want || fail "two threads differ"
run 0 generate "${greedy[@]}" -n 24 --chunk 1 "was the"; cmp -s out want || fail "--chunk 1 differs"
run 0 generate "${greedy[@]}" -n 24 --no-cache "was the"; cmp -s out want || fail "--no-cache differs"
run 0 generate "${greedy[@]}" -n 24 --kv q8 "was the"

# JSON
run 0 generate "${greedy[@]}" -n 24 --json "was the"
same "finish" "$(field finish)" length
same "generated" "$(field generated_tokens)" 24
same "token list" "$(field tokens.length)" 24
all=$(field tokens | tr -d '[]') prompt=$("$shoal" tokenize -m "$model" "was the" | tr ' ' ,)
run 0 generate "${greedy[@]}" -n 3 --json --logprobs 2 "was the"
same "logprobs" "$(field logprobs.length)" 3
same "alternatives" "$(field 'logprobs[0].top.length')" 2
same "greedy is the likeliest" "$(field 'logprobs[0].top[0].token')" "$(field 'tokens[0]')"
run 0 generate "${greedy[@]}" -n 24 --json --stream "was the"
same "lines" "$("$tool" jsonl <out)" 25
sed '$d' out | while read -r line; do printf '%s' "$line" | "$tool" json token; done | paste -sd, >ids
same "streamed tokens" "$(cat ids)" "$all"

# the same seed repeats, another one differs; the rest of a text does not depend on where it is
# continued
sampled=(-m "$model" --temp 1.5 --top-k 0 --top-p 1 --min-p 0 --ignore-end --presence-penalty 0.3 --frequency-penalty 0.1 --repeat-penalty 1.1)
run 0 generate "${sampled[@]}" --seed 42 -n 40 --json "was the"; a=$(field tokens)
run 0 generate "${sampled[@]}" --seed 42 -n 40 --json "was the"; same "same seed" "$(field tokens)" "$a"
run 0 generate "${sampled[@]}" --seed 43 -n 40 --json "was the"; differ "other seed" "$(field tokens)" "$a"
run 0 generate "${sampled[@]}" -n 40 --json "was the"; seed=$(field seed) b=$(field tokens)
run 0 generate "${sampled[@]}" --seed "$seed" -n 40 --json "was the"; same "seed shown" "$(field tokens)" "$b"
for k in 1 7 16 39; do
    head=$(echo "$a" | tr -d '[]' | cut -d, -f1-$k) tail=$(echo "$a" | tr -d '[]' | cut -d, -f$((k + 1))-)
    run 0 generate "${sampled[@]}" --seed 42 -n $((40 - k)) --tokens "$prompt,$head" --continued $k --json
    same "continued after $k" "$(field tokens)" "[$tail]"
done

# stop strings that span tokens: only " gu" and " ar" may be printed
ar=$("$shoal" tokenize -m "$model" " ar") gu=$("$shoal" tokenize -m "$model" " gu")
two=(-m "$model" --temp 20 --seed 5 --logit-bias "$ar=1000" --logit-bias "$gu=1000" -n 40)
run 0 generate "${two[@]}" "x"; text=$(cat out)
for stop in "u a" "r g" " gu ar" "ar ar"; do
    run 0 generate "${two[@]}" --stop "$stop" "x"
    same "stop '$stop'" "$(cat out)" "${text%%"$stop"*}"
    differ "'$stop' is in the text" "$(cat out)" "$text"
done
run 0 generate "${two[@]}" --stop "nowhere" --stop "u a" --stop "r g" --json "x"
same "finish of a stop" "$(field finish)" stop
run 0 generate "${two[@]}" --stop "u arx" "x"; same "held back and given out" "$(cat out)" "$text"
run 0 generate "${two[@]}" --logit-bias "$ar=-inf" -n 5 "x"; same "forbidden token" "$(cat out)" " gu gu gu gu gu"

# special tokens
end=$("$shoal" model show "$model" --json | "$tool" json tokenizer.eos)
run 0 generate -m "$model" --logit-bias "$end=100" --json x; same "end" "$(field generated_tokens)" 0
same "end" "$(field finish)" stop
run 0 generate -m "$model" --logit-bias "$end=100" -n 3 --ignore-end --json x
same "ignored end" "$(field generated_tokens)" 3; same "hidden" "$(field text)" ""
run 0 generate -m "$model" --logit-bias "$end=100" -n 2 --ignore-end --special x
has out "<|im_end|><|im_end|>"

# deadline: 130000 tokens take longer than 100 ms
run 1 generate -m "$model" --ctx 131072 -n 0 --ignore-end --deadline-ms 100 x
has err "deadline passed"; [ -s out ] || fail "nothing was shown before the deadline"
# a reader that closes the pipe ends it
"$shoal" generate -m "$model" --ctx 131072 -n 0 --ignore-end x | head -c 100 >out
same "cut pipe" "$(wc -c <out)" 100
# Ctrl-C ends it with 130 and keeps the output so far
cat >script <<'S'
expect ar
key C
exit 130
S
checked=$((checked + 1))
"$tool" pty script "$shoal" generate "${two[@]}" --ctx 131072 -n 0 x || fail "Ctrl-C"
# streaming: the first text arrives long before the end
cat >script <<'S'
expect gu
expect ar
wait 50
expect gu
key C
exit 130
S
"$tool" pty script "$shoal" generate "${two[@]}" --ctx 131072 -n 0 x || fail "streaming"
# logs go to stderr as separate lines
run 0 --log-level info --log-format json generate "${greedy[@]}" -n 24 "was the"
cmp -s out want || fail "logging changes stdout"
same "log lines" "$("$tool" jsonl <err)" 1
# tiled weights of deleted models and of earlier versions are removed when new ones are written;
# other files stay
mkdir tiles; echo mine >tiles/0123456789abcdef.tiles; echo mine >tiles/0123456789abcdef.pack
cp "$refs/llama-gqa.gguf" gone.gguf
SHOAL_CACHE_DIR=$tmp/tiles run 0 generate -m gone.gguf -n 1 --temp 0 "a"; same "tiled" "$(ls tiles | wc -l)" 3
own=$(ls -t tiles/*.tiles | head -1); cp "$own" tiles/fedcba9876543210.pack
SHOAL_CACHE_DIR=$tmp/tiles run 0 generate -m "$refs/llama-gqa.gguf" -n 1 --temp 0 "a"
same "old suffix" "$(ls tiles | wc -l)" 4; rm gone.gguf
SHOAL_CACHE_DIR=$tmp/tiles run 0 generate -m "$refs/qwen2.gguf" -n 1 --temp 0 "a"; same "pruned" "$(ls tiles | wc -l)" 4
same "not ours" "$(cat tiles/0123456789abcdef.tiles tiles/0123456789abcdef.pack)" "$(printf 'mine\nmine')"
finish
