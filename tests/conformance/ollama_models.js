#!/usr/bin/env node
// Models of Ollama's interface with its own client: create, copy, delete, blobs, pull, push, show, ps; and what such
// models answer.  Usage: ollama_models.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');
const sha = (x) => crypto.createHash('sha256').update(x).digest('hex');
const ask = 'act: turn_off; device: lights; room: kitchen; result: done';
const options = { temperature: 0, repeat_penalty: 1 };
const gguf = path.join(t.root, 'models/reply-draft.gguf');
const registry = path.join(t.tmp, 'registry'), config = path.join(t.tmp, 'ollama.yaml'), dir = path.join(t.tmp, 'made');

function write_config(more = '') {
    fs.writeFileSync(config, `pack: false
models:
  - {name: reply, path: ${gguf}}
  - {name: enc, path: ${t.root}/models/encoder}
ollama: {dir: ${dir}${more}}
keys: [{name: boss, sha256: ${sha('boss')}, admin: true}, {name: app, sha256: ${sha('app')}}]
`);
}

function client(server, key) {
    return new Ollama({ host: server.url, headers: { Authorization: `Bearer ${key}` } });
}
// Ollama's client sends no paths of its own machine.
async function create(server, body) {
    const r = await t.within(fetch(`${server.url}/api/create`, { method: 'POST', headers: { authorization: 'Bearer boss' },
        body: JSON.stringify({ stream: false, ...body }) }), 'create');
    return { code: r.status, ...await r.json() };
}
const names = async (o) => (await o.list()).models.map((m) => m.name).sort().join();
const status = async (promise, what) => (await t.fails(promise, what)).status_code;

async function models(server, o) {
    const plain = await o.generate({ model: 'reply', prompt: ask, options });
    const seen = [];
    for await (const part of await o.create({ model: 'butler', from: 'reply', system: 'You are a butler.', stream: true,
        parameters: { temperature: 0, repeat_penalty: 1, num_predict: 3, stop: ['!'] } }))
        seen.push(part.status);
    t.same(seen.at(-1), 'success', 'create, streamed');
    const made = await o.generate({ model: 'butler', prompt: ask });
    t.same(made.eval_count, 3, 'its parameters');
    t.check(made.prompt_eval_count > plain.prompt_eval_count, 'its system message');
    const chat = await o.chat({ model: 'butler', messages: [{ role: 'user', content: ask }] });
    t.same(chat.prompt_eval_count, made.prompt_eval_count, 'in a chat too');
    const own = await o.generate({ model: 'butler', prompt: ask, system: 'No.', options: { num_predict: 2 } });
    t.same(own.eval_count, 2, 'a request\'s options go first');
    t.check(own.prompt_eval_count < made.prompt_eval_count, 'and its system message');
    const openai = await (await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: 'Bearer app' },
        body: JSON.stringify({ model: 'butler:latest', temperature: 0, messages: [{ role: 'user', content: ask }] }) })).json();
    t.same(openai.usage.prompt_tokens, made.prompt_eval_count, 'over OpenAI\'s interface');
    const shown = await o.show({ model: 'butler:latest' });
    t.check(shown.system === 'You are a butler.' && /FROM reply/.test(shown.modelfile), 'show');
    t.check(/num_predict +3/.test(shown.parameters) && /stop +"!"/.test(shown.parameters), `parameters: ${shown.parameters}`);
    t.same(shown.details.quantization_level, (await o.show({ model: 'reply' })).details.quantization_level, 'quantization level');
    t.check(shown.details.quantization_level.length > 1, `quantization: ${shown.details.quantization_level}`);
    const template = '{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]';
    await o.create({ model: 'plain', from: 'reply', template, stream: false });
    const rendered = await (await fetch(`${server.url}/api/generate`, { method: 'POST', headers: { authorization: 'Bearer app' },
        body: JSON.stringify({ model: 'plain', prompt: 'hi', stream: false, options: { ...options, num_predict: 1 } }) })).json();
    const by_hand = await o.generate({ model: 'reply', raw: true, prompt: '[user] hi\n[assistant]', options: { ...options, num_predict: 1 } });
    t.same(rendered.prompt_eval_count, by_hand.prompt_eval_count, 'its template');
    const once = await o.generate({ model: 'reply', prompt: 'hi', template, options: { ...options, num_predict: 1 } });
    t.same(once.prompt_eval_count, by_hand.prompt_eval_count, 'a template for one request');
    const go = '{{ if .System }}[system] {{ .System }}\n{{ end }}{{ if .Prompt }}[user] {{ .Prompt }}\n{{ end }}[assistant]{{ .Response }}';
    const gone = await o.generate({ model: 'reply', prompt: 'hi', template: go, options: { ...options, num_predict: 1 } });
    t.same(gone.prompt_eval_count, by_hand.prompt_eval_count, 'one of Go');
    await o.create({ model: 'goer', from: 'reply', template: go, stream: false });
    t.same((await o.generate({ model: 'goer', prompt: 'hi', options: { ...options, num_predict: 1 } })).prompt_eval_count, by_hand.prompt_eval_count,
        'a model with one of Go');
    await o.delete({ model: 'goer' });
    await o.copy({ source: 'butler', destination: 'team/butler:2' });
    t.same((await o.generate({ model: 'team/butler:2', prompt: ask })).eval_count, 3, 'copy');
    t.same(await names(o), 'butler,enc,plain,reply,team/butler:2', 'list');
    // a model derived from a model
    await o.create({ model: 'terse', from: 'butler', parameters: { num_predict: 1 } });
    const terse = await o.generate({ model: 'terse', prompt: ask, options });
    t.same(`${terse.eval_count} ${terse.prompt_eval_count}`, `1 ${made.prompt_eval_count}`, 'what it does not say is inherited');
    await o.delete({ model: 'butler' });
    t.same(await status(o.generate({ model: 'butler', prompt: ask }), 'deleted'), 404, 'delete');
    t.same((await o.generate({ model: 'team/butler:2', prompt: ask })).eval_count, 3, 'the copy stays');
    for (const [act, want, what] of [[() => o.create({ model: 'x', from: 'nobody' }), 404, 'from nobody'],
        [() => o.create({ model: 'reply', from: 'enc' }), 400, 'a name of the configuration'], [() => o.create({ model: '../x', from: 'reply' }), 400, 'a path as name'],
        [() => o.create({ model: 'x' }), 400, 'from nothing'],
        [() => o.create({ model: 'x', from: 'reply', template: '{{ range .Messages }}{{ .Content }}{{ end }}' }), 400, 'a Go template of messages'],
        [() => o.copy({ source: 'nobody', destination: 'x' }), 404, 'copy of nobody'], [() => o.delete({ model: 'nobody' }), 404, 'delete nobody'],
        [() => o.copy({ source: 'reply', destination: 'enc' }), 400, 'copy over the configuration']])
        t.same(await status(act(), what), want, what);
    t.same((await create(server, { model: 'x', from: '/etc/passwd' })).code, 403, 'a file elsewhere');
    t.same((await create(server, { model: 'file', from: gguf })).code, 200, 'create of a file');
    t.same((await o.generate({ model: 'file', prompt: ask, options })).response, plain.response, 'from a file');
}

