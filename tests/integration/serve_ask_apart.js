#!/usr/bin/env node
// Commands and flows whose models run in processes of their own (isolation: process): the same answers as in the
// server's process, even if such a process is killed halfway.
// Usage: serve_ask_apart.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const model = (name) => path.join(t.root, 'models', name);
const texts = ['turn off the kitchen lights and set the heating to 19 degrees', 'lock the front door', 'what is 7 times 8',
    'tunr off teh kichen lihgts', 'plese set the termostat to 21', 'it is dark in here', 'play some jazz in the living room', 'good morning'];

// apart: the models that run in a process of their own.
function config(name, apart) {
    const file = path.join(t.tmp, name), how = (m) => apart.includes(m) ? ', isolation: process' : '';
    fs.writeFileSync(file, `table: "${model('home.json')}"
home: "${model('demo-home.yaml')}"
cluster: {wait: 120s}
models:
  - {name: reader, path: "${model('reader.gguf')}"${how('reader')}}
  - {name: reply, path: "${model('reply.gguf')}"${how('reply')}}
flows:
  - name: both
    output: "\${kind.label}: \${say.text}"
    steps:
      - {name: kind, do: classify, model: reader, text: "\${input.text}"}
      - {name: say, do: generate, model: reply, text: "\${input.text}", max_tokens: 8, temperature: 0}
`);
    return ['--config', file];
}

async function post(server, where, what) {
    const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(what) }), `${where} ${JSON.stringify(what)}`);
    return { status: r.status, text: await r.text() };
}

const ask = (server, text, more = {}) => post(server, '/v1/process', { text, ...more });
const flow = (server, text) => post(server, '/v1/completions', { model: 'both', prompt: text });
// The parts that do not depend on time.
const said = (r) => `${r.status} ${r.status === 200 && r.text.startsWith('{"id"') ? JSON.parse(r.text).choices[0].text : r.text.replace(/"token":"\w+"/g, '')}`;

// Step times differ.
function explained(r) {
    const x = JSON.parse(r.text);
    return JSON.stringify([x.actions.map((a) => ({ ...a, token: undefined })), x.reply, x.clauses, x.steps?.map((s) => `${s.step} ${s.model} ${s.tokens}`)]);
}

// The server kills a worker that is stopped for five seconds.
function signal(pid, what) {
    try {
        process.kill(pid, what);
    } catch (e) {
        t.same(e.code, 'ESRCH', `${what} to a worker`);
    }
}

// The worker has the request and cannot answer it; then it is killed.
async function killed(server, name, run, want) {
    let pid, over = false;
    await t.until(() => (pid = t.worker_of(server, `${name}.gguf`)), `${name}: its worker has its model`);
    signal(pid, 'SIGSTOP');
    const answer = run().finally(() => { over = true; });
    await t.until(async () => over || await t.metric(server, `shoal_in_flight{model="${name}"}`) > 0, `${name}: the request is there`);
    signal(pid, 'SIGKILL');
    t.same(said(await answer), want, `${name}: its worker is killed in the middle`);
    await t.until(() => ![undefined, pid].includes(t.worker_of(server, `${name}.gguf`)), `${name}: another worker`);
    await t.until(async () => await t.metric(server, `shoal_in_flight{model="${name}"}`) === 0, `${name}: nothing is left`);
}

(async () => {
    const plain = await t.start(shoal, config('plain.yaml', []));
    const want = [], flows = [], details = [];
    for (const text of texts) {
        want.push(said(await ask(plain, text)));
        flows.push(said(await flow(plain, text)));
        details.push(explained(await ask(plain, text, { explain: true })));
    }
    t.check(/kitchen_lights/.test(want[3]) && /200/.test(want[3]), `a typo is understood: ${want[3]}`);
    for (const apart of [['reader', 'reply'], ['reader'], ['reply']]) {
        const server = await t.start(shoal, config(`${apart.join('-')}.yaml`, apart)), what = `apart: ${apart}`;
        for (let i = 0; i < texts.length; i++) {
            t.same(said(await ask(server, texts[i])), want[i], `${what}: ${texts[i]}`);
            t.same(said(await flow(server, texts[i])), flows[i], `${what}: a flow: ${texts[i]}`);
            t.same(explained(await ask(server, texts[i], { explain: true })), details[i], `${what}: explained: ${texts[i]}`);
        }
        t.same(said(await ask(server, texts[0], { reply: false })), said(await ask(plain, texts[0], { reply: false })), `${what}: actions only`);
        t.same(said(await ask(server, ' ')), said(await ask(plain, ' ')), `${what}: an empty text`);
        const many = await Promise.all(texts.map((text) => ask(server, text)));
        t.same(many.map(said).join(), want.join(), `${what}: all at once`);
        for (const name of apart) {
            await killed(server, name, () => ask(server, texts[0]), want[0]);
            await killed(server, name, () => flow(server, texts[0]), flows[0]);
        }
        // a client that disconnects while a worker has its command
        const gone = new AbortController();
        const pid = t.worker_of(server, `${apart[0]}.gguf`);
        signal(pid, 'SIGSTOP');
        const left = fetch(`${server.url}/v1/process`, { method: 'POST', signal: gone.signal, body: JSON.stringify({ text: texts[0] }) }).catch(() => {});
        await t.until(async () => await t.metric(server, `shoal_in_flight{model="${apart[0]}"}`) > 0, `${what}: a command is there`);
        gone.abort();
        await left;
        await t.until(async () => await t.metric(server, `shoal_in_flight{model="${apart[0]}"}`) === 0, `${what}: it is gone with its client`);
        signal(pid, 'SIGCONT');
        t.same(said(await ask(server, texts[1])), want[1], `${what}: the next one`);
        t.same((await server.stop()).code, 0, `${what}: the server ends`);
    }
    t.same((await plain.stop()).code, 0, 'the plain server ends');
    t.finish();
})().catch(t.abandon);
