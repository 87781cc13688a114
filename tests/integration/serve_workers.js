#!/usr/bin/env node
// Models in processes of their own (isolation: process): the same answers as in the server's process; workers that are
// killed, stopped, or given damaged files cost their requests a pause at most, and the other models nothing.
// Usage: serve_workers.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const model = (name) => path.join(t.root, 'models', name);
const prompts = ['ask: what is the weather', 'the kitchen lights are', 'set the heating to', 'the garage door is open and'];
const body = (i, more) => ({ prompt: prompts[i % prompts.length], max_tokens: 200, ignore_eos: true,
    ...(i % 2 ? { temperature: 0.9, seed: 100 + i } : { temperature: 0 }), ...more });
// A stream to be hit halfway. It must outlast a client that reads late because the machine is busy: a worker killed
// after its stream has ended is restarted too, with a longer delay each time.
const long = (i) => body(i, { model: 'reply', max_tokens: 900 });
const MAX_TRIES = 10;

function config(name, text) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

async function post(server, where, what, headers = {}) {
    const text = JSON.stringify(what);
    const ask = async () => {
        const r = await fetch(server.url + where, { method: 'POST', body: text, headers });
        return { status: r.status, ...await r.json() };
    };
    return t.within(ask(), `POST ${where} ${text}`);
}

// Workers are children of the server; a model's worker is the one that has its file mapped.
function workers(server) {
    const pids = fs.readFileSync(`/proc/${server.child.pid}/task/${server.child.pid}/children`, 'utf8');
    const all = fs.readdirSync(`/proc/${server.child.pid}/task`).map((id) => {
        try {
            return fs.readFileSync(`/proc/${server.child.pid}/task/${id}/children`, 'utf8');
        } catch {
            return '';
        }
    }).join(' ');
    return [...new Set(`${pids} ${all}`.split(/\s+/).filter(Boolean).map(Number))];
}

function worker_of(server, file) {
    return workers(server).find((pid) => {
        try {
            return fs.readFileSync(`/proc/${pid}/maps`, 'utf8').includes(file);
        } catch {
            return false;
        }
    });
}

async function state_of(server, name) {
    return (await t.admin(server)).models.find((m) => m.model === name);
}

async function ready(server, name) {
    await t.until(async () => (await state_of(server, name)).state === 'ready', `${name} is ready`);
}

// A stream during which the worker is hit: the text equals that of an undisturbed run.
async function disturbed(server, i, want, signal) {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
        let pid;
        await t.until(() => (pid = worker_of(server, 'reply.gguf')), 'the worker has its model');
        await ready(server, 'reply');
        const before = await t.metric(server, 'shoal_worker_moved_total');
        const got = await c.stream(server.url, long(i), (g) => {
            if (g.n === 2)
                process.kill(pid, signal);
        });
        t.same(got.error, null, `stream ${i}: error`);
        t.same(got.text, want.text, `stream ${i}: text`);
        t.same(got.finish, want.finish, `stream ${i}: finish`);
        t.same(JSON.stringify(got.usage), JSON.stringify(want.usage), `stream ${i}: usage`);
        await t.until(() => ![undefined, pid].includes(worker_of(server, 'reply.gguf')), 'the worker is replaced');
        if (await t.metric(server, 'shoal_worker_moved_total') > before)
            return Math.max(...got.gaps.slice(1));
    }
    throw new Error(`none of ${MAX_TRIES} streams was hit in the middle`);
}

