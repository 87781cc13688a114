#!/usr/bin/env node
// A latency budget ends every call beside a worker that is stopped, also those that only count tokens and those of MCP.
// Usage: serve_hung.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const file = path.join(t.tmp, 'hung.yaml');
const MAX_TRIES = 5;
fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply-draft.gguf", isolation: process}
  - {name: router, path: "${t.root}/models/encoder", labels: router, isolation: process}
`);

const calls = {
    '/tokenize': { model: 'reply', text: 'hello' },
    '/detokenize': { model: 'reply', tokens: [1, 2] },
    '/mcp': { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'classify', arguments: { text: 'hello', model: 'router' } } },
};

async function send(server, where, headers = {}) {
    const r = await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(calls[where]),
        headers: { 'content-type': 'application/json', ...headers } }), where);
    return `${r.status} ${await r.text()}`;
}

function signal(pid, what) {
    try {
        process.kill(pid, what);
        return true;
    } catch (e) {
        t.same(e.code, 'ESRCH', `${what} to a worker`);
        return false;
    }
}

// All its threads: one of them must run before the kernel can stop the others.  Or it is gone.
function is_stopped(pid) {
    try {
        return fs.readdirSync(`/proc/${pid}/task`).every((id) => /\) [TtZX] /.test(fs.readFileSync(`/proc/${pid}/task/${id}/stat`, 'utf8')));
    } catch {
        return true;
    }
}

(async () => {
    const server = await t.start(shoal, ['--config', file]);
    for (const where of Object.keys(calls)) {
        const said = await send(server, where);
        t.check(/^200/.test(said) && !/"isError":true/.test(said), `${where}: works: ${said}`);
    }
    // The server kills a stopped worker after five seconds: a try that took nearly as long says nothing.
    let told = false;
    for (let i = 0; i < MAX_TRIES && !told; i++) {
        const stopped = [];
        for (const [k, model] of ['models/reply-draft.gguf', 'models/encoder/'].entries())
            await t.until(() => (stopped[k] = t.worker_of(server, model)), `the worker of ${model}`);
        const begin = Date.now();
        if (!stopped.map((pid) => signal(pid, 'SIGSTOP')).every(Boolean))
            continue;
        await t.until(() => stopped.every(is_stopped), 'they are stopped');
        const said = await Promise.all(Object.keys(calls).map((where) => send(server, where, { 'x-latency-budget-ms': '300' })));
        const soon = Date.now() - begin < 3000;
        told = stopped.map((pid) => signal(pid, 'SIGCONT')).every(Boolean) && soon;
        for (const [k, where] of told ? Object.keys(calls).entries() : [])
            t.check(where === '/mcp' ? /"isError":true/.test(said[k]) && /deadline|needs about/.test(said[k]) : /^504 .*deadline/.test(said[k]), `${where}: ${said[k]}`);
    }
    t.check(told, 'the calls end before the server gives the worker up');
    const again = await send(server, '/tokenize');
    t.check(/^200/.test(again), `and works again: ${again}`);
    t.same((await server.stop()).code, 0, 'ends well');
    t.finish();
})().catch(t.abandon);
