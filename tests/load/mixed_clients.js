// mixed_clients.js - the clients of mixed.js. Each is one turn: async (site, r, see). r: random choices (mixed.js).
// see(kind, got, allowed, more): one answer; got must be in allowed.
'use strict';
const http2 = require('http2');
const net = require('net');
const path = require('path');
const t = require('../integration/serve.js');
const { grpc, load, call, gather } = require('../conformance/grpc_client.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const OpenAI = require(t.npm('openai@6.9.1'));
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');

const { Shoal } = load('shoal/v1/shoal.proto').shoal.v1;
const { Health } = load('grpc/health/v1/health.proto').grpc.health.v1;
const words = 'turn off the kitchen lights and wake me at seven tomorrow because Anna will call about the pump'.split(' ');
const sentence = (r, n = 6) => Array.from({ length: 1 + r.below(n) }, () => r.of(words)).join(' ');
const many = (r, n) => Array.from({ length: 1 + r.below(n) }, () => sentence(r));
const messages = (r) => [{ role: 'user', content: sentence(r) }];
const chat = (r, more = {}) => ({ model: 'chat', messages: messages(r), max_tokens: 1 + r.below(24), ignore_eos: true,
    temperature: r.of([0, 0.8]), ...more });
const long = { model: 'chat', prompt: 'a', max_tokens: 400, ignore_eos: true, temperature: 1, stream: true };

// Requests that must be answered with 200: path and body.
const good = [
    (r) => ['/v1/chat/completions', chat(r)],
    (r) => ['/v1/chat/completions', chat(r, { n: 2, logprobs: true, top_logprobs: 3, stop: ['xyz', 'q'] })],
    (r) => ['/v1/chat/completions', { model: 'reply', messages: messages(r), max_tokens: 12 }],
    (r) => ['/v1/completions', { model: r.of(['chat', 'lazy']), prompt: sentence(r), max_tokens: 5, seed: r.below(3), echo: true }],
    (r) => ['/v1/completions', { model: 'chat', prompt: sentence(r), max_tokens: 3, logit_bias: { 5: -100, 7: 3 } }],
    (r) => ['/v1/completions', { model: 'chat', prompt: many(r, 6), n: 1 + r.below(2), max_tokens: 4, stream: r.chance(0.5) }],
    (r) => ['/v1/embeddings', { model: 'intent', input: many(r, 8), encoding_format: r.of(['float', 'base64']) }],
    (r) => ['/v1/classify', { model: 'intent', input: many(r, 8), top: 3 }],
    (r) => ['/v1/entities', { model: 'intent', input: sentence(r, 20) }],
    (r) => ['/v1/rerank', { model: 'rerank', query: sentence(r), documents: many(r, 12), return_documents: r.chance(0.5) }],
    (r) => ['/v1/score', { model: 'anomaly', series: Array.from({ length: 20 + r.below(50) }, () => [r.below(9), r.below(9)]) }],
    (r) => ['/v1/summarize', { model: 'summary', input: many(r, 12).map((s) => `${s}.`).join(' '), max_sentences: 2 }],
    (r) => ['/v1/summarize', { model: 't5', input: sentence(r), max_tokens: 6, beams: r.of([1, 3]) }],
    (r) => ['/v1/process', { text: sentence(r), explain: r.chance(0.5) }],
    (r) => ['/tokenize', { model: 'chat', text: sentence(r, r.chance(0.1) ? 8000 : 20) }],
    (r) => ['/detokenize', { model: 'chat', tokens: [1 + r.below(200), 2, 3] }],
    (r) => ['/api/embed', { model: 'intent', input: many(r, 3) }],
    (r) => ['/api/show', { model: r.of(['chat', 'intent']) }],
    (r) => ['/v1/completions', { model: 'apart', prompt: sentence(r), max_tokens: 6, stream: r.chance(0.5) }],
    (r) => ['/v1/chat/completions', chat(r, { model: r.of(['turns', 'better']), max_tokens: 8, stream: r.chance(0.5) })],
    (r) => ['/v1/chat/completions', { model: 'chat', messages: messages(r), max_tokens: 100, response_format: { type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'object', properties: { at: { type: 'string', format: 'date' }, n: { enum: [1, 2, 3] } },
            required: ['at', 'n'], additionalProperties: false } } } }],
    (r) => ['/v1/chat/completions', chat(r, { guided_choice: many(r, 40) })],
    (r) => ['/v1/messages', { model: 'reply', messages: messages(r), max_tokens: 8, stream: r.chance(0.5) }],
    (r) => ['/completion', { prompt: sentence(r), n_predict: 4, n_probs: 3, id_slot: r.below(4), model: 'chat' }],
    // far too long for its context: the oldest turns are left out
    (r) => ['/api/chat', { model: 'reply', stream: false, options: { num_predict: 4 }, messages: Array.from({ length: 121 }, (_, i) =>
        ({ role: i % 2 ? 'assistant' : 'user', content: sentence(r) })) }],
    ...['/healthz', '/readyz', '/metrics', '/v1/models', '/v1/models/chat', '/openapi.json', '/docs', '/', '/api/tags',
        '/api/ps', '/api/version'].map((url) => () => [url]),
];

