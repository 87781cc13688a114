#!/usr/bin/env node
// A model that a gateway does not know may be on a node that it does not hear: the answer is "not now", and becomes
// "there is none" when all nodes are heard. /readyz agrees.
// Usage: cluster_absent.js SHOAL
'use strict';
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const node = (name) => {
    const address = `unix:${path.join(t.tmp, `${name}.sock`)}`;
    return Object.assign(new c.Member(shoal, 'node', name, ['--listen', address]), { address });
};

(async () => {
    const site = { shoal, nodes: [node('node1'), node('node2')] };
    site.gateway = await c.gateway(site, 'gateway');
    const ask = (model) => t.within(fetch(`${site.gateway.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify({ model, prompt: 'the kitchen lights are', max_tokens: 4 }) }), `an answer of ${model}`);
    const ready = async () => (await fetch(`${site.gateway.url}/readyz`)).status;
    const not_now = async (model, when) => {
        const r = await ask(model), text = await r.text();
        t.same(r.status, 503, `${model} ${when}: ${text}`);
        t.check(Number(r.headers.get('retry-after')) > 0, `${model} ${when}: Retry-After`);
        t.same(JSON.parse(text).error.code, 'no_replica', `${model} ${when}: code`);
    };

    await not_now('reply', 'without a node');
    await not_now('nope', 'without a node');
    t.same(await ready(), 503, '/readyz without a node');

    await site.nodes[0].start();
    await c.all_ready(site, 1);
    t.same(await ready(), 200, '/readyz with a node');
    t.same((await ask('reply')).status, 200, 'a model of the node that is heard');
    await not_now('nope', 'while a node was never heard');

    await site.nodes[1].start();
    await c.all_ready(site, 2);
    const none = await ask('nope');
    t.same(none.status, 404, 'a model that no node has');
    t.same((await none.json()).error.code, 'model_not_found', 'its code');

    await site.nodes[1].end('SIGKILL');
    await c.all_ready(site, 1);
    await not_now('nope', 'while a node is lost');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
