#!/usr/bin/env node
// Calls of flows to real targets: an MQTT broker that goes down and comes back, and a plug-in.
// Usage: serve_calls.js SHOAL PLUGIN.so ODD_PLUGIN.so
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]), plugin = path.resolve(process.argv[3]), odd = path.resolve(process.argv[4]);

(async () => {
    fs.chmodSync(plugin, 0o755); // whatever umask the build had
    fs.chmodSync(odd, 0o755);
    const broker = await m.Broker.open();
    const file = path.join(t.tmp, 'calls.yaml');
    fs.writeFileSync(file, `
mqtt: {broker: "${broker.url}", client_id: caller, reconnect_max: 500ms, queue: {file: "${t.tmp}/queue"}}
flows:
  - name: say
    output: said
    inputs: [{name: room, default: hall}]
    steps:
      - {name: say, do: call, via: mqtt, topic: "home/\${input.room}/say", payload: '{"text": "\${input.text}"}', retry: 0, fallback: nobody}
  - name: told
    output: \${say.text}
    steps: [{name: say, do: call, via: mqtt, topic: home/all/say, payload: "\${input.text}", qos: 2, retain: true, retry: 0, fallback: nobody}]
  - name: words
    output: \${count.json.words} words
    fallback: none
    steps: [{name: count, do: call, via: plugin, plugin: "${plugin}", payload: "\${input.text}", json: true, retry: 0}]
  - name: wordless
    output: \${count.json.words} words
    fallback: none
    steps: [{name: count, do: call, via: plugin, plugin: "${plugin}", payload: " ", json: true, retry: 0}]
  - name: odd
    output: \${it.text}
    steps: [{name: it, do: call, via: plugin, plugin: "${odd}", payload: "\${input.text}", retry: 0, timeout: 20s, fallback: saved}]
  - name: hasty
    output: \${it.text}
    steps: [{name: it, do: call, via: plugin, plugin: "${odd}", payload: "\${input.text}", retry: 0, timeout: 20ms, on_timeout: late}]
flows_allow: {topics: [home/+/say], plugins: ["${path.dirname(plugin)}/"]}
`);
    const server = await t.start(shoal, ['--config', file]);
    const process_ = async (model, text, input) => {
        const r = await t.within(fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ model, text, input, explain: true }) }), model);
        return { status: r.status, json: await r.json() };
    };

    const client = await m.connect(broker);
    await m.subscribe(client, 'home/+/say');
    const seen = (topic, text) => client.seen.some((x) => x.topic === topic && x.text === text);
    // the server may still be connecting: until then the flow reports that
    await t.until(async () => (await process_('told', 'first')).json.degraded === false, 'the server reaches the broker');
    await t.until(() => seen('home/all/say', 'first'), 'the message is delivered');
    let r = await process_('say', 'a "quoted" text', { room: 'kit/chen' });
    t.same(`${r.status} ${r.json.text} ${r.json.degraded}`, '200 said false', JSON.stringify(r.json));
    await t.until(() => seen('home/kit_chen/say', '{"text": "a \\"quoted\\" text"}'), 'values are escaped for the topic and for JSON');
    const late = await m.connect(broker);
    await m.subscribe(late, 'home/all/say');
    await t.until(() => late.seen.some((x) => x.text === 'first'), 'a retained message waits for a later subscriber');

    // the broker goes down: the flow falls back, and calls again when it is up
    client.end(true);
    late.end(true);
    await broker.kill();
    await t.until(async () => (await process_('told', 'lost')).json.text === 'nobody', 'the flow falls back');
    await broker.start();
    await t.until(async () => (await process_('told', 'second')).json.degraded === false, 'the server is connected again');
    const again = await m.connect(broker);
    await m.subscribe(again, 'home/all/say');
    await t.until(() => again.seen.some((x) => x.text === 'second'), 'the message is delivered');
    again.end(true);

    // the plug-in keeps its state; its error text is shown
    r = await process_('words', 'turn on the light');
    t.same(r.json.text, '4 words', JSON.stringify(r.json));
    t.same(r.json.steps[0].output.json.call, 1, JSON.stringify(r.json));
    r = await process_('words', 'again');
    t.same(r.json.steps[0].output.json.call, 2, JSON.stringify(r.json));
    r = await process_('wordless', 'x');
    t.check(r.json.text === 'none' && /there is no word in it/.test(JSON.stringify(r.json)), JSON.stringify(r.json));
    // whatever a plug-in does in its process, the server and the other steps go on
    for (const [model, how, text, why] of [['odd', 'crash', 'saved', /crashed: its process was killed by signal/], ['odd', 'leave', 'saved', /ended with 3/],
        ['odd', 'nonsense', 'saved', /sent an invalid answer/], ['hasty', 'hang', 'late', /exceeded its time limit|did not answer in time/]]) {
        r = await process_(model, how);
        t.same(`${r.status} ${r.json.text} ${r.json.degraded}`, `200 ${text} true`, JSON.stringify(r.json));
        t.check(why.test(JSON.stringify(r.json)), `${how}: ${JSON.stringify(r.json)}`);
        r = await process_('odd', 'which process');
        t.check(/^\d+$/.test(r.json.text) && !r.json.degraded, `after ${how}: ${JSON.stringify(r.json)}`);
    }
    const pid = r.json.text;
    t.same(await t.metric(server, 'shoal_plugin_failures_total{why="crash"}'), 3, 'crashes');
    await t.until(async () => await t.metric(server, 'shoal_plugin_failures_total{why="late"}') === 1, 'the one that hangs is killed');
    t.same((await server.stop()).code, 0, 'a clean end');
    t.check(!fs.existsSync(`/proc/${pid}`), 'no process of a plug-in is left');

    // a folder that is not allowed
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/plugins: .*\]/, 'plugins: [/opt/other]'));
    const bad = require('child_process').spawnSync(shoal, ['serve', '--config', file, '--check'], { encoding: 'utf8' });
    t.check(bad.status !== 0 && /add the folder of .* to flows_allow\.plugins/.test(bad.stderr), bad.stderr);
    await broker.kill();
    t.finish();
})().catch(t.abandon);
