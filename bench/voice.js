#!/usr/bin/env node
// Speech to text: ours beside Moonshine's own ONNX files with ONNX Runtime, on the same sounds, in turns, with the same number of threads.
// Usage: voice.js [ROUNDS [THREADS]]; default: 5 2.  Sounds: tests/data/audio, and Debian's pocketsphinx-testdata where it is installed.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { ROOT, median, printTable, writeRows } = require('./lib.js');
const { errors, program, sounds, words } = require('./sound.js');

const rounds = Number(process.argv[2] || 5), threads = Number(process.argv[3] || 2);
const ours = path.join(ROOT, 'build/bench/bench_voice'), model = path.join(ROOT, 'models/hear.gguf');
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-voice-'));

(async () => {
    const venv = execFileSync(path.join(__dirname, 'fetch-voice'), { encoding: 'utf8' }).trim();
    const fetched = (name) => execFileSync(path.join(ROOT, 'tools/fetch-npm'), [name], { encoding: 'utf8' }).trim();
    const folder = path.join(fetched('@moonshine-ai/moonshine-js@0.1.29'), 'dist/model/tiny/quantized');
    const list = sounds();
    const a = program(ours, [model, String(threads)]);
    const b = program(path.join(venv, 'bin/python'), [path.join(__dirname, 'peer_voice.py'), folder, String(threads)]);
    const decode = (ids) => execFileSync(path.join(ROOT, 'build/shoal'), ['detokenize', '-m', model, ids.join(',')], { encoding: 'utf8' }).trim();
    const sum = { seconds: 0, ours: 0, peer: 0, oursCpu: 0, peerCpu: 0, said: 0, oursWrong: 0, peerWrong: 0, same: 0 };
    for (const [i, [file, said]] of list.entries()) {
        const raw = `${tmp}/${i}.raw`, x = [], y = [];
        fs.writeFileSync(raw, execFileSync(ours, ['raw', file], { maxBuffer: 1 << 26 }));
        for (let r = 0; r <= rounds; r++) { // the first round warms up
            x.push(await a.ask(file));
            y.push(await b.ask(raw));
        }
        const of = (runs, key) => median(runs.slice(1).map((v) => v[key]));
        const peerText = decode(y[0].ids);
        sum.seconds += x[0].seconds;
        sum.ours += of(x, 'ms');
        sum.peer += of(y, 'ms');
        sum.oursCpu += of(x, 'cpu_ms');
        sum.peerCpu += of(y, 'cpu_ms');
        sum.said += words(said).length;
        sum.oursWrong += errors(words(said), words(x[0].text));
        sum.peerWrong += errors(words(said), words(peerText));
        sum.same += x[0].text === peerText;
        if (x[0].text !== peerText)
            console.log(`${path.basename(file)}\n  ours: ${x[0].text}\n  peer: ${peerText}`);
    }
    a.end();
    b.end();
    const row = (name, mine, peer) => ({ part: 'voice', name, ours: mine / sum.seconds, peer: peer / sum.seconds, unit: 'ms/s of sound', ratio: peer / mine, roofline: null,
        target: '>= 1.5', met: peer >= 1.5 * mine });
    const rows = [row('Moonshine tiny, elapsed', sum.ours, sum.peer), row('Moonshine tiny, processor', sum.oursCpu, sum.peerCpu)];
    printTable(rows);
    const rate = (n) => `${(100 * n / sum.said).toFixed(2)} %`;
    console.log(`\n${list.length} sounds, ${sum.seconds.toFixed(1)} s, ${sum.said} words; word error rate: ours ${rate(sum.oursWrong)}, peer ${rate(sum.peerWrong)}; equal texts: ${sum.same}`);
    writeRows('voice', rows, { peer: `ONNX Runtime 1.23.2, ${threads} threads, the INT8 files of @moonshine-ai/moonshine-js 0.1.29`, words: sum.said,
        ours_wrong: sum.oursWrong, peer_wrong: sum.peerWrong, equal_texts: sum.same, sounds: list.length });
    fs.rmSync(tmp, { recursive: true, force: true });
})().catch((e) => { console.error(e); process.exit(1); });
