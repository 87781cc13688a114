#!/usr/bin/env bash
# The Compose file with a real Docker: requests run while a node is killed, restarted and recreated.  None may fail.
# `make schedulers` runs it.  Arguments: shoal, image (a docker archive).
. "$(dirname "$0")/lib.sh"
cleanup() {
    docker rm -f $(docker ps -aq)
    sleep 1
    kill -9 $(pgrep containerd-shim)
    find /sys/fs/cgroup/*/docker -depth -type d -exec rmdir {} +
}
PATH=/usr/bin:/usr/sbin:$PATH # Debian's docker, not another one
sysctl -qw net.ipv4.ip_forward=1
start dockerd dockerd --data-root "$tmp/docker" --exec-root /run/docker -H unix:///run/docker.sock --pidfile /run/docker.pid \
    --storage-driver overlay2 --exec-opt native.cgroupdriver=cgroupfs
export DOCKER_HOST=unix:///run/docker.sock DOCKER_CONFIG=$tmp/config
wait_for dockerd 60 docker version
echo "docker $(docker version -f '{{.Server.Version}}'), docker-compose $(docker-compose version --short)"
docker load -q -i "$image" >/dev/null
mkdir compose
cp "$root/packaging/compose/compose.yaml" compose
SHOAL=$shoal "$root/packaging/make-certs" --dir compose/ca >certs.log 2>&1
chown -R 65532 compose/ca/members
export SHOAL_IMAGE=localhost/shoal:test
compose() { docker-compose -p shoal -f compose/compose.yaml "$@"; }
pid_of() { docker inspect -f '{{.State.Pid}}' "$(compose ps -q "$1")"; }
healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(compose ps -q "$1")")" = healthy ]; }
check "docker-compose config" compose config -q
check "docker-compose up" compose up -d
for service in shoal-node-0 shoal-node-1 shoal-node-2 gateway; do
    await "$service is healthy" 120 healthy $service
done
url=http://127.0.0.1:8080
await "the gateway sees three nodes" 30 nodes_are "$url" 3
check_confined "$(pid_of shoal-node-0)"
check_confined "$(pid_of gateway)"
load_begin "$url"
kill -9 "$(pid_of shoal-node-1)"
again() { [ "$(docker inspect -f '{{.RestartCount}}' "$(compose ps -q shoal-node-1)")" -gt 0 ] && healthy shoal-node-1; }
await "kill -9 of a node: it runs again" 60 again
await "... and the gateway sees three nodes" 30 nodes_are "$url" 3
compose restart shoal-node-2 >>compose.log 2>&1
await "a restarted node is healthy" 60 healthy shoal-node-2
compose up -d --no-deps --force-recreate shoal-node-0 >>compose.log 2>&1
await "a recreated node is healthy" 60 healthy shoal-node-0
await "... and the gateway sees three nodes" 30 nodes_are "$url" 3
load_end "nodes killed, restarted, recreated"
check "docker-compose down" compose down -t 30
