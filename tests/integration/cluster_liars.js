#!/usr/bin/env node
// Nodes that lie: one sends garbage, one breaks the protocol in every way we thought of, one claims to be a thousand
// times as fast as it is, one has a wrong clock. Each runs beside an honest node; every answer must be right, and the
// gateway's log must name the liar.
// Usage: cluster_liars.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const http2 = require('http2');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const body = { model: 'reply', prompt: 'the kitchen lights are', max_tokens: 30, ignore_eos: true, temperature: 0 };

// ---- as much of protobuf and gRPC as a liar needs ----

function varint(n) {
    const out = [];
    for (n = BigInt(n); n > 127n; n >>= 7n)
        out.push(Number(n & 127n) | 128);
    return Buffer.from([...out, Number(n)]);
}
const number = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, b) => Buffer.concat([varint(field << 3 | 2), varint(Buffer.byteLength(b)), Buffer.from(b)]);
function double(field, x) {
    const b = Buffer.alloc(8);
    b.writeDoubleLE(x);
    return Buffer.concat([varint(field << 3 | 1), b]);
}
function frame(message, length = message.length) {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(length, 1);
    return Buffer.concat([head, message]);
}

// A NodeState with one model (proto/shoal/node/v1/node.proto).
const state = (name, version, token_ns) => Buffer.concat([bytes(1, 'liar'), bytes(2, name), number(4, 1),
    bytes(6, Buffer.concat([bytes(1, 'reply'), bytes(2, version), number(3, 1), number(4, 2), number(5, 1024), double(6, token_ns),
        double(7, token_ns)]))]);
const event = (field, ...parts) => bytes(1, bytes(field, Buffer.concat(parts)));
const start = (version) => event(1, bytes(1, 'reply'), bytes(2, 'v'), bytes(4, version));

// How a liar answers Run; it must end the stream itself.
const lies = {
    noise: (s) => s.end(Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 197 + 13) & 255))),
    damaged: (s) => s.end(frame(Buffer.from('this is not a message of RunEvents'))),
    huge: (s) => s.end(frame(Buffer.from([1]), 0xfffffff0)),
    compressed: (s) => s.end(Buffer.concat([Buffer.from([1]), frame(start('x')).subarray(1)])),
    silent_end: (s) => s.end(),
    reset: (s) => s.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
    token_first: (s) => s.end(frame(event(2, number(1, 0), number(2, 5), bytes(4, 'lie')))),
    choice: (s, v) => s.end(frame(Buffer.concat([start(v), event(2, number(1, 1000000), number(2, 5), bytes(4, 'lie'))]))),
    other_version: (s) => s.end(frame(start(Buffer.alloc(32, 7)))),
    done_at_once: (s, v) => s.end(frame(Buffer.concat([start(v), event(4, number(1, 77))]))),
    flood: (s) => { // never a complete message
        const more = Buffer.alloc(1 << 16);
        const go = () => {
            while (!s.destroyed && s.write(more))
                ;
            if (!s.destroyed)
                s.once('drain', go);
        };
        s.write(frame(Buffer.alloc(0), 0x7fffffff));
        go();
    },
    never: () => {},
};

// A node that lies.  run(stream, version, request bytes): what it does with a request.
function liar(name, version, { token_ns = 1000, run, watch }) {
    const address = `unix:${path.join(t.tmp, `${name}.sock`)}`, it = { name, address, n_runs: 0 };
    const server = http2.createServer();
    server.on('error', () => {});
    server.on('session', (s) => s.on('error', () => {}));
    server.on('stream', (s, headers) => {
        s.on('error', () => {});
        s.respond({ ':status': 200, 'content-type': 'application/grpc' });
        if (headers[':path'].endsWith('/Watch')) {
            const tell = () => s.destroyed || s.write(watch ? watch() : frame(state(name, version, token_ns)));
            const timer = setInterval(tell, 100);
            s.on('close', () => clearInterval(timer));
            tell();
            return;
        }
        it.n_runs++;
        const got = [];
        s.on('data', (d) => got.push(d));
        s.on('end', () => s.destroyed || run(s, version, Buffer.concat(got)));
    });
    server.listen(address.slice(5));
    it.close = () => server.close();
    server.unref();
    return it;
}

