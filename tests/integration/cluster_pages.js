#!/usr/bin/env node
// The second turn of a conversation on another node: the node that read the first one is busy, so another answers; it fetches
// the pages of the prompt from the busy one, computes only what is new, and gives the same text.  Another client's key gets
// nothing of it; and if the first node stands still, the prompt is computed as always.
// Usage: cluster_pages.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const words = 'lamp door window heater kitchen garden cellar attic clock radio blind oven fan pump gate siren'.split(' ');
const sentence = (chat, n) => Array.from({ length: n }, (_, i) => words[(chat * 7 + i * (chat + 3) + (i >> 4)) % words.length]).join(' ');
const anna = { authorization: 'Bearer key-of-anna' }, bert = { authorization: 'Bearer key-of-bert' };

async function ask(url, messages, headers = anna) {
    const body = JSON.stringify({ model: 'reply', messages, max_tokens: 16, temperature: 0 });
    const r = await t.within(fetch(`${url}/v1/chat/completions`, { method: 'POST', body, headers }), `a turn: ${body}`);
    const text = await r.text();
    t.same(r.status, 200, `a turn: ${text}`);
    const got = JSON.parse(text);
    return { node: r.headers.get('x-shoal-node'), text: got.choices[0].message.content,
        prompt: got.usage.prompt_tokens, cached: got.usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

(async () => {
    const config = path.join(t.tmp, 'gateway.yaml');
    fs.writeFileSync(config, 'cluster: {name: keyed}\nkeys:\n' + ['anna', 'bert'].map((name) =>
        `  - {name: ${name}, sha256: ${crypto.createHash('sha256').update(`key-of-${name}`).digest('hex')}}\n`).join(''));
    const args = ['--config', config];
    const node = async (name) => { // one task at a time: a busy node has a queue, and still answers other nodes at once
        const file = path.join(t.tmp, `${name}.yaml`), sock = path.join(t.tmp, `${name}.sock`);
        fs.writeFileSync(file, `cluster: {name: ${name}, listen: 'unix:${sock}', insecure: true, link: 100GB}\n` +
            `models: [{name: reply, path: ${reply}, parallel: 1}]\n`);
        const m = await new c.Member(shoal, 'node', name, ['--config', file]).start();
        m.address = `unix:${sock}`;
        return m;
    };
    const one = await node('node1'), two = await node('node2'), apart = await node('node3');
    const site = { shoal, nodes: [one, two, apart] }; // the third is for reference: it answers nobody else
    const only = (name, nodes) => c.gateway({ shoal, nodes }, name, args);
    const first = await only('first', [one]), both = await only('both', [one, two]), alone = await only('alone', [apart]);
    await c.all_ready(site, 1, first);
    await c.all_ready(site, 2, both);
    await c.all_ready(site, 1, alone);

    // node1 works on so much that others are better
    let streams = null;
    const busy = async (stop) => (await (await fetch(`${both.url}/v1/cluster`, { headers: anna })).json()).nodes
        .find((n) => n.name === 'node1').models.find((m) => m.name === 'reply').in_flight >= (stop ? 1 : 12);
    const load = async () => {
        streams = new AbortController();
        for (let i = 0; i < 16; i++)
            fetch(`${first.url}/v1/completions`, { method: 'POST', headers: anna, signal: streams.signal,
                body: JSON.stringify({ model: 'reply', prompt: `ask: ${i}`, max_tokens: 400, ignore_eos: true, stream: true, seed: i }) })
                .then((r) => r.text()).catch(() => {}); // ended by us
        await t.until(() => busy(false), 'node1 is busy');
    };
    const rest = async () => {
        streams.abort();
        await t.until(async () => !(await busy(true)), 'node1 rests');
    };
    const chat = async (i) => {
        const messages = [{ role: 'system', content: `House ${i}. ${sentence(i, 400)}` }, { role: 'user', content: sentence(i + 50, 20) }];
        const home = await ask(first.url, messages);
        messages.push({ role: 'assistant', content: home.text }, { role: 'user', content: sentence(i + 90, 8) });
        await t.sleep(600); // the gateway learns it from a heartbeat
        return { messages, home };
    };

    await ask(both.url, [{ role: 'user', content: 'hello' }]);
    let best = null;
    for (let i = 0; i < 12 && !(best?.cached >= best?.home - 16); i++) {
        const { messages, home } = await chat(i);
        const want = await ask(alone.url, messages);
        await load();
        const got = await ask(both.url, messages);
        await rest();
        t.same(got.text, want.text, `turn 2 of chat ${i} on ${got.node}`);
        t.same(want.cached < 32, true, `the reference computed everything: ${want.cached}`);
        console.log(`chat ${i}: ${got.node}, ${got.cached} of ${got.prompt} prompt tokens cached; the first turn had ${home.prompt}`);
        if (got.node === 'node2')
            best = { cached: got.cached, home: home.prompt };
    }
    t.check(best?.cached >= best?.home - 16, `a turn on another node computed only what is new: ${JSON.stringify(best)}`);

    // Another key's: nothing comes.
    const { messages } = await chat(100);
    await load();
    const other = await ask(both.url, messages, bert);
    await rest();
    t.same(other.cached, 0, 'bert gets nothing of what anna has sent');

    // The node that has the pages stands still.
    const last = await chat(200), want = await ask(alone.url, last.messages);
    await load();
    await one.stop();
    const got = await ask(both.url, last.messages);
    one.signal('SIGCONT');
    t.same(got.text, want.text, `the same text without the pages, on ${got.node}`);
    streams.abort();
    await c.close(site);
    t.finish();
})().catch(t.abandon);
