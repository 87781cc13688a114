#!/usr/bin/env node
// Nodes fetch models that they do not have: from another node over mTLS, with a source that is killed halfway, one that
// sends wrong bytes, and one that limits its own rate; from an HTTPS server; and in a shoal with a real nats-server,
// where the controller assigns a model to a node, which then fetches it.
// Usage: cluster_fetch.js SHOAL
'use strict';
const { execFileSync, spawn, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const https = require('https');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const model = path.join(t.root, 'models', 'reply.gguf'), draft = path.join(t.root, 'models', 'reply-draft.gguf');
const sum_of = (file) => crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex');
const sum = sum_of(model), draft_sum = sum_of(draft), size = fs.statSync(model).size;
const RATE = 1 << 20; // slow enough to be interrupted in the middle, also on a busy machine
const empty = path.join(dir, 'empty');
fs.mkdirSync(empty);
process.env.SHOAL_MODELS = empty; // nodes have only what their configuration says

// A node; models: NAME: PATH; more: of its cluster section.
async function node(name, models = {}, more = '') {
    const file = path.join(dir, `${name}.yaml`);
    const list = Object.entries(models).map(([n, p]) => `{name: ${n}, path: ${p}}`).join(', ');
    fs.writeFileSync(file, `${list ? `models: [${list}]\n` : ''}cluster: {certs: ${certs(name)}, listen: ['127.0.0.1:0'], store: ${
        path.join(dir, `${name}.store`)}${more}}\n`);
    const m = await new c.Member(shoal, 'node', name, ['--config', file,
        ...(list ? [] : ['--no-models'])]).start();
    m.address = m.out.match(/listening for other members on (\S+)/)[1];
    return m;
}

const list = (store) => JSON.parse(execFileSync(shoal, ['store', 'list', '--store', store, '--json'])).models;

// `shoal store fetch`: ended resolves with its outcome.
function start_fetch(store, hash, from, ...more) {
    const child = spawn(shoal, ['store', 'fetch', hash, '--store', store, '--certs', certs('reader'),
        ...from.flatMap((f) => ['--from', f]), ...more]);
    const f = { child, err: '', out: '' };
    child.stderr.on('data', (d) => { f.err += d; });
    child.stdout.on('data', (d) => { f.out += d; });
    f.ended = new Promise((done) => child.on('close', (code) => done(code)));
    return f;
}

async function fetch_ok(why, ...args) {
    const f = start_fetch(...args);
    t.same(await f.ended, 0, `${why}: ${f.err}`);
    return f;
}

// Model bytes that a node has sent, from its log.
const sent = (m) => [...m.log.matchAll(/path=\/shoal\.node\.v1\.Node\/Fetch .*?bytes=(\d+)/g)]
    .reduce((n, x) => n + Number(x[1]), 0);

async function from_nodes() {
    const copy = path.join(dir, 'bad.gguf');
    fs.copyFileSync(model, copy);
    const slow = await node('slow', { reply: model }, `, share_rate: ${RATE}`);
    const fast = await node('fast', { other: model });
    const bad = await node('bad', { reply: copy });
    for (const n of [slow, fast, bad]) // its hash is known
        await t.until(() => /identified path=/.test(n.log), `${n.name} knows its model: ${n.log}`);

    // killed in the middle: another node continues from there, and the limit was kept until then
    const store = path.join(dir, 'killed');
    const began = process.hrtime.bigint();
    const f = start_fetch(store, sum, [slow.address, fast.address]);
    let there = 0;
    await t.until(() => {
        there = list(store)[0]?.bytes ?? 0;
        return there >= 2 << 20;
    }, 'some of it is there');
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    t.check(there <= RATE * seconds + (RATE >> 1), `${there} bytes in ${seconds} s keep the limit`);
    await slow.end('SIGKILL');
    t.same(await f.ended, 0, `a source is killed: ${f.err}`);
    t.same(sum_of(f.out.trim()), sum, 'the model');
    await t.until(() => sent(fast) > 0, `the log of the second node: ${fast.log.slice(-300)}`);
    t.check(sent(fast) < size - (1 << 20), `the second source sent ${sent(fast)} of ${size} bytes`);
    t.check(/127\.0\.0\.1:\d+: /.test(f.err), `the source that broke off is named: ${f.err}`);

    // wrong bytes: rejected, the source is named, and the next one is asked
    const fd = fs.openSync(copy, 'r+');
    fs.writeSync(fd, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]), 0, 8, size - 1000);
    fs.closeSync(fd);
    const alone = start_fetch(path.join(dir, 'alone'), sum, [bad.address]);
    t.same(await alone.ended, 1, 'wrong bytes');
    t.check(alone.err.includes(bad.address) && /SHA-256/.test(alone.err), `says which source lies: ${alone.err}`);
    t.same(list(path.join(dir, 'alone')).filter((x) => x.state !== 'incomplete').length, 0, 'models in the store');
    const both = await fetch_ok('the second source is good', path.join(dir, 'both'), sum, [bad.address, fast.address]);
    t.same(sum_of(both.out.trim()), sum, 'the model from the second source');

    // interrupted and restarted: the partial download is reused
    const again = path.join(dir, 'again'), slow2 = await node('slow2', { reply: model }, `, share_rate: ${RATE}`);
    await t.until(() => /identified path=/.test(slow2.log), 'slow2 knows its model');
    const first = start_fetch(again, sum, [slow2.address]);
    await t.until(() => (list(again)[0]?.bytes ?? 0) >= 1 << 20, 'some of it is there');
    first.child.kill('SIGKILL');
    await first.ended;
    const before = sent(fast);
    await fetch_ok('after a kill', again, sum, [fast.address]);
    await t.until(() => sent(fast) > before, 'the log of the node');
    t.check(sent(fast) - before < size - (1 << 19), `it went on: ${sent(fast) - before} of ${size} bytes`);

    // members without permission
    const gw = spawnSync(shoal, ['store', 'fetch', sum, '--store', path.join(dir, 'gw'), '--from', fast.address, '--certs',
        certs('gw')], { encoding: 'utf8' });
    t.same(gw.status, 1, 'a gateway wants a model');
    t.check(/needs one of the roles node,controller/.test(gw.stderr), gw.stderr);
    const none = spawnSync(shoal, ['store', 'fetch', sum.replace(/^../, '00'), '--store', path.join(dir, 'none'), '--from',
        fast.address, '--certs', certs('reader')], { encoding: 'utf8' });
    t.check(none.status === 1 && /does not have the model/.test(none.stderr), none.stderr);
    for (const n of [fast, bad, slow2])
        t.same((await n.end('SIGTERM')).code, 0, `${n.name} ends`);
}

