# lib.sh - for the tests of the program; a script sources it with: shoal binary, cli_tool.
set -u
shoal=$(realpath "$1") tool=$(realpath "$2") build=$(realpath "${3:-.}")
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
refs=$root/tests/data/refs
tmp=$(mktemp -d)
# A child that is killed between fork and exec still runs the trap, and would take the folder with it.
trap '[ "$BASHPID" != $$ ] || rm -rf "$tmp"' EXIT
export SHOAL_CACHE_DIR=$tmp/cache
unset STATE_DIRECTORY
export XDG_STATE_HOME=$tmp/state XDG_DATA_HOME=$tmp/data
unset SHOAL_STORE
cd "$tmp" || exit 2
failed=0 checked=0

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# run CODE ARGS...: runs shoal; stdout to $tmp/out, stderr to $tmp/err; the exit code must be CODE.
run() {
    local want=$1 got
    shift
    checked=$((checked + 1))
    "$shoal" "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ "$got" != "$want" ]; then
        fail "shoal $*: exit code $got, expected $want"
        head -n 5 "$tmp/err"
    fi
}

same() { # what got want
    checked=$((checked + 1))
    [ "$2" = "$3" ] || fail "$1: got '$2', expected '$3'"
}

differ() { # what a b
    checked=$((checked + 1))
    [ "$2" != "$3" ] || fail "$1: both are '$2'"
}

has() { # file text
    checked=$((checked + 1))
    grep -qF -- "$2" "$tmp/$1" || {
        fail "$1 has no '$2'"
        head -n 5 "$tmp/$1"
    }
}

empty() { # file
    checked=$((checked + 1))
    [ ! -s "$tmp/$1" ] || {
        fail "$1 is not empty"
        head -n 5 "$tmp/$1"
    }
}

field() { # path in the JSON of $tmp/out
    "$tool" json "$1" <"$tmp/out"
}

# golden NAME: $tmp/out and $tmp/err together must equal golden/NAME.txt.
golden() {
    checked=$((checked + 1))
    cat "$tmp/out" "$tmp/err" >"$tmp/both"
    if [ -n "${UPDATE_GOLDEN:-}" ]; then
        cp "$tmp/both" "$here/golden/$1.txt"
    elif ! diff -u "$here/golden/$1.txt" "$tmp/both"; then
        fail "golden/$1.txt (UPDATE_GOLDEN=1 writes it anew)"
    fi
}

finish() {
    echo "$checked checks, $failed failed"
    [ "$failed" = 0 ]
}
