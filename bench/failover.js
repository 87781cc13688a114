// kill -9 under load: bench/run failover.  Shoal compared with Ray Serve: failed requests, and the longest time without an answer.
// Both get the same clients, which send requests without a pause; a client whose connection breaks retries once, at the next
// address it knows.  Shoal has two nodes and two gateways and computes 16 tokens for each answer; Ray has two replicas that compute
// nothing, one router and one HTTP proxy, which is what it starts on one machine.  Killed members of Shoal are started again by this
// program after a second, as systemd would; Ray starts its own again.
"use strict";
const fs = require("fs");
const http = require("http");
const net = require("net");
const os = require("os");
const path = require("path");
const { execFileSync } = require("child_process");
const { ROOT, Server, median, printTable, writeRows } = require("./lib.js");

const SHOAL = path.join(ROOT, "build/shoal"), CLIENTS = 8, BEFORE_MS = 5000, MOST_MS = 60000, STEADY_MS = 3000;
const USAGE = `usage: bench/run failover [--rounds N] [--peer yes|no]
  --rounds N   kills of each kind (3)
  --peer no    Shoal alone`;
let asked = 0;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;

function readArgs(argv) {
  const o = { rounds: 3, peer: "yes" };
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, ""), value = argv[i + 1];
    if (name === "help") { console.log(USAGE); process.exit(0); }
    if (!(name in o) || value === undefined) throw new Error(`${argv[i]} is unknown or has no value\n${USAGE}`);
    o[name] = name === "peer" ? value : Number(value);
  }
  return o;
}

function post(agent, url, where, body) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const req = http.request(url + where, { method: "POST", agent, timeout: MOST_MS, headers: { "content-length": Buffer.byteLength(text), "content-type": "application/json" } }, (res) => {
      let got = "";
      res.on("data", (d) => { got += d; });
      res.on("end", () => resolve({ status: res.statusCode, headers: res.headers, text: got }));
      res.on("error", reject);
    });
    req.on("timeout", () => req.destroy(new Error("timeout")));
    req.on("error", reject);
    req.end(text);
  });
}

// Clients that send requests until stop(); records when each answer came, final failures and retries.
function startLoad(site) {
  const seen = { answers: [], failed: [], again: 0, last: null };
  let on = true;
  const client = async (k) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (on) {
      const body = site.body(`${k} ${++asked}`); // always different, so that no answer comes from a cache
      let why = "";
      for (let attempt = 0; attempt < 2; attempt++) {
        try {
          const r = await post(agent, site.doors[(k + attempt) % site.doors.length], site.where, body);
          why = r.status === 200 ? "" : `status ${r.status}: ${r.text.slice(0, 100)}`;
          if (!why) seen.last = r;
          break; // the server has replied
        } catch (e) {
          why = e.message;
          seen.again++;
        }
      }
      if (why) {
        seen.failed.push(why);
        await sleep(20);
      } else {
        seen.answers.push(now());
      }
    }
  };
  const all = Promise.all(Array.from({ length: CLIENTS }, (_, k) => client(k)));
  return { seen, stop: async () => { on = false; await all; return seen; } };
}

// Full strength: the time from which the clients get 90 % of their earlier answer rate.
function recovery(answers, killed, rate) {
  const end = answers[answers.length - 1];
  for (let at = killed; at + 1000 <= end; at += 100)
    if (answers.filter((t) => t >= at && t < at + 1000).length >= rate * 0.9) return at - killed;
  return null;
}

async function kill(site, what) {
  const load = startLoad(site);
  await sleep(BEFORE_MS);
  const before = load.seen.answers.length, last = load.seen.last, killed = now();
  await site.kill(what, last);
  // until it answers as before, or the time is up
  for (let steady = 0; now() - killed < MOST_MS && steady < STEADY_MS; await sleep(100), steady += 100)
    if (recovery(load.seen.answers, killed, before / (BEFORE_MS / 1000)) === null) steady = 0;
  const seen = await load.stop();
  const times = [killed, ...seen.answers.filter((t) => t >= killed)];
  const pause = Math.max(...times.slice(1).map((t, i) => t - times[i]));
  const back = recovery(seen.answers, killed, before / (BEFORE_MS / 1000));
  return { failed: seen.failed.length, why: seen.failed[0] || "", again: seen.again, pause, back: back === null ? MOST_MS : back, rate: before / (BEFORE_MS / 1000) };
}

// ---- ours ----

const freePort = () => new Promise((resolve) => {
  const s = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => resolve(port));
  });
});

