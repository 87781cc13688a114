// chaos_events.js - seeded random faults of the chaos test: nodes, their workers, the links to them, gateways, and NATS.
'use strict';
const { execFile } = require('child_process');
const fs = require('fs');
const { promisify } = require('util');
const t = require('../integration/serve.js');
const { expireAt } = require('./chaos_certs.js');
const { keepFigures, restart, restartGateway, wipe, workerOf } = require('./chaos_site.js');

// Random choices from a small generator (mulberry32).
function random(from) {
    let a = from >>> 0;
    const next = () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let x = Math.imul(a ^ (a >>> 15), a | 1);
        x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
        return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
    const between = (low, high) => low + Math.floor(next() * (high - low + 1));
    return { between, of: (list) => list[between(0, list.length - 1)] };
}

// The links to a node that an event affects: those of one gateway, or of all.
const some = (r, node) => r.of([...node.links.map((l) => [l]), node.links]);

// Sets a property of links for a while.
const bad = (verb, low, high, least, most) => async (site, node, r) => {
    const links = some(r, node), value = r.between(low, high), ms = r.between(least, most);
    for (const l of links)
        await site.proxy.say(`${verb} ${l} ${value}`);
    await t.sleep(ms);
    for (const l of links)
        await site.proxy.say(`${verb} ${l} 0`);
};

// Each event disturbs a node and resolves when the node has recovered.
const events = {
    async killed(site, node, r) {
        node.signal('SIGKILL');
        await t.sleep(r.between(0, 1500));
        await restart(site, node);
    },
    async stopped(site, node, r) {
        node.signal('SIGSTOP');
        await t.sleep(r.between(100, 3000));
        node.signal('SIGCONT');
    },
    async drained(site, node) {
        node.signal('SIGTERM');
        const { code, signal } = await node.ended;
        t.same(code ?? signal, 0, `${node.name} was drained: ${node.log.slice(-2000)}`);
        await restart(site, node);
    },
    async cut(site, node, r) {
        const links = some(r, node);
        for (let n = r.between(1, 5); n > 0; n--) {
            for (const l of links)
                await site.proxy.say(`cut ${l} 0`);
            await t.sleep(r.between(10, 300));
        }
    },
    async orphaned(site, node, r) {
        for (const l of some(r, node))
            await site.proxy.say(`orphan ${l} 0`);
    },
    async renewed(site, node) { // a new key and certificate under its connections; the CA is used by one at a time
        site.issuing = (site.issuing ?? Promise.resolve()).then(() => promisify(execFile)(site.shoal,
            ['ca', 'issue', node.name, '--force', '--dir', site.ca]));
        await site.issuing;
    },
    async expired(site, node, r) { // its certificate ends under its connections, and is renewed later
        const lasts = r.between(2000, 4000), late = r.between(0, 4000);
        await expireAt(site.ca, node.name, new Date(Date.now() + lasts));
        await t.sleep(lasts + late);
        await events.renewed(site, node);
    },
    async starved(site, node, r) { // it gets no more memory: requests may be refused, but the process lives
        const pid = node.child.pid, pages = Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[0]);
        await limitMemory(pid, pages * 4096 + r.between(0, 4 << 20));
        await t.sleep(r.between(200, 3000));
        await limitMemory(pid, 'unlimited');
    },
    async slowDisk(site, node, r) {
        await withFault(node, 0, BigInt(r.between(20, 300)), r.between(500, 4000));
    },
    async fullDisk(site, node, r) {
        await withFault(node, 8, 1n, r.between(500, 4000));
    },
    async clockJumped(site, node, r) { // up to half an hour, ahead or back, and back again
        await withFault(node, 16, BigInt(r.between(-1800000, 1800000)), r.between(500, 4000));
    },
    async workerKilled(site, node) {
        signalWorker(node, 'SIGKILL');
    },
    async workerStopped(site, node) { // it is silent: the node kills it and starts another
        signalWorker(node, 'SIGSTOP');
    },
    async unplugged(site, node, r) {
        site.net.pull(node.name);
        await t.sleep(r.between(100, 4000));
        site.net.push(node.name);
    },
    silenced: bad('hole', 1, 1, 100, 4000),
    delayed: bad('delay', 5, 100, 500, 3000),
    slowed: bad('rate', 10000, 200000, 500, 3000),
    lossy: bad('loss', 1, 20, 500, 3000),
};

const limitMemory = (pid, bytes) => promisify(execFile)('prlimit', ['--pid', String(pid), `--as=${bytes}:unlimited`]);

// Sets a value of faults.c for a while.
async function withFault(node, at, value, ms) {
    const fd = fs.openSync(node.faults, 'r+'), bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    fs.writeSync(fd, bytes, 0, 8, at);
    await t.sleep(ms);
    fs.writeSync(fd, Buffer.alloc(8), 0, 8, at);
    fs.closeSync(fd);
}

const onlyApart = ['workerKilled', 'workerStopped'], onlyFaults = ['slowDisk', 'fullDisk', 'clockJumped'], onlyNet = ['unplugged', 'natsUnplugged'];

function signalWorker(node, signal) {
    const pid = workerOf(node);
    if (pid)
        process.kill(pid, signal);
}

