#!/usr/bin/env node
// Scheduled actions of a home: set, listed and cancelled in words and over /v1/scheduled; done once, also when the
// server is killed; reported as missed when it is too late; announced over MQTT. Usage: serve_scheduled.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]);
process.chdir(t.root); // where ./models is

const home = `rooms: [{id: kitchen}]
devices:
  - {id: light.kitchen, name: ceiling light, kind: light, room: kitchen}
  - {id: fan, kind: fan}
  - {id: heating, kind: heater}
  - {id: lock.front, name: front door, kind: door}
`;

(async () => {
    const broker = await m.Broker.open();
    const ran = path.join(t.tmp, 'ran'), script = path.join(t.tmp, 'run.sh'), house = path.join(t.tmp, 'home.yaml');
    const file = path.join(t.tmp, 'scheduled.yaml'), kept = path.join(t.tmp, 'scheduled.json');
    fs.writeFileSync(script, `#!/bin/sh\necho "$1 $2" >> ${ran}\n`, { mode: 0o700 });
    fs.writeFileSync(house, home);
    fs.writeFileSync(ran, '');
    fs.writeFileSync(file, `home: ${house}
home_schedule: ${kept}
mqtt: {broker: "${broker.url}", client_id: later, reconnect_max: 500ms, queue: {file: "${t.tmp}/later.queue"}}
deeds_allow: {commands: ["${script}"]}
deeds: [{things: "*", via: command, command: ["${script}", "{id}", "{value}"], timeout: 60s}]
`);
    const done = () => fs.readFileSync(ran, 'utf8').split('\n').filter(Boolean);
    let server = await t.start(shoal, ['--config', file]);
    const listener = await m.connect(broker);
    await m.subscribe(listener, 'shoal/scheduled/#');
    const ask = async (text) => (await t.within(fetch(`${server.url}/v1/process`,
        { method: 'POST', headers: { 'x-session-id': 'one' }, body: JSON.stringify({ text }) }), text)).json();
    const scheduled = async () => (await fetch(`${server.url}/v1/scheduled`)).json();
    const over = async (what) => { // the entry with its result
        let found;
        await t.until(async () => (found = (await scheduled()).recent.find((x) => x.what.includes(what))), `the end of: ${what}`);
        return found;
    };
    const told = (kind) => listener.seen.find((x) => x.topic === `shoal/scheduled/${kind}`);

    // set, and carried out
    let r = await ask('turn on the ceiling light in 1 second');
    t.same(r.actions[0].result, 'scheduled', 'for later');
    t.check(/in 1 second/.test(r.reply) && r.actions[0].due, `the reply says when: ${r.reply}`);
    t.same((await over('ceiling light')).result, 'sent', 'its result');
    t.same(done().join(), 'light.kitchen on', 'the deed');
    t.same((await (await fetch(`${server.url}/v1/home`)).json()).states[0].value, 'on', 'the state');
    await t.until(() => told('action'), 'a message over MQTT');
    t.same(JSON.parse(told('action').text).result, 'sent', 'the result over MQTT');
    r = await ask('remind me in 1 second to check the oven');
    t.same(r.actions[0].result, 'scheduled', 'a reminder');
    t.same((await over('check the oven')).result, 'rang', 'it rings');
    await t.until(() => told('reminder'), 'the reminder over MQTT');

    // listed and cancelled
    await ask('turn off the heating in 20 minutes');
    await ask('set a timer for 10 minutes');
    await ask('wake me at 6:30 tomorrow');
    r = await ask('what timers are set?');
    t.same(r.actions[0].scheduled.length, 1, 'one timer');
    t.check(/timer: 10 minutes \((10|9) minutes/.test(r.reply), `and what is left: ${r.reply}`);
    r = await ask('cancel the heating timer');
    t.check(/Cancelled: turn off the heating/.test(r.reply), `by its words: ${r.reply}`);
    t.same((await scheduled()).scheduled.map((x) => x.kind).join(), 'timer,alarm', 'what is left');
    const [timer] = (await scheduled()).scheduled;
    const drop = (id) => fetch(`${server.url}/v1/scheduled/${id}`, { method: 'DELETE' });
    t.same((await drop(timer.id)).status, 200, 'by its id');
    t.same((await drop(timer.id)).status, 404, 'once');
    t.same((await drop('timer')).status, 404, 'no id');
    r = await ask('cancel the timer');
    t.same(r.actions[0].result, 'failed', 'there is none any more');
    r = await ask("don't cancel my alarm");
    t.same((await scheduled()).scheduled.length, 1, 'not cancelled');

    // recurring ones: one entry until it is cancelled; the sun needs a location
    r = await ask('turn on the fan every day at 7');
    t.same(r.actions[0].result, 'scheduled', 'every day');
    const daily = (await scheduled()).scheduled.find((x) => x.repeats);
    t.same(`${daily.what}; ${daily.repeats}`, 'turn on the fan, every day; every day', 'it is listed so');
    t.same((await drop(daily.id)).status, 200, 'and cancelled');
    r = await ask('turn on the fan every two hours');
    t.same(r.actions[0].result, 'scheduled', 'every two hours');
    const rhythm = (await scheduled()).scheduled.find((x) => x.repeats);
    t.same(rhythm.repeats, 'every two hours', 'a rhythm is listed');
    t.same(rhythm.due_ms > rhythm.made_ms + 7190000 && rhythm.due_ms <= rhythm.made_ms + 7200000, true, 'it begins two hours from now');
    t.same((await drop(rhythm.id)).status, 200, 'and cancelled');
    r = await ask('turn on the fan every month at 7');
    t.check(r.actions[0].result === 'refused' && /I can repeat/.test(r.reply), `a rhythm that cannot be: ${r.reply}`);
    r = await ask('turn off the heating at sunset');
    t.check(r.actions[0].result === 'refused' && /no location/.test(r.reply), `where is it? ${r.reply}`);

    // dangerous ones are confirmed when they are scheduled
    r = await ask('unlock the front door in 1 second');
    t.same(r.actions[0].result, 'confirm', 'dangerous');
    t.same((await scheduled()).scheduled.length, 1, 'not before the yes');
    r = await ask('yes');
    t.same(r.actions[0].result, 'scheduled', 'after the yes');
    await over('unlock the front door');
    t.same(done().pop(), 'lock.front unlocked', 'unlocked');

    // killed before it is due: done once
    const before = done().length;
    await ask('turn on the fan in 20 minutes');
    await server.stop('SIGKILL');
    const due = JSON.parse(fs.readFileSync(kept, 'utf8'));
    due.scheduled.find((x) => x.what.includes('fan')).due_ms = Date.now(); // simulates that the time has passed
    fs.writeFileSync(kept, JSON.stringify(due));
    fs.writeFileSync(house, `location: {latitude: 52.5, longitude: 13.4}\n${home}`);
    server = await t.start(shoal, ['--config', file]);
    await over('turn on the fan');
    r = await ask('turn off the heating at sunset');
    t.check(r.actions[0].result === 'scheduled' && r.actions[0].due, `at sunset: ${r.reply}`);
    t.same((await drop(r.actions[0].scheduled_id)).status, 200, 'cancelled too');
    await server.stop('SIGKILL');
    server = await t.start(shoal, ['--config', file]);
    t.same((await scheduled()).scheduled.length, 1, 'only the alarm waits');
    t.same(done().length - before, 1, 'done once');

    // down for too long: missed. started and killed: interrupted
    await server.stop('SIGKILL');
    const disk = JSON.parse(fs.readFileSync(kept, 'utf8')), old = disk.scheduled[0];
    disk.scheduled = [{ ...old, id: 1, what: 'old alarm', due_ms: Date.now() - 3600e3 },
        { ...old, id: 2, kind: 'action', what: 'half done', due_ms: Date.now() - 1000, begun: true, action: '{"action":"turn_on","id":"fan"}' }];
    fs.writeFileSync(kept, JSON.stringify(disk));
    server = await t.start(shoal, ['--config', file]);
    t.same((await over('old alarm')).result, 'missed', 'too late');
    t.same((await over('half done')).result, 'interrupted', 'not repeated');
    t.same(done().length - before, 1, 'nothing was done again');
    const stop = new AbortController(), stream = await fetch(`${server.url}/v1/scheduled?stream=true`, { signal: stop.signal });
    const first = new TextDecoder().decode((await t.within(stream.body.getReader().read(), 'the stream')).value);
    t.check(/old alarm/.test(first), 'the stream begins with what is');
    stop.abort();
    await server.stop();
    fs.writeFileSync(kept, '{');
    await t.fails(t.start(shoal, ['--config', file]), 'a broken file');

    // the file is in the state folder; one that an earlier version left in the cache folder is moved there
    const state = path.join(process.env.XDG_STATE_HOME, 'shoal', 'home-scheduled.json');
    const cached = path.join(t.tmp, 'cache', 'home-scheduled.json');
    fs.rmSync(state, { force: true });
    fs.mkdirSync(path.dirname(cached), { recursive: true });
    fs.writeFileSync(cached, JSON.stringify({ ...disk, scheduled: [{ ...old, what: 'from before', due_ms: Date.now() + 3600e3 }], recent: [] }));
    server = await t.start(shoal, []);
    t.same((await scheduled()).scheduled.map((x) => x.what).join(), 'from before', 'taken over');
    t.check(fs.existsSync(state) && !fs.existsSync(cached), 'moved');
    await server.stop();

    // a client with a key has its own limit, and leaves room for others
    const sha256 = (text) => require('crypto').createHash('sha256').update(text).digest('hex');
    const keyed = path.join(t.tmp, 'keyed.yaml'), many = path.join(t.tmp, 'many.json');
    fs.writeFileSync(keyed, `home_schedule: ${many}\nkeys: [{name: ada, sha256: ${sha256('a')}}, {name: bob, sha256: ${sha256('b')}}]\n`);
    fs.writeFileSync(many, JSON.stringify({ version: 1, last_id: 64, recent: [], scheduled: Array.from({ length: 64 },
        (_, i) => ({ ...old, id: i + 1, by: 'ada', what: `alarm ${i}`, due_ms: Date.now() + 3600e3 })) }));
    server = await t.start(shoal, ['--config', keyed]);
    const as = async (key) => (await (await t.within(fetch(`${server.url}/v1/process`, { method: 'POST',
        headers: { authorization: `Bearer ${key}` }, body: JSON.stringify({ text: 'set a timer for 10 minutes' }) }), key)).json()).actions[0];
    let mine = await as('a');
    t.check(mine.result === 'failed' && /you have too many/.test(mine.reason), `a client's limit: ${JSON.stringify(mine)}`);
    t.same((await as('b')).result, 'scheduled', 'others have room');
    await server.stop();

    // a state file that cannot be locked does not prevent the server from starting
    fs.rmSync(`${state}.lock`);
    fs.mkdirSync(`${state}.lock`, { recursive: true });
    server = await t.start(shoal, []);
    t.same((await ask('set a timer for 10 minutes')).actions[0].result, 'scheduled', 'in memory');
    t.check(/schedules are lost when the server stops/.test(server.log), 'the log says so');
    await server.stop();

    // an hour that may be in the morning or in the evening is said as it was understood: here it is between 15 and 16 o'clock
    server = await t.start(shoal, [], { env: { TZ: `TST${new Date().getUTCHours() - 15}` } });
    for (const [text, said] of [['turn on the lights at 6', /at 18:00\.$/], ['remind me at 6 to call Anna', /call Anna at 18:00\.$/],
        ['turn off the fan at 4:30', /at 16:30\.$/], ['open the garage door at 8', /^Shall I open the garage door at 20:00\?/],
        ['turn on the lights at 6 pm', /at 6 pm\.$/], ['wake me at 6', /6:00\. That is tomorrow, 06:00\.$/]]) {
        const { reply } = await ask(text);
        t.check(said.test(reply), `${text}: ${reply}`);
    }
    await server.stop();

    // without a server the reply does not promise anything
    for (const text of ['turn off the heating in 20 minutes', 'set a timer for 10 minutes', 'remind me in ten minutes to check the oven']) {
        const said = spawnSync(shoal, ['ask', text], { encoding: 'utf8' }).stdout;
        t.check(/"simulated":"yes"/.test(said) && /only a server \(shoal serve\) does things later/.test(said), `the command line is honest: ${said}`);
    }
    await listener.endAsync(true);
    await broker.kill();
    t.finish();
})().catch(t.abandon);