async function same_answers(plain, apart) {
    for (let i = 0; i < 4; i++) {
        const want = await c.stream(plain.url, body(i, { model: 'reply' }));
        const got = await c.stream(apart.url, body(i, { model: 'reply' }));
        t.same(got.error, null, `stream ${i}`);
        t.same(got.text, want.text, `text ${i}`);
        t.same(got.finish, want.finish, `finish ${i}`);
        t.same(JSON.stringify(got.usage), JSON.stringify(want.usage), `usage ${i}`);
    }
    const asks = [
        ['/v1/completions', body(1, { model: 'reply', n: 2, logprobs: 3, max_tokens: 20 }), (x) => x.choices],
        ['/v1/chat/completions', { model: 'reply', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20,
            temperature: 0 }, (x) => x.choices],
        ['/v1/chat/completions', { model: 'reply', messages: [{ role: 'user', content: 'hello' }], max_tokens: 40, temperature: 0,
            tool_choice: 'required', tools: [{ type: 'function', function: { name: 'light', parameters: { type: 'object',
                properties: { on: { type: 'boolean' } }, required: ['on'] } } }] },
        (x) => x.choices?.[0].message.tool_calls?.map((y) => y.function)],
        ['/completion', { model: 'reply', prompt: [5, 'the kitchen', 6], n_predict: 4, temperature: 1, seed: 3, n_probs: 2,
            post_sampling_probs: true, logit_bias: [[' the', -5]] }, (x) => x.completion_probabilities?.map((y) => y.top_probs)],
        ['/v1/completions', { model: 'reply', prompt: ['a', 'b'], echo: true, max_tokens: 3, temperature: 0 }, (x) => x.choices],
        ['/v1/classify', { model: 'intent', input: ['turn off the lights', 'what time is it'] }, (x) => x.data],
        ['/v1/classify', { input: 'turn off the lights' }, (x) => x.data],
        ['/v1/classify', { model: 'narrow', input: 'play some music' }, (x) => x.data],
        ['/v1/classify', { model: 'intent', labels: 'nope', input: 'a' }, (x) => x.error],
        ['/v1/completions', { model: 'reply', prompt: 'a', max_tokens: -2 }, (x) => x.error],
        ['/v1/classify', { model: 'reply', input: 'a' }, (x) => x.error],
        ['/v1/completions', { model: 'nobody', prompt: 'a' }, (x) => x.error],
    ];
    for (const [where, what, part] of asks) {
        const want = await post(plain, where, what), got = await post(apart, where, what);
        t.check(part(want), `${where} ${JSON.stringify(what)}: ${JSON.stringify(want)}`);
        t.same(got.status, want.status, `${where} ${JSON.stringify(what)}`);
        t.same(JSON.stringify(part(got)), JSON.stringify(part(want)), `${where} ${JSON.stringify(what)}`);
    }
}

async function crashes(server) {
    const want = [];
    for (let i = 0; i < 4; i++)
        want.push(await c.stream(server.url, long(i)));
    for (let i = 0; i < 4; i++)
        console.log(`killed: the longest pause was ${(await disturbed(server, i, want[i], 'SIGKILL')).toFixed(0)} ms`);
    console.log(`stopped: the longest pause was ${(await disturbed(server, 0, want[0], 'SIGSTOP')).toFixed(0)} ms`);
    const now = await state_of(server, 'reply');
    t.check(now.restarts >= 5, `restarts: ${now.restarts}`);
    t.same(now.isolation, 'process', 'isolation');
    t.check(await t.metric(server, 'shoal_worker_restarts_total{model="reply"}') >= 5, 'shoal_worker_restarts_total');
    await t.until(() => /mod=registry msg=.*signal 9.*restarting it in \d+ ms/.test(server.log), 'the log tells of the signal');
    await t.until(() => /silent for \d+ ms/.test(server.log), 'the log tells of silence');
    t.same(await t.metric(server, 'shoal_worker_lost_total'), 0, 'lost');
}

// What a worker has: nothing of the server's environment but what it needs, and no capability, also as root.
function least_privilege(server) {
    t.check(fs.readFileSync(`/proc/${server.child.pid}/environ`, 'utf8').includes('secret-4417'), 'the server has its password');
    for (const pid of workers(server)) {
        const names = fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean).map((v) => v.split('=')[0]);
        const known = /^(HOME|XDG_DATA_HOME|SHOAL_ONNXRUNTIME|LD_LIBRARY_PATH|[ALTU]B?SAN_OPTIONS)$/;
        t.same(names.filter((v) => !known.test(v)).join(), '', 'environment of a worker');
        const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
        for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
            t.check(new RegExp(`${set}:\\s*0+\\n`).test(status), `${set} of a worker: ${status}`);
    }
}

