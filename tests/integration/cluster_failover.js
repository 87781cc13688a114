#!/usr/bin/env node
// A stream survives the loss of its node: nodes are killed, stopped and drained in the middle of answers, and every
// answer equals that of an undisturbed run. So do specialists and commands.
// Usage: cluster_failover.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const prompts = ['ask: what is the weather', 'the kitchen lights are', 'set the heating to', 'the garage door is open and'];
const body = (i, more) => ({ model: 'reply', prompt: prompts[i % prompts.length], max_tokens: 400, ignore_eos: true,
    ...(i % 2 ? { temperature: 0.9, seed: 100 + i } : { temperature: 0 }), ...more });

// Streams until a node that can be named was hit in the middle of one: hit(node) disturbs it, heal(node) brings it
// back. A node may finish before it is hit; then the stream did not move, and the next one is tried. Each attempt uses
// a new prompt, since nodes cache their answers; the undisturbed answer is requested afterwards.
let n_asked = 0;
async function disturbed(site, i, hit, heal) {
    for (let tries = 0; tries < 50; tries++) {
        const before = await t.metric(site.gateway, 'shoal_moved_total');
        const asked = body(i, { prompt: `${prompts[i]} ${++n_asked}` });
        let victim = null;
        const got = await c.stream(site.gateway.url, asked, (g) => {
            if (!victim && g.n >= 2) {
                victim = site.nodes.find((n) => n.name === g.node);
                hit(victim);
            }
        });
        await heal(victim);
        await c.all_ready(site, 3);
        const moved = await t.metric(site.gateway, 'shoal_moved_total') > before;
        const want = await c.stream(site.gateway.url, asked);
        t.same(got.error, null, `stream ${i}: error`);
        t.same(got.text, want.text, `stream ${i}: text`);
        t.same(got.finish, want.finish, `stream ${i}: finish`);
        t.same(got.usage?.completion_tokens, want.usage.completion_tokens, `stream ${i}: tokens`);
        t.same(got.usage?.prompt_tokens, want.usage.prompt_tokens, `stream ${i}: prompt tokens`);
        if (moved)
            return { victim, gap: Math.max(...got.gaps.slice(1)) };
    }
    throw new Error('no stream was hit in the middle');
}

async function restart(node) {
    await node.ended;
    await node.start();
}

