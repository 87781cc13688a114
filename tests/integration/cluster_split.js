#!/usr/bin/env node
// One node computes a long prompt, another one fetches it and writes the answer: the same text as from one node, and the
// writer has computed next to nothing of the prompt.  Also if the writer is lost, and not at all where it is switched off.
// Usage: cluster_split.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const words = 'lamp door window heater kitchen garden cellar attic clock radio blind oven fan pump gate siren'.split(' ');
const body = (i) => ({ model: 'reply', max_tokens: 80, ignore_eos: true, temperature: 0.8, seed: i,
    prompt: `${i}: ${Array.from({ length: 400 }, (_, k) => words[(i * 7 + k * (i + 3) + (k >> 4)) % words.length]).join(' ')}` });

(async () => {
    const node = async (name, threads) => {
        const file = path.join(t.tmp, `${name}.yaml`), sock = path.join(t.tmp, `${name}.sock`);
        fs.writeFileSync(file, `cluster: {name: ${name}, listen: 'unix:${sock}', insecure: true, link: 100GB}\nthreads: ${threads}\n` +
            `models: [{name: reply, path: ${reply}}]\n`);
        const m = await new c.Member(shoal, 'node', name, ['--config', file]).start();
        m.address = `unix:${sock}`;
        return m;
    };
    const one = await node('one', 2), two = await node('two', 1), apart = await node('apart', 1);
    const gateway = async (name, nodes, split) => {
        const file = path.join(t.tmp, `${name}.yaml`);
        fs.writeFileSync(file, `cluster: {name: ${name}, split: ${split}, silent: 30s}\n`);
        const g = await c.gateway({ shoal, nodes }, name, ['--config', file]);
        await c.all_ready({ shoal, nodes }, nodes.length, g);
        return g;
    };
    const always = await gateway('always', [one, two], 'always'), never = await gateway('never', [one, two], 'never');
    const alone = await gateway('alone', [apart], 'always');
    const state = async (g, name) => (await (await fetch(`${g.url}/v1/cluster`)).json()).nodes.find((n) => n.name === name)
        .models.find((m) => m.name === 'reply');
    for (const g of [always, never]) // the version is known, without which nothing can move; what reading costs, too
        for (const n of ['one', 'two'])
            await t.until(async () => (await state(g, n)).version, `${n} is hashed`);

    const splits = (g) => t.metric(g, 'shoal_split_total');
    let fetched = 0;
    for (let i = 0; i < 20 && !fetched; i++) { // on a busy machine a second node may be asked anyway, which ends a split
        const want = await c.stream(alone.url, body(i)), got = await c.stream(always.url, body(i));
        t.same(got.text, want.text, `stream ${i} ${JSON.stringify(got.error)}`);
        // usage is that of the node that ended it: it has fetched what it did not compute
        console.log(`stream ${i}: began on ${got.node}, ${got.usage.prompt_tokens_details?.cached_tokens} of ${got.usage.prompt_tokens} prompt tokens fetched`);
        fetched = got.usage.prompt_tokens_details?.cached_tokens > got.usage.prompt_tokens - 64 ? 1 : 0;
    }
    t.check(fetched, 'the writer fetched the prompt');
    t.check(await splits(always) > 0, 'the prompt was computed for another node');
    t.same(await splits(alone), 0, 'one node does it alone');

    // The writer is lost.
    const want = await c.stream(alone.url, body(20));
    let hit = null;
    const got = await c.stream(always.url, body(20), (s) => {
        if (!hit && s.n >= 4)
            (hit = s.node === 'one' ? two : one).signal('SIGKILL');
    });
    t.same(got.text, want.text, `the writer is lost ${JSON.stringify(got.error)}`);
    await hit.ended;
    await hit.start();
    await c.all_ready({ nodes: [one, two] }, 2, never);

    t.same((await c.stream(never.url, body(20))).text, want.text, 'as configured: one node does it all');
    t.same(await splits(never), 0, 'it is switched off');
    await c.close();
    t.finish();
})().catch(t.abandon);
