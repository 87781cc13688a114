#!/usr/bin/env node
// Tool calls with the official clients of OpenAI, Ollama and gRPC, on models that write calls in each format.
// Usage: tools.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');
const site = require('../integration/cluster_site.js');
const { grpc, load, call, gather } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;

const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters } },
    { type: 'function', function: { name: 'set_light', parameters: { type: 'object', properties: {} } } }];
const messages = [{ role: 'user', content: 'How is the weather in Paris?' }];
const args = '{"city": "Paris", "days": 3}';
const wanted = JSON.stringify(JSON.parse(args));
const template = (name) => fs.readFileSync(path.join(t.root, `tests/data/chat_templates/${name}.jinja`), 'utf8');

// The template of Qwen and Hermes.
const hermes = `{%- if tools %}<|im_start|>system
{%- for t in tools %}
{{ t | tojson }}
{%- endfor %}
<tool_call>{"name": NAME, "arguments": OBJECT}</tool_call><|im_end|>
{% endif %}{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{%- for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{%- endfor %}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;
const llama3 = `{%- for t in tools or [] %}{{ t | tojson }}{% endfor %}
{%- for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{% if m.tool_calls %}{% for c in m.tool_calls %}<|python_tag|>{"name": "{{ c.function.name }}", "parameters": {{
 c.function.arguments | tojson }}}{% endfor %}{% else %}{{ m.content }}{% endif %}<|eot_id|>{% endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`;
const chatml = ['<|im_start|>', '<|im_end|>'];
const mistral = ['[INST]', '[/INST]', '[AVAILABLE_TOOLS]', '[/AVAILABLE_TOOLS]', '[TOOL_RESULTS]', '[/TOOL_RESULTS]'];
const headers = ['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>', '<|python_tag|>'];

// Each model calls get_weather in the format of its template. content: the text before the call.
const models = {
    hermes: { template: hermes, special: chatml, content: 'Let me look.\n',
        say: `Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": ${args}}\n</tool_call>` },
    generic: { template: template('smollm2'), special: chatml,
        say: `<tool_call>[{"name": "get_weather", "arguments": ${args}}]</tool_call>` },
    mistral: { template: template('mistral_v03'), special: mistral,
        say: [{ control: '[TOOL_CALLS]' }, ` [{"name": "get_weather", "arguments": ${args}}]`] },
    llama: { template: llama3, special: headers, say: `{"name": "get_weather", "parameters": ${args}}` },
    tagged: { template: llama3, special: headers,
        say: [{ control: '<|python_tag|>' }, `{"name": "get_weather", "parameters": ${args}}`] },
    phi: { template: template('phi4_mini'), special: ['<|tool_call|>', '<|/tool_call|>'],
        say: [{ control: '<|tool_call|>' }, `[{"name": "get_weather", "arguments": ${args}}]`, { control: '<|/tool_call|>' }] },
    two: { template: hermes, special: chatml, n: 2,
        say: `<tool_call>\n{"name": "get_weather", "arguments": ${args}}\n</tool_call>\n<tool_call>{"name": "set_light", ` +
            '"arguments": {"on": true}}</tool_call>' },
    line: { template: hermes, special: chatml, say: [`<tool_call>\n{"name": "get_weather", "arguments": ${args}}\n</tool_call`, '>\n'] },
    text: { template: hermes, special: chatml, n: 0, content: 'It is 20 degrees and "sunny".', say: 'It is 20 degrees and "sunny".' },
    broken: { template: hermes, special: chatml, n: 0, content: '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        say: '<tool_call>{"name": "rm", "arguments": {}}</tool_call>' },
};

function checkCalls(calls, what, n = 1) {
    t.same(calls.length, n, `${what}: calls`);
    for (const [i, c] of calls.slice(0, n).entries()) {
        t.same(c.function.name, i ? 'set_light' : 'get_weather', `${what}: name`);
        t.same(JSON.stringify(JSON.parse(c.function.arguments)), i ? '{"on":true}' : wanted, `${what}: arguments`);
        t.check(/^call_[0-9a-f]{16}$/.test(c.id), `${what}: id ${c.id}`);
    }
    t.same(new Set(calls.map((c) => c.id)).size, n, `${what}: ids differ`);
}

async function openai(server, name, m) {
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const n = m.n ?? 1, base = { model: name, messages, tools, temperature: 0 };
    const whole = (await ai.chat.completions.create(base)).choices[0];
    checkCalls(whole.message.tool_calls ?? [], name, n);
    t.same(whole.message.content, m.content ?? null, `${name}: content`);
    t.same(whole.finish_reason, n ? 'tool_calls' : 'stop', `${name}: finish`);

    // the client's own helper assembles the chunks
    const seen = [];
    const stream = ai.chat.completions.stream({ ...base, stream_options: { include_usage: true } });
    stream.on('chunk', (c) => seen.push(c));
    const final = (await stream.finalChatCompletion()).choices[0];
    checkCalls(final.message.tool_calls ?? [], `${name}, streamed`, n);
    t.same(final.message.content || null, m.content ?? null, `${name}, streamed: content`);
    t.same(final.finish_reason, n ? 'tool_calls' : 'stop', `${name}, streamed: finish`);
    const pieces = seen.flatMap((c) => c.choices[0]?.delta.tool_calls ?? []);
    if (n) {
        t.check(pieces.length > 4 * n, `${name}: arguments come in pieces, ${pieces.length}`);
        t.check(pieces[0].function.name === 'get_weather' && pieces[0].type === 'function', `${name}: the first has the name`);
    }
    return whole;
}

async function conversation(server, name) {
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const base = { model: name, tools, temperature: 0 };
    const first = await ai.chat.completions.create({ ...base, messages });
    const assistant = first.choices[0].message;
    const results = assistant.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: '{"degrees": 20}' }));
    const second = await ai.chat.completions.create({ ...base, messages: [...messages, assistant, ...results] });
    t.check(second.usage.prompt_tokens > first.usage.prompt_tokens, `${name}: calls and results are part of the prompt`);
    t.same(second.choices[0].finish_reason, 'tool_calls', `${name}: goes on`);
}

