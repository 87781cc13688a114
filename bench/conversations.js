// Conversations on several nodes: bench/run conversations [CHATS [TURNS]].  32 chats of 10 turns at the same time, on three nodes with
// affinity, on three without, and on a single one: the share of prompt tokens that came from a cache, and the time to the first token.
"use strict";
const fs = require("fs");
const os = require("os");
const path = require("path");
const { ROOT, Server, median, printTable, writeRows } = require("./lib.js");

const SHOAL = path.join(ROOT, "build/shoal");
const CHATS = Number(process.argv[2] || 32), TURNS = Number(process.argv[3] || 10);
const ANSWER = 64, THINK_MS = [200, 1500]; // tokens of an answer at most; pause of a user between two turns
const WORDS = "lamp door window heater kitchen garden cellar attic clock radio blind oven fan pump gate siren stove shelf stair bell".split(" ");
const text = (seed, n) => Array.from({ length: n }, (_, i) => WORDS[(seed * 31 + i * i * (seed % 13 + 1) + i) % WORDS.length]).join(" ");
const SYSTEM = `You look after a house. Its rules: ${text(3, 900)}.`; // about 1,000 tokens, the same for all, as a product's would be

async function openSite(dir, n, affinity) {
  const config = path.join(dir, `site-${n}-${affinity}.yaml`), node = path.join(dir, "node.yaml");
  fs.writeFileSync(config, `cluster: {affinity: ${affinity}}\n`);
  // room for all conversations: what is measured is where they go, not what is evicted
  fs.writeFileSync(node, `cache: {bytes: 0}\nmodels:\n  - {name: reply, path: "${path.join(ROOT, "models/reply.gguf")}", context: 4096, kv_bytes: 512MiB}\n`);
  const all = [], addresses = [];
  for (let i = 0; i < n; i++) {
    const sock = `unix:${path.join(dir, `n${n}${affinity}${i}.sock`)}`;
    const s = new Server(`node${i + 1}`, [SHOAL, "node", "--config", node, "--name", `node${i + 1}`, "--listen", sock]);
    let out = "";
    await s.within(60000, "listening", new Promise((resolve) => s.proc.stdout.on("data", (d) => { out += d; if (/models:/.test(out)) resolve(); })));
    all.push(s);
    addresses.push("--node", sock);
  }
  const gw = new Server("gateway", [SHOAL, "gateway", "--config", config, "--name", "gateway", "--listen", "127.0.0.1:0", ...addresses]);
  all.push(gw);
  const url = await gw.listening();
  for (let i = 0; i < 600; i++) {
    const m = await fetch(`${url}/metrics`).then((r) => r.text());
    if (Number(/^shoal_nodes\{state="ready"\} (\d+)/m.exec(m)?.[1]) === n) return { url, all };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not all of ${n} nodes are ready`);
}

// One turn, streamed: the time until the first piece of the answer.
async function turn(url, messages) {
  const body = { model: "reply", messages, max_tokens: ANSWER, temperature: 0, stream: true, stream_options: { include_usage: true } };
  const began = process.hrtime.bigint(), got = { text: "", first: 0 };
  const r = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body) });
  if (r.status !== 200) throw new Error(`status ${r.status}: ${await r.text()}`);
  got.node = r.headers.get("x-shoal-node");
  let rest = "";
  for await (const d of r.body.pipeThrough(new TextDecoderStream())) {
    rest += d;
    for (let at; (at = rest.indexOf("\n\n")) >= 0; rest = rest.slice(at + 2)) {
      const line = rest.slice(6, at);
      if (line === "[DONE]") continue;
      const e = JSON.parse(line);
      if (e.error) throw new Error(JSON.stringify(e.error));
      if (e.usage) got.usage = e.usage;
      const piece = e.choices?.[0]?.delta?.content;
      if (piece && !got.first) got.first = Number(process.hrtime.bigint() - began) / 1e6;
      got.text += piece ?? "";
    }
  }
  return got;
}

async function measure(dir, nodes, affinity) {
  const site = await openSite(dir, nodes, affinity);
  const sum = { prompt: 0, cached: 0, moves: 0, firsts: [], by: {} }, began = Date.now();
  for (let i = 0; i < nodes * 2; i++) await turn(site.url, [{ role: "user", content: `warm up ${i}` }]);
  await Promise.all(Array.from({ length: CHATS }, async (_, chat) => {
    const messages = [{ role: "system", content: SYSTEM }];
    let node = null;
    for (let k = 0; k < TURNS; k++) {
      const [least, most] = THINK_MS;
      await new Promise((resolve) => setTimeout(resolve, least + (chat * 7919 + k * 104729) % (most - least)));
      messages.push({ role: "user", content: `${chat}.${k}: ${text(chat * TURNS + k, 12)}` });
      const got = await turn(site.url, messages);
      messages.push({ role: "assistant", content: got.text });
      sum.prompt += got.usage.prompt_tokens;
      sum.cached += got.usage.prompt_tokens_details?.cached_tokens ?? 0;
      sum.moves += node !== null && got.node !== node;
      sum.by[got.node] = (sum.by[got.node] ?? 0) + 1;
      sum.firsts.push(got.first);
      node = got.node;
    }
  }));
  await Promise.all(site.all.map((s) => s.stop()));
  sum.firsts.sort((a, b) => a - b);
  return { cached: 100 * sum.cached / sum.prompt, moves: sum.moves, p50: median(sum.firsts), p95: sum.firsts[Math.floor(sum.firsts.length * 0.95)],
    seconds: (Date.now() - began) / 1000, prompt_tokens: sum.prompt, turns_by_node: sum.by };
}

(async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-bench-")), rows = [];
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true }));
  const sides = [["3 nodes", 3, true], ["3 nodes, affinity off", 3, false], ["1 node", 1, true]];
  for (const [name, nodes, affinity] of sides) {
    const r = await measure(dir, nodes, affinity);
    const ours = name === "3 nodes", base = { part: "conversations", peer: null, ratio: null, roofline: null, target: null, met: null };
    console.log(`${name}: ${r.cached.toFixed(1)} % cached, ${r.moves} of ${CHATS * (TURNS - 1)} turns changed node, first token p50 ${r.p50.toFixed(0)} ms, ` +
      `p95 ${r.p95.toFixed(0)} ms, ${r.seconds.toFixed(0)} s, turns by node ${JSON.stringify(r.turns_by_node)}`);
    rows.push({ ...base, name: `${CHATS} chats of ${TURNS} turns, ${name}: prompt tokens from a cache`, ours: r.cached, unit: "%",
      target: ours ? ">= 95" : null, met: ours ? r.cached >= 95 : null, ...r });
    rows.push({ ...base, name: `${CHATS} chats of ${TURNS} turns, ${name}: p50 to the first token`, ours: r.p50, unit: "ms" });
  }
  printTable(rows);
  writeRows("conversations", rows, { peer: "none", time: "until the client has the first piece of the answer" });
})().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
