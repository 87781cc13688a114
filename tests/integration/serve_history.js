#!/usr/bin/env node
// The history of readings: what a server has heard can be exported while it runs, in three formats.
// Usage: serve_history.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);

(async () => {
    const db = path.join(t.tmp, 'history.db'), file = path.join(t.tmp, 'history.yaml');
    fs.writeFileSync(file, `history: {file: "${db}", days: 2, max: 2MiB}\nsensors:\n  - {name: oil pressure, unit: bar}\n  - {name: "a,b"}\n`);
    const server = await t.start(shoal, ['--config', file]);
    const now = Date.now();
    const list = [{ sensor: 'oil pressure', value: 1.5, time_ms: now - 2000 }, { sensor: 'a,b', value: -2, time_ms: now - 2000 },
        { sensor: 'oil pressure', value: 2.25, time_ms: now - 1000 }, { sensor: 'oil pressure', value: 3, time_ms: 5000 }];
    const r = await fetch(`${server.url}/v1/readings`, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ readings: list }) });
    t.same(r.status, 202, 'readings');
    await t.until(async () => await t.metric(server, 'shoal_readings_stored_total') === 4, 'they are stored');
    const s = (await (await fetch(`${server.url}/v1/sensors`)).json()).data[0];
    t.check(s.learning === true && s.learned === 0 && s.learn === 512 && s.doubtful === 0, `still learning: ${JSON.stringify(s)}`);

    const run = (...args) => spawnSync(shoal, ['anomaly', 'export', ...args, db], { encoding: 'utf8' });
    const csv = run().stdout.trim().split('\n');
    t.same(csv[0], 'time,sensor,value,unit', 'names of columns');
    t.same(csv.length, 5, 'all of them');
    t.same(csv[1], `${new Date(now - 2000).toISOString()},oil pressure,1.5,bar`, 'a line');
    t.same(csv[2].split('Z')[1], ',"a,b",-2,', 'a name with a comma');
    t.check(Math.abs(Date.parse(csv[4].split(',')[0]) - now) < 60000, 'a clock that is off is not believed');
    const columns = JSON.parse(run('--format', 'columns', '-s', 'oil pressure', '--until', String(now - 500)).stdout);
    t.same(JSON.stringify(columns), JSON.stringify({ sensor: ['oil pressure', 'oil pressure'], time_ms: [now - 2000, now - 1000], value: [1.5, 2.25] }), 'columns');
    const lines = run('--format', 'influx', '--from', String(now - 2000), '--until', String(now - 1500)).stdout;
    t.same(lines, `reading,sensor=oil\\ pressure,unit=bar value=1.5 ${now - 2000}000000\nreading,sensor=a\\,b value=-2 ${now - 2000}000000\n`, 'line protocol');
    t.same(run('--format', 'xml').status, 2, 'an unknown format');
    t.same(run('--from', 'yesterday').status, 2, 'an unknown time');
    t.check(/cannot|unable/.test(spawnSync(shoal, ['anomaly', 'export', `${db}.no`], { encoding: 'utf8' }).stderr), 'no such file');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
