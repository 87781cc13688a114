#!/usr/bin/env node
// The official Anthropic client against `shoal serve`.  Usage: anthropic.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');

const shoal = path.resolve(process.argv[2]);
const Anthropic = require(t.npm('@anthropic-ai/sdk@0.71.2'));
const chatml = fs.readFileSync(path.join(t.root, 'tests/data/chat_templates/smollm2.jinja'), 'utf8');
const special = ['<|im_start|>', '<|im_end|>'];
const input = { city: 'Paris', days: 3 };
const models = {
    says: 'It is 20 degrees and "sunny" \u{1f31e}.',
    calls: `Let me look.\n<tool_call>{"name": "get_weather", "arguments": ${JSON.stringify(input)}}</tool_call>`,
    twice: `<tool_call>[{"name": "get_weather", "arguments": ${JSON.stringify(input)}}, {"name": "stop", "arguments": {}}]</tool_call>`,
};
const tools = [{ name: 'get_weather', description: 'The weather of a city',
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
{ name: 'stop', input_schema: { type: 'object', properties: {} } }];
const messages = [{ role: 'user', content: 'How is the weather?' }];

async function texts(ai) {
    const base = { model: 'says', max_tokens: 100, messages, temperature: 0 };
    const whole = await ai.messages.create(base);
    t.same(whole.type, 'message', 'type');
    t.same(whole.role, 'assistant', 'role');
    t.same(whole.content.length, 1, 'one block');
    t.same(whole.content[0].text, models.says, 'text');
    t.same(whole.stop_reason, 'end_turn', 'stop reason');
    t.check(/^msg_[0-9a-f]{16}$/.test(whole.id), 'id');
    t.check(whole.usage.input_tokens > 10 && whole.usage.output_tokens > 5, 'usage');
    const cut = await ai.messages.create({ ...base, max_tokens: 3 });
    t.same(cut.stop_reason, 'max_tokens', 'cut off');
    const stopped = await ai.messages.create({ ...base, stop_sequences: ['degrees'] });
    t.same(stopped.content[0].text, 'It is 20 ', 'a stop sequence');
    t.same(`${stopped.stop_reason} ${stopped.stop_sequence}`, 'stop_sequence degrees', 'and which one');
    for (let i = 0; i < 2; i++) { // the second call must not be answered from the cache
        const two = await ai.messages.stream({ ...base, stop_sequences: ['never', 'sunny', '"'] }).finalMessage();
        t.same(`${two.stop_reason} ${two.stop_sequence}`, 'stop_sequence "', 'the first of several that comes, streamed');
    }
    const ended = await ai.messages.create({ ...base, stop_sequences: ['never'] });
    t.same(`${ended.stop_reason} ${ended.stop_sequence}`, 'end_turn null', 'none of them');
    const system = await ai.messages.create({ ...base, system: [{ type: 'text', text: 'Be ' }, { type: 'text', text: 'brief.' }] });
    const same = await ai.messages.create({ ...base, system: 'Be brief.' });
    const all = (u) => u.input_tokens + u.cache_read_input_tokens;
    t.same(all(system.usage), all(same.usage), 'system, as blocks and as text');
    const blocks = await ai.messages.create({ ...base, messages: [{ role: 'user', content: [{ type: 'text', text: 'How is ' },
        { type: 'text', text: 'the weather?', cache_control: { type: 'ephemeral' } }] }] });
    t.same(all(blocks.usage), all(whole.usage), 'blocks of text');

    const events = [];
    const stream = ai.messages.stream(base);
    let first;
    stream.on('streamEvent', (e) => events.push(e.type) === 1 && (first = { ...e.message.usage }));
    const final = await stream.finalMessage();
    t.same(final.content[0].text, models.says, 'streamed text');
    t.same(final.stop_reason, 'end_turn', 'streamed: stop reason');
    t.same(final.usage.output_tokens, whole.usage.output_tokens, 'streamed: usage');
    t.same(all(final.usage), all(whole.usage), 'streamed: tokens of the prompt');
    t.same(`${all(first)} ${first.output_tokens}`, `${all(whole.usage)} 0`, 'and in message_start');
    t.same([events[0], events[1], ...events.slice(-3)].join(),
        'message_start,content_block_start,content_block_stop,message_delta,message_stop', 'order of events');
    t.check(events.filter((e) => e === 'content_block_delta').length > 3, 'pieces');

    const counted = await ai.messages.countTokens({ model: 'says', messages });
    t.same(counted.input_tokens, all(whole.usage), 'count_tokens');
    const withTools = await ai.messages.countTokens({ model: 'says', messages, tools });
    t.check(withTools.input_tokens > counted.input_tokens, 'count_tokens counts tools');
}

async function calls(ai) {
    const base = { model: 'calls', max_tokens: 200, messages, tools, temperature: 0 };
    const whole = await ai.messages.create(base);
    t.same(whole.content.map((b) => b.type).join(), 'text,tool_use', 'blocks');
    t.same(whole.content[1].name, 'get_weather', 'name');
    t.same(JSON.stringify(whole.content[1].input), JSON.stringify(input), 'input');
    t.same(whole.stop_reason, 'tool_use', 'stop reason');
    const pieces = [];
    const stream = ai.messages.stream(base);
    stream.on('inputJson', (part) => pieces.push(part));
    const final = await stream.finalMessage();
    t.same(final.content.map((b) => b.type).join(), 'text,tool_use', 'streamed: blocks');
    t.same(JSON.stringify(final.content[1].input), JSON.stringify(input), 'streamed: input');
    t.check(pieces.length > 3, `streamed: the input comes in pieces, ${pieces.length}`);
    t.same(final.stop_reason, 'tool_use', 'streamed: stop reason');
    const again = await ai.messages.create({ ...base, messages: [...messages, { role: 'assistant', content: whole.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: whole.content[1].id, content: [{ type: 'text', text: '20 degrees' }] },
            { type: 'text', text: 'And tomorrow?' }] }] });
    const all = (u) => u.input_tokens + u.cache_read_input_tokens;
    t.check(all(again.usage) > all(whole.usage), 'results are part of the prompt');
    const two = await ai.messages.create({ ...base, model: 'twice' });
    t.same(two.content.map((b) => b.name).join(), 'get_weather,stop', 'two calls');
    const one = await ai.messages.create({ ...base, model: 'twice', tool_choice: { type: 'auto', disable_parallel_tool_use: true } });
    t.same(one.content.map((b) => b.name).join(), 'get_weather', 'one call at most');
    const bounded = [{ name: 'set_light', input_schema: { type: 'object', properties: { on: { type: 'boolean' } }, required: ['on'],
        additionalProperties: false } }, { name: 'stop', input_schema: { type: 'object', properties: {}, additionalProperties: false } }];
    const any = await ai.messages.create({ ...base, model: 'says', max_tokens: 1000, tools: bounded, tool_choice: { type: 'any' } });
    t.check(any.content.length > 0 && any.content.every((b) => b.type === 'tool_use'), 'any: calls and nothing else');
    const forced = await ai.messages.create({ ...base, model: 'says', max_tokens: 1000, tools: bounded, tool_choice: { type: 'tool', name: 'set_light' } });
    t.same(`${forced.content[0].name} ${typeof forced.content[0].input.on}`, 'set_light boolean', 'a tool that must be called');
    const none = await ai.messages.create({ ...base, tool_choice: { type: 'none' } });
    t.same(none.content.map((b) => b.type).join(), 'text', 'no calls');
}