// Disturbs a NATS server; resolves when the server has recovered.
const natsEvents = {
    async natsKilled(site, server, r) {
        server.signal('SIGKILL');
        await server.ended;
        await t.sleep(r.between(0, 3000));
        server.start();
    },
    async natsStopped(site, server, r) {
        server.signal('SIGSTOP');
        await t.sleep(r.between(100, 4000));
        server.signal('SIGCONT');
    },
    async natsUnplugged(site, server, r) {
        site.net.pull(server.name);
        await t.sleep(r.between(100, 6000));
        site.net.push(server.name);
    },
    async natsWiped(site, server, r) { // all of them: what NATS knew is gone
        await wipe(site, r.between(0, 2000));
    },
};
const allServers = ['natsWiped'];

// Disturbs a gateway; resolves when it is back and knows all nodes.  Its clients go to another one (`losses` tells them
// that their connection may break), and what it had of its streams is lost with it.
const gatewayEvents = {
    async gatewayKilled(site, gateway, r) {
        await keepFigures(gateway);
        gateway.losses++;
        gateway.signal('SIGKILL');
        await t.sleep(r.between(0, 2000));
        await restartGateway(site, gateway);
    },
    async gatewayDrained(site, gateway) { // finishes what it has
        await keepFigures(gateway);
        gateway.losses++;
        gateway.signal('SIGTERM');
        await restartGateway(site, gateway);
    },
    async gatewayStopped(site, gateway, r) {
        const stop = { from: performance.now(), to: Infinity };
        gateway.stops.push(stop);
        gateway.signal('SIGSTOP');
        await t.sleep(r.between(100, 3000));
        gateway.signal('SIGCONT');
        stop.to = performance.now();
    },
};

// One gateway at a time, so that clients find another one.
async function disturbGateways(site, r, end, count) {
    while (performance.now() < end) {
        await t.sleep(r.between(1000, 6000));
        const gateway = r.of(site.gateways), event = r.of(Object.keys(gatewayEvents));
        if (performance.now() >= end)
            break;
        const over = count(event, gateway.name);
        gateway.away = true;
        await gatewayEvents[event](site, gateway, r);
        gateway.away = false;
        over();
    }
}

// The events that are possible in this network; ONLY=expired,starved: of nodes only these.
const only = process.env.ONLY?.split(',');
const possible = (site, list) => Object.keys(list).filter((e) => (site.net || !onlyNet.includes(e)) &&
    (!only || list !== events || only.includes(e)));

// May hit all servers at once: requests do not need them.
async function disturbNats(site, r, end, count) {
    const busy = new Map();
    while (performance.now() < end) {
        await t.sleep(r.between(200, 2000));
        const server = r.of(site.nats), event = r.of(possible(site, natsEvents));
        const hit = allServers.includes(event) ? site.nats : [server];
        if (hit.some((s) => busy.has(s)) || (allServers.includes(event) && r.between(0, 2) > 0)) // rarer than the others
            continue;
        const over = count(event, hit.map((s) => s.name).join('+'));
        const run = natsEvents[event](site, server, r).then(over).then(() => hit.forEach((s) => busy.delete(s)));
        hit.forEach((s) => busy.set(s, run));
    }
    await Promise.all(busy.values());
}

// The fewest nodes that a gateway sees, of those that are there.
async function ready(site) {
    const seen = await Promise.all(site.gateways.map((g) => (g.away ? Infinity :
        t.metric(g, 'shoal_nodes{state="ready"}').catch(() => Infinity)))); // it was lost meanwhile
    return Math.min(...seen);
}

// Disturbs nodes for this many milliseconds. At least one node is always left alone, and the next event waits until
// every gateway sees all other nodes. Returns done: { event: { node: n } }, and times: [{ event, who, from, to }], to: when it
// was over, and its node seen again. on_healed(node): the gateways see it again.
async function disturb(site, seed, ms, on_healed = () => {}) {
    const r = random(seed), done = {}, times = [], busy = new Map();
    const end = performance.now() + ms;
    const count = (event, who) => {
        const time = { event, who, from: performance.now(), to: Infinity };
        done[event] ??= {};
        done[event][who] = (done[event][who] ?? 0) + 1;
        times.push(time);
        return () => { time.to = performance.now(); };
    };
    const others = [disturbNats(site, random(seed + 1), end, count), disturbGateways(site, random(seed + 2), end, count)];
    const healed = async (node, run, over) => {
        await run;
        while (await ready(site) < site.nodes.length - busy.size + 1)
            await t.sleep(100); // the figures of a gateway cost it something
        busy.delete(node);
        over();
        on_healed(node);
    };
    while (performance.now() < end) {
        await t.sleep(r.between(50, 500));
        const free = site.nodes.filter((n) => !busy.has(n));
        const node = r.of(site.nodes), event = r.of(possible(site, events).filter((e) =>
            (node.apart || !onlyApart.includes(e)) && (node.faults || !onlyFaults.includes(e))));
        if (!free.includes(node) || free.length < 2 ||
            await ready(site) < free.length)
            continue;
        const over = count(event, node.name);
        busy.set(node, null); // counted as away from now on
        busy.set(node, healed(node, events[event](site, node, r), over));
    }
    await Promise.all([...others, ...busy.values()]);
    return { done, times };
}

module.exports = { disturb, random };
