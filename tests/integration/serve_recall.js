#!/usr/bin/env node
// A repeated body is answered without being parsed (src/gateway/recall.c): the answer, its headers and its count equal
// those of an equivalent body that must be parsed, and every check before an answer still applies.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const refs = path.join(t.root, 'tests/data/refs');
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const hash = sha('k1');
const file = path.join(t.tmp, 'recall.yaml'), model = path.join(t.tmp, 'm.gguf');

function configure(more = '', ttl = '10m') {
    fs.writeFileSync(file, `
models: [{name: m, path: ${model}}]
cors: ["https://app.example"]
cache: {bytes: 4MiB, ttl: ${ttl}}
deadline: {max: 20s}
keys:
  - {name: one, sha256: ${hash}}
  - {name: two, sha256: ${sha('k2')}, rate: 0.001, burst: 2}
  - {name: boss, sha256: ${sha('boss')}, admin: true}
${more}`);
}

let server, spaces = 0;
// text: the body as it is sent
async function ask(url, text, headers = {}) {
    const r = await fetch(server.url + url, { method: 'POST', body: text,
        headers: { 'content-type': 'application/json', authorization: 'Bearer k1', ...headers } });
    const seen = Object.fromEntries([...r.headers].filter(([k]) => k !== 'date'));
    if (!headers['x-request-id'])
        delete seen['x-request-id'];
    if (seen.traceparent) // every request is a span of its own
        seen.traceparent = seen.traceparent.replace(/-[0-9a-f]{16}-/, '-SPAN-');
    delete seen['content-length']; // chunked bodies have none
    return { status: r.status, cache: seen['x-shoal-cache'], headers: JSON.stringify(seen), body: (await r.text())
        .replace(/"id":"(chatcmpl|cmpl)-[0-9a-f]{16}"/g, '"id":"$1"').replace(/"created":\d+/g, '"created":0') };
}
// A model's version is null until its file has been hashed in the background; answers are compared after that.
const identified = (headers) => t.until(async () => !(await ask('/v1/completions',
    JSON.stringify({ prompt: 'which version', max_tokens: 1, temperature: 0 }), headers)).body
    .includes('"system_fingerprint":null'), 'the version of the model');
// The same request in bytes that were never sent before.
const other = (text) => ' '.repeat(++spaces) + text;

const bodies = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hello' }], max_tokens: 5, temperature: 0 }],
    ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hello' }], max_tokens: 5, temperature: 0, n: 3 }],
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hé "x"' }], max_tokens: 5, seed: 7, logprobs: true, top_logprobs: 2 }],
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hello' }], max_tokens: 6, temperature: 0, stream: true }],
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hello' }], max_tokens: 6, temperature: 0, stream: true,
        stream_options: { include_usage: true }, logprobs: true, latency_budget_ms: 19000 }],
    ['/v1/completions', { prompt: 'once', max_tokens: 5, temperature: 0, stop: ['qq', 'zz'], logit_bias: { 5: -100 } }],
    ['/v1/completions', { prompt: 'once', max_tokens: 5, temperature: 0, logprobs: 3, n: 2 }],
    ['/v1/completions', { prompt: [1, 2, 3], max_tokens: 5, temperature: 0.5, seed: 3, stream: true }],
];

