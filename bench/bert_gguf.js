// Makes a GGUF file of a BERT folder that llama.cpp can load: the output of `shoal model convert` plus the vocabulary
// of tokenizer.json in llama.cpp's own keys.
"use strict";
const fs = require("fs");

const str = (s) => { const b = Buffer.from(s, "utf8"), n = Buffer.alloc(8); n.writeBigUInt64LE(BigInt(b.length)); return Buffer.concat([n, b]); };
const u32 = (v) => { const b = Buffer.alloc(4); b.writeUInt32LE(v); return b; };
const u64 = (v) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(v)); return b; };
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

function withVocabulary(from, tokenizer, to) {
  const file = fs.readFileSync(from), vocab = JSON.parse(fs.readFileSync(tokenizer)).model.vocab;
  const tokens = [];
  for (const [piece, id] of Object.entries(vocab)) tokens[id] = piece;
  // in GGUF, word starts carry U+2581 and continuations have no ##
  const spelled = tokens.map((t) => (/^\[.*\]$/.test(t) ? t : t.startsWith("##") ? t.slice(2) : "\u2581" + t));
  const keys = [
    [str("tokenizer.ggml.model"), u32(8), str("bert")],
    [str("tokenizer.ggml.pre"), u32(8), str("default")],
    [str("tokenizer.ggml.tokens"), u32(9), u32(8), u64(spelled.length), ...spelled.map(str)],
    [str("tokenizer.ggml.token_type"), u32(9), u32(5), u64(spelled.length), ...tokens.map((t) => u32(/^\[.*\]$/.test(t) ? 3 : 1))],
    [str("bert.pooling_type"), u32(4), u32(1)],
    [str("tokenizer.ggml.token_type_count"), u32(4), u32(2)],
  ];
  for (const [name, piece] of [["unknown", "[UNK]"], ["cls", "[CLS]"], ["bos", "[CLS]"], ["seperator", "[SEP]"], ["padding", "[PAD]"], ["mask", "[MASK]"]])
    keys.push([str(`tokenizer.ggml.${name}_token_id`), u32(4), u32(vocab[piece])]);
  let at = 24;
  const skip = (type) => { at += type === 8 ? 8 + Number(file.readBigUInt64LE(at)) : SIZES[type]; };
  const nTensors = Number(file.readBigUInt64LE(8)), nKeys = Number(file.readBigUInt64LE(16)), kept = [];
  for (let i = 0; i < nKeys; i++) {
    const begin = at, name = file.toString("utf8", at + 8, at + 8 + Number(file.readBigUInt64LE(at)));
    skip(8);
    const type = file.readUInt32LE(at);
    at += 4;
    if (type === 9) {
      const elem = file.readUInt32LE(at), n = Number(file.readBigUInt64LE(at + 4));
      at += 12;
      for (let j = 0; j < n; j++) skip(elem);
    } else skip(type);
    if (!/^(tokenizer|huggingface)\./.test(name)) kept.push(file.subarray(begin, at));
  }
  const infos = at;
  for (let i = 0; i < nTensors; i++) {
    skip(8);
    at += 4 + 8 * file.readUInt32LE(at) + 4 + 8;
  }
  const head = Buffer.concat([file.subarray(0, 16), u64(kept.length + keys.length), ...kept, ...keys.flat(), file.subarray(infos, at)]);
  fs.writeFileSync(to, Buffer.concat([head, Buffer.alloc((32 - head.length % 32) % 32), file.subarray(Math.ceil(at / 32) * 32)]));
}

module.exports = { withVocabulary };
