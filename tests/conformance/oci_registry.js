#!/usr/bin/env node
// /api/push and /api/pull with the official Ollama client, shoal push and pull, and a real OCI registry: Debian's docker-registry,
// or the program in $REGISTRY.
// Usage: oci_registry.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { start: startRegistry } = require('./registry_start.js');

const shoal = path.resolve(process.argv[2]);
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');
const file = path.join(t.root, 'models/reply-draft.gguf'), bytes = fs.readFileSync(file);
const sha = (b) => crypto.createHash('sha256').update(b).digest('hex');

async function start(name, url) {
    const config = path.join(t.tmp, `${name}.yaml`);
    fs.writeFileSync(config, `ollama: {dir: ${t.tmp}/${name}, registry: "${url}"}\nmodels: [{name: reply, path: ${file}}]\n` +
        `keys: [{name: a, sha256: ${sha('key')}, admin: true}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    return { server, o: new Ollama({ host: server.url, headers: { authorization: 'Bearer key' } }) };
}

(async () => {
    const registry = await startRegistry(process.env.REGISTRY ?? 'docker-registry');
    const one = await start('one', registry.url), two = await start('two', registry.url);
    await one.o.create({ model: 'me/polite:1b', from: 'reply', system: 'Be polite.', parameters: { temperature: 0.5 }, license: 'MIT' });
    const steps = [];
    for await (const part of await one.o.push({ model: 'me/polite:1b', stream: true }))
        steps.push(part);
    t.same(steps.at(-1).status, 'success', `push: ${JSON.stringify(steps.at(-1))}`);
    t.check(steps.some((x) => x.completed === bytes.length && x.digest === `sha256:${sha(bytes)}`), 'progress of the push');
    t.same((await one.o.push({ model: 'me/polite:1b' })).status, 'success', 'again: its blobs are there');
    const manifest = await (await fetch(`${registry.url}/v2/me/polite/manifests/1b`,
        { headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' } })).json();
    t.same(manifest.layers.map((x) => x.mediaType.split('.').at(-1)).join(), 'model,system,params,license', 'the registry has its parts');

    const seen = [];
    for await (const part of await two.o.pull({ model: 'me/polite:1b', stream: true }))
        seen.push(part);
    t.same(seen.at(-1).status, 'success', `pull: ${JSON.stringify(seen.at(-1))}`);
    t.same(`${seen[0].status} ${seen.find((x) => x.completed === bytes.length)?.total}`, `pulling manifest ${bytes.length}`, 'progress of the pull');
    t.check(fs.readFileSync(`${t.tmp}/two/models/${sha(bytes)}/files/model.gguf`).equals(bytes), 'the same bytes');
    const show = await two.o.show({ model: 'me/polite:1b' });
    t.same(`${show.system} ${show.license}`, 'Be polite. MIT', 'with its texts');
    const ask = { messages: [{ role: 'user', content: 'act: turn_off; device: lights; room: kitchen; result: done' }], options: { temperature: 0 } };
    t.same((await two.o.chat({ model: 'me/polite:1b', ...ask })).message.content, (await one.o.chat({ model: 'me/polite:1b', ...ask })).message.content,
        'it answers as where it came from');
    const unknown = await t.fails(two.o.pull({ model: 'me/polite:2b' }), 'a tag that is not there');
    t.check(unknown.status_code === 404 && /has no model/.test(unknown.message), `unknown: ${unknown}`);
    // the command line: what the client of Ollama pushed, and a folder as a ModelPack
    const where = registry.url.slice(7), env = { ...process.env, SHOAL_CACHE_DIR: `${t.tmp}/cache` };
    const run = (store, ...args) => execFileSync(shoal, args, { env: { ...env, SHOAL_STORE: `${t.tmp}/${store}` }, encoding: 'utf8' });
    run('cli', 'pull', `${where}/me/polite:1b`, '--name', 'polite');
    const shown = JSON.parse(run('cli', 'show', 'polite', '--json'));
    t.same(`${shown.sha256} ${shown.system} ${shown.license}`, `${sha(bytes)} Be polite. MIT`, 'shoal pull of it');
    run('cli', 'pull', path.join(t.root, 'tests/data/encoders/bert'), '--name', 'bert');
    run('cli', 'push', 'bert', `${where}/team/bert:1`);
    run('other', 'pull', `${where}/team/bert:1`, '--name', 'bert');
    t.same(JSON.parse(run('other', 'show', 'bert', '--json')).sha256, JSON.parse(run('cli', 'show', 'bert', '--json')).sha256, 'a folder');
    run('cli', 'push', 'polite', `${where}/team/polite:2`);
    t.same((await two.o.pull({ model: 'team/polite:2' })).status, 'success', 'what shoal pushes, /api/pull takes');
    registry.child.kill('SIGTERM');
    await t.until(() => registry.child.exitCode !== null || registry.child.signalCode !== null, 'the registry ends');
    const off = await t.fails(two.o.pull({ model: 'me/other' }), 'no registry');
    t.check(off.status_code === 502, `a registry that is gone: ${off.status_code} ${off}`);
    for (const { server } of [one, two])
        t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