async function ask(gateway) {
    const r = await t.within(fetch(`${gateway.url}/v1/completions`, { method: 'POST', body: JSON.stringify(body) }), 'POST /v1/completions');
    return { status: r.status, node: r.headers.get('x-shoal-node'), ...await r.json() };
}

async function beside(honest, it, name) {
    return c.gateway({ shoal, nodes: [honest, it] }, name);
}

const stop = (member) => member.end('SIGKILL');

(async () => {
    const sock = path.join(t.tmp, 'honest.sock');
    const honest = new c.Member(shoal, 'node', 'honest', ['--listen', `unix:${sock}`, '-m', `reply=${reply}`]);
    honest.address = `unix:${sock}`;
    await honest.start();
    const alone = await c.gateway({ shoal, nodes: [honest] }, 'alone');
    await c.all_ready({}, 1, alone);
    const want = (await ask(alone)).choices[0].text;
    let sum; // the model's version, once the node has computed it
    await t.until(() => (sum = String(execFileSync(shoal, ['cluster', 'models', '--json', '--server', alone.url])).match(/[0-9a-f]{64}/)),
        'the version of the model');
    const version = Buffer.from(sum[0], 'hex');
    await stop(alone);

    // wrong answers
    for (const [name, run] of Object.entries(lies)) {
        const it = liar(name, version, { run });
        const gw = await beside(honest, it, `gw-${name}`);
        await c.all_ready({}, 2, gw);
        const began = performance.now();
        await t.until(async () => {
            t.same((await ask(gw)).choices?.[0].text, want, `${name}: the text`);
            return it.n_runs > 0;
        }, `${name}: it is asked`);
        for (let i = 0; i < 50 && it.n_runs < 2; i++) // once more, unless the gateway knows it now
            t.same((await ask(gw)).choices?.[0].text, want, `${name}: the text`);
        await t.until(() => new RegExp(`node ${name}|continues on node|also sending it to node`).test(gw.log), `${name}: the log tells`);
        t.same(await t.metric(gw, 'shoal_lost_total'), 0, `${name}: nothing is lost`);
        if (name === 'noise') { // excluded after two failures
            await t.until(async () => { // on a busy machine the liar may look too slow to be asked for a while
                t.same((await ask(gw)).choices?.[0].text, want, 'noise: the text');
                return await t.metric(gw, 'shoal_breakers_opened_total') > 0;
            }, 'noise: a breaker opened');
            // the pause doubles with every attempt, from 100 ms to 12.8 s
            const ms = performance.now() - began, most = 3 + Math.log2(1 + ms / 100) + ms / 12800;
            t.check(it.n_runs <= most, `noise: asked ${it.n_runs} times in ${ms} ms`);
        }
        await stop(gw);
        it.close();
    }
    // wrong heartbeats: it is never ready
    for (const [name, watch] of Object.entries({ beats: () => Buffer.from('no heartbeat at all'), states: () => frame(Buffer.from([255, 255, 255])) })) {
        const it = liar(name, version, { watch, run: lies.noise });
        const gw = await beside(honest, it, `gw-${name}`);
        await c.all_ready({}, 1, gw);
        for (let i = 0; i < 5; i++)
            t.same((await ask(gw)).choices?.[0].text, want, `${name}: the text`);
        await t.until(() => /damaged/.test(gw.log), `${name}: the log tells`);
        t.same(it.n_runs, 0, `${name}: it is not asked`);
        await stop(gw);
        it.close();
    }
    // a lie about its load: it forwards everything to the honest node and delays the answers
    const far = http2.connect('http://localhost', { createConnection: () => require('net').connect(sock) });
    far.on('error', () => {});
    const slow = liar('boaster', version, { token_ns: 1, run: (s, v, request) => {
        const up = far.request({ ':method': 'POST', ':path': '/shoal.node.v1.Node/Run', 'content-type': 'application/grpc', te: 'trailers' });
        const wait = (fn) => setTimeout(() => s.destroyed || fn(), 3000);
        up.on('error', () => {});
        up.on('data', (d) => wait(() => s.write(d)));
        up.on('end', () => wait(() => s.end()));
        up.end(request);
    } });
    const gw = await beside(honest, slow, 'gw-boaster');
    await c.all_ready({}, 2, gw);
    for (let i = 0; i < 60 && !/times slower than it reports/.test(gw.log); i++)
        t.same((await ask(gw)).choices?.[0].text, want, 'boaster: the text');
    t.check(/node boaster is \d+ times slower than it reports/.test(gw.log), 'boaster: the log tells');
    // a node that gets no CPU time for half a second is overtaken; that does not show which node the gateway asks first
    for (let i = 0, stalled = await t.metric(gw, 'shoal_stalled_total'); i < 10; i++) {
        const { node } = await ask(gw), now = await t.metric(gw, 'shoal_stalled_total');
        t.check(node === 'honest' || now > stalled, `boaster: the honest node is asked, not ${node}`);
        stalled = now;
    }
    await stop(gw);
    slow.close();
    far.destroy();

    await clocks(honest, want);
    await c.close({});
    t.finish();
})().catch(t.abandon);

