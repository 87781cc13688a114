#!/usr/bin/env node
// Tool calls of models that were trained for them: every interface returns the same calls, forced calls are made and
// match their schemas, and the right ones are counted. A wrong call is the model's fault; a malformed one is ours.
// Usage: tools_real.js SHOAL MODEL.gguf...      (tests/conformance/tools_real fetches the models)
'use strict';
const path = require('path');
const t = require('../integration/serve.js');
const { grpc, load, call, gather } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]), files = process.argv.slice(3);
const OpenAI = require(t.npm('openai@6.9.1'));
const Anthropic = require(t.npm('@anthropic-ai/sdk@0.71.2'));
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;

const tool = (name, description, properties) => ({ type: 'function', function: { name, description,
    parameters: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false } } });
const tools = [
    tool('get_weather', 'Get the current weather in a city', { city: { type: 'string', description: 'The name of the city' } }),
    tool('set_light', 'Turn the light of a room on or off', { room: { type: 'string', description: 'The name of the room' },
        on: { type: 'boolean', description: 'true: on, false: off' } }),
    tool('set_timer', 'Start a timer', { minutes: { type: 'integer', description: 'How many minutes' } }),
];
const types = { get_weather: { city: 'string' }, set_light: { room: 'string', on: 'boolean' }, set_timer: { minutes: 'number' } };
const asks = [
    ['What is the weather in Paris?', 'get_weather', (a) => /paris/i.test(a.city)],
    ['How warm is it in Oslo right now?', 'get_weather', (a) => /oslo/i.test(a.city)],
    ['Turn on the light in the kitchen.', 'set_light', (a) => /kitchen/i.test(a.room) && a.on === true],
    ['Please switch off the bedroom light.', 'set_light', (a) => /bedroom/i.test(a.room) && a.on === false],
    ['Set a timer for 10 minutes.', 'set_timer', (a) => a.minutes === 10],
    ['Start a 25 minute timer for the cake.', 'set_timer', (a) => a.minutes === 25],
];
const MAX = 400;
const user = (content) => [{ role: 'user', content }];
const shown = (calls) => JSON.stringify(calls.map((c) => [c.name, c.args]));
const valid = (c) => types[c.name] && Object.entries(types[c.name]).every(([k, type]) => typeof c.args?.[k] === type) &&
    Object.keys(c.args).length === Object.keys(types[c.name]).length;

// Each interface: the calls returned for a question; choice: auto, required, or a function name.
function interfaces(url, model) {
    const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 600000 });
    const claude = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 600000 });
    const o = new Ollama({ host: url });
    const client = new Shoal(new URL(url).host, grpc.credentials.createInsecure());
    const openai = (text, choice) => ({ model, messages: user(text), tools, temperature: 0, max_tokens: MAX,
        tool_choice: types[choice] ? { type: 'function', function: { name: choice } } : choice });
    const from_openai = (list) => (list ?? []).map((c) => ({ name: c.function.name, args: JSON.parse(c.function.arguments) }));
    const anthropic = (text, choice) => ({ model, messages: user(text), max_tokens: MAX, temperature: 0,
        tools: tools.map(({ function: f }) => ({ name: f.name, description: f.description, input_schema: f.parameters })),
        tool_choice: types[choice] ? { type: 'tool', name: choice } : { type: choice === 'required' ? 'any' : 'auto' } });
    const from_anthropic = (m) => m.content.filter((b) => b.type === 'tool_use').map((b) => ({ name: b.name, args: b.input }));
    const proto = (text, choice) => ({ model, messages: user(text), temperature: 0, max_tokens: MAX,
        tool_choice: types[choice] ? `function:${choice}` : choice,
        tools: tools.map(({ function: f }) => ({ name: f.name, description: f.description, parameters: JSON.stringify(f.parameters) })) });
    return {
        openai: async (text, choice) => from_openai((await ai.chat.completions.create(openai(text, choice))).choices[0].message.tool_calls),
        'openai, streamed': async (text, choice) =>
            from_openai((await ai.chat.completions.stream(openai(text, choice)).finalChatCompletion()).choices[0].message.tool_calls),
        anthropic: async (text, choice) => from_anthropic(await claude.messages.create(anthropic(text, choice))),
        'anthropic, streamed': async (text, choice) => from_anthropic(await claude.messages.stream(anthropic(text, choice)).finalMessage()),
        grpc: async (text, choice) => (await call(client, 'Generate', proto(text, choice))).tool_calls
            .map((c) => ({ name: c.name, args: JSON.parse(c.arguments) })),
        'grpc, streamed': async (text, choice) => {
            const list = [];
            for (const { tool_call: c } of (await gather(client.GenerateStream(proto(text, choice)))).filter((e) => e.tool_call)) {
                list[c.index] ??= { name: c.name, text: '' };
                list[c.index].text += c.arguments;
            }
            return list.map((c) => ({ name: c.name, args: JSON.parse(c.text) }));
        },
        ollama: async (text, choice) => choice !== 'auto' ? null : ((await o.chat({ model, messages: user(text), tools,
            options: { temperature: 0, repeat_penalty: 1, num_predict: MAX } })).message.tool_calls ?? [])
            .map((c) => ({ name: c.function.name, args: c.function.arguments })),
    };
}

