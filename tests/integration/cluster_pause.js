#!/usr/bin/env node
// A node that was paused gets its share of the requests back: the pause is no measure of its speed.
// Usage: cluster_pause.js SHOAL
'use strict';
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const CLIENTS = 4, WINDOW = 40, SHARE = WINDOW / 5;

const PAUSES = 5;
let site, on = true, hit = null;
const seen = []; // the node that began each answer, in order

async function client(id) {
    for (let i = 0; on; i++) {
        const got = await c.stream(site.gateway.url, { model: 'reply', prompt: `client ${id} asks question ${i}: what is`,
            max_tokens: 60, ignore_eos: true, temperature: 0 }, (g) => hit?.(g)); // always another prompt: nodes keep answers
        t.same(got.error, null, `stream ${i} of client ${id}`);
        seen.push(got.node);
    }
}

const share = (node, from) => seen.slice(Math.max(from, seen.length - WINDOW)).filter((n) => n === node.name).length;
const shared = (from) => site.nodes.every((n) => share(n, from) >= SHARE);

(async () => {
    site = await c.open(shoal, { nodes: 2 });
    const clients = Array.from({ length: CLIENTS }, (_, i) => client(i));
    await t.until(() => shared(0), 'both nodes answer');
    const victim = site.nodes[0];
    for (let round = 0; round < PAUSES; round++) {
        // in the middle of an answer, so that a step sees the pause
        await t.within(new Promise((done) => {
            hit = (g) => g.node === victim.name && g.n === 3 && done(victim.signal('SIGSTOP'));
        }), 'an answer of the node that is paused');
        hit = null;
        await c.all_ready(site, 1);
        await t.sleep(1000);
        victim.signal('SIGCONT');
        await c.all_ready(site, 2);
        const from = seen.length, began = Date.now();
        await t.until(() => shared(from), { toString: () => `of ${seen.length - from} requests after pause ${round + 1}, ` +
            `${victim.name} got ${seen.slice(from).filter((n) => n === victim.name).length}` });
        console.log(`pause ${round + 1}: the share was back after ${seen.length - from} requests, ${Date.now() - began} ms`);
    }
    on = false;
    await Promise.all(clients);
    t.same(await t.metric(site.gateway, 'shoal_lost_total'), 0, 'lost');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
