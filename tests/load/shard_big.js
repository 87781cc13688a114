#!/usr/bin/env node
// A model that no node can hold: 1.1 B parameters at Q8_0 (random weights in the shape of TinyLlama) over two and over three
// unequal nodes, each with a memory limit below the model's size. Tokens equal those of a node without a limit; eight sequences at once.
// Usage: shard_big.js SHOAL MAKE_SHAPES [TOKENS]
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const c = require('../integration/cluster_site.js');

const [shoal, make_shapes] = process.argv.slice(2, 4).map((p) => path.resolve(p));
const n_tokens = Number(process.argv[4] ?? 200), dir = t.tmp, models = path.join(dir, 'models');
const file = path.join(models, 'big.gguf'), certs = (name) => path.join(dir, 'ca', 'members', name);
const ca = (...args) => execFileSync(shoal, ['ca', ...args], { cwd: dir });

const idle = ['models:', `  - {name: idle, path: ${path.join(t.root, 'models/reply-draft.gguf')}, lazy: true}`];
async function node(name, memory, lines = idle, cluster = []) {
    const config = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(config, ['cluster:', `  name: ${name}`, '  listen: ["127.0.0.1:0"]', `  certs: ${certs(name)}`, '  silent: 10s',
        ...cluster, `model_dirs: ["${models}"]`, ...(memory ? [`memory: ${memory}`] : []), ...lines, ''].join('\n'));
    const m = await new c.Member(shoal, 'node', name, ['--config', config]).start();
    m.address = m.out.match(/listening for other members on (?:https:\/\/)?(\S+)/)[1];
    return m;
}

const MAX_MS = 3600000; // of a slow or busy machine: a stream that hangs still ends the test
const speed = (since) => `${(8 * n_tokens * 1000 / (Date.now() - since)).toFixed(1)} tokens/s`;
// Memory of a node that is not pages of files: what its limit is about.
const resident = (m) => {
    const status = fs.readFileSync(`/proc/${m.child.pid}/status`, 'utf8');
    const mib = (key) => (Number(status.match(`${key}:\\s+(\\d+)`)[1]) / 1024).toFixed(0);
    return `${m.name} ${mib('VmRSS')} MiB (${mib('RssAnon')} of its own)`;
};
const entry = (name, shard) => ['models:', `  - {name: ${name}, path: ${file}, context: 512${shard ? `, shard: "${shard}"` : ''}}`];
const others = (nodes) => [`  nodes: [${nodes.map((n) => `"${n.address}"`).join(', ')}]`];

(async () => {
    fs.mkdirSync(models);
    execFileSync(make_shapes, ['tiny1b', `${file}.f16`]);
    execFileSync(shoal, ['model', 'quantize', `${file}.f16`, file, '--type', 'q8_0']);
    fs.rmSync(`${file}.f16`);
    ca('init');
    for (const name of ['whole', 'small', 'e2', 'e3', 'p1', 'p2', 'p3'])
        ca('issue', name, '--role', 'node', '--host', '127.0.0.1');
    ca('issue', 'gw', '--role', 'gateway');
    const whole = await node('whole', null, entry('ref'));
    const small = await node('small', '900MiB', entry('alone'));
    await t.until(() => /does not fit/.test(small.log), { toString: () => `too small for the whole model: ${small.log.slice(-1000)}` });
    await small.end();
    const p1 = await node('p1', '800MiB'), p2 = await node('p2', '500MiB'), p3 = await node('p3', '350MiB');
    const two = await node('e2', '700MiB', entry('two', 'auto'), others([p1]));
    const three = await node('e3', '500MiB', entry('three', 'auto'), others([p2, p3]));
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--listen', '127.0.0.1:0', '--certs', certs('gw'),
        ...[whole, two, three].flatMap((n) => ['--node', n.address])]).start();
    await c.all_ready({ gateway: gw }, 3);
    for (const m of [whole, two, three]) // tiling takes a while
        for (let i = 0; i < 6000 && !/loaded path=/.test(m.log); i++)
            await t.sleep(100);
    const ask = (model) => Promise.all(Array.from({ length: 8 }, (_, i) => c.stream(gw.url, { model, prompt: `the ${i} and the `.repeat(6),
        max_tokens: n_tokens, ignore_eos: true, ...(i % 2 ? { temperature: 0.9, seed: i } : { temperature: 0 }) }, () => {}, MAX_MS)));
    const t1 = Date.now(), want = await ask('ref');
    console.log(`whole: ${speed(t1)}, ${resident(whole)}`);
    for (const [model, e, n, parts] of [['two', two, 2, [p1]], ['three', three, 3, [p2, p3]]]) {
        const t0 = Date.now(), got = await ask(model);
        got.forEach((g, i) => {
            t.same(g.error, null, `${model} ${i}: error`);
            t.same(g.text, want[i].text, `${model} ${i}: text`);
            t.same(g.usage?.completion_tokens, n_tokens, `${model} ${i}: tokens`);
        });
        t.check(e.log.includes(`is computed by ${n} nodes`), `${n} nodes: ${e.log.slice(-1000)}`);
        const layers = [...e.log.matchAll(/layers (\d+ to \d+) are computed by node=(\w+)/g)].map((m) => `${m[2]}: ${m[1]}`);
        console.log(`${n} nodes (${layers.join(', ')}): ${speed(t0)}, ${[e, ...parts].map(resident).join(', ')}`);
    }
    await c.close();
    t.finish();
})().catch(t.abandon);
