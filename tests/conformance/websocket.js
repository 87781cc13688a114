#!/usr/bin/env node
// The npm client `ws` against /v1/stream of `shoal serve`.  Usage: websocket.js SHOAL
'use strict';
const net = require('net');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const WebSocket = require(t.npm('ws@8.18.0'));
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');

function open(server) {
    return new Promise((done, give) => {
        const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
        ws.seen = [];
        ws.on('message', (m) => ws.seen.push(JSON.parse(m.toString())));
        ws.on('open', () => done(ws));
        ws.on('error', give);
    });
}

const of = (ws, id) => ws.seen.filter((m) => m.id === id);
const over = (ws, id) => t.until(() => of(ws, id).some((m) => 'status' in m || m.cancelled), `end of ${id}`);
const text = (ws, id) => of(ws, id).filter((m) => m.event).map((m) => m.event.choices[0]?.text ?? '').join('');

// Raw frames; resolves with the close code of the server.
function frames(port, bytes) {
    return new Promise((done) => {
        const s = net.connect(port, '127.0.0.1');
        let got = Buffer.alloc(0);
        s.write('GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n');
        s.write(bytes);
        s.on('data', (d) => {
            got = Buffer.concat([got, d]);
            const at = got.indexOf('\r\n\r\n');
            const rest = at < 0 ? '' : got.subarray(at + 4);
            if (rest.length >= 4 && rest[0] === 0x88) {
                s.destroy();
                done(rest.readUInt16BE(2));
            }
        });
        s.on('close', () => done(0));
    });
}

(async () => {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const ws = await open(server);
    const body = { model: 'long', prompt: 'a', max_tokens: 30, temperature: 0, ignore_eos: true };
    const send = (m) => ws.send(JSON.stringify(m));
    const http = await (await fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify(body) }))
        .json();
    const want = http.choices[0].text, path1 = '/v1/completions';
    send({ id: 'whole', path: path1, body });
    await over(ws, 'whole');
    t.same(of(ws, 'whole')[0].body.choices[0].text, want, 'a whole answer');
    for (let i = 0; i < 8; i++)
        send({ id: `s${i}`, path: path1, body: { ...body, stream: true } });
    for (let i = 0; i < 8; i++) {
        await over(ws, `s${i}`);
        t.same(text(ws, `s${i}`), want, 'streams beside each other');
        t.same(of(ws, `s${i}`).at(-1).done, true, 'done');
    }
    send({ id: 'chat', body: { model: 'long', messages: [{ role: 'user', content: 'x' }], max_tokens: 2 } });
    await over(ws, 'chat');
    t.same(of(ws, 'chat')[0].body.object, 'chat.completion', 'the default path');
    send({ id: 'bad', body: { model: 'long', frob: 1 } });
    await over(ws, 'bad');
    t.same(of(ws, 'bad')[0].status, 400, 'errors');
    t.same(of(ws, 'bad')[0].body.error.param, 'frob', 'with their field');
    // cancel
    send({ id: 'c', path: path1, body: { ...body, max_tokens: 2000, stream: true } });
    await t.until(() => of(ws, 'c').length > 3, 'tokens');
    send({ id: 'c', cancel: true });
    await over(ws, 'c');
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'cancel');
    t.same(await t.metric(server, 'shoal_cancelled_total{model="long"}'), 1, 'cancelled');
    // ping, a large message, nonsense
    const pong = new Promise((done) => ws.on('pong', (d) => done(d.toString())));
    ws.ping('hi');
    t.same(await pong, 'hi', 'ping');
    send({ id: 'big', path: '/tokenize', body: { model: 'long', text: 'word '.repeat(100000) } });
    await over(ws, 'big');
    t.check(of(ws, 'big')[0].body.count > 100000, 'large both ways');
    for (const m of ['x', '[]', '{}', '{"id":1}', '{"id":"n"}', '{"id":"n","path":"x","body":{}}'])
        ws.send(m);
    await t.until(() => ws.seen.filter((m) => m.error).length === 6, 'nonsense is answered');
    // a client that disconnects cancels its request
    send({ id: 'gone', path: path1, body: { ...body, max_tokens: 2000, stream: true } });
    await t.until(() => of(ws, 'gone').length > 3, 'tokens');
    ws.terminate();
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'gone');
    t.same(await t.metric(server, 'shoal_cancelled_total{model="long"}'), 2, 'cancelled');
    // frames that violate the protocol, and the close codes of the specification
    const f = (first, payload, masked = true) => {
        const p = Buffer.from(payload);
        return Buffer.concat([Buffer.from([first, (masked ? 128 : 0) | p.length]),
            masked ? Buffer.from([0, 0, 0, 0]) : Buffer.alloc(0), p]);
    };
    t.same(await frames(server.port, f(0x81, '{}', false)), 1002, 'no mask');
    t.same(await frames(server.port, f(0x83, '')), 1002, 'an unknown kind');
    t.same(await frames(server.port, f(0xc1, '')), 1002, 'reserved bits');
    t.same(await frames(server.port, f(0x80, 'a')), 1002, 'a part of nothing');
    t.same(await frames(server.port, Buffer.concat([f(0x01, 'a'), f(0x81, 'b')])), 1002, 'two at once');
    t.same(await frames(server.port, f(0x09, 'a')), 1002, 'half a ping');
    t.same(await frames(server.port, f(0x81, [0xff])), 1007, 'not UTF-8');
    t.same(await frames(server.port, Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])), 1009, 'too large');
    t.same(await frames(server.port, f(0x88, [3, 232])), 1000, 'close');
    t.same((await fetch(`${server.url}/v1/stream`)).status, 426, 'no upgrade');
    const last = await open(server);
    const closed = new Promise((done) => last.on('close', done));
    server.child.kill('SIGTERM');
    t.same(await closed, 1001, 'going away');
    t.same((await server.ended).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