// Nodes with a wrong clock: an hour off does no harm; years off, no certificate is valid, and the node does not start.
async function clocks(honest, want) {
    if (spawnSync('faketime', ['--version']).error)
        throw new Error('faketime is missing (tools/install-deps test)');
    const ca = path.join(t.tmp, 'ca');
    execFileSync(shoal, ['ca', 'init', '--dir', ca]);
    for (const [name, role] of [['good', 'node'], ['wrong', 'node'], ['gw', 'gateway']])
        execFileSync(shoal, ['ca', 'issue', name, '--dir', ca, '--role', role, '--host', '127.0.0.1']);
    const certs = (name) => ['--certs', path.join(ca, 'members', name)];
    const node = async (name, shift) => {
        const args = ['--listen', '127.0.0.1:0', '-m', `reply=${reply}`, ...certs(name)];
        // durations are right: only the date is wrong
        const m = shift ? new c.Member('env', 'FAKETIME_DONT_FAKE_MONOTONIC=1', name, ['faketime', '-f', shift, shoal, 'node', ...args]) :
            new c.Member(shoal, 'node', name, args);
        await m.start();
        m.address = m.out.match(/other members on (?:\w+:\/\/)?(\S+)/)[1];
        return m;
    };
    const good = await node('good'), wrong = await node('wrong', '+1h');
    const gw = await c.gateway({ shoal, nodes: [good, wrong] }, 'gw', certs('gw'));
    await c.all_ready({}, 2, gw);
    for (let i = 0; i < 6; i++)
        t.same((await ask(gw)).choices?.[0].text, want, 'a clock that is wrong by an hour: the text');
    const { pid } = wrong.child; // faketime waits for the node, so the node is killed first
    for (const node_pid of fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean))
        process.kill(Number(node_pid), 'SIGKILL');
    await stop(wrong);
    for (const shift of ['+20y', '-20y']) {
        const refused = await t.fails(node('wrong', shift), `a clock that is wrong by ${shift}`);
        t.check(/certificate of wrong is refused: .*(expired|not yet valid)/.test(refused.message), `${shift}: ${refused.message}`);
        t.same((await ask(gw)).choices?.[0].text, want, `a clock that is wrong by ${shift}: the text`);
    }
    await stop(gw);
    await stop(good);
}
