#!/usr/bin/env node
// What clients of several interfaces are used to: names of models, stop texts, stored and background responses, refusals by name.
// Usage: serve_doors.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');
const { parrot } = require('./parrot.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');

function config(text) {
    const file = path.join(t.tmp, `doors-${Math.random().toString(36).slice(2)}.yaml`);
    fs.writeFileSync(file, text);
    return file;
}

function client(server, key) {
    return async (method, url, body) => {
        const r = await fetch(server.url + url, { method, body: body && JSON.stringify(body),
            headers: key ? { authorization: `Bearer ${key}` } : {} });
        const text = await r.text();
        let json = {};
        try {
            json = JSON.parse(text);
        } catch {}
        return { status: r.status, text, json, allow: r.headers.get('allow') };
    };
}

async function names() {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const ask = client(server);
    const messages = [{ role: 'user', content: 'hi' }];
    for (const model of ['tgi', 'default']) {
        const r = await ask('POST', '/v1/chat/completions', { model, messages, max_tokens: 1 });
        t.same(`${r.status} ${r.json.model}`, '200 long', `the model ${model}`);
    }
    t.same((await ask('POST', '/v1/chat/completions', { model: 'gpt-4o', messages })).status, 404, 'another name');
    const stop = Array.from({ length: 100 }, (_, i) => `never ${i}`);
    t.same((await ask('POST', '/v1/completions', { prompt: 'x', max_tokens: 2, stop })).status, 200, '100 stop texts');
    t.same((await ask('POST', '/v1/completions', { prompt: 'x', max_tokens: 2, stop: [...stop, ...stop, ...stop] })).status, 400, '300 of them');
    const m = await ask('POST', '/v1/moderations', { input: 'hello' });
    t.same(`${m.status} ${m.json.error.code}`, '404 unsupported_endpoint', 'moderations');
    t.check(m.json.error.message.includes('/v1/classify'), 'says what to do');
    const put = await ask('POST', '/v1/responses/resp_1', {});
    t.same(`${put.status} ${put.allow}`, '405 GET, HEAD, DELETE', 'methods of a response');
    t.same((await ask('POST', '/v1/responses/resp_1/cancel', {})).status, 404, 'one that does not exist cannot be cancelled');
    t.same((await ask('POST', '/v1/responses/resp_1/x/cancel', {})).status, 405, 'a star between slashes is no path');
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false };
    const a = await ask('POST', '/v1/messages', { model: 'long', max_tokens: 64, messages, output_config: { format: { type: 'json_schema', schema } } });
    t.same(typeof JSON.parse(a.json.content[0].text).ok, 'boolean', 'a schema of Anthropic');
    await server.stop();
}

// Text Embeddings Inference's /tokenize.
async function places() {
    const server = await t.start(shoal, []);
    const ask = client(server);
    const text = 'Turn off the Kitchen lights';
    const r = await ask('POST', '/tokenize', { inputs: text });
    t.same(r.status, 200, `tokenize: ${r.text.slice(0, 200)}`);
    const [tokens] = r.json;
    t.check(tokens[0].special && tokens[0].start === null, 'a special one');
    const plain = tokens.filter((x) => !x.special);
    t.same(plain.map((x) => x.text).join(''), text.replace(/ /g, ''), 'texts');
    t.check(plain.every((x) => text.slice(x.start, x.stop) === x.text), 'places');
    const bare = (await ask('POST', '/tokenize', { inputs: [text], add_special_tokens: false })).json[0];
    t.same(bare.map((x) => x.id).join(), plain.map((x) => x.id).join(), 'without special tokens');
    t.check((await ask('POST', '/tokenize', { text })).json.count > 3, 'the other form stays');
    await server.stop();
}

