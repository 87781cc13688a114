#!/usr/bin/env node
// Conversations longer than the context of their model: Ollama's chat leaves out its oldest turns unless `truncate` is
// false, /v1/responses does so with `truncation: "auto"`; the answer says how many messages were left out; other
// interfaces refuse, as their originals do. Usage: serve_fit.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const file = path.join(t.tmp, 'fit.yaml');
fs.writeFileSync(file, `models:\n  - {name: reply, path: "${t.root}/models/reply.gguf", context: 256}\n`);
const talk = 'and then we went to the kitchen and turned on the lights of the living room before it was dark outside';
// n turns, a system message first
const chat = (n) => [{ role: 'system', content: 'You are brief.' }, ...Array.from({ length: n }, (_, i) => [
    { role: 'user', content: `${i} ${talk}` }, { role: 'assistant', content: `yes, ${talk}` }]).flat(), { role: 'user', content: 'and now?' }];

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    const post = async (where, body) => {
        const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify({ model: 'reply', ...body }) }), where);
        const text = await r.text();
        return { status: r.status, dropped: r.headers.get('x-shoal-dropped-messages'), text };
    };
    const options = { num_predict: 4, temperature: 0 };
    let r = await post('/api/chat', { stream: false, options, messages: chat(1) });
    t.same(`${r.status} ${r.dropped}`, '200 null', `a short one: ${r.text}`);
    for (const stream of [false, true]) {
        r = await post('/api/chat', { stream, options, messages: chat(40) });
        t.check(r.status === 200 && Number(r.dropped) >= 40 && Number(r.dropped) % 2 === 0, `Ollama leaves turns out: ${r.dropped} ${r.text.slice(0, 200)}`);
        t.check(r.text.includes('"done":true'), 'and answers to the end');
        const kept = Number(/"prompt_eval_count":(\d+)/.exec(r.text)?.[1]);
        t.check(kept > 150, `but not more than it must: ${kept} tokens are left of 256`);
    }
    r = await post('/api/chat', { stream: false, options, truncate: false, messages: chat(40) });
    t.check(r.status === 400 && /context/.test(r.text), `truncate false: ${r.status} ${r.text}`);
    r = await post('/api/chat', { stream: false, options, messages: [{ role: 'user', content: talk.repeat(80) }] });
    t.same(r.status, 400, 'one message that is too long is refused');
    const input = chat(40).slice(1);
    r = await post('/v1/responses', { max_output_tokens: 4, temperature: 0, truncation: 'auto', instructions: 'You are brief.', input });
    t.check(r.status === 200 && Number(r.dropped) >= 40, `responses, auto: ${r.dropped} ${r.text.slice(0, 200)}`);
    t.same(JSON.parse(r.text).truncation, 'auto', 'and says so');
    for (const more of [{}, { truncation: 'disabled' }]) {
        r = await post('/v1/responses', { max_output_tokens: 4, input, ...more });
        t.check(r.status === 400 && /context/.test(r.text), `responses, not asked for: ${r.text.slice(0, 200)}`);
    }
    r = await post('/v1/responses', { input: 'a', truncation: 'perhaps' });
    t.check(r.status === 400 && /truncation/.test(r.text), `a wrong value: ${r.text}`);
    r = await post('/v1/chat/completions', { max_tokens: 4, messages: chat(40) });
    t.check(r.status === 400 && /context_length_exceeded/.test(r.text), 'OpenAI refuses');
    r = await post('/v1/messages', { max_tokens: 4, messages: input });
    t.same(r.status, 400, 'Anthropic refuses');
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
