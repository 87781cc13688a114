#!/usr/bin/env node
// Routes for which several decoders generate one text together, by the mean of their next-token probabilities.
// Usage: serve_average.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const small = `${t.root}/models/reply-draft.gguf`, big = `${t.root}/models/reply.gguf`;
const stranger = `${t.root}/tests/data/refs/llama-gqa.gguf`;
const say = 'act: turn_off; device: lights; room: kitchen; result: done';
const file = path.join(t.tmp, 'average.yaml');

const write = (weights) => fs.writeFileSync(file, `models:
  - {name: small, path: "${small}", context: 512}
  - {name: big, path: "${big}"}
  - {name: twin, path: "${big}"}
  - {name: stranger, path: "${stranger}"}
routes:
  - {name: both, average: {models: [small, big], weights: ${weights}}}
  - {name: same, average: {models: [big, twin]}}
  - {name: first, average: {models: [small, big], weights: [1, 0]}}
  - {name: second, average: {models: [small, big], weights: [0, 1]}}
  - {name: mine, average: {models: [small, big]}, callers: [ana]}
  - {name: babel, average: {models: [big, stranger]}}
  - {name: absent, average: {models: [big, nobody]}}
`);

async function post(url, body) {
    const r = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    const text = await r.text();
    return { status: r.status, model: r.headers.get('x-shoal-model'), ensemble: r.headers.get('x-shoal-ensemble'), text,
        json: text.startsWith('{') ? JSON.parse(text) : null };
}

async function main() {
    write('[1, 3]');
    const server = await t.start(shoal, ['--config', file]);
    const url = server.url;
    const chat = (model, more = {}) => post(`${url}/v1/chat/completions`,
        { model, max_tokens: 16, temperature: 0, messages: [{ role: 'user', content: say }], ...more });
    const text = (r) => r.json?.choices?.[0]?.message?.content ?? r.text;

    // weights 1 and 0, and equal members: the text of one model
    const one = text(await chat('small')), two = text(await chat('big'));
    t.check(one.length > 0 && two.length > 0, `the members: ${one} | ${two}`);
    t.same(text(await chat('first')), one, 'weights 1 and 0');
    t.same(text(await chat('second')), two, 'weights 0 and 1');
    t.same(text(await chat('same')), two, 'equal members');

    // the mean: probabilities of the first token, over all tokens that both members list
    const tops = async (model) => new Map((await chat(model, { max_tokens: 1, logprobs: true, top_logprobs: 20 }))
        .json.choices[0].logprobs.content[0].top_logprobs.map((x) => [x.token, Math.exp(x.logprob)]));
    async function compare(a, b) {
        const [x, y, mean] = [await tops('small'), await tops('big'), await tops('both')];
        const shared = [...mean.keys()].filter((k) => x.has(k) && y.has(k));
        t.check(shared.length >= 3, `tokens that all name: ${shared}`);
        for (const k of shared)
            t.check(Math.abs((a * x.get(k) + b * y.get(k)) / (a + b) - mean.get(k)) < 1e-4,
                `"${k}": ${x.get(k)} and ${y.get(k)} give ${mean.get(k)} by ${a} and ${b}`);
    }
    await compare(1, 3);

    // as with one model: headers, explanation, streams, seeds, several answers, constraints, tools, other interfaces
    let r = await chat('both', { explain: true });
    t.same(`${r.status} ${r.model} ${r.ensemble} ${r.json.model}`, '200 both average both', r.text);
    t.same(r.json.shoal.ensemble.steps.map((s) => `${s.model} ${s.what}`).join(), 'small weight 1,big weight 3', r.text);
    const whole = text(r);
    r = await chat('both', { stream: true });
    t.same(r.text.split('\n').filter((l) => l.startsWith('data: {'))
        .map((l) => JSON.parse(l.slice(6)).choices[0]?.delta?.content ?? '').join(''), whole, 'a stream');
    const drawn = async () => text(await chat('both', { temperature: 1.2, seed: 9 }));
    t.same(await drawn(), await drawn(), 'a seed');
    r = await chat('both', { n: 2, temperature: 1, seed: 3 });
    t.same(r.json.choices.length, 2, 'two answers');
    const schema = { type: 'object', properties: { room: { enum: ['kitchen', 'cellar'] }, on: { type: 'boolean' } },
        required: ['room', 'on'], additionalProperties: false };
    r = await chat('both', { max_tokens: 60, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } });
    const value = JSON.parse(text(r));
    t.check(['kitchen', 'cellar'].includes(value.room) && typeof value.on === 'boolean', `a schema: ${r.text}`);
    const tools = [{ type: 'function', function: { name: 'light', parameters: schema } }];
    r = await chat('both', { max_tokens: 80, tools, tool_choice: 'required' });
    t.same(r.json?.choices?.[0]?.message?.tool_calls?.[0]?.function?.name, 'light', `a tool: ${r.text}`);
    r = await post(`${url}/api/chat`, { model: 'both', stream: false, options: { temperature: 0, num_predict: 16 },
        messages: [{ role: 'user', content: say }] });
    t.same(r.json?.message?.content, whole, `another interface: ${r.text}`);

    // for a client it is a route, never a candidate of another route
    const listed = (await (await fetch(`${url}/v1/models`)).json()).data;
    t.same(listed.filter((m) => m.id === 'both').length, 1, 'listed once');
    r = await post(`${url}/v1/route`, { model: 'auto', text: 'x' });
    t.check(r.json.candidates.every((c) => c.model !== 'both'), `candidates: ${r.text}`);
    r = await post(`${url}/v1/route`, { model: 'both', text: 'x' });
    t.same(`${r.status} ${r.json.ensemble.kind}`, '200 average', `a decision without running: ${r.text}`);
    t.same((await chat('mine')).status, 404, 'callers');

    // combinations that are refused
    r = await chat('babel');
    t.check(r.status >= 400 && /different vocabularies/.test(r.text), `vocabularies: ${r.status} ${r.text}`);
    r = await chat('absent');
    t.check(r.status >= 400 && /'nobody' of the average does not exist.*give the route to a node/.test(r.text), `a missing model: ${r.status} ${r.text}`);
    r = await post(`${url}/v1/classify`, { model: 'both', input: 'x' });
    t.check(r.status === 400 && /cannot classify; it can: generate/.test(r.text), r.text);
    t.same((await chat('small')).status, 200, 'the others are served');

    // a reload changes the weights
    write('[9, 1]');
    server.child.kill('SIGHUP');
    const weights = async () => (await post(`${url}/v1/route`, { model: 'both', text: 'x' })).json.ensemble.steps[0].what;
    await t.until(async () => await weights() === 'weight 9', 'the reload');
    await t.until(async () => (await chat('both', { max_tokens: 1 })).status === 200 &&
        /loaded path=average:both:.*loaded path=average:both:/s.test(server.log), 'the other average is loaded');
    await compare(9, 1);
    t.same((await server.stop()).code, 0, 'exit');

    const bad = path.join(t.tmp, 'bad.yaml');
    const check = (route) => {
        fs.writeFileSync(bad, `routes:\n  - {name: r, average: ${route}}\n`);
        return spawnSync(shoal, ['config', 'check', bad], { encoding: 'utf8' });
    };
    for (const [route, why] of [['{models: [a]}', 'at least two models'], ['{models: [a, b], weights: [0, 0]}', 'all weights are 0'],
        ['{models: [a, b], weights: [1]}', '2 models and 1 weights'], ['{models: [a, b], weights: [1, -1]}', "weight '-1'"],
        ['{models: [a, b], by: label}', 'by']]) {
        const p = check(route);
        t.check(p.status !== 0 && p.stderr.includes(why), `${route}: ${p.status} ${p.stderr}`);
    }
    const p = spawnSync(shoal, ['config', 'explain', 'routes.average.weights'], { encoding: 'utf8' });
    t.check(p.status === 0 && /not computed/.test(p.stdout), `config explain: ${p.stdout} ${p.stderr}`);
}

