#!/usr/bin/env bash
# The Debian package: the same bytes twice, installed by dpkg into a root of its own, upgraded, removed and purged; its
# maintainer scripts make the user and keep the data.  Skipped (77) where this is no Debian, or neither root nor fakeroot.
# Arguments: shoal, cli_tool, build folder.
for program in dpkg-deb dpkg-shlibdeps useradd python3; do
    command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v fakeroot >/dev/null || { echo "skipped: neither root nor fakeroot"; exit 77; }
    as_root=(fakeroot)
fi
. "$(dirname "$0")/lib.sh"
export DEB_LEVEL=0
deb=$("$root/packaging/make-deb" "$build" "$tmp/one") || fail "make-deb"
again=$("$root/packaging/make-deb" "$build" "$tmp/two") || fail "make-deb again"
checked=$((checked + 1))
cmp "$deb" "$again" || fail "two packages of the same build differ"
field() { dpkg-deb -f "$deb" "$1"; }
same "name" "$(field Package) $(field Version) $(field Architecture)" \
    "shoal $("$shoal" version | cut -d' ' -f2) $(dpkg --print-architecture)"
for lib in libc6 libssl3 libpcre2-8-0; do
    checked=$((checked + 1))
    field Depends | grep -q "$lib" || fail "does not depend on $lib: $(field Depends)"
done

# ---- dpkg, in a root of its own ----
dir=$tmp/root info=$tmp/root/var/lib/dpkg
mkdir -p "$info/info" "$info/updates" "$dir/etc"
touch "$info/status" "$info/available" "$dir/etc/group" "$dir/etc/gshadow" "$dir/etc/shadow"
echo "root:x:0:0:root:/root:/bin/sh" >"$dir/etc/passwd"
dpkg_in() {
    checked=$((checked + 1))
    "${as_root[@]}" dpkg --root="$dir" --log="$tmp/dpkg.log" --force-not-root --force-depends --force-bad-path \
        --force-script-chrootless "$@" >log 2>&1 || { fail "dpkg $*"; cat log; }
}
dpkg_in -i "$deb"
for file in usr/bin/shoal etc/default/shoal usr/lib/systemd/system/shoal.service usr/share/shoal/models/models.json \
    usr/share/doc/shoal/copyright usr/share/man/man1/shoal.1.gz etc/systemd/system/multi-user.target.wants/shoal.service; do
    checked=$((checked + 1))
    [ -e "$dir/$file" ] || [ -L "$dir/$file" ] || fail "$file is not installed"
done
same "the user" "$(grep -c '^shoal:' "$dir/etc/passwd")" 1
same "its shell" "$(sed -n 's/^shoal:.*://p' "$dir/etc/passwd")" /usr/sbin/nologin
unit=$dir/usr/lib/systemd/system/shoal.service
same "the user of the service" "$(sed -n 's/^User=//p' "$unit")" shoal
same "its program" "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")" /usr/bin/shoal
same "the files are what was packed" "$(cd "$dir" && md5sum --quiet -c "$info/info/shoal.md5sums" 2>&1)" ""
same "the program" "$("$dir/usr/bin/shoal" version)" "$("$shoal" version)"
same "its models" "$("$dir/usr/bin/shoal" ask --json "turn on the kitchen lights" | grep -c '"actions"')" 1

# an upgrade keeps the user's options, the data and the user; so does removing it
echo 'SHOAL_OPTIONS="--listen 127.0.0.1:9"' >"$dir/etc/default/shoal"
mkdir -p "$dir/var/lib/shoal/store"
echo data >"$dir/var/lib/shoal/store/x"
uid=$(sed -n 's/^shoal:x:\([0-9]*\):.*/\1/p' "$dir/etc/passwd")
rm -f "$dir/etc/systemd/system/multi-user.target.wants/shoal.service" # disabled by the user
dpkg_in --force-confold -i "$again"
same "options after an upgrade" "$(cat "$dir/etc/default/shoal")" 'SHOAL_OPTIONS="--listen 127.0.0.1:9"'
same "disabled after an upgrade" "$(ls "$dir/etc/systemd/system/multi-user.target.wants")" ""
dpkg_in -r shoal
same "after removing it" "$(ls "$dir/usr/bin" 2>/dev/null)" ""
same "data after removing it" "$(cat "$dir/var/lib/shoal/store/x")" data
dpkg_in -i "$deb"
same "the user is the same" "$(sed -n 's/^shoal:x:\([0-9]*\):.*/\1/p' "$dir/etc/passwd")" "$uid"
dpkg_in -P shoal
same "data after a purge" "$(ls "$dir/var/lib" | tr '\n' ' ')" "dpkg "
same "options after a purge" "$(ls "$dir/etc/default" 2>/dev/null)" ""

# ---- the bill of materials ----
dpkg-deb --fsys-tarfile "$deb" | tar -xO ./usr/share/doc/shoal/sbom.cdx.json >sbom.json
python3 - "$root/models/models.json" <<'END' || fail "the bill of materials"
import json, sys
bom, pack = json.load(open("sbom.json")), json.load(open(sys.argv[1]))
assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
models = {c["name"]: c for c in bom["components"] if c["type"] == "machine-learning-model"}
assert set(models) == {m["name"] for m in pack["models"]}
for m in pack["models"]:
    assert models[m["name"]]["hashes"][0]["content"] in json.dumps(m), m["name"]
assert any(c["name"].startswith("libssl") and "purl" in c for c in bom["components"])
refs = [c["bom-ref"] for c in bom["components"]]
assert len(refs) == len(set(refs)) and bom["dependencies"][0]["dependsOn"] == refs
END
finish
