#!/usr/bin/env node
// /v1/feedback: thumbs tied to requests and traces; once each, of one's own answers only, in metrics and in a file.
// Usage: serve_feedback.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), reply = path.join(t.root, 'models/reply.gguf');
const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
const file = path.join(t.tmp, 'feedback.yaml'), lines = () => fs.readFileSync(path.join(process.env.XDG_STATE_HOME, 'shoal/feedback.jsonl'), 'utf8').trim().split('\n');
fs.writeFileSync(file, `models: [{name: reply, path: ${reply}}]
keys: [{name: anna, sha256: ${sha('a')}}, {name: ben, sha256: ${sha('b')}}, {name: root, sha256: ${sha('r')}, admin: true}]\n`);

(async () => {
    const server = await t.start(shoal, ['--only', '--config', file]);
    const post = async (where, body, key) => {
        const trace = crypto.randomBytes(16).toString('hex'), traceparent = `00-${trace}-b7ad6b7169203331-01`;
        const r = await t.within(fetch(`${server.url}${where}`, { method: 'POST', body: JSON.stringify(body), headers: { authorization: `Bearer ${key}`, traceparent } }), where);
        return { status: r.status, id: r.headers.get('x-request-id'), trace, text: await r.text() };
    };
    const ask = () => post('/v1/chat/completions', { model: 'reply', max_tokens: 4, messages: [{ role: 'user', content: 'the purple walrus' }] }, 'a');
    const vote = (id, rating, key = 'a') => post('/v1/feedback', { id, rating }, key);
    const counted = (model, rating) => t.metric(server, `shoal_feedback_total{model="${model}",rating="${rating}"}`);

    const one = await ask(), two = await ask(), three = await ask();
    t.check(one.id && two.trace, `ids: ${JSON.stringify(one)}`);
    t.same((await vote(one.id, 'up')).text, '{"counted":true}', 'by the request');
    t.same((await vote(one.id, 'down')).text, '{"counted":false}', 'once only');
    t.same((await vote(one.trace, 'down')).text, '{"counted":false}', 'also by its other id');
    t.same((await vote(two.trace, 'down')).text, '{"counted":true}', 'by the trace');
    t.same((await vote(three.id, 'up', 'b')).status, 404, 'of another key');
    t.same((await vote(three.id, 'up', 'r')).text, '{"counted":true}', 'an administrator');
    t.same(await counted('reply', 'up'), 2, 'up');
    t.same(await counted('reply', 'down'), 1, 'down');
    for (const [body, what] of [[{ id: one.id }, /required/], [{ rating: 'up' }, /required/], [{ id: one.id, rating: 'sideways' }, /up or down/],
        [{ id: one.id, rating: 'up', comment: 'x' }, /unknown field/]]) {
        const r = await post('/v1/feedback', body, 'a');
        t.check(r.status === 400 && what.test(r.text), `${JSON.stringify(body)}: ${r.status} ${r.text}`);
    }
    const gone = await vote('req_0', 'up');
    t.check(gone.status === 404 && /no request 'req_0'/.test(gone.text), `an unknown one: ${gone.text}`);
    const kept = lines().map((l) => JSON.parse(l));
    t.same(kept.map((l) => `${l.request} ${l.trace_id} ${l.model} ${l.rating}`).join(),
        [[one, 'up'], [two, 'down'], [three, 'up']].map(([r, v]) => `${r.id} ${r.trace} reply ${v}`).join(), 'the file');
    t.check(!lines().join().includes('walrus') && !lines().join().includes('anna'), 'without texts and names');
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
