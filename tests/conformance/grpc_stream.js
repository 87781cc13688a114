#!/usr/bin/env node
// gRPC below the calls: reflection by a client that has no file of ours, streams in both directions, health as it
// changes, gzip and broken messages on the wire.
// Usage: grpc_stream.js SHOAL
'use strict';
const fs = require('fs');
const http2 = require('http2');
const path = require('path');
const zlib = require('zlib');
const t = require('../integration/serve.js');
const { grpc, use, load, call, gather, decodeDetails, frame, raw } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');
const plain = grpc.credentials.createInsecure();
const { status } = grpc;
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const { Health } = load('grpc/health/v1/health.proto').grpc.health.v1;
const { ServerReflection } = load('grpc/reflection/v1/reflection.proto').grpc.reflection.v1;
const services = ['grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection', 'shoal.v1.Shoal'];

// A call that knows nothing but the address.
async function discovers(address, version) {
    const { GrpcReflection } = use('grpc-js-reflection-client');
    const reflection = new GrpcReflection(address, plain, {}, version);
    t.same((await reflection.listServices()).sort().join(), services.join(), `${version}: services`);
    t.same((await reflection.listMethods('shoal.v1.Shoal')).map((m) => m.name).join(),
        'Generate,GenerateStream,Classify,Tag,Embed,Score,ScoreStream,Recognize,Speak', 'methods');
    const found = (await reflection.getDescriptorBySymbol('shoal.v1.Shoal')).getPackageObject({ keepCase: true });
    const client = new found.shoal.v1.Shoal(address, plain);
    const classes = await call(client, 'Classify', { input: ['turn off the lights'], top: 1 });
    t.same(classes.data[0].label, 'turn_off', `${version}: a call`);
    client.close();
    const health = (await reflection.getDescriptorByFileName('grpc/health/v1/health.proto')).getPackageObject();
    t.same(Object.keys(health.grpc.health.v1.Health.service).join(), 'Check,Watch,List', 'by the name of the file');
    const details = (await reflection.getDescriptorBySymbol('google.rpc.Status')).getPackageObject();
    t.check(details.google.rpc.Status && details.google.protobuf.Any, 'a file and what it imports');
    t.same((await reflection.getAllExtensionNumbersOfType('shoal.v1.Message')).extension_number.length, 0, 'extensions');
    for (const symbol of ['shoal.v1.Sho', 'shoal.v1.Shoal.', 'shoal.v1.Shoal.Sing', 'shoal.v1', 'Shoal', '', '.'])
        t.check(/symbol/.test((await t.fails(reflection.getDescriptorBySymbol(symbol), symbol)).message), `no ${symbol}`);
    for (const symbol of ['shoal.v1.Shoal.Generate', 'shoal.v1.GenerateRequest.LogitBiasEntry', 'shoal.v1.Usage.prompt_tokens',
        'grpc.health.v1.HealthCheckResponse.ServingStatus', 'google.rpc.BadRequest.FieldViolation'])
        t.check(await reflection.getDescriptorBySymbol(symbol), symbol);
}

