// Shared by the JavaScript parts: engines behind bench/PROTOCOL.md, medians, tables, bench.json.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { spawn, execFileSync } = require("child_process");
const readline = require("readline");

const ROOT = path.resolve(__dirname, "..");
const CACHE = path.join(ROOT, ".cache/bench-models");

// One engine process.  It handles one request at a time; if it dies, the current request fails.
class Engine {
  constructor(name, argv) {
    this.name = name;
    this.alive = true;
    this.stderr = "";
    this.proc = started(spawn(argv[0], argv.slice(1), { cwd: ROOT, stdio: ["pipe", "pipe", "pipe"] }));
    this.proc.stderr.on("data", (d) => { this.stderr = (this.stderr + d).slice(-400); });
    this.proc.stdin.on("error", () => {});
    this.proc.on("error", (e) => this.end(e.message));
    this.proc.on("close", (code, signal) => this.end(`ended (${signal || code}) ${this.stderr.trim()}`));
    readline.createInterface({ input: this.proc.stdout }).on("line", (line) => {
      const wait = this.wait;
      this.wait = null;
      if (wait) wait.resolve(line);
    });
  }

  end(why) {
    this.alive = false;
    this.why = this.why || why;
    if (this.wait) this.wait.reject(new Error(`${this.name}: ${this.why}`));
    this.wait = null;
  }

  async ask(op, fields = {}, timeoutMs = 300000) {
    if (!this.alive) throw new Error(`${this.name}: ${this.why}`);
    let timer;
    const line = await new Promise((resolve, reject) => {
      this.wait = { resolve, reject };
      timer = setTimeout(() => { this.proc.kill("SIGKILL"); this.end(`no answer to ${op} in ${timeoutMs} ms`); }, timeoutMs);
      this.proc.stdin.write(JSON.stringify({ id: 1, op, ...fields }) + "\n");
    }).finally(() => clearTimeout(timer));
    const reply = JSON.parse(line);
    if (!reply.ok) throw new Error(`${this.name}: ${op}: ${reply.error}`);
    return reply;
  }

  // A stopped process uses no CPU time.
  pause() {
    if (this.alive) this.proc.kill("SIGSTOP");
  }

  resume() {
    if (this.alive) this.proc.kill("SIGCONT");
  }

  async close() {
    if (!this.alive) return;
    const closed = new Promise((resolve) => this.proc.on("close", resolve));
    await this.ask("quit").catch(() => {});
    const timer = setTimeout(() => this.proc.kill("SIGKILL"), 2000);
    await closed;
    clearTimeout(timer);
  }
}

// A server in its own process group.  Ready when it prints /listening on URL/; stops together with its children.
class Server {
  constructor(name, argv, options = {}) {
    this.name = name;
    this.errors = "";
    this.started = process.hrtime.bigint();
    this.proc = spawn(argv[0], argv.slice(1), { cwd: ROOT, detached: true, stdio: ["ignore", "pipe", "pipe"], ...options });
    groups.add(this.proc);
    this.proc.on("spawn", () => samePriority(this.proc.pid));
    this.proc.stderr.on("data", (d) => { this.errors = (this.errors + d).slice(-4000); });
    this.ended = new Promise((resolve) => this.proc.on("close", (code, signal) => {
      groups.delete(this.proc);
      resolve(`${name} ended (${signal || code}): ${this.errors.trim()}`);
    }));
    this.proc.on("error", (e) => { this.errors += e.message; });
  }

  // Its address, from its output.
  async listening(timeoutMs = 60000) {
    let text = "";
    const printed = new Promise((resolve) => this.proc.stdout.on("data", (d) => {
      text += d;
      const m = /listening on (\S+)/.exec(text);
      if (m) resolve(m[1]);
    }));
    this.url = await this.within(timeoutMs, "listening", printed);
    return this.url;
  }

  // Resolves like the promise, or rejects if the server exits or the time is up first.
  async within(timeoutMs, what, promise) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.name}: ${what}: timeout after ${timeoutMs} ms; its output: ${this.errors.trim() || "none"}`)), timeoutMs);
      this.ended.then((why) => reject(new Error(why)));
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
  }

  msSinceStart() {
    return Number(process.hrtime.bigint() - this.started) / 1e6;
  }

  signal(name) {
    try { process.kill(-this.proc.pid, name); } catch { /* already gone */ }
  }

  rssMib() {
    const text = fs.readFileSync(`/proc/${this.proc.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(text)[1]) / 1024;
  }

  async stop() {
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), 3000);
    await this.ended;
    clearTimeout(timer);
  }
}

