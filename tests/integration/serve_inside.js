#!/usr/bin/env node
// What clients and foreign servers cannot make the server call: an inner server, at an address of a private network, gets no
// connection through flows, webhooks, pulls and pushes, whatever the texts, names, redirects and realms say.
// Usage: serve_inside.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const listen = (s) => new Promise((done) => s.listen(0, '127.0.0.1', () => done(`127.0.0.1:${s.address().port}`)));

(async () => {
    const reached = [];
    const inner = http.createServer((req, res) => { reached.push(req.url); res.end('{"secret": "inside", "token": "x"}'); });
    inner.on('connection', () => reached.push('a connection'));
    const inside = await listen(inner);
    const safe = (what) => t.same(reached.splice(0).join(), '', `${what}: nothing reaches the inner server`);

    // a service that is allowed, and sends everybody there
    const asked = [];
    const sender = http.createServer((req, res) => {
        asked.push(req.url);
        req.resume();
        res.writeHead(asked.length % 2 ? 302 : 307, { location: `http://${inside}/redirected` }).end('{"temperature": 1}');
    });
    const service = await listen(sender);
    // a registry that asks for a token from there, redirects blobs, and sends uploads there
    let realm = inside;
    const registry = http.createServer((req, res) => {
        req.resume();
        if (/\/blobs\/uploads/.test(req.url))
            return res.writeHead(202, { location: `http://${inside}/upload` }).end();
        if (/locked/.test(req.url))
            return res.writeHead(401, { 'www-authenticate': `Bearer realm="http://${realm}/token",service="x"` }).end('{}');
        if (/moved/.test(req.url))
            return res.writeHead(301, { location: `http://${inside}/moved` }).end();
        return res.writeHead(404).end('{}');
    });
    const store = await listen(registry);
    const file = path.join(t.tmp, 'inside.yaml');
    fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply-draft.gguf"}
ollama: {dir: ${t.tmp}/made, registry: "http://${store}/"}
admin: loopback
sensors: [{name: vib, limits: "..7"}]
alarms: {allow: ["${service}"], webhooks: [{url: "http://${service}/hook"}]}
flows_allow: {hosts: ["${service}"]}
flows:
  - name: outside
    output: '\${get.status} \${get.text}'
    steps: [{name: get, do: call, url: "http://${service}/t/\${input.text}?q=\${input.text}", fallback: failed}]
`);
    const server = await t.start(shoal, ['--config', file]);
    const post = async (where, body, headers) => {
        const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body), headers }), where);
        return { status: r.status, text: await r.text() };
    };
    t.check(!(await (await fetch(`http://${inside}/`)).text()).includes('never'), 'the inner server can be reached from here');
    t.check(reached.splice(0).length > 0, 'and tells so');

    // flows: the text of a client is part of a path, never of the host; a redirect is an answer, not an order
    for (const text of ['hello', `//${inside}/x`, `@${inside}/`, `../../../${inside}`, `x HTTP/1.1\r\nHost: ${inside}\r\n\r\nGET / HTTP/1.1`,
        `x#@${inside}`, `\\\\${inside}\\x`, '..%2f..%2f', `?url=http://${inside}`]) {
        const before = asked.length, r = await post('/v1/process', { model: 'outside', text });
        t.check(r.status === 200 && !r.text.includes('inside"'), `${JSON.stringify(text)}: ${r.text}`);
        t.check(asked.slice(before).every((u) => u.startsWith('/t/') && !/[\s#\\]|\/\.\.\/|\/\//.test(u)), `the path is what the flow says: ${asked.slice(before)}`);
        safe(`a flow with ${JSON.stringify(text)}`);
    }
    for (const text of ['..', '.']) { // a value that would change the path of the flow
        const before = asked.length, r = await post('/v1/process', { model: 'outside', text });
        t.check(r.text.includes('failed'), `${text}: ${r.text}`);
        t.same(asked.length, before, `${text}: nothing is called`);
    }
    // webhooks
    const before = asked.length;
    await post('/v1/readings', { readings: [{ sensor: 'vib', value: 8 }] });
    await t.until(() => asked.slice(before).includes('/hook'), 'the webhook is called');
    safe('a webhook that is redirected');

    // pulls: names are names; tokens and blobs are not fetched from private networks
    for (const model of ['locked', 'moved', `http://${inside}/x`, `${inside}/x`, `${inside}/library/x:latest`, `user@${inside}/x`, 'hf.co/x', `//${inside}/x`]) {
        const r = await post('/api/pull', { model, insecure: true });
        t.check(r.status >= 400 || /"error"/.test(r.text), `pull of ${model}: ${r.text}`);
        safe(`pull of ${model}`);
    }
    realm = `${store}@${inside}`; // a host in the place of a user
    await post('/api/pull', { model: 'locked' });
    safe('a realm with a user');
    for (const from of [`http://${inside}/x`, `${inside}/x`, `file://${t.root}/models/reply.gguf`, '/etc/passwd', '../../etc/passwd'])
        t.check((await post('/api/create', { model: 'made', from })).status >= 400, `create from ${from}`);
    safe('create');
    t.same((await post('/api/create', { model: 'made', from: 'reply' })).status, 200, 'a model of ours');
    const pushed = await post('/api/push', { model: 'made' });
    t.check(/"error"/.test(pushed.text) || pushed.status >= 400, `a push whose upload is sent inside: ${pushed.text}`);
    safe('an upload that is redirected');
    // a page of another site cannot use the right of this machine
    t.check((await post('/api/pull', { model: 'x' }, { origin: 'http://evil.example' })).status >= 400, 'a foreign page');
    await server.stop();
    for (const s of [inner, sender, registry])
        s.close();
    t.finish();
})().catch(t.abandon);
