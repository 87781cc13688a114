#!/usr/bin/env node
// Idempotency keys over two gateways of a shoal, through a real nats-server with certificates and roles: a call that is
// repeated at the other gateway gets the first answer, or joins the one in progress; a different request with the same
// key is refused there too. While NATS is down, each gateway works alone.
// Usage: cluster_once.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const story = (more) => ({ model: 'reply', prompt: 'the kitchen lights are', max_tokens: 60, ignore_eos: true, temperature: 1, ...more });
const text_of = (x) => x.choices?.[0].text;
const counted = (gw, outcome) => t.metric(gw, `shoal_idempotent_total{outcome="${outcome}"}`);
const sum = async (gateways, outcome) => (await Promise.all(gateways.map((g) => counted(g, outcome)))).reduce((a, b) => a + b, 0);

const free_port = () => new Promise((done) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = s.address();
        s.close(() => done(port));
    });
});

let nats = null;

function gateway(name, url) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncache: {bytes: 0}\n` +
        `cluster: {name: ${name}, certs: ${certs(name)}, nats: ['${url}'], shoal: home}\n`);
    return new c.Member(shoal, 'gateway', name, ['--config', file]).start();
}

function post(gw, where, what, key) {
    const text = JSON.stringify(what);
    return t.within(new Promise((done, give) => {
        const req = http.request(gw.url + where, { method: 'POST', agent: false, headers: { 'idempotency-key': key } }, (res) => {
            let got = '';
            res.on('data', (d) => { got += d; });
            res.on('end', () => done({ status: res.statusCode, text: got, ...JSON.parse(got) }));
            res.on('error', give);
        });
        req.on('error', give);
        req.end(text);
    }), `POST ${gw.name} ${where} ${text}`);
}

(async () => {
    const port = await free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await free_port()));
    run('ca', 'issue', 'node1', '--role', 'node', '--host', '127.0.0.1');
    for (const name of ['gw1', 'gw2'])
        run('ca', 'issue', name, '--role', 'gateway');
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    await new c.Member(shoal, 'node', 'node1', ['--listen', '127.0.0.1:0', '--certs', certs('node1'), '--join', url, '--shoal',
        'home', '-m', `reply=${path.join(t.root, 'models/reply.gguf')}`, '-m', `intent=${path.join(t.root, 'models/encoder')}`]).start();
    const gateways = await Promise.all(['gw1', 'gw2'].map((name) => gateway(name, url)));
    const [gw1, gw2] = gateways;
    for (const gw of gateways)
        await c.all_ready({ gateway: gw }, 1);
    // the bucket may take a moment: try a new key each time, until both know of one call
    let n = 0;
    await t.until(async () => {
        const key = `warm-${n++}`, first = await post(gw1, '/v1/completions', story(), key);
        return text_of(await post(gw2, '/v1/completions', story(), key)) === text_of(first);
    }, 'both gateways share keys');

    // one after the other
    const before = await sum(gateways, 'first');
    const first = await post(gw1, '/v1/completions', story(), 'key-1');
    t.same(first.status, 200, `first: ${first.text}`);
    const again = await post(gw2, '/v1/completions', story(), 'key-1');
    t.same(text_of(again), text_of(first), 'the other gateway has the first answer');
    t.same(JSON.stringify(again.usage), JSON.stringify(first.usage), 'and its usage');
    t.same(text_of(await post(gw2, '/v1/completions', story(), 'key-1')), text_of(first), 'and keeps it');
    // another request
    const other = await post(gw2, '/v1/completions', story({ max_tokens: 61 }), 'key-1');
    t.same([other.status, other.error?.code].join(), '409,idempotency_key_reused', `another request: ${other.text}`);
    const reversed = await post(gw2, '/v1/completions', story(), 'key-2');
    t.same((await post(gw1, '/v1/completions', story({ max_tokens: 61 }), 'key-2')).status, 409, 'the other way round');
    t.same(text_of(await post(gw1, '/v1/completions', story(), 'key-2')), text_of(reversed), 'and its answer');
    // at the same time
    const many = await Promise.all(Array.from({ length: 8 }, (_, i) => post(gateways[i % 2], '/v1/completions', story({ max_tokens: 300 }), 'key-3')));
    t.same(many.map((m) => m.status).join(), Array(8).fill(200).join(), `eight at once: ${many[0].text}`);
    t.same(new Set(many.map(text_of)).size, 1, 'eight at once, one answer');
    // a specialist
    const labels = [];
    for (const gw of gateways)
        labels.push(JSON.stringify((await post(gw, '/v1/classify', { model: 'intent', input: ['turn off the lights', 'hello'] }, 'key-4')).data));
    t.same(labels[0], labels[1], 'classify');
    // an answer that is too large for one record
    const inputs = Array.from({ length: 2000 }, (_, i) => `turn off light ${i}`), large = [];
    for (const gw of gateways)
        large.push(await post(gw, '/v1/classify', { model: 'intent', input: inputs }, 'key-large'));
    t.same(large.map((x) => x.status).join(), '200,200', `a large answer: ${large[1].text.slice(0, 300)}`);
    t.check(JSON.stringify(large[0].data).length > 1 << 20, `it is large: ${JSON.stringify(large[0].data).length}`);
    t.same(JSON.stringify(large[1].data) === JSON.stringify(large[0].data), true, 'a large answer is shared');
    t.same(await sum(gateways, 'first') - before, 5, 'five keys, five runs');
    // a failure is not stored
    t.same((await post(gw1, '/v1/completions', { model: 'nobody', prompt: 'a' }, 'key-5')).status, 404, 'a failure');
    await t.until(async () => (await post(gw2, '/v1/completions', story(), 'key-5')).status === 200, 'the key is free again');

    // NATS down: each gateway alone
    nats.kill();
    for (const gw of gateways)
        await t.until(async () => await t.metric(gw, 'shoal_nats_up') === 0, `${gw.name}: NATS is away`);
    const alone = await post(gw1, '/v1/completions', story(), 'key-6');
    t.same(alone.status, 200, `without NATS: ${alone.text}`);
    t.same(text_of(await post(gw1, '/v1/completions', story(), 'key-6')), text_of(alone), 'the same gateway has it');
    t.same((await post(gw2, '/v1/completions', story(), 'key-6')).status, 200, 'the other runs it');
    t.same(text_of(await post(gw2, '/v1/completions', story(), 'key-1')), text_of(first), 'what it had, it has');
    await t.until(() => /keys are currently not shared/.test(gw1.log), 'the gateway says so');
    await c.close();
    t.finish();
})().catch(t.abandon);
