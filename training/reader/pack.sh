#!/bin/bash
# Puts all that training needs into one folder, DIR, for a machine without the repository:
#     training/reader/pack.sh DIR; then there: OUT=results bash DIR/training/reader/device.sh --minutes 8
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/training/reader" "$1/.cache/reader"
cp "$here"/*.py "$here"/*.sh "$here"/tokenizer.json "$1/training/reader/"
cp "$here/../../.cache/reader/sources.json.gz" "$1/.cache/reader/"
