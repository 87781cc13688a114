#!/usr/bin/env node
// 2,000 clients that stream at once and read slowly: the server stays small, every client gets the whole answer,
// clients that disconnect are cancelled, and a client that reads fast is served in between.
// Usage: slow_clients.js SHOAL SLOW_CLIENTS
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const t = require('../integration/serve.js');

const [shoal, program] = process.argv.slice(2).map((p) => path.resolve(p));
const n = 2000, aborted = 500, tokens = 64;
const maxGrowth = 200 << 10; // KiB
// Much to send: 1.4 KB per token.
const body = { model: 'chat', messages: [{ role: 'user', content: 'Once upon a time' }], max_tokens: tokens,
    ignore_eos: true, temperature: 0, stream: true, logprobs: true, top_logprobs: 20 };

// A client that reads at once; resolves with the events of its answer.
async function fast(server) {
    const r = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body) });
    const text = await r.text();
    t.same(r.status, 200, `a fast client: ${text}`);
    t.check(text.endsWith('data: [DONE]\n\n'), 'its answer is whole');
    return text.split('\n\n').length - 1;
}

(async () => {
    const config = path.join(t.tmp, 'config.yaml'), file = path.join(t.tmp, 'body.json');
    fs.writeFileSync(config, `
models: [{name: chat, path: ${t.root}/tests/data/refs/qwen3.gguf, context: 256, parallel: 64, queue: 4000}]
limits: {connections: 4096, write_timeout: 120s}
cache: {bytes: 0}
log_requests: false
`);
    fs.writeFileSync(file, JSON.stringify(body));
    const server = await t.start(shoal, ['--config', config]);
    const events = await fast(server);
    const idle = t.memory(server).rss;
    const value = (name) => t.metric(server, `${name}{model="chat"}`);

    const slow = spawn(program, [server.port, n, '/v1/chat/completions', file], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = new Promise((done) => slow.on('exit', done));
    const lines = readline.createInterface(slow.stdout)[Symbol.asyncIterator]();
    const line = async () => (await lines.next()).value;
    process.on('exit', () => slow.kill('SIGKILL'));
    t.same(await line(), `open ${n}`, 'all are connected');
    t.same(await fast(server), events, 'a client in between, with as many events as alone');
    t.same(await line(), 'begun', 'all have the head of their answer');
    t.same(await fast(server), events, 'another one, when all wait for slow readers');
    const waiting = t.memory(server).rss - idle;
    slow.stdin.write(`abort ${aborted}\n`);
    t.same(await line(), `aborted ${aborted}`, 'some go away');
    t.same(await fast(server), events, 'another one, afterwards');
    slow.stdin.write('finish\n');
    const report = await line();
    const [, done, whole, bytes, least, most] = report.match(/^done (\d+) whole (\d+) bytes (\d+) events (\d+) (\d+)$/);
    t.same(`${done} ${whole}`, `${n - aborted} ${n - aborted}`, 'the others have the whole answer');
    t.same(`${least} ${most}`, `${events} ${events}`, 'and as many events as a fast client');
    t.same(await ended, 0, 'the clients end well');
    const peak = t.memory(server).peak - idle;
    console.log(`${n} clients, ${Math.round(bytes / done)} bytes each: +${Math.round(waiting / 1024)} MiB while all ` +
        `wait, +${Math.round(peak / 1024)} MiB at most`);
    t.check(peak < maxGrowth, `${peak} KiB beyond the model`);
    await t.until(async () => await value('shoal_in_flight') === 0, 'nothing in flight');
    t.same(await value('shoal_kv_pages_used'), 0, 'pages that nobody gave back');
    t.same(await value('shoal_errors_total'), 0, 'errors');
    t.same(await value('shoal_requests_total'), n + 4, 'requests');
    t.same(await t.metric(server, 'shoal_refused_total'), 0, 'refused');
    const lost = await t.metric(server, 'shoal_responses_total{status="4xx"}');
    t.check(lost <= aborted, `${lost} not answered to their end, ${aborted} went away`);
    t.same(await t.metric(server, 'shoal_responses_total{status="5xx"}'), 0, 'failed');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
