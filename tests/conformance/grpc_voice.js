#!/usr/bin/env node
// Recognize and Speak with @grpc/grpc-js: live sound in, words out; a text in, its sound out.  Usage: grpc_voice.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const http2 = require('http2');
const t = require('../integration/serve.js');
const { grpc, load, frame, raw } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const { status } = grpc;
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const speech = fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav')).subarray(44);
const pause = Buffer.alloc(32000); // a second
const key = (text) => {
    const m = new grpc.Metadata();
    m.set('authorization', `Bearer ${text}`);
    return m;
};

// Collects the messages of a stream in `got`; `ended` resolves with its status.
function follow(stream) {
    const s = { stream, got: [] };
    stream.on('data', (m) => s.got.push(m));
    stream.on('error', () => {});
    s.ended = new Promise((done) => stream.on('status', done));
    s.finals = () => s.got.filter((m) => m.final);
    return s;
}

(async () => {
    const file = path.join(t.tmp, 'grpc-voice.yaml');
    fs.writeFileSync(file, `drain: 1h\nmodels: [{name: hear, path: "${t.root}/models/hear.gguf"}, {name: voice, path: "${t.root}/models/voice.gguf"}, ` +
        `{name: whisper, path: "${t.root}/tests/data/whisper/whisper.bin"}]\n` +
        `keys: [{name: a, sha256: ${crypto.createHash('sha256').update('key-a').digest('hex')}}]\n`);
    const server = await t.start(shoal, ['--config', file]);
    const client = new Shoal(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
    const recognize = () => follow(client.Recognize(key('key-a')));

    // two turns that end by silence while the stream stays open, one that the client ends, and one that its end ends
    const one = recognize();
    one.stream.write({ model: 'hear', audio: speech });
    one.stream.write({ audio: pause });
    await t.until(() => one.finals().length === 1, 'the first turn');
    for (let i = 0; i < speech.length; i += 1999) // cut in the middle of a sample
        one.stream.write({ audio: speech.subarray(i, i + 1999) });
    one.stream.write({ audio: pause });
    await t.until(() => one.finals().length === 2, 'the second turn');
    one.stream.write({ audio: speech, end: true });
    await t.until(() => one.finals().length === 3, 'a turn that the client ends');
    one.stream.end({ audio: speech });
    t.same((await one.ended).code, status.OK, 'end');
    t.check(one.finals().length === 4 && one.finals().every((m) => /turn on the kitchen lights/.test(m.text)), `the words of four turns: ${one.finals().map((m) => m.text)}`);
    t.same(one.finals().map((m) => m.turn).join(), '1,2,3,4', 'their numbers');
    const [first, second] = one.finals();
    t.check(first.confidence > 0.7 && first.language === 'en' && first.stop > first.start && second.start > first.stop, JSON.stringify(second));
    t.check(one.got.every((m) => m.final || m.text.length > 0), 'partial events have words');

    // other forms of samples; the language reaches the model; nothing at all
    const floats = Buffer.alloc(speech.length * 6); // 48,000 a second
    for (let i = 0; i < speech.length / 2; i++)
        for (let k = 0; k < 3; k++)
            floats.writeFloatLE(speech.readInt16LE(2 * i) / 32768, (3 * i + k) * 4);
    const wide = recognize();
    wide.stream.write({ rate: 48000, format: 'f32', language: 'en', phrases: ['kitchen lights'] });
    for (let i = 0; i < floats.length; i += 100000)
        wide.stream.write({ audio: floats.subarray(i, i + 100000) });
    wide.stream.end();
    t.same((await wide.ended).code, status.OK, 'floats');
    t.check(/turn on the kitchen lights/.test(wide.finals()[0].text), 'floats of another rate');
    const german = recognize();
    german.stream.end({ model: 'whisper', language: 'de', audio: speech });
    t.same((await german.ended).code, status.OK, 'German');
    t.check(german.finals().every((m) => m.language === 'de'), 'the language of the words');
    const none = recognize();
    none.stream.end();
    t.same((await none.ended).code, status.OK, 'no message');
    t.same(none.got.length, 0, 'no words');

    // what is wrong ends the call, with the reason
    for (const [messages, code, part] of [
        [[{ model: 'none', audio: speech }], status.NOT_FOUND, 'none'], [[{ model: 'voice', audio: speech }], status.INVALID_ARGUMENT, 'transcribe'],
        [[{ language: 'de', model: 'hear', audio: speech }], status.INVALID_ARGUMENT, "does not hear the language 'de'"],
        [[{ language: 'Deutsch' }], status.INVALID_ARGUMENT, 'small letters'], [[{ format: 'mp3' }], status.INVALID_ARGUMENT, 's16 or f32'],
        [[{ rate: 7 }], status.INVALID_ARGUMENT, '7'], [[{ channels: 70000 }], status.INVALID_ARGUMENT, 'channels'],
        [[{ audio: pause }, { rate: 8000 }], status.INVALID_ARGUMENT, 'first message']]) {
        const s = recognize();
        messages.forEach((m) => s.stream.write(m));
        s.stream.end();
        const end = await s.ended;
        t.check(end.code === code && end.details.includes(part), `${JSON.stringify(messages).slice(0, 80)}: ${end.code} ${end.details}`);
    }
    t.same((await follow(client.Recognize(key('nobody'))).ended).code, status.UNAUTHENTICATED, 'no key');
    const session = http2.connect(server.url), auth = { authorization: 'Bearer key-a' };
    for (const [bytes, code] of [[Buffer.from([0, 0, 0, 0, 9, 1]), 3], [frame(Buffer.from([255, 255])), 3], [Buffer.from([0, 127, 0, 0, 0]), 8], [Buffer.from([7]), 3]])
        t.same((await raw(session, '/shoal.v1.Shoal/Recognize', bytes, auth)).status, code, `bytes ${bytes.toString('hex')}`);
    session.close();

    // Speak: the same samples as /v1/audio/speech, in several events
    const say = follow(client.Speak({ input: 'The kitchen lights are on. The door is closed.' }, key('key-a')));
    t.same((await say.ended).code, status.OK, 'Speak');
    const whole = Buffer.from(await (await fetch(`${server.url}/v1/audio/speech`, { method: 'POST', headers: { authorization: 'Bearer key-a', 'content-type': 'application/json' },
        body: JSON.stringify({ input: 'The kitchen lights are on. The door is closed.', response_format: 'pcm' }) })).arrayBuffer());
    t.check(say.got.length > 2 && say.got.every((m) => m.rate === 22050), `${say.got.length} events`);
    t.check(Buffer.concat(say.got.map((m) => m.audio)).equals(whole), 'the same sound as over HTTP');
    for (const [message, code, part] of [[{ input: '' }, status.INVALID_ARGUMENT, 'input'], [{ input: 'x', speed: 9 }, status.INVALID_ARGUMENT, 'speed'],
        [{ input: 'x', voice: 'nobody' }, status.INVALID_ARGUMENT, 'joe'], [{ input: 'x', model: 'hear' }, status.INVALID_ARGUMENT, 'speak'],
        [{ input: 'x'.repeat(20000) }, status.INVALID_ARGUMENT, '16']]) {
        const end = await follow(client.Speak(message, key('key-a'))).ended;
        t.check(end.code === code && end.details.includes(part), `${JSON.stringify(message).slice(0, 60)}: ${end.code} ${end.details}`);
    }

    // clients that disconnect in the middle of a turn and of a sound, and one that is still there when the server stops
    const gone = recognize();
    gone.stream.write({ audio: speech });
    const silent = follow(client.Speak({ input: 'One. Two. Three. Four. Five.' }, key('key-a')));
    gone.stream.cancel();
    silent.stream.cancel();
    await Promise.all([gone.ended, silent.ended]);
    const last = recognize();
    last.stream.write({ audio: speech });
    last.stream.write({ audio: pause });
    await t.until(() => last.finals().length === 1, 'a turn');
    t.same((await server.stop()).code, 0, 'exit');
    t.same((await last.ended).code, status.OK, 'a stream that is open does not hold up the end');
    client.close();
    t.finish();
})().catch(t.abandon);