async function stored() {
    const file = path.join(t.tmp, 'responses.jsonl');
    const args = ['--config', config(`
models: [{name: long, path: ${long}}]
responses: {file: ${file}}
keys: [{name: anna, sha256: ${sha('a')}}, {name: ben, sha256: ${sha('b')}}]
`)];
    let server = await t.start(shoal, args);
    let ask = client(server, 'a');
    const first = (await ask('POST', '/v1/responses', { input: 'one', max_output_tokens: 3 })).json;
    const second = (await ask('POST', '/v1/responses', { input: 'two', max_output_tokens: 3, previous_response_id: first.id })).json;
    const gone = (await ask('POST', '/v1/responses', { input: 'three', max_output_tokens: 3 })).json;
    t.same((await ask('DELETE', `/v1/responses/${gone.id}`)).status, 200, 'deleted');
    // answers that are no text too: this model writes any bytes
    const chains = [];
    for (let i = 0; i < 8; i++)
        chains.push((await ask('POST', '/v1/responses', { input: `hello ${i}`, max_output_tokens: 24 })).json.id);
    const go_on = async () => {
        const said = [];
        for (const id of chains) {
            const r = (await ask('POST', '/v1/responses', { input: 'more', previous_response_id: id, max_output_tokens: 8, temperature: 0, store: false })).json;
            said.push(`${r.usage.input_tokens} ${r.output[0].content[0].text}`);
        }
        return JSON.stringify(said);
    };
    const before = await go_on();
    t.same((await server.stop()).code, 0, 'ends well');
    fs.appendFileSync(file, 'damaged\n');
    server = await t.start(shoal, args);
    ask = client(server, 'a');
    t.same(JSON.stringify((await ask('GET', `/v1/responses/${second.id}`)).json), JSON.stringify(second), 'it is still there after a restart');
    t.same((await ask('GET', `/v1/responses/${gone.id}`)).status, 404, 'a deleted one is not');
    t.same((await client(server, 'b')('GET', `/v1/responses/${second.id}`)).status, 404, 'nor for another key');
    t.same(await go_on(), before, 'the same conversations');
    const items = (await ask('GET', `/v1/responses/${second.id}/input_items`)).json.data;
    t.same(items.map((x) => x.content[0].text).join(), 'two', 'its input');
    const third = await ask('POST', '/v1/responses', { input: 'four', max_output_tokens: 3, previous_response_id: second.id });
    t.same(third.status, 200, 'the conversation goes on');
    t.check(third.json.usage.input_tokens > second.usage.input_tokens, 'with what was said before');
    await server.stop();
}

async function background() {
    const server = await t.start(shoal, ['--config', config(`
models: [{name: long, path: ${long}}]
keys: [{name: anna, sha256: ${sha('a')}}, {name: ben, sha256: ${sha('b')}}]
`)]);
    const ask = client(server, 'a'), other = client(server, 'b');
    const short = (await ask('POST', '/v1/responses', { input: 'hi', max_output_tokens: 5, temperature: 0, background: true })).json;
    t.same(`${short.status} ${short.background} ${short.output.length}`, 'in_progress true 0', 'begins');
    let now;
    await t.until(async () => {
        now = (await ask('GET', `/v1/responses/${short.id}`)).json;
        return now.status !== 'in_progress';
    }, 'it completes');
    t.check(['completed', 'incomplete'].includes(now.status) && now.output[0].content[0].text.length > 0, `complete: ${now.status}`);
    t.same(now.model, 'long', 'with its model');
    t.same((await ask('POST', `/v1/responses/${short.id}/cancel`)).status, 400, 'a complete one cannot be cancelled');
    const endless = { input: 'hi', background: true, max_output_tokens: 100000, text: { format: { type: 'json_schema', name: 'x', schema: {
        type: 'array', items: { type: 'string', minLength: 100000, maxLength: 1000000 }, minItems: 1000 } } } };
    const run = (await ask('POST', '/v1/responses', endless)).json;
    t.same(run.status, 'in_progress', 'a long one');
    t.same((await other('POST', `/v1/responses/${run.id}/cancel`)).status, 404, 'of another key');
    t.same((await ask('POST', '/v1/responses', { input: 'x', previous_response_id: run.id })).status, 400, 'it cannot be continued yet');
    t.same(await t.metric(server, 'shoal_calls_in_flight '), 1, 'it counts to the limits');
    const cancelled = await ask('POST', `/v1/responses/${run.id}/cancel`);
    t.same(`${cancelled.status} ${cancelled.json.status}`, '200 cancelled', 'cancelled');
    await t.until(async () => (await t.metric(server, 'shoal_calls_in_flight ')) === 0, 'its work ends');
    t.same((await ask('GET', `/v1/responses/${run.id}`)).json.status, 'cancelled', 'and it stays so');
    t.same((await ask('POST', '/v1/responses/resp_none/cancel')).status, 404, 'an unknown one');
    const bad = (await ask('POST', '/v1/responses', { input: 'hi', model: 'nope', background: true })).json;
    await t.until(async () => {
        now = (await ask('GET', `/v1/responses/${bad.id}`)).json;
        return now.status === 'failed';
    }, 'a failure is stored');
    t.check(now.error.code === 'model_not_found' && now.error.message.includes('nope'), 'with its reason');
    await server.stop();
}

