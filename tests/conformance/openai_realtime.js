#!/usr/bin/env node
// The official OpenAI client talks to /v1/realtime of `shoal serve` over TLS: spoken commands with the server's turn detection,
// push to talk, texts, calls of functions, interruption, cancelling; the names of the beta; keys as browsers send them; garbage.
// Usage: openai_realtime.js SHOAL
'use strict';
const { createHash } = require('crypto');
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');

const shoal = path.resolve(process.argv[2]), key = 'sk-realtime-1';
process.env.NODE_PATH = t.modules('openai@6.9.1', 'ws@8.18.0');
require('module').Module._initPaths();
const OpenAI = require('openai');
const { OpenAIRealtimeWS } = require('openai/realtime/ws');
const { OpenAIRealtimeWS: BetaWS } = require('openai/beta/realtime/ws');
const WebSocket = require('ws');
process.chdir(t.root); // where ./models is

// The samples of a 16 kHz WAV file at 24 kHz: every client must send that rate unless it says another.
function pcm24(name) {
    const data = fs.readFileSync(path.join(t.root, 'tests/data/audio', name)).subarray(44), n = Math.floor(data.length / 2 * 1.5);
    const out = Buffer.alloc(2 * n);
    for (let i = 0; i < n; i++) {
        const at = i / 1.5, k = Math.floor(at), a = data.readInt16LE(2 * k), b = 2 * k + 2 < data.length ? data.readInt16LE(2 * k + 2) : a;
        out.writeInt16LE(Math.round(a + (b - a) * (at - k)), 2 * i);
    }
    return out;
}
const quiet = (ms) => Buffer.alloc(48 * ms);

// A connection of the client that keeps every event.
async function connect(Client, url, model) {
    const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key });
    const rt = new Client({ model, options: { rejectUnauthorized: false } }, ai), got = [];
    let woken = () => {}, seen = 0;
    rt.on('event', (e) => { got.push(e); woken(); });
    rt.on('error', () => {}); // it is among the events
    rt.socket.on('close', (code) => { got.push({ type: 'closed', code }); woken(); });
    const next = async (type) => {
        for (;;) {
            for (; seen < got.length; seen++)
                if (got[seen].type === type || got[seen].type === 'closed')
                    return got[seen++];
            await t.within(new Promise((done) => { woken = done; }), { toString: () => `an event ${type} after ${JSON.stringify(got.slice(-3)).slice(0, 1500)}` });
        }
    };
    const say = (pcm) => { for (let i = 0; i < pcm.length; i += 4800) rt.send({ type: 'input_audio_buffer.append', audio: pcm.subarray(i, i + 4800).toString('base64') }); };
    t.same((await next('session.created')).session.model, model, 'the session');
    return { rt, got, next, say, send: (e) => rt.send(e), types: () => got.map((e) => e.type) };
}
const loudness = (deltas) => {
    const b = Buffer.concat(deltas.map((d) => Buffer.from(d, 'base64')));
    let sum = 0;
    for (let i = 0; i + 1 < b.length; i += 2)
        sum += b.readInt16LE(i) ** 2;
    return { seconds: b.length / 48000, rms: Math.sqrt(sum / (b.length / 2)) };
};

// Hands free, with the home: heard, carried out, answered in words and in sound.
async function home(url) {
    const c = await connect(OpenAIRealtimeWS, url, 'home');
    c.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.', audio: { output: { voice: 'joe' } } } });
    const updated = (await c.next('session.updated')).session;
    t.same(`${updated.instructions} ${updated.audio.output.voice} ${updated.audio.input.turn_detection.type}`, 'Be brief. joe server_vad', 'settings');
    c.say(Buffer.concat([quiet(600), pcm24('kitchen_lights.wav'), quiet(1000)]));
    const started = await c.next('input_audio_buffer.speech_started'), stopped = await c.next('input_audio_buffer.speech_stopped');
    t.check(started.audio_start_ms > 300 && started.audio_start_ms < 900 && stopped.audio_end_ms > 1800, `its place: ${started.audio_start_ms} to ${stopped.audio_end_ms}`);
    t.same((await c.next('input_audio_buffer.committed')).item_id, started.item_id, 'one turn, one item');
    t.same((await c.next('conversation.item.input_audio_transcription.completed')).transcript, 'Please turn on the kitchen lights.', 'the words');
    const done = await c.next('response.done');
    t.same(done.response.status, 'completed', `answered: ${JSON.stringify(done.response)}`);
    const said = done.response.output[0].content[0].transcript, of = (type) => c.got.filter((e) => e.type === type);
    t.check(/kitchen lights/.test(said), `the reply: ${said}`);
    t.same(of('response.output_audio_transcript.delta').map((e) => e.delta).join(''), said, 'its words as they came');
    const sound = loudness(of('response.output_audio.delta').map((e) => e.delta));
    t.check(sound.seconds > 0.8 && sound.seconds < 15 && sound.rms > 300, `its sound: ${JSON.stringify(sound)}`);
    const order = c.types().filter((n) => /^response\./.test(n)).filter((n, i, a) => n !== a[i - 1] && !/delta$/.test(n));
    t.same(order.join(), 'response.created,response.output_item.added,response.content_part.added,response.output_audio.done,' +
        'response.output_audio_transcript.done,response.content_part.done,response.output_item.done,response.done', 'the order of events');
    c.rt.close();
}

