#!/usr/bin/env node
// Live sound over MQTT, as frames of samples: the words of each turn, what was done, and the reply come back; sound that is wrong
// gets an error. A real mosquitto and the npm client.
// Usage: serve_mqtt_voice.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]);
process.chdir(t.root); // where ./models is
const last = (list) => list[list.length - 1];

(async () => {
    const broker = await m.Broker.open(), config = path.join(t.tmp, 'voice.yaml');
    fs.writeFileSync(config, `mqtt:\n  broker: ${broker.url}\n  client_id: ears\n  queue: {file: "${t.tmp}/queue-voice"}\n`);
    const server = await t.start(shoal, ['--config', config]);
    const client = await m.connect(broker);
    await m.up(server);
    for (const what of ['transcript', 'action', 'error'])
        await m.subscribe(client, `shoal/voice/+/${what}`);
    const seen = (what) => client.seen.filter((x) => x.topic === `shoal/voice/hall/${what}`);
    const speech = fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav')).subarray(44), step = 1280;
    const say = async (pcm, properties) => {
        for (let i = 0; i < pcm.length; i += step)
            await client.publishAsync('shoal/voice/hall/audio', pcm.subarray(i, i + step), { qos: 0, properties: { userProperties: properties } });
    };
    await say(Buffer.concat([Buffer.alloc(32 * 500), speech, Buffer.alloc(32 * 1200)]), { room: 'hall' });
    await t.until(() => seen('action').length === 1, { toString: () => `what was done: ${client.seen.map((x) => `${x.topic} ${x.text.slice(0, 80)}`).slice(-3)}` });
    const words = JSON.parse(seen('transcript')[0].text);
    t.check(/turn on the kitchen lights/.test(words.text) && words.confidence > 0.5, `words over MQTT, by their silence: ${JSON.stringify(words)}`);
    const done = JSON.parse(seen('action')[0].text);
    t.check(done.actions[0].action === 'turn_on' && done.actions[0].room === 'kitchen' && /kitchen/.test(done.reply), `done over MQTT: ${JSON.stringify(done)}`);
    const wide = Buffer.alloc(2 * speech.length); // as floats
    for (let i = 0; i < speech.length / 2; i++)
        wide.writeFloatLE(speech.readInt16LE(2 * i) / 32768, 4 * i);
    await say(wide, { format: 'f32', rate: '16000' });
    await client.publishAsync('shoal/voice/hall/audio', Buffer.alloc(0), { qos: 0 });
    await t.until(() => seen('action').length === 2, 'an empty message ends the turn');
    for (const [properties, bytes, part] of [[{ format: 'mp3' }, 4, 's16 or f32'], [{ rate: 'x' }, 4, 'numbers'], [{ rate: '900000' }, 4, 'samples a second'],
        [{ format: 'f32' }, Buffer.from([0, 0, 192, 127]), 'finite']]) {
        const n = seen('error').length;
        await client.publishAsync('shoal/voice/hall/audio', Buffer.from(bytes === 4 ? [1, 2, 3, 4] : bytes), { qos: 0, properties: { userProperties: properties } });
        await t.until(() => seen('error').length > n, `an error for ${JSON.stringify(properties)}`);
        t.check(last(seen('error')).text.includes(part), `${JSON.stringify(properties)}: ${last(seen('error')).text}`);
    }
    await client.endAsync(true);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    await broker.kill();
    t.finish();
})().catch(t.abandon);
