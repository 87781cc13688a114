#!/usr/bin/env node
// Streams of /v1/score over a restart: after a clean stop and after kill -9 they continue, also in a process of their
// own; rows that a killed server had not written yet count as never received. WebSocket carries readings in and scores
// out.
// Usage: serve_streams.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const WebSocket = require(t.npm('ws@8.18.0'));
const model = path.join(t.root, 'models/anomaly');
const row = (i) => [20 + Math.sin(i), 5 + Math.cos(i * 1.7)];
const rows = (from, to) => Array.from({ length: to - from }, (_, i) => row(from + i));

function config(name, more) {
    const file = path.join(t.tmp, `${name}.yaml`);
    fs.writeFileSync(file, `cache: {weights_dir: "${t.tmp}/${name}"}\n` +
        `models:\n  - {name: anomaly, path: "${model}", stream_save: 100ms${more}}\n`);
    return ['--config', file];
}

async function score(server, stream, input) {
    const r = await t.within(fetch(`${server.url}/v1/score`,
        { method: 'POST', body: JSON.stringify({ model: 'anomaly', stream, input }) }), 'POST /v1/score');
    const text = await r.text();
    t.same(r.status, 200, `/v1/score: ${text}`);
    return JSON.parse(text).data[0].scores;
}

async function whole(server, series) {
    const r = await fetch(`${server.url}/v1/score`, { method: 'POST', body: JSON.stringify({ model: 'anomaly', series }) });
    return (await r.json()).data[0].scores;
}

// The row count of each stream in a file, by name: the last record counts.
function saved(file) {
    const b = fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0), known = {};
    for (let at = 16; at + 12 <= b.length;) {
        const n = b.readUInt32LE(at), body = b.subarray(at + 12, at + 12 + n);
        if (body.length < n)
            break;
        known[body.subarray(36, 36 + body.readUInt32LE(32)).toString()] = Number(body.readBigUInt64LE(16));
        at += 12 + n;
    }
    return known;
}

// The file of the streams, wherever it is below the folder.
function find(dir) {
    const all = fs.existsSync(dir) ? fs.readdirSync(dir, { recursive: true }).map(String) : [];
    return path.join(dir, all.find((f) => /(^|\/)streams\/[0-9a-f]{16}$/.test(f)) ?? 'none');
}

const same = (got, want, what) => t.same(got.join(), want.join(), what);

// apart: its process ends with the server at once, so a stop is like a kill.
async function restarts(name, apart) {
    const more = apart ? ', isolation: process' : '';
    const args = config(name, more), dir = path.join(t.tmp, name);
    let server = await t.start(shoal, args);
    const all = await whole(server, rows(0, 200)), of = (from, to) => all.slice(from * 3, to * 3);
    // a stop loses nothing
    same(await score(server, 'pump', rows(0, 50)), of(0, 50), `${name}: begins`);
    same(await score(server, 'fan', rows(0, 7)), of(0, 7), `${name}: another`);
    if (apart)
        await t.until(() => saved(find(dir)).pump === 50 && saved(find(dir)).fan === 7, `${name}: written first`);
    t.same((await server.stop()).code, 0, `${name}: exit`);
    server = await t.start(shoal, args);
    same(await score(server, 'pump', rows(50, 60)), of(50, 60), `${name}: goes on after a stop`);
    same(await score(server, 'fan', rows(7, 60)), of(7, 60), `${name}: the other too`);
    // killed: the file is what counts
    await t.until(() => saved(find(dir)).pump === 60 && saved(find(dir)).fan === 60, `${name}: written`);
    const sent = 40;
    for (let i = 60; i < 60 + sent; i++)
        same(await score(server, 'pump', [row(i)]), of(i, i + 1), `${name}: row ${i}`);
    await server.stop('SIGKILL');
    const kept = saved(find(dir)).pump;
    t.check(kept >= 60 && kept <= 60 + sent, `${name}: ${kept} rows are kept`);
    server = await t.start(shoal, args);
    same(await score(server, 'pump', rows(kept, 120)), of(kept, 120), `${name}: goes on after a kill`);
    same(await score(server, 'fan', rows(60, 70)), of(60, 70), `${name}: the other lost nothing`);
    // a truncated write: the record before it counts
    await t.until(() => saved(find(dir)).pump === 120 && saved(find(dir)).fan === 70, `${name}: written again`);
    await server.stop('SIGKILL');
    fs.appendFileSync(find(dir), Buffer.from([200, 0, 0, 0, 1, 2, 3]));
    server = await t.start(shoal, args);
    same(await score(server, 'pump', rows(120, 130)), of(120, 130), `${name}: a damaged end`);
    await server.stop();
    return dir;
}

// The file grows with changes, not with time; a second server on the same folder does not write to it.
async function bounded() {
    const args = config('bounded', ''), dir = path.join(t.tmp, 'bounded');
    const server = await t.start(shoal, args);
    let sent = 0, largest = 0;
    await t.until(async () => {
        await score(server, 'pump', [row(sent++)]);
        largest = Math.max(largest, fs.existsSync(find(dir)) ? fs.statSync(find(dir)).size : 0);
        return saved(find(dir)).pump >= 300;
    }, 'three hundred rows');
    t.check(largest < 600000, `the file had at most ${largest} bytes`);
    const other = await t.start(shoal, args);
    t.check(/will not survive a restart: .* is locked/.test(other.log), 'the second server says why it keeps none');
    await score(other, 'mine', rows(0, 5));
    await other.stop();
    await server.stop();
    t.same(Object.keys(saved(find(dir))).join(), 'pump', 'only those of the first');
}

// Limits: the number of streams, and how long one lives without rows.
async function limits() {
    let server = await t.start(shoal, config('few', ', streams: 2'));
    const status = async (stream) => (await fetch(`${server.url}/v1/score`,
        { method: 'POST', body: JSON.stringify({ model: 'anomaly', stream, input: row(0) }) })).status;
    t.same(`${await status('a')} ${await status('b')} ${await status('a')}`, '200 200 200', 'two streams');
    t.same(await status('c'), 429, 'a third');
    await server.stop();
    server = await t.start(shoal, config('short', ', streams: 2, stream_ttl: 1s'));
    t.same(`${await status('a')} ${await status('b')}`, '200 200', 'two short ones');
    await t.until(async () => await status('c') === 200, 'a third when one has ended');
    await server.stop();
}

async function websocket() {
    const server = await t.start(shoal, config('ws', ''));
    const all = await whole(server, rows(0, 100));
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`), got = {};
    ws.on('message', (m) => {
        const x = JSON.parse(m.toString());
        got[x.id] = x;
    });
    await new Promise((done, give) => ws.on('open', done).on('error', give));
    // sixty readings without waiting for the scores: they are scored in order
    for (let i = 0; i < 60; i++)
        ws.send(JSON.stringify({ id: `${i}`, path: '/v1/score', body: { model: 'anomaly', stream: 'ws', input: row(i) } }));
    await t.until(() => Object.keys(got).length === 60, 'scores');
    for (let i = 0; i < 60; i++)
        same(got[i].body?.data?.[0].scores ?? [], all.slice(i * 3, i * 3 + 3), `WebSocket: row ${i}`);
    ws.close();
    same(await score(server, 'ws', rows(60, 62)), all.slice(180, 186), 'HTTP continues the same stream');
    await server.stop();
}

(async () => {
    await restarts('here', false);
    await restarts('apart', true);
    await bounded();
    await limits();
    await websocket();
    t.finish();
})().catch(t.abandon);