async function errors(ai, server) {
    const base = { model: 'says', max_tokens: 10, messages };
    for (const [change, status, type] of [
        [{ max_tokens: undefined }, 400, 'invalid_request_error'], [{ messages: [] }, 400, 'invalid_request_error'],
        [{ model: 'claude' }, 404, 'not_found_error'], [{ frobnicate: 1 }, 400, 'invalid_request_error'],
        [{ messages: [{ role: 'robot', content: 'x' }] }, 400, 'invalid_request_error'],
        [{ messages: [{ role: 'user', content: [{ type: 'image', source: {} }] }] }, 400, 'invalid_request_error'],
        [{ messages: [{ role: 'user', content: [{ type: 'tool_result', content: 'x' }] }] }, 400, 'invalid_request_error'],
        [{ thinking: { type: 'deep', budget_tokens: 1024 } }, 400, 'invalid_request_error'],
        [{ tools: [{ type: 'bash_20250124', name: 'bash' }] }, 400, 'invalid_request_error'],
        [{ tools, tool_choice: { type: 'tool', name: 'nope' } }, 400, 'invalid_request_error'],
    ]) {
        const e = await t.fails(ai.messages.create({ ...base, ...change }), JSON.stringify(change));
        t.same(e.status, status, `status of ${JSON.stringify(change)}`);
        t.same(e.error?.type, 'error', 'the form of an error');
        t.same(e.error?.error?.type, type, `type of ${JSON.stringify(change)}`);
        t.check(e.error?.error?.message?.length > 10, 'a message');
        t.check(e.error?.request_id?.startsWith('req_'), 'its id');
    }
    const bad = await fetch(`${server.url}/v1/messages`, { method: 'POST', body: '{' });
    t.same((await bad.json()).type, 'error', 'a body that is no JSON');
}

async function keys(args) {
    const secret = 'secret-key-of-anna', config = path.join(t.tmp, 'keys.yaml');
    fs.writeFileSync(config, `models:\n  - {name: says, path: ${args.says}}\nkeys:\n  - {name: anna, sha256: ${crypto.createHash('sha256').update(secret).digest('hex')}}\n`);
    const server = await t.start(shoal, ['--config', config]);
    const ai = (apiKey) => new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });
    const base = { model: 'says', max_tokens: 20, messages };
    t.same((await ai(secret).messages.create(base)).type, 'message', 'x-api-key');
    const no = await t.fails(ai('wrong').messages.create(base), 'a wrong key');
    t.same(`${no.status} ${no.error?.error?.type}`, '401 authentication_error', 'a wrong key');
    await server.stop();
}

(async () => {
    const args = [], files = {};
    for (const [name, say] of Object.entries(models)) {
        files[name] = parrot(path.join(t.tmp, `${name}.gguf`), { template: chatml, special, say });
        args.push('-m', `${name}=${files[name]}`);
    }
    const server = await t.start(shoal, args);
    const ai = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    await texts(ai);
    await calls(ai);
    await errors(ai, server);
    t.same((await server.stop()).code, 0, 'ends well');
    await keys(files);
    t.finish();
})().catch(t.abandon);
