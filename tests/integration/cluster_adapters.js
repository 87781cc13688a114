#!/usr/bin/env node
// Streams with a LoRA adapter survive the loss of their node: they continue with the same adapter, by its bytes. A node
// that has another adapter of the same name never continues them, and one without it says so.
// Usage: cluster_adapters.js SHOAL
'use strict';
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');
const { make } = require('./adapter_make.js');

const shoal = path.resolve(process.argv[2]);
const model = `${t.root}/models/reply.gguf`;
const one = make(path.join(t.tmp, 'one'), 1), other = make(path.join(t.tmp, 'other'), 2);
const body = (name, i) => ({ model: name, prompt: `the kitchen lights are ${i}`, max_tokens: 400, ignore_eos: true,
    ...(i % 2 ? { temperature: 0.9, seed: 100 + i } : { temperature: 0 }) });

async function main() {
    const own = await t.start(shoal, ['-m', `reply=${model}`, '--lora', `one=${one}`, '--lora', `reply:other=${other}`]);
    // nodes 1 and 2 have the same adapter as voice, node 3 another one; only node 1 has one that it calls rare
    const site = { nodes: [], shoal };
    for (const [i, adapters] of [[1, [`voice=${one}`, `rare=${other}`]], [2, [`voice=${one}`]], [3, [`voice=${other}`]]]) {
        const sock = path.join(t.tmp, `node${i}.sock`);
        const node = new c.Member(shoal, 'node', `node${i}`, ['--listen', `unix:${sock}`, '-m', `reply=${model}`,
            ...adapters.flatMap((a) => ['--lora', a])]);
        node.address = `unix:${sock}`;
        site.nodes.push(await node.start());
    }
    site.gateway = await c.gateway(site, 'gateway');
    await c.all_ready(site, 3);
    await t.until(async () => {
        const names = (await (await fetch(`${site.gateway.url}/v1/models`)).json()).data.map((m) => m.id);
        return names.includes('reply:voice') && names.includes('reply:rare');
    }, 'the adapters of the nodes are listed');

    // what an undisturbed answer is, with the adapter of each node
    const of_node = { node1: 'reply:one', node2: 'reply:one', node3: 'reply:other' };
    let moved = 0, refused = 0, n = 0;
    const disturb = async (name) => {
        const asked = body(name, ++n), before = await t.metric(site.gateway, 'shoal_moved_total');
        let victim = null;
        const got = await c.stream(site.gateway.url, asked, (g) => {
            if (!victim && g.n >= 2) {
                victim = site.nodes.find((x) => x.name === g.node);
                victim.signal('SIGKILL');
            }
        });
        if (!victim) // it ended before a node could be hit: the next one is tried
            return;
        await victim.ended;
        await victim.start();
        await c.all_ready(site, 3);
        const adapter = name === 'reply:rare' ? 'reply:other' : of_node[victim.name];
        const want = await c.stream(own.url, { ...asked, model: adapter });
        t.check(want.n > 50 && !want.error, `undisturbed: ${JSON.stringify(want.error)}`);
        const hit = await t.metric(site.gateway, 'shoal_moved_total') > before;
        // the text so far is that of the adapter that it began with, whatever happens then
        t.check(want.text.startsWith(got.text), `stream ${n}, begun by ${victim.name}: ${got.text} | ${want.text}`);
        if (got.error) {
            t.check(got.text.length < want.text.length, `stream ${n} was cut: ${JSON.stringify(got.error)}`);
            t.check(victim.name === 'node3' || name === 'reply:rare', `stream ${n} of ${victim.name} could have moved`);
            t.check(got.error.code === 'no_replica' || JSON.stringify(got.error).includes(name), `the error names the adapter: ${JSON.stringify(got.error)}`);
            refused++;
        } else {
            t.same(got.text, want.text, `stream ${n}, begun by ${victim.name}`);
            t.same(got.finish, want.finish, `stream ${n}: finish`);
            moved += hit && adapter === 'reply:one';
        }
    };
    for (let tries = 0; tries < 60 && (moved < 1 || refused === 0); tries++)
        await disturb(refused === 0 && tries % 2 ? 'reply:rare' : 'reply:voice');
    t.check(moved >= 1, `${moved} streams moved to a node with the same adapter`);
    t.check(refused >= 1, `${refused} streams ended because no other node has the adapter`);

    // a name that no node has
    const none = await c.stream(site.gateway.url, body('reply:nobody', 0));
    t.check(none.status === 404 && /reply:nobody/.test(JSON.stringify(none.error)), `no node has it: ${none.status}`);

    await c.close(site);
    t.same((await own.stop()).code, 0, 'the server stops');
    t.finish();
}

main().catch(t.abandon);
