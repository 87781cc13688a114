#!/usr/bin/env node
// Readings over MQTT become alarms over MQTT: payloads in every form, invalid ones, Sparkplug B, and kills of the
// broker and the server, through which no alarm is lost and none comes twice. Usage: mqtt_sensors.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');
const { up } = m;

const shoal = path.resolve(process.argv[2]);
function config(broker, name, sensors, subscriptions) {
    const file = path.join(t.tmp, `${name}.yaml`);
    fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", lazy: true}\n` +
        'machines:\n  - {name: motor3, title: Motor 3}\n' +
        `sensors:\n${sensors.map((s) => `  - {statistics: false, lost: 1h, clear: 1s, hold_off: 1ms, ${s}}\n`).join('')}` +
        `alarms: {file: "${t.tmp}/${name}.alarms"}\n` +
        `mqtt:\n  broker: ${broker.url}\n  client_id: ${name}\n  reconnect_max: 500ms\n  queue: {file: "${t.tmp}/${name}.queue"}\n` +
        `  subscribe:\n${subscriptions.map((s) => `    - {${s}}\n`).join('')}`);
    return ['--config', file];
}

const read = (server) => t.metric(server, 'shoal_mqtt_readings_total');
const events = (client) => client.seen.filter((x) => x.topic.startsWith('shoal/alarm/event/'))
    .map((x) => ({ ...JSON.parse(x.text), message: x.properties.id, topic: x.topic }));
const state = (client, who) => client.seen.filter((x) => x.topic === `shoal/alarm/state/${who}`).map((x) => JSON.parse(x.text)).pop();

// protobuf, by hand
const varint = (n) => { const out = []; for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128); return Buffer.from([...out, Number(n)]); };
const field = (i, type, bytes) => Buffer.concat([varint(i << 3 | type), bytes]);
const bytes = (i, b) => field(i, 2, Buffer.concat([varint(b.length), Buffer.from(b)]));
const double = (v) => { const b = Buffer.alloc(8); b.writeDoubleLE(v); return field(13, 1, b); };
const metric = (name, alias, v) => bytes(2, Buffer.concat([...(name ? [bytes(1, name)] : []), field(2, 0, varint(alias)), double(v)]));

