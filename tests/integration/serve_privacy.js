#!/usr/bin/env node
// Personal data by route: masked, replaced and restored (streams, tool calls, sessions), refused; it appears neither in
// the log nor in stored data, and no model reads it. Usage: serve_privacy.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const mail = 'anna.schmidt@example.org', phone = '+49 171 2345678';
const db = path.join(t.tmp, 'sessions.db');
const file = path.join(t.tmp, 'privacy.yaml');
fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply.gguf", context: 1024}
  - {name: enc, path: "${t.root}/models/encoder"}
routes:
  - {name: hide, models: [reply, enc], privacy: {action: pseudonym}}
  - {name: blank, models: [reply, enc], privacy: {action: mask, find: [email]}}
  - {name: strict, models: [reply, enc], privacy: {action: refuse}}
  - {name: names, models: [reply, enc], privacy: {action: pseudonym, find: [person, place], model: enc}}
  - {name: nobody, models: [reply], privacy: {action: mask, find: [person], model: missing}}
  - {name: plain, models: [reply, enc], privacy: {action: none}}
privacy: {action: refuse, find: [iban]}
sessions:
  store: "sqlite:${db}"
  key_file: "${path.join(t.tmp, 'sessions.key')}"
`);

async function post(url, body, headers = {}) {
    const r = await t.within(fetch(url, { method: 'POST', body: JSON.stringify(body), headers }), url);
    const text = await r.text();
    return { status: r.status, text, json: text.startsWith('{') ? JSON.parse(text) : null };
}
const deltas = (text) => text.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
const chat = (s, model, content, more = {}) => post(`${s.url}/v1/chat/completions`,
    { model, temperature: 0, max_tokens: 8, messages: [{ role: 'user', content }], ...more });
// What the model must answer: the schema allows only one value.
const must = (value) => ({ max_tokens: 80, response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true,
    schema: { type: 'object', properties: { to: { enum: [value] } }, required: ['to'], additionalProperties: false } } } });
// The prompt as the model read it: the tokens of its log-probabilities.
async function read(s, model, prompt) {
    const r = await post(`${s.url}/v1/completions`, { model, prompt, echo: true, logprobs: 1, max_tokens: 1, temperature: 0 });
    t.same(r.status, 200, r.text);
    return { tokens: r.json.choices[0].logprobs.tokens.join('').replace('<s>', ''), text: r.json.choices[0].text.replace('<s>', '') };
}

async function marks(s) {
    let r = await read(s, 'hide', `mail ${mail} or ${phone} today`);
    t.check(/mail \[email-[0-9a-f]{8}\] or \[phone-[0-9a-f]{8}\] today/.test(r.tokens), `the model read marks: ${r.tokens}`);
    t.check(r.text.startsWith(`mail ${mail} or ${phone} today`), `the echo has the values: ${r.text}`);
    r = await read(s, 'blank', `mail ${mail} or ${phone} today`);
    t.check(r.tokens.startsWith(`mail [email] or ${phone} today`), `masked, and only what is to be found: ${r.tokens}`);
    t.check(r.text.startsWith('mail [email] or'), `a mask stays: ${r.text}`);
    r = await read(s, 'plain', `mail ${mail}`);
    t.check(r.tokens.startsWith(`mail ${mail}`), 'a route without it');
    r = await read(s, 'names', 'My name is Anna Schmidt and I live in Berlin.');
    t.check(/is \[person-[0-9a-f]{8}\] and I live in \[place-[0-9a-f]{8}\]\./.test(r.tokens), `names by the tagger: ${r.tokens}`);
    t.check(r.text.startsWith('My name is Anna Schmidt and I live in Berlin.'), `and back: ${r.text}`);
}

async function answers(s) {
    const want = JSON.stringify({ to: mail });
    let r = await chat(s, 'hide', `write to ${mail}`, must(mail));
    t.same(r.json?.choices[0].message.content.replace(/\s/g, ''), want, 'the answer has the value');
    r = await chat(s, 'hide', `write to ${mail}`, { ...must(mail), stream: true, logprobs: true });
    const list = deltas(r.text).flatMap((e) => e.choices);
    t.same(list.map((c) => c.delta.content || '').join('').replace(/\s/g, ''), want, 'and so has a streamed one');
    const tokens = list.flatMap((c) => c.logprobs?.content || []).map((x) => x.token);
    t.check(/\[email-[0-9a-f]{8}\]/.test(tokens.join('')) && tokens.length > 5, `whose mark came in pieces: ${tokens.join('|')}`);
    const tool = { type: 'function', function: { name: 'send', parameters: must(mail).response_format.json_schema.schema } };
    for (const stream of [false, true]) {
        r = await chat(s, 'hide', `write to ${mail}`, { tools: [tool], tool_choice: 'required', parallel_tool_calls: false, max_tokens: 200, stream });
        const calls = stream ? deltas(r.text).flatMap((e) => e.choices).flatMap((c) => c.delta.tool_calls || [])
            : r.json.choices[0].message.tool_calls || [];
        t.same(calls.map((c) => c.function.arguments).join('').replace(/\s/g, ''), want, `arguments of a call, stream ${stream}`);
    }
    r = await post(`${s.url}/v1/responses`, { model: 'hide', input: `write to ${mail}`, max_output_tokens: 4, temperature: 0 });
    t.same(r.status, 200, r.text);
    const kept = await fetch(`${s.url}/v1/responses/${r.json.id}`);
    t.same(kept.status, 404, 'an answer with personal data is not stored');
}

async function refusals(s) {
    const all = [['/v1/chat/completions', { messages: [{ role: 'user', content: `I am ${mail}` }] }],
        ['/v1/completions', { prompt: `I am ${mail}` }], ['/v1/embeddings', { input: ['x', mail] }],
        ['/v1/messages', { max_tokens: 4, messages: [{ role: 'user', content: mail }] }],
        ['/api/chat', { stream: false, messages: [{ role: 'user', content: mail }] }],
        ['/v1/classify', { input: `mail ${mail}` }]];
    for (const [where, body] of all) {
        const r = await post(s.url + where, { model: 'strict', ...body });
        t.same(r.status, 400, `${where}: ${r.text}`);
        t.check(r.text.includes('an e-mail address') && !r.text.includes('anna'), `${where} names the kind alone: ${r.text}`);
    }
    t.same((await chat(s, 'strict', 'turn on the lamp')).status, 200, 'a text without');
    let r = await post(`${s.url}/v1/completions`, { model: 'strict', prompt: [1, 2, 3], max_tokens: 1 });
    t.check(r.status === 400 && r.text.includes('token ids'), `token ids: ${r.text}`);
    r = await chat(s, 'reply', 'my account is DE89 3704 0044 0532 0130 00');
    t.check(r.status === 400 && r.text.includes('bank account'), `what is said for all counts for models too: ${r.text}`);
    r = await post(`${s.url}/v1/process`, { text: 'remind me to pay DE89 3704 0044 0532 0130 00' });
    t.check(r.status === 400 && r.text.includes('bank account') && !r.text.includes('DE89'), `and for commands: ${r.text}`);
    r = await chat(s, 'nobody', 'my name is Anna');
    t.check(r.status === 503 && r.text.includes('finds names'), `without the tagger nothing passes: ${r.status} ${r.text}`);
}

async function specialists(s) {
    const text = `please call ${phone} in London`;
    let r = await post(`${s.url}/v1/classify`, { model: 'hide', input: text });
    t.same(r.status, 200, r.text);
    r = await post(`${s.url}/v1/entities`, { model: 'hide', input: [text, text] });
    t.same(r.status, 200, r.text);
    const spans = (r.json?.data || []).flatMap((one) => one.spans);
    t.check(spans.length >= 2, `something is found: ${r.text}`);
    for (const e of spans)
        t.same(text.slice(e.start, e.end), e.text, `places are those of the client's text: ${r.text}`);
    const vector = async (model, input) => JSON.stringify((await post(`${s.url}/v1/embeddings`, { model, input })).json?.data[0].embedding);
    t.same(await vector('blank', `to ${mail}`), await vector('plain', 'to [email]'), 'the vector is that of the masked text');
}

