#!/usr/bin/env node
// gRPC calls that are refused before a handler sees them, or because of their deadline: each says why, and suggests a
// retry only if that may help.
// Usage: grpc_refused.js SHOAL
'use strict';
const fs = require('fs');
const http2 = require('http2');
const net = require('net');
const path = require('path');
const { Duplex } = require('stream');
const t = require('../integration/serve.js');
const { grpc, load, decodeDetails, frame, raw } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');
const { status } = grpc;
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const method = '/shoal.v1.Shoal/Generate', body = (request) => frame(Shoal.service.Generate.requestSerialize(request));

const detailsOf = (r) => decodeDetails(Buffer.from(r.trailers['grpc-status-details-bin'] ?? '', 'base64'));
const reasonOf = (r) => detailsOf(r).ErrorInfo?.reason;

function refused(r, code, reason, retry) {
    t.same(r.headers[':status'], 200, `${reason}: no matter of HTTP`);
    t.same(r.headers['content-type'], 'application/grpc', `${reason}: type`);
    t.same(r.status, code, `${reason}: code`);
    const d = detailsOf(r);
    t.same(d.code, code, `${reason}: the code of the details`);
    t.check(d.message.length > 10 && d.message === decodeURIComponent(r.trailers['grpc-message']), `${reason}: ${d.message}`);
    t.same(d.ErrorInfo?.reason, reason, `${reason}: reason`);
    t.same(d.ErrorInfo?.domain, 'shoal', `${reason}: domain`);
    t.same((d.RetryInfo?.retryDelay?.seconds ?? 0) > 0, retry, `${reason}: when again`);
}

async function limits(session) {
    const ask = body({ model: 'long', prompt: 'a', max_tokens: 1 });
    t.same((await raw(session, method, ask)).status, 0, 'a call');
    refused(await raw(session, method, frame(Buffer.alloc(300000))), status.RESOURCE_EXHAUSTED, 'MESSAGE_TOO_LARGE', false);
    refused(await raw(session, method, ask, { a: 'x'.repeat(5000) }), status.RESOURCE_EXHAUSTED, 'HEADERS_TOO_LARGE', false);
    const many = Object.fromEntries(Array.from({ length: 110 }, (_, i) => [`a${i}`, 'b']));
    refused(await raw(session, method, ask, many), status.RESOURCE_EXHAUSTED, 'HEADERS_TOO_LARGE', false);
    // the client is told before it has sent everything, and need not send the rest
    for (const [headers, write, code, reason, retry] of [
        [{ a: 'x'.repeat(5000) }, 'x', status.RESOURCE_EXHAUSTED, 'HEADERS_TOO_LARGE', false],
        [{}, Buffer.alloc(250000), status.RESOURCE_EXHAUSTED, 'MESSAGE_TOO_LARGE', false],
        [{}, ask.subarray(0, 3), status.DEADLINE_EXCEEDED, 'REQUEST_TIMEOUT', true]]) {
        const r = session.request({ ':method': 'POST', ':path': method, 'content-type': 'application/grpc', ...headers });
        const got = { headers: {}, trailers: {} };
        r.on('response', (h) => { got.headers = h; });
        r.on('trailers', (h) => { got.trailers = h; });
        r.on('error', () => {});
        r.write(write);
        r.resume();
        await new Promise((done) => r.on('close', done));
        t.same(r.rstCode, http2.constants.NGHTTP2_NO_ERROR, `${reason}: the stream ends`);
        got.status = Number(got.trailers['grpc-status']);
        refused(got, code, reason, retry);
    }
    // bodies that exceed the limit only together, on one connection: there is room later
    const parts = Array.from({ length: 3 }, () => session.request({ ':method': 'POST', ':path': method,
        'content-type': 'application/grpc' }));
    const ends = parts.map((r) => new Promise((done) => {
        r.on('trailers', done);
        r.on('error', () => {});
        r.resume();
    }));
    const most = Buffer.alloc(190000);
    most.writeUInt32BE(most.length - 5, 1);
    parts.forEach((r) => r.write(most));
    const first = await Promise.race(ends);
    const headers = { ':status': 200, 'content-type': 'application/grpc' };
    refused({ headers, trailers: first, status: Number(first['grpc-status']) }, status.RESOURCE_EXHAUSTED, 'OVERLOADED', true);
    parts.forEach((r) => r.close(http2.constants.NGHTTP2_CANCEL));
    // a request that is not a gRPC call gets an error in JSON
    const plain = session.request({ ':method': 'GET', ':path': '/healthz', a: 'x'.repeat(5000) });
    plain.on('response', (h) => { plain.status = h[':status']; });
    let text = '';
    for await (const part of plain)
        text += part;
    t.same(`${plain.status} ${JSON.parse(text).error.code}`, '431 headers_too_large', 'not of gRPC');
}

const ones = Array.from({ length: 8 }, (_, i) => `one${i}`); // no cost has been measured yet