// Operations that the sandbox must block, tried inside it.
function probe() {
    const cache = path.join(t.tmp, 'probe-cache');
    fs.mkdirSync(cache);
    const file = path.join(t.tmp, 'probe.gguf');
    fs.copyFileSync(model('reply-draft.gguf'), file);
    const said = Object.fromEntries(execFileSync(shoal, ['worker', '--probe', file, cache]).toString().trim().split('\n')
        .map((line) => line.split(': ')));
    console.log(`the kernel lacks: ${said.missing || 'nothing'}`);
    t.same(said['read model'], 'ok', 'read the model');
    t.same(said['write cache'], 'ok', 'write to the cache');
    // missing kernel features are listed, and then not expected
    for (const what of ['stat model', 'stat cache', 'access model', 'fstat'])
        t.same(said[what], 'ok', what);
    const calls = ['socket', 'unix socket', 'ptrace', 'kill', 'fork', 'exec', 'statx /etc/passwd', 'name /etc/passwd',
        'readlink /proc/self/exe', 'all cpus', 'priority -20', 'priority 0', 'chroot', 'chown'];
    const files = ['write model', 'open /etc/passwd', 'open /proc/self/mem', 'write /tmp', 'stat /etc/passwd', 'lstat /etc/passwd',
        'access /etc/passwd'];
    for (const what of [...(/seccomp/.test(said.missing) ? [] : calls), ...(/Landlock/.test(said.missing) ? [] : files)])
        t.check(/not permitted|denied/.test(said[what]), `${what}: ${said[what]}`);
    t.same(said.exec === undefined, false, 'the probe came to its end');
}

// Files that are not models, and limits that are too small: those models fail and say why, the others answer.
async function bad_models(plain) {
    const bytes = fs.readFileSync(model('reply-draft.gguf'));
    const file = (name, data) => {
        fs.writeFileSync(path.join(t.tmp, name), data);
        return path.join(t.tmp, name);
    };
    const flipped = Buffer.from(bytes);
    for (let i = 24; i < 4096; i += 7) // in the middle of names and counts
        flipped[i] ^= 0xff;
    const site = await t.start(shoal, config('bad.yaml', `
models:
  - {name: cut, path: "${file('cut.gguf', bytes.subarray(0, bytes.length / 2))}", isolation: process}
  - {name: flipped, path: "${file('flipped.gguf', flipped)}", isolation: process}
  - {name: empty, path: "${file('empty.gguf', '')}", isolation: process}
  - {name: gone, path: "${path.join(t.tmp, 'gone.gguf')}", isolation: process}
  - {name: large, path: "${model('reply-draft.gguf')}", isolation: process, isolation_memory: 600MiB, context: 1000000}
  - {name: tight, path: "${file('tight.gguf', bytes)}", isolation: process, isolation_memory: 2GiB}
  - {name: reply, path: "${model('reply.gguf')}", isolation: process, nice: 5}
  - {name: lazy, path: "${file('lazy.gguf', bytes)}", isolation: process, lazy: true}
`), { admin: true });
    for (const name of ['cut', 'flipped', 'empty', 'gone', 'large']) {
        const m = await state_of(site, name);
        t.same(m.state, 'failed', `${name}: state`);
        t.check(m.error.length > 10, `${name}: ${m.error}`);
        const got = await post(site, '/v1/completions', { model: name, prompt: 'a' });
        t.same(got.status, 503, `${name}: ${JSON.stringify(got)}`);
        t.check(/could not be loaded/.test(got.error.message), `${name}: ${got.error.message}`);
        console.log(`${name}: ${m.error}`);
    }
    t.same((await state_of(site, 'tight')).state, 'ready', 'a limit that suffices');
    const want = await post(plain, '/v1/completions', body(0, { model: 'reply' }));
    const got = await post(site, '/v1/completions', body(0, { model: 'reply' }));
    t.same(got.choices?.[0].text, want.choices[0].text, 'the others answer');
    // loaded by the first request, unloaded on demand
    t.same((await state_of(site, 'lazy')).state, 'unloaded', 'lazy');
    const n = workers(site).length;
    t.same((await post(site, '/v1/completions', { model: 'lazy', prompt: 'a', max_tokens: 2 })).status, 200, 'lazy answers');
    t.same(workers(site).length, n + 1, 'its worker runs');
    t.same((await t.admin(site, { model: 'lazy', action: 'unload' })).status, 200, 'unload');
    await t.until(() => workers(site).length === n, 'its worker has ended');
    t.same((await state_of(site, 'lazy')).restarts, 0, 'that was no accident');
    // tokenizers
    for (const [where, what] of [['/tokenize', { text: 'turn off the lights' }], ['/tokenize', { text: 'hello '.repeat(5000), with_pieces: true }],
        ['/detokenize', { tokens: [1, 40, 41, 300] }], ['/detokenize', { tokens: [99999999] }], ['/tokenize', { text: '' }]]) {
        const here = await post(plain, where, { model: 'reply', ...what }), there = await post(site, where, { model: 'reply', ...what });
        t.same(JSON.stringify(there), JSON.stringify(here), `${where} in a worker`);
    }
    // a client that disconnects
    const gone = new AbortController();
    const half = await t.within(fetch(`${site.url}/v1/completions`, { method: 'POST', signal: gone.signal,
        body: JSON.stringify(body(0, { model: 'reply', max_tokens: 100000, stream: true })) }), 'a stream that is given up');
    await t.within(half.body.getReader().read(), 'the first chunk of it');
    gone.abort();
    await t.until(async () => await t.metric(site, 'shoal_cancelled_total{model="reply"}') === 1, 'cancelled');
    await t.until(async () => await t.metric(site, 'shoal_in_flight{model="reply"}') === 0, 'nothing in flight');
    // workers end with the server, however it ends
    const left = workers(site);
    site.child.kill('SIGKILL');
    await site.ended;
    await t.until(() => left.every((pid) => !fs.existsSync(`/proc/${pid}`) ||
        /State:\s+Z/.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))), 'workers end with a server that is killed');
}

