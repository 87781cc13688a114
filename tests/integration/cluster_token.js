#!/usr/bin/env node
// A machine joins a shoal with a token and without an address: `shoal cluster token` on one, `shoal cluster join --token` on the
// other. Where network namespaces are allowed (root), the two are machines on one switch and find each other by multicast;
// otherwise both are on the loopback interface of this one.
// Usage: cluster_token.js SHOAL
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { Net, enter } = require('../chaos/chaos_net.js');

const shoal = path.resolve(process.argv[2]);
const at = (name) => path.join(t.tmp, name);
const running = [];
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

// A command on a machine; resolves with its exit code and output.
function run(machine, cwd, args, input = '') {
    const [program, ...words] = [...machine.prefix, shoal, ...args];
    const child = spawn(program, words, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    const it = { child, out: '', err: '' };
    child.stdout.on('data', (b) => it.out += b);
    child.stderr.on('data', (b) => it.err += b);
    child.stdin.on('error', () => {}); // it may end without reading
    child.stdin.end(input);
    running.push(child);
    it.ended = new Promise((done) => child.on('exit', (code) => done(code)));
    return it;
}

async function invite(hub, ...more) {
    const door = run(hub, t.tmp, ['cluster', 'token', '--port', '0', '--json', ...more]);
    await t.until(() => /\n/.test(door.out), 'a token is printed');
    return { ...JSON.parse(door.out), door };
}

(async () => {
    const net = enter() ? new Net() : null;
    const plug = async (name) => (net ? net.plug(name) : { prefix: [], address: '127.0.0.1' });
    const hub = await plug('hub1'), other = await plug('hub2');
    const port = await t.free_port();
    execFileSync(shoal, ['cluster', 'init', '--name', 'home', '--port', String(port), '--member', `hub1=${hub.address}`], { cwd: t.tmp });

    // by multicast, without an address; the token comes from stdin
    let { token, door } = await invite(hub);
    const first = token;
    const joins = (extra, input) => run(other, t.tmp, ['cluster', 'join', '--no-start', ...extra], input);
    const join = joins(['--token', '-', '--name', 'hub2'], `${token}\n`);
    t.same(await join.ended, 0, `it joins: ${join.err}`);
    t.check(/found the shoal at/.test(join.err), 'it has found the shoal itself');
    t.same(await door.ended, 0, `the door closes: ${door.err}`);
    t.same(fs.readdirSync(at('hub2')).sort().join(), 'ca.pem,cert.pem,crl.pem,key.pem,shoal.yaml', 'what a member needs');
    t.same((fs.statSync(at('hub2/key.pem')).mode & 0o777).toString(8), '600', 'its key is for its owner');
    t.check(!fs.existsSync(at('ca/members/hub2/key.pem')), 'the key has not left the machine');
    t.check(fs.readFileSync(at('hub2/shoal.yaml'), 'utf8').includes(`advertise: '${other.address}:7600'`), 'its address is as others see it');
    execFileSync(shoal, ['ca', 'show', 'hub2'], { cwd: t.tmp }); // exits with 1 if it is not valid

    // the token is worth nothing any more, and neither is one with another secret, CA or name
    const used = joins(['--token', token, '--name', 'hub3', '--at', `${hub.address}:1`]);
    t.same(await used.ended, 1, 'nobody waits for it');
    ({ token, door } = await invite(hub));
    const port2 = JSON.parse(door.out).port;
    const typed = joins(['--token', token.replace(/.$/, (c) => (c === 'a' ? 'b' : 'a')), '--name', 'hub3']);
    t.same(await typed.ended, 1, 'a token with a typing error is refused');
    const old = joins(['--token', first, '--name', 'hub3', '--at', `${hub.address}:${port2}`]);
    t.same(await old.ended, 1, 'a token of before is refused');
    t.check(/not the one of this shoal/.test(old.err), `by the door: ${old.err}`);
    t.check(!fs.existsSync(at('hub3')), 'and leaves nothing behind');
    const twice = joins(['--token', token, '--name', 'hub2', at('again')]);
    t.same(await twice.ended, 1, 'a name that is taken');
    t.check(/hub2/.test(twice.err), `it says so: ${twice.err}`);
    const third = joins(['--token', token, '--name', 'hub3', '--at', `${hub.address}:${port2}`]);
    t.same(await third.ended, 0, `the door still waits for the right one: ${third.err}`);
    t.same(await door.ended, 0, 'and closes then');

    // both run: the new member is one of the shoal
    const own = { hub1: at('ca/members/hub1'), hub2: at('hub2') }, http = {};
    for (const [name, folder] of Object.entries(own)) {
        const file = path.join(folder, 'shoal.yaml'), member = await t.free_port();
        http[name] = await t.free_port();
        const machine = name === 'hub1' ? hub : other;
        fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('127.0.0.1:8080', `${machine.address}:${http[name]}`)
            .replace('0.0.0.0:7600', `${machine.address}:${member}`).replace(`${machine.address}:7600`, `${machine.address}:${member}`));
    }
    const members = [run(hub, t.tmp, ['cluster', 'join', own.hub1]), run(other, t.tmp, ['cluster', 'join', own.hub2])];
    const seen = async () => {
        try {
            const url = `http://${hub.address}:${http.hub1}/v1/cluster`;
            return (await (await fetch(url)).json()).nodes.map((n) => n.name).sort().join();
        } catch {
            return '';
        }
    };
    await t.until(async () => await seen() === 'hub1,hub2', `hub1 knows hub2\n${members.map((m) => m.err).join('\n')}`);
    t.same(await seen(), 'hub1,hub2', 'the new member is one of the shoal');
    for (const m of members)
        m.child.kill('SIGTERM');
    await Promise.all(members.map((m) => m.ended));
    t.finish();
})().catch(t.abandon);
