// The cluster: bench/run cluster [ROUNDS].  The hop to a node over mTLS compared with the same model in the gateway's own
// process, requests per second with one to eight nodes, what a client sees when a node is killed, and the placement planner.
"use strict";
const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, Server, median, spread, printTable, writeRows } = require("./lib.js");

const SHOAL = path.join(ROOT, "build/shoal");
const TURNS = 20, REQUESTS = 200, WARMUP = 20; // for the hop to a node: short turns, so that a change of the machine's speed affects both sides
const SCORE = ["/v1/score", { model: "anomaly", input: [1, 2, 3] }]; // takes next to no time in the model
const REPLICAS = [1, 2, 4, 8], CLIENTS = 32, SECONDS = 2;

const SIZES = [[100, 20], [1000, 50], [10000, 50], [10000, 200]];
const LIMIT_MS = 1000; // for the largest shoal

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

// ---- a gateway and its nodes ----

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

const MODELS = ["-m", `anomaly=${path.join(ROOT, "models/anomaly")}`, "-m", `reply=${path.join(ROOT, "models/reply.gguf")}`];
const nodeName = (i) => `node${i + 1}`;

function makeCertificates(dir) {
  const ca = (...args) => execFileSync(SHOAL, ["ca", ...args], { cwd: dir, stdio: "ignore" });
  ca("init");
  for (let i = 0; i < Math.max(...REPLICAS); i++) ca("issue", nodeName(i), "--role", "node", "--host", "127.0.0.1");
  ca("issue", "gw", "--role", "gateway");
}

// A gateway and n nodes with certificates.
async function openShoal(dir, n, models) {
  const certs = (name) => ["--certs", path.join(dir, "ca/members", name)];
  const nodes = {}, addresses = [], config = path.join(dir, "node.yaml");
  fs.writeFileSync(config, "cache: {bytes: 0}\n"); // a stream from the prompt cache is over before it can be killed
  for (let i = 0; i < n; i++) {
    const name = nodeName(i);
    nodes[name] = new Server(name, [SHOAL, "node", "--config", config, "--listen", "127.0.0.1:0", ...certs(name), ...models]);
    let out = "";
    const address = new Promise((resolve) => nodes[name].proc.stdout.on("data", (d) => {
      out += d;
      const m = /other members on (\S+)/.exec(out);
      if (m) resolve(m[1]);
    }));
    addresses.push("--node", await nodes[name].within(60000, "listening", address));
  }
  const gw = new Server("gateway", [SHOAL, "gateway", "--listen", "127.0.0.1:0", ...certs("gw"), ...addresses]);
  return { nodes, gw, url: await gw.listening(), all: [gw, ...Object.values(nodes)] };
}

// ---- the hop to a node ----

// Sequential requests from a cheap client: the machine is as small as those that run Shoal, and a client that keeps a
// core busy would add to the measured time.
function times(url, where, bodies) {
  const r = JSON.parse(execFileSync(path.join(ROOT, "build/bench/bench_http_times"), [new URL(url).port, where, String(WARMUP), bodies], { encoding: "utf8" }));
  return { p50: r.p50_ms * 1000, p99: r.p99_ms * 1000 };
}

// The gateway with one node and a server with the same models, in turns: the difference is the cost of the gateway, TLS and the node.
async function measureWay(dir, rounds) {
  const here = new Server("serve", [SHOAL, "serve", "--listen", "127.0.0.1:0", ...MODELS]);
  const site = await openShoal(dir, 1, MODELS);
  const url = { here: await here.listening(), there: site.url };
  const token = ["/v1/completions", { model: "reply", prompt: [1], max_tokens: 1, temperature: 1, top_k: 1 }];
  const rows = [];
  for (const [name, [where, body]] of [["score", SCORE], ["one token", token]]) {
    const bodies = path.join(dir, "bodies");
    fs.writeFileSync(bodies, `${JSON.stringify(body)}\n`.repeat(WARMUP + REQUESTS));
    for (const side of ["here", "there"]) await new Client(url[side]).until(where, body); // loads the model
    const got = { here: [], there: [] };
    for (let r = 0; r < rounds * TURNS; r++)
      for (const side of r % 2 ? ["there", "here"] : ["here", "there"]) got[side].push(times(url[side], where, bodies));
    const of = (side, what) => median(got[side].map((t) => t[what]));
    const added = got.there.map((t, i) => t.p50 - got.here[i].p50);
    rows.push({ part: "cluster", name: `${name}: p50 a node adds over mTLS`, ours: median(added), peer: null, unit: "us", ratio: null, roofline: null,
      target: "< 150", met: median(added) < 150, ours_spread: spread(added), here_p50: of("here", "p50"), there_p50: of("there", "p50"),
      here_p99: of("here", "p99"), there_p99: of("there", "p99") });
  }
  await Promise.all([here, ...site.all].map((s) => s.stop()));
  return rows;
}

