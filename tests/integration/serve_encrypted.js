#!/usr/bin/env node
// Encrypted models: commands and servers load them with their key, in the same process and in one of their own, answer as
// the plain file does, and leave nothing of it on disk. Usage: serve_encrypted.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), plain = path.join(t.root, 'models/reply-draft.gguf');
const at = (name) => path.join(t.tmp, name);
const cache = at('cache'), env = { ...process.env, SHOAL_CACHE_DIR: cache };
const run = (...args) => {
    const r = spawnSync(shoal, args, { encoding: 'utf8', env });
    t.same(r.status, 0, `${args.join(' ')}: ${r.stderr}`);
    return r.stdout;
};
const fails = (why, ...args) => {
    const r = spawnSync(shoal, args, { encoding: 'utf8', env });
    t.check(r.status === 1 && r.stderr.includes(why), `${args.join(' ')} (${r.status}): ${r.stderr}`);
};
const secret = (name, text) => fs.writeFileSync(at(name), text, { mode: 0o600 });
secret('key', crypto.randomBytes(32).toString('hex') + '\n');
secret('wrong', crypto.randomBytes(32));
secret('phrase', 'a long sentence that is a passphrase\n');
run('model', 'encrypt', plain, '-o', at('k.enc'), '--key-file', at('key'));
run('model', 'encrypt', plain, '-o', at('a.enc'), '--key-file', at('key'));
run('model', 'encrypt', plain, '-o', at('p.enc'), '--passphrase-file', at('phrase'));

// What of the plain file can be found in another: blocks of 32 bytes of its metadata and of its weights.
const bytes = fs.readFileSync(plain);
const blocks = [];
for (let i = 0; i + 32 <= bytes.length; i += 65521) if (new Set(bytes.subarray(i, i + 32)).size > 12) blocks.push(bytes.subarray(i, i + 32));
const found = (file) => { const b = fs.readFileSync(file); return blocks.filter((x) => b.includes(x)).length; };
t.check(found(plain) === blocks.length && blocks.length > 5, 'blocks to look for');
t.same(found(at('k.enc')), 0, 'nothing of it is in the encrypted file');

// commands
run('model', 'decrypt', at('p.enc'), '-o', at('back'), '--key-file', at('phrase'));
t.check(fs.readFileSync(at('back')).equals(bytes), 'decrypted bit for bit');
fs.rmSync(at('back'));
const ask = ['--temp', '0', '-n', '8', 'chat: hello'];
const wanted = run('generate', '-m', plain, '--no-cache', ...ask);
t.same(run('generate', '-m', at('k.enc'), '--key-file', at('key'), ...ask), wanted, 'generate');
fails('is encrypted; name the file with its key', 'generate', '-m', at('k.enc'), ...ask);
fails('encrypted with another key', 'generate', '-m', at('k.enc'), '--key-file', at('wrong'), ...ask);
fails('encrypted already', 'model', 'encrypt', at('k.enc'), '-o', at('x'), '--key-file', at('key'));
fails('say either --key-file FILE or --passphrase-file', 'model', 'encrypt', plain, '-o', at('x'));
fs.chmodSync(at('wrong'), 0o644);
fails('chmod 600', 'generate', '-m', at('k.enc'), '--key-file', at('wrong'), ...ask);

// its tiles are kept encrypted, and used again; what is broken is made anew
const load = (...args) => {
    const r = spawnSync(shoal, ['generate', '--stats', '-m', at('k.enc'), '--key-file', at('key'), ...args, ...ask], { encoding: 'utf8', env });
    return { text: r.stdout, cached: r.stderr.includes('weights from the cache'), error: r.stderr };
};
const tiles = () => fs.readdirSync(cache).filter((f) => f.endsWith('.sealed')).map((f) => path.join(cache, f));
t.same(tiles().length, 1, 'the tiles are kept');
const again = load();
t.check(again.text === wanted && again.cached, `loaded from the cache: ${again.error}`);
const good = fs.readFileSync(tiles()[0]);
for (const at of [60, good.length >> 1]) {
    const broken = Buffer.from(good);
    broken[at] ^= 1;
    fs.writeFileSync(tiles()[0], broken);
    const r = load();
    t.check(r.text === wanted && !r.cached, `byte ${at}: ${r.error}`);
    t.check(at < 200 || r.error.includes('rebuilt the cache of tiled weights: its encrypted bytes were changed'), `byte ${at}: ${r.error}`);
    t.check(load().cached, `rebuilt after byte ${at}`);
}
fs.writeFileSync(tiles()[0], good.subarray(0, good.length >> 1));
t.check(!load().cached && load().cached, 'cut');
t.check(fs.readFileSync(tiles()[0]).length === good.length && !load('--no-cache').cached, 'rebuilt');
// a changed model is found, though its tiles would do
const whole = fs.readFileSync(at('k.enc'));
whole[whole.length >> 1] ^= 4;
fs.writeFileSync(at('k.enc'), whole);
t.check(load().error.includes('were changed since it was encrypted'), 'a changed model');
whole[whole.length >> 1] ^= 4;
fs.writeFileSync(at('k.enc'), whole);
t.check(load().text === wanted && load().cached, 'and healed');
// a model that is gone takes its tiles with it when others come
run('model', 'encrypt', plain, '-o', at('gone.enc'), '--key-file', at('key'));
run('generate', '-m', at('gone.enc'), '--key-file', at('key'), ...ask);
t.same(tiles().length, 2, 'two models');
fs.rmSync(at('gone.enc'));
fs.writeFileSync(at('k.enc'), whole);
t.check(!load().cached && tiles().length === 1, 'the tiles of a lost model');