// `functions`, the deprecated form of `tools`: the same call.
async function functions(server) {
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const base = { model: 'hermes', messages, functions: tools.map((x) => x.function), temperature: 0 };
    const whole = (await ai.chat.completions.create(base)).choices[0];
    t.same(`${whole.finish_reason} ${whole.message.function_call?.name} ${whole.message.tool_calls}`, 'function_call get_weather undefined', 'functions');
    t.same(JSON.stringify(JSON.parse(whole.message.function_call.arguments)), wanted, 'functions: arguments');
    const seen = [];
    for await (const c of await ai.chat.completions.create({ ...base, stream: true }))
        seen.push(c.choices[0]);
    const pieces = seen.map((c) => c.delta.function_call).filter((f) => f);
    t.same(`${pieces[0].name} ${JSON.stringify(JSON.parse(pieces.map((p) => p.arguments).join('')))}`, `get_weather ${wanted}`, 'functions, streamed');
    t.same(seen.at(-1).finish_reason, 'function_call', 'functions, streamed: finish');
    const none = (await ai.chat.completions.create({ ...base, function_call: 'none' })).choices[0];
    t.check(!none.message.function_call, 'function_call: none');
    const forced = (await ai.chat.completions.create({ ...base, model: 'two', function_call: { name: 'set_light' } })).choices[0];
    t.same(forced.message.function_call?.name, 'set_light', 'function_call: a name');
    const result = [...messages, whole.message, { role: 'function', name: 'get_weather', content: '{"degrees": 20}' }];
    const plain = await ai.chat.completions.create({ ...base, messages });
    const second = await ai.chat.completions.create({ ...base, messages: result });
    t.check(second.usage.prompt_tokens > plain.usage.prompt_tokens, 'functions: a call and its result are part of the prompt');
}

