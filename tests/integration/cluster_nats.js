#!/usr/bin/env node
// Members find each other through a real nats-server with certificates, set up by `shoal cluster init` and `shoal ca`.
// While NATS is down everything continues with the known nodes, even if one of them dies or the gateway starts again; a
// node that joins later is used.
// Usage: cluster_nats.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const body = { model: 'reply', prompt: 'ask: what is the weather', max_tokens: 100, ignore_eos: true, temperature: 0 };

let nats = null;
function start_nats() {
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
}

async function stop_nats() {
    await nats.kill();
}

async function node(name, url) {
    return new c.Member(shoal, 'node', name, ['--listen', '127.0.0.1:0', '--certs', certs(name), '--join', url, '--shoal',
        'home']).start();
}

(async () => {
    const port = await t.free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    for (const name of ['node1', 'node2', 'node3'])
        run('ca', 'issue', name, '--role', 'node', '--host', '127.0.0.1');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    run('ca', 'issue', 'both', '--role', 'node,gateway', '--host', '127.0.0.1');

    // the gateway and a node start before NATS
    const file = path.join(dir, 'gw.yaml');
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncluster: {certs: ${certs('gw')}, nats: ['${url}'], shoal: home, forget: 3s, wait: 60s}
routes: [{name: any, models: [reply]}, {name: nothing, models: [nobody-has-it]}]\n`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--config', file]).start();
    const site = { gateway: gw, nodes: [await node('node1', url)] };
    t.same((await fetch(`${gw.url}/readyz`)).status, 503, 'no node is known');
    // requests wait until a node is heard: nobody knows yet whether the model exists
    const post = async (where, what) => (await fetch(gw.url + where, { method: 'POST', body: JSON.stringify(what) })).status;
    const early = [post('/v1/completions', body), post('/v1/process', { text: 'turn off the kitchen lights' }),
        post('/v1/completions', { ...body, model: 'any' })];
    await t.until(async () => await t.metric(gw, 'shoal_calls_in_flight') === 3, 'three early requests wait');
    // the models of a route are unknown too: 503 with Retry-After, not 404
    const hasty = await fetch(`${gw.url}/v1/completions`, { method: 'POST', headers: { 'x-latency-budget-ms': '100' },
        body: JSON.stringify({ ...body, model: 'any' }) });
    t.same(`${hasty.status} ${hasty.headers.has('retry-after')}`, '503 true', `a route before any node was heard: ${await hasty.text()}`);
    const leaving = new AbortController();
    const left = fetch(`${gw.url}/v1/completions`, { method: 'POST', signal: leaving.signal, body: JSON.stringify({ ...body, model: 'any' }) });
    await t.until(async () => await t.metric(gw, 'shoal_calls_in_flight') === 4, 'one more waits');
    leaving.abort();
    await left.catch(() => {});
    await t.until(async () => await t.metric(gw, 'shoal_calls_in_flight') === 3, 'its client left');
    start_nats();
    t.same((await Promise.all(early)).join(), '200,200,200', 'early requests');
    await c.all_ready(site, 1);
    t.same(await post('/v1/completions', { ...body, model: 'nobody-has-it' }), 404, 'a model that nobody has');
    t.same(await post('/v1/completions', { ...body, model: 'nothing' }), 404, 'a route to it');
    site.nodes.push(await node('node2', url));
    await c.all_ready(site, 2);
    t.same(await t.metric(gw, 'shoal_nats_up'), 1, 'NATS is up');
    const want = await c.stream(gw.url, body);
    t.same(want.error, null, 'a stream');

    // NATS down: streams go on, even when a node dies
    await stop_nats();
    await t.until(async () => await t.metric(gw, 'shoal_nats_up') === 0, 'NATS is away');
    await t.until(() => /NATS is away/.test(gw.log), 'the gateway says so');
    t.same((await c.stream(gw.url, body)).text, want.text, 'a stream without NATS');
    const unasked = { ...body, prompt: 'what no node has the answer of yet' };
    let victim = null;
    const got = await c.stream(gw.url, unasked, (g) => {
        victim ??= site.nodes.find((n) => n.name === g.node);
        if (g.n === 3)
            victim.signal('SIGKILL');
    });
    t.same(got.text, (await c.stream(gw.url, unasked)).text, 'a stream over a node that dies while NATS is away');
    t.same(got.error, null, 'its error');
    site.nodes.push(await node('node3', url)); // it waits for NATS
    start_nats();
    await t.until(async () => await t.metric(gw, 'shoal_nats_up') === 1, 'NATS is back');
    await c.all_ready(site, 2);
    t.same((await c.stream(gw.url, body)).text, want.text, 'a stream with the new node');

    // the dead node is forgotten, the others are not
    await t.until(async () => await t.metric(gw, 'shoal_nodes{state="lost"}') === 0, 'the dead node is forgotten');
    await c.all_ready(site, 2); // the remaining ones
    t.same(await t.metric(gw, 'shoal_lost_total'), 0, 'lost');

    // a gateway that crashes and starts again while NATS is down finds the nodes that it knew
    await stop_nats();
    await gw.end('SIGKILL');
    await gw.start();
    await c.all_ready(site, 2);
    t.same(await t.metric(gw, 'shoal_nats_up'), 0, 'NATS is away');
    t.same((await c.stream(gw.url, body)).text, want.text, 'a stream after a restart without NATS');
    start_nats();
    await t.until(async () => await t.metric(gw, 'shoal_nats_up') === 1, 'NATS is back again');

    // a member with both roles lists itself among the nodes
    const config = path.join(dir, 'both.yaml');
    fs.writeFileSync(config, `listen: 127.0.0.1:0\ncluster: {certs: ${certs('both')}, nats: ['${url}'], shoal: home, listen: ['127.0.0.1:0']}\n`);
    const both = await new c.Member(shoal, 'serve', 'both', ['--config', config]).start();
    let shown;
    await t.until(async () => (shown = (await (await fetch(`${both.url}/v1/cluster`)).json()).nodes)
        .filter((n) => n.state === 'ready').length === 3, { toString: () => `it sees three nodes: ${JSON.stringify(shown)}` });
    t.same(shown.filter((n) => n.self).map((n) => n.name).join(), 'both', 'itself');
    t.check(shown.find((n) => n.self).models.some((m) => m.name === 'reply'), 'with its models');
    t.check(/both of home: 3 of 3 nodes ready/.test(run('cluster', 'status', '--server', both.url)), 'shoal cluster status');
    t.same((await both.end('SIGTERM')).code, 0, 'it ends');
    for (const n of site.nodes.filter((x) => x !== victim))
        t.same((await n.end('SIGTERM')).code, 0, `${n.name} ends`);
    t.same((await gw.end('SIGTERM')).code, 0, 'the gateway ends');
    await c.close();
    t.finish();
})().catch(t.abandon);
