#!/usr/bin/env node
// Routes: models to a client, in every interface; rules, budgets, callers, a router model, the explanation, and
// replicas on other nodes. Usage: serve_routes.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const small = `${t.root}/models/reply-draft.gguf`, big = `${t.root}/models/reply.gguf`;
const encoder = `${t.root}/models/encoder`;
const say = 'act: turn_off; device: lights; room: kitchen; result: done';

function write(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return file;
}

async function post(url, body, headers = {}) {
    const r = await fetch(url, { method: 'POST', body: JSON.stringify(body), headers });
    const text = await r.text();
    return { status: r.status, model: r.headers.get('x-shoal-model'), route: r.headers.get('x-shoal-route'),
        degraded: r.headers.get('x-shoal-degraded'), cache: r.headers.get('x-shoal-cache'), text,
        json: text.startsWith('{') ? JSON.parse(text) : null };
}

const config = (more) => `models:
  - {name: small, path: "${small}", quality: 0.4, cost: 1}
  - {name: big, path: "${big}", quality: 0.8, cost: 5}
  - {name: enc, path: "${encoder}", labels: router}
${more}`;

async function every_interface() {
    const file = write('routes.yaml', config(`routes:
  - name: home
    models: [small, big]
    rules:
      - {when: header, name: x-tier, is: [free, trial], use: small}
      - {when: json, name: metadata.tier, is: free, use: small}
      - {matches: '(?i)\\bquick', use: small}
      - {when: size, above: 400, use: small}
  - {name: turns, models: [small, big], policy: round_robin, cache: false}
  - {name: beside, models: [small, big], policy: round_robin, cache: false}
  - {name: cheap, models: [small, big], policy: cheapest, min_quality: 0.3}
`));
    const server = await t.start(shoal, ['--config', file]);
    const url = server.url;
    const names = (await (await fetch(`${url}/v1/models`)).json()).data.filter((m) => m.task === 'route').map((m) => m.id);
    t.same(names.join(), 'home,turns,beside,cheap,auto', 'routes are listed');
    t.same((await (await fetch(`${url}/v1/models/home`)).json()).id, 'home', 'one of them');
    const chat = (model, more = {}, headers = {}) => post(`${url}/v1/chat/completions`,
        { model, max_tokens: 6, temperature: 0, messages: [{ role: 'user', content: more.say ?? say }],
            ...{ ...more, say: undefined } }, headers);
    let r = await chat('home');
    t.same(`${r.status} ${r.model} ${r.route} ${r.degraded} ${r.json.model}`, '200 big home null big', 'chat');
    t.same(JSON.stringify(r.json.shoal), '{"route":"home","model":"big","degraded":false}', 'what the answer says');
    const direct = await chat('big');
    t.same(r.json.choices[0].message.content, direct.json.choices[0].message.content, 'the text is that of the model');
    t.same(direct.route, null, 'a model by its name is no route');
    t.same(direct.json.shoal, undefined, 'and says nothing of one');
    // rules
    t.same((await chat('home', {}, { 'x-tier': 'free' })).model, 'small', 'a header');
    t.same((await chat('home', {}, { 'x-tier': 'gold' })).model, 'big', 'another value');
    t.same((await chat('home', { metadata: { tier: 'free' } })).model, 'small', 'a JSON field');
    t.same((await chat('home', { say: `Be QUICK: ${say}` })).model, 'small', 'an expression');
    t.same((await chat('home', { say: `${say}; ${'more '.repeat(90)}` })).model, 'small', 'the size');
    // policies
    const turns = [];
    for (let i = 0; i < 4; i++) {
        turns.push((await chat('turns')).model);
        await chat('beside'); // has turns of its own
    }
    t.same(turns.join(), 'small,big,small,big', 'in turn');
    t.same((await chat('turns')).cache, null, 'a route without the cache');
    t.same((await chat('cheap')).model, 'small', 'the cheapest');
    // explain
    r = await chat('home', { explain: true });
    t.same(r.json.shoal.candidates.map((x) => `${x.model} ${x.verdict}`).join(), 'small worse,big chosen', 'explain');
    t.same(r.json.shoal.policy, 'fit quality latency', 'the steps of sla');
    t.check(r.json.shoal.candidates.every((x) => x.estimate.known && x.estimate.total_ms > 0), `estimates: ${r.text}`);
    // a deadline that only the small model can meet, or none: decided without running
    r = await post(`${url}/v1/route`, { model: 'home', text: say, max_tokens: 200, latency_budget_ms: 0.001 });
    t.same(`${r.status} ${r.json.degraded}`, '200 true', `no model is so fast: ${r.text}`);
    r = await post(`${url}/v1/route`, { model: 'home', text: 'quick', latency_budget_ms: 60000 });
    t.same(`${r.json.model} ${r.json.rule} ${r.json.degraded}`, 'small 3 false', 'the third rule');
    t.same((await post(`${url}/v1/route`, { model: 'nope', text: 'x' })).status, 404, 'no such route');
    t.same((await post(`${url}/v1/route`, { model: 'home' })).status, 400, 'no text');
    // other interfaces
    r = await post(`${url}/v1/completions`, { model: 'home', prompt: 'the lights', max_tokens: 4 });
    t.same(`${r.model} ${r.json.model}`, 'big big', 'completions');
    r = await post(`${url}/v1/completions`, { model: 'home', prompt: 'the lights', max_tokens: 4, stream: true });
    const first = JSON.parse(r.text.split('\n')[0].slice(6));
    t.same(`${first.model} ${first.shoal?.route}`, 'big home', 'a stream: its first chunk');
    t.same(r.text.split('"shoal"').length, 2, 'and only that');
    r = await post(`${url}/api/chat`, { model: 'auto', stream: false, messages: [{ role: 'user', content: say }] });
    t.same(`${r.status} ${r.json?.model} ${r.route}`, '200 big auto', 'Ollama');
    r = await post(`${url}/v1/classify`, { model: 'auto', input: 'turn on the lights' });
    t.same(`${r.status} ${r.model} ${r.route}`, '200 enc auto', `a specialist: ${r.text}`);
    r = await post(`${url}/v1/classify`, { model: 'home', input: 'turn on the lights' });
    t.same(`${r.status} ${r.json.error.code}`, '404 model_not_found', 'a route whose models cannot do it');
    // WebSocket
    const ws = new (require(t.npm('ws@8.18.0')))(`ws://127.0.0.1:${server.port}/v1/stream`);
    const seen = [];
    ws.on('message', (m) => seen.push(JSON.parse(m.toString())));
    await new Promise((done, give) => ws.on('open', done).on('error', give));
    ws.send(JSON.stringify({ id: '1', path: '/v1/completions', body: { model: 'home', prompt: 'the', max_tokens: 3, stream: true } }));
    await t.until(() => seen.some((m) => 'status' in m), 'an answer over the WebSocket');
    t.same(seen[0]?.event?.model, 'big', `WebSocket: ${JSON.stringify(seen[0])}`);
    ws.close();
    // the command
    const run = (...args) => spawnSync(shoal, ['route', '--server', url, ...args], { encoding: 'utf8' });
    let p = run('--route', 'home', '--explain', 'be quick');
    t.same(p.status, 0, `shoal route: ${p.stderr}`);
    t.check(/^small \(route home, rule 3\)/.test(p.stdout) && /big +.*a rule names other models/.test(p.stdout), p.stdout);
    p = run('--json', 'hello');
    t.same(JSON.parse(p.stdout).model, 'big', 'shoal route --json');
    p = run('--route', 'nope', 'hello');
    t.check(p.status === 1 && /no route 'nope'/.test(p.stderr), `an unknown route: ${p.stderr}`);
    // a changed file
    fs.writeFileSync(file, config('routes:\n  - {name: home, models: [small]}\n'));
    await t.until(async () => (await chat('home')).model === 'small', 'the new route');
    await t.until(() => server.log.includes('routes[turns] was removed'), 'the log says what changed');
    t.same((await chat('turns')).status, 404, 'a route that is gone');
    t.same((await server.stop()).code, 0, 'exit');
}

