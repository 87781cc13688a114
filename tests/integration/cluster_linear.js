#!/usr/bin/env node
// Changes of the desired state are linearizable: administrators change and read it at the same time, while NATS servers are
// killed, stopped and started again.  The checker is tests/chaos/history.js.
// Usage: cluster_linear.js SHOAL [SECONDS [SEED]]
'use strict';
const { execFile } = require('child_process');
const path = require('path');
const t = require('./serve.js');
const { violation } = require('../chaos/history.js');
const { natsServers } = require('../chaos/chaos_site.js');

const shoal = path.resolve(process.argv[2]), seconds = Number(process.argv[3] || 15);
let state = Number(process.argv[4] || Date.now() % 1000000) >>> 0;
const pick = (n) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0, Math.floor(state / 4294967296 * n));

const w = (value, start) => ({ type: 'write', value, start, end: Infinity }); // until it is acknowledged
const r = (value, start, end) => ({ type: 'read', value, start, end });

const names = ['reply', 'reader'];

(async () => {
    const ca = path.join(t.tmp, 'ca');
    const nats = await natsServers(shoal, ca, 3, async () => ({ prefix: [], address: '127.0.0.1' }));
    const urls = nats.join.filter((s) => s.startsWith('tls://')).flatMap((url) => ['--nats', url]);
    const cluster = (timeout, ...args) => new Promise((done) => {
        execFile(shoal, ['cluster', ...args, '--cluster', 'chaos', '--certs', path.join(ca, 'members', 'admin'), ...urls, '--timeout', timeout, '--json'],
            { maxBuffer: 1 << 24 }, (error, out, err) => done({ code: error ? error.code ?? -1 : 0, out, err }));
    });
    for (const name of names) { // the servers need a moment to elect a leader
        const made = await cluster('60', 'deploy', name, '--priority', '0');
        t.same(made.code, 0, `deploy ${name}: ${made.err}`);
    }
    console.log(`seed ${state}`);
    const history = Object.fromEntries(names.map((name) => [name, []])), versions = [];
    const end = performance.now() + seconds * 1000;
    let next = 0;
    const writer = async (name) => {
        while (performance.now() < end) {
            const op = w(++next, performance.now());
            history[name].push(op);
            if ((await cluster('20', 'deploy', name, '--priority', String(op.value))).code === 0)
                op.end = performance.now();
        }
    };
    const reader = async () => {
        while (performance.now() < end) {
            const start = performance.now(), got = await cluster('20', 'desired'), now = performance.now();
            if (got.code !== 0 || got.err.includes('may be old'))
                continue; // a read that failed says nothing, nor does one that no majority has confirmed
            const d = JSON.parse(got.out);
            for (const name of names)
                history[name].push(r(d.models.find((m) => m.name === name).priority, start, now));
            versions.push({ start, end: now, version: d.version });
        }
    };
    const faults = async () => {
        let n = 0;
        while (performance.now() < end) {
            await t.sleep(300 + pick(1500));
            const server = nats.list[pick(nats.list.length)];
            n++;
            if (pick(2)) {
                server.signal('SIGKILL');
                await server.ended;
                await t.sleep(pick(1500));
                server.start();
            } else {
                server.signal('SIGSTOP');
                await t.sleep(100 + pick(3000));
                server.signal('SIGCONT');
            }
        }
        return n;
    };
    const [n] = await Promise.all([faults(), ...names.flatMap((name) => [writer(name), writer(name)]), reader(), reader()]);
    for (const name of names) {
        const ops = history[name], unknown = ops.filter((o) => o.end === Infinity).length;
        console.log(`${name}: ${ops.filter((o) => o.type === 'write').length} writes (${unknown} with unknown outcome), ` +
            `${ops.filter((o) => o.type === 'read').length} reads, ${n} faults`);
        const bad = violation(ops, 0);
        t.same(bad && JSON.stringify(bad), null, `${name} is linearizable`);
        t.check(ops.some((o) => o.type === 'write' && o.end !== Infinity) && ops.some((o) => o.type === 'read'), `${name} was changed and read`);
    }
    for (const a of versions)
        t.check(versions.every((b) => b.start <= a.end || b.version >= a.version), `a later read has a version before ${a.version}`);
    for (const server of nats.list)
        server.signal('SIGKILL');
    t.finish();
})().catch(t.abandon);