function bad_configs() {
    const cases = [
        ['isolation: thread', 'isolation must be one of: none, process'],
        ['nice: 5', 'need isolation: process'],
        ['cpus: "1"', 'need isolation: process'],
        ['isolation: process, nice: 20', 'nice must be from 0 to 19'],
        ['isolation: process, cpus: "1-"', 'cpus must be a list'],
        ['isolation: process, cpus: "3-1"', 'cpus must be a list'],
        ['isolation: process, cpus: ""', 'cpus must be a list'],
        ['isolation: process, cpus: "-1"', 'cpus must be a list'],
        ['isolation: process, cpus: "1,"', 'cpus must be a list'],
        ['isolation: process, cpus: "0-5000"', 'cpus must be a list'],
    ];
    for (const [keys, want] of cases) {
        let text = '';
        try {
            execFileSync(shoal, ['serve', '--check', ...config('wrong.yaml', `models:\n  - {name: m, path: x, ${keys}}\n`)],
                { stdio: 'pipe' });
        } catch (e) {
            text = String(e.stderr);
        }
        t.check(text.includes(want) && /wrong.yaml:2:\d+/.test(text), `${keys}: ${text}`);
    }
}

// SIGHUP adds and removes isolated models; changes that need a restart are refused, and the old configuration stays.
async function reload() {
    const entry = (name, more = ', isolation: process') => `  - {name: ${name}, path: "${path.join(t.tmp, name)}.gguf"${more}}\n`;
    for (const name of ['one', 'two'])
        fs.copyFileSync(model('reply-draft.gguf'), path.join(t.tmp, `${name}.gguf`));
    const site = await t.start(shoal, config('reload.yaml', `models:\n${entry('one')}`), { admin: true });
    const again = (text) => {
        config('reload.yaml', `models:\n${text}`);
        site.child.kill('SIGHUP');
    };
    const names = async () => (await t.admin(site)).models.map((m) => `${m.model} ${m.state}`).join();
    again(entry('one') + entry('two'));
    await t.until(async () => await names() === 'one ready,two ready', 'a second worker');
    again(entry('two'));
    await t.until(async () => await names() === 'two ready' && workers(site).length === 1, 'the first is gone');
    t.same((await post(site, '/v1/completions', { model: 'two', prompt: 'a', max_tokens: 2 })).status, 200, 'two answers');
    again(entry('two', ''));
    await t.until(() => /isolation of the model 'two' changed: restart/.test(site.log), 'a change of isolation is refused');
    t.same(await names(), 'two ready', 'the old configuration stays');
    // a stop that reaches the whole group, as from Ctrl-C or a service manager, is no crash of a worker
    for (const pid of workers(site))
        for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'])
            process.kill(pid, signal);
    t.same((await post(site, '/v1/completions', { model: 'two', prompt: 'b', max_tokens: 2 })).status, 200, 'it answers until the server ends it');
    t.same((await site.stop()).code, 0, 'it ends');
    t.check(!/worker process is gone/.test(site.log), 'no worker is reported as lost');
}

