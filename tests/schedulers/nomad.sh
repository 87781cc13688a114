#!/usr/bin/env bash
# The Nomad job in a real Nomad, with the processes confined by its exec driver: requests run while processes are killed, an
# allocation is stopped, the job is scaled up and down, and updated.  None may fail.
# `make schedulers` runs it.  Arguments: shoal, image (a docker archive; its files are what tasks see).
. "$(dirname "$0")/lib.sh"
job=$root/packaging/nomad/shoal.nomad.hcl
host=10.66.0.1
ip link add node0 type veth peer name network # nothing is connected at the other end
ip addr add $host/24 dev node0
ip link set node0 up
ip link set network up
ip route add default dev node0
cleanup() {
    nomad job stop -purge shoal
    sleep 2
    kill -9 $(pgrep -f "^[^ ]*shoal (node|gateway) ")
    sleep 1
    find /sys/fs/cgroup/*/nomad* -depth -type d -exec rmdir {} +
}

# ---- what each machine of the cluster has: Shoal, its user, certificates ----
mkdir rootfs layers
tar -xf "$image" -C layers
for layer in $(sed -n 's/.*"Layers":\[\([^]]*\)\].*/\1/p' layers/manifest.json | tr -d '"' | tr ',' ' '); do
    tar -xf "layers/$layer" -C rootfs
done
rm -rf layers
cp /etc/passwd passwd
cp /etc/group group
echo 'shoal:x:65532:65532::/:/usr/sbin/nologin' >>passwd
echo 'shoal:x:65532:' >>group
mount --bind passwd /etc/passwd
mount --bind group /etc/group
"$shoal" cluster init --dir ca --name shoal --host $host --port 4222 >certs.log
start nats sh -c "cd ca/members/nats-1 && exec nats-server -c nats.conf"
SHOAL=$shoal "$root/packaging/make-certs" --dir ca --nodes 6 --host $host >>certs.log 2>&1
cp -r ca/members rootfs/etc/members
chown -R 65532:65532 rootfs/etc/members

# ---- Nomad ----
cat >nomad.hcl <<END
data_dir  = "$tmp/nomad"
bind_addr = "$host"
log_level = "INFO"
server {
  enabled          = true
  bootstrap_expect = 1
}
client {
  enabled           = true
  network_interface = "node0"
  options = {
    "fingerprint.denylist" = "env_aws,env_azure,env_gce,env_digitalocean" # no cloud is asked where it is
  }
  chroot_env {
    "$tmp/rootfs/usr"   = "/usr"
    "$tmp/rootfs/lib"   = "/lib"
    "$tmp/rootfs/lib64" = "/lib64"
    "$tmp/rootfs/etc"   = "/etc"
  }
}
END
start nomad nomad agent -config nomad.hcl
export NOMAD_ADDR=http://$host:4646
is_up() { nomad node status -json | grep -q '"Status": "ready"'; }
wait_for "Nomad with a ready client" 60 is_up
echo "nomad $(nomad version | sed -n 's/^Nomad v//p' | head -1), nats-server $(nats-server --version | cut -d' ' -f2), Linux $(uname -r)"
vars=(-var program=/usr/bin/shoal -var certs=/etc/members -var "nats=[\"tls://$host:4222\"]")
check "nomad fmt" nomad fmt -check "$job"
check "nomad job validate" nomad job validate "${vars[@]}" "$job"
check "... with raw_exec" nomad job validate "${vars[@]}" -var driver=raw_exec "$job"
nomad job run -detach "${vars[@]}" "$job" >run.log
services() { nomad service info -json "$1" 2>/dev/null | grep -c '"ServiceName"' || true; }
gateways() { nomad service info -t '{{range .}}http://{{.Address}}:{{.Port}} {{end}}' shoal; }
running() { # GROUP N: N allocations are healthy
    [ "$(nomad operator api /v1/job/shoal/allocations | node -e '
        const list = JSON.parse(require("fs").readFileSync(0));
        console.log(list.filter((a) => a.TaskGroup === process.argv[1] && a.ClientStatus === "running" && a.DesiredStatus === "run" &&
            a.DeploymentStatus?.Healthy !== false && Object.values(a.TaskStates ?? {}).every((s) => s.State === "running")).length)' "$1")" = "$2" ]
}
two() { [ "$(gateways | wc -w)" = 2 ]; }
await "three nodes run" 120 running node 3
await "two gateways run" 120 running gateway 2
await "... and can be looked up" 60 two
set -- $(gateways)
await "the first one sees three nodes" 60 nodes_are "$1" 3
await "the second one sees three nodes" 60 nodes_are "$2" 3
done_with() { [ "$(nomad job status shoal | sed -n 's/^Status *= *\(successful\|failed\)$/\1/p' | head -1)" = successful ]; }
await "the deployment is successful" 120 done_with
of_node() { pgrep -f "^/usr/bin/shoal node .*/shoal-node-$1 " | head -1; }
pid=$(of_node 0)
same "a node runs as user shoal" "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$pid/status")" 65532
same "... without capabilities" "$(sed -n 's/^CapEff:\t//p' "/proc/$pid/status")" 0000000000000000
same "... in a file system of its own" "$(test "$(stat -c %d:%i "/proc/$pid/root/")" != "$(stat -c %d:%i /)" && echo yes)" yes

# ---- killed ----
other() { local now; now=$(of_node "$1"); [ -n "$now" ] && [ "$now" != "$2" ]; }
load_begin "$1" "$2"
old=$(of_node 1)
kill -9 "$old"
await "kill -9 of a node: it runs again" 60 other 1 "$old"
await "... and gateways see three nodes" 60 nodes_are "$1" 3
old=$(of_node 2)
nomad alloc stop -detach "$(nomad operator api /v1/job/shoal/allocations | node -e '
    const list = JSON.parse(require("fs").readFileSync(0));
    console.log(list.find((a) => a.Name === "shoal.node[2]" && a.ClientStatus === "running").ID)')" >>run.log
await "a stopped allocation is replaced" 120 other 2 "$old"
await "... and gateways see three nodes" 60 nodes_are "$1" 3
load_end "nodes killed and stopped"
load_begin "$1" "$2"
old=$(pgrep -f "^/usr/bin/shoal gateway .*--listen ${1#http://} " | head -1)
kill -9 "$old"
gateway_again() { local now; now=$(pgrep -f "^/usr/bin/shoal gateway .*--listen ${1#http://} " | head -1); [ -n "$now" ] && [ "$now" != "$old" ]; }
await "kill -9 of a gateway: it runs again" 60 gateway_again "$1"
await "... and sees three nodes" 60 nodes_are "$1" 3
load_end "a gateway killed, clients ask the other one"

# ---- scaled ----
load_begin "$1" "$2"
nomad job scale -detach shoal node 5 >>run.log
await "scaled to five: gateways see five nodes" 120 nodes_are "$1" 5
await "... and the deployment is successful" 120 done_with # it is not scaled again before that
nomad job scale -detach shoal node 2 >>run.log
await "scaled to two: two run" 120 running node 2
await "... and gateways see two nodes" 60 nodes_are "$2" 2
await "... and this deployment is successful, too" 120 done_with # else nothing can be restarted
load_end "scaled up and down"

# ---- updated: one after another, each healthy before the next ----
load_begin "$1" "$2"
old="$(of_node 0) $(of_node 1)"
nomad job restart -yes -group node -batch-size 1 shoal >>run.log 2>&1
restarted() { for pid in $old; do [ ! -e "/proc/$pid" ] || return 1; done; }
await "all nodes restarted" 120 restarted
await "... and gateways see two nodes" 60 nodes_are "$1" 2
load_end "nodes restarted one after another"
nomad job stop -purge shoal >>run.log
none() { [ -z "$(pgrep -f '^/usr/bin/shoal (node|gateway) ')" ]; }
await "stopped" 90 none
