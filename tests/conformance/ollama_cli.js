#!/usr/bin/env node
// Ollama's own command line and its Go package against `shoal serve` with `admin: loopback`: counts of what works, by command.
// Usage: ollama_cli.js SHOAL OLLAMA PACKAGE      (PACKAGE: ollama_go/main.go, built)
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { start: startRegistry } = require('./registry_start.js');

const [shoal, cli, calls] = process.argv.slice(2).map((p) => path.resolve(p));
const file = path.join(t.root, 'models/reply-draft.gguf');
const counts = {};

// Runs a command; resolves with its exit code and what it wrote.
function run(server, args, input = '', program = cli) {
    return new Promise((done) => {
        const child = spawn(program, args, { env: { ...process.env, OLLAMA_HOST: server.url, HOME: t.tmp, NO_COLOR: '1' }, stdio: ['pipe', 'pipe', 'pipe'] });
        const timer = setTimeout(() => child.kill('SIGKILL'), 60000); // only ends a test that hangs
        let out = '';
        for (const s of [child.stdout, child.stderr])
            s.on('data', (x) => { out += x; });
        child.on('close', (code) => { clearTimeout(timer); done({ code, out }); });
        child.stdin.end(input);
    });
}

function count(command, ok, what) {
    const c = counts[command] ??= { good: 0, all: 0 };
    c.all++;
    c.good += ok ? 1 : 0;
    t.check(ok, `${command}: ${what}`);
}

(async () => {
    const registry = await startRegistry('docker-registry');
    const config = path.join(t.tmp, 'cli.yaml');
    fs.writeFileSync(config, `admin: loopback\nollama: {dir: ${t.tmp}/models, registry: "${registry.url}"}\nmodels: [{name: reply, path: ${file}}, {name: enc, path: ${t.root}/models/encoder}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const o = (...args) => run(server, args);
    let r = await o('--version');
    count('version', r.code === 0 && /version is/.test(r.out), r.out);
    r = await o('list');
    count('list', r.code === 0 && /^reply/m.test(r.out), r.out);
    r = await o('show', 'reply');
    count('show', r.code === 0 && /Model/.test(r.out), r.out);
    r = await o('show', 'nobody');
    count('show', r.code !== 0 && /not found/i.test(r.out), `an unknown one: ${r.out}`);
    r = await o('run', 'reply', 'act: turn_off; device: lights; room: kitchen; result: done');
    count('run', r.code === 0 && r.out.trim().length > 5, r.out);
    r = await run(server, ['run', 'reply'], 'act: turn_off; device: lights; room: kitchen; result: done\n');
    count('run', r.code === 0 && r.out.trim().length > 5, `from a pipe: ${r.out}`);
    r = await o('run', '--format', 'json', 'reply', 'a lamp');
    count('run', r.code === 0 && r.out.includes('{'), `JSON: ${r.out}`);
    r = await o('ps');
    count('ps', r.code === 0 && /reply/.test(r.out), r.out);
    r = await o('cp', 'reply', 'other');
    count('cp', r.code === 0 && /copied/.test(r.out), r.out);
    const modelfile = path.join(t.tmp, 'Modelfile');
    fs.writeFileSync(modelfile, 'FROM reply\nSYSTEM Be polite.\nPARAMETER num_predict 3\n' +
        'TEMPLATE """{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n<|im_start|>assistant\n{{ .Response }}"""\n');
    r = await o('create', 'me/polite', '-f', modelfile);
    count('create', r.code === 0 && /success/.test(r.out), r.out);
    fs.writeFileSync(modelfile, `FROM ${file}\n`);
    r = await o('create', 'me/file', '-f', modelfile);
    count('create', r.code === 0 && /success/.test(r.out), `from a file: ${r.out}`);
    r = await o('run', 'me/polite', 'hello');
    count('run', r.code === 0, `what was made: ${r.out}`);
    r = await o('show', '--modelfile', 'me/polite');
    count('show', r.code === 0 && /Be polite/.test(r.out) && /num_predict/.test(r.out), `Modelfile: ${r.out}`);
    r = await o('push', 'me/polite');
    count('push', r.code === 0 && /You can find your model at/.test(r.out), r.out);
    r = await o('rm', 'me/polite', 'other');
    count('rm', r.code === 0 && /deleted/.test(r.out), r.out);
    r = await o('pull', 'me/polite');
    count('pull', r.code === 0 && /success/.test(r.out), r.out);
    r = await o('pull', 'me/nothing');
    count('pull', r.code !== 0, `an unknown one: ${r.out}`);
    r = await o('stop', 'reply');
    count('stop', r.code === 0, r.out);
    r = await o('list');
    count('list', r.code === 0 && /^me\/polite/m.test(r.out) && !/^other/m.test(r.out), `at the end: ${r.out}`);
    for (const [command, c] of Object.entries(counts))
        console.log(`${command.padEnd(8)} ${c.good} of ${c.all}`);
    const all = Object.values(counts);
    console.log(`ollama CLI: ${all.reduce((n, c) => n + c.good, 0)} of ${all.reduce((n, c) => n + c.all, 0)}`);
    r = await run(server, ['reply', 'enc', file], '', calls);
    console.log(r.out);
    t.check(r.code === 0, 'the Go package');
    await server.stop();
    registry.child.kill('SIGTERM');
    t.finish();
})().catch(t.abandon);
