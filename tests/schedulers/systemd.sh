#!/usr/bin/env bash
# The installed units in a real systemd, booted in a container over this machine's own files: a node
# and a gateway, requests while the node is killed and restarted, then the all-in-one server. No
# request may fail.
# `make schedulers` runs it. Argument: shoal, in a build folder in which everything that is
# installed has been built.
. "$(dirname "$0")/lib.sh"
cleanup() {
    kill -9 "$(init)" "${pids[machine]}"
    sleep 1
    find /sys/fs/cgroup/*/payload /sys/fs/cgroup/*/supervisor -depth -type d -exec rmdir {} +
}
mkdir /run/box
mount -t tmpfs tmpfs /run/box
mkdir /run/box/{upper,work,root}
box=/run/box/root
mount -t overlay overlay -o "lowerdir=/,upperdir=/run/box/upper,workdir=/run/box/work" $box
rm -f $box/etc/machine-id # another machine
echo uninitialized >$box/etc/machine-id
DESTDIR=$box cmake --install "$(dirname "$shoal")" --prefix /usr >install.log
chroot $box useradd --system shoal
user=$(sed -n 's/^shoal:[^:]*:\([0-9]*\):.*/\1/p' $box/etc/passwd)
SHOAL=$shoal "$root/packaging/make-certs" --dir ca --nodes 1 --host 127.0.0.1 >certs.log 2>&1
mkdir $box/etc/shoal
cp -r ca/members $box/etc/shoal
chown -R "$user" $box/etc/shoal/members
echo "SHOAL_OPTIONS=--certs /etc/shoal/members/shoal-node-0 --listen 127.0.0.1:7600 --http 127.0.0.1:8081" >$box/etc/default/shoal-node
echo "SHOAL_OPTIONS=--certs /etc/shoal/members/shoal-gateway --listen 127.0.0.1:8080 --node 127.0.0.1:7600" >$box/etc/default/shoal-gateway
echo "SHOAL_OPTIONS=--listen 127.0.0.1:8082" >$box/etc/default/shoal
start machine systemd-nspawn --register=no --keep-unit --directory $box --boot --console=pipe -- --unit=basic.target
init() { pgrep -f '^/(usr/)?lib/systemd/systemd --unit=basic.target' | head -1; }
in_it() { nsenter -t "$(init)" -m -u -i -p "$@"; }
is_booted() { in_it systemctl is-active basic.target; }
wait_for "systemd" 60 is_booted
echo "systemd $(systemctl --version | sed -n '1s/.*(\(.*\)).*/\1/p'), Linux $(uname -r)"

url=http://127.0.0.1:8080
check "systemctl start shoal@node shoal@gateway" in_it systemctl start shoal@node shoal@gateway
await "the node is ready" 60 "$shoal" health --server http://127.0.0.1:8081
await "the gateway sees it" 30 nodes_are $url 1
main_pid() { in_it systemctl show -P MainPID "$1"; }
status_of() { sed -n "s/^$2:\t\([0-9a-f]*\).*/\1/p" "/proc/$(pgrep -f "^/usr/bin/shoal $1 " | head -1)/status"; }
for member in node gateway; do
    same "the $member runs as user shoal" "$(status_of $member Uid)" "$user"
    same "... without capabilities" "$(status_of $member CapEff)$(status_of $member CapBnd)" 00000000000000000000000000000000
    same "... and cannot gain privileges" "$(status_of $member NoNewPrivs)" 1
    same "... and its system calls are filtered" "$(status_of $member Seccomp)" 2
    same "... and its file system is read-only" \
        "$(awk '$5 == "/" {print $6}' "/proc/$(pgrep -f "^/usr/bin/shoal $member " | head -1)/mountinfo" | tail -n 1 | cut -d, -f1)" ro
done
load_begin $url
old=$(main_pid shoal@node)
kill -9 "$(pgrep -f '^/usr/bin/shoal node ' | head -1)"
restarted() { [ "$(main_pid shoal@node)" != "$old" ] && nodes_are $url 1; }
await "kill -9 of the only node: it runs again" 60 restarted
same "... by systemd" "$(in_it systemctl show -P NRestarts shoal@node)" 1
old=$(main_pid shoal@node)
check "systemctl restart shoal@node" in_it systemctl restart shoal@node
await "... and the gateway sees it" 60 restarted
check "systemctl reload shoal@gateway" in_it systemctl reload shoal@gateway
load_end "requests wait while their only node restarts"
check "systemctl stop" in_it systemctl stop shoal@gateway shoal@node
same "the node ended well" "$(in_it systemctl show -P Result shoal@node)" success
same "the gateway ended well" "$(in_it systemctl show -P Result shoal@gateway)" success
check "systemctl start shoal" in_it systemctl start shoal
await "the server is ready" 60 "$shoal" health --server http://127.0.0.1:8082
check "... and answers" curl -sf -m 20 http://127.0.0.1:8082/v1/process -d '{"text": "turn off the kitchen lights"}'
check "systemctl stop shoal" in_it systemctl stop shoal
same "it ended well" "$(in_it systemctl show -P Result shoal)" success
