#!/usr/bin/env node
// Traces: spans of requests to models, flows and nodes, at a collector and in the server's own memory; whose they are; a
// collector that is away.  Usage: serve_trace.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');
const t = require('./serve.js');
const c = require('./cluster_site.js');
const otlp = require('./otlp_sink.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
const ID = '0af7651916cd43dd8448eb211c80319c', PARENT = 'b7ad6b7169203331';

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

async function post(server, where, body, headers = {}) {
    const r = await t.within(fetch(`${server.url}${where}`, { method: 'POST', body: JSON.stringify(body), headers }), `POST ${where}`);
    return { status: r.status, id: r.headers.get('x-request-id'), trace: r.headers.get('traceparent'), text: await r.text() };
}

async function get(server, where, key) {
    const r = await fetch(`${server.url}${where}`, { headers: key ? { authorization: `Bearer ${key}` } : {} });
    return { status: r.status, json: await r.json() };
}

const run = (server, ...args) => spawnSync(shoal, ['trace', '--server', server.url, ...args], { encoding: 'utf8' });
const chat = { model: 'reply', messages: [{ role: 'user', content: 'hello there' }], max_tokens: 8, temperature: 0 };
// The names of the spans on the way up to the root.
const way = (spans, s) => (s ? [s.name, ...way(spans, spans.find((x) => x.id === s.parent))] : []);

async function one_server() {
    const sink = await otlp.listen();
    const server = await t.start(shoal, config('trace.yaml', `
tracing: {endpoint: "${sink.url}", headers: ["x-collector-key: 7"], service: kitchen}
cache: {bytes: 0}
keys: [{name: anna, sha256: ${sha('a')}}, {name: ben, sha256: ${sha('b')}}, {name: root, sha256: ${sha('r')}, admin: true}]
flows:
  - name: twice
    text: "\${input.text}"
    output: \${said.text}
    steps:
      - {name: mood, do: classify, model: intent, text: "\${input.text}"}
      - {name: said, do: generate, model: reply, text: "\${mood.label}", max_tokens: 4}
`));
    const anna = { authorization: 'Bearer a' };
    const r = await post(server, '/v1/chat/completions', chat, { ...anna, traceparent: `00-${ID}-${PARENT}-01` });
    t.same(r.status, 200, r.text);
    t.check(new RegExp(`^00-${ID}-[0-9a-f]{16}-01$`).test(r.trace) && !r.trace.includes(PARENT), `our span in the caller's trace: ${r.trace}`);
    await t.until(() => sink.spans.some((s) => s.trace === ID), 'the collector has it');
    const spans = sink.spans.filter((s) => s.trace === ID);
    const root = spans.find((s) => s.parent === PARENT), decode = spans.find((s) => s.name === 'decode');
    t.same(root.id, r.trace.split('-')[2], 'the root is the span that we told');
    t.same(`${root.name} ${root.kind} ${root.notes['http.response.status_code']} ${root.notes['gen_ai.response.model']}`,
        'POST /v1/chat/completions 2 200 reply', 'root');
    t.same(root.notes['shoal.request.id'], r.id, 'request');
    t.same(way(spans, decode).join(' < '), 'decode < generate < run < POST /v1/chat/completions', 'the way up');
    const generate = spans.find((s) => s.name === 'generate');
    const usage = JSON.parse(r.text).usage;
    t.same(generate.notes['gen_ai.usage.output_tokens'], usage.completion_tokens, 'tokens');
    t.same(generate.notes['gen_ai.usage.input_tokens'], usage.prompt_tokens, 'tokens of the prompt');
    for (const s of spans)
        t.check(s.start <= s.end && s.start >= root.start && s.end <= root.end + 1000000n, `${s.name} is within the root`);
    const queue = spans.find((s) => s.name === 'queue'), prompt = spans.find((s) => s.name === 'prompt');
    t.check(queue.end === prompt.start && prompt.end === decode.start, 'queue, prompt and decode follow each other');
    t.check(Math.abs(Number(root.start / 1000000n) - Date.now()) < 120000, 'the time of day');
    t.same(`${root.who['service.name']} ${sink.calls[0].path} ${sink.calls[0].headers['x-collector-key']}`, 'kitchen /v1/traces 7', 'where and who');
    t.check(!JSON.stringify(spans, (k, v) => (typeof v === 'bigint' ? Number(v) : v)).includes('hello'), 'no text of the client');

    // a flow: its steps, and the work of each below it
    const f = await post(server, '/v1/chat/completions', { ...chat, model: 'twice' }, anna);
    t.same(f.status, 200, f.text);
    const of_flow = () => sink.spans.filter((s) => s.trace === (sink.spans.find((x) => x.notes['shoal.request.id'] === f.id) ?? {}).trace);
    await t.until(() => of_flow().length > 0, 'the flow');
    const infer = of_flow().find((s) => s.name === 'infer'), said = of_flow().find((s) => s.name === 'generate');
    t.same(way(of_flow(), infer).join(' < '), 'infer < run < mood < route < POST /v1/chat/completions', 'classify');
    t.same(way(of_flow(), said).join(' < '), 'generate < run < said < route < POST /v1/chat/completions', 'generate');
    t.same(of_flow().find((s) => s.name === 'mood').notes['shoal.step.kind'], 'classify', 'kind of the step');

    // kept here: a key sees its own, an admin all
    const mine = (await get(server, '/v1/traces', 'a')).json.traces;
    t.same(mine.map((x) => x.request).join(), `${f.id},${r.id}`, 'the newest first');
    t.same((await get(server, '/v1/traces', 'b')).json.traces.length, 0, 'of another key');
    t.same((await get(server, `/v1/traces/${r.id}`, 'b')).status, 404, 'nor by its id');
    t.same((await get(server, '/v1/traces', 'r')).json.traces.length, 2, 'the admin');
    t.same((await get(server, '/v1/traces?limit=1', 'r')).json.traces.length, 1, 'a limit');
    t.same((await get(server, '/v1/traces?limit=0', 'r')).status, 400, 'a wrong limit');
    t.same((await get(server, '/v1/traces')).status, 401, 'nobody');
    const kept = (await get(server, `/v1/traces/${ID}`, 'a')).json;
    t.same(kept.spans.length, spans.length, 'by the id of the trace, with all its spans');
    const drawn = run(server, r.id, '--key', 'a');
    t.same(drawn.status, 0, drawn.stderr);
    t.check(drawn.stdout.startsWith(`trace ${ID}  request ${r.id}`) && /^ +decode +\|.*#.*\| +\d/m.test(drawn.stdout), drawn.stdout);
    t.check(/POST \/v1\/chat\/completions$/m.test(run(server, '--key', 'a').stdout), 'a list');
    t.check(/no trace 'req_0'/.test(run(server, 'req_0', '--key', 'a').stderr), 'an unknown one');
    t.same((await server.stop()).code, 0, 'ends well');
    await sink.close();
}

// Without sampling a collector gets what failed; one that is away costs nothing, and gets what waited.
async function away() {
    let status = 503;
    const sink = await otlp.listen(() => status);
    const server = await t.start(shoal, ['--only', ...config('away.yaml', `
tracing: {endpoint: "${sink.url}", sample: 0, keep: 2}
models: [{name: reply, path: ${reply}}]
`)]);
    for (let i = 0; i < 5; i++)
        t.same((await post(server, '/v1/completions', { model: 'reply', prompt: 'a', max_tokens: 2 })).status, 200, 'it answers');
    t.same((await get(server, '/v1/traces')).json.traces.length, 2, 'the last two are kept');
    const late = await post(server, '/v1/completions', { model: 'reply', prompt: 'a b c', max_tokens: 500 }, { 'x-latency-budget-ms': '1' });
    t.check(late.status >= 500, `too late: ${late.status}`);
    await t.until(() => sink.calls.length >= 2, 'it is tried again');
    t.same(sink.spans.length, 0, 'refused so far');
    status = 200;
    await t.until(() => sink.spans.length > 0, 'it is back');
    t.same(sink.spans.filter((s) => !s.parent).length, 1, 'only the one that failed');
    t.check(sink.spans.find((s) => !s.parent).failed, 'which says so');
    await t.until(async () => await t.metric(server, 'shoal_traces_total{result="sent"}') === 1, 'counted');
    await sink.close();
    await post(server, '/v1/completions', { model: 'reply', prompt: 'a b c', max_tokens: 500 }, { 'x-latency-budget-ms': '1' });
    t.same((await server.stop()).code, 0, 'it ends although the collector is gone');
}

// A request over two machines is one trace, also when a node dies in the middle.
async function cluster() {
    const sink = await otlp.listen();
    const node = async (name) => {
        const sock = path.join(t.tmp, `${name}.sock`);
        const m = new c.Member(shoal, 'node', name, ['--listen', `unix:${sock}`, ...config(`${name}.yaml`,
            `cluster: {name: ${name}}\ncache: {bytes: 0}\ntracing: {endpoint: "${sink.url}"}\nmodels: [{name: reply, path: "${reply}"}]\n`)]);
        m.address = `unix:${sock}`;
        return m.start();
    };
    const site = { shoal, nodes: [await node('one'), await node('two')] };
    site.gateway = await c.gateway(site, 'gateway', config('gateway.yaml', `cluster: {name: gateway}\ntracing: {endpoint: "${sink.url}"}\n`));
    await c.all_ready(site, 2);
    let killed;
    for (let tries = 0; await t.metric(site.gateway, 'shoal_moved_total') === 0; tries++) { // a short stream may be over before
        if (killed) {
            await killed.ended;
            await killed.start();
            await c.all_ready(site, 2);
        }
        t.check(tries < 50, 'a stream is hit in the middle');
        sink.spans.length = 0;
        killed = null;
        const got = await c.stream(site.gateway.url, { model: 'reply', prompt: `the kitchen ${tries}`, max_tokens: 300, temperature: 0, ignore_eos: true }, (g) => {
            if (!killed && g.n >= 2)
                (killed = site.nodes.find((m) => m.name === g.node)).signal('SIGKILL');
        });
        t.check(got.ended && !got.error, `the stream survived: ${JSON.stringify(got.error)}`);
    }
    const other = site.nodes.find((m) => m !== killed);
    const root = () => sink.spans.find((s) => s.name === 'POST /v1/completions');
    await t.until(() => root() && sink.spans.some((s) => s.who['service.instance.id'] === other.name), 'both have told');
    const spans = sink.spans.filter((s) => s.trace === root().trace);
    const legs = spans.filter((s) => s.name === 'node');
    t.same(legs.length, 2, 'two nodes');
    const [first, second] = legs.sort((a, b) => (a.start < b.start ? -1 : 1));
    t.same(`${first.notes['server.address']} ${first.failed} ${first.kind}`, `${killed.name} true 3`, 'the one that died');
    t.same(`${second.notes['server.address']} ${second.failed} ${second.notes['shoal.attempt']}`, `${other.name} false 2`, 'the other one');
    t.check(second.notes['shoal.resumed_tokens'] >= 1, 'it goes on where the first was');
    const there = spans.find((s) => s.who['service.instance.id'] === other.name && s.kind === 2);
    t.same(there.parent, second.id, 'its own span is below');
    t.check(spans.some((s) => s.name === 'decode' && way(spans, s).includes('node')), 'its work is below both');
    await c.close(site);
    await sink.close();
}

async function wrong() {
    const refused = (text) => spawnSync(shoal, ['config', 'check', config('wrong.yaml', text)[1]], { encoding: 'utf8' });
    t.check(/wrong.yaml:1:\d+: tracing.endpoint is 'collector:4317'/.test(refused('tracing: {endpoint: "collector:4317"}\n').stderr), 'an address without http');
    t.check(/tracing.headers is 'key'/.test(refused('tracing: {headers: ["key"]}\n').stderr), 'a header without a value');
    const off = await t.start(shoal, ['--only', ...config('off.yaml', `tracing: {keep: 0}\nmodels: [{name: reply, path: ${reply}}]\n`)]);
    const r = await post(off, '/v1/completions', { model: 'reply', prompt: 'a', max_tokens: 2 }, { traceparent: `00-${ID}-${PARENT}-00` });
    t.check(new RegExp(`^00-${ID}-[0-9a-f]{16}-00$`).test(r.trace), 'the context is passed on all the same');
    t.same((await get(off, '/v1/traces')).status, 404, 'nothing is kept');
    await off.stop();
}

(async () => {
    await one_server();
    await away();
    await cluster();
    await wrong();
    t.finish();
})().catch(t.abandon);
