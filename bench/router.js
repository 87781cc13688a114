// The router in a simulator around the product's own code (bench/bench_router.c): bench/run router [REQUESTS].
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, printTable, writeRows } = require("./lib.js");

// Recorded requests: the texts of the tests' examples.
function recorded() {
  const lines = (file) => fs.readFileSync(path.join(ROOT, file), "utf8").split("\n").filter(Boolean);
  return [...lines("tests/data/ask/examples.jsonl").map((l) => JSON.parse(l).text ?? ""), ...lines("tests/data/pooling/texts.txt")]
    .map((text) => text.replace(/\s+/g, " ")).filter(Boolean);
}

const dir = fs.mkdtempSync(path.join(os.tmpdir(), "bench-router-"));
const file = path.join(dir, "lines.txt");
fs.writeFileSync(file, recorded().join("\n") + "\n");
const out = execFileSync(path.join(ROOT, "build/bench/bench_router"), [process.argv[2] || "100000", file], { encoding: "utf8" });
// With the router model of the pack, on one core; CPU time covers the decision alone, even on a busy machine.
const model = JSON.parse(execFileSync("taskset", ["-c", "0", path.join(ROOT, "build/bench/bench_router_model"), path.join(ROOT, "models/encoder"), file],
  { encoding: "utf8" }));
fs.rmSync(dir, { recursive: true });
const runs = out.trim().split("\n").map((line) => JSON.parse(line));
const rows = [];
for (const load of [...new Set(runs.map((r) => r.load))]) {
  const of = (policy) => runs.find((r) => r.load === load && r.policy === policy);
  const ours = of("sla"), oracle = of("oracle");
  const row = (name, a, b, unit, ratio, target, met) => rows.push({ part: "router", name: `${load}: ${name}`, ours: a, peer: b, unit, ratio,
    roofline: null, target, met });
  row("in time, beside an oracle", ours.sla, oracle.sla, "%", ours.sla / oracle.sla, ">= 99 %", oracle.sla < 100 ? null : ours.sla >= 99);
  row("quality, beside an oracle", ours.quality, oracle.quality, "mean", ours.quality / oracle.quality, ">= 0.98",
    ours.quality / oracle.quality >= 0.98);
  for (const policy of ["round_robin", "least_loaded", "latency"]) {
    row(`in time, beside ${policy}`, ours.sla, of(policy).sla, "%", ours.sla / of(policy).sla, null, null);
    row(`quality in time, beside ${policy}`, ours.useful, of(policy).useful, "mean", ours.useful / of(policy).useful, ">= 1",
      ours.useful >= of(policy).useful);
  }
  row("a decision, p99", ours.p99_us, null, "us", null, "< 20 us", ours.p99_us < 20);
}
rows.push({ part: "router", name: "a decision with the router model, one core, p99", ours: model.p99_us, peer: null, unit: "us", ratio: null,
  roofline: null, target: "< 1500 us", met: model.p99_us < 1500 });
rows.push({ part: "router", name: "the same, processor time, p99", ours: model.cpu_p99_us, peer: null, unit: "us", ratio: null, roofline: null,
  target: "< 1500 us", met: model.cpu_p99_us < 1500 });
printTable(rows);
writeRows("router", rows, { requests: runs[0].requests, recorded: recorded().length, peer: "an oracle, and other policies of the same router" });
