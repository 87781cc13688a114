#!/usr/bin/env node
// Alarms while the network to the broker is cut for a minute, and while the disk is full: none is lost, none comes
// twice, over MQTT and over a webhook. Usage: mqtt_cut.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const net = require('net');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]);
const CUT_MS = 60000;

// Sits between the server and its broker: while it is cut nothing passes, and connections neither close nor get a
// reply.
async function link(broker) {
    const pairs = new Set();
    let cut = false;
    const server = net.createServer((from) => {
        const to = net.connect(broker.port, '127.0.0.1'), pair = { from, to };
        pairs.add(pair);
        for (const [a, b] of [[from, to], [to, from]]) {
            a.on('error', () => {});
            a.on('data', (d) => { if (!cut) b.write(d); }); // a byte in flight when the cut comes is lost
            a.on('close', () => { if (!cut) b.destroy(); });
        }
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return {
        url: `mqtt://127.0.0.1:${server.address().port}`,
        cut: () => { cut = true; },
        mend: () => { // connections that hung through the cut are dead, and both ends notice
            cut = false;
            pairs.forEach((p) => { p.from.destroy(); p.to.destroy(); });
            pairs.clear();
        },
        close: () => server.close(),
    };
}

// A webhook server; while it is away it answers 503.
async function receiver() {
    const r = { got: [], away: false };
    r.server = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => {
            if (!r.away)
                r.got.push({ key: req.headers['idempotency-key'], event: JSON.parse(body) });
            res.writeHead(r.away ? 503 : 200).end();
        });
    });
    await new Promise((done) => r.server.listen(0, '127.0.0.1', done));
    r.host = `127.0.0.1:${r.server.address().port}`;
    return r;
}

function config(name, url, sensors, hook) {
    const file = path.join(t.tmp, `${name}.yaml`);
    fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", lazy: true}\n` +
        `sensors:\n${sensors.map((s) => `  - {name: ${s}, limits: "..10", statistics: false, lost: 1h}\n`).join('')}` +
        `alarms:\n  file: "${t.tmp}/${name}.alarms"\n  allow: ["${hook.host}"]\n  webhooks: [{url: "http://${hook.host}/hook", timeout: 60s}]\n` +
        `mqtt:\n  broker: ${url}\n  client_id: ${name}\n  keepalive: 5s\n  reconnect_max: 500ms\n  queue: {file: "${t.tmp}/${name}.queue"}\n` +
        '  subscribe:\n    - {topic: "k/+", sensor: "{1}"}\n');
    return ['--config', file];
}

const keep = { clean: false, properties: { sessionExpiryInterval: 3600 } };
const raised = (client) => client.seen.filter((x) => x.topic.startsWith('shoal/alarm/event/'))
    .map((x) => ({ ...JSON.parse(x.text), message: x.properties.id })).filter((e) => e.change === 'raised');
const over_http = (server, sensor) => fetch(`${server.url}/v1/readings`, { method: 'POST',
    body: JSON.stringify({ readings: [{ sensor, value: 11 }] }) });

// Each sensor has raised one alarm; a receiver that counts by alarm number sees each once.
function counted(events, n, what) {
    t.same(new Set(events.map((e) => e.channels[0].sensor)).size, n, `${what}: none is lost`);
    t.same(new Set(events.map((e) => e.id)).size, n, `${what}: none is raised twice`);
    console.log(`${what}: ${n} alarms, ${events.length} messages`);
}

