#!/usr/bin/env node
// Hostile bytes on every protocol that `shoal serve` speaks: requests hidden in bodies (HTTP/1), frames out of order and floods of them (HTTP/2),
// fragments and lengths that lie (WebSocket), metadata and messages that are too large (gRPC), and clients that are slow on purpose. Each attack is
// answered with an error or a closed connection, nothing of it runs as a request, and a normal client is served right after it.
// Usage: serve_wire.js SHOAL [--list] [ATTACK...]
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), only = process.argv.slice(3).filter((a) => !a.startsWith('--'));
const key = 'right', MiB = 1 << 20;
const WAIT = 30000; // for a server on a busy machine

// Sends the parts and gathers what comes, until the connection ends or `enough` says so.
function talk(port, parts, { enough = () => false, end = false, pause = 0 } = {}) {
    return new Promise((done) => {
        const s = net.connect(port, '127.0.0.1');
        let got = Buffer.alloc(0), timer = null;
        const finish = (closed) => { clearTimeout(timer); s.destroy(); done({ got, text: got.toString('latin1'), closed }); };
        timer = setTimeout(() => finish(false), WAIT);
        s.on('data', (d) => { got = Buffer.concat([got, d]); if (enough(got)) finish(false); });
        s.on('error', () => {});
        s.on('close', () => finish(true));
        s.on('connect', async () => {
            for (const p of parts) {
                if (s.destroyed)
                    break;
                if (!s.write(p))
                    await new Promise((next) => { s.once('drain', next); s.once('close', next); });
                if (pause)
                    await t.sleep(pause);
            }
            if (end && !s.destroyed)
                s.end();
        });
    });
}

const statuses = (text) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((m) => Number(m[1]));
const http1 = (lines, body = '') => [...lines, '', body].join('\r\n');

// ---- HTTP/1: a second request hidden in the first ----

