// How attacks on `shoal serve` affect a normal client: its p99 on a quiet server and during each attack, and the
// server's memory.  The attacks are those of tests/integration/serve_attacks.js; see README.md.
"use strict";
const path = require("path");
const { execFileSync, spawnSync } = require("child_process");
const { ROOT, median, writeRows } = require("./lib.js");

const TEST = path.join(ROOT, "tests/integration/serve_attacks.js"), MOST = 10;
const USAGE = `usage: bench/run attacks [--rounds N] [--only LIST]
  --rounds N   rounds of each attack; medians are reported (3)
  --only LIST  names of attacks, with commas between them`;

function readArgs(argv) {
  const o = { rounds: 3, only: null };
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, ""), value = argv[i + 1];
    if (name === "help") { console.log(USAGE); process.exit(0); }
    if (!(name in o) || value === undefined) throw new Error(`${argv[i]} is unknown or has no value\n${USAGE}`);
    o[name] = name === "only" ? value.split(",") : Number(value);
  }
  return o;
}

const o = readArgs(process.argv.slice(2)), shoal = path.join(ROOT, "build/shoal");
const names = o.only || execFileSync(process.execPath, [TEST, shoal, "--list"], { encoding: "utf8" }).trim().split("\n");
const rows = [];
let failed = false;
for (const name of names) {
  const got = [];
  for (let r = 0; r < o.rounds; r++) {
    // One process each: the attacker lowers its own priority, since a real one would run on another machine.
    const run = spawnSync(process.execPath, [TEST, shoal, "--json", "--yield", "--quiet", "3000", name], { encoding: "utf8" });
    const line = run.stdout.split("\n").find((x) => x.startsWith("{"));
    if (run.status !== 0 || !line) {
      failed = true;
      console.error(`${name}: ${run.stdout}${run.stderr}`);
      break;
    }
    got.push(JSON.parse(line));
  }
  if (!got.length) continue;
  const quiet = median(got.map((g) => g.quiet_p99)), attacked = median(got.map((g) => g.attacked_p99));
  const memory = Math.max(...got.map((g) => g.memory_mib));
  rows.push({ part: "attacks", name, ours: attacked, peer: quiet, unit: "ms p99", ratio: quiet / attacked, roofline: null,
    target: `< ${MOST} times quiet`, met: attacked < MOST * quiet && memory < got[0].bound_mib, times: attacked / quiet, memory_mib: memory,
    bound_mib: got[0].bound_mib, runs: got });
  console.error(`${name}: ${(attacked / quiet).toFixed(1)} times`);
}
const cells = [["attack", "quiet p99", "attacked p99", "times", "memory", "bound", "met"], ...rows.map((r) => [r.name, `${r.peer.toFixed(2)} ms`,
  `${r.ours.toFixed(2)} ms`, r.times.toFixed(1), `+${r.memory_mib.toFixed(0)} MiB`, `${r.bound_mib} MiB`, r.met ? "yes" : "NO"])];
const widths = cells[0].map((_, i) => Math.max(...cells.map((c) => c[i].length)));
for (const c of cells) console.log(c.map((x, i) => (i ? x.padStart(widths[i]) : x.padEnd(widths[i]))).join("  "));
writeRows("attacks", rows, { rounds: o.rounds });
process.exit(failed ? 1 : 0);
