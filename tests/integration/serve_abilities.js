#!/usr/bin/env node
// Every ability of every kind of thing, set by a sentence, sent over MQTT, HTTP or by a program, and read back: the message
// that arrived, the state that the thing reports and the words of the reply are the same value. Then lists, calls and what
// is only simulated. Usage: serve_abilities.js SHOAL
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
  - {id: hall}
devices:
  - {id: lamp, name: lamp, kind: light, room: office}
  - {id: plug, name: heater plug, kind: switch, room: office}
  - {id: fan, kind: fan}
  - {id: blinds, kind: cover, room: kitchen}
  - {id: skylight, kind: window}
  - {id: back_door, name: back door, kind: door}
  - {id: safe_lock, name: cabinet lock, kind: lock, room: office}
  - {id: heating, kind: climate}
  - {id: oven, kind: heater}
  - {id: fridge, kind: cooler}
  - {id: radio, kind: media}
  - {id: vacuum, kind: vacuum}
  - {id: dishwasher, kind: appliance}
  - {id: alarm, kind: alarm}
  - {id: camera, kind: camera}
  - {id: sprinkler, kind: valve}
  - {id: web_lamp, name: web lamp, kind: light}
  - {id: own_lamp, name: shelf lamp, kind: light}
machines:
  - {id: mixer, kind: machine}
  - {id: palletizer, kind: machine, risk: dangerous}
sensors:
  - {id: hall_temperature, name: temperature, room: hall, unit: celsius}
people:
  - {id: anna, name: Anna}
