// Sensors over a real broker.
// Time from a reading that is too high to the alarm and to its explanation on the alarm topic; lost readings; memory per sensor.
// With recordings (--data): F1 of the detector and of plain methods, each at the settings it comes with, on machines held back.
// The server has one core (taskset); broker and load share the others.  Peer: paho-mqtt, a rolling window and LightGBM in Python.
"use strict";
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
const { spawn, spawnSync, execFileSync } = require("child_process");
const { ROOT, printTable, writeRows } = require("./lib.js");

const USAGE = `usage: bench/run things [--seconds N] [--sensors N] [--many N] [--spikes N] [--no-peer] [--data FOLDER] [--only-detector]
  --seconds N  length of one run (10)
  --sensors N  sensors of the first run (200)
  --many N     sensors of the second run (2000)
  --spikes N   readings that are too high (50)
  --no-peer    measure ours only
  --data FOLDER    recordings for the detector (training/detectors.py); default: SHOAL_SENSOR_DATA, or none
  --only-detector  nothing but the detector`;
const known = ["--seconds", "--sensors", "--many", "--spikes", "--no-peer", "--data", "--only-detector", "--help"];
const wrong = process.argv.slice(2).find((a) => a.startsWith("-") && !known.includes(a));
if (wrong || process.argv.includes("--help")) {
  (wrong ? console.error : console.log)(wrong ? `unknown option ${wrong}\n${USAGE}` : USAGE);
  process.exit(wrong ? 2 : 0);
}
const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const seconds = option("seconds", 10), few = option("sensors", 200), many = option("many", 2000), spikes = option("spikes", 50);
const hz = 10, dir = fs.mkdtempSync(path.join(os.tmpdir(), "bench-things-"));
const shoal = path.join(ROOT, "build/shoal"), load = path.join(ROOT, "build/bench/bench_things_load");
const children = new Set();
process.on("exit", () => {
  children.forEach((c) => c.kill("SIGKILL"));
  fs.rmSync(dir, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => process.exit(1));

function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], ...options });
  child.out = "";
  child.stdout.on("data", (d) => { child.out += d; });
  children.add(child);
  child.ended = new Promise((done) => child.on("exit", () => { children.delete(child); done(); }));
  return child;
}

const until = async (fn, what) => {
  for (let i = 0; i < 3000; i++) {
    if (await fn())
      return;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`${what}: did not happen`);
};
const accepts = (port) => new Promise((done) => {
  const s = net.connect(port, "127.0.0.1", () => { s.destroy(); done(true); });
  s.on("error", () => done(false));
});
const freePort = () => new Promise((done) => {
  const s = net.createServer().listen(0, "127.0.0.1", () => { const { port } = s.address(); s.close(() => done(port)); });
});
// The server's core, and the others.
const cores = os.cpus().length, own = ["taskset", "-c", "0"], others = cores > 1 ? ["taskset", "-c", `1-${cores - 1}`] : ["taskset", "-c", "0"];

async function broker() {
  const binary = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"].find((f) => fs.existsSync(f));
  if (!binary) throw new Error("mosquitto is not installed: tools/install-deps bench");
  const port = await freePort(), conf = path.join(dir, "mosquitto.conf");
  fs.writeFileSync(conf, `listener ${port} 127.0.0.1\nallow_anonymous true\nuser root\npersistence false\nmax_queued_messages 1000000\n` +
    "log_dest none\nset_tcp_nodelay true\n");
  const child = start(others[0], [...others.slice(1), binary, "-c", conf]);
  await until(() => accepts(port), "the broker");
  return { port, child };
}

// A manual that explains every alarm.
function manual() {
  const file = path.join(dir, "manual.md"), env = { ...process.env, SHOAL_COLLECTIONS: path.join(dir, "collections") };
  fs.writeFileSync(file, "# Sensors\n\nA high value of a sensor means that its machine is worn. Stop it and change the bearing.\n");
  const r = spawnSync(shoal, ["index", "add", "manuals", file], { env, cwd: ROOT });
  if (r.status !== 0) throw new Error(`shoal index add: ${r.stderr}`);
}