// An HTTPS server with ranges; breaks: how many responses break off after a third.
const web = { breaks: 0, ranges: 0, bytes: 0 };
function start_web() {
    web.server = https.createServer({ cert: fs.readFileSync(path.join(certs('web'), 'cert.pem')),
        key: fs.readFileSync(path.join(certs('web'), 'key.pem')) }, (req, res) => {
        const body = fs.readFileSync(draft), range = /bytes=(\d+)-(\d*)/.exec(req.headers.range ?? '');
        const from = range ? Number(range[1]) : 0, to = range && range[2] ? Number(range[2]) : body.length - 1;
        web.ranges += from > 0;
        res.writeHead(range ? 206 : 200, { 'content-length': to + 1 - from,
            ...(range && { 'content-range': `bytes ${from}-${to}/${body.length}` }) });
        if (to > from && web.breaks > 0) {
            web.breaks--;
            const part = body.subarray(from, from + Math.floor(body.length / 3));
            web.bytes += part.length;
            res.write(part, () => setTimeout(() => req.socket.destroy(), 50));
        } else {
            web.bytes += to + 1 - from;
            res.end(body.subarray(from, to + 1));
        }
    });
    return new Promise((done) => web.server.listen(0, '127.0.0.1', () => {
        web.url = `https://127.0.0.1:${web.server.address().port}/reply-draft.gguf`;
        done();
    }));
}

async function from_url() {
    const ca = path.join(certs('web'), 'ca.pem');
    const unknown = start_fetch(path.join(dir, 'u0'), draft_sum, [web.url]);
    t.same(await unknown.ended, 1, 'a certificate of an unknown CA');
    t.check(/certificate/i.test(unknown.err), unknown.err);
    web.breaks = 2;
    web.bytes = 0;
    const f = await fetch_ok('from a URL that breaks off', path.join(dir, 'u1'), draft_sum, [web.url], '--ca', ca);
    t.same(sum_of(f.out.trim()), draft_sum, 'the model from the URL');
    t.check(web.ranges >= 2, `${web.ranges} requests went on where the last broke off`);
    t.check(web.bytes < 1.2 * fs.statSync(draft).size, `${web.bytes} bytes were sent`);
}

let nats = null;

async function in_a_shoal() {
    const port = await t.free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    const more = `, nats: ['${url}'], shoal: home, fetch_ca: ${path.join(certs('web'), 'ca.pem')}`;
    const nodes = [await node('node1', { story: model }, more), await node('node2', {}, more)];
    const deploy = async (...args) => { // not spawnSync: the web server is in this process
        const p = spawn(shoal, ['cluster', 'deploy', ...args, '--nats', url, '--cluster', 'home', '--certs', certs('admin'),
            '--timeout', '60'], { cwd: dir });
        let said = '';
        p.stdout.on('data', (d) => { said += d; });
        p.stderr.on('data', (d) => { said += d; });
        const code = await new Promise((done) => p.on('close', done));
        t.same(code, 0, `deploy ${args[0]}: ${said} ${nodes[1].log.slice(-2000)}`);
    };
    await deploy('story', '--sha256', sum, '--replicas', '2', '--memory', '64', '--wait', '150');
    const store = path.join(dir, 'node2.store');
    t.same(list(store).map((x) => `${x.sha256} ${x.state}`).join(), `${sum} in use`, 'node2 fetched it from node1 and holds it');
    web.breaks = 1;
    await deploy('draft', '--sha256', draft_sum, '--source', web.url, '--replicas', '2', '--memory', '64', '--wait', '150');
    t.check(list(store).some((x) => x.sha256 === draft_sum && x.state === 'in use'), 'node2 has the one from the URL');
    const gone = spawnSync(shoal, ['store', 'remove', sum, '--store', store], { encoding: 'utf8' });
    t.check(gone.status === 3 && /in use/.test(gone.stdout), `what is served stays: ${gone.stdout}`);
    for (const n of nodes)
        t.same((await n.end('SIGTERM')).code, 0, `${n.name} ends`);
}

(async () => {
    run('ca', 'init');
    for (const name of ['slow', 'slow2', 'fast', 'bad', 'reader', 'node1', 'web'])
        run('ca', 'issue', name, '--role', 'node,controller', '--host', '127.0.0.1');
    run('ca', 'issue', 'node2', '--role', 'node', '--host', '127.0.0.1'); // it finds the others, nothing more
    run('ca', 'issue', 'gw', '--role', 'gateway');
    await start_web();
    await from_nodes();
    await from_url();
    await in_a_shoal();
    web.server.close();
    await c.close();
    t.finish();
})().catch(t.abandon);
