#!/usr/bin/env node
// POST /v1/voice with the models that come with Shoal: a recording becomes words, actions and a reply; what is no command does
// nothing; bad sounds are refused. The WebSocket of the same path: live sound, hands free and push to talk; garbage.
// Usage: serve_voice.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));

const shoal = path.resolve(process.argv[2]);
process.chdir(t.root); // where ./models is
const sound = (name) => fs.readFileSync(path.join(t.root, 'tests/data/audio', name));

async function post(server, body, query = '', headers = {}) {
    const r = await fetch(`${server.url}/v1/voice${query}`, { method: 'POST', headers, body });
    return { status: r.status, text: await r.text() };
}
const json = async (...a) => {
    const r = await post(...a);
    t.same(r.status, 200, r.text.slice(0, 300));
    return JSON.parse(r.text);
};

// 16-bit samples of a WAV file with this header: rate, channels, bits, format (1: integers, 3: floats).
function wav(data, rate, channels, bits, format = 1) {
    const h = Buffer.alloc(44), frame = channels * bits / 8;
    h.write('RIFF'); h.writeUInt32LE(36 + data.length, 4); h.write('WAVEfmt ', 8); h.writeUInt32LE(16, 16);
    h.writeUInt16LE(format, 20); h.writeUInt16LE(channels, 22); h.writeUInt32LE(rate, 24); h.writeUInt32LE(rate * frame, 28);
    h.writeUInt16LE(frame, 32); h.writeUInt16LE(bits, 34); h.write('data', 36); h.writeUInt32LE(data.length, 40);
    return Buffer.concat([h, data]);
}

async function recordings(server) {
    const r = await json(server, sound('kitchen_lights.wav'));
    t.same(r.transcript.text, 'Please turn on the kitchen lights.', 'what was said');
    t.check(r.transcript.confidence > 0.8 && r.transcript.confidence <= 1, `the recognizer is sure: ${r.transcript.confidence}`);
    t.same(r.actions.map((a) => `${a.action} ${a.device} ${a.room}`).join(), 'turn_on lights kitchen', `what is done: ${JSON.stringify(r.actions)}`);
    t.check(/kitchen/.test(r.reply), `what is said: ${r.reply}`);

    const form = new FormData();
    form.append('file', new Blob([sound('half_sentence.wav')]), 'half.flac');
    form.append('reply', 'false');
    form.append('explain', 'true');
    const f = await json(server, form);
    t.same(f.actions.map((a) => `${a.action} ${a.room}`).join(), 'turn_on bedroom', 'a form');
    t.same(f.reply, '', 'no reply if none is wanted');
    t.same(f.clauses.length, 1, 'explained');

    const events = (await post(server, sound('kitchen_lights.wav'), '?stream=true')).text.split('\n\n').filter(Boolean)
        .map((e) => e.split('\n')[0].replace('event: ', ''));
    t.same(events.filter((e, i) => e !== events[i - 1]).join(), 'transcript,plan,text,done', 'events of a stream');

    const talk = await json(server, sound('talk.flac'));
    t.check(talk.transcript.text.startsWith('So I told him'), `talk is heard: ${talk.transcript.text}`);
    t.same(`${talk.actions.length} "${talk.reply}"`, '0 ""', 'and does nothing, and gets no reply');
    const none = await json(server, wav(Buffer.alloc(64000), 16000, 1, 16));
    t.same(`${none.transcript.text} ${none.actions.length} ${none.reply}`, ' 0 ', 'silence');
    const empty = (await post(server, wav(Buffer.alloc(64000), 16000, 1, 16), '?stream=true')).text;
    t.check(/^event: done\n/.test(empty), `silence as a stream: ${empty.slice(0, 80)}`);
}

// The same words with a confidence that says that they were hardly heard.
async function heard(server) {
    const ask = async (body) => (await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify(body) })).json();
    const text = 'turn on the kitchen lights', results = (r) => r.actions.map((a) => a.result).join();
    t.same(results(await ask({ text })), 'simulated', 'typed');
    t.same(results(await ask({ text, heard: 0.9 })), 'simulated', 'heard well');
    t.same(results(await ask({ text, heard: 0.6 })), 'confirm', 'not so well: it asks');
    const r = await ask({ text, heard: 0.3 });
    t.same(`${r.actions.length} "${r.reply}"`, '0 ""', 'hardly: nothing');
    const home = async () => (await fetch(`${server.url}/v1/home`)).text(), before = await home();
    const dry = await ask({ text: 'turn off the kitchen lights and unlock the back door', dry_run: true });
    t.same(`${dry.actions.map((a) => a.action).join()} "${dry.reply}"`, 'turn_off,unlock ""', 'a dry run says what would be done');
    t.same(await home(), before, 'and nothing is');
    t.same(results(await ask({ text: 'stop everything', heard: 0.3 })), 'simulated', 'a stop is obeyed however badly it is heard');
}

