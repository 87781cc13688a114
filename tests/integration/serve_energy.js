#!/usr/bin/env node
// Joules of requests, from a counter that the test makes: in usage, metrics and traces; shared out, through a gateway, and
// estimated where nothing measures.
// Usage: serve_energy.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), reply = path.join(t.root, 'models/reply.gguf');
const sys = path.join(t.tmp, 'sys'), zone = path.join(sys, 'class/powercap/intel-rapl:0');
fs.mkdirSync(zone, { recursive: true });
fs.writeFileSync(path.join(zone, 'name'), 'package-0\n');
let joules = 0;
const use = (j) => { // as the kernel: a reader never finds half a number
    joules += j;
    fs.writeFileSync(path.join(zone, 'new'), `${Math.round(joules * 1e6)}\n`);
    fs.renameSync(path.join(zone, 'new'), path.join(zone, 'energy_uj'));
};
use(0);
const meter = setInterval(() => use(0.5), 5);

function config(name, energy) {
    const file = path.join(t.tmp, name);
    fs.writeFileSync(file, `cache: {bytes: 0}\nmodels: [{name: reply, path: ${reply}}]\n${energy}`);
    return ['--config', file];
}
const messages = [{ role: 'user', content: 'hello there' }];
const bodies = { '/v1/chat/completions': { max_tokens: 40, ignore_eos: true, messages }, '/v1/responses': { max_output_tokens: 40, input: 'hello there' },
    '/v1/messages': { max_tokens: 40, messages } };
async function ask(server, where = '/v1/chat/completions') {
    const r = await t.within(fetch(`${server.url}${where}`, { method: 'POST', body: JSON.stringify({ model: 'reply', ...bodies[where] }) }), `POST ${where}`);
    const text = await r.text();
    t.same(r.status, 200, text);
    return { ...JSON.parse(text), request: r.headers.get('x-request-id') };
}
const near = (a, b, what) => t.check(Math.abs(a - b) < 1e-3, `${what}: ${a} ${b}`);

(async () => {
    process.env.SHOAL_SYS_DIR = sys;
    let server = await t.start(shoal, ['--only', ...config('on.yaml', 'energy: {count: true, idle_watts: 5}\n')]);
    const one = await ask(server), energy = one.usage.energy;
    t.check(energy.joules > 0 && energy.estimated === false, `usage: ${JSON.stringify(one.usage)}`);
    const spans = (await (await fetch(`${server.url}/v1/traces/${one.request}`)).json()).spans;
    const generate = spans.find((s) => s.name === 'generate').attributes;
    near(generate['shoal.energy.microjoules'] / 1e6, energy.joules, 'in the trace');
    t.same(generate['shoal.energy'], 'measured', 'and where from');
    const many = await Promise.all([ask(server), ask(server), ask(server, '/v1/responses'), ask(server, '/v1/messages')]);
    t.check(many.every((r) => r.usage.energy.joules > 0), `all have some: ${JSON.stringify(many.map((r) => r.usage))}`);
    const sum = [one, ...many].reduce((n, r) => n + r.usage.energy.joules, 0);
    near(await t.metric(server, 'shoal_energy_joules_total{model="reply"}'), sum, 'the model has what its requests have');
    clearInterval(meter);
    const of_requests = await t.metric(server, 'shoal_energy_requests_joules_total'), idle = await t.metric(server, 'shoal_energy_idle_joules_total');
    near(of_requests, sum, 'and so have all requests');
    t.check(idle > 0 && idle + of_requests <= joules + 1e-6, `no joule is counted twice: ${idle} ${of_requests} ${joules}`);
    t.same(await t.metric(server, 'shoal_energy_source{source="rapl",estimated="false"}'), 1, 'the source');
    use(1000);
    near(await t.metric(server, 'shoal_energy_idle_joules_total') - idle, 1000, 'without requests it is idle energy');
    t.same((await server.stop()).code, 0, 'ends well');

    // through a gateway: what the node counts; the gateway itself counts nothing
    const node = new c.Member(shoal, 'node', 'node1', ['--listen', `unix:${t.tmp}/n.sock`, ...config('node.yaml', 'cluster: {name: node1}\nenergy: {count: true}\n')]);
    node.address = `unix:${t.tmp}/n.sock`;
    await node.start();
    const gateway = await c.gateway({ shoal, nodes: [node] }, 'gw');
    await c.all_ready({ gateway }, 1);
    const later = setInterval(() => use(0.25), 5);
    const far = await ask(gateway);
    clearInterval(later);
    t.check(far.usage.energy?.joules >= 0 && far.usage.energy.estimated === false, `of the node: ${JSON.stringify(far.usage)}`);
    await gateway.end('SIGKILL');
    await node.end('SIGKILL');

    // nothing measures: a model, or nothing
    process.env.SHOAL_SYS_DIR = path.join(t.tmp, 'nothing');
    server = await t.start(shoal, ['--only', ...config('model.yaml', 'energy: {count: true, idle_watts: 5, core_watts: 2}\n')]);
    const guessed = (await ask(server)).usage.energy;
    t.check(guessed.joules > 0 && guessed.estimated === true, `estimated: ${JSON.stringify(guessed)}`);
    t.same(await t.metric(server, 'shoal_energy_source{source="model",estimated="true"}'), 1, 'the source');
    await server.stop();
    server = await t.start(shoal, ['--only', ...config('off.yaml', '')]);
    t.same((await ask(server)).usage.energy, undefined, 'not counted');
    await server.stop();

    // what a meter says becomes settings
    const run = (...args) => spawnSync(shoal, ['doctor', '--energy', ...args], { encoding: 'utf8' });
    const typed = JSON.parse(run('--idle-watts', '4', '--busy-watts', '10', '--json').stdout);
    near(typed.core_watts, 6 / typed.cores, 'watts of a core');
    t.check(/^energy: \{count: true, idle_watts: 4\.000, core_watts: [\d.]+\}$/m.test(run('--idle-watts', '4', '--busy-watts', '10').stdout), 'settings');
    t.same(run('--idle-watts', '4').status, 2, 'half of it');
    const blind = run('--seconds', '0.05');
    t.check(blind.status === 3 && /meter at the plug/.test(blind.stderr), blind.stderr);
    process.env.SHOAL_SYS_DIR = sys;
    fs.rmSync(zone, { recursive: true });
    fs.mkdirSync(path.join(sys, 'class/hwmon/hwmon0'), { recursive: true });
    fs.writeFileSync(path.join(sys, 'class/hwmon/hwmon0/power1_input'), '4500000\n');
    const found = JSON.parse(run('--seconds', '0.1', '--json').stdout);
    t.check(found.source === 'hwmon' && Math.abs(found.idle_watts - 4.5) < 0.01 && Math.abs(found.busy_watts - 4.5) < 0.01, JSON.stringify(found));
    t.finish();
})().catch(t.abandon);
