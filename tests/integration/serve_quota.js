#!/usr/bin/env node
// Tokens per key and day: counted over every interface as `usage` says, refused when used up, kept over a restart and a
// kill. Usage: serve_quota.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(process.argv[2]);
const models = path.join(t.root, 'models');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
const file = path.join(t.tmp, 'kept', 'quota'); // its folder is created
let n = 0;

function start(limits) {
    const config = path.join(t.tmp, `quota-${n++}.yaml`);
    fs.writeFileSync(config, `models:\n  - {name: m, path: ${models}/reply.gguf}\n  - {name: e, path: ${models}/encoder}\n` +
        `log_requests: false\nquota: {file: ${file}}\nkeys:\n${Object.entries(limits).map(([name, limit]) =>
            `  - {name: ${name}, sha256: ${sha(name)}, tokens_per_day: ${limit}}\n`).join('')}`);
    return t.start(shoal, ['--config', config]);
}

const post = (server, url, key, body, more = {}) => fetch(`${server.url}${url}`, { method: 'POST', body: JSON.stringify(body),
    headers: { authorization: `Bearer ${key}` }, ...more });
const completion = (more = {}) => ({ model: 'm', prompt: `${++n} lamps are on`, max_tokens: 8, ignore_eos: true, ...more });
const today = (server, key) => t.metric(server, `shoal_key_tokens_today{key="${key}"}`);

// A request; returns its own usage, which the server must have counted.
async function counts(server, what, run) {
    const before = await today(server, 'app'), used = await run();
    await t.until(async () => await today(server, 'app') === before + used, `${what}: ${used} tokens are counted after ${before}`);
    t.check(used > 0, `${what}: used ${used}`);
}

async function interfaces(server) {
    const usage = async (url, body) => {
        const r = await post(server, url, 'app', body), j = await r.json();
        t.same(r.status, 200, `${url}: ${JSON.stringify(j).slice(0, 200)}`);
        return j;
    };
    await counts(server, 'a completion', async () => (await usage('/v1/completions', completion())).usage.total_tokens);
    await counts(server, 'several choices', async () => (await usage('/v1/completions',
        completion({ n: 3, prompt: ['one', 'two lamps'] }))).usage.total_tokens);
    const again = completion({ temperature: 0 });
    for (const what of ['a first answer', 'a kept one', 'a recalled one'])
        await counts(server, what, async () => (await usage('/v1/completions', again)).usage.total_tokens);
    await counts(server, 'a stream', async () => {
        const r = await post(server, '/v1/completions', 'app', completion({ stream: true, stream_options: { include_usage: true } }));
        return Number(/"total_tokens":(\d+)/.exec(await r.text())[1]);
    });
    await counts(server, 'embeddings or classes', async () => {
        const r = await usage('/v1/classify', { model: 'e', input: ['turn on the light', 'stop'] });
        return r.usage.total_tokens ?? r.usage.prompt_tokens;
    });
    await counts(server, 'Ollama', async () => {
        const r = await usage('/api/generate', { model: 'm', prompt: 'two lamps', stream: false, options: { num_predict: 6 } });
        return r.prompt_eval_count + r.eval_count;
    });
    await counts(server, 'a WebSocket', () => new Promise((done, give) => {
        const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`, { headers: { authorization: 'Bearer app' } });
        ws.onopen = () => ws.send(JSON.stringify({ id: '1', path: '/v1/completions', body: completion() }));
        ws.onmessage = (e) => {
            ws.close();
            done(JSON.parse(e.data).body.usage.total_tokens);
        };
        ws.onerror = give;
    }));
    // a client that disconnects in mid-stream is charged for what it got
    const before = await today(server, 'app'), stop = new AbortController();
    const r = await post(server, '/v1/completions', 'app', completion({ stream: true, max_tokens: 400 }), { signal: stop.signal });
    await r.body.getReader().read();
    stop.abort();
    await t.until(async () => await today(server, 'app') > before, 'a client that leaves has used tokens');
}

// Sends requests until the key has used its tokens; returns the refusal.
async function use(server, key) {
    for (let i = 0; i < 100; i++) {
        const r = await post(server, '/v1/completions', key, completion());
        if (r.status !== 200)
            return { status: r.status, after: Number(r.headers.get('retry-after')), error: (await r.json()).error };
        await r.arrayBuffer();
    }
    throw new Error('never refused');
}

(async () => {
    let server = await start({ app: 0, few: 100 });
    await interfaces(server);
    const refused = await use(server, 'few');
    t.same(refused.status, 429, 'status');
    t.check(refused.after > 0 && refused.after <= 86400, `Retry-After: ${refused.after}`);
    t.same(refused.error.code, 'insufficient_quota', 'code');
    t.check(/'few' has used its tokens for today/.test(refused.error.message), refused.error.message);
    const used = await today(server, 'few');
    t.check(used >= 100 && used < 130, `used ${used} of 100`);
    t.same(await t.metric(server, 'shoal_key_tokens_per_day{key="few"}'), 100, 'the limit');
    t.check(await t.metric(server, 'shoal_key_refused_total{key="few",reason="quota"}') >= 1, 'counted by key');
    t.check(await t.metric(server, 'shoal_refused_total{reason="quota"}') >= 1, 'counted');
    t.same((await post(server, '/v1/completions', 'app', completion())).status, 200, 'another key goes on');
    t.same((await server.stop()).code, 0, 'exit');

    server = await start({ app: 0, few: 100 }); // a restart
    t.same(await today(server, 'few'), used, 'kept over a restart');
    t.same((await use(server, 'few')).status, 429, 'refused after a restart');
    t.same((await server.stop()).code, 0, 'exit');

    server = await start({ app: 1000000, few: 1000 }); // the limit was raised
    t.same((await post(server, '/v1/completions', 'few', completion())).status, 200, 'a higher limit');
    const more = await today(server, 'few');
    t.check(more > used, `${more} after ${used}`);
    await t.until(() => fs.readFileSync(file, 'latin1').includes(` ${more} `), 'written while it runs');
    server.child.kill('SIGKILL');
    await server.ended;
    server = await start({ few: 1000 });
    t.same(await today(server, 'few'), more, 'kept over a kill');
    const text = await (await fetch(`${server.url}/metrics`)).text();
    t.check(!text.includes('key="app"'), 'a key that is gone has no figures');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
