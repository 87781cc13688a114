// Our trees compared with LightGBM's single-row C API: bench/run trees [ROUNDS]; also a part of the specialists.
"use strict";
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, median, spread, printTable, writeRows } = require("./lib.js");

// Rows for build/bench.json, listed under the given part.
function measureTrees(part, rounds = 30) {
  const library = execFileSync(path.join(ROOT, "bench/fetch-lightgbm"), { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
  const out = execFileSync(path.join(ROOT, "build/bench/bench_trees"), [library, String(rounds)], { encoding: "utf8" });
  return out.trim().split("\n").map((line) => {
    const r = JSON.parse(line), ours = median(r.ours_ns) / 1000, peer = median(r.peer_ns) / 1000;
    if (!(r.difference <= 1e-12)) throw new Error(`${r.name}: results differ by ${r.difference}`);
    return { part, name: `LightGBM, ${r.name}`, ours, peer, unit: "us/row", ratio: peer / ours, roofline: null, target: ">= 1", met: peer >= ours,
      ours_best: Math.min(...r.ours_ns) / 1000, peer_best: Math.min(...r.peer_ns) / 1000, ours_spread: spread(r.ours_ns), peer_spread: spread(r.peer_ns),
      difference: r.difference };
  });
}

module.exports = { measureTrees };

if (require.main === module) {
  const rows = measureTrees("trees", Number(process.argv[2] || 30));
  printTable(rows);
  writeRows("trees", rows, { peer: "LightGBM 4.7.0, LGBM_BoosterPredictForMatSingleRowFast, one thread" });
}
