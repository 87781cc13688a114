#!/usr/bin/env node
// Attacks on `shoal serve`, each with a normal client beside it, all of whose requests must succeed.  The server's
// memory must stay under the bound that its limits state.
// Usage: serve_attacks.js SHOAL [--list] [--json] [--yield] [--quiet MS] [ATTACK...]
//   --list      names of the attacks
//   --json      figures as JSON, for bench/attacks.js
//   --yield     the attacker gives way to server and client (for one attack at a time)
//   --quiet MS  how long the quiet server is measured (500)
//
// The attackers have addresses of their own (127.0.0.2 and up): limits are by address.
'use strict';
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http2 = require('http2');
const net = require('net');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

if (!isMainThread) {
    require('./attack_client.js')(parentPort, workerData);
    return;
}
const t = require('./serve.js');
const shoal = path.resolve(process.argv[2]), options = { '--list': false, '--json': false, '--yield': false, '--quiet': 500 };
const only = process.argv.slice(3).filter((a, i, all) => {
    if (all[i - 1] === '--quiet')
        options['--quiet'] = Number(a);
    else if (a in options && a !== '--quiet')
        options[a] = true;
    return !a.startsWith('--') && all[i - 1] !== '--quiet';
});
const key = 'right', MiB = 1 << 20;
const limits = { buffers: 48, client_buffers: 24 }; // MiB
// On top of the buffers: connections, memory that the allocator keeps, and the two pool threads, each tokenizing a long
// text. A sanitizer keeps freed memory and tables of its own.
const asan = fs.readFileSync(shoal).includes('__asan_init');
const slack = asan ? 200 : 64; // MiB
process.env.ASAN_OPTIONS = [process.env.ASAN_OPTIONS, 'quarantine_size_mb=8'].filter(Boolean).join(':');

function certificate() {
    const [cert, tlsKey] = ['cert.pem', 'key.pem'].map((f) => path.join(t.tmp, f));
    if (!fs.existsSync(cert))
        execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=localhost',
            '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', tlsKey, '-out', cert], { stdio: 'pipe' });
    return { cert, key: tlsKey };
}

async function start(more = '', tls = null) {
    const file = path.join(t.tmp, `attack-${crypto.randomUUID()}.yaml`);
    fs.writeFileSync(file, `
models: [{name: m, path: ${t.root}/tests/data/refs/qwen3.gguf, context: 256, parallel: 8}]
keys: [{name: app, sha256: ${crypto.createHash('sha256').update(key).digest('hex')}}]
log_requests: false
threads: 1
limits: {buffers: ${limits.buffers}MiB, client_buffers: ${limits.client_buffers}MiB${more}}
${tls ? `tls: {cert: ${tls.cert}, key: ${tls.key}}\n` : ''}`);
    const server = await t.start(shoal, ['--config', file], tls ? { admin: true } : {});
    server.ca = tls && fs.readFileSync(tls.cert, 'utf8');
    return server;
}

// A client in a thread of its own: sends requests until told to stop; { n, failed, times }.
function client(server) {
    const worker = new Worker(__filename, { workerData: { port: server.port, key, ca: server.ca } });
    const first = new Promise((done) => worker.once('message', done));
    return {
        begun: first,
        stop: () => new Promise((done) => {
            worker.on('message', (m) => m.n !== undefined && done(m));
            worker.postMessage('stop');
        }),
    };
}

const at = (times, part) => times.sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))];
const ms = (x) => x.toFixed(2).padStart(8);

// Runs fn while the client makes some requests.
async function beside(server, fn) {
    const c = client(server);
    await c.begun;
    const result = await fn();
    return { ...await c.stop(), result };
}

const connect = (server, address = '127.0.0.2') => {
    const s = net.connect({ port: server.port, host: '127.0.0.1', localAddress: address });
    s.on('error', () => {}); // the server may close it: that is what the limits are for
    return s;
};

const connected = (s) => new Promise((done) => { s.once('connect', done); s.once('error', done); s.once('close', done); });

// What the server sent until `enough` or the end.
function answer(s, enough = /\r\n\r\n/) {
    return new Promise((done) => {
        let got = '';
        s.on('data', (d) => {
            got += d.toString('latin1');
            if (enough.test(got))
                done(got);
        });
        s.on('close', () => done(got));
    });
}

