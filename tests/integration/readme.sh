#!/usr/bin/env bash
# Runs every `build/shoal` command of the README's code blocks.  $1: the program to run instead.
set -u
cd "$(dirname "$0")/../.."
shoal=$1 ran=0 bad=0
while IFS= read -r line; do
    [[ $line == *build/shoal* ]] || continue
    ran=$((ran + 1))
    if ! out=$(eval "${line//build\/shoal/\"$shoal\"}" 2>&1 </dev/null) || [ -z "$out" ]; then
        echo "FAIL $line"
        echo "$out" | tail -n 5
        bad=1
    else
        echo "ok   $line"
    fi
done < <(sed -n '/^```sh$/,/^```$/p' README.md)
[ "$ran" -ge 5 ] || { echo "only $ran commands found in README.md"; bad=1; }
exit "$bad"
