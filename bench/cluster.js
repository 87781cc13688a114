// The cluster: bench/run cluster [ROUNDS].  The way to a node over mTLS beside the same model in the gateway's own process,
// what a client sees of a killed node, and the placement planner.
"use strict";
const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, Server, median, spread, printTable, writeRows } = require("./lib.js");

const SHOAL = path.join(ROOT, "build/shoal");
const REQUESTS = 2000; // of one round

const SIZES = [[100, 20], [1000, 50], [10000, 50], [10000, 200]];
const LIMIT_MS = 1000; // for the largest

function measurePlanner(rounds) {
  const rows = [];
  for (const [nodes, models] of SIZES) {
    const r = JSON.parse(execFileSync(path.join(ROOT, "build/bench/bench_placement"), [nodes, models, rounds].map(String), { encoding: "utf8" }));
    const largest = nodes === 10000 && models === 200;
    for (const [what, ms] of [["empty", r.new_ms], ["nothing changed", r.again_ms], ["1 % left", r.churn_ms], ["too little memory", r.tight_ms]]) {
      const ours = median(ms);
      rows.push({ part: "cluster", name: `plan ${nodes} nodes, ${models} models, ${what}`, ours, peer: null, unit: "ms", ratio: null, roofline: null,
        target: largest ? `< ${LIMIT_MS}` : null, met: largest ? ours < LIMIT_MS : null, ours_best: Math.min(...ms), ours_spread: spread(ms),
        replicas: r.replicas, slowness: r.slowness, packed: r.packed, lost: r.lost, churn_loads: r.churn_loads, again_steps: r.again_steps });
    }
  }
  return rows;
}

// ---- the way to a node ----

// A keep-alive client, one request at a time.
class Client {
  constructor(url) {
    this.url = url;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  post(where, body, onData = () => {}) {
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(body), began = process.hrtime.bigint();
      const req = http.request(this.url + where, { method: "POST", agent: this.agent, headers: { "content-length": Buffer.byteLength(text) } }, (res) => {
        let got = "";
        res.on("data", (d) => { got += d; onData(res, d); });
        res.on("end", () => (res.statusCode === 200 ? resolve({ us: Number(process.hrtime.bigint() - began) / 1000, text: got })
          : reject(new Error(`${where}: status ${res.statusCode}: ${got}`))));
        res.on("error", reject);
      });
      req.on("error", reject);
      req.end(text);
    });
  }

  async until(where, body) {
    for (let i = 0; i < 600; i++) {
      try {
        return await this.post(where, body);
      } catch (e) {
        if (i === 599) throw e;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }
}

async function openSite(dir) {
  const ca = (...args) => execFileSync(SHOAL, ["ca", ...args], { cwd: dir, stdio: "ignore" });
  const certs = (name) => ["--certs", path.join(dir, "ca/members", name)];
  ca("init");
  for (const name of ["node1", "node2"]) ca("issue", name, "--role", "node", "--host", "127.0.0.1");
  ca("issue", "gw", "--role", "gateway");
  const models = ["-m", `anomaly=${path.join(ROOT, "models/anomaly")}`, "-m", `reply=${path.join(ROOT, "models/reply.gguf")}`];
  const here = new Server("serve", [SHOAL, "serve", "--listen", "127.0.0.1:0", ...models]);
  const nodes = {}, addresses = [], config = path.join(dir, "node.yaml");
  fs.writeFileSync(config, "cache: {bytes: 0}\n"); // a stream from the prompt cache is over before it can be killed
  for (const name of ["node1", "node2"]) {
    nodes[name] = new Server(name, [SHOAL, "node", "--config", config, "--listen", "127.0.0.1:0", ...certs(name), ...models]);
    addresses.push("--node", await new Promise((resolve) => nodes[name].proc.stdout.on("data", (d) => {
      const m = /other members on (\S+)/.exec(String(d));
      if (m) resolve(m[1]);
    })));
  }
  const gw = new Server("gateway", [SHOAL, "gateway", "--listen", "127.0.0.1:0", ...certs("gw"), ...addresses]);
  return { here: new Client(await here.listening()), there: new Client(await gw.listening()), nodes, all: [here, gw, ...Object.values(nodes)] };
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.floor(q * (list.length - 1))];

// Both in turn, in one run: the difference is the way through the gateway, TLS and the node.
async function measureWay(site, rounds) {
  const score = ["/v1/score", { model: "anomaly", input: [1, 2, 3] }];
  const token = ["/v1/completions", { model: "reply", prompt: [1], max_tokens: 1, temperature: 1, top_k: 1 }];
  const rows = [];
  for (const [name, [where, body]] of [["score", score], ["one token", token]]) {
    await site.here.until(where, body);
    await site.there.until(where, body);
    const p50 = { here: [], there: [] }, p99 = { here: [], there: [] };
    for (let r = 0; r < rounds; r++)
      for (const side of r % 2 ? ["there", "here"] : ["here", "there"]) {
        const times = [];
        for (let i = 0; i < REQUESTS; i++) times.push((await site[side].post(where, body)).us);
        p50[side].push(quantile(times, 0.5));
        p99[side].push(quantile(times, 0.99));
      }
    const added = p50.there.map((v, i) => v - p50.here[i]);
    rows.push({ part: "cluster", name: `${name}: p50 a node adds over mTLS`, ours: median(added), peer: null, unit: "us", ratio: null, roofline: null,
      target: "< 150", met: median(added) < 150, ours_spread: spread(added), here_p50: median(p50.here), there_p50: median(p50.there),
      here_p99: median(p99.here), there_p99: median(p99.there) });
  }
  return rows;
}

// kill -9 of the node under a stream: the longest pause between two pieces of the text.
async function measureKill(site) {
  const body = { model: "reply", prompt: "ask: what is the weather", max_tokens: 400, ignore_eos: true, temperature: 0, stream: true };
  const plain = (text) => [...text.matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]).join("");
  const want = plain((await site.there.until("/v1/completions", body)).text);
  let last = 0n, pause = 0, n = 0;
  const got = await site.there.post("/v1/completions", body, (res) => {
    const now = process.hrtime.bigint();
    if (n++ === 3) site.nodes[res.headers["x-shoal-node"]].signal("SIGKILL");
    if (n > 4) pause = Math.max(pause, Number(now - last) / 1e6);
    last = now;
  });
  return [{ part: "cluster", name: "kill -9 under a stream: longest pause", ours: pause, peer: null, unit: "ms", ratio: null, roofline: null,
    target: "< 500", met: pause < 500 && plain(got.text) === want, same_text: plain(got.text) === want }];
}

(async () => {
  const rounds = Number(process.argv[2] || 5), dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  const site = await openSite(dir);
  const rows = await measureWay(site, rounds);
  rows.push(...await measureKill(site));
  await Promise.all(site.all.map((s) => s.stop()));
  rows.push(...measurePlanner(rounds));
  printTable(rows);
  writeRows("cluster", rows, { peer: "none", time: "planner: processor time of one thread" });
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
