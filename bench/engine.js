// The engine benchmark: ours and libllama on the same files, taking turns.  See bench/README.md.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { ROOT, CACHE, Engine, Machine, findPeer, modelFile, median, spread, withSpinners, readShape, printTable, writeRows } = require("./lib.js");

const SHAPES = ["s15m", "s110m", "smol135m", "qwen05b", "tiny1b"];
const TYPES = ["q8_0", "q4_0", "q4_k_m"];
const SMALL = ["s15m", "s110m", "smol135m"]; // up to 135 M
const MIB = 1 << 20;
const USAGE = `usage: bench/run engine [--quick] [--shapes LIST] [--types LIST] [--tests LIST] [--rounds N] [--threads LIST]
  --quick         s15m at q8_0 alone, 5 rounds
  --shapes LIST   of ${SHAPES.join(",")}
  --types LIST    of ${TYPES.join(",")},f16
  --tests LIST    of decode,prompt,seqs,noisy,load
  --rounds N      rounds that the medians are of (5)
  --threads LIST  thread counts to try (1 and all cores)
  --best          judge by the best round and the fastest step instead of medians: for a busy machine, where
                  medians show the neighbours (noisy, load: medians all the same)
  --cpu           one thread, rates by CPU time: the fair comparison on a busy machine
  --peer-both     the peer on both sides, to test the driver
  --keep-f16      keep the F16 files that the others are made from`;

function readArgs(argv) {
  const cores = os.availableParallelism();
  const o = { shapes: SHAPES, types: TYPES, tests: ["decode", "prompt", "seqs", "noisy", "load"], rounds: 5,
    threads: cores > 1 ? [1, cores] : [1] };
  for (let i = 0; i < argv.length; i++) {
    const list = () => { if (!argv[i + 1]) throw new Error(`${argv[i]} needs a value`); return argv[++i].split(","); };
    switch (argv[i]) {
      case "--help": console.log(USAGE); process.exit(0); break;
      case "--quick": o.shapes = ["s15m"]; o.types = ["q8_0"]; break;
      case "--shapes": o.shapes = list(); break;
      case "--types": o.types = list(); break;
      case "--tests": o.tests = list(); break;
      case "--rounds": o.rounds = Number(list()[0]); break;
      case "--threads": o.threads = list().map(Number); break;
      case "--peer-both": o.peerBoth = true; break;
      case "--cpu": o.cpu = true; o.threads = [1]; break;
      case "--best": o.best = true; break;
      case "--keep-f16": o.keepF16 = true; break;
      default: throw new Error(`${argv[i]} is not known`);
    }
  }
  const bad = o.shapes.find((s) => !SHAPES.includes(s)) || o.types.find((t) => ![...TYPES, "f16"].includes(t));
  if (bad) throw new Error(`${bad} is not known`);
  if (!(o.rounds >= 1) || o.threads.some((t) => !(t >= 1))) throw new Error("numbers from 1 up are needed");
  return o;
}

function say(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text) process.stderr.write(`${text}\n`);
}

// ---- programs and files ----

class Bench {
  constructor(o) {
    this.o = o;
    this.rows = [];
    this.peerArgv = findPeer();
    if (!this.peerArgv) console.error("the peer cannot be built here: ours runs against the roofline alone");
    this.oursArgv = o.peerBoth ? this.peerArgv : [path.join(ROOT, "build/shoal"), "bench", "--peer-protocol"];
    this.machine = new Machine([path.join(ROOT, "build/shoal"), "doctor", "--json"]);
    this.best = new Map(); // our best figure by name, for the targets that compare two of ours
    this.failures = [];
  }

  // The engines that can be started, ours first.
  start() {
    const list = [new Engine("ours", this.oursArgv)];
    if (this.peerArgv) list.push(new Engine("peer", this.peerArgv));
    return list;
  }

  async hello() {
    const engines = this.start();
    const about = { date: new Date().toISOString().slice(0, 10), cpu: os.cpus()[0].model, cores: os.availableParallelism(), load: os.loadavg()[0] };
    for (const e of engines) {
      try {
        const r = await e.ask("hello");
        about[e.name] = `${r.engine} ${r.version} (${r.kernels})`;
      } catch (error) {
        about[e.name] = error.message;
        if (e.name === "ours") throw error;
        console.error(`${error.message}: ours runs against the roofline alone`);
        this.peerArgv = null;
      }
      await e.close();
    }
    return about;
  }

  file(shape, type) {
    return modelFile(shape, type, this.peerArgv, say);
  }

