#!/usr/bin/env node
// Routes that combine several models: cascade, vote, consensus, rerank, refine; calibrated confidences and drift.
// Usage: serve_ensembles.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const small = `${t.root}/models/reply-draft.gguf`, big = `${t.root}/models/reply.gguf`;
const encoder = `${t.root}/models/encoder`;
const say = 'act: turn_off; device: lights; room: kitchen; result: done';

async function post(url, body, headers = {}) {
    const r = await fetch(url, { method: 'POST', body: JSON.stringify(body), headers });
    const text = await r.text();
    return { status: r.status, model: r.headers.get('x-shoal-model'), ensemble: r.headers.get('x-shoal-ensemble'),
        degraded: r.headers.get('x-shoal-degraded'), text, json: r.headers.get('content-type') === 'application/json' ? JSON.parse(text) : null };
}

const events = (text) => text.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
// The final text in a client that understands the marked event.
function shown(list) {
    let out = '';
    for (const e of list)
        out = e.shoal?.replace ? '' : out + (e.choices[0]?.delta?.content ?? '');
    return out;
}
const steps = (r) => r.json.shoal.ensemble.steps.map((s) => `${s.model}${s.answered ? '+' : '-'}`).join();

async function main() {
    // Made by hand: all labelled texts were answered with certainty, so the confidences of this test count as drift.
    const calibration = path.join(t.tmp, 'cold.json');
    fs.writeFileSync(calibration, JSON.stringify({ shoal: 'calibration', version: 1, temperature: 8, rows: 100,
        confidence: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }));
    const file = path.join(t.tmp, 'ensembles.yaml');
    fs.writeFileSync(file, `sessions: {store: "sqlite:${path.join(t.tmp, 'sessions.db')}", key_file: "${path.join(t.tmp, 'sessions.key')}"}
models:
  - {name: small, path: "${small}"}
  - {name: big, path: "${big}"}
  - {name: enc, path: "${encoder}", labels: clinc150}
  - {name: cold, path: "${encoder}", labels: clinc150, calibration: "${calibration}"}
  - {name: other, path: "${encoder}", labels: router}
routes:
  - {name: trusting, cascade: {models: [small, big], threshold: 0}, cache: false}
  - {name: careful, cascade: {models: [small, big], threshold: 1}, cache: false}
  - {name: marked, cascade: {models: [small, big], threshold: 1, hold: 0, replace: true}, cache: false}
  - {name: bound, cascade: {models: [small, big], threshold: 1, hold: 0}, cache: false}
  - {name: broken, cascade: {models: [small, nowhere], threshold: 1}, cache: false}
  - {name: sure, cascade: {models: [enc, cold], threshold: 0.9}}
  - {name: lead, cascade: {models: [cold, enc], threshold: 0.9, measure: margin}}
  - {name: panel, vote: {models: [enc, other], weights: [1, 2]}}
  - {name: mixed, vote: {models: [enc, cold], by: probability}}
  - {name: most, consensus: {model: small, samples: 5}, cache: false}
  - {name: best, rerank: {model: small, judge: big, samples: 3, temperature: 1.5}, cache: false}
  - {name: twice, refine: {model: small, better: big}, cache: false}
`);
    const server = await t.start(shoal, ['--config', file]);
    const url = server.url;
    const chat = (model, more = {}) => post(`${url}/v1/chat/completions`,
        { model, max_tokens: 12, temperature: 0, messages: [{ role: 'user', content: say }], ...more });
    const classify = (model, input, more = {}) => post(`${url}/v1/classify`, { model, input, ...more });
    const one = (await chat('small')).json.choices[0].message.content;
    const two = (await chat('big')).json.choices[0].message.content;

    // a cascade of generations
    let r = await chat('trusting');
    t.same(`${r.status} ${r.model} ${r.ensemble} ${r.json.model} ${steps(r)}`, '200 small cascade small small+', r.text);
    t.same(r.json.choices[0].message.content, one, 'the small model is trusted');
    t.check(r.json.shoal.ensemble.steps[0].sureness > 0, `its sureness: ${r.text}`);
    r = await chat('careful');
    t.same(`${r.model} ${steps(r)}`, 'big small-,big+', 'it is left');
    t.same(r.json.choices[0].message.content, two, 'and the big one answers');
    t.same(r.json.choices[0].logprobs, null, 'log-probabilities stay inside');
    r = await chat('careful', { logprobs: true });
    t.check(r.json.choices[0].logprobs.content.length > 0, 'unless they were asked for');
    let list = events((await chat('careful', { stream: true })).text);
    t.check(list.every((e) => e.model === 'big' && !e.shoal?.replace), 'a stream: left before anything was sent');
    t.same(shown(list), two, 'its text');
    const told = { stream: true, stream_options: { replace: true } };
    list = events((await chat('marked', { stream: true })).text);
    t.same(`${list.at(-1).model} ${shown(list)}`, `small ${one}`, 'a stream: a client that did not ask for marked events gets one answer');
    list = events((await chat('marked', told)).text);
    t.same(list.filter((e) => e.shoal?.replace).length, 1, 'a stream: replaced by a marked event');
    t.same(`${list[0].model} ${list.at(-1).model} ${shown(list)}`, `small big ${two}`, 'the text behind it');
    list = events((await chat('bound', { stream: true })).text);
    t.same(`${list.at(-1).model} ${shown(list)}`, `small ${one}`, 'a client that cannot be told keeps the first answer');
    t.same((await chat('bound')).model, 'big', 'a whole answer needs no telling');
    r = await chat('broken', { max_tokens: 3 }); // so short that the small model is complete before it is judged
    t.same(`${r.status} ${r.model} ${r.degraded} ${steps(r)}`, '200 small 1 small-,nowhere-,small+', `fallback: ${r.text}`);

    // a cascade of classifications: each text goes only as far as needed
    r = await classify('sure', ['what is my bank balance', 'bla bla zork']);
    t.same(`${r.status} ${r.model} ${r.ensemble} ${steps(r)}`, '200 enc cascade enc+,cold+', r.text);
    const plain = (await classify('enc', ['what is my bank balance', 'bla bla zork'])).json.data;
    const cold = (await classify('cold', 'bla bla zork')).json.data[0];
    t.same(JSON.stringify(r.json.data[0]), JSON.stringify(plain[0]), 'the sure one is the first model\'s');
    t.same(r.json.data[1].confidence, cold.confidence, 'the other one the second\'s');
    t.check(cold.confidence !== plain[1].confidence && cold.label === plain[1].label, 'a calibration changes no answers');
    t.same((await classify('cold', 'what is my bank balance', { labels: 'snips' })).json.data[0].confidence,
        (await classify('enc', 'what is my bank balance', { labels: 'snips' })).json.data[0].confidence,
        'and is for its own label set');
    r = await classify('lead', 'what is my bank balance');
    t.same(`${r.model} ${steps(r)}`, 'enc cold-,enc+', `the margin: ${r.text}`);

    // votes
    r = await classify('panel', 'what is my bank balance');
    const routed = (await classify('other', 'what is my bank balance')).json.data[0].label;
    t.same(`${r.json.data[0].label} ${r.json.data[0].confidence.toFixed(3)}`, `${routed} 0.667`, `a vote: ${r.text}`);
    r = await classify('mixed', 'what is my bank balance');
    t.same(r.json.data[0].label, plain[0].label, 'a vote by probability');
    t.check(Math.abs(r.json.data[0].labels.reduce((s, l) => s + l.score, 0) - 1) < 1e-3 ||
        r.json.data[0].labels.length < 150, 'shares of the votes');

    // several answers of one model
    r = await chat('most', { seed: 7 });
    t.check(/^[1-5] of 5 answers agree$/.test(r.json.shoal.ensemble.steps[0].what), `consensus: ${r.text}`);
    t.same((await chat('most', { seed: 7 })).json.choices[0].message.content, r.json.choices[0].message.content, 'by seed');
    r = await chat('best', { seed: 7 });
    const scores = r.json.shoal.ensemble.steps;
    t.same(scores.length, 3, `rerank: ${r.text}`);
    t.check(scores.every((s) => s.sureness > 0 && s.sureness <= scores.find((x) => x.answered).sureness), 'the likeliest');
    r = await post(`${url}/v1/completions`, { model: 'best', prompt: 'the lights', max_tokens: 4, seed: 1 });
    t.same(`${r.status} ${r.json.shoal.ensemble.steps.length}`, '200 3', `rerank of a text: ${r.text}`);

    // refine
    list = events((await chat('twice', { stream: true })).text);
    t.same(`${shown(list)} ${list.every((e) => e.choices.length > 0)}`, `${one} true`, 'refine: a plain client gets one text');
    list = events((await chat('twice', told)).text);
    t.same(shown(list), two, 'refine: the better answer at last');
    t.check(list.at(-1).choices[0].finish_reason === 'stop' || list.at(-1).choices[0].finish_reason === 'length', 'its end');
    r = await chat('twice');
    t.same(`${r.model} ${r.json.choices[0].message.content}`, `big ${two}`, 'refine: a whole answer');
    r = await chat('twice', { session_id: 'kept' });
    t.same(`${r.model} ${r.json.choices[0].message.content}`, `big ${two}`, 'refine: in a session');
    const kept = await (await fetch(`${url}/v1/sessions/kept`)).json();
    t.same(kept.messages.map((m) => m.content).join('|'), `${say}|${two}`, 'which keeps the better answer alone');
    const messages = [{ role: 'user', content: say }];
    for (const [where, body] of [['/api/chat', { messages, options: { num_predict: 12 } }],
        ['/v1/messages', { messages, max_tokens: 12 }], ['/v1/responses', { input: say, max_output_tokens: 12 }],
        ['/completion', { prompt: say, n_predict: 12 }]]) {
        r = await post(url + where, { model: 'twice', stream: false, ...body });
        t.same(`${r.status} ${r.model} ${r.json.model}`, '200 big big', `${where}: a whole answer is the better one`);
        r = await post(url + where, { model: 'twice', stream: true, ...body });
        t.same(`${r.status} ${r.model}`, '200 small', `${where}: a stream without marked events has the fast answer`);
    }

    // combinations that are refused
    r = await classify('most', 'x');
    t.check(r.status === 400 && /it is for generations/.test(r.text), r.text);
    r = await chat('panel');
    t.check(r.status === 400 && /it is for classifications/.test(r.text), r.text);
    r = await chat('most', { n: 2 });
    t.check(r.status === 400 && r.json.error.param === 'n', r.text);
    r = await post(`${url}/v1/route`, { model: 'careful', text: 'x' });
    t.same(`${r.json.ensemble.kind} ${steps({ json: { shoal: r.json } })}`, 'cascade small-,big-', 'a decision without running');
    const p = spawnSync(shoal, ['route', '--server', url, '--route', 'careful', 'x'], { encoding: 'utf8' });
    t.same(`${p.status} ${p.stdout}`, '0 small (route careful)\ncascade: small, big\n', `shoal route: ${p.stderr}`);

    // drift
    const metric = async (name) => Number((await (await fetch(`${url}/metrics`)).text())
        .match(new RegExp(`^${name}\\{model="cold"\\} (\\S+)$`, 'm'))?.[1] ?? NaN);
    t.check(Number.isNaN(await metric('shoal_confidence_drift')), 'nothing is compared before 500 texts');
    const texts = Array.from({ length: 600 }, (_, i) => `what is my bank balance number ${i}`);
    t.same((await classify('cold', texts, { top: 1 })).status, 200, 'many texts');
    t.check(await metric('shoal_confidence_drift') > 0.25, 'the drift');
    t.same(await metric('shoal_confidence_drift_alarm'), 1, 'the alarm');
    await t.until(() => /mod=drift .*model=cold/.test(server.log), `the log says so: ${server.log.slice(-500)}`);
    t.same((await server.stop()).code, 0, 'exit');
}

(async () => {
    await main();
    t.finish();
})().catch(t.abandon);
