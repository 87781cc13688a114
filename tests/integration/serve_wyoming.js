#!/usr/bin/env node
// `shoal serve --wyoming` and broken clients: garbage, oversized headers, cut events, silence, many connections.  What works is
// tested with the official client (tests/conformance/wyoming).
// Usage: serve_wyoming.js SHOAL
'use strict';
const fs = require('fs');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
process.chdir(t.root); // where ./models is
const speech = fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav')).subarray(44);

// A connection that parses what comes: events with their data.
async function connect(port) {
    const socket = net.connect(port, '127.0.0.1'), got = [];
    let rest = Buffer.alloc(0), woken = () => {}, closed = false;
    socket.on('error', () => {});
    socket.on('close', () => { closed = true; woken(); });
    socket.on('data', (d) => {
        rest = Buffer.concat([rest, d]);
        for (let line; (line = rest.indexOf(10)) >= 0;) {
            const head = JSON.parse(rest.subarray(0, line)), n = head.data_length ?? 0;
            if (rest.length < line + 1 + n)
                return;
            got.push({ type: head.type, data: n ? JSON.parse(rest.subarray(line + 1, line + 1 + n)) : {} });
            rest = rest.subarray(line + 1 + n);
            woken();
        }
    });
    await t.within(new Promise((resolve) => socket.on('connect', resolve)), 'a connection');
    const next = async () => {
        while (got.length === 0 && !closed)
            await t.within(new Promise((resolve) => { woken = resolve; }), 'an event');
        return got.shift() ?? { type: 'closed' };
    };
    const send = (type, data, payload) => socket.write(Buffer.concat([Buffer.from(
        `${JSON.stringify({ type, data, ...payload ? { payload_length: payload.length } : {} })}\n`), payload ?? Buffer.alloc(0)]));
    return { socket, next, send };
}

async function garbage(port) {
    for (const [name, bytes, part] of [
        ['no JSON', 'hello there\n', 'JSON object'],
        ['a list', '[1,2]\n', 'JSON object'],
        ['no type', '{"data":{}}\n', 'type'],
        ['a type that is too long', `{"type":"${'x'.repeat(100)}"}\n`, 'type'],
        ['data that is no object', '{"type":"ping","data":[1]}\n', 'must be an object'],
        ['a length that is none', '{"type":"ping","payload_length":"all"}\n', 'payload_length'],
        ['a negative length', '{"type":"ping","data_length":-1}\n', 'data_length'],
        ['half a byte', '{"type":"ping","data_length":1.5}\n', 'data_length'],
        ['a payload that is too large', '{"type":"audio-chunk","payload_length":99999999999}\n', 'the most is'],
        ['data that is no JSON', '{"type":"ping","data_length":4}\nabcd', 'JSON object'],
        ['a header without an end', 'x'.repeat(40000), 'more than'],
        ['bytes', Buffer.from(Array.from({ length: 40000 }, (_, i) => (i * 7919 >> 3) & 255)), '']]) {
        const c = await connect(port);
        c.socket.write(bytes);
        const e = await c.next();
        t.check(e.type === 'error' && e.data.text.includes(part), `${name}: ${JSON.stringify(e)}`);
        c.socket.end();
        t.same((await c.next()).type, 'closed', `${name}: the connection ends`);
    }
}

