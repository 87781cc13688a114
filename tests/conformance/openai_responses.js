#!/usr/bin/env node
// /v1/responses with the official OpenAI client: whole, streamed, with functions, and conversations by id.
// Usage: openai_responses.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
const ask = 'act: turn_off; device: lights; room: kitchen; result: done';
const chatml = fs.readFileSync(path.join(t.root, 'tests/data/chat_templates/smollm2.jinja'), 'utf8');
const weather = { city: 'Paris', days: 3 };
const models = {
    says: 'It is 20 degrees.',
    calls: `Let me look.\n<tool_call>[{"name": "get_weather", "arguments": ${JSON.stringify(weather)}}, {"name": "stop", "arguments": {}}]</tool_call>`,
};
const base = { model: 'reply', input: ask, temperature: 0 };

async function whole(ai, url) {
    const chat = await ai.chat.completions.create({ model: 'reply', temperature: 0, messages: [{ role: 'user', content: ask }] });
    const want = chat.choices[0].message.content;
    const r = await ai.responses.create({ ...base, metadata: { a: 'b' }, user: 'me', tools: [], tool_choice: 'auto', truncation: 'auto',
        text: { format: { type: 'text' } }, include: [], reasoning: { effort: 'low' }, parallel_tool_calls: false, service_tier: 'auto' });
    t.same(r.output_text, want, 'the text of a chat');
    t.same(`${r.object} ${r.status} ${r.output.length} ${r.output[0].type} ${r.output[0].role}`, 'response completed 1 message assistant', 'shape');
    t.same(`${r.usage.input_tokens} ${r.usage.output_tokens} ${r.usage.total_tokens}`,
        `${chat.usage.prompt_tokens} ${chat.usage.completion_tokens} ${chat.usage.total_tokens}`, 'usage');
    t.same(`${r.metadata.a} ${r.user} ${r.error} ${r.reasoning.effort}`, 'b me null low', 'what was sent comes back');
    const parts = await ai.responses.create({ ...base, input: [{ role: 'user', content: [{ type: 'input_text', text: ask }] }] });
    t.same(parts.output_text, want, 'a list of messages');
    const typed = await ai.responses.create({ ...base, input: [{ type: 'message', role: 'user', content: ask }] });
    t.same(typed.output_text, want, 'with their type');
    const short = await ai.responses.create({ ...base, max_output_tokens: 2 });
    t.same(`${short.status} ${short.incomplete_details.reason} ${short.usage.output_tokens}`, 'incomplete max_output_tokens 2', 'cut');
    const told = await ai.responses.create({ ...base, instructions: 'Be brief.' });
    t.check(told.usage.input_tokens > r.usage.input_tokens && told.instructions === 'Be brief.', 'instructions');
    const likely = await ai.responses.create({ ...base, top_logprobs: 2, include: ['message.output_text.logprobs'] });
    const list = likely.output[0].content[0].logprobs;
    t.same(`${list.length} ${list[0].top_logprobs.length}`, `${likely.usage.output_tokens} 2`, 'logprobs');
    for (const [bad, param] of [[{ input: undefined }, 'input'], [{ input: [] }, 'input'], [{ input: 5 }, 'input'],
        [{ input: [{ type: 'image' }] }, 'input[0]'], [{ input: [{ role: 'user', content: [{ type: 'input_image' }] }] }, 'input[0].content'],
        [{ background: true, store: false }, 'background'], [{ frob: 1 }, 'frob'], [{ metadata: 5 }, 'metadata']]) {
        const e = await t.fails(ai.responses.create({ ...base, ...bad }), JSON.stringify(bad));
        t.same(`${e.status} ${e.param}`, `400 ${param}`, JSON.stringify(bad));
    }
    let later = await ai.responses.create({ ...base, background: true });
    t.same(later.status, 'in_progress', 'in the background');
    await t.until(async () => (later = await ai.responses.retrieve(later.id)).status !== 'in_progress', 'it completes');
    t.same(later.output[0].content[0].text, r.output[0].content[0].text, 'the same answer');
    const e = await t.fails(ai.responses.cancel(later.id), 'cancel');
    t.same(e.status, 400, 'a complete one cannot be cancelled');
    const api = await (await fetch(`${url}/openapi.json`)).json();
    t.check(api.paths['/v1/responses'].post.requestBody, 'described');
    return want;
}

