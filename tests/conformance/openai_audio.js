#!/usr/bin/env node
// The official OpenAI client transcribes real speech with `shoal serve`; forms and sounds that are wrong are
// refused with a reason.  Usage: openai_audio.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
const audio = path.join(t.root, 'tests/data/audio');
const jfk = 'And so, my fellow Americans, ask not what your country can do for you, ask what you can do for your country.';
const amiable = 'He might even have been made amiable himself.';
const file = (name) => fs.createReadStream(path.join(audio, name));

async function forms(ai) {
    const ask = (name, more) => ai.audio.transcriptions.create({ model: 'hear', file: file(name), ...more });
    const json = await ask('jfk.flac');
    t.same(json.text, jfk, 'json');
    t.same(json.usage.seconds, 11, 'seconds');
    for (const name of ['amiable.wav', 'amiable.mp3', 'amiable.opus'])
        t.same((await ask(name, { language: 'en', temperature: 0 })).text, amiable, name);
    const verbose = await ask('jfk.flac', { response_format: 'verbose_json', timestamp_granularities: ['segment'] });
    t.same(verbose.text, jfk, 'verbose_json');
    t.same(verbose.task, 'transcribe', 'task');
    t.same(verbose.language, 'english', 'language');
    t.same(verbose.duration, 11, 'duration');
    t.same(verbose.segments.length, 1, 'segments');
    t.same(verbose.segments[0].text, jfk, 'the segment');
    t.check(verbose.segments[0].avg_logprob < 0 && verbose.segments[0].avg_logprob > -0.5, 'avg_logprob');
    const { words } = await ask('jfk.flac', { response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] });
    t.same(words.map((w) => w.word).join(' '), jfk, 'words');
    t.check(words.every((w, i) => w.start <= w.end && w.end <= 11 && (i === 0 || w.start >= words[i - 1].end)), 'times of words');
    const country = words.filter((w) => /^country/.test(w.word)); // Whisper tiny (OpenAI's program) says 5.98 to 6.42, 10.12 to 10.52
    t.check(Math.abs(country[0].start - 5.98) < 0.3 && Math.abs(country[1].end - 10.52) < 0.3, `country at ${country[0].start} and to ${country[1].end}`);
    t.same(await ask('amiable.wav', { response_format: 'text' }), `${amiable}\n`, 'text');
    t.same(await ask('amiable.wav', { response_format: 'srt' }), `1\n00:00:00,000 --> 00:00:03,172\n${amiable}\n\n`, 'srt');
    t.same(await ask('amiable.wav', { response_format: 'vtt' }), `WEBVTT\n\n00:00:00.000 --> 00:00:03.172\n${amiable}\n\n`, 'vtt');
    t.check(/four of cloves/.test((await ask('cards.flac')).text), 'a word that is heard wrong');
    t.check(/four of clubs/.test((await ask('cards.flac', { prompt: 'four of clubs' })).text), 'a likely phrase');
    t.same((await ask('amiable.wav', { prompt: 'mitre, kitchen lamp' })).text, amiable, 'unlikely phrases');
    const events = [];
    for await (const e of await ask('jfk.flac', { stream: true }))
        events.push(e);
    t.same(events.map((e) => e.type).join(), 'transcript.text.delta,transcript.text.done', 'events');
    t.same(events[0].delta, jfk, 'delta');
    t.same(events[1].text, jfk, 'done');
}

// A minute, from the same speech six times: several windows, whose texts follow each other.
async function long(ai) {
    const pcm = fs.readFileSync(path.join(audio, 'amiable.wav')).subarray(44);
    const whole = Buffer.concat(Array(20).fill(pcm));
    const head = Buffer.from(fs.readFileSync(path.join(audio, 'amiable.wav')).subarray(0, 44));
    head.writeUInt32LE(whole.length + 36, 4);
    head.writeUInt32LE(whole.length, 40);
    const sound = await OpenAI.toFile(Buffer.concat([head, whole]), 'long.wav');
    const v = await ai.audio.transcriptions.create({ model: 'hear', file: sound, response_format: 'verbose_json' });
    t.same(Math.round(v.duration * 10), 658, 'duration of all windows');
    t.check(v.segments.length >= 3, `${v.segments.length} windows`);
    for (let i = 1; i < v.segments.length; i++)
        t.check(v.segments[i].start >= v.segments[i - 1].end, 'windows follow each other');
    t.check(v.text.split('amiable').length - 1 >= 15, `20 sentences: ${v.text}`);
    const again = await OpenAI.toFile(Buffer.concat([head, whole]), 'long.wav');
    let text = '', n = 0;
    for await (const e of await ai.audio.transcriptions.create({ model: 'hear', file: again, stream: true }))
        if (e.type === 'transcript.text.delta') {
            text += e.delta;
            n++;
        }
    t.same(text, v.text, 'the stream has the same text');
    t.same(n, v.segments.length, 'one event for each window');
}

