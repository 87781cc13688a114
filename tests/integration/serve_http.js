#!/usr/bin/env node
// `shoal serve` from the outside: HTTP/1.1 byte by byte, keys, limits, signals, TLS, configuration.
// Usage: serve_http.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const zlib = require('zlib');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));

const shoal = path.resolve(process.argv[2]);
const refs = path.join(t.root, 'tests/data/refs');
const long = path.join(refs, 'qwen3.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');

function config(text) {
    const file = path.join(t.tmp, `config-${Math.random().toString(36).slice(2)}.yaml`);
    fs.writeFileSync(file, text);
    return file;
}

// Sends bytes in pieces; resolves with what came until the server closes or `enough` says so.
function raw(port, pieces, enough, pause = 5) {
    return new Promise((done, give) => {
        const s = net.connect(port, '127.0.0.1');
        let got = '';
        const timer = setTimeout(() => finish(), 60000); // only ends a test that hangs
        const finish = () => {
            clearTimeout(timer);
            s.destroy();
            done(got);
        };
        s.on('data', (d) => {
            got += d.toString('latin1');
            if (enough && enough(got))
                finish();
        });
        s.on('end', finish);
        s.on('error', (e) => (e.code === 'ECONNRESET' ? finish() : give(e)));
        (async () => {
            for (const p of pieces) {
                if (!s.destroyed)
                    s.write(p);
                await t.sleep(pause);
            }
        })();
    });
}

const count = (text, what) => text.split(what).length - 1;

async function protocol() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
limits: {body: 20KiB, headers: 4KiB}
`)]);
    // for requests that never finish; the others may take their time on a busy machine
    const hasty = await t.start(shoal, ['--config', config('limits: {request_timeout: 400ms}\n')]);
    const { port } = server;
    const get = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    let r = await raw(port, [get + get + get], (s) => count(s, 'HTTP/1.1 200 OK') === 3);
    t.same(count(r, '\r\n\r\nok\n'), 3, 'pipelined');
    r = await raw(port, [...get], (s) => s.includes('ok\n'), 1);
    t.check(r.startsWith('HTTP/1.1 200 OK'), 'byte by byte');
    const body = JSON.stringify({ text: 'hello world', model: 'long' });
    const post = (headers, rest) => `POST /tokenize HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n${rest}`;
    const chunk = (s) => `${s.length.toString(16)};x=y\r\n${s}\r\n`;
    r = await raw(port, [post('Transfer-Encoding: chunked\r\n', chunk(body.slice(0, 7))),
        chunk(body.slice(7)) + '0\r\nTrailer: a\r\n\r\n'], (s) => s.includes('"count"'));
    t.check(r.includes('200 OK'), `chunked body: ${r}`);
    r = await raw(port, [post(`Expect: 100-continue\r\nContent-Length: ${body.length}\r\n`, ''), body],
        (s) => s.includes('"count"'));
    t.check(r.startsWith('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK'), 'expect');
    r = await raw(port, ['GET /healthz HTTP/1.0\r\n\r\n']);
    t.check(/connection: close/.test(r) && r.endsWith('ok\n'), 'HTTP/1.0');
    r = await raw(port, ['HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n']);
    t.check(/content-length: 3/.test(r) && r.endsWith('\r\n\r\n'), 'HEAD has no body');
    const refused = [
        [get.replace('Host: localhost\r\n', ''), 400, 'no Host'],
        ['BLAH\r\n\r\n', 400, 'not HTTP'],
        [`GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 414, 'a long address'],
        [`GET / HTTP/1.1\r\nHost: localhost\r\nA: ${'x'.repeat(5000)}\r\n\r\n`, 431, 'large headers'],
        [`GET / HTTP/1.1\r\nHost: localhost\r\n${'A: b\r\n'.repeat(200)}\r\n`, 431, 'many headers'],
        [post('Content-Length: 30000\r\n', ''), 413, 'a large body announced'],
        [post('Transfer-Encoding: chunked\r\n', chunk('x'.repeat(21000))), 413, 'a large body'],
        [post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', ''), 400, 'two lengths'],
        [post('Content-Length: 5\r\nContent-Length: 6\r\n', ''), 400, 'two lengths'],
        [get.slice(0, -2), 408, 'half a request', hasty.port],
        [post('Content-Length: 100\r\n', '{"te'), 408, 'half a body', hasty.port],
    ];
    for (const [bytes, status, what, at = port] of refused) {
        r = await raw(at, [bytes]);
        t.check(r.startsWith(`HTTP/1.1 ${status} `), `${what}: ${r.slice(0, 60)}`);
        t.check(r.includes('"error":{"message"'), `${what} is explained`);
    }
    for (const [method, url, status] of [['GET', '/nowhere', 404], ['DELETE', '/v1/models', 405],
        ['GET', '/v1/chat/completions', 405]])
        t.same((await fetch(server.url + url, { method })).status, status, `${method} ${url}`);
    for (const bad of ['', '[]', '{', '{"text":"a"} x', '\0', '{"text":1}', '"a"'])
        t.same((await fetch(`${server.url}/tokenize`, { method: 'POST', body: bad })).status, 400,
            `body ${JSON.stringify(bad)}`);
    r = await fetch(`${server.url}/healthz`, { headers: { 'x-request-id': 'mine-1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } });
    t.same(r.headers.get('x-request-id'), 'mine-1', 'request id');
    t.check(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/.test(r.headers.get('traceparent')) &&
        !r.headers.get('traceparent').includes('b7ad6b7169203331'), 'trace goes on');
    // the description of the API, its page, and nothing outside of them
    const api = await (await fetch(`${server.url}/openapi.json`)).json();
    t.check(api.paths['/v1/chat/completions'].post.requestBody.content['application/json'].schema
        .properties.temperature.maximum === 2, 'openapi');
    const docs = await fetch(`${server.url}/docs`);
    t.check(docs.status === 200 && docs.headers.get('content-encoding') === 'gzip', 'docs');
    t.same((await fetch(`${server.url}/docs`, { headers: { 'if-none-match': docs.headers.get('etag') } }))
        .status, 304, 'etag');
    t.same((await fetch(`${server.url}/../../etc/passwd`)).status, 404, 'no files');
    const ids = await (await fetch(`${server.url}/tokenize`, { method: 'POST', body })).json();
    const back = await (await fetch(`${server.url}/detokenize`, { method: 'POST',
        body: JSON.stringify({ tokens: ids.tokens }) })).json();
    t.same(back.text.trim(), 'hello world', 'tokens and back');
    t.same((await hasty.stop()).code, 0, 'exit of the hasty one');
    t.same((await server.stop('SIGINT')).code, 0, 'exit');
}

// A frame of zstd with one plain block, or with n blocks that repeat a byte.
function zstd(bytes, n = 0) {
    const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0]);
    const block = (last, type, size) => Buffer.from([last | type << 1 | (size & 31) << 3, size >> 5 & 255, size >> 13]);
    head.writeUInt32LE(n ? n << 17 : bytes.length, 5);
    if (!n)
        return Buffer.concat([head, block(1, 0, bytes.length), bytes]);
    return Buffer.concat([head, ...Array.from({ length: n }, (_, i) => Buffer.concat([block(i === n - 1, 1, 1 << 17), bytes]))]);
}