// Alternating requests and responses on one stream: each request waits for the previous response.
async function converses(client) {
    const questions = [[{ list_services: '' }, 'list_services_response'], [{ file_by_filename: 'shoal/v1/shoal.proto' }, 'file_descriptor_response'],
        [{ file_by_filename: 'no.proto' }, 'error_response', status.NOT_FOUND],
        [{ file_containing_extension: { containing_type: 'shoal.v1.Message', extension_number: 7 } }, 'error_response', status.NOT_FOUND],
        [{ all_extension_numbers_of_type: 'shoal.v1.Message' }, 'all_extension_numbers_response'],
        [{ all_extension_numbers_of_type: 'shoal.v1.Shoal' }, 'error_response', status.NOT_FOUND],
        [{}, 'error_response', status.INVALID_ARGUMENT], [{ host: 'here', list_services: '*' }, 'list_services_response']];
    const stream = client.ServerReflectionInfo();
    const ended = new Promise((done) => stream.on('status', done));
    let answered;
    stream.on('data', (m) => answered(m));
    for (const [question, kind, code] of questions) {
        const answer = await new Promise((done) => {
            answered = done;
            stream.write(question);
        });
        t.same(answer.message_response, kind, JSON.stringify(question));
        t.same(answer.error_response?.error_code, code, `${JSON.stringify(question)}: code`);
        t.same(answer.valid_host, question.host ?? '', 'host');
        t.same(answer.original_request.message_request, Object.keys(question).filter((k) => k !== 'host')[0], 'the question');
    }
    stream.end();
    t.same((await ended).code, status.OK, 'end');
    // many at once from a client that does not read: the server applies backpressure and answers them all
    const many = client.ServerReflectionInfo();
    many.pause();
    for (let i = 0; i < 2000; i++)
        many.write({ host: `${i}`, file_containing_symbol: 'shoal.v1.Shoal' });
    many.end();
    await new Promise((done) => setTimeout(done, 200));
    const reading = gather(many);
    many.resume();
    const all = await reading;
    t.same(all.length, 2000, 'answers');
    t.check(all.every((m, i) => m.valid_host === `${i}` && m.file_descriptor_response), 'in order');
    // two concurrent streams; one is cancelled
    const gone = client.ServerReflectionInfo(), stays = client.ServerReflectionInfo();
    gone.on('error', () => {});
    gone.write({ list_services: '' });
    await new Promise((done) => gone.once('data', done));
    gone.cancel();
    const rest = gather(stays);
    stays.write({ list_services: '' });
    stays.end();
    t.same((await rest).length, 1, 'another stream');
}

// The states that a watcher receives, in order.
function watch(client, service) {
    const stream = client.Watch({ service }), w = { stream, told: [] };
    w.ended = new Promise((done) => stream.on('status', done));
    stream.on('error', () => {});
    stream.on('data', (m) => w.told.push(m.status));
    w.is = async (...want) => {
        await t.until(() => w.told.length >= want.length, `health of "${service}": ${want.at(-1)}`);
        t.same(w.told.join(), want.join(), `health of "${service}"`);
    };
    return w;
}

const admin = async (server, body) => (await t.admin(server, body)).status;
const stateOf = async (server, model) => (await (await fetch(`${server.url}/admin/models`)).json()).models
    .find((m) => m.model === model).state;

