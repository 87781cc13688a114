#!/usr/bin/env node
// A deferred flow that kill -9 interrupts in the middle of an HTTP call repeats the call under the same Idempotency-Key,
// so that the other side can tell that it is the same.
// Usage: serve_deferred.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const keys = [];
let answers = false;

(async () => {
    const hook = http.createServer((req, res) => {
        keys.push(req.headers['idempotency-key']);
        if (answers)
            res.end('{"done": true}');
    });
    await new Promise((done) => hook.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${hook.address().port}`, file = path.join(t.tmp, 'config.yaml');
    fs.writeFileSync(file, `deferred: {file: "${path.join(t.tmp, 'deferred.db')}"}
flows_allow: {hosts: ["${host}"]}
flows:
  - name: order
    output: "\${call.text}"
    steps:
      - {name: call, do: call, method: post, url: "http://${host}/order", timeout: 60s}
`);
    let server = await t.start(shoal, ['--config', file]);
    const call = async (method, where, body, headers) => {
        const r = await t.within(fetch(server.url + where, { method, body: body && JSON.stringify(body), headers }), where);
        return { status: r.status, ...await r.json() };
    };
    const ask = (prompt, headers = {}) => call('POST', '/v1/completions', { model: 'order', prompt },
        { 'x-shoal-defer': '1h', ...headers });
    const first = await ask('one');
    t.same(first.status, 202, `deferred: ${JSON.stringify(first)}`);
    for (let n = 1; n <= 3; n++) {
        await t.until(() => keys.length >= n, `call ${n}`);
        await server.stop('SIGKILL');
        answers = n === 3;
        server = await t.start(shoal, ['--config', file]);
    }
    let got;
    await t.until(async () => (got = await call('GET', `/v1/deferred/${first.id}`)).status !== 202, 'the answer');
    t.same(got.status, 200, `the answer: ${JSON.stringify(got)}`);
    t.same(keys.length, 4, 'calls');
    t.same(new Set(keys).size, 1, `keys of one request: ${keys}`);
    const second = await ask('one'); // the same text, but another request
    await t.until(async () => (await call('GET', `/v1/deferred/${second.id}`)).status === 200, 'the second answer');
    t.check(keys[4] && keys[4] !== keys[0], `the key of another request: ${keys}`);
    await server.stop();
    hook.closeAllConnections();
    hook.close();
    t.finish();
})().catch(t.abandon);