// A new session gets a scheduling group of its own (sched_autogroup): give it our priority.
function samePriority(pid) {
  try {
    const nice = /nice (-?\d+)/.exec(fs.readFileSync("/proc/self/autogroup", "utf8"))[1];
    if (nice !== "0") fs.writeFileSync(`/proc/${pid}/autogroup`, nice);
  } catch { /* not supported by this kernel */ }
}

function median(list) {
  const s = [...list].sort((a, b) => a - b);
  if (!s.length) return null;
  return s.length % 2 ? s[(s.length - 1) / 2] : (s[s.length / 2 - 1] + s[s.length / 2]) / 2;
}

// Half the interquartile range over the median: how reliable a figure is.
function spread(list) {
  const s = [...list].sort((a, b) => a - b);
  if (s.length < 4) return null;
  return (s[Math.floor(s.length * 0.75)] - s[Math.floor(s.length * 0.25)]) / 2 / median(s);
}

// All processes that we started and that must end with us, however we end.
const children = new Set();
function started(proc) {
  children.add(proc);
  proc.on("close", () => children.delete(proc));
  return proc;
}
const groups = new Set();
process.on("exit", () => {
  for (const c of children) c.kill("SIGTERM");
  for (const g of groups) try { process.kill(-g.pid, "SIGKILL"); } catch { /* already gone */ }
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => process.exit(128 + os.constants.signals[signal]));

// Runs `work` while n processes of our priority keep one core each busy.
async function withSpinners(n, work) {
  const spinners = [];
  try {
    for (let i = 0; i < n; i++)
      spinners.push(started(spawn("timeout", ["600", "sh", "-c", "while :; do :; done"], { stdio: "ignore" })));
    await new Promise((resolve) => setTimeout(resolve, 300));
    return await work();
  } finally {
    for (const s of spinners) s.kill("SIGTERM"); // timeout forwards it
  }
}

// The file of a shape with weights of a type; the engine benchmark's driver makes it if it does not exist.
function modelFile(shape, type) {
  for (const program of ["build/bench/bench_engine", "build/make_shapes"])
    if (!fs.existsSync(path.join(ROOT, program))) {
      console.error(`${program} does not exist: run make first, or make bench BENCH='PART OPTION ...', which builds it`);
      process.exit(1);
    }
  const argv = ["--files", "--shapes", shape, "--types", type];
  return path.join(ROOT, execFileSync(path.join(ROOT, "build/bench/bench_engine"), argv,
    { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim());
}

function digits(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return "-";
  return v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);
}

function printTable(rows) {
  const head = ["name", "ours", "peer", "unit", "ratio", "roofline", "target", "met"];
  const text = rows.map((r) => [r.name, digits(r.ours), digits(r.peer), r.unit, r.ratio ? r.ratio.toFixed(2) : "-",
    r.roofline ? `${(r.roofline * 100).toFixed(0)} %${r.limit_doubtful ? "?" : ""}` : "-", r.target || "-", r.met === null ? "-" : r.met ? "yes" : "NO"]);
  const widths = head.map((h, i) => Math.max(h.length, ...text.map((t) => t[i].length)));
  for (const t of [head, ...text])
    console.log(t.map((c, i) => (i === 0 || i === 6 ? c.padEnd(widths[i]) : c.padStart(widths[i]))).join("  "));
}

// Replaces the rows of one part in the file.
function writeRows(part, rows, about) {
  const file = path.join(ROOT, "build/bench.json");
  let all = { rows: [] };
  try { all = JSON.parse(fs.readFileSync(file, "utf8")); } catch { /* no file yet */ }
  all.rows = (all.rows || []).filter((r) => r.part !== part).concat(rows);
  all[part] = about;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(`${file}.tmp`, JSON.stringify(all, null, 1) + "\n");
  fs.renameSync(`${file}.tmp`, file);
}

module.exports = { ROOT, CACHE, Engine, Server, modelFile, median, spread, withSpinners, printTable, writeRows };