async function watches(server, address) {
    const health = new Health(address, plain), [SERVING, NOT, UNKNOWN] = ['SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
    const file = path.join(t.tmp, 'later.gguf'), bytes = fs.readFileSync(long);
    const change = async (model, action, more = {}) =>
        t.same(await admin(server, { model, action, ...more }), 200, `${action} ${model}`);
    const [whole, service, enc, later] = ['', 'shoal.v1.Shoal', 'enc', 'later'].map((s) => watch(health, s));
    await whole.is(SERVING);
    await service.is(SERVING);
    await enc.is(SERVING);
    await later.is(UNKNOWN);
    await change('enc', 'unload');
    await enc.is(SERVING, NOT);
    t.same((await call(health, 'Check', { service: 'enc' })).status, NOT, 'Check of a model');
    await change('enc', 'load');
    await enc.is(SERVING, NOT, SERVING);
    // a service is added, loaded, fails to load, loads again, and is removed
    fs.writeFileSync(file, bytes);
    const told = [UNKNOWN];
    for (const [action, status_, before] of [['add', NOT], ['load', SERVING], ['unload', NOT],
        ['load', null, () => fs.writeFileSync(file, bytes.subarray(0, 5000))],
        ['load', SERVING, () => fs.writeFileSync(file, bytes)], ['remove', UNKNOWN]]) {
        before?.();
        await change('later', action, action === 'add' ? { path: file, pinned: false } : {});
        if (status_) {
            told.push(status_);
            await later.is(...told);
        } else {
            await t.until(async () => await stateOf(server, 'later') === 'failed', 'a broken file');
            await later.is(...told);
        }
    }
    const { statuses } = await call(health, 'List', {});
    t.same(Object.keys(statuses).sort().join(), ['', 'enc', ...services, 'long'].sort().join(), 'List');
    t.check(Object.values(statuses).every((s) => s.status === SERVING), `List: ${JSON.stringify(statuses)}`);
    // one watcher leaves, the others stay
    enc.stream.cancel();
    t.same((await enc.ended).code, status.CANCELLED, 'cancel');
    await many(server, address);
    // like /readyz, the whole server is NOT_SERVING while a configured model is being loaded
    for (const w of [whole, service]) {
        await t.until(() => w.told.at(-1) === SERVING, 'the whole');
        t.check(w.told.every((s, i) => s === (i % 2 ? NOT : SERVING)), `only changes are told: ${w.told}`);
    }
    health.close();
}

// Several hundred watchers: all hear of a change, and each costs little.
async function many(server, address) {
    const clients = Array.from({ length: 5 }, () => new Health(address, plain, { 'grpc.use_local_subchannel_pool': 1 }));
    const before = t.memory(server).rss, all = clients.flatMap((c) => Array.from({ length: 100 }, () => watch(c, 'enc')));
    for (const w of all)
        await w.is('SERVING');
    t.check(t.memory(server).rss - before < 40 << 10, `${t.memory(server).rss - before} KiB for ${all.length} watchers`);
    await admin(server, { model: 'enc', action: 'unload' });
    for (const w of all)
        await w.is('SERVING', 'NOT_SERVING');
    all.forEach((w, i) => i % 2 && w.stream.cancel());
    await admin(server, { model: 'enc', action: 'load' });
    for (const w of all.filter((_, i) => i % 2 === 0))
        await w.is('SERVING', 'NOT_SERVING', 'SERVING');
    clients.forEach((c) => c.close());
}

// On the wire: a deadline; a client that reads nothing for a while gets the first state and the latest one.
async function watchesRaw(server, session) {
    const { requestSerialize, responseDeserialize } = Health.service.Watch, method = '/grpc.health.v1.Health/Watch';
    const late = await raw(session, method, frame(requestSerialize({})), { 'grpc-timeout': '80m' });
    t.same(late.status, status.DEADLINE_EXCEEDED, 'deadline');
    t.same(responseDeserialize(late.messages[0].bytes).status, 'SERVING', 'until then');
    const wrong = await raw(session, method, frame(requestSerialize({ service: 'x'.repeat(300) })));
    t.same(wrong.status, status.INVALID_ARGUMENT, 'a long name');
    const details = decodeDetails(Buffer.from(wrong.trailers['grpc-status-details-bin'], 'base64'));
    t.same(details.BadRequest.fieldViolations[0].field, 'service', 'names the field');
    const slow = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
    const got = raw(slow, method, frame(requestSerialize({ service: 'enc' })), { 'grpc-timeout': '60S' });
    const health = new Health(`127.0.0.1:${server.port}`, plain), other = watch(health, 'enc');
    const told = ['SERVING'];
    await other.is(...told);
    for (const action of ['unload', 'load', 'unload', 'load', 'unload']) {
        await admin(server, { model: 'enc', action });
        told.push(action === 'load' ? 'SERVING' : 'NOT_SERVING');
        await other.is(...told);
    }
    await new Promise((done) => slow.settings({ initialWindowSize: 1 << 16 }, done));
    await admin(server, { model: 'enc', action: 'load' });
    await other.is(...told, 'SERVING');
    other.stream.cancel();
    health.close();
    return { got, slow, responseDeserialize };
}

async function compresses(session) {
    const { requestSerialize, responseDeserialize } = Shoal.service.Classify;
    const texts = Array.from({ length: 60 }, (_, i) => `turn off the lights in room ${i}`);
    const request = requestSerialize({ model: 'enc', input: texts }), path_ = '/shoal.v1.Shoal/Classify';
    const known = await raw(session, path_, frame(request));
    t.same(known.messages[0].flag, 0, 'not asked for: not compressed');
    t.same(known.headers['grpc-encoding'], undefined, 'identity');
    const want = JSON.stringify(responseDeserialize(known.messages[0].bytes));
    const gzip = { 'grpc-encoding': 'gzip', 'grpc-accept-encoding': 'identity, deflate, gzip' };
    const both = await raw(session, path_, frame(zlib.gzipSync(request), 1), gzip);
    t.same(both.status, 0, 'gzip');
    t.same(both.headers['grpc-encoding'], 'gzip', 'header');
    t.same(both.headers['grpc-accept-encoding'], 'identity,gzip', 'what is accepted');
    t.same(both.messages[0].flag, 1, 'the answer is compressed');
    t.same(JSON.stringify(responseDeserialize(zlib.gunzipSync(both.messages[0].bytes))), want, 'and the same');
    t.check(both.messages[0].bytes.length * 2 < known.messages[0].bytes.length, 'and smaller');
    const small = await raw(session, path_, frame(requestSerialize({ model: 'enc', input: ['hi'], top: 1 })), gzip);
    t.same(small.messages[0].flag, 0, 'a small answer is not compressed; neither need its question be');
    const vector = await raw(session, '/shoal.v1.Shoal/Embed',
        frame(Shoal.service.Embed.requestSerialize({ model: 'enc', input: texts })), gzip);
    t.same(vector.messages[0].flag, 0, 'vectors would not become smaller');
    t.same((await raw(session, path_, frame(request), { 'grpc-encoding': 'identity' })).status, 0, 'identity by name');
    // messages in sequence on one stream, compressed and not
    const ask = ServerReflection.service.ServerReflectionInfo.requestSerialize({ list_services: '' });
    const mixed = await raw(session, '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
        Buffer.concat([frame(ask), frame(zlib.gzipSync(ask), 1), frame(ask)]), gzip);
    t.same(mixed.messages.length, 3, 'mixed');
}

async function breaks(session) {
    const ask = (body, headers, method = '/shoal.v1.Shoal/Generate') => raw(session, method, body, headers);
    const info = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', bytes = (s) => Buffer.from(s, 'latin1');
    const zipped = zlib.gzipSync(Shoal.service.Generate.requestSerialize({ model: 'enc', prompt: 'x' }));
    const gzip = { 'grpc-encoding': 'gzip' };
    const bomb = zlib.gzipSync(Buffer.alloc(20 << 20)), cut = zipped.subarray(0, zipped.length - 3);
    for (const [body, code, reason, headers, method] of [
        [bytes(''), 3, 'INVALID_MESSAGE'], [bytes('x'), 3, 'INVALID_MESSAGE'], [bytes('\0\0\0\0\x05ab'), 3, 'INVALID_MESSAGE'],
        [bytes('\0\0\0\0\x02\xff\xff'), 3, 'INVALID_MESSAGE'], [bytes('\0\0\0\0\0\0\0\0\0\0'), 3, 'INVALID_MESSAGE'],
        [bytes('\x01\0\0\0\x02ab'), 13, 'INVALID_MESSAGE'], [bytes('\x01\0\0\0\x02ab'), 3, 'INVALID_MESSAGE', gzip],
        [frame(cut, 1), 3, 'INVALID_MESSAGE', gzip], [frame(Buffer.concat([zipped, bytes('x')]), 1), 3, 'INVALID_MESSAGE', gzip],
        [frame(bomb, 1), 8, 'MESSAGE_TOO_LARGE', gzip], [bytes('\0\xff\xff\xff\xff'), 8, 'MESSAGE_TOO_LARGE'],
        [frame(zipped, 1), 12, 'UNSUPPORTED_ENCODING', { 'grpc-encoding': 'snappy' }],
        [frame(bytes('')), 12, 'UNKNOWN_METHOD', {}, '/shoal.v1.Shoal/Sing'], [frame(bytes('')), 12, 'UNKNOWN_METHOD', {}, '/shoal.v1.Shoal/'],
        [frame(bytes('')), 12, 'UNKNOWN_METHOD', {}, '/grpc.health.v1.Health/Wat'],
        [frame(bytes('')), 12, 'UNKNOWN_METHOD', {}, '/grpc.reflection.v1.ServerReflection/No'],
        [bytes('\x02'), 3, 'INVALID_MESSAGE', {}, info], [frame(bytes('\xff\xff')), 3, 'INVALID_MESSAGE', {}, info],
        [bytes('\0\0\0\0\x09ab'), 3, 'INVALID_MESSAGE', {}, info], [bytes('\0\x7f\0\0\0'), 8, 'MESSAGE_TOO_LARGE', {}, info],
        [frame(bomb, 1), 8, 'MESSAGE_TOO_LARGE', gzip, info], [frame(zipped, 1), 12, 'UNSUPPORTED_ENCODING', { 'grpc-encoding': 'br' }, info]]) {
        const r = await ask(body, headers, method), what = `bytes ${JSON.stringify(body.subarray(0, 12).toString('latin1'))} ${method ?? ''}`;
        t.same(r.status, code, what);
        t.same(r.headers['grpc-accept-encoding'], 'identity,gzip', `${what}: what is accepted`);
        t.same(decodeDetails(Buffer.from(r.trailers['grpc-status-details-bin'], 'base64')).ErrorInfo.reason, reason, what);
    }
    const large = await ask(frame(Buffer.alloc(17 << 20)));
    t.same(large.status, 8, 'a message above the limit of the server');
    t.same(large.headers[':status'], 200, 'which is no matter of HTTP');
    t.same((await ask(bytes(''), {}, info)).status, 0, 'a stream without a question');
    // a failed stream ends even if the client keeps sending
    const r = session.request({ ':method': 'POST', ':path': info, 'content-type': 'application/grpc' });
    r.resume();
    r.write(bytes('\x09'));
    const code = await new Promise((done) => r.on('close', () => done(r.rstCode)));
    t.same(code, http2.constants.NGHTTP2_NO_ERROR, 'the rest need not be sent');
}

(async () => {
    const config = path.join(t.tmp, 'patient.yaml'); // if anything delays the end, this test hangs
    fs.writeFileSync(config, `drain: 1h\nmodel_dirs: ["${t.tmp}"]\n`);
    const server = await t.start(shoal, ['--config', config, '-m', `enc=${t.root}/models/encoder`, '-m', `long=${long}`],
        { admin: true });
    const address = `127.0.0.1:${server.port}`;
    await discovers(address, 'v1');
    await discovers(address, 'v1alpha');
    const client = new ServerReflection(address, plain);
    await converses(client);
    const session = http2.connect(server.url);
    await compresses(session);
    await breaks(session);
    await watches(server, address);
    const slow = await watchesRaw(server, session);
    // a stream that waits for requests does not delay shutdown
    const open = client.ServerReflectionInfo();
    const ended = new Promise((done) => open.on('status', done));
    open.write({ list_services: '' });
    await new Promise((done) => open.once('data', done));
    session.close();
    // watchers hear of the drain while work continues, and their streams end after it
    const health = new Health(address, plain);
    const [whole, model, none] = ['', 'long', 'none'].map((s) => watch(health, s));
    await whole.is('SERVING');
    await model.is('SERVING');
    await none.is('SERVICE_UNKNOWN');
    const stop = new AbortController();
    const work = (await fetch(`${server.url}/v1/completions`, { method: 'POST', signal: stop.signal, body: JSON.stringify(
        { model: 'long', prompt: Array(64).fill('a'), max_tokens: 2000, ignore_eos: true, stream: true }) })).body.getReader();
    const stopped = server.stop();
    await whole.is('SERVING', 'NOT_SERVING');
    await model.is('SERVING', 'NOT_SERVING');
    t.check((await work.read()).value?.length > 0, 'work goes on');
    t.same(await Promise.race([whole.ended, t.sleep(20)]), undefined, 'and those who watch stay');
    stop.abort();
    for (const w of [whole, model, none]) {
        const end = await w.ended;
        t.same(end.code, status.UNAVAILABLE, 'the end of a watch');
        const d = decodeDetails(end.metadata.get('grpc-status-details-bin')[0]);
        t.same(d.ErrorInfo.reason, 'DRAINING', 'why');
        t.check(d.RetryInfo.retryDelay.seconds > 0, 'when again');
    }
    await none.is('SERVICE_UNKNOWN');
    const last = await slow.got;
    t.same(last.status, status.UNAVAILABLE, 'a slow watch');
    const told = last.messages.map((m) => slow.responseDeserialize(m.bytes).status);
    t.check(/^SERVING,((NOT_SERVING,)?SERVING,)?NOT_SERVING$/.test(told.join()), `a slow watch: ${told}`);
    slow.slow.close();
    t.same((await stopped).code, 0, 'exit');
    t.same((await ended).code, status.OK, 'the stream ends');
    client.close();
    health.close();
    t.finish();
})().catch(t.abandon);
