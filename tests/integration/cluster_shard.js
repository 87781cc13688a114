#!/usr/bin/env node
// One model over several nodes: its answers equal those of the whole model, to the token; and it survives the loss of a
// node that computes a part, one that stands still, and one that sends nonsense.
// Usage: cluster_shard.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const tls = require('tls');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const ca = (...args) => execFileSync(shoal, ['ca', ...args], { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const models = path.join(dir, 'models'), file = path.join(models, 'big.gguf');

const prompts = ['ask: what is the weather', 'the kitchen lights are', 'set the heating to', 'the garage door is open and'];
const body = (model, i, more) => ({ model, prompt: `${prompts[i % prompts.length]} ${i}`, max_tokens: 200, ignore_eos: true,
    ...(i % 2 ? { temperature: 0.9, seed: 100 + i } : { temperature: 0 }), ...more });

// What a node without models of its own has, so that it does not load those included with Shoal.
const idle = ['models:', `  - {name: idle, path: ${path.join(t.root, 'models/reply-draft.gguf')}, lazy: true}`];

// A node with a certificate; lines: more of its configuration.
async function node(name, lines = idle, cluster = []) {
    const config = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(config, ['cluster:', `  name: ${name}`, '  listen: ["127.0.0.1:0"]', `  certs: ${certs(name)}`,
        ...cluster, `model_dirs: ["${models}"]`, ...lines, ''].join('\n'));
    const m = await new c.Member(shoal, 'node', name, ['--config', config]).start();
    m.address = m.out.match(/listening for other members on (?:https:\/\/)?(\S+)/)[1];
    return m;
}

// The node whose engine has the model "big" with the others' parts.
const engine = (name, shard, others) => node(name, ['models:', `  - {name: big-${name}, path: ${file}, shard: "${shard}"}`],
    [`  nodes: [${others.map((n) => `"${n.address}"`).join(', ')}]`]);

async function gateway(nodes) {
    return new c.Member(shoal, 'gateway', 'gw', ['--listen', '127.0.0.1:0', '--certs', certs('gw'),
        ...nodes.flatMap((n) => ['--node', n.address])]).start();
}

// A node that has a certificate and sends nonsense as results; kinds of messages: src/cluster/shard/shard_msg.h.
function liar(name, values) {
    const frame = (kind, body) => {
        const head = Buffer.alloc(8);
        head.writeUInt32LE(body.length, 0);
        head[4] = kind;
        head[5] = 1;
        return Buffer.concat([head, body]);
    };
    const text = (s) => Buffer.concat([Buffer.from([s.length, 0]), Buffer.from(s)]);
    const read = (f) => fs.readFileSync(path.join(certs(name), f));
    const told = [];
    const server = tls.createServer({ cert: read('cert.pem'), key: read('key.pem'), ca: read('ca.pem'), requestCert: true,
        minVersion: 'TLSv1.3', ALPNProtocols: ['shoal-shard/1'] }, (sock) => {
        let rest = Buffer.alloc(0), chain, dim;
        sock.on('error', () => {});
        sock.on('data', (d) => {
            rest = Buffer.concat([rest, d]);
            while (rest.length >= 8 && rest.length >= 8 + rest.readUInt32LE(0)) {
                const kind = rest[4], b = rest.subarray(8, 8 + rest.readUInt32LE(0));
                rest = rest.subarray(8 + b.length);
                if (kind === 1) { // HELLO: a machine that is too good to be true
                    const facts = Buffer.alloc(20);
                    facts.writeBigUInt64LE(1n << 50n, 8);
                    facts.writeUInt32LE(64, 16);
                    sock.write(frame(2, Buffer.concat([b, text(name), facts])));
                } else if (kind === 3) { // ECHO
                    sock.write(frame(4, Buffer.alloc(0)));
                } else if (kind === 5) { // OPEN
                    chain = Buffer.from(b.subarray(48, 56));
                    dim = b.readUInt32LE(68);
                    sock.write(frame(6, Buffer.concat([chain, Buffer.alloc(8)])));
                } else if (kind === 8) { // STEP
                    const head = Buffer.from(b.subarray(0, 36)), n = b.readUInt32LE(28);
                    head.writeUInt32LE(0, 24);
                    head.writeUInt32LE(dim, 32);
                    told.push(n);
                    sock.write(frame(9, Buffer.concat([head, values(n * dim)])));
                }
            }
        });
    });
    return new Promise((done) => server.listen(0, '127.0.0.1', () =>
        done({ name, address: `127.0.0.1:${server.address().port}`, told, close: () => server.close() })));
}