// Compressed bodies: what is in them is bounded, and a key is asked for before they are read.
async function compressed() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
limits: {body: 1MiB}
keys: [{name: anna, sha256: ${sha('secret')}}]
`)]);
    const send = async (body, coding, key = 'secret') => {
        const r = await fetch(`${server.url}/tokenize`, { method: 'POST', body,
            headers: { authorization: `Bearer ${key}`, ...(coding ? { 'content-encoding': coding } : {}) } });
        return { status: r.status, ...(await r.json()) };
    };
    const plain = Buffer.from(JSON.stringify({ text: 'hello world '.repeat(2000), model: 'long' }));
    const want = (await send(plain)).count;
    t.check(want > 1000, 'plain');
    const packed = { gzip: zlib.gzipSync(plain), br: zlib.brotliCompressSync(plain), zstd: zstd(plain) };
    for (const [coding, bytes] of Object.entries(packed)) {
        t.same((await send(bytes, coding)).count, want, coding);
        t.same((await send(bytes, coding, 'wrong')).status, 401, `${coding}: the key comes first`);
        t.same((await send(bytes.subarray(0, bytes.length - 3), coding)).status, 400, `${coding}: cut off`);
        t.same((await send(plain, coding)).status, 400, `${coding}: it is not`);
    }
    const bombs = { gzip: zlib.gzipSync(Buffer.alloc(64 << 20)), br: zlib.brotliCompressSync(Buffer.alloc(64 << 20)),
        zstd: zstd(Buffer.from(' '), 60) };
    const before = t.memory(server).peak;
    for (const [coding, bytes] of Object.entries(bombs)) {
        t.check(bytes.length < 100000, `${coding}: ${bytes.length} bytes`);
        const r = await send(bytes, coding);
        t.same(`${r.status} ${r.error.code}`, '413 body_too_large', `${coding}: a bomb`);
        t.check(r.error.message.includes("'limits.body'"), 'says what to do');
    }
    t.check(t.memory(server).peak - before < 32 << 10, 'bombs take no memory');
    for (const coding of ['deflate', 'gzip, gzip', 'rot13']) {
        const r = await send(plain, coding);
        t.same(r.status, 415, coding);
        t.check(r.error.message.includes('gzip, br, zstd'), `${coding}: says what is known`);
    }
    const cut = await raw(server.port, [`POST /tokenize HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Encoding: gzip\r\n` +
        `Content-Length: ${packed.gzip.length}\r\n\r\n`, packed.gzip], (s) => s.includes('"count"'));
    t.check(cut.includes('200 OK'), 'in pieces');
    await server.stop();
}

// A client that closes its sending side after a request gets the answer; one that is gone does not keep the model busy.
async function half_closed() {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const ask = (n) => {
        const body = JSON.stringify({ model: 'long', prompt: 'x', max_tokens: n, ignore_eos: true });
        return `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    };
    const got = await new Promise((done, give) => {
        const s = net.connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
        let all = '';
        s.on('data', (d) => { all += d; });
        s.on('end', () => done(all));
        s.on('error', give);
        s.end(ask(40));
    });
    t.check(/HTTP\/1.1 200 OK[^]*"finish_reason":"length"/.test(got), `half closed: ${got.slice(0, 200)}`);
    const gone = net.connect(server.port, '127.0.0.1');
    gone.on('error', () => 0);
    gone.write(ask(100000));
    await t.until(async () => (await t.metric(server, 'shoal_calls_in_flight ')) > 0, 'it runs');
    gone.destroy();
    await t.until(async () => (await t.metric(server, 'shoal_calls_in_flight ')) === 0, 'a client that is gone is noticed');
    await server.stop();
}

