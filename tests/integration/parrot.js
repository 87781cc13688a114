// parrot.js - models that say what they are told: small GGUF files in which every token has one successor. With them,
// tests of model output (tool calls, stop strings) do not depend on what a model learned. The weights are real:
// embeddings are one-hot, attention and feed-forward add nothing, and the output matrix maps each token to the next
// one. Every token that is not part of the text is followed by the first piece of the text.
'use strict';
const fs = require('fs');

const HEADS = 4, FFN = 32;
const EOS = 2, FIRST_BYTE = 3; // ids

// Splits the text into short, distinct pieces, so that each can be one token.
function split(text) {
    const pieces = [], seen = new Set();
    for (let rest = [...text]; rest.length > 0;) {
        let n = Math.min(3, rest.length);
        while (n < rest.length && seen.has(rest.slice(0, n).join('')))
            n++;
        let piece = rest.slice(0, n).join('');
        if (seen.has(piece)) { // the rest of the text joins the previous piece
            const last = pieces.pop();
            piece = last + piece;
        }
        pieces.push(piece);
        seen.add(piece);
        rest = rest.slice(n);
    }
    return pieces;
}

class Writer {
    constructor() { this.parts = []; this.size = 0; }
    raw(b) { this.parts.push(b); this.size += b.length; }
    u32(v) { const b = Buffer.alloc(4); b.writeUInt32LE(v); this.raw(b); }
    u64(v) { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(v)); this.raw(b); }
    f32(v) { const b = Buffer.alloc(4); b.writeFloatLE(v); this.raw(b); }
    str(s) { const b = Buffer.from(s); this.u64(b.length); this.raw(b); }
    align() { this.raw(Buffer.alloc((32 - this.size % 32) % 32)); }
}

const TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, str: 8 };
function putValue(w, type, v) {
    if (type === 'bool')
        w.raw(Buffer.from([v ? 1 : 0]));
    else
        w[type === 'i32' ? 'u32' : type](v);
}

// Writes a model to file. say: a text, or a list of pieces; { control: '[X]' } is a special token, { byte: 0 } a byte.
// special: further special tokens that the template needs.
function parrot(file, { template, say, special = [], context = 2048 }) {
    const given = typeof say === 'string' ? split(say) : say.flatMap((p) => (typeof p === 'string' ? split(p) : [p]));
    const pieces = given.filter((p) => !('byte' in Object(p))).map((p) => (typeof p === 'string' ? { text: p.replaceAll(' ', '\u2581'), type: 1 } : { text: p.control, type: 3 }));
    const vocab = [{ text: '<unk>', type: 2 }, { text: '<s>', type: 3 }, { text: '</s>', type: 3 }];
    for (let b = 0; b < 256; b++)
        vocab.push({ text: `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`, type: 6 });
    for (const text of special.filter((s) => !pieces.some((p) => p.text === s)))
        vocab.push({ text, type: 3 });
    const first = vocab.length;
    vocab.push(...pieces);
    if (new Set(vocab.map((v) => v.text)).size !== vocab.length)
        throw new Error('two pieces are alike');
    const dim = Math.ceil(vocab.length / 64) * 64, n = vocab.length;
    const embed = new Float32Array(dim * n), output = new Float32Array(dim * n);
    let plain = first;
    const said = given.map((p) => ('byte' in Object(p) ? FIRST_BYTE + p.byte : plain++));
    for (let i = 0; i < n; i++) {
        const at = said.indexOf(i), next = at < 0 ? said[0] : said[at + 1] ?? EOS;
        embed[i * dim + i] = 1;
        output[next * dim + i] = 4;
    }
    const zero = (k) => new Float32Array(k), one = (k) => new Float32Array(k).fill(1);
    const tensors = [
        ['token_embd.weight', [dim, n], embed], ['blk.0.attn_norm.weight', [dim], one(dim)],
        ...['q', 'k', 'v', 'output'].map((x) => [`blk.0.attn_${x}.weight`, [dim, dim], zero(dim * dim)]),
        ['blk.0.ffn_norm.weight', [dim], one(dim)], ['blk.0.ffn_gate.weight', [dim, FFN], zero(dim * FFN)],
        ['blk.0.ffn_up.weight', [dim, FFN], zero(dim * FFN)], ['blk.0.ffn_down.weight', [FFN, dim], zero(dim * FFN)],
        ['output_norm.weight', [dim], one(dim)], ['output.weight', [dim, n], output]];
    const meta = [
        ['general.architecture', 'str', 'llama'], ['general.name', 'str', 'parrot'],
        ['llama.context_length', 'u32', context], ['llama.embedding_length', 'u32', dim], ['llama.block_count', 'u32', 1],
        ['llama.feed_forward_length', 'u32', FFN], ['llama.attention.head_count', 'u32', HEADS],
        ['llama.attention.head_count_kv', 'u32', HEADS], ['llama.rope.dimension_count', 'u32', dim / HEADS],
        ['llama.vocab_size', 'u32', n], ['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5],
        ['llama.rope.freq_base', 'f32', 10000], ['tokenizer.ggml.model', 'str', 'llama'],
        ['tokenizer.ggml.tokens', ['str'], vocab.map((v) => v.text)],
        ['tokenizer.ggml.token_type', ['i32'], vocab.map((v) => v.type)],
        ['tokenizer.ggml.scores', ['f32'], vocab.map(() => 0)],
        ['tokenizer.ggml.bos_token_id', 'u32', 1], ['tokenizer.ggml.eos_token_id', 'u32', 2],
        ['tokenizer.ggml.add_bos_token', 'bool', true], ['tokenizer.ggml.add_space_prefix', 'bool', false],
        ...(template ? [['tokenizer.chat_template', 'str', template]] : [])];
    const w = new Writer();
    w.raw(Buffer.from('GGUF'));
    w.u32(3);
    w.u64(tensors.length);
    w.u64(meta.length);
    for (const [key, type, v] of meta) {
        w.str(key);
        if (typeof type === 'string') {
            w.u32(TYPES[type]);
            putValue(w, type, v);
            continue;
        }
        w.u32(9);
        w.u32(TYPES[type[0]]);
        w.u64(v.length);
        v.forEach((x) => putValue(w, type[0], x));
    }
    let at = 0;
    for (const [name, dims, data] of tensors) {
        w.str(name);
        w.u32(dims.length);
        dims.forEach((d) => w.u64(d));
        w.u32(0);
        w.u64(at);
        at += Math.ceil(data.byteLength / 32) * 32;
    }
    w.align();
    for (const [, , data] of tensors) {
        w.raw(Buffer.from(data.buffer));
        w.align();
    }
    fs.writeFileSync(file, Buffer.concat(w.parts));
    return file;
}

module.exports = { parrot };
