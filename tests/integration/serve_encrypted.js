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
    t.check(fs.readdirSync(cache, { recursive: true }).some((f) => f.endsWith('.tiles')), 'those of the plain file are');
    for (const [model, why] of [['bent', 'were changed since it was encrypted'], ['bare', 'is encrypted; name the file with its key']]) {
        const r = await chat(model);
        t.check(r.status >= 400 && r.text.includes(why), `${model}: ${r.text}`);
    }
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
