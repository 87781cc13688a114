#!/usr/bin/env node
// A hot standby takes over, and requests with a deadline are hedged: three nodes, one of them a standby.
// Usage: cluster_hedge.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

async function node(name, more = '') {
    const sock = path.join(t.tmp, `${name}.sock`);
    const m = new c.Member(shoal, 'node', name, ['--listen', `unix:${sock}`, ...config(`${name}.yaml`,
        `cluster: {name: ${name}}\ncache: {bytes: 0}\nmodels:\n  - {name: reply, path: "${reply}"${more}}\n`)]);
    m.address = `unix:${sock}`;
    return m.start();
}

async function ask(site, headers = {}, more = {}) {
    const body = JSON.stringify({ model: 'reply', prompt: 'the kitchen lights are', max_tokens: 20, temperature: 0, ...more });
    const r = await t.within(fetch(`${site.gateway.url}/v1/completions`, { method: 'POST', body, headers }), `POST ${body}`);
    return { status: r.status, node: r.headers.get('x-shoal-node'), ...await r.json() };
}

(async () => {
    const site = { shoal, nodes: [await node('plain'), await node('spare', ', standby: true')] };
    // silence is detected late here, so that only hedging helps
    site.gateway = await c.gateway(site, 'gateway', config('gateway.yaml',
        'cluster: {name: gateway, silent: 20s, hedge: 50ms, hedge_models: [reply]}\n'));
    await c.all_ready(site, 2);
    const want = (await ask(site)).choices[0].text;

    // A node that gets no CPU time for half a second is overtaken by another one. Such a run does not show which node
    // the gateway asks first, so the request is repeated.
    const asks_first = async (node, why) => {
        for (;;) {
            const before = await t.metric(site.gateway, 'shoal_stalled_total'), got = await ask(site);
            t.same(got.choices?.[0].text, want, `${why}: text`);
            if (got.node === node || await t.metric(site.gateway, 'shoal_stalled_total') === before)
                return t.same(got.node, node, why);
        }
    };
    for (let i = 0; i < 20; i++)
        await asks_first('plain', 'a standby is not asked while another node can answer');
    // stopped: with a deadline the standby is asked as well, and is faster
    await site.nodes[0].stop();
    const hedged = await ask(site, { 'x-latency-budget-ms': '60000' });
    t.same(hedged.status, 200, `hedged: ${JSON.stringify(hedged)}`);
    t.same(hedged.choices?.[0].text, want, 'hedged: text');
    t.check(await t.metric(site.gateway, 'shoal_hedged_total') >= 1, 'shoal_hedged_total');
    t.check(await t.metric(site.gateway, 'shoal_second_won_total') >= 1, 'shoal_second_won_total');
    site.nodes[0].signal('SIGCONT');
    // killed: the standby continues in the middle of the stream
    const gone = await c.stream(site.gateway.url, { model: 'reply', prompt: 'set the heating to', max_tokens: 400,
        ignore_eos: true, temperature: 0 }, (g) => {
        if (g.n === 2)
            site.nodes[0].signal('SIGKILL');
    });
    t.same(gone.error, null, 'no error');
    t.check(gone.usage.completion_tokens === 400, `usage: ${JSON.stringify(gone.usage)}`);
    await site.nodes[0].ended;
    const after = await ask(site);
    t.same(after.node, 'spare', 'the standby answers when nobody else can');
    t.same(after.choices?.[0].text, want, 'the standby: text');
    await site.nodes[0].start();
    await c.all_ready(site, 2);
    await asks_first('plain', 'the node is back');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
