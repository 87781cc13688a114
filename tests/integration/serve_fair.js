#!/usr/bin/env node
// Keys share a server: one key's many clients do not delay another key's few, and a request cannot raise its own
// priority. Usage: serve_fair.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(process.argv[2]);
const model = path.join(t.root, 'models/reply.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
let n = 0;

function start(keys, more = '') {
    const file = path.join(t.tmp, `fair-${n++}.yaml`);
    fs.writeFileSync(file, `models: [{name: m, path: ${model}, parallel: 8}]\nlog_requests: false\n` +
        `keys:\n${keys.map((k) => `  - {name: ${k.split(',')[0]}, sha256: ${sha(k.split(',')[0])}${k.replace(/^[^,]*/, '')}}\n`).join('')}${more}`);
    return t.start(shoal, ['--config', file]);
}

const post = (server, url, key, body) => fetch(`${server.url}${url}`, { method: 'POST', body: JSON.stringify(body),
    headers: { authorization: `Bearer ${key}` } });

// One complete answer that no cache can give; its status.
async function ask(server, key, more = {}) {
    const r = await post(server, '/v1/completions', key, { model: 'm', prompt: `${++n} lamps are on`, max_tokens: 12,
        ignore_eos: true, seed: n, temperature: 1, ...more });
    await r.arrayBuffer();
    return r.status;
}

// One key floods the server while four clients of another key get three answers each; returns how many answers the
// flood got meanwhile.
async function flood(server, key, other, more) {
    let stop = false, done = 0;
    const many = Array.from({ length: 60 }, async () => {
        while (!stop) {
            t.same(await ask(server, key, more), 200, 'the flood is served');
            done++;
        }
    });
    await t.until(() => done >= 8, 'the flood has begun');
    const before = done;
    await Promise.all(Array.from({ length: 4 }, async () => {
        for (let i = 0; i < 3; i++)
            t.same(await ask(server, other), 200, 'the few are served');
    }));
    const meanwhile = done - before;
    stop = true;
    await Promise.all(many);
    return meanwhile;
}

async function fairness() {
    let server = await start(['many', 'few']);
    // first come, first served would give 180 or more
    const equal = await flood(server, 'many', 'few');
    t.check(equal <= 60, `one key's sixty clients had ${equal} answers while another's four waited for twelve`);
    t.same((await server.stop()).code, 0, 'exit');
    // one key can take only part of the shared slots
    server = await start(['many', 'few'], 'limits: {in_flight: 16}\n');
    const statuses = [];
    const held = Array.from({ length: 40 }, async () => statuses.push(await ask(server, 'many', { max_tokens: 400 })));
    await t.until(() => statuses.includes(429) || statuses.length === held.length, 'more than its part of the places');
    t.same(await ask(server, 'few'), 200, 'a place for another key');
    await Promise.all(held);
    t.check(statuses.includes(429) && statuses.includes(200) && statuses.every((s) => s === 200 || s === 429), `${statuses}`);
    t.same((await server.stop()).code, 0, 'exit');
}

async function priority() {
    const server = await start(['a, priority: 5']);
    const bodies = { '/v1/completions': { model: 'm', prompt: 'a', max_tokens: 1 },
        '/v1/chat/completions': { model: 'm', messages: [{ role: 'user', content: 'a' }], max_tokens: 1 },
        '/v1/process': { text: 'a' }, '/v1/classify': { input: 'a' }, '/v1/embeddings': { input: 'a' } };
    for (const [url, body] of Object.entries(bodies)) {
        const r = await post(server, url, 'a', { ...body, priority: 1 }), e = (await r.json()).error;
        t.same(`${r.status} ${e?.param}`, '400 priority', `${url}: a request that raises its priority: ${e?.message}`);
    }
    t.same(await ask(server, 'a', { priority: -100 }), 200, 'a request that lowers its priority');
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`, { headers: { authorization: 'Bearer a' } });
    const answer = await new Promise((done, give) => {
        ws.onopen = () => ws.send(JSON.stringify({ id: '1', path: '/v1/completions', body: { ...bodies['/v1/completions'], priority: 7 } }));
        ws.onmessage = (e) => done(JSON.parse(e.data));
        ws.onerror = give;
    });
    ws.close();
    t.same(`${answer.status} ${answer.body?.error?.param}`, '400 priority', 'the same over a WebSocket');
    t.same((await server.stop()).code, 0, 'exit');
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

// A key of the lowest class floods: the others are served in the order of their classes, and it is not starved. Then all
// flood: the highest class gets most, and each of the others goes on.
async function attacked() {
    const server = await start(['high, priority: 5', 'normal', 'low, priority: -5']);
    const times = { high: [], normal: [], low: [] };
    let stop = false;
    const client = async (key) => {
        const from = Date.now();
        t.same(await ask(server, key), 200, `${key} is served`);
        times[key].push(Date.now() - from);
    };
    const flood = (key, n) => Array.from({ length: n }, async () => {
        while (!stop)
            await client(key);
    });
    const low = flood('low', 60);
    await t.until(() => times.low.length >= 8, 'the flood has begun');
    const before = times.low.length;
    await Promise.all(['high', 'normal'].flatMap((key) => Array.from({ length: 2 }, async () => {
        for (let i = 0; i < 3; i++)
            await client(key);
    })));
    const meanwhile = times.low.length - before;
    // in the order of their coming it would be about 180
    t.check(meanwhile <= 70, `the flood of the lowest class had ${meanwhile} answers while the others had 12`);
    console.log(`under a flood of the lowest class: high ${median(times.high)} ms, normal ${median(times.normal)} ms, low ${median(times.low)} ms`);
    const at = Object.fromEntries(Object.entries(times).map(([k, v]) => [k, v.length]));
    const all = [...flood('high', 20), ...flood('normal', 20)];
    await t.until(() => times.high.length - at.high >= 60 && times.low.length > at.low && times.normal.length > at.normal, 'nobody starves');
    const got = Object.entries(at).map(([k, v]) => [k, times[k].length - v]);
    stop = true;
    await Promise.all([...low, ...all]);
    console.log(`all flood: ${got.map(([k, v]) => `${k} ${v}`).join(', ')} answers`);
    t.check(got[0][1] > got[1][1] && got[0][1] > got[2][1], `the highest class gets most: ${got}`);
    t.same((await server.stop()).code, 0, 'exit');
}

(async () => {
    await fairness();
    await priority();
    await attacked();
    t.finish();
})().catch(t.abandon);
