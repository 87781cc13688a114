#!/usr/bin/env bash
# Every copy of what models/home.json says matches it: docs/ASK.md, models/home.md, the training
# code and the manifest. The check itself must detect a difference.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
tools/check-ask
python3 -B training/manifest.py --check

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/models/encoder" "$dir/tests/data"
cp -r docs tools training "$dir"
cp -r tests/data/ask "$dir/tests/data/ask"
cp models/home.json models/home.md "$dir/models"
cp models/encoder/config.json "$dir/models/encoder"
failed=0
# differs SED TEXT: applies SED to models/home.json; the check must fail and print TEXT.
differs() {
    sed "$1" models/home.json >"$dir/models/home.json"
    if cmp -s models/home.json "$dir/models/home.json"; then
        echo "nothing changed: $1"
        failed=1
    elif "$dir/tools/check-ask" >"$dir/out" 2>&1; then
        echo "tools/check-ask accepts $1"
        failed=1
    elif ! grep -q "$2" "$dir/out"; then
        echo "tools/check-ask refuses $1, but does not say \"$2\":"
        cat "$dir/out"
        failed=1
    fi
}
differs 's/"halt {thing}"/"halt now {thing}"/' 'docs/ASK.md:[0-9]*: not what models/home.json says'
differs 's/"half an hour": "30 minutes"/"half an hour": "31 minutes"/' 'docs/ASK.md:[0-9]*: not what'
differs 's/{slots}; result: {result}/{slots}; so: {result}/' 'docs/ASK.md:[0-9]*: not what'
differs 's/"next_track"/"next_song"/' 'has no commands for next_song'
differs 's/"next_track"/"next_song"/' 'has commands for next_track, which is no action'
differs 's/"slots": \["sensor", "room"\]/"slots": ["sensor"]/' 'docs/ASK.md:[0-9]*: not what'
sed -i 's/`several_until`/several/' "$dir/models/home.md"
cp models/home.json "$dir/models/home.json"
differs 's/"version": 2,/"version":  2,/' 'does not explain `several_until`'
exit $failed