async function streamed(ai, want) {
    const seen = [];
    for await (const event of await ai.responses.create({ ...base, stream: true }))
        seen.push(event);
    const types = seen.map((e) => e.type), deltas = types.filter((x) => x === 'response.output_text.delta').length;
    t.same(types.join(), ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added',
        ...Array(deltas).fill('response.output_text.delta'), 'response.output_text.done', 'response.content_part.done',
        'response.output_item.done', 'response.completed'].join(), 'events in order');
    t.check(deltas > 2 && seen.every((e, i) => e.sequence_number === i), 'numbered');
    t.same(seen.map((e) => e.delta ?? '').join(''), want, 'deltas');
    t.same(seen.at(-1).response.output[0].content[0].text, want, 'the whole at the end');
    t.check(seen.at(-1).response.usage.output_tokens > 0 && seen[0].response.usage === null, 'usage at the end');
    const helper = ai.responses.stream(base);
    let text = '';
    helper.on('response.output_text.delta', (e) => { text += e.delta; });
    t.same((await helper.finalResponse()).output[0].content[0].text, want, 'the client\'s own gathering');
    t.same(text, want, 'and its events');
    const stored = await ai.responses.retrieve(seen.at(-1).response.id);
    t.same(stored.output_text ?? stored.output[0].content[0].text, want, 'a stream is stored too');
    const late = [];
    for await (const event of await ai.responses.create({ ...base, stream: true, max_output_tokens: 1 }))
        late.push(event.type);
    t.same(late.at(-1), 'response.incomplete', 'a stream that was cut');
}