// What cannot fit into the context is refused before it is tokenized.
async function long_prompts() {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const send = async (path_, body) => {
        const r = await fetch(server.url + path_, { method: 'POST', body: JSON.stringify({ model: 'long', ...body }) });
        return { status: r.status, ...(await r.json()) };
    };
    const huge = 'hello world '.repeat((15 << 20) / 12);
    for (const [path_, body] of [['/v1/completions', { prompt: huge }], ['/v1/chat/completions', { messages: [{ role: 'user', content: huge }] }],
        ['/completion', { prompt: huge }]]) {
        const r = await send(path_, body);
        t.same(r.status, 400, path_);
        t.check(/has \d{8} bytes, more than the context of \d+ tokens can hold/.test(r.error.message), `${path_}: ${r.error.message}`);
    }
    const r = await send('/v1/completions', { prompt: 'hello world '.repeat(3000) });
    t.check(/has \d+ tokens, but the context holds only/.test(r.error?.message), `a little too long is counted: ${JSON.stringify(r).slice(0, 200)}`);
    await server.stop();
}

async function keys() {
    // a context of 65536 tokens: what is to be in flight writes for minutes
    const file = config(`
models: [{name: long, path: ${long}, context: 65536}]
cors: [https://app.example, localhost]
keys:
  - {name: user, sha256: ${sha('secret-1')}}
  - {name: slow, sha256: ${sha('secret-2')}, rate: 0.01, burst: 2}
  - {name: one, sha256: ${sha('secret-3')}, in_flight: 1}
  - {name: boss, sha256: ${sha('secret-4')}, admin: true}
`);
    const server = await t.start(shoal, ['--config', file]);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (key, body, url = '/tokenize') => new Promise((done, give) => {
        const req = http.request(server.url + url, { method: 'POST', agent,
            headers: key ? { authorization: `Bearer ${key}` } : {} }, (res) => {
            let text = '';
            res.on('data', (d) => { text += d; });
            res.on('end', () => done({ status: res.statusCode, text, headers: res.headers }));
        });
        req.on('error', give);
        req.end(JSON.stringify(body));
    });
    const text = { text: 'x', model: 'long' };
    t.same((await fetch(`${server.url}/healthz`)).status, 200, 'health needs no key');
    t.same((await ask(null, text)).status, 401, 'no key');
    t.same((await ask('secret-0', text)).status, 401, 'a wrong key');
    t.same((await ask('secret-1', text)).status, 200, 'a key');
    t.same((await fetch(`${server.url}/v1/models`, { headers: { 'x-api-key': 'secret-1' } })).status, 200,
        'x-api-key');
    t.same((await ask('secret-2', text)).status, 200, 'first of burst');
    t.same((await ask('secret-2', text)).status, 200, 'second of burst');
    const limited = await ask('secret-2', text);
    t.same(limited.status, 429, 'rate');
    t.check(Number(limited.headers['retry-after']) >= 1, 'retry-after');
    t.same((await ask('secret-1', { model: 'long', action: 'unload' }, '/admin/models')).status, 403, 'admin');
    t.same((await ask('secret-4', { model: 'long', action: 'load' }, '/admin/models')).status, 200, 'admin');
    // one in flight
    const control = new AbortController();
    const stream = await fetch(`${server.url}/v1/completions`, { method: 'POST', signal: control.signal,
        headers: { authorization: 'Bearer secret-3' },
        body: JSON.stringify({ model: 'long', prompt: 'a', max_tokens: 100000, ignore_eos: true, stream: true }) });
    await stream.body.getReader().read();
    t.same((await ask('secret-3', text)).status, 429, 'in flight');
    control.abort();
    await t.until(async () => (await ask('secret-3', text)).status === 200, 'a place again');
    // CORS
    let r = await fetch(`${server.url}/v1/chat/completions`, { method: 'OPTIONS',
        headers: { origin: 'https://app.example', 'access-control-request-headers': 'x-a' } });
    t.same(r.status, 200, 'preflight');
    t.same(r.headers.get('access-control-allow-origin'), 'https://app.example', 'origin');
    r = await fetch(`${server.url}/healthz`, { headers: { origin: 'https://evil.example' } });
    t.same(r.headers.get('access-control-allow-origin'), null, 'another origin');
    for (const [origin, known] of [['http://localhost:3000', true], ['https://[::1]', true], ['http://localhost.evil.example', false]]) {
        r = await fetch(`${server.url}/healthz`, { headers: { origin } });
        t.same(r.headers.get('access-control-allow-origin'), known ? origin : null, `pages of this machine: ${origin}`);
    }
    // SIGHUP: new keys, the same connection
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(sha('secret-1'), sha('secret-9')));
    server.child.kill('SIGHUP');
    await t.until(async () => (await ask('secret-9', text)).status === 200, 'reload');
    t.same((await ask('secret-1', text)).status, 401, 'the old key is gone');
    fs.appendFileSync(file, '\nfrob: 1\n');
    server.child.kill('SIGHUP');
    await t.until(() => server.log.includes("unknown key 'frob'"), 'a bad file is reported');
    t.same((await ask('secret-9', text)).status, 200, 'and changes nothing');
    agent.destroy();
    t.check(!server.log.includes('secret-'), 'no key in the log');
    t.same((await server.stop()).code, 0, 'exit');
}

