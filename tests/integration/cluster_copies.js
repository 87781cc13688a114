#!/usr/bin/env node
// Several replicas of a model on one node: a shoal with fewer nodes than replicas places the rest beside the first, each in
// a process of its own. All answer with the same text; when one is killed in the middle of streams, the other continues
// them; when another node comes, the copies give way to it, and no request fails.
// Usage: cluster_copies.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const body = { model: 'reply', prompt: 'ask: what is the weather', max_tokens: 120, ignore_eos: true, temperature: 0 };

let url, nats;

const cluster = (...args) => JSON.parse(execFileSync(shoal, ['cluster', ...args, '--json', '--cluster', 'home', '--certs',
    certs('admin'), '--nats', url, '--timeout', '60'], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] }).toString()
    .trim().split('\n').pop());

async function node(name, isolation) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `cluster: {certs: ${certs(name)}, nats: ['${url}'], shoal: home, lease: 2s, ` +
        `listen: '127.0.0.1:0', isolation: ${isolation}}\n`);
    return new c.Member(shoal, 'node', name, ['--config', file, '--no-models']).start();
}

// The worker processes of a member.
const workers = (m) => fs.readdirSync('/proc').filter((pid) => {
    try {
        const [, parent] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
        return Number(parent) === m.child.pid && /worker/.test(fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    } catch (e) { // it has ended, or is none
        return false;
    }
}).map(Number);

(async () => {
    const port = await t.free_port();
    url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    for (const name of ['node1', 'node2'])
        run('ca', 'issue', name, '--role', 'node,controller', '--host', '127.0.0.1');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    const one = await node('node1', 'process');
    const file = path.join(dir, 'gw.yaml');
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncluster: {certs: ${certs('gw')}, nats: ['${url}'], shoal: home, wait: 60s}\n`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--config', file]).start();
    await c.all_ready({ gateway: gw }, 1);
    const state = async () => (await fetch(`${gw.url}/v1/cluster`)).json();
    const held = async (name) => (await state()).nodes.find((n) => n.name === name)?.models?.find((m) => m.name === 'reply');

    // more replicas than nodes: without the permission, one; with it, both on the node
    let r = cluster('deploy', 'reply', '--replicas', '1', '--wait', '120');
    t.same(r.ready, 1, 'the first replica');
    const want = await c.stream(gw.url, body);
    t.check(want.error === null && want.n > 20, `a stream from one replica: ${want.error} ${want.n}`);
    r = cluster('deploy', 'reply', '--replicas', '2', '--per-node', '2', '--wait', '120');
    t.same(r.ready, 2, 'replicas that are ready');
    t.same(workers(one).length, 2, 'processes of the model');
    await t.until(async () => (await held('node1'))?.replicas === 2, 'the gateway knows both');
    const wanted = (await state()).desired.models.find((m) => m.name === 'reply');
    t.same([wanted.ready, wanted.nodes.map((n) => n.replicas).join()].join(' '), '2 2', 'what /v1/cluster tells');
    t.check(/ready x2/.test(run('cluster', 'models', '--server', gw.url).toString()), 'what cluster models tells');

    // the same text from all, and both work
    const before = workers(one);
    const cpu = (pid) => fs.readdirSync(`/proc/${pid}/task`).reduce((sum, id) => { // in ns: a clock tick may be longer than the work
        try {
            return sum + Number(fs.readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]);
        } catch { // the thread has ended
            return sum;
        }
    }, 0);
    const used = before.map(cpu);
    await t.until(async () => { // the first of eight may be done before the last has come
        const many = await Promise.all(Array.from({ length: 8 }, () => c.stream(gw.url, body)));
        t.check(many.every((x) => x.error === null && x.text === want.text), 'eight streams, the same text');
        const work = before.map((pid, i) => cpu(pid) - used[i]);
        return Math.min(...work) * 5 > Math.max(...work);
    }, 'both work, none of them less than a fifth of the other');

    // one is killed in the middle: the other continues, and the killed one comes back
    let killed = false;
    const through = await Promise.all(Array.from({ length: 6 }, () => c.stream(gw.url, body, (got) => {
        if (got.n >= 3 && !killed) {
            killed = true;
            process.kill(before[0], 'SIGKILL');
        }
    })));
    t.check(killed, 'a worker was killed');
    t.check(through.every((x) => x.error === null && x.text === want.text),
        `streams through the kill: ${through.map((x) => x.error ?? x.text === want.text)}`);
    // inside the node: the gateway has not noticed
    t.same([await t.metric(gw, 'shoal_moved_total'), await t.metric(gw, 'shoal_retried_total')].join(), '0,0', 'moved and retried');
    await t.until(async () => workers(one).length === 2 && (await held('node1'))?.replicas === 2, 'there are two again');

    // another node: the copies give way, and no request fails
    let over = false;
    const failed = [];
    const load = Promise.all(Array.from({ length: 3 }, async () => {
        while (!over) {
            const x = await c.stream(gw.url, body).catch((e) => ({ error: String(e) }));
            if (x.error || x.text !== want.text)
                failed.push(x.error ?? x.text);
        }
    }));
    await node('node2', 'none');
    await t.until(async () => (await held('node2'))?.state === 'ready' && (await held('node1'))?.replicas === 1,
        'one on each node');
    await t.until(() => workers(one).length === 1, 'one process is left');
    over = true;
    await load;
    t.same(failed.length, 0, `requests that failed: ${failed[0]}`);
    await c.close();
    t.finish();
})().catch(t.abandon);
