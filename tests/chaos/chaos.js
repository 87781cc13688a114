#!/usr/bin/env node
// 3 nodes, 2 gateways, 3 NATS servers, 32 streams and some short requests, while nodes are killed, stopped and drained, their
// workers killed and stopped, their links cut, silenced, delayed and slowed, and NATS servers killed and stopped.  Every
// answer must be the one of the undisturbed run: none lost, none repeated.
// Usage: chaos.js SHOAL CHAOS_PROXY [SECONDS [SEED]]     LOGS=DIR: keeps the logs of the members there
//        CROSS=PROGRAM: the third node, of another architecture (tools/build-cross)
//        NETNS=1: every member in a network namespace of its own, whose cable can be pulled (chaos_net.js)
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const clients = require('./chaos_clients.js');
const { disturb } = require('./chaos_events.js');
const { Net, enter } = require('./chaos_net.js');
const chaos = require('./chaos_site.js');

const [shoal, proxy] = process.argv.slice(2, 4).map((p) => path.resolve(p));
const seconds = Number(process.argv[4] || 20), seed = Number(process.argv[5] || Date.now() % 1000000);
const logs = process.env.LOGS; // a folder for the logs of the members
const cross = process.env.CROSS && path.resolve(process.env.CROSS);
const nStreams = 32, nShorts = 4, probeMs = 250, shown = 10;

const counts = { good: 0, lost: 0, repeated: 0, different: 0 };
const pauses = [];
let probes = 0, probesFailed = 0, bad = 0;

function complain(text) {
    if (++bad <= shown)
        console.log(`FAIL ${text}`);
}

async function worker(site, list, number, goes) {
    const gateway = site.gateways[number % site.gateways.length];
    for (let i = number; goes(); i++) {
        const request = list[i % list.length];
        const got = await clients.ask(gateway.url, request), answer = clients.read(request, got);
        const verdict = clients.judge(request.want, answer);
        counts[verdict]++;
        if (request.body.stream)
            pauses.push({ ms: Math.max(0, ...got.gaps), who: `${gateway.name} ${got.id}` });
        if (verdict !== 'good')
            complain(`${verdict} at ${gateway.name} ${got.id}: ${request.path} ${JSON.stringify(request.body)}\n  got      ` +
                `${JSON.stringify(answer)}\n  expected ${JSON.stringify(request.want)}`);
    }
}

// A client that only checks whether the gateway is up.
async function probe(gateway, goes) {
    while (goes()) {
        const answer = await fetch(`${gateway.url}/v1/models`).then((r) => r.json()).catch((e) => ({ error: e.message }));
        probes++;
        if (!answer.data?.some((m) => m.id === 'reply')) {
            probesFailed++;
            complain(`${gateway.name} does not answer: ${JSON.stringify(answer)}`);
        }
        await t.sleep(probeMs);
    }
}

// The requests, with the answers of an undisturbed run.
async function requests(site) {
    const tokens = await clients.fitting(site.gateways[0].url);
    const lists = [clients.streams(tokens), clients.shorts()];
    console.log(`streams of ${tokens} tokens`);
    await Promise.all(lists.flat().map(async (request, i) => {
        request.want = clients.read(request, await clients.ask(site.gateways[i % site.gateways.length].url, request));
        if (request.want.error)
            throw new Error(`undisturbed: ${JSON.stringify(request.body)}: ${request.want.error}`);
    }));
    return lists;
}

const total = async (site, name) => (await Promise.all(site.gateways.map((g) => t.metric(g, name)))).reduce((a, b) => a + b, 0);

function report(done, figures) {
    for (const [event, nodes] of Object.entries(done).toSorted())
        console.log(`${event}: ${Object.entries(nodes).toSorted().map(([n, times]) => `${n} ${times}`).join(', ')}`);
    console.log(`moved in mid-stream ${figures.moved}, begun again ${figures.retried}, given up ${figures.given_up}`);
    pauses.sort((a, b) => a.ms - b.ms);
    console.log(`longest pause of a stream ${pauses.at(-1)?.ms.toFixed(0)} ms (${pauses.at(-1)?.who}), median of the longest ` +
        `of each ${pauses[pauses.length >> 1]?.ms.toFixed(0)} ms`);
    const asked = counts.good + counts.lost + counts.repeated + counts.different;
    const answered = (asked - counts.lost + probes - probesFailed) / (asked + probes);
    console.log(`chaos: ${asked} requests, ${counts.lost} lost, ${counts.repeated} repeated, ${counts.different} different, ` +
        `availability ${(Math.floor(answered * 1000) / 10).toFixed(1)} %`);
}

(async () => {
    const net = process.env.NETNS && enter() ? new Net() : null;
    console.log(`seed ${seed}, ${seconds} s${net ? ', network namespaces' : ''}`);
    const site = await chaos.open(shoal, proxy, { net, program: (name) => (cross && name === 'node3' ? cross : shoal) });
    const [streams, shorts] = await requests(site);
    let on = true;
    const goes = () => on;
    const work = [...Array.from({ length: nStreams }, (_, i) => worker(site, streams, i, goes)),
        ...Array.from({ length: nShorts }, (_, i) => worker(site, shorts, i, goes)),
        ...site.gateways.map((g) => probe(g, goes))];
    const done = await disturb(site, seed, seconds * 1000);
    on = false;
    await Promise.all(work);
    const figures = { moved: await total(site, 'shoal_moved_total'), retried: await total(site, 'shoal_retried_total'),
        given_up: await total(site, 'shoal_lost_total') };
    for (const how of await chaos.close(site))
        complain(how);
    for (const m of logs ? [...site.gateways, ...site.nodes] : [])
        fs.writeFileSync(path.join(logs, `${m.name}.log`), m.log);
    t.check(figures.given_up === 0, `${figures.given_up} streams were given up`);
    t.check(counts.good > 0, 'no request was answered');
    report(done, figures);
    process.exit(bad || t.failures() ? 1 : 0);
})().catch(t.abandon);
