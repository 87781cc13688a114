#!/usr/bin/env node
// Updates of a model under load, with a real nats-server, three nodes and two gateways (one of them without NATS):
// rolling, canary, strong, eventual; a worse model is rolled back automatically, a damaged one or a wrong hash changes
// nothing. No request may fail. Answers are deterministic, so the text tells which version gave it; a mixed one would
// match neither.
// Usage: cluster_rollout.js SHOAL
'use strict';
const { execFile } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp, models = path.join(dir, 'models');
const refs = path.join(t.root, 'tests/data/refs');

// ---- the models: two good ones, one that computes nonsense, one that is truncated ----
fs.mkdirSync(models);
const put = (name, bytes) => {
    fs.writeFileSync(path.join(models, name), bytes);
    return { path: path.join(models, name), sha256: crypto.createHash('sha256').update(bytes).digest('hex') };
};
const old_bytes = fs.readFileSync(path.join(refs, 'llama-gqa.gguf')), new_bytes = fs.readFileSync(path.join(refs, 'qwen3.gguf'));
const v1 = put('v1.gguf', old_bytes), v2 = put('v2.gguf', new_bytes);
// finite weights, so that it loads, but so large that no answer can be computed
const broken = put('broken.gguf', Buffer.concat([new_bytes.subarray(0, new_bytes.length - 64), Buffer.alloc(64, 0x7f)]));
const cut = put('cut.gguf', new_bytes.subarray(0, new_bytes.length / 2));

// ---- the shoal ----
let nats = null, url = '';

const node = (name) => new c.Member(shoal, 'node', name, ['--no-models', '--model-dir', models, '--insecure', '--join', url,
    '--listen', '127.0.0.1:0', '--listen', `unix:${path.join(dir, `${name}.sock`)}`]);

// A command of the shoal: its exit code and what it printed.
function run(...args) {
    return t.within(new Promise((done) => {
        execFile(shoal, args, { env: { ...process.env, SHOAL_NATS: url } }, (e, out, err) =>
            done({ code: e ? e.code : 0, out, err }));
    }), `shoal ${args.join(' ')}`, 300000);
}

async function rollout(...args) {
    const r = await run('rollout', ...args, '--json');
    return { code: r.code, err: r.err, ...(r.out ? JSON.parse(r.out) : {}) };
}

// POST /admin/rollouts, as the page does; a keyless gateway takes changes from a unix socket alone.
function change(sock, body) {
    return t.within(new Promise((done, give) => {
        const req = http.request({ socketPath: sock, path: '/admin/rollouts', method: 'POST' }, (res) => {
            let text = '';
            res.on('data', (d) => { text += d; });
            res.on('end', () => done({ status: res.statusCode, ...JSON.parse(text) }));
        });
        req.on('error', give);
        req.end(JSON.stringify(body));
    }), 'POST /admin/rollouts');
}

const last = (r) => r.history[r.history.length - 1].text;

// ---- users ----
const prompts = Array.from({ length: 6 }, (x, i) => `request ${i} of a user`);
const body = (i, more) => ({ model: 'm', prompt: prompts[i], max_tokens: 24, temperature: 0, ...more });
const texts = { v1: [], v2: [] }; // of every prompt

async function ask(gw, i, headers = {}) {
    const res = await t.within(fetch(`${gw.url}/v1/completions`, {
        method: 'POST', headers, body: JSON.stringify(body(i)),
    }), 'a completion');
    const got = await res.json();
    return { status: res.status, text: got.choices?.[0].text, fingerprint: got.system_fingerprint, error: got.error };
}

// Users who send requests until stop(), half of them for streams. Each pauses briefly: somebody must be asking at every
// step of a rollout; how often does not matter.
function load(gateways) {
    const seen = { n: 0, v1: 0, v2: 0, failed: [], mixed: [], last: [] };
    let on = true;
    const count = (i, text, why) => {
        seen.n++;
        const is = text === texts.v1[i] ? 'v1' : text === texts.v2[i] ? 'v2' : null;
        if (why)
            seen.failed.push(why);
        else if (!is)
            seen.mixed.push(text);
        else
            seen[is]++;
        seen.last = [...seen.last.slice(-20), is];
    };
    const user = async (k) => {
        for (let n = k; on; n++) {
            const gw = gateways[n % gateways.length], i = n % prompts.length;
            await t.sleep(50);
            if (k % 2) {
                const s = await c.stream(gw.url, body(i));
                count(i, s.text, s.error ? JSON.stringify(s.error) : s.status === 200 ? null : `status ${s.status}`);
            } else {
                const a = await ask(gw, i);
                count(i, a.text, a.status === 200 ? null : JSON.stringify(a.error));
                if (a.status === 200)
                    t.check(a.fingerprint.endsWith((a.text === texts.v1[i] ? v1 : v2).sha256.slice(0, 12)),
                        'the answer names the version that gave it');
            }
        }
    };
    const users = Promise.all(Array.from({ length: 6 }, (x, k) => user(k)));
    return { seen, stop: async () => { on = false; await users; return seen; } };
}

