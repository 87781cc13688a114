#!/usr/bin/env node
// A model may write NUL. Its text is neither cut nor lost nor an error: over every interface, from every cache, and in
// everything that the server keeps, also over a restart. Usage: serve_nul.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');
const { parrot } = require('./parrot.js');
const { grpc, load, call, gather } = require('../conformance/grpc_client.js');
const WebSocket = require(t.npm('ws@8.18.0'));

const shoal = path.resolve(process.argv[2]);
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const said = 'one\0two', thought = 'h\0m';
const hermes = '{% for t in tools or [] %}{{ t | tojson }}<tool_call>{% endfor %}{% for m in messages %}[{{ m.role }}] {{ m.content }}' +
    '{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %} {% endfor %}[assistant] ';
const template = '{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}[assistant] ';
const ask = [{ role: 'user', content: 'say it' }];
const limits = { temperature: 0, max_tokens: 20 };

function configure(broker) {
    const model = (name, say) => parrot(path.join(t.tmp, `${name}.gguf`), { template, say, context: 512 });
    const file = path.join(t.tmp, 'nul.yaml'), nul = { byte: 0 };
    fs.writeFileSync(file, `
models:
  - {name: nul, path: "${model('nul', ['one', nul, 'two'])}"}
  - {name: last, path: "${model('last', ['end', nul])}"}
  - {name: first, path: "${model('first', [nul, 'begin'])}"}
  - {name: thinks, path: "${model('thinks', ['<think>h', nul, 'm</think>one'])}"}
  - {name: apart, path: "${model('apart', ['one', nul, 'two'])}", isolation: process}
  - {name: calls, path: "${parrot(path.join(t.tmp, 'calls.gguf'), { template: hermes,
        say: '<tool_call>{"name": "look", "arguments": {"at": "Pa\\u0000ris"}}</tool_call>' })}"}
  - {name: odd, path: "${parrot(path.join(t.tmp, 'odd.gguf'), { template: hermes,
        say: '<tool_call>{"function": {"name": "look", "arguments": {"at": "Pa\\u0000ris"}}}</tool_call>' })}"}
  - {name: embed, path: "${t.root}/models/encoder", task: embed}
routes:
  - {name: near, models: [nul], similar: 0.8}
  - {name: better, refine: {model: last, better: nul}}
  - {name: agree, consensus: {model: nul, samples: 3}}
  - {name: masked, models: [nul], privacy: {action: mask, find: [email]}}
flows:
  - name: flow
    output: "\${tell.text}!"
    steps:
      - {name: say, do: generate, model: nul, text: "\${input.text}"}
      - {name: tell, do: template, text: "<\${say.text}>"}
responses: {file: "${t.tmp}/responses"}
deferred: {file: "${t.tmp}/deferred.db"}
sessions: {store: "sqlite:${t.tmp}/sessions.db", key_file: "${t.tmp}/sessions.key", history_tokens: 60, summary: nul}
mqtt: {broker: "${broker.url}", client_id: nul, queue: {file: "${t.tmp}/queue"}}
`);
    return file;
}