// A pinned model that was unloaded may still be reloading: then the server says that it is not ready.
const fine = (url) => (url === '/readyz' ? [200, 503] : [200]);

async function whole(site, r, see) {
    const [url, body] = r.of(good)(r), tls = r.chance(0.5);
    const a = await site.ask(url, body, { tls });
    see(`http ${url}`, a.status, fine(url), a.text);
}

// Many at once, as clients do; some with a deadline that may be too short, some by a limited key.
async function burst(site, r, see) {
    await Promise.all(Array.from({ length: 12 }, async (_, i) => {
        const [url, body] = r.of(good)(r), short = i % 4 === 0 && body, limited = i % 4 === 1;
        const a = await site.ask(url, body, { tls: i % 2 === 0, key: limited ? site.keys.slow : site.keys.app,
            headers: short ? { 'x-latency-budget-ms': `${1 + r.below(60)}` } : {} });
        const never = limited && Array.isArray(body?.prompt) && body.prompt.length > 2; // more than it has slots
        see(short ? 'deadline' : limited ? 'limited key' : 'burst', a.status,
            [...(never ? [400] : fine(url)), ...(short ? [429, 504] : limited ? [429] : [])], a.text);
    }));
}

// A stream, read to its end.
async function stream(site, r, see) {
    const kind = r.of(['chat', 'completion', 'process', 'ollama']);
    const [url, body, end] = {
        chat: ['/v1/chat/completions', chat(r, { stream: true, stream_options: { include_usage: true } }), 'data: [DONE]\n\n'],
        completion: ['/v1/completions', { ...long, max_tokens: 60, n: 1 + r.below(3) }, 'data: [DONE]\n\n'],
        process: ['/v1/process', { text: sentence(r), stream: true }, '\n\n'],
        ollama: ['/api/chat', { model: 'reply', messages: messages(r), options: { num_predict: 10 } }, '\n'],
    }[kind];
    const a = await site.ask(url, body, { tls: r.chance(0.5) });
    see(`stream ${kind}`, a.status, [200], a.text);
    see(`stream ${kind}: its end`, a.text.endsWith(end) && !a.text.includes('"error"'), [true], a.text.slice(-300));
}

const head = (site, line) => `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${site.keys.app}\r\n`;

// Disconnects in the middle of the answer, of the request, or before the answer.
async function abort(site, r, see) {
    const how = r.of(['answer', 'request', 'silence']);
    if (how === 'answer') {
        const status = await site.ask('/v1/completions', long, { tls: r.chance(0.5), on: async (res, req) => {
            req.on('error', () => {});
            res.on('error', () => {});
            await new Promise((done) => res.once('data', done));
            req.destroy();
            return res.statusCode;
        } });
        see('abort in the answer', status, [200]);
        return;
    }
    const body = JSON.stringify({ ...long, stream: how === 'silence' });
    const all = `${head(site, 'POST /v1/completions')}Content-Length: ${body.length}\r\n\r\n${body}`;
    await raw(site, r, how === 'silence' ? all : all.slice(0, r.below(all.length)), 1 + r.below(30));
    see(`abort in the ${how}`, 0, [0]);
}

// Sends bytes on a new connection; resolves with what came until it is closed or the time is up.
function raw(site, r, bytes, ms) {
    return new Promise((done) => {
        const s = net.connect(site.sock), parts = [];
        const over = () => {
            clearTimeout(timer);
            s.destroy();
            done(Buffer.concat(parts).toString('latin1'));
        };
        const timer = setTimeout(over, ms);
        s.on('data', (d) => parts.push(d));
        s.on('error', () => {});
        s.on('close', over);
        const all = Buffer.from(bytes, 'latin1'), cut = r.below(all.length);
        s.write(all.subarray(0, cut));
        s.write(all.subarray(cut));
    });
}