// Functions: whole and streamed, their results as input, and by the id of the response that called them.
async function functions(ai) {
    const tools = [{ type: 'function', name: 'get_weather', description: 'The weather of a city', strict: false,
        parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] } },
    { type: 'function', name: 'stop', strict: false, parameters: { type: 'object', properties: {} } }];
    const call = { model: 'calls', input: 'How is the weather?', tools, temperature: 0 };
    const kinds = (r) => r.output.map((o) => o.type).join();
    const r = await ai.responses.create(call);
    t.same(`${r.status} ${kinds(r)}`, 'completed message,function_call,function_call', 'a text and two calls');
    t.same(`${r.output_text}|${r.output[1].name}|${r.output[2].name}`, 'Let me look.\n|get_weather|stop', 'what they are');
    t.same(`${JSON.stringify(JSON.parse(r.output[1].arguments))} ${r.output[1].status}`, `${JSON.stringify(weather)} completed`, 'arguments');
    t.check(r.output.every((o) => o.id) && new Set(r.output.map((o) => o.id)).size === 3, 'every item has an id of its own');
    t.same(`${r.tools.length} ${r.tools[0].name} ${r.tool_choice} ${r.parallel_tool_calls}`, '2 get_weather auto true', 'what was sent');
    const one = await ai.responses.create({ ...call, parallel_tool_calls: false });
    t.same(kinds(one), 'message,function_call', 'one call at most');
    const none = await ai.responses.create({ ...call, tool_choice: 'none' });
    t.same(kinds(none), 'message', 'no calls');
    const strict = tools.map((x) => ({ ...x, parameters: { ...x.parameters, additionalProperties: false } }));
    const forced = await ai.responses.create({ ...call, model: 'reply', tools: strict.slice(1), tool_choice: { type: 'function', name: 'stop' } });
    t.same(`${kinds(forced)} ${forced.output[0].name} ${forced.output[0].arguments.replace(/\s/g, '')}`, 'function_call stop {}', 'a function that must be called');

    const seen = [];
    for await (const event of await ai.responses.create({ ...call, stream: true }))
        seen.push(event);
    t.check(seen.every((e, i) => e.sequence_number === i), 'numbered');
    const types = seen.map((e) => e.type.replace('response.', '')), runs = types.filter((x, i) => x !== types[i - 1]);
    const args = ['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done'];
    t.same(runs.join(), ['created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta', 'output_text.done',
        'content_part.done', 'output_item.done', ...args, ...args, 'completed'].join(), 'events in order');
    const pieces = seen.filter((e) => e.type === 'response.function_call_arguments.delta' && e.output_index === 1);
    t.check(pieces.length > 2, `arguments come in pieces: ${pieces.length}`);
    t.same(pieces.map((e) => e.delta).join(''), r.output[1].arguments, 'and are the same');
    const added = seen.filter((e) => e.type === 'response.output_item.added');
    t.same(added.map((e) => `${e.output_index} ${e.item.type} ${e.item.status}`).join(),
        '0 message in_progress,1 function_call in_progress,2 function_call in_progress', 'items begin');
    t.check(pieces.every((e) => e.item_id === added[1].item.id), 'pieces name their item');
    t.same(kinds(seen.at(-1).response), kinds(r), 'the whole at the end');
    const final = await ai.responses.stream(call).finalResponse();
    t.same(final.output[1].arguments, r.output[1].arguments, 'the client\'s own gathering');

    // tool results: by id, and with all items in the input, as agents send them
    const results = r.output.slice(1).map((o) => ({ type: 'function_call_output', call_id: o.call_id, output: `result of ${o.name}` }));
    const byId = await ai.responses.create({ ...call, model: 'says', input: results, previous_response_id: r.id });
    const input = [{ role: 'user', content: call.input }, ...r.output, ...results];
    const whole = await ai.responses.create({ ...call, model: 'says', input });
    t.same(`${byId.usage.input_tokens} ${byId.output_text}`, `${whole.usage.input_tokens} ${models.says}`, 'results by id and as items');
    const chat = await ai.chat.completions.create({ model: 'says', temperature: 0, tools: tools.map(({ type, ...f }) => ({ type, function: f })),
        messages: [{ role: 'user', content: call.input }, { role: 'assistant', content: r.output_text, tool_calls: r.output.slice(1).map((o) =>
            ({ id: o.call_id, type: 'function', function: { name: o.name, arguments: o.arguments } })) },
        ...results.map((x) => ({ role: 'tool', tool_call_id: x.call_id, content: x.output }))] });
    t.same(whole.usage.input_tokens, chat.usage.prompt_tokens, 'the same prompt as a chat');
    const items = [];
    for await (const item of ai.responses.inputItems.list(whole.id))
        items.push(item.type);
    t.same(items.join(), 'function_call_output,function_call_output,function_call,function_call,message,message', 'the input, last first');
    const next = await ai.responses.create({ ...call, model: 'says', input: 'thanks', previous_response_id: byId.id });
    t.check(next.usage.input_tokens > byId.usage.input_tokens, 'and on');
    for (const [bad, param] of [[{ tools: [{ type: 'web_search' }] }, 'tools[0]'], [{ tools: [{ type: 'function' }] }, 'tools[0]'],
        [{ tool_choice: { type: 'function', name: 'none' } }, 'tool_choice'], [{ input: [{ type: 'function_call', name: 'a' }] }, 'input[0]'],
        [{ input: [{ type: 'function_call', call_id: 'c', name: 'a', arguments: '[]' }] }, 'input[0]'],
        [{ input: [{ role: 'user', content: 'x' }, { type: 'function_call_output', call_id: 'c' }] }, 'input[1]'],
        [{ input: [{ type: 'item_reference', id: 'x' }] }, 'input[0]']]) {
        const e = await t.fails(ai.responses.create({ ...call, ...bad }), JSON.stringify(bad));
        t.same(`${e.status} ${e.param}`, `400 ${param}`, JSON.stringify(bad));
    }
}

