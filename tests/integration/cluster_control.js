#!/usr/bin/env node
// The controller with real nodes and a real nats-server, with certificates: a model is deployed on two of three nodes;
// a killed node is replaced; a killed or stopped controller is replaced, and the old one changes nothing; a node is
// drained under load without a failed request; a model without requests has no replica, and a request brings one back.
// Usage: cluster_control.js SHOAL
'use strict';
const { execFile, execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const run = (...args) => execFileSync(shoal, args, { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const body = { model: 'reply', prompt: 'ask: what is the weather', max_tokens: 60, ignore_eos: true, temperature: 0 };

let url, nats;

// shoal cluster ARGS as administrator: its exit code, JSON (the last line) and messages.
function cluster(...args) {
    return new Promise((done) => {
        execFile(shoal, ['cluster', ...args, '--cluster', 'home', '--certs', certs('admin'), '--nats', url, '--timeout', '60'],
            { cwd: dir, maxBuffer: 1 << 26 }, (error, out, err) => {
                let json = null;
                try {
                    json = JSON.parse(out.trim().split('\n').pop());
                } catch (e) { /* not requested */ }
                done({ code: error ? error.code : 0, out, err, json });
            });
    });
}

async function desired() {
    const r = await cluster('desired', '--json');
    if (!r.json)
        throw new Error(`shoal cluster desired: exit code ${r.code}: ${r.err}`);
    return r.json;
}
const where = async (model) => (await desired()).assignments.filter((a) => a.model === model && a.duty === 'serve')
    .map((a) => a.node).sort();
async function controller() {
    let all = [];
    await t.until(async () => {
        const { out } = await cluster('events', '--last', '1000', '--json');
        all = out.trim().split('\n').filter(Boolean).map((l) => JSON.parse(l)).filter((e) => e.kind === 'controller');
        return all.length > 0;
    }, 'somebody is controller');
    return all[all.length - 1];
}

async function node(name) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `cluster: {certs: ${certs(name)}, nats: ['${url}'], shoal: home, lease: 2s, listen: '127.0.0.1:0'}\n`);
    return new c.Member(shoal, 'node', name, ['--config', file, '--no-models']).start();
}

// Endless requests, n at a time, until stop(): every answer must be complete and have the same text.
function load(gw, n, want) {
    const figures = { done: 0, failed: [] };
    let over = false;
    const one = async () => {
        while (!over) {
            const got = await c.stream(gw.url, body).catch((e) => ({ error: String(e) }));
            if (got.error || got.status !== 200 || got.text !== want)
                figures.failed.push(got.error ?? got.status);
            figures.done++;
        }
    };
    const all = Promise.all(Array.from({ length: n }, one));
    return { figures, stop: async () => { over = true; await all; return figures; } };
}

(async () => {
    const port = await t.free_port();
    url = `tls://127.0.0.1:${port}`;
    run('cluster', 'init', '--name', 'home', '--port', String(port), '--route-port', String(await t.free_port()));
    for (const name of ['node1', 'node2', 'node3'])
        run('ca', 'issue', name, '--role', 'node,controller', '--host', '127.0.0.1');
    run('ca', 'issue', 'gw', '--role', 'gateway');
    nats = new c.Nats(['-c', 'nats.conf'], certs('nats-1'));
    const nodes = {};
    for (const name of ['node1', 'node2', 'node3'])
        nodes[name] = await node(name);
    const file = path.join(dir, 'gw.yaml');
    fs.writeFileSync(file, `listen: 127.0.0.1:0\ncluster: {certs: ${certs('gw')}, nats: ['${url}'], shoal: home, wait: 60s}\n`);
    const gw = await new c.Member(shoal, 'gateway', 'gw', ['--config', file]).start();
    await c.all_ready({ gateway: gw }, 3);

    // deploy: two of three nodes load it
    let r = await cluster('deploy', 'reply', '--replicas', '2', '--wait', '120', '--json');
    t.same(r.code, 0, `deploy: ${r.err}`);
    t.same(r.json?.ready, 2, 'replicas that are ready');
    t.same((await where('reply')).length, 2, 'assignments');
    const want = await c.stream(gw.url, body);
    t.same(want.error, null, 'a stream');
    t.same(want.n > 20, true, 'tokens');
    r = await cluster('plan', '--json');
    t.same(r.code, 0, `plan: ${r.err}`);
    t.same(r.json?.steps.length, 0, 'nothing is left to do');
    const [first] = await where('reply');
    r = await cluster('plan', '--json', '--without', first);
    t.same(r.json?.steps.length, 1, 'one replica would be replaced');
    t.check(r.json?.steps[0]?.reason.includes(first), `the reason names the node: ${r.json?.steps[0]?.reason}`);
    r = await cluster('deploy', 'nothing');
    t.same(r.code, 1, 'a model whose bytes are not known');
    t.check(/--sha256/.test(r.err), `what to do: ${r.err}`);

    // a pin that cannot be kept is reported, and can be taken away
    const pins = async () => (await desired()).models.find((m) => m.name === 'reply').pins.join();
    r = await cluster('deploy', 'reply', '--pin', 'nobody');
    t.check(r.code === 3 && /pinned node nobody is not heard/.test(r.err), `a pin to nobody: ${r.code} ${r.err}`);
    r = await cluster('deploy', 'reply', '--wait', '1');
    t.check(r.code === 3 && /pinned node nobody does not have it/.test(r.err), `still: ${r.code} ${r.err}`);
    r = await cluster('deploy', 'reply', '--unpin', 'nobody', '--pin', first, '--wait', '60');
    t.same(r.code, 0, `a pin that is kept: ${r.err}`);
    t.same(await pins(), first, 'the pins');
    r = await cluster('deploy', 'reply', '--unpin', first, '--wait', '60');
    t.same(r.code, 0, `no pin: ${r.err}`);
    t.same(await pins(), '', 'no pins');
    // a source in a folder of the nodes
    r = await cluster('deploy', 'draft', '--sha256', 'ab'.repeat(32), '--source', 'file:///srv/models/draft.gguf', '--min', '0');
    t.same(r.code, 0, `file:// as a source: ${r.err}`);
    t.same((await cluster('remove', 'draft')).code, 0, 'its removal');
    r = await cluster('deploy', 'draft', '--sha256', 'ab'.repeat(32), '--source', 'ftp://depot/draft.gguf');
    t.same(r.code, 2, `another source: ${r.err}`);

    // a killed node is replaced
    const lead = await controller();
    const victim = (await where('reply')).find((n) => n !== lead.sender) ?? (await where('reply'))[0];
    await nodes[victim].end('SIGKILL');
    await t.until(async () => {
        const now = await where('reply');
        return now.filter((n) => n !== victim).length === 2;
    }, 'the replica is placed elsewhere');
    r = await cluster('deploy', 'reply', '--wait', '120', '--json');
    t.same(r.json?.ready, 2, 'ready again');
    t.same((await c.stream(gw.url, body)).text, want.text, 'a stream after the kill');
    nodes[victim] = await node(victim);

    // a killed controller is replaced, with a higher fence
    const old = await controller();
    await nodes[old.sender].end('SIGKILL');
    await t.until(async () => (await controller()).fence > old.fence, 'another controller');
    const next = await controller();
    t.check(next.sender !== old.sender, 'it is another member');
    nodes[old.sender] = await node(old.sender);
    r = await cluster('deploy', 'reply', '--replicas', '2', '--wait', '120', '--json');
    t.check(r.json?.ready >= 2, 'ready under the new controller'); // the old replica may still be there
    t.same((await c.stream(gw.url, body)).text, want.text, 'a stream under the new controller');

    // a controller that was stopped changes nothing when it wakes up
    nodes[next.sender].signal('SIGSTOP');
    await t.until(async () => (await controller()).fence > next.fence, 'a third controller');
    const third = await controller();
    nodes[next.sender].signal('SIGCONT');
    await t.until(async () => /no longer the controller/.test(nodes[next.sender].log), 'the old one steps down');
    r = await cluster('deploy', 'reply', '--replicas', '2', '--wait', '120', '--json');
    t.check(r.json?.ready >= 2, 'ready after the wake-up');
    t.check((await desired()).fence >= third.fence, 'the state has the fence of the newest');

    // drain under load: no request fails, and the node is empty
    const [from] = await where('reply');
    const work = load(gw, 4, want.text);
    await t.until(() => work.figures.done >= 4, 'requests run');
    r = await cluster('drain', from, '--wait', '120', '--json');
    t.same(r.code, 0, `drain: ${r.err}`);
    t.same(r.json?.empty, true, 'it is empty');
    t.same((await where('reply')).includes(from), false, 'nothing is assigned to it');
    const figures = await work.stop();
    t.same(figures.failed.length, 0, `failed requests of ${figures.done}: ${figures.failed[0]}`);
    r = await cluster('drain', 'nobody', '--wait', '1');
    t.same(r.code, 1, 'a node that is not heard');
    r = await cluster('undrain', from, '--json');
    t.same(r.json?.undrained, from, 'undrain');

    // scale to zero, and back up with the next request
    r = await cluster('deploy', 'reply', '--min', '0', '--max', '2', '--idle', '3');
    t.same(r.code, 0, `min 0: ${r.err}`);
    await t.until(async () => (await where('reply')).length === 0, 'no replica while it is idle');
    let listed = []; // so that somebody knows what to ask for
    const lists = async () => {
        listed = [(await (await fetch(`${gw.url}/v1/models`)).json()).data.find((m) => m.id === 'reply'),
            (await (await fetch(`${gw.url}/api/tags`)).json()).models.find((m) => m.name === 'reply')];
        return listed.every(Boolean) && listed[0].state === 'unloaded';
    };
    await t.until(lists, { toString: () => `a model without replicas in the lists: ${JSON.stringify(listed)}` });
    const woken = await c.stream(gw.url, body);
    t.same(woken.text, want.text, 'the request that woke it');
    t.same(woken.error, null, 'its error');
    r = await cluster('remove', 'reply', '--json');
    t.same(r.json?.removed, 'reply', 'remove');
    let gone;
    await t.until(async () => (gone = await c.stream(gw.url, body)).status === 404, 'it is gone');
    t.same(gone.status, 404, `a request for what was removed: ${gone.error}`);

    // a second process with the certificate of the first is noticed
    const twin = await node('node3');
    await t.until(async () => /two processes run under this name/.test((await cluster('events', '--last', '1000')).out),
        'two nodes with one certificate');
    await twin.end('SIGKILL');

    t.same(await t.metric(gw, 'shoal_lost_total'), 0, 'lost');
    for (const n of Object.values(nodes))
        t.same((await n.end('SIGTERM')).code, 0, `${n.name} ends`);
    t.same((await gw.end('SIGTERM')).code, 0, 'the gateway ends');
    await c.close();
    t.finish();
})().catch(t.abandon);
