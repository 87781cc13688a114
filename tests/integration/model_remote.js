#!/usr/bin/env node
// `shoal model list`, `load` and `unload` against a live server, and against things that are not one.
// Usage: model_remote.js SHOAL
'use strict';
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const refs = path.join(t.root, 'tests/data/refs');

// Runs `shoal model ...`; resolves with its exit code and what it wrote.
function model(args, env = {}) {
    return new Promise((done) => execFile(shoal, ['model', ...args], { cwd: refs,
        env: { ...process.env, SHOAL_SERVER: '', SHOAL_API_KEY: '', ...env } },
    (e, out, err) => done({ code: e ? e.code : 0, out, err })));
}

async function live() {
    const bad = path.join(t.tmp, 'bad.gguf'), sock = path.join(t.tmp, 's.sock');
    fs.writeFileSync(bad, fs.readFileSync(path.join(refs, 'qwen3.gguf')).subarray(0, 5000));
    const file = path.join(t.tmp, 'config.yaml');
    fs.writeFileSync(file, `
models:
  - {name: a, path: ${refs}/qwen3.gguf}
  - {name: b, path: ${refs}/qwen2.gguf, lazy: true}
  - {name: bad, path: ${bad}, lazy: true}
keys:
  - {name: user, sha256: ${crypto.createHash('sha256').update('one').digest('hex')}}
  - {name: boss, sha256: ${crypto.createHash('sha256').update('two').digest('hex')}, admin: true}
`);
    const server = await t.start(shoal, ['--listen', `unix:${sock}`, '--config', file]);
    const env = { SHOAL_SERVER: server.url, SHOAL_API_KEY: 'two' };
    const row = async (name) => JSON.parse((await model(['list', '--json'], env)).out).models
        .find((m) => m.model === name);

    let r = await model(['list'], env);
    t.same(r.code, 0, `list: ${r.err}`);
    t.check(/^a +ready +\S+ +[\d.]+ \wiB +0 +\S+qwen3.gguf$/m.test(r.out) && /^b +unloaded .* - +0 /m.test(r.out), r.out);
    t.same((await row('b')).state, 'unloaded', 'lazy');
    r = await model(['load', 'b'], env);
    t.same(r.code, 0, `load: ${r.err}`);
    t.check(/^b is loaded \([\d.]+ .iB, \d+ ms\)\n$/.test(r.out), r.out);
    t.same((await row('b')).state, 'ready', 'it is loaded');
    r = await model(['load', 'b', '--json', '--server', `unix:${sock}`], env);
    t.same(JSON.parse(r.out).state, 'ready', 'loaded already, by a unix socket');
    r = await model(['unload', 'b'], env);
    t.same(`${r.code} ${r.out}`, '0 b is unloaded\n', `unload: ${r.err}`);
    t.same((await row('b')).state, 'unloaded', 'it is unloaded');
    // a path relative to the caller; the server runs in another folder
    r = await model(['load', 'new=phi2.gguf', '--json'], env);
    t.same(JSON.parse(r.out).path, path.join(fs.realpathSync(refs), 'phi2.gguf'), 'a new one');
    r = await model(['load', 'new=gpt2.gguf'], env);
    t.check(r.code === 1 && r.err.includes('a model named new already exists'), r.err);
    r = await model(['unload', 'new', '--remove'], env);
    t.same(`${r.code} ${r.out}`, '0 new is removed\n', `remove: ${r.err}`);
    t.same(await row('new'), undefined, 'it is gone');
    // invalid requests
    r = await model(['load', 'bad'], env);
    t.check(r.code === 1 && r.out === '' && r.err.includes("cannot load 'bad': "), r.err);
    t.same((await row('bad')).state, 'failed', 'still listed');
    r = await model(['load', 'c=/nowhere/x.gguf'], env);
    t.check(r.code === 1 && r.err.includes('/nowhere/x.gguf'), r.err);
    t.same(await row('c'), undefined, 'what was added and failed is taken out');
    for (const verb of ['load', 'unload']) {
        r = await model([verb, 'nobody'], env);
        t.same(`${r.code} ${r.err}`, `1 shoal model ${verb}: the model 'nobody' does not exist\n`, verb);
    }
    for (const key of [[], ['--key', 'one'], ['--key', 'wrong']]) {
        r = await model(['list', '--server', server.url, ...key]);
        t.check(r.code === 1 && r.err.includes('--key or SHOAL_API_KEY'), r.err);
    }
    t.same((await model(['list', '--server', `127.0.0.1:${server.port}`, '--key', 'two'])).code, 0, 'HOST:PORT');
    // unloading a model in use: running requests finish first
    const stream = await fetch(`${server.url}/v1/completions`, { method: 'POST',
        headers: { authorization: 'Bearer one' },
        body: JSON.stringify({ model: 'a', prompt: 'a', max_tokens: 1500, ignore_eos: true, stream: true }) });
    const unloaded = model(['unload', 'a'], env);
    t.check((await stream.text()).endsWith('data: [DONE]\n\n'), 'the stream is whole');
    r = await unloaded;
    t.same(`${r.code} ${r.out}`, '0 a is unloaded\n', `unload: ${r.err}`);
    t.same((await server.stop()).code, 0, 'exit');
    r = await model(['list'], env);
    t.check(r.code === 1 && r.err.includes("Start it with 'shoal serve'"), r.err);
    r = await model(['list', '--server', `unix:${sock}`]);
    t.check(r.code === 1 && r.err.includes("Start it with 'shoal serve'"), r.err);
}

