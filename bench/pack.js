// Latency, start time and memory of the included models on one core, without a peer: bench/run pack [N]
"use strict";
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, printTable, writeRows } = require("./lib.js");

const COMMAND = "turn off the kitchen lights and set the heating to 19 degrees";
const n = Number(process.argv[2] || 300);

function once(count) {
  const args = ["-c", "1", path.join(ROOT, "build/bench/bench_ask"), path.join(ROOT, "models"), String(count), "1", COMMAND];
  return JSON.parse(execFileSync("taskset", args, { encoding: "utf8" }));
}

once(1); // tiles the weights and warms the page cache
const starts = Array.from({ length: 5 }, () => once(1).ready_ms).sort((a, b) => a - b);
const r = once(n);
const row = (name, ours, target, unit = "ms") => ({ part: "pack", name, ours, peer: null, unit, ratio: null, roofline: null, target: `< ${target}`, met: ours < target });
const rows = [
  row("command to action, p99", r.action_ms.p99, 5),
  row("command to action, p50", r.action_ms.p50, 15),
  row("command to first word, p50", r.first_word_ms.p50, 60),
  row("command to whole reply, p99", r.reply_ms.p99, 25),
  row("CPU time of a whole reply, p99", r.reply_cpu_ms.p99, 25),
  row("command to whole reply, p50", r.reply_ms.p50, 60),
  row("all models ready, warm page cache, median of 5", starts[2], 300),
  row("resident memory", r.rss_mib, 150, "MiB"),
];
printTable(rows);
writeRows("pack", rows, { peer: "none", command: COMMAND, requests: n, raw: r });
