#!/usr/bin/env node
// Every stage of a request (src/flow/stages.c) through every interface: personal data is refused, a conversation
// continues, a paraphrase is answered from the semantic cache, text becomes a tool call, a route chooses the model. The
// table at the end has no holes but those that are named here. Usage: stages.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const m = require('../integration/mqtt_site.js');
const { parrot } = require('../integration/parrot.js');
const { grpc, load, call, decodeDetails } = require('./grpc_client.js');
const WebSocket = require(t.npm('ws@8.18.0'));

const shoal = path.resolve(process.argv[2]);
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const hermes = `{%- for t in tools or [] %}{{ t | tojson }}<tool_call>{% endfor %}{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant
`;
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const words = 'act: turn_off; device: lights; room: kitchen; result: done';

function write_config(broker, tools) {
    const file = path.join(t.tmp, 'stages.yaml');
    fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply.gguf", context: 1024}
  - {name: embed, path: "${t.root}/models/encoder", task: embed}
  - {name: tools, path: "${tools}"}
routes:
  - {name: near, models: [reply], similar: 0.8}
  - {name: strict, models: [reply], privacy: {action: refuse, find: [email]}}
  - {name: quiet, models: [reply]}
flows:
  - name: guarded
    output: \${say.text}
    steps:
      - {name: say, do: generate, model: strict, text: "\${input.text}", max_tokens: 4}
sessions:
  store: "sqlite:${path.join(t.tmp, 'sessions.db')}"
  key_file: "${path.join(t.tmp, 'sessions.key')}"
mqtt:
  broker: ${broker.url}
  client_id: stages
  queue: {file: "${t.tmp}/queue"}
`);
    return file;
}

// A request in the words of each interface. ask: { model, text, session, tools }. Result: { ok, text: all of the answer
// or of the error, calls: names of the called tools }.
function interfaces(server, mqtt, ws, client) {
    const http = (where, body, names) => async (ask) => {
        const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body(ask)),
            headers: ask.session ? { 'x-shoal-session': ask.session } : {} }), where);
        const text = await r.text();
        return { ok: r.status === 200, text, calls: names ? names(JSON.parse(text)) : [] };
    };
    const chat = (ask) => [{ role: 'user', content: ask.text }];
    const functions = [{ type: 'function', function: { name: 'get_weather', parameters } }];
    const limits = { temperature: 0, max_tokens: 200 };
    const openai = (ask) => ({ model: ask.model, ...limits, messages: chat(ask), ...(ask.tools ? { tools: functions } : {}) });
    const called = (r) => (r.choices?.[0].message.tool_calls ?? []).map((c) => c.function.name);
    return {
        'OpenAI chat': http('/v1/chat/completions', openai, called),
        'OpenAI completions': http('/v1/completions', (ask) => ({ model: ask.model, ...limits, prompt: ask.text })),
        'OpenAI responses': http('/v1/responses', (ask) => ({ model: ask.model, temperature: 0, max_output_tokens: 200, input: ask.text,
            ...(ask.tools ? { tools: [{ type: 'function', name: 'get_weather', parameters }] } : {}) }),
        (r) => (r.output ?? []).filter((x) => x.type === 'function_call').map((x) => x.name)),
        Anthropic: http('/v1/messages', (ask) => ({ model: ask.model, ...limits, messages: chat(ask),
            ...(ask.tools ? { tools: [{ name: 'get_weather', input_schema: parameters }] } : {}) }),
        (r) => (r.content ?? []).filter((x) => x.type === 'tool_use').map((x) => x.name)),
        'Ollama chat': http('/api/chat', (ask) => ({ model: ask.model, stream: false, options: { temperature: 0, num_predict: 200 },
            messages: chat(ask), ...(ask.tools ? { tools: functions } : {}) }),
        (r) => (r.message?.tool_calls ?? []).map((c) => c.function.name)),
        'llama.cpp': http('/completion', (ask) => ({ model: ask.model, temperature: 0, n_predict: 200, prompt: ask.text })),
        TGI: http('/generate', (ask) => ({ model: ask.model, inputs: ask.text, parameters: { max_new_tokens: 20 } })),
        gRPC: async (ask) => {
            const meta = new grpc.Metadata();
            if (ask.session)
                meta.set('x-shoal-session', ask.session);
            try {
                const r = await call(client, 'Generate', { model: ask.model, temperature: 0, max_tokens: 200, messages: chat(ask),
                    tools: ask.tools ? [{ name: 'get_weather', parameters: JSON.stringify(parameters) }] : [] }, {}, meta);
                return { ok: true, text: r.text, calls: r.tool_calls.map((c) => c.name) };
            } catch (e) {
                const details = e.metadata?.get('grpc-status-details-bin')[0];
                return { ok: false, text: `${e.message} ${details ? decodeDetails(details).ErrorInfo?.reason : ''}`.toLowerCase(), calls: [] };
            }
        },
        WebSocket: async (ask) => {
            const id = `w${ws.n++}`, body = { ...openai(ask), ...(ask.session ? { session_id: ask.session } : {}) };
            ws.send(JSON.stringify({ id, body }));
            await t.until(() => ws.seen.some((x) => x.id === id && 'status' in x), `an answer to ${id}`);
            const r = ws.seen.find((x) => x.id === id);
            return { ok: r.status === 200, text: JSON.stringify(r.body), calls: called(r.body) };
        },
        MQTT: async (ask) => {
            const body = { ...openai(ask), ...(ask.session ? { session_id: ask.session } : {}) };
            const [r] = await m.ask(mqtt, `shoal/request/${ask.model}`, body);
            return { ok: r.properties.status === '200', text: r.text, calls: called(JSON.parse(r.text)) };
        },
    };
}

// What works where. A text in the place of true names the hole: the error must say it.
const chats = { privacy: true, session: true, similar: true, tools: true, route: true };
const prompts = { ...chats, session: 'only a chat can continue a session', similar: 'a prompt is no question', tools: 'has no tools' };
const wanted = { 'OpenAI chat': chats, 'OpenAI completions': prompts, 'OpenAI responses': chats, Anthropic: chats, 'Ollama chat': chats,
    'llama.cpp': prompts, TGI: prompts, gRPC: chats, WebSocket: chats, MQTT: chats };

async function drive(server, name, send) {
    const hits = () => t.metric(server, 'shoal_similar_total{outcome="hit"}');
    const found = {};
    const refused = await send({ model: 'strict', text: 'write to anna.schmidt@example.org' });
    found.privacy = !refused.ok && /personal.data/.test(refused.text) && !refused.text.includes('anna.schmidt');
    const plain = await send({ model: 'quiet', text: `${words} ` });
    found.route = plain.ok;
    if (!plain.ok)
        console.log(`${name}: ${plain.text}`);
    // one conversation for all interfaces
    const turn = await send({ model: 'quiet', text: `${name} was here`, session: 'all' });
    const kept = await (await t.within(fetch(`${server.url}/v1/sessions/all`), 'the session')).json();
    found.session = turn.ok && (kept.messages ?? []).some((x) => x.content === `${name} was here`);
    if (!turn.ok && turn.text.includes(prompts.session))
        found.session = prompts.session;
    const first = await send({ model: 'near', text: words }), before = await hits();
    const again = await send({ model: 'near', text: `please ${words}` });
    t.check(first.ok && again.ok, `${name}: ${first.text} ${again.text}`);
    found.similar = await hits() > before || (wanted[name] === prompts && prompts.similar);
    if (wanted[name] === prompts) {
        found.tools = prompts.tools;
    } else {
        const r = await send({ model: 'tools', text: 'the weather?', tools: true });
        found.tools = r.calls.join() === 'get_weather';
        if (!found.tools)
            console.log(`${name}: ${r.text}`);
    }
    for (const stage of Object.keys(chats))
        t.same(found[stage], wanted[name][stage], `${name}: ${stage}`);
    return found;
}

// A stream, and an explanation: which stages took the request, in their order, with times.
async function explains(server) {
    for (const [where, body] of [['/v1/chat/completions', { messages: [{ role: 'user', content: words }] }],
        ['/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: words }] }],
        ['/api/chat', { messages: [{ role: 'user', content: words }] }], ['/completion', { prompt: words, n_predict: 4 }]])
        for (const stream of [false, true]) {
            const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify({ model: 'quiet', stream, ...body }),
                headers: { 'x-shoal-explain': '1' } }), where);
            await r.text();
            const told = r.headers.get('server-timing') ?? '';
            t.check(/^route;dur=[\d.]+, run;dur=[\d.]+$/.test(told), `${where}: ${told}`);
        }
    const r = await t.within(fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { 'x-shoal-session': 'told', 'x-shoal-explain': '1' },
        body: JSON.stringify({ model: 'strict', messages: [{ role: 'user', content: words }] }) }), 'an explanation');
    t.check(/^privacy;dur=[\d.]+, session;dur=[\d.]+, route;dur=[\d.]+, run;dur=/.test(r.headers.get('server-timing')),
        `all that took it: ${r.headers.get('server-timing')}`);
    const quiet = await t.within(fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model: 'reply', prompt: 'a', max_tokens: 1 }) }), '');
    t.same(quiet.headers.get('server-timing'), null, 'nobody asked');
}

// Flows of the command line go through the same stages: without a server there are no sessions and no semantic cache.
function command_line(file) {
    const run = (text) => spawnSync(shoal, ['flow', 'run', file, text], { encoding: 'utf8', env: { ...process.env, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') } });
    const good = run('hello'), bad = run('write to anna.schmidt@example.org');
    t.same(good.status, 0, `command line: ${good.stderr}`);
    t.check(bad.status !== 0 && /personal data/.test(bad.stderr), `command line: ${bad.stdout} ${bad.stderr}`);
}

(async () => {
    const tools = parrot(path.join(t.tmp, 'tools.gguf'), { template: hermes, special: ['<|im_start|>', '<|im_end|>'],
        say: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>' });
    const broker = await m.Broker.open();
    const file = write_config(broker, tools);
    const server = await t.start(shoal, ['--config', file]);
    await m.up(server);
    const mqtt = await m.connect(broker);
    const ws = await t.within(new Promise((done, give) => {
        const s = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
        s.seen = [];
        s.n = 0;
        s.on('message', (x) => s.seen.push(JSON.parse(x.toString())));
        s.on('open', () => done(s));
        s.on('error', give);
    }), 'a WebSocket');
    const client = new Shoal(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
    const table = {};
    for (const [name, send] of Object.entries(interfaces(server, mqtt, ws, client)))
        table[name] = await drive(server, name, send);
    console.table(table);
    await explains(server);
    command_line(file);
    ws.close();
    client.close();
    await mqtt.endAsync(true);
    t.same((await server.stop()).code, 0, 'ends well');
    await broker.kill('SIGTERM');
    t.finish();
})().catch(t.abandon);
