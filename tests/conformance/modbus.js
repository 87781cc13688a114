#!/usr/bin/env node
// A controller over Modbus TCP (pymodbus): its tags are readings, set points go through the gate of limits, and a line that
// was cut is made again. Usage: modbus.js SHOAL PYTHON
'use strict';
const fs = require('fs');
const net = require('net');
const path = require('path');
const { spawn } = require('child_process');
const t = require('../integration/serve.js');

const [shoal, python] = process.argv.slice(2).map((f) => path.resolve(f));
const freePort = () => new Promise((done) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(port)); });
});

class Controller {
    static async open(port) {
        const c = new Controller();
        c.child = spawn(python, [path.join(__dirname, 'modbus_server.py'), String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
        c.out = '';
        c.child.stdout.on('data', (d) => { c.out += d; });
        c.ended = new Promise((done) => c.child.on('exit', done));
        process.on('exit', () => c.child.kill('SIGKILL'));
        await t.until(() => new Promise((done) => {
            const s = net.connect(port, '127.0.0.1', () => { s.destroy(); done(true); });
            s.on('error', () => done(false));
        }), 'the controller');
        return c;
    }
    say(line) { this.child.stdin.write(`${line}\n`); }
    async float(address) { // its words are exchanged
        this.out = '';
        this.say(`holding ${address}`);
        await t.until(() => this.out.includes('\n'), 'registers');
        const [low, high] = this.out.trim().split(' ').map(Number), b = Buffer.alloc(4);
        b.writeUInt16BE(high, 0);
        b.writeUInt16BE(low, 2);
        return b.readFloatBE(0);
    }
    async close() { this.child.kill('SIGKILL'); await this.ended; }
}

(async () => {
    const port = await freePort();
    let plc = await Controller.open(port);
    const file = path.join(t.tmp, 'modbus.yaml'), house = path.join(t.tmp, 'home.yaml');
    fs.writeFileSync(house, `name: works
rooms: [{id: hall}]
devices:
  - {id: thermostat.hall, name: thermostat, kind: climate, room: hall, limits: {temperature: {min: 5, max: 30, unit: celsius}}}
`);
    const config = (tag) => `home: ${house}
machines: [{name: press}]
sensors:
  - {name: oil, machine: press, limits: "..9"}
  - {name: flow, machine: press}
  - {name: valve, machine: press, statistics: false}
  - {name: door, machine: press, statistics: false}
  - {name: gone, machine: press}
modbus:
  - name: press
    address: 127.0.0.1:${port}
    every: 50ms
    timeout: 2s
    tags:
      - {name: oil, sensor: oil, table: input, register: 0, type: float32}
      - {name: flow, sensor: flow, table: input, register: 2, scale: 0.1, offset: 20}
      - {name: valve, sensor: valve, table: coil, register: 3}
      - {name: door, sensor: door, table: discrete, register: 5}
      - {name: gone, sensor: gone, table: holding, register: 5000}
      - {name: setpoint, table: holding, register: 10, type: float32, order: cdab}
deeds:
  - {things: thermostat.hall, ability: temperature, via: modbus, tag: ${tag}, unit: celsius, timeout: 30s}
`;
    fs.writeFileSync(file, config('press.oil'));
    const { spawnSync } = require('child_process');
    const bad = spawnSync(shoal, ['serve', '--check', '--config', file]);
    t.check(bad.status !== 0 && /can only be read/.test(bad.stderr), `an input cannot be set: ${bad.stderr}`);
    fs.writeFileSync(file, config('press.setpoint'));
    const server = await t.start(shoal, ['--config', file]);
    const sensors = async () => Object.fromEntries((await (await fetch(`${server.url}/v1/sensors`)).json()).data.map((s) => [s.sensor, s]));
    await t.until(async () => (await sensors()).oil.value !== null, 'readings');
    let s = await sensors();
    t.same([s.oil.value, s.flow.value, s.valve.value, s.door.value].join(), '7.5,7.5,1,1', 'values of all four tables');
    await t.until(async () => (await sensors()).gone.readings.bad > 0, 'a refused tag is a bad reading');

    plc.say('input 0 16672'); // 10.0
    await t.until(async () => (await (await fetch(`${server.url}/v1/alarms?open=true`)).json()).data.some((a) => a.kind === 'limit'), 'a limit alarm');

    const ask = async (text) => (await (await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ text }) })).json());
    let r = await ask('set the thermostat in the hall to 24 degrees');
    t.same(r.actions?.[0]?.result, 'done', `written and read back: ${JSON.stringify(r)}`);
    t.same(await plc.float(10), 24, 'what the controller has');
    r = await ask('set the thermostat in the hall to 90 degrees');
    t.check(r.actions?.[0]?.result !== 'done', `outside its limits: ${JSON.stringify(r)}`);
    t.same(await plc.float(10), 24, 'nothing was written');

    await plc.close();
    await t.until(async () => await t.metric(server, 'shoal_modbus_up{controller="press"}') === 0, 'the line is down');
    r = await ask('set the thermostat in the hall to 22 degrees');
    t.same(r.actions?.[0]?.result, 'failed', `not connected: ${JSON.stringify(r)}`);
    plc = await Controller.open(port);
    await t.until(async () => await t.metric(server, 'shoal_modbus_up{controller="press"}') === 1, 'it is up again');
    await t.until(async () => (await sensors()).oil.value === 7.5, 'readings again');
    await plc.close();

    // a server that answers nonsense, and one that is silent: the line is made again, nothing is believed
    const count = (await sensors()).oil.readings.all;
    let n = 0;
    const liar = net.createServer((c) => { n++; c.on('error', () => {}); c.on('data', () => n % 2 && c.write('HTTP/1.1 400 Bad Request\r\n\r\n')); });
    await new Promise((done) => liar.listen(port, '127.0.0.1', done));
    await t.until(() => n >= 3, 'attempts');
    t.same((await sensors()).oil.readings.all, count, 'no reading of a liar');
    liar.close();
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
