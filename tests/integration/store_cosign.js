#!/usr/bin/env node
// Signatures as cosign keeps them in a registry: found at pull, checked there and at every load, refused when they are about something
// else; and those that `shoal push --sign` makes, which are checked here with nothing of Shoal. Usage: store_cosign.js SHOAL
'use strict';
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { start, sha256 } = require('./model_hub.js');

const shoal = path.resolve(process.argv[2]), data = path.join(t.root, 'tests/data');
const gguf = fs.readFileSync(path.join(data, 'refs/llama-gqa.gguf')), folder = path.join(data, 'encoders/bert');
const at = (name) => path.join(t.tmp, name);
let hub, where, n = 0;

const pair = (name, ...how) => {
    const k = crypto.generateKeyPairSync(...how);
    fs.writeFileSync(at(`${name}.pub`), k.publicKey.export({ type: 'spki', format: 'pem' }));
    fs.writeFileSync(at(`${name}.pem`), k.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return k;
};
const p256 = pair('p256', 'ec', { namedCurve: 'P-256' }), p384 = pair('p384', 'ec', { namedCurve: 'P-384' });
const ed = pair('ed', 'ed25519'), stranger = pair('stranger', 'ec', { namedCurve: 'P-256' });
for (const name of ['p256', 'p384', 'ed'])
    fs.writeFileSync(at(`${name}.yaml`), `trust:\n  require: signed\n  signers: [{name: ${name}-team, key: "${at(`${name}.pub`)}"}]\n`);
fs.writeFileSync(at('gone.yaml'), `trust:\n  require: signed\n  signers: [{name: team, key: "${at('p256.pub')}"}]\n  revoked: ["${at('p256.pub')}"]\n`);

function store() {
    const dir = at(`store-${n++}`), env = { ...process.env, SHOAL_STORE: dir, SHOAL_CACHE_DIR: at('cache') };
    const run = (...args) => new Promise((done) => execFile(shoal, args, { env, cwd: t.tmp }, (e, out, err) => done({ code: e ? e.code : 0, out, err })));
    return { dir, run, models: () => (fs.existsSync(path.join(dir, 'models')) ? fs.readdirSync(path.join(dir, 'models')) : []) };
}

// ---- what cosign writes: https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md ----
const blob = (bytes) => { const digest = `sha256:${sha256(bytes)}`; hub.blobs[digest] = bytes; return { digest, size: bytes.length }; };
const simple = (digest, type = 'cosign container image signature') => Buffer.from(JSON.stringify({
    critical: { identity: { 'docker-reference': 'registry.example/x' }, image: { 'docker-manifest-digest': digest }, type }, optional: null }));
const layerOf = (payload, key) => ({ mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json', ...blob(payload),
    annotations: { 'dev.cosignproject.cosign/signature': crypto.sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', payload, key).toString('base64') } });
const keep = (name, manifest, layers) => {
    hub.registry[`${name}:sha256-${sha256(manifest)}.sig`] = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json',
        config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...blob(Buffer.from('{}')) }, layers }));
};
const put = (name, title = 'tiny.gguf') => hub.registry[`${name}:1`] = Buffer.from(JSON.stringify({ schemaVersion: 2,
    layers: [{ mediaType: 'application/octet-stream', ...blob(gguf), annotations: { 'org.opencontainers.image.title': title } }] }));
const digestOf = (m) => `sha256:${sha256(m)}`;

async function pulls(name, policy, s = store()) {
    return { ...await s.run('pull', `oci://${where}/${name}:1`, '--config', at(`${policy}.yaml`)), s };
}

async function read() {
    for (const [name, k] of [['p256', p256], ['p384', p384], ['ed', ed]]) {
        const m = put(`x/${name}`);
        keep(`x/${name}`, m, [layerOf(simple(digestOf(m)), k.privateKey)]);
        const r = await pulls(`x/${name}`, name);
        t.check(r.code === 0 && r.s.models()[0] === sha256(gguf), `${name}: ${r.err}`);
    }
    // of several, one is enough; others are not looked at
    let m = put('x/both');
    keep('x/both', m, [layerOf(simple(digestOf(m)), stranger.privateKey), { mediaType: 'text/plain', ...blob(Buffer.from('x')) }, layerOf(simple(digestOf(m)), p256.privateKey)]);
    const both = await pulls('x/both', 'p256');
    t.same(both.code, 0, `several: ${both.err}`);

    const refused = async (name, why, policy = 'p256') => {
        const r = await pulls(name, policy);
        t.check(r.code === 1 && why.test(r.err), `${name}: ${r.err}`);
        t.same(r.s.models().length, 0, `${name}: it does not stay`);
    };
    put('x/none');
    await refused('x/none', /not signed|no signature/);
    m = put('x/other');
    keep('x/other', m, [layerOf(simple(digestOf(m)), stranger.privateKey)]);
    await refused('x/other', /sign/);
    await refused('x/p256', /revoked/, 'gone');
    m = put('x/about'); // of another manifest, by the right key
    keep('x/about', m, [layerOf(simple(digestOf(Buffer.from('another'))), p256.privateKey)]);
    await refused('x/about', /none of its signatures is about the manifest/);
    m = put('x/type');
    keep('x/type', m, [layerOf(simple(digestOf(m), 'something else'), p256.privateKey)]);
    await refused('x/type', /none of its signatures is about the manifest/);
    m = put('x/bent'); // the payload does not have its signature
    const bent = layerOf(simple(digestOf(m)), p256.privateKey), sig = Buffer.from(bent.annotations['dev.cosignproject.cosign/signature'], 'base64');
    sig[sig.length - 1] ^= 1;
    bent.annotations['dev.cosignproject.cosign/signature'] = sig.toString('base64');
    keep('x/bent', m, [bent]);
    await refused('x/bent', /sign/);
    m = put('x/lost'); // the registry has lost the payload, or sends another
    const lost = layerOf(simple(digestOf(m)), p256.privateKey);
    keep('x/lost', m, [{ ...lost, digest: digestOf(Buffer.from('gone')) }]);
    await refused('x/lost', /not signed|no signature/);
    for (const text of ['', '{', '[]', '{"layers":[{}]}', '{"layers":[1,null]}', `{"layers":${'['.repeat(5000)}`]) {
        m = put('x/text');
        hub.registry[`x/text:sha256-${sha256(m)}.sig`] = Buffer.from(text);
        await refused('x/text', /not signed|no signature/);
    }
}