async function refused(server) {
    const bad = async (name, body, status, part, query = '', headers = {}) => {
        const r = await post(server, body, query, headers);
        t.same(r.status, status, `${name}: ${r.text.slice(0, 200)}`);
        t.check(r.text.includes(part), `${name} says "${part}": ${r.text.slice(0, 200)}`);
    };
    const nan = Buffer.alloc(64000);
    nan.writeFloatLE(NaN, 800);
    await bad('nothing', '', 400, 'the file is empty');
    await bad('a text', 'hello there, this is a text', 400, 'this is not a sound');
    await bad('only a header', wav(Buffer.alloc(0), 16000, 1, 16), 400, 'there is no sound in the file');
    await bad('not a number', wav(nan, 16000, 1, 32, 3), 400, 'not a finite number at 0.013 seconds');
    await bad('a wrong option', sound('talk.flac'), 400, "'stream' must be true or false", '?stream=perhaps');
    await bad('a wrong session', sound('talk.flac'), 400, 'session_id', '?session_id=a/b');
    await bad('a form without a file', new FormData(), 400, 'file');
    await bad('an unknown recognizer', sound('talk.flac'), 404, 'nobody', '?recognizer=nobody');
    await bad('an unknown flow', sound('kitchen_lights.wav'), 404, 'nowhere', '?model=nowhere');
    const cut = sound('kitchen_lights.wav').subarray(0, 20000);
    t.same((await post(server, cut)).status, 200, 'a file that ends too early is read as far as it goes');
    for (const [name, w] of [['8 bits', wav(Buffer.alloc(16000, 128), 16000, 1, 8)], ['96 kHz', wav(Buffer.alloc(192000), 96000, 1, 16)],
        ['7 channels', wav(Buffer.alloc(14 * 16000), 16000, 7, 16)]])
        t.same((await post(server, w)).status, 200, name);
}

// A connection that keeps every message; sends sound in pieces of 20 ms.
async function connect(server, start) {
    const ws = new WebSocket(`${server.url.replace('http', 'ws')}/v1/voice`), got = [];
    let woken = () => {};
    ws.on('message', (m) => { got.push(JSON.parse(m)); woken(); });
    ws.on('close', (code) => { got.push({ type: 'closed', code }); woken(); });
    await t.within(new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); }), 'a connection');
    let seen = 0; // messages that were waited for
    const next = async (type) => {
        for (;;) {
            for (; seen < got.length; seen++)
                if (got[seen].type === type || got[seen].type === 'error' || got[seen].type === 'closed')
                    return got[seen++];
            await t.within(new Promise((resolve) => { woken = resolve; }), `a message ${type} after ${JSON.stringify(got.slice(-3))}`);
        }
    };
    const say = (pcm) => { for (let i = 0; i < pcm.length; i += 640) ws.send(pcm.subarray(i, i + 640)); };
    if (start) {
        ws.send(JSON.stringify({ type: 'start', ...start }));
        await next('ready');
    }
    return { ws, got, next, say, send: (m) => ws.send(JSON.stringify(m)) };
}
const pcm = (name) => sound(name).subarray(44);
// A quiet room: not quite nothing.
const quiet = (ms) => { const b = Buffer.alloc(32 * ms); for (let i = 0; i < 16 * ms; i++) b.writeInt16LE((i * 40503 >> 5) % 7 - 3, 2 * i); return b; };

// Hands free: two turns and talk in one stream of sound; only the commands act, and each turn ends by its silence.
async function live(server) {
    const c = await connect(server, { session_id: 'live' });
    c.say(Buffer.concat([quiet(700), pcm('kitchen_lights.wav'), quiet(900)]));
    const first = await c.next('transcript');
    t.same(first.text, 'Please turn on the kitchen lights.', `hands free: ${JSON.stringify(first)}`);
    t.check(first.start > 0.4 && first.start < 0.9 && first.end > 2 && first.end < 2.9, `its place: ${first.start} to ${first.end}`);
    const plan = await c.next('plan');
    t.same(`${plan.turn} ${plan.actions[0]?.action} ${plan.actions[0]?.room}`, '1 turn_on kitchen', 'the plan of the turn');
    t.check((await c.next('done')).reply.includes('kitchen'), 'the reply');
    t.check(c.got.some((m) => m.type === 'partial' && m.turn === 1), 'words before the end');

    c.say(Buffer.concat([pcm('half_sentence.wav'), quiet(1200)]));
    const second = await c.next('transcript');
    t.check(/^Please turn on \w+ bedroom light/.test(second.text), `a pause in half a sentence does not end it: ${JSON.stringify(second)}`);
    t.same(`${second.turn} ${(await c.next('plan')).actions[0]?.room}`, '2 bedroom', 'the second turn');
    await c.next('done');
    c.ws.close();
    await c.next('closed');
}