async function blobs(server, o) {
    const bytes = fs.readFileSync(gguf), digest = `sha256:${sha(bytes)}`, url = `${server.url}/api/blobs/`;
    const call = (method, name, body) => t.within(fetch(url + name, { method, body, headers: { authorization: 'Bearer boss' } }), name);
    t.same((await call('HEAD', digest)).status, 404, 'not here yet');
    t.same((await call('POST', digest, bytes.subarray(1))).status, 400, 'other bytes');
    t.same((await call('POST', digest, bytes)).status, 201, 'upload');
    t.same((await call('HEAD', digest)).status, 200, 'here');
    t.same((await call('POST', 'sha256:../../x', 'x')).status, 400, 'no digest');
    await o.create({ model: 'sent', files: { 'model.gguf': digest } });
    t.same((await o.generate({ model: 'sent', prompt: ask, options })).response,
        (await o.generate({ model: 'reply', prompt: ask, options })).response, 'a model of a blob');
    t.same(await status(o.create({ model: 'x', files: { 'a.gguf': `sha256:${'0'.repeat(64)}` } }), 'no blob'), 404, 'a blob that is not here');
    const junk = Buffer.from('not a model'), junk_digest = `sha256:${sha(junk)}`;
    await call('POST', junk_digest, junk);
    const e = await t.fails(o.create({ model: 'junk', files: { 'a.gguf': junk_digest } }), 'no model');
    t.check(e.status_code >= 400 && !(await names(o)).includes('junk'), `a blob that is no model: ${e.message}`);
    await o.delete({ model: 'sent' });
    t.same((await call('HEAD', digest)).status, 404, 'the blob goes with its last model');
}

async function registries(o) {
    const bytes = fs.readFileSync(gguf);
    fs.mkdirSync(`${registry}/library`, { recursive: true });
    fs.writeFileSync(`${registry}/tiny-1b.gguf`, bytes);
    const seen = [];
    for await (const part of await o.pull({ model: 'tiny:1b', stream: true }))
        seen.push(part);
    t.same(seen.at(-1).status, 'success', 'pull');
    t.check(seen.some((p) => p.total === bytes.length && p.completed === p.total && p.digest === `sha256:${sha(bytes)}`), 'its bytes');
    t.check((await o.generate({ model: 'tiny:1b', prompt: ask, options })).eval_count > 0, 'it answers');
    t.same((await o.pull({ model: 'reply' })).status, 'success', 'what is here is not fetched again');
    t.same(await status(o.pull({ model: 'nobody' }), 'unknown'), 404, 'not in the registry');
    t.same((await o.push({ model: 'reply' })).status, 'success', 'push');
    t.check(fs.readFileSync(`${registry}/reply.gguf`).equals(bytes), 'the same bytes');
    t.same(await status(o.push({ model: 'nobody' }), 'unknown'), 404, 'push of nobody');
}

