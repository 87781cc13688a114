#!/usr/bin/env node
// The Silero voice detector (16 kHz) as a layer program, tests/data/scorers/silero.json, beside ONNX
// Runtime: probabilities of all frames within 1e-3 (F32), or 0.02 on average (8 bits).  The weights are read
// out of the ONNX files of npm @ricky0123/vad-web, both of its versions.
//
// Usage: silero.js SCORE_SERIES [AUDIO.wav [WEIGHTS.safetensors]]
// Without AUDIO (16 kHz, mono, 16 bits) a signal is made: bursts of a buzzing voice in noise.  With
// WEIGHTS these are put in the place of those in the ONNX file as well.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const root = path.resolve(__dirname, '../..');
const [tool, audioFile, weightsFile] = process.argv.slice(2).map((p) => path.resolve(p));
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-silero-'));
process.on('exit', () => fs.rmSync(tmp, { recursive: true }));
const bring = (script, ...args) =>
    execFileSync(path.join(root, 'tools', script), args, { encoding: 'utf8' }).trim();
const vad = bring('fetch-npm', '@ricky0123/vad-web@0.0.31');
fs.mkdirSync(path.join(tmp, 'modules'));
fs.symlinkSync(bring('fetch-npm', 'onnxruntime-common@1.24.3'),
    path.join(tmp, 'modules/onnxruntime-common'));
process.env.NODE_PATH = path.join(tmp, 'modules');
require('module').Module._initPaths();
const ort = require(path.join(bring('onnxruntime-package'), 'dist/index.js'));

const NAMES = { 'stft.forward_basis_buffer': 'stft_conv.weight',
    'decoder.rnn.weight_ih': 'lstm_cell.weight_ih', 'decoder.rnn.weight_hh': 'lstm_cell.weight_hh',
    'decoder.rnn.bias_ih': 'lstm_cell.bias_ih', 'decoder.rnn.bias_hh': 'lstm_cell.bias_hh',
    'decoder.decoder.2.weight': 'final_conv.weight', 'decoder.decoder.2.bias': 'final_conv.bias' };
for (let i = 0; i < 4; i++)
    for (const part of ['weight', 'bias'])
        NAMES[`encoder.${i}.reparam_conv.${part}`] = `conv${i + 1}.${part}`;

// The fields of a protobuf message: [number, bytes or integer].
function* fields(b) {
    let at = 0;
    const varint = () => {
        let v = 0n, shift = 0n, byte;
        do {
            byte = BigInt(b[at++]);
            v |= (byte & 127n) << shift;
            shift += 7n;
        } while (byte & 128n);
        return Number(BigInt.asIntN(64, v));
    };
    while (at < b.length) {
        const key = varint(), wire = key & 7;
        if (wire === 0) yield [key >> 3, varint()];
        else if (wire === 2) { const n = varint(); yield [key >> 3, b.subarray(at, at + n)]; at += n; }
        else at += wire === 1 ? 8 : 4;
    }
}
const all = (b, field) => [...fields(b)].filter(([f]) => f === field).map(([, v]) => v);

// Tensors of the 16 kHz branch by our names: { dims, data }, data being a part of the file's bytes.
function weights(onnx) {
    const found = {};
    const graph = (g) => {
        for (const node of all(g, 1))
            for (const attribute of all(node, 5)) {
                const [name] = all(attribute, 1), [tensor] = all(attribute, 5);
                for (const sub of all(attribute, 6))
                    if (name.toString() === 'then_branch') graph(sub);
                const ours = NAMES[all(node, 2)[0].toString().replace(/^.*Inline_0__/, '')];
                if (!ours || !tensor) continue;
                const dims = all(tensor, 1).flatMap((d) => (typeof d === 'number' ? [d]
                    : [...fields(Buffer.concat([Buffer.from([0]), d]))].map(([, v]) => v)));
                found[ours] = { dims, data: all(tensor, 9)[0] };
            }
    };
    graph(all(onnx, 7)[0]);
    return found;
}

function writeSafetensors(file, tensors) {
    const header = {}, parts = [];
    let at = 0;
    for (const [name, { dims, data }] of Object.entries(tensors)) {
        header[name] = { dtype: 'F32', shape: dims, data_offsets: [at, at += data.length] };
        parts.push(data);
    }
    const json = Buffer.from(JSON.stringify(header)), size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(json.length));
    fs.writeFileSync(file, Buffer.concat([size, json, ...parts]));
}

