#!/usr/bin/env node
// Patches of models: sizes and times of `shoal model delta` and `shoal model patch` beside `zstd --patch-from` and bsdiff (what is
// not installed is left out; bsdiff takes minutes to hours). Usage: delta.js [--model FILE] [--without bsdiff]
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const root = path.join(__dirname, '..'), at = process.argv.indexOf('--model');
const model = at > 0 ? process.argv[at + 1] : path.join(root, 'models/reply.gguf');
const shoal = path.join(root, 'build/shoal');
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-delta-'));
const file = (name) => path.join(dir, name);
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const timed = (program, ...args) => {
    const from = process.hrtime.bigint();
    const r = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    if (r.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${r.stderr}`);
    return Number(process.hrtime.bigint() - from) / 1e9;
};
const ways = {
    shoal: (a, b, p, out) => [timed(shoal, 'model', 'delta', a, b, '-o', p), timed(shoal, 'model', 'patch', a, p, '-o', out)],
    zstd: (a, b, p, out) => [timed('zstd', '-q', '-f', '-9', '--long=27', `--patch-from=${a}`, b, '-o', p), timed('zstd', '-q', '-f', '-d', '--long=27', `--patch-from=${a}`, p, '-o', out)],
    bsdiff: (a, b, p, out) => [timed('bsdiff', a, b, p), timed('bspatch', a, out, p)],
};
try {
    execFileSync(path.join(root, 'build/bench/bench_delta'), [model, dir]);
    const rows = [];
    const without = process.argv[process.argv.indexOf('--without') + 1];
    const peers = Object.keys(ways).filter((w) => w === 'shoal' || (w !== without && has(w)));
    console.log(`${'change'.padEnd(26)}${'new MB'.padStart(8)}` + peers.map((w) => `${w.padStart(10)} % ${'make s'.padStart(8)} ${'apply s'.padStart(8)}`).join(''));
    for (const [name, from, to] of [['fine-tuned, Q8_0', 'old', 'tuned'], ['fine-tuned, F16', 'old-f16', 'tuned-f16'], ['one layer', 'old', 'layer'],
        ['metadata', 'old', 'metadata'], ['Q8_0 to Q4_0', 'old', 'q4'], ['fine-tuned, to Q4_0', 'old', 'q4-tuned'], ['F16 to Q8_0', 'old-f16', 'old']]) {
        const [a, b] = [file(`${from}.gguf`), file(`${to}.gguf`)], size = fs.statSync(b).size;
        let line = `${name.padEnd(26)}${(size / 1e6).toFixed(1).padStart(8)}`;
        for (const w of peers) {
            const [made, applied] = ways[w](a, b, file('patch'), file('out'));
            if (!fs.readFileSync(file('out')).equals(fs.readFileSync(b))) throw new Error(`${w}: another file`);
            const share = 100 * fs.statSync(file('patch')).size / size;
            rows.push({ part: 'delta', name, way: w, bytes: size, share, made, applied });
            line += `${share.toFixed(2).padStart(10)}   ${made.toFixed(2).padStart(8)} ${applied.toFixed(2).padStart(8)}`;
            fs.rmSync(file('patch'));
            fs.rmSync(file('out'));
        }
        console.log(line);
    }
    fs.writeFileSync(path.join(root, 'build/bench-delta.json'), JSON.stringify(rows, null, 1));
} finally {
    fs.rmSync(dir, { recursive: true });
}
