#!/usr/bin/env bash
# The Helm chart in a real Kubernetes on this machine: API server, controller manager, scheduler, kubelet, etcd, containerd.
# Three nodes, two gateways, a nats-server; requests run while a pod of each kind is killed, and while the nodes are
# updated.  No request may fail.  Needs root.  `make schedulers` runs it; arguments: shoal, image (an OCI archive).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
shoal=$(realpath "$1") image=$(realpath "$2")
PATH=$("$root/tools/fetch-schedulers" kubernetes helm):$PATH
[ "$(id -u)" = 0 ] || { echo "needs root: it starts containers" >&2; exit 1; }
tmp=$(mktemp -d /tmp/shoal-kubernetes.XXXXXX)
api=127.0.0.1:36443 host=$(hostname -I | cut -d' ' -f1)
pids=() passed=0
finish() {
    local status=$?
    set +e
    [ $status = 0 ] || tail -n 5 "$tmp"/*.log
    echo "kubernetes: $passed passed, $((status != 0)) failed"
    kubectl --kubeconfig "$tmp/admin" delete --all deploy,sts,ds,pod --grace-period=1 --wait=false >/dev/null 2>&1
    sleep 3
    kill "${pids[@]}" 2>/dev/null
    sleep 1
    pkill -9 -f "containerd-shim.*$tmp" 2>/dev/null
    wait 2>/dev/null
    grep -oE " ($tmp|/var/lib/shoal-kubelet)[^ ]*" /proc/self/mounts | sort -r | xargs -r umount -l 2>/dev/null
    rm -rf "$tmp" /var/lib/shoal-kubelet
    exit $status
}
trap finish EXIT INT TERM
cd "$tmp"
pass() {
    passed=$((passed + 1))
    echo "  ok    $*"
}

start() { # NAME COMMAND...
    "${@:2}" >"$tmp/$1.log" 2>&1 &
    pids+=($!)
}
wait_for() { # WHAT SECONDS COMMAND...
    local until=$((SECONDS + $2))
    while [ $SECONDS -lt $until ]; do
        "${@:3}" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "no $1 within $2 s" >&2
    return 1
}

# ---- Kubernetes ----
openssl genrsa -out sa.key 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,1,system:masters" >tokens
cat >admin <<END
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://$api", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: here, context: {cluster: here, user: admin}}]
current-context: here
END
export KUBECONFIG=$tmp/admin
start etcd etcd --data-dir "$tmp/etcd" --listen-client-urls http://127.0.0.1:32379 --advertise-client-urls http://127.0.0.1:32379 \
    --listen-peer-urls http://127.0.0.1:32380 --initial-advertise-peer-urls http://127.0.0.1:32380 --initial-cluster default=http://127.0.0.1:32380
start apiserver kube-apiserver --etcd-servers http://127.0.0.1:32379 --secure-port ${api##*:} --bind-address 127.0.0.1 \
    --cert-dir "$tmp/apiserver" --token-auth-file tokens --authorization-mode AlwaysAllow --service-cluster-ip-range 10.96.0.0/16 \
    --service-account-issuer https://here --service-account-key-file sa.key --service-account-signing-key-file sa.key
wait_for "API server" 120 kubectl get --raw /readyz
start controller kube-controller-manager --kubeconfig admin --service-account-private-key-file sa.key --leader-elect=false \
    --secure-port 0 --use-service-account-credentials=false
start scheduler kube-scheduler --kubeconfig admin --leader-elect=false --secure-port 0

# The container that holds a pod's namespaces: it waits, and reaps.
cat >pause.c <<'END'
#include <signal.h>
#include <unistd.h>
static void stop(int s) { (void)s; _exit(0); }
int main(void)
{
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    signal(SIGCHLD, SIG_IGN);
    for (;;)
        pause();
}
END
gcc -static -Os -o pause pause.c
storage=(--root "$tmp/images" --runroot "$tmp/images-run" --storage-driver vfs)
box=$(buildah "${storage[@]}" from scratch)
buildah "${storage[@]}" copy -q "$box" pause /pause >/dev/null
buildah "${storage[@]}" config --entrypoint '["/pause"]' "$box"
buildah "${storage[@]}" commit -q --rm "$box" oci-archive:pause.tar:localhost/pause:1 >/dev/null
cat >containerd.toml <<END
version = 2
root = "$tmp/containerd"
state = "$tmp/containerd-run"
[grpc]
  address = "$tmp/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$tmp/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
END
# Pods use the machine's network; a node of Kubernetes is not ready without a plug-in all the same.
mkdir cni
echo '{"cniVersion": "0.4.0", "name": "here", "plugins": [{"type": "loopback"}]}' >cni/10-here.conflist
start containerd containerd -c containerd.toml
wait_for containerd 60 ctr -a "$tmp/containerd.sock" version
ctr -a "$tmp/containerd.sock" -n k8s.io images import pause.tar >/dev/null
ctr -a "$tmp/containerd.sock" -n k8s.io images import --index-name localhost/shoal:test "$image" >/dev/null
cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix://$tmp/containerd.sock
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: 50Mi}
END
start kubelet kubelet --kubeconfig admin --config kubelet.yaml --hostname-override here --node-ip "$host" --root-dir /var/lib/shoal-kubelet \
    --cert-dir "$tmp/kubelet"
wait_for "ready node of Kubernetes" 120 kubectl wait --for=condition=Ready node/here --timeout=1s
echo "kubernetes $(kubectl version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' | tail -1), $(helm version --short), $(containerd --version | cut -d' ' -f3)"

# ---- Shoal ----
"$shoal" cluster init --dir ca --name pond --host "$host" --port 34222 >/dev/null
(cd ca/members/nats-1 && exec nats-server -c nats.conf) >nats.log 2>&1 &
pids+=($!)
SHOAL=$shoal "$root/packaging/make-certs" --dir ca --name pond --nodes 3 --host "$host" --secret 2>certs.log | kubectl apply -f - >/dev/null
values=(--set image.repository=localhost/shoal --set image.tag=test --set image.pullPolicy=Never --set hostNetwork=true
    --set "nats.urls={tls://$host:34222}" --set nats.shoal=pond --set nodes.replicas=3 --set gateways.replicas=1
    --set gateways.port=38080 --set nodes.resources.requests.cpu=50m --set nodes.resources.requests.memory=64Mi
    --set gateways.resources.requests.cpu=50m
    --set "nodes.tolerations[0].operator=Exists" --set "gateways.tolerations[0].operator=Exists")
helm install pond "$root/packaging/helm/shoal" "${values[@]}" >/dev/null
wait_for "three nodes" 180 kubectl rollout status sts/pond-node --timeout=1s
wait_for "gateway" 60 kubectl rollout status deploy/pond-gateway --timeout=1s
"$shoal" cluster status --server http://127.0.0.1:38080

# ---- under load ----
node "$root/tests/schedulers/load.js" http://127.0.0.1:38080 >load.log &
load=$!
sleep 3
victim=$(pgrep -f "shoal node .*certs/pond-node-1" | head -1)
before=$(date +%s%3N)
kill -9 "$victim"
restarts() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].restartCount}')" -gt 0 ]; }
wait_for "restart of the killed node" 60 restarts pond-node-1
wait_for "three nodes again" 60 "$shoal" cluster status --server http://127.0.0.1:38080
pass "kill -9 of a node: three nodes ready again after $(($(date +%s%3N) - before)) ms"
kubectl delete pod pond-node-2 --wait=false >/dev/null
sleep 1
wait_for "the deleted pod again" 90 "$shoal" cluster status --server http://127.0.0.1:38080
pass "a deleted pod is replaced"
helm upgrade pond "$root/packaging/helm/shoal" "${values[@]}" --set nodes.podAnnotations.update=two >/dev/null
wait_for "the updated nodes" 300 kubectl rollout status sts/pond-node --timeout=1s
pass "all nodes are updated"
kill -TERM $load
wait $load || { cat load.log; echo "requests failed" >&2; exit 1; }
pass "$(tail -n 1 load.log)"
for pod in pond-node-0; do
    echo "security: $(kubectl get pod $pod -o jsonpath='{.spec.containers[0].securityContext}')"
done
pid=$(pgrep -f "shoal node .*certs/pond-node-0" | head -1)
grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr '\n' ' '
echo
grep -q '^CapEff:\s*0*$' "/proc/$pid/status" || { echo "the node has capabilities" >&2; exit 1; }
grep -q '^Uid:\s*65532' "/proc/$pid/status" || { echo "the node does not run as 65532" >&2; exit 1; }
pass "it runs as 65532, without capabilities"