async function turns(port) {
    const c = await connect(port);
    c.send('nobody-knows-this', { x: 1 });
    c.send('ping', { text: 'here' });
    t.same(JSON.stringify(await c.next()), '{"type":"pong","data":{"text":"here"}}', 'unknown events are skipped');
    for (let i = 0; i < speech.length; i += 1999) // frames cut in the middle of a sample
        c.send('audio-chunk', { rate: 16000, width: 2, channels: 1 }, speech.subarray(i, i + 1999));
    c.send('audio-stop');
    const seen = [];
    for (let e; (e = await c.next()).type !== 'transcript-stop' && e.type !== 'closed';)
        seen.push(e);
    t.same(seen.find((e) => e.type === 'transcript')?.data.text, 'Please turn on the kitchen lights.', `without a start: ${JSON.stringify(seen)}`);
    c.send('audio-start', { rate: 16000, width: 2, channels: 65 });
    t.check((await c.next()).data.text.includes('channels'), 'too many channels');
    c.send('audio-start', { rate: 16000, width: 9, channels: 1 });
    t.check((await c.next()).data.text.includes('9 bytes'), 'a width that nobody has');
    c.send('transcribe', { name: 'nobody' });
    c.send('audio-start', { rate: 16000, width: 2, channels: 1 });
    c.send('audio-chunk', {}, speech);
    c.send('audio-stop');
    t.check((await c.next()).data.text.includes('nobody'), 'an unknown recognizer');
    c.send('transcribe', {});
    const second = Buffer.alloc(32000);
    for (let i = 0; i < 120; i++) // faster than it is heard
        c.send('audio-chunk', { rate: 16000, width: 2, channels: 1 }, second);
    c.send('audio-stop');
    t.same(JSON.stringify((await c.next()).data.text), '""', 'two minutes of silence at once');
    c.send('transcript', { text: '' });
    t.same((await c.next()).type, 'not-handled', 'nothing was said');
    c.send('transcript', { text: 'turn on the kitchen lights' });
    c.send('ping', { text: 'after' });
    t.same(`${(await c.next()).type} ${(await c.next()).type}`, 'handled pong', 'in their order');
    c.send('recognize', { text: 'turn off the kitchen lights and set the heating to 19 degrees' });
    const types = [];
    for (let i = 0; i < 4; i++)
        types.push((await c.next()).type);
    t.same(types.join(), 'intents-start,intent,intent,intents-stop', 'two intents');
    c.send('audio-chunk', { rate: 16000, width: 2, channels: 1 }, speech);
    c.socket.destroy(); // in the middle of a turn
    const many = await Promise.all(Array.from({ length: 40 }, () => connect(port)));
    const alive = await Promise.all(many.map(async (m) => { m.send('ping', {}); return (await m.next()).type === 'pong'; }));
    t.check(alive.filter(Boolean).length >= 30, `${alive.filter(Boolean).length} of 40 connections are served`);
    many.forEach((m) => m.socket.destroy());
}

// The language of a transcribe event reaches the model, that of the transcript is the model's; info lists what each one hears.
async function languages() {
    const port = await t.free_port(), file = path.join(t.tmp, 'languages.yaml');
    fs.writeFileSync(file, `models: [{name: hear, path: "${t.root}/models/hear.gguf"}, {name: whisper, path: "${t.root}/tests/data/whisper/whisper.bin"}]\n` +
        `wyoming: "tcp://127.0.0.1:${port}"\n`);
    const server = await t.start(shoal, ['--config', file]), c = await connect(port);
    const heard = async (name, language) => {
        c.send('transcribe', { name, language });
        c.send('audio-start', { rate: 16000, width: 2, channels: 1 });
        c.send('audio-chunk', {}, speech);
        c.send('audio-stop');
        for (let e; ;)
            if (['transcript', 'error', 'closed'].includes((e = await c.next()).type))
                return e;
    };
    t.same((await heard('hear', 'en-GB')).data.language, 'en', 'a country is no language');
    t.same((await heard('whisper', 'de_AT')).data.language, 'de', 'the language that was asked for');
    t.same((await heard('whisper', 'JA')).data.language, 'ja', 'in capitals');
    for (const [name, language] of [['hear', 'de'], ['whisper', 'xx']])
        t.check((await heard(name, language)).data.text.includes(`does not hear the language '${language}'`), `${name} and ${language}`);
    t.same((await heard('hear')).data.language, 'en', 'the last language is forgotten');
    while ((await c.next()).type !== 'transcript-stop')
        ;
    c.send('describe'); // both are loaded now
    const { models } = (await c.next()).data.asr[0], of = (name) => models.find((m) => m.name === name).languages;
    t.same(of('hear').join(), 'en', 'Moonshine hears English');
    t.check(of('whisper').length === 99 && ['en', 'de', 'ja'].every((l) => of('whisper').includes(l)), `Whisper hears: ${of('whisper')}`);
    c.socket.destroy();
    t.same((await server.stop()).code, 0, 'ends cleanly');
}

(async () => {
    await languages();
    const port = await t.free_port();
    const server = await t.start(shoal, ['--wyoming', `tcp://127.0.0.1:${port}`]);
    await garbage(port);
    await turns(port);
    const home = await (await fetch(`${server.url}/v1/home`)).text();
    t.check(home.includes('kitchen'), 'the server is well');
    const open = await connect(port); // a connection that stays does not keep the server
    t.same((await server.stop()).code, 0, 'ends cleanly');
    open.socket.destroy();
    t.finish();
})();