// `admin: loopback`: programs of this machine may change models of a server without keys; nobody else.
async function loopback() {
    const change = async (server, headers = {}) => {
        const { port } = server;
        return new Promise((done, give) => {
            const r = http.request({ port, host: '127.0.0.1', method: 'POST', path: '/api/copy', headers: { host: `127.0.0.1:${port}`, ...headers } },
                (a) => { a.resume(); a.on('end', () => done(a.statusCode)); });
            r.on('error', give);
            r.end(JSON.stringify({ source: 'long', destination: `copy-${Math.random().toString(36).slice(2, 8)}` }));
        });
    };
    const dir = path.join(t.tmp, 'ollama');
    const off = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nollama: {dir: ${dir}}\n`)]);
    t.same(await change(off), 403, 'off without the option');
    await off.stop();
    const server = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nadmin: loopback\nollama: {dir: ${dir}}\n`)]);
    const { port } = server;
    t.same(await change(server), 200, 'a program of this machine');
    t.same(await change(server, { host: `localhost:${port}` }), 200, 'by another name of it');
    t.same(await change(server, { origin: `http://127.0.0.1:${port}` }), 200, 'the page of this server');
    t.same(await change(server, { origin: 'http://evil.example' }), 403, 'a foreign page');
    t.same(await change(server, { origin: 'null' }), 403, 'a page without an origin');
    t.same(await change(server, { host: 'evil.example' }), 421, 'a foreign name');
    for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
        t.same(await change(server, { [header]: '10.0.0.1' }), 403, `behind a proxy (${header})`);
    await server.stop();
    const wide = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nadmin: loopback\nollama: {dir: ${dir}}\n`)],
        { listen: '0.0.0.0:0' });
    t.same(await change(wide), 403, 'not over an address of the network');
    await wide.stop();
    const keyed = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nadmin: loopback\nollama: {dir: ${dir}}\n` +
        `keys: [{name: anna, sha256: ${sha('a')}}, {name: root, admin: true, sha256: ${sha('r')}}]\n`)]);
    t.same(await change(keyed), 401, 'with keys a key is needed');
    t.same(await change(keyed, { authorization: 'Bearer a' }), 403, 'and one of an administrator');
    t.same(await change(keyed, { authorization: 'Bearer r' }), 200, 'as OLLAMA_API_KEY is sent');
    await keyed.stop();
}

// Habits of Ollama's clients.
async function ollama() {
    const server = await t.start(shoal, []);
    const ask = client(server);
    const base = { model: 'reply', prompt: 'Say hello.', stream: false };
    t.same((await ask('POST', '/api/generate', { ...base, num_predict: 2 })).json.eval_count, 2, 'num_predict at the top');
    t.same((await ask('POST', '/api/generate', { ...base, num_predict: 9, options: { num_predict: 1 } })).json.eval_count, 1, 'options win');
    const go = '{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n<|im_start|>assistant\n{{ .Response }}';
    t.same((await ask('POST', '/api/generate', { ...base, template: go, options: { num_predict: 2 } })).status, 200, 'a template of Go');
    const bad = await ask('POST', '/api/generate', { ...base, template: '{{ range .Messages }}{{ .Content }}{{ end }}' });
    t.check(bad.status === 400 && bad.text.includes('{{ range .Messages }}'), `refused by name: ${bad.text}`);
    const image = await ask('POST', '/api/generate', { ...base, images: ['aGk='] });
    t.check(image.status === 400 && image.text.includes('images'), 'images are refused by name');
    const inChat = await ask('POST', '/api/chat', { model: 'reply', stream: false, messages: [{ role: 'user', content: 'x', images: ['aGk='] }] });
    t.check(inChat.status === 400 && inChat.text.includes('images'), 'in a chat, too');
    const embed = async (body) => (await ask('POST', '/api/embed', { model: 'embed', ...body })).json.embeddings;
    t.same(JSON.stringify(await embed({ prompt: 'hello' })), JSON.stringify(await embed({ input: 'hello' })), 'prompt of /api/embed');
    await server.stop();
}