// The beta's client and names; push to talk; only text.
async function beta(url) {
    const c = await connect(BetaWS, url, 'home');
    c.send({ type: 'session.update', session: { modalities: ['text'], turn_detection: null } });
    t.same(JSON.stringify((await c.next('session.updated')).session.turn_detection), 'null', 'no turn detection');
    c.send({ type: 'input_audio_buffer.commit', event_id: 'mine' });
    const empty = (await c.next('error')).error;
    t.same(`${empty.code} ${empty.event_id}`, 'input_audio_buffer_commit_empty mine', 'nothing to commit');
    c.say(pcm24('kitchen_lights.wav'));
    c.send({ type: 'input_audio_buffer.clear' });
    await c.next('input_audio_buffer.cleared');
    c.say(Buffer.concat([pcm24('half_sentence.wav'), quiet(1500)]));
    c.send({ type: 'input_audio_buffer.commit' });
    t.check(/bedroom/.test((await c.next('conversation.item.input_audio_transcription.completed')).transcript), 'what was cleared is not heard');
    t.check(!c.types().includes('response.created'), 'no response that nobody wanted');
    c.send({ type: 'response.create' });
    const text = (await c.next('response.text.done')).text;
    t.check(/bedroom/.test(text), `a reply as text: ${text}`);
    t.same((await c.next('response.done')).response.output[0].content[0].text, text, 'and in the response');
    t.check(c.types().includes('conversation.item.created') && !c.types().some((n) => /audio\.delta|output_text/.test(n)), 'the names of the beta');
    c.rt.close();
}

// A chat with functions: the call comes in pieces, its result goes back, and the model answers.
async function functions(url) {
    const c = await connect(OpenAIRealtimeWS, url, 'calls');
    const tools = [{ type: 'function', name: 'get_weather', description: 'The weather of a city',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }];
    c.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], tools, tool_choice: 'auto' } });
    await c.next('session.updated');
    for (const tool_choice of ['always', 5, {}, { type: 'function' }, { type: 'mcp', name: 'get_weather' }])
        for (const type of ['session.update', 'response.create']) {
            c.send({ type, [type.split('.')[0]]: { tool_choice } });
            const { error } = await c.next('error');
            t.same(`${error.code} ${error.param}`, 'invalid_value tool_choice', `${type}: a choice of ${JSON.stringify(tool_choice)}`);
        }
    c.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'How is the weather in Paris?' }] } });
    const item = (await c.next('conversation.item.added')).item;
    c.send({ type: 'response.create' });
    const call = await c.next('response.function_call_arguments.done'), pieces = c.got.filter((e) => e.type === 'response.function_call_arguments.delta');
    t.same(`${call.name} ${JSON.parse(call.arguments).city}`, 'get_weather Paris', 'the call');
    t.check(pieces.length > 1 && pieces.map((e) => e.delta).join('') === call.arguments, 'in pieces');
    const done = (await c.next('response.done')).response;
    t.same(`${done.status} ${done.output[0].type} ${done.output[0].call_id}`, `completed function_call ${call.call_id}`, 'in the response');
    c.send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: call.call_id, output: '{"degrees": 20}' } });
    t.same((await c.next('conversation.item.added')).previous_item_id, done.output[0].id, 'its result is behind it');
    c.send({ type: 'response.create', response: { tools: [], tool_choice: 'none' } });
    t.same((await c.next('response.done')).response.status, 'completed', 'and the model goes on');
    c.send({ type: 'conversation.item.retrieve', item_id: item.id });
    t.check(/Paris/.test((await c.next('conversation.item.retrieved')).item.content[0].text), 'an item again');
    c.send({ type: 'conversation.item.delete', item_id: item.id });
    t.same((await c.next('conversation.item.deleted')).item_id, item.id, 'deleted');
    c.send({ type: 'conversation.item.retrieve', item_id: item.id });
    t.same((await c.next('error')).error.code, 'item_not_found', 'and gone');
    c.rt.close();
}