async function choices(server) {
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const base = { model: 'two', messages, tools, temperature: 0 };
    const none = await ai.chat.completions.create({ ...base, tool_choice: 'none' });
    t.same(none.choices[0].message.tool_calls, undefined, 'none: no calls');
    t.check(none.choices[0].message.content.includes('<tool_call>'), 'none: the text as it is');
    const auto = await ai.chat.completions.create({ ...base, tool_choice: 'auto' });
    t.check(auto.usage.prompt_tokens > none.usage.prompt_tokens, 'none: the model does not see the tools');
    const one = await ai.chat.completions.create({ ...base, parallel_tool_calls: false });
    checkCalls(one.choices[0].message.tool_calls, 'one call at most');
    const several = await ai.chat.completions.create({ ...base, n: 2 });
    several.choices.forEach((c) => checkCalls(c.message.tool_calls, 'every choice', 2));
    t.check(several.choices[0].message.tool_calls[0].id !== several.choices[1].message.tool_calls[0].id, 'ids of choices');
    const cut = await ai.chat.completions.create({ ...base, max_tokens: 12 });
    t.same(cut.choices[0].finish_reason, 'length', 'cut off');
    t.same(cut.choices[0].message.tool_calls, undefined, 'a call that is not whole stays text');
    for (const [bad, what] of [
        [{ tools: [{ type: 'web_search' }] }, 'another kind of tool'],
        [{ tools: [tools[0], tools[0]] }, 'the same name twice'],
        [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'a name with a space'],
        [{ tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] }, 'parameters that are no schema'],
        [{ tool_choice: { type: 'function', function: { name: 'nope' } } }, 'a choice that is not there'],
        [{ tool_choice: 'sometimes' }, 'an unknown choice'],
        [{ messages: [{ role: 'assistant', tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '[' } }] }] },
            'arguments that are no JSON'],
        [{ messages: [{ role: 'user', content: '', tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } }] }] },
            'calls of a user'],
    ])
        t.same((await t.fails(ai.chat.completions.create({ ...base, ...bad }), what)).status, 400, what);
    t.same((await ai.chat.completions.create({ ...base, tools: [] })).choices[0].finish_reason, 'stop', 'an empty list');
}

// A forced call is made and matches its schema, whatever the model would generate.
async function forces(server) {
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const room = { type: 'object', properties: { room: { enum: ['hall', 'bath'] }, on: { type: 'boolean' } },
        required: ['room', 'on'], additionalProperties: false };
    const two = [{ type: 'function', function: { name: 'set_light', parameters: room } }, { type: 'function', function: { name: 'stop' } }];
    const right = (c) => (c.function.name === 'stop' ? JSON.stringify(JSON.parse(c.function.arguments)) === '{}' :
        /^(hall|bath)$/.test(JSON.parse(c.function.arguments).room) && typeof JSON.parse(c.function.arguments).on === 'boolean');
    for (const model of ['hermes', 'generic', 'mistral', 'llama', 'tagged', 'phi', 'text'])
        for (const seed of [1, 2]) {
            const base = { model, messages, tools: two, temperature: 1, seed, max_tokens: 1000 };
            const any = (await ai.chat.completions.create({ ...base, tool_choice: 'required' })).choices[0];
            t.check(any.message.tool_calls?.length > 0 && any.message.tool_calls.every(right) && any.message.content === null,
                `${model}: required, ${JSON.stringify(any)}`);
            t.same(any.finish_reason, 'tool_calls', `${model}: required`);
            const one = await ai.chat.completions.stream({ ...base, tool_choice: { type: 'function', function: { name: 'set_light' } } })
                .finalChatCompletion();
            const calls = one.choices[0].message.tool_calls ?? [];
            t.check(calls.length === 1 && calls[0].function.name === 'set_light' && right(calls[0]), `${model}: a function, ${JSON.stringify(calls)}`);
        }
    // a newline after the last call does not cause another call
    for (const tool_choice of ['auto', 'required'])
        checkCalls((await ai.chat.completions.create({ model: 'line', messages, tools, tool_choice, temperature: 0 })).choices[0].message.tool_calls ?? [],
            `a line behind the call, ${tool_choice}`);
    // strict tools also hold when the call is optional
    const strict = (city) => [{ type: 'function', function: { name: 'get_weather', strict: true, parameters: { type: 'object',
        properties: { city: { enum: [city] }, days: { enum: [3] } }, required: ['city', 'days'], additionalProperties: false } } }];
    for (const city of ['Paris', 'Oslo']) {
        const got = (await ai.chat.completions.create({ model: 'hermes', messages, temperature: 0, max_tokens: 1000, tools: strict(city) })).choices[0];
        t.same(JSON.parse(got.message.tool_calls?.[0].function.arguments ?? '{}').city, city, `strict: ${city}`);
        t.same(got.message.content, 'Let me look.\n', 'strict: text in front');
    }
    const both = await t.fails(ai.chat.completions.create({ model: 'text', messages, tools: two, tool_choice: 'required',
        response_format: { type: 'json_object' } }), 'two constraints');
    t.same(both.status, 400, 'a forced call and a format exclude each other');
    const odd = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { not: { type: 'string' } } } } } }];
    const answer = await ai.chat.completions.create({ model: 'text', messages, tools: odd, tool_choice: 'required', max_tokens: 400 }).catch((e) => e);
    t.check(answer.choices?.[0].message.tool_calls || answer.status === 400, `a schema that cannot be enforced is refused: ${answer}`);
}