// Reads a little, waits, reads a little; then continues to the end or disconnects.
async function slow(site, r, see) {
    const body = { ...long, logprobs: 5, max_tokens: 300 };
    const tail = await site.ask('/v1/completions', body, { on: async (res, req) => {
        let text = '';
        req.on('error', () => {});
        res.on('error', () => {});
        const ended = new Promise((done) => res.on('close', done));
        for (let i = 0; i < 5; i++) {
            await new Promise((done) => res.once('readable', done));
            text += res.read(Math.min(64, res.readableLength)) ?? '';
            await t.sleep(20 + r.below(100));
        }
        if (r.chance(0.5)) {
            req.destroy();
            return 'left';
        }
        res.on('data', (d) => { text = (text + d).slice(-40); });
        await ended;
        return text.endsWith('data: [DONE]\n\n') ? 'whole' : text;
    } });
    see('slow reader', tail, ['left', 'whole']);
}

// A body or head that must be refused, with the status that says why.
const bad = [
    [400, (r) => ['/v1/chat/completions', { ...chat(r), frob: 1 }]],
    [400, (r) => ['/v1/chat/completions', { ...chat(r), temperature: 9 }]],
    [400, (r) => ['/v1/chat/completions', { ...chat(r), messages: 'x' }]],
    [400, (r) => ['/v1/chat/completions', { ...chat(r), tools: [{}] }]],
    [400, () => ['/v1/chat/completions', {}]],
    [400, (r) => ['/v1/completions', JSON.stringify(chat(r)).slice(0, -1 - r.below(20))]],
    [400, () => ['/v1/completions', { model: 'chat', prompt: 'x '.repeat(5000) }]],
    [400, () => ['/v1/completions', { model: 'chat', prompt: ['a', 'b', 'x '.repeat(5000)] }]],
    [400, () => ['/v1/completions', { model: 'chat', prompt: Array(65).fill('a') }]],
    [400, () => ['/v1/classify', { model: 'chat', input: 'x' }]],
    [400, () => ['/v1/embeddings', { model: 'intent', input: Array(2049).fill('x') }]],
    [400, () => ['/v1/score', { model: 'anomaly', series: [[1], [1, 2]] }]],
    [400, () => ['/tokenize', '['.repeat(20000)]],
    [400, () => ['/tokenize', Buffer.from([0xff, 0xfe, 0])]],
    [404, (r) => ['/v1/chat/completions', { ...chat(r), model: 'nobody' }]],
    [404, () => ['/nowhere']],
    [405, () => ['/v1/models', undefined, { method: 'DELETE' }]],
    [401, (r) => ['/v1/chat/completions', chat(r), { key: r.of([null, 'wrong']) }]],
    [403, () => ['/admin/models', { model: 'chat', action: 'load' }]],
    [431, () => ['/healthz', undefined, { headers: { a: 'x'.repeat(9000) } }]],
    [426, () => ['/v1/stream']],
];

async function refused(site, r, see) {
    const [status, make] = r.of(bad), [url, body, options] = make(r);
    const a = await site.ask(url, body, { tls: r.chance(0.3), ...options });
    see(`refused ${status}`, a.status, [status], `${url} ${JSON.stringify(body)?.slice(0, 80)}: ${a.text}`);
    see('refused: explained', JSON.parse(a.text).error?.message?.length > 5, [true], a.text);
}