let site;
(async () => {
    site = await c.open(shoal, {});
    const want = [];
    for (let i = 0; i < 4; i++)
        want.push(await c.stream(site.gateway.url, body(i)));
    t.check(want.every((w) => w.n > 50 && !w.error), 'undisturbed streams');
    t.check(want.every((w) => /^node[123]$/.test(w.node)), `x-shoal-node: ${want[0].node}`);
    const models = (await (await fetch(`${site.gateway.url}/v1/models`)).json()).data.map((m) => m.id);
    t.check(models.includes('reply') && models.includes('intent'), `models of the nodes: ${models}`);

    // what operators see
    const ask = (verb, ...args) => spawnSync(shoal, ['cluster', verb, '--server', site.gateway.url, ...args]);
    // a node that gets no CPU time for a second is briefly considered lost
    let status, seen;
    await t.until(() => (status = ask('status')).status === 0 && /3 of 3 nodes ready/.test(status.stdout),
        { toString: () => `cluster status: ${status.stdout} ${status.stderr}` });
    await t.until(() => /reply +node2 +ready +[0-9a-f]{12} /.test(ask('models').stdout), 'cluster models');
    await t.until(() => (seen = JSON.parse(ask('nodes', '--json').stdout)).nodes.map((n) => `${n.name} ${n.state}`).join() ===
        'node1 ready,node2 ready,node3 ready', { toString: () => `cluster nodes: ${JSON.stringify(seen.nodes)}` });
    t.check(seen.nodes.every((n) => n.cores > 0 && n.memory_free > 0 && n.models.length >= 2), 'what nodes say');

    // killed in the middle: the text continues on another node
    for (let i = 0; i < 4; i++) {
        const { victim, gap } = await disturbed(site, i, (n) => n.signal('SIGKILL'), restart);
        console.log(`killed ${victim.name}: the longest pause was ${gap.toFixed(0)} ms`);
    }
    // stopped: silent, but the connection stays open
    for (let i = 0; i < 2; i++) {
        const { victim, gap } = await disturbed(site, i, (n) => n.signal('SIGSTOP'), (n) => n.signal('SIGCONT'));
        console.log(`stopped ${victim.name}: the longest pause was ${gap.toFixed(0)} ms`);
    }
    // drained: running requests finish there, new ones go elsewhere, and the node exits by itself
    let drained = null;
    const last = body(3, { prompt: 'what nobody asked before' });
    const whole = await c.stream(site.gateway.url, last, (g) => {
        drained ??= site.nodes.find((n) => n.name === g.node);
        if (g.n === 2)
            drained.signal('SIGTERM');
    });
    t.same(whole.text, (await c.stream(site.gateway.url, last)).text, 'the answer of a node that drains');
    const how = await drained.ended;
    t.check(how.code === 0, `a drained node ends with ${JSON.stringify(how)}: ${drained.log.slice(-4000)}`);
    await drained.start();
    await c.all_ready(site, 3);

    // specialists and commands while nodes are killed: no client notices
    const plain = JSON.stringify((await (await fetch(`${site.gateway.url}/v1/classify`, { method: 'POST',
        body: JSON.stringify({ model: 'intent', input: ['turn off the lights', 'what time is it'] }) })).json()).data);
    const process_body = JSON.stringify({ text: 'turn off the kitchen lights and set the heating to 19 degrees' });
    let reply, retries; // a node without CPU time is not waited for: then ask again
    for (let tries = 0; tries < 20 && retries !== 0; tries++) {
        const before = await t.metric(site.gateway, 'shoal_retried_total');
        reply = await (await fetch(`${site.gateway.url}/v1/process`, { method: 'POST', body: process_body })).json();
        retries = await t.metric(site.gateway, 'shoal_retried_total') - before;
    }
    t.same(retries, 0, 'a command goes to a node that can answer it at once');
    t.check(reply.actions?.length === 2 && reply.reply, `a command: ${JSON.stringify(reply)}`);
    let on = true, n = 0;
    const work = async () => {
        while (on) {
            const r = await fetch(`${site.gateway.url}/v1/classify`, { method: 'POST',
                body: JSON.stringify({ model: 'intent', input: ['turn off the lights', 'what time is it'] }) });
            const got = await r.json();
            t.same(r.status, 200, `classify: ${JSON.stringify(got)}`);
            t.same(JSON.stringify(got.data), plain, 'classify');
            const p = await fetch(`${site.gateway.url}/v1/process`, { method: 'POST', body: process_body });
            const said = await p.json();
            t.same(p.status, 200, `process: ${JSON.stringify(said)}`);
            t.same(said.reply, reply.reply, 'the reply');
            n++;
        }
    };
    const workers = Array.from({ length: 4 }, work);
    for (let i = 0; i < 6; i++) {
        const node = site.nodes[i % 3];
        await t.sleep(100);
        await node.end('SIGKILL');
        await node.start();
        await c.all_ready(site, 3);
    }
    on = false;
    await Promise.all(workers);
    t.check(n > 3, `only ${n} rounds`);
    t.same(await t.metric(site.gateway, 'shoal_lost_total'), 0, 'lost');

    // the lists of a gateway that has no model, and its tokenizers
    const post = async (where, what) => (await fetch(site.gateway.url + where, { method: 'POST', body: JSON.stringify(what) })).json();
    const ids = (await post('/tokenize', { model: 'reply', text: 'turn off the lights', add_special: false })).tokens;
    t.check(ids?.length > 1, `/tokenize: ${JSON.stringify(ids)}`);
    t.same((await post('/detokenize', { model: 'reply', tokens: ids })).text?.trim(), 'turn off the lights', '/detokenize');
    // while a node is not heard, the model may exist
    let unknown;
    await t.until(async () => (unknown = await post('/tokenize', { model: 'nobody', text: 'a' })).error?.code !== 'no_replica', 'all nodes are heard');
    t.same(unknown.error?.code, 'model_not_found', '/tokenize: unknown model');
    const tags = (await (await fetch(`${site.gateway.url}/api/tags`)).json()).models;
    t.check(tags.some((m) => m.name === 'reply' && /^[0-9a-f]{64}$/.test(m.digest) && m.size > 0), `/api/tags: ${JSON.stringify(tags)}`);
    const listed = (await (await fetch(`${site.gateway.url}/v1/models`)).json()).data;
    t.check(listed.some((m) => m.id === 'reply'), `/v1/models: ${JSON.stringify(listed)}`);

    // a model that no node has; and no node at all
    let none;
    await t.until(async () => (none = await fetch(`${site.gateway.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify({ model: 'nope', prompt: 'a' }) })).status !== 503, 'all nodes are heard');
    t.same(none.status, 404, 'unknown model');
    t.same((await none.json()).error.code, 'model_not_found', 'unknown model');
    for (const node of site.nodes)
        await node.end('SIGKILL');
    await t.until(async () => (await fetch(`${site.gateway.url}/readyz`)).status === 503, 'not ready without nodes');
    t.same(ask('status').status, 3, 'cluster status without nodes');
    const late = await fetch(`${site.gateway.url}/v1/completions`, { method: 'POST', headers: { 'x-latency-budget-ms': '300' },
        body: JSON.stringify(body(0)) });
    t.same(late.status, 504, 'no node within the deadline');
    await site.nodes[0].start();
    const back = await (await fetch(`${site.gateway.url}/v1/completions`, { method: 'POST', body: JSON.stringify(body(0)) }))
        .json();
    t.same(back.choices?.[0].text, want[0].text, 'a request waits for a node that comes back');
    t.same((await site.gateway.end('SIGTERM')).code, 0, 'the gateway ends');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
