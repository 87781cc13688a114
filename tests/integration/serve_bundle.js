#!/usr/bin/env node
// `shoal bundle`: secrets, prompts, keys, addresses and telephone numbers are planted wherever they could be, and must not be
// in the file; what somebody who helps needs must be.
// Usage: serve_bundle.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
// what must not be found
const planted = {
    admin_key: 'Chef-Kitchen-77-open', client_key: 'hunter-of-lights', client: 'annabella', header: 'collector-pass-9',
    hook: 'T0AB12CD/B99/secretpath', prompt: 'the purple walrus sings', answer_mail: 'walrus.private@example.org',
    phone: '+49 30 901820', template: 'Dear Mister Grumblewood', address: '203.0.113.77', bearer: 'qwertzuiop-lost-bearer',
    log_password: 'open-sesame-4', iban: 'DE89 3704 0044 0532 0130 00', user: 'grumblewood-home', hash: sha('Chef-Kitchen-77-open'),
};

const bundle = (...args) => spawnSync(shoal, ['bundle', ...args], { encoding: 'utf8', cwd: t.tmp, env: { ...process.env, HOME: `/home/${planted.user}` } });

function unpack(file) {
    const dir = fs.mkdtempSync(path.join(t.tmp, 'unpacked-'));
    execFileSync('tar', ['xzf', file, '-C', dir]);
    const files = Object.fromEntries(fs.readdirSync(dir).map((f) => [f, fs.readFileSync(path.join(dir, f), 'utf8')]));
    for (const [name, text] of Object.entries(files)) {
        for (const [what, secret] of Object.entries(planted))
            t.check(!text.toLowerCase().includes(secret.toLowerCase()), `${name} has the ${what}: ${text.slice(Math.max(0, text.toLowerCase().indexOf(secret.toLowerCase()) - 80)).slice(0, 200)}`);
        if (name.endsWith('.json'))
            JSON.parse(text);
    }
    return files;
}

(async () => {
    const file = path.join(t.tmp, 'shoal.yaml'), out = path.join(t.tmp, 'a.tar.gz'), log = path.join(t.tmp, 'old.log');
    fs.writeFileSync(file, `
tracing: {keep: 32, endpoint: "http://127.0.0.1:9", sample: 0, headers: ["x-api-key: ${planted.header}"]}
models: [{name: reply, path: ${reply}}]
limits: {body: 2MiB}
keys: [{name: ${planted.client}, sha256: ${sha(planted.client_key)}}, {name: root, sha256: ${planted.hash}, admin: true}]
sensors: [{name: boiler, limits: "..90"}]
alarms: {allow: [hooks.example.org], webhooks: [{url: "https://hooks.example.org/services/${planted.hook}"}]}
flows:
  - name: letter
    text: "\${input.text}"
    output: \${said.text}
    steps:
      - {name: said, do: template, text: "${planted.template}, call ${planted.phone}"}
`);
    const server = await t.start(shoal, ['--only', '--config', file, '--log-level', 'debug']);
    const ask = (url, key, body, headers = {}) => fetch(`${server.url}${url}`, { method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
        headers: { authorization: `Bearer ${key}`, ...headers } });
    const text = `${planted.prompt}, write to ${planted.answer_mail} or ${planted.phone}, ${planted.iban}`;
    const r = await ask('/v1/chat/completions', planted.client_key, { model: 'reply', max_tokens: 4, messages: [{ role: 'user', content: text }] },
        { 'x-forwarded-for': planted.address });
    t.same(r.status, 200, `an answer: ${await r.text()}`);
    await ask(`/v1/models/${planted.answer_mail}?token=${planted.bearer}`, planted.client_key);
    await ask('/v1/chat/completions', planted.bearer, { model: 'reply', messages: [] });
    await ask('/v1/completions', planted.client_key, { model: planted.phone, prompt: text });
    await ask('/v1/chat/completions', planted.client_key, { model: 'letter', messages: [{ role: 'user', content: text }] });

    // of a running server
    const made = bundle('--server', server.url, '--key', planted.admin_key, '-o', out);
    t.same(made.status, 0, made.stderr);
    t.same(`${made.stdout}${made.stderr}`, `${out}\n`, 'it says where, and misses nothing');
    t.same(fs.statSync(out).mode & 0o777, 0o600, 'for its owner only');
    const files = unpack(out);
    const manifest = JSON.parse(files['manifest.json']), config = JSON.parse(files['config.json']);
    t.check(/^\d+\.\d+/.test(manifest.version) && manifest.missing.length === 0, files['manifest.json']);
    t.same(config['limits.body'], '2MiB', `a setting: ${files['config.json']}`);
    t.same(config['models[reply].name'], 'reply', `a name: ${files['config.json']}`);
    t.same(config['keys[2].admin'], 'true', `whose: ${files['config.json']}`);
    t.same(config['keys[2].sha256'], '(hidden)', `a secret: ${files['config.json']}`);
    t.check(/shoal_requests_total\{[^}]*model="reply"/.test(files['metrics.txt']), `figures: ${files['metrics.txt']?.slice(0, 2000)}`);
    const traces = files['traces.jsonl'].trim().split('\n').map((l) => JSON.parse(l));
    t.check(traces.some((x) => x.spans.some((s) => s.name === 'decode')), 'a trace with its spans');
    t.check(/mod=http msg=.*path=\/v1\/chat\/completions status=200/.test(files['log.txt']), `lines of the log: ${files['log.txt']}`);
    t.check(JSON.parse(files['doctor.json']).cpu !== undefined && JSON.parse(files['models.json']).models.length > 0, 'doctor and models');
    const again = bundle('--server', server.url, '-o', out);
    t.check(again.status === 1 && /File exists/.test(again.stderr), `nothing is overwritten: ${again.stderr}`);

    // without the key of an administrator: what can be had, and what is missing is said
    const less = bundle('--server', server.url, '-o', path.join(t.tmp, 'b.tar.gz'));
    t.check(less.status === 0 && /without config.json and log.txt: .*--key/.test(less.stderr), `no key: ${less.stderr}`);
    const some = unpack(path.join(t.tmp, 'b.tar.gz'));
    t.check(some['doctor.json'] && some['metrics.txt'] && !some['config.json'] && JSON.parse(some['manifest.json']).missing.length > 0, 'the rest is there');
    t.same((await server.stop()).code, 0, 'ends well');

    // without a server: files of this machine
    fs.writeFileSync(log, `${'x'.repeat(70)}\n`.repeat(20000) + `ts=1 lvl=info mod=http msg="password=${planted.log_password} from ${planted.address} Authorization: Bearer ${planted.bearer} ` +
        `to ${planted.answer_mail}"\nlast line of the log\n`);
    const alone = bundle('--server', 'http://127.0.0.1:1', '--config', file, '--log', log, '-o', path.join(t.tmp, 'c.tar.gz'));
    t.check(alone.status === 0 && /without metrics.txt/.test(alone.stderr), `no server: ${alone.status} ${alone.stderr}`);
    const own = unpack(path.join(t.tmp, 'c.tar.gz'));
    t.same(JSON.parse(own['config.json'])['limits.body'], '2MiB', 'settings of a file');
    t.check(own['log.txt'].endsWith('last line of the log\n') && own['log.txt'].startsWith('xxx') && own['log.txt'].length < 1 << 20, 'the end of a log');
    const bad = bundle('--server', 'http://127.0.0.1:1', '-o', path.join(t.tmp, 'no/such/folder.tar.gz'));
    t.check(bad.status === 1 && /No such file/.test(bad.stderr), `a folder that is not there: ${bad.stderr}`);
    t.finish();
})().catch(t.abandon);
