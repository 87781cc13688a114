// The gateway's speed.  Overhead: requests with almost no work behind them, compared with nginx serving a static page.
// Stream: 20 tokens in, 16 out, compared with npm node-llama-cpp behind a plain Node server.  See README.md.
"use strict";
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, Server, modelFile, median, spread, printTable, writeRows } = require("./lib.js");

const PEER = "3.22.1", IN = 20, OUT = 16, CLIENTS = [1, 8];
const USAGE = `usage: bench/run gateway [--only overhead|stream] [--rounds N] [--seconds S] [--shapes LIST] [--starts N] [--tries N]
  --rounds N     number of rounds; medians are reported (5)
  --seconds S    length of one run of wrk (2; stream: twice that)
  --shapes LIST  any of s15m,smol135m
  --starts N     number of starts; the median time is reported (5)
  --tries N      overhead: repeat a run disturbed by other processes up to N times (5)`;

function readArgs(argv) {
  const o = { only: null, rounds: 5, seconds: 2, shapes: ["s15m", "smol135m"], starts: 5, tries: 5 };
  for (let i = 0; i < argv.length; i++) {
    const name = argv[i].replace(/^--/, ""), value = argv[i + 1];
    if (name === "help") { console.log(USAGE); process.exit(0); }
    if (!(name in o) || value === undefined) throw new Error(`${argv[i]} is unknown or has no value\n${USAGE}`);
    o[name] = name === "only" ? value : name === "shapes" ? value.split(",") : Number(value);
    i++;
  }
  return o;
}

