#!/usr/bin/env bash
# Runs every `build/shoal` and `curl` command in the code blocks of the README; the curl commands
# talk to a server started here. $1: the program to run instead.
set -u
cd "$(dirname "$0")/../.."
shoal=$1 ran=0 bad=0 written=
tmp=$(mktemp -d) hello=$tmp/hello
export SHOAL_COLLECTIONS=$tmp/collections
echo "home_schedule: $tmp/scheduled.json" >"$tmp/shoal.yaml" # the user's own stays as it is
"$shoal" serve --config "$tmp/shoal.yaml" --listen 127.0.0.1:0 >"$hello" & server=$!
trap 'kill "$server"; wait "$server"; rm -rf "$tmp"' EXIT
until grep -q '^models:' "$hello"; do
    kill -0 "$server" || { echo "FAIL: shoal serve ended"; exit 1; }
    sleep 0.05
done
url=$(sed -n 's/^listening on //p' "$hello")
while IFS= read -r line; do
    [[ $line == *build/shoal* || $line == curl* ]] || continue
    ran=$((ran + 1)) command=${line//build\/shoal/\"$shoal\"}
    command=${command//http:\/\/127.0.0.1:8080/$url}
    # what writes a file may be silent, but there must be one
    file=$([[ $line =~ \ -o\ ([^ ]+) ]] && echo "$tmp/${BASH_REMATCH[1]}")
    for name in $written; do # what an earlier command wrote
        command=${command// $name/ $tmp/$name}
    done
    command=${command/ -o / -o $tmp/}
    [ -z "$file" ] || written="$written ${file#"$tmp/"}"
    if ! out=$(eval "${command/#curl/curl -sS --fail-with-body}" 2>&1 </dev/null) ||
        { [ -z "$out" ] && [ ! -s "${file:-/nothing}" ]; }; then
        echo "FAIL $line"
        echo "$out" | tail -n 5
        bad=1
    else
        echo "ok   $line"
    fi
done < <(sed -n '/^```sh$/,/^```$/p' README.md)
[ "$ran" -ge 12 ] || { echo "only $ran commands found in README.md"; bad=1; }
for picture in $(grep -oE '!\[[^]]*\]\([^)]+\)' README.md | sed 's/.*(\(.*\))/\1/'); do
    [ -s "$picture" ] || { echo "FAIL no $picture"; bad=1; }
done
exit "$bad"
