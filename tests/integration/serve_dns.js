#!/usr/bin/env node
// Names that lead inside: a real DNS server answers with addresses of this machine, of a private network, of a cloud's metadata
// service, with a public one first and a private one later (rebinding), or with both. Nothing inside gets a connection through
// pulls (hub, URL, registry; by name, redirect, realm), flows and webhooks; what is public works. Runs in a network namespace
// of its own, where a public address is a local one.   Usage: serve_dns.js SHOAL
'use strict';
const { execFile, spawnSync } = require('child_process');
const dgram = require('dgram');
const fs = require('fs');
const http = require('http');
const path = require('path');

const PUBLIC = '93.184.216.34', META = '169.254.169.254', TEN = '10.1.2.3', SIX = 'fd00::5';
if (process.argv[3] !== 'inside') {
    const r = spawnSync('unshare', ['-rmn', process.execPath, __filename, process.argv[2], 'inside'], { stdio: 'inherit' });
    if (r.error || spawnSync('unshare', ['-rmn', 'ip', 'link', 'set', 'lo', 'up']).status !== 0) {
        console.log('skipped: no network namespaces here');
        process.exit(77);
    }
    process.exit(r.status ?? 1);
}
const t = require('./serve.js');
const { start, sha256 } = require('./model_hub.js');

const shoal = path.resolve(process.argv[2]);
const run = (...args) => t.same(spawnSync(args[0], args.slice(1)).status, 0, args.join(' '));
const gguf = fs.readFileSync(path.join(t.root, 'tests/data/refs/llama-gqa.gguf'));

// Answers with the addresses of a name, in turn: one list a query, the last for all later ones.
const names = {};
function answer(query) {
    let at = 12, labels = [];
    for (; query[at] > 0; at += query[at] + 1)
        labels.push(query.toString('latin1', at + 1, at + 1 + query[at]));
    const name = labels.join('.').toLowerCase(), type = query.readUInt16BE(at + 1), question = query.subarray(12, at + 5);
    const six = type === 28, lists = names[name] ?? [], list = (lists.length > 1 && type === 1 ? lists.shift() : lists[0] ?? [])
        .filter((a) => a.includes(':') === six);
    const records = (type === 1 || six ? list : []).map((a) => Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, six ? 16 : 4]),
        six ? sixBytes(a) : Buffer.from(a.split('.').map(Number))]));
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(lists.length ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    return Buffer.concat([head, question, ...records]);
}
function sixBytes(a) {
    const [left, right = ''] = a.split('::'), parts = (s) => s.split(':').filter(Boolean).map((x) => parseInt(x, 16));
    const b = Buffer.alloc(16);
    parts(left).forEach((v, i) => b.writeUInt16BE(v, 2 * i));
    parts(right).forEach((v, i, all) => b.writeUInt16BE(v, 16 - 2 * all.length + 2 * i));
    return b;
}