const post = (bytes, k, url = '/v1/completions') => `POST ${url} HTTP/1.1\r\nHost: localhost\r\n` +
    `Authorization: Bearer ${k}\r\nContent-Length: ${bytes}\r\n\r\n`;

// Writes as fast as the server reads, until it closes, everything is sent or the time is up.
async function pour(s, bytes, end) {
    const block = Buffer.alloc(64 << 10, 0x20);
    for (let n = 0; n + block.length <= bytes && !s.destroyed && Date.now() < end; n += block.length)
        if (!s.write(block))
            await new Promise((done) => {
                const go = () => {
                    clearTimeout(timer);
                    s.off('drain', go);
                    s.off('close', go);
                    done();
                };
                const timer = setTimeout(go, 200);
                s.on('drain', go);
                s.on('close', go);
            });
}

const seconds = (n) => Date.now() + n * 1000;
const grpc = (k) => ({ ':method': 'POST', ':path': '/shoal.v1.Shoal/Generate', 'content-type': 'application/grpc', te: 'trailers',
    authorization: `Bearer ${k}` });

// ---- HTTP/2 frames, by hand ----

const frame = (type, flags, id, payload = Buffer.alloc(0)) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(id, 5);
    return Buffer.concat([head, payload]);
};
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b; };
const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]);
// GET http localhost, :path as a literal.
const get = (id, url) => frame(1, 5, id, Buffer.concat([Buffer.from([0x82, 0x86, 0x41, 9]), Buffer.from('localhost'),
    Buffer.from([0x44, url.length]), Buffer.from(url)]));
const PING = 6, GOAWAY = 7;
const count = (buffer, type) => { // frames of this type
    let n = 0;
    for (let i = 0; i + 9 <= buffer.length; i += 9 + buffer.readUIntBE(i, 3))
        n += buffer[i + 3] === type;
    return n;
};

// One connection: requests, each made invalid by `trick`, until the server closes it; returns how many were sent.
async function resets(server, address, most, trick) {
    const s = connect(server, address);
    let got = Buffer.alloc(0), n = 0, id = 1;
    s.on('data', (d) => { got = Buffer.concat([got, d]); });
    await connected(s);
    s.write(preface);
    for (let pings = 1; n < most && !s.destroyed && count(got, GOAWAY) === 0; pings++) {
        const part = [];
        for (let i = 0; i < 20 && n < most; i++, n++, id += 2)
            part.push(get(id, '/v1/models'), trick(id));
        s.write(Buffer.concat([...part, frame(PING, 0, 0, Buffer.alloc(8))])); // answered once all before it was read
        await t.until(() => count(got, PING) >= pings || count(got, GOAWAY) > 0 || s.destroyed, 'what was sent is read');
    }
    s.destroy();
    return { n, refused: count(got, GOAWAY) > 0 };
}

// ---- attacks: each returns when it is over; `bound`: MiB above the quiet server; `more`: limits ----

