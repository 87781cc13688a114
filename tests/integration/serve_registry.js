#!/usr/bin/env node
// /api/pull and /api/push with an OCI registry of our own that behaves as told. Interrupted downloads resume, wrong
// bytes are refused, nothing is larger than announced, and redirects do not lead into private networks.
// Usage: serve_registry.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const bytes = fs.readFileSync(path.join(t.root, 'tests/data/refs/llama-gqa.gguf'));
const sha = (b) => crypto.createHash('sha256').update(b).digest('hex');
const digest = `sha256:${sha(bytes)}`, system = Buffer.from('You are brief.');
const layer = (kind, b) => ({ mediaType: `application/vnd.ollama.image.${kind}`, digest: `sha256:${sha(b)}`, size: b.length });
const manifest = (layers) => JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: layer('x', Buffer.from('{}')), layers });
const good = manifest([layer('model', bytes), layer('system', system), layer('template', Buffer.from('{{ .Prompt }}'))]);

// The requests received, and how to answer for each model.
const seen = [], open = new Set();
const models = {
    good: good, cut: good, wrong: good, endless: good, away: good, near: good, slow: good, slow2: good, slow3: good, range: good,
    huge: manifest([{ ...layer('model', bytes), size: 2 ** 40 }]), adapter: manifest([layer('model', bytes), layer('adapter', bytes)]),
    nothing: manifest([layer('system', system)]), nonsense: 'hello', escape: manifest([{ ...layer('model', bytes), digest: 'sha256:../../../etc/passwd' }]),
};
const cut = Math.floor(bytes.length / 2);
let elsewhere, cutting = false;

async function endless(res, first) {
    res.on('error', () => {});
    res.setMaxListeners(0);
    for (let piece = first; !res.destroyed; piece = Buffer.alloc(65536, 'x'))
        if (!res.write(piece))
            await new Promise((done) => { res.once('drain', done); res.once('close', done); });
}

function blob(name, req, res) {
    const range = /bytes=(\d+)-/.exec(req.headers.range ?? '');
    const from = range ? Number(range[1]) : 0;
    const all = () => {
        res.writeHead(range ? 206 : 200, { 'content-length': bytes.length - from,
            ...range && { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } });
        res.end(bytes.subarray(from));
    };
    if (name === 'wrong')
        return res.end(Buffer.alloc(bytes.length, 'x'));
    if (name === 'endless')
        return endless(res, bytes);
    if (name === 'away') {
        res.writeHead(307, { location: `${elsewhere}/secret` });
        return res.end();
    }
    if (name === 'near' && !req.url.includes('?')) {
        res.writeHead(307, { location: `${req.url}?again` });
        return res.end();
    }
    if (name === 'cut' && (cutting || !range)) { // cutting: after a while nothing comes any more
        res.writeHead(range ? 206 : 200, { 'content-length': bytes.length - from,
            ...range && { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } });
        if (from < cut)
            return res.write(bytes.subarray(from, cut), () => res.destroy()); // once it is on its way
        return res.flushHeaders(), setImmediate(() => res.destroy());
    }
    if (name === 'range' && range) {
        res.writeHead(206, { 'content-range': `bytes 7-${bytes.length - 1}/${bytes.length}` });
        return res.end(bytes.subarray(7));
    }
    if (name.startsWith('slow')) {
        open.add(res);
        res.on('close', () => open.delete(res));
        res.writeHead(200, { 'content-length': bytes.length });
        return res.write(bytes.subarray(0, 1000)); // and nothing more
    }
    return all();
}

const registry = http.createServer((req, res) => {
    seen.push(`${req.method} ${req.url} ${req.headers.range ?? ''}`);
    const [, name, kind, id] = /^\/v2\/library\/([a-z0-9]+)\/(manifests|blobs)\/([^?]+)/.exec(req.url) ?? [];
    if (kind === 'manifests' && name === 'flood')
        return endless(res, Buffer.from('{'));
    if (kind === 'manifests' && models[name])
        return res.end(models[name]);
    if (kind === 'blobs' && id === digest)
        return blob(name, req, res);
    if (kind === 'blobs' && id === `sha256:${sha(system)}`)
        return res.end(system);
    res.writeHead(name === 'locked' ? 401 : 404);
    return res.end('{}');
});