const hidden = 'GET /healthz?hidden HTTP/1.1\r\nHost: localhost\r\n\r\n';
const post = (...lines) => ['POST /v1/completions HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${key}`, ...lines];

// Each must be refused with one error and a closed connection: two servers could disagree about where its body ends.
const smuggled = {
    'length and chunks': http1(post('Content-Length: 4', 'Transfer-Encoding: chunked'), `0\r\n\r\n${hidden}`),
    'chunks and length': http1(post('Transfer-Encoding: chunked', `Content-Length: ${hidden.length + 5}`), `0\r\n\r\n${hidden}`),
    'two lengths': http1(post('Content-Length: 0', `Content-Length: ${hidden.length}`), hidden),
    'a list of lengths': http1(post(`Content-Length: 0, ${hidden.length}`), hidden),
    'a sign': http1(post(`Content-Length: +0`), hidden),
    'minus': http1(post('Content-Length: -1'), hidden),
    'hexadecimal': http1(post('Content-Length: 0x0'), hidden),
    'an exponent': http1(post('Content-Length: 0e0'), hidden),
    'a length beyond all bounds': http1(post('Content-Length: 18446744073709551616'), hidden),
    'a space before the colon': http1(post('Transfer-Encoding : chunked'), `0\r\n\r\n${hidden}`),
    'a tab before the colon': http1(post('Content-Length\t: 0'), hidden),
    'unknown coding': http1(post('Transfer-Encoding: xchunked'), `0\r\n\r\n${hidden}`),
    'chunked is not the last coding': http1(post('Transfer-Encoding: chunked, identity'), `0\r\n\r\n${hidden}`),
    'chunked twice': http1(post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'), `0\r\n\r\n${hidden}`),
    'folded': http1(post('Transfer-Encoding:', ' chunked'), `0\r\n\r\n${hidden}`),
    'a vertical tab': http1(post('Transfer-Encoding: \x0bchunked'), `0\r\n\r\n${hidden}`),
    'a bare CR in a value': http1(post('X: a\rContent-Length: 0'), hidden),
    'a NUL in a value': http1(post('X: a\0b', 'Content-Length: 0'), hidden),
    'a line without a colon': http1(post('Content-Length 0'), hidden),
    'an empty name': http1(post(': x', 'Content-Length: 0'), hidden),
    'a chunk size with a sign': http1(post('Transfer-Encoding: chunked'), `+5\r\nabcde\r\n0\r\n\r\n${hidden}`),
    'a chunk size in hexadecimal style': http1(post('Transfer-Encoding: chunked'), `0x5\r\nabcde\r\n0\r\n\r\n${hidden}`),
    'a chunk size with an underscore': http1(post('Transfer-Encoding: chunked'), `1_0\r\nabcde\r\n0\r\n\r\n${hidden}`),
    'a chunk size beyond all bounds': http1(post('Transfer-Encoding: chunked'), `fffffffffffffffff\r\nabcde\r\n0\r\n\r\n${hidden}`),
    'a chunk that is longer than its size': http1(post('Transfer-Encoding: chunked'), `2\r\nabcde\r\n0\r\n\r\n${hidden}`),
    'chunks on 1.0': http1(['POST /v1/completions HTTP/1.0', 'Transfer-Encoding: chunked'], `0\r\n\r\n${hidden}`),
    'an unknown version': http1(['GET /healthz HTTP/1.9', 'Host: localhost']) + hidden,
    'a control character in the path': http1(['GET /health\x01z HTTP/1.1', 'Host: localhost']) + hidden,
    'no version': `GET /healthz\r\n\r\n${hidden}`,
    'a method with a slash': http1(['GE/T /healthz HTTP/1.1', 'Host: localhost']) + hidden,
};

async function smuggling(server) {
    for (const [what, bytes] of Object.entries(smuggled)) {
        const r = await talk(server.port, [Buffer.from(bytes, 'latin1')]);
        const got = statuses(r.text);
        t.check(r.closed && got.length <= 1 && got.every((s) => s >= 400 && s < 600), `${what}: ${got} ${r.closed ? 'closed' : 'open'} ${r.text.slice(0, 120)}`);
    }
    t.check(!server.log.includes('hidden'), 'no hidden request was served');
}

// A chunk extension, a trailer or a header without end.
async function endless(server) {
    const flood = (head, piece) => talk(server.port, [head, ...Array(64).fill(piece.repeat(Math.ceil(65536 / piece.length)))]);
    const cases = [['a header', http1(['GET / HTTP/1.1', 'Host: localhost']).slice(0, -2) + 'X: ', 'a'],
        ['headers', http1(['GET / HTTP/1.1', 'Host: localhost']).slice(0, -2), 'X-A: b\r\n'],
        ['a path', 'GET /', 'a'],
        ['a chunk extension', http1(post('Transfer-Encoding: chunked')) + '5;', 'a'],
        ['trailers', http1(post('Transfer-Encoding: chunked')) + '0\r\n', 'X-A: b\r\n'],
        ['a method', '', 'A'],
        ['empty lines', '', '\r\n']];
    for (const [what, head, piece] of cases) {
        const r = await flood(head, piece), got = statuses(r.text);
        t.check(r.closed && got.every((s) => s >= 400), `${what} without end: ${got} ${r.closed ? 'closed' : 'open'}`);
    }
}

// ---- HTTP/2, by hand ----

const frame = (type, flags, id, payload = Buffer.alloc(0)) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(id, 5);
    return Buffer.concat([head, payload]);
};
const DATA = 0, HEADERS = 1, PRIORITY = 2, RST = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW = 8, CONTINUATION = 9;
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n >>> 0); return b; };
const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(SETTINGS, 0, 0)]);
const literal = (name, value) => Buffer.concat([Buffer.from([0x00, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
const pseudo = (url = '/healthz') => Buffer.concat([Buffer.from([0x82, 0x86, 0x41, 9]), Buffer.from('localhost'), Buffer.from([0x44, url.length]), Buffer.from(url)]);
const frames = (got) => {
    const list = [];
    for (let i = 0; i + 9 <= got.length; i += 9 + got.readUIntBE(i, 3))
        list.push({ type: got[i + 3], id: got.readUInt32BE(i + 5) & 0x7fffffff });
    return list;
};
const ended = (got) => frames(got).some((f) => f.type === GOAWAY);

// The connection ends (GOAWAY or closed).
async function fatal(server, what, parts) {
    const r = await talk(server.port, [preface, ...parts], { enough: ended });
    t.check(r.closed || ended(r.got), `HTTP/2, ${what}: ${JSON.stringify(frames(r.got).slice(0, 10))}`);
}

// The stream ends; the connection answers the next one.
async function refused(server, what, parts) {
    const next = frame(HEADERS, 5, 101, pseudo());
    const r = await talk(server.port, [preface, ...parts, next], { enough: (got) => ended(got) || frames(got).some((f) => f.id === 101 && f.type === HEADERS) });
    const list = frames(r.got), served = list.some((f) => f.id === 1 && f.type === HEADERS) && /hidden/.test(server.log);
    t.check((r.closed || list.length > 1) && !served, `HTTP/2, ${what}: ${JSON.stringify(list.slice(0, 10))}`);
}

async function h2(server) {
    const start = frame(HEADERS, 1, 1, pseudo()); // END_STREAM, no END_HEADERS
    const filler = literal('x-filler', 'a'.repeat(120));
    await fatal(server, 'CONTINUATION without end', [start, ...Array(4000).fill(frame(CONTINUATION, 0, 1, filler))]);
    await fatal(server, 'empty CONTINUATION without end', [start, ...Array(20000).fill(frame(CONTINUATION, 0, 1))]);
    await fatal(server, 'another frame between HEADERS and CONTINUATION', [start, frame(PING, 0, 0, Buffer.alloc(8))]);
    await fatal(server, 'CONTINUATION of nothing', [frame(CONTINUATION, 4, 1, pseudo())]);
    await fatal(server, 'HEADERS on stream 0', [frame(HEADERS, 5, 0, pseudo())]);
    await fatal(server, 'HEADERS on an even stream', [frame(HEADERS, 5, 2, pseudo())]);
    await fatal(server, 'DATA on an idle stream', [frame(DATA, 0, 3, Buffer.alloc(8))]);
    await fatal(server, 'padding that is longer than its frame', [frame(HEADERS, 1 | 4 | 8, 1, Buffer.concat([Buffer.from([255]), pseudo()]))]);
    await fatal(server, 'a frame beyond the limit', [frame(HEADERS, 5, 1, Buffer.alloc(70000))]);
    await fatal(server, 'a wrong length of SETTINGS', [frame(SETTINGS, 0, 0, Buffer.alloc(5))]);
    await fatal(server, 'a window beyond the limit', [frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), u32(0x80000000)]))]);
    await fatal(server, 'a window of the connection that overflows', [frame(WINDOW, 0, 0, u32(0x7fffffff)), frame(WINDOW, 0, 0, u32(0x7fffffff))]);
    await fatal(server, 'an index beyond the table', [frame(HEADERS, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0x7f]))]);
    await fatal(server, 'a number without end', [frame(HEADERS, 5, 1, Buffer.alloc(40, 0xff))]);
    await fatal(server, 'a table size beyond the limit', [frame(HEADERS, 5, 1, Buffer.concat([Buffer.from([0x3f, 0xe1, 0xff, 0xff, 0x03]), pseudo()]))]);
    await fatal(server, 'PUSH_PROMISE of a client', [frame(5, 4, 1, Buffer.concat([u32(2), pseudo()]))]);
    // a bomb: one long entry of the table, then thousands of references to it
    const big = Buffer.concat([Buffer.from([0x40, 1]), Buffer.from('a'), Buffer.from([0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 98)]);
    await refused(server, 'headers that unpack to megabytes', [frame(HEADERS, 1, 1, Buffer.concat([pseudo(), big])),
        ...Array(3).fill(frame(CONTINUATION, 0, 1, Buffer.alloc(16000, 0xbe))), frame(CONTINUATION, 4, 1, Buffer.from([0xbe]))]);
    for (const [what, headers] of [['an upper-case name', literal('X-Upper', 'a')], ['a header of HTTP/1', literal('transfer-encoding', 'chunked')], ['connection', literal('connection', 'keep-alive')],
        ['a line break in a value', literal('x-a', 'b\r\nhidden: 1')], ['a NUL in a value', literal('x-a', 'b\0c')], ['an empty name', literal('', 'a')],
        ['a pseudo header at the end', Buffer.concat([literal('x-a', 'b'), literal(':path', '/hidden')])], ['an unknown pseudo header', literal(':hidden', '1')], ['a second path', literal(':path', '/hidden')]])
        await refused(server, what, [frame(HEADERS, 5, 1, Buffer.concat([pseudo('/healthz?hidden'), headers]))]);
    await refused(server, 'a stream number that goes back', [frame(HEADERS, 5, 7, pseudo()), frame(HEADERS, 5, 1, pseudo('/healthz?hidden'))]);
    await refused(server, 'no path', [frame(HEADERS, 5, 1, Buffer.from([0x82, 0x86]))]);
    await refused(server, 'a body longer than its content-length', [frame(HEADERS, 4, 1, Buffer.concat([Buffer.from([0x83, 0x86]), pseudo().subarray(2), literal('content-length', '1')])), frame(DATA, 1, 1, Buffer.alloc(50))]);
    await refused(server, 'a stream that depends on itself', [frame(HEADERS, 5 | 32, 1, Buffer.concat([u32(1), Buffer.from([16]), pseudo()]))]);
    for (const [what, one] of [['SETTINGS', frame(SETTINGS, 0, 0)], ['PING', frame(PING, 0, 0, Buffer.alloc(8))], ['PRIORITY', frame(PRIORITY, 0, 3, Buffer.concat([u32(0), Buffer.from([1])]))],
        ['unknown frames', frame(0xee, 0, 0, Buffer.alloc(8))], ['empty DATA', frame(DATA, 0, 1)]]) {
        const open = what === 'empty DATA' ? [frame(HEADERS, 4, 1, Buffer.concat([Buffer.from([0x83, 0x86]), pseudo('/v1/completions').subarray(2)]))] : [];
        const many = Buffer.concat(Array(5000).fill(one));
        await talk(server.port, [preface, ...open, ...Array(20).fill(many), frame(HEADERS, 5, 101, pseudo())],
            { enough: (got) => ended(got) || frames(got).some((f) => f.id === 101) });
        t.check(true, `a flood of ${what}`);
    }
}