async function drain() {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const want = 2000;
    const stream = await fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({
        model: 'long', prompt: 'a', max_tokens: want, ignore_eos: true, stream: true,
        stream_options: { include_usage: true } }) });
    const reader = stream.body.getReader();
    let text = Buffer.from((await reader.read()).value).toString();
    server.child.kill('SIGTERM');
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += Buffer.from(value).toString();
    }
    t.check(text.includes(`"completion_tokens":${want}`), 'the stream was finished');
    t.check(text.endsWith('data: [DONE]\n\n'), 'to its end');
    t.same((await server.ended).code, 0, 'exit');
    t.check(await t.fails(fetch(`${server.url}/healthz`), 'after the end'), 'nobody listens');
}

// A load balancer needs time to notice that a server is shutting down: until then it answers, but is not ready.
async function leave() {
    const server = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}, context: 65536}]\nleave: 1h\n`)]);
    const control = new AbortController();
    const ask = (extra, signal) => fetch(`${server.url}/v1/completions`, { method: 'POST', signal,
        body: JSON.stringify({ model: 'long', prompt: 'a', ignore_eos: true, ...extra }) });
    t.same(await t.metric(server, 'shoal_calls_in_flight'), 0, 'nobody asks');
    const stream = await ask({ max_tokens: 100000, stream: true }, control.signal);
    await stream.body.getReader().read();
    t.same(await t.metric(server, 'shoal_calls_in_flight'), 1, 'a stream is in flight');
    const before = await ask({ max_tokens: 1 });
    t.same(`${before.status} ${before.headers.get('connection')}`, '200 keep-alive', 'before it leaves');
    await before.text();
    server.child.kill('SIGTERM');
    await t.until(async () => (await fetch(`${server.url}/readyz`)).status === 503, 'not ready any more');
    t.same((await fetch(`${server.url}/healthz`)).status, 200, 'but alive');
    for (let i = 0; i < 3; i++) {
        const r = await ask({ max_tokens: 4 });
        t.same(`${r.status} ${r.headers.get('connection')}`, '200 close', 'it answers, and the connection ends');
        await r.text();
    }
    control.abort();
    await t.until(async () => await t.metric(server, 'shoal_calls_in_flight') === 0, 'nothing in flight');
    server.child.kill('SIGTERM'); // the second signal ends it at once
    t.same((await server.ended).signal, 'SIGTERM', 'ended');
    const brief = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nleave: 1ms\n`)]);
    t.same((await brief.stop()).code, 0, 'after it has left, it drains');
}