async function ours(port, sensors) {
  const config = path.join(dir, `shoal-${sensors}.yaml`);
  fs.writeFileSync(config, `models:\n  - {name: embed, path: "${path.join(ROOT, "models/encoder")}", task: embed, lazy: true}\n` +
    `listen: 127.0.0.1:0\nthreads: 1\ncollections: {dir: ${path.join(dir, "collections")}}\n` +
    `alarms: {file: ${path.join(dir, `open-${sensors}.json`)}, manuals: manuals}\n` +
    `mqtt:\n  broker: mqtt://127.0.0.1:${port}\n  client_id: bench-${sensors}\n  queue: {file: ${path.join(dir, `queue-${sensors}`)}}\n` +
    '  requests: {serve: false}\n  subscribe: [{topic: bench/+, sensor: "{1}", qos: 0}]\nsensors:\n' +
    Array.from({ length: sensors }, (_, i) => `  - {name: s${i}, title: sensor ${i}, limits: "..100", interval: 100ms, lost: 1h}\n`).join(""));
  const child = start(own[0], [...own.slice(1), shoal, "serve", "--config", config, "--log-level", "error"],
    { cwd: ROOT, env: { ...process.env, SHOAL_CACHE_DIR: path.join(dir, "cache"), XDG_STATE_HOME: path.join(dir, "state") } });
  await until(() => child.out.includes("models:"), "the server");
  const url = /listening on (\S+)/.exec(child.out)[1];
  await until(async () => /^shoal_mqtt_up 1$/m.test(await (await fetch(`${url}/metrics`)).text()), "the server at the broker");
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]);
  return { child, url, rss, readings: async () => (await (await fetch(`${url}/v1/sensors`)).json()).data.reduce((n, s) => n + s.readings.all, 0) };
}

async function run(port, sensors, n, filter) {
  const child = start(others[0], [...others.slice(1), load, "127.0.0.1", port, sensors, hz, seconds, n, filter].map(String));
  await child.ended;
  return JSON.parse(child.out);
}

const end = async (child) => { child.kill("SIGTERM"); await child.ended; };
const share = (list, p) => list.length ? [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.ceil(p * list.length) - 1)] : null;

function venv() {
  const at = path.join(ROOT, ".cache/bench-things-venv"), python = path.join(at, "bin/python");
  if (!fs.existsSync(path.join(at, "ready"))) {
    execFileSync("python3", ["-m", "venv", at]);
    execFileSync(path.join(at, "bin/pip"), ["install", "-q", "--disable-pip-version-check", "lightgbm==4.7.0", "paho-mqtt==2.1.0", "numpy", "scikit-learn"],
      { stdio: ["ignore", "inherit", "inherit"] });
    fs.writeFileSync(path.join(at, "ready"), "");
  }
  return python;
}

async function peer(port, sensors) {
  const child = start(own[0], [...own.slice(1), venv(), path.join(ROOT, "bench/peer_things.py"), "127.0.0.1", String(port)]);
  await until(() => child.out.includes("ready"), "the peer");
  const got = await run(port, sensors, spikes, "peer/alarm/#");
  child.stdin.end();
  await child.ended;
  return { ...got, ...JSON.parse(child.out.split("\n").find((l) => l.startsWith("{"))) };
}