async function payloads() {
    const broker = await m.Broker.open();
    const server = await t.start(shoal, config(broker, 'forms',
        ['name: plain.vibration, limits: "..7", unit: mm/s, machine: motor3', 'name: j.temp, limits: "..90"', 'name: j.rpm, limits: "100.."',
            'name: c.a, limits: "..5"', 'name: c.b, limits: "..5"', 'name: sp.Motor/speed, limits: "..100"'],
        ['topic: "plant/+/+", sensor: "{1}.{2}"', 'topic: "json/#", payload: json, value: "$.m.*", time: t, sensor: "j.{name}"',
            'topic: "$share/g/csv", payload: csv, columns: [a, "-", b], sensor: "c.{name}"',
            'topic: "spBv1.0/g/#", payload: sparkplug, sensor: "sp.{name}"']));
    const client = await m.connect(broker);
    await m.subscribe(client, 'shoal/alarm/#');
    await m.subscribe(client, 'spBv1.0/g/NCMD/#');
    await up(server);
    const alarm = (sensor) => events(client).find((e) => e.change === 'raised' && e.channels?.[0]?.sensor === sensor);

    await m.publish(client, 'plant/plain/vibration', '2.5', { qos: 0 });
    await m.publish(client, 'plant/plain/vibration', '7.5');
    await t.until(() => alarm('plain.vibration'), 'an alarm of a plain number');
    t.same(alarm('plain.vibration')?.topic, 'shoal/alarm/event/motor3', 'the topic of its machine');
    t.same(alarm('plain.vibration')?.kind, 'limit', 'its kind');
    await t.until(() => state(client, 'motor3')?.open === 1, 'the state of the machine');
    t.check(state(client, 'motor3')?.state !== 'ok', 'which is not ok');
    const late = await m.connect(broker);
    await m.subscribe(late, 'shoal/alarm/state/motor3');
    await t.until(() => state(late, 'motor3')?.open === 1, 'the state is retained');
    await late.endAsync(true);

    await m.publish(client, 'json/x', JSON.stringify({ t: Date.now(), m: { temp: 95, rpm: 1500, other: 1, name: 'x' } }));
    await t.until(() => alarm('j.temp'), 'an alarm of a JSON member');
    t.check(!alarm('j.rpm'), 'none of the other one');
    await m.publish(client, 'json/x', '{"m": {"rpm": "50"}}', { qos: 2 });
    await t.until(() => alarm('j.rpm'), 'an alarm of a text that is a number, QoS 2');
    await m.publish(client, 'csv', '1,99,9');
    await t.until(() => alarm('c.b'), 'an alarm of a CSV column');
    t.check(!alarm('c.a'), 'none of the others');

    // Sparkplug: data before the birth requests a rebirth; afterwards numbers have names
    await m.publish(client, 'spBv1.0/g/NDATA/edge', metric(null, 5, 120));
    await t.until(() => client.seen.some((x) => x.topic === 'spBv1.0/g/NCMD/edge' && x.text.includes('Rebirth')), 'a request for the birth message');
    t.check(!alarm('sp.Motor/speed'), 'a number without a name is no reading');
    await m.publish(client, 'spBv1.0/g/NBIRTH/edge', metric('Motor/speed', 5, 50));
    await m.publish(client, 'spBv1.0/g/NDATA/edge', metric(null, 5, 120));
    await t.until(() => alarm('sp.Motor/speed'), 'an alarm of Sparkplug');

    // invalid input is counted, and changes nothing
    const before = events(client).length;
    for (const [topic, payload] of [['json/x', '{"m": '], ['json/x', '{}'], ['json/x', '\u0000'], ['csv', '1,2'], ['csv', ''],
        ['spBv1.0/g/NDATA/edge', Buffer.from([0xff, 0xff])], ['spBv1.0/wrong', 'x']])
        await m.publish(client, topic, payload);
    await m.publish(client, 'plant/plain/vibration', 'warm'); // a bad value of a known sensor
    await m.publish(client, 'plant/nobody/vibration', '9');
    await t.until(async () => await t.metric(server, 'shoal_mqtt_unknown_sensors_total') >= 1, 'an unknown sensor');
    t.check(await t.metric(server, 'shoal_mqtt_bad_payloads_total') >= 6, 'wrong payloads are counted');
    await t.until(() => server.log.includes('is not a reading'), 'and logged');
    t.same(events(client).length, before, 'no alarm of them');

    // the cause is gone
    let n = 0;
    await t.until(async () => {
        await m.publish(client, 'plant/plain/vibration', `2.${++n % 10}`, { qos: 0 });
        await t.sleep(50);
        return state(client, 'motor3')?.open === 0;
    }, 'the alarm ends');
    t.same(state(client, 'motor3')?.state, 'ok', 'the state of the machine is ok again');
    const told = () => events(client).filter((e) => e.topic.endsWith('/motor3')).map((e) => e.change).join();
    await t.until(() => told() === 'raised,cleared', 'its events');
    await client.endAsync(true);
    await server.stop();
    await broker.kill();
}

