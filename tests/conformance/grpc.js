#!/usr/bin/env node
// The official gRPC client of Node (@grpc/grpc-js) with proto/ against `shoal serve`.
// Usage: grpc.js SHOAL
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');

// Packages with dependencies: installed once, without scripts, by exact versions.
function install(...names) {
    const dir = path.join(t.root, '.cache/npm-grpc');
    if (!fs.existsSync(path.join(dir, 'done'))) {
        fs.mkdirSync(dir, { recursive: true });
        execFileSync('npm', ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', dir,
            ...names], { stdio: ['ignore', 'ignore', 'inherit'] });
        fs.writeFileSync(path.join(dir, 'done'), names.join('\n'));
    }
    return path.join(dir, 'node_modules');
}

const modules = install('@grpc/grpc-js@1.12.2', '@grpc/proto-loader@0.7.13');
const grpc = require(path.join(modules, '@grpc/grpc-js'));
const loader = require(path.join(modules, '@grpc/proto-loader'));
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(file, {
    includeDirs: [path.join(t.root, 'proto')], keepCase: true, longs: Number, enums: String, defaults: true }));

const call = (client, name, request, options = {}, meta = new grpc.Metadata()) => new Promise((done, give) =>
    client[name](request, meta, options, (e, r) => (e ? give(e) : done(r))));

function gather(stream) {
    return new Promise((done, give) => {
        const all = [];
        stream.on('data', (m) => all.push(m));
        stream.on('end', () => done(all));
        stream.on('error', give);
    });
}

(async () => {
    const server = await t.start(shoal, ['-m', `long=${long}`, '-m', `enc=${t.root}/models/encoder`]);
    const address = `127.0.0.1:${server.port}`, plain = grpc.credentials.createInsecure();
    const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
    const client = new Shoal(address, plain);
    const request = { model: 'long', prompt: 'Once upon', max_tokens: 12, temperature: 0 };
    const http = await (await fetch(`${server.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify(request) })).json();
    const whole = await call(client, 'Generate', request);
    t.same(whole.text, http.choices[0].text, 'the text of the HTTP interface');
    t.same(whole.usage.completion_tokens, http.usage.completion_tokens, 'usage');
    const events = await gather(client.GenerateStream({ ...request, seed: 5 }));
    t.same(events.map((e) => e.text).join(''), whole.text, 'streamed');
    t.same(events.at(-1).usage.prompt_tokens, whole.usage.prompt_tokens, 'usage at the end');
    const chat = await call(client, 'Generate', { model: 'long', max_tokens: 3,
        messages: [{ role: 'user', content: 'hi' }] });
    t.same(chat.usage.completion_tokens, 3, 'chat');
    const packed = new Shoal(address, plain, { 'grpc.default_compression_algorithm': 2 });
    t.same((await call(packed, 'Generate', { ...request, prompt: 'Once upon' + ' a time'.repeat(50) })).model, 'long',
        'messages in gzip');
    const texts = ['turn off the lights', 'call Anna'];
    const classes = await call(client, 'Classify', { model: 'enc', input: texts, top: 2 });
    t.same(classes.data[0].label, 'turn_off', 'classify');
    t.same(classes.data[0].labels.length, 2, 'top');
    t.same((await call(client, 'Tag', { model: 'enc', input: texts })).data[1].spans[0].text, 'Anna', 'tag');
    const vectors = await call(client, 'Embed', { model: 'enc', input: texts, dimensions: 16 });
    t.same(vectors.data[1].values.length, 16, 'embed');
    // errors have the codes of gRPC
    const { status } = grpc;
    for (const [name, body, code] of [['Generate', { model: 'no', prompt: 'x' }, status.NOT_FOUND],
        ['Generate', { model: 'long', prompt: 'x', temperature: 9 }, status.INVALID_ARGUMENT],
        ['Classify', { model: 'long', input: ['x'] }, status.INVALID_ARGUMENT],
        ['Score', { input: [{ values: [1] }] }, status.NOT_FOUND]]) {
        const e = await t.fails(call(client, name, body), name);
        t.same(e.code, code, `${name} ${JSON.stringify(body)}`);
        t.check(e.details?.length > 10, `with a message: ${e.details}`);
    }
    const late = await t.fails(call(client, 'Generate', { ...request, max_tokens: 2000, seed: 3, temperature: 1 },
        { deadline: Date.now() + 30 }), 'deadline');
    t.same(late.code, status.DEADLINE_EXCEEDED, 'deadline');
    // a stream that is cancelled cancels its work
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'idle');
    const before = await t.metric(server, 'shoal_cancelled_total{model="long"}');
    const stream = client.GenerateStream({ model: 'long', prompt: 'Once upon', max_tokens: 100000, temperature: 0 });
    stream.on('error', () => {});
    await new Promise((done) => stream.once('data', done));
    stream.cancel();
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'cancel');
    t.check(await t.metric(server, 'shoal_cancelled_total{model="long"}') > before, 'cancelled');
    const { Health } = load('grpc/health/v1/health.proto').grpc.health.v1;
    t.same((await call(new Health(address, plain), 'Check', {})).status, 'SERVING', 'health');
    // bytes that are no message
    const http2 = require('http2').connect(server.url);
    for (const bytes of ['', 'x', '\x00\x00\x00\x00\x05ab', '\x01\x00\x00\x00\x02ab', '\x00\x00\x00\x00\x02\xff\xff']) {
        const r = http2.request({ ':method': 'POST', ':path': '/shoal.v1.Shoal/Generate',
            'content-type': 'application/grpc', te: 'trailers' });
        const code = await new Promise((done) => {
            r.on('trailers', (h) => done(h['grpc-status']));
            r.resume();
            r.end(Buffer.from(bytes, 'latin1'));
        });
        t.same(code, '3', `bytes ${JSON.stringify(bytes)}`);
    }
    http2.close();
    client.close();
    packed.close();
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch((e) => {
    console.log(e);
    process.exit(1);
});