const last_part = (e) => [...e.log.matchAll(/layers \d+ to \d+ are computed by node=([a-z0-9]+)/g)].at(-1)?.[1];

let gw;
// Asks both models the same at once.  hit() is called when the answers of the sharded one are under way.
async function compare(model, from, n, what, hit = async () => {}) {
    let hitting = null;
    const ids = Array.from({ length: n }, (_, i) => from + i);
    const got = await Promise.all(ids.map((i) => c.stream(gw.url, body(model, i), (g) => {
        if (g.n === 20)
            hitting ??= hit();
    })));
    await hitting;
    const want = await Promise.all(ids.map((i) => c.stream(gw.url, body('ref', i))));
    ids.forEach((id, i) => {
        t.same(want[i].error, null, `${what}: whole ${id}`);
        t.same(got[i].error, null, `${what}: sharded ${id}`);
        t.same(got[i].text, want[i].text, `${what}: text ${id}`);
        t.same(got[i].usage?.completion_tokens, 200, `${what}: tokens ${id}`);
    });
    return Math.max(...got.map((g) => Math.max(...g.gaps.slice(1))));
}

(async () => {
    fs.mkdirSync(models);
    fs.copyFileSync(path.join(t.root, 'models/reply.gguf'), file);
    ca('init');
    for (const name of ['e2', 'e3', 'e4', 'p1', 'p2', 'p3', 'p4', 'whole', 'liar'])
        ca('issue', name, '--role', 'node', '--host', '127.0.0.1');
    ca('issue', 'gw', '--role', 'gateway');
    const whole = await node('whole', ['models:', `  - {name: ref, path: ${file}}`]);
    const parts = await Promise.all(['p1', 'p2', 'p3', 'p4'].map((name) => node(name)));
    const two = await engine('e2', 'layers:2', parts), three = await engine('e3', 'layers:3', parts);
    gw = await gateway([whole, two, three]);
    await c.all_ready({ gateway: gw }, 3);

    // eight at once, greedy and seeded, 200 tokens each
    await compare('big-e2', 0, 8, 'two nodes');
    const used = parts.find((p) => p.name === last_part(two));
    t.check(/computes layers 0 to \d of model=[0-9a-f]{12} for node=e2/.test(used.log), `the part's log: ${used.log.slice(-2000)}`);
    await compare('big-e3', 8, 4, 'three nodes');
    t.check(/is computed by 3 nodes/.test(three.log), `three nodes: ${three.log.slice(-2000)}`);

    // the part's node is killed, then another stands still: the answers go on
    const gap = await compare('big-e2', 16, 4, 'killed', () => used.end('SIGKILL'));
    t.check(two.log.includes(`lost node=${used.name} with`), `killed: ${two.log.slice(-2000)}`);
    console.log(`killed ${used.name}: the longest pause was ${gap.toFixed(0)} ms`);
    const stopped = parts.find((p) => p.name === last_part(two));
    t.check(stopped && stopped !== used, `another node takes the part: ${last_part(two)}`);
    const pause = await compare('big-e2', 20, 2, 'stopped', () => stopped.stop());
    t.check(two.log.includes(`lost node=${stopped.name} with`) && /it is silent/.test(two.log), `stopped: ${two.log.slice(-2000)}`);
    console.log(`stopped ${stopped.name}: the longest pause was ${pause.toFixed(0)} ms`);
    stopped.signal('SIGCONT');

    // what operators see
    let status;
    const seen = () => (status = spawnSync(shoal, ['cluster', 'status', '--server', gw.url]).stdout.toString());
    await t.until(() => / \d-\d p\d \d-7 e2 {2}lost p\d: it is silent/.test(seen()), { toString: () => `cluster status: ${status}` });
    t.check(/ 2 {2}0-\d p\d/.test(status), `rebuilt twice: ${status}`);

    // nonsense is named, and never reaches an answer
    await Promise.all([gw, two, three].map((m) => m.end()));
    const bad = await liar('liar', (n) => Buffer.alloc(4 * n, 0xff)); // not a number
    const lied = await engine('e4', 'layers:2', [bad, ...parts.filter((p) => p !== used)]);
    gw = await gateway([whole, lied]);
    await c.all_ready({ gateway: gw }, 2);
    await compare('big-e4', 22, 2, 'nonsense');
    t.check(bad.told.length > 0, 'the liar was asked');
    t.check(/lost node=liar .*values that are not numbers/.test(lied.log), `the liar is named: ${lied.log.slice(-2000)}`);
    bad.close();
    await c.close();
    t.finish();
})().catch(t.abandon);
