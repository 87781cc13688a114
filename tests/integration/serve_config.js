#!/usr/bin/env node
// The configuration of a running server: a changed file is reloaded automatically, the log says what changed, an
// invalid file changes nothing, and settings that need a restart are named. Usage: serve_config.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const file = `${t.tmp}/shoal.yaml`;
const model = (name, more = '') => `  - {name: ${name}, path: "${t.root}/models/reply-draft.gguf"${more}}\n`;

// As editors do it: a new file replaces the old one.
function replace(text) {
    fs.writeFileSync(`${file}.new`, text);
    fs.renameSync(`${file}.new`, file);
}

(async () => {
    fs.writeFileSync(file, `limits: {body: 1KiB}\nmodels:\n${model('one')}`);
    const server = await t.start(shoal, ['--config', file]);
    const status = async (n) => (await fetch(`${server.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify({ model: 'one', prompt: 'the', max_tokens: 1, user: 'x'.repeat(n) }) })).status;
    const names = async () => (await (await fetch(`${server.url}/v1/models`)).json()).data.map((m) => m.id).sort().join();
    t.same(await status(2000), 413, 'a body above the limit');

    replace(`limits: {body: 1MiB}\nthreads: 2\nmodels:\n${model('one')}${model('two', ', lazy: true')}`);
    await t.until(() => server.log.includes('configuration reloaded, 3 changes'), 'the changed file is read');
    for (const line of ['limits.body: 1KiB -> 1MiB', 'models[two] was added',
        'threads: (default) -> 2, takes effect after a restart'])
        await t.until(() => server.log.includes(line), `the log says ${line}`);
    await t.until(async () => await status(2000) === 200, 'the new limit'); // each loop picks it up on its own
    await t.until(async () => await names() === 'auto,one,two', 'the new model');

    // written in place, with an error
    fs.writeFileSync(file, `limits: {body: 1MiB, boddy: 5}\nmodels:\n${model('two')}`);
    await t.until(() => /keeping the old configuration: .*shoal\.yaml:1:22: unknown key 'boddy'/.test(server.log),
        'a bad file is reported');
    t.same(await names(), 'auto,one,two', 'and changes nothing');
    t.same(await status(2000), 200, 'the server goes on');

    // in the middle of being written
    fs.writeFileSync(file, '');
    server.child.kill('SIGHUP');
    await t.until(() => /keeping the old configuration: .*shoal\.yaml is empty/.test(server.log), 'an empty file is reported');
    t.same(await names(), 'auto,one,two', 'and changes nothing, either');

    replace(`watch: false\nmodels:\n${model('one')}`);
    await t.until(async () => await names() === 'auto,one', 'a good file again');
    await t.until(() => server.log.includes('models[two] was removed'), 'the log says so');
    await t.until(() => server.log.includes('watch: true -> false'), 'the log says so');
    replace(`models:\n${model('one')}${model('three')}`);
    server.child.kill('SIGHUP');
    await t.until(async () => await names() === 'auto,one,three', 'SIGHUP reads it without watch, too');

    // names that nothing stands for: the server runs, but is not ready until the file is right
    const ready = async () => {
        const r = await fetch(`${server.url}/readyz`);
        return `${r.status} ${r.status === 200 ? '' : (await r.json()).error.message.replace(/.*yaml:/, '')}`.trim();
    };
    t.same(await ready(), '200', 'ready');
    replace(`models:\n${model('one')}routes:\n  - {name: r, models: [onne], callers: [nobody]}\n`);
    server.child.kill('SIGHUP');
    await t.until(async () => await ready() === "503 4:24: routes[r].models[onne].name: there is no model 'onne' (did you mean 'one'?)",
        'an unknown model');
    replace(`models:\n${model('one')}routes:\n  - {name: r, models: [one], callers: [nobody]}\n`);
    server.child.kill('SIGHUP');
    await t.until(async () => await ready() === "503 4:39: routes[r].callers: there is no key 'nobody'", 'an unknown key');
    replace(`models:\n${model('one')}routes:\n  - {name: r, models: [one]}\n`);
    server.child.kill('SIGHUP');
    await t.until(async () => await ready() === '200', 'ready again');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