async function callers_and_classifier() {
    const file = write('callers.yaml', config(`keys:
  - {name: app, sha256: ${sha('one')}}
  - {name: other, sha256: ${sha('two')}}
routes:
  - {name: inner, callers: app, models: big, budget: 60s, max_budget: 120s, priority: -2}
  - name: topics
    classifier: {model: enc, threshold: 0.8}
    models: [{name: small, domains: home}, {name: big}]
`));
    const server = await t.start(shoal, ['--config', file]);
    const url = server.url;
    const chat = (key, model, content) => post(`${url}/v1/chat/completions`,
        { model, explain: true, max_tokens: 3, messages: [{ role: 'user', content }] }, { authorization: `Bearer ${key}` });
    const listed = async (key) => (await (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } }))
        .json()).data.map((m) => m.id).join();
    let r = await chat('one', 'inner', say);
    t.same(`${r.status} ${r.model}`, '200 big', 'a caller');
    t.check(r.json.shoal.budget_ms > 1000 && r.json.shoal.budget_ms <= 60000, `the default budget: ${r.json.shoal.budget_ms}`);
    r = await chat('two', 'inner', say);
    t.same(`${r.status} ${r.json.error.code}`, '404 model_not_found', 'somebody else');
    t.check((await listed('one')).includes('inner') && !(await listed('two')).includes('inner'), 'who sees it');
    // the pack's encoder tells home commands from other texts
    r = await chat('one', 'topics', 'turn on the kitchen lights');
    t.same(`${r.model} ${r.json.shoal.domain}`, 'small home', `its domain: ${r.text}`);
    t.check(r.json.shoal.domain_confidence > 0.8, 'and how sure');
    r = await chat('one', 'topics', 'xylophone zebra quantum of it');
    if (r.json.shoal.domain_confidence < 0.8)
        t.same(`${r.model} ${r.json.shoal.domain}`, 'big undefined', `none of these: ${r.text}`);
    else
        t.check(r.json.shoal.domain, `a domain: ${r.text}`);
    // many at once, some cancelled while the router model runs
    const all = Array.from({ length: 20 }, (_, i) => {
        const control = new AbortController();
        const p = fetch(`${url}/v1/chat/completions`, { method: 'POST', signal: control.signal,
            headers: { authorization: 'Bearer one' }, body: JSON.stringify({ model: 'topics', max_tokens: 3,
                messages: [{ role: 'user', content: `turn on light number ${i}` }] }) }).then((x) => x.status, () => 0);
        if (i % 3 === 0)
            setTimeout(() => control.abort(), i);
        return p;
    });
    const got = await Promise.all(all);
    t.check(got.every((s, i) => s === 200 || (i % 3 === 0 && s === 0)), `all end: ${got}`);
    t.same((await server.stop()).code, 0, 'exit');
}