// When the drain time is over, everything still running ends with an error that says so.
async function drain_cut() {
    const server = await t.start(shoal, ['--config', config(
        `models: [{name: long, path: ${long}, parallel: 32}]\ndrain: 1ms\n`)]);
    const ask = { model: 'long', prompt: 'a', max_tokens: 2000, ignore_eos: true, n: 2 };
    const post = (path, body) => fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
    const whole = post('/v1/completions', ask); // no part of an answer yet: a status
    const begun = async (path, body) => { // streams: an event
        const reader = (await post(path, body)).body.getReader();
        let text = Buffer.from((await reader.read()).value).toString();
        return async () => {
            for (;;) {
                const { done, value } = await reader.read();
                if (done)
                    return text;
                text += Buffer.from(value).toString();
            }
        };
    };
    const openai = await begun('/v1/completions', { ...ask, stream: true });
    const ollama = await begun('/api/generate', { model: 'long', prompt: 'a', options: { num_predict: 2000, temperature: 0 } });
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`), messages = [];
    const closed = new Promise((done) => { ws.onclose = (e) => done(e.code); });
    await new Promise((done) => {
        ws.onmessage = (e) => { messages.push(JSON.parse(e.data)); done(); };
        ws.onopen = () => ws.send(JSON.stringify({ id: '1', path: '/v1/completions', body: { ...ask, stream: true } }));
    });
    const session = require('http2').connect(server.url);
    session.on('error', () => {});
    const grpc = session.request({ ':method': 'POST', ':path': '/shoal.v1.Shoal/GenerateStream', 'content-type': 'application/grpc',
        te: 'trailers' });
    const message = Buffer.concat([Buffer.from([10, 4]), Buffer.from('long'), Buffer.from([0x1a, 1, 97, 0x20, 0xd0, 0x0f, 0x58, 1])]);
    const trailers = new Promise((done) => { grpc.on('trailers', done); grpc.on('close', () => done({})); });
    grpc.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
    await new Promise((done) => grpc.once('data', done));
    grpc.resume();
    server.child.kill('SIGTERM');
    const r = await whole, body = await r.json();
    t.same(`${r.status} ${body.error?.code} ${r.headers.get('retry-after')}`, '503 draining 1', 'a whole answer');
    const events = (await openai()).trim().split('\n\n');
    t.same(events.at(-1), 'data: [DONE]', 'server-sent events end');
    t.same(JSON.parse(events.at(-2).slice(6)).error?.code, 'draining', 'after an error');
    t.same(JSON.parse((await ollama()).trim().split('\n').at(-1)).error, 'the server is stopping', 'lines of JSON');
    t.same(await closed, 1001, 'the WebSocket is closed');
    t.check(messages.at(-2)?.event?.error?.code === 'draining' && messages.at(-1)?.done === true,
        `after an error: ${JSON.stringify(messages.slice(-2))}`);
    t.same((await trailers)['grpc-status'], '14', 'gRPC: UNAVAILABLE');
    t.same((await server.ended).code, 0, 'exit');
    session.destroy();
}

async function models() {
    const bad = path.join(t.tmp, 'bad.gguf');
    fs.writeFileSync(bad, fs.readFileSync(long).subarray(0, 5000));
    const server = await t.start(shoal, ['--config', config(`
memory: 40MiB
models:
  - {name: bad, path: ${bad}}
  - {name: a, path: ${long}, context: 1024, parallel: 2}
  - {name: b, path: ${refs}/qwen2.gguf, lazy: true, context: 1024, parallel: 2}
  - {name: c, path: ${refs}/gpt2.gguf, lazy: true}
`)], { admin: true });
    const ask = (model) => fetch(`${server.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify({ model, prompt: 'a', max_tokens: 2 }) });
    const state = async () => Object.fromEntries((await (await fetch(`${server.url}/admin/models`)).json())
        .models.map((m) => [m.model, m.state]));
    t.same((await state()).bad, 'failed', 'a broken file is reported');
    t.same((await ask('bad')).status, 503, 'and refused');
    t.same((await ask('a')).status, 200, 'the others serve');
    t.same((await state()).b, 'unloaded', 'lazy');
    t.same((await ask('b')).status, 200, 'loaded when asked for');
    t.same((await state()).b, 'ready', 'and stays');
    const admin = (body) => t.admin(server, body);
    t.same((await admin({ model: 'b', action: 'unload' })).status, 200, 'unload');
    await t.until(async () => (await state()).b === 'unloaded', 'unload');
    t.same((await admin({ model: 'd', action: 'add', path: `${refs}/phi2.gguf` })).status, 200, 'add');
    t.same((await ask('d')).status, 200, 'the new one answers');
    t.same((await admin({ model: 'd', action: 'add', path: `${refs}/x` })).status, 400, 'a name twice');
    for (const [origin, status] of [['https://evil.example', 403], ['http://localhost.evil.example', 403],
        [`http://localhost:${server.port}`, 200]])
        t.same((await fetch(`${server.url}/admin/models`, { headers: { origin } })).status, status, `admin by ${origin}`);
    t.same((await admin({ model: 'd', action: 'remove' })).status, 200, 'remove');
    t.same((await ask('d')).status, 404, 'it is gone');
    t.same((await server.stop()).code, 0, 'exit');
}

