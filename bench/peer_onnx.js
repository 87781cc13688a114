// ONNX Runtime behind bench/PROTOCOL.md, with the operations for embeddings only: hello, load, embed, quit.
// argv: folder of onnxruntime-node, folder of onnxruntime-common.
"use strict";
const Module = require("module");
const path = require("path");
const readline = require("readline");

const [node, common] = process.argv.slice(2);
const resolve = Module._resolveFilename; // finds the packages as published, without an install
Module._resolveFilename = (name, ...rest) => resolve(name === "onnxruntime-common" ? common : name, ...rest);
const ort = require(path.resolve(node));

let session;
const ops = {
  hello: async () => ({ engine: "onnxruntime", version: ort.env.versions.node }),
  load: async (r) => {
    session = await ort.InferenceSession.create(r.model, { intraOpNumThreads: r.threads || 1, interOpNumThreads: 1,
      graphOptimizationLevel: "all", executionMode: "sequential" });
    return {};
  },
  // mode "each": sequences one by one; "padded": one batch, padded to the longest
  embed: async (r) => {
    const batches = r.mode === "padded" ? [r.tokens] : r.tokens.map((t) => [t]);
    const feeds = batches.map((lists) => {
      const b = lists.length, n = Math.max(...lists.map((l) => l.length));
      const make = (f) => new ort.Tensor("int64", BigInt64Array.from({ length: b * n }, (_, i) => BigInt(f(lists[Math.floor(i / n)], i % n))), [b, n]);
      return { input_ids: make((l, i) => l[i] || 0), attention_mask: make((l, i) => (i < l.length ? 1 : 0)), token_type_ids: make(() => 0) };
    });
    const times = [];
    for (let i = 0; i < (r.n || 1); i++) {
      const t0 = process.hrtime.bigint();
      for (const f of feeds) await session.run(f); // without the mean over tokens, which our time includes
      times.push(Number(process.hrtime.bigint() - t0) * 1e-6);
    }
    return { times_ms: times };
  },
  quit: async () => ({}),
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const r = JSON.parse(line);
    let reply;
    try {
      if (!ops[r.op]) throw new Error("unknown operation");
      reply = { id: r.id, ok: true, ...await ops[r.op](r) };
    } catch (e) {
      reply = { id: r.id, ok: false, error: e.message };
    }
    process.stdout.write(JSON.stringify(reply) + "\n");
    if (r.op === "quit") process.exit(0);
  }
})();
