#!/usr/bin/env node
// Deferred requests of a gateway that finds its nodes through NATS: stored while NATS is down, kept over kill -9 of the
// gateway, answered when the link is back.
// Usage: cluster_deferred_nats.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const N = 5; // deferred requests
const body = (i) => ({ model: 'anomaly', input: [1, 2, 3 + i] });

let nats = null;
const start_nats = () => { nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1')); };
async function stop_nats() {
    await nats.kill();
}

async function call(gw, method, where, json, headers = {}) {
    const r = await t.within(fetch(gw.url + where, { method, body: json && JSON.stringify(json), headers }), `${method} ${where}`);
    return { ...await r.json(), status: r.status };
}

const score = (gw, i) => call(gw, 'POST', '/v1/score', body(i));
const defer = (gw, i) => call(gw, 'POST', '/v1/score', body(i), { 'x-shoal-defer': '1h', 'idempotency-key': `key-${i}` });
const fetched = (gw, id) => call(gw, 'GET', `/v1/deferred/${id}`);

async function kill_gateway(gw) {
    await gw.end('SIGKILL');
    await gw.start();
}

(async () => {
    const port = await t.free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    run('ca', 'issue', 'node1', '--role', 'node', '--host', '127.0.0.1');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    start_nats();
    const node = await new c.Member(shoal, 'node', 'node1', ['--listen', '127.0.0.1:0', '--certs', certs('node1'), '--join', url,
        '--shoal', 'home', '-m', `anomaly=${path.join(t.root, 'models/anomaly')}`]).start();
    const file = path.join(dir, 'gw.yaml');
    fs.writeFileSync(file, `listen: 127.0.0.1:0
deferred: {file: "${path.join(dir, 'deferred.db')}"}
cluster: {name: gw, certs: ${certs('gw')}, nats: ['${url}'], shoal: home, wait: 300ms}
`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--config', file]).start();
    await c.all_ready({ gateway: gw }, 1);
    const want = [];
    for (let i = 0; i < N; i++) {
        await t.until(async () => (want[i] = await score(gw, i)).status === 200, { toString: () => `asked at once: ${JSON.stringify(want[i])}` });
        want[i] = JSON.stringify(want[i].data);
    }

    // NATS down, and the gateway knows its node: still answered
    await stop_nats();
    await t.until(async () => await t.metric(gw, 'shoal_nats_up') === 0, 'NATS is away');
    const soon = await call(gw, 'POST', '/v1/score', body(0), { 'x-shoal-defer': '1h' });
    t.same(soon.status, 202, `deferred: ${JSON.stringify(soon)}`);
    let got;
    await t.until(async () => (got = await fetched(gw, soon.id)).status === 200, 'an answer from a node that is known');
    t.same(JSON.stringify(got.data), want[0], 'that answer');

    // a gateway that starts without NATS, and lost the addresses too, knows no node: it keeps the requests, also over kill -9
    await gw.end('SIGKILL');
    fs.rmSync(path.join(process.env.XDG_STATE_HOME, 'shoal', 'peers-home-gw'));
    await gw.start();
    t.same((await score(gw, 0)).status !== 200, true, 'nobody can answer at once');
    const kept = [];
    for (let i = 0; i < N; i++) {
        kept.push(await defer(gw, i));
        t.same(kept[i].status, 202, `kept without NATS: ${JSON.stringify(kept[i])}`);
    }
    await t.until(async () => (await fetched(gw, kept[0].id)).tries >= 1, 'a try');
    for (let times = 0; times < 2; times++) {
        await kill_gateway(gw);
        for (let i = 0; i < N; i++) {
            const again = await fetched(gw, kept[i].id);
            t.same(again.status, 202, `after kill -9: ${JSON.stringify(again)}`);
        }
        t.same((await defer(gw, 0)).id, kept[0].id, 'the same key is the same request');
    }
    t.same(await t.metric(gw, 'shoal_nats_up'), 0, 'NATS is still away');

    // NATS is back
    start_nats();
    for (let i = 0; i < N; i++) {
        await t.until(async () => (got = await fetched(gw, kept[i].id)).status !== 202, `an answer when NATS is back: ${i}`);
        t.same(got.status, 200, `the answer: ${JSON.stringify(got)}`);
        t.same(JSON.stringify(got.data), want[i], `the answer of request ${i}`);
    }
    await kill_gateway(gw); // and the answers stay
    for (let i = 0; i < N; i++)
        t.same(JSON.stringify((await fetched(gw, kept[i].id)).data), want[i], `the answer of request ${i} after kill -9`);
    await c.close({ gateway: gw, nodes: [node] });
    t.finish();
})().catch(t.abandon);