async function state(ai, other, want) {
    const first = await ai.responses.create({ ...base, instructions: 'Be brief.' });
    const second = await ai.responses.create({ ...base, input: 'again', previous_response_id: first.id });
    t.same(second.previous_response_id, first.id, 'the one before');
    const chat = await ai.chat.completions.create({ model: 'reply', temperature: 0, messages: [{ role: 'user', content: ask },
        { role: 'assistant', content: first.output_text }, { role: 'user', content: 'again' }] });
    t.same(`${second.usage.input_tokens} ${second.output_text}`, `${chat.usage.prompt_tokens} ${chat.choices[0].message.content}`,
        'the conversation so far, without its instructions');
    const third = await ai.responses.create({ ...base, input: 'and again', previous_response_id: second.id });
    t.check(third.usage.input_tokens > second.usage.input_tokens, 'and on');
    const back = await ai.responses.retrieve(first.id);
    t.same(`${back.id} ${back.output[0].content[0].text}`, `${first.id} ${first.output_text}`, 'retrieve');
    const items = [];
    for await (const item of ai.responses.inputItems.list(second.id))
        items.push(item);
    t.same(`${items.length} ${items[0]?.role} ${items[0]?.content[0].text}`, '1 user again', 'the input of a response');
    t.same((await t.fails(other.responses.retrieve(first.id), 'another key')).status, 404, 'another key does not see it');
    t.same((await t.fails(other.responses.create({ ...base, previous_response_id: first.id }), 'another key')).status, 404,
        'and cannot go on from it');
    t.same((await t.fails(other.responses.delete(first.id), 'another key')).status, 404, 'or delete it');
    await ai.responses.delete(first.id);
    t.same((await t.fails(ai.responses.retrieve(first.id), 'deleted')).status, 404, 'deleted');
    const gone = await t.fails(ai.responses.create({ ...base, previous_response_id: first.id }), 'deleted');
    t.same(`${gone.status} ${gone.param}`, '404 previous_response_id', 'nothing to go on from');
    t.check((await ai.responses.retrieve(second.id)).id === second.id, 'the next one is still there');
    const secret = await ai.responses.create({ ...base, store: false });
    t.same(secret.output_text, want, 'not stored');
    t.same((await t.fails(ai.responses.retrieve(secret.id), 'not stored')).status, 404, 'store: false');
    // the store is bounded: the oldest entries are evicted
    let last;
    for (let i = 0; i < 40; i++)
        last = await ai.responses.create({ ...base, metadata: { fill: 'x'.repeat(4000) } });
    t.same((await t.fails(ai.responses.retrieve(second.id), 'old')).status, 404, 'the oldest are forgotten');
    t.check((await ai.responses.retrieve(last.id)).id === last.id, 'the newest are not');
}

(async () => {
    const config = path.join(t.tmp, 'responses.yaml'), sha = (key) => require('crypto').createHash('sha256').update(key).digest('hex');
    const parrots = Object.entries(models).map(([name, say]) => `,\n  {name: ${name}, path: ${parrot(path.join(t.tmp, `${name}.gguf`),
        { template: chatml, special: ['<|im_start|>', '<|im_end|>'], say })}}`);
    fs.writeFileSync(config, `models: [{name: reply, path: ${t.root}/models/reply-draft.gguf}${parrots.join('')}]
responses: {bytes: 64KiB, ttl: 1h}
keys: [{name: a, sha256: ${sha('key-a')}}, {name: b, sha256: ${sha('key-b')}}]
`);
    const server = await t.start(shoal, ['--config', config]);
    const client = (apiKey) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
    const ai = client('key-a');
    const want = await whole(ai, server.url);
    await streamed(ai, want);
    await functions(ai);
    await state(ai, client('key-b'), want);
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
