#!/usr/bin/env node
// Idempotency keys: a repeated call gets the first answer or joins the one in progress, on any loop, in any form; a
// different request with the same key is refused; answers expire, and a client that disconnects does not end the work.
// Usage: serve_once.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const model = (name) => path.join(t.root, 'models', name);
const story = (more) => ({ model: 'reply', prompt: 'the kitchen lights are', max_tokens: 60, ignore_eos: true, temperature: 1,
    ...more });

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

// A new connection for each call, so that the loops take turns.
function post(server, where, what, key, header = 'Idempotency-Key') {
    const text = JSON.stringify(what);
    return t.within(new Promise((done, give) => {
        const req = http.request(server.url + where, { method: 'POST', agent: false, headers: key ? { [header]: key } : {} }, (res) => {
            let got = '';
            res.on('data', (d) => { got += d; });
            res.on('end', () => done({ status: res.statusCode, text: got, ...(what.stream ? {} : JSON.parse(got)) }));
            res.on('error', give);
        });
        req.on('error', give);
        req.end(text);
    }), `POST ${where} ${text}`);
}

const counted = (server, outcome) => t.metric(server, `shoal_idempotent_total{outcome="${outcome}"}`);
const text_of = (x) => x.choices?.[0].text;

(async () => {
    const models = `models:\n  - {name: reply, path: "${model('reply.gguf')}"}\n  - {name: intent, path: "${model('encoder')}"}\n`;
    const server = await t.start(shoal, config('once.yaml', `threads: 2\ncache: {bytes: 0}\n${models}`));
    // without a key every call samples anew
    const plain = [await post(server, '/v1/completions', story()), await post(server, '/v1/completions', story())];
    t.check(text_of(plain[0]) !== text_of(plain[1]), 'two calls without a key differ');
    // with a key: the first answer again, whatever loop, form or spelling of the header
    const first = await post(server, '/v1/completions', story(), 'key-1');
    t.same(first.status, 200, `first: ${first.text}`);
    for (let i = 0; i < 6; i++) {
        const again = await post(server, '/v1/completions', story(), 'key-1', i % 2 ? 'x-idempotency-key' : 'Idempotency-Key');
        t.same(text_of(again), text_of(first), 'the first answer again');
        t.same(JSON.stringify(again.usage), JSON.stringify(first.usage), 'its usage');
    }
    const streamed = await post(server, '/v1/completions', story({ stream: true }), 'key-1');
    const pieces = streamed.text.split('\n\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
    t.same(pieces.map((p) => p.choices[0]?.text ?? '').join(''), text_of(first), 'as a stream');
    t.same(await counted(server, 'first'), 1, 'one run');
    t.same(await counted(server, 'replayed'), 7, 'replayed');
    // different requests with the same key
    for (const [where, what] of [['/v1/completions', story({ max_tokens: 61 })], ['/v1/classify', { model: 'intent', input: 'a' }]]) {
        const other = await post(server, where, what, 'key-1');
        t.same(other.status, 409, `another request: ${other.text}`);
        t.same(other.error.code, 'idempotency_key_reused', 'another request');
    }
    t.same((await post(server, '/v1/completions', story(), 'k'.repeat(256))).status, 400, 'a key that is too long');
    // in progress: all of them join one run
    const many = await Promise.all(Array.from({ length: 16 }, () => post(server, '/v1/completions', story({ max_tokens: 300 }), 'key-2')));
    t.same(new Set(many.map(text_of)).size, 1, 'sixteen at once, one answer');
    t.same(await counted(server, 'first'), 2, 'one run for sixteen');
    // specialists and commands
    const labels = [];
    for (let i = 0; i < 2; i++)
        labels.push(JSON.stringify((await post(server, '/v1/classify', { model: 'intent', input: ['turn off the lights', 'hello'] }, 'key-3')).data));
    t.same(labels[0], labels[1], 'classify');
    // the client disconnects halfway: the work goes on, and the next call gets its answer
    const long = story({ max_tokens: 800, stream: true });
    await new Promise((done) => {
        const req = http.request(`${server.url}/v1/completions`, { method: 'POST', agent: false, headers: { 'idempotency-key': 'key-4' } },
            (res) => res.once('data', () => {
                req.destroy();
                done();
            }));
        req.on('error', () => {});
        req.end(JSON.stringify(long));
    });
    const whole = await post(server, '/v1/completions', story({ max_tokens: 800 }), 'key-4');
    t.same(whole.usage?.completion_tokens, 800, `after a client that went away: ${whole.text.slice(0, 300)}`);
    t.same(await counted(server, 'first'), 4, 'it was not begun again');
    // a failure is not stored
    t.same((await post(server, '/v1/completions', { model: 'nobody', prompt: 'a' }, 'key-5')).status, 404, 'a failure');
    t.same((await post(server, '/v1/completions', story(), 'key-5')).status, 200, 'the key is free again');
    t.same((await server.stop()).code, 0, 'the server ends');

    // small and short-lived: old answers are forgotten
    const small = await t.start(shoal, config('small.yaml', `cache: {bytes: 0}\nidempotency: {bytes: 20KiB, ttl: 500ms}\n${models}`));
    const kept = await post(small, '/v1/completions', story(), 'a');
    await t.until(async () => text_of(await post(small, '/v1/completions', story(), 'a')) !== text_of(kept), 'it expires');
    for (let i = 0; i < 30; i++)
        await post(small, '/v1/completions', story({ max_tokens: 20 }), `fill-${i}`);
    t.check(await t.metric(small, 'shoal_idempotent_bytes') <= 20480, 'the memory is bounded');
    // a shutdown during a run whose client is gone
    const gone = http.request(`${small.url}/v1/completions`, { method: 'POST', agent: false, headers: { 'idempotency-key': 'z' } },
        (res) => res.once('data', () => gone.destroy()));
    gone.on('error', () => {});
    gone.end(JSON.stringify(long));
    await new Promise((done) => gone.on('close', done));
    t.same((await small.stop()).code, 0, 'it ends');

    // through a shoal, while the node that runs it is killed
    const site = await c.open(shoal, { nodes: 2, models: [`reply=${model('reply.gguf')}`] });
    const calls = [1, 2, 3].map(() => post(site.gateway, '/v1/completions', story({ max_tokens: 900 }), 'far'));
    await t.until(async () => await t.metric(site.gateway, 'shoal_relayed_total') > 0, 'it runs');
    await site.nodes[0].end('SIGKILL');
    const far = await Promise.all(calls);
    t.same(new Set(far.map(text_of)).size, 1, 'one answer');
    t.same(far[0].usage?.completion_tokens, 900, `through a shoal: ${far[0].text.slice(0, 300)}`);
    await c.close(site);
    t.finish();
})().catch(t.abandon);