let server;
async function http(where, body, headers = {}, method = body ? 'POST' : 'GET') {
    const r = await t.within(fetch(server.url + where, { method, headers, body: body && JSON.stringify(body) }), where);
    const text = await r.text();
    t.check(r.status < 300, `${where}: ${r.status} ${text.slice(0, 300)}`);
    return { text, headers: r.headers, json: where.includes('stream') || body?.stream ? null : JSON.parse(text) };
}
const events = (text) => text.split('\n').filter((l) => /^(data: )?\{/.test(l)).map((l) => JSON.parse(l.replace(/^data: /, '')));

// name: [path, body, the text of a whole answer, the text of one event]
const interfaces = {
    chat: ['/v1/chat/completions', { ...limits, messages: ask }, (j) => j.choices[0].message.content, (e) => e.choices[0]?.delta.content],
    completions: ['/v1/completions', { ...limits, prompt: 'say' }, (j) => j.choices[0].text, (e) => e.choices[0]?.text],
    responses: ['/v1/responses', { temperature: 0, input: 'say' }, (j) => j.output.at(-1).content[0].text,
        (e) => (e.type === 'response.output_text.delta' ? e.delta : '')],
    anthropic: ['/v1/messages', { ...limits, messages: ask }, (j) => j.content.at(-1).text, (e) => e.delta?.text],
    'ollama chat': ['/api/chat', { messages: ask, options: { temperature: 0 }, stream: false }, (j) => j.message.content, (e) => e.message.content],
    'ollama generate': ['/api/generate', { prompt: 'say', options: { temperature: 0 }, stream: false }, (j) => j.response, (e) => e.response],
    'llama.cpp': ['/completion', { prompt: 'say', temperature: 0, n_predict: 20 }, (j) => j.content, (e) => e.content],
    TGI: ['/generate', { inputs: 'say', parameters: { max_new_tokens: 20 } }, (j) => j.generated_text, null],
};

async function spoken() {
    for (const [name, [where, body, whole, part]] of Object.entries(interfaces)) {
        for (const [model, want] of [['nul', said], ['last', 'end\0'], ['first', '\0begin'], ['apart', said], ['better', said],
            ['agree', said], ['masked', said]])
            t.same(whole((await http(where, { ...body, model })).json), want, `${name}, ${model}`);
        t.same(whole((await http(where, { ...body, model: 'nul' })).json), said, `${name}, again`); // from the prompt cache
        if (!part)
            continue;
        for (const model of ['nul', 'apart', 'masked', 'nul'])
            t.same(events((await http(where, { ...body, model, stream: true })).text).map((e) => part(e) ?? '').join(''), said, `${name}, ${model}, streamed`);
    }
    t.same((await http('/v1/chat/completions', { ...limits, model: 'flow', messages: ask })).json.choices[0].message.content, `<${said}>!`, 'a flow');
    const { choices: [c] } = (await http('/v1/chat/completions', { ...limits, model: 'nul', messages: ask, logprobs: true, top_logprobs: 2 })).json;
    t.same(JSON.stringify(c.logprobs.content.map((x) => x.bytes.length)), '[3,1,3]', 'log-probabilities');
    t.same(c.logprobs.content[1].token, '\0', 'of its token');
    const thinking = (await http('/v1/chat/completions', { ...limits, model: 'thinks', messages: ask })).json.choices[0].message;
    t.same(`${thinking.reasoning_content} ${thinking.content}`, `${thought} one`, 'thinking');
}

// A call whose argument holds an escaped NUL, and the turn after it.
async function called() {
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } } }];
    for (const model of ['calls', 'odd']) {
        const { tool_calls } = (await http('/v1/chat/completions', { temperature: 0, model, messages: ask, tools })).json.choices[0].message;
        t.same(JSON.parse(tool_calls?.[0].function.arguments ?? '{}').at, 'Pa\0ris', `${model}: an argument`);
        await http('/v1/chat/completions', { ...limits, model, tools, messages: [...ask, { role: 'assistant', tool_calls },
            { role: 'tool', tool_call_id: tool_calls[0].id, content: 'there' }] });
    }
    const flat = [{ type: 'function', name: 'look', parameters: tools[0].function.parameters }];
    const first = (await http('/v1/responses', { model: 'calls', temperature: 0, input: 'x', tools: flat })).json;
    await http('/v1/responses', { model: 'calls', tools: flat, previous_response_id: first.id,
        input: [{ type: 'function_call_output', call_id: first.output.at(-1).call_id, output: 'there' }] });
    const client = new Shoal(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
    const r = await call(client, 'Generate', { temperature: 0, max_tokens: 200, model: 'calls', messages: ask,
        tools: [{ name: 'look', parameters: JSON.stringify(flat[0].parameters) }] });
    t.same(JSON.parse(r.tool_calls[0]?.arguments ?? '{}').at, 'Pa\0ris', 'gRPC: an argument');
    client.close();
}

async function cached() {
    const near = (text) => http('/v1/chat/completions', { ...limits, model: 'near', messages: [{ role: 'user', content: text }] });
    await near('turn off the kitchen lights');
    const hit = await near('please turn off the kitchen lights');
    t.same(`${hit.headers.get('x-shoal-cache')} ${hit.json.choices[0].message.content}`, `similar ${said}`, 'the semantic cache');
    for (let i = 0; i < 2; i++)
        t.same((await http('/v1/completions', { model: 'nul', prompt: 'x' }, { 'idempotency-key': 'k' })).json.choices[0].text, said, `idempotency ${i}`);
    const slow = await http('/v1/chat/completions', { ...limits, model: 'nul', messages: ask }, { 'x-shoal-defer': '1h' });
    let r;
    await t.until(async () => (r = await http(`/v1/deferred/${slow.json.id}`)).headers.get('x-shoal-deferred') === 'done', 'a deferred answer');
    t.same(r.json.choices[0].message.content, said, 'a deferred answer');
    return slow.json.id;
}

const texts = (items) => items.map((i) => (i.content?.[0] ?? i).text).join('|');

// Stored responses, conversations and a session: the next turn sees all of the answer. A NUL is one token, as a dot is.
async function kept() {
    const turn = async (more) => (await http('/v1/responses', { model: 'nul', temperature: 0, input: 'x', ...more })).json;
    const first = await turn({}), next = await turn({ previous_response_id: first.id });
    const seen = next.usage.input_tokens;
    t.same(seen, (await http('/v1/responses/input_tokens', { model: 'nul', input: [{ role: 'user', content: 'x' },
        { role: 'assistant', content: 'one.two' }, { role: 'user', content: 'x' }] })).json.input_tokens, 'a chain sees all of the answer');
    const later = await turn({ background: true });
    await t.until(async () => (await http(`/v1/responses/${later.id}`)).json.status === 'completed', 'a background response');
    const conversation = (await http('/v1/conversations', {})).json.id;
    await turn({ conversation });
    t.same((await turn({ conversation })).usage.input_tokens, seen, 'a conversation sees all of the answer');
    const thinking = (await http('/v1/conversations', {})).json.id;
    await turn({ model: 'thinks', conversation: thinking });
    const session = { ...limits, model: 'nul', session_id: 's', messages: ask };
    await http('/v1/chat/completions', session);
    const usage = (await http('/v1/chat/completions', session)).json.usage.prompt_tokens;
    t.same(usage, (await http('/tokenize', { model: 'nul', content: '[user] say it [assistant] one.two [user] say it [assistant] ', add_special: true })).json
        .tokens.length, 'a session sees all of the answer');
    return { ids: [first.id, next.id, later.id], conversation, thinking };
}

