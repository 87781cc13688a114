// Goodput under overload: answers that are complete within their budget, at 1, 2, 4 and 8 times a server's capacity.
// Ours beside llama.cpp's llama-server on the same file; then ours alone beside other programs that compute. See README.md.
"use strict";
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { execFileSync, spawn } = require("child_process");
const { ROOT, Server, modelFile, median, printTable, writeRows } = require("./lib.js");

const LOADS = [1, 2, 4, 8], NEIGHBOURS = [1, 2, 4], PLACES = 8;
const USAGE = `usage: bench/run overload [--shape NAME] [--seconds S] [--rounds N] [--out N] [--peer 0]
  --shape NAME  smol135m (default), s15m, ...: random weights of that shape, q8_0
  --seconds S   length of one run at one load (20)
  --rounds N    rounds; medians are reported (3)
  --out N       tokens of an answer (32)
  --peer 0      ours alone
  --loads 0     only the rows with neighbours`;

function readArgs(argv) {
  const o = { shape: "smol135m", seconds: 20, rounds: 3, out: 32, peer: 1, loads: 1 };
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, ""), value = argv[i + 1];
    if (name === "help") { console.log(USAGE); process.exit(0); }
    if (!(name in o) || value === undefined) throw new Error(`${argv[i]} is unknown or has no value\n${USAGE}`);
    o[name] = name === "shape" ? value : Number(value);
  }
  return o;
}