async function refused(server, ai) {
    const ask = (body, more) => ai.audio.transcriptions.create({ model: 'hear', file: body, ...more });
    const bad = async (what, promise, status, code, pattern) => {
        const e = await t.fails(promise, what);
        t.same(e.status, status, `${what}: status`);
        t.same(e.code, code, `${what}: code`);
        t.check(pattern.test(e.message), `${what}: ${e.message}`);
    };
    const bytes = (b) => OpenAI.toFile(Buffer.from(b), 'x.wav');
    await bad('empty', ask(await bytes('')), 400, 'invalid_file', /the file is empty/);
    await bad('text', ask(await bytes('this is a text and no sound at all, though it is long enough')), 400, 'invalid_file', /not a sound/);
    await bad('a cut header', ask(await bytes(fs.readFileSync(path.join(audio, 'amiable.wav')).subarray(0, 30))), 400, 'invalid_file', /not a sound/);
    await bad('format', ask(file('amiable.wav'), { response_format: 'xml' }), 400, 'invalid_value', /response_format/);
    await bad('words of json', ask(file('amiable.wav'), { timestamp_granularities: ['word'] }), 400, 'invalid_value', /need response_format verbose_json/);
    await bad('letters', ask(file('amiable.wav'), { timestamp_granularities: ['letter'] }), 400, 'invalid_value', /segment and word/);
    await bad('language', ask(file('amiable.wav'), { language: 'de' }), 400, 'invalid_value', /does not hear the language 'de'; it hears: en/);
    await bad('a language that is none', ask(file('amiable.wav'), { language: 'Deutsch' }), 400, 'invalid_value', /code of two or three/);
    await bad('prompt', ask(file('amiable.wav'), { prompt: 'x'.repeat(300) }), 400, null, /phrase has 300 bytes/);
    await bad('stream of srt', ask(file('amiable.wav'), { stream: true, response_format: 'srt' }), 400, 'invalid_value', /stream/);
    await bad('unknown field', ask(file('amiable.wav'), { colour: 'red' }), 400, 'unknown_parameter', /colour/);
    await bad('no such model', ai.audio.transcriptions.create({ model: 'no', file: file('amiable.wav') }), 404, 'model_not_found', /no/);
    await bad('another kind', ai.audio.transcriptions.create({ model: 'reply', file: file('amiable.wav') }), 400, 'invalid_value', /cannot transcribe/);
    await bad('translation', ai.audio.translations.create({ model: 'hear', file: file('amiable.wav') }), 400, 'invalid_value', /English only and does not translate/);
    const post = async (type, body) => {
        const r = await fetch(`${server.url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-type': type }, body });
        return [r.status, (await r.json()).error];
    };
    let [status, e] = await post('application/json', '{}');
    t.same(status, 400, 'no form');
    t.check(/multipart/.test(e.message), e.message);
    [status, e] = await post('multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nhear\r\n--x--');
    t.same(status, 400, 'no file');
    t.same(e.param, 'file', 'no file: param');
    [status, e] = await post('multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc');
    t.same(status, 400, 'cut off');
    t.check(/cut off/.test(e.message), e.message);
    const lenient = await fetch(`${server.url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'x-shoal-lenient': '1' },
        body: (() => { const f = new FormData(); f.set('prompt', 'x'); f.set('colour', 'red'); f.set('file', new Blob([fs.readFileSync(path.join(audio, 'amiable.wav'))]), 'a.wav'); return f; })() });
    t.same((await lenient.json()).text, amiable, 'without a model, and with fields that are skipped');
}

(async () => {
    const server = await t.start(shoal, ['-m', `hear=${path.join(t.root, 'models/hear.gguf')}`, '-m', `reply=${path.join(t.root, 'models/reply-draft.gguf')}`]);
    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    await forms(ai);
    await long(ai);
    await refused(server, ai);
    const { code } = await server.stop();
    t.same(code, 0, 'exit code');
    t.finish();
})().catch(t.abandon);
