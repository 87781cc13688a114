#!/usr/bin/env node
// shoal push, pull, list and rm against a real registry: what works, counted by command. A proxy between them breaks lines; blobs of the
// registry are changed on its disk.
// Usage: registry.js SHOAL REGISTRY
'use strict';
const { execFile, execFileSync, spawn } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('../integration/serve.js');
const { start } = require('./registry_start.js');

const [shoal, program] = process.argv.slice(2).map((p) => path.resolve(p));
const sha = (b) => crypto.createHash('sha256').update(b).digest('hex');
const file = path.join(t.root, 'models/reply-draft.gguf'), bytes = fs.readFileSync(file), folder = path.join(t.root, 'tests/data/encoders/bert');
const MANIFESTS = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json';
const counts = {};
let stores = 0;

function count(command, ok, what) {
    const c = counts[command] ??= { good: 0, all: 0 };
    c.all++;
    c.good += ok ? 1 : 0;
    t.check(ok, `${command}: ${what}`);
}

// A store of its own, and what runs commands in it.
function store() {
    const dir = path.join(t.tmp, `store-${stores++}`);
    const env = { ...process.env, SHOAL_STORE: dir, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache'), HF_TOKEN: '', SHOAL_TOKEN: '', HF_HOME: t.tmp };
    const run = (...args) => new Promise((done) => execFile(shoal, args, { env }, (e, out, err) => done({ code: e ? e.code : 0, out, err })));
    const list = (of) => fs.existsSync(path.join(dir, of)) ? fs.readdirSync(path.join(dir, of)) : [];
    return { dir, env, run, models: () => list('models').join(), names: () => list('names').join(), incoming: () => list('incoming'),
        show: async (name) => JSON.parse((await run('show', name, '--json')).out) };
}

// Between client and registry: hold: the first blob stops after so many bytes until it is released; cut: so many answers break off.
async function between(registry) {
    const p = { seen: [], hold: 0, cut: 0, sent: 0 };
    const server = http.createServer((req, res) => {
        p.seen.push(`${req.method} ${req.url} ${req.headers.range ?? ''}`);
        const up = http.request(`${registry.url}${req.url}`, { method: req.method, headers: req.headers }, (from) => {
            const blob = req.method === 'GET' && /\/blobs\/sha256:/.test(req.url) && Number(from.headers['content-length']) > 100000;
            res.writeHead(from.statusCode, from.headers);
            if (!blob || (!p.hold && !p.cut))
                return from.pipe(res);
            const most = p.hold || Number(from.headers['content-length']) >> 1, cut = !p.hold;
            p.cut -= cut ? 1 : 0;
            let n = 0;
            from.on('data', (d) => {
                const part = d.subarray(0, Math.max(0, most - n));
                n += d.length;
                if (part.length)
                    res.write(part, () => { p.sent = Math.min(n, most); });
                if (n >= most && cut) {
                    from.destroy();
                    res.destroy();
                }
            });
            return null;
        });
        up.on('error', () => res.destroy());
        req.pipe(up);
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    p.host = `127.0.0.1:${server.address().port}`;
    p.stop = () => { server.closeAllConnections(); server.close(); };
    return p;
}

async function pushAndPull(registry) {
    const s = store(), where = registry.host;
    await s.run('pull', file, '--name', 'mine');
    await s.run('pull', folder, '--name', 'bert');
    let r = await s.run('push', 'mine', `${where}/team/reply:1`, '--json');
    const done = r.out.trim().split('\n').map((x) => JSON.parse(x)).at(-1);
    count('push', r.code === 0 && done.event === 'done', `a file: ${r.out} ${r.err}`);
    const manifest = await (await fetch(`${registry.url}/v2/team/reply/manifests/1`, { headers: { accept: MANIFESTS } })).json();
    count('push', manifest.layers[0].digest === `sha256:${sha(bytes)}` && manifest.layers[0].size === bytes.length, `the registry has it: ${JSON.stringify(manifest)}`);
    r = await s.run('push', 'bert', `${where}/team/bert:1`);
    count('push', r.code === 0, `a folder: ${r.err}`);
    const between_ = await between(registry);
    r = await s.run('push', 'mine', `${between_.host}/team/reply:2`);
    count('push', r.code === 0 && !between_.seen.some((x) => x.startsWith('PUT') && x.includes('/blobs/')), `what is there is not sent again: ${between_.seen}`);
    between_.stop();
    await s.run('cp', 'mine', `${where}/team/named:7`);
    r = await s.run('push', `${where}/team/named:7`);
    count('push', r.code === 0, `by its own name: ${r.err}`);
    r = await s.run('push', 'nobody', `${where}/team/nobody:1`);
    count('push', r.code === 1 && /nobody/.test(r.err), `what is not in the store: ${r.err}`);
    r = await s.run('push', 'mine', `${where}/Team/Reply:1`);
    count('push', r.code === 1, `a name that registries refuse: ${r.err}`);
    const tags = await (await fetch(`${registry.url}/v2/team/reply/tags/list`)).json();
    count('push', tags.tags.sort().join() === '1,2', `its tags: ${JSON.stringify(tags)}`);

    for (const [name, from] of [['team/reply:1', 'mine'], ['team/bert:1', 'bert'], ['team/named:7', 'mine']]) {
        const got = store();
        r = await got.run('pull', `${where}/${name}`, '--name', 'x');
        count('pull', r.code === 0 && (await got.show('x')).sha256 === (await s.show(from)).sha256, `${name}: ${r.err}`);
    }
    const head = await fetch(`${registry.url}/v2/team/reply/manifests/1`, { method: 'HEAD', headers: { accept: MANIFESTS } });
    const digest = head.headers.get('docker-content-digest');
    let got = store();
    r = await got.run('pull', `${where}/team/reply@${digest}`, '--name', 'x');
    count('pull', r.code === 0 && got.models() === sha(bytes), `by the digest of its manifest: ${r.err}`);
    // an index above the manifest, and one of ORAS, as other tools push them
    const put = (name, tag, type, body) => fetch(`${registry.url}/v2/${name}/manifests/${tag}`, { method: 'PUT', headers: { 'content-type': type }, body: JSON.stringify(body) });
    const index = 'application/vnd.oci.image.index.v1+json', oci = 'application/vnd.oci.image.manifest.v1+json';
    const size = Number(head.headers.get('content-length')), type = head.headers.get('content-type');
    t.same((await put('team/reply', 'index', index, { schemaVersion: 2, mediaType: index, manifests: [{ mediaType: type, digest, size }] })).status, 201, 'an index');
    got = store();
    r = await got.run('pull', `oci://${where}/team/reply:index`, '--name', 'x');
    count('pull', r.code === 0 && got.models() === sha(bytes), `an index: ${r.err}`);
    const layer = { mediaType: 'application/octet-stream', digest: `sha256:${sha(bytes)}`, size: bytes.length, annotations: { 'org.opencontainers.image.title': 'tiny.gguf' } };
    t.same((await put('team/reply', 'oras', oci, { schemaVersion: 2, mediaType: oci, artifactType: 'x/y', config: manifest.config, layers: [layer] })).status, 201, "ORAS's");
    r = await got.run('pull', `${where}/team/reply:oras`, '--name', 'y');
    count('pull', r.code === 0 && (await got.show('y')).files[0].sha256 === sha(bytes), `ORAS's: ${r.err}`);
    for (const [name, why] of [['team/reply:9', /has no model/], ['team/none:1', /has no model/], ['team/reply@sha256:' + '0'.repeat(64), /has no model/]]) {
        r = await got.run('pull', `${where}/${name}`, '--name', 'z');
        count('pull', r.code === 1 && why.test(r.err) && !got.names().includes('z'), `${name}: ${r.err}`);
    }
    const both = store();
    const two = await Promise.all(['a', 'b'].map((n) => both.run('pull', `${where}/team/reply:1`, '--name', n)));
    count('pull', two.every((x) => x.code === 0) && both.models() === sha(bytes), `two at once: ${two.map((x) => x.err)}`);
    return s;
}

async function resume(registry) {
    const p = await between(registry), what = `${p.host}/team/reply:1`;
    for (const signal of ['SIGINT', 'SIGKILL']) {
        const s = store();
        p.hold = 200000;
        p.sent = 0;
        const child = spawn(shoal, ['pull', what, '--name', 'x'], { env: s.env, stdio: 'ignore' });
        const code = new Promise((done) => child.on('exit', (c, how) => done(c ?? how)));
        const part = () => s.incoming().map((d) => path.join(s.dir, 'incoming', d, '0.part')).find((f) => fs.existsSync(f));
        await t.until(() => p.sent === p.hold && part() && fs.statSync(part()).size === p.hold, 'a part arrives');
        child.kill(signal);
        count('resume', await code === (signal === 'SIGINT' ? 130 : 'SIGKILL') && s.models() === '' && s.names() === '', `${signal}: nothing half is in the store`);
        p.hold = 0;
        p.seen.length = 0;
        const r = await s.run('pull', what, '--name', 'x');
        count('resume', r.code === 0 && s.models() === sha(bytes) && s.incoming().length === 0, `${signal}: the next pull completes it: ${r.err}`);
        if (signal === 'SIGINT')
            count('resume', p.seen.some((x) => x.includes('/blobs/') && x.endsWith('bytes=200000-')), `from where it stopped: ${p.seen.join('; ')}`);
    }
    const s = store();
    p.cut = 2;
    p.seen.length = 0;
    const r = await s.run('pull', what, '--name', 'x');
    count('resume', r.code === 0 && s.models() === sha(bytes) && p.seen.filter((x) => /bytes=[1-9]\d*-/.test(x)).length === 2, `a line that breaks twice: ${r.err} ${p.seen.join('; ')}`);
    p.stop();
}

async function digests(registry) {
    const blob = (hex) => path.join(registry.dir, 'docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data');
    const broken = async (hex, change, why, what) => {
        const good = fs.readFileSync(blob(hex)), s = store();
        fs.writeFileSync(blob(hex), change(good));
        const r = await s.run('pull', `${registry.host}/team/reply:1`, '--name', 'x');
        count('digest', r.code === 1 && why.test(r.err) && s.models() === '' && s.names() === '', `${what}: ${r.code} ${r.err}`);
        fs.writeFileSync(blob(hex), good);
        const again = await s.run('pull', `${registry.host}/team/reply:1`, '--name', 'x');
        count('digest', again.code === 0 && s.models() === sha(bytes), `${what}: mended: ${again.err}`);
    };
    await broken(sha(bytes), (b) => { const c = Buffer.from(b); c[c.length >> 1] ^= 1; return c; }, /SHA-256/, 'one changed bit');
    await broken(sha(bytes), (b) => b.subarray(0, b.length - 1000), /./, 'too short');
    await broken(sha(bytes), (b) => Buffer.concat([b, Buffer.from('more')]), /./, 'too long');
    const head = await fetch(`${registry.url}/v2/team/reply/manifests/1`, { method: 'HEAD', headers: { accept: MANIFESTS } });
    const digest = head.headers.get('docker-content-digest').slice(7), s = store(), good = fs.readFileSync(blob(digest));
    fs.writeFileSync(blob(digest), good.toString().replace(sha(bytes), sha('x')));
    const r = await s.run('pull', `${registry.host}/team/reply@sha256:${digest}`, '--name', 'x');
    count('digest', r.code === 1 && s.models() === '', `a changed manifest: ${r.err}`);
    fs.writeFileSync(blob(digest), good);
}

async function listAndRemove(registry, s) {
    const got = store(), name = `${registry.host}/team/reply:1`;
    await got.run('pull', name);
    const list = async () => JSON.parse((await got.run('list', '--json')).out).models.filter((m) => m.source !== 'included').map((m) => `${m.name} ${m.bytes}`).join();
    count('list', await list() === `${name} ${bytes.length}`, `what was pulled: ${await list()}`);
    count('list', (await got.run('list')).out.includes(name), 'as a table');
    await got.run('cp', name, 'short');
    count('list', await list() === `${name} ${bytes.length},short ${bytes.length}`, `two names: ${await list()}`);
    let r = await got.run('rm', name);
    count('rm', r.code === 0 && got.models() === sha(bytes), `one of two names: ${r.err}`);
    r = await got.run('rm', 'short');
    count('rm', r.code === 0 && got.models() === '' && await list() === '', `the last one: ${r.err}`);
    r = await got.run('rm', name);
    count('rm', r.code === 1 && /no model/.test(r.err), `again: ${r.err}`);
    r = await got.run('pull', name);
    count('rm', r.code === 0 && got.models() === sha(bytes), `the registry still has it: ${r.err}`);
    // gone from the registry: what was pulled stays
    const head = await fetch(`${registry.url}/v2/team/named/manifests/7`, { method: 'HEAD', headers: { accept: MANIFESTS } });
    t.same((await fetch(`${registry.url}/v2/team/named/manifests/${head.headers.get('docker-content-digest')}`, { method: 'DELETE' })).status, 202, 'deleted there');
    r = await got.run('pull', `${registry.host}/team/named:7`);
    count('rm', r.code === 1 && /has no model/.test(r.err), `deleted there: ${r.err}`);
    count('rm', (await s.show('mine')).sha256 === sha(bytes), 'deleted there, kept here');
}

// HTTPS with a CA of its own, and a user with a password.
async function login() {
    const pem = (n) => path.join(t.tmp, n);
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', pem('key.pem'), '-out', pem('cert.pem'),
        '-days', '2', '-subj', '/CN=registry', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
    fs.writeFileSync(pem('htpasswd'), `ada:${execFileSync('perl', ['-e', 'print crypt("s3cret", q($2b$05$abcdefghijklmnopqrstuu))'])}\n`);
    const registry = await start(program, { name: 'safe', http: `, tls: {certificate: ${pem('cert.pem')}, key: ${pem('key.pem')}}`, more: `auth: {htpasswd: {realm: x, path: ${pem('htpasswd')}}}\n` });
    const s = store(), ca = ['--ca', pem('cert.pem')];
    const at = (who) => { s.env.OLLAMA_REGISTRY = `https://${who}${registry.host}`; return 'ollama://team/reply:1'; }; // oci:// means HTTP on this machine
    await s.run('pull', file, '--name', 'mine');
    let r = await s.run('push', 'mine', at('ada:s3cret@'), ...ca);
    count('login', r.code === 0, `push with a password: ${r.err}`);
    r = await s.run('pull', at('ada:s3cret@'), '--name', 'x', ...ca);
    count('login', r.code === 0 && (await s.show('x')).sha256 === sha(bytes), `pull with a password: ${r.err}`);
    r = await s.run('pull', at(''), '--name', 'y', ...ca);
    count('login', r.code === 1 && /user:password@/.test(r.err), `without: ${r.err}`);
    r = await s.run('pull', at('ada:wrong@'), '--name', 'y', ...ca);
    count('login', r.code === 1 && /user:password@/.test(r.err) && !r.err.includes('wrong'), `a wrong one: ${r.err}`);
    r = await s.run('pull', at('ada:s3cret@'), '--name', 'y');
    count('login', r.code === 1 && /certificate/.test(r.err) && !r.err.includes('s3cret'), `an unknown CA: ${r.err}`);
    registry.child.kill('SIGTERM');
}

(async () => {
    const registry = await start(program), s = await pushAndPull(registry);
    await resume(registry);
    await digests(registry);
    await listAndRemove(registry, s);
    await login();
    registry.child.kill('SIGTERM');
    await t.until(() => registry.child.exitCode !== null || registry.child.signalCode !== null, 'the registry ends');
    const r = await store().run('pull', `${registry.host}/team/reply:1`);
    count('pull', r.code === 1 && /cannot|connect/.test(r.err), `no registry: ${r.err}`);
    for (const [command, c] of Object.entries(counts))
        console.log(`${command.padEnd(8)} ${c.good} of ${c.all}`);
    const all = Object.values(counts);
    console.log(`registry: ${all.reduce((n, c) => n + c.good, 0)} of ${all.reduce((n, c) => n + c.all, 0)}`);
    t.finish();
})().catch(t.abandon);