const listen = (s) => new Promise((done) => s.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${s.address().port}`)));

(async () => {
    let reached = 0;
    const other = http.createServer((req, res) => { res.end(bytes); });
    other.on('connection', () => { reached++; });
    elsewhere = await listen(other);
    const url = await listen(registry), dir = path.join(t.tmp, 'made'), config = path.join(t.tmp, 'registry.yaml');
    fs.writeFileSync(config, `ollama: {dir: ${dir}, registry: "${url}/", max_model: 1GiB}\nkeys: [{name: a, sha256: ${sha('key')}, admin: true}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const post = (where, body, more = {}) => fetch(server.url + where, { method: 'POST', body: JSON.stringify(body), headers: { authorization: 'Bearer key' }, ...more });
    // The lines of a stream, or the error.
    const pull = async (model) => {
        const r = await post('/api/pull', { model });
        const lines = (await r.text()).trim().split('\n').map((x) => JSON.parse(x));
        return { status: r.status, lines, last: lines.at(-1), error: lines.at(-1).error ?? '' };
    };
    const list = (folder) => fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    const stored = `${dir}/models/${sha(bytes)}/files/model.gguf`, part = `${dir}/incoming/${sha(bytes)}/0.part`;

    // hostile models
    for (const [name, why] of [['wrong', 'has the SHA-256'], ['endless', 'more bytes'], ['away', 'private network'],
        ['huge', 'at most'], ['flood', 'more than is allowed'], ['nonsense', 'not the manifest'], ['nothing', 'no model'],
        ['adapter', 'not supported'], ['escape', 'digest'], ['missing', "has no model 'missing'"], ['locked', 'user:password']]) {
        const r = await pull(name);
        t.check(r.error.includes(why), `${name}: ${JSON.stringify(r.last)}`);
        t.check(r.status >= 400 || r.lines.length > 1, `${name}: status ${r.status}`);
        t.same(list(`${dir}/models`).length, 0, `${name}: nothing is in the store`);
        t.same(list(`${dir}/names`).length, 0, `${name}: nothing has a name`);
        t.check(!fs.existsSync(part) || fs.statSync(part).size <= bytes.length, `${name}: not larger than announced`);
        fs.rmSync(`${dir}/incoming`, { recursive: true, force: true });
        const got = await post('/api/show', { model: name });
        t.same(got.status, 404, `${name}: there is no such model`);
        await got.text();
    }
    t.same(reached, 0, 'nothing was sent to an address of a private network');
    t.same((await pull('nope/../x')).status, 400, 'a name that is none');

    // interrupted, then resumed
    cutting = true;
    let r = await pull('cut');
    t.check(/cut off|transfer closed|:/.test(r.error) && fs.existsSync(part), `cut off: ${JSON.stringify(r.last)}`);
    t.check(seen.filter((x) => x.startsWith('GET') && x.includes('cut/blobs')).length > 1, 'it was tried again');
    const have = fs.statSync(part).size;
    t.check(have > 0 && have < bytes.length, `a part is kept: ${have}`);
    r = await pull('range');
    t.check(r.error.includes('a different range'), `another range: ${JSON.stringify(r.last)}`);
    r = await pull('near'); // the same blob, from where it was cut off, after a redirect of the registry to itself
    t.same(r.last.status, 'success', `goes on: ${JSON.stringify(r.last)}`);
    t.check(seen.some((x) => x.includes('near') && x.endsWith(`bytes=${have}-`)), 'from where it was');
    t.check(r.lines.some((x) => x.digest === digest && x.total === bytes.length && x.completed === bytes.length), `progress: ${JSON.stringify(r.lines)}`);
    t.check(fs.readFileSync(stored).equals(bytes), 'the same bytes');
    t.same(list(`${dir}/incoming`).length, 0, 'no part is left');
    fs.rmSync(`${dir}/models`, { recursive: true });
    cutting = false;
    t.same((await pull('cut')).last.status, 'success', 'a line that breaks once is taken up again');
    t.check(fs.readFileSync(stored).equals(bytes), 'and the bytes are right');
    const show = await (await post('/api/show', { model: 'near' })).json();
    t.same(show.system, 'You are brief.', 'its system message');
    const before = seen.length;
    t.same((await pull('good')).last.status, 'success', 'another model of the same file');
    t.check(!seen.slice(before).some((x) => x.includes(digest)), 'whose blob is not fetched again');
    const said = await (await post('/v1/completions', { model: 'good', prompt: 'was', max_tokens: 2, temperature: 0 })).json();
    t.same(said.usage?.completion_tokens, 2, `it generates: ${JSON.stringify(said)}`);
    for (const model of ['near', 'good', 'cut'])
        t.same((await fetch(`${server.url}/api/delete`, { method: 'DELETE', body: JSON.stringify({ model }), headers: { authorization: 'Bearer key' } })).status, 200, 'delete');

    // two at a time; a client that disconnects ends its transfer
    const stop = new AbortController();
    const slow = ['slow', 'slow2'].map((model) => post('/api/pull', { model }, { signal: stop.signal }).then((x) => x.text()).catch((e) => e));
    await t.until(() => open.size === 1 && ['slow', 'slow2'].every((m) => seen.some((x) => x.includes(`${m}/manifests`))), 'a transfer that hangs');
    for (const res of open) // one of them locks the blob: the other is told so
        res.write(bytes.subarray(1000, 2000));
    stop.abort();
    await Promise.all(slow);
    await t.until(() => { for (const res of open) res.write('x'); return open.size === 0; }, 'a client that is gone ends its transfer');
    const last = post('/api/pull', { model: 'slow3' }).then((x) => x.text()).catch((e) => String(e));
    await t.until(() => open.size === 1, 'another one');
    t.same((await server.stop()).code, 0, 'the server ends although a transfer hangs');
    t.check(/stopping/.test(await last), `and says so: ${await last}`);
    registry.closeAllConnections();
    registry.close();
    other.close();
    t.finish();
})().catch(t.abandon);