async function secure() {
    const dir = t.tmp, ssl = (...a) => execFileSync('openssl', a, { cwd: dir, stdio: 'pipe' });
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    ssl('req', '-x509', ...ec, '-days', '2', '-subj', '/CN=test ca', '-keyout', 'ca.key', '-out', 'ca.pem');
    for (const who of ['server', 'client']) {
        ssl('req', ...ec, '-subj', `/CN=${who}`, '-keyout', `${who}.key`, '-out', `${who}.csr`);
        fs.writeFileSync(path.join(dir, 'ext'), 'subjectAltName=IP:127.0.0.1');
        ssl('x509', '-req', '-in', `${who}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial',
            '-days', '2', '-extfile', 'ext', '-out', `${who}.pem`);
    }
    const curl = (...a) => spawnSync('curl', ['-s', '--cacert', 'ca.pem', ...a], { cwd: dir });
    for (const mutual of [false, true]) {
        const sock = path.join(dir, `s${mutual}.sock`);
        const server = await t.start(shoal, ['--listen', `unix:${sock}`, '--config', config(`
models: [{name: long, path: ${long}}]
tls: {cert: ${dir}/server.pem, key: ${dir}/server.key${mutual ? `, client_ca: ${dir}/ca.pem` : ''}}
`)]);
        t.check(server.url.startsWith('https://'), 'https');
        const own = mutual ? ['--cert', 'client.pem', '--key', 'client.key'] : [];
        const url = `${server.url}/healthz`;
        t.same(curl(...own, '-w', '%{http_version}', url).stdout.toString(), 'ok\n2', 'TLS and HTTP/2');
        t.same(curl(...own, '-w', '%{http_version}', '--http1.1', url).stdout.toString(), 'ok\n1.1', 'TLS');
        t.check(curl(...own, '--tlsv1.2', '--tls-max', '1.2', url).status !== 0, 'only TLS 1.3');
        if (mutual)
            t.check(curl(url).status !== 0, 'no certificate, no answer');
        const big = JSON.stringify({ model: 'long', text: 'word '.repeat(60000) });
        fs.writeFileSync(path.join(dir, 'big'), big);
        const r = curl(...own, '-d', '@big', `${server.url}/tokenize`);
        t.check(JSON.parse(r.stdout).count > 60000, 'large both ways');
        t.same(spawnSync('curl', ['-s', '--unix-socket', sock, 'http://x/healthz']).stdout.toString(), 'ok\n',
            'unix socket');
        server.child.kill('SIGHUP');
        await t.until(() => server.log.includes('configuration reloaded'), 'reload');
        t.same(curl(...own, url).stdout.toString(), 'ok\n', 'TLS after a reload');
        t.same((await server.stop()).code, 0, 'exit');
        t.check(!fs.existsSync(sock), 'the socket file is gone');
    }
}

// One request on a session; resolves with status, headers, body and trailers.
function h2ask(session, headers, body) {
    return new Promise((done, give) => {
        const r = session.request(headers, { endStream: body === undefined });
        const got = { text: '', trailers: {} };
        r.on('response', (h) => { got.headers = h; });
        r.on('trailers', (h) => { got.trailers = h; });
        r.on('data', (d) => { got.text += d; });
        r.on('end', () => done(got));
        r.on('error', give);
        if (body !== undefined)
            r.end(body);
    });
}

// A body must arrive in time; an idle connection may be silent for longer.
async function late_body() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
limits: {request_timeout: 300ms}
`)]);
    const connect = () => require('http2').connect(server.url).on('error', () => {});
    const is_well = async (session) => (await h2ask(session, { ':path': '/healthz' }).catch(() => ({}))).text === 'ok\n';
    let quiet;
    await t.until(async () => { // a busy machine may also be late with the first bytes of a connection
        quiet?.destroy();
        quiet = connect();
        return await is_well(quiet) && await is_well(quiet) && await is_well(quiet); // nothing left to acknowledge
    }, 'a connection before it is silent');
    await t.until(() => new Promise((done) => {
        const session = connect().on('close', () => done(false));
        const half = session.request({ ':method': 'POST', ':path': '/tokenize' }).on('error', () => {});
        half.on('response', (h) => { done(h[':status'] === 408); session.destroy(); });
        half.write('{"te');
    }), 'half a body');
    t.check(await is_well(quiet), 'after a silence');
    quiet.close();
    t.same((await server.stop()).code, 0, 'exit');
}

