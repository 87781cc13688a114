#!/usr/bin/env bash
# The installed systemd units name the installed program, and systemd accepts them and rates them as
# confined. Skipped (77) where systemd-analyze is not installed. Arguments: shoal, cli_tool, build
# folder.
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not installed"; exit 77; }
. "$(dirname "$0")/lib.sh"
cmake --install "$build" --prefix "$tmp/prefix" >install.log || { cat install.log; fail "install"; }
units=$tmp/prefix/lib/systemd/system
for unit in shoal.service shoal@node.service shoal@gateway.service; do
    file=$units/$(echo "$unit" | sed 's/@.*\./@./')
    same "the program of $unit" "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$file")" "$tmp/prefix/bin/shoal"
    cp "$file" "$tmp/$unit" # an instance, as systemd would make it
    sed -i 's/%i/'"$(echo "$unit" | sed 's/.*@\(.*\)\..*/\1/')"'/g' "$tmp/$unit"
    checked=$((checked + 1))
    systemd-analyze verify --man=no "$tmp/$unit" >out 2>&1 || { fail "systemd-analyze verify $unit"; cat out; }
    same "warnings of $unit" "$(grep shoal out)" ""
    same "words left in $unit" "$(grep -o '@[a-z]*@' "$file")" ""
    # 0 means confined, 10 not confined at all.
    level=$(systemd-analyze security --offline=true "$tmp/$unit" |
        sed -n 's/.*Overall exposure level.*: \([0-9]*\)\..*/\1/p')
    checked=$((checked + 1))
    [ -n "$level" ] && [ "$level" -lt 3 ] || fail "exposure level of $unit '$level', expected below 3"
done
same "what shoal.service runs" "$(sed -n 's/^ExecStart=[^ ]* //p' "$units/shoal.service")" 'serve $SHOAL_OPTIONS'
same "what shoal@.service runs" "$(sed -n 's/^ExecStart=[^ ]* //p' "$units/shoal@.service")" '%i $SHOAL_OPTIONS'
finish