// F1 of events on the machines that nothing was chosen on: ours beside the best of the plain methods.
function detector(folder, rows) {
  const file = path.join(dir, "detectors.json");
  execFileSync(venv(), [path.join(ROOT, "training/detectors.py"), "--data", folder, "--shoal", shoal, "--defaults", "--sets", "nab,skab,cmapss,tep,asd,smd,batadal",
    "--json", file], { stdio: ["ignore", "inherit", "inherit"] });
  const judged = JSON.parse(fs.readFileSync(file, "utf8")).filter((r) => r.part === "judged");
  for (const set of [...new Set(judged.map((r) => r.set))]) {
    const of = (ours) => judged.filter((r) => r.set === set && r.method.startsWith("shoal") === ours);
    const best = of(false).reduce((a, b) => (b.f1 > a.f1 ? b : a));
    for (const r of of(true))
      rows.push({ part: "things", name: `${set}: F1 of ${r.method.replace("shoal anomaly, ", "")}, beside ${best.method}`, ours: r.f1, peer: best.f1,
        unit: "F1", ratio: best.f1 ? r.f1 / best.f1 : null, roofline: null, target: "> peer", met: r.f1 > best.f1,
        found: r.found, windows: r.windows, false_alarms: r.false, plain: Object.fromEntries(of(false).map((p) => [p.method, p.f1])) });
  }
}

(async () => {
  const data = option("data") === undefined ? process.env.SHOAL_SENSOR_DATA : process.argv[process.argv.indexOf("--data") + 1];
  if (process.argv.includes("--only-detector")) {
    const found = [];
    if (!data) throw new Error("--only-detector needs recordings: --data FOLDER, or SHOAL_SENSOR_DATA");
    detector(data, found);
    printTable(found);
    writeRows("things", found, { data });
    process.exit(0);
  }
  const rows = [], b = await broker(), python = process.argv.includes("--no-peer") ? null : {};
  const row = (name, us, them, unit, target, met, more = {}) => rows.push({ part: "things", name, ours: us, peer: them ?? null, unit,
    ratio: us && them ? them / us : null, roofline: null, target: target ?? null, met: met ?? null, ...more });
  manual();
  let server = await ours(b.port, few);
  const a = await run(b.port, few, spikes, "shoal/alarm/event/#");
  const seen = await server.readings();
  await end(server.child);
  if (python)
    Object.assign(python, await peer(b.port, few));
  const complete = a.alarms_ms.length === a.spikes;
  row(`${few} sensors, ${hz} Hz: reading to alarm, p50`, share(a.alarms_ms, 0.5), python && share(python.alarms_ms, 0.5), "ms");
  row(`${few} sensors, ${hz} Hz: reading to alarm, p99`, share(a.alarms_ms, 0.99), python && share(python.alarms_ms, 0.99), "ms", "< 40",
    complete && share(a.alarms_ms, 0.99) < 40, { alarms: a.alarms_ms.length, spikes: a.spikes, peer_alarms: python?.alarms_ms.length });
  row("reading to explanation, p99", share(a.explanations_ms, 0.99), null, "ms", "< 100",
    a.explanations_ms.length === a.spikes && share(a.explanations_ms, 0.99) < 100, { explanations: a.explanations_ms.length });
  row(`${few} sensors: readings lost`, a.sent - seen, python && python.sent - python.readings, "of " + a.sent, "0", a.sent === seen);

  server = await ours(b.port, 1);
  const small = server.rss();
  await end(server.child);
  server = await ours(b.port, many);
  const m = await run(b.port, many, spikes, "shoal/alarm/event/#");
  const got = await server.readings(), large = server.rss();
  await end(server.child);
  const more = python && await peer(b.port, many);
  row(`${many} sensors, ${hz} Hz: readings lost`, m.sent - got, more && more.sent - more.readings, "of " + m.sent, "0", m.sent === got);
  row(`${many} sensors, ${hz} Hz: reading to alarm, p99`, share(m.alarms_ms, 0.99), more && share(more.alarms_ms, 0.99), "ms", null, null,
    { alarms: m.alarms_ms.length, spikes: m.spikes, peer_alarms: more?.alarms_ms.length });
  row("memory per sensor", (large - small) / (many - 1), null, "KiB", "< 16", (large - small) / (many - 1) < 16);
  await end(b.child);
  if (data)
    detector(data, rows);
  printTable(rows);
  writeRows("things", rows, { seconds, spikes, hz, peer: "paho-mqtt 2.1.0, rolling window of 32, LightGBM 4.7.0, CPython" });
  process.exit(0);
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