// Slots of llama.cpp's server: a text that was evaluated, saved, restored after a restart, erased.
async function slots() {
    const dir = path.join(t.tmp, 'slots');
    fs.mkdirSync(dir);
    const text = `models: [{name: long, path: ${long}}]\nkeys: [{name: anna, sha256: ${sha('a')}}, {name: ben, sha256: ${sha('b')}}]\n`;
    const args = ['--config', config(`${text}slots: {dir: ${dir}}\n`)];
    const prompt = 'The quick brown fox jumps over the lazy dog. '.repeat(8);
    let server = await t.start(shoal, args);
    let ask = client(server, 'a');
    const act = (id, action, filename) => ask('POST', `/slots/${id}?action=${action}`, filename === undefined ? undefined : { filename });
    t.same((await act(3, 'save', 'fox.bin')).status, 400, 'an empty slot');
    const first = (await ask('POST', '/completion', { prompt, n_predict: 4, id_slot: 3, cache_prompt: true, temperature: 0 })).json;
    t.same(first.id_slot, 3, 'the slot of an answer');
    const saved = (await act(3, 'save', 'fox.bin')).json;
    t.check(saved.id_slot === 3 && saved.filename === 'fox.bin' && saved.n_saved === first.tokens_cached && saved.n_written > prompt.length &&
        saved.timings.save_ms >= 0, `saved: ${JSON.stringify(saved)}`);
    for (const bad of ['../x', 'a/b', '', '.hidden', 'x'.repeat(200), 5])
        t.same((await act(3, 'save', bad)).status, 400, `the name ${JSON.stringify(bad)}`);
    t.same((await act(999, 'save', 'x')).status, 400, 'no such slot');
    t.same((await act(3, 'dance', 'x')).status, 400, 'no such action');
    await server.stop();
    server = await t.start(shoal, args);
    ask = client(server, 'a');
    t.same((await act(0, 'restore', 'nothing.bin')).status, 404, 'a file that is not there');
    const back = (await act(5, 'restore', 'fox.bin')).json;
    t.check(back.id_slot === 5 && Math.abs(back.n_restored - saved.n_saved) <= 2 && back.n_read === saved.n_written, `restored: ${JSON.stringify(back)}`);
    const again = (await ask('POST', '/completion', { prompt, n_predict: 4, id_slot: 5, temperature: 0 })).json;
    t.same(again.content, first.content, 'the same answer');
    t.check(again.timings.cache_n > 16, `what was restored is not computed again: ${again.timings.cache_n}`);
    t.check((await act(5, 'erase')).json.n_erased > 50, 'erased');
    t.same((await act(5, 'erase')).json.n_erased, 0, 'nothing is left');
    ask = client(server, 'b');
    t.same((await act(0, 'restore', 'fox.bin')).status, 404, 'the files of another key');
    await server.stop();
    server = await t.start(shoal, ['--config', config(text)]);
    ask = client(server, 'a');
    const off = await act(0, 'save', 'x');
    t.check(off.status === 501 && off.text.includes('slots.dir'), 'without a folder');
    await server.stop();
}

// Habits of llama.cpp's and Ollama's clients: what is computed again, kept when the context is shifted, and told of each token.
async function habits() {
    const server = await t.start(shoal, ['-m', `long=${long}`]);
    const ask = client(server);
    const prompt = 'The quick brown fox jumps over the lazy dog. '.repeat(4);
    const complete = async (more) => (await ask('POST', '/completion', { prompt, n_predict: 2, temperature: 0, seed: 1, ...more })).json;
    // what Ollama's own command line sends and needs
    t.same((await ask('POST', '/api/show', { model: '', name: 'long' })).status, 200, 'an empty model beside a name');
    t.check((await ask('GET', '/api/tags')).json.models.every((m) => /^[0-9a-f]{64}$/.test(m.digest)), 'every model has a digest');
    t.same((await ask('POST', '/api/me')).status, 401, 'nobody is signed in without a registry');
    t.same((await ask('GET', '/api/status')).json.cloud.disabled, true, 'no cloud');
    const first = await complete({ n_predict: 4 });
    t.check((await complete({})).timings.cache_n > 16, 'the beginning is cached');
    const again = await complete({ n_predict: 4, cache_prompt: false });
    t.same(again.timings.cache_n, 0, 'cache_prompt: false');
    t.same(again.content, first.content, 'the same text');
    const chat = await ask('POST', '/v1/chat/completions', { messages: [{ role: 'user', content: prompt }], max_tokens: 1, cache_prompt: false });
    t.same(chat.json.usage.prompt_tokens_details.cached_tokens, 0, 'in a chat');
    const many = await complete({ n_probs: 100 });
    const tops = many.completion_probabilities[0].top_logprobs;
    t.same(tops.length, 100, 'n_probs');
    t.check(tops.every((x, i) => i === 0 || x.logprob <= tops[i - 1].logprob), 'the likeliest first');
    await server.stop();
}

