// llama.cpp from npm node-llama-cpp behind a plain Node HTTP server: POST / {"prompt", "max_tokens"} streams one
// server-sent event per token, like /v1/completions with "stream".  One context with a sequence per client, batching
// on; a request takes a sequence, clears it, and returns it.  argv: node_modules, model file, threads, sequences.
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, modelPath, threads, sequences] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(path.join(modules, "node-llama-cpp/dist/index.js")).href);
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, maxThreads: Number(threads), logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 512, sequences: Number(sequences), threads: Number(threads) });
const free = Array.from({ length: Number(sequences) }, () => context.getSequence()), waiting = [];

const take = () => (free.length ? free.pop() : new Promise((resolve) => waiting.push(resolve)));
const give = (sequence) => (waiting.length ? waiting.shift()(sequence) : free.push(sequence));

async function answer(req, res) {
  let body = "";
  for await (const piece of req) body += piece;
  const { prompt, max_tokens } = JSON.parse(body);
  const sequence = await take();
  try {
    await sequence.clearHistory();
    const tokens = model.tokenize(prompt);
    if (model.tokens.shouldPrependBosToken) tokens.unshift(model.tokens.bos);
    res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    let n = 0;
    for await (const token of sequence.evaluate(tokens, { temperature: 0, yieldEogToken: true })) {
      res.write(`data: ${JSON.stringify({ choices: [{ text: model.detokenize([token]), index: 0 }] })}\n\n`);
      if (++n === max_tokens) break;
    }
    res.end(`data: ${JSON.stringify({ usage: { prompt_tokens: tokens.length, completion_tokens: n } })}\n\ndata: [DONE]\n\n`);
  } finally {
    give(sequence);
  }
}

http.createServer((req, res) => answer(req, res).catch((e) => {
  console.error(e);
  if (!res.headersSent) res.writeHead(500);
  res.end();
})).listen(0, "127.0.0.1", function () { console.log(`listening on http://127.0.0.1:${this.address().port}/`); });
