#!/usr/bin/env node
// The official gRPC client of Node (@grpc/grpc-js) with proto/ against `shoal serve`.
// Usage: grpc.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http2 = require('http2');
const path = require('path');
const t = require('../integration/serve.js');
const { grpc, load, call, gather, decodeDetails, frame, raw } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');
const plain = grpc.credentials.createInsecure();
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const { status } = grpc;
const details = (e) => decodeDetails(e.metadata.get('grpc-status-details-bin')[0]);

async function generates(server, client) {
    const request = { model: 'long', prompt: 'Once upon', max_tokens: 12, temperature: 0 };
    const http = async (body) => (await fetch(`${server.url}/v1/completions`, { method: 'POST',
        body: JSON.stringify(body) })).json();
    const whole = await call(client, 'Generate', request), same = await http(request);
    t.same(whole.text, same.choices[0].text, 'the text of the HTTP interface');
    t.same(whole.usage.completion_tokens, same.usage.completion_tokens, 'usage');
    t.check((await call(client, 'Generate', request)).usage.cached_tokens > 0, 'cached tokens');
    const events = await gather(client.GenerateStream({ ...request, seed: 5 }));
    t.same(events.map((e) => e.text).join(''), whole.text, 'streamed');
    t.same(events.at(-1).usage.prompt_tokens, whole.usage.prompt_tokens, 'usage at the end');
    const chat = await call(client, 'Generate', { model: 'long', max_tokens: 3, ignore_eos: true,
        messages: [{ role: 'user', content: 'hi' }] });
    t.same(chat.usage.completion_tokens, 3, 'chat');
    // biases: always "a"; always the end token, which is ignored
    const as = await call(client, 'Generate', { ...request, max_tokens: 5, logit_bias: { 97: 100 } });
    t.same(as.text, 'aaaaa', 'logit_bias');
    const never = await call(client, 'Generate', { ...request, logit_bias: { [whole.text.codePointAt(0)]: -100 } });
    t.check(never.text[0] !== whole.text[0], 'logit_bias -100');
    const ends = { ...request, logit_bias: { 299: 100 } };
    t.same((await call(client, 'Generate', ends)).finish_reason, 'stop', 'the end token');
    const goes = await call(client, 'Generate', { ...ends, ignore_eos: true });
    t.same(goes.finish_reason, 'length', 'ignore_eos');
    t.same((await http({ ...ends, ignore_eos: true })).choices[0].text, goes.text, 'as over HTTP');
}

async function infers(client) {
    const texts = ['turn off the lights', 'call Anna'];
    const classes = await call(client, 'Classify', { model: 'enc', input: texts, top: 2 });
    t.same(classes.data[0].label, 'turn_off', 'classify');
    t.same(classes.data[0].labels.length, 2, 'top');
    t.check(classes.data[0].labels[0].score > classes.data[0].labels[1].score, 'scores');
    const tags = (await call(client, 'Tag', { model: 'enc', input: texts })).data[1];
    t.same(tags.spans[0].text, 'Anna', 'tag');
    t.same(texts[1].slice(tags.spans[0].start, tags.spans[0].end), 'Anna', 'where');
    const vectors = await call(client, 'Embed', { model: 'enc', input: texts, dimensions: 16 });
    t.same(vectors.data.length, 2, 'embed');
    t.same(vectors.data[1].values.length, 16, 'dimensions');
    t.check(vectors.data[1].values.some((x) => x !== 0), 'a vector');
    const long = 'word '.repeat(3000), large = 'word '.repeat(50000); // large messages are parsed off the loop
    for (const [prompt, reason, field] of [[large, 'CONTEXT_LENGTH_EXCEEDED'], [`${large}\0`, 'INVALID_VALUE', 'prompt']]) {
        const e = await t.fails(call(client, 'Generate', { model: 'long', prompt }), 'a large prompt'), d = details(e);
        t.same(`${e.code} ${d.ErrorInfo?.reason} ${d.BadRequest?.fieldViolations[0]?.field}`,
            `${status.INVALID_ARGUMENT} ${reason} ${field}`, 'a large prompt');
    }
    for (const name of ['Embed', 'Classify', 'Tag']) {
        const cut = await call(client, name, { model: 'enc', input: ['x', long] });
        t.same(cut.data.map((x) => x.truncated).join(), 'false,true', `${name}: what was cut says so`);
        const e = await t.fails(call(client, name, { model: 'enc', input: ['x', long], whole: true }), `${name}: whole`);
        t.same(`${e.code} ${details(e).ErrorInfo?.reason}`, `${status.INVALID_ARGUMENT} CONTEXT_LENGTH_EXCEEDED`,
            `${name}: refused`);
    }
}

