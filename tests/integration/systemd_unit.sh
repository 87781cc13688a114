#!/usr/bin/env bash
# The installed systemd unit names the installed program, systemd accepts it, and finds it confined.
# Skipped (77) where systemd-analyze is not installed.  Arguments: shoal, cli_tool, build folder.
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not installed"; exit 77; }
. "$(dirname "$0")/lib.sh"
cmake --install "$build" --prefix "$tmp/prefix" >install.log || { cat install.log; fail "install"; }
unit=$tmp/prefix/lib/systemd/system/shoal.service
same "the program" "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")" "$tmp/prefix/bin/shoal"
checked=$((checked + 1))
systemd-analyze verify --man=no "$unit" >out 2>&1 || { fail "systemd-analyze verify"; cat out; }
same "warnings" "$(grep shoal out)" ""
# 0 is confined, 10 is not at all.
level=$(systemd-analyze security --offline=true "$unit" | sed -n 's/.*Overall exposure level.*: \([0-9]*\)\..*/\1/p')
checked=$((checked + 1))
[ -n "$level" ] && [ "$level" -lt 3 ] || fail "exposure level '$level', expected below 3"
finish