  dropF16(shape) {
    const f16 = path.join(CACHE, `${shape}-f16.gguf`);
    if (!this.o.keepF16 && !this.o.types.includes("f16")) fs.rmSync(f16, { force: true });
  }

  add(row) {
    const r = { part: "engine", name: row.name, ours: row.ours ?? null, peer: row.peer ?? null, unit: row.unit,
      ratio: row.ratio ?? null, roofline: row.roofline ?? null, target: row.target || null, met: row.met ?? null, ...row.more };
    this.rows.push(r);
    this.best.set(r.name, r.ours);
    return r;
  }

  // Asks every engine for the same thing, `rounds` times in turn; samples by engine.
  async turns(engines, rounds, work) {
    const samples = { ours: [], peer: [] };
    for (let r = 0; r < rounds; r++) {
      const order = r % 2 ? [...engines].reverse() : engines; // neither is always first
      for (const e of order) {
        if (!e.alive) continue;
        try {
          // the other side's threads spin for its next work: half a second in llama.cpp's pool
          for (const other of engines) if (other !== e) other.pause();
          samples[e.name].push(await work(e));
        } catch (error) {
          if (!this.failures.includes(error.message)) this.failures.push(error.message);
        } finally {
          for (const other of engines) other.resume();
        }
      }
    }
    return samples;
  }

  // Samples are { rate, best }: tokens per second of the round and of its fastest step.
  summary(samples) {
    const rates = samples.map((s) => s.rate), best = Math.max(...samples.map((s) => s.best));
    return { value: this.o.best ? best : median(rates), median: median(rates), best, spread: spread(rates) };
  }

  // Loads the file into every engine; those that cannot are closed.
  async load(file, fields) {
    const engines = [];
    for (const e of this.start()) {
      try {
        await e.ask("load", { model: file, threads: Math.max(...this.o.threads), ...fields });
        engines.push(e);
      } catch (error) {
        this.failures.push(error.message);
        await e.close();
      }
    }
    return engines;
  }

  // One measure at each thread count; the row compares the best of each side.
  async atThreads(engines, warm, work) {
    const result = {};
    for (const t of this.o.threads) {
      for (const e of engines) {
        if (!e.alive) continue;
        await e.ask("threads", { n: t }).then(() => warm(e)).catch((error) => this.failures.push(error.message));
      }
      const samples = await this.turns(engines, this.o.rounds, work);
      for (const side of ["ours", "peer"]) {
        if (!samples[side].length) continue;
        const m = this.summary(samples[side]);
        m.threads = t;
        const s = (result[side] = result[side] || { all: [] });
        s.all.push(m);
        if (!s.best || m.value > s.best.value) s.best = m;
      }
    }
    return result;
  }

  addBest(name, result, limitOf, target) {
    const ours = result.ours && result.ours.best, peer = result.peer && result.peer.best;
    const ratio = ours && peer ? ours.value / peer.value : null;
    const limit = ours ? limitOf(ours.threads) : null, peerLimit = peer ? limitOf(peer.threads) : null;
    const roofline = limit ? ours.value / limit : null;
    // more than all of the limit: the machine was busy when the limit was measured, nothing can be judged
    const doubtful = roofline > 1.02;
    const t = target ? target({ ours: ours && ours.value, ratio, roofline: doubtful ? null : roofline }) : null;
    return this.add({ name, ours: ours && ours.value, peer: peer && peer.value, unit: "tok/s", ratio, roofline,
      target: t && t.text, met: t && t.met,
      more: { limit_doubtful: doubtful, threads: [ours && ours.threads, peer && peer.threads], peer_roofline: peerLimit && peer.value / peerLimit,
        median: [ours && ours.median, peer && peer.median], best: [ours && ours.best, peer && peer.best],
        spread: [ours && ours.spread, peer && peer.spread], by_threads: { ours: result.ours && result.ours.all, peer: result.peer && result.peer.all } } });
  }
}

// ---- targets ----

const atLeast = (what, min) => (v) => ({
  text: what === "roofline" ? `${Math.round(min * 100)} % of limit` : `${min}x peer`,
  met: v[what] === null || v[what] === undefined ? null : v[what] >= min,
});

function decodeTarget(shape, type) {
  if (shape === "s15m") return type === "q8_0" ? atLeast("roofline", 0.6) : null;
  const share = { q8_0: 0.88, q4_0: 0.75, q4_k_m: 0.65 }[type];
  return share ? atLeast("roofline", share) : null;
}