// What a model thinks is an item of its own of a response, whole and streamed, and is not read again.
async function thoughts() {
    const flow = (name, text) => `  - {name: ${name}, output: "\${out.text}", steps: [{name: out, do: template, text: "${text}"}]}\n`;
    const server = await t.start(shoal, ['--config', config(`models: [{name: long, path: ${long}}]\nflows:\n` +
        flow('thinker', '<think>\\nIt asks for \${input.text}.\\n</think>\\n\\nFine: \${input.text}') + flow('plain', 'a <think>b</think>') + flow('dreamer', '<think>for ever'))]);
    const ask = client(server);
    const whole = (await ask('POST', '/v1/responses', { model: 'thinker', input: 'tea' })).json;
    t.same(whole.output.map((o) => o.type).join(), 'reasoning,message', JSON.stringify(whole));
    t.same(whole.output[0].content[0].text.trim(), 'It asks for tea.', 'the thought');
    t.same(whole.output[1].content[0].text, 'Fine: tea', 'the answer');
    t.same((await ask('GET', `/v1/responses/${whole.id}`)).json.output.length, 2, 'stored');
    const events = (await ask('POST', '/v1/responses', { model: 'thinker', input: 'tea', stream: true })).text.split('\n').filter((l) => l.startsWith('data: {'))
        .map((l) => JSON.parse(l.slice(6)));
    const types = events.map((e) => e.type.replace('response.', '')).filter((x, i, all) => x !== all[i - 1]).join();
    t.same(types, 'created,in_progress,output_item.added,content_part.added,reasoning_text.delta,reasoning_text.done,content_part.done,output_item.done,' +
        'output_item.added,content_part.added,output_text.delta,output_text.done,content_part.done,output_item.done,completed', 'events');
    const joined = (type) => events.filter((e) => e.type === type).map((e) => e.delta).join('');
    t.same(joined('response.reasoning_text.delta').trim(), 'It asks for tea.', 'the thought, streamed');
    t.same(joined('response.output_text.delta'), 'Fine: tea', 'the answer, streamed');
    t.same(JSON.stringify(events.at(-1).response.output.map((o) => o.content)), JSON.stringify(whole.output.map((o) => o.content)), 'the same at the end');
    t.check(events.filter((e) => e.item?.type === 'message').every((e) => e.output_index === 1), 'places');
    const plain = (await ask('POST', '/v1/responses', { model: 'plain', input: 'x' })).json;
    t.same(plain.output.map((o) => `${o.type} ${o.content[0].text}`).join(), 'message a <think>b</think>', 'not at the beginning');
    const dream = (await ask('POST', '/v1/responses', { model: 'dreamer', input: 'x' })).json;
    t.same(dream.output.map((o) => `${o.type} ${o.status}`).join(), 'reasoning incomplete', 'a thought without an end');
    await server.stop();
}

