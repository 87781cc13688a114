#!/usr/bin/env node
// `shoal cluster doctor` on a real shoal: a node whose clock is an hour ahead, whose certificate ends soon and which is too
// hot, beside one that is well; a model with fewer replicas than wanted; then a node that is gone, and NATS too.
// Usage: cluster_doctor.js SHOAL
'use strict';
const { execFile, execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
// what the machine of the test may be itself: its clock free, its disk or memory full, too busy to answer soon
const of_the_machine = /nothing keeps its clock|disk is almost full|memory is almost full|the way to it and back/;

let url, nats, gw;

function doctor(...args) {
    return new Promise((done) => execFile(shoal, ['cluster', 'doctor', '--server', gw.url, ...args], (error, out, err) =>
        done({ code: error ? error.code : 0, out, err })));
}

async function findings() {
    const r = await doctor('--json'), { nodes, findings: list } = JSON.parse(r.out);
    t.check(list.every((f) => f.what && f.fix && /^(error|warning)$/.test(f.severity)), `each says what to do: ${r.out}`);
    t.same(r.code, list.length ? 3 : 0, 'the exit code');
    const own = list.filter((f) => !of_the_machine.test(f.what));
    return { nodes, own, has: (member, severity, what) => own.some((f) => f.member === member && f.severity === severity && what.test(f.what)) };
}
const show = (f) => JSON.stringify(f.own, null, 1);

// A folder like /sys with one sensor.
function sys(name, celsius) {
    const zone = path.join(dir, `sys-${name}`, 'class/thermal/thermal_zone0');
    fs.mkdirSync(zone, { recursive: true });
    fs.writeFileSync(path.join(zone, 'temp'), `${celsius * 1000}\n`);
    fs.writeFileSync(path.join(zone, 'trip_point_0_type'), 'passive\n');
    fs.writeFileSync(path.join(zone, 'trip_point_0_temp'), '80000\n');
    return path.join(dir, `sys-${name}`);
}

function member(command, name, config, env) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, config);
    const m = new c.Member(shoal, command, name, ['--config', file, ...(command === 'node' ? ['--no-models'] : [])]);
    m.env = env;
    return m.start();
}
const node = (name, env) => member('node', name,
    `cluster: {certs: ${certs(name)}, nats: ['${url}'], shoal: home, lease: 2s, listen: '127.0.0.1:0'}\n`, env);

(async () => {
    const port = await t.free_port();
    url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    run('ca', 'issue', 'well', '--role', 'node,controller', '--host', '127.0.0.1');
    run('ca', 'issue', 'ill', '--role', 'node', '--host', '127.0.0.1', '--days', '4');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    // the same library that `faketime` would load: the node stays our child
    const preload = String(execFileSync('faketime', ['-f', '+1h', 'sh', '-c', 'echo $LD_PRELOAD'])).trim();
    const late = { LD_PRELOAD: preload, FAKETIME: '+1h', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
    const well = await node('well', { SHOAL_SYS_DIR: sys('well', 45) });
    const ill = await node('ill', { SHOAL_SYS_DIR: sys('ill', 91), ...late });
    gw = await member('gateway', 'gw', `listen: 127.0.0.1:0\ncluster: {certs: ${certs('gw')}, nats: ['${url}'], shoal: home, silent: 30s}\n`,
        { SHOAL_SYS_DIR: sys('gw', 40) });
    await c.all_ready({ gateway: gw }, 2);
    await t.until(async () => (await findings()).own.every((f) => f.member === 'ill'), 'a controller is there');

    let f = await findings();
    t.same(f.nodes, 2, 'nodes');
    t.check(f.has('ill', 'error', /^its clock is 3[56]\d\d s ahead of ours$/), `the clock: ${show(f)}`);
    t.check(f.has('ill', 'warning', /^its certificate expires in [34] days$/), `the certificate: ${show(f)}`);
    t.check(f.has('ill', 'warning', /^it is at 91 C and slows down from 80 C on$/), `the temperature: ${show(f)}`);
    t.same(f.own.length, 3, `nothing else: ${show(f)}`);
    const text = await doctor();
    t.check(/^error {3}ill: its clock[^\n]*\n {8}-> there, and here: timedatectl/m.test(text.out) && /^2 nodes, \d+ problems\n/m.test(text.out), `the text: ${text.out}`);

    // more replicas than there are nodes
    run('cluster', 'deploy', 'reply', '--replicas', '3', '--cluster', 'home', '--certs', certs('admin'), '--nats', url, '--timeout', '60');
    await t.until(async () => (f = await findings()).has('', 'warning', /^model reply has 2 of 3 replicas$/) ||
        f.has('', 'error', /^model reply waits: 2 of at least 3/), 'the model that waits');

    // a node and NATS are gone
    await ill.end('SIGKILL');
    nats.kill();
    await t.until(async () => (f = await findings()).has('ill', 'error', /^it is not heard: /) &&
        f.has('', 'error', /^NATS cannot be reached/), 'the lost node, and NATS');
    t.check(!f.has('ill', 'error', /clock/), `of a lost node nothing old: ${show(f)}`);
    await gw.end('SIGTERM');
    const gone = await doctor();
    t.check(gone.code === 1 && /Is it running/.test(gone.err), `no gateway: ${gone.code} ${gone.err}`);
    await well.end('SIGTERM');
    t.finish();
})().catch(t.abandon);