async function http2() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
limits: {body: 200KiB, headers: 4KiB}
`)]);
    const curl = spawnSync('curl', ['-s', '-w', '%{http_version}', '--http2-prior-knowledge',
        `${server.url}/healthz`]);
    t.same(curl.stdout.toString(), 'ok\n2', 'h2c by curl');
    const session = require('http2').connect(server.url);
    const post = (body, path = '/v1/completions') => h2ask(session, { ':method': 'POST', ':path': path },
        JSON.stringify(body));
    const ask = { model: 'long', prompt: 'a', max_tokens: 30, temperature: 0, ignore_eos: true };
    const want = JSON.parse((await post(ask)).text).choices[0].text;
    const many = await Promise.all(Array.from({ length: 60 }, (_, i) => post({ ...ask, stream: i % 2 === 1 })));
    for (const m of many) {
        const text = m.text.startsWith('data:') ? m.text.split('\n').filter((l) => l.startsWith('data: {'))
            .map((l) => JSON.parse(l.slice(6)).choices[0].text).join('') : JSON.parse(m.text).choices[0].text;
        t.same(text, want, 'streams beside each other');
    }
    t.same((await h2ask(session, { ':method': 'HEAD', ':path': '/healthz' })).headers['content-length'], '3',
        'HEAD');
    t.same((await post({ text: 'x'.repeat(300000) }, '/tokenize')).headers[':status'], 413, 'a large body');
    t.check(JSON.parse((await post({ model: 'long', text: 'word '.repeat(30000) }, '/tokenize')).text).count >
        30000, 'large both ways');
    t.same((await h2ask(session, { ':method': 'GET', ':path': '/healthz', a: 'x'.repeat(5000) }))
        .headers[':status'], 431, 'large headers');
    await late_body();
    // resetting a stream cancels its work, the others go on
    const stream = session.request({ ':method': 'POST', ':path': '/v1/completions' });
    stream.on('error', () => {});
    stream.end(JSON.stringify({ ...ask, max_tokens: 2000, stream: true }));
    await new Promise((done) => stream.once('data', done));
    stream.close(8);
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'reset');
    t.same(await t.metric(server, 'shoal_cancelled_total{model="long"}'), 1, 'cancelled');
    t.same((await h2ask(session, { ':path': '/healthz' })).text, 'ok\n', 'the session goes on');
    // draining: running requests finish, then GOAWAY
    const last = session.request({ ':method': 'POST', ':path': '/v1/completions' });
    let text = '';
    last.on('data', (d) => { text += d; });
    last.end(JSON.stringify({ ...ask, max_tokens: 1500, stream: true }));
    await new Promise((done) => last.once('data', done));
    const closed = new Promise((done) => session.on('close', done));
    server.child.kill('SIGTERM');
    await closed;
    t.check(text.endsWith('data: [DONE]\n\n'), 'finished while draining');
    t.same((await server.ended).code, 0, 'exit');
    const frames = [`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\xff'.repeat(9)}`, 'PRI * HTTP/2.0\r\n\r\nxx'];
    const other = await t.start(shoal, ['-m', `long=${long}`]);
    for (const f of frames)
        await raw(other.port, [Buffer.from(f, 'latin1')]);
    t.same((await fetch(`${other.url}/healthz`)).status, 200, 'bad frames end their connection only');
    await other.stop();
}