const attacks = {
    // 68 KB of GET /metrics on each of eight connections, which read nothing.
    async pipelined(server) {
        const all = Array.from({ length: 8 }, () => connect(server));
        await Promise.all(all.map(connected));
        for (const s of all) {
            s.pause();
            s.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1600));
        }
        await t.sleep(1500);
        all.forEach((s) => s.destroy());
    },
    // The same, but read: these cost time, not memory.
    async pipelined_read(server) {
        const end = seconds(2), one = async () => {
            const s = connect(server);
            await connected(s);
            s.resume();
            while (Date.now() < end && !s.destroyed) {
                s.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100));
                await t.sleep(50);
            }
            s.destroy();
        };
        await Promise.all(Array.from({ length: 8 }, one));
    },
    // Bodies of 15 MiB with a wrong key: answered from their headers.
    async wrong_key(server) {
        const one = async (tries = 3) => {
            const s = connect(server), came = answer(s), began = Date.now();
            await connected(s);
            s.write(post(15 * MiB, 'wrong'));
            await pour(s, 15 * MiB - 1, seconds(2));
            const text = await came;
            s.destroy();
            // a client still sending two seconds after the answer is cut off, and may lose it unread
            if (text === '' && tries > 1 && Date.now() - began > 1500)
                return one(tries - 1);
            t.check(text.startsWith('HTTP/1.1 401'), `a wrong key: ${text.slice(0, 100)}`);
        };
        await Promise.all(Array.from({ length: 60 }, () => one()));
    },
    // The same over gRPC: the answer comes before the body.
    async wrong_key_grpc(server) {
        const one = async () => {
            const c = http2.connect(server.url, { localAddress: '127.0.0.2' });
            c.on('error', () => {});
            const r = c.request(grpc('wrong'));
            r.on('error', () => {});
            r.write(Buffer.alloc(1024));
            const status = await new Promise((done) => {
                r.on('response', (h) => h['grpc-status'] && done(h['grpc-status']));
                r.on('trailers', (h) => done(h['grpc-status']));
                r.on('close', () => done('closed'));
                r.resume();
            });
            t.same(status, '16', 'a wrong key over gRPC');
            c.destroy();
        };
        await Promise.all(Array.from({ length: 40 }, one));
    },
    // Unfinished bodies with a valid key: one address, then many.
    async bodies(server) {
        // All but `most` of them exceed the limit and are refused.
        const hold = async (addresses, most) => {
            const all = await Promise.all(addresses.map(async (address) => {
                const s = connect(server, address), one = { s };
                answer(s).then((text) => { one.status = text.split(' ')[1] ?? 'closed'; });
                await connected(s);
                s.write(post(15 * MiB, key));
                await pour(s, 15 * MiB - 1, seconds(60));
                return one;
            }));
            const count = (status) => all.filter((one) => one.status === status).length;
            await t.until(() => count('503') + count('closed') >= all.length - most, 'bodies are refused');
            t.check(count('503') > 0 && count('503') + count('closed') + count(undefined) === all.length,
                `answers: ${all.map((one) => one.status)}`);
            all.forEach((one) => one.s.destroy());
        };
        await hold(Array(60).fill('127.0.0.2'), 1);
        await hold(Array.from({ length: 60 }, (_, i) => `127.0.1.${i + 1}`), 3);
        t.check(await t.metric(server, 'shoal_buffer_refused_total{limit="client"}') > 0, 'counted by client');
        t.check(await t.metric(server, 'shoal_buffer_refused_total{limit="all"}') > 0, 'counted in all');
        await t.until(async () => await t.metric(server, 'shoal_buffer_bytes') === 0, 'all memory is given back');
    },
    // The same as streams of HTTP/2.
    async streams(server) {
        const one = async () => {
            const c = http2.connect(server.url, { localAddress: '127.0.0.2' });
            c.on('error', () => {});
            const all = Array.from({ length: 100 }, () => {
                const r = c.request({ ':method': 'POST', ':path': '/v1/completions', authorization: `Bearer ${key}` });
                r.on('error', () => {});
                r.write(Buffer.alloc(900 << 10));
                return r;
            });
            await t.sleep(1500);
            t.same(all.length, 100, 'streams');
            c.destroy();
        };
        await Promise.all(Array.from({ length: 4 }, one));
    },
    // A WebSocket that sends requests and never reads.
    async websocket(server) {
        const one = async () => {
            const s = connect(server);
            await connected(s);
            s.write('GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
                `Authorization: Bearer ${key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
            await new Promise((done) => s.once('data', done));
            s.pause();
            const text = Buffer.from(JSON.stringify({ id: 'x'.repeat(60), cancel: true }));
            const message = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]);
            const many = Buffer.concat(Array(2000).fill(message));
            for (const end = seconds(2); Date.now() < end && !s.destroyed;) {
                if (!s.write(many))
                    await t.sleep(20);
                if (s.writableLength > 32 * MiB) // the server has stopped reading
                    break;
            }
            await t.sleep(500);
            s.destroy();
        };
        await Promise.all(Array.from({ length: 4 }, one));
    },
    // Large WebSocket messages: parsed off the event loop, one per connection at a time and in order.
    async websocket_large(server) {
        const frame = (bytes) => {
            const head = Buffer.alloc(14);
            head[0] = 0x81;
            head[1] = 0x80 | 127;
            head.writeBigUInt64BE(BigInt(bytes.length), 2);
            return Buffer.concat([head, bytes]); // its mask is 0
        };
        const message = (id, body, cancel) => frame(Buffer.from(JSON.stringify({ id, path: '/v1/completions', body, cancel })));
        const open = async (address) => {
            const s = connect(server, address);
            await connected(s);
            s.write('GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
                `Authorization: Bearer ${key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
            await new Promise((done) => s.once('data', done));
            s.got = '';
            s.on('data', (d) => { s.got += d.toString('latin1'); });
            return s;
        };
        const text = { model: 'm', prompt: 'word '.repeat(800000), max_tokens: 1 }, ids = { model: 'm', prompt: Array(50000).fill(7) };
        const one = async (address) => {
            const s = await open(address);
            for (let i = 0; i < 6 && !s.destroyed; i++) {
                s.write(Buffer.concat([message(`t${i}`, text), message(`n${i}`, ids), message(`t${i}`, undefined, true)]));
                await t.until(() => s.got.includes(`"n${i}"`) || s.destroyed, 'an answer');
            }
            t.check(/context_length_exceeded/.test(s.got), `a long text: ${s.got.slice(0, 200)}`);
            t.check(!s.destroyed, 'the connection stays');
            s.destroy();
        };
        await Promise.all([one('127.0.0.2'), one('127.0.0.3')]);
        // invalid UTF-8, and more values than allowed
        let s = await open();
        s.write(frame(Buffer.concat([Buffer.from('{"id":"1","body":{"x":"'), Buffer.alloc(200000, 0xff), Buffer.from('"}}')])));
        await t.until(() => s.got.includes('\u0003\u00ef') || s.destroyed, 'close code 1007');
        s = await open();
        s.write(message('1', { model: 'm', prompt: Array(400000).fill(7) }));
        await t.until(() => s.got.includes('limits.values'), 'too many values');
        s.destroy();
        // a client that disconnects while its message is being parsed
        for (let i = 0; i < 5; i++) {
            s = await open();
            s.end(message('1', text));
        }
        await t.until(async () => await t.metric(server, 'shoal_buffer_bytes') === 0, 'all memory is given back');
    },
    // Streams that the client resets, on many connections one after the other.
    async resets(server) {
        const seen = [];
        for (let i = 0; i < 40; i++)
            seen.push(await resets(server, '127.0.0.2', 95, (id) => frame(3, 0, id, u32(8))));
        const sent = seen.reduce((n, x) => n + x.n, 0);
        // A slow machine may need more than one window of ten seconds for this.
        t.check(seen.filter((x) => x.refused).length >= 20, `resets of later connections are refused: ${JSON.stringify(seen)}`);
        t.check(sent < 3000, `requests that were reset: ${sent}`);
        const other = await resets(server, '127.0.0.3', 50, (id) => frame(3, 0, id, u32(8)));
        t.check(!other.refused && other.n === 50, `another address is not refused: ${JSON.stringify(other)}`);
    },
    // Window overflows, so that the server resets the streams.
    async window_overflow(server) {
        const seen = await resets(server, '127.0.0.2', 20000, (id) => frame(8, 0, id, u32(0x7fffffff)));
        t.check(seen.refused && seen.n < 1000, `requests on one connection: ${seen.n}`);
    },
    // Many requests at once on connections that read nothing.
    async h2_burst(server) {
        const all = Array.from({ length: 8 }, () => connect(server));
        await Promise.all(all.map(connected));
        for (const s of all) {
            s.pause();
            s.write(Buffer.concat([preface, ...Array.from({ length: 128 }, (_, i) => get(2 * i + 1, '/metrics'))]));
        }
        await t.sleep(1500);
        all.forEach((s) => s.destroy());
    },
    // A list of token ids as large as a body may be: refused before it takes forty times its size in memory.
    async token_ids(server) {
        const body = Buffer.from(JSON.stringify({ model: 'm', prompt: Array(7 * MiB).fill(1) }));
        const one = async (i) => {
            const r = await fetch(`${server.url}/v1/completions`, { method: 'POST', body, headers: { authorization: `Bearer ${key}` } })
                .catch((e) => ({ status: e.cause?.code ?? e.message }));
            const text = r.text ? await r.text() : '';
            t.check(r.status === 413 || r.status === 503 || r.status === 'ECONNRESET' || r.status === 'EPIPE' ||
                r.status === 'UND_ERR_SOCKET', `a list of ids: ${r.status} ${text}`);
            return r.status;
        };
        t.same(await one(), 413, 'one list of ids');
        await Promise.all(Array.from({ length: 8 }, one));
        const ids = await fetch(`${server.url}/v1/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` },
            body: JSON.stringify({ model: 'm', prompt: Array(200000).fill(1), max_tokens: 1 }) });
        t.same((await ids.json()).error.code, 'context_length_exceeded', 'as many as are allowed are read');
    },
    // Texts that fill a body: parsed off the event loop.
    async long_texts(server) {
        const body = JSON.stringify({ model: 'm', prompt: 'word '.repeat(MiB), max_tokens: 1 });
        for (let i = 0; i < 4; i++) {
            const r = await fetch(`${server.url}/v1/completions`, { method: 'POST', body, headers: { authorization: `Bearer ${key}` } });
            t.same(`${r.status} ${(await r.json()).error?.code}`, '400 context_length_exceeded', 'a long text');
        }
    },
    // Many of them at once from many addresses: the memory of a parsed body counts as long as the request runs.
    async many_texts(server) {
        const body = JSON.stringify({ model: 'm', prompt: 'word '.repeat(2 * MiB), max_tokens: 1 });
        const one = async (i) => {
            const s = connect(server, `127.0.1.${i % 20 + 1}`), came = answer(s);
            await connected(s);
            s.write(post(body.length, key) + body);
            const status = (await came).split(' ')[1] ?? 'closed';
            t.check(['400', '503', 'closed'].includes(status), `a long text: ${status}`);
            s.destroy();
        };
        await Promise.all(Array.from({ length: 40 }, (_, i) => one(i)));
        await t.until(async () => await t.metric(server, 'shoal_buffer_bytes') === 0, 'all memory is given back');
    },
    // gRPC messages that decompress to a thousand times their size.
    async gzip(server) {
        const text = Buffer.alloc(12 * MiB, 'a '), head = Buffer.from([0x1a, 0x80, 0x80, 0x80, 0x06]); // prompt: 12 MiB
        const packed = zlib.gzipSync(Buffer.concat([head, text])), size = Buffer.alloc(5);
        size[0] = 1;
        size.writeUInt32BE(packed.length, 1);
        const c = http2.connect(server.url, { localAddress: '127.0.0.2' });
        c.on('error', () => {});
        const one = () => new Promise((done) => {
            const r = c.request({ ...grpc(key), 'grpc-encoding': 'gzip' });
            r.on('error', () => {});
            r.on('response', (h) => h['grpc-status'] && done(h['grpc-status']));
            r.on('trailers', (h) => done(h['grpc-status']));
            r.on('close', () => done('closed'));
            r.resume();
            r.end(Buffer.concat([size, packed]));
        });
        t.same(await one(), '3', 'one message: too long for the model');
        const all = await Promise.all(Array.from({ length: 60 }, one));
        t.check(all.every((s) => s === '3' || s === '14'), `messages: ${all}`);
        c.destroy();
        await t.until(async () => await t.metric(server, 'shoal_buffer_bytes') === 0, 'all memory is given back');
    },
    // More connections than the limit: new ones are still served.
    async idle(server) {
        const all = [];
        for (let i = 0; i < 300; i++) {
            all.push(connect(server));
            if (i % 50 === 49)
                await Promise.all(all.slice(-50).map(connected));
        }
        await t.until(async () => await t.metric(server, 'shoal_connections_displaced_total') > 100, 'the oldest are closed');
        all.forEach((s) => s.destroy());
    },
    // Two thousand TLS handshakes that never end: silent, cut in the middle of the first message, or a byte at a time.
    async half_open(server) {
        const hello = Buffer.from('16030100c8010000c40303', 'hex'), all = []; // the head of a ClientHello that goes on
        const begin = (s, i) => i % 3 && s.write(i % 3 === 1 ? Buffer.concat([hello, Buffer.alloc(100, 7)]) : hello.subarray(0, 1));
        for (let i = 0; i < 2000; i++) {
            all.push(connect(server, `127.0.2.${1 + i % 200}`));
            if (i % 100 === 99)
                await Promise.all(all.slice(-100).map(connected));
            begin(all[i], i);
        }
        const drip = setInterval(() => all.forEach((s, i) => i % 3 === 2 && !s.destroyed && s.writable && s.write(Buffer.alloc(1, 1))), 200);
        await t.until(() => all.every((s) => s.destroyed || s.closed || s.readableEnded), 'every one is ended by request_timeout');
        clearInterval(drip);
        all.forEach((s) => s.destroy());
    },
    // HTTP/2 in slow motion: headers that never end, bodies a byte at a time, prefaces without a request but pings.
    async slow_h2(server) {
        const part = (id, path) => frame(1, 0, id, get(id, path).subarray(9)); // HEADERS without END_HEADERS
        const head = Buffer.concat([Buffer.from([0x83, 0x86, 0x41, 9]), Buffer.from('localhost'), Buffer.from([0x44, 15]), Buffer.from('/v1/completions'),
            Buffer.from([0x40, 13]), Buffer.from('authorization'), Buffer.from([12]), Buffer.from(`Bearer ${key}`)]);
        const all = Array.from({ length: 300 }, (_, i) => connect(server, `127.0.3.${1 + i % 100}`));
        await Promise.all(all.map(connected));
        all.forEach((s, i) => {
            s.resume();
            s.write(Buffer.concat([preface, [part(1, '/v1/models'), frame(1, 4, 1, head), Buffer.alloc(0)][i % 3]]));
        });
        const drip = setInterval(() => all.forEach((s, i) => {
            if (!s.destroyed && s.writable)
                s.write([frame(9, 0, 1, Buffer.from([0x40])), frame(0, 0, 1, Buffer.from(' ')), frame(PING, 0, 0, Buffer.alloc(8))][i % 3]);
        }), 200);
        await t.until(() => all.every((s) => s.destroyed || s.closed || s.readableEnded), 'every one is ended by a timeout');
        clearInterval(drip);
        all.forEach((s) => s.destroy());
    },
};
const short = ', request_timeout: 2s, idle_timeout: 2s';
const more = { idle: ', connections: 64', half_open: short, slow_h2: short };

