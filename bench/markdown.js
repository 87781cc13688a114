// Prints build/bench.json (or the given file) as Markdown tables, one row per measurement.
"use strict";
const fs = require("fs");
const path = require("path");

const file = process.argv[2] || path.join(__dirname, "../build/bench.json");
const all = JSON.parse(fs.readFileSync(file, "utf8"));
const num = (v) => (v === null || v === undefined ? "-" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2));
const share = (v, doubt) => (v ? `${(v * 100).toFixed(0)} %${doubt ? " ?" : ""}` : "-");
const pair = (p, show) => (p && (p[0] ?? p[1]) !== null ? `${show(p[0])}, ${show(p[1])}` : "-");

for (const part of new Set(all.rows.map((r) => r.part))) {
  const about = all[part] || {};
  console.log(`## ${part}\n`);
  console.log(`${about.date}: ${about.cpu}, ${about.cores} cores, load ${num(about.load)} at the start; ${about.statistic} of ${about.rounds} rounds; ours ${about.ours}, peer ${about.peer}.\n`);
  console.log("| measure | ours | peer | unit | ratio | of the limit: ours, peer | threads: ours, peer | spread: ours, peer | target | met |");
  console.log("|---|---|---|---|---|---|---|---|---|---|");
  for (const r of all.rows.filter((x) => x.part === part))
    console.log(`| ${r.name} | ${num(r.ours)} | ${r.peer_below ? "< " : ""}${num(r.peer ?? r.peer_below)} | ${r.unit} | ${num(r.ratio)} | ${share(r.roofline, r.limit_doubtful)}, ${share(r.peer_roofline, r.limit_doubtful)} | ${pair(r.threads, (v) => v ?? "-")} | ${pair(r.spread, (v) => share(v))} | ${r.target || "-"} | ${r.met === null ? "-" : r.met ? "yes" : "no"} |`);
  console.log("");
}