async function read_back({ ids, conversation, thinking }, deferred, when) {
    for (const id of ids) {
        const { json } = await http(`/v1/responses/${id}`);
        t.same(texts(json.output), said, `${when}: a response`);
    }
    t.same(texts((await http(`/v1/responses/${ids[1]}/input_items?order=asc`)).json.data), 'x', `${when}: its input`);
    const items = (await http(`/v1/conversations/${conversation}/items?order=asc`)).json.data;
    t.same(texts(items), `x|${said}|x|${said}`, `${when}: a conversation`);
    t.same((await http(`/v1/conversations/${conversation}/items/${items[1].id}`)).json.content[0].text, said, `${when}: an item`);
    const reasons = (await http(`/v1/conversations/${thinking}/items?order=asc`)).json.data;
    t.check(JSON.stringify(reasons).includes(JSON.stringify(thought).slice(1, -1)), `${when}: what was thought: ${JSON.stringify(reasons)}`);
    const { messages, note } = (await http('/v1/sessions/s')).json;
    t.same(messages.at(-1).content, said, `${when}: a session`);
    t.check(when !== 'with notes' || note === 'one two', `${when}: a note: ${JSON.stringify(note)}`);
    t.same((await http(`/v1/deferred/${deferred}`)).json.choices[0].message.content, said, `${when}: a deferred answer`);
}

async function others(broker) {
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`);
    await t.within(new Promise((done) => ws.on('open', done)), 'a WebSocket');
    ws.send(JSON.stringify({ id: 'w', body: { ...limits, model: 'nul', messages: ask } }));
    const got = JSON.parse(await t.within(new Promise((done) => ws.once('message', done)), 'its answer'));
    t.same(got.body.choices[0].message.content, said, 'WebSocket');
    ws.close();
    const client = new Shoal(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
    for (const model of ['nul', 'apart', 'better'])
        t.same((await call(client, 'Generate', { ...limits, model, messages: ask })).text, said, `gRPC, ${model}`);
    const parts = await gather(client.GenerateStream({ ...limits, model: 'nul', messages: ask }));
    t.same(parts.map((p) => p.text).join(''), said, 'gRPC, streamed');
    client.close();
    const mqtt = await m.connect(broker);
    const [answer] = await m.ask(mqtt, 'shoal/request/nul', { ...limits, messages: ask });
    t.same(JSON.parse(answer.text).choices[0].message.content, said, 'MQTT');
    await mqtt.endAsync(true);
}

function command_line(file) {
    const run = (...args) => spawnSync(shoal, args, { encoding: 'latin1', env: { ...process.env, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') } });
    const r = run('generate', '-m', path.join(t.tmp, 'nul.gguf'), '--temp', '0', 'say');
    t.check(r.stdout.includes(said), `shoal generate: ${JSON.stringify(r.stdout)} ${r.stderr.slice(0, 300)}`);
    const j = run('generate', '-m', path.join(t.tmp, 'nul.gguf'), '--temp', '0', '--json', 'say');
    t.check(j.stdout.includes('one\\u0000two'), `shoal generate --json: ${JSON.stringify(j.stdout)} ${j.stderr.slice(0, 300)}`);
    const f = run('flow', 'run', file, 'say', '--flow', 'flow');
    t.check(f.stdout.includes(`<${said}>!`), `shoal flow run: ${JSON.stringify(f.stdout)} ${f.stderr.slice(0, 300)}`);
}

(async () => {
    const broker = await m.Broker.open(), file = configure(broker);
    server = await t.start(shoal, ['--config', file]);
    await m.up(server);
    await spoken();
    await called();
    const deferred = await cached(), all = await kept();
    await read_back(all, deferred, 'at once');
    await others(broker);
    await server.stop();
    server = await t.start(shoal, ['--config', file]);
    await read_back(all, deferred, 'after a restart');
    for (let i = 0; i < 8; i++) // until the oldest become a note
        await http('/v1/chat/completions', { ...limits, model: 'nul', session_id: 's', messages: ask });
    await t.until(async () => (await http('/v1/sessions/s')).json.note, 'a note');
    await read_back(all, deferred, 'with notes');
    command_line(file);
    t.same((await server.stop()).code, 0, 'ends well');
    await broker.kill('SIGTERM');
    t.finish();
})().catch(t.abandon);
