#!/usr/bin/env node
// Texts that are unlike those before: the alarm reaches a webhook and /v1/alarms as any other does, a server without sensors
// included, and what is usual is kept over a restart. Usage: serve_drift.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const usual = ['turn off the lights in the kitchen', 'set a timer for ten minutes', 'what is the weather like tomorrow', 'play some music'];
const strange = ['qwx zzv blorp', 'the derivative of a sheaf', 'ISO 4014 M8x40 zinc', 'asdf asdf', 'lorem ipsum dolor'];

(async () => {
    const got = [];
    const receiver = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => { got.push(JSON.parse(body)); res.writeHead(200).end(); });
    });
    await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${receiver.address().port}`, file = path.join(t.tmp, 'drift.yaml');
    fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", task: classify}\n` +
        `alarms: {allow: ["${host}"], file: ${path.join(t.tmp, 'open.json')}, webhooks: [{url: "http://${host}/"}]}\n`);
    let server = await t.start(shoal, ['--config', file]);
    // 500 classifications are a window
    const window = async (texts) => {
        for (let i = 0; i < 500; i += 50) {
            const input = Array.from({ length: 50 }, (_, k) => texts[(i + k) % texts.length]);
            t.same((await fetch(`${server.url}/v1/classify`, { method: 'POST', body: JSON.stringify({ model: 'intent', input }) })).status, 200, 'classify');
        }
    };
    const alarms = async () => (await (await fetch(`${server.url}/v1/alarms?open=true`)).json()).data;
    await window(usual);
    await window(usual);
    t.same((await alarms()).length, 0, 'nothing has changed');
    await window(strange);
    await t.until(() => got.some((e) => e.change === 'raised'), 'the webhook is told');
    const [e] = got;
    t.same(`${e.change} ${e.kind} ${e.channels[0].sensor}`, 'raised limit confidence/intent', JSON.stringify(e));
    t.same((await alarms()).length, 1, '/v1/alarms has it');
    t.same((await (await fetch(`${server.url}/v1/sensors`)).json()).total, 0, 'a model is no sensor');
    t.same(await t.metric(server, 'shoal_confidence_drift_alarm{model="intent"}'), 1, 'the metric');
    await window(usual);
    await t.until(() => got.some((x) => x.change === 'cleared' && x.id === e.id), 'it clears');
    t.same((await server.stop()).code, 0, 'exit');

    // the first texts after a restart are compared with what was usual before it
    got.length = 0;
    server = await t.start(shoal, ['--config', file]);
    await window(strange);
    await t.until(() => got.some((x) => x.change === 'raised'), 'an alarm with the first window');
    t.same((await server.stop()).code, 0, 'exit');
    receiver.close();
    t.finish();
})().catch(t.abandon);