function promptTarget(bench, shape, type, n) {
  if (type === "q4_k_m")
    return (v) => {
      const other = bench.best.get(`${shape} q4_0 prompt ${n}`);
      return { text: "80 % of q4_0", met: other && v.ours ? v.ours >= 0.8 * other : null };
    };
  if (type !== "q8_0" && type !== "q4_0") return null;
  if (n === 32) return SMALL.includes(shape) ? atLeast("ratio", 1.4) : null;
  return shape === "s15m" ? atLeast("ratio", 1.6) : atLeast("roofline", 0.6);
}

// ---- the measures ----

async function decode(bench, e, fields) {
  const before = e.cpuMs(), r = await e.ask("decode", fields), seqs = fields.seqs || 1;
  if (bench.o.cpu) return sameRate(fields.n * seqs * 1000 / (e.cpuMs() - before));
  return { rate: r.tok_s, best: seqs * 1000 / r.step_ms_min };
}

async function prompt(bench, e, n) {
  const before = e.cpuMs(), r = await e.ask("prompt", { n });
  return sameRate(bench.o.cpu ? n * 1000 / (e.cpuMs() - before) : r.tok_s);
}

const sameRate = (rate) => ({ rate, best: rate });

async function single(bench, shape, type, file, info) {
  const wants = (t) => bench.o.tests.includes(t);
  if (!wants("decode") && !wants("prompt")) return;
  const engines = await bench.load(file, { ctx: 512 });
  const small = SMALL.includes(shape);
  if (wants("decode")) {
    say(`${shape} ${type} decode`);
    const n = small ? 64 : 32;
    const r = await bench.atThreads(engines, (e) => e.ask("decode", { n: 8 }), (e) => decode(bench, e, { n }));
    bench.addBest(`${shape} ${type} decode`, r, (t) => bench.machine.decodeLimit(info.touchedBytes, t), decodeTarget(shape, type));
  }
  for (const n of wants("prompt") ? [32, 128, 512] : []) {
    say(`${shape} ${type} prompt ${n}`);
    const r = await bench.atThreads(engines, (e) => e.ask("prompt", { n }), (e) => prompt(bench, e, n));
    bench.addBest(`${shape} ${type} prompt ${n}`, r, (t) => bench.machine.promptLimit(info.layerWeights, t), promptTarget(bench, shape, type, n));
  }
  for (const e of engines) await e.close();
}

async function many(bench, shape, type, file, info) {
  say(`${shape} ${type} 16 sequences`);
  const engines = await bench.load(file, { ctx: 128, seqs: 16 });
  const r = await bench.atThreads(engines, (e) => e.ask("decode", { n: 4, seqs: 16 }), (e) => decode(bench, e, { n: 16, seqs: 16 }));
  const limit = (t) => { // weights once for 16 tokens, or the products of 16, whichever is longer
    const bytes = bench.machine.decodeLimit(info.touchedBytes, t), ops = bench.machine.promptLimit(info.layerWeights, t);
    return bytes && ops ? Math.min(16 * bytes, ops) : null;
  };
  bench.addBest(`${shape} ${type} 16 seqs`, r, limit, atLeast("ratio", SMALL.includes(shape) ? 1.6 : 1.25));
  for (const e of engines) await e.close();
}

// Both with all cores, as a user would start them, beside n processes that spin.
async function noisy(bench, shape, type, file) {
  const threads = Math.max(...bench.o.threads);
  const engines = await bench.load(file, { ctx: 512 });
  // about a second a round, however slow the neighbours make it
  const work = async (e) => (await e.ask("decode", { n: e.steps })).tok_s;
  const size = async (e) => { e.steps = Math.max(4, Math.min(64, Math.round((await e.ask("decode", { n: 4 })).tok_s))); };
  let quiet;
  for (const n of [0, 1, 2]) {
    say(`${shape} ${type} beside ${n} busy processes`);
    const samples = await withSpinners(n, async () => {
      for (const e of engines) await size(e).catch((error) => bench.failures.push(error.message));
      return bench.turns(engines, bench.o.rounds, work);
    });
    const ours = median(samples.ours), peer = median(samples.peer), ratio = ours && peer ? ours / peer : null;
    if (n === 0) quiet = ours;
    const kept = quiet ? ours / quiet : null;
    const more = { threads: [threads, threads], spread: [spread(samples.ours), spread(samples.peer)] };
    if (n === 0) bench.add({ name: `${shape} ${type} quiet, ${threads} threads`, ours, peer, unit: "tok/s", ratio, more });
    else if (n === 1) bench.add({ name: `${shape} ${type} beside 1 busy`, ours, peer, unit: "tok/s", ratio, target: "4x peer", met: ratio && ratio >= 4, more });
    else bench.add({ name: `${shape} ${type} beside 2 busy`, ours, peer, unit: "tok/s", ratio, more });
    if (n > 0) {
      const min = n === 1 ? 0.6 : 0.35;
      bench.add({ name: `${shape} ${type} beside ${n} busy, kept`, ours: kept && kept * 100, unit: "% of quiet", target: `${min * 100} %`, met: kept && kept >= min });
    }
  }
  for (const e of engines) await e.close();
}

