// otlp_sink.js - a collector for tests: takes OTLP over HTTP and reads the spans, by the published numbers of fields.
'use strict';
const http = require('http');

// Fields of a protobuf message: [[number, value]]; bytes as Buffers, numbers as BigInts.
function fields(b) {
    const out = [];
    let at = 0;
    const varint = () => {
        let v = 0n;
        for (let shift = 0n; ; shift += 7n) {
            const byte = b[at++];
            v |= BigInt(byte & 0x7f) << shift;
            if (!(byte & 0x80))
                return v;
        }
    };
    while (at < b.length) {
        const tag = Number(varint()), type = tag & 7;
        if (type === 0) {
            out.push([tag >> 3, varint()]);
        } else if (type === 2) {
            const n = Number(varint());
            out.push([tag >> 3, b.subarray(at, at += n)]);
        } else {
            const n = type === 1 ? 8 : 4;
            out.push([tag >> 3, type === 1 ? b.readBigUInt64LE(at) : BigInt(b.readUInt32LE(at))]);
            at += n;
        }
    }
    if (at !== b.length)
        throw new Error('a message is cut');
    return out;
}

const all = (b, n) => fields(b).filter((f) => f[0] === n).map((f) => f[1]);
const one = (b, n) => all(b, n)[0];

function pairs(b, n) {
    return Object.fromEntries(all(b, n).map((p) => {
        const value = fields(one(p, 2))[0];
        return [one(p, 1).toString(), value[0] === 1 ? value[1].toString() : Number(value[1])];
    }));
}

function read(body) {
    const spans = [];
    for (const rs of all(body, 1)) {
        const who = pairs(one(rs, 1), 1);
        for (const ss of all(rs, 2))
            for (const s of all(ss, 2))
                spans.push({ who, trace: one(s, 1).toString('hex'), id: one(s, 2).toString('hex'), parent: one(s, 4)?.toString('hex'),
                    name: one(s, 5).toString(), kind: Number(one(s, 6)), start: one(s, 7), end: one(s, 8), notes: pairs(s, 9),
                    failed: one(s, 15) !== undefined });
    }
    return spans;
}

// status: a function that gives the status of each call; 0: the connection is closed.
async function listen(status = () => 200, port = 0) {
    const sink = { spans: [], calls: [] };
    sink.server = http.createServer((req, res) => {
        const parts = [];
        req.on('data', (d) => parts.push(d));
        req.on('end', () => {
            const code = status();
            sink.calls.push({ path: req.url, headers: req.headers, code });
            if (code === 0)
                return req.socket.destroy();
            if (code === 200)
                sink.spans.push(...read(Buffer.concat(parts)));
            res.writeHead(code).end();
        });
    });
    await new Promise((done) => sink.server.listen(port, '127.0.0.1', done));
    sink.port = sink.server.address().port;
    sink.url = `http://127.0.0.1:${sink.port}`;
    sink.close = () => new Promise((done) => { sink.server.closeAllConnections(); sink.server.close(done); });
    return sink;
}

module.exports = { listen };
