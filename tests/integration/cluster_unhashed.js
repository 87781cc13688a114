#!/usr/bin/env node
// A model so large that its hash takes longer than this test (a sparse file).  Streams begin before it is known: when their
// node is lost, only a node that writes the same tokens continues them, and one with another version of the model does not.
// And a node that must know the hash before it may load the model (it checks signatures) is left for one that is ready.
// Usage: cluster_unhashed.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const body = (i) => ({ model: 'reply', prompt: `the kitchen lights are ${i}`, max_tokens: 120, ignore_eos: true, temperature: 0.8, seed: i });

function huge(name) {
    const file = path.join(t.tmp, `huge-${name}`);
    fs.copyFileSync(path.join(t.root, 'models', name), file);
    fs.truncateSync(file, 256 * 2 ** 30);
    return file;
}

async function node(name, model, more = '') {
    const file = path.join(t.tmp, `${name}.yaml`), sock = path.join(t.tmp, `${name}.sock`);
    fs.writeFileSync(file, `cluster: {name: ${name}, listen: 'unix:${sock}', insecure: true}\nmodels: [{name: reply, path: ${model}}]\n${more}`);
    const m = new c.Member(shoal, 'node', name, ['--config', file]);
    m.address = `unix:${sock}`;
    return m.start();
}

(async () => {
    const one = huge('reply.gguf'), other = huge('reply-draft.gguf');
    const first = await node('first', one), same = await node('same', one), draft = await node('draft', other);
    const slow = await node('slow', one, `load_wait: 1h\ntrust: {revoked: ['${'0'.repeat(64)}']}\n`);
    const config = path.join(t.tmp, 'gateway.yaml');
    fs.writeFileSync(config, 'cluster: {name: gateway, wait: 1s}\n');
    const gateway = async (nodes) => {
        const site = { shoal, nodes };
        const g = await c.gateway(site, 'gateway', ['--config', config]);
        await c.all_ready(site, nodes.length, g);
        return g;
    };
    const model = async (g, name) => (await (await fetch(`${g.url}/v1/cluster`)).json()).nodes
        .find((n) => n.name === name)?.models.find((m) => m.name === 'reply');
    const ready = async (g, ...names) => t.until(async () => {
        const all = await Promise.all(names.map((n) => model(g, n)));
        return all.every((m) => m?.state === 'ready');
    }, `${names} are ready`);

    // The node that loads is the only one at first; then there is another one.
    const alone = await gateway([slow, first]);
    await ready(alone, 'first');
    await t.until(async () => (await model(alone, 'slow'))?.state === 'loading', 'slow loads');
    const want = await Promise.all(Array.from({ length: 8 }, (_, i) => c.stream(alone.url, body(i))));
    want.forEach((s, i) => t.check(s.n > 50 && s.node === 'first', `stream ${i}: ${s.n} chunks of ${s.node} ${JSON.stringify(s.error)}`));
    t.same((await model(alone, 'first')).version, '', 'nobody knows the hash');
    await first.end();
    const waiting = c.stream(alone.url, body(0));
    await t.until(async () => (await model(alone, 'slow')).in_flight > 0 || /slow/.test(alone.log), 'it is sent to slow');
    await first.start();
    t.same((await waiting).text, want[0].text, 'the node that came back answers');

    // The node is lost: one that has another version does not continue, one that has the same bytes does.
    const both = await gateway([first, draft]), all = await gateway([first, draft, same]);
    await ready(all, 'first', 'draft', 'same');
    await ready(both, 'first', 'draft');
    let cut = 0, moved = 0;
    for (let n = 0; n < 60 && (!cut || !moved); n++) {
        const g = cut ? all : both, i = n % want.length;
        let victim = null;
        const got = await c.stream(g.url, body(i), (s) => {
            if (!victim && s.n >= 5 && s.node === 'first')
                (victim = first).signal('SIGKILL');
        });
        if (!victim)
            continue; // the other node began it
        await victim.ended;
        t.check(want[i].text.startsWith(got.text), `stream ${i} is one version's: ${got.text} | ${want[i].text}`);
        const whole = got.text === want[i].text; // also if the node had sent all of it
        t.check(whole !== !!got.error, `stream ${i}: ${JSON.stringify(got.error)}`);
        cut += /another version/.test(got.error?.message);
        moved += g === all && whole;
        await first.start();
        await ready(g, 'first');
    }
    t.check(cut > 0 && moved > 0, `${cut} cut, ${moved} moved`);
    await c.close();
    t.finish();
})().catch(t.abandon);
