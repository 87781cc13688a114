// The cluster: bench/run cluster [ROUNDS].  So far the placement planner, without a peer.
"use strict";
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, median, spread, printTable, writeRows } = require("./lib.js");

const SIZES = [[100, 20], [1000, 50], [10000, 50], [10000, 200]];
const LIMIT_MS = 1000; // for the largest

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

const rows = measurePlanner(Number(process.argv[2] || 5));
printTable(rows);
writeRows("cluster", rows, { peer: "none", time: "processor time of one thread" });