async function equal() {
    for (const [url, body] of bodies) {
        const text = JSON.stringify(body), what = `${url} ${text}`, extra = { 'x-request-id': 'r1', origin: 'https://app.example',
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
        const miss = await ask(url, text);
        t.same(miss.status, 200, `${what}: ${miss.body}`);
        t.same(miss.cache, 'miss', what);
        await ask(url, text); // parsed, and remembered
        const before = await counts();
        const fast = await ask(url, text, extra), half = await counts();
        const slow = await ask(url, other(text), extra), after = await counts();
        t.same(fast.cache, 'hit', what);
        for (const key of ['status', 'headers', 'body'])
            t.same(fast[key], slow[key], `${what}: ${key}`);
        for (const key of Object.keys(before))
            t.same(half[key] - before[key], after[key] - half[key], `${what}: ${key}`);
        for (const key of ['hits', 'requests'])
            t.same(half[key] - before[key], 1, `${what}: ${key}`);
        t.check(half.answers > before.answers && half.times > before.times, 'counted');
        t.check(fast.body.includes('"cached_tokens"') || body.stream, 'usage');
    }
}

async function counts() {
    const of = (name) => t.metric(server, name);
    return { hits: await of('shoal_prompt_cache_hits_total{'), misses: await of('shoal_prompt_cache_misses_total{'),
        requests: await of('shoal_requests_total{'), answers: await of('shoal_responses_total{status="2xx"'),
        times: await of('shoal_http_seconds_count{') };
}

async function door() {
    const [url, body] = bodies[0], text = JSON.stringify(body);
    for (let i = 0; i < 3; i++) await ask(url, text);
    t.same((await ask(url, text, { authorization: 'Bearer wrong' })).status, 401, 'a wrong key');
    t.same((await ask(url, text, { authorization: 'Bearer k2' })).status, 200, 'another key');
    t.same((await ask(url, text, { authorization: 'Bearer k2' })).status, 200, 'another key');
    t.same((await ask(url, text, { authorization: 'Bearer k2' })).status, 429, 'its rate');
    t.same((await ask(url, text, { 'x-latency-budget-ms': 'soon' })).status, 400, 'a bad header');
    t.same((await ask('/v1/completions', text)).status, 400, 'another route');
    t.same((await ask(url, text + ' ')).cache, 'hit', 'one byte more');
    t.same((await ask(url, text.slice(0, -1))).status, 400, 'one byte less');
    // a field that only lenient requests may have
    const odd = JSON.stringify({ ...body, frobnicate: 1 });
    for (let i = 0; i < 3; i++) t.same((await ask(url, odd, { 'x-shoal-lenient': '1' })).status, 200, 'lenient');
    const strict = await ask(url, odd);
    t.same(strict.status, 400, 'not lenient');
    t.check(strict.body.includes('frobnicate'), strict.body);
    t.same((await ask(url, odd, { 'x-shoal-lenient': '1' })).cache, 'hit', 'lenient again');
}

// Known or not: an expired answer is not given.
async function expires() {
    const [url, body] = bodies[0], text = JSON.stringify(body);
    for (let i = 0; i < 4; i++) await ask(url, text);
    await t.sleep(1100);
    t.same((await ask(url, text)).cache, 'miss', 'past its time');
}

// The file behind the name is replaced.
async function updates() {
    const [url, body] = bodies[1], text = JSON.stringify(body);
    const admin = (what) => ask('/admin/models', JSON.stringify({ model: 'm', action: what }), { authorization: 'Bearer boss' });
    for (let i = 0; i < 3; i++) await ask(url, text);
    const old = await ask(url, text);
    t.same(old.cache, 'hit', 'before the update');
    fs.copyFileSync(path.join(refs, 'qwen2.gguf'), `${model}.new`);
    fs.renameSync(`${model}.new`, model);
    t.same((await admin('unload')).status, 200, 'unload');
    await t.until(async () => (await t.metric(server, 'shoal_model_bytes{model="m"}')) === 0, 'unloaded');
    const now = await ask(url, text);
    t.same(now.status, 200, now.body);
    t.same(now.cache, 'miss', 'after the update');
    t.check(now.body !== old.body, 'another answer');
    t.same((await ask(url, text)).cache, 'hit', 'of the new one');
    await identified();
    t.same((await ask(url, text)).body, (await ask(url, other(text))).body, 'as parsed');
}

async function reloads() {
    const [url, body] = bodies[0], text = JSON.stringify(body);
    for (let i = 0; i < 3; i++) await ask(url, text);
    configure(`  - {name: three, sha256: ${sha('k3')}}`);
    server.child.kill('SIGHUP');
    await t.until(async () => (await ask(url, text, { authorization: 'Bearer k3' })).status === 200, 'the new key');
    t.same((await ask(url, text)).cache, 'hit', 'the old one');
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(`{name: one, sha256: ${hash}}`, `{name: one, sha256: ${sha('k4')}}`));
    server.child.kill('SIGHUP');
    await t.until(async () => (await ask(url, text)).status === 401, 'a key that was taken away');
    // the name refers to another file
    const last = { authorization: 'Bearer k4' }, was = await ask(url, text, last);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(model, path.join(refs, 'qwen3.gguf')));
    server.child.kill('SIGHUP');
    await t.until(async () => (await ask(url, text, last)).body !== was.body, 'another model');
    await identified(last);
    const said = (x) => x.body.replace(/"cached_tokens":\d+|"timings":\{[^}]*\}/g, ''); // how much came from a cache may differ
    for (let i = 0; i < 2; i++)
        t.same(said(await ask(url, text, last)), said(await ask(url, other(text), last)), 'as parsed');
}

(async () => {
    fs.copyFileSync(path.join(refs, 'phi2-qkv.gguf'), model);
    configure();
    server = await t.start(shoal, ['--config', file]);
    await identified();
    await equal();
    await door();
    await updates();
    await reloads();
    t.same((await server.stop()).code, 0, 'exit');
    configure('', '1s');
    server = await t.start(shoal, ['--config', file]);
    await expires();
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
