#!/usr/bin/env bash
# shoal shard plan: what it predicts for machines that are described to it.
. "$(dirname "$0")/lib.sh"
matches() { # file pattern
    checked=$((checked + 1))
    grep -qE -- "$2" "$tmp/$1" || {
        fail "$1 has no line like '$2'"
        head -n 20 "$tmp/$1"
    }
}
model=$root/models/reply.gguf

# it stays whole where it fits, and is spread where it does not; with --explain all plans are shown
run 0 shard plan "$model" --machine a,100,10,0,0 --machine b,100,10,1,1000; empty err
matches out '^\*      1 .* 0-7 a$'
run 0 shard plan "$model" --machine a,30,10,0,0 --machine b,25,8,1,1000 --machine c,25,8,1,1000 --explain --context 256; empty err
matches out '^8 layers of 1\.6 MiB, head '
matches out '^b +25\.0 MiB +8\.0 GB/s +1\.00 ms +1000 Mbit/s$'
run 0 shard plan "$model" --machine a,100,10,0,0 --machine b,100,10,1,1000 --shard layers:2; empty err
matches out '^\*      2 .* 1540  0-[0-9] b [0-9]-7 a$'

# by rows: shares by speed, and the candidates stand beside those by layers
run 0 shard plan "$model" --machine a,100,10,0,0 --machine b,100,30,1,1000 --shard rows:2 --explain; empty err
matches out '^       1 .* 0-7 a$'
matches out '^       2 .* 0-[0-9] b [0-9]-7 a$'
matches out '^\*      2 .* 69632  75% b 25% a$'

# what does not fit, and what is not understood
run 1 shard plan "$model" --machine a,1,10,0,0; has err "8 layers do not fit"
run 1 shard plan "$model" --machine a,1; has err 'is no machine'
run 1 shard plan "$model" --shard rows:1; has err 'a model is sharded over 2 to 8 nodes'
run 1 shard plan "$model" --shard columns:2; has err 'is no way to shard a model'
run 1 shard plan "$model" --shard rows:2 --machine a,100,10,0,0; has err 'do not fit'
run 1 shard plan "$root/tests/data/refs/olmoe.gguf" --shard rows:2 --machine a,100,10,0,0 --machine b,100,10,1,1000
has err 'cannot be divided by rows yet'
run 1 shard plan "$model" --node 127.0.0.1:1; has err 'needs --certs'
run 1 shard plan "$root/README.md"; has err 'README.md'
finish
