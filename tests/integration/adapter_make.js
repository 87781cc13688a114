// adapter_make.js - for tests of LoRA adapters: writes one in PEFT's form, with weights that depend on a seed only, for
// models/reply.gguf.
'use strict';
const fs = require('fs');
const path = require('path');

const LAYERS = 8, DIM = 384, FFN = 1024, KV = 128;
const SHAPES = { 'self_attn.q_proj': [DIM, DIM], 'self_attn.v_proj': [KV, DIM], 'mlp.up_proj': [FFN, DIM],
    'mlp.down_proj': [DIM, FFN] };

// A number from -1 to 1, and the next state.
function draws(seed) {
    let state = seed >>> 0;
    return () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 31 - 1;
    };
}

function make(folder, seed, { rank = 8, wide = DIM, alpha = 16 } = {}) {
    const header = {}, parts = [], next = draws(seed);
    let at = 0;
    const add = (name, rows, cols, size) => {
        const values = new Float32Array(rows * cols).map(() => next() * size);
        header[name] = { dtype: 'F32', shape: [rows, cols], data_offsets: [at, at + values.byteLength] };
        at += values.byteLength;
        parts.push(Buffer.from(values.buffer));
    };
    for (let i = 0; i < LAYERS; i++)
        for (const [module, [rows, cols]] of Object.entries(SHAPES)) {
            const name = `base_model.model.model.layers.${i}.${module}`;
            add(`${name}.lora_A.weight`, rank, cols === DIM ? wide : cols, 0.1);
            add(`${name}.lora_B.weight`, rows, rank, 0.1);
        }
    const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, 'adapter_config.json'),
        JSON.stringify({ peft_type: 'LORA', r: rank, lora_alpha: alpha, target_modules: Object.keys(SHAPES) }));
    fs.writeFileSync(path.join(folder, 'adapter_model.safetensors'), Buffer.concat([length, text, ...parts]));
    return folder;
}

module.exports = { make };