// Too large: announced or not. The server may close while it is still being sent, which the client sees as an error.
async function oversized(site, r, see) {
    const body = `{"text":"${'x'.repeat(site.maxBody + r.below(100000))}"}`, chunked = r.chance(0.5);
    const coded = chunked ? `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
        : `Content-Length: ${body.length}\r\n\r\n${body}`;
    const got = await raw(site, r, head(site, 'POST /tokenize') + coded, 3000);
    see('oversized', got.slice(0, 12), ['HTTP/1.1 413', '']);
}

// Corrupted bytes of HTTP/1.1, HTTP/2 and WebSocket.
const seeds = [
    (site, r) => `${head(site, 'POST /v1/completions')}Content-Length: 44\r\n\r\n` +
        `{"model":"chat","prompt":"a","max_tokens":${r.below(9)}} GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    (site) => `${head(site, 'POST /tokenize')}Transfer-Encoding: chunked\r\n\r\n` +
        '5\r\n{"tex\r\n8\r\nt":"abc"\r\n1\r\n}\r\n0\r\n\r\n',
    () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' +
        '\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x86\x41\x01x\0\0\x04\x00\x01\0\0\0\x01abcd',
    (site) => `${head(site, 'GET /v1/stream')}Connection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n' +
        '\x81\x85\0\0\0\0{"a":\x01\x80\0\0\0\0\x89\x80\0\0\0\0',
];

async function nonsense(site, r, see) {
    let bytes = Buffer.from(r.of(seeds)(site, r), 'latin1');
    for (let n = r.below(6); n >= 0; n--) {
        const at = r.below(bytes.length), what = r.below(4);
        if (what === 0)
            bytes[at] = r.below(256);
        else if (what === 1)
            bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + r.below(8))]);
        else if (what === 2)
            bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from([r.below(256), r.below(256)]), bytes.subarray(at)]);
        else
            bytes = Buffer.concat([bytes, bytes.subarray(at, at + r.below(200))]);
        if (bytes.length === 0)
            bytes = Buffer.from('x');
    }
    const got = await raw(site, r, bytes.toString('latin1'), 50 + r.below(150));
    see('nonsense', /^HTTP\/1.1 500/m.test(got), [false], got);
}

// HTTP/2: many streams on a session, over TLS or plain; some are reset.
async function h2(site, r, see) {
    const session = r.chance(0.5) ? http2.connect(`https://127.0.0.1:${site.port}`, { ca: site.ca })
        : http2.connect('http://localhost', { createConnection: () => net.connect(site.sock) });
    session.on('error', (e) => see('h2 session', e.message, []));
    const one = (url, body, reset) => new Promise((done) => {
        const s = session.request({ ':path': url, ':method': body ? 'POST' : 'GET', authorization: `Bearer ${site.keys.app}` },
            { endStream: !body });
        let text = '', status = 0;
        s.on('response', (h) => { status = h[':status']; });
        s.on('data', (d) => {
            text += d;
            if (reset)
                s.close(http2.constants.NGHTTP2_CANCEL);
        });
        s.on('error', (e) => { text += e.message; });
        s.on('close', () => done({ status, text }));
        if (body)
            s.end(JSON.stringify(body));
    });
    for (let round = 1 + r.below(3); round > 0; round--)
        await Promise.all(Array.from({ length: 10 }, async (_, i) => {
            const reset = i % 5 === 4, [url, body] = reset ? ['/v1/completions', long] : r.of(good)(r);
            const a = await one(url, body, reset);
            see(reset ? 'h2 reset' : 'h2', a.status, fine(url), `${url}: ${a.text}`);
        }));
    if (r.chance(0.3))
        session.destroy();
    else
        await new Promise((done) => session.close(done));
}

async function websocket(site, r, see) {
    const ws = new WebSocket(r.chance(0.5) ? `wss://127.0.0.1:${site.port}/v1/stream` : `ws+unix:${site.sock}:/v1/stream`,
        { ca: site.ca, headers: { authorization: `Bearer ${site.keys.app}` } });
    const ends = new Map();
    ws.on('error', (e) => see('websocket', e.message, []));
    await new Promise((done) => ws.on('open', done));
    const closed = new Promise((done) => ws.on('close', done));
    ws.on('message', (m) => {
        const x = JSON.parse(m.toString());
        if (ends.has(x.id) && ('status' in x || x.cancelled || x.error))
            ends.get(x.id)(x);
    });
    const ask = (id, m) => new Promise((done) => {
        ends.set(id, done);
        ws.send(JSON.stringify({ id, ...m }));
    });
    const asked = Array.from({ length: 6 }, async (_, i) => {
        const body = { ...long, max_tokens: 20 };
        const a = await (i === 0 ? ask('bad', { body: { frob: 1 } }) : i === 1 ? ask('classify', { path: '/v1/classify',
            body: { model: 'intent', input: sentence(r) } }) : ask(`s${i}`, { path: '/v1/completions', body }));
        see(i === 0 ? 'websocket refused' : 'websocket', a.status, [i === 0 ? 400 : 200], JSON.stringify(a));
    });
    const cancelled = ask('c', { path: '/v1/completions', body: long });
    ws.send('{"id":7');
    ws.ping('x');
    await t.sleep(r.below(20));
    ws.send('{"id":"c","cancel":true}');
    const a = await cancelled;
    see('websocket cancel', a.cancelled === true || a.status === 200, [true], JSON.stringify(a));
    await Promise.all(asked);
    if (r.chance(0.5)) {
        ask('gone', { path: '/v1/completions', body: long });
        await t.sleep(r.below(20));
        ws.terminate();
    } else {
        ws.close();
    }
    await closed;
}