function configurations() {
    const cases = [
        ['listen: [127.0.0.1:0]\nfrob: 1\n', ":2:1: unknown key 'frob'"],
        ['thread: 2\n', "did you mean 'threads'"],
        ['limits: {bdy: 1}\n', "unknown key 'bdy' in limits (did you mean 'body'"],
        ['limits: {body: 1XB}\n', "'XB' is not a unit"],
        ['models:\n  - {name: a, path: b}\n  - {name: a, path: c}\n', ':3:5: two models are named a'],
        ['models: [{name: a}]\n', 'an entry of models needs path'],
        ['keys: [{name: a, sha256: 12}]\n', '64 hex digits'],
        ['threads: [1, 2]\n', 'must be a number'],
        ['a: b: c\n', ':1:'], ['[1, 2]', 'must be a map'], ['threads: 1\nthreads: 2\n', 'given twice'],
        ['drain: -5s\n', 'must be from 0'], ['tls: {cert: x}\n', 'needs cert and key'],
    ];
    for (const [text, want] of cases) {
        const r = spawnSync(shoal, ['serve', '--check', '-m', `x=${long}`, '--config', config(text)]);
        t.same(r.status, 1, `exit code of ${JSON.stringify(text)}`);
        t.check(r.stderr.toString().includes(want), `${want}: ${r.stderr}`);
    }
    const ok = spawnSync(shoal, ['serve', '--check', '--config', config(
        `models: [{name: a, path: ${long}, kv: q8}]\nidle_unload: 5m\ncache: {bytes: 1MiB, ttl: 1h}\n`)]);
    t.same(ok.status, 0, `a good file: ${ok.stderr}`);
    for (const [args, want] of [[['-m', `x=${long}`, '--listen', 'nope'], 'nope has no port'],
        [['-m', `x=${long}`, '--listen', '127.0.0.1:99999'], 'from 0 to 65535'],
        [['-m', 'x=/nowhere/x.gguf'], '/nowhere/x.gguf'],
        [['-m', `x=${__filename}`], 'not a GGUF file'], [['-m', `x=${t.tmp}`], 'a folder without config.json'],
        [['-m', `x=${long}`, '--config', config('tls: {cert: /nowhere/c, key: /nowhere/k}\n')], '/nowhere/c']]) {
        const r = spawnSync(shoal, ['serve', '--check', ...args]);
        t.check(r.status === 1 && r.stderr.includes(want), `--check ${args}: ${r.status} ${r.stderr}`);
    }
    const busy = net.createServer().listen(0, '127.0.0.1');
    return new Promise((done) => busy.on('listening', () => {
        const r = spawnSync(shoal, ['serve', '-m', `x=${long}`, '--listen', `127.0.0.1:${busy.address().port}`]);
        t.same(r.status, 1, 'a port in use');
        t.check(r.stderr.toString().includes('in use'), `says so: ${r.stderr}`);
        busy.close(done);
    }));
}

// A text with NUL is refused with the name of its field, never truncated; so is a body of too many values.
async function texts() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
limits: {values: 1000}
`)]);
    const post = async (path, body) => {
        const r = await fetch(server.url + path, { method: 'POST', body });
        return { status: r.status, error: (await r.json()).error };
    };
    const pad = 'x'.repeat(100000); // large bodies are parsed by the pool
    for (const [path, body, param] of [
        ['/v1/completions', '{"prompt":"a\\u0000b"}', 'prompt'],
        ['/v1/completions', `{"user":"${pad}","prompt":["x","a\\u0000b"]}`, 'prompt[1]'],
        ['/v1/completions', '{"prompt":"a","stop":["\\u0000"]}', 'stop[0]'],
        ['/v1/chat/completions', '{"messages":[{"role":"user","content":"a\\u0000b"}]}', 'messages[0].content'],
        ['/tokenize', '{"text":"a\\u0000b"}', 'text'], ['/tokenize', '{"text":"a\0b"}', 'text'],
        ['/v1/embeddings', '{"input":["a\\u0000b"]}', 'input[0]'],
        ['/v1/process', '{"text":"a\\u0000b"}', 'text']]) {
        const r = await post(path, body), what = `${path} ${body.slice(-60)}`;
        t.same(`${r.status} ${r.error?.param}`, `400 ${param}`, what);
        t.check(r.error?.message.includes('contains NUL'), `${what}: ${JSON.stringify(r.error)}`);
    }
    t.same((await post('/tokenize', '{"text":"a\\\\u0000b"}')).status, 200, 'an escaped backslash before u0000');
    let r = await post('/v1/completions', JSON.stringify({ prompt: Array(1000).fill(1) }));
    t.same(`${r.status} ${r.error?.code}`, '413 too_many_values', 'too many values');
    t.check(r.error?.message.includes("'limits.values'"), 'says what to do');
    t.same((await post('/tokenize', JSON.stringify({ text: pad }))).status, 200, 'a large text');
    r = await post('/tokenize', `{"text":"${pad}"`);
    t.same(`${r.status} ${r.error?.code}`, '400 invalid_json', 'a large text that is not JSON');
    r = await post('/tokenize', `["${pad}"]`);
    t.same(`${r.status} ${r.error?.code}`, '400 invalid_type', 'a large list');
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
    ws.onopen = () => ws.send('{"id":"7","body":{"messages":[{"role":"user","content":"a\\u0000b"}]}}');
    const m = JSON.parse(await new Promise((done) => { ws.onmessage = (e) => done(e.data); }));
    t.check(m.id === '7' && m.status === 400 && m.error.includes('contains NUL'), `a message with NUL: ${JSON.stringify(m)}`);
    ws.close();
    await server.stop();
}

(async () => {
    await configurations();
    await texts();
    await protocol();
    await compressed();
    await half_closed();
    await long_prompts();
    await keys();
    await drain();
    await leave();
    await drain_cut();
    await models();
    await http2();
    await secure();
    t.finish();
})().catch(t.abandon);