// wrk's own output is for humans; this line is for us.
const WRK = `wrk.method = "POST"
wrk.body = '${JSON.stringify(SCORE[1])}'
done = function(s, latency)
  local e = s.errors
  io.write(string.format("RESULT {\\"requests\\":%d,\\"us\\":%d,\\"p50\\":%.1f,\\"p99\\":%.1f,\\"failed\\":%d}\\n", s.requests, s.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end\n`;

function load(url, script) {
  const out = execFileSync("wrk", ["-t1", `-c${CLIENTS}`, `-d${SECONDS}s`, "--timeout", "30s", "-s", script, url + SCORE[0]], { encoding: "utf8" });
  const r = JSON.parse(/^RESULT (\{.*\})$/m.exec(out)[1]);
  if (r.failed > 0 || !(r.requests > 0)) throw new Error(`${r.failed} failed, ${r.requests} answered\n${out}`);
  return r;
}

async function ready(url, n) {
  for (let i = 0; i < 600; i++) {
    const text = await fetch(`${url}/metrics`).then((r) => r.text());
    if (Number(/^shoal_nodes\{state="ready"\} (\d+)/m.exec(text)?.[1]) === n) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not all of ${n} nodes are ready`);
}

// Requests per second through one gateway, as almost idle nodes are added.
async function measureReplicas(dir, rounds) {
  const script = path.join(dir, "score.lua"), rows = [];
  fs.writeFileSync(script, WRK);
  for (const n of REPLICAS) {
    const site = await openShoal(dir, n, MODELS.slice(0, 2));
    await ready(site.url, n);
    load(site.url, script); // loads the models
    const runs = Array.from({ length: rounds }, () => load(site.url, script)), rates = runs.map((r) => r.requests * 1e6 / r.us);
    rows.push({ part: "cluster", name: `score: requests per second, ${n} replica${n > 1 ? "s" : ""}`, ours: median(rates), peer: null, unit: "req/s",
      ratio: null, roofline: null, target: null, met: null, ours_spread: spread(rates), clients: CLIENTS, p50_us: median(runs.map((r) => r.p50)),
      p99_us: median(runs.map((r) => r.p99)), of_one: rows.length ? median(rates) / rows[0].ours : 1 });
    await Promise.all(site.all.map((s) => s.stop()));
  }
  return rows;
}

// kill -9 of the node that is streaming: the longest pause between two pieces of the text.
async function measureKill(dir) {
  const site = await openShoal(dir, 2, MODELS), client = new Client(site.url);
  const body = { model: "reply", prompt: "ask: what is the weather", max_tokens: 400, ignore_eos: true, temperature: 0, stream: true };
  const plain = (text) => [...text.matchAll(/"text":"((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]).join("");
  const want = plain((await client.until("/v1/completions", body)).text);
  let last = 0n, pause = 0, n = 0;
  const got = await client.post("/v1/completions", body, (res) => {
    const now = process.hrtime.bigint();
    if (n++ === 3) site.nodes[res.headers["x-shoal-node"]].signal("SIGKILL");
    if (n > 4) pause = Math.max(pause, Number(now - last) / 1e6);
    last = now;
  });
  await Promise.all(site.all.map((s) => s.stop()));
  return [{ part: "cluster", name: "kill -9 under a stream: longest pause", ours: pause, peer: null, unit: "ms", ratio: null, roofline: null,
    target: "< 500", met: pause < 500 && plain(got.text) === want, same_text: plain(got.text) === want }];
}

(async () => {
  const rounds = Number(process.argv[2] || 5), dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  makeCertificates(dir);
  const rows = await measureWay(dir, rounds);
  rows.push(...await measureKill(dir));
  rows.push(...await measureReplicas(dir, rounds));
  rows.push(...measurePlanner(rounds));
  printTable(rows);
  writeRows("cluster", rows, { peer: "none", time: "planner: processor time of one thread" });
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
