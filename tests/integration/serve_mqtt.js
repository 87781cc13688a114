#!/usr/bin/env node
// Requests over MQTT with a real broker and the npm client: the same answers as over HTTP, streams, errors, keys,
// limits, shared subscriptions, the last will, TLS with a client certificate, and a broker that goes down. Usage:
// serve_mqtt.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const m = require('./mqtt_site.js');

const shoal = path.resolve(process.argv[2]);
const model = (name) => path.join(t.root, 'models', name);
const models = `models:\n  - {name: reply, path: "${model('reply.gguf')}"}\n  - {name: intent, path: "${model('encoder')}"}\n`;
const last = (list) => list[list.length - 1];

let n_configs = 0;
function config(text) {
    const file = path.join(t.tmp, `mqtt${n_configs++}.yaml`);
    fs.writeFileSync(file, text);
    return ['--config', file];
}

const serve = (broker, more = '', top = '') => t.start(shoal, config(
    `${models}${top}mqtt:\n  broker: ${broker.url}\n  client_id: server${n_configs}\n  reconnect_max: 500ms\n` +
    `  queue: {file: "${t.tmp}/queue${n_configs}"}\n${more}`));
const post = async (server, where, body) => (await t.within(fetch(server.url + where, { method: 'POST', body: JSON.stringify(body) }),
    where)).json();
const story = { prompt: 'the kitchen lights are', max_tokens: 12, temperature: 0, ignore_eos: true };

