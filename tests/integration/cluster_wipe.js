#!/usr/bin/env node
// NATS loses its data: the controller writes the desired state back, fences go on counting up, and what an
// administrator does in the gap changes the state that the members know, not an empty one.
// Usage: cluster_wipe.js SHOAL
'use strict';
const { execFile, execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const body = { model: 'reply', prompt: 'ask: what is the weather', max_tokens: 60, ignore_eos: true, temperature: 0 };

let url, nats;
const start_nats = () => { nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1')); };

// kill -9, an empty folder, and a start.
async function wipe() {
    await nats.kill();
    const conf = fs.readFileSync(path.join(certs('nats-1'), 'nats.conf'), 'utf8');
    const store = path.resolve(certs('nats-1'), conf.match(/store_dir: *"?([^"\s]+)/)[1]);
    t.check(fs.existsSync(store), `the data of NATS are in ${store}`);
    fs.rmSync(store, { recursive: true });
    start_nats();
}

// shoal cluster ARGS as administrator: its exit code, JSON (the last line) and messages.
function cluster(...args) {
    return new Promise((done) => {
        execFile(shoal, ['cluster', ...args, '--cluster', 'home', '--certs', certs('admin'), '--nats', url, '--timeout', '60'],
            { cwd: dir, maxBuffer: 1 << 26 }, (error, out, err) => {
                let json = null;
                try {
                    json = JSON.parse(out.trim().split('\n').pop());
                } catch (e) { /* not requested */ }
                done({ code: error ? error.code : 0, out, err, json });
            });
    });
}
const desired = async () => (await cluster('desired', '--json')).json ?? { version: 0, fence: 0 };

async function node(name) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `cluster: {certs: ${certs(name)}, nats: ['${url}'], shoal: home, lease: 2s, listen: '127.0.0.1:0'}\n`);
    return new c.Member(shoal, 'node', name, ['--config', file, '--no-models']).start();
}

(async () => {
    const port = await t.free_port();
    url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    for (const name of ['node1', 'node2', 'node3'])
        run('ca', 'issue', name, '--role', 'node,controller', '--host', '127.0.0.1');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    start_nats();
    const nodes = [];
    for (const name of ['node1', 'node2', 'node3'])
        nodes.push(await node(name));
    const file = path.join(dir, 'gw.yaml');
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncluster: {certs: ${certs('gw')}, nats: ['${url}'], shoal: home, wait: 60s}\n`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--config', file]).start();
    const site = { gateway: gw };
    await c.all_ready(site, 3);
    let r = await cluster('deploy', 'reply', '--replicas', '2', '--wait', '120', '--json');
    t.same(r.json?.ready, 2, `deploy: ${r.err}`);
    const want = await c.stream(gw.url, body);
    t.same(want.error, null, 'a stream');

    // lost: written back with a higher version and fence, and a deploy works
    for (let round = 0; round < 2; round++) {
        const before = await desired(), began = Date.now();
        await wipe();
        t.same((await c.stream(gw.url, body)).text, want.text, 'a stream meanwhile');
        let now;
        await t.until(async () => (now = await desired()).version > before.version,
            { toString: () => `the state is written back: ${JSON.stringify(now)}` });
        t.same(now.id, before.id, 'it is the same state');
        t.check(now.fence > before.fence, `the fence grows: ${before.fence}, ${now.fence}`);
        t.same(now.models.map((m) => m.name).join(), before.models.map((m) => m.name).join(), 'its models');
        console.log(`wipe ${round + 1}: version ${before.version} came back as ${now.version} after ${Date.now() - began} ms, ` +
            `fence ${before.fence} became ${now.fence}`);
        r = await cluster('deploy', round ? 'intent' : 'embed', '--replicas', '2', '--wait', '120', '--json');
        t.same(r.json?.ready, 2, `deploy after it: exit code ${r.code}: ${r.err}`);
        if (round === 0) { // a member that starts anew has seen no fence
            await nodes[0].end('SIGKILL');
            await nodes[0].start();
            await c.all_ready(site, 3);
        }
    }

    // an administrator acts in the gap: at once, and the state is the one that was known
    const before = await desired();
    await wipe();
    r = await cluster('drain', 'node3', '--wait', '0', '--force');
    t.check(r.code === 0 || r.code === 3, `drain in the gap: exit code ${r.code}: ${r.err}`);
    const after = await desired();
    t.same(after.id, before.id, 'the state after it');
    t.check(after.version > before.version, `versions: ${before.version}, ${after.version}`);
    t.same(after.drained?.join(), 'node3', 'what was asked for');
    r = await cluster('drain', 'node3', '--wait', '120');
    t.same(r.code, 0, `the node is empty: ${r.err}`);
    r = await cluster('undrain', 'node3');
    t.same(r.code, 0, `undrain: ${r.err}`);
    for (const n of nodes)
        t.check(!/another cluster|was seen/.test(n.log), `${n.name} follows`);
    t.same(await t.metric(gw, 'shoal_lost_total'), 0, 'lost');
    await c.close();
    t.finish();
})().catch(t.abandon);
