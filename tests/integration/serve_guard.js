#!/usr/bin/env node
// Who may use and administer `shoal serve`: Origin, Host, keys, sockets.  Usage: serve_guard.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(process.argv[2]);
const refs = path.join(t.root, 'tests/data/refs');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
let n_configs = 0;

function config(text) {
    const file = path.join(t.tmp, `guard-${n_configs++}.yaml`);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

// Sends bytes; resolves with what came until the server closes or a blank line arrives.
function raw(port, bytes) {
    return new Promise((done, give) => {
        const s = net.connect(port, '127.0.0.1', () => s.write(bytes));
        let got = '';
        s.on('data', (d) => {
            got += d.toString('latin1');
            if (got.includes('\r\n\r\n'))
                s.destroy();
        });
        s.on('close', () => done(got));
        s.on('error', give);
    });
}

const status = (answer) => Number(answer.split(' ')[1]);

const handshake = (server, headers) => raw(server.port, 'GET /v1/stream HTTP/1.1\r\nConnection: Upgrade\r\n' +
    `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`);

// The first message that a server sends to a WebSocket client that sends one message.
function message(server, body) {
    return new Promise((done, give) => {
        const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
        ws.onopen = () => ws.send(JSON.stringify(body));
        ws.onmessage = (e) => {
            ws.close();
            done(JSON.parse(e.data));
        };
        ws.onerror = give;
    });
}

async function origins() {
    const server = await t.start(shoal, config('cors: ["https://app.example"]\n'));
    const own = `Host: localhost:${server.port}\r\n`;
    for (const [origin, want] of [[undefined, 101], [`http://localhost:${server.port}`, 101],
        ['https://app.example', 101], ['https://evil.example', 403], ['null', 403],
        [`http://localhost:${server.port + 1}`, 403], ['http://localhost', 403],
        [`http://localhost:${server.port}.evil.example`, 403], [`file://localhost:${server.port}`, 403]])
        t.same(status(await handshake(server, own + (origin ? `Origin: ${origin}\r\n` : ''))), want, `Origin ${origin}`);
    // a page can post anything, as a form does: on a server without keys nothing happens
    const send = async (origin, method, where) => (await fetch(server.url + where, { method, headers: { 'content-type': 'text/plain', ...origin && { origin } },
        body: method === 'POST' ? '{}' : undefined })).status;
    for (const [origin, want] of [[undefined, 400], [server.url, 400], ['https://app.example', 400], ['https://evil.example', 403], ['null', 403]])
        t.same(await send(origin, 'POST', '/v1/completions'), want, `POST by ${origin}`);
    t.same(await send('https://evil.example', 'DELETE', '/v1/sessions/x'), 403, 'DELETE');
    t.same(await send('https://evil.example', 'GET', '/v1/models'), 200, 'GET, whose answer the page cannot read');
    await server.stop();
    const keyed = await t.start(shoal, config(`keys: [{name: a, sha256: ${sha('a')}}]\n`));
    const r = await fetch(`${keyed.url}/v1/completions`, { method: 'POST', body: '{}', headers: { origin: 'https://evil.example', authorization: 'Bearer a' } });
    t.same(r.status, 400, 'a key is enough: pages do not have it');
    await keyed.stop();
}

async function keyless() {
    const server = await t.start(shoal, config(`models: [{name: m, path: ${refs}/qwen3.gguf}]\n`), { admin: true });
    const body = { model: 'm', action: 'unload' };
    let r = await fetch(`${server.url}/admin/models`, { method: 'POST', body: JSON.stringify(body) });
    t.same(r.status, 403, 'no key, over TCP');
    t.check((await r.text()).includes("configure an admin key, use the unix socket, or set 'admin: loopback'"), 'says what to do');
    r = await message(server, { id: '1', path: '/admin/models', body });
    t.same(r.status, 403, 'no key, over a WebSocket');
    r = await (await fetch(`${server.url}/admin/models`)).json();
    t.same(r.models[0].state, 'ready', 'the list may be read, and nothing was unloaded');
    t.same(r.may_change, false, 'a reader learns that it cannot change anything');
    t.same((await t.admin(server, body, { origin: 'https://evil.example' })).status, 403, 'a page by way of a proxy');
    r = await t.admin(server, body);
    t.same(`${r.status} ${r.may_change}`, '200 true', 'the unix socket may');
    await server.stop();
}

async function keyed() {
    const server = await t.start(shoal, config(`
models: [{name: m, path: ${refs}/qwen3.gguf}]
keys: [{name: app, sha256: ${sha('one')}}, {name: boss, sha256: ${sha('two')}, admin: true}]
`), { admin: true });
    const ask = async (key) => (await fetch(`${server.url}/admin/models`, { method: 'POST',
        headers: { authorization: `Bearer ${key}` }, body: '{"model":"m","action":"load"}' })).status;
    t.same(await ask('one'), 403, 'a key without the right');
    t.same(await ask('two'), 200, 'a key with the right');
    t.same((await t.admin(server, { model: 'm', action: 'load' })).status, 401, 'with keys the unix socket needs one too');
    await server.stop();
}

// The status of GET /healthz over HTTP/2 with this :authority, and perhaps a host header.
function h2(server, authority, host) {
    return new Promise((done, give) => {
        const c = http2.connect(server.url);
        c.on('error', give);
        const r = c.request({ ':path': '/healthz', ':authority': authority, ...(host && { host }) });
        r.on('response', (h) => {
            done(h[':status']);
            c.destroy();
        });
        r.on('error', give);
    });
}

function over(sock, host) {
    return new Promise((done, give) => http.get({ socketPath: sock, path: '/healthz', headers: { host } },
        (r) => done(r.resume().statusCode)).on('error', give));
}

async function hosts() {
    const get = async (server, ...names) => status(await raw(server.port,
        `GET /healthz HTTP/1.1\r\n${names.map((n) => `Host: ${n}\r\n`).join('')}\r\n`));
    let server = await t.start(shoal, config('hosts: [shoal.home, "b.home:81"]\n'), { admin: true });
    for (const [name, want] of [['localhost', 200], ['LocalHost:8080', 200], ['127.0.0.1', 200], ['127.9.8.7:1', 200],
        ['[::1]:8080', 200], ['shoal.home', 200], ['SHOAL.home:8080', 200], ['b.home:81', 200], ['b.home', 421],
        ['evil.example', 421], ['evil.example:8080', 421], ['127.0.0.1.evil.example', 421], ['localhost.evil.example', 421],
        ['127.evil.example', 421], ['localhost:80@evil', 421], ['[::1', 421], ['', 421], ['192.168.1.1', 421]])
        t.same(await get(server, name), want, `Host: ${name}`);
    t.same(await get(server, 'localhost', 'localhost'), 400, 'two Host headers');
    t.same(await get(server, 'localhost', 'evil.example'), 400, 'two different Host headers');
    const absolute = async (target, version = '1.1', host = 'Host: localhost\r\n') => status(await raw(server.port, `GET ${target} HTTP/${version}\r\n${host}\r\n`));
    for (const [target, want] of [['http://localhost/healthz', 200], ['https://shoal.home:8080/healthz', 200], ['http://evil.example/healthz', 421],
        ['HTTP://evil.example/healthz', 421], ['http://localhost@evil.example/healthz', 421], ['http:///healthz', 421], ['http://evil.example', 421]])
        t.same(await absolute(target), want, `the target ${target}, whatever Host says`);
    t.same(await absolute('http://localhost/healthz', '1.1', 'Host: evil.example\r\n'), 200, 'Host does not count beside it');
    t.same(await absolute('http://evil.example/healthz', '1.0', ''), 421, 'nor is it needed');
    t.same(await h2(server, `127.0.0.1:${server.port}`), 200, ':authority');
    t.same(await h2(server, 'evil.example'), 421, 'another :authority');
    t.same(await h2(server, 'localhost', 'evil.example'), 400, 'a host header beside another :authority');
    t.check((await raw(server.port, 'GET / HTTP/1.0\r\n\r\n')).startsWith('HTTP/1.1 200'), 'HTTP/1.0 without Host');
    t.same(await over(server.sock, 'anything'), 200, 'a unix socket serves any Host');
    await server.stop();
    server = await t.start(shoal, config('hosts: ["*"]\n'));
    t.same(await get(server, 'evil.example'), 200, 'any Host, as configured');
    await server.stop();
    server = await t.start(shoal, [], { listen: '0.0.0.0:0' });
    t.same(await get(server, 'shoal.example'), 200, 'a listener for the network serves any Host');
    await server.stop();
    server = await t.start(shoal, config('hosts: [shoal.example]\n'), { listen: '0.0.0.0:0' });
    t.same(await get(server, 'shoal.example'), 200, 'a configured name');
    t.same(await get(server, 'evil.example'), 421, 'not a configured name');
    await server.stop();
}

// Models can be added only from configured folders.
async function folders() {
    const inside = path.join(t.tmp, 'inside'), outside = path.join(t.tmp, 'inside-not');
    for (const dir of [inside, outside]) {
        fs.mkdirSync(dir);
        fs.copyFileSync(`${refs}/qwen3.gguf`, path.join(dir, 'm.gguf'));
    }
    fs.copyFileSync(`${refs}/qwen3.gguf`, path.join(inside, 'n.gguf'));
    fs.symlinkSync(path.join(outside, 'm.gguf'), path.join(inside, 'link.gguf'));
    fs.symlinkSync('/nowhere/x', path.join(inside, 'dangling.gguf'));
    let n = 0;
    const add = (server, file) => t.admin(server, { model: `new-${n++}`, action: 'add', path: file });
    for (const text of [`models: [{name: m, path: ${inside}/m.gguf}]`, `model_dirs: ["${inside}/"]\nmodels: [{name: m, path: ${refs}/qwen3.gguf}]`]) {
        const server = await t.start(shoal, config(`${text}\n`), { admin: true });
        for (const [file, want] of [[`${inside}/n.gguf`, 200], [`${inside}/../inside/n.gguf`, 200], [`${inside}/not-yet.gguf`, 200],
            [`${outside}/m.gguf`, 403], [`${inside}/../inside-not/m.gguf`, 403], [`${inside}/link.gguf`, 403],
            [`${inside}/dangling.gguf`, 403], [`${inside}/..`, 403], [inside, 403], ['/etc/passwd', 403], ['/', 403], ['x', 403],
            ['', 403], ['/nowhere/x', 403]])
            t.same((await add(server, file)).status, want, `${text.split(':')[0]}: add ${file}`);
        t.check((await add(server, '/etc/passwd')).error?.message.includes("'model_dirs'"), 'says what to do');
        await server.stop();
    }
}

async function paths() {
    const server = await t.start(shoal, config('threads: 2\n'));
    for (const [method, url, want, allow] of [['POST', '/nowhere', 404, null], ['POST', '/v1/nowhere', 404, null],
        ['DELETE', '/nowhere', 404, null], ['GET', '/nowhere', 404, null], ['PUT', '/', 405, 'GET, HEAD, POST'],
        ['PUT', '/admin/models', 405, 'GET, HEAD, POST'], ['POST', '/v1/models', 405, 'GET, HEAD'],
        ['GET', '/v1/chat/completions', 405, 'POST'], ['DELETE', '/index.html', 405, 'GET, HEAD']]) {
        const r = await fetch(server.url + url, { method });
        t.same(`${r.status} ${r.headers.get('allow')}`, `${want} ${allow}`, `${method} ${url}`);
        await r.text();
    }
    const c = http2.connect(server.url);
    const r = c.request({ ':path': '/no.such.Service/Call', ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' });
    const [headers, trailers] = await new Promise((done, give) => {
        let first;
        r.on('response', (h) => { first = h; });
        r.on('trailers', (h) => done([first, h]));
        r.on('end', () => setImmediate(() => done([first, {}])));
        r.on('error', give);
        r.resume();
        r.end();
    });
    t.same(`${headers[':status']} ${trailers['grpc-status'] ?? headers['grpc-status']}`, '200 12', 'an unknown gRPC service');
    c.destroy();
    // two loops share a port, two servers do not
    const second = spawnSync(shoal, ['serve', '--threads', '2', '--listen', `127.0.0.1:${server.port}`], { timeout: 120000 });
    t.same(second.status, 1, 'a second server on the same port');
    t.check(/in use/.test(second.stderr), `says why: ${second.stderr}`);
    await server.stop();
}

(async () => {
    await origins();
    await keyless();
    await keyed();
    await hosts();
    await folders();
    await paths();
    t.finish();
})().catch(t.abandon);