async function network() {
    const ids = Array.from({ length: 40 }, (_, i) => `s${i}`), broker = await m.Broker.open(), wire = await link(broker), hook = await receiver();
    const server = await t.start(shoal, config('cut', wire.url, ids, hook), { ready: false });
    const plc = await m.connect(broker, { clientId: 'plc', ...keep }), source = await m.connect(broker, { clientId: 'source', ...keep });
    await m.subscribe(plc, 'shoal/alarm/event/#');
    await m.up(server);
    for (const s of ids.slice(0, 10))
        await m.publish(source, `k/${s}`, '11');
    await t.until(() => raised(plc).length === 10, 'alarms before the cut');
    wire.cut();
    const since = Date.now();
    for (const s of ids.slice(10, 20)) // the broker has them and cannot deliver them
        await m.publish(source, `k/${s}`, '11');
    for (const s of ids.slice(20, 30)) // these raise alarms that cannot be published
        t.same((await over_http(server, s)).status, 202, 'a reading over HTTP');
    await t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 0, 'the cut is noticed');
    await t.sleep(CUT_MS - (Date.now() - since));
    t.same(raised(plc).length, 10, 'nothing passed');
    wire.mend();
    await t.until(() => new Set(raised(plc).map((e) => e.id)).size >= 30, 'alarms after the cut');
    for (const s of ids.slice(30))
        await m.publish(source, `k/${s}`, '11');
    await t.until(() => new Set(raised(plc).map((e) => e.id)).size >= 40, 'and on');
    await t.until(async () => await t.metric(server, 'shoal_mqtt_queued') === 0, 'everything is acknowledged');
    counted(raised(plc), ids.length, 'network cut for a minute, MQTT');
    t.same(new Set(raised(plc).map((e) => e.message)).size, ids.length, 'a message that comes again has its id');
    await t.until(() => hook.got.length >= ids.length, 'the webhook');
    counted(hook.got.map((g) => g.event), ids.length, 'network cut for a minute, webhook');
    for (const c of [plc, source])
        await c.endAsync(true);
    await server.stop();
    await broker.kill();
    wire.close();
    hook.server.close();
}

// Files of the server may not grow beyond 16 KiB: every write above that fails, as on a full disk.
async function disk() {
    const ids = Array.from({ length: 60 }, (_, i) => `s${i}`), broker = await m.Broker.open(), hook = await receiver();
    const small = path.join(t.tmp, 'small.sh'), args = config('full', broker.url, ids, hook);
    fs.writeFileSync(small, `#!/bin/sh\ntrap '' XFSZ\nulimit -f 32\nexec ${shoal} "$@"\n`, { mode: 0o700 });
    let server = await t.start(small, args, { ready: false });
    const plc = await m.connect(broker, { clientId: 'plc', ...keep });
    await m.subscribe(plc, 'shoal/alarm/event/#');
    await m.up(server);
    await broker.flush(plc);
    await broker.kill();
    hook.away = true;
    await t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 0, 'the loss of the broker');
    for (const s of ids) // more than the queues can hold on disk
        t.same((await over_http(server, s)).status, 202, 'a reading');
    for (const what of ['a message could not be stored on disk', 'could not be stored on disk: cannot write', 'cannot save open alarms'])
        t.check(server.log.includes(what), `the log says it: ${what}`);
    t.same(await t.metric(server, 'shoal_webhook_events_total{webhook="1",result="lost"}'), 0, 'none is given up');
    await broker.start();
    hook.away = false;
    await t.until(() => new Set(raised(plc).map((e) => e.id)).size >= ids.length, 'alarms that waited');
    await t.until(() => new Set(hook.got.map((g) => g.event.id)).size >= ids.length, 'the webhook');
    await t.until(async () => await t.metric(server, 'shoal_mqtt_queued') === 0, 'everything is acknowledged');
    counted(raised(plc), ids.length, 'disk full, MQTT');
    counted(hook.got.map((g) => g.event), ids.length, 'disk full, webhook');
    t.same(new Set(hook.got.map((g) => g.key)).size, ids.length, 'each has a key of its own');
    // there is room again: the next start finds usable queues
    t.same((await server.stop()).code, 0, 'exit');
    const before = raised(plc).length;
    server = await t.start(shoal, args, { ready: false });
    await m.up(server);
    await t.until(async () => await t.metric(server, 'shoal_mqtt_queued') === 0, 'nothing waits');
    t.same(new Set(raised(plc).map((e) => e.id)).size, ids.length, `no alarm is new (${raised(plc).length - before} came again)`);
    await plc.endAsync(true);
    await server.stop();
    await broker.kill();
    hook.server.close();
}

(async () => {
    await disk();
    await network();
    t.finish();
})().catch(t.abandon);
