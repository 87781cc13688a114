#!/usr/bin/env node
// `shoal cluster init` and `shoal cluster join` with three members: three NATS servers, which the members start, watch and stop.
// Usage: cluster_init.js SHOAL
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), names = ['hub1', 'hub2', 'hub3'];
const folder = (name) => path.join(t.tmp, 'ca', 'members', name);
const run = (...args) => execFileSync(shoal, args, { cwd: t.tmp, encoding: 'utf8' });

// Processes whose parent, or the parent's parent, is this one.
function servers_of(pid) {
    const found = [];
    for (const id of fs.readdirSync('/proc').filter((x) => /^\d+$/.test(x))) {
        try {
            const stat = (p) => /^\d+ \((.*)\) \S+ (\d+)/.exec(fs.readFileSync(`/proc/${p}/stat`, 'utf8'));
            const [, name, parent] = stat(id);
            if (name === 'nats-server' && (Number(parent) === pid || Number(stat(parent)[2]) === pid))
                found.push(Number(id));
        } catch { /* it has ended */ }
    }
    return found;
}

const alive = (pid) => {
    try {
        return !/^\d+ \(.*\) Z/.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch { // it has ended
        return false;
    }
};

function join(name) {
    const child = spawn(shoal, ['cluster', 'join', folder(name)], { stdio: ['ignore', 'pipe', 'pipe'] });
    const it = { child, log: '', ended: new Promise((done) => child.on('exit', done)) };
    for (const out of [child.stdout, child.stderr])
        out.on('data', (b) => it.log += b);
    process.on('exit', () => child.kill('SIGKILL'));
    t.watch(it);
    return it;
}

(async () => {
    const port = await t.free_port(), route = await t.free_port();
    // one machine: every server counts up from the first port
    const said = run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(route),
        ...names.flatMap((name) => ['--member', `${name}=127.0.0.1`]));
    t.check(/3 NATS servers/.test(said) && /with the members hub1, hub2, hub3/.test(said), `it explains what runs where: ${said}`);
    const http = [];
    for (const name of names) {
        const file = path.join(folder(name), 'shoal.yaml'), own = await t.free_port();
        http.push(await t.free_port());
        fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('127.0.0.1:8080', `127.0.0.1:${http.at(-1)}`)
            .replace('0.0.0.0:7600', `127.0.0.1:${own}`).replace('127.0.0.1:7600', `127.0.0.1:${own}`));
    }
    const members = names.map(join);
    const nodes = async (i) => {
        try {
            return (await (await fetch(`http://127.0.0.1:${http[i]}/v1/cluster`)).json()).nodes.filter((n) => n.ready !== false).length;
        } catch {
            return 0;
        }
    };
    for (let i = 0; i < 3; i++)
        await t.until(async () => await nodes(i) === 3, `${names[i]} knows all three`);
    const before = members.map((m) => servers_of(m.child.pid));
    t.same(before.map((s) => s.length).join(), '1,1,1', 'every member runs its server');
    const cluster = (...args) => run('cluster', ...args, '--cluster', 'home', '--certs', folder('admin'), '--timeout', '60',
        ...[0, 1, 2].flatMap((i) => ['--nats', `tls://127.0.0.1:${port + i}`]));
    cluster('deploy', 'reply', '--priority', '1');

    // a server that dies is started again; the others go on
    process.kill(before[0][0], 'SIGKILL');
    cluster('deploy', 'reply', '--priority', '2');
    await t.until(() => servers_of(members[0].child.pid).some((pid) => pid !== before[0][0]), 'the server is started again');
    await t.until(() => /started again/.test(members[0].log), 'and it says so');

    // a member that ends takes its server with it, however it ends
    const [own] = servers_of(members[1].child.pid), [other] = servers_of(members[2].child.pid);
    members[1].child.kill('SIGTERM');
    await members[1].ended;
    await t.until(() => !alive(own), 'its server ends with it');
    members[2].child.kill('SIGKILL');
    await members[2].ended;
    await t.until(() => !alive(other), 'also when it is killed');
    for (const i of [1, 2])
        members[i] = join(names[i]);
    await t.until(async () => await nodes(0) === 3, 'they come back');
    t.check(/"priority":2/.test(cluster('desired', '--json')), 'and the state is there');
    for (const m of members)
        m.child.kill('SIGTERM');
    await Promise.all(members.map((m) => m.ended));
    t.finish();
})().catch(t.abandon);
