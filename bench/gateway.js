// The gateway's own cost, beside nginx with a static page in the same run: wrk with 1 and 8 clients, the two servers
// in turn, medians of rounds.  Usage: bench/run gateway [--rounds N] [--seconds S]
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { spawn, execFileSync } = require("child_process");
const { ROOT, median, printTable, writeRows } = require("./lib.js");

const option = (name, fallback) => {
  const i = process.argv.indexOf(`--${name}`);
  return i > 0 ? Number(process.argv[i + 1]) : fallback;
};
const rounds = option("rounds", 5), seconds = option("seconds", 2);
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-"));
const children = [];
process.on("exit", () => {
  for (const c of children) c.kill("SIGTERM");
  fs.rmSync(tmp, { recursive: true, force: true });
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function startNginx() {
  const port = 20000 + process.pid % 20000;
  fs.writeFileSync(path.join(tmp, "nginx.conf"), `daemon off; worker_processes 1; pid ${tmp}/pid; error_log ${tmp}/error.log;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${tmp}/b; proxy_temp_path ${tmp}/p; fastcgi_temp_path ${tmp}/f;
  uwsgi_temp_path ${tmp}/u; scgi_temp_path ${tmp}/s; keepalive_requests 100000000;
  server { listen 127.0.0.1:${port}; location / { default_type text/plain; return 200 "ok\\n"; } } }\n`);
  children.push(spawn("nginx", ["-c", path.join(tmp, "nginx.conf"), "-p", tmp], { stdio: "ignore" }));
  await sleep(500);
  return `http://127.0.0.1:${port}/`;
}

async function startShoal() {
  const child = spawn(path.join(ROOT, "build/shoal"), ["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "-m",
    `m=${path.join(ROOT, "tests/data/refs/qwen3.gguf")}`], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const url = await new Promise((resolve) => {
    let text = "";
    child.stdout.on("data", (d) => {
      text += d;
      const m = /listening on (\S+)/.exec(text);
      if (m && text.includes("models:")) resolve(m[1]);
    });
  });
  while ((await fetch(`${url}/readyz`)).status !== 200) await sleep(20);
  return url;
}

const toMicro = (text) => {
  const m = /([\d.]+)(us|ms|s)/.exec(text);
  return Number(m[1]) * { us: 1, ms: 1000, s: 1e6 }[m[2]];
};

function wrk(url, clients, script) {
  const out = execFileSync("wrk", ["-t1", `-c${clients}`, `-d${seconds}s`, "--latency", ...(script ? ["-s", script] : []), url],
    { encoding: "utf8" });
  const failed = /Non-2xx or 3xx responses: (\d+)/.exec(out) || /Socket errors/.exec(out);
  if (failed) throw new Error(`${url}: ${failed[0]}`);
  return { p50: toMicro(/50%\s+(\S+)/.exec(out)[1]), p99: toMicro(/99%\s+(\S+)/.exec(out)[1]),
    rate: Number(/Requests\/sec:\s+([\d.]+)/.exec(out)[1]) };
}

(async () => {
  const page = await startNginx(), shoal = await startShoal();
  const script = path.join(tmp, "post.lua");
  fs.writeFileSync(script, `wrk.method="POST"; wrk.body='{"messages":[{"role":"user","content":"hello there"}],"max_tokens":8,"temperature":0}'\n`);
  const what = { nginx: [page], request: [`${shoal}/healthz`], hit: [`${shoal}/v1/chat/completions`, script] };
  const got = {};
  for (let r = 0; r < rounds; r++)
    for (const clients of [1, 8])
      for (const [name, [url, lua]] of Object.entries(what))
        (got[`${name}${clients}`] ??= []).push(wrk(url, clients, lua));
  const mid = (key, field) => median(got[key].map((x) => x[field]));
  const row = (name, key, field, unit, target, judge) => {
    const ours = mid(key, field), peer = mid(key.replace(/[a-z]+/, "nginx"), field);
    const ratio = field === "rate" ? ours / peer : peer / ours;
    return { part: "gateway", name, ours, peer, unit, ratio, roofline: null, target, met: target ? judge(ours, ratio) : null };
  };
  const rows = [
    row("gateway: a request, nothing behind it, 1 client, p50", "request1", "p50", "us", "< 60 us", (v) => v < 60),
    row("gateway: the same, 8 clients, rate", "request8", "rate", "1/s", ">= 0.6 x", (v, r) => r >= 0.6),
    row("gateway: chat from the prompt cache, 1 client, p50", "hit1", "p50", "us"),
    row("gateway: the same, 8 clients, p99", "hit8", "p99", "us", "< 200 us", (v) => v < 200),
    row("gateway: the same, 8 clients, rate", "hit8", "rate", "1/s", ">= 0.5 x", (v, r) => r >= 0.5),
  ];
  printTable(rows);
  writeRows("gateway", rows, { peer: "nginx, one worker, a static page of 3 bytes, wrk with one thread" });
  process.exit(0);
})().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
