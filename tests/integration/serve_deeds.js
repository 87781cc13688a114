#!/usr/bin/env node
// Commands become actions: /v1/process over MQTT, HTTP and programs, with truthful results, and states reported by
// things. Usage: serve_deeds.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]);

const home = `name: test house
rooms:
  - {id: kitchen}
  - {id: office}
  - {id: bedroom}
  - {id: garage}
  - {id: bathroom}
devices:
  - {id: light.kitchen, name: light, kind: light, room: kitchen}
  - {id: light.office, name: light, kind: light, room: office}
  - {id: light.bedroom, name: light, kind: light, room: bedroom}
  - {id: light.garage, name: light, kind: light, room: garage}
  - {id: light.bathroom, name: light, kind: light, room: bathroom}
  - {id: fan, kind: fan}
  - {id: radio, kind: media}
`;

(async () => {
    const broker = await m.Broker.open();
    const calls = [];
    let status = 200;
    const web = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => {
            calls.push({ method: req.method, url: req.url, body });
            res.writeHead(status).end('{}');
        });
    });
    await new Promise((done) => web.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${web.address().port}`;
    const out = path.join(t.tmp, 'ran');
    const script = path.join(t.tmp, 'run.sh');
    fs.writeFileSync(script, `#!/bin/sh\nprintf '%s %s' "$1" "$2" > ${out}.new && mv ${out}.new ${out}\n`, { mode: 0o700 });
    const file = path.join(t.tmp, 'deeds.yaml'), house = path.join(t.tmp, 'home.yaml');
    fs.writeFileSync(house, home);
    fs.writeFileSync(file, `home: ${house}
mqtt: {broker: "${broker.url}", client_id: house, reconnect_max: 500ms, discovery: homeassistant, queue: {file: "${t.tmp}/deeds.queue"}}
machines: [{name: pump, title: Pump}]
sensors: [{name: pump.flow, machine: pump}]
deeds_allow: {commands: ["${script}"], hosts: ["${host}"]}
deeds:
  - {things: light.kitchen, ability: power, topic: "home/{id}/set", values: ["on=ON", "off=OFF"], state: "home/{id}/state", state_value: state.power, timeout: 60s, payload: '{"power": "{value}"}'}
  - {things: light.office, topic: "plain/{id}/{ability}", retain: true, timeout: 60s}
  - {things: light.bedroom, ability: power, topic: "deaf/{id}", state: "deaf/{id}/state", timeout: 400ms, retry: 2}
  - {things: light.garage, via: http, url: "http://${host}/lights/{id}", payload: '{"to": "{value}"}', method: put, timeout: 60s}
  - {things: fan, via: command, command: ["${script}", "{id}", "{value}"], timeout: 60s}
`);
    const server = await t.start(shoal, ['--config', file]);
    const lamp = await m.connect(broker);
    await m.subscribe(lamp, 'home/+/set');
    await m.subscribe(lamp, 'plain/#');
    await m.subscribe(lamp, 'deaf/light.bedroom');
    // a lamp that obeys and reports its state
    lamp.on('message', (topic, payload) => {
        if (topic === 'home/light.kitchen/set')
            lamp.publish('home/light.kitchen/state', JSON.stringify({ state: JSON.parse(payload.toString()) }), { qos: 1, retain: true });
    });
    await m.up(server);
    const ask = async (text) => (await t.within(fetch(`${server.url}/v1/process`, { method: 'POST',
        body: JSON.stringify({ text }) }), text)).json();
    const result = async (text) => {
        const answer = await ask(text);
        return { result: answer.actions?.[0]?.result, reason: answer.actions?.[0]?.reason, all: JSON.stringify(answer) };
    };
    const last = (topic) => lamp.seen.filter((x) => x.topic === topic).pop();

    let r = await result('turn on the light in the kitchen');
    t.same(r.result, 'done', `confirmed by its state: ${r.all}`);
    t.same(last('home/light.kitchen/set')?.text, '{"power": "ON"}', 'what was sent');
    const states = async () => (await (await t.within(fetch(`${server.url}/v1/home`), '/v1/home')).text());
    t.check(/light\.kitchen/.test(await states()), 'the home has the lamp');
    r = await result('turn on the light in the office');
    t.same(r.result, 'sent', `nobody confirms: ${r.all}`);
    await t.until(() => last('plain/light.office/power')?.text === 'on', 'a plain value arrives');
    r = await result('turn on the light in the bedroom');
    t.same(r.result, 'failed', `it does not answer: ${r.all}`);
    t.check(/confirm/.test(r.reason ?? r.all), `why: ${r.all}`);
    await t.until(() => lamp.seen.filter((x) => x.topic === 'deaf/light.bedroom').length >= 2, 'it was sent again');
    r = await result('turn on the light in the bathroom');
    t.same(r.result, 'failed', `nothing is configured: ${r.all}`);
    t.check(/connected|configured/.test(r.reason ?? r.all), `not connected: ${r.all}`);
    r = await result('turn on the light in the garage');
    t.same(r.result, 'sent', `over HTTP: ${r.all}`);
    t.same(JSON.stringify(calls.pop()), JSON.stringify({ method: 'PUT', url: '/lights/light.garage', body: '{"to": "on"}' }), 'the call');
    status = 500;
    r = await result('turn off the light in the garage');
    t.same(r.result, 'failed', `the server refuses: ${r.all}`);
    t.check(/500/.test(r.all), `why: ${r.all}`);
    await new Promise((done) => { web.close(done); web.closeAllConnections(); });
    r = await result('turn on the light in the garage');
    t.same(r.result, 'failed', `the server is gone: ${r.all}`);
    r = await result('turn on the fan');
    t.same(r.result, 'sent', `a command: ${r.all}`);
    t.same(fs.existsSync(out) && fs.readFileSync(out, 'utf8'), 'fan on', 'its arguments');

    // somebody switches the lamp by hand: the new state is known
    await m.publish(lamp, 'home/light.kitchen/state', '{"state": {"power": "OFF"}}', { qos: 1, retain: true });
    await t.until(async () => /"off"/.test(await states()), 'a state that the lamp reports');
    const answer = await ask('is the light in the kitchen on?');
    t.check(/off/i.test(JSON.stringify(answer)), `a question about it: ${JSON.stringify(answer)}`);

    // Home Assistant: its entities become devices, ours appear there
    await m.subscribe(lamp, 'homeassistant/#');
    await t.until(() => last('homeassistant/text/house/assistant/config') && last('homeassistant/binary_sensor/house/pump/config'), 'our entities');
    const ours = JSON.parse(last('homeassistant/binary_sensor/house/pump/config').text);
    t.same(ours.state_topic, 'shoal/alarm/state/pump', 'where our alarms are');
    t.same(ours.availability_topic, 'shoal/status', 'whether we are there');
    await m.subscribe(lamp, 'shoal/alarm/state/pump');
    await t.until(() => last('shoal/alarm/state/pump')?.text.includes('"ok"'), 'a machine without alarms is ok');
    await m.subscribe(lamp, 'ha/#');
    lamp.on('message', (topic, payload) => {
        if (topic === 'ha/hall/set')
            lamp.publish('ha/hall', payload, { qos: 1, retain: true });
        if (topic === 'ha/door/set')
            lamp.publish('ha/door', payload.toString() === 'LOCK' ? 'LOCKED' : 'UNLOCKED', { qos: 1, retain: true });
    });
    await m.publish(lamp, 'homeassistant/light/z2m/hall_lamp/config', JSON.stringify({ name: 'lamp', schema: 'json', '~': 'ha/hall',
        cmd_t: '~/set', stat_t: '~', dev: { name: 'Hall lamp', sa: 'Hall' } }), { qos: 1, retain: true });
    await m.publish(lamp, 'homeassistant/lock/front/config', JSON.stringify({ name: 'front door', command_topic: 'ha/door/set', state_topic: 'ha/door' }),
        { qos: 1, retain: true });
    await m.publish(lamp, 'homeassistant/light/broken/config', '{"name": "broken"}', { qos: 1, retain: true });
    await t.until(async () => /light\.z2m_hall_lamp/.test(await states()) && /lock\.front/.test(await states()), 'devices of Home Assistant');
    // it has two seconds to report, which may be too short on a busy machine
    await t.until(async () => (r = await result('turn on the lamp in the hall')).result === 'done', 'a device of Home Assistant');
    t.same(last('ha/hall/set')?.text, '{"state": "ON"}', 'as its schema wants it');
    await t.until(async () => (r = await result('lock the front door')).result === 'done',
        'a lock, whose states have other names than its commands');
    await t.until(() => server.log.includes('homeassistant/light/broken/config'), 'a config of no use is logged');
    await m.publish(lamp, 'homeassistant/light/z2m/hall_lamp/config', '', { qos: 1, retain: true });
    await t.until(async () => !JSON.parse(await states()).devices.some((x) => x.id === 'light.z2m_hall_lamp'), 'a device that is gone');
    t.check(/light\.kitchen/.test(await states()), 'the others stay');

    // the assistant as Home Assistant uses it: text in, reply out
    await m.subscribe(lamp, 'shoal/response/process');
    await m.publish(lamp, 'shoal/request/process', 'turn on the light in the kitchen');
    await t.until(() => last('shoal/response/process'), 'a reply of the assistant');
    t.check(JSON.parse(last('shoal/response/process')?.text ?? '{}').reply?.length > 0, 'which has words');

    // without the broker
    await broker.kill();
    await t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 0, 'the loss of the broker');
    r = await result('turn on the light in the kitchen');
    t.same(r.result, 'failed', `the broker is away: ${r.all}`);
    t.check(/broker|connected/.test(r.all), `why: ${r.all}`);
    await lamp.endAsync(true);
    t.same((await server.stop()).code, 0, 'a clean end');
    t.finish();
})().catch(t.abandon);