// A flow of two steps: it would reveal an answer mixed from two versions.
async function ask_pair(gw, model = 'pair') {
    const res = await t.within(fetch(`${gw.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model, prompt: prompts[0] }) }),
        'a flow', 280000);
    const got = await res.json();
    return res.status === 200 ? got.choices[0].text : `status ${res.status}: ${JSON.stringify(got.error)}`;
}

function load_pairs(gw) {
    const seen = new Set();
    let on = true;
    const user = (async () => {
        while (on)
            seen.add(await ask_pair(gw));
    })();
    return { stop: async () => { on = false; await user; return seen; } };
}

// The hook that the flow `long` calls between its steps; it answers when told to.
function open_gate() {
    const gate = { n: 0, waiting: [] };
    gate.server = http.createServer((req, res) => {
        gate.n++;
        if (gate.waiting)
            gate.waiting.push(res);
        else
            res.end('go on');
    });
    gate.release = () => {
        const list = gate.waiting;
        gate.waiting = null;
        list.forEach((res) => res.end('go on'));
    };
    gate.close = () => gate.waiting = [];
    gate.server.unref();
    return new Promise((done) => gate.server.listen(0, '127.0.0.1', () => {
        gate.host = `127.0.0.1:${gate.server.address().port}`;
        done(gate);
    }));
}

function check_load(seen, what) {
    t.check(seen.n > 10, `${what}: there were ${seen.n} requests`);
    t.same(seen.failed.length, 0, `${what}: failed requests (${seen.failed[0]})`);
    t.same(seen.mixed.length, 0, `${what}: answers of neither version (${JSON.stringify(seen.mixed[0])})`);
}

// Everybody gets this version now.
async function check_now(gateways, version, what) {
    for (const gw of gateways)
        for (let i = 0; i < prompts.length; i++) {
            const got = await ask(gw, i);
            t.same(got.text, texts[version][i], `${what}: the text`);
        }
}

(async () => {
    const port = await t.free_port();
    url = `nats://127.0.0.1:${port}`;
    nats = new c.Nats(['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', path.join(dir, 'js')]);
    const nodes = await Promise.all(['node1', 'node2', 'node3'].map((name) => node(name).start()));
    const config = path.join(dir, 'gw1.yaml'), gate = await open_gate();
    fs.writeFileSync(config, `flows_allow: {hosts: ["${gate.host}"]}
flows:
  - name: pair
    output: "\${first.text} | \${second.text}"
    steps:
      - {name: first, do: generate, model: m, text: "\${input.text}", max_tokens: 12, temperature: 0}
      - {name: second, do: generate, model: m, text: "\${input.text} \${len(first.text)}", max_tokens: 12, temperature: 0}
  - name: long
    output: "\${first.text} | \${second.text}"
    steps:
      - {name: first, do: generate, model: m, text: "\${input.text}", max_tokens: 12, temperature: 0}
      - {name: hold, do: call, method: get, url: "http://${gate.host}/\${len(first.text)}", timeout: 280s}
      - {name: second, do: generate, model: m, text: "\${input.text} \${hold.text}", max_tokens: 12, temperature: 0}
`);
    const joined = await new c.Member(shoal, 'gateway', 'gw1', ['--config', config, '--insecure', '--join', url, '--listen', '127.0.0.1:0',
        '--listen', `unix:${path.join(dir, 'admin.sock')}`]).start();
    const still = await new c.Member(shoal, 'gateway', 'gw2', ['--insecure', '--listen', '127.0.0.1:0',
        ...nodes.flatMap((n) => ['--node', `unix:${path.join(dir, `${n.name}.sock`)}`])]).start();
    const gateways = [joined, still];
    const deployed = await run('cluster', 'deploy', 'm', '--file', v1.path, '--replicas', '3', '--wait', '120');
    t.same(deployed.code, 0, `deploy: ${deployed.err}`);
    for (const gw of gateways) {
        await c.all_ready({ gateway: gw }, 3);
        await t.until(async () => (await ask(gw, 0)).status === 200, 'the model answers');
    }
    for (let i = 0; i < prompts.length; i++)
        texts.v1.push((await ask(joined, i)).text);

    // a version requested by its hash, and one that nobody has
    t.same((await ask(still, 0, { 'x-shoal-version': v1.sha256 })).text, texts.v1[0], 'the version by its hash');
    t.same((await ask(still, 0, { 'x-shoal-version': 'nonsense' })).status, 400, 'not a hash');
    t.same((await ask(still, 0, { 'x-shoal-version': v2.sha256 })).status, 404, 'a version that is not here');

    // the texts of the other version, from a server of its own
    const server = await t.start(shoal, ['-m', `m=${v2.path}`]);
    for (let i = 0; i < prompts.length; i++)
        texts.v2.push((await ask(server, i)).text);
    await server.stop();
    for (let i = 0; i < prompts.length; i++)
        t.check(texts.v1[i] !== texts.v2[i] && texts.v1[i] && texts.v2[i], 'the versions answer differently');

    // damaged, unknown, or wrong: rejected with the reason, and users keep the old version
    let users = load(gateways), r;
    for (const kind of ['rolling', 'strong', 'canary']) {
        r = await rollout('start', 'm', cut.path, '--kind', kind, '--wait');
        t.same(r.code, 3, `a model that is cut off, ${kind}: exit code (${r.err})`);
        t.same(r.state, 'failed', `a model that is cut off, ${kind}`);
        t.check(/on node node\d: /.test(last(r)), `the reason: ${last(r)}`);
    }
    r = await rollout('start', 'm', '--sha256', 'ab'.repeat(32), '--wait');
    t.same(r.state, 'failed', 'a hash that nobody has');
    r = await rollout('start', 'm', v2.path, '--sha256', v1.sha256);
    t.check(r.code === 1 && /does not have the SHA-256/.test(r.err), `a file with another hash: ${r.err}`);
    r = await rollout('start', 'm', v1.path);
    t.check(r.code === 1 && /has this version already/.test(r.err), `the same version: ${r.err}`);
    r = await rollout('start', 'nope', v1.path);
    t.check(r.code === 1 && /no model 'nope'/.test(r.err), `an unknown model: ${r.err}`);
    let seen = await users.stop();
    check_load(seen, 'refused rollouts');
    t.same(seen.v2, 0, 'nobody saw the new version');

    // rolling forward, and back by an undo after it has finished
    users = load(gateways);
    r = await rollout('start', 'm', v2.path, '--wait');
    t.same(r.state, 'done', `rolling: ${r.err}`);
    seen = await users.stop();
    check_load(seen, 'rolling');
    await check_now(gateways, 'v2', 'after rolling');
    users = load(gateways);
    r = await rollout('undo', 'm', '--wait');
    t.same(r.state, 'done', `undo: ${r.err}`);
    check_load(await users.stop(), 'undo');
    await check_now(gateways, 'v1', 'after the undo');

    // strong, while a node dies and comes back: every answer comes from one version
    const pair = { v1: await ask_pair(joined) };
    gate.release();
    const long = { v1: await ask_pair(joined, 'long') };
    gate.close();
    const flow = ask_pair(joined, 'long'); // runs through the whole switch, on no node when the others are done
    await t.until(() => gate.waiting.length === 1, 'the flow is between its steps');
    users = load(gateways);
    const pairs = load_pairs(joined);
    r = await rollout('start', 'm', v2.path, '--kind', 'strong');
    t.same(r.state, 'pending', `strong: ${r.err}`);
    await t.until(async () => (await rollout('status', 'm')).rollouts[0].state !== 'pending', 'it begins');
    await nodes[1].end('SIGKILL');
    await t.until(async () => (await ask(joined, 0)).text === texts.v2[0], 'the new version answers', 120000);
    // the old version is kept for the flow, for longer than gateways need to hear of the switch
    for (let i = 0; i < 12; i++) {
        await t.sleep(500);
        r = (await rollout('status', 'm')).rollouts[0];
        t.same(r.state, 'running', 'it waits for the flow');
    }
    gate.release();
    t.same(await flow, long.v1, 'all steps of a flow that began before the switch have the old version');
    await t.until(async () => (r = (await rollout('status', 'm')).rollouts[0]).state === 'done', 'it ends after the flow', 120000);
    t.same(r.state, 'done', `strong: ${JSON.stringify(r.history)}`);
    t.check(r.epoch > 0, 'it has an epoch');
    nodes[1] = await node('node2').start(); // it catches up before it serves
    await c.all_ready({ gateway: joined }, 3);
    seen = await users.stop();
    check_load(seen, 'strong');
    t.check(seen.v1 > 0 && seen.v2 > 0, `both versions answered: ${seen.v1} and ${seen.v2}`);
    await check_now(gateways, 'v2', 'after strong');
    const seen_pairs = await pairs.stop();
    pair.v2 = await ask_pair(joined);
    t.check(pair.v1 !== pair.v2, 'the versions give a flow different answers');
    const mixed = [...seen_pairs].filter((x) => x !== pair.v1 && x !== pair.v2);
    t.same(mixed.join(), '', 'no flow failed, and all steps of each have one version');
    t.check(seen_pairs.has(pair.v1) || seen_pairs.has(pair.v2), 'flows were answered');
    long.v2 = await ask_pair(joined, 'long');
    t.check(long.v1 !== long.v2 && /\|/.test(long.v2), `the flow with the new version: ${long.v2}`);

    // a failing canary is rolled back by itself, and no user notices
    users = load(gateways);
    r = await rollout('start', 'm', broken.path, '--kind', 'canary', '--share', '30', '--wait');
    t.same(r.state, 'failed', `a broken canary: ${JSON.stringify(r.history)}`);
    t.check(/requests failed/.test(last(r)), `the reason: ${last(r)}`);
    seen = await users.stop();
    check_load(seen, 'a broken canary');
    t.same(seen.v1, 0, 'everybody kept the version');

    // a canary that answers, but worse, as labelled inputs show
    const labels = path.join(dir, 'labels.jsonl');
    fs.writeFileSync(labels, prompts.map((prompt, i) => JSON.stringify({ prompt, answer: texts.v2[i].trim() })).join('\n'));
    users = load(gateways);
    r = await rollout('start', 'm', v1.path, '--kind', 'canary', '--judge-p95', '0', '--labels', labels, '--server',
        joined.url, '--wait');
    t.same(r.state, 'failed', `a worse canary: ${JSON.stringify(r.history)}`);
    t.check(/labelled inputs are right/.test(last(r)), `the reason: ${last(r)}`);
    t.check(r.judge.score_from > 0.9 && r.judge.score_to < 0.5, `the scores: ${JSON.stringify(r.judge)}`);

    check_load(await users.stop(), 'a worse canary');

    // a good one: paused, resumed, judged. There are no requests before the pause, so that the judge has no reason to
    // promote it.
    r = await rollout('start', 'm', v1.path, '--kind', 'canary', '--share', '40', '--judge-requests', '60', '--judge-p95', '0');
    const sock = path.join(dir, 'admin.sock');
    const shown = async () => (await (await fetch(`${joined.url}/v1/cluster`)).json()).rollouts.find((x) => x.id === r.id);
    await t.until(shown, 'the page shows the rollout');
    t.same((await change(sock, { rollout: 'nope', action: 'pause' })).status, 404, 'an unknown rollout');
    t.same((await change(sock, { rollout: r.id, action: 'stop' })).status, 400, 'an unknown action');
    t.same((await change(sock, { rollout: r.id, action: 'pause' })).status, 202, 'pause over HTTP');
    await t.until(async () => (await shown()).state === 'paused', 'the page shows that it is paused');
    t.same((await change(sock, { rollout: r.id, action: 'pause' })).status, 409, 'it is paused already');
    t.same((await rollout('status', 'm')).rollouts[0].state, 'paused', 'paused');
    users = load(gateways);
    r = await rollout('promote', 'm', '--wait');
    t.same(r.state, 'done', `canary: ${JSON.stringify(r.history)}`);
    t.check(r.history.some((s) => /^promoted: \d+ requests/.test(s.text)), `the judge: ${JSON.stringify(r.history)}`);
    seen = await users.stop();
    check_load(seen, 'canary');
    await check_now(gateways, 'v1', 'after the canary');

    users = load(gateways);
    r = await rollout('start', 'm', v2.path, '--kind', 'eventual', '--wait');
    t.same(r.state, 'done', `eventual: ${JSON.stringify(r.history)}`);
    check_load(await users.stop(), 'eventual');
    await check_now(gateways, 'v2', 'after eventual');

    // a node configured with the old version answers nothing until it has the new one
    nodes.push(await new c.Member(shoal, 'node', 'node4', ['-m', `m=${v1.path}`, '--model-dir', models, '--insecure', '--join',
        url, '--listen', '127.0.0.1:0']).start());
    await c.all_ready({ gateway: joined }, 4);
    for (let i = 0; i < 5; i++)
        await check_now([joined], 'v2', 'beside a node with the old version');

    const events = await run('cluster', 'events', '--json', '-n', '500');
    t.check(/rollout-step/.test(events.out) && /promoted/.test(events.out), 'the events');
    const history = await run('rollout', 'history', 'm');
    t.check(history.code === 0 && /m-1 /.test(history.out) && /epoch/.test(history.out), `the history: ${history.out}`);
    for (const m of [...nodes, ...gateways])
        t.same((await m.end('SIGTERM')).code, 0, `${m.name} ends`);
    t.finish();
})().catch(t.abandon);
