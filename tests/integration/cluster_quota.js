#!/usr/bin/env node
// Two gateways share the daily token quota of a key, through a real nats-server with certificates and roles: together
// they never exceed the limit, whichever the client asks. While NATS is down they use up the slices that they hold.
// Usage: cluster_quota.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp, LIMIT = 5000, TOKENS = 300;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');

let nats = null, n = 0;
function start_nats() {
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
}

function gateway(name, url) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncluster: {name: ${name}, certs: ${certs(name)}, nats: ['${url}'], shoal: home}\n` +
        `quota: {file: ${path.join(dir, `${name}.quota`)}}\nkeys:\n` +
        ['shared', 'away'].map((k) => `  - {name: ${k}, sha256: ${sha(k)}, tokens_per_day: ${LIMIT}}\n`).join(''));
    return new c.Member(shoal, 'gateway', name, ['--config', file]).start();
}

// One request: the tokens it used, or 0 if the key has none left.
async function ask(gw, key) {
    const r = await t.within(fetch(`${gw.url}/v1/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: 'reply', prompt: `${++n} lamps`, max_tokens: TOKENS, ignore_eos: true }) }), 'a completion');
    const j = await r.json();
    t.check(r.status === 200 || (r.status === 429 && j.error.code === 'insufficient_quota'), `${r.status}: ${JSON.stringify(j)}`);
    return { used: r.status === 200 ? j.usage.total_tokens : 0, after: Number(r.headers.get('retry-after')) };
}

// Alternates between both until both say that the day's quota is used up.
async function use_up(gateways, key) {
    let total = 0;
    const over = new Set();
    for (let i = 0; over.size < gateways.length; i = (i + 1) % gateways.length) {
        const got = await ask(gateways[i], key);
        total += got.used;
        if (got.used > 0)
            over.delete(i);
        else if (got.after > 60) // tomorrow; otherwise the next slice is on its way
            over.add(i);
        else
            await t.sleep(100);
    }
    return total;
}

(async () => {
    const port = await t.free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    run('ca', 'issue', 'node1', '--role', 'node', '--host', '127.0.0.1');
    for (const name of ['gw1', 'gw2'])
        run('ca', 'issue', name, '--role', 'gateway');
    start_nats();
    await new c.Member(shoal, 'node', 'node1', ['--listen', '127.0.0.1:0', '--certs', certs('node1'), '--join', url, '--shoal',
        'home', '-m', `reply=${path.join(t.root, 'tests/data/refs/llama-gqa.gguf')}`]).start();
    const gateways = await Promise.all(['gw1', 'gw2'].map((name) => gateway(name, url)));
    for (const gw of gateways)
        await c.all_ready({ gateway: gw }, 1);

    const total = await use_up(gateways, 'shared');
    t.check(total >= LIMIT && total < LIMIT + 2 * (TOKENS + 20), `two gateways gave ${total} of ${LIMIT} tokens`);
    for (const gw of gateways)
        t.check(await t.metric(gw, 'shoal_key_tokens_today{key="shared"}') > 0, `${gw.name} gave some of them`);

    // a restarted gateway still has its slice
    t.same((await gateways[1].end('SIGTERM')).code, 0, 'gw2 ends');
    gateways[1] = await gateway('gw2', url);
    await c.all_ready({ gateway: gateways[1] }, 1);
    t.same((await use_up(gateways, 'shared')), 0, 'nothing is left after a restart');

    // NATS down: each goes on with its slice and gets no other
    await ask(gateways[0], 'away');
    nats.kill();
    await t.until(async () => await t.metric(gateways[0], 'shoal_nats_up') === 0, 'NATS is away');
    let used = 0, got;
    do {
        got = await ask(gateways[0], 'away');
        used += got.used;
    } while (got.used > 0);
    t.check(used < LIMIT * 0.6 && got.after < 60, `without NATS: ${used} tokens, then again in ${got.after} s`);
    await t.until(() => /token quotas are currently not shared/.test(gateways[0].log), 'the gateway says so');
    start_nats();
    await t.until(async () => (await ask(gateways[0], 'away')).used > 0, 'NATS is back, and so are tokens');
    await c.close();
    t.finish();
})().catch(t.abandon);
