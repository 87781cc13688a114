#!/usr/bin/env node
// A real Prometheus scrapes a server under `shoal load`: the page, the rules and every expression of the dashboards are accepted, and
// what the server did is what Prometheus has.  Usage: observe.js SHOAL FOLDER_OF_PROMETHEUS
'use strict';
const fs = require('fs');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]), bin = path.resolve(process.argv[3]);
const rules = path.join(t.root, 'packaging/observe/prometheus/shoal-rules.yml');
const promtool = (input, ...args) => spawnSync(path.join(bin, 'promtool'), args, { encoding: 'utf8', input });

async function main() {
    for (const args of [['check', 'rules', rules], ['check', 'config', path.join(path.dirname(rules), 'prometheus.yml')]]) {
        const r = promtool('', ...args);
        t.same(r.status, 0, `promtool ${args.slice(0, 2).join(' ')}: ${r.stdout}${r.stderr}`);
    }
    const server = await t.start(shoal, []);
    const page = await (await fetch(`${server.url}/metrics`)).text();
    const lint = promtool(page, 'check', 'metrics');
    t.check(lint.status === 0 && lint.stderr === '', `promtool check metrics: ${lint.stdout}${lint.stderr}`);

    const port = await t.free_port(), file = path.join(t.tmp, 'prometheus.yml');
    fs.writeFileSync(file, `global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ["${rules}"]\nscrape_configs:\n` +
        `  - {job_name: shoal, static_configs: [{targets: ["${new URL(server.url).host}"]}]}\n`);
    const child = spawn(path.join(bin, 'prometheus'), [`--config.file=${file}`, `--storage.tsdb.path=${path.join(t.tmp, 'tsdb')}`, `--web.listen-address=127.0.0.1:${port}`,
        '--enable-feature=exemplar-storage'],
        { stdio: ['ignore', 'ignore', 'pipe'] });
    process.on('exit', () => child.kill('SIGKILL'));
    const it = { child, log: '' };
    child.stderr.on('data', (d) => { it.log += d; });
    t.watch(it);
    const ask = async (what) => (await fetch(`http://127.0.0.1:${port}/api/v1/${what}`)).json();
    const value = async (expr) => (await ask(`query?query=${encodeURIComponent(expr)}`)).data.result;
    await t.until(async () => { try { return (await value('up{job="shoal"} == 1')).length === 1; } catch { return false; } }, 'Prometheus scrapes');

    const sent = spawnSync(shoal, ['load', server.url, '-n', '60', '--rate', '20', '--mix', 'chat=reply,classify=intent', '--json'], { encoding: 'utf8' });
    const load = JSON.parse(sent.stdout);
    t.same(`${load.answered} ${load.failed}`, '60 0', sent.stdout);
    const chats = load.parts.find((p) => p.kind === 'chat').answered;
    await t.until(async () => Number((await value('shoal_requests_total{model="reply"}'))[0]?.value[1]) === chats, 'as many as were sent');
    await t.until(async () => (await value('shoal:first_token_seconds:p95{model="reply"} > 0')).length === 1, 'a recorded rule has a value');

    const since = Math.floor(Date.now() / 1000) - 600;
    const noted = async () => (await ask(`query_exemplars?query=shoal_http_seconds_bucket&start=${since}&end=${since + 1200}`)).data.flatMap((x) => x.exemplars);
    await t.until(async () => (await noted()).length > 0, 'exemplars are stored');
    const trace = (await noted())[0].labels.trace_id;
    t.same((await (await fetch(`${server.url}/v1/traces/${trace}`)).json()).trace_id, trace, 'and lead to a trace');

    const list = JSON.parse(spawnSync(path.join(t.root, 'tools/make-dashboards'), ['--expressions'], { encoding: 'utf8' }).stdout).expressions;
    let filled = 0;
    for (const { where, expr } of list) {
        const r = await ask(`query?query=${encodeURIComponent(expr.replace(/\$(instance|model)/g, '.*'))}`);
        t.same(r.status, 'success', `${where}: ${expr}: ${r.error}`);
        filled += r.data?.result.length > 0;
    }
    console.log(`${list.length} expressions, ${filled} with values on one server`);
    const groups = (await ask('rules')).data.groups;
    t.check(groups.length === 2 && groups.every((g) => g.rules.every((r) => r.health !== 'err')), 'the rules run');
    t.same((await ask('alerts')).data.alerts.filter((a) => a.state === 'firing').length, 0, 'no alarm on a server that is well');
    await server.stop();
    await t.until(async () => (await ask('alerts')).data.alerts.some((a) => a.labels.alertname === 'ShoalDown'), 'its end is noticed');
    child.kill('SIGTERM');
    await t.ended(child);
}

main().then(t.finish).catch(t.abandon);
