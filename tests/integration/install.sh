#!/usr/bin/env bash
# An installed shoal: found and readable by another user, from another folder, without a home.
# Arguments: shoal, cli_tool, build folder.
. "$(dirname "$0")/lib.sh"
chmod 755 "$tmp"
(umask 022 && DESTDIR=$tmp/stage cmake --install "$build" --prefix /opt/shoal >install.log) || { cat install.log; fail "install"; }
prefix=$tmp/stage/opt/shoal
mkdir home && chmod 555 home
same "files that others cannot read" "$(find "$prefix" \( -type f ! -perm -444 \) -o \( -type d ! -perm -555 \))" ""
for file in bin/shoal share/shoal/models/models.json share/shoal/observe/grafana/shoal-fleet.json share/shoal/observe/prometheus/shoal-rules.yml share/doc/shoal/LICENSE lib/systemd/system/shoal.service; do
    checked=$((checked + 1))
    [ -f "$prefix/$file" ] || fail "$file is not installed"
done
written() { # file, arguments: the installed file equals the output of the program
    local file=$1
    shift
    run 0 "$@"
    checked=$((checked + 1))
    cmp out "$prefix/share/$file" || fail "$file is not what shoal $* prints"
}
written man/man1/shoal.1 manual
written bash-completion/completions/shoal completion bash
written zsh/site-functions/_shoal completion zsh
written fish/vendor_completions.d/shoal.fish completion fish

# elsewhere CODE NAME=VALUE... -- ARGS...: runs the installed program from /, as nobody if this is
# root, with this environment only.
as_nobody=()
[ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
elsewhere() {
    local want=$1 got vars=()
    shift
    while [ "$1" != -- ]; do
        vars+=("$1")
        shift
    done
    shift
    checked=$((checked + 1))
    (cd / && exec env -i PATH=/usr/bin:/bin "${vars[@]}" "${as_nobody[@]}" "$prefix/bin/shoal" "$@") >"$tmp/out" 2>"$tmp/err"
    got=$?
    [ "$got" = "$want" ] || { fail "shoal $* with ${vars[*]}: exit code $got, expected $want"; head -n 5 "$tmp/err"; }
}
answer() { # which environment
    same "the answer with $1" "$(cat "$tmp/out")" "$expected"
    empty err
}

question="turn off the kitchen lights"
(cd "$root" && "$shoal" ask "$question") >expected || fail "the program of the build folder does not answer"
expected=$(cat expected)
checked=$((checked + 1))
grep -q '"action":"turn_off".*"room":"kitchen"' expected || fail "the action is not in: $expected"
elsewhere 0 HOME="$tmp/home" -- ask "$question"
answer "a home that is not writable"
elsewhere 0 HOME=/nonexistent -- ask "$question"
answer "a home that does not exist"
elsewhere 0 -- ask "$question"
answer "no home"
elsewhere 0 SHOAL_CACHE_DIR=/proc/self/fd/shoal -- ask "$question"
answer "a cache that cannot be made"
mkdir -m 1777 cache
elsewhere 0 XDG_CACHE_HOME="$tmp/cache" -- ask "$question"
answer "a cache that can"
checked=$((checked + 1))
[ -n "$(find cache -type f)" ] || fail "nothing was kept in the cache"
elsewhere 0 -- classify -m intent "$question"
elsewhere 1 SHOAL_MODELS=/nonexistent -- ask "$question"
has err "/nonexistent/models.json"

# The same prefix moved elsewhere still finds its models.
mv "$prefix" "$tmp/moved"
prefix=$tmp/moved
elsewhere 0 -- ask "$question"
answer "a moved prefix"
mv "$prefix/share" "$prefix/gone"
elsewhere 1 -- ask "$question"
has err "set SHOAL_MODELS"
elsewhere 0 SHOAL_MODELS="$prefix/gone/shoal/models" -- ask "$question"
answer "SHOAL_MODELS"
mv "$prefix/gone" "$prefix/share"

mkdir -p "$tmp/stage/opt" && mv "$prefix" "$tmp/stage/opt/shoal"
"$root/packaging/uninstall" "$build/install_manifest.txt" "$tmp/stage"
same "left by uninstall" "$(find "$tmp/stage" -type f -o -type l)" ""
finish
