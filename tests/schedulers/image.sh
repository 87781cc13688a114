#!/usr/bin/env bash
# The image itself: its metadata and its contents. `make schedulers` runs it.
# Arguments: shoal, image (a docker archive).
. "$(dirname "$0")/lib.sh"
mkdir archive rootfs
tar -xf "$image" -C archive
config=archive/$(sed -n 's/.*"Config":"\([^"]*\)".*/\1/p' archive/manifest.json)
for layer in $(sed -n 's/.*"Layers":\[\([^]]*\)\].*/\1/p' archive/manifest.json | tr -d '"' | tr ',' ' '); do
    tar -xf "archive/$layer" -C rootfs
done
of() { node -p "const c = JSON.parse(require('fs').readFileSync('$config')).config; $1"; }
echo "buildah $(buildah --version | cut -d' ' -f3), $(du -sm rootfs | cut -f1) MB"
same "its user" "$(of c.User)" 65532:65532
same "its program" "$(of 'c.Entrypoint.join(" ")')" /usr/bin/shoal
same "its health check" "$(of 'c.Healthcheck.Test.join(" ")')" "CMD /usr/bin/shoal health"
same "no shell, no other program" "$(find rootfs -type f -perm /111 ! -name '*.so*' | sed 's,^rootfs,,')" /usr/bin/shoal
same "nothing that gives rights" "$(find rootfs -type f -perm /6000)" ""
same "nothing that others may write to, but /tmp" "$(find rootfs -perm -2 ! -type l | sed 's,^rootfs,,')" /tmp
check "the program runs there" chroot rootfs /usr/bin/shoal --version
mount --bind rootfs rootfs
mount -o remount,bind,ro rootfs
check "... and answers as its user, with nothing to write to" chroot --userspec=65532:65532 rootfs /usr/bin/shoal ask "turn off the kitchen lights"