// Push to talk: the end is said, not heard; sound at another rate, as floats; only words.
async function pushed(server) {
    const c = await connect(server, { rate: 48000, format: 'f32', reply: false, room: 'kitchen' });
    const x = pcm('kitchen_lights.wav'), up = Buffer.alloc(x.length / 2 * 12);
    for (let i = 0; i < x.length / 2; i++)
        for (let k = 0; k < 3; k++)
            up.writeFloatLE(x.readInt16LE(2 * i) / 32768, 4 * (3 * i + k));
    c.say(up);
    c.send({ type: 'end' });
    t.same((await c.next('transcript')).text, 'Please turn on the kitchen lights.', 'at 48 kHz');
    const done = await c.next('done');
    t.same(`${done.actions.length} "${done.reply}"`, '1 ""', 'no reply if none is wanted');
    c.send({ type: 'end' });
    t.same((await c.next('transcript')).text, '', 'an end without a sound');
    c.send({ type: 'start', ask: false });
    await c.next('ready');
    c.say(pcm('kitchen_lights.wav'));
    c.send({ type: 'end' });
    t.same((await c.next('transcript')).text, 'Please turn on the kitchen lights.', 'only words');
    c.say(pcm('kitchen_lights.wav'));
    c.send({ type: 'cancel' });
    c.send({ type: 'end' });
    const empty = await c.next('transcript');
    t.same(empty.text, '', `what is cancelled is gone: ${JSON.stringify(empty)}`);
    c.ws.close();
    await c.next('closed');
    t.check(!c.got.some((m, i) => m.type === 'plan' && i > c.got.findIndex((x) => x.type === 'done')), 'words alone do nothing');
}

// Wrong messages get an error and the connection goes on; sound that is none ends nothing.
async function garbage(server) {
    const c = await connect(server);
    for (const [bad, part] of [['hello', 'JSON'], ['{"type":"dance"}', 'start, end or cancel'], ['[1,2]', 'type'],
        ['{"type":"start","rate":"fast"}', 'rate'], ['{"type":"start","rate":12}', '12 samples a second'], ['{"type":"start","channels":100}', '100 channels'],
        ['{"type":"start","format":"mp3"}', 's16 or f32'], ['{"type":"start","colour":"red"}', "unknown option 'colour'"],
        ['{"type":"start","room":1}', 'texts'], [`{"type":"start","room":"${'x'.repeat(400)}"}`, 'at most'],
        ['{"type":"start","session_id":"a/b"}', 'session_id'], [`{"a":[${'1,'.repeat(300)}1]}`, 'a few values']]) {
        c.ws.send(bad);
        const e = await c.next('error');
        t.check(e.type === 'error' && e.error.message.includes(part), `${bad.slice(0, 60)}: ${JSON.stringify(e)}`);
    }
    c.send({ type: 'start', format: 'f32' });
    await c.next('ready');
    const nan = Buffer.alloc(640);
    nan.writeFloatLE(NaN, 8);
    c.ws.send(nan);
    t.check((await c.next('error')).error.message.includes('not a finite number'), 'not a number');
    c.send({ type: 'start' });
    await c.next('ready');
    const noise = Buffer.from(Array.from({ length: 64000 }, (_, i) => (i * 2654435761 >>> 7) & 255));
    c.say(noise);
    c.ws.send(Buffer.from([1])); // half a sample
    c.say(quiet(30000));
    c.send({ type: 'end' });
    const none = await c.next('transcript');
    t.check(none.type === 'transcript', `noise and half a minute of silence: ${JSON.stringify(none)}`);
    c.ws.send(Buffer.alloc(2 << 20));
    t.same((await c.next('closed')).code, 1009, 'a message that is too large');
    const r = await fetch(`${server.url}/v1/voice`);
    t.same(r.status, 426, 'not a WebSocket');
}

// With the wake word in front of each turn: other talk is not heard, and the word is no part of the turn.
async function woken(server) {
    const c = await connect(server, { wake: true });
    c.say(Buffer.concat([quiet(500), pcm('kitchen_lights.wav'), quiet(800), pcm('hey_shoal.wav'), quiet(600)]));
    t.same((await c.next('wake')).word, 'hey shoal', 'woken');
    const words = await c.next('transcript');
    t.check(/turn on the kitchen lights/.test(words.text) && !/hoal/.test(words.text), `what was said behind it: ${JSON.stringify(words)}`);
    t.check(words.turn === 1 && words.start > 3.5, `not what was said before: ${words.start}`);
    t.same((await c.next('plan')).actions[0]?.room, 'kitchen', 'carried out');
    await c.next('done');
    c.say(Buffer.concat([pcm('hey_shoal.wav').subarray(0, 2 * 23200), quiet(9000)]));
    await c.next('wake');
    t.same((await c.next('asleep')).type, 'asleep', 'nothing was said behind the word');
    c.ws.close();
    await c.next('closed');
}

(async () => {
    const config = path.join(t.tmp, 'wake.yaml');
    fs.writeFileSync(config, 'wake: hey shoal\n');
    const server = await t.start(shoal, ['--config', config]);
    for (const part of [recordings, heard, refused, live, woken, pushed, garbage])
        await part(server);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    t.finish();
})();