async function answers(broker) {
    const server = await serve(broker, '  requests: {responses: ["clients/+/reply"], payload: 4KiB}\n');
    const client = await m.connect(broker);
    await m.subscribe(client, 'shoal/status');
    await t.until(() => client.seen.some((x) => x.topic === 'shoal/status' && x.text === 'online'), 'the status');

    // the same answers as over HTTP, in each form
    const want = await post(server, '/v1/completions', { model: 'reply', ...story });
    const whole = await m.ask(client, 'shoal/request/reply', story);
    t.same(whole.length, 1, 'one message');
    t.same(whole[0].properties.status, '200', 'its status');
    t.same(JSON.parse(whole[0].text).choices?.[0].text, want.choices[0].text, 'a whole answer');
    t.same(whole[0].properties['x-shoal-model'], 'reply', 'the model that answered');
    t.same(whole[0].packet.properties.contentType, 'application/json', 'its type');
    const stream = await m.ask(client, 'shoal/request/reply', story, { stream: 'true' }, { qos: 2 });
    t.check(stream.length > 5, `a message for each token: ${stream.length}`);
    t.same(stream.map((x) => JSON.parse(x.text).choices?.[0]?.text ?? '').join(''), want.choices[0].text, 'as a stream');
    t.same(stream.map((x) => x.properties.event).join(), stream.map((x, i) => i).join(), 'its order');
    t.same(last(stream).properties.done, 'true', 'the end of the stream');
    const text = 'turn on the lights in the kitchen', label = await post(server, '/v1/classify', { model: 'intent', input: text });
    const plain = await m.ask(client, 'shoal/request/intent', text);
    t.check(label.data?.length === 1, 'a label over HTTP');
    t.same(JSON.stringify(JSON.parse(plain[0].text).data), JSON.stringify(label.data), 'a plain text to a classifier');
    const list = await m.ask(client, 'shoal/request/intent', JSON.stringify([text, 'what time is it']));
    t.same(JSON.parse(list[0].text).data?.length, 2, 'a list of texts');
    const chat = await m.ask(client, 'shoal/request/reply', 'hello', { priority: '-1', 'deadline-ms': '60000' });
    t.same(chat[0].properties.status, '200', `a plain text to a generator: ${chat[0].text}`);
    const by_property = await m.ask(client, 'shoal/request/x', { input: text }, { model: 'intent', path: '/v1/classify' });
    t.same(JSON.parse(by_property[0].text).data?.length, 1, 'model and path as properties');
    const route = await m.ask(client, 'shoal/request/auto', { messages: [{ role: 'user', content: 'hello' }], max_tokens: 4 });
    t.same(route[0].properties['x-shoal-route'], 'auto', `a route: ${route[0].text}`);

    // which response topics are allowed
    await m.subscribe(client, 'clients/7/reply');
    const allowed = await m.ask(client, 'shoal/request/intent', text, {}, { response: 'clients/7/reply' });
    t.same(allowed[0].topic, 'clients/7/reply', 'an allowed response topic');
    await m.subscribe(client, 'home/door/lock/set');
    await m.publish(client, 'shoal/request/intent', text, { qos: 1, properties: { responseTopic: 'home/door/lock/set' } });
    await t.until(() => server.log.includes('mqtt.requests.responses'), 'a refused response topic in the log');
    t.check(!client.seen.some((x) => x.topic === 'home/door/lock/set'), 'nothing is published where only the server may');
    await m.subscribe(client, 'shoal/response/intent');
    await m.publish(client, 'shoal/request/intent', text); // an MQTT 3.1.1 client cannot set a response topic
    await t.until(() => client.seen.some((x) => x.topic === 'shoal/response/intent'), 'the default response topic');

    // errors as messages
    for (const [why, name, payload, properties, status, words] of [
        ['unknown model', 'nobody', { messages: [{ role: 'user', content: 'x' }] }, {}, '404', 'nobody'],
        ['broken JSON', 'intent', '{"input": ', {}, '400', 'looks like JSON'],
        ['more than one value', 'intent', '{"input": "a"} x', {}, '400', 'looks like JSON'],
        ['NUL', 'intent', '{"input": "a\\u0000b"}', {}, '400', 'NUL'],
        ['empty', 'intent', '', {}, '400', 'empty'],
        ['wrong field', 'intent', '{"input": 7}', {}, '400', 'input'],
        ['wrong priority', 'intent', 'x', { priority: 'high' }, '400', 'priority'],
        ['wrong stream', 'intent', 'x', { stream: 'yes' }, '400', 'stream'],
        ['wrong deadline', 'intent', 'x', { 'deadline-ms': 'soon' }, '400', 'milliseconds'],
        ['no time', 'reply', { prompt: 'a long story of nobody', max_tokens: 300 }, { 'deadline-ms': '1' }, '504', ''],
        ['wrong path', 'intent', 'x', { path: 'v1' }, '400', 'path'],
        ['no such path', 'intent', 'x', { path: '/v1/nothing' }, '404', 'nothing'],
        ['administration', 'intent', '{"name": "intent", "action": "unload"}', { path: '/admin/models' }, '403', 'admin'],
        ['too large', 'intent', 'x'.repeat(5000), {}, '413', '4096'],
    ]) {
        const got = await m.ask(client, `shoal/request/${name}`, payload, properties);
        t.same(got[0].properties.status, status, `${why}: ${got[0].text}`);
        t.check(JSON.parse(got[0].text).error?.message?.includes(words), `${why}: ${got[0].text}`);
        t.same(got[0].properties.done, 'true', `${why}: the end`);
    }
    const before = client.seen.length;
    await m.publish(client, 'shoal/request/intent', Buffer.from([0xff, 0xfe]), { qos: 1,
        properties: { responseTopic: `shoal/response/${client.options.clientId}` } });
    await t.until(() => client.seen.slice(before).some((x) => x.text.includes('must be text')), 'bytes that are no text');

    // a repeated id is not answered again
    const twice = { qos: 1, properties: { responseTopic: 'clients/7/reply', userProperties: { id: 'order-66' } } };
    const n = client.seen.filter((x) => x.topic === 'clients/7/reply').length;
    await m.publish(client, 'shoal/request/intent', text, twice);
    await m.publish(client, 'shoal/request/intent', text, twice);
    await m.ask(client, 'shoal/request/intent', text); // after both
    await t.until(() => client.seen.filter((x) => x.topic === 'clients/7/reply').length > n, 'the answer to an id');
    t.same(client.seen.filter((x) => x.topic === 'clients/7/reply').length, n + 1, 'one answer to an id that comes twice');
    t.same(await t.metric(server, 'shoal_mqtt_repeated_total'), 1, 'a repeated message is counted');
    t.check(await t.metric(server, 'shoal_mqtt_requests_total') > 20, 'requests are counted');
    await t.until(async () => await t.metric(server, 'shoal_mqtt_requests_in_flight') === 0, 'nothing is left in flight');

    // the broker is killed: both reconnect, and a waiting request is answered
    await broker.kill();
    await t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 0, 'the loss of the broker');
    await broker.start();
    await m.up(server);
    await t.until(() => client.connected, 'the client is back');
    t.same((await m.ask(client, 'shoal/request/intent', text))[0].properties.status, '200', 'after the broker came back');

    // a clean exit publishes it, after a crash the broker does
    client.seen.length = 0;
    t.same((await server.stop()).code, 0, 'stops cleanly');
    await t.until(() => client.seen.some((x) => x.topic === 'shoal/status' && x.text === 'offline'), 'offline at the end');
    await client.endAsync(true);
}

