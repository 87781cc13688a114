"""A Ray Serve application for bench/failover.js: a router in front of two replicas that answer at once.

Prints its address, then the PID of the HTTP proxy for every line of its input.  The answers contain the PIDs of the router and
of the replica.  Ray computes nothing here: only its recovery is measured.
"""
import os
import sys
from pathlib import Path

import ray
from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=16)
class Model:
    async def __call__(self, text):
        return {"replica": os.getpid(), "text": text}


@serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=64)
class Router:
    def __init__(self, model):
        self.model = model

    async def __call__(self, request: Request):
        answer = await self.model.remote((await request.json())["prompt"])
        return {**answer, "router": os.getpid()}


def proxy():
    for p in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ProxyActor" in p.read_bytes():
                return int(p.parent.name)
        except OSError:
            pass  # it has ended
    return 0


port = int(sys.argv[1])
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(Router.bind(Model.bind()), route_prefix="/")
print(f"listening on http://127.0.0.1:{port}", flush=True)
for line in sys.stdin:
    print(f"proxy {proxy()}", flush=True)
serve.shutdown()
ray.shutdown()
