#!/usr/bin/env node
// Flows of the configuration over HTTP: /v1/process, chat, routes, fallbacks, one deadline, calls to the outside with retries
// and idempotency keys, reload.  Usage: serve_flows.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);

(async () => {
    const calls = [], late = [];
    let failing = 0;
    const web = http.createServer((req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => {
            if (req.url === '/late') { // answers once the client has read part of the stream
                late.push(() => res.end('late'));
                return;
            }
            calls.push({ url: req.url, key: req.headers['idempotency-key'], body });
            if (req.url === '/never')
                return; // never answers
            const status = failing > 0 ? 503 : 200;
            failing--;
            res.writeHead(status).end('{"temperature": 21, "text": "warm"}');
        });
    });
    await new Promise((done) => web.listen(0, '127.0.0.1', done));
    const host = `127.0.0.1:${web.address().port}`;
    const file = path.join(t.tmp, 'flows.yaml');
    const text = (allowed) => `
flows:
  - name: helper
    text: what a text is about
    output: \${out.text}
    steps:
      - {name: intent, do: classify, model: intent, text: "\${input.text}"}
      - {name: slots, do: tag, model: entities, text: "\${input.text}"}
      - {name: out, do: template, text: "\${intent.label} in \${slots.values.place}"}
  - name: outside
    output: '\${get.json.temperature} \${get.status}'
    steps:
      - name: get
        do: call
        url: http://${host}/t/\${input.text}?room=\${input.room}
        payload: '{"room": "\${input.room}"}'
        json: true
        retry: 2
    inputs: [{name: room, default: hall}]
  - name: patient
    output: '\${get.text} \${second.text}'
    budget: 1m
    steps:
      - {name: get, do: call, url: "http://${host}/never", timeout: 50ms, on_timeout: too late, fallback: failed}
      - {name: second, do: template, text: "after \${get.text}"}
  - name: hurried
    budget: 200ms
    output: \${last.text}
    steps:
      - {name: get, do: call, url: "http://${host}/never", fallback_step: other}
      - {name: other, do: call, url: "http://${host}/never"}
      - {name: last, do: generate, model: reply, text: "\${get.text}", fallback: "no time, \${input.text}"}
  - name: talk
    output: "\${chat.text} \${hook.text}"
    steps:
      - {name: chat, do: generate, model: reply, text: "\${input.text}", max_tokens: 12}
      - {name: hook, do: call, method: get, url: "http://${host}/late", timeout: 60s}
  - name: nothing
    budget: 200ms
    output: \${get.text}
    steps: [{name: get, do: call, url: "http://${host}/never"}]
flows_allow: {hosts: [${allowed}]}
routes:
  - {name: desk, flow: helper, budget: 30s}
process: {flow: desk}
`;
    fs.writeFileSync(file, text(`"${host}"`));
    const server = await t.start(shoal, ['--config', file]);
    const post = async (where, body) => {
        const r = await t.within(fetch(`${server.url}${where}`, { method: 'POST', body: JSON.stringify(body) }), where);
        return { status: r.status, degraded: r.headers.get('x-shoal-degraded'), route: r.headers.get('x-shoal-route'), text: await r.text() };
    };
    const process_ = async (model, say, more) => {
        const r = await post('/v1/process', { model, text: say, explain: true, ...more });
        return { ...r, json: JSON.parse(r.text) };
    };

    // the route's flow, by default and by name
    let r = await post('/v1/process', { text: 'what is the weather like in Bern tomorrow' });
    t.same(r.status, 200, r.text);
    t.same(JSON.parse(r.text).text, 'get_weather in Bern', 'process.flow');
    t.same(r.route, 'desk', 'the route');
    t.same(r.degraded, null, 'not degraded');
    r = await process_('helper', 'what is the weather like in Bern tomorrow');
    t.same(r.json.steps.map((s) => `${s.name}:${s.state}`).join(), 'intent:done,slots:done,out:done', 'steps');
    t.check(r.json.steps[1].start_ms <= r.json.steps[0].start_ms + r.json.steps[0].ms, 'intent and slots do not wait for each other');
    t.same(r.json.steps[1].output.values.place, 'Bern', 'output of a step');
    r = await post('/v1/process', { model: 'ask', text: 'turn on the light in the kitchen' });
    t.check(JSON.parse(r.text).actions?.length === 1, `the home flow: ${r.text}`);
    r = await post('/v1/process', { model: 'intent', text: 'x' });
    t.same(r.status, 404, `a model is no flow: ${r.text}`);

    // a flow acts as a model wherever the answer is text
    r = await post('/v1/chat/completions', { model: 'desk', messages: [{ role: 'user', content: 'weather in Bern' }] });
    t.same(JSON.parse(r.text).choices?.[0].message.content, 'get_weather in Bern', `chat: ${r.text}`);
    r = await post('/v1/chat/completions', { model: 'helper', stream: true, messages: [{ role: 'user', content: 'weather in Bern' }] });
    t.check(/get_weather in Bern/.test(r.text) && /\[DONE\]/.test(r.text), `stream: ${r.text}`);
    r = await post('/v1/completions', { model: 'helper', prompt: 'weather in Bern' });
    t.same(JSON.parse(r.text).choices?.[0].text, 'get_weather in Bern', `completion: ${r.text}`);
    r = await post('/api/chat', { model: 'helper', stream: false, messages: [{ role: 'user', content: 'weather in Bern' }] });
    t.same(JSON.parse(r.text).message?.content, 'get_weather in Bern', `Ollama: ${r.text}`);
    r = await post('/v1/messages', { model: 'helper', max_tokens: 9, messages: [{ role: 'user', content: 'weather in Bern' }] });
    t.same(JSON.parse(r.text).content?.[0].text, 'get_weather in Bern', `Anthropic: ${r.text}`);
    r = await post('/v1/embeddings', { model: 'helper', input: 'x' });
    t.same(r.status, 400, `no vectors: ${r.text}`);
    const list = await (await t.within(fetch(`${server.url}/v1/models`), 'models')).text();
    t.check(/"id":"helper"[^}]*"task":"flow"/.test(list), 'listed');

    // a stream sends text before the flow is complete: the hook answers only after the first text was read
    for (const [where, body, of] of [['/v1/process', { text: 'turn on the light' }, (e) => (e.type === 'text' ? e.text : '')],
        ['/v1/chat/completions', { messages: [{ role: 'user', content: 'turn on the light' }] }, (e) => e.choices?.[0]?.delta.content || '']]) {
        const res = await t.within(fetch(`${server.url}${where}`, { method: 'POST',
            body: JSON.stringify({ model: 'talk', stream: true, ...body }) }), `${where}: the stream begins`);
        let all = '', early = '';
        const reader = res.body.getReader(), decoder = new TextDecoder();
        for (;;) {
            const { done, value } = await t.within(reader.read(), `${where}: more of the stream`);
            if (done)
                break;
            all += decoder.decode(value, { stream: true });
            const said = all.split('\n').filter((l) => /^data: .*\}$/.test(l)).map((l) => of(JSON.parse(l.slice(6)))).join('');
            if (said && !early) {
                early = said;
                await t.until(() => late.length > 0, `${where}: the hook is called`);
                late.pop()();
            }
        }
        const said = all.split('\n').filter((l) => /^data: .*\}$/.test(l)).map((l) => of(JSON.parse(l.slice(6)))).join('');
        t.check(early && said.startsWith(early) && said.endsWith(' late') && said.length > early.length, `${where}: ${all}`);
    }

    // calls: values are escaped, failures are retried with the same key
    failing = 2;
    r = await process_('outside', 'a/../b', { input: { room: 'x"y&z' } });
    t.same(r.json.text, '21 200', r.text);
    t.same(calls.length, 3, 'two failures and an answer');
    t.same(calls[2].url, '/t/a%2F..%2Fb?room=x%22y%26z', 'the path');
    t.same(calls[2].body, '{"room": "x\\"y&z"}', 'the body');
    t.check(calls[0].key && calls.every((c) => c.key === calls[0].key), `one key: ${calls.map((c) => c.key)}`);
    failing = 9;
    r = await process_('outside', 'x');
    t.check(r.status >= 500 && /503/.test(r.text), `it never answers well: ${r.text}`);
    failing = 0;
    r = await process_('outside', 'x', { input: { rooom: 'y' } });
    t.same(r.status, 400, `an unknown input: ${r.text}`);
    r = await process_('outside', 'x', { input: 3 });
    t.same(r.status, 400, `no object: ${r.text}`);

    // a step that takes too long; one deadline for all steps; no answer at all
    r = await process_('patient', 'x');
    t.same(r.json.text, 'too late after too late', r.text);
    t.same(r.degraded, '1', 'marked');
    t.same(r.json.degraded, true, 'degraded');
    t.same(r.json.steps[0].timeout, true, 'why');
    r = await process_('hurried', 'sorry');
    t.same(r.status, 200, r.text);
    t.same(r.json.text, 'no time, sorry', 'the answer arrives');
    t.same(r.degraded, '1', 'marked');
    r = await post('/v1/chat/completions', { model: 'hurried', messages: [{ role: 'user', content: 'sorry' }] });
    t.same(JSON.parse(r.text).choices?.[0].message.content, 'no time, sorry', `chat: ${r.text}`);
    t.same(r.degraded, '1', 'marked');
    r = await process_('nothing', 'x');
    t.same(r.status, 504, r.text);
    t.check(/step 'get'/.test(r.text), `which step: ${r.text}`);

    // a reload: an invalid file changes nothing, a valid one does
    fs.writeFileSync(file, text(''));
    server.child.kill('SIGHUP');
    await t.until(() => /flows_allow\.hosts/.test(server.log), 'a file that is refused');
    r = await post('/v1/process', { text: 'weather in Bern' });
    t.same(JSON.parse(r.text).text, 'get_weather in Bern', 'the old flows go on');
    fs.writeFileSync(file, text(`"${host}"`).replace('} in $', '} at $'));
    server.child.kill('SIGHUP');
    await t.until(async () => /get_weather at Bern/.test((await post('/v1/process', { text: 'weather in Bern' })).text), 'the new flow');
    web.closeAllConnections();
    await new Promise((done) => web.close(done));
    t.same((await server.stop()).code, 0, 'a clean end');
    t.finish();
})().catch(t.abandon);