// The same in the other interfaces, each by its own convention, from a model that writes token by token.
async function thoughtsElsewhere() {
    const chatml = fs.readFileSync(path.join(t.root, 'tests/data/chat_templates/smollm2.jinja'), 'utf8');
    const model = (name, say) => `{name: ${name}, path: ${parrot(path.join(t.tmp, `${name}.gguf`), { template: chatml, special: ['<|im_start|>', '<|im_end|>'], say })}}`;
    const server = await t.start(shoal, ['--config', config(`models: [${model('thinker', '<think>\nIt asks for < tea.\n</think>\n\nFine: <b>')}, ${model('plain', '<thin> air')}, ${model('dreamer', '<think>for ever')}]\n`)]);
    const ask = client(server), messages = [{ role: 'user', content: 'tea' }];
    const events = async (url, body) => (await ask('POST', url, { ...body, stream: true })).text.split('\n').filter((l) => /^(data: )?\{/.test(l)).map((l) => JSON.parse(l.replace('data: ', '')));
    const join = (list) => list.map((x) => x ?? '').join('');
    for (const [name, thought, answer] of [['thinker', 'It asks for < tea.', 'Fine: <b>'], ['plain', undefined, '<thin> air'], ['dreamer', 'for ever', '']]) {
        const chat = (await ask('POST', '/v1/chat/completions', { model: name, messages })).json.choices[0].message;
        t.same(`${chat.reasoning_content?.trim()} | ${chat.content}`, `${thought} | ${answer}`, `${name}: chat`);
        const raw = (await ask('POST', '/v1/chat/completions', { model: name, messages, reasoning_format: 'none' })).json.choices[0].message;
        t.check(!('reasoning_content' in raw) && (!thought || raw.content.startsWith('<think>')), `${name}: reasoning_format: none`);
        const chunks = (await events('/v1/chat/completions', { model: name, messages, n: 2 })).flatMap((e) => e.choices);
        for (const i of [0, 1]) {
            const deltas = chunks.filter((c) => c.index === i).map((c) => c.delta);
            t.same(`${join(deltas.map((d) => d.reasoning_content)).trim()} | ${join(deltas.map((d) => d.content))}`, `${thought ?? ''} | ${answer}`, `${name}: chat, streamed, ${i}`);
        }
        const kept = (await events('/v1/chat/completions', { model: name, messages, reasoning_format: 'none' })).flatMap((e) => e.choices);
        t.same(join(kept.map((c) => c.delta.content)), raw.content, `${name}: none, streamed`);
        const counted = (await events('/v1/chat/completions', { model: name, messages, logprobs: true })).flatMap((e) => e.choices);
        t.same(`${join(counted.map((c) => c.delta.content))} ${counted.filter((c) => c.logprobs?.content?.length).length > 0}`, `${answer} true`, `${name}: log-probabilities`);
        const own = (await ask('POST', '/api/chat', { model: name, messages, stream: false })).json.message;
        t.same(`${own.thinking?.trim()} | ${own.content}`, `${thought} | ${answer}`, `${name}: Ollama`);
        const lines = await events('/api/chat', { model: name, messages });
        t.same(`${join(lines.map((l) => l.message.thinking)).trim()} | ${join(lines.map((l) => l.message.content))}`, `${thought ?? ''} | ${answer}`, `${name}: Ollama, streamed`);
        const text = await events('/api/generate', { model: name, prompt: 'tea' });
        t.same(`${join(text.map((l) => l.thinking)).trim()} | ${join(text.map((l) => l.response))}`, `${thought ?? ''} | ${answer}`, `${name}: Ollama's generate`);
        const body = { model: name, messages, max_tokens: 200, thinking: { type: 'enabled', budget_tokens: 1024 } };
        const blocks = (await ask('POST', '/v1/messages', body)).json.content;
        t.same(blocks.map((b) => `${b.type} ${(b.thinking ?? b.text).trim()}`).join(' | '),
            [thought && `thinking ${thought}`, answer && `text ${answer}`].filter(Boolean).join(' | '), `${name}: Anthropic`);
        const parts = await events('/v1/messages', body), at = (i) => parts.filter((e) => e.index === i);
        const expect = [thought && ['thinking', thought], answer && ['text', answer]].filter(Boolean);
        expect.forEach(([type, value], i) => {
            t.same(`${at(i)[0].type} ${at(i)[0].content_block.type} ${at(i).at(-1).type}`, `content_block_start ${type} content_block_stop`, `${name}: Anthropic, block ${i}`);
            t.same(join(at(i).map((e) => e.delta?.[type])).trim(), value, `${name}: Anthropic, ${type}`);
        });
        t.same(at(expect.length).length, 0, `${name}: no other block`);
    }
    await server.stop();
}

(async () => {
    await thoughts();
    await thoughtsElsewhere();
    await names();
    await habits();
    await slots();
    await loopback();
    await ollama();
    await places();
    await stored();
    await background();
    t.finish();
})().catch(t.abandon);