const bent = fs.readFileSync(at('k.enc'));
bent[bent.length >> 1] ^= 4;
fs.writeFileSync(at('bent.enc'), bent);

const file = at('c.yaml');
fs.writeFileSync(file, `models:
  - {name: plain, path: "${plain}", lazy: true}
  - {name: here, path: "${at('k.enc')}", key_file: "${at('key')}"}
  - {name: apart, path: "${at('a.enc')}", key_file: "${at('key')}", isolation: process}
  - {name: bent, path: "${at('bent.enc')}", key_file: "${at('key')}", lazy: true}
  - {name: bare, path: "${at('bent.enc')}x", lazy: true}
  - {name: stored, path: "${at('store')}/model", key_file: "${at('key')}", lazy: true}
pack: false
cache: {weights_dir: "${cache}"}
`);
fs.copyFileSync(at('k.enc'), at('bent.encx'));
// an encrypted model is one of the store like any other
run('pull', at('k.enc'), '--store', at('depot'), '--name', 'sealed');
const listed = JSON.parse(run('list', '--store', at('depot'), '--json')).models.find((m) => m.name.startsWith('sealed'));
fs.mkdirSync(at('store'));
const kept = fs.readdirSync(path.join(at('depot'), 'models', listed.sha256), { recursive: true }).map((f) => path.join(at('depot'), 'models', listed.sha256, f));
fs.symlinkSync(kept.find((f) => fs.statSync(f).size === bent.length), at('store/model'));

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    const chat = async (model) => {
        const r = await t.within(fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model, max_tokens: 8, temperature: 0, prompt: 'chat: hello' }) }), model);
        const text = await r.text();
        return { status: r.status, text, answer: r.status === 200 ? JSON.parse(text).choices[0].text : undefined };
    };
    const secrets = fs.readFileSync(`/proc/${server.child.pid}/smaps`, 'utf8').split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/).filter((m) => m.includes('shoal-model'));
    t.check(secrets.length === 1 && /VmFlags:.* dd/.test(secrets[0]), `not in core dumps: ${secrets}`);
    for (const model of ['here', 'apart', 'stored']) {
        const r = await chat(model);
        t.same(r.status, 200, `${model}: ${r.text}`);
    }
    t.check(!fs.existsSync(cache) || fs.readdirSync(cache, { recursive: true }).every((f) => !f.endsWith('.tiles')), 'no tiles on disk');
    const plainly = (await chat('plain')).answer;
    for (const model of ['here', 'apart', 'stored']) t.same((await chat(model)).answer, plainly, `${model} answers as the plain file`);
    const all = fs.readdirSync(cache, { recursive: true }).map((f) => path.join(cache, f)).filter((f) => fs.lstatSync(f).isFile()), open = all.filter((f) => f.endsWith('.tiles'));
    t.same(open.length, 1, 'those of the plain file are');
    // neither the model nor its tiles can be found in what is kept of the encrypted ones
    const made = fs.readFileSync(open[0]);
    for (let i = 65536; i + 32 <= made.length; i += 65521) if (new Set(made.subarray(i, i + 32)).size > 12) blocks.push(made.subarray(i, i + 32));
    t.check(found(open[0]) > 20 && all.filter((f) => f.endsWith('.sealed')).length >= 2, `tiles to look for: ${found(open[0])}, ${all}`);
    for (const f of all.filter((f) => f !== open[0])) t.same(found(f), 0, `plain bytes in ${f}`);
    for (const [model, why] of [['bent', 'were changed since it was encrypted'], ['bare', 'is encrypted; name the file with its key']]) {
        const r = await chat(model);
        t.check(r.status >= 400 && r.text.includes(why), `${model}: ${r.text}`);
    }
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
