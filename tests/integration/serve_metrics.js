#!/usr/bin/env node
// Dashboards and rules: every metric and label in an expression of tools/make-dashboards is exported by a server, and the
// files are as the tables are.  Usage: serve_metrics.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const maker = path.join(t.root, 'tools/make-dashboards');
const reply = path.join(t.root, 'models/reply.gguf');

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

// name -> {type, labels} of what these pages export.
function exported(pages) {
    const all = new Map();
    for (const page of pages)
        for (const line of page.split('\n')) {
            const type = line.match(/^# TYPE (\S+) (\S+)$/), sample = line.match(/^([a-z_]+)(?:\{(.*)\})? \S+$/);
            if (type && !all.has(type[1]))
                all.set(type[1], { type: type[2], labels: new Set(), n: 0 });
            if (!sample)
                continue;
            const m = all.get(sample[1]) ?? all.get(sample[1].replace(/_(bucket|sum|count)$/, ''));
            t.check(m, `a sample without a type: ${line}`);
            m.n++;
            for (const [, label] of (sample[2] ?? '').matchAll(/([a-z_]+)="/g))
                m.labels.add(label);
        }
    return all;
}

// The metrics of an expression with the labels that it names for them. A label after "by" is for all of them.
function named(expr) {
    const plain = expr.replace(/"[^"]*"/g, '""'); // no names inside of texts
    const by = [...plain.matchAll(/by \(([^)]*)\)/g)].flatMap((m) => m[1].split(/, */));
    return [...plain.matchAll(/\b(shoal[a-z0-9_:]*|up)\b(?:\{([^}]*)\})?/g)].map((m) => ({ name: m[1], by,
        labels: [...(m[2] ?? '').matchAll(/([a-z_]+)(?:=|!)/g)].map((x) => x[1]) }));
}

// OpenMetrics, if it is asked for: a slow bucket leads to the trace of a request.
async function exemplars(server) {
    const headers = { authorization: 'Bearer k', accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' };
    const ask = async () => (await fetch(`${server.url}/v1/completions`, { method: 'POST', headers, body: JSON.stringify({ model: 'reply', prompt: 'a', max_tokens: 2 }) })).headers.get('x-request-id');
    const id = await ask();
    const r = await t.within(fetch(`${server.url}/metrics`, { headers }), 'OpenMetrics');
    t.same(r.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8', 'type');
    const page = await r.text();
    t.check(page.endsWith('\n# EOF\n') && page.includes('# TYPE shoal_responses counter\n') && !/^# \S+ \S+_total /m.test(page), 'families without _total');
    const find = (text) => text.match(/^shoal_http_seconds_bucket\{route="POST \/v1\/completions",le="[^"]+"\} 1 # \{trace_id="([0-9a-f]{32})"\} [\d.]+ [\d.]+$/m);
    let it; // the request is accounted for when its answer is gone, and so a little later
    await t.until(async () => { it = find(await (await fetch(`${server.url}/metrics`, { headers })).text()); return it; }, 'an exemplar');
    await t.until(async () => (await (await fetch(`${server.url}/v1/traces/${it[1]}`, { headers })).json()).request === id, 'which leads to its request');
    t.check(!(await (await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer k' } })).text()).includes('trace_id'), 'not in plain text');
}

async function main() {
    t.same(spawnSync(maker, ['--check'], { encoding: 'utf8' }).stdout, '', 'the files are as the tables are');
    const sha = crypto.createHash('sha256').update('k').digest('hex');
    // everything that has figures; what it would connect to is not there
    const server = await t.start(shoal, ['--only', ...config('all.yaml', `
models: [{name: reply, path: ${reply}}, {name: intent, path: ${path.join(t.root, 'models/encoder')}}]
keys: [{name: anna, sha256: ${sha}, admin: true, tokens_per_day: 1000}]
tracing: {endpoint: "http://127.0.0.1:1"}
mqtt: {broker: "mqtt://127.0.0.1:1"}
machines: [{name: m1}]
sensors: [{name: vib, unit: mm/s, machine: m1, limits: "..7"}]
modbus: [{name: press, address: "127.0.0.1:1", tags: [{name: oil, sensor: vib, table: input, register: 0}]}]
history: {file: ${path.join(t.tmp, 'history.db')}}
alarms: {allow: ["127.0.0.1:1"], webhooks: [{url: "http://127.0.0.1:1/"}]}
deferred: {file: ${path.join(t.tmp, 'deferred.db')}}
deeds_allow: {commands: ["/bin/true"]}
deeds: [{things: light.kitchen, via: command, command: ["/bin/true", "{id}"]}]
`)]);
    const get = async (url) => (await t.within(fetch(`${url}/metrics`, { headers: { authorization: 'Bearer k' } }), 'metrics')).text();
    const pages = [await get(server.url)];
    await exemplars(server);
    await server.stop();
    const node = path.join(t.tmp, 'node.sock');
    const one = new c.Member(shoal, 'node', 'one', ['--listen', `unix:${node}`, ...config('one.yaml', `cluster: {name: one}\nmodels: [{name: reply, path: "${reply}"}]\n`)]);
    one.address = `unix:${node}`;
    const site = { shoal, nodes: [await one.start()] };
    site.gateway = await c.gateway(site, 'gateway', config('gateway.yaml', 'cluster: {name: gateway}\n'));
    pages.push(await get(site.gateway.url));
    await c.close(site);

    const all = exported(pages);
    const { expressions, recorded } = JSON.parse(spawnSync(maker, ['--expressions'], { encoding: 'utf8' }).stdout);
    t.check(expressions.length > 80, 'there are expressions');
    // metrics of members with NATS, of pages between nodes: a real NATS would be needed, so the source must do
    const source = ['gateway/api/api_info.c'].map((f) => fs.readFileSync(path.join(t.root, 'src', f), 'utf8')).join();
    const target = new Set(['instance', 'job', 'le']);
    for (const { where, expr } of expressions) {
        const metrics = named(expr);
        t.check(metrics.length > 0, `${where}: ${expr} names a metric`);
        for (const m of metrics) {
            if (m.name === 'up' || recorded.includes(m.name))
                continue;
            const base = m.name.replace(/_(bucket|sum|count)$/, ''), it = all.get(m.name) ?? all.get(base);
            if (!it && /^shoal_(nats_up|heartbeats_total|page_)/.test(m.name)) {
                t.check(source.includes(`"${m.name}"`), `${where}: ${m.name} is in the source`);
                continue;
            }
            if (!t.check(it, `${where}: ${m.name} is exported`))
                continue;
            t.same(base === m.name ? it.type !== 'histogram' : it.type === 'histogram', true, `${where}: ${m.name} is used as what it is (${it.type})`);
            for (const label of [...m.labels, ...m.by])
                t.check(it.n === 0 || it.labels.has(label) || target.has(label), `${where}: ${m.name} has the label ${label}`);
        }
    }
}

main().then(t.finish).catch(t.abandon);