async function deadlines(server, session) {
    const ask = (request, timeout) => raw(session, method, body(request), { 'grpc-timeout': timeout });
    // alone: only a longer deadline helps. A call of unknown cost is tried, and then its whole cost is known
    const slow = { model: 'fresh', prompt: 'Once', max_tokens: 2000, ignore_eos: true };
    refused(await ask(slow, '5m'), status.DEADLINE_EXCEEDED, 'DEADLINE', false);
    // On a busy machine a call can be late before anything was measured, or find the one before it not yet gone: it is
    // sent again until the answer depends on the costs alone.
    const settled = async (request, timeout, reason) => {
        let r = await ask(request, timeout);
        for (let i = 0; i < 50 && reasonOf(r) !== reason; i++)
            r = await ask(request, timeout);
        return r;
    };
    refused(await settled(slow, '5m', 'DEADLINE_UNREACHABLE'), status.DEADLINE_EXCEEDED, 'DEADLINE_UNREACHABLE', false);
    let stop = new AbortController(), reading = [];
    const work = async (request) => {
        const r = await fetch(`${server.url}/v1/completions`, { method: 'POST', signal: stop.signal,
            body: JSON.stringify({ ...request, stream: true }) });
        reading.push((async () => { for await (const part of r.body) void part; })().catch(() => {}));
    };
    // Behind others whose answers turn out longer than any so far: a retry may help.  Its priority keeps all of them
    // ahead; by deadline alone the call would only wait for the one that runs.  Lower classes get a small share, so its
    // answer is long.  The deadline has to exceed what one short answer lets the server expect, and that is a matter of
    // the machine's speed: it doubles until the call is let in.
    let r;
    for (const [i, model] of ones.entries()) {
        t.same((await ask({ model, prompt: 'a', max_tokens: 1 }, '60S')).status, 0, 'a short answer');
        await work({ model, prompt: Array(64).fill('a'), max_tokens: 2000, temperature: 0 });
        r = await ask({ model, prompt: 'Once', max_tokens: 600, ignore_eos: true, priority: -100 }, `${100 << i}m`);
        if (reasonOf(r) !== 'OVERLOADED')
            break;
        stop.abort(); // one may have ended, and their length is known; the next one shall have the machine
        await Promise.all(reading);
        stop = new AbortController();
        reading = [];
    }
    refused(r, status.DEADLINE_EXCEEDED, 'DEADLINE', true);
    // behind requests whose long run time is known: refused at once
    await work({ model: 'two', prompt: Array(64).fill('a'), max_tokens: 2000, ignore_eos: true });
    const busy = await settled({ model: 'two', prompt: 'Once', max_tokens: 2 }, '40m', 'OVERLOADED');
    refused(busy, status.RESOURCE_EXHAUSTED, 'OVERLOADED', true);
    stop.abort();
    await Promise.all(reading);
}

// A connection whose client reads only on demand.
function slowSocket(port) {
    const socket = net.connect(port, '127.0.0.1'), duplex = new Duplex({
        read() {}, write(part, _, done) { socket.write(part, done); }, final(done) { socket.end(done); } });
    let held = null;
    socket.on('data', (part) => (held ? held.push(part) : duplex.push(part)));
    socket.on('end', () => duplex.push(null));
    socket.on('error', () => duplex.destroy());
    duplex.hold = () => { held = []; };
    duplex.seen = () => held.length;
    duplex.release = () => {
        const parts = held;
        held = null;
        parts.forEach((part) => duplex.push(part));
    };
    return duplex;
}

// The server drains, and a client that has not noticed keeps sending requests.
async function drains(server) {
    const socket = slowSocket(server.port), session = http2.connect(server.url, { createConnection: () => socket });
    const other = http2.connect(server.url), gone = new Promise((done) => other.on('goaway', done));
    for (const s of [session, other])
        await raw(s, method, body({ model: 'long', prompt: 'a', max_tokens: 1 }));
    const work = session.request({ ':method': 'POST', ':path': '/v1/completions' }); // keeps the connection open
    work.on('error', () => {});
    work.end(JSON.stringify({ model: 'long', prompt: Array(64).fill('a'), n: 2, max_tokens: 2000, ignore_eos: true }));
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 1, 'work');
    socket.hold();
    const ended = server.stop();
    await gone;
    const call = raw(session, method, body({ model: 'long', prompt: 'a', max_tokens: 1 }));
    const plain = session.request({ ':method': 'GET', ':path': '/healthz' });
    const answer = new Promise((done) => plain.on('response', done));
    plain.on('error', () => {});
    plain.resume();
    await t.until(() => socket.seen() > 1, 'an answer');
    await t.sleep(50);
    socket.release();
    refused(await call, status.UNAVAILABLE, 'DRAINING', true);
    const headers = await answer;
    t.same(`${headers[':status']} ${headers['retry-after']}`, '503 1', 'a request that is not of gRPC');
    work.close(http2.constants.NGHTTP2_CANCEL);
    t.same((await ended).code, 0, 'exit');
    session.destroy();
}

(async () => {
    const config = path.join(t.tmp, 'refused.yaml');
    fs.writeFileSync(config, `
models: [{name: long, path: ${long}}, {name: fresh, path: ${long.replace('qwen3', 'llama-gqa')}, drafts: never},
    ${ones.map((name) => `{name: ${name}, path: ${long.replace('qwen3', 'qwen2')}, parallel: 1, drafts: never}`).join(', ')}, {name: two, path: ${long.replace('qwen3', 'gemma3')}, parallel: 1, drafts: never}]
limits: {body: 200KiB, headers: 4KiB, request_timeout: 4s}
`);
    const server = await t.start(shoal, ['--config', config]);
    const session = http2.connect(server.url);
    await limits(session);
    await deadlines(server, session);
    session.close();
    await drains(server);
    t.finish();
})().catch(t.abandon);