`;

// sentence, thing, ability, the message, the state, words of the reply; yes: it must be confirmed first
const rows = [
    ['turn on the lamp in the office', 'lamp', 'power', 'on', 'on', /on/],
    ['turn off the lamp in the office', 'lamp', 'power', 'off', 'off', /off/],
    ['set the lamp in the office to 40 percent', 'lamp', 'brightness', '40', 40, /40/],
    ['turn the lamp in the office red', 'lamp', 'color', 'red', 'red', /red/],
    ['turn off the heater plug', 'plug', 'power', 'off', 'off', /off/],
    ['turn on the fan', 'fan', 'power', 'on', 'on', /on/],
    ['stop the fan', 'fan', 'run', 'stopped', 'stopped', /stop/],
    ['open the blinds', 'blinds', 'open', 'open', 'open', /open/],
    ['open the blinds to 30 percent', 'blinds', 'position', '30', 30, /30/],
    ['open the blinds half way', 'blinds', 'position', '50', 50, /50/],
    ['close the blinds', 'blinds', 'open', 'closed', 'closed', /clos/],
    ['stop the blinds', 'blinds', 'run', 'stopped', 'stopped', /stop/],
    ['open the skylight', 'skylight', 'open', 'open', 'open', /open/, 'yes'],
    ['lock the back door', 'back_door', 'lock', 'locked', 'locked', /lock/],
    ['unlock the back door', 'back_door', 'lock', 'unlocked', 'unlocked', /unlock/, 'yes'],
    ['lock the cabinet lock', 'safe_lock', 'lock', 'locked', 'locked', /lock/],
    ['set the heating to 19 degrees', 'heating', 'temperature', '19', 19, /19/],
    ['turn the heating up by 2 degrees', 'heating', 'temperature', '21', 21, /2/],
    ['turn off the heating', 'heating', 'power', 'off', 'off', /off/],
    ['turn off the oven', 'oven', 'power', 'off', 'off', /off/],
    ['set the fridge to 5 degrees', 'fridge', 'temperature', '5', 5, /5/],
    ['set the volume of the radio to 15', 'radio', 'volume', '15', 15, /15/],
    ['mute the radio', 'radio', 'sound', 'muted', 'muted', /mute/],
    ['turn off the radio', 'radio', 'power', 'off', 'off', /off/],
    ['start the vacuum', 'vacuum', 'run', 'running', 'running', /start|running/],
    ['stop the vacuum', 'vacuum', 'run', 'stopped', 'stopped', /stop/],
    ['set the dishwasher to eco mode', 'dishwasher', 'mode', 'eco', 'eco', /eco/],
    ['arm the alarm', 'alarm', 'alarm', 'armed', 'armed', /arm/],
    ['disarm the alarm', 'alarm', 'alarm', 'disarmed', 'disarmed', /disarm/, 'yes'],
    ['turn on the camera', 'camera', 'power', 'on', 'on', /on/],
    ['stop the sprinkler', 'sprinkler', 'run', 'stopped', 'stopped', /stop/],
    ['start the mixer', 'mixer', 'run', 'running', 'running', /start|running/, 'yes'],
    ['set the speed of the mixer to 300 rpm', 'mixer', 'speed', '300', 300, /300/],
    ['the mixer, stop it!', 'mixer', 'run', 'stopped', 'stopped', /stop/],
    ["palletizer stop, someone's inside", 'palletizer', 'run', 'stopped', 'stopped', /stop/],
    ['cut the power to the palletizer', 'palletizer', 'power', 'off', 'off', /off/],
];

(async () => {
    const broker = await m.Broker.open();
    const calls = [];
    const web = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => { calls.push(body); res.writeHead(200).end('{}'); });
    });
    await new Promise((done) => web.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${web.address().port}`;
    const out = path.join(t.tmp, 'ran'), script = path.join(t.tmp, 'run.sh');
    fs.writeFileSync(script, `#!/bin/sh\nprintf '%s %s %s' "$1" "$2" "$3" > ${out}.new && mv ${out}.new ${out}\n`, { mode: 0o700 });
    const file = path.join(t.tmp, 'abilities.yaml'), house = path.join(t.tmp, 'home.yaml');
    fs.writeFileSync(house, home);
    fs.writeFileSync(file, `home: ${house}
home_state: ${t.tmp}/states.json
mqtt: {broker: "${broker.url}", client_id: house, queue: {file: "${t.tmp}/deeds.queue"}}
machines: [{name: motor3, title: motor 3}, {name: motor4, title: motor 4}]
sensors:
  - {name: vib, title: Vibration, unit: mm/s, machine: motor3, limits: "..7"}
  - {name: vib4, title: Vibration, unit: mm/s, machine: motor4, limits: "..7"}
  - {name: cellar_temp, title: cellar temperature, unit: celsius}
deeds_allow: {commands: ["${script}"], hosts: ["${host}"]}
deeds:
  - {things: web_lamp, via: http, url: "http://${host}/lamp", payload: '{"{ability}": "{value}"}', timeout: 60s}
  - {things: own_lamp, via: command, command: ["${script}", "{id}", "{ability}", "{value}"], timeout: 60s}
  - {things: "*", topic: "set/{id}/{ability}", state: "state/{id}/{ability}", timeout: 60s}
`);
    let server = await t.start(shoal, ['--config', file]);
    const things = await m.connect(broker);
    await m.subscribe(things, 'set/#');
    things.on('message', (topic, payload) => { // things that obey and report it
        if (topic.startsWith('set/'))
            things.publish(topic.replace('set/', 'state/'), payload, { qos: 1, retain: true });
    });
    await m.up(server);
    const ask = async (text, more = {}) => (await t.within(fetch(`${server.url}/v1/process`, { method: 'POST',
        body: JSON.stringify({ text, session_id: 'table', ...more }) }), text)).json();
    const state = async (id, ability) => (await (await t.within(fetch(`${server.url}/v1/home`), '/v1/home')).json())
        .states.find((s) => s.id === id && s.ability === ability)?.value;
    const last = (topic) => things.seen.filter((x) => x.topic === topic).pop()?.text;

    for (const [text, id, ability, message, value, words, yes] of rows) {
        let r = await ask(text);
        if (yes) {
            t.same(r.actions?.[0]?.result, 'confirm', `"${text}" waits for a yes: ${JSON.stringify(r.actions)}`);
            r = await ask('yes');
        }
        const a = r.actions?.[0] ?? {};
        t.same(`${a.id} ${a.result}`, `${id} done`, `"${text}" is confirmed by the thing: ${JSON.stringify(r.actions)}`);
        t.same(last(`set/${id}/${ability}`), message, `"${text}": the message`);
        t.same(await state(id, ability), value, `"${text}": the state`);
        t.check(words.test(r.reply), `"${text}": the reply: ${r.reply}`);
        t.check(!/simulat/i.test(r.reply), `"${text}" is not simulated: ${r.reply}`);
    }
    t.same(await state('blinds', 'open'), 'closed', 'closed after all');
    let r = await ask('open the blinds to 30 percent');
    t.same(await state('blinds', 'open'), 'open', 'what is partly open is open');

    // other ways to the thing
    r = await ask('set the web lamp to 25 percent');
    t.same(`${r.actions[0].result} ${calls.pop()}`, 'sent {"brightness": "25"}', 'over HTTP');
    r = await ask('set the shelf lamp to 35 percent');
    t.same(`${r.actions[0].result} ${fs.readFileSync(out, 'utf8')}`, 'sent own_lamp brightness 35', 'by a program');

    // what is not there is not promised
    r = await ask('open the back door to 30 percent');
    t.same(`${r.actions[0].result}`, 'refused', `a door has no position: ${r.reply}`);
    r = await ask('call Anna');
    t.check(/nothing is connected/.test(r.reply) && r.actions[0].result !== 'done', `no telephone: ${JSON.stringify(r)}`);
    r = await ask('how warm is it in the hall');
    t.check(r.actions[0].result === 'failed' && !/\d/.test(r.reply), `nothing measured yet: ${r.reply}`);
    await m.publish(things, 'state/hall_temperature/temperature', '17.5', { qos: 1, retain: true });
    await t.until(async () => await state('hall_temperature', 'temperature') === 17.5, 'a measured value');
    r = await ask('how warm is it in the hall');
    t.check(/17\.5/.test(r.reply), `what was measured: ${r.reply}`);

    // sensors and alarms of the server itself
    const put = async (sensor, value) => (await fetch(`${server.url}/v1/readings`, { method: 'POST',
        headers: { 'content-type': 'application/json' }, body: JSON.stringify({ readings: [{ sensor, value }] }) })).status;
    r = await ask('how warm is it in the cellar');
    t.check(!/\d/.test(r.reply), `no reading yet: ${r.reply}`);
    t.same(await put('cellar_temp', 11.5), 202, 'a reading');
    r = await ask('how warm is it in the cellar');
    t.same(r.reply, 'cellar temperature: 11.5 degrees.', 'the reading');
    await put('vib', 2.5);
    r = await ask('what happened with motor 3');
    t.same(r.reply, 'There is no alarm of motor 3.', 'nothing yet');
    await put('vib', 8.5);
    r = await ask('what happened with motor 3');
    t.check(/motor 3 rose from 2.5 to 8.5 mm\/s.*limit of 7/.test(r.reply), `its alarm: ${r.reply}`);
    r = await ask('what happened with motor 4');
    t.same(r.reply, 'There is no alarm of motor 4.', 'another machine');

    // it knows what is there, and promises no more
    r = await ask('what can you do?');
    t.check(/light.*fan.*machine/.test(r.reply) && /sensors/.test(r.reply) && !/simulate|document/.test(r.reply), `what is there: ${r.reply}`);

    // lists are kept
    r = await ask('add apples, oranges and pears to the shopping list');
    t.same(r.actions[0].items?.join(), 'apples,oranges,pears', `all of them: ${r.reply}`);
    r = await ask('take oranges off the shopping list', { session_id: 'another' });
    t.same(r.actions[0].items?.join(), 'apples,pears', `one removed: ${r.reply}`);
    await t.within(server.stop(), 'the end');
    server = await t.start(shoal, ['--config', file]);
    r = await ask("what's on my shopping list", { session_id: 'third' });
    t.check(/apples and pears/.test(r.reply), `after a restart: ${r.reply}`);
    r = await ask('clear the shopping list');
    r = await ask("what's on my shopping list");
    t.check(/empty/.test(r.reply) && !r.actions[0].items, `cleared: ${r.reply}`);

    await things.endAsync(true);
    t.same((await server.stop()).code, 0, 'a clean end');
    await new Promise((done) => { web.close(done); web.closeAllConnections(); });
    await broker.kill();

    // a home that nothing is connected to says so
    server = await t.start(shoal, []);
    r = await ask('turn on the kitchen lights');
    t.check(r.actions[0].result === 'simulated' && /simulated/i.test(r.reply), `simulated, and said: ${r.reply}`);
    r = await ask('what can you do');
    t.check(/only simulate/.test(r.reply) && !/sensor/.test(r.reply), `what it can do: ${r.reply}`);
    r = await ask('STOP');
    t.check(/simulated/i.test(r.reply), `also of a stop: ${r.reply}`);
    t.same((await server.stop()).code, 0, 'a clean end');
    t.finish();
})().catch(t.abandon);