async function ollama(server, name, n) {
    const o = new Ollama({ host: server.url });
    const base = { model: name, messages, tools, options: { temperature: 0, repeat_penalty: 1 } };
    const whole = await o.chat(base);
    t.same(whole.message.tool_calls?.length ?? 0, n, `${name}, ollama: calls`);
    t.same(JSON.stringify(whole.message.tool_calls?.[0].function.arguments), n ? wanted : undefined,
        `${name}, ollama: arguments are an object`);
    let text = '';
    const calls = [];
    for await (const part of await o.chat({ ...base, stream: true })) {
        text += part.message.content;
        calls.push(...part.message.tool_calls ?? []);
    }
    t.same(calls.length, n, `${name}, ollama streamed: calls`);
    t.same(text, whole.message.content, `${name}, ollama streamed: text`);
    if (n) {
        const again = await o.chat({ ...base, messages: [...messages, whole.message,
            { role: 'tool', tool_name: 'get_weather', content: '20 degrees' }] });
        t.check(again.prompt_eval_count > whole.prompt_eval_count, `${name}, ollama: results are part of the prompt`);
    }
}

async function overGrpc(server, name, n) {
    const client = new Shoal(new URL(server.url).host, grpc.credentials.createInsecure());
    const request = { model: name, messages, temperature: 0,
        tools: tools.map(({ function: f }) => ({ name: f.name, description: f.description, parameters: JSON.stringify(f.parameters) })) };
    const whole = await call(client, 'Generate', request);
    t.same(whole.tool_calls.length, n, `${name}, gRPC: calls`);
    t.same(whole.finish_reason, n ? 'tool_calls' : 'stop', `${name}, gRPC: finish`);
    const events = await gather(client.GenerateStream(request));
    const pieces = events.map((e) => e.tool_call).filter(Boolean);
    for (let i = 0; i < n; i++) {
        const mine = pieces.filter((p) => p.index === i);
        t.same(mine.map((p) => p.arguments).join(''), whole.tool_calls[i].arguments, `${name}, gRPC streamed: arguments`);
        t.same(mine[0].name, whole.tool_calls[i].name, `${name}, gRPC streamed: name`);
    }
    t.same(events.map((e) => e.text).join(''), whole.text, `${name}, gRPC streamed: text`);
    if (n) {
        const again = await call(client, 'Generate', { ...request, messages: [...messages,
            { role: 'assistant', tool_calls: whole.tool_calls },
            ...whole.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: '20' }))] });
        t.check(again.usage.prompt_tokens > whole.usage.prompt_tokens, `${name}, gRPC: results are part of the prompt`);
    }
    const bad = await t.fails(call(client, 'Generate', { ...request, tools: [{ name: 'f', parameters: '[]' }] }), 'bad parameters');
    t.same(bad.code, grpc.status.INVALID_ARGUMENT, 'gRPC: parameters that are no schema');
    client.close();
}

// A request with tools is answered by a node and continues on another one.
async function cluster(files) {
    const s = await site.open(shoal, { nodes: 2, models: [`hermes=${files.hermes}`] });
    const ai = new OpenAI({ baseURL: `${s.gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await t.until(async () => (await fetch(`${s.gateway.url}/readyz`)).status === 200, 'the gateway is ready');
    const base = { model: 'hermes', messages, tools, temperature: 0 };
    checkCalls((await ai.chat.completions.create(base)).choices[0].message.tool_calls, 'over a node');
    const stream = ai.chat.completions.stream(base);
    stream.once('chunk', () => s.nodes[0].signal('SIGKILL'));
    checkCalls((await stream.finalChatCompletion()).choices[0].message.tool_calls, 'a node was lost');
    await s.nodes[1].end();
    await s.gateway.end('SIGTERM');
}

(async () => {
    const files = {}, given = [];
    for (const [name, m] of Object.entries(models)) {
        files[name] = parrot(path.join(t.tmp, `${name}.gguf`), m);
        given.push('-m', `${name}=${files[name]}`);
    }
    const server = await t.start(shoal, given);
    for (const [name, m] of Object.entries(models))
        await openai(server, name, m);
    for (const name of ['hermes', 'generic', 'mistral', 'tagged', 'two'])
        await conversation(server, name);
    await choices(server);
    await functions(server);
    await forces(server);
    for (const name of ['hermes', 'mistral', 'two', 'text']) {
        await ollama(server, name, models[name].n ?? 1);
        await overGrpc(server, name, models[name].n ?? 1);
    }
    t.same((await server.stop()).code, 0, 'ends well');
    await cluster(files);
    t.finish();
})().catch(t.abandon);