const o = readArgs(process.argv.slice(2));
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
process.on("exit", () => fs.rmSync(tmp, { recursive: true, force: true }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (text) => process.stderr.write(`${text}\n`);

async function freePort() {
  const s = net.createServer();
  await new Promise((resolve) => s.listen(0, "127.0.0.1", resolve));
  const { port } = s.address();
  await new Promise((resolve) => s.close(resolve));
  return port;
}

// ---- the clients ----

let nRuns = 0; // @: the number of the request within its run; together with the run's number it makes each prompt unique for caches
const BODY = (side) => JSON.stringify(side.body(`@ of ${nRuns++} one two three four five six seven eight nine ten`));
const WHOLE = (side) => `"${side.tokens}":${o.out}`;

// Runs bench_overload_load and returns its figures.
async function load(side, { clients = 0, rate = 0, seconds, budget = 0 }) {
  const argv = [side.port, side.path, budget ? side.budget(budget) : "", BODY(side), WHOLE(side), clients, rate, seconds, budget].map(String);
  const proc = spawn(path.join(ROOT, "build/bench/bench_overload_load"), argv, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  proc.stdout.on("data", (d) => { text += d; });
  const code = await new Promise((resolve, reject) => { proc.on("close", resolve); proc.on("error", reject); });
  if (code !== 0) throw new Error(`bench_overload_load ended with ${code}`);
  return JSON.parse(text);
}

// As many clients as the server has slots, each sending sequential requests: answers per second and median time.
async function capacity(side, seconds) {
  const x = await load(side, { clients: PLACES, seconds });
  if (x.ok < x.sent) throw new Error(`${side.name}: requests without a budget: ${JSON.stringify(x)} ${side.server.errors}`);
  return { rate: x.rate, ms: x.median_ms };
}

// Requests at a fixed rate, whether or not earlier ones have been answered; how many of each outcome.  Goodput counts
// those that are complete between one budget after the beginning, when the load is steady, and the last request.
async function run(side, rate) {
  const seconds = Math.max(o.seconds, 5 * side.budgetMs / 1000);
  const { rate: goodput, ...x } = await load(side, { rate, seconds, budget: side.budgetMs });
  return { ...x, seconds, goodput };
}

// Beside n programs that compute without end: what the server can do there, then twice that with budgets.  Both are
// measured in turn, since other users of the machine come and go.
async function beside(side, n) {
  const busy = Array.from({ length: n }, () => spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" }));
  try {
    const can = await capacity(side, Math.max(5, o.seconds / 2));
    const x = await run({ ...side, budgetMs: 2 * can.ms }, 2 * can.rate);
    return { ...x, could: can.rate, budget_ms: 2 * can.ms };
  } finally {
    for (const p of busy) p.kill("SIGKILL");
  }
}

async function idle(side) { // abandoned requests have ended
  for (let i = 0; i < 3; i++) {
    const r = await fetch(side.url + side.path, { method: "POST", headers: { "content-type": "application/json" }, body: BODY(side).replaceAll("@", `idle ${i}`) });
    const text = await r.text();
    if (r.status !== 200 || !text.includes(WHOLE(side))) throw new Error(`${side.name}: ${r.status} ${text.slice(0, 500)} ${side.server.errors}`);
  }
}

// ---- the two sides ----

async function sides(file) {
  const config = path.join(tmp, "shoal.yaml");
  fs.writeFileSync(config, `models: [{name: m, path: ${file}, parallel: ${PLACES}, queue: 4096, context: 512}]\nlog_requests: false\n`);
  const list = [{ name: "ours", path: "/v1/completions",
    argv: [path.join(ROOT, "build/shoal"), "serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--config", config],
    body: (prompt) => ({ model: "m", prompt, max_tokens: o.out, ignore_eos: true, temperature: 0 }),
    budget: (ms) => `x-latency-budget-ms: ${Math.round(ms) - 5}`,
    tokens: "completion_tokens" }];
  if (!o.peer) return list;
  const port = await freePort(), program = execFileSync(path.join(ROOT, "bench/build-llama-server"), { encoding: "utf8" }).trim();
  list.push({ name: "llama-server", path: "/completion", health: "/health", port,
    argv: [path.join(ROOT, program), "-m", file, "-np", String(PLACES), "-c", String(512 * PLACES), "-t", String(os.availableParallelism()),
      "--host", "127.0.0.1", "--port", String(port)],
    body: (prompt) => ({ prompt, n_predict: o.out, ignore_eos: true, temperature: 0, cache_prompt: false }),
    budget: () => "", // it has no deadlines: its clients disconnect when their budget runs out
    tokens: "tokens_predicted" });
  return list;
}

async function startSide(side) {
  side.server = new Server(side.name, side.argv);
  if (side.health) {
    side.url = `http://127.0.0.1:${side.port}`;
    side.server.proc.stdout.resume();
    const healthy = async () => {
      while (!await fetch(side.url + side.health).then((r) => r.status === 200).catch(() => false)) await sleep(100);
    };
    await side.server.within(180000, "its start", healthy());
  } else {
    side.url = (await side.server.listening()).replace(/\/$/, "");
    side.port = new URL(side.url).port;
  }
  await idle(side);
}

// llama.cpp's AMX code dies with SIGILL in some virtual machines that report AMX; disabling it selects the next best.
function withoutAmx(side, e) {
  const lib = path.join(path.dirname(side.argv[0]), "libggml-cpu-sapphirerapids.so");
  if (!/SIGILL/.test(e.message) || !fs.existsSync(lib)) return false;
  fs.renameSync(lib, `${lib}.off`);
  say(`${side.name} ends with SIGILL: started again without its AMX library`);
  return true;
}

(async () => {
  const file = modelFile(o.shape, "q8_0"), list = await sides(file);
  const only = (side) => { for (const s of list) if (s.server) s.server.signal(s === side ? "SIGCONT" : "SIGSTOP"); };
  for (const side of list) {
    only(null);
    await startSide(side).catch((e) => (withoutAmx(side, e) ? startSide(side) : Promise.reject(e)));
  }
  for (const side of list) {
    only(side);
    Object.assign(side, await capacity(side, Math.max(5, o.seconds / 2)), { got: {} });
    side.budgetMs = 2 * side.ms;
    say(`${side.name}: ${side.rate.toFixed(1)} answers/s with ${PLACES} clients, ${side.ms.toFixed(0)} ms each; budget ${side.budgetMs.toFixed(0)} ms`);
  }
  for (let r = 0; o.loads && r < o.rounds; r++)
    for (const load of LOADS)
      for (const side of r % 2 ? [...list].reverse() : list) {
        only(side);
        const x = await run(side, load * side.rate);
        (side.got[load] ??= []).push(x);
        say(`round ${r + 1}, ${load} times, ${side.name}: ${x.goodput.toFixed(1)} in time/s; of ${x.sent}: ok ${x.ok}, late ${x.late}, refused ${x.refused}, failed ${x.failed}; the clients took ${(x.cpu_s / x.seconds).toFixed(2)} of a core`);
        await idle(side);
      }
  only(list[0]);
  const near = Object.fromEntries(NEIGHBOURS.map((n) => [n, []]));
  for (let r = 0; r < o.rounds; r++)
    for (const n of NEIGHBOURS) {
      const x = await beside(list[0], n);
      near[n].push(x);
      say(`round ${r + 1}, ${n} neighbours: ${x.goodput.toFixed(1)} in time/s of ${x.could.toFixed(1)}, budget ${x.budget_ms.toFixed(0)} ms; of ${x.sent}: ok ${x.ok}, late ${x.late}, refused ${x.refused}, failed ${x.failed}`);
      await idle(list[0]);
    }
  const loads = o.loads ? LOADS : [];
  for (const side of list) {
    side.good = Object.fromEntries(loads.map((l) => [l, median(side.got[l].map((x) => x.goodput))]));
    side.best = Math.max(...Object.values(side.good));
    await side.server.stop();
  }
  const [ours, peer] = list;
  const rows = loads.map((l) => ({ part: "overload", name: `${o.shape}, ${l} times capacity`, ours: ours.good[l], peer: peer ? peer.good[l] : null,
    unit: "in time/s", ratio: peer && peer.good[l] > 0 ? ours.good[l] / peer.good[l] : null, roofline: null, target: ">= 90 % of best",
    met: ours.good[l] >= 0.9 * Math.min(ours.best, l * ours.rate), // no more than requested
    share: ours.good[l] / ours.best, peer_share: peer ? peer.good[l] / peer.best : null,
    budget_ms: ours.budgetMs, peer_budget_ms: peer ? peer.budgetMs : null, runs: ours.got[l], peer_runs: peer ? peer.got[l] : null }));
  const beside_rows = NEIGHBOURS.map((n) => {
    const good = median(near[n].map((x) => x.goodput)), share = median(near[n].map((x) => x.goodput / x.could));
    return { part: "overload", name: `${o.shape}, 2 times, ${n} neighbours`, ours: good, peer: null, unit: "in time/s", ratio: null,
      roofline: null, target: ">= 85 % of possible", met: share >= 0.85, share, runs: near[n] };
  });
  printTable([...rows, ...beside_rows]);
  for (const r of beside_rows) console.log(`${r.name}: ${(100 * r.share).toFixed(0)} % of what could be served in time`);
  for (const r of rows)
    console.log(`${r.name}: ours ${(100 * r.share).toFixed(0)} % of its best${peer ? `, llama-server ${(100 * r.peer_share).toFixed(0)} % of its own` : ""}`);
  writeRows("overload", [...rows, ...beside_rows], { seconds: o.seconds, rounds: o.rounds, out: o.out,
    capacity: Object.fromEntries(list.map((s) => [s.name, s.rate])) });
  process.exit(0);
})().catch((e) => { console.error(e.stack || e.message); process.exit(1); });