// Servers that are not Shoal, and invalid addresses.
async function others() {
    const answers = {
        '': 'does not respond like an HTTP server',
        'SSH-2.0-x\r\n': 'does not respond like an HTTP server',
        'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}': 'does not respond like an HTTP server',
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}': "does not respond like 'shoal serve'",
        'HTTP/1.1 200 OK\r\n\r\n{"models":3}': "does not respond like 'shoal serve'",
        'HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n': 'refused the request: status 502',
        'HTTP/1.1 400 Bad\r\n\r\n{"error":{"message":"a\\u001b[2Jb"}}': 'list: a?[2Jb\n',
        [`HTTP/1.1 200 OK\r\n\r\n"${'x'.repeat(9 << 20)}`]: 'is larger than',
        [`HTTP/1.1 200 OK\r\nA: ${'x'.repeat(9 << 20)}`]: 'is larger than',
    };
    for (const [bytes, want] of Object.entries(answers)) {
        const server = net.createServer((s) => {
            s.on('error', () => {});
            s.once('data', () => s.end(bytes));
        }).listen(0, '127.0.0.1');
        await new Promise((done) => server.on('listening', done));
        const r = await model(['list', '--server', `http://127.0.0.1:${server.address().port}`]);
        t.check(r.code === 1 && r.out === '' && r.err.includes(want), `${bytes.slice(0, 60)}: ${r.err}`);
        server.close();
    }
    // in chunks, after 100 Continue, byte by byte
    let head;
    const server = http.createServer((req, res) => {
        head = req.headers;
        res.writeContinue();
        for (const c of '{"models":[]}')
            res.write(c);
        res.end();
    }).listen(0, '127.0.0.1');
    await new Promise((done) => server.on('listening', done));
    const url = `http://127.0.0.1:${server.address().port}`;
    let r = await model(['list', '--json', '--server', `${url}/`, '--key', 'k']);
    t.same(`${r.code} ${r.out}`, '0 {"models":[]}\n', `chunks: ${r.err}`);
    t.same(`${head.host} ${head.authorization}`, `${url.slice(7)} Bearer k`, 'host and key');
    server.close();
    const busy = http.createServer((req, res) => res.end(
        '{"models":[{"model":"x","state":"ready","users":2},{"model":"y","state":"loading"}]}')).listen(0, '127.0.0.1');
    await new Promise((done) => busy.on('listening', done));
    for (const [verb, name, want] of [['unload', 'x', "'x' is still ready, 2 requests use it"],
        ['load', 'y', "'y' is still loading; the server continues"], ['load', 'z', "'z' was removed from the server's list"]]) {
        r = await model([verb, name, '--timeout', '1', '--server', `http://127.0.0.1:${busy.address().port}`]);
        t.check(r.code === 1 && r.err.includes(want), `${verb} ${name}: ${r.err}`);
    }
    busy.close();
    const addresses = [['https://127.0.0.1:1', 'only http:// and unix:'], ['http://a:1/x', 'nothing may follow'],
        ['http://', 'write http://HOST:PORT'], ['localhost', 'has no port'], ['a b:1', 'contains blanks'],
        ['unix:', 'must follow unix:'], ['127.0.0.1:port', '127.0.0.1:port: '],
        [`http://${'h'.repeat(400)}:1`, 'write http://HOST:PORT']];
    for (const [address, want] of addresses) {
        r = await model(['list', '--server', address]);
        t.check(r.code === 1 && r.err.includes(want), `${address}: ${r.err}`);
    }
    r = await model(['list', '--server', url, '--key', 'a\r\nX: y']);
    t.check(r.code === 1 && r.err.includes('the key contains blanks'), r.err);
}

(async () => {
    await live();
    await others();
    t.finish();
})().catch(t.abandon);
