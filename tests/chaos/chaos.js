#!/usr/bin/env node
// 3 nodes, 2 gateways, 3 NATS servers, 32 streams and some short requests, while nodes are killed, stopped and drained, their
// workers killed and stopped, their links cut, silenced, delayed and slowed, gateways killed, drained and stopped, and NATS
// servers killed, stopped and wiped.  Every answer must be that of one process without a cluster: none lost, none repeated.
// A client whose gateway is lost asks another one; what it had until then must be the beginning of the answer.  In the
// end every node must get requests again, and the desired state must be as it was, however often NATS lost it.  What
// administrators changed meanwhile must be linearizable (chaos_admin.js).
// Usage: chaos.js SHOAL CHAOS_PROXY [SECONDS [SEED]]     LOGS=DIR: keeps the logs of the members and the times of the faults there
//        PAUSE_MS=N: fails if the p99 of the longest pauses is above that
//        CROSS=PROGRAM: the third node, of another architecture (tools/build-cross)
//        NETNS=1: every member in a network namespace of its own, whose cable can be pulled (chaos_net.js)
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { Admins } = require('./chaos_admin.js');
const clients = require('./chaos_clients.js');
const { disturb, random } = require('./chaos_events.js');
const { Net, enter } = require('./chaos_net.js');
const chaos = require('./chaos_site.js');

const [shoal, proxy] = process.argv.slice(2, 4).map((p) => path.resolve(p));
const seconds = Number(process.argv[4] || 20), seed = Number(process.argv[5] || Date.now() % 1000000);
const logs = process.env.LOGS; // a folder for the logs of the members
const cross = process.env.CROSS && path.resolve(process.env.CROSS);
const nStreams = 32, nShorts = 4, probeMs = 250, shown = 10;
const pauseMs = Number(process.env.PAUSE_MS || 2000); // longer ones are listed
const overloaded = 0.1; // part of the time that the clients stand still themselves: then the machine decides, not the shoal
const stillMs = 100; // this process hears nothing meanwhile
const returnMs = 30000, restoreMs = 120000; // all nodes get requests again; the desired state is back

// What this process did not see because it stood still itself is no pause of a stream; nor is the time for which its gateway was
// stopped, since nobody else has the stream.
class Still {
    constructor() {
        this.times = [];
        let last = performance.now();
        this.timer = setInterval(() => {
            const now = performance.now();
            if (now - last > stillMs)
                this.times.push({ from: last, to: now });
            last = now;
        }, stillMs / 5);
        this.timer.unref();
    }

    // The part of the time since then that this process stood still.
    share(since) {
        return 1 - without({ from: since, ms: performance.now() - since }, this.times) / (performance.now() - since);
    }
}

// The length of a pause without the times that are not the shoal's.
function without({ from, ms }, times) {
    let left = ms, at = from;
    for (const t of times.filter((x) => x.to > from && x.from < from + ms).toSorted((a, b) => a.from - b.from)) {
        const begin = Math.max(at, t.from), end = Math.min(from + ms, t.to);
        left -= Math.max(0, end - begin);
        at = Math.max(at, end);
    }
    return left;
}

function longest(gaps, times) {
    let most = { from: 0, ms: 0 };
    for (const gap of gaps) {
        const ms = gap.ms > most.ms ? without(gap, times) : 0;
        if (ms > most.ms)
            most = { from: gap.from, ms };
    }
    return most;
}

const still = new Still();
const counts = { good: 0, lost: 0, repeated: 0, different: 0 };
const pauses = [], returns = [];
const bySecond = []; // { asked, good } of each second of the run
const lastAsked = {}, healedAt = {}; // by node
let probes = 0, probesFailed = 0, bad = 0, reconnects = 0, began = 0;

// For the availability of the second in which an answer was complete.
function tally(good) {
    const at = Math.floor((performance.now() - began) / 1000);
    bySecond[at] ??= { asked: 0, good: 0 };
    bySecond[at].asked++;
    bySecond[at].good += good;
}

// The node was the first to get a request that is answered now; notes how long it took after its recovery.
function answered(node, asked) {
    lastAsked[node] = Math.max(asked, lastAsked[node] ?? 0);
    if (!(healedAt[node] < asked))
        return;
    returns.push({ ms: performance.now() - healedAt[node], node });
    delete healedAt[node];
}

function complain(text) {
    if (++bad <= shown)
        console.log(`FAIL ${text}`);
}

