#!/usr/bin/env node
// LoRA adapters beside one base, through every door: chosen by name, by number and by a preset, many in one batch, loaded
// and unloaded at run time; and nothing that is cached for one is used for another.
// Usage: serve_adapters.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { make } = require('./adapter_make.js');

const shoal = path.resolve(process.argv[2]);
const folder = (name) => path.join(t.tmp, 'adapters', name);
const one = make(folder('one'), 1), two = make(folder('two'), 2);
const file = path.join(t.tmp, 'adapters.yaml');
fs.writeFileSync(file, `models:
  - name: reply
    path: "${t.root}/models/reply.gguf"
    adapters:
      - {name: one, path: "${one}"}
      - {name: two, path: "${two}"}
      - {name: half, path: "${one}", scale: 0.5}
keys:
  - {name: boss, sha256: "${require('crypto').createHash('sha256').update('boss').digest('hex')}", admin: true}
  - {name: ana, sha256: "${require('crypto').createHash('sha256').update('ana').digest('hex')}"}
`);
const prompt = 'act: turn_off; device: lights; room: kitchen; result: done; and then the story goes on and on, ' +
    'until somebody says that it is enough';

async function main() {
    const server = await t.start(shoal, ['--only', '--config', file]);
    const call = async (method, at, body, { key = 'ana', headers = {} } = {}) => {
        const r = await fetch(server.url + at, { method, headers: { authorization: `Bearer ${key}`, ...headers },
            body: body === undefined ? undefined : JSON.stringify(body) });
        const text = await r.text();
        let json = null;
        try {
            json = JSON.parse(text);
        } catch { /* vLLM answers with text */ }
        return { status: r.status, text, json };
    };
    const post = (at, body, more) => call('POST', at, body, more);
    const ask = async (model, more = {}, how = {}) => {
        const r = await post('/v1/completions', { model, prompt, max_tokens: 24, temperature: 0, ...more }, how);
        return { ...r, said: r.json?.choices?.[0]?.text ?? r.text,
            cached: r.json?.usage?.prompt_tokens_details?.cached_tokens };
    };
    const complete = async (more) => {
        const r = await post('/completion', { prompt, n_predict: 24, temperature: 0, ...more });
        return { ...r, said: r.json?.content ?? r.text };
    };

    // listed beside the base, with its name
    const listed = (await call('GET', '/v1/models')).json.data;
    t.same(listed.filter((m) => m.parent === 'reply').map((m) => m.id).join(), 'reply:one,reply:two,reply:half', '/v1/models');
    t.same(listed.find((m) => m.id === 'reply').parent, undefined, 'a base has no parent');
    let tags; // hashes of files become known a little later
    await t.until(async () => (tags = (await call('GET', '/api/tags')).json.models).every((m) => !/^0+$/.test(m.digest)), 'identities');
    t.same(tags.filter((m) => m.details.parent_model === 'reply').length, 3, '/api/tags');
    t.same(new Set(tags.map((m) => m.digest)).size, 4, `each has an identity of its own: ${JSON.stringify(tags)}`);

    // each answers in its own way; a prefix is found by the adapter that computed it only
    const names = ['reply', 'reply:one', 'reply:two', 'reply:half'], want = {};
    for (const name of names) {
        const got = await ask(name);
        t.same(got.status, 200, `${name}: ${got.text}`);
        t.same(got.cached, 0, `${name} computes its prompt`);
        want[name] = got.said;
    }
    t.same(new Set(Object.values(want)).size, 4, `four answers: ${JSON.stringify(want)}`);
    for (const name of names)
        t.check((await ask(name, { max_tokens: 23 })).cached >= 16, `${name} finds its own prompt`);
    for (const name of names)
        t.same((await ask(name)).said, want[name], `${name}: the same question again`);

    // many in one batch: the same answers
    const many = await Promise.all(Array.from({ length: 16 }, (_, i) => ask(names[i % 4], { max_tokens: 24, seed: i,
        prompt: `${prompt}${' again'.repeat(i / 4 | 0)}` })));
    for (let i = 0; i < 16; i++) {
        const alone = await ask(names[i % 4], { max_tokens: 24, seed: 100 + i, prompt: `${prompt}${' again'.repeat(i / 4 | 0)}` });
        t.same(many[i].said, alone.said, `in a batch: ${names[i % 4]}`);
    }

    // by number, with a scale
    t.same((await call('GET', '/lora-adapters')).json.map((a) => `${a.id} ${a.name} ${a.scale}`).join(),
        '0 reply:one 0,1 reply:two 0,2 reply:half 0', '/lora-adapters');
    t.same((await complete({})).said, want.reply, 'no adapter');
    t.same((await complete({ lora: [{ id: 0, scale: 1 }] })).said, want['reply:one'], 'number 0');
    t.same((await complete({ lora: [{ id: 0, scale: 0 }, { id: 1, scale: 1 }] })).said, want['reply:two'], 'number 1');
    t.same((await complete({ lora: [{ id: 0, scale: 0.5 }] })).said, want['reply:half'], 'half of number 0');
    for (const [lora, says] of [[[{ id: 7, scale: 1 }], /3 adapters here, and none with the id 7/], ['one', /must be a list/],
        [[{ id: 0, scale: 1 }, { id: 1, scale: 1 }], /one adapter for each request/], [[{ id: 0 }], /needs an ..id/],
        [[{ id: 0.5, scale: 1 }], /needs an ..id/], [[{ id: 0, scale: 1e9 }], /needs an ..id/]]) {
        const r = await complete({ lora });
        t.check(r.status === 400 && says.test(r.text), `lora: ${JSON.stringify(lora)}: ${r.status} ${r.text}`);
    }

    // a preset, which admins choose
    t.same((await post('/lora-adapters', [{ id: 1, scale: 1 }])).status, 403, 'a preset needs an admin key');
    t.same((await post('/lora-adapters', [{ id: 1, scale: 1 }], { key: 'boss' })).json?.success, true, 'a preset');
    t.same((await call('GET', '/lora-adapters')).json[1].scale, 1, 'the preset is listed');
    t.same((await complete({})).said, want['reply:two'], 'the preset is used');
    t.same((await complete({ lora: [] })).said, want.reply, 'unless the request chooses');
    t.same((await ask('reply')).said, want.reply, 'or names a model');
    t.same((await post('/lora-adapters', [{ id: 3, scale: 1 }], { key: 'boss' })).status, 400, 'a preset that does not exist');
    t.same((await post('/lora-adapters', {}, { key: 'boss' })).status, 400, 'a preset that is no list');
    t.same((await post('/lora-adapters', [], { key: 'boss' })).status, 200, 'no preset');
    t.same((await complete({})).said, want.reply, 'no preset is used');

    // an idempotency key belongs to one adapter
    const once = { headers: { 'idempotency-key': 'only-once' } };
    t.same((await ask('reply:one', {}, once)).said, want['reply:one'], 'the first call with a key');
    const reused = await ask('reply:two', {}, once);
    t.check(reused.status >= 400 && !reused.json.choices, `the key with another adapter: ${reused.status} ${reused.text}`);

    // loaded and unloaded at run time
    make(folder('three'), 3);
    make(folder('narrow'), 4, { wide: 320 });
    const load = (body, key = 'boss') => post('/v1/load_lora_adapter', body, { key });
    const unload = (body, key = 'boss') => post('/v1/unload_lora_adapter', body, { key });
    t.same((await load({ lora_name: 'three', lora_path: folder('three') }, 'ana')).status, 403, 'loading needs an admin key');
    const loaded = await load({ lora_name: 'three', lora_path: folder('three') });
    t.check(loaded.status === 200 && /'reply:three' added successfully/.test(loaded.text), `load: ${loaded.status} ${loaded.text}`);
    const three = await ask('reply:three');
    t.check(three.status === 200 && !Object.values(want).includes(three.said), `the new adapter: ${three.text}`);
    t.same((await ask('three')).said, three.said, 'by its own name');
    t.check((await load({ lora_name: 'three', lora_path: folder('three') })).status >= 400, 'a name that exists');
    t.same((await load({ lora_name: 'four', lora_path: '/etc' })).status, 403, 'a path outside the folders of models');
    t.same((await load({ lora_path: folder('three') })).status, 400, 'without a name');
    t.same((await load({ lora_name: 'x', lora_path: folder('three'), base_model_name: 'nobody' })).status, 404, 'of no model');
    t.same((await load({ lora_name: 'narrow', lora_path: folder('narrow') })).status, 200, 'one of another base');
    let narrow; // a request that comes while it is loaded waits for it, and fails too
    await t.until(async () => (narrow = await ask('reply:narrow')).status >= 400, 'the adapter of another base is refused');
    t.check(/it belongs to another base/.test(narrow.text), `an adapter of another base: ${narrow.text}`);
    t.same((await ask('reply')).said, want.reply, 'its base answers all the same');
    t.same((await unload({ lora_name: 'reply' })).status, 404, 'a base is not unloaded like this');
    t.check(/removed successfully/.test((await unload({ lora_name: 'three' })).text), 'unload');
    t.same((await ask('reply:three')).status, 404, 'it is gone');

    // another one of the same name does not find what the first has left
    make(folder('other'), 5);
    t.same((await load({ lora_name: 'three', lora_path: folder('other') })).status, 200, 'another of the same name');
    const other = await ask('reply:three', { max_tokens: 22 });
    t.check(other.cached === 0 && other.said !== three.said, `another of the same name: ${other.text}`);

    // a stream that runs while its adapter is unloaded goes on
    const running = ask('reply:three', { max_tokens: 300, ignore_eos: true });
    const again = await unload({ lora_name: 'reply:three' });
    t.same(again.status, 200, 'unload while it may be in use');
    t.check([200, 404].includes((await running).status), 'a request that it interrupts, or not');

    t.same((await server.stop()).code, 0, 'the server stops');
    t.finish();
}

main().catch(t.abandon);
