// The gateway's cost per streamed token: instructions of the event loop's thread, counted by callgrind, so that a
// busy machine does not change the figure.
//
//   bench/run stream [--shoal PATH[,PATH...]] [--model FILE] [--tokens N] [--wire grpc,http]
//
// Each program serves the model under valgrind and streams one answer of N and one of 3 N tokens. The difference,
// divided by 2 N, is one token from the engine's event to the socket; the fixed cost of a request cancels out. The engine's
// own threads are not counted (callgrind collects inside loop_run only).
"use strict";
const fs = require("fs");
const http = require("http");
const http2 = require("http2");
const net = require("net");
const os = require("os");
const path = require("path");
const { spawn } = require("child_process");
const { ROOT } = require("./lib.js");

const flags = { shoal: "build/shoal", model: "models/reply.gguf", tokens: "64", wire: "grpc,http" };
for (let i = 2; i < process.argv.length; i += 2) {
  const name = process.argv[i].replace(/^--/, "");
  if (!(name in flags) || !process.argv[i + 1]) {
    console.error("options: --shoal PATH[,PATH...] --model FILE --tokens N --wire grpc,http");
    process.exit(2);
  }
  flags[name] = process.argv[i + 1];
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function freePort() {
  return new Promise((done) => {
    const s = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });
}

const varint = (v) => {
  const out = [];
  for (; v >= 0x80; v = Math.floor(v / 128)) out.push((v & 0x7f) | 0x80);
  return Buffer.from([...out, v]);
};

// GenerateRequest of proto/shoal/v1: prompt, max_tokens, temperature 0, ignore_eos.
function grpcBody(tokens) {
  const prompt = Buffer.from("Once upon a time");
  const message = Buffer.concat([Buffer.from([0x1a]), varint(prompt.length), prompt, Buffer.from([0x20]), varint(tokens),
    Buffer.from([0x29, 0, 0, 0, 0, 0, 0, 0, 0, 0x58, 1])]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

// Both count the received events with text.
function askGrpc(port, tokens) {
  return new Promise((done, give) => {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    session.on("error", give);
    const stream = session.request({ ":method": "POST", ":path": "/shoal.v1.Shoal/GenerateStream",
      "content-type": "application/grpc", te: "trailers" });
    const all = [];
    let status;
    stream.on("data", (d) => all.push(d));
    stream.on("trailers", (t) => { status = t["grpc-status"]; });
    stream.on("end", () => {
      session.close();
      const bytes = Buffer.concat(all);
      let n = 0;
      for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) n += bytes[at + 5] === 0x0a;
      if (status === "0") done(n);
      else give(new Error(`grpc-status ${status}`));
    });
    stream.end(grpcBody(tokens));
  });
}

function askHttp(port, tokens) {
  return new Promise((done, give) => {
    const body = JSON.stringify({ prompt: "Once upon a time", max_tokens: tokens, temperature: 0, ignore_eos: true, stream: true });
    const r = http.request({ port, host: "127.0.0.1", method: "POST", path: "/v1/completions",
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) } }, (answer) => {
      let text = "";
      answer.on("data", (d) => { text += d; });
      answer.on("end", () => (answer.statusCode === 200 ? done((text.match(/"text":"[^"]/g) || []).length)
        : give(new Error(text))));
    });
    r.on("error", give);
    r.end(body);
  });
}

async function waitReady(port, proc) {
  for (let i = 0; i < 1200; i++) {
    if (proc.exitCode !== null) throw new Error("the server ended");
    const ok = await new Promise((done) => {
      const r = http.get({ port, host: "127.0.0.1", path: "/readyz" }, (a) => { a.resume(); done(a.statusCode === 200); });
      r.on("error", () => done(false));
    });
    if (ok) return;
    await sleep(100);
  }
  throw new Error("the server does not get ready");
}

// Instructions inside loop_run from start to end, and the events that the client counted.
async function measure(shoal, wire, tokens) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-stream-"));
  const port = await freePort();
  const out = path.join(dir, "callgrind.out");
  const proc = spawn("valgrind", ["--tool=callgrind", "--toggle-collect=loop_run", `--callgrind-out-file=${out}`, shoal,
    "serve", "-m", path.resolve(ROOT, flags.model), "--listen", `127.0.0.1:${port}`, "--threads", "1"],
  { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  proc.stderr.on("data", (d) => { log = (log + d).slice(-2000); });
  const ended = new Promise((done) => proc.on("close", done));
  try {
    await waitReady(port, proc);
    const events = await (wire === "grpc" ? askGrpc : askHttp)(port, tokens);
    proc.kill("SIGTERM");
    await ended;
    const total = /^(?:totals|summary): (\d+)/m.exec(fs.readFileSync(out, "utf8"));
    if (!total) throw new Error(`no figures: ${log}`);
    return { instructions: Number(total[1]), events };
  } finally {
    if (proc.exitCode === null) proc.kill("SIGKILL");
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

async function main() {
  const n = Number(flags.tokens);
  for (const shoal of flags.shoal.split(",")) {
    for (const wire of flags.wire.split(",")) {
      const few = await measure(path.resolve(ROOT, shoal), wire, n);
      const many = await measure(path.resolve(ROOT, shoal), wire, 3 * n);
      const each = (many.instructions - few.instructions) / (many.events - few.events);
      console.log(`${shoal} ${wire}: ${Math.round(each)} instructions per streamed token ` +
        `(${few.events} and ${many.events} events: ${few.instructions} and ${many.instructions})`);
    }
  }
}

main().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
