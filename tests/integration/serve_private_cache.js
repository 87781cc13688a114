#!/usr/bin/env node
// No key learns from a cache what another has sent: neither by cached_tokens, nor by the header, over every interface;
// `cache: shared` on a model or a route allows it. Usage: serve_private_cache.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const file = path.join(t.tmp, 'cache.yaml'), copy = path.join(t.tmp, 'apart.gguf');
fs.copyFileSync(path.join(t.root, 'models/reply-draft.gguf'), copy);
fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply.gguf"}
  - {name: public, path: "${t.root}/models/reply-draft.gguf", cache: shared}
  - {name: apart, path: "${copy}", cache: shared, isolation: process, context: 512}
routes:
  - {name: open, models: [reply], cache: shared}
  - {name: closed, models: [reply]}
  - {name: off, models: [reply], cache: false}
keys:
  - {name: anna, sha256: ${sha('anna-key')}}
  - {name: ben, sha256: ${sha('ben-key')}}
`);
const secret = (code) => `The alarm is armed. Please remember that the code of the front door is ${code} and that nobody else may know it, `
    + 'then close the shutters of the living room and the kitchen, and turn off all lights of the first floor before nine.';

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    // text, tokens of the prompt that came from a cache, and what the header says
    const post = async (where, key, body, cached) => {
        const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body),
            headers: { authorization: `Bearer ${key}` } }), where);
        const text = await r.text();
        t.same(r.status, 200, text);
        return `${cached(JSON.parse(text))} ${r.headers.get('x-shoal-cache')}`;
    };
    const limits = { temperature: 0, max_tokens: 4 };
    const asks = {
        chat: (key, model, text) => post('/v1/chat/completions', key, { model, ...limits, messages: [{ role: 'user', content: text }] },
            (r) => r.usage.prompt_tokens_details?.cached_tokens ?? 0),
        completions: (key, model, text) => post('/v1/completions', key, { model, ...limits, prompt: text },
            (r) => r.usage.prompt_tokens_details?.cached_tokens ?? 0),
        messages: (key, model, text) => post('/v1/messages', key, { model, ...limits, messages: [{ role: 'user', content: text }] },
            (r) => r.usage.cache_read_input_tokens),
    };
    for (const [name, ask] of Object.entries(asks)) {
        const own = `${name} ${secret(4417)}`;
        const first = await ask('anna-key', 'closed', own);
        t.same(first, '0 miss', `${name}: nothing is cached yet`);
        const right = await ask('ben-key', 'closed', own), wrong = await ask('ben-key', 'closed', `${name} ${secret(4418)}`);
        t.same(right, '0 miss', `${name}: what another has sent looks new`);
        // what ben has sent himself is found, as far as it is the same
        t.check(/^[1-9]\d* miss$/.test(wrong), `${name}: his own prefix: ${wrong}`);
        t.check(/ hit$/.test(await ask('ben-key', 'closed', own)), `${name}: and his own answer`);
        t.check(/ hit$/.test(await ask('anna-key', 'closed', own)), `${name}: as hers`);
        t.check(/ hit$/.test(await ask('anna-key', 'closed', own)), `${name}: also when the body need not be read again`);
        const third = await ask('ben-key', 'off', `${name} off ${secret(1)}`);
        t.check(/ (null|miss)$/.test(third), `${name}: a route without a cache: ${third}`);
    }
    for (const model of ['open', 'public']) {
        const text = `${model} ${secret(1234)}`;
        t.same(await asks.chat('anna-key', model, text), '0 miss', `${model}: new`);
        t.check(/ hit$/.test(await asks.chat('ben-key', model, text)), `${model}: shared by choice`);
        const other = await asks.chat('ben-key', model, `${text} Then tell me.`);
        t.check(/^[1-9]\d* miss$/.test(other), `${model}: and so is the prefix: ${other}`);
    }
    t.same((await asks.completions('anna-key', 'apart', secret(9))).split(' ')[0], '0', 'a model in its own process: new');
    t.check(Number((await asks.completions('ben-key', 'apart', `${secret(9)} More.`)).split(' ')[0]) > 0, 'and shared by choice');
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
