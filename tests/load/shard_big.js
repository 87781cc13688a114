#!/usr/bin/env node
// A model that no node can hold: 1.1 B parameters at Q8_0 (random weights in the shape of TinyLlama) over two and over three
// unequal nodes, by layers and by rows, each with a memory limit below the model's size. Tokens equal those of a node without a limit; eight
// sequences at once.
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
// Resident memory; the tiled weights in it are pages of the cache's file.
const resident = (m) => {
    const status = fs.readFileSync(`/proc/${m.child.pid}/status`, 'utf8');
    const mib = (key) => (Number(status.match(`${key}:\\s+(\\d+)`)[1]) / 1024).toFixed(0);
    return `${m.name} ${mib('VmRSS')} MiB (${mib('RssAnon')} of its own)`;
};
const entry = (name, shard) => ['models:', `  - {name: ${name}, path: ${file}, context: 512${shard ? `, shard: "${shard}"` : ''}}`];

// Memory of the engine's node and of the others: no two alike, and none has room for the model.
const runs = [{ name: 'e2', shard: 'auto', memory: ['700MiB', '800MiB'] }, { name: 'e3', shard: 'auto', memory: ['500MiB', '500MiB', '350MiB'] },
    { name: 'r2', shard: 'rows:2', memory: ['700MiB', '800MiB'] }, { name: 'r3', shard: 'rows:3', memory: ['500MiB', '550MiB', '400MiB'] }];

const loaded = async (m) => { // tiling takes a while
    for (let i = 0; i < 6000 && !/loaded path=/.test(m.log); i++)
        await t.sleep(100);
};
const ask = (gw, model) => Promise.all(Array.from({ length: 8 }, (_, i) => c.stream(gw.url, { model, prompt: `the ${i} and the `.repeat(6),
    max_tokens: n_tokens, ignore_eos: true, ...(i % 2 ? { temperature: 0.9, seed: i } : { temperature: 0 }) }, () => {}, MAX_MS)));

// The same questions to nodes that have the model together.
async function over({ name, shard, memory }, want) {
    const n = memory.length, others = [];
    for (let i = 1; i < n; i++)
        others.push(await node(`p${i}`, memory[i]));
    const e = await node(name, memory[0], entry(name, shard), [`  nodes: [${others.map((o) => `"${o.address}"`).join(', ')}]`]);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--listen', '127.0.0.1:0', '--certs', certs('gw'), '--node', e.address]).start();
    await c.all_ready({ gateway: gw }, 1);
    await loaded(e);
    const t0 = Date.now(), got = await ask(gw, name);
    got.forEach((g, i) => {
        t.same(g.error, null, `${name} ${i}: error`);
        t.same(g.text, want[i].text, `${name} ${i}: text`);
        t.same(g.usage?.completion_tokens, n_tokens, `${name} ${i}: tokens`);
    });
    t.check(e.log.includes(`is computed by ${n} nodes`), `${n} nodes: ${e.log.slice(-1000)}`);
    const parts = [...e.log.matchAll(/((?:layers|rows) \d+ to \d+)[ of\d]* are computed by node=(\w+)/g)].map((m) => `${m[2]}: ${m[1]}`);
    console.log(`${shard} over ${n} nodes (${parts.join(', ')}): ${speed(t0)}, ${[e, ...others].map(resident).join(', ')}`);
    await Promise.all([gw, e, ...others].map((m) => m.end()));
}

(async () => {
    fs.mkdirSync(models);
    execFileSync(make_shapes, ['tiny1b', `${file}.f16`]);
    execFileSync(shoal, ['model', 'quantize', `${file}.f16`, file, '--type', 'q8_0']);
    fs.rmSync(`${file}.f16`);
    ca('init');
    for (const name of ['whole', 'small', 'e2', 'e3', 'r2', 'r3', 'p1', 'p2'])
        ca('issue', name, '--role', 'node', '--host', '127.0.0.1');
    ca('issue', 'gw', '--role', 'gateway');
    const whole = await node('whole', null, entry('ref'));
    const small = await node('small', '900MiB', entry('alone'));
    await t.until(() => /does not fit/.test(small.log), { toString: () => `too small for the whole model: ${small.log.slice(-1000)}` });
    await small.end();
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--listen', '127.0.0.1:0', '--certs', certs('gw'), '--node', whole.address]).start();
    await c.all_ready({ gateway: gw }, 1);
    await loaded(whole);
    const t1 = Date.now(), want = await ask(gw, 'ref');
    console.log(`whole: ${speed(t1)}, ${resident(whole)}`);
    await Promise.all([gw, whole].map((m) => m.end()));
    for (const run of runs)
        await over(run, want);
    await c.close();
    t.finish();
})().catch(t.abandon);
