#!/usr/bin/env bash
# shoal manual: has every command, option and environment variable.  Arguments: shoal, cli_tool.
# With a third argument only the format is checked, with groff; skipped (77) where that is missing.
if [ -n "${3:-}" ]; then
    command -v groff >/dev/null || { echo "skipped: groff is not installed"; exit 77; }
fi
. "$(dirname "$0")/lib.sh"
run 0 manual
empty err
cp out shoal.1
if [ -n "${3:-}" ]; then
    checked=$((checked + 1))
    groff -man -ww -z -Tutf8 shoal.1 2>warnings || fail "groff"
    cp warnings err
    empty err
    finish
    exit
fi
# as plain text, without fonts and escapes
sed -e 's/\\f[BIR]//g; s/\\-/-/g; s/\\&//g; s/\\e/\\/g' shoal.1 >text
commands=$("$shoal" help | sed -n '/^Examples/q; s/^  \([a-z]*\) .*/\1/p')
differ "commands" "$commands" ""
section() { # the section of each command has everything that its help says
    local name="$*" want
    sed -n "/^\.SH \"shoal $name\"/,/^\.SH/p; /^\.SH \"OPTIONS OF ALL/,/^\.SH E/p" text >section
    want=$("$shoal" "$@" --help | grep -oE '^ {2}(-[a-zA-Z],|   ) --[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
    differ "options of $name" "$want" ""
    for option in $want; do
        checked=$((checked + 1))
        grep -qE -- "^(-., )?$option( |\$)" section || fail "the manual of $name has no $option"
    done
}
for c in $commands; do
    verbs=$("$shoal" "$c" --help | sed -n '/^Verbs:$/,$s/^  \([a-z-]*\) .*/\1/p')
    [ -n "$verbs" ] || section "$c"
    for v in $verbs; do
        section "$c" "$v"
    done
done
for name in $(grep -rhoE 'getenv\("[A-Z_]+"' "$root/src" | grep -oE '[A-Z_]{3,}' | sort -u); do
    checked=$((checked + 1))
    grep -qx "\.B $name" text || fail "the manual has no environment variable $name"
done
run 0 version
has text "$(cat out)"
finish
