#!/usr/bin/env node
// ScoreStream with @grpc/grpc-js: readings in, scores out, on one stream in both directions.  Usage: grpc_readings.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const http2 = require('http2');
const t = require('../integration/serve.js');
const { grpc, load, call, gather, frame, raw } = require('./grpc_client.js');

const shoal = path.resolve(process.argv[2]);
const plain = grpc.credentials.createInsecure();
const { status } = grpc;
const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const method = '/shoal.v1.Shoal/ScoreStream';
const sha = (text) => crypto.createHash('sha256').update(text).digest('hex');
const row = (i) => [20 + Math.sin(i), 5 + Math.cos(i * 1.7)];
const rows = (from, to) => Array.from({ length: to - from }, (_, i) => ({ values: row(from + i) }));
const key = (text) => {
    const m = new grpc.Metadata();
    if (text)
        m.set('authorization', `Bearer ${text}`);
    return m;
};

// Collects the messages of a stream in `got`; `ended` resolves with its status.
function follow(stream) {
    const s = { stream, got: [] };
    stream.on('data', (m) => s.got.push(m));
    stream.on('error', () => {});
    s.ended = new Promise((done) => stream.on('status', done));
    return s;
}

(async () => {
    const file = path.join(t.tmp, 'readings.yaml');
    fs.writeFileSync(file, `drain: 1h\ncache: {weights_dir: "${t.tmp}/cache"}\nmodels: [{name: anomaly, path: "${t.root}/models/anomaly"}]\n` +
        `keys: [{name: a, sha256: ${sha('key-a')}}, {name: b, sha256: ${sha('key-b')}}, ` +
        `{name: slow, sha256: ${sha('key-slow')}, rate: 0.001, burst: 5}]\n`);
    const server = await t.start(shoal, ['--config', file]);
    const address = `127.0.0.1:${server.port}`, client = new Shoal(address, plain);
    const whole = await (await fetch(`${server.url}/v1/score`, { method: 'POST', headers: { authorization: 'Bearer key-a' },
        body: JSON.stringify({ model: 'anomaly', series: Array.from({ length: 1000 }, (_, i) => row(i)) }) })).json();
    const of = (from, to) => whole.data[0].scores.slice(from * 3, to * 3).join();
    const scores = (m) => m.data.flatMap((d) => d.values).join();

    // each reading is answered while the stream stays open; model and stream are named only once
    const one = follow(client.ScoreStream(key('key-a')));
    for (let i = 0; i < 20; i++) {
        one.stream.write(i === 0 ? { model: 'anomaly', stream: 'pump', input: rows(0, 1) } : { input: rows(i, i + 1) });
        await t.until(() => one.got.length > i, `score ${i}`);
        t.same(scores(one.got[i]), of(i, i + 1), `score ${i}`);
        t.same(one.got[i].model, 'anomaly', 'model');
    }
    // many at once, some of them several to a message, from a client that does not read for a while: all answers come,
    // in order
    one.stream.pause();
    for (let i = 20; i < 900; i += 2)
        one.stream.write({ input: rows(i, i + 2) });
    one.stream.end();
    one.stream.resume();
    t.same((await one.ended).code, status.OK, 'end');
    t.same(one.got.length, 20 + 440, 'an answer for each message');
    t.same(one.got.map(scores).join(), of(0, 900), 'scores as of the whole series');
    // another call continues the stream, and so does Score; another key has another stream
    const again = follow(client.ScoreStream(key('key-a')));
    again.stream.end({ model: 'anomaly', stream: 'pump', input: rows(900, 910) });
    await again.ended;
    t.same(again.got.map(scores).join(), of(900, 910), 'another call');
    const single = await call(client, 'Score', { model: 'anomaly', stream: 'pump', input: rows(910, 912) }, {}, key('key-a'));
    t.same(scores(single), of(910, 912), 'Score');
    const other = follow(client.ScoreStream(key('key-b')));
    other.stream.end({ model: 'anomaly', stream: 'pump', input: rows(0, 3) });
    await other.ended;
    t.same(other.got.map(scores).join(), of(0, 3), 'another client begins anew');
    // two streams in one call; without a name each row stands alone
    const two = follow(client.ScoreStream(key('key-b')));
    for (let i = 0; i < 10; i++)
        for (const stream of ['x', 'y'])
            two.stream.write({ model: 'anomaly', stream, input: rows(i, i + 1) });
    two.stream.end();
    await two.ended;
    for (const k of [0, 1])
        t.same(two.got.filter((_, i) => i % 2 === k).map(scores).join(), of(0, 10), 'streams in turn');

    // errors that end a call: an invalid message, an unknown model, no key, too many requests
    const wrong = follow(client.ScoreStream(key('key-a')));
    wrong.stream.write({ model: 'anomaly', stream: 'w', input: rows(0, 2) });
    wrong.stream.write({ input: [{ values: [1, 2, 3] }] });
    wrong.stream.write({ input: rows(2, 3) });
    t.same((await wrong.ended).code, status.INVALID_ARGUMENT, 'other columns');
    t.same(wrong.got.map(scores).join(), of(0, 2), 'what came before is answered');
    for (const [message, who, code] of [[{ model: 'none', input: rows(0, 1) }, 'key-a', status.NOT_FOUND],
        [{ model: 'anomaly', input: [] }, 'key-a', status.INVALID_ARGUMENT],
        [{ model: 'anomaly', input: rows(0, 1) }, 'nobody', status.UNAUTHENTICATED],
        [{ model: 'anomaly', input: rows(0, 1) }, '', status.UNAUTHENTICATED]]) {
        const s = follow(client.ScoreStream(key(who)));
        s.stream.write(message);
        t.same((await s.ended).code, code, `${JSON.stringify(message)} of ${who}`);
    }
    const slow = follow(client.ScoreStream(key('key-slow')));
    for (let i = 0; i < 10; i++)
        slow.stream.write({ model: 'anomaly', stream: 's', input: rows(i, i + 1) });
    t.same((await slow.ended).code, status.RESOURCE_EXHAUSTED, 'each reading counts for the rate of its key');
    t.same(slow.got.map(scores).join(), of(0, 5), 'until then they are scored');

    // on the wire: gzip, half a message, nonsense, a message above the limit; the server survives
    const session = http2.connect(server.url), { requestSerialize, responseDeserialize } = Shoal.service.ScoreStream;
    const auth = { authorization: 'Bearer key-a', 'grpc-encoding': 'gzip', 'grpc-accept-encoding': 'identity,gzip' };
    const ask = requestSerialize({ model: 'anomaly', stream: 'z', input: rows(0, 2) });
    const mixed = await raw(session, method, Buffer.concat([frame(ask), frame(zlib.gzipSync(requestSerialize({ input: rows(2, 4) })), 1)]), auth);
    t.same(mixed.status, 0, 'gzip');
    t.same(mixed.messages.map((m) => scores(responseDeserialize(m.flag ? zlib.gunzipSync(m.bytes) : m.bytes))).join(), of(0, 4), 'compressed and not');
    for (const [bytes, code] of [[Buffer.from([0, 0, 0, 0, 9, 1]), 3], [frame(Buffer.from([255, 255])), 3], [Buffer.from([0, 127, 0, 0, 0]), 8],
        [Buffer.alloc(0), 0], [Buffer.from([7]), 3]])
        t.same((await raw(session, method, bytes, auth)).status, code, `bytes ${bytes.toString('hex')}`);
    session.close();

    // a client that disconnects, and one that is still connected when the server stops
    const gone = follow(client.ScoreStream(key('key-a')));
    gone.stream.write({ model: 'anomaly', stream: 'g', input: rows(0, 1) });
    await t.until(() => gone.got.length > 0, 'a score');
    gone.stream.cancel();
    await gone.ended;
    const last = follow(client.ScoreStream(key('key-a')));
    last.stream.write({ model: 'anomaly', stream: 'l', input: rows(0, 1) });
    await t.until(() => last.got.length > 0, 'a score');
    t.same((await server.stop()).code, 0, 'exit');
    t.same((await last.ended).code, status.OK, 'a stream that is open does not hold up the end');
    client.close();
    t.finish();
})().catch(t.abandon);