// A long answer ends when it is cancelled, and when somebody speaks.
async function interrupted(url) {
    const c = await connect(OpenAIRealtimeWS, url, 'talks');
    const ask = { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Tell me a story.' }] } };
    c.send(ask);
    c.send({ type: 'response.create' });
    await c.next('response.output_audio_transcript.delta');
    c.send({ type: 'response.create' });
    t.same((await c.next('error')).error.code, 'conversation_already_has_active_response', 'one at a time');
    c.send({ type: 'response.cancel' });
    const first = (await c.next('response.done')).response;
    t.same(`${first.status} ${first.status_details.reason}`, 'cancelled client_cancelled', 'cancelled');
    c.send({ type: 'response.cancel' });
    t.same((await c.next('error')).error.code, 'response_cancel_not_active', 'nothing to cancel');
    c.send(ask);
    c.send({ type: 'response.create' });
    await c.next('response.output_audio_transcript.delta');
    c.say(Buffer.concat([quiet(300), pcm24('kitchen_lights.wav')]));
    await c.next('input_audio_buffer.speech_started');
    const second = (await c.next('response.done')).response;
    t.same(`${second.status} ${second.status_details.reason}`, 'cancelled turn_detected', 'whoever speaks ends the answer');
    c.say(quiet(1000));
    await c.next('input_audio_buffer.committed');
    t.same((await c.next('response.created')).response.status, 'in_progress', 'and gets one');
    c.rt.close();
}

async function refused(url) {
    const raw = (protocols, headers) => new Promise((done) => {
        const ws = new WebSocket(`${url.replace('https', 'wss')}/v1/realtime?model=nobody`, protocols, { rejectUnauthorized: false, headers });
        ws.on('error', (e) => done(e.message));
        ws.on('message', (m) => { done({ ws, first: JSON.parse(m) }); });
    });
    t.check(/401/.test(await raw([])), 'without a key');
    t.check(/401/.test(await raw(['realtime', 'openai-insecure-api-key.wrong'])), 'a wrong key');
    const c = await raw(['realtime', `openai-insecure-api-key.${key}`, 'openai-beta.realtime-v1']);
    t.same(`${c.ws.protocol} ${c.first.type}`, 'realtime session.created', 'a key as browsers send it');
    const ask = (message) => t.within(new Promise((done) => {
        c.ws.removeAllListeners('message');
        c.ws.on('message', (m) => { const e = JSON.parse(m); if (e.type === 'error' || e.type === 'response.done') done(e); });
        c.ws.send(message);
    }), `an answer to ${String(message).slice(0, 80)}`);
    for (const [message, part] of [['nonsense', 'JSON'], ['{"type":"x"}', 'not known'], [Buffer.alloc(3), 'base64'],
        ['{"type":"input_audio_buffer.append","audio":"#"}', 'base64'], ['{"type":"session.update","session":{"input_audio_format":"g711_ulaw"}}', 'pcm16'],
        ['{"type":"session.update","session":{"tools":[{"type":"mcp"}]}}', 'function'], ['{"type":"conversation.item.create","item":{"type":"message"}}', 'role'],
        ['{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":""}]}}', 'append'],
        ['{"type":"conversation.item.delete"}', 'item_id'], [`{"type":"session.update","session":{"instructions":"${'x'.repeat(70000)}"}}`, '64 KiB']])
        t.check((await ask(message)).error.message.includes(part), `${String(message).slice(0, 60)} says ${part}`);
    await new Promise((done) => { c.ws.once('message', done); c.ws.send('{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}'); });
    const failed = (await ask('{"type":"response.create"}')).response;
    t.check(failed.status === 'failed' && /nobody/.test(failed.status_details.error.message), `a model that is not there: ${JSON.stringify(failed)}`);
    c.ws.close();
}

(async () => {
    const chatml = ['<|im_start|>', '<|im_end|>'], story = Array.from({ length: 220 }, (_, i) => `Chapter ${i} of the sea.`).join(' ');
    const template = '{%- for t in tools or [] %}{{ t | tojson }}<tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>{%- endfor %}{%- for m in messages %}' +
        '<|im_start|>{{ m.role }}\n{{ m.content }}{%- for c in m.tool_calls or [] %}\n<tool_call>\n{"name": "{{ c.function.name }}", "arguments": ' +
        '{{ c.function.arguments | tojson }}}\n</tool_call>{%- endfor %}<|im_end|>\n{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
    const models = { calls: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', talks: story };
    const files = Object.entries(models).map(([name, say]) => ({ name, file: parrot(path.join(t.tmp, `${name}.gguf`), { template, special: chatml, say }) }));
    const cert = path.join(t.tmp, 'cert.pem'), tls = path.join(t.tmp, 'key.pem'), config = path.join(t.tmp, 'realtime.yaml');
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', tls, '-out', cert, '-days', '2',
        '-subj', '/CN=localhost'], { stdio: 'pipe' });
    fs.writeFileSync(config, `tls: {cert: ${cert}, key: ${tls}}\nkeys: [{name: app, sha256: ${createHash('sha256').update(key).digest('hex')}}]\n`);
    const server = await t.start(shoal, ['--config', config, ...files.flatMap(({ name, file }) => ['-m', `${name}=${file ?? path.join(t.tmp, `${name}.gguf`)}`])], { all: true });
    for (const part of [home, beta, functions, interrupted, refused])
        await part(server.url);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    t.finish();
})();
