// What a second node brings: bench/run second [ROUNDS].  Two nodes with one thread each, pinned to a core of their own; one gateway knows
// the first of them, another one both.  The same clients ask them in turns, so that a change of the machine's speed affects both: tokens
// per second.  Gateways and clients run on the second core, where with one node nothing else runs.
"use strict";
const fs = require("fs");
const http = require("http");
const os = require("os");
const path = require("path");
const { ROOT, Server, median, spread, printTable, writeRows } = require("./lib.js");

const SHOAL = path.join(ROOT, "build/shoal");
const ROUNDS = Number(process.argv[2] || 10), SECONDS = 3, CLIENTS = 24, TOKENS = 100;
const [FIRST, SECOND] = ["0", "1"]; // cores
const WANTED = 1.8; // times the tokens of one node

const pinned = (core, argv) => ["taskset", "-c", core, ...argv];

async function openNode(dir, core) {
  const sock = `unix:${path.join(dir, `node${core}.sock`)}`, config = path.join(dir, "node.yaml");
  fs.writeFileSync(config, `cache: {bytes: 0}\nmodels:\n  - {name: reply, path: "${path.join(ROOT, "models/reply.gguf")}"}\n`);
  const s = new Server(`node${core}`, pinned(core, [SHOAL, "node", "--config", config, "--name", `node${core}`, "--threads", "1", "--listen", sock]));
  let out = "";
  await s.within(60000, "listening", new Promise((resolve) => s.proc.stdout.on("data", (d) => { out += d; if (/models:/.test(out)) resolve(); })));
  return Object.assign(s, { sock });
}

async function openGateway(nodes) {
  const s = new Server("gateway", pinned(SECOND, [SHOAL, "gateway", "--name", `gateway${nodes.length}`, "--threads", "1", "--listen", "127.0.0.1:0",
    ...nodes.flatMap((n) => ["--node", n.sock])]));
  await s.listening();
  for (let i = 0; i < 600; i++) {
    const m = await fetch(`${s.url}/metrics`).then((r) => r.text());
    if (Number(/^shoal_nodes\{state="ready"\} (\d+)/m.exec(m)?.[1]) === nodes.length) return s;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not all of ${nodes.length} nodes are ready`);
}

// The whole answer at once: a client that reads a stream would need a part of the second core.
function ask(agent, url, seed) {
  const body = JSON.stringify({ model: "reply", prompt: `question ${seed}: what is`, max_tokens: TOKENS, ignore_eos: true, temperature: 0 });
  return new Promise((resolve, reject) => {
    const req = http.request(`${url}/v1/completions`, { method: "POST", agent, headers: { "content-length": Buffer.byteLength(body) } }, (res) => {
      let got = "";
      res.on("data", (d) => { got += d; });
      res.on("end", () => (res.statusCode === 200 ? resolve({ node: res.headers["x-shoal-node"], tokens: JSON.parse(got).usage.completion_tokens })
        : reject(new Error(`status ${res.statusCode}: ${got}`))));
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(body);
  });
}

// Processor time so far, in seconds.
function cpu(pid) {
  const words = fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(words[11]) + Number(words[12])) / 100; // in hundredths on Linux
}

let seed = 0;

// Tokens per second, until the last answer of those that were asked for in time.
async function load(url, seconds) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS }), by = {}, began = performance.now();
  let tokens = 0, last = began;
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    while (performance.now() - began < seconds * 1000) {
      const got = await ask(agent, url, seed++);
      tokens += got.tokens;
      by[got.node] = (by[got.node] ?? 0) + 1;
      last = performance.now();
    }
  }));
  agent.destroy();
  return { rate: tokens * 1000 / (last - began), by };
}

(async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  if (os.cpus().length < 2) throw new Error("this needs two cores");
  const nodes = [await openNode(dir, FIRST), await openNode(dir, SECOND)];
  const one = await openGateway(nodes.slice(0, 1)), two = await openGateway(nodes), busy = os.loadavg()[0];
  for (const g of [one, two]) await load(g.url, 1); // loads the model, and measures the nodes
  const rates = { one: [], two: [] }, shares = [], used = { one: [0, 0, 0, 0], two: [0, 0, 0, 0] };
  const pids = (side) => [...nodes.map((n) => n.proc.pid), (side === "one" ? one : two).proc.pid, process.pid]; // taskset becomes the program
  for (let i = 0; i < ROUNDS; i++)
    for (const side of i % 2 ? ["two", "one"] : ["one", "two"]) {
      const before = pids(side).map(cpu), r = await load((side === "one" ? one : two).url, SECONDS);
      pids(side).forEach((pid, k) => { used[side][k] += cpu(pid) - before[k]; });
      rates[side].push(r.rate);
      if (side === "two") shares.push(r.by);
    }
  await Promise.all([one, two, ...nodes].map((s) => s.stop()));
  const ratios = rates.two.map((r, i) => r / rates.one[i]), base = { part: "second", peer: null, ratio: null, roofline: null, target: null, met: null };
  const rows = [{ ...base, name: "one node", ours: median(rates.one), unit: "tokens/s", ours_spread: spread(rates.one) },
    { ...base, name: "two nodes", ours: median(rates.two), unit: "tokens/s", ours_spread: spread(rates.two), answers_by_node: shares },
    { ...base, name: "two nodes, times one", ours: median(ratios), unit: "x", target: `>= ${WANTED}`, met: median(ratios) >= WANTED,
      ours_best: Math.max(...ratios), ours_spread: spread(ratios), load_before: busy, cpu_one: used.one, cpu_two: used.two }];
  printTable(rows);
  for (const side of ["one", "two"])
    console.log(`processor time with ${side}: first node, second node, gateway, clients: ${used[side].map((s) => `${s.toFixed(1)} s`).join(", ")}`);
  console.log(`load of the machine before: ${busy.toFixed(1)}; rounds: ${ratios.map((r) => r.toFixed(2)).join(" ")}`);
  writeRows("second", rows, { peer: "none", time: "until the client has the whole answer" });
})().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