// Who may change models, and what keep_alive does.
async function rights(server, boss, app) {
    for (const [act, what] of [[() => app.create({ model: 'x', from: 'reply' }), 'create'], [() => app.copy({ source: 'reply', destination: 'x' }), 'copy'],
        [() => app.delete({ model: 'reply' }), 'delete'], [() => app.pull({ model: 'x' }), 'pull'], [() => app.push({ model: 'reply' }), 'push'],
        [() => app.generate({ model: 'reply', prompt: '', keep_alive: 0 }), 'unload']])
        t.same(await status(act(), what), 403, `${what} needs an admin key`);
    const loaded = await app.generate({ model: 'reply', prompt: '' });
    t.same(`${loaded.done_reason} ${loaded.response}`, 'load ', 'an empty prompt loads the model');
    t.same((await app.chat({ model: 'reply', messages: [] })).done_reason, 'load', 'and so does an empty chat');
    const expires = async (name) => new Date((await app.ps()).models.find((m) => m.name === name)?.expires_at);
    t.check((await expires('reply')).getFullYear() >= 2300, 'a model of the configuration stays');
    await boss.copy({ source: 'reply', destination: 'guest' });
    await create(server, { model: 'other', from: `${t.root}/models/reply.gguf` });
    await boss.generate({ model: 'other', prompt: ask, keep_alive: '10m', options: { num_predict: 1 } });
    const left = (await expires('other') - Date.now()) / 1000;
    t.check(left > 400 && left < 610, `keep_alive: ${left} s`);
    t.same(await status(boss.generate({ model: 'other', prompt: ask, keep_alive: 'soon' }), 'keep_alive'), 400, 'no duration');
    t.same((await boss.generate({ model: 'other', prompt: '', keep_alive: 0 })).done_reason, 'unload', 'unload');
    await t.until(async () => !(await app.ps()).models.some((m) => m.name === 'other'), 'unloaded');
}

async function context(o) {
    const first = await o.generate({ model: 'reply', prompt: ask, options });
    t.check(Array.isArray(first.context) && first.context.every(Number.isInteger), 'a context');
    const next = await o.generate({ model: 'reply', prompt: 'again', context: first.context, options });
    const chat = await o.chat({ model: 'reply', options, messages: [{ role: 'user', content: ask },
        { role: 'assistant', content: first.response }, { role: 'user', content: 'again' }] });
    t.same(`${next.prompt_eval_count} ${next.response}`, `${chat.prompt_eval_count} ${chat.message.content}`, 'goes on from it');
    let last;
    for await (const part of await o.generate({ model: 'reply', prompt: 'on', context: next.context, options, stream: true }))
        last = part;
    t.check(last.context.length > next.context.length, 'streamed');
    for (const bad of [[1, 2, 3], [341041, 100, 5], ['a']])
        t.same(await status(o.generate({ model: 'reply', prompt: 'x', context: bad }), 'context'), 400, JSON.stringify(bad));
    const likely = await o.generate({ model: 'reply', prompt: ask, options, logprobs: true, top_logprobs: 2 });
    t.same(`${likely.logprobs.length} ${likely.logprobs[0].top_logprobs.length}`, `${likely.eval_count} 2`, 'logprobs');
}

(async () => {
    write_config();
    let server = await t.start(shoal, ['--config', config], { all: true });
    const boss = client(server, 'boss'), app = client(server, 'app');
    const unknown = await t.fails(boss.pull({ model: 'tiny:1b' }), 'no registry, no recipe');
    t.check(unknown.status_code === 404 && /no recipe for tiny:1b.*smollm2/.test(unknown.message), `no recipe: ${unknown.message}`);
    const inside = await t.fails(boss.pull({ model: 'localhost:5000/tiny:1b' }), 'a registry that is not configured');
    t.check(inside.status_code === 400 && /store\.sources/.test(inside.message), `not allowed: ${inside.message}`);
    await models(server, boss);
    await blobs(server, boss);
    await context(app);
    t.same((await server.stop()).code, 0, 'exit');
    // created models survive a restart
    write_config(`, registry: ${registry}`);
    server = await t.start(shoal, ['--config', config], { all: true });
    const again = client(server, 'boss');
    t.same(await names(again), 'enc,file,plain,reply,team/butler:2,terse', 'after a restart');
    t.same((await again.generate({ model: 'team/butler:2', prompt: ask })).eval_count, 3, 'with its parameters');
    await registries(again);
    await rights(server, again, client(server, 'app'));
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
