#!/usr/bin/env node
// Signed models and the audit log through a running server: what is not signed is not loaded nor pulled, every request
// leaves a line, and shoal audit verify finds what was changed. Usage: serve_supply.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { make } = require('./adapter_make.js');

const shoal = path.resolve(process.argv[2]);
const at = (name) => path.join(t.tmp, name);
const sha = (text) => crypto.createHash('sha256').update(text).digest('hex');
const run = (...args) => execFileSync(shoal, args, { encoding: 'utf8' });
const equal = (got, want, what) => t.same(JSON.stringify(got), JSON.stringify(want), what);
const fails = (...args) => {
    const r = spawnSync(shoal, args, { encoding: 'utf8' });
    t.same(r.status, 1, `${args.join(' ')}: ${r.stdout}${r.stderr}`);
    return r.stderr;
};
const key = (name) => {
    const k = crypto.generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    fs.writeFileSync(at(`${name}.pem`), k.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    fs.writeFileSync(at(`${name}.pub`), k.publicKey.export({ type: 'spki', format: 'pem' }));
};
key('factory');
key('stranger');
for (const name of ['good', 'plain', 'foreign', 'bent']) fs.copyFileSync(path.join(t.root, 'models/reply-draft.gguf'), at(`${name}.gguf`));
fs.copyFileSync(path.join(t.root, 'models/reply.gguf'), at('base.gguf'));
const mine = make(at('mine'), 1), theirs = make(at('theirs'), 2);
for (const signed of [at('base.gguf'), mine]) run('model', 'sign', signed, '--key', at('factory.pem'));
run('model', 'sign', at('good.gguf'), '--key', at('factory.pem'));
run('model', 'sign', at('foreign.gguf'), '--key', at('stranger.pem'));
run('model', 'sign', at('bent.gguf'), '--key', at('factory.pem'));
t.check(run('model', 'verify', at('good.gguf'), '--key', at('factory.pub')).includes('as signed'), 'verified');
t.check(fails('model', 'verify', at('good.gguf'), '--key', at('stranger.pub')).includes('another key'), 'another key');
const bytes = fs.readFileSync(at('bent.gguf'));
bytes[bytes.length - 100] ^= 1;
fs.writeFileSync(at('bent.gguf'), bytes);
const told = spawnSync(shoal, ['model', 'verify', at('bent.gguf'), '--key', at('factory.pub'), '--json'], { encoding: 'utf8' });
equal(JSON.parse(told.stdout).differences, [{ file: '.', is: 'changed' }], 'the file that differs');

const file = at('supply.yaml'), audit = at('audit');
fs.writeFileSync(file, `models:
  - {name: good, path: "${at('good.gguf')}"}
  - {name: plain, path: "${at('plain.gguf')}", lazy: true}
  - {name: foreign, path: "${at('foreign.gguf')}", lazy: true}
  - {name: bent, path: "${at('bent.gguf')}", lazy: true}
  - {name: base, path: "${at('base.gguf')}", lazy: true, adapters: [{name: mine, path: "${mine}"}, {name: theirs, path: "${theirs}"}]}
pack: false
trust:
  require: signed
  signers: [{name: factory, key: "${at('factory.pub')}"}]
audit: {dir: "${audit}"}
keys:
  - {name: anna, sha256: ${sha('anna-key')}, admin: true}
`);

(async () => {
    let server = await t.start(shoal, ['--config', file]);
    const post = async (where, body, who = 'anna-key') => {
        const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body), headers: { authorization: `Bearer ${who}` } }), where);
        return { status: r.status, text: await r.text() };
    };
    const chat = (model, who) => post('/v1/chat/completions', { model, max_tokens: 4, temperature: 0, messages: [{ role: 'user', content: 'My secret is 4711.' }] }, who);
    const good = await chat('good');
    t.same(good.status, 200, good.text);
    await chat('good'); // answered by a cache, and logged too
    for (const [model, why] of [['plain', 'it has no signature'], ['foreign', 'another key'], ['bent', 'bent.gguf: changed'],
        ['base:theirs', 'it has no signature']]) {
        const r = await chat(model);
        t.check(r.status >= 400 && r.text.includes(why), `${model} is not loaded: ${r.text}`);
    }
    const adapted = await chat('base:mine');
    t.same(adapted.status, 200, `a signed adapter: ${adapted.text}`);
    t.same((await chat('good', 'wrong')).status, 401, 'a wrong key');
    const models = await (await fetch(`${server.url}/admin/models`, { headers: { authorization: 'Bearer anna-key' } })).json();
    t.same((models.models ?? models.data).find((m) => [m.name, m.id, m.model].includes('good')).signer, 'factory', 'who signed it');
    t.same((await post('/admin/models', { model: 'good', action: 'unload' })).status, 200, 'unloaded');
    t.same((await server.stop()).code, 0, "ends well");

    // the log
    const lines = fs.readFileSync(path.join(audit, 'audit-000001.jsonl'), 'utf8').trimEnd().split('\n').map((l) => JSON.parse(l));
    const requests = lines.filter((l) => l.kind === 'request');
    t.same(requests.filter((l) => l.decision === 'answered').length, 3, JSON.stringify(requests));
    const first = requests[0], answer = JSON.parse(good.text).choices[0].message.content;
    equal([first.client, first.model, first.signer, first.sha256], ['anna', 'good', 'factory', sha(fs.readFileSync(at('good.gguf')))], 'who, what');
    equal([first.prompt, first.answer], [sha('user\nMy secret is 4711.\n'), sha(answer)], 'the hashes of prompt and answer');
    equal(requests.filter((l) => l.decision === 'failed' || l.decision === 'refused').map((l) => l.model), ['plain', 'foreign', 'bent', 'base:theirs'], 'refusals');
    equal(lines.filter((l) => l.kind === 'refused').map((l) => l.reason), ['invalid_api_key'], 'the wrong key');
    t.check(lines.some((l) => l.kind === 'admin' && l.act.startsWith('POST /admin/models')), 'acts of administration');
    t.check(!fs.readFileSync(path.join(audit, 'audit-000001.jsonl'), 'utf8').includes('4711'), 'no texts');
    t.check(run('audit', 'verify', audit).startsWith('whole: lines 1 to '), 'whole');
    t.check(run('audit', 'export', audit, '--form', 'syslog').split('\n')[0].startsWith('<110>1 '), 'syslog');
    t.same(JSON.parse(run('audit', 'export', audit, '--form', 'loki')).streams[0].values.length, lines.length, 'loki');

    // kill -9: no line is lost
    server = await t.start(shoal, ['--config', file]);
    t.same((await chat('good')).status, 200, 'again');
    await server.stop('SIGKILL');
    const after = JSON.parse(run('audit', 'verify', audit, '--json'));
    equal([after.whole, after.torn], [true, 0], JSON.stringify(after));
    const log = path.join(audit, 'audit-000001.jsonl'), text = fs.readFileSync(log, 'utf8');
    t.same(text.trimEnd().split('\n').map((l) => JSON.parse(l)).filter((l) => l.decision === 'answered').length, 4, 'the last request');
    fs.writeFileSync(log, text.replace('"client":"anna"', '"client":"otto"'));
    t.check(/line \d+: it was changed/.test(fails('audit', 'verify', audit)), 'a changed line');
    fs.writeFileSync(log, text);

    // pulls
    const store = at('store');
    t.check(fails('pull', at('plain.gguf'), '--store', store, '--config', file).includes('it has no signature'), 'not pulled');
    t.check(fails('pull', at('bent.gguf'), '--store', store, '--config', file).includes('changed'), 'not pulled');
    run('pull', at('good.gguf'), '--store', store, '--config', file, '--name', 'good2');
    const listed = JSON.parse(run('list', '--store', store, '--json')).models.find((m) => m.name.startsWith('good2'));
    t.same(listed.signer, 'factory', JSON.stringify(listed));
    t.check(fs.existsSync(path.join(store, 'models', listed.sha256, 'signature')), 'the signature is kept');
    t.finish();
})().catch(t.abandon);
