#!/usr/bin/env node
// Readings over HTTP become alarms: listed, streamed, acknowledged.  Usage: serve_alarms.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);

// Events of a stream as they come.
async function watch(url, seen, stop) {
    const r = await fetch(url, { signal: stop.signal });
    t.same(r.status, 200, 'stream');
    t.check(r.headers.get('content-type').startsWith('text/event-stream'), 'its type');
    let text = '';
    try {
        for await (const part of r.body) {
            text += Buffer.from(part).toString();
            for (let at; (at = text.indexOf('\n\n')) >= 0; text = text.slice(at + 2))
                if (text.slice(0, at).startsWith('data: '))
                    seen.push(JSON.parse(text.slice(6, at)));
        }
    } catch (e) {
        if (e.name !== 'AbortError')
            throw e;
    }
}

(async () => {
    const file = path.join(t.tmp, 'alarms.yaml');
    fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", lazy: true}\n` +
        'machines:\n  - {name: motor3, title: motor 3}\nsensors:\n' +
        '  - {name: vib, title: Vibration, unit: mm/s, machine: motor3, limits: "..7", clear: 1s, hold_off: 1ms}\n' +
        '  - {name: temp, title: bearing temperature, unit: degrees, machine: motor3}\n');
    const server = await t.start(shoal, ['--config', file]);
    const get = async (url) => (await fetch(server.url + url)).json();
    const post = async (url, body) => {
        const r = await fetch(server.url + url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
        return { status: r.status, ...await r.json() };
    };
    const put = (...readings) => post('/v1/readings', { readings });
    const seen = [], stop = new AbortController();
    const watching = watch(`${server.url}/v1/alarms?stream=true`, seen, stop);

    t.same((await get('/v1/alarms')).total, 0, 'no alarms yet');
    t.same((await put({ sensor: 'vib', value: 2.5 }, { sensor: 'temp', value: 60 })).accepted, 2, 'two readings');
    t.same((await put({ sensor: 'vib', value: 7.5 })).status, 202, 'one too high');
    let r = await get('/v1/alarms?open=true');
    t.same(r.data.length, 1, 'an alarm at once');
    const alarm = r.data[0];
    t.same(`${alarm.kind} ${alarm.severity} ${alarm.machine} ${alarm.channels[0].sensor}`, 'limit critical motor3 vib', 'what it is');
    t.check(/^Vibration on motor 3 rose from 2.5 to 7.5 mm\/s.*above the limit of 7 mm\/s\.$/.test(alarm.text), alarm.text);
    await t.until(() => seen.some((e) => e.id === alarm.id && e.change === 'raised'), 'the event of the stream');

    const kept = path.join(process.env.XDG_STATE_HOME, 'shoal', 'open-alarms.json');
    await t.until(() => fs.existsSync(kept), 'the file in the state folder');
    r = await post('/v1/alarms/acknowledge', { id: alarm.id, by: 'ada' });
    t.same(`${r.status} ${r.acknowledged} ${r.acknowledged_by}`, '200 true ada', 'acknowledged');
    await t.until(() => seen.some((e) => e.id === alarm.id && e.acknowledged), 'the stream says so');
    t.same((await post('/v1/alarms/acknowledge', { id: 12345 })).status, 404, 'an alarm that is not there');
    t.same((await post('/v1/alarms/acknowledge', {})).error?.param, 'id', 'no id');

    await t.until(async () => {
        await put({ sensor: 'vib', value: 2.5 });
        return (await get('/v1/alarms?open=true')).total === 0;
    }, 'the end of the alarm');
    await t.until(() => seen.some((e) => e.id === alarm.id && e.change === 'cleared'), 'the stream says that it is over');
    t.same((await get('/v1/alarms')).data[0].id, alarm.id, 'it is still listed');

    // one stream with everything that a page shows
    const page = new AbortController(), told = [];
    const looking = (async () => {
        const from = await fetch(`${server.url}/v1/sensors?stream=true&machine=motor3`, { signal: page.signal });
        let text = '';
        for await (const part of from.body) {
            text += Buffer.from(part).toString();
            for (let at; (at = text.indexOf('\n\n')) >= 0; text = text.slice(at + 2)) {
                const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, at)) ?? [];
                if (event)
                    told.push({ event, data: JSON.parse(data) });
            }
        }
    })().catch((e) => t.same(e.name, 'AbortError', 'how the stream ends'));
    await t.until(() => told.length >= 2, 'the beginning of the stream');
    t.same(told.slice(0, 2).map((e) => e.event).join(), 'sensors,alarm', 'what it begins with');
    t.same(told[0].data.data.map((s) => `${s.sensor} ${s.limit_high} ${s.history.values.length > 0}`).join(), 'vib 7 true,temp null true', 'what they are');
    t.same(told[1].data.id, alarm.id, 'an alarm that is over');
    await put({ sensor: 'vib', value: 8 });
    await t.until(() => told.some((e) => e.event === 'readings' && e.data.data.some((s) => s.sensor === 'vib' && s.value === 8 && s.alarm > 0)),
        'the reading');
    await t.until(() => told.some((e) => e.event === 'alarm' && e.data.cleared_ms === null && e.data.channels[0].value === 8), 'the alarm');
    t.check(told.every((e) => e.event !== 'readings' || e.data.data.every((s) => s.sensor === 'vib')), 'only what changed');
    page.abort();
    await looking;
    await put({ sensor: 'vib', value: 2.5 });

    r = (await get('/v1/sensors')).data;
    t.same(r.map((s) => `${s.sensor} ${s.value}`).join(), 'vib 2.5,temp 60', 'sensors');
    t.check(r[0].readings.all >= 3 && r[0].readings.bad === 0, 'their counts');
    t.same((await put({ sensor: 'vib', value: null })).status, 202, 'a missing value');
    t.same((await get('/v1/sensors')).data[0].readings.bad, 1, 'is counted');
    for (const [reading, says] of [[{ value: 1 }, "no 'sensor'"], [{ sensor: 'nosuch', value: 1 }, 'not configured'], [{ sensor: 'vib' }, "a 'value'"],
        [{ sensor: 'vib', value: 1, time_ms: -5 }, 'not a time']]) {
        r = await put({ sensor: 'temp', value: 99 }, reading);
        t.check(r.status === 400 && r.error.message.includes(`reading 2`) && r.error.message.includes(says), JSON.stringify(r));
    }
    t.same((await get('/v1/sensors')).data[1].value, 60, 'a refused request changes nothing');
    t.same((await fetch(`${server.url}/v1/alarms?limit=0`)).status, 400, 'a bad limit');
    for (const url of ['/v1/alarms?stream=maybe', '/v1/alarms?open=1', '/v1/sensors?stream=yes']) {
        const bad = await fetch(server.url + url), { error } = await bad.json();
        t.same(`${bad.status} ${error?.message}`, `400 '${error?.param}' must be true or false`, url);
        t.check(url.includes(`?${error?.param}=`), `${url}: ${error?.param}`);
    }
    t.same((await fetch(`${server.url}/v1/alarms?stream=false`)).status, 200, 'no stream');
    stop.abort();
    await watching;
    t.same((await server.stop()).code, 0, 'exit');

    // a machine learned by `shoal anomaly fit` is known before the first reading
    const csv = path.join(t.tmp, 'pump.csv'), learned = path.join(t.tmp, 'pump.json');
    fs.writeFileSync(csv, `flow,heat\n${Array.from({ length: 400 }, (_, i) => `${(12 + Math.sin(i * 1.7) * 0.5).toFixed(3)},${(60 + Math.cos(i * 2.3)).toFixed(3)}`).join('\n')}\n`);
    execFileSync(shoal, ['anomaly', 'fit', csv, '-o', learned]);
    const fitted = (name) => fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", lazy: true}\n` +
        `machines:\n  - {name: pump1, learned: ${learned}}\nsensors:\n  - {name: ${name}, machine: pump1}\n  - {name: other, machine: pump1}\n`);
    fitted('flow');
    const known = await t.start(shoal, ['--config', file]);
    r = (await (await fetch(`${known.url}/v1/sensors`)).json()).data;
    t.check(!r[0].learning && r[0].normal_low > 11.4 && r[0].normal_high < 12.6, `learned before: ${JSON.stringify(r[0])}`);
    t.same(r[1].learning, true, 'what the file does not have is learned from readings');
    t.same((await known.stop()).code, 0, 'exit');
    fitted('nosuch');
    const wrong = spawnSync(shoal, ['serve', '--listen', '127.0.0.1:0', '--config', file]);
    t.check(wrong.status !== 0 && /no sensor of it is a channel of .*whose first is 'flow'/.test(wrong.stderr), `${wrong.stderr}`);

    fs.writeFileSync(file, `models:\n  - {name: intent, path: "${path.join(t.root, 'models/encoder')}", lazy: true}\n`);
    const bare = await t.start(shoal, ['--config', file]);
    t.same((await fetch(`${bare.url}/v1/alarms`)).status, 404, 'no sensors');
    t.same((await bare.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
