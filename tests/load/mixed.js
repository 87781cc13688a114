#!/usr/bin/env node
// Mixed load: every protocol and interface at once, clients that abort, read slowly or send nonsense, models that come
// and go, reloads; then SIGTERM. Fails on an unexpected status, a server that dies, a sanitizer report (so it is mainly
// for the ASan build: `make nightly`), a leak, or memory, descriptors or threads that keep growing.
// Usage: mixed.js SHOAL [SECONDS, or MINUTESm]     SEED=n: repeats the choices (the order of answers is up to the machine)
// PAUSE=MS: each client waits up to this long between its turns, to leave a shared machine to others.
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { open } = require('./mixed_site.js');

const shoal = path.resolve(process.argv[2]), length = process.argv[3] ?? '10';
const seconds = parseFloat(length) * (length.endsWith('m') ? 60 : 1);
const seed = Number(process.env.SEED ?? Date.now() % 1000000), pause = Number(process.env.PAUSE ?? 0);
// Between quarters of the answers.  KiB: caches, arenas, the sanitizer's own tables; descriptors: connections of the moment;
// threads: of the models that are loaded at the moment.
const maxGrowth = { rss: 48 << 10, descriptors: 32, threads: 8 };
const sampleMs = 200, minSamples = 16;
const shown = 20;

// Choices by a small generator (mulberry32), one for each client.
function random(from) {
    let a = from >>> 0;
    const next = () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let x = Math.imul(a ^ (a >>> 15), a | 1);
        x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
        return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
    const below = (n) => Math.floor(next() * n);
    return { below, of: (list) => list[below(list.length)], chance: (p) => next() < p };
}

const seen = new Map(); // kind: { got: count }
let answers = 0, wrong = 0;

