#!/usr/bin/env node
// Signatures in a shoal with a real nats-server: they travel with the models between nodes and from web servers, each
// node decides by its own policy whether a model may stay, those that refuse one say so with the reason, and layers of
// a model are checked as a whole model is. Usage: cluster_trust.js SHOAL
'use strict';
const { execFileSync, spawn, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const at = (name) => path.join(dir, name);
const run = (...args) => execFileSync(shoal, args, { cwd: dir, encoding: 'utf8' });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const sum = (file) => crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex');
fs.mkdirSync(at('empty'));
process.env.SHOAL_MODELS = at('empty'); // nodes have only what their configuration says
const key = (name) => {
    const k = crypto.generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    fs.writeFileSync(at(`${name}.pem`), k.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    fs.writeFileSync(at(`${name}.pub`), k.publicKey.export({ type: 'spki', format: 'pem' }));
};
const trust = (more = '') => `trust: {require: signed${more}, signers: [{name: old, key: ${at('old.pub')}}, {name: new, key: ${at('new.pub')}}]}\n`;

async function node(name, cluster, more) {
    const file = at(`${name}.yaml`);
    fs.writeFileSync(file, `cluster: {certs: ${certs(name)}, listen: ['127.0.0.1:0'], store: ${at(`${name}.store`)}${cluster}}\n${more}`);
    const m = await new c.Member(shoal, 'node', name, ['--config', file, ...(/^models:/m.test(more) ? [] : ['--no-models'])]).start();
    m.address = m.out.match(/listening for other members on (?:https:\/\/)?(\S+)/)[1];
    return m;
}
const stored = (name, hash) => path.join(at(`${name}.store`), 'models', hash);
const ends = async (nodes) => { for (const n of nodes) t.same((await n.end('SIGTERM')).code, 0, `${n.name} ends`); };

let nats = null;

async function in_a_shoal() {
    // a server that has one more model, with its signature beside it
    fs.copyFileSync(path.join(t.root, 'models/reply-draft.gguf'), at('web.gguf'));
    fs.appendFileSync(at('web.gguf'), 'x'); // another hash
    run('model', 'sign', at('web.gguf'), '--key', at('new.pem'));
    const web = http.createServer((req, res) => {
        const file = at(path.basename(req.url));
        if (!fs.existsSync(file)) return res.writeHead(404).end();
        const body = fs.readFileSync(file);
        return res.writeHead(200, { 'content-length': body.length }).end(body);
    });
    await new Promise((done) => web.listen(0, '127.0.0.1', done));

    const port = await t.free_port(), url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    const more = `, nats: ['${url}'], shoal: home`;
    const has = (...names) => `models: [${names.map((n) => `{name: ${n}, path: ${at(`${n}.gguf`)}}`).join(', ')}]\n`;
    const nodes = [await node('open', more, has('good', 'bare')), await node('strict', more, trust()),
        await node('wary', more, trust(`, revoked: [${at('old.pub')}, ${sum(at('web.gguf'))}]`))];
    const ask = ['--nats', url, '--cluster', 'home', '--certs', certs('admin')];
    const deploy = (name, file, ...args) => {
        const r = spawnSync(shoal, ['cluster', 'deploy', name, '--sha256', sum(file), '--replicas', '3', '--memory', '64', ...args, ...ask, '--timeout', '60'], { cwd: dir, encoding: 'utf8' });
        t.same(r.status, 0, `deploy ${name}: ${r.stdout}${r.stderr}`);
    };
    // The controller takes the model away from a node that refuses it, and the events say why.
    const events = () => new Promise((done) => {
        const p = spawn(shoal, ['cluster', 'events', '--json', ...ask, '--timeout', '60'], { cwd: dir });
        let out = '';
        p.stdout.on('data', (d) => { out += d; });
        p.on('close', () => done(out.trim().split('\n').filter(Boolean).map((l) => JSON.parse(l))));
    });
    const told = async (who, model, why) => {
        let last = [];
        await t.until(async () => (last = await events()).some((e) => e.node === who && e.model === model && JSON.stringify(e).includes(why)),
            { toString: () => `${who} says why it refuses ${model}: ${JSON.stringify(last)}` });
    };
    deploy('good', at('good.gguf'));
    await t.until(() => /loaded path=\S*strict\.store/.test(nodes[1].log), `strict has loaded it: ${nodes[1].log.slice(-3000)}`);
    t.check(fs.existsSync(path.join(stored('strict', sum(at('good.gguf'))), 'signature')), 'the signature came with it');
    await t.until(() => /good could not be fetched: .*trust\.revoked/.test(nodes[2].log), `the key is revoked: ${nodes[2].log.slice(-3000)}`);
    t.check(!fs.existsSync(stored('wary', sum(at('good.gguf')))), 'it did not stay');
    await told('wary', 'good', 'which trust.revoked names');
    deploy('bare', at('bare.gguf'));
    await t.until(() => /bare could not be fetched: bare is not signed/.test(nodes[1].log), `not signed: ${nodes[1].log.slice(-3000)}`);
    t.check(!fs.existsSync(stored('strict', sum(at('bare.gguf')))), 'it did not stay');
    await told('strict', 'bare', 'bare is not signed by anybody');
    deploy('web', at('web.gguf'), '--source', `http://127.0.0.1:${web.address().port}/web.gguf`);
    await t.until(() => /loaded path=\S*strict\.store\S*web\.gguf/.test(nodes[1].log), `from the web: ${nodes[1].log.slice(-3000)}`);
    t.check(fs.existsSync(path.join(stored('strict', sum(at('web.gguf'))), 'signature')), 'the signature of the server');
    await t.until(() => /web could not be fetched: web is the version \w{12}, which trust\.revoked names/.test(nodes[2].log), `an old version: ${nodes[2].log.slice(-3000)}`);
    await ends(nodes);
    web.close();
}

async function in_parts() {
    const model = at('parts/big.gguf');
    const part = await node('part', '', `models: [{name: idle, path: ${at('bare.gguf')}, lazy: true}]\nmodel_dirs: ["${at('parts')}"]\n${trust()}`);
    const engine = await node('engine', `, nodes: ["${part.address}"]`, `models: [{name: big, path: ${model}, shard: "layers:2"}]\n`);
    await t.until(() => /not signed by anybody/.test(part.log), `the part refuses: ${part.log.slice(-2000)}`);
    run('model', 'sign', model, '--key', at('new.pem'));
    const again = await node('engine2', `, nodes: ["${part.address}"]`, `models: [{name: big, path: ${model}, shard: "layers:2"}]\n`);
    await t.until(() => /computes layers \d+ to \d+ of model=\w+ for node=engine2/.test(part.log), `signed: ${part.log.slice(-2000)}`);
    await ends([engine, again, part]);
}

(async () => {
    ['old', 'new'].forEach(key);
    fs.mkdirSync(at('parts'));
    for (const [from, to] of [['reply', 'good'], ['reply-draft', 'bare'], ['reply', 'parts/big']])
        fs.copyFileSync(path.join(t.root, `models/${from}.gguf`), at(`${to}.gguf`));
    run('model', 'sign', at('good.gguf'), '--key', at('old.pem'));
    run('ca', 'init');
    run('ca', 'issue', 'open', '--role', 'node,controller', '--host', '127.0.0.1');
    for (const name of ['strict', 'wary', 'part', 'engine', 'engine2'])
        run('ca', 'issue', name, '--role', 'node', '--host', '127.0.0.1');
    await in_parts();
    await in_a_shoal();
    await c.close();
    t.finish();
})().catch(t.abandon);
