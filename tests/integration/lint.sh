#!/usr/bin/env bash
# The checks hold for the tree, and fail for a tree that breaks them.
set -eu
cd "$(dirname "$0")/../.."
tools/check-includes
tools/check-banned
broken=$(mktemp -d)
trap 'rm -rf "$broken"' EXIT
mkdir -p "$broken/src/model"
echo '#include "engine/sampler.h"' >"$broken/src/model/up.c"
if tools/check-includes "$broken" >/dev/null; then
    echo "an include that points upwards was not refused"
    exit 1
fi
mkdir -p "$broken/src/host" "$broken/src/flow"
touch "$broken/src/host/same.c" "$broken/src/flow/same.c"
if tools/check-names "$broken" >/dev/null; then
    echo "two files with one name were not refused"
    exit 1
fi
