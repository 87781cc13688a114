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
        responses: (key, model, text) => post('/v1/responses', key, { model, temperature: 0, max_output_tokens: 4, input: text }, (r) => r.usage.input_tokens_details.cached_tokens),
    };
    // The interfaces that do not always name a cache: everything that an answer says, without times, ids and the text itself, is the same for what
    // another has sent and for what nobody has.
    const mask = (v) => (Array.isArray(v) ? `[${v.length}]` : v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, mask(x)])) : v);
    const times = /(_ms|_at|_duration|_second|_us|^id|^created|^content|^response|^context|^generated_text|^seed|prompt)$/;
    const strip = (v) => (v && typeof v === 'object' && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).filter(([k]) => !times.test(k)).map(([k, x]) => [k, strip(x)])) : mask(v));
    const silent = {
        'Ollama chat': (text) => ['/api/chat', { model: 'closed', stream: false, options: { temperature: 0, num_predict: 4 }, messages: [{ role: 'user', content: text }] }],
        'Ollama generate': (text) => ['/api/generate', { model: 'closed', stream: false, options: { temperature: 0, num_predict: 4 }, prompt: text }],
        'llama.cpp': (text) => ['/completion', { model: 'closed', n_predict: 4, temperature: 0, prompt: text }],
        infill: (text) => ['/infill', { model: 'closed', n_predict: 4, temperature: 0, input_prefix: text, input_suffix: ' end' }],
        TGI: (text) => ['/generate', { inputs: text, parameters: { max_new_tokens: 4, details: true } }],
        'chat stream': (text) => ['/v1/chat/completions', { model: 'closed', ...limits, stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: text }] }],
        'with a session': (text) => ['/v1/chat/completions', { model: 'closed', ...limits, session_id: `s${text.length}`, messages: [{ role: 'user', content: text }] }],
    };
    for (const [name, make] of Object.entries(silent)) {
        const ask = async (key, text) => {
            const [where, body] = make(text);
            const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body), headers: { authorization: `Bearer ${key}` } }), where);
            const said = (await r.text()).split('\n').map((l) => l.replace(/^data: /, '')).filter((l) => l.startsWith('{')).map((l) => JSON.stringify(strip(JSON.parse(l))));
            const { date, 'x-request-id': id, 'server-timing': timing, ...headers } = Object.fromEntries(r.headers);
            return { status: r.status, all: `${r.status} ${JSON.stringify(headers).replace(/\d+(\.\d+)?/g, '#')} ${said.at(-1)}` };
        };
        const text = (code) => `${name} ${secret(code)}`;
        const first = await ask('anna-key', text(5501));
        if (first.status !== 200) { // the model has no such task
            t.check(first.status === 400 || first.status === 404 || first.status === 501, `${name}: ${first.all}`);
            continue;
        }
        const right = await ask('ben-key', text(5501)), other = await ask('ben-key', text(5502));
        t.check(!/"x-shoal-cache":"hit"|"cached_tokens":[1-9]|"cache_n":[1-9]|"tokens_cached":[1-9]\d*.*"hit"/.test(right.all), `${name}: what another has sent looks new: ${right.all}`);
        t.same(right.all, first.all, `${name}: and as it looked to the first`);
        t.check(other.status === 200, `${name}: another text`);
    }
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