async function sessions(s) {
    const say = (content, more = {}) => chat(s, 'hide', content, { session_id: 's1', ...more });
    let r = await say(`my address is ${mail}`);
    t.same(r.status, 200, r.text);
    const shown = await (await fetch(`${s.url}/v1/sessions/s1`)).json();
    t.check(/^my address is \[email-[0-9a-f]{8}\]$/.test(shown.messages[0].content), `what is kept: ${JSON.stringify(shown)}`);
    const mark = shown.messages[0].content.split(' ').pop();
    r = await say('what is my address?', must(mark)); // the model repeats a value from an earlier turn
    t.same(r.json?.choices[0].message.content.replace(/\s/g, ''), JSON.stringify({ to: mail }), 'it is put back in a later turn');
    r = await say(`is it ${mail}?`);
    const again = await (await fetch(`${s.url}/v1/sessions/s1`)).json();
    t.check(again.messages.some((m) => m.content === `is it ${mark}?`), 'and has the same mark there');
    t.check(!JSON.stringify(again).includes('anna'), 'no message of the session has it, answers neither');
}

(async () => {
    const s = await t.start(shoal, ['--config', file, '--log-level', 'debug']);
    await marks(s);
    await answers(s);
    await refusals(s);
    await specialists(s);
    await sessions(s);
    await s.stop();
    for (const word of ['anna', 'schmidt', '2345678', '171 234'])
        t.check(!s.log.toLowerCase().includes(word), `the log does not have ${word}`);
    const files = [];
    const walk = (dir) => fs.readdirSync(dir, { withFileTypes: true }).forEach((f) =>
        f.isDirectory() ? walk(path.join(dir, f.name)) : f.isFile() && files.push(path.join(dir, f.name)));
    walk(t.tmp);
    for (const f of files)
        if (f !== file && fs.statSync(f).size < 4e6)
            t.check(!fs.readFileSync(f).includes(mail), `${path.basename(f)} does not have the address`);
    t.check(files.some((f) => f.startsWith(db)), 'the session file was looked at');
    t.finish();
})().catch(t.abandon);