// Errors have gRPC status codes, and details that name the problem.
async function fails(client) {
    const bad = { code: status.INVALID_ARGUMENT, type: 'BadRequest' };
    const ask = { model: 'long', prompt: 'x' };
    for (const [name, body, want] of [
        ['Generate', { model: 'no', prompt: 'x' }, { code: status.NOT_FOUND, reason: 'MODEL_NOT_FOUND', type: 'ResourceInfo' }],
        ['Generate', { ...ask, temperature: 9 }, { ...bad, reason: 'INVALID_VALUE', field: 'temperature' }],
        ['Generate', { ...ask, stop: [''] }, { ...bad, reason: 'INVALID_VALUE', field: 'stop' }],
        ['Generate', { ...ask, logit_bias: { 5: 101 } }, { ...bad, reason: 'INVALID_VALUE', field: 'logit_bias' }],
        ['Generate', { ...ask, logit_bias: { '-5': 1 } }, { ...bad, reason: 'INVALID_VALUE', field: 'logit_bias' }],
        ['Generate', { model: 'long', messages: [{ role: 'king', content: 'x' }] }, { ...bad, field: 'messages[0].role' }],
        ['Generate', { ...ask, messages: [{ role: 'user' }] }, { ...bad, reason: 'UNKNOWN_PARAMETER', field: 'prompt' }],
        ['Classify', { model: 'long', input: ['x'] }, { ...bad, reason: 'INVALID_VALUE', field: 'model' }],
        ['Classify', { model: 'enc', input: [] }, { ...bad, field: 'input' }],
        ['Score', { input: [{ values: [1] }] }, { code: status.NOT_FOUND, reason: 'MODEL_NOT_FOUND', type: 'ResourceInfo' }]]) {
        const e = await t.fails(call(client, name, body), name), what = `${name} ${JSON.stringify(body)}`;
        t.same(e.code, want.code, what);
        t.check(e.details?.length > 10, `with a message: ${e.details}`);
        const d = details(e);
        t.same(d.code, e.code, `${what}: the code of the details`);
        t.same(d.message, e.details, `${what}: the text of the details`);
        t.same(d.ErrorInfo.domain, 'shoal', `${what}: domain`);
        t.same(d.ErrorInfo.reason, want.reason ?? d.ErrorInfo.reason, `${what}: reason`);
        t.check(/^[A-Z][A-Z_]+$/.test(d.ErrorInfo.reason), `${what}: a name: ${d.ErrorInfo.reason}`);
        t.check(d[want.type], `${what}: ${want.type}`);
        t.same(d.BadRequest?.fieldViolations[0].field, want.field, `${what}: field`);
        t.same(d.ResourceInfo?.resourceName, want.code === status.NOT_FOUND ? body.model ?? '' : undefined, `${what}: model`);
        t.same(d.RetryInfo, undefined, `${what}: no use to try again`);
    }
    const chosen = details(await t.fails(call(client, 'Generate', { model: 'no', prompt: 'x' }), 'no model'));
    t.same(chosen.ErrorInfo.metadata.model, 'no', 'metadata');
    t.same(chosen.ResourceInfo.resourceType, 'model', 'resource type');
}

