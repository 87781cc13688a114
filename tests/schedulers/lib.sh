# lib.sh - for the scripts of this folder, which source it with their arguments: shoal, image (a docker archive).
# Each one runs in namespaces of its own (network, mounts, processes): its addresses reach nothing outside, and when it
# ends, nothing of it is left.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
name=$(basename "$0" .sh)
if [ -z "${SCHEDULERS_APART:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root: it starts containers" >&2; exit 1; }
    SCHEDULERS_APART=1 exec unshare --mount --net --pid --fork --kill-child --mount-proc bash "$0" "$@"
fi
shoal=$(realpath "$1") image=$(realpath "$2")
PATH=$root/.cache/schedulers/bin:$PATH
tmp=$(mktemp -d "/tmp/shoal-$name.XXXXXX")
passed=0 failed=0
declare -A pids=()
for folder in /run /var/lib /var/log; do # of the programs started here
    mount -t tmpfs tmpfs $folder
done
ip link set lo up
cd "$tmp"

# Called at the end of a script, and when one of its commands fails.
finish() {
    local status=$?
    trap - EXIT
    set +e
    if [ $status != 0 ]; then
        failed=$((failed + 1))
        echo "FAIL: $name.sh ended early"
    fi
    [ $failed = 0 ] || keep_logs
    echo "$name: $passed passed, $failed failed"
    declare -F cleanup >/dev/null && cleanup >/dev/null 2>&1
    kill -TERM "${pids[@]}" 2>/dev/null
    sleep 1
    cd /
    grep -oE " $tmp[^ ]*" /proc/self/mounts | sort -r | xargs -r umount -l 2>/dev/null
    rm -rf "$tmp"
    [ $failed = 0 ]
    exit
}
trap finish EXIT
trap 'exit 1' INT TERM

keep_logs() {
    local kept=$root/.cache/schedulers/logs/$name
    rm -rf "$kept"
    mkdir -p "$kept"
    cp "$tmp"/*.log "$kept" 2>/dev/null
    echo "logs: ${kept#"$root"/}"
}

pass() {
    passed=$((passed + 1))
    echo "  ok    $*"
}
fail() {
    failed=$((failed + 1))
    echo "  FAIL  $*"
}
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$tmp/check.log" 2>&1; then
        pass "$what"
    else
        fail "$what: $* ($(tail -n 3 "$tmp/check.log" | tr '\n' ' ' | cut -c1-400))"
    fi
}
same() { # WHAT GOT WANT
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1: got '$2', expected '$3'"; fi
}
start() { # NAME COMMAND...
    "${@:2}" >"$tmp/$1.log" 2>&1 &
    pids[$1]=$!
}
wait_for() { # WHAT SECONDS COMMAND...: ends the script on a timeout
    local until=$((SECONDS + $2))
    while [ $SECONDS -lt $until ]; do
        "${@:3}" >/dev/null 2>&1 && return
        sleep 0.3
    done
    echo "  FAIL  no $1 within $2 s"
    "${@:3}" 2>&1 | tail -n 20 || true
    return 1
}
# await WHAT SECONDS COMMAND...: a check that says how long it took
await() {
    local began
    began=$(date +%s%3N)
    wait_for "$@"
    pass "$1 ($(($(date +%s%3N) - began)) ms)"
}
nodes_are() { # URL N: that gateway sees N ready nodes
    [ "$(curl -sf -m 5 "$1/metrics" | sed -n 's/^shoal_nodes{state="ready"} //p')" = "$2" ]
}

# ---- load: requests that run while things are killed ----
load_begin() { # URL...
    node "$root/tests/schedulers/load.js" "$@" >"$tmp/load.log" 2>&1 &
    load=$!
    wait_for "answers" 60 grep -q '^under way' "$tmp/load.log"
}
load_end() { # WHAT
    local status=0
    kill -TERM $load
    wait $load || status=$?
    if [ $status = 0 ]; then
        pass "$1: $(tail -n 1 "$tmp/load.log")"
    else
        cp "$tmp/load.log" "$tmp/load-failed.log"
        fail "$1: $(tail -n 6 "$tmp/load.log")"
    fi
}

# What the image promises, checked on a running process: PID
check_confined() {
    local status=/proc/$1/status
    same "it runs as user 65532" "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "$status")" 65532
    same "it has no capabilities" "$(sed -n 's/^Cap\(Eff\|Prm\|Bnd\):\t//p' "$status" | sort -u)" 0000000000000000
    same "it cannot gain privileges" "$(sed -n 's/^NoNewPrivs:\t//p' "$status")" 1
    same "its system calls are filtered" "$(sed -n 's/^Seccomp:\t//p' "$status")" 2
    same "its file system is read-only" "$(awk '$5 == "/" {print $6}' "/proc/$1/mountinfo" | cut -d, -f1)" ro
}