// Asks until a gateway has answered: one that was killed or drained meanwhile is no excuse for another one to fail.
async function worker(site, list, number, goes) {
    let at = number;
    for (let i = number; goes(); i++) {
        const request = list[i % list.length];
        for (;;) {
            const gateway = site.gateways[at % site.gateways.length], losses = gateway.losses, asked = performance.now();
            const got = await clients.ask(gateway.url, request), answer = clients.read(request, got);
            if (answer.error && gateway.losses !== losses) {
                reconnects++;
                at++;
                if (!clients.begins(request.want, got))
                    complain(`${gateway.name} ${got.id} was lost after something else than the beginning of the answer: ${got.text}`);
                continue;
            }
            if (answer.error && gateway.away && got.status === 0) { // not back yet
                at++;
                await t.sleep(50);
                continue;
            }
            const verdict = clients.judge(request.want, answer);
            counts[verdict]++;
            tally(verdict === 'good');
            if (verdict === 'good')
                answered(got.node, asked);
            if (request.body.stream)
                pauses.push({ ...longest(got.gaps, [...still.times, ...gateway.stops]), who: `${gateway.name} ${got.id}` });
            if (verdict !== 'good')
                complain(`${verdict} at ${gateway.name} ${got.id}: ${request.path} ${JSON.stringify(request.body)}\n  got      ` +
                    `${JSON.stringify(answer)}\n  expected ${JSON.stringify(request.want)}`);
            break;
        }
    }
}

// A client that only checks whether the gateway is up.
async function probe(gateway, goes) {
    while (goes()) {
        const losses = gateway.losses;
        const answer = await fetch(`${gateway.url}/v1/models`).then((r) => r.json()).catch((e) => ({ error: e.message }));
        const there = !gateway.away && gateway.losses === losses, good = answer.data?.some((m) => m.id === 'reply');
        probes += there;
        if (there)
            tally(good);
        if (there && !good) {
            probesFailed++;
            complain(`${gateway.name} does not answer: ${JSON.stringify(answer)}`);
        }
        await t.sleep(probeMs);
    }
}

// The requests, with the answers of a process that knows nothing of a cluster.
async function requests() {
    const alone = await chaos.outside(shoal);
    const tokens = await clients.fitting(alone.url);
    const lists = [clients.streams(tokens), clients.shorts()];
    console.log(`streams of ${tokens} tokens`);
    await Promise.all(lists.flat().map(async (request) => {
        request.want = clients.read(request, await clients.ask(alone.url, request));
        if (request.want.error)
            throw new Error(`undisturbed: ${JSON.stringify(request.body)}: ${request.want.error}`);
    }));
    await alone.end('SIGTERM');
    return lists;
}

// Traffic returns: with the load still on, every node answers something that was asked after the last fault.
async function trafficReturns(site) {
    const from = performance.now(), late = () => site.nodes.filter((n) => !(lastAsked[n.name] > from));
    while (late().length > 0 && performance.now() < from + returnMs)
        await t.sleep(50);
    if (late().length > 0)
        complain(`no request is sent to ${late().map((n) => n.name)} ${returnMs / 1000} s after the last fault`);
    console.log(`after the last fault, ${site.nodes.length - late().length} of ${site.nodes.length} nodes answer within ` +
        `${((performance.now() - from) / 1000).toFixed(1)} s`);
}

// What was deployed at the start is still so, also after NATS lost it.
async function stateReturns(site, before) {
    const from = performance.now();
    let now = null;
    while (performance.now() < from + restoreMs) {
        now = await chaos.cluster(site, 'desired');
        if (now?.models?.some((m) => m.name === 'reply') && now.version >= before.version)
            break;
        await t.sleep(200);
    }
    if (!now?.models?.some((m) => m.name === 'reply') || now.version < before.version)
        complain(`the desired state was version ${before.version} with reply, and is ${JSON.stringify(now)} (${site.refused})`);
    console.log(`desired state: version ${before.version}, fence ${before.fence} before; version ${now?.version}, fence ${now?.fence} ` +
        `${((performance.now() - from) / 1000).toFixed(1)} s after the last fault`);
}

// As in the logs of the members.
const clock = (ms) => new Date(performance.timeOrigin + ms).toISOString();