async function openShoal(dir) {
  const ca = (...args) => execFileSync(SHOAL, ["ca", ...args], { cwd: dir, stdio: "ignore" });
  const certs = (name) => ["--certs", path.join(dir, "ca/members", name)];
  ca("init");
  for (const name of ["node1", "node2"]) ca("issue", name, "--role", "node", "--host", "127.0.0.1");
  for (const name of ["gw1", "gw2"]) ca("issue", name, "--role", "gateway");
  const argv = {}, members = {}, at = {};
  for (const name of ["node1", "node2", "gw1", "gw2"]) at[name] = `127.0.0.1:${await freePort()}`;
  for (const name of ["node1", "node2"])
    argv[name] = [SHOAL, "node", "--listen", at[name], ...certs(name), "-m", `reply=${path.join(ROOT, "models/reply.gguf")}`];
  for (const name of ["gw1", "gw2"])
    argv[name] = [SHOAL, "gateway", "--listen", at[name], ...certs(name), "--node", at.node1, "--node", at.node2];
  const start = (name) => { members[name] = new Server(name, argv[name]); };
  Object.keys(argv).forEach(start);
  return {
    name: "Shoal",
    doors: ["gw1", "gw2"].map((name) => `http://${at[name]}`),
    where: "/v1/completions",
    body: (text) => ({ model: "reply", prompt: `ask: ${text}`, max_tokens: 16, ignore_eos: true, temperature: 0 }),
    async kill(what, last) {
      const name = what === "replica" ? last.headers["x-shoal-node"] : "gw1";
      const old = members[name];
      old.signal("SIGKILL");
      old.ended.then(() => sleep(1000)).then(() => start(name));
    },
    stop: () => Promise.all(Object.values(members).map((m) => m.stop())),
  };
}

// ---- Ray Serve ----

async function openRay(python) {
  const server = new Server("Ray Serve", [python, path.join(ROOT, "bench/peer_ray.py"), String(await freePort())],
    { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, RAY_DEDUP_LOGS: "0", RAY_USAGE_STATS_ENABLED: "0" } });
  const url = await server.listening(180000);
  let proxy = () => {};
  server.proc.stdout.on("data", (d) => { const m = /proxy (\d+)/.exec(String(d)); if (m) proxy(Number(m[1])); });
  return {
    name: "Ray Serve",
    doors: [url],
    where: "/",
    body: (text) => ({ prompt: text }),
    async kill(what, last) {
      const pids = JSON.parse(last.text);
      const pid = what !== "front door" ? pids[what] : await new Promise((resolve) => { proxy = resolve; server.proc.stdin.write("\n"); });
      process.kill(pid, "SIGKILL");
    },
    async stop() { // its daemons run in their own sessions, so it has to stop them itself
      server.proc.stdin.end();
      await server.within(30000, "its end", server.ended).catch(() => server.stop());
    },
  };
}

async function ready(site) {
  const agent = new http.Agent({ keepAlive: true });
  for (const door of site.doors)
    for (let i = 0; ; i++) {
      const r = await post(agent, door, site.where, site.body("ready")).catch((e) => ({ status: 0, text: e.message }));
      if (r.status === 200) break;
      if (i === 600) throw new Error(`${site.name} does not answer: ${r.text}`);
      await sleep(100);
    }
  agent.destroy();
}

const KINDS = ["replica", "router", "front door"];

async function measure(site, rounds) {
  const got = Object.fromEntries(KINDS.map((k) => [k, []]));
  for (let r = 0; r < rounds; r++)
    for (const what of KINDS) {
      await ready(site);
      const one = await kill(site, what);
      got[what].push(one);
      console.error(`${site.name}: ${what}: ${one.failed} failed${one.failed ? ` (${one.why})` : ""}, ${one.again} asked again, ${(one.pause / 1000).toFixed(2)} s without an answer, full strength after ${(one.back / 1000).toFixed(1)} s, ${one.rate.toFixed(0)} answers/s before`);
      await sleep(2000);
    }
  return got;
}

(async () => {
  const o = readArgs(process.argv.slice(2));
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  const shoal = await openShoal(dir), ours = await measure(shoal, o.rounds).finally(() => shoal.stop());
  let theirs = null;
  if (o.peer === "yes") {
    const ray = await openRay(execFileSync(path.join(ROOT, "bench/fetch-ray"), { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim());
    theirs = await measure(ray, o.rounds).finally(() => ray.stop());
  }
  const rows = [];
  for (const what of KINDS) {
    const of = (f) => [ours[what].map(f), theirs ? theirs[what].map(f) : []];
    const [lost, theirLost] = of((x) => x.failed), [pause, theirPause] = of((x) => x.pause / 1000);
    const most = (list) => (list.length ? Math.max(...list) : null);
    rows.push({ part: "failover", name: `kill -9 of a ${what}: failed requests, worst`, ours: most(lost), peer: most(theirLost), unit: "requests", ratio: null, roofline: null, target: "0", met: most(lost) === 0, runs: { ours: ours[what], peer: theirs && theirs[what] } });
    rows.push({ part: "failover", name: `kill -9 of a ${what}: without an answer`, ours: median(pause), peer: median(theirPause), unit: "s", ratio: theirs ? median(theirPause) / median(pause) : null, roofline: null, target: "< 1", met: most(pause) < 1 });
  }
  printTable(rows);
  writeRows("failover", rows, { peer: o.peer === "yes" ? "Ray Serve" : "none", rounds: o.rounds, clients: CLIENTS });
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
