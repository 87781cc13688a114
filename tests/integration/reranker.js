// reranker.js - a model that ranks documents, for tests: made from a classifier.
'use strict';
const fs = require('fs');

// A folder with a reranker: a classifier with only one of its labels.
function reranker(from, to) {
    fs.cpSync(from, to, { recursive: true });
    const config = JSON.parse(fs.readFileSync(`${to}/config.json`)), file = `${to}/model.safetensors`, b = fs.readFileSync(file);
    fs.writeFileSync(`${to}/config.json`, JSON.stringify({ ...config, id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } }));
    const n = Number(b.readBigUInt64LE(0)), head = JSON.parse(b.toString('utf8', 8, 8 + n)), parts = [];
    let at = 0;
    for (const [name, x] of Object.entries(head)) {
        if (name === '__metadata__')
            continue;
        let part = b.subarray(8 + n + x.data_offsets[0], 8 + n + x.data_offsets[1]);
        if (/^classifier/.test(name)) {
            part = part.subarray(0, part.length / x.shape[0]);
            x.shape[0] = 1;
        }
        parts.push(part);
        x.data_offsets = [at, at += part.length];
    }
    let text = JSON.stringify(head);
    text += ' '.repeat((8 - text.length % 8) % 8);
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    fs.writeFileSync(file, Buffer.concat([size, Buffer.from(text), ...parts]));
    return to;
}

module.exports = { reranker };