function readSafetensors(file) {
    const b = fs.readFileSync(file), n = Number(b.readBigUInt64LE(0)), out = {};
    for (const [name, t] of Object.entries(JSON.parse(b.subarray(8, 8 + n).toString())))
        if (name !== '__metadata__')
            out[name] = { dims: t.shape, data: b.subarray(...t.data_offsets.map((o) => 8 + n + o)) };
    return out;
}

function samples() {
    if (audioFile) {
        const b = fs.readFileSync(audioFile), at = b.indexOf('data') + 8;
        return Float32Array.from({ length: (b.length - at) >> 1 },
            (_, i) => b.readInt16LE(at + 2 * i) / 32768);
    }
    let state = 7, phase = 0;
    return Float32Array.from({ length: 16000 * 6 }, (_, i) => {
        state = (state * 1103515245 + 12345) % 2147483648;
        const s = i / 16000, on = s % 2 < 1.2;
        phase += (120 + 30 * Math.sin(3 * s)) / 16000;
        let voice = 0;
        for (let h = 1; h < 25; h++) // harmonics under two formants that move
            voice += Math.sin(2 * Math.PI * h * phase) * (Math.exp(-(((h * 120 - 600 - 200 * Math.sin(9 * s)) / 300) ** 2))
                + 0.5 * Math.exp(-(((h * 120 - 1700 - 400 * Math.sin(7 * s)) / 400) ** 2)));
        return 0.02 * (state / 1073741824 - 1) + (on ? 0.12 * voice * Math.abs(Math.sin(11 * s)) : 0);
    });
}

async function theirs(onnx, x) {
    const session = await ort.InferenceSession.create(onnx, { intraOpNumThreads: 1 });
    const sr = new ort.Tensor('int64', BigInt64Array.of(16000n), []), out = [];
    let state = new ort.Tensor('float32', new Float32Array(256), [2, 1, 128]);
    const frame = new Float32Array(576);
    for (let at = 0; at + 512 <= x.length; at += 512) {
        frame.copyWithin(0, 512);
        frame.set(x.subarray(at, at + 512), 64);
        const r = await session.run({ input: new ort.Tensor('float32', frame, [1, 576]), state, sr });
        out.push(r.output.data[0]);
        state = r.stateN;
    }
    return out;
}

async function main() {
    const x = samples();
    let failed = false;
    fs.writeFileSync(path.join(tmp, 'x.f32'), Buffer.from(x.buffer));
    fs.copyFileSync(path.join(root, 'tests/data/scorers/silero.json'), path.join(tmp, 'config.json'));
    for (const version of weightsFile ? ['v6'] : ['v5', 'v6']) {
        const onnx = fs.readFileSync(path.join(vad, `dist/silero_vad_${version}.onnx`));
        const tensors = weights(onnx);
        if (Object.keys(tensors).length !== Object.keys(NAMES).length)
            throw new Error(`${version}: ${Object.keys(tensors).length} tensors found`);
        if (weightsFile)
            for (const [name, { data }] of Object.entries(readSafetensors(weightsFile)))
                data.copy(tensors[name].data); // into the ONNX file's bytes: the sizes are the same
        writeSafetensors(path.join(tmp, 'silero_vad_16k.safetensors'), tensors);
        const want = await theirs(onnx, x);
        for (const kind of ['f32', 'int8']) {
            const got = execFileSync(tool, [tmp, path.join(tmp, 'x.f32'), ...(kind === 'int8' ? [kind] : [])],
                { encoding: 'utf8' }).trim().split('\n').map(Number);
            const worst = want.reduce((w, p, i) => Math.max(w, Math.abs(p - got[i])), 0);
            const mean = want.reduce((m, p, i) => m + Math.abs(p - got[i]), 0) / want.length;
            const other = want.filter((p, i) => (p >= 0.5) !== (got[i] >= 0.5)).length;
            const ok = got.length === want.length && (kind === 'f32' ? worst <= 1e-3 : mean <= 0.02);
            failed ||= !ok;
            console.log(`${ok ? 'ok  ' : 'FAIL'} ${weightsFile ? path.basename(weightsFile) : version} ${kind}: ${got.length} frames, speech in `
                + `${want.filter((p) => p >= 0.5).length}, difference at most ${worst.toExponential(2)}, on average ${mean.toExponential(2)}, ${other} judged otherwise`);
        }
    }
    process.exitCode = failed ? 1 : 0;
}

main();
