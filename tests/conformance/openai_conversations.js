#!/usr/bin/env node
// /v1/conversations with the official OpenAI client: made, changed, listed, continued by responses, forgotten; of one key alone, and over a restart.
// Usage: openai_conversations.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
const ask = 'act: turn_off; device: lights; room: kitchen; result: done';
const base = { model: 'reply', temperature: 0 };
const status = async (promise, what) => (await t.fails(promise, what)).status;
const gather = async (list) => {
    const all = [];
    for await (const one of list)
        all.push(one);
    return all;
};
const texts = (items) => items.map((i) => i.content?.[0].text ?? i.output ?? i.name).join(' | ');

async function made(ai) {
    const empty = await ai.conversations.create();
    t.check(empty.id.startsWith('conv_') && empty.object === 'conversation' && !('items' in empty), 'an empty one');
    t.same(JSON.stringify(empty.metadata), '{}', 'without metadata');
    const c = await ai.conversations.create({ metadata: { topic: 'lights' }, items: [{ role: 'system', content: 'Be brief.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: ask }] }, { role: 'assistant', content: 'Done.' }] });
    const back = await ai.conversations.retrieve(c.id);
    t.same(JSON.stringify(back), JSON.stringify(c), 'retrieve');
    t.same((await ai.conversations.update(c.id, { metadata: { topic: 'blinds' } })).metadata.topic, 'blinds', 'update');
    t.same((await ai.conversations.retrieve(c.id)).metadata.topic, 'blinds', 'is kept');
    const items = await gather(ai.conversations.items.list(c.id, { order: 'asc' }));
    t.same(texts(items), `Be brief. | ${ask} | Done.`, 'its items');
    t.same(items.map((i) => `${i.type} ${i.role} ${i.status} ${i.content[0].type}`).join(', '),
        'message system completed input_text, message user completed input_text, message assistant completed output_text', 'their shapes');
    t.same(new Set(items.map((i) => i.id)).size, 3, 'each has an id');
    t.same(texts(await gather(ai.conversations.items.list(c.id))), `Done. | ${ask} | Be brief.`, 'the last first');
    const page = await ai.conversations.items.list(c.id, { limit: 2, order: 'asc' });
    t.same(`${page.data.length} ${page.has_more} ${page.last_id}`, `2 true ${items[1].id}`, 'a page');
    t.same(texts(await gather(ai.conversations.items.list(c.id, { limit: 1 }))), `Done. | ${ask} | Be brief.`, 'page by page');
    t.same((await ai.conversations.items.retrieve(items[1].id, { conversation_id: c.id })).content[0].text, ask, 'one item');
    const more = await ai.conversations.items.create(c.id, { items: [{ role: 'user', content: 'again' },
        { type: 'function_call', call_id: 'c1', name: 'lamp', arguments: '{}' }, { type: 'function_call_output', call_id: 'c1', output: 'on' }] });
    t.same(`${more.object} ${more.data.length} ${more.first_id === more.data[0].id}`, 'list 3 true', 'more items');
    await ai.conversations.items.delete(items[0].id, { conversation_id: c.id });
    t.same(texts(await gather(ai.conversations.items.list(c.id, { order: 'asc' }))), `${ask} | Done. | again | lamp | on`, 'one less');
    return c.id;
}

async function continued(ai) {
    const c = await ai.conversations.create({ items: [{ role: 'user', content: ask }, { role: 'assistant', content: 'Done.' }] });
    const r = await ai.responses.create({ ...base, input: 'again', conversation: c.id, instructions: 'Be brief.' });
    t.same(r.conversation?.id, c.id, 'the response says so');
    const chat = await ai.chat.completions.create({ ...base, messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: ask },
        { role: 'assistant', content: 'Done.' }, { role: 'user', content: 'again' }] });
    t.same(`${r.usage.input_tokens} ${r.output_text}`, `${chat.usage.prompt_tokens} ${chat.choices[0].message.content}`, 'the model sees its items');
    t.same(texts(await gather(ai.conversations.items.list(c.id, { order: 'asc' }))), `${ask} | Done. | again | ${r.output_text}`,
        'input and answer are added, instructions are not');
    let streamed = '';
    for await (const e of await ai.responses.create({ ...base, input: [{ role: 'user', content: 'once more' }], conversation: { id: c.id }, stream: true, store: false }))
        streamed += e.type === 'response.output_text.delta' ? e.delta : '';
    t.same(texts(await gather(ai.conversations.items.list(c.id, { order: 'asc' }))),
        `${ask} | Done. | again | ${r.output_text} | once more | ${streamed}`, 'of a stream too, stored or not');
    const later = await ai.responses.create({ ...base, input: 'later', conversation: c.id, background: true });
    await t.until(async () => (await gather(ai.conversations.items.list(c.id))).length === 8, 'in the background too');
    t.same((await ai.responses.retrieve(later.id)).conversation?.id, c.id, 'and says so');
    // many at once: none is lost
    await Promise.all(Array.from({ length: 8 }, (_, i) => ai.responses.create({ ...base, input: `no ${i}`, max_output_tokens: 1, conversation: c.id })));
    t.same((await gather(ai.conversations.items.list(c.id, { limit: 100 }))).length, 24, 'several at once');
    return c.id;
}

async function refused(ai, other, id) {
    for (const [what, call] of Object.entries({ retrieve: () => other.conversations.retrieve(id), update: () => other.conversations.update(id, { metadata: {} }),
        delete: () => other.conversations.delete(id), items: () => other.conversations.items.list(id), add: () => other.conversations.items.create(id, { items: [{ role: 'user', content: 'x' }] }),
        respond: () => other.responses.create({ ...base, input: 'x', conversation: id }) }))
        t.same(await status(call(), what), 404, `another key: ${what}`);
    t.same(await status(ai.responses.retrieve(id), 'as a response'), 404, 'a conversation is no response');
    t.same(await status(ai.responses.delete(id), 'as a response'), 404, 'which could be deleted');
    t.same(await status(ai.responses.create({ ...base, input: 'x', previous_response_id: id }), 'as a response'), 404, 'or continued');
    const r = await ai.responses.create({ ...base, input: ask });
    t.same(await status(ai.conversations.retrieve(r.id), 'a response'), 404, 'a response is no conversation');
    t.same(await status(ai.responses.create({ ...base, input: 'x', previous_response_id: r.id, conversation: id }), 'both'), 400, 'not both');
    t.same(await status(ai.responses.create({ ...base, input: 'x', conversation: 5 }), 'a number'), 400, 'a number');
    t.same(await status(ai.responses.create({ ...base, input: 'x', conversation: 'conv_none' }), 'none'), 404, 'unknown');
    for (const bad of [{ items: 5 }, { items: [5] }, { items: [{ type: 'image' }] }, { metadata: 5 }, { metadata: { a: 'x'.repeat(20000) } }])
        t.same(await status(ai.conversations.create(bad), JSON.stringify(bad).slice(0, 60)), 400, JSON.stringify(bad).slice(0, 60));
    t.same(await status(ai.conversations.items.create(id, { items: [] }), 'no items'), 400, 'no items');
    t.same(await status(ai.conversations.items.create(id, { items: [{ role: 'user', content: 'x'.repeat(200000) }] }), 'too much'), 413, 'too much for the store');
    t.same(await status(ai.conversations.items.list(id, { limit: 0 }), 'limit'), 400, 'no limit');
    t.same(await status(ai.conversations.items.list(id, { after: 'msg_none' }), 'after'), 404, 'after nothing');
    t.same(await status(ai.conversations.items.retrieve('msg_none', { conversation_id: id }), 'item'), 404, 'no such item');
    t.same(await status(ai.conversations.items.delete('msg_none', { conversation_id: id }), 'item'), 404, 'to delete');
}

(async () => {
    const config = path.join(t.tmp, 'conversations.yaml'), sha = (key) => require('crypto').createHash('sha256').update(key).digest('hex');
    fs.writeFileSync(config, `models: [{name: reply, path: ${t.root}/models/reply-draft.gguf}]
responses: {bytes: 128KiB, ttl: 1h, file: ${t.tmp}/responses.jsonl}
keys: [{name: a, sha256: ${sha('key-a')}}, {name: b, sha256: ${sha('key-b')}}]
`);
    const client = (server, apiKey) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
    let server = await t.start(shoal, ['--config', config]);
    let ai = client(server, 'key-a');
    const first = await made(ai), second = await continued(ai);
    await refused(ai, client(server, 'key-b'), second);
    const before = texts(await gather(ai.conversations.items.list(first)));
    t.same((await server.stop()).code, 0, 'exit');
    server = await t.start(shoal, ['--config', config]);
    ai = client(server, 'key-a');
    t.same(texts(await gather(ai.conversations.items.list(first))), before, 'after a restart');
    t.same((await ai.responses.create({ ...base, input: 'go on', conversation: second })).conversation.id, second, 'it goes on');
    t.same(JSON.stringify(await ai.conversations.delete(first)), JSON.stringify({ id: first, object: 'conversation.deleted', deleted: true }), 'delete');
    t.same(await status(ai.conversations.retrieve(first), 'deleted'), 404, 'deleted');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