// Fresh processes; the first start of each is not counted: page cache and caches of ours are warm then.
async function loading(bench, shape, type, file, info) {
  say(`${shape} ${type} load`);
  const got = { ours: [], peer: [] };
  const ctx = 512, threads = Math.max(...bench.o.threads);
  for (let r = -1; r < bench.o.rounds; r++)
    for (const e of bench.start()) {
      try {
        const load = await e.ask("load", { model: file, ctx, threads });
        const first = await e.ask("first");
        await e.ask("decode", { n: 16 });
        const rss = await e.ask("rss");
        if (r >= 0) got[e.name].push({ load: load.load_ms, first: load.load_ms + first.ms, rss: rss.rss_bytes / MIB, anon: rss.anon_bytes / MIB });
      } catch (error) {
        if (!bench.failures.includes(error.message)) bench.failures.push(error.message);
      }
      await e.close();
    }
  const row = (name, key, unit, limit, more) => {
    const ours = median(got.ours.map((x) => x[key])), peer = median(got.peer.map((x) => x[key]));
    bench.add({ name: `${shape} ${type} ${name}`, ours, peer, unit, ratio: ours && peer ? peer / ours : null,
      target: limit ? `< ${Math.round(limit)} ${unit}` : null, met: limit && ours ? ours < limit : null, more });
  };
  row("load", "load", "ms", { smol135m: 40, tiny1b: 150 }[shape]);
  row("load and first token", "first", "ms", null);
  const kv = info.kvTokenBytes * ctx;
  row("memory", "rss", "MiB", (info.weightsBytes + kv) / MIB + 24, { weights_mib: info.weightsBytes / MIB, kv_mib: kv / MIB });
  row("memory, anonymous", "anon", "MiB", null);
}

async function main() {
  const o = readArgs(process.argv.slice(2));
  const bench = new Bench(o);
  const about = await bench.hello();
  console.log(`ours: ${about.ours}\npeer: ${about.peer || "none"}\n${about.cpu}, ${about.cores} cores, load ${about.load.toFixed(1)}, ${o.cpu ? "CPU time, " : ""}${o.best ? "best" : "medians"} of ${o.rounds} rounds, threads ${o.threads.join(" or ")}\n`);
  for (const shape of o.shapes) {
    bench.machine.measure();
    for (const type of o.types) {
      const first = bench.rows.length;
      const file = await bench.file(shape, type);
      const info = readShape(file);
      await single(bench, shape, type, file, info);
      if (o.tests.includes("seqs") && type !== "q4_k_m") await many(bench, shape, type, file, info);
      if (o.tests.includes("noisy") && type === "q8_0" && ["s15m", "smol135m"].includes(shape)) await noisy(bench, shape, type, file);
      if (o.tests.includes("load") && type === "q8_0") await loading(bench, shape, type, file, info);
      say("");
      printTable(bench.rows.slice(first));
      console.log("");
      writeRows("engine", bench.rows, { ...about, rounds: o.rounds, statistic: (o.cpu ? "CPU time, " : "") + (o.best ? "best" : "median"), bandwidth: [...bench.machine.bandwidth.values()],
        int8_gops: Object.fromEntries(bench.machine.peak), failures: bench.failures });
    }
    bench.dropF16(shape);
  }
  for (const f of bench.failures) console.error(`failed: ${f}`);
  if (bench.machine.error) console.error(`no roofline: ${bench.machine.error}`);
  const judged = bench.rows.filter((r) => r.met !== null);
  console.log(`${judged.filter((r) => r.met).length} of ${judged.length} targets met; all rows in build/bench.json`);
}

main().catch((e) => {
  console.error(`bench/engine.js: ${e.message}`);
  if (/known|needed|value/.test(e.message)) console.error(USAGE);
  process.exit(1);
});