// The first status, and whatever follows for a while.
async function watched(health, r) {
    const stream = health.Watch({ service: r.of(['', 'chat', 'lazy', 'extra']) });
    stream.on('error', () => {});
    const first = await new Promise((done) => {
        stream.once('data', (m) => done(m.status));
        stream.once('error', (e) => done(e.code));
    });
    await t.sleep(r.below(500));
    stream.cancel();
    return first;
}

async function grpcCalls(site, r, see) {
    const secure = r.chance(0.5), meta = new grpc.Metadata();
    meta.set('authorization', `Bearer ${site.keys.app}`);
    const to = secure ? [`127.0.0.1:${site.port}`, grpc.credentials.createSsl(site.ca)]
        : [`unix:${site.sock}`, grpc.credentials.createInsecure()];
    const own = { 'grpc.use_local_subchannel_pool': 1 };
    const client = new Shoal(...to, own), health = new Health(...to, own), { status } = grpc;
    const code = async (promise) => promise.then(() => 0, (e) => {
        why = e.details;
        return e.code;
    });
    let why; // of the last failure
    const ask = { model: 'chat', prompt: sentence(r), max_tokens: 8, temperature: 0 };
    const one = (name, request, options) => code(call(client, name, request, options, meta));
    await Promise.all([
        one('Generate', ask).then((c) => see('grpc generate', c, [0])),
        code(gather(client.GenerateStream({ ...ask, seed: 3 }, meta))).then((c) => see('grpc stream', c, [0])),
        one('Classify', { model: 'intent', input: many(r, 3) }).then((c) => see('grpc classify', c, [0])),
        one('Tag', { model: 'intent', input: many(r, 3) }).then((c) => see('grpc tag', c, [0])),
        one('Embed', { model: 'intent', input: many(r, 3) }).then((c) => see('grpc embed', c, [0])),
        one('Generate', { ...ask, model: 'nobody' }).then((c) => see('grpc refused', c, [status.NOT_FOUND], why)),
        one('Generate', { ...ask, max_tokens: 400 }, { deadline: Date.now() + 1 + r.below(30) })
            .then((c) => see('grpc deadline', c, [0, status.DEADLINE_EXCEEDED, status.RESOURCE_EXHAUSTED])),
        code(call(health, 'Check', {})).then((c) => see('grpc health', c, [0])),
        watched(health, r).then((s) => see('grpc watch', s, ['SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'])),
    ]);
    const s = client.GenerateStream({ model: 'chat', prompt: 'a', max_tokens: 400, temperature: 1 }, meta);
    const ended = new Promise((done) => {
        s.on('error', (e) => done(e.code));
        s.on('end', () => done(0));
    });
    await new Promise((done) => {
        s.once('data', done);
        s.once('error', done);
    });
    s.cancel();
    see('grpc cancel', await ended, [0, status.CANCELLED]);
    client.close();
    health.close();
}

const asFetch = (site) => (url, init = {}) => fetch(url,
    { ...init, headers: { ...init.headers, authorization: `Bearer ${site.keys.app}` } });

async function ollama(site, r, see) {
    const o = new Ollama({ host: site.url, fetch: asFetch(site) }), options = { num_predict: 8 };
    const got = await o.chat({ model: 'reply', messages: messages(r), options });
    see('ollama chat', got.done, [true], JSON.stringify(got));
    let last;
    for await (const part of await o.generate({ model: 'reply', prompt: sentence(r), options, stream: true }))
        last = part;
    see('ollama generate', last?.done, [true], JSON.stringify(last));
    see('ollama embed', (await o.embed({ model: 'intent', input: many(r, 3) })).embeddings.length > 0, [true]);
    const aborted = await o.generate({ model: 'chat', prompt: 'a', stream: true, options: { num_predict: 400 } });
    const e = await (async () => {
        for await (const part of aborted)
            aborted.abort();
    })().then(() => 'ended', (x) => x.name);
    see('ollama abort', e, ['AbortError', 'ended']);
}

