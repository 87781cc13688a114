#!/usr/bin/env node
// Rerankers from folders of every architecture: /v1/rerank gives the scores of transformers, tokenizers included; see tests/data/rerankers/README.md.
// Usage: serve_rerankers.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), folder = path.join(t.root, 'tests/data/rerankers');
const { pairs, scores } = JSON.parse(fs.readFileSync(path.join(folder, 'scores.json')));
const near = (got, want) => Math.abs(got - want) < 1e-4 * Math.max(1, Math.abs(want));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

(async () => {
    const config = path.join(t.tmp, 'rerankers.yaml'), names = Object.keys(scores);
    fs.writeFileSync(config, `models: [${names.map((n) => `{name: ${n}, path: "${folder}/${n}"}`).join(', ')}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    for (const name of names) {
        for (const [i, [query, text]] of pairs.entries()) {
            const r = await (await fetch(`${server.url}/v1/rerank`, { method: 'POST', body: JSON.stringify({ model: name, query, documents: [text] }) })).json();
            t.check(near(r.results?.[0].relevance_score, sigmoid(scores[name][i])), `${name}, pair ${i}: ${JSON.stringify(r).slice(0, 200)}, expected ${sigmoid(scores[name][i])}`);
        }
        const sorted = await (await fetch(`${server.url}/v1/rerank`, { method: 'POST', body: JSON.stringify({ model: name, query: pairs[0][0], documents: [pairs[0][1], pairs[1][1]] }) })).json();
        t.same(sorted.results[0].index, scores[name][0] > scores[name][1] ? 0 : 1, `${name}: the better one first`);
        const file = path.join(t.tmp, `${name}.gguf`);
        execFileSync(shoal, ['model', 'convert', path.join(folder, name), file, '--type', 'f32'], { stdio: 'pipe' });
        const line = JSON.parse(execFileSync(shoal, ['rerank', '--raw', '--json', '--no-cache', '-m', file, ...pairs[3]], { encoding: 'utf8' }));
        t.check(near(line.score, scores[name][3]), `${name}, as GGUF: ${line.score}, expected ${scores[name][3]}`);
    }
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
