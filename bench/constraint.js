// What a JSON Schema adds to decoding: bench_constraint on shapes of 15 M and 135 M parameters.
//
//   bench/run constraint [--models FILE[,FILE...]] [--rounds N] [--tokens N] [--instructions yes]
//
// Cold, warm and plain answers alternate in one process, and medians are compared.  With --instructions each kind also
// runs by itself under callgrind with two numbers of rounds: the difference, divided by the tokens, is one token of that
// kind, and a busy machine does not change it.  The shapes' vocabularies are made up; name a real model's file to
// measure with its own.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT } = require("./lib.js");

const CACHE = path.join(ROOT, ".cache/bench-models");
const PROGRAM = path.join(ROOT, "build/bench/bench_constraint");
const flags = { models: "s15m,smol135m", rounds: "15", tokens: "64", instructions: "" };
for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, "");
  if (!(name in flags) || !process.argv[i + 1]) {
    console.error("options: --models FILE[,FILE...] --rounds N --tokens N --instructions yes");
    process.exit(2);
  }
  flags[name] = process.argv[i + 1];
}

// The file of a shape with Q8_0 weights, made if it does not exist; any other name is a file.
function fileOf(model) {
  if (model.includes("/") || model.endsWith(".gguf")) return path.resolve(model);
  const file = path.join(CACHE, `${model}-q8_0.gguf`), part = `${file}.part`, f16 = path.join(CACHE, `${model}-f16.gguf`);
  if (fs.existsSync(file)) return file;
  fs.mkdirSync(CACHE, { recursive: true });
  if (!fs.existsSync(f16)) {
    execFileSync(path.join(ROOT, "build/make_shapes"), [model, `${f16}.part`]);
    fs.renameSync(`${f16}.part`, f16);
  }
  execFileSync(path.join(ROOT, "build/shoal"), ["model", "quantize", f16, part, "--type", "q8_0"], { stdio: "ignore" });
  fs.renameSync(part, file);
  return file;
}

function run(argv) {
  return execFileSync(argv[0], argv.slice(1), { cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] }).toString().trim().split("\n")
    .map((line) => JSON.parse(line));
}

// Instructions and tokens of one kind of answers.
function count(file, kind, rounds) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-constraint-"));
  const out = path.join(dir, "callgrind.out");
  try {
    const rows = run(["valgrind", "--tool=callgrind", `--callgrind-out-file=${out}`, PROGRAM, file, "--only", kind, "--rounds",
      String(rounds), "--tokens", flags.tokens]);
    const total = /^(?:totals|summary): (\d+)/m.exec(fs.readFileSync(out, "utf8"));
    return { tokens: rows.reduce((sum, r) => sum + r.tokens, 0), instructions: Number(total[1]) };
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

function instructionsPerToken(file, kind) {
  const few = count(file, kind, 1), many = count(file, kind, 3);
  return (many.instructions - few.instructions) / (many.tokens - few.tokens);
}

const percent = (x) => `${x < 0 ? "" : "+"}${(100 * x).toFixed(1)} %`;

for (const model of flags.models.split(",")) {
  const file = fileOf(model);
  for (const r of run([PROGRAM, file, "--rounds", flags.rounds, "--tokens", flags.tokens]))
    console.log(`${model} ${r.schema}: plain ${r.plain_tok_s} tok/s, warm ${r.warm_tok_s} (${percent(r.warm_adds)} time, ` +
      `${percent(r.warm_adds_cpu)} processor time), cold ${r.cold_tok_s} (${percent(r.cold_adds)}, ${percent(r.cold_adds_cpu)})`);
  if (!flags.instructions) continue;
  const each = Object.fromEntries(["plain", "warm", "cold"].map((kind) => [kind, instructionsPerToken(file, kind)]));
  console.log(`${model}: ${Math.round(each.plain)} instructions a token, warm ${percent(each.warm / each.plain - 1)}, ` +
    `cold ${percent(each.cold / each.plain - 1)}`);
}
