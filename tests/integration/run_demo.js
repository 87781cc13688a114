#!/usr/bin/env node
// tools/run-demo (`make run`): starts, answers, the commands that it suggests work, exits cleanly; a port in use does
// not stop it. Its plant and house use MQTT where mosquitto is installed, and are simulated in the server otherwise:
// breaking the bearing raises an alarm, a command changes the house.
// Usage: run_demo.js SHOAL
'use strict';
const { execSync, spawn } = require('child_process');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const demo = path.join(t.root, 'tools/run-demo');

function listen(port) {
    return new Promise((done) => {
        const s = net.createServer((c) => c.destroy());
        s.listen(port, '127.0.0.1', () => done(s));
    });
}

// Runs the demo until it prints how to stop it; resolves with its output.
async function run(port, more = {}) {
    const child = spawn(demo, [], {
        detached: true, // a group of its own, as in a terminal
        env: { ...process.env, PORT: String(port), SHOAL: shoal, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache'), ...more },
    });
    const it = { child, out: '', get log() { return it.out; } };
    t.watch(it);
    it.ended = new Promise((done) => child.on('exit', (code) => done(code)));
    await new Promise((done, give) => {
        child.stdout.on('data', (d) => {
            it.out += d;
            if (it.out.includes('Ctrl-C ends it'))
                done();
        });
        child.stderr.on('data', (d) => { it.out += d; });
        it.ended.then(() => give(new Error(`it ended: ${it.out}`)), give);
    });
    it.url = /is ready at (\S+),/.exec(it.out)[1];
    it.stop = () => {
        process.kill(-child.pid, 'SIGINT'); // Ctrl-C
        return it.ended;
    };
    return it;
}

const get = async (url) => (await t.within(fetch(url), url)).json();
const post = async (url, body) => (await t.within(fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body) }), url)).json();

// The bearing breaks: vibration rises above its limit, and the alarm says so.
async function breaks(it) {
    await t.until(async () => (await get(`${it.url}/v1/sensors`)).data.every((s) => s.value !== null), 'readings of all sensors');
    t.same((await post(`${it.url}/v1/demo`, { broken: true })).broken, true, 'the bearing is broken');
    await t.until(async () => (await get(`${it.url}/v1/alarms?open=true`)).data.some((a) => a.severity === 'critical' &&
        /^vibration on motor 3 rose from \d.* to \d.* mm\/s.* above the limit of 7 mm\/s/.test(a.text)), 'an alarm that says what happened');
    t.same((await post(`${it.url}/v1/demo`, { broken: false })).broken, false, 'it is healed');
    await t.until(async () => (await get(`${it.url}/v1/sensors`)).data.find((s) => s.sensor === 'vibration').value < 4, 'vibration falls');
    t.same((await post(`${it.url}/v1/demo`, {})).error?.param, 'broken', 'what is missing is named');
}

(async () => {
    const port = await t.free_port();
    let it = await run(port);
    t.same(it.url, `http://127.0.0.1:${port}`, 'address');
    t.check((await (await fetch(it.url)).text()).includes('<title>Shoal</title>'), 'the page');
    const commands = it.out.split('\n').filter((l) => /^ {2}(curl|\S*shoal) /.test(l));
    t.same(commands.length, 2, 'commands to try');
    for (const c of commands) {
        const said = execSync(`${c.trim()} 2>/dev/null`, { cwd: t.root }).toString();
        t.check(/"action":"(set_timer|turn_off)"/.test(said), `${c}: ${said}`);
    }
    t.check(it.out.includes('speak MQTT at 127.0.0.1'), 'a broker was started');
    await breaks(it);
    await t.until(async () => (await post(`${it.url}/v1/process`, { text: 'turn on the kitchen lights and set the heating to 19 degrees' }))
        .actions.map((a) => a.result).join() === 'done,done', 'the house confirms'); // it has two seconds for that
    await t.until(async () => (await get(`${it.url}/v1/home`)).states.some((s) => s.id === 'heating' && s.value === 19 && s.unit === 'celsius'),
        'its state');
    t.same(await it.stop(), 0, 'Ctrl-C ends it');
    t.check(it.out.includes('Stopped.'), 'and says so');
    await t.until(() => fetch(it.url).then(() => false, () => true), 'the server is gone');

    const other = await listen(0);
    it = await run(other.address().port, { BROKER: 'none' });
    t.check(it.out.includes(`Port ${other.address().port} is taken`) && !it.url.endsWith(`:${other.address().port}`),
        `a port that is taken: ${it.out}`);
    t.same((await fetch(`${it.url}/readyz`)).status, 200, 'ready');
    t.check(!it.out.includes('speak MQTT'), 'without a broker');
    await breaks(it);
    t.same((await get(`${it.url}/v1/home`)).simulated, true, 'the house is simulated in the server');
    it.child.kill('SIGTERM');
    t.same(await it.ended, 0, 'SIGTERM ends it');
    other.close();
    t.finish();
})().catch(t.abandon);