async function network() {
    run('ip', 'link', 'set', 'lo', 'up');
    for (const a of [`${PUBLIC}/32`, `${META}/32`, `${TEN}/32`, `${SIX}/128`])
        run('ip', 'addr', 'add', a, 'dev', 'lo', ...a.includes(':') ? ['nodad'] : []);
    const resolv = path.join(t.tmp, 'resolv.conf');
    fs.writeFileSync(resolv, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
    run('mount', '--bind', resolv, fs.realpathSync('/etc/resolv.conf'));
    const dns = dgram.createSocket('udp4');
    dns.on('message', (m, from) => dns.send(answer(m), from.port, from.address));
    await new Promise((done) => dns.bind(53, '127.0.0.1', done));
    return dns;
}

(async () => {
    const dns = await network(), hub = await start();
    const [port, cdn] = [hub.url, hub.cdn].map((u) => Number(new URL(u).port));
    // the hub is outside; the same ports inside are a service that must never be asked
    const outside = http.createServer((req, res) => hub.handler(req, res)), cdnOutside = http.createServer((req, res) => hub.cdnHandler(req, res));
    const inner = [], listen = (s, at, host) => new Promise((done) => s.listen(at, host, done)), reached = [];
    hub.stop(); // it listened on 127.0.0.1
    await listen(outside, port, PUBLIC);
    await listen(cdnOutside, cdn, PUBLIC);
    for (const host of ['127.0.0.1', META, TEN, SIX, '::1'])
        for (const at of [port, cdn]) {
            const s = http.createServer((req, res) => res.end('{"secret": 1}'));
            s.on('connection', () => reached.push(`${host}:${at}`));
            await listen(s, at, host);
            inner.push(s);
        }
    const safe = (what) => t.same(reached.splice(0).join(), '', `${what}: nothing inside is reached`);
    names['hub.test'] = [[PUBLIC]];
    names['cdn.test'] = [[PUBLIC]];
    const inside = { 'loop.test': ['127.0.0.1'], 'meta.test': [META], 'ten.test': [TEN], 'six.test': [SIX], 'mapped.test': ['::ffff:7f00:1'], 'both.test': [META, PUBLIC] };
    for (const [name, list] of Object.entries(inside))
        names[name] = [list];
    const base = `http://hub.test:${port}`;
    hub.cdn = `http://cdn.test:${cdn}`;
    hub.url = base;
    hub.repos['org/tiny'] = { 'tiny.gguf': gguf };
    hub.registry['library/tiny:latest'] = Buffer.from(JSON.stringify({ schemaVersion: 2, layers: [{ mediaType: 'application/vnd.ollama.image.model',
        digest: `sha256:${sha256(gguf)}`, size: gguf.length }], config: { digest: `sha256:${sha256(Buffer.from('{}'))}`, size: 2 } }));
    hub.blobs[`sha256:${sha256(gguf)}`] = gguf;
    hub.blobs[`sha256:${sha256(Buffer.from('{}'))}`] = Buffer.from('{}');

    const server = async (more) => {
        const file = path.join(t.tmp, `dns${Math.random()}.yaml`);
        fs.writeFileSync(file, `models: [{name: reply, path: "${t.root}/models/reply-draft.gguf"}]\nadmin: loopback\n${more}`);
        const s = await t.start(shoal, ['--config', file], { env: { SHOAL_STORE: path.join(t.tmp, `store${Math.random()}`) } });
        s.post = async (where, body) => (await t.within(fetch(s.url + where, { method: 'POST', body: JSON.stringify(body) }), where)).text();
        s.pull = (model) => s.post('/api/pull', { model, stream: false });
        return s;
    };

    // a client names the place: store.sources allows any
    let s = await server(`store: {sources: [hub, oci, url], hub: "${base}"}\n`);
    t.check(/success/.test(await s.pull('hf.co/org/tiny')), 'a pull from the public hub');
    safe('what is public');
    for (const name of Object.keys(inside)) {
        t.check(/error/.test(await s.pull(`http://${name}:${port}/raw/x.gguf`)), `a URL of ${name}`);
        safe(`a URL of ${name}`);
        const text = await s.pull(`${name}:${port}/library/x`);
        t.check(/private network/.test(text) || name === 'both.test', `a registry at ${name}: ${text}`);
        safe(`a registry at ${name}`);
    }
    for (const host of ['127.0.0.1', '0x7f000001', '2130706433', '0177.0.0.1', '127.1', '0', `[${SIX}]`, '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', META, 'localhost']) {
        for (const model of [`http://${host}:${port}/raw/x.gguf`, `${host}:${port}/library/x`]) {
            t.check(/error/.test(await s.pull(model)), model);
            safe(model);
        }
    }
    // the hub sends us there
    for (const name of Object.keys(inside).filter((x) => x !== 'both.test')) {
        hub.location = `http://${name}:${cdn}/cdn/${sha256(gguf)}`;
        await s.post('/api/delete', { model: 'hf.co/org/tiny' });
        hub.repos['org/other'] = { 'other.gguf': Buffer.concat([gguf, Buffer.from(name)]) };
        const text = await s.pull('hf.co/org/other');
        t.check(/error/.test(text), `${name}: ${text}`);
        safe(`a redirect to ${name}`);
    }
    hub.location = null;
    // rebinding: public when first asked, inside from then on
    for (const to of ['127.0.0.1', META]) {
        names['rebind.test'] = [[PUBLIC], [to]];
        await s.pull(`rebind.test:${port}/library/x`);
        safe(`a name that turns to ${to}, of a registry`);
        hub.location = `http://rebind.test:${cdn}/cdn/${sha256(gguf)}`;
        names['rebind.test'] = [[to]];
        await s.pull('hf.co/org/other');
        safe(`a name that turns to ${to}, of a redirect`);
        hub.location = null;
    }
    await s.stop();

    // a registry of the configuration that sends us there for a token
    s = await server(`ollama: {registry: "http://hub.test:${port}/"}\n`);
    t.check(/success/.test(await s.pull('tiny')), 'a pull from the public registry');
    safe('the registry');
    for (const name of Object.keys(inside)) { // its realm
        hub.login = true;
        hub.url = `http://${name}:${port}`;
        const text = await s.pull('locked');
        t.check(/error/.test(text), `a realm at ${name}: ${text}`);
        safe(`a realm at ${name}`);
    }
    hub.login = false;
    await s.stop();

    // flows and webhooks: an allowed server sends us inside by name
    const asked = [], sender = http.createServer((req, res) => { asked.push(req.url); req.resume(); res.writeHead(307, { location: `http://loop.test:${port}/` }).end('no'); });
    await listen(sender, 8099, PUBLIC);
    names['hook.test'] = [[PUBLIC]];
    s = await server(`sensors: [{name: vib, limits: "..7"}]
alarms: {allow: ["hook.test:8099"], webhooks: [{url: "http://hook.test:8099/hook"}]}
flows_allow: {hosts: ["hook.test:8099"]}
flows:
  - name: outside
    output: '\${get.status}'
    steps: [{name: get, do: call, url: "http://hook.test:8099/t/\${input.text}", fallback: failed}]
`);
    for (const text of ['x', `.loop.test:${port}/`, `@loop.test:${port}`])
        await s.post('/v1/process', { model: 'outside', text });
    t.check(asked.length > 0, 'the flow calls its server by name');
    safe('a flow');
    await s.post('/v1/readings', { readings: [{ sensor: 'vib', value: 8 }] });
    await t.until(() => asked.includes('/hook'), 'the webhook is called by name');
    safe('a webhook');
    await s.stop();

    // the command line pulls from where its user says, but no server sends it inside
    const cli = (...args) => new Promise((done) => execFile(shoal, args, { env: { ...process.env, SHOAL_STORE: path.join(t.tmp, 'cli'), HF_ENDPOINT: base } },
        (e, out, err) => done(`${e?.code ?? 0} ${err}`)));
    hub.location = `http://meta.test:${cdn}/cdn/x`;
    t.check(/^1 .*private network/s.test(await cli('pull', 'hf.co/org/other')), 'the command line: a redirect');
    safe('the command line');
    for (const x of [outside, cdnOutside, sender, ...inner]) {
        x.closeAllConnections();
        x.close();
    }
    dns.close();
    t.finish();
})().catch(t.abandon);