// A node that has the route in its file answers it as a whole: for a gateway that has the route too, and for one that
// only knows the node.
async function elsewhere() {
    write('[1, 3]');
    const alone = await t.start(shoal, ['--config', file]);
    const ask = async (url) => post(`${url}/v1/chat/completions`, { model: 'both', max_tokens: 16, temperature: 0,
        messages: [{ role: 'user', content: say }] });
    const want = (await ask(alone.url)).json.choices[0].message.content;
    await alone.stop();
    const sock = `unix:${path.join(t.tmp, 'average.sock')}`, route = path.join(t.tmp, 'route.yaml');
    const node = await new c.Member(shoal, 'node', 'average-node', ['--listen', sock, '--config', file]).start();
    fs.writeFileSync(route, 'routes:\n  - {name: both, average: {models: [small, big], weights: [1, 3]}}\n');
    for (const args of [['--config', route], []]) {
        const gateway = await new c.Member(shoal, 'gateway', 'average-gateway', ['--listen', '127.0.0.1:0', '--node', sock, ...args]).start();
        await t.until(async () => (await ask(gateway.url)).status === 200, 'the gateway has found the node');
        const r = await ask(gateway.url);
        t.same(r.json?.choices?.[0]?.message?.content, want, `by ${args}: ${r.text}`);
        await gateway.end('SIGTERM');
    }
    await node.end('SIGTERM');
}

// The node that generates an answer is killed: the other one, with the same models and weights, continues the same
// text.
async function moves() {
    const site = { nodes: [], shoal };
    for (const name of ['moves1', 'moves2']) {
        const address = `unix:${path.join(t.tmp, `${name}.sock`)}`;
        const node = new c.Member(shoal, 'node', name, ['--listen', address, '--config', file, '--name', name]);
        site.nodes.push(Object.assign(await node.start(), { address }));
    }
    site.gateway = await c.gateway(site, 'moves-gateway');
    const known = () => spawnSync(shoal, ['cluster', 'models', '--server', site.gateway.url], { encoding: 'utf8' }).stdout
        .split('\n').filter((l) => /^both +moves[12] +ready +[0-9a-f]{12} /.test(l)).length;
    let moved = false;
    for (let i = 0; !moved && i < 50; i++) { // it may finish before it is killed; each attempt uses a new prompt
        await t.until(() => known() === 2, 'both nodes have the average, with its version');
        const asked = { model: 'both', prompt: `the kitchen lights are ${i}`, max_tokens: 400, ignore_eos: true, temperature: 0.9, seed: i };
        const before = await t.metric(site.gateway, 'shoal_moved_total');
        let victim = null;
        const got = await c.stream(site.gateway.url, asked, (g) => {
            if (!victim && g.n >= 2) {
                victim = site.nodes.find((n) => n.name === g.node);
                victim.signal('SIGKILL');
            }
        });
        moved = await t.metric(site.gateway, 'shoal_moved_total') > before;
        await victim.ended;
        await victim.start();
        const want = await c.stream(site.gateway.url, asked);
        t.same(got.error, null, `killed in the middle: error of try ${i}`);
        t.same(got.text, want.text, `killed in the middle: text of try ${i}`);
    }
    t.check(moved, 'an average was hit in the middle');
    await c.close(site);
}

(async () => {
    await main();
    await elsewhere();
    await moves();
    t.finish();
})().catch(t.abandon);
