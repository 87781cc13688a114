#!/usr/bin/env bash
# The Helm chart in a real Kubernetes: etcd, API server, controller manager, scheduler, kubelet, containerd, kube-proxy, CoreDNS;
# pods have a network of their own, and kube-router enforces policies there.  Requests go through the Service while processes and
# pods are killed, and while nodes and gateways are updated: none may fail.  Then a stranger calls, the autoscaler acts (with
# Prometheus and its adapter), and a DaemonSet with NATS is installed.
# `make schedulers` runs it.  Arguments: shoal, image (a docker archive).
. "$(dirname "$0")/lib.sh"
chart=$root/packaging/helm/shoal
host=10.66.0.1 api=https://10.66.0.1:6443
cleanup() {
    kubectl delete --all deploy,sts,ds,pod --grace-period=1 --wait=false
    sleep 3
    kill -9 $(pgrep containerd-shim)
    sleep 1
    find /sys/fs/cgroup/*/k8s.io -depth -type d -exec rmdir {} +
}
mount --make-rshared / # as kubelet expects
ip link add node0 type veth peer name network # nothing is connected at the other end
ip addr add $host/24 dev node0
ip link set node0 up
ip link set network up
ip route add default dev node0
sysctl -qw net.ipv4.ip_forward=1

# ---- Kubernetes ----
openssl genrsa -out sa.key 2048 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout proxy-ca.key -out proxy-ca.pem -subj /CN=proxy-ca -days 2 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout proxy.key -out proxy.csr -subj /CN=front-proxy 2>/dev/null
openssl x509 -req -in proxy.csr -CA proxy-ca.pem -CAkey proxy-ca.key -CAcreateserial -out proxy.pem -days 2 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,1,system:masters" >tokens
cat >admin <<END
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "$api", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: here, context: {cluster: here, user: admin}}]
current-context: here
END
export KUBECONFIG=$tmp/admin HELM_CACHE_HOME=$tmp/helm HELM_CONFIG_HOME=$tmp/helm HELM_DATA_HOME=$tmp/helm
start etcd etcd --data-dir "$tmp/etcd" --unsafe-no-fsync
start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address $host --cert-dir "$tmp/apiserver" \
    --token-auth-file tokens --authorization-mode AlwaysAllow --service-cluster-ip-range 10.96.0.0/16 \
    --service-account-issuer https://here --service-account-key-file sa.key --service-account-signing-key-file sa.key \
    --requestheader-client-ca-file proxy-ca.pem --requestheader-username-headers X-Remote-User \
    --requestheader-group-headers X-Remote-Group --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file proxy.pem --proxy-client-key-file proxy.key --enable-aggregator-routing \
    --kubelet-preferred-address-types InternalIP
wait_for "API server" 120 kubectl get --raw /readyz
start controller kube-controller-manager --kubeconfig admin --service-account-private-key-file sa.key --leader-elect=false \
    --secure-port 0 --use-service-account-credentials=false --horizontal-pod-autoscaler-sync-period=2s
start scheduler kube-scheduler --kubeconfig admin --leader-elect=false --secure-port 0

# The container that holds a pod's namespaces: it waits and reaps.
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
state = "/run/containerd"
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$tmp/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
END
# Each pod has a cable to this machine, which routes between them.
mkdir cni
cat >cni/10-here.conflist <<END
{"cniVersion": "0.4.0", "name": "here", "plugins": [{"type": "ptp", "ipMasq": false,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.66.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$tmp/cni-ips"}}]}
END
start containerd containerd -c containerd.toml
wait_for containerd 60 ctr -a /run/containerd.sock version
ctr -a /run/containerd.sock -n k8s.io images import pause.tar >/dev/null
ctr -a /run/containerd.sock -n k8s.io images import "$image" >/dev/null
# some machines have cgroup version 1 without all controllers: pods are not grouped by QoS class
# then.
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
clusterDNS: [$host]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd.sock
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: 50Mi}
END
start kubelet kubelet --kubeconfig admin --config kubelet.yaml --hostname-override here --node-ip $host --cert-dir "$tmp/kubelet"
start proxy kube-proxy --kubeconfig admin --hostname-override here --proxy-mode nftables --cluster-cidr 10.66.1.0/24 \
    --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
cat >Corefile <<END
.:53 {
    errors
    kubernetes cluster.local {
        kubeconfig $tmp/admin
    }
}
END
start coredns coredns -conf Corefile
wait_for "ready node of Kubernetes" 120 kubectl wait --for=condition=Ready node/here --timeout=1s
# Only its firewall is used: who may reach which pod.
start router kube-router --kubeconfig admin --hostname-override here --run-router=false --run-service-proxy=false --run-firewall=true \
    --service-cluster-ip-range 10.96.0.0/16 --health-port 0
echo "kubernetes $(kubectl version -o json | sed -n 's/.*"gitVersion": "\(.*\)".*/\1/p' | tail -1), helm $(helm version --template '{{.Version}}')," \
    "containerd $(containerd --version | cut -d' ' -f3), $(runc --version | head -1), etcd $(etcd --version | sed -n 's/^etcd Version: //p')," \
    "CoreDNS $(coredns -version | sed -n 's/^CoreDNS-//p'), kube-router v2.2.1, cgroup $(stat -fc %T /sys/fs/cgroup), Linux $(uname -r)"

# ---- the chart ----
certs() { # NODES: creates missing certificates
    SHOAL=$shoal "$root/packaging/make-certs" --dir ca --name pond --nodes "$1" --host $host --secret 2>>certs.log | kubectl apply -f - >/dev/null
}
some=(--set image.repository=localhost/shoal --set image.tag=test --set image.pullPolicy=Never
    --set nodes.resources.requests.cpu=50m --set nodes.resources.requests.memory=64Mi --set gateways.resources.requests.cpu=50m)
check "helm lint" helm lint --strict "$chart"
accepted() { # helm's options: what it renders is accepted by the API server
    helm template pond "$chart" "$@" >rendered.yaml && kubectl apply --dry-run=server -f rendered.yaml
}
check "the API server accepts the chart with defaults" accepted
check "... with a volume for each node, an ingress, keys, a policy of clients" accepted --set nodes.storage.size=1Gi --set ingress.enabled=true \
    --set ingress.host=shoal.example --set 'networkPolicy.clients[0].podSelector.matchLabels.app=x' --set gateways.config.load_wait=1s
check "... as a DaemonSet with NATS on the machines' network" accepted --set nodes.kind=DaemonSet --set 'nodes.hosts={here}' \
    --set 'nats.urls={tls://nats:4222}' --set hostNetwork=true
check "... with autoscaling by CPU and requests" accepted --set gateways.autoscaling.enabled=true --set gateways.autoscaling.inFlight=4
refused() { ! helm template pond "$chart" "$@"; }
check "a DaemonSet without NATS is refused" refused --set nodes.kind=DaemonSet
certs 3
helm install pond "$chart" "${some[@]}" >helm.log
ready() { kubectl rollout status "$1" --timeout=1s; }
await "three nodes" 180 ready sts/pond-node
await "two gateways" 60 ready deploy/pond-gateway
url=http://$(kubectl get service pond -o 'jsonpath={.spec.clusterIP}')
await "the gateways see them" 30 nodes_are "$url" 3
of_node() { # N: its process
    local pid
    for pid in $(pgrep -f '^/usr/bin/shoal node '); do
        tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "POD_NAME=pond-node-$1" && echo "$pid" && return
    done
}
check_confined "$(of_node 0)"
check_confined "$(pgrep -f '^/usr/bin/shoal gateway ' | head -1)"
same "a node sees one key" "$(find "/proc/$(of_node 0)/root/certs/" -name '*key.pem' | wc -l)" 1
check "... which is its own" cmp "/proc/$(of_node 0)/root/certs/key.pem" ca/members/pond-node-0/key.pem
same "no token of the API server" "$(kubectl get pods -o 'jsonpath={..volumes[?(@.projected)].name}')" ""

# ---- killed, deleted and updated under load ----
uid() { kubectl get pod "$1" -o 'jsonpath={.metadata.uid}'; }
is_ready() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
replaced() { # POD UID: replaced by another one, which is ready
    [ "$(uid "$1")" != "$2" ] && is_ready "$1"
}
restarted() { # POD: its container was restarted and is ready
    [ "$(kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].restartCount}')" -gt 0 ] && is_ready "$1"
}
load_begin "$url"
kill -9 "$(of_node 1)"
await "kill -9 of a node: its container runs again" 60 restarted pond-node-1
await "... and gateways see three nodes" 30 nodes_are "$url" 3
load_end "kill -9 of a node"

load_begin "$url"
old=$(uid pond-node-2)
kubectl delete pod pond-node-2 --wait=false >/dev/null
await "a deleted pod of a node is replaced" 120 replaced pond-node-2 "$old"
old=$(uid pond-node-0)
kubectl delete pod pond-node-0 --force --grace-period=0 >/dev/null 2>&1
await "one deleted by force is replaced" 120 replaced pond-node-0 "$old"
await "... and gateways see three nodes" 60 nodes_are "$url" 3
load_end "pods of nodes deleted"

load_begin "$url"
gateways() { kubectl get pods -l app.kubernetes.io/component=gateway -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'; }
for old in $(gateways); do
    kubectl delete pod "$old" --wait=false >/dev/null
    gone() { ! kubectl get pod "$1"; }
    await "a deleted pod of a gateway ends" 120 gone "$old"
    await "... and is replaced" 60 ready deploy/pond-gateway
done
load_end "pods of gateways deleted"

load_begin "$url"
helm upgrade pond "$chart" "${some[@]}" --set nodes.podAnnotations.update=two --set gateways.podAnnotations.update=two >helm.log
await "all nodes updated, one after another" 300 ready sts/pond-node
await "all gateways updated" 120 ready deploy/pond-gateway
certs 4
helm upgrade pond "$chart" "${some[@]}" --set nodes.podAnnotations.update=two --set nodes.replicas=4 >helm.log
await "a fourth node" 120 ready sts/pond-node
await "... that gateways are told of" 120 ready deploy/pond-gateway
await "... and see" 60 nodes_are "$url" 4
load_end "updates, and a fourth node"

evict() { kubectl create --raw "/api/v1/namespaces/default/pods/$1/eviction" -f - <<<"{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\"}}"; }
load_begin "$url"
check "a node may be evicted" evict pond-node-3
not_evicted() { ! evict "$1" 2>evict.log >&2 && grep -q 'disruption budget' evict.log; }
check "the disruption budget keeps a second one" not_evicted pond-node-2
load_end "an eviction"
helm uninstall pond --wait >helm.log
pods_gone() { [ -z "$(kubectl get pods -o name)" ]; }
await "uninstalled" 120 pods_gone

# ---- strangers: the network policy, enforced ----
certs 3
strict=("${some[@]}" --set nodes.replicas=2 --set gateways.replicas=1 --set 'networkPolicy.clients[0].podSelector.matchLabels.may=call')
install() { # helm's options
    helm install pond "$chart" "$@" >helm.log
    await "two nodes" 180 ready sts/pond-node
    await "a gateway" 60 ready deploy/pond-gateway
}
address() { kubectl get pod -l "app.kubernetes.io/component=$1" -o 'jsonpath={.items[0].status.podIP}'; }
# Idle pods that calls are made from: one that is allowed to call, and a stranger.
for answer in call no; do
    kubectl run "may-$answer" --image localhost/shoal:test --image-pull-policy Never --restart Never --labels "may=$answer" --command -- \
        /usr/bin/shoal gateway --node unix:/tmp/nobody --listen 127.0.0.1:8080 >/dev/null
done
reaches() { # POD ADDRESS
    kubectl exec "$1" -- /usr/bin/shoal health --server "http://$2" --timeout 4
}
reaches_not() { ! reaches "$@" && kubectl exec "$1" -- /usr/bin/shoal health --live; }
alive() { kubectl exec may-call -- /usr/bin/shoal health --live && kubectl exec may-no -- /usr/bin/shoal health --live; }
wait_for "callers" 60 alive
install "${strict[@]}" --set networkPolicy.enabled=false
check "without a policy a stranger reaches a node" reaches may-no "$(address node):8080"
check "... and a gateway" reaches may-no "$(address gateway):8080"
helm upgrade pond "$chart" "${strict[@]}" >helm.log
await "with it a stranger does not reach a node" 60 reaches_not may-no "$(address node):8080"
check "... nor a gateway" reaches_not may-no "$(address gateway):8080"
check "a client reaches a gateway" reaches may-call "$(address gateway):8080"
check "... but no node" reaches_not may-call "$(address node):8080"
url=http://$(kubectl get service pond -o 'jsonpath={.spec.clusterIP}')
await "gateways reach the nodes" 30 nodes_are "$url" 2
helm uninstall pond --wait >helm.log
kubectl delete pod may-call may-no >/dev/null
await "uninstalled" 120 pods_gone

# ---- gateways scale by the requests in flight ----
cat >prometheus.yml <<END
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: gateways
    file_sd_configs: [{files: [$tmp/targets.yml], refresh_interval: 1s}]
END
# Debian's Prometheus is built without Kubernetes discovery: it gets a list of the gateways.
tell_gateways() {
    while sleep 1; do
        kubectl get pods -l app.kubernetes.io/component=gateway --field-selector status.phase=Running -o 'jsonpath={range .items[*]}- targets:
  - {.status.podIP}:8080
  labels:
    namespace: {.metadata.namespace}
    pod: {.metadata.name}
{end}' >targets.tmp && mv targets.tmp targets.yml
    done
}
start targets tell_gateways
start prometheus prometheus --config.file prometheus.yml --storage.tsdb.path "$tmp/prometheus" --web.listen-address 127.0.0.1:9090
cat >adapter.yaml <<'END'
rules:
  - seriesQuery: 'shoal_calls_in_flight{namespace!="",pod!=""}'
    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
    metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
END
start adapter prometheus-adapter --lister-kubeconfig admin --authentication-kubeconfig admin --authorization-kubeconfig admin \
    --secure-port 6444 --cert-dir "$tmp/adapter" --prometheus-url http://127.0.0.1:9090 --config adapter.yaml --metrics-relist-interval 2s
kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Service
metadata: {name: adapter, namespace: kube-system}
spec: {ports: [{port: 443, targetPort: 6444}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: adapter, namespace: kube-system, labels: {kubernetes.io/service-name: adapter}}
addressType: IPv4
ports: [{name: "", port: 6444, protocol: TCP}]
endpoints: [{addresses: [$host], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec: {group: custom.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
  service: {name: adapter, namespace: kube-system}}
END
echo "prometheus $(prometheus --version 2>&1 | sed -n 's/^prometheus, version \([^ ]*\).*/\1/p'), prometheus-adapter v0.12.0"
install "${some[@]}" --set nodes.replicas=2 --set gateways.autoscaling.enabled=true --set gateways.autoscaling.min=1 \
    --set gateways.autoscaling.max=3 --set gateways.autoscaling.cpu=0 --set gateways.autoscaling.inFlight=2 \
    --set gateways.autoscaling.stabilizationSeconds=5
url=http://$(kubectl get service pond -o 'jsonpath={.spec.clusterIP}')
await "... that sees them" 30 nodes_are "$url" 2
metric() { kubectl get --raw '/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/shoal_calls_in_flight' | grep -q '"value"'; }
await "the API server knows shoal_calls_in_flight of the gateway" 90 metric
replicas() { [ "$(kubectl get deploy pond-gateway -o 'jsonpath={.spec.replicas} {.status.readyReplicas}')" = "$1 $1" ]; }
check "one gateway while there is no load" replicas 1
LANES=12 load_begin "$url"
await "twelve requests at once: three gateways" 180 replicas 3
load_end "gateways added"
LANES=2 load_begin "$url" # a few continue while gateways are removed
await "two at once: one gateway" 240 replicas 1
load_end "gateways removed"
helm uninstall pond --wait >helm.log
await "uninstalled" 120 pods_gone

# ---- one node on each machine, found through NATS, on the machine's network ----
"$shoal" cluster init --dir ca2 --name pond --host $host --port 4222 >certs.log
start nats sh -c "cd ca2/members/nats-1 && exec nats-server -c nats.conf"
"$shoal" ca issue here --dir ca2 --role node,controller --host $host >>certs.log 2>&1
kubectl delete secret pond-certs >/dev/null
SHOAL=$shoal "$root/packaging/make-certs" --dir ca2 --name pond --nodes 1 --host $host >>certs.log 2>&1
for member in here pond-gateway; do
    for file in ca2/members/$member/*.pem; do echo "--from-file=$member.$(basename "$file")=$file"; done
done | xargs kubectl create secret generic pond-certs >/dev/null
helm install pond "$chart" "${some[@]}" --set nodes.kind=DaemonSet --set 'nodes.hosts={here}' --set "nats.urls={tls://$host:4222}" \
    --set nats.shoal=pond --set hostNetwork=true --set gateways.replicas=1 --set gateways.port=8081 >helm.log
await "a DaemonSet's node on the machine's network" 120 ready ds/pond-node
await "... and a gateway that finds it through NATS" 60 ready deploy/pond-gateway
await "... answers" 30 curl -sf -m 20 "http://$host:8081/v1/process" -d '{"text": "turn off the kitchen lights"}'
