#!/usr/bin/env node
// A node that was away during an update does not answer with the old version when it is back: paused, or killed and
// started again from what it has on disk. Alone, without NATS, it does, and says so.
// Usage: cluster_return.js SHOAL
'use strict';
const { execFile } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp, models = path.join(dir, 'models');
const refs = path.join(t.root, 'tests/data/refs');
fs.mkdirSync(models);
const files = ['llama-gqa.gguf', 'qwen3.gguf'].map((name) => {
    fs.copyFileSync(path.join(refs, name), path.join(models, name));
    return path.join(models, name);
});

let nats = null, url = '';

const node = (name) => new c.Member(shoal, 'node', name, ['--no-models', '--model-dir', models, '--insecure', '--join', url,
    '--listen', '127.0.0.1:0', '--listen', `unix:${path.join(dir, `${name}.sock`)}`]);
function run(...args) {
    return t.within(new Promise((done) => {
        execFile(shoal, args, { env: { ...process.env, SHOAL_NATS: url } }, (e, out, err) => done({ code: e ? e.code : 0, out, err }));
    }), `shoal ${args.join(' ')}`, 300000);
}

let n_asked = 0;
async function ask(gw) { // another prompt each time: nodes keep answers
    const res = await t.within(fetch(`${gw.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify({ model: 'm', prompt: `request ${++n_asked}`, max_tokens: 4, temperature: 0 }) }), 'a completion');
    const got = await res.json();
    return { status: res.status, version: got.system_fingerprint?.slice(-12), node: res.headers.get('x-shoal-node'),
        isolated: res.headers.get('x-shoal-isolated'), error: got.error };
}

(async () => {
    const port = await t.free_port();
    url = `nats://127.0.0.1:${port}`;
    const start_nats = () => {
        nats = new c.Nats(['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', path.join(dir, 'nats')]);
    };
    start_nats();
    const nodes = await Promise.all(['node1', 'node2', 'node3'].map((name) => node(name).start()));
    const joined = await new c.Member(shoal, 'gateway', 'gw1', ['--insecure', '--join', url, '--listen', '127.0.0.1:0']).start();
    const still = await new c.Member(shoal, 'gateway', 'gw2', ['--insecure', '--listen', '127.0.0.1:0',
        ...nodes.flatMap((n) => ['--node', `unix:${path.join(dir, `${n.name}.sock`)}`])]).start();
    const gateways = [joined, still];
    let r = await run('cluster', 'deploy', 'm', '--file', files[0], '--replicas', '3', '--wait', '120');
    t.same(r.code, 0, `deploy: ${r.err}`);
    for (const gw of gateways) {
        await c.all_ready({ gateway: gw }, 3);
        await t.until(async () => (await ask(gw)).status === 200, 'the model answers');
    }

    for (let round = 0; round < 4; round++) {
        const victim = nodes[round % 3], killed = round % 2 === 1, before = (await ask(joined)).version;
        if (killed)
            await victim.end('SIGKILL');
        else
            await victim.stop();
        r = await run('rollout', 'start', 'm', files[(round + 1) % 2], '--wait', '--json');
        t.same(JSON.parse(r.out).state, 'done', `an update without ${victim.name}: ${r.err}`);
        let on = true, n = 0;
        const old = { gw1: 0, gw2: 0 }, back = new Set();
        const users = gateways.flatMap((gw) => [0, 1, 2].map(async () => {
            while (on) {
                const a = await ask(gw);
                n++;
                t.same(a.status, 200, `an answer: ${JSON.stringify(a.error)}`);
                old[gw.name] += a.version === before;
                if (a.node === victim.name && a.version !== before)
                    back.add(gw.name);
            }
        }));
        if (killed)
            await victim.start();
        else
            victim.signal('SIGCONT');
        await t.until(() => back.size === 2, { toString: () => `${victim.name} answers with the new version, at ${[...back]}` });
        await t.sleep(2000); // an old version that leaves answers for 1.5 s
        on = false;
        await Promise.all(users);
        console.log(`${killed ? 'killed' : 'paused'}: ${n} answers, with the old version: ${JSON.stringify(old)}`);
        t.same(old.gw1, 0, 'old answers of a gateway that knows the update');
        t.same(old.gw2, 0, 'old answers of a gateway without NATS');
    }

    // without NATS a node that starts serves what it knows, and says so
    nats.kill();
    await nodes[0].end('SIGKILL');
    await nodes[0].start();
    await t.until(() => /isolated/.test(nodes[0].log), 'it says that it is alone');
    const answer_of = async (name, what) => {
        let a;
        await t.until(async () => (a = await ask(still)).node === name, what);
        return a;
    };
    t.same((await answer_of('node1', 'and answers')).isolated, '1', 'its answers tell that they may be outdated');
    // so does one that was there: it cannot know whether NATS is down for all, or only for itself
    await t.until(async () => (await answer_of('node2', 'another node answers')).isolated === '1', 'a node that lost NATS says so too');
    start_nats();
    for (const name of ['node1', 'node2'])
        await t.until(async () => (await answer_of(name, 'it still answers')).isolated === null, `${name} is no longer isolated`);
    await c.close();
    t.finish();
})().catch(t.abandon);
