#!/usr/bin/env node
// The semantic cache of a route: paraphrases get the cached answer, prompts that only look alike do not; other clients,
// settings and conversations have their own. Usage: serve_similar.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const file = path.join(t.tmp, 'similar.yaml');
fs.writeFileSync(file, `models:
  - {name: embed, path: "${t.root}/models/encoder", task: embed}
  - {name: reply, path: "${t.root}/models/reply.gguf"}
routes:
  - {name: near, models: [reply], similar: 0.8}
  - {name: exact, models: [reply]}
keys:
  - {name: anna, sha256: ${sha('anna-key')}}
  - {name: ben, sha256: ${sha('ben-key')}}
`);

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    const say = async (content, { key = 'anna-key', model = 'near', before = [], ...more } = {}) => {
        const r = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` },
            body: JSON.stringify({ model, temperature: 0, max_tokens: 200, messages: [...before, { role: 'user', content }], ...more }) });
        const text = await r.text();
        t.same(r.status, 200, text);
        return { cache: r.headers.get('x-shoal-cache'), model: r.headers.get('x-shoal-model'), text,
            json: text.startsWith('{') ? JSON.parse(text) : null };
    };
    // "act: ..." is what the reply model was trained on: it stops by itself
    const base = 'act: turn_off; device: lights; room: kitchen; result: done';
    const first = await say(base);
    t.check(first.cache !== 'similar' && first.json.choices[0].finish_reason === 'stop', `the first: ${first.text}`);
    const again = await say(`please ${base}`);
    t.same(again.cache, 'similar', 'the same in other words');
    t.same(again.json.choices[0].message.content, first.json.choices[0].message.content, 'gets the same answer');
    t.same(again.model, 'reply', 'of the same model');
    const streamed = await say(`please ${base} now`, { stream: true });
    t.check(streamed.cache === 'similar' && streamed.text.includes('[DONE]'), 'as a stream too');
    for (const [other, why] of [[base.replace('off', 'on'), 'the opposite'], [base.replace('kitchen', 'bedroom'), 'another room'],
        [`${base} 5`, 'a number'], [`not ${base}`, 'a negation']])
        t.check((await say(other)).cache !== 'similar', why);
    t.check((await say(`please ${base}`, { key: 'ben-key' })).cache !== 'similar', 'another client');
    t.check((await say(`kindly ${base}`, { max_tokens: 201 })).cache !== 'similar', 'other settings');
    t.check((await say(`kindly ${base}`, { before: [{ role: 'system', content: 'x' }] })).cache !== 'similar', 'another conversation');
    t.check((await say(`kindly ${base}`, { response_format: { type: 'json_object' } })).cache !== 'similar', 'a format');
    t.check((await say(`kindly ${base}`, { model: 'exact' })).cache !== 'similar', 'a route without it');
    t.check(await t.metric(server, 'shoal_similar_total{outcome="hit"}') === 2, 'hits are counted');
    t.check(await t.metric(server, 'shoal_similar_total{outcome="refused"}') >= 1, 'and what was refused');
    await server.stop();
    t.finish();
})().catch(t.abandon);
