// mixed_site.js - the server of mixed.js: its models, its changing configuration, and simple requests to it.
'use strict';
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const t = require('../integration/serve.js');

const refs = path.join(t.root, 'tests/data/refs');
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const keys = { app: 'key-app', boss: 'key-boss', slow: 'key-slow' };
const maxBody = 256 << 10;

// A reranker, that is a classifier with one label: made from one with three.
function makeReranker() {
    const from = path.join(t.root, 'tests/data/encoders/bert-cls'), to = path.join(t.tmp, 'reranker');
    fs.cpSync(from, to, { recursive: true });
    const config = JSON.parse(fs.readFileSync(path.join(from, 'config.json')));
    fs.writeFileSync(path.join(to, 'config.json'), JSON.stringify({ ...config, id2label: { 0: 'yes' }, label2id: { yes: 0 } }));
    const bytes = fs.readFileSync(path.join(from, 'model.safetensors'));
    const start = 8 + Number(bytes.readBigUInt64LE(0)), parts = [], head = {};
    let at = 0;
    for (const [name, x] of Object.entries(JSON.parse(bytes.subarray(8, start)))) {
        if (name === '__metadata__')
            continue;
        let [a, b] = x.data_offsets;
        if (name.startsWith('classifier.')) {
            b = a + (b - a) / x.shape[0];
            x.shape[0] = 1;
        }
        parts.push(bytes.subarray(start + a, start + b));
        head[name] = { ...x, data_offsets: [at, at + b - a] };
        at += b - a;
    }
    const text = Buffer.from(JSON.stringify(head)), size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    fs.writeFileSync(path.join(to, 'model.safetensors'), Buffer.concat([size, text, ...parts]));
    return to;
}

function makeCertificate() {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
        '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'key.pem', '-out', 'cert.pem'],
    { cwd: t.tmp, stdio: 'pipe' });
}

// The configuration in one of its two forms: the second has another model and other limits.
function configuration(form, reranker) {
    return `
listen: ["127.0.0.1:0", "unix:${t.tmp}/s.sock"]
tls: {cert: ${t.tmp}/cert.pem, key: ${t.tmp}/key.pem}
threads: 2
models:
  - {name: chat, path: ${refs}/qwen3.gguf, context: 512, parallel: 8, queue: 500}
  - {name: reply, path: ${t.root}/models/reply-draft.gguf, context: 256, parallel: 4, queue: 500}
  - {name: intent, path: ${t.root}/models/encoder, queue: 500}
  - {name: reader, path: ${t.root}/models/reader.gguf, queue: 500}
  - {name: rerank, path: ${reranker}, queue: 500}
  - {name: anomaly, path: ${t.root}/models/anomaly, queue: 500}
  - {name: summary, path: ${t.root}/models/summary.json, queue: 500}
  - {name: t5, path: ${t.root}/tests/data/t5/t5-relu, lazy: true, queue: 500}
  - {name: lazy, path: ${refs}/qwen2.gguf, context: 256, lazy: true, queue: 500}
  - {name: apart, path: ${refs}/gemma2.gguf, context: 256, queue: 500, isolation: process}
${form ? `  - {name: extra, path: ${refs}/gpt2.gguf, lazy: true, queue: 500}` : ''}
routes:
  - {name: turns, policy: round_robin, models: [chat, reply]}
  - {name: better, refine: {model: reply, better: chat}}
responses: {bytes: 1MiB, ttl: 20s, file: ${t.tmp}/responses}
sessions: {store: "sqlite:${t.tmp}/sessions.db", key_file: ${t.tmp}/sessions.key, history_tokens: 64, ttl: 20s, summary: summary}
keys:
  - {name: app, sha256: ${sha(keys.app)}}
  - {name: boss, sha256: ${sha(keys.boss)}, admin: true}
  - {name: slow, sha256: ${sha(keys.slow)}, rate: ${form ? 20 : 5}, burst: 5, in_flight: 2}
cors: ["https://${form ? 'one' : 'two'}.example"]
limits: {body: 256KiB, headers: 8KiB, connections: 1000, request_timeout: 30s, write_timeout: ${form ? 30 : 40}s}
cache: {bytes: ${form ? 1 : 2}MiB, ttl: 5s}
idle_unload: 3s
load_wait: 60s
drain: 60s
`;
}

// Starts the server; every request goes to its TLS port (url) or to its unix socket (sock).
async function open(shoal) {
    const file = path.join(t.tmp, 'config.yaml'), reranker = makeReranker(), sock = path.join(t.tmp, 's.sock');
    const broken = path.join(t.tmp, 'broken.gguf');
    makeCertificate();
    fs.writeFileSync(broken, fs.readFileSync(path.join(refs, 'qwen3.gguf')).subarray(0, 5000));
    fs.writeFileSync(file, configuration(0, reranker));
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; // for fetch, which cannot be given a certificate
    process.removeAllListeners('warning'); // about that
    // a small quarantine, so that memory is steady soon
    process.env.ASAN_OPTIONS = [process.env.ASAN_OPTIONS, 'detect_leaks=1:quarantine_size_mb=16'].filter(Boolean).join(':');
    const server = await t.start(shoal, ['--config', file], { listen: null });
    const ca = fs.readFileSync(path.join(t.tmp, 'cert.pem'));
    const site = { server, sock, ca, keys, broken, maxBody, form: 0, url: server.url, port: server.port };
    const agents = [new http.Agent({ keepAlive: true }), new https.Agent({ keepAlive: true, ca })];

    // One request: { status, text }.  on(res, req): to do something else with the answer.
    site.ask = (url, body, { key = keys.app, headers = {}, method, tls = false, on } = {}) => new Promise((done, give) => {
        const data = body === undefined || Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
        const options = { path: url, method: method ?? (data === undefined ? 'GET' : 'POST'), agent: agents[Number(tls)],
            headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers },
            ...(tls ? { host: '127.0.0.1', port: site.port } : { socketPath: sock }) };
        const req = (tls ? https : http).request(options, (res) => {
            if (on)
                return done(on(res, req));
            const parts = [];
            res.on('data', (d) => parts.push(d));
            res.on('error', give);
            return res.on('end', () => done({ status: res.statusCode, text: Buffer.concat(parts).toString() }));
        });
        req.on('error', give);
        req.end(data);
    });
    site.reload = () => {
        site.form = 1 - site.form;
        fs.writeFileSync(`${file}.new`, configuration(site.form, reranker));
        fs.renameSync(`${file}.new`, file);
        server.child.kill('SIGHUP');
    };
    site.metrics = async () => {
        const { text } = await site.ask('/metrics');
        const all = text.split('\n').filter((l) => l && l[0] !== '#').map((l) => [l, Number(l.split(' ').pop())]);
        return (prefix) => all.filter(([name]) => name.startsWith(prefix)).reduce((sum, [, v]) => sum + v, 0);
    };
    site.close = () => agents.forEach((a) => a.destroy());
    while ((await site.ask('/readyz')).status !== 200)
        await t.sleep(20);
    return site;
}

module.exports = { open };
