#!/usr/bin/env node
// What one key can learn of another's: a route that it may not use looks like a name that nobody has, through every door; and /tokenize is under
// the same rules as other calls: personal data, tokens of the day. Usage: serve_keys.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const file = path.join(t.tmp, 'keys.yaml');
fs.writeFileSync(file, `quota: {file: "${t.tmp}/quota"}
models:
  - {name: reply, path: "${t.root}/models/reply.gguf"}
  - {name: draft, path: "${t.root}/models/reply-draft.gguf"}
  - {name: embed, path: "${t.root}/models/encoder", labels: router}
flows:
  - {name: echo, steps: [{name: a, do: template, text: "yes"}], output: "\${a}"}
routes:
  - {name: hers, models: [reply], callers: [anna], privacy: {action: refuse}}
  - {name: flow1, flow: echo, callers: [anna]}
  - {name: means, average: {models: [reply, draft]}, callers: [anna]}
  - {name: mine, models: [reply], privacy: {action: mask}}
keys:
  - {name: anna, sha256: ${sha('anna-key')}}
  - {name: ben, sha256: ${sha('ben-key')}}
  - {name: cid, sha256: ${sha('cid-key')}, tokens_per_day: 60}
`);

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    const send = async (key, where, body) => {
        const r = await t.within(fetch(server.url + where, { method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
            headers: { authorization: `Bearer ${key}` } }), where);
        const { date, 'x-request-id': id, 'server-timing': timing, ...headers } = Object.fromEntries(r.headers);
        return { status: r.status, headers: JSON.stringify(headers), text: await r.text() };
    };
    const text = 'Write to anna.smith@example.com now.', messages = [{ role: 'user', content: text }];
    const doors = {
        '/v1/chat/completions': (model) => ({ model, messages }),
        '/v1/chat/completions/input_tokens': (model) => ({ model, messages }),
        '/v1/completions': (model) => ({ model, prompt: text }),
        '/v1/messages': (model) => ({ model, messages, max_tokens: 4 }),
        '/v1/messages/count_tokens': (model) => ({ model, messages }),
        '/v1/responses': (model) => ({ model, input: text }),
        '/v1/embeddings': (model) => ({ model, input: text }),
        '/v1/classify': (model) => ({ model, input: text }),
        '/v1/rerank': (model) => ({ model, query: text, documents: ['a', 'b'] }),
        '/v1/summarize': (model) => ({ model, input: text }),
        '/v1/process': (model) => ({ model, text }),
        '/v1/route': (model) => ({ model, text }),
        '/api/chat': (model) => ({ model, messages }),
        '/api/generate': (model) => ({ model, prompt: text }),
        '/api/embed': (model) => ({ model, input: text }),
        '/api/show': (model) => ({ model }),
        '/completion': (model) => ({ model, prompt: text }),
        '/apply-template': (model) => ({ model, messages }),
        '/tokenize': (model) => ({ model, text }),
        '/detokenize': (model) => ({ model, tokens: [5, 6] }),
        '/v1/audio/speech': (model) => ({ model, input: text, voice: 'x' }),
        '/v1/models/NAME': null,
        '/v1/models/NAME/card': null,
    };
    for (const [where, make] of Object.entries(doors))
        for (const [name, unknown] of [['hers', 'herz'], ['flow1', 'flow2'], ['means', 'meanz']]) {
            const ask = async (model) => {
                const r = await send('ben-key', where.replace('NAME', model), make && make(model));
                return JSON.stringify(r).replaceAll(model, 'NAME').replace(/req_[0-9a-f]+/, '');
            };
            const seen = await ask(name);
            t.same(seen, await ask(unknown), `${where}: ${name} as an unknown name`);
            t.check(/"status":4/.test(seen), `${where}: refused: ${seen}`);
        }
    for (const where of ['/v1/models', '/api/tags', '/api/ps', '/models', '/props', '/health', '/v1/slots'])
        t.check(!(await send('ben-key', where)).text.includes('means'), `${where}: another's average`);
    t.same((await send('anna-key', '/v1/chat/completions', { model: 'means', messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 })).status, 200, 'her average');
    t.check((await send('anna-key', '/api/tags')).text.includes('means'), 'listed for her');
    t.same((await send('anna-key', '/v1/chat/completions', { model: 'hers', messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 })).status, 200, 'hers is hers');

    // personal data in /tokenize
    const plain = JSON.parse((await send('ben-key', '/tokenize', { model: 'reply', text, with_pieces: true })).text).tokens.map((x) => x.piece).join('');
    t.check(plain.includes('smith'), `without a policy: ${plain}`);
    const masked = JSON.parse((await send('ben-key', '/tokenize', { model: 'mine', text, with_pieces: true })).text).tokens.map((x) => x.piece).join('');
    t.check(!masked.includes('smith') && masked.includes('Write to'), `masked: ${masked}`);
    const refused = await send('anna-key', '/tokenize', { model: 'hers', text });
    t.check(refused.status === 400 && /personal_data/.test(refused.text), `refused: ${refused.text}`);
    const ids = await send('anna-key', '/detokenize', { model: 'hers', tokens: [5, 6] });
    t.check(ids.status === 400 && /cannot be searched/.test(ids.text), `ids: ${ids.text}`);

    // tokens of the day
    let last, n = 0;
    do
        last = await send('cid-key', '/tokenize', { model: 'reply', text: `${text} ${n}` });
    while (last.status === 200 && ++n < 30);
    t.same(last.status, 429, `tokens are counted: ${last.text}`);
    t.check(n > 1 && n < 10, `once each: ${n} texts`);
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
