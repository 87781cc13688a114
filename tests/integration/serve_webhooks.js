#!/usr/bin/env node
// Alarms over webhooks: signed, retried until accepted, kept over a crash, dropped when refused; only allowed servers
// are called. The alarm comes first, then the matching passage of the manuals. Usage: serve_webhooks.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const { createHash, createHmac } = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), secret = 'a long secret';

(async () => {
    const got = []; // {path, key, signed, event, status}
    let answer = (path_) => (path_ === '/no' ? 400 : 200);
    const receiver = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => {
            const sum = createHmac('sha256', secret).update(`${req.headers['x-shoal-time']}.${body}`).digest('hex');
            const status = answer(req.url);
            got.push({ path: req.url, key: req.headers['idempotency-key'], status, event: JSON.parse(body),
                signed: req.headers['x-shoal-signature'] === `sha256=${sum}`, signature: req.headers['x-shoal-signature'] });
            res.writeHead(status).end();
        });
    });
    await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${receiver.address().port}`, file = path.join(t.tmp, 'hooks.yaml');
    const config = (allow) => `models:\n  - {name: embed, path: "${path.join(t.root, 'models/encoder')}", task: embed}\n` +
        `keys: [{name: boss, sha256: ${createHash('sha256').update('sesame').digest('hex')}, admin: true}]\n` +
        `collections: {dir: ${path.join(t.tmp, 'collections')}}\n` +
        'machines:\n  - {name: motor3, title: motor 3}\nsensors:\n  - {name: vib, title: Vibration, unit: mm/s, machine: motor3, limits: "..7", lost: 1h}\n' +
        `alarms:\n  file: ${path.join(t.tmp, 'open.json')}\n  manuals: manuals\n  allow: [${allow}]\n  webhooks:\n` +
        `    - {url: "http://${host}/hook?x=1", secret_file: ${path.join(t.tmp, 'secret')}}\n` +
        `    - {url: "http://${host}/no", severity: critical}\n`;
    fs.writeFileSync(path.join(t.tmp, 'secret'), `${secret}\n`);

    fs.writeFileSync(file, config(''));
    const bad = spawnSync(shoal, ['serve', '--check', '--config', file]);
    t.check(bad.status !== 0 && bad.stderr.toString().includes(`add ${host} to alarms.allow`), `not allowed: ${bad.stderr}`);
    fs.writeFileSync(file, config(`"${host}"`));

    let server = await t.start(shoal, ['--config', file]);
    const post = (at, body) => fetch(server.url + at, { method: 'POST', body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', authorization: 'Bearer sesame' } });
    const put = async (value) => t.same((await post('/v1/readings', { readings: [{ sensor: 'vib', value }] })).status, 202, 'reading');
    t.same((await post('/v1/collections', { name: 'manuals' })).status, 200, 'a collection');
    t.same((await post('/v1/collections/manuals/documents', { documents: [{ name: 'motor.md', title: 'Motor manual',
        text: '# Cooling\n\nRefill the coolant when the motor runs hot.\n\n# Bearing\n\nHigh vibration means that the bearing is worn. ' +
            'Stop the motor and replace the bearing.\n\n# Warranty\n\nIt ends after two years.\n' }] })).status, 200, 'a manual');
    const hook = () => got.filter((g) => g.path === '/hook?x=1');
    let n = 0;
    answer = (path_) => (path_ === '/no' ? 400 : ++n === 1 ? 503 : 200); // the first attempt fails
    await put(2.5);
    await put(7.5);
    await t.until(() => hook().some((g) => g.status === 200 && g.event.change === 'explained'), 'the alarm and its explanation');
    const told = hook().filter((g) => g.status === 200);
    t.same(told.map((g) => g.event.change).join(), 'raised,explained', 'first the alarm, then the explanation');
    t.check(told[0].event.id === told[1].event.id && told[0].event.passage === undefined &&
        /the bearing is worn/.test(told[1].event.passage) && /^Motor manual, Bearing/.test(told[1].event.source), JSON.stringify(told[1].event));
    const [first, again] = hook();
    t.same(hook().filter((g) => g.event.change === 'raised').length, 2, 'two attempts');
    t.check(first.status === 503 && first.key && first.key === again.key, 'the same idempotency key');
    t.check(first.signed && again.signed, 'signatures');
    t.check(again.event.change === 'raised' && /above the limit of 7 mm\/s/.test(again.event.text), `the event: ${JSON.stringify(again.event)}`);
    await t.until(() => got.some((g) => g.path === '/no'), 'the other webhook');
    t.same(got.find((g) => g.path === '/no').signature, undefined, 'without a secret there is no signature');
    for (const [place, result] of [[2, 'refused'], [1, 'delivered']]) // two events each
        await t.until(async () => await t.metric(server, `shoal_webhook_events_total{webhook="${place}",result="${result}"}`) === 2,
            `${result} ones are counted`);

    // the receiver is down, and the server is killed: reported events are kept
    answer = () => 503;
    const before = got.length;
    t.same((await post('/v1/alarms/acknowledge', { id: again.event.id, by: 'ada' })).status, 200, 'acknowledged');
    await t.until(() => got.slice(before).some((g) => g.path === '/hook?x=1'), 'an attempt that fails');
    await server.stop('SIGKILL');
    const waiting = got.slice(before).find((g) => g.path === '/hook?x=1');
    answer = () => 200;
    server = await t.start(shoal, ['--config', file]);
    await t.until(() => hook().some((g) => g.status === 200 && g.event.change === 'acknowledged'), 'the event of the process that was killed');
    const late = hook().find((g) => g.status === 200 && g.event.change === 'acknowledged');
    t.check(late.key === waiting.key && late.signed && late.event.acknowledged_by === 'ada', 'the same event');
    t.same((await server.stop()).code, 0, 'exit');
    t.same(hook().filter((g) => g.status === 200 && g.event.change === 'raised').length, 1, 'the alarm was told once');
    receiver.close();
    t.finish();
})().catch(t.abandon);