// Alarms, while the broker and the server are killed in turn.  Every sensor passes its limit once.
async function killed() {
    const N = 60, ids = Array.from({ length: N }, (x, i) => `s${i}`);
    const broker = await m.Broker.open();
    const args = config(broker, 'killed', ids.map((s) => `name: ${s}, limits: "..10"`), ['topic: "k/+", sensor: "{1}"']);
    let server = await t.start(shoal, args, { ready: false });
    // both test clients keep their sessions, as a PLC would
    const keep = { clean: false, properties: { sessionExpiryInterval: 3600 } };
    const plc = await m.connect(broker, { clientId: 'plc', ...keep });
    const source = await m.connect(broker, { clientId: 'source', ...keep });
    await m.subscribe(plc, 'shoal/alarm/event/#');
    await up(server);
    const raised = () => new Set(events(plc).filter((e) => e.change === 'raised').map((e) => e.channels[0].sensor));
    let next = 0;
    const fire = async (n) => {
        for (const end = next + n; next < end; next++)
            await m.publish(source, `k/${ids[next]}`, '11');
    };
    const wait = (n, what) => t.until(() => raised().size >= n, { toString: () => `${what}: ${raised().size} of ${n}` });

    await fire(10);
    await wait(10, 'alarms with everything up');

    // the server is killed while readings come: the broker keeps them, the queue keeps the alarms
    const firing = fire(10);
    await t.sleep(5);
    await server.stop('SIGKILL');
    await firing;
    server = await t.start(shoal, args, { ready: false });
    await wait(20, 'alarms after the server was killed');

    // the broker is killed after it has delivered the readings and before it can take the alarms
    for (const s of ids.slice(20, 30))
        await m.publish(source, `k/${s}`, '1');
    const before = await read(server);
    await broker.flush(source);
    await broker.kill();
    await t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 0, 'the loss of the broker');
    await broker.start();
    await t.until(() => source.connected && plc.connected, 'the clients are back');
    await up(server);
    await fire(10);
    await wait(30, 'alarms after the broker was killed');
    t.check(await read(server) >= before, 'readings go on');

    // both, alternately, several times
    for (let round = 0; round < 2; round++) {
        const go = fire(15);
        await t.sleep(20 * round);
        await server.stop('SIGKILL');
        await go;
        await broker.flush(source);
        await broker.kill();
        await broker.start();
        await t.until(() => source.connected && plc.connected, 'the clients are back');
        server = await t.start(shoal, args, { ready: false });
        await wait(45 + 15 * round, `alarms after both were killed, round ${round}`);
    }
    await wait(N, 'all alarms');
    const all = events(plc).filter((e) => e.change === 'raised');
    // a message may be delivered again with the same id; a receiver that counts by id sees each alarm once
    const messages = new Map(all.map((e) => [e.message, e]));
    t.same(raised().size, N, 'no alarm is lost');
    t.same(messages.size, N, 'none is raised twice');
    t.same(new Set([...messages.values()].map((e) => e.id)).size, N, 'each has a number of its own');
    console.log(`alarms: ${N}, messages: ${all.length}, repeated deliveries with the same id: ${all.length - messages.size}`);

    // a clean restart with open alarms raises none again
    await t.until(async () => await t.metric(server, 'shoal_mqtt_queued') === 0, 'everything is acknowledged');
    t.same((await server.stop()).code, 0, 'a clean end');
    server = await t.start(shoal, args, { ready: false });
    await up(server);
    for (const s of ids)
        await m.publish(source, `k/${s}`, '12');
    await t.until(async () => await read(server) >= N, 'the readings after the restart');
    const listed = (await (await fetch(`${server.url}/v1/alarms?open=true&limit=1000`)).json()).data;
    t.same(listed.map((e) => e.id).sort().join(), [...messages.values()].map((e) => e.id).sort().join(), 'one id for one alarm: as it was published');
    // messages that the server resent after the last kill may have arrived late: they have the same ids
    t.same(new Set(events(plc).filter((e) => e.change === 'raised').map((e) => e.message)).size, N, 'open alarms are not raised again');
    for (const c of [plc, source])
        await c.endAsync(true);
    await server.stop();
    await broker.kill();
}

// A full queue, a full disk, a damaged end of the queue: the server reports it and goes on.
async function damaged() {
    const broker = await m.Broker.open();
    const args = config(broker, 'damaged', ['name: a, limits: "..10"', 'name: b, limits: "..10"'], ['topic: "d/+", sensor: "{1}"']);
    const queue = path.join(t.tmp, 'damaged.queue');
    let server = await t.start(shoal, args, { ready: false });
    await up(server);
    await server.stop();
    fs.appendFileSync(queue, 'half a record');
    server = await t.start(shoal, args, { ready: false });
    await up(server);
    await t.until(() => server.log.includes('13 bytes') && server.log.includes('damaged'), 'a damaged end is said');
    const client = await m.connect(broker);
    await m.subscribe(client, 'shoal/alarm/event/#');
    await m.publish(client, 'd/a', '11');
    await t.until(() => events(client).length === 1, 'an alarm after the damage');
    await server.stop();
    fs.writeFileSync(queue, 'this is not a queue at all, but the notes of somebody\n');
    const e = await t.fails(t.start(shoal, args, { ready: false }), 'another file as the queue');
    t.check(e.message?.includes('not a Shoal queue'), `another file: ${e.message}`);
    await client.endAsync(true);
    await broker.kill();
}

(async () => {
    await payloads();
    await killed();
    await damaged();
    t.finish();
})().catch(t.abandon);