async function pushed() {
    const s = store(), name = `${where}/team/reply:2`;
    t.same((await s.run('pull', path.join(data, 'refs/llama-gqa.gguf'), '--name', 'reply2')).code, 0, 'a model');
    t.same((await s.run('pull', folder, '--name', 'bert')).code, 0, 'a folder');
    let r = await s.run('push', 'reply2', name, '--sign', at('nothing.pem'));
    t.check(r.code === 1 && r.err.includes('nothing.pem') && !hub.registry['team/reply:2'], `no key: ${r.err}`);
    r = await s.run('push', 'reply2', name, '--sign', at('p256.pem'));
    t.same(r.code, 0, `push: ${r.err}`);
    // as cosign verify does
    const manifest = hub.registry['team/reply:2'], kept = JSON.parse(hub.registry[`team/reply:sha256-${sha256(manifest)}.sig`]);
    const layer = kept.layers[0], payload = hub.blobs[layer.digest], said = JSON.parse(payload).critical;
    t.same(`${kept.layers.length} ${layer.mediaType} ${layer.size}`, `1 application/vnd.dev.cosign.simplesigning.v1+json ${payload.length}`, 'a layer');
    t.same(JSON.stringify(said), JSON.stringify({ identity: { 'docker-reference': `${where}/team/reply` }, image: { 'docker-manifest-digest': digestOf(manifest) }, type: 'cosign container image signature' }), 'what it says');
    t.check(crypto.verify('sha256', payload, p256.publicKey, Buffer.from(layer.annotations['dev.cosignproject.cosign/signature'], 'base64')), 'the signature');
    t.check(hub.blobs[kept.config.digest].length === kept.config.size, 'its configuration is there');
    // and back, a folder too; what is kept is checked again at every load
    const got = store();
    r = await got.run('pull', `oci://${name}`, '--name', 'reply2', '--config', at('p256.yaml'));
    t.same(r.code, 0, `pull: ${r.err}`);
    t.same((await s.run('push', 'bert', `${where}/team/bert:1`, '--sign', at('p384.pem'))).code, 0, 'push of a folder');
    r = await got.run('pull', `oci://${where}/team/bert:1`, '--name', 'bert', '--config', at('p384.yaml'));
    t.same(r.code, 0, `pull of a folder: ${r.err}`);
    const signature = path.join(got.dir, 'models', sha256(gguf), 'signature');
    const server = await t.start(shoal, ['--config', at('serve.yaml')], { env: { SHOAL_STORE: got.dir } });
    const ask = async () => {
        const a = await t.within(fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model: 'tiny', max_tokens: 2, prompt: 'was' }) }), 'tiny');
        return { status: a.status, text: await a.text() };
    };
    t.same((await ask()).status, 200, 'it answers');
    const listed = await (await fetch(`${server.url}/admin/models`)).text();
    t.check(listed.includes('p256-team'), `who signed it: ${listed}`);
    t.same((await server.stop()).code, 0, 'exit');
    t.check(fs.existsSync(signature), 'what is kept');
}

(async () => {
    hub = await start();
    where = hub.url.slice(7);
    await read();
    fs.writeFileSync(at('serve.yaml'), `models: [{name: tiny, path: "${at('serve.gguf')}"}]\npack: false\n${fs.readFileSync(at('p256.yaml'), 'utf8')}`);
    // a file with what is kept beside it, as a node has it
    const m = put('x/file'), s = store();
    keep('x/file', m, [layerOf(simple(digestOf(m)), p256.privateKey)]);
    const r = await pulls('x/file', 'p256', s);
    t.same(r.code, 0, `pull: ${r.err}`);
    fs.copyFileSync(path.join(data, 'refs/llama-gqa.gguf'), at('serve.gguf'));
    fs.copyFileSync(path.join(s.dir, 'models', sha256(gguf), 'signature'), at('serve.gguf.sig'));
    await pushed();
    // bytes that changed since
    const other = Buffer.from(gguf);
    other[other.length - 1] ^= 1;
    fs.writeFileSync(at('serve.gguf'), other);
    const late = await store().run('pull', at('serve.gguf'), '--name', 'late', '--config', at('p256.yaml'));
    t.check(late.code === 1 && /serve.gguf: changed/.test(late.err), `a changed model: ${late.err}`);
    hub.stop();
    t.finish();
})().catch(t.abandon);