function see(kind, got, allowed, more) {
    const counts = seen.get(kind) ?? {};
    counts[got] = (counts[got] ?? 0) + 1;
    seen.set(kind, counts);
    answers++;
    if (allowed.includes(got))
        return;
    if (++wrong <= shown)
        console.log(`FAIL ${kind}: got ${JSON.stringify(got)}, allowed ${JSON.stringify(allowed)} ` +
            String(more ?? '').slice(0, 400));
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

// Sanitizer reports in the server's output.
const reports = (log) => log.split('\n').filter((l) =>
    /runtime error:|ERROR: \w+Sanitizer|SUMMARY: \w+Sanitizer|Assertion/.test(l));

async function client(turn, number, site, goes) {
    const r = random(seed * 1000 + number);
    while (goes())
        try {
            await turn(site, r, see);
        } catch (e) {
            if (!site.dead)
                see(`${turn.name}: error`, e.code ?? e.message, [], e.stack);
            await t.sleep(50);
        } finally {
            if (pause)
                await t.sleep(r.below(pause));
        }
}

// Entries of a folder of the process.
function count(server, folder) {
    try {
        return fs.readdirSync(`/proc/${server.child.pid}/${folder}`).length;
    } catch {
        return 0; // it is dead
    }
}

// Samples memory and reports progress, until the end.
async function watch(site, goes, memory) {
    const began = Date.now(), every = Math.max(5, Math.ceil(seconds / 40)) * 1000;
    for (let next = began + every; goes();) {
        await t.sleep(sampleMs);
        const rss = t.memory(site.server)?.rss;
        if (!rss) // it is dead
            return;
        const now = { rss, descriptors: count(site.server, 'fd'), threads: count(site.server, 'task'), answers };
        memory.push(now);
        if (Date.now() < next)
            continue;
        next += every;
        console.log(`${Math.round((Date.now() - began) / 1000)} s: ${answers} answers, ${wrong} wrong, ` +
            `${Math.round(rss / 1024)} MiB, ${now.descriptors} descriptors, ${now.threads} threads`);
    }
}

// The median of a figure in one quarter of the answers. Not of the time: what a server has loaded and cached depends
// on the requests so far, and a busy machine may give us little CPU time at first.
function quarter(memory, n, of) {
    const all = memory.at(-1).answers, part = memory.filter((m) => m.answers > all * n / 4 && m.answers <= all * (n + 1) / 4);
    const nearest = (m) => Math.abs(m.answers - all * (n + 0.5) / 4);
    const some = part.length > 0 ? part : [memory.reduce((a, b) => (nearest(a) <= nearest(b) ? a : b))];
    return median(some.map((m) => m[of]));
}

function judge(memory) {
    const half = [memory.slice(0, memory.length >> 1), memory.slice(memory.length >> 1)];
    for (const of of Object.keys(maxGrowth)) {
        console.log(`${of}: ${half.map((m) => `${median(m.map((x) => x[of]))} (at most ${m.reduce((a, x) => Math.max(a, x[of]), 0)})`)
            .join(' in the first half of the time, ')} in the second`);
        const [before, after] = [1, 3].map((n) => quarter(memory, n, of)), unit = of === 'rss' ? ' KiB' : '';
        console.log(`${of}: ${before}${unit} in the second quarter, ${after}${unit} in the last`);
        t.check(after - before < maxGrowth[of], `${of} grew by ${after - before}${unit}`);
    }
}

// Running requests finish after SIGTERM, and nothing is left.
async function end(site) {
    await t.until(async () => (await site.metrics())('shoal_in_flight') === 0, 'nothing in flight');
    await t.until(async () => (await site.metrics())('shoal_kv_pages_used') === 0, 'every page is given back');
    const body = { model: 'chat', prompt: 'a', max_tokens: 300, ignore_eos: true, stream: true };
    let begun = 0;
    const streams = Array.from({ length: 4 }, () => site.ask('/v1/completions', body, { on: (res) => new Promise((done) => {
        let text = '';
        res.once('data', () => { begun++; });
        res.on('data', (d) => { text += d; });
        res.on('close', () => done(text));
    }) }));
    await t.until(() => begun === 4, 'streams');
    site.server.child.kill('SIGTERM');
    for (const text of await Promise.all(streams))
        t.check(text.endsWith('data: [DONE]\n\n'), `finished while draining: ${text.slice(-200)}`);
}

(async () => {
    const began = Date.now();
    const site = await open(shoal), memory = [], until = Date.now() + seconds * 1000;
    // on a busy machine it continues until there is enough to judge
    const goes = () => !site.dead && (Date.now() < until || memory.length < minSamples);
    const clients = require('./mixed_clients.js');
    site.server.ended.then(() => { site.dead = true; });
    console.log(`mixed load for ${seconds} s, SEED=${seed}, ready after ${Date.now() - began} ms`);
    const turns = clients.flatMap(([turn, n]) => Array(n).fill(turn));
    const all = Promise.all([watch(site, goes, memory), ...turns.map((turn, i) => client(turn, i, site, goes))]);
    const stuck = await Promise.race([all.then(() => false), site.server.ended.then(() => false),
        t.sleep(seconds * 1000 + 150000).then(() => true)]);
    t.check(!stuck, 'every client ends');
    const lives = t.check(!site.dead, 'the server lives');
    if (lives)
        await end(site);
    const { code, signal } = await site.server.ended;
    site.close();
    t.same(`${code} ${signal}`, '0 null', 'exit');
    const found = reports(site.server.log);
    t.check(found.length === 0, `sanitizers: ${found.slice(0, 5).join('\n')}\n` +
        (found.length ? site.server.log.slice(site.server.log.indexOf(found[0]) - 200).slice(0, 8000) : ''));
    t.same(wrong, 0, 'answers that are not expected');
    if (lives && t.check(memory.length >= minSamples, `${memory.length} samples of memory`))
        judge(memory);
    for (const [kind, counts] of [...seen].sort())
        console.log(`  ${kind.padEnd(34)} ${Object.entries(counts).map(([got, n]) => `${got}: ${n}`).join(', ')}`);
    console.log(`${answers} answers, ${wrong} wrong, in ${Math.round((Date.now() - began) / 1000)} s (SEED=${seed})`);
    t.finish();
})().catch(t.abandon);
