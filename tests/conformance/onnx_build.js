// Writes small ONNX files: just enough protobuf for the models of onnx.js.
'use strict';

const FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9, FLOAT16 = 10, LIST = -1;

function varint(n) {
    const out = [];
    let v = BigInt.asUintN(64, BigInt(n));
    for (; v > 127n; v >>= 7n) out.push(Number(v & 127n) | 128);
    return Buffer.from([...out, Number(v)]);
}
const int = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, b) => Buffer.concat([varint(field << 3 | 2), varint(b.length), b]);
const text = (field, s) => bytes(field, Buffer.from(s));
const message = (field, ...parts) => bytes(field, Buffer.concat(parts));

// dims: numbers, or names of dimensions that may have any size; LIST: a sequence of float tensors.
function value(field, [name, type, dims]) {
    if (type === LIST)
        return message(field, text(1, name), message(2, message(4, message(1, message(1, int(1, FLOAT))))));
    const shape = dims.map((d) => message(1, typeof d === 'number' ? int(1, d) : text(2, d)));
    return message(field, text(1, name), message(2, message(1, int(1, type), message(2, ...shape))));
}

function node([op, inputs, outputs, attributes = {}]) {
    const attribute = ([name, v]) => message(5, text(1, name), ...(Array.isArray(v)
        ? [...v.map((n) => int(8, n)), int(20, 7)] : [int(3, v), int(20, 2)]));
    return message(1, ...inputs.map((n) => text(1, n)), ...outputs.map((n) => text(2, n)), text(4, op),
        ...Object.entries(attributes).map(attribute));
}

function constant([name, type, dims, data]) {
    const raw = type === INT64 ? BigInt64Array.from(data, BigInt) : Float32Array.from(data);
    return message(5, ...dims.map((d) => int(1, d)), int(2, type), text(8, name),
        bytes(9, Buffer.from(raw.buffer)));
}

// { inputs, outputs: [name, type, dims], nodes: [op, inputs, outputs, attributes],
//   constants: [name, type, dims, numbers] }
function model({ inputs, outputs, nodes, constants = [] }) {
    return Buffer.concat([int(1, 8), message(8, text(1, ''), int(2, 13)),
        message(7, ...nodes.map(node), text(2, 'test'), ...constants.map(constant),
            ...inputs.map((v) => value(11, v)), ...outputs.map((v) => value(12, v)))]);
}

module.exports = { FLOAT, INT32, INT64, BOOL, FLOAT16, LIST, model };