async function of_choice(all, choice) {
    let right = 0, came = 0;
    for (const [text, name, good] of asks) {
        const wanted = choice === 'named' ? name : choice;
        const first = await all.openai(text, wanted);
        if (choice !== 'auto') {
            t.check(first.length > 0 && first.every(valid), `${choice}: ${text} ${shown(first)}`);
            t.check(choice !== 'named' || (first.length === 1 && first[0].name === name), `${choice}: ${text} ${shown(first)}`);
        }
        came += first.length > 0;
        right += first.length > 0 && first[0].name === name && valid(first[0]) && good(first[0].args);
        for (const [other, ask] of Object.entries(all)) {
            const calls = await ask(text, wanted);
            if (calls)
                t.same(shown(calls), shown(first), `${other}, ${choice}: ${text}`);
        }
    }
    console.log(`  ${choice}: ${came} of ${asks.length} answered with a call, ${right} of ${asks.length} right`);
}

async function several(url, model) {
    const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 600000 });
    const base = { model, messages: user('What is the weather in Paris, and what is the weather in Oslo?'), tools, temperature: 0, max_tokens: MAX };
    const both = (await ai.chat.completions.create(base)).choices[0].message.tool_calls ?? [];
    const cities = both.map((c) => JSON.parse(c.function.arguments).city ?? '').join(' ');
    console.log(`  two questions at once: ${both.length} calls, ${/paris/i.test(cities) + /oslo/i.test(cities)} of 2 right`);
    const one = (await ai.chat.completions.create({ ...base, parallel_tool_calls: false })).choices[0].message.tool_calls ?? [];
    t.check(one.length <= 1, `parallel_tool_calls: false gives ${one.length} calls`);
    const seen = [];
    for await (const c of await ai.chat.completions.create({ ...base, stream: true }))
        seen.push(...c.choices[0]?.delta.tool_calls ?? []);
    for (const [i, c] of both.entries())
        t.same(seen.filter((p) => p.index === i).map((p) => p.function.arguments).join(''), c.function.arguments, `deltas of call ${i}`);
}

async function results(url, model) {
    const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 600000 });
    const base = { model, tools, temperature: 0, max_tokens: MAX };
    let used = 0;
    for (const [city, degrees] of [['Paris', 17], ['Oslo', 4], ['Rome', 28]]) {
        const first = (await ai.chat.completions.create({ ...base, messages: user(`What is the weather in ${city}?`),
            tool_choice: { type: 'function', function: { name: 'get_weather' } } })).choices[0].message;
        const said = (await ai.chat.completions.create({ ...base, messages: [...user(`What is the weather in ${city}?`), first,
            { role: 'tool', tool_call_id: first.tool_calls[0].id, content: `{"degrees": ${degrees}}` }] })).choices[0].message;
        used += new RegExp(`\\b${degrees}\\b`).test(said.content ?? '');
    }
    console.log(`  results of calls: ${used} of 3 answers use them`);
}

(async () => {
    for (const file of files) {
        const server = await t.start(shoal, ['-m', `model=${path.resolve(file)}`]);
        console.log(path.basename(file));
        const all = interfaces(server.url, 'model');
        for (const choice of ['auto', 'required', 'named'])
            await of_choice(all, choice);
        await several(server.url, 'model');
        await results(server.url, 'model');
        t.same((await server.stop()).code, 0, 'exit');
    }
    t.finish();
})().catch(t.abandon);