const o = readArgs(process.argv.slice(2));
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
process.on("exit", () => fs.rmSync(tmp, { recursive: true, force: true }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (text) => process.stderr.write(`${text}\n`);
const milli = 1000;

// ---- one run of wrk ----

// wrk's own output is for humans; this line is for us.
const DONE = `done = function(s, latency)
  local e = s.errors
  io.write(string.format("RESULT {\\"requests\\":%d,\\"us\\":%d,\\"p50\\":%.1f,\\"p99\\":%.1f,\\"failed\\":%d}\\n", s.requests, s.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end\n`;

const failures = [];
let scripts = 0;
function luaFile(text) {
  const file = path.join(tmp, `run${scripts++}.lua`);
  fs.writeFileSync(file, text + DONE);
  return file;
}

// Times in microseconds, rate in requests per second.  An error contains wrk's output.
async function wrk(url, clients, seconds, script, cpu = []) {
  const argv = [...cpu, "wrk", "-t1", `-c${clients}`, `-d${seconds}s`, "--timeout", "30s", "-s", script, url];
  const run = new Server("wrk", argv);
  let out = "";
  run.proc.stdout.on("data", (d) => { out += d; });
  const why = await run.within((seconds + 40) * 1000, "its result", run.ended)
    .catch((e) => e.message);
  const line = /^RESULT (\{.*\})$/m.exec(out);
  let r = null;
  try { r = JSON.parse(line[1]); } catch { /* reported below */ }
  if (!r || r.failed > 0 || !(r.requests > 0))
    throw new Error(`${argv.join(" ")}: ${r ? `${r.failed} failed, ${r.requests} answered` : "no result"}\n${out}${why}`);
  return { p50: r.p50, p99: r.p99, rate: r.requests * 1e6 / r.us, requests: r.requests };
}

// ---- other processes ----

const ticks = (pid) => { // user time of a process and of its exited children
  const f = fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return Number(f[11]) + Number(f[13]);
};

// User time of all processes, and of ours.  wrk counts as a child of this process once it has exited.
function userTicks(servers) {
  const [, user, nice] = fs.readFileSync("/proc/stat", "utf8").split(/\s+/).map(Number);
  return { all: user + nice, ours: [process.pid, ...servers.map((s) => s.proc.pid)].reduce((sum, pid) => sum + ticks(pid), 0) };
}

// Repeats a run until other processes used less than a tenth of a core; otherwise the least disturbed try counts.
async function undisturbed(servers, run) {
  let best = null;
  for (let i = 0; i < o.tries; i++) {
    const before = userTicks(servers), began = Date.now(), result = await run(), after = userTicks(servers);
    result.others = ((after.all - before.all) - (after.ours - before.ours)) * 10 / (Date.now() - began); // of one core
    if (!best || result.others < best.others) best = result;
    if (result.others < 0.1) break;
    await sleep(500);
  }
  return best;
}

// ---- servers ----

async function freePort() {
  const s = net.createServer();
  await new Promise((resolve) => s.listen(0, "127.0.0.1", resolve));
  const { port } = s.address();
  await new Promise((resolve) => s.close(resolve));
  return port;
}

// Waits until the URL answers with 200.
async function ready(server, url, body) {
  const ask = async () => {
    for (;;) {
      try {
        const r = await fetch(url, body ? { method: "POST", body: JSON.stringify(body) } : {});
        const text = await r.text();
        if (r.status === 200) return text;
        if (r.status < 500) throw new Error(`${url}: ${r.status} ${text}`);
      } catch (e) {
        if (!e.cause) throw e; // cause: it is not listening yet
      }
      await sleep(5);
    }
  };
  return server.within(60000, url, ask());
}

async function startNginx(cpu) {
  const port = await freePort(), conf = path.join(tmp, "nginx.conf");
  fs.writeFileSync(conf, `daemon off; master_process off; pid ${tmp}/pid; error_log stderr;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${tmp}/b; proxy_temp_path ${tmp}/p; fastcgi_temp_path ${tmp}/f;
  uwsgi_temp_path ${tmp}/u; scgi_temp_path ${tmp}/s; keepalive_requests 100000000;
  server { listen 127.0.0.1:${port}; location / { default_type text/plain; return 200 "ok\\n"; } } }\n`);
  const server = new Server("nginx", [...cpu, "nginx", "-c", conf, "-p", tmp]);
  server.url = `http://127.0.0.1:${port}/`;
  await ready(server, server.url);
  return server;
}

const shoalArgv = (...models) => [path.join(ROOT, "build/shoal"), "serve", "--listen", "127.0.0.1:0", "--log-level", "error",
  ...models.flatMap((m) => ["-m", m])];

async function startShoal(cpu, ...models) {
  const server = new Server("shoal", [...cpu, ...shoalArgv(...models)]);
  await server.listening();
  await ready(server, `${server.url}/readyz`);
  return server;
}

// ---- overhead ----

// A trivial model: one tree of two leaves over one number, in LightGBM's format.
function writeStump() {
  const file = path.join(tmp, "stump.txt"), tree = `Tree=0
num_leaves=2
num_cat=0
split_feature=0
split_gain=1
threshold=0.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=0.25 0.75
leaf_weight=1 1
leaf_count=1 1
internal_value=0.5
internal_weight=2
internal_count=2
is_linear=0
shrinkage=1


`;
  fs.writeFileSync(file, `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=0
objective=regression
feature_names=x
feature_infos=[0:1]
tree_sizes=${tree.length}

${tree}end of trees
`);
  return file;
}

const post = (body) => luaFile(`wrk.method = "POST"; wrk.body = ${JSON.stringify(JSON.stringify(body))}\n`);

async function overhead(rows) {
  // server and client have separate cores, so that the rate is that of the server
  const cores = os.availableParallelism(), on = (c) => (cores > 1 ? ["taskset", "-c", String(c)] : []);
  const nginx = await startNginx(on(1));
  const shoal = await startShoal(on(1), `m=${path.join(ROOT, "tests/data/refs/phi2-qkv.gguf")}`,
    `s=${writeStump()}`);
  const get = luaFile("");
  const score = { model: "s", input: [1] }, chat = { model: "m", messages: [{ role: "user", content: "hello there" }], max_tokens: 8, temperature: 0 };
  const text = { model: "m", prompt: [1], max_tokens: 1, temperature: 1, top_k: 1 }; // sampled: nothing is cached
  const what = { nginx: [nginx.url, get], request: [`${shoal.url}/healthz`, get], score: [`${shoal.url}/v1/score`, post(score)],
    token: [`${shoal.url}/v1/completions`, post(text)], hit: [`${shoal.url}/v1/chat/completions`, post(chat)] };
  await ready(shoal, what.score[0], score);
  await ready(shoal, what.hit[0], chat);
  const got = {};
  for (let r = 0; r < o.rounds; r++)
    for (const clients of CLIENTS)
      for (const [name, [url, script]] of Object.entries(what)) {
        say(`overhead: ${name}, ${clients} clients`);
        (got[`${name}${clients}`] ??= []).push(await undisturbed([nginx, shoal], () => wrk(url, clients, o.seconds, script, on(0))));
      }
  await nginx.stop();
  await shoal.stop();
  const row = (name, key, field, target, judge) => {
    const of = (k) => got[k].map((x) => x[field]), peerKey = key.replace(/[a-z]+/, "nginx");
    const ours = median(of(key)), peer = median(of(peerKey)), ratio = field === "rate" ? ours / peer : peer / ours;
    rows.push({ part: "gateway", name: `gateway: ${name}`, ours, peer, unit: field === "rate" ? "1/s" : "us", ratio, roofline: null,
      target: target || null, met: target ? judge(ours, ratio) : null, spread: [spread(of(key)), spread(of(peerKey))],
      others: [median(got[key].map((x) => x.others)), median(got[peerKey].map((x) => x.others))] });
  };
  const of = { request: "request without a model", score: "score, one tree of two leaves", token: "one token, one-layer model", hit: "chat from the prompt cache" };
  for (const key of ["request", "score"]) {
    row(`${of[key]}, 1 client, p50`, `${key}1`, "p50", "< 60 us", (v) => v < 60);
    row(`${of[key]}, 8 clients, rate`, `${key}8`, "rate", ">= 0.6 x", (v, r) => r >= 0.6);
  }
  row(`${of.token}, 1 client, p50`, "token1", "p50", "< 60 us", (v) => v < 60);
  row(`${of.token}, 8 clients, rate`, "token8", "rate"); // a third of it is spent in the model
  row(`${of.hit}, 1 client, p50`, "hit1", "p50");
  row(`${of.hit}, 8 clients, p99`, "hit8", "p99", "< 200 us", (v) => v < 200);
  row(`${of.hit}, 8 clients, rate`, "hit8", "rate", ">= 0.5 x", (v, r) => r >= 0.5);
}

// ---- stream ----

// node-llama-cpp with its dependencies, without its install scripts and GPU libraries.
function installPeer() {
  const platform = { x64: "linux-x64", arm64: "linux-arm64" }[process.arch];
  const dir = path.join(ROOT, `.cache/npm-llama-${PEER}`);
  if (!fs.existsSync(path.join(dir, "done"))) {
    say(`fetching node-llama-cpp@${PEER}`);
    fs.mkdirSync(dir, { recursive: true });
    execFileSync("npm", ["install", "--silent", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--prefix", dir,
      `node-llama-cpp@${PEER}`, `@node-llama-cpp/${platform}@${PEER}`], { stdio: ["ignore", "ignore", "inherit"], timeout: 600000 });
    fs.writeFileSync(path.join(dir, "done"), "");
  }
  return path.join(dir, "node_modules");
}

// Makes distinct texts of exactly IN tokens, from words whose tokens were counted.
async function promptMaker(url) {
  const count = async (content) => (await (await fetch(`${url}/tokenize`, { method: "POST",
    body: JSON.stringify({ content, add_special: true }) })).json()).tokens.length;
  const random = (n) => Math.floor(Math.random() * n), seen = new Set(), words = new Map();
  const first = await count("a");
  for (let i = 0; i < 400; i++) {
    const w = Array.from({ length: 2 + i % 3 }, () => String.fromCharCode(97 + random(26))).join("");
    words.set(w, await count(`a ${w}`) - first);
  }
  const make = () => {
    for (;;) {
      let text = "a", left = IN - first;
      while (left > 0) {
        const fit = [...words.keys()].slice(random(350)).find((w) => words.get(w) <= left);
        if (!fit) break;
        text += ` ${fit}`;
        left -= words.get(fit);
      }
      if (left > 0 || seen.has(text)) continue;
      seen.add(text);
      return text;
    }
  };
  for (let i = 0; i < 100; i++) {
    const text = make(), n = await count(text);
    if (n !== IN) throw new Error(`"${text}" has ${n} tokens, not ${IN}`);
  }
  return make;
}

const streamBody = (prompt) => ({ prompt, max_tokens: OUT, temperature: 0, stream: true, ignore_eos: true, stream_options: { include_usage: true } });

// Checks the number of tokens that a whole response reports, and the number of events.
function checkAnswer(name, text) {
  const events = text.split("\n\n").filter((x) => x.startsWith("data: {")).map((x) => JSON.parse(x.slice(6)));
  const usage = events.map((e) => e.usage).find((u) => u);
  if (!usage || usage.prompt_tokens !== IN || usage.completion_tokens !== OUT || !text.includes("data: [DONE]"))
    throw new Error(`${name}: expected ${IN} tokens in and ${OUT} out: ${text.slice(0, 2000)}`);
}

function sides(file, modules) {
  const peer = (threads) => ({ name: `peer, ${threads} thread${threads > 1 ? "s" : ""}`, threads, path: "",
    argv: [process.execPath, path.join(ROOT, "bench/peer_http.mjs"), modules, file, String(threads), "8"] });
  const list = [{ name: "ours", path: "/v1/completions", argv: shoalArgv(`m=${file}`) }];
  for (const t of os.availableParallelism() > 1 ? [1, os.availableParallelism()] : [1]) list.push(peer(t));
  return list;
}

// Times from process start to the first token; the first start of each warms caches and is not counted.
async function startTimes(list) {
  const ms = {};
  for (let i = -1; i < o.starts; i++)
    for (const side of list) {
      const server = new Server(side.name, side.argv);
      const url = await server.listening();
      await ready(server, url.replace(/\/$/, "") + (side.path || "/"), { ...streamBody("abc"), max_tokens: 1 });
      if (i >= 0) (ms[side.name] ??= []).push(server.msSinceStart());
      await server.stop();
    }
  return ms;
}

async function stream(rows, shape, modules) {
  const file = modelFile(shape, "q8_0");
  const list = sides(file, modules), got = {};
  say(`stream: ${shape}, starts`);
  const starts = await startTimes(list);
  let make = null;
  for (const side of list) {
    side.server = new Server(side.name, side.argv);
    side.url = (await side.server.listening()).replace(/\/$/, "") + (side.path || "/");
    side.rate = {};
    make ??= await promptMaker(side.server.url); // the first side is ours
    for (let i = 0; i < 3; i++) checkAnswer(side.name, await ready(side.server, side.url, streamBody(make())));
  }
  const only = (side) => { for (const s of list) s.server.signal(s === side ? "SIGCONT" : "SIGSTOP"); };
  for (let r = 0; r < o.rounds; r++)
    for (const clients of CLIENTS)
      for (const side of r % 2 ? [...list].reverse() : list) {
        const seconds = 2 * o.seconds;
        const n = Math.ceil(seconds * (side.rate[clients] || 250 * clients) * 1.5) + 64, bodies = path.join(tmp, "bodies");
        fs.writeFileSync(bodies, Array.from({ length: n }, () => JSON.stringify(streamBody(make())) + "\n").join(""));
        const script = luaFile(`wrk.method = "POST"; local lines = io.lines("${bodies}")
request = function() return wrk.format(nil, nil, nil, lines() or "no prompts left") end\n`);
        only(side); // stop the other servers: their threads would spin for work
        say(`stream: ${shape}, ${side.name}, ${clients} clients`);
        const samples = (got[`${side.name} ${clients}`] ??= []);
        try {
          samples.push(await wrk(side.url, clients, seconds, script));
          side.rate[clients] = Math.max(side.rate[clients] || 0, samples[samples.length - 1].rate);
        } catch (e) { // while other processes are busy, the peer's threads can wait for each other for seconds
          if (side.name === "ours") throw e;
          failures.push(`${shape}, ${side.name}, ${clients} clients: ${e.message.split("\n")[0]}`);
        }
        fs.rmSync(script);
      }
  only(null);
  const rss = {};
  for (const side of list) {
    rss[side.name] = side.server.rssMib();
    await side.server.stop();
  }
  const peers = list.slice(1).map((s) => s.name);
  const add = (name, unit, of, target, judge, more) => {
    const value = (k) => median(of(k)) ?? Infinity;
    const best = peers.reduce((a, b) => (value(a) <= value(b) ? a : b)); // the peer's better thread count
    const ours = median(of("ours")), peer = median(of(best)), ratio = peer ? peer / ours : null;
    rows.push({ part: "stream", name: `${shape} q8_0 ${name}`, ours, peer, unit, ratio, roofline: null, target: target || null,
      met: target && ratio ? judge(ratio) : null, threads: [null, list.find((s) => s.name === best).threads], spread: [spread(of("ours")), spread(of(best))], ...more });
  };
  for (const clients of CLIENTS)
    for (const [field, least] of [["p50", 1.6], ["p99", 2]])
      add(`${IN} in, ${OUT} out, streamed, ${clients} client${clients > 1 ? "s" : ""}, ${field}`, "ms", (k) => got[`${k} ${clients}`].map((x) => x[field] / milli),
        `>= ${least} x`, (r) => r >= least, { requests: [got[`ours ${clients}`].map((x) => x.requests), got[`${peers[0]} ${clients}`].map((x) => x.requests)] });
  add("start to first token over HTTP", "ms", (k) => starts[k], ">= 5 x", (r) => r >= 5);
  add("resident memory after it", "MiB", (k) => [rss[k]]);
}

// Runs one half, prints its rows and replaces those in the file.
async function half(part, peer, measure) {
  const rows = [], load = os.loadavg()[0];
  await measure(rows);
  const about = { date: new Date().toISOString().slice(0, 10), cpu: os.cpus()[0].model, cores: os.availableParallelism(), load, load_after: os.loadavg()[0],
    statistic: "medians", rounds: o.rounds, ours: execFileSync(path.join(ROOT, "build/shoal"), ["--version"], { encoding: "utf8" }).trim(), peer, failures };
  console.log(`${part}: ${about.cpu}, ${about.cores} cores, load average ${load.toFixed(1)} before and ${about.load_after.toFixed(1)} after, medians of ${o.rounds} rounds`);
  const others = rows.flatMap((r) => r.others || []);
  if (others.length) console.log(`other processes used ${(median(others) * 100).toFixed(0)} % of a core in the median row, at most ${(Math.max(...others) * 100).toFixed(0)} %`);
  printTable(rows);
  writeRows(part, rows, about);
}

(async () => {
  if (o.only !== "stream") await half("gateway", "nginx with a page of 3 bytes", overhead);
  if (o.only !== "overhead")
    await half("stream", `node-llama-cpp ${PEER} behind a Node server`, async (rows) => {
      const modules = installPeer();
      for (const shape of o.shapes) await stream(rows, shape, modules);
    });
  for (const f of failures) console.error(`failed: ${f}`);
  process.exit(0);
})().catch((e) => {
  console.error(`bench/gateway.js: ${e.message}`);
  process.exit(1);
});
