#!/usr/bin/env node
// Questions about a manual, answered by examples/flows/manual_llm.yaml with a real model of 135 M parameters: retrieve,
// write, verify, cite. Counts the answers: a sentence with the expected words (right), one without them (wrong), or the
// quoted passage marked as unsure. The words are only a guide: read the output. Usage: manual_real.js SHOAL MODEL.gguf
// MANUAL QUESTIONS.jsonl
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const [shoal, model, manual, questions] = process.argv.slice(2).map((p) => path.resolve(p));
const dir = path.join(t.tmp, 'collections'), file = path.join(t.tmp, 'manual.yaml');
const plain = (s) => s.toLowerCase().replace(/[\u2018\u2019]/g, "'").replace(/\s+/g, ' ');

(async () => {
    execFileSync(shoal, ['index', 'add', '--dir', dir, 'manual', manual], { stdio: ['ignore', 'ignore', 'inherit'] });
    fs.writeFileSync(file, fs.readFileSync(`${t.root}/examples/flows/manual_llm.yaml`, 'utf8').replace('path: smollm2.gguf', `path: "${model}"`)
        .replace('path: models/encoder', `path: "${t.root}/models/encoder"`) + `collections: {dir: "${dir}"}\n`);
    const server = await t.start(shoal, ['--config', file]);
    const count = {};
    for (const line of fs.readFileSync(questions, 'utf8').trim().split('\n')) {
        const q = JSON.parse(line);
        const r = await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ model: 'manual', text: q.text, explain: true }) });
        const a = await r.json();
        t.same(r.status, 200, `${q.text}: ${JSON.stringify(a).slice(0, 300)}`);
        const unsure = /^I am not sure/.test(a.output), has = q.answer !== null && plain(a.output).includes(plain(q.answer));
        const cited = /\[\d+\]/.test(a.output), known = new Set(a.steps?.find((s) => s.name === 'found')?.output?.passages?.map((p) => String(p.id)));
        const what = `${q.answer === null ? 'not in the manual' : 'in the manual'}: ` +
            (unsure ? `unsure, quotes ${q.answer === null ? 'a passage' : has ? 'the right passage' : 'another passage'}` : has ? 'right' : 'wrong');
        count[what] = (count[what] ?? 0) + 1;
        // must hold whatever the model says
        t.check(cited, `cites a passage: ${a.output}`);
        for (const [, id] of a.output.matchAll(/\[(\d+)\]/g)) t.check(known.has(id), `[${id}] is a passage that was found: ${a.output}`);
        console.log(`${q.text}\n    ${what}\n    ${a.output.replace(/\s*\n\s*/g, ' ').slice(0, 240)}`);
    }
    console.log();
    for (const [what, n] of Object.entries(count).sort()) console.log(`${String(n).padStart(4)} ${what}`);
    await server.stop();
    t.finish();
})().catch(t.abandon);