// What the longest pauses were: the faults that went on meanwhile.
function reportPauses(times) {
    const at = (ms) => ((ms - began) / 1000).toFixed(1);
    for (const p of pauses.filter((x) => x.ms > pauseMs).slice(-shown).reverse())
        console.log(`  ${(p.ms / 1000).toFixed(1)} s from ${at(p.from)} s on, ${p.who}: ` +
            times.filter((f) => f.from < p.from + p.ms && !(f.to < p.from)).map((f) => `${f.event} ${f.who} ${at(f.from)}-${at(f.to)}`).join(', '));
    console.log(`${pauses.filter((x) => x.ms > pauseMs).length} of ${pauses.length} streams paused for more than ${pauseMs / 1000} s`);
    const share = still.share(began), p99 = quantile(pauses, 0.99)?.ms;
    console.log(`the clients themselves stood still for ${(100 * share).toFixed(0)} % of the time`);
    if (!process.env.PAUSE_MS || share > overloaded)
        console.log(`pauses are not judged${share > overloaded ? ': this machine is overloaded' : ''}`);
    else if (p99 > pauseMs)
        complain(`the p99 of the longest pauses is ${p99.toFixed(0)} ms, above ${pauseMs} ms`);
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

function reportSeconds() {
    const list = Array.from({ length: bySecond.length }, (_, i) => bySecond[i] ?? { asked: 0, good: 0 });
    const whole = list.filter((s) => s.asked === s.good).length;
    console.log(`availability by second: ${whole} of ${list.length} at 100 %, ${list.filter((s) => s.asked === 0).length} of them without ` +
        `an answer${whole < list.length ? ';' : ''}` +
        list.map((s, i) => (s.asked === s.good ? '' : ` ${i} s: ${(100 * s.good / s.asked).toFixed(1)} %`)).join(''));
    console.log(`answers by second: ${list.map((s) => s.good).join(' ')}`);
}

const total = async (site, name) => (await Promise.all(site.gateways.map((g) => chaos.figure(g, name)))).reduce((a, b) => a + b, 0);

function report({ done, times }, figures) {
    for (const [event, nodes] of Object.entries(done).toSorted())
        console.log(`${event}: ${Object.entries(nodes).toSorted().map(([n, times]) => `${n} ${times}`).join(', ')}`);
    console.log(`moved in mid-stream ${figures.moved}, begun again ${figures.retried}, given up ${figures.given_up}`);
    console.log(`clients asked another gateway ${reconnects} times`);
    pauses.sort((a, b) => a.ms - b.ms);
    console.log(`longest pause of a stream: p50 ${quantile(pauses, 0.5)?.ms.toFixed(0)} ms, p99 ${quantile(pauses, 0.99)?.ms.toFixed(0)} ms, ` +
        `most ${pauses.at(-1)?.ms.toFixed(0)} ms (${pauses.at(-1)?.who})`);
    reportPauses(times);
    returns.sort((a, b) => a.ms - b.ms);
    console.log(`from a node's recovery to its next answer: p50 ${quantile(returns, 0.5)?.ms.toFixed(0)} ms, most ` +
        `${returns.at(-1)?.ms.toFixed(0)} ms (${returns.at(-1)?.node})`);
    reportSeconds();
    const asked = counts.good + counts.lost + counts.repeated + counts.different;
    const answered = (asked - counts.lost + probes - probesFailed) / (asked + probes);
    console.log(`chaos: ${asked} requests, ${counts.lost} lost, ${counts.repeated} repeated, ${counts.different} different, ` +
        `availability ${(Math.floor(answered * 1000) / 10).toFixed(1)} %`);
}

(async () => {
    const net = process.env.NETNS && enter() ? new Net() : null;
    console.log(`seed ${seed}, ${seconds} s${net ? ', network namespaces' : ''}`);
    const site = await chaos.open(shoal, proxy, { net, program: (name) => (cross && name === 'node3' ? cross : shoal) });
    const deployed = await chaos.cluster(site, 'deploy', 'reply', '--replicas', '3', '--wait', '60');
    if (deployed?.ready !== 3)
        throw new Error(`reply is not deployed: ${JSON.stringify(deployed)} ${site.refused}`);
    const before = await chaos.cluster(site, 'desired'), admins = new Admins(site, random(seed + 3));
    const [streams, shorts] = await requests();
    let on = true;
    const goes = () => on;
    began = performance.now();
    const work = [...Array.from({ length: nStreams }, (_, i) => worker(site, streams, i, goes)),
        ...Array.from({ length: nShorts }, (_, i) => worker(site, shorts, i, goes)),
        ...site.gateways.map((g) => probe(g, goes)), admins.change(goes), admins.change(goes), admins.read(goes)];
    const faults = await disturb(site, seed, seconds * 1000, (node) => { healedAt[node.name] = performance.now(); });
    await trafficReturns(site);
    on = false;
    await Promise.all(work);
    await stateReturns(site, before);
    const figures = { moved: await total(site, 'shoal_moved_total'), retried: await total(site, 'shoal_retried_total'),
        given_up: await total(site, 'shoal_lost_total') };
    for (const how of await chaos.close(site))
        complain(how);
    for (const m of logs ? [...site.gateways, ...site.nodes] : [])
        fs.writeFileSync(path.join(logs, `${m.name}.log`), m.log);
    if (logs)
        fs.writeFileSync(path.join(logs, 'faults.log'), faults.times.map((f) => `${clock(f.from)} to ${clock(f.to)}: ${f.event} ${f.who}\n`).join(''));
    t.check(figures.given_up === 0, `${figures.given_up} streams were given up`);
    t.check(counts.good > 0, 'no request was answered');
    report(faults, figures);
    console.log(admins.judge(complain));
    process.exit(bad || t.failures() ? 1 : 0);
})().catch(t.abandon);