(async () => {
    if (options['--list']) {
        console.log(Object.keys(attacks).join('\n'));
        return;
    }
    for (const name of Object.keys(attacks).filter((n) => only.length === 0 || only.includes(n))) {
        const server = await start(more[name], name === 'half_open' ? certificate() : null);
        const quiet = await beside(server, () => t.sleep(options['--quiet']));
        const before = t.memory(server), bound = limits.buffers + slack;
        let most = 0;
        const watch = setInterval(() => { most = Math.max(most, t.memory(server)?.rss ?? 0); }, 20);
        const under = await beside(server, () => {
            if (options['--yield'])
                os.setPriority(0, 19); // this thread alone
            return attacks[name](server);
        });
        clearInterval(watch);
        const grown = (most - before.rss) / 1024;
        const figures = { name, quiet_p99: at(quiet.times, 0.99), attacked_p99: at(under.times, 0.99), requests: under.n,
            memory_mib: grown, bound_mib: bound };
        console.log(options['--json'] ? JSON.stringify(figures) : `${name.padEnd(16)} p50/p99 ms quiet ${ms(at(quiet.times, 0.5))} ${ms(at(quiet.times, 0.99))}  attacked ` +
            `${ms(at(under.times, 0.5))} ${ms(at(under.times, 0.99))} (${under.n} requests)  memory +${grown.toFixed(1)} MiB, bound ${bound}`);
        t.same(quiet.failed.concat(under.failed).join('; '), '', `${name}: requests of the normal client`);
        t.check(under.n > 0, `${name}: the normal client was served`);
        t.check(grown < bound, `${name}: ${grown.toFixed(1)} MiB more than before, at most ${bound} are allowed`);
        const end = await server.stop();
        t.same(`${end.code} ${end.signal}`, '0 null', `${name}: exit: ${server.log.slice(-2000)}`);
    }
    t.finish();
})().catch(t.abandon);
