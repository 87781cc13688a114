#!/usr/bin/env node
// Deferred requests: kept while the only node is down and the gateway is killed, answered when the node is back.
// Usage: cluster_deferred.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const body = { model: 'anomaly', input: [1, 2, 3] };

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

async function call(site, method, where, { key = 'ann', json, headers = {} } = {}) {
    const r = await t.within(fetch(site.gateway.url + where, { method, body: json && JSON.stringify(json),
        headers: { authorization: `Bearer ${key}`, ...headers } }), `${method} ${where}`);
    return { ...await r.json(), status: r.status, said: r.headers.get('x-shoal-deferred'), location: r.headers.get('location') };
}

const defer = (site, how, json = body, headers = {}, where = '/v1/score') =>
    call(site, 'POST', where, { json, headers: { 'x-shoal-defer': how, ...headers } });
const fetched = (site, id, key) => call(site, 'GET', `/v1/deferred/${id}`, { key });

// Requests that cannot be deferred are refused at once.
async function refusals(site) {
    for (const how of ['soon', '10', '-1m', '2d', '25h', '0s', ''])
        t.same((await defer(site, how)).status, 400, `x-shoal-defer: ${how}`);
    t.same((await defer(site, '1m', { ...body, stream: true })).error?.param, 'stream', 'a stream');
    t.same((await defer(site, '1m', body, {}, '/api/embed')).status, 400, 'a path of another interface');
    t.same((await call(site, 'POST', '/v1/score', { key: 'nobody', json: body, headers: { 'x-shoal-defer': '1m' } })).status, 401,
        'an unknown key');
    t.same((await fetched(site, 'def_0')).status, 404, 'an unknown id');
    t.same(await t.metric(site.gateway, 'shoal_deferred_total{event="kept"}'), 0, 'nothing was kept');
}

// Repeated requests with one key are a single request, visible only to its client.
async function one(site) {
    const headers = { 'idempotency-key': 'k1' };
    const first = await defer(site, '10m', body, headers), again = await defer(site, '10m', body, headers);
    t.same(first.status, 202, `deferred: ${JSON.stringify(first)}`);
    t.same(first.location, `/v1/deferred/${first.id}`, 'location');
    t.same(again.id, first.id, 'the same key again');
    t.same((await defer(site, '10m', { ...body, input: [4] }, headers)).status, 409, 'the same key with another request');
    t.same((await fetched(site, first.id, 'bob')).status, 404, "another client's");
    return first.id;
}

(async () => {
    const hash = (key) => crypto.createHash('sha256').update(key).digest('hex');
    const sock = path.join(t.tmp, 'node.sock'), file = path.join(t.tmp, 'deferred.db');
    const node = new c.Member(shoal, 'node', 'node1', ['--listen', `unix:${sock}`, '-m', `anomaly=${path.join(t.root, 'models/anomaly')}`]);
    node.address = `unix:${sock}`;
    const site = { shoal, nodes: [await node.start()] };
    site.gateway = await c.gateway(site, 'gateway', config('gateway.yaml', `deferred: {file: "${file}", ttl: 24h}
cluster: {name: gateway, wait: 300ms}
keys:
  - {name: ann, sha256: ${hash('ann')}}
  - {name: bob, sha256: ${hash('bob')}}
`));
    await c.all_ready(site, 1);
    await refusals(site);
    let want; // a node that gets no CPU time for a while is not waited for
    await t.until(async () => (want = await call(site, 'POST', '/v1/score', { json: body })).status === 200,
        { toString: () => `asked at once: ${JSON.stringify(want)}` });

    // the node is up: answered soon
    const soon = await defer(site, '1h');
    await t.until(async () => (await fetched(site, soon.id)).status === 200, 'an answer while the node is there');

    // another gateway of the shoal says where the request is
    t.check(soon.id.endsWith('.gateway'), `the id names the gateway: ${soon.id}`);
    const other = { shoal, nodes: site.nodes };
    other.gateway = await c.gateway(other, 'other', config('other.yaml', `cluster: {name: other, wait: 300ms}
keys:
  - {name: ann, sha256: ${hash('ann')}}
`));
    for (const method of ['GET', 'DELETE']) {
        const there = await call(other, method, `/v1/deferred/${soon.id}`);
        t.same([there.status, there.error?.code].join(), '421,deferred_elsewhere', `${method} at another gateway`);
        t.check(/gateway gateway keeps this/.test(there.error?.message), `it says which: ${there.error?.message}`);
    }
    for (const id of ['def_0.gateway', 'def_0.', '.gateway', `${soon.id}/x`, `def_0.${'g'.repeat(70)}`, 'def_0.%20'])
        t.same((await fetched(site, id)).status, 404, `an unknown id: ${id}`);
    t.same((await other.gateway.end('SIGTERM')).code, 0, 'the other gateway ends');

    // the node is down
    await node.end('SIGKILL');
    const id = await one(site);
    await t.until(async () => (await fetched(site, id)).tries >= 1, 'a try');
    const short = await defer(site, '1s');
    await t.until(async () => (await fetched(site, short.id)).status === 410, 'a request that expires');

    // the gateway is killed, and knows no node afterwards; it shuts down cleanly while requests wait
    await site.gateway.end('SIGKILL');
    await site.gateway.start();
    t.same((await fetched(site, id)).status, 202, 'after a restart');
    await t.until(async () => (await fetched(site, id)).tries >= 2, 'a try after the restart');
    t.same((await site.gateway.end('SIGTERM')).code, 0, `the gateway ends: ${site.gateway.log}`);
    await site.gateway.start();

    // the node is back up
    await node.start();
    let got;
    await t.until(async () => (got = await fetched(site, id)).status !== 202, 'an answer when the node is back');
    t.same(got.status, 200, `the answer: ${JSON.stringify(got)}`);
    t.same(got.said, 'done', 'x-shoal-deferred');
    t.same(JSON.stringify(got.data), JSON.stringify(want.data), 'the answer is that of a request that was not deferred');
    t.same((await fetched(site, id)).status, 200, 'the answer stays');

    // an answer that will not change is final, whatever its status
    const wrong = await defer(site, '1h', { model: 'anomaly', input: 'text' });
    await t.until(async () => (got = await fetched(site, wrong.id)).status !== 202, 'a refusal');
    t.same(got.status, 400, `a request that is wrong: ${JSON.stringify(got)}`);

    t.same((await call(site, 'DELETE', `/v1/deferred/${id}`, { key: 'bob' })).status, 404, "another client's is not deleted");
    t.same((await call(site, 'DELETE', `/v1/deferred/${id}`)).deleted, true, 'deleted');
    t.same((await fetched(site, id)).status, 404, 'it is gone');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
