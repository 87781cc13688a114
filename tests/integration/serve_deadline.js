#!/usr/bin/env node
// Deadlines under overload: the server completes what fits instead of starting everything and finishing nothing, and
// once idle it answers again: measurements from the overload do not lock everybody out.
// Usage: serve_deadline.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const file = path.join(t.tmp, 'deadline.yaml'), model = path.join(t.root, 'models/reply.gguf');
const clients = 32;
let n = 0;

async function start(more) {
    fs.writeFileSync(file, `models: [{name: m, path: ${model}, parallel: 8}]\n${more}\n`);
    return t.start(shoal, ['--config', file]);
}

// A request that no cache can answer; its status and code.
async function ask(server) {
    const r = await fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model: 'm',
        prompt: `${++n} lights are on in the kitchen and the heating is set to`, max_tokens: 32, ignore_eos: true, seed: n,
        temperature: 1 }) });
    const body = await r.json();
    return { status: r.status, code: body.error?.code, message: body.error?.message };
}

(async () => {
    let server = await start('');
    await ask(server);
    const times = [];
    for (let i = 0; i < 5; i++) {
        const before = process.hrtime.bigint();
        t.same((await ask(server)).status, 200, 'alone');
        times.push(Number(process.hrtime.bigint() - before) / 1e6);
    }
    const alone = times.sort((a, b) => a - b)[2];
    t.same((await server.stop()).code, 0, 'exit');

    server = await start(`deadline: {default: ${Math.ceil(3 * alone) + 20}ms}`);
    const seen = {}, end = Date.now() + 60000, enough = Date.now() + 3000;
    const busy = async () => { // for 3 s, and until at least one has completed
        while (Date.now() < enough || (!seen['200 ok'] && Date.now() < end)) {
            const r = await ask(server), what = `${r.status} ${r.code ?? 'ok'}`;
            seen[what] = (seen[what] ?? 0) + 1;
            if (r.status === 429 || r.code === 'deadline_unreachable') {
                t.check(/needs about [\d.]+ ms, [\d.]+ ms remain/.test(r.message) || /budget was over/.test(r.message),
                    r.message);
                await new Promise((done) => setTimeout(done, 20));
            }
        }
    };
    await Promise.all(Array.from({ length: clients }, busy));
    t.check(seen['200 ok'] > 0, `nothing was complete in time: ${JSON.stringify(seen)}`);
    for (const what of Object.keys(seen))
        t.check(['200 ok', '429 overloaded', '504 deadline', '504 deadline_unreachable'].includes(what), what);
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="m"}') === 0, 'idle');
    let last = await ask(server);
    for (const until = Date.now() + 120000; last.status !== 200 && Date.now() < until; last = await ask(server))
        await new Promise((done) => setTimeout(done, 100));
    t.same(last.status, 200, `the idle server answers again: ${last.message}`);
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