// ---- WebSocket ----

const ask = `GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${key}\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
const masked = (first, payload, length = payload.length) => {
    const head = length < 126 ? Buffer.from([first, 0x80 | length]) : length < 65536 ? Buffer.from([first, 0x80 | 126, length >> 8, length & 255])
        : Buffer.concat([Buffer.from([first, 0x80 | 127]), u32(length / 2 ** 32), u32(length % 2 ** 32)]);
    return Buffer.concat([head, Buffer.alloc(4), payload]); // its mask is 0
};
const TEXT = 0x81, CLOSE = 0x88;
const closes = (got) => { const at = got.indexOf('\r\n\r\n'); return at > 0 && got.subarray(at + 4).includes(CLOSE); };

async function websocket(server) {
    const some = Buffer.from('{"id":"1","cancel":true}');
    for (const [what, ...parts] of [['a frame without a mask', Buffer.concat([Buffer.from([TEXT, some.length]), some])], ['a reserved bit', masked(0xc1, some)], ['compression that was not agreed on', masked(0xc1, some)],
        ['an unknown opcode', masked(0x83, some)], ['an unknown control frame', masked(0x8b, some)], ['a continuation of nothing', masked(0x80, some)],
        ['a text within a text', masked(0x01, some), masked(TEXT, some)], ['a long ping', masked(0x89, Buffer.alloc(126))], ['a ping in fragments', masked(0x09, some)],
        ['a close of one byte', masked(CLOSE, Buffer.alloc(1))], ['an invalid close code', masked(CLOSE, Buffer.from([0x03, 0xed]))], ['a negative length', Buffer.from([TEXT, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
        ['a length beyond the limit', masked(TEXT, Buffer.alloc(0), 2 ** 40)], ['invalid UTF-8', masked(TEXT, Buffer.from([0x22, 0xc3, 0x28, 0x22]))],
        ['invalid UTF-8 over two fragments', masked(0x01, Buffer.from([0x22, 0xe2])), masked(0x80, Buffer.from([0x28, 0xa1, 0x22]))],
        ['fragments beyond the limit', masked(0x01, Buffer.alloc(MiB, 32)), ...Array(40).fill(masked(0x00, Buffer.alloc(MiB, 32)))]]) {
        const r = await talk(server.port, [ask, ...parts], { enough: closes });
        t.check(r.text.startsWith('HTTP/1.1 101') && (r.closed || closes(r.got)), `WebSocket, ${what}: ${r.text.slice(0, 40)} ${r.closed}`);
    }
    // a message in 20,000 fragments with pings between them is one message
    const body = Buffer.from(JSON.stringify({ id: 'many', path: '/v1/models', body: { x: 'y'.repeat(20000) } })), parts = [];
    for (let i = 0; i < body.length; i++)
        parts.push(masked((i === 0 ? 1 : 0) | (i === body.length - 1 ? 0x80 : 0), body.subarray(i, i + 1)));
    parts.splice(1000, 0, masked(0x89, Buffer.from('hi')));
    const r = await talk(server.port, [ask, Buffer.concat(parts)], { enough: (got) => got.includes('"many"') });
    t.check(r.text.includes('"many"'), `a message in ${parts.length} fragments: ${r.text.slice(0, 300)}`);
    const empty = await talk(server.port, [ask, masked(0x01, some.subarray(0, 3)), ...Array(50).fill(Buffer.concat(Array(2000).fill(masked(0x00, Buffer.alloc(0))))),
        masked(0x80, some.subarray(3)), masked(CLOSE, Buffer.from([0x03, 0xe8]))], { enough: closes });
    t.check(empty.closed || closes(empty.got), '100,000 empty fragments');
}

// ---- gRPC ----

async function grpc(server) {
    const http2 = require('http2');
    const call = (headers, parts) => new Promise((done) => {
        const c = http2.connect(server.url);
        let r = null;
        const finish = (status) => { c.destroy(); done(String(status)); };
        c.on('error', (e) => finish(e.code));
        try {
            r = c.request({ ':method': 'POST', ':path': '/shoal.v1.Shoal/Generate', 'content-type': 'application/grpc', te: 'trailers', authorization: `Bearer ${key}`, ...headers });
        } catch (e) {
            return finish(e.code);
        }
        r.on('error', (e) => finish(e.code));
        r.on('response', (h) => (h['grpc-status'] ? finish(h['grpc-status']) : h[':status'] !== 200 && finish(h[':status'])));
        r.on('trailers', (h) => finish(h['grpc-status']));
        r.on('close', () => finish('closed'));
        r.resume();
        parts.forEach((p) => r.write(p));
        r.end();
    });
    const message = (bytes, flag = 0, length = bytes.length) => Buffer.concat([Buffer.from([flag]), u32(length), bytes]);
    const prompt = Buffer.from([0x1a, 2, 104, 105]);
    for (const [what, headers, parts] of [['metadata of a mebibyte', { 'x-a': 'b'.repeat(MiB) }, [message(prompt)]], ['1,000 headers', Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`x-${i}`, 'a'.repeat(50)])), [message(prompt)]],
        ['a length beyond the limit', {}, [message(Buffer.alloc(10), 0, 0xffffffff)]], ['a message that ends early', {}, [message(prompt, 0, 100)]], ['half a head', {}, [Buffer.from([0, 0])]],
        ['two messages', {}, [message(prompt), message(prompt)]], ['compressed without a coding', {}, [message(prompt, 1)]], ['an unknown coding', { 'grpc-encoding': 'frob' }, [message(prompt, 1)]], ['a wrong flag', {}, [message(prompt, 7)]],
        ['not gzip', { 'grpc-encoding': 'gzip' }, [message(Buffer.alloc(100, 7), 1)]], ['not protobuf', {}, [message(Buffer.alloc(100, 0xff))]], ['nothing', {}, []],
        ['a field that is longer than its message', {}, [message(Buffer.from([0x1a, 0xff, 0xff, 0xff, 0x7f, 1]))]], ['groups without end', {}, [message(Buffer.alloc(1000, 0x0b))]], ['no time', { 'grpc-timeout': '0n' }, [message(prompt)]],
        ['a time beyond all bounds', { 'grpc-timeout': '999999999999H' }, [message(prompt)]], ['a negative time', { 'grpc-timeout': '-5S' }, [message(prompt)]], ['another type', { 'content-type': 'application/json' }, [message(prompt)]]]) {
        const status = await call(headers, parts);
        const good = what === 'no time' ? ['4'] : what === 'compressed without a coding' ? ['13'] : null; // DEADLINE_EXCEEDED; INTERNAL, as gRPC says
        t.check(good ? good.includes(status) : !['0', '2', '13'].includes(status), `gRPC, ${what}: ${status}`);
    }
}

// ---- slow clients ----

// One byte now and then: the connection ends although it never falls silent.
async function slow(server) {
    const drip = (text) => talk(server.hasty, [...text].map((c) => Buffer.from(c, 'latin1')), { pause: 100 });
    const tls = '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + 'a'.repeat(200);
    const long = http1(['GET /healthz HTTP/1.1', 'Host: localhost', `X: ${'a'.repeat(200)}`]);
    const body = http1(post('Content-Length: 1000'), 'b'.repeat(200));
    const all = await Promise.all([['a head', long], ['a body', body], ['chunks', http1(post('Transfer-Encoding: chunked'), '1\r\na\r\n'.repeat(40))], ['a preface', `${preface.subarray(0, 12).toString('latin1')}${' '.repeat(200)}`],
        ['frames of HTTP/2', preface.toString('latin1') + frame(HEADERS, 4, 1, Buffer.concat([pseudo(), Buffer.alloc(200)])).toString('latin1')], ['TLS where none is spoken', tls]]
        .map(async ([what, text]) => [what, await drip(text)]));
    for (const [what, r] of all)
        t.check(r.closed, `slowly, ${what}: ${r.text.slice(0, 80)}`);
}

const attacks = { smuggling, endless, h2, websocket, grpc, slow };

(async () => {
    if (process.argv.includes('--list')) {
        console.log(Object.keys(attacks).join('\n'));
        return;
    }
    const sha = crypto.createHash('sha256').update(key).digest('hex');
    const config = (more) => {
        const file = path.join(t.tmp, `wire-${crypto.randomUUID()}.yaml`);
        fs.writeFileSync(file, `models: [{name: m, path: ${t.root}/tests/data/refs/qwen3.gguf, context: 256}]\nkeys: [{name: app, sha256: ${sha}}]\nthreads: 1\n${more}`);
        return file;
    };
    const server = await t.start(shoal, ['--config', config('')]);
    const hasty = await t.start(shoal, ['--config', config('limits: {request_timeout: 1s, idle_timeout: 2s}\n')]);
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))[1]) >> 10;
    server.hasty = hasty.port;
    const before = rss();
    for (const [name, attack] of Object.entries(attacks)) {
        if (only.length && !only.includes(name))
            continue;
        await attack(server);
        const r = await fetch(`${server.url}/v1/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: JSON.stringify({ model: 'm', prompt: 'hi', max_tokens: 2 }) });
        t.same(`${r.status} ${(await r.json()).usage?.completion_tokens}`, '200 2', `a normal client after ${name}`);
    }
    await t.until(async () => await t.metric(server, 'shoal_buffer_bytes') === 0, 'all memory is given back');
    t.check(rss() - before < 300, `memory: ${before} to ${rss()} MiB`);
    for (const s of [server, hasty]) {
        t.same((await s.stop()).code, 0, 'exit');
        t.check(!/Sanitizer|runtime error/.test(s.log), 'no report of a sanitizer');
    }
    t.finish();
})().catch(t.abandon);
