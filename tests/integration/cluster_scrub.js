#!/usr/bin/env node
// A damaged model in a node's store is found by the scrub, or when it is loaded, and replaced by a copy of another node.
// Usage: cluster_scrub.js SHOAL
'use strict';
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp, models = path.join(dir, 'models');
fs.mkdirSync(models);
const file = path.join(models, 'm.gguf');
fs.copyFileSync(path.join(t.root, 'tests/data/refs/qwen3.gguf'), file);
const sum_of = (name) => crypto.createHash('sha256').update(fs.readFileSync(name)).digest('hex');
const sum = sum_of(file), size = fs.statSync(file).size;

let nats = null, url = '';
const store = path.join(dir, 'store');
const kept = () => path.join(store, 'models', sum, 'files', fs.readdirSync(path.join(store, 'models', sum, 'files'))[0]);
const is_whole = () => {
    try {
        return sum_of(kept()) === sum;
    } catch { // it is being swapped
        return false;
    }
};

async function node(name, more) {
    const config = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(config, `cluster: {name: ${name}, insecure: true, nats: ['${url}'], listen: ['127.0.0.1:0'], ${more}\n`);
    return new c.Member(shoal, 'node', name, ['--config', config, '--no-models']).start();
}
function run(...args) {
    return t.within(new Promise((done) => {
        execFile(shoal, args, { env: { ...process.env, SHOAL_NATS: url } }, (e, out, err) => done({ code: e ? e.code : 0, out, err }));
    }), `shoal ${args.join(' ')}`, 300000);
}

// One byte in the middle of the weights; the time of the file stays: a disk does not tell.
function damage() {
    const name = kept(), { atime, mtime } = fs.statSync(name);
    fs.chmodSync(name, 0o644);
    const fd = fs.openSync(name, 'r+');
    fs.writeSync(fd, Buffer.from([0x55]), 0, 1, size - 1000);
    fs.closeSync(fd);
    fs.utimesSync(name, atime, mtime);
    t.check(sum_of(name) !== sum, 'it is damaged');
}

(async () => {
    const port = await t.free_port();
    url = `nats://127.0.0.1:${port}`;
    nats = new c.Nats(['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', path.join(dir, 'nats')]);
    const one = await node('node1', `store: ${path.join(dir, 'store1')}}\nmodel_dirs: [${models}]`);
    const two = await node('node2', `store: ${store}, scrub: 2s}`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--insecure', '--join', url, '--listen', '127.0.0.1:0']).start();
    await c.all_ready({ gateway: gw }, 2);
    const r = await run('cluster', 'deploy', 'm', '--file', file, '--replicas', '2', '--wait', '120');
    t.same(r.code, 0, `deploy: ${r.err}`);
    let n = 0;
    const ask = async () => {
        const res = await t.within(fetch(`${gw.url}/v1/completions`, { method: 'POST',
            body: JSON.stringify({ model: 'm', prompt: `request ${++n}`, max_tokens: 4, temperature: 0 }) }), 'a completion');
        t.same(res.status, 200, `an answer: ${await res.text()}`);
        return res.headers.get('x-shoal-node');
    };
    const serves = (name) => t.until(async () => await ask() === name, `${name} answers`);
    await serves('node2');
    t.check(is_whole(), 'what it fetched');

    // while it is loaded
    damage();
    await t.until(() => /found damage/.test(two.log), 'the scrub finds it');
    await t.until(is_whole, 'it is fetched again');
    await serves('node2');

    // before it is loaded; the time of a file that was written to has changed
    await two.end('SIGKILL');
    damage();
    fs.utimesSync(kept(), new Date(), new Date());
    const before = Date.now();
    await two.start();
    await t.until(is_whole, 'it is fetched again at the start');
    await serves('node2');
    console.log(`mended after a start in ${Date.now() - before} ms`);

    // cut off
    await two.end('SIGKILL');
    fs.chmodSync(kept(), 0o644);
    fs.truncateSync(kept(), size / 2);
    await two.start();
    await t.until(is_whole, 'a short file is fetched again');
    await serves('node2');
    await one.end('SIGKILL');
    t.same(await ask(), 'node2', 'it answers alone');
    await c.close();
    t.finish();
})().catch(t.abandon);
