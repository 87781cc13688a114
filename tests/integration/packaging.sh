#!/usr/bin/env bash
# `shoal health`, and packaging/make-certs: a node and a gateway start with its certificates.
# Arguments: shoal, cli_tool, build folder.
. "$(dirname "$0")/lib.sh"
export SHOAL=$shoal
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$tmp"' EXIT

# ---- certificates ----
make_certs() { "$root/packaging/make-certs" --dir "$tmp/ca" --name pond --nodes 2 --namespace here "$@"; }
checked=$((checked + 1))
make_certs --secret >secret.yaml 2>err || fail "make-certs: $(cat err)"
same "keys of the secret" "$(sed -n 's/^  \(pond-.*\): .*/\1/p' secret.yaml | sort | tr '\n' ' ')" \
    "$(for m in pond-gateway pond-node-0 pond-node-1; do for f in ca cert crl key; do echo "$m.$f.pem"; done; done | tr '\n' ' ')"
same "a key's content" "$(sed -n 's/^  pond-node-1.cert.pem: //p' secret.yaml | base64 -d)" "$(cat ca/members/pond-node-1/cert.pem)"
run 0 ca show --dir "$tmp/ca" pond-node-1
has out pond-node-1.pond-nodes.here.svc
sum=$(sha256sum <ca/members/pond-node-0/key.pem)
make_certs >out 2>&1
same "a key when run again" "$(sha256sum <ca/members/pond-node-0/key.pem)" "$sum"
checked=$((checked + 1))
make_certs --nodes none >out 2>err && fail "make-certs accepts --nodes none"
has err usage:

# ---- health ----
wait_for() { # EXIT_CODE ARGS...: polls shoal health
    local want=$1 got=""
    shift
    checked=$((checked + 1))
    for _ in $(seq 600); do
        "$shoal" health "$@" >"$tmp/out" 2>"$tmp/err"
        got=$?
        [ "$got" = "$want" ] && return
        sleep 0.1
    done
    fail "shoal health $*: exit code $got, expected $want"
}
run 1 health --server "unix:$tmp/gateway.sock"
has err "cannot reach"
"$shoal" gateway --certs ca/members/pond-gateway --listen "unix:$tmp/gateway.sock" --node "unix:$tmp/node.sock" >gateway.log 2>&1 &
pids+=($!)
wait_for 0 --live --server "unix:$tmp/gateway.sock"
same "a living gateway" "$(cat out)" alive
run 3 health --server "unix:$tmp/gateway.sock" --json
same "a gateway without nodes" "$(cat out)" '{"state":"not ready","status":503}'
"$shoal" node --certs ca/members/pond-node-0 --listen "unix:$tmp/node.sock" --http "unix:$tmp/http.sock" \
    -m "tiny=$refs/llama-gqa.gguf" >node.log 2>&1 &
pids+=($!)
wait_for 0 --server "unix:$tmp/http.sock"
wait_for 0 --server "unix:$tmp/gateway.sock" --timeout 2
same "a gateway with a node" "$(cat out)" ready
run 2 health --timeout never

# ---- the metric that the chart's autoscaler reads exists on gateways ----
metric=$(sed -n 's/.*metric: {name: \([a-z_]*\)}.*/\1/p' "$root/packaging/helm/shoal/templates/gateways.yaml")
differ "the chart's metric" "$metric" ""
curl -s --unix-socket "$tmp/gateway.sock" http://localhost/metrics >out
same "its value while nobody asks" "$(grep -E "^$metric[ {]" out)" "$metric 0"
finish
