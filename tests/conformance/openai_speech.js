#!/usr/bin/env node
// The official OpenAI client lets `shoal serve` speak, in every form, whole and streamed; what was said is heard again by the recognizer.  Bodies that are wrong
// are refused with a reason.  Usage: openai_speech.js SHOAL
'use strict';
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
const text = 'The kitchen lights are on, and the heating is set to 19 degrees.';

async function bytes(response) {
    return Buffer.from(await (await response).arrayBuffer());
}

async function forms(ai) {
    const say = (more) => ai.audio.speech.create({ model: 'voice', voice: 'joe', input: text, ...more });
    const hear = async (sound, name) => (await ai.audio.transcriptions.create({ model: 'hear', file: await OpenAI.toFile(sound, name) })).text;
    const sounds = {};
    for (const [form, type] of [['wav', 'audio/wav'], ['pcm', 'audio/pcm'], ['flac', 'audio/flac'], ['opus', 'audio/ogg']]) {
        const r = await say({ response_format: form });
        t.same(r.headers.get('content-type'), type, `${form}: type`);
        sounds[form] = Buffer.from(await r.arrayBuffer());
    }
    for (const form of ['wav', 'flac', 'opus'])
        t.same(await hear(sounds[form], `x.${form}`), text, `${form} is heard`);
    t.check(sounds.wav.subarray(44).equals(sounds.pcm), 'pcm is wav without its header');
    t.same(sounds.wav.readUInt32LE(24), 22050, 'rate');
    const seconds = sounds.pcm.length / 44100;
    t.check(seconds > 2 && seconds < 8, `${seconds} seconds`);
    t.check(sounds.pcm.equals(await bytes(say({ response_format: 'pcm' }))), 'the same text has the same bytes');
    const fast = await bytes(say({ response_format: 'pcm', speed: 2 })), slow = await bytes(say({ response_format: 'pcm', speed: 0.5 }));
    t.check(fast.length < 0.75 * sounds.pcm.length && slow.length > 1.5 * sounds.pcm.length, `speed: ${fast.length} ${sounds.pcm.length} ${slow.length}`);
    return sounds;
}

async function events(server, sounds) {
    const r = await fetch(`${server.url}/v1/audio/speech`, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'voice', input: text, response_format: 'pcm', stream_format: 'sse' }) });
    const list = (await r.text()).split('\n').filter((x) => x.startsWith('data: ')).map((x) => JSON.parse(x.slice(6)));
    const deltas = list.filter((x) => x.type === 'speech.audio.delta');
    t.check(deltas.length >= 2, `${deltas.length} events`);
    t.same(list.at(-1).type, 'speech.audio.done', 'the last event');
    t.check(list.at(-1).usage.input_tokens > 20, 'usage');
    t.check(Buffer.concat(deltas.map((x) => Buffer.from(x.audio, 'base64'))).equals(sounds.pcm), 'the events have the bytes of the whole');
    t.check(Buffer.from(deltas[0].audio, 'base64').length < sounds.pcm.length / 4, 'the first one is short');
}

async function refused(server, ai) {
    const bad = async (what, body, status, param, pattern) => {
        const e = await t.fails(ai.audio.speech.create({ model: 'voice', voice: 'joe', input: 'Hello.', ...body }), what);
        t.same(e.status, status, `${what}: status`);
        t.same(e.param, param, `${what}: param`);
        t.check(pattern.test(e.message), `${what}: ${e.message}`);
    };
    await bad('empty', { input: '' }, 400, 'input', /missing/);
    await bad('nothing to say', { input: '\u0001 \u{1f600} \u0007' }, 400, 'input', /nothing to say/);
    await bad('a megabyte', { input: 'ab '.repeat(350000) }, 400, 'input', /at most 16384/);
    await bad('voice', { voice: 'alloy' }, 400, null, /no voice 'alloy'; the model has: joe/);
    await bad('voice of another type', { voice: 7 }, 400, 'voice', /name/);
    await bad('format', { response_format: 'aac' }, 400, 'response_format', /aac/);
    await bad('speed', { speed: 9 }, 400, 'speed', /0.25 to 4/);
    await bad('speed that is no number', { speed: 'NaN' }, 400, 'speed', /number/);
    await bad('stream format', { stream_format: 'tape' }, 400, 'stream_format', /audio or sse/);
    await bad('instructions', { instructions: 'whisper' }, 400, 'instructions', /instructions/);
    await bad('another kind', { model: 'hear' }, 400, 'model', /cannot speak/);
    await bad('unknown field', { colour: 'red' }, 400, 'colour', /colour/);
    const e = await t.fails(ai.audio.speech.create({ model: 'no', voice: 'joe', input: 'x' }), 'no such model');
    t.same(e.status, 404, 'no such model: status');
    const r = await fetch(`${server.url}/v1/audio/speech`, { method: 'POST', headers: { 'x-shoal-lenient': '1' },
        body: JSON.stringify({ input: 'Hello.', voice: 'alloy', colour: 'red', response_format: 'wav' }) });
    t.same(r.status, 200, 'without a model, and with what is skipped');
    await r.arrayBuffer();
}

(async () => {
    const model = (name) => `${name}=${path.join(t.root, `models/${name}.gguf`)}`;
    const server = await t.start(shoal, ['-m', model('hear'), '-m', model('voice')]);
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await events(server, await forms(ai));
    await refused(server, ai);
    const { code } = await server.stop();
    t.same(code, 0, 'exit code');
    t.finish();
})().catch(t.abandon);