// A stream whose worker is killed again and again: each new one continues it.  The pause before a restart, which doubles,
// does not use up the time for which a request waits.
async function many_kills(want) {
    const site = await t.start(shoal, config('kills.yaml',
        `threads: 1\nmodels:\n  - {name: reply, path: "${model('reply.gguf')}", isolation: process, nice: 5}\n`), { admin: true });
    await ready(site, 'reply');
    let kills = 0, last = 0, killed;
    const got = await c.stream(site.url, long(0), (g) => {
        const pid = worker_of(site, 'reply.gguf');
        if (kills < 9 && g.n > last + 1 && pid && pid !== killed) {
            last = g.n;
            killed = pid;
            kills++;
            process.kill(pid, 'SIGKILL');
        }
    });
    t.same(got.error, null, `no error after ${kills} kills: ${site.log.slice(-1500)}`);
    t.same(got.text, want.text, `the same text after ${kills} kills`);
    t.check(kills > 7, `the worker of a stream was killed ${kills} times`);
    t.same((await site.stop()).code, 0, 'the server ends');
}

// A worker under a node under a gateway: the gateway continues on the other node.
async function in_a_shoal(want) {
    const site = { nodes: [], shoal };
    for (const name of ['node1', 'node2']) {
        const address = `unix:${path.join(t.tmp, `${name}.sock`)}`;
        const node = new c.Member(shoal, 'node', name, ['--listen', address, ...config(`${name}.yaml`,
            `cluster: {name: ${name}}\nmodels:\n  - {name: reply, path: "${model('reply.gguf')}", isolation: process, nice: 5}\n`)]);
        node.address = address;
        site.nodes.push(await node.start());
    }
    site.gateway = await c.gateway(site, 'gateway');
    await c.all_ready(site, 2);
    for (let tries = 0; ; tries++) {
        let pid;
        for (const node of site.nodes)
            await t.until(() => worker_of(node, 'reply.gguf'), 'every node has a worker');
        const got = await c.stream(site.gateway.url, long(0), (g) => {
            const node = site.nodes.find((n) => n.name === g.node);
            if (g.n === 2 && node && (pid = worker_of(node, 'reply.gguf')))
                process.kill(pid, 'SIGKILL');
        });
        t.same(got.error, null, 'no error in a shoal');
        t.same(got.text, want.text, 'the same text in a shoal');
        if (await t.metric(site.gateway, 'shoal_moved_total') > 0)
            break;
        if (!t.check(tries < MAX_TRIES, `none of ${tries} streams in a shoal was hit in the middle`))
            break;
    }
    await c.close(site);
}

(async () => {
    const plain = await t.start(shoal, config('plain.yaml', `
models:
  - {name: reply, path: "${model('reply.gguf')}"}
  - {name: intent, path: "${model('encoder')}", task: classify}
  - {name: narrow, path: "${model('encoder')}", labels: snips}
`));
    const server = await t.start(shoal, config('apart.yaml', `
threads: 1
cluster: {wait: 120s}
models:
  - {name: reply, path: "${model('reply.gguf')}", isolation: process, nice: 5, cpus: "0-1"}
  - {name: intent, path: "${model('encoder')}", task: classify, isolation: process}
  - {name: narrow, path: "${model('encoder')}", labels: snips, isolation: process}
  - {name: draft, path: "${model('reply-draft.gguf')}"}
`), { admin: true, env: { DATABASE_PASSWORD: 'secret-4417' } });
    t.same(workers(server).length, 2, 'two workers');
    least_privilege(server);
    await same_answers(plain, server);
    await crashes(server);
    t.same((await server.stop()).code, 0, 'the server ends');
    probe();
    bad_configs();
    await bad_models(plain);
    await reload();
    const undisturbed = await c.stream(plain.url, long(0));
    await many_kills(undisturbed);
    await in_a_shoal(undisturbed);
    t.same((await plain.stop()).code, 0, 'the plain server ends');
    t.finish();
})().catch(t.abandon);
