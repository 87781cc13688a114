#!/usr/bin/env node
// `shoal profile`: the parts are the whole, threads and layers are all there, and the files can be read.
// Usage: cli_profile.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), reply = path.join(t.root, 'models/reply.gguf');
const run = (...args) => spawnSync(shoal, ['profile', ...args], { encoding: 'utf8', cwd: t.tmp });


for (const threads of ['1', '2']) {
    const r = run(reply, '-p', '48', '-n', '12', '--threads', threads, '--json', '--svg', 'flame.svg', '--trace', 'trace.json', '--no-roofline');
    t.same(r.status, 0, r.stderr);
    const { shapes } = JSON.parse(r.stdout);
    t.same(shapes.map((s) => `${s.name} ${s.tokens} ${s.passes} ${s.threads.length} ${s.left_out}`).join(), `prompt 48 1 ${threads} 0,decode 12 12 ${threads} 0`, 'shapes');
    for (const s of shapes) {
        const sum = s.kernels.reduce((n, k) => n + k.ms, 0);
        t.check(Math.abs(sum - s.ms) <= 0.05 * s.ms, `${s.name}: the parts are ${sum} ms, the whole ${s.ms} ms`);
        t.check(Math.abs(sum - s.sum_ms) < 1e-6 * sum, 'the sum is the sum');
        const layers = s.layers_ms.reduce((n, x) => n + x, 0);
        t.check(s.layers_ms.length > 1 && s.layers_ms.every((x) => x > 0) && layers < s.ms, `layers of ${s.name}: ${s.layers_ms}`);
        const of = (name) => s.kernels.find((k) => k.kernel === name);
        for (const name of ['start', 'qkv', 'attend', 'attn_out', 'ffn', 'down', 'output', 'between'])
            t.check(of(name)?.calls > 0, `${s.name}: ${name} is there`);
        t.same(of('ffn').calls, s.layers_ms.length * s.passes, 'once in a layer and pass');
        t.check(of('ffn').bytes > 0 && of('qkv').products > 0 && of('attend').bytes > 0, 'bytes and products');
        t.same(of('ffn').products % s.tokens, 0, 'products of each token');
        const busy = s.threads.reduce((n, x) => n + x.busy_ms, 0);
        t.check(busy > 0 && s.threads.every((x) => x.busy_ms >= 0 && x.busy_ms + x.wait_ms > 0), `threads of ${s.name}`);
        const work = s.kernels.reduce((n, k) => n + k.busy_ms, 0);
        t.check(Math.abs(work - busy) < 1e-6 * busy + 1e-9, `what kernels kept busy is what threads did: ${work} ${busy}`);
    }
    const svg = fs.readFileSync(path.join(t.tmp, 'flame.svg'), 'utf8'), boxes = [...svg.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)];
    t.check(svg.startsWith('<svg ') && svg.endsWith('</svg>\n') && boxes.length > 20 && svg.includes('<title>layer 0: '), 'the flame graph');
    t.check(boxes.every(([, x, , w]) => +x + +w <= 1200.5), 'within the picture');
    const { traceEvents } = JSON.parse(fs.readFileSync(path.join(t.tmp, 'trace.json'), 'utf8'));
    t.check(traceEvents.length > 100 && traceEvents.every((e) => e.ph === 'X' && e.ts >= 0 && e.dur >= 0 && e.tid < +threads), 'the events');
    t.check(traceEvents.filter((e) => e.name === 'ffn').length >= 2 * 13, 'chunks of the feed-forward');
}
const table = run('-p', '8', '-n', '4');
t.same(table.status, 0, table.stderr);
t.check(/^prompt: 8 tokens in [\d.]+ ms/m.test(table.stdout) && /^ {2}qkv +\d+ +[\d.]+ +[\d.]+% .*\d+% +-?\d+%$/m.test(table.stdout) &&
    /^ {2}sum +[\d.]+ +(9[5-9]|10[0-5])\.\d%$/m.test(table.stdout) && /threads: \d+% busy/.test(table.stdout), table.stdout);
const nothing = run('-p', '0', '-n', '0'), gone = run('gone.gguf'), encoder = run(path.join(t.root, 'models/hear.gguf'));
t.check(nothing.status === 2 && /nothing to profile/.test(nothing.stderr), nothing.stderr);
t.check(gone.status === 1 && /gone.gguf/.test(gone.stderr), gone.stderr);
t.check(encoder.status === 1 && encoder.stderr.length > 20, encoder.stderr);
t.finish();