async function openai(site, r, see) {
    const ai = new OpenAI({ baseURL: `${site.url}/v1`, apiKey: site.keys.app, maxRetries: 0 });
    const stream = await ai.chat.completions.create(chat(r, { stream: true }));
    let finish;
    for await (const chunk of stream)
        finish = chunk.choices[0]?.finish_reason ?? finish;
    see('openai stream', finish, ['length', 'stop']);
    const vectors = await ai.embeddings.create({ model: 'intent', input: many(r, 4) });
    see('openai embeddings', vectors.data.length > 0, [true]);
    const gone = await ai.completions.create(long);
    for await (const chunk of gone)
        gone.controller.abort();
    see('openai abort', 0, [0]);
    const e = await ai.chat.completions.create({ ...chat(r), model: 'nobody' }).then(() => ({}), (x) => x);
    see('openai error', e.status, [404]);
}

// What the server keeps of a client: responses that continue each other, conversations, sessions; most are left to expire.
async function kept(site, r, see) {
    const talk = { model: 'reply', max_output_tokens: 6, input: sentence(r) };
    const answer = async (url, body, method, also = []) => {
        const a = await site.ask(url, body, { tls: r.chance(0.3), method });
        see(`kept ${method ?? (body ? 'POST' : 'GET')} ${url.replace(/(resp|conv)_\w+|s\d+$/, 'ID')}`, a.status, [200, ...also], a.text);
        return JSON.parse(a.text);
    };
    const first = await answer('/v1/responses', talk);
    await answer('/v1/responses', { ...talk, previous_response_id: first.id });
    if (r.chance(0.5))
        await answer(`/v1/responses/${first.id}`, undefined, 'DELETE');
    const conversation = (await answer('/v1/conversations', { items: [{ role: 'user', content: sentence(r) }] })).id;
    await answer('/v1/responses', { ...talk, conversation });
    const items = await answer(`/v1/conversations/${conversation}/items`);
    see('kept: items of a conversation', items.data.length, [3], JSON.stringify(items));
    const later = await answer('/v1/responses', { ...talk, background: true });
    if (r.chance(0.5)) // one that is already complete cannot be cancelled
        await answer(`/v1/responses/${later.id}/cancel`, {}, 'POST', [400]);
    await answer(`/v1/responses/${later.id}`);
    const session = `s${r.below(20)}`;
    await answer('/v1/chat/completions', { model: 'reply', messages: messages(r), max_tokens: 6, session_id: session });
    await answer(`/v1/sessions/${session}`);
}

// Models come and go and the configuration is reloaded, while all other clients go on.
async function admin(site, r, see) {
    const change = (body) => site.ask('/admin/models', body, { key: site.keys.boss });
    const what = r.below(5), model = r.of(['chat', 'reply', 'intent', 'rerank', 'anomaly', 'summary', 't5', 'lazy']);
    if (what === 0) {
        site.reload();
        see('reload', 0, [0]);
    } else if (what === 1) {
        const a = await change({ model, action: 'unload' });
        see('unload', a.status, [200], a.text);
    } else if (what === 2) {
        const a = await change({ model, action: 'load' });
        see('load', a.status, [200], a.text);
    } else if (what === 3) {
        const name = `m${r.below(1e9)}`;
        const file = path.join(t.root, 'tests/data/refs/phi2.gguf');
        see('add', (await change({ model: name, action: 'add', path: file })).status, [200]);
        // a reload in between removes it again: it is not in the file
        const a = await site.ask('/v1/completions', { model: name, prompt: 'a', max_tokens: 2 });
        see('added model', a.status, [200, 404], a.text);
        see('remove', (await change({ model: name, action: 'remove' })).status, [200, 404]);
    } else {
        const name = `b${r.below(1e9)}`;
        see('add', (await change({ model: name, action: 'add', path: site.broken })).status, [200]);
        const a = await site.ask('/v1/completions', { model: name, prompt: 'a' });
        see('broken model', a.status, [503, 404], a.text);
        see('remove', (await change({ model: name, action: 'remove' })).status, [200, 404]);
    }
    const a = await site.ask('/v1/completions', { model: 'extra', prompt: 'a', max_tokens: 2 });
    see('model of one form', a.status, [200, 404], a.text);
    await t.sleep(100 + r.below(400));
}

// How many clients of each kind run at a time.
module.exports = [[whole, 3], [burst, 1], [stream, 2], [abort, 2], [slow, 3], [refused, 1], [oversized, 1], [nonsense, 2],
    [h2, 1], [websocket, 1], [grpcCalls, 1], [ollama, 1], [openai, 1],
    [kept, 1], [admin, 1]];
