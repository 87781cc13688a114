// grpc_client.js - for tests that speak gRPC: packages from npm, the files of proto/, and raw frames over node's http2.
'use strict';
const path = require('path');
const { install } = require('./npm_install.js');
const root = path.resolve(__dirname, '../..');

const packages = ['@grpc/grpc-js@1.12.2', '@grpc/proto-loader@0.7.13', 'grpc-js-reflection-client@1.2.20',
    'google-protobuf@3.21.4', 'nice-grpc-error-details@0.2.12'];
const modules = install('grpc', packages);
const use = (name) => require(path.join(modules, name));
const grpc = use('@grpc/grpc-js');
const loader = use('@grpc/proto-loader');
const reading = { includeDirs: [path.join(root, 'proto')], keepCase: true, longs: Number, enums: String, defaults: true,
    oneofs: true };
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, reading));

const call = (client, name, request, options = {}, meta = new grpc.Metadata()) => new Promise((done, give) =>
    client[name](request, meta, options, (e, r) => (e ? give(e) : done(r))));

function gather(stream) {
    return new Promise((done, give) => {
        const all = [];
        stream.on('data', (m) => all.push(m));
        stream.on('end', () => done(all));
        stream.on('error', give);
    });
}

// Decodes google.rpc.Status with decoders that are not ours: { code, message, ErrorInfo, BadRequest, ... }
function decodeDetails(bytes) {
    const types = use('nice-grpc-error-details');
    const { Status } = use('nice-grpc-error-details/lib/proto/google/rpc/status.js');
    const status = Status.decode(bytes), all = { code: status.code, message: status.message };
    for (const any of status.details) {
        const name = any.typeUrl.replace('type.googleapis.com/google.rpc.', '');
        all[name] = types[name].decode(any.value);
    }
    return all;
}

const frame = (bytes, flag = 0) => {
    const head = Buffer.alloc(5);
    head[0] = flag;
    head.writeUInt32BE(bytes.length, 1);
    return Buffer.concat([head, bytes]);
};

function frames(bytes) {
    const all = [];
    for (let at = 0; at + 5 <= bytes.length;) {
        const n = bytes.readUInt32BE(at + 1);
        all.push({ flag: bytes[at], bytes: bytes.subarray(at + 5, at + 5 + n) });
        at += 5 + n;
    }
    return all;
}

// One call with hand-made bytes: returns its headers, messages and trailers.
function raw(session, method, body, headers = {}) {
    return new Promise((done, give) => {
        const r = session.request({ ':method': 'POST', ':path': method, 'content-type': 'application/grpc', te: 'trailers',
            ...headers });
        const got = { headers: {}, trailers: {}, messages: [] }, parts = [];
        r.on('response', (h) => { got.headers = h; });
        r.on('trailers', (h) => { got.trailers = h; });
        r.on('data', (d) => parts.push(d));
        r.on('end', () => {
            got.messages = frames(Buffer.concat(parts));
            got.status = Number(got.trailers['grpc-status']);
            done(got);
        });
        r.on('error', give);
        r.end(body);
    });
}

module.exports = { grpc, use, load, call, gather, decodeDetails, frame, raw };
