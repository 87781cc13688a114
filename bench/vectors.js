#!/usr/bin/env node
// Vector search: ours (exact, and with its index) compared with FAISS flat (exact) and hnswlib, on the same vectors in the same run, one query
// at a time on one thread.  Usage: vectors.js [ROWS [QUERIES]]; default: 100000 200.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const root = path.join(__dirname, '..'), dims = 384, k = 10;
const n = Number(process.argv[2] || 100000), n_queries = Number(process.argv[3] || 200);
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-vectors-'));
const run = (program, args) => execFileSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
const quantile = (list, p) => [...list].sort((a, b) => a - b)[Math.floor(p * (list.length - 1))];

try {
    const venv = run(path.join(__dirname, 'fetch-faiss'), []).trim(), python = path.join(venv, 'bin/python');
    const peer = [path.join(__dirname, 'peer_faiss.py'), tmp, n, n_queries, dims, k].map(String);
    run(python, [...peer, 'make']);
    const own = (name, ...more) => ({ name, ...JSON.parse(run(path.join(root, 'build/bench/bench_vectors'),
        [`${tmp}/rows.f32`, `${tmp}/queries.f32`, String(dims), String(k), ...more])) });
    const ours = own('shoal exact'), all = [ours, own('shoal HNSW', 'indexed'), ...JSON.parse(run(python, peer))];
    const truth = all.find((x) => x.name === 'faiss flat').queries.map((q) => new Set(q.ids));
    const rows = all.map((x) => {
        const us = x.queries.map((q) => q.us);
        const found = x.queries.reduce((sum, q, i) => sum + q.ids.filter((id) => truth[i].has(id)).length, 0);
        return { part: 'vectors', what: x.name, rows: n, dims, k, recall: found / (truth.length * k), p10_us: quantile(us, 0.1), p50_us: quantile(us, 0.5),
            p99_us: quantile(us, 0.99), add_ms: x.add_ms };
    });
    console.log(`${n} vectors of ${dims}, ${n_queries} queries, the ${k} nearest; kernels ${ours.kernels}\n`);
    console.log('| search | recall | p10 ms | p50 ms | p99 ms | add ms |\n|---|---|---|---|---|---|');
    for (const r of rows)
        console.log(`| ${r.what} | ${r.recall.toFixed(4)} | ${(r.p10_us / 1e3).toFixed(2)} | ${(r.p50_us / 1e3).toFixed(2)} | ${(r.p99_us / 1e3).toFixed(2)} | ${r.add_ms.toFixed(0)} |`);
    fs.mkdirSync(path.join(root, 'build'), { recursive: true });
    fs.writeFileSync(path.join(root, 'build/bench.json'), JSON.stringify(rows, null, 1));
} finally {
    fs.rmSync(tmp, { recursive: true, force: true });
}