async function keys(broker) {
    const sha = crypto.createHash('sha256').update('secret').digest('hex');
    const server = await serve(broker, '  requests: {in_flight: 2}\n', `keys:\n  - {name: plc, sha256: "${sha}"}\n`);
    const client = await m.connect(broker);
    const text = 'turn on the lights';
    await m.up(server);
    t.same((await m.ask(client, 'shoal/request/intent', text))[0].properties.status, '401', 'no key');
    t.same((await m.ask(client, 'shoal/request/intent', text, { key: 'wrong' }))[0].properties.status, '401', 'a wrong key');
    t.same((await m.ask(client, 'shoal/request/intent', text, { key: 'secret' }))[0].properties.status, '200', 'the key');
    const many = await Promise.all(Array.from({ length: 12 }, (x, i) => m.ask(client, 'shoal/request/reply',
        { ...story, prompt: `${i} lights are`, max_tokens: 400 }, { key: 'secret' }))); // something no cache can answer
    const statuses = many.map((x) => last(x).properties.status);
    t.check(statuses.includes('200') && statuses.includes('429') && statuses.every((s) => s === '200' || s === '429'),
        `at most two at once: ${statuses}`);
    await m.subscribe(client, 'shoal/status');
    await t.until(() => client.seen.some((x) => x.text === 'online'), 'online');
    await server.stop('SIGKILL');
    await t.until(() => client.seen.some((x) => x.topic === 'shoal/status' && x.text === 'offline'), 'the last will');
    await client.endAsync(true);
}

// Two servers share the requests: each is answered once.
async function shared(broker) {
    const servers = [await serve(broker, '  requests: {share: hall}\n'), await serve(broker, '  requests: {share: hall}\n')];
    const client = await m.connect(broker);
    for (const s of servers)
        await m.up(s);
    await m.ask(client, 'shoal/request/intent', 'warm up');
    const got = await Promise.all(Array.from({ length: 20 }, (x, i) => m.ask(client, 'shoal/request/intent', `light ${i}`)));
    t.check(got.every((x) => x.length === 1), 'one answer to each');
    const counts = await Promise.all(servers.map((s) => t.metric(s, 'shoal_mqtt_requests_total')));
    t.same(counts[0] + counts[1], 21, `requests of both: ${counts}`);
    t.check(counts[0] > 0 && counts[1] > 0, `both have work: ${counts}`);
    for (const s of servers)
        await s.stop();
    await client.endAsync(true);
}

async function tls() {
    const dir = m.certificates(path.join(t.tmp, 'certs'));
    const broker = await m.Broker.open((b) => `listener ${b.ports[1]} 127.0.0.1\ncafile ${dir}/ca.pem\ncertfile ${dir}/broker.pem\n` +
        `keyfile ${dir}/broker.key\nrequire_certificate true\nuse_identity_as_username true\nallow_anonymous false\n`, 2);
    const secure = { url: `mqtts://127.0.0.1:${broker.ports[1]}` };
    const client = await m.connect(broker);
    const good = await serve(secure, `  ca: ${dir}/ca.pem\n  cert: ${dir}/client.pem\n  key: ${dir}/client.key\n`);
    await m.up(good); // with the client certificate
    t.same((await m.ask(client, 'shoal/request/intent', 'hello'))[0].properties.status, '200', 'over TLS');
    await good.stop();
    const bare = await serve(secure, `  ca: ${dir}/ca.pem\n`);
    await t.until(() => bare.log.includes('no connection to'), 'a client without a certificate is refused');
    t.same(await t.metric(bare, 'shoal_mqtt_up'), 0, 'and is not connected');
    await bare.stop();
    const other = m.certificates(path.join(t.tmp, 'other'));
    const fooled = await serve(secure, `  ca: ${other}/ca.pem\n  cert: ${dir}/client.pem\n  key: ${dir}/client.key\n`);
    await t.until(() => fooled.log.includes('no connection to'), 'a broker of another authority is refused');
    t.same(await t.metric(fooled, 'shoal_mqtt_up'), 0, 'and is not connected to');
    await fooled.stop();
    await client.endAsync(true);
    await broker.kill();
}

// Errors in the file are reported at startup.
async function refused() {
    for (const [lines, words] of [
        ['broker: localhost', 'mqtt.broker'],
        ['broker: "mqtt://user:secret@localhost"', 'mqtt.broker'],
        ['broker: "mqtt://localhost:99999"', 'mqtt.broker'],
        ['broker: "mqtt://localhost"\n  topic: "a/#"', 'mqtt.topic'],
        ['broker: "mqtts://localhost"\n  ca: /nowhere.pem', '/nowhere.pem'],
        ['broker: "mqtt://localhost"\n  password_file: /nowhere', '/nowhere'],
        ['broker: "mqtt://localhost"\n  requests: {responses: ["a#"]}', 'mqtt.requests.responses'],
        ['broker: "mqtt://localhost"\n  queue: {file: /nowhere/queue}', '/nowhere/queue'],
    ]) {
        const e = await t.fails(t.start(shoal, config(`${models}mqtt:\n  ${lines}\n`)), lines);
        t.check(e.message?.includes(words), `${lines}: ${e.message}`);
    }
}

(async () => {
    const broker = await m.Broker.open();
    await answers(broker);
    await keys(broker);
    await shared(broker);
    await broker.kill();
    await tls();
    await refused();
    t.finish();
})().catch(t.abandon);