async function other_nodes() {
    const file = write('gateway.yaml', `listen: [127.0.0.1:0]
cluster: {name: gateway}
routes:
  - name: home
    models: [{name: small, quality: 0.4}, {name: big, quality: 0.9}]
  - {name: mine, models: [small], policy: hash}
`);
    const site = await c.open(shoal, { nodes: 2, models: [`small=${small}`, `big=${big}`],
        gateway_args: ['--config', file] });
    const url = site.gateway.url;
    const chat = (model, session) => post(`${url}/v1/chat/completions`, { model, explain: true, max_tokens: 3,
        messages: [{ role: 'user', content: say }] }, session ? { 'x-session-id': session } : {});
    await t.until(async () => (await chat('home')).status === 200, 'nodes are ready');
    let r = await chat('home');
    t.same(`${r.model} ${r.route}`, 'big home', `replicas of nodes: ${r.text}`);
    t.same(r.json.shoal.candidates.map((x) => `${x.model}@${x.node}`).sort().join(),
        'big@node1,big@node2,small@node1,small@node2', 'all replicas are candidates');
    await t.until(async () => (await chat('home')).json.shoal.candidates.some((x) => x.estimate.known), 'nodes tell their speed');
    // a session stays on its node
    for (const session of ['a', 'b', 'c', 'd']) {
        const nodes = new Set();
        for (let i = 0; i < 4; i++) {
            r = await chat('mine', session);
            nodes.add(r.json.shoal.node);
        }
        t.same(nodes.size, 1, `session ${session}`);
    }
    // without a session a client stays too, whatever it says
    const stays = new Set();
    for (let i = 0; i < 8; i++) {
        r = await post(`${url}/v1/chat/completions`, { model: 'mine', explain: true, max_tokens: 1, messages: [{ role: 'user', content: `text ${i}` }] });
        stays.add(r.json.shoal.node);
    }
    t.same(stays.size, 1, 'a client without a session');
    // a node dies: the other one answers
    await site.nodes[0].end('SIGKILL');
    for (let i = 0; i < 4; i++)
        t.same((await chat('home')).status, 200, 'without a node');
    await t.until(async () => (await chat('home')).json.shoal.candidates.every((x) => x.node === 'node2'), 'it is no candidate');
    await c.close(site);
}

(async () => {
    await every_interface();
    await callers_and_classifier();
    await other_nodes();
    t.finish();
})().catch(t.abandon);
