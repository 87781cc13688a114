#!/usr/bin/env node
// One model over several nodes by rows: each computes some rows of every matrix, and answers equal those of the whole model, to
// the token, over two and over three nodes; and after the loss of one.
// Usage: cluster_rows.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const ca = (...args) => execFileSync(shoal, ['ca', ...args], { cwd: dir });
const certs = (name) => path.join(dir, 'ca', 'members', name);
const models = path.join(dir, 'models'), file = path.join(models, 'big.gguf');

const prompts = ['ask: what is the weather', 'the kitchen lights are', 'set the heating to', 'the garage door is open and'];
const body = (model, i) => ({ model, prompt: `${prompts[i % prompts.length]} ${i}`, max_tokens: 200, ignore_eos: true,
    ...(i % 2 ? { temperature: 0.9, seed: 100 + i } : { temperature: 0 }) });

const idle = ['models:', `  - {name: idle, path: ${path.join(t.root, 'models/reply.gguf')}, lazy: true}`];
async function node(name, lines = idle, cluster = []) {
    const config = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(config, ['cluster:', `  name: ${name}`, '  listen: ["127.0.0.1:0"]', `  certs: ${certs(name)}`,
        ...cluster, `model_dirs: ["${models}"]`, ...lines, ''].join('\n'));
    const m = await new c.Member(shoal, 'node', name, ['--config', config]).start();
    m.address = m.out.match(/listening for other members on (?:https:\/\/)?(\S+)/)[1];
    return m;
}
const engine = (name, shard, others, more = '') => node(name, ['listen: ["127.0.0.1:0"]', 'models:',
    `  - {name: big-${name}, path: ${file}, shard: "${shard}"${more}}`],
    [`  nodes: [${others.map((n) => `"${n.address}"`).join(', ')}]`]);
const last_part = (e) => [...e.log.matchAll(/rows \d+ to \d+ of \d+ are computed by node=([a-z0-9]+)/g)].at(-1)?.[1];

let gw;
async function compare(model, from, n, what, hit = async () => {}) {
    let hitting = null;
    const ids = Array.from({ length: n }, (_, i) => from + i);
    const got = await Promise.all(ids.map((i) => c.stream(gw.url, body(model, i), (g) => {
        if (g.n === 20)
            hitting ??= hit();
    })));
    await hitting;
    const want = await Promise.all(ids.map((i) => c.stream(gw.url, body('ref', i))));
    ids.forEach((id, i) => {
        t.same(want[i].error, null, `${what}: whole ${id}`);
        t.same(got[i].error, null, `${what}: sharded ${id}`);
        t.same(got[i].text, want[i].text, `${what}: text ${id}`);
        t.same(got[i].usage?.completion_tokens, 200, `${what}: tokens ${id}`);
    });
}

(async () => {
    fs.mkdirSync(models);
    fs.copyFileSync(path.join(t.root, 'models/reply-draft.gguf'), file);
    ca('init');
    for (const name of ['e2', 'e3', 'e8', 'p1', 'p2', 'p3', 'whole'])
        ca('issue', name, '--role', 'node', '--host', '127.0.0.1');
    ca('issue', 'gw', '--role', 'gateway');
    const whole = await node('whole', ['models:', `  - {name: ref, path: ${file}}`]);
    const parts = await Promise.all(['p1', 'p2', 'p3'].map((name) => node(name)));
    const two = await engine('e2', 'rows:2', parts), three = await engine('e3', 'rows:3', parts);
    const coarse = await engine('e8', 'rows:2', [parts[0]], ', wire: q8');
    gw = await new c.Member(shoal, 'gateway', 'gw', ['--listen', '127.0.0.1:0', '--certs', certs('gw'),
        ...[whole, two, three, coarse].flatMap((n) => ['--node', n.address])]).start();
    await c.all_ready({ gateway: gw }, 4);

    // in 8 bits: it answers, with fewer bytes, and says that its answers may differ
    const got = await c.stream(gw.url, { ...body('big-e8', 0), max_tokens: 20 });
    t.same(got.error, null, 'q8: error');
    t.same(got.usage?.completion_tokens, 20, 'q8: tokens');
    t.check(/activations travel in 8 bits: answers may differ/.test(coarse.log), `q8: ${coarse.log.slice(-2000)}`);

    // over two and over three nodes, of which one is killed on the way: others take its rows, two where there were three, and the answers go on
    const part_of = (e) => parts.find((p) => p.name === last_part(e)), used = part_of(two), also = part_of(three);
    await Promise.all([compare('big-e2', 0, 4, 'two nodes', () => used.end('SIGKILL')),
        compare('big-e3', 8, 2, 'three nodes', () => also.end('SIGKILL'))]);
    t.check(/lost node=p\d with rows/.test(three.log), `killed: ${three.log.slice(-2000)}`); // the one, or the other before
    t.check(/computes rows 0 to \d+ of \d+ of model=[0-9a-f]{12} for node=e2/.test(used.log), `the part's log: ${used.log.slice(-2000)}`);
    t.check(/is computed by 2 nodes, here \d+ % of the rows/.test(two.log), `two nodes: ${two.log.slice(-2000)}`);
    t.check(/is computed by 3 nodes/.test(three.log), `three nodes: ${three.log.slice(-2000)}`);
    t.check(two.log.includes(`lost node=${used.name} with rows`), `killed: ${two.log.slice(-2000)}`);
    t.check(last_part(two) !== used.name, `another node takes the part: ${last_part(two)}`);

    let status;
    const seen = () => (status = spawnSync(shoal, ['cluster', 'status', '--server', gw.url]).stdout.toString());
    await t.until(() => / [12] {2}\d+% p\d \d+% e2 {2}lost p\d/.test(seen()), { toString: () => `cluster status: ${status}` });
    await t.until(() => /% p1 \d+% e8 {2}q8: answers may differ/.test(seen()), { toString: () => `cluster status of q8: ${status}` });
    const metrics_of = async (m) => (await t.within(fetch(`${m.url}/metrics`), `metrics of ${m.name}`)).text();
    const total = (metrics, name) => Number(metrics.match(`shoal_shard_${name}_total{model="[0-9a-f]{12}"} (\\S+)`)?.[1]);
    const metrics = await metrics_of(two), rough = await metrics_of(coarse);
    for (const name of ['steps', 'tokens', 'bytes', 'step_seconds', 'remote_seconds', 'wait_seconds'])
        t.check(total(metrics, name) > 0, `${name}: ${metrics}`);
    t.check(total(metrics, 'rebuilt') >= 1, `rebuilt: ${metrics}`);
    const shares = [...metrics.matchAll(/shoal_shard_share\{model="[0-9a-f]{12}",node="(\w+)",first="0",last="3"\} (\S+)/g)];
    t.same(shares.map((s) => s[1]).join(' '), `${last_part(two)} e2`, 'whose share');
    t.check(Math.abs(shares.reduce((sum, s) => sum + Number(s[2]), 0) - 1) < 0.001, `shares: ${shares}`);
    // 4 layers of 3 * 192 + 512 columns: 17408 bytes as floats, 4896 in 8 bits, and heads of messages
    t.check(total(metrics, 'bytes') / total(metrics, 'tokens') > 17408, `bytes of a token: ${metrics}`);
    t.check(total(rough, 'bytes') / total(rough, 'tokens') < 12000, `bytes of a token in 8 bits: ${rough}`);
    await c.close();
    t.finish();
})().catch(t.abandon);