// A refusal says when to retry.
async function refuses() {
    const sha = (s) => crypto.createHash('sha256').update(s).digest('hex');
    const config = path.join(t.tmp, 'grpc.yaml');
    fs.writeFileSync(config, `
models: [{name: long, path: ${long}, context: 65536}, {name: late, path: ${t.root}/models/encoder, lazy: true}]
load_wait: 0
keys: [{name: slow, sha256: ${sha('k-slow')}, rate: 0.01, burst: 1}, {name: one, sha256: ${sha('k-one')}, in_flight: 1},
       {name: any, sha256: ${sha('k-any')}}]
`);
    const server = await t.start(shoal, ['--config', config]);
    const client = new Shoal(`127.0.0.1:${server.port}`, plain);
    const as = (key) => {
        const meta = new grpc.Metadata();
        meta.set('authorization', `Bearer ${key}`);
        return meta;
    };
    const request = { model: 'long', prompt: 'Once upon', max_tokens: 2 };
    const refused = async (promise, code, reason, retry) => {
        const e = await t.fails(promise, reason), d = details(e);
        t.same(e.code, code, `${reason}: code`);
        t.same(d.ErrorInfo.reason, reason, 'reason');
        t.same((d.RetryInfo?.retryDelay?.seconds ?? 0) > 0, retry, `${reason}: when again`);
    };
    await refused(call(client, 'Generate', request), status.UNAUTHENTICATED, 'INVALID_API_KEY', false);
    await call(client, 'Generate', request, {}, as('k-slow'));
    const other = new grpc.Metadata();
    other.set('x-api-key', 'k-any');
    await call(client, 'Generate', request, {}, other);
    await refused(call(client, 'Generate', request, {}, as('k-slow')), status.RESOURCE_EXHAUSTED, 'RATE_LIMIT_EXCEEDED', true);
    // in a context of 65536 tokens it writes for minutes: it is there until it is cancelled
    const stream = client.GenerateStream({ ...request, max_tokens: 100000, ignore_eos: true }, as('k-one'));
    stream.on('error', () => {});
    await new Promise((done) => stream.once('data', done));
    await refused(call(client, 'Generate', request, {}, as('k-one')), status.RESOURCE_EXHAUSTED, 'OVERLOADED', true);
    stream.cancel();
    await refused(call(client, 'Classify', { model: 'late', input: ['x'] }, {}, as('k-any')), status.UNAVAILABLE,
        'MODEL_LOADING', true);
    client.close();
    t.same((await server.stop()).code, 0, 'exit');
}

async function deadlines(server, client) {
    const request = { model: 'long', prompt: 'Once upon', max_tokens: 2000, seed: 3, temperature: 1 };
    const late = await t.fails(call(client, 'Generate', request, { deadline: Date.now() + 30 }), 'deadline');
    t.same(late.code, status.DEADLINE_EXCEEDED, 'deadline');
    // the status comes from the server: the client would give up on its own
    const session = http2.connect(server.url);
    const body = frame(Shoal.service.Generate.requestSerialize(request));
    for (const timeout of ['30m', '1n']) {
        // if other work were in the way, a retry could help
        await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'the request before ends');
        const r = await raw(session, '/shoal.v1.Shoal/Generate', body, { 'grpc-timeout': timeout });
        t.same(r.status, status.DEADLINE_EXCEEDED, `grpc-timeout ${timeout}`);
        const d = decodeDetails(Buffer.from(r.trailers['grpc-status-details-bin'], 'base64'));
        t.check(/^DEADLINE(_UNREACHABLE)?$/.test(d.ErrorInfo.reason), 'reason');
        t.same(d.RetryInfo, undefined, 'only a longer deadline helps');
        t.check(!r.trailers['grpc-status-details-bin'].includes('='), 'no padding');
    }
    session.close();
}

(async () => {
    const config = path.join(t.tmp, 'long.yaml');
    fs.writeFileSync(config, `models: [{name: long, path: ${long}, context: 65536}, {name: enc, path: ${t.root}/models/encoder}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const address = `127.0.0.1:${server.port}`;
    const client = new Shoal(address, plain);
    await generates(server, client);
    await infers(client);
    await fails(client);
    await deadlines(server, client);
    // cancelling a stream cancels its work
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'idle');
    const before = await t.metric(server, 'shoal_cancelled_total{model="long"}');
    const stream = client.GenerateStream({ model: 'long', prompt: 'Once upon', max_tokens: 100000, temperature: 0,
        ignore_eos: true });
    stream.on('error', () => {});
    await new Promise((done) => stream.once('data', done));
    stream.cancel();
    await t.until(async () => await t.metric(server, 'shoal_in_flight{model="long"}') === 0, 'cancel');
    t.check(await t.metric(server, 'shoal_cancelled_total{model="long"}') > before, 'cancelled');
    const { Health } = load('grpc/health/v1/health.proto').grpc.health.v1;
    const health = new Health(address, plain);
    for (const service of ['', 'shoal.v1.Shoal'])
        t.same((await call(health, 'Check', { service })).status, 'SERVING', `health of "${service}"`);
    t.same((await t.fails(call(health, 'Check', { service: 'shoal.v1' }), 'health')).code, status.NOT_FOUND, 'health of none');
    client.close();
    health.close();
    t.same((await server.stop()).code, 0, 'exit');
    await refuses();
    t.finish();
})().catch(t.abandon);
