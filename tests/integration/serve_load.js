#!/usr/bin/env node
// shoal load: traffic of all kinds to a real server, and to one that is slow, refuses, breaks off and lies.
// shoal top beside it.
// Usage: serve_load.js SHOAL
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const { execFile, execFileSync, spawn } = require('child_process');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
delete process.env.SHOAL_API_KEY;

// The exit code, stdout and stderr; began(child) may act meanwhile.
function load(args, began = () => {}) {
    return t.within(new Promise((done) => {
        const child = spawn(shoal, ['load', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
        const r = { out: '', err: '' };
        child.stdout.on('data', (d) => { r.out += d; });
        child.stderr.on('data', (d) => { r.err += d; });
        child.on('close', (code) => done({ ...r, code }));
        began(child);
    }), `load ${args.join(' ')}`);
}

async function json(args, began) {
    const r = await load([...args, '--json'], began);
    try {
        return { ...r, json: JSON.parse(r.out) };
    } catch (e) {
        throw new Error(`no JSON: ${r.code} ${r.err} ${r.out}`);
    }
}

const errors = (r) => r.json.errors.map((e) => `${e.kind} ${e.n}`).sort().join();

async function real() {
    const server = await t.start(shoal, []);
    const html = path.join(t.tmp, 'load.html');
    const args = [server.url, '--rate', '500', '-n', '40', '--mix', '2:chat=reply,completion=reply,classify,ask', '--max-tokens', '6', '--extra', '{"temperature": 0}'];
    const r = await json([...args, '--html', html]);
    t.same(`${r.code} ${r.json.requests} ${r.json.answered} ${r.json.failed} ${errors(r)}`, '0 40 40 0 ', r.err + r.out);
    t.same(r.json.parts.map((p) => p.kind).join(), 'chat,completion,classify,ask', 'parts');
    t.same(r.json.parts.reduce((n, p) => n + p.answered, 0), 40, 'each answer is of a part');
    t.check(r.json.parts.every((p) => p.answered > 0 && p.e2e_ms.n === p.answered), 'all kinds are answered');
    t.check(r.json.parts[2].model !== '' && r.json.parts[2].ttft_ms.n === 0, 'classify: a model that can, and no tokens');
    const chat = r.json.parts[0];
    t.check(chat.ttft_ms.n > 0 && chat.ttft_ms.max <= chat.e2e_ms.max && chat.output_tokens >= chat.ttft_ms.n, 'times and tokens of chat');
    t.check(r.json.goodput_share === 1 && r.json.late_ms.n === 40 && r.json.generator.cpu_s > 0, 'goodput and own cost');
    t.check(r.json.definitions.tpot_ms.includes('output tokens - 1'), 'definitions');
    const page = fs.readFileSync(html, 'utf8');
    t.same(page.split('<svg').length - 1, 3, 'charts');
    t.check(!/nan|inf\b/i.test(page.match(/<svg[\s\S]*<\/svg>/)[0]) && page.includes('TTFT'), 'whole charts');
    const text = await load([server.url, '-n', '3', '--rate', '100', '--slo', 'e2e:100000']);
    t.check(text.code === 0 && /^3 requests in .*: 3 answered, 0 failed$/m.test(text.out) && /100\.0 % of requests \(E2E <= 100000 ms\)/.test(text.out), text.out);
    const ollama = await json([server.url, '--api', 'ollama', '-n', '4', '--rate', '100', '--mix', 'chat=reply,completion=reply']);
    t.same(`${ollama.json.answered} ${errors(ollama)}`, '4 ', ollama.out);
    t.check(ollama.json.output_tokens > 0, 'tokens as Ollama counts them');
    await top(server);
    const sock = path.join(t.tmp, 'load.sock');
    const local = await t.start(shoal, ['--only', '-m', `reply=${path.join(t.root, 'models/reply.gguf')}`, '--listen', `unix:${sock}`]);
    t.same((await json([`unix:${sock}`, '-n', '2', '--rate', '100'])).json.answered, 2, 'a unix socket');
    await local.stop();
    await server.stop();
}

// shoal top sees the requests of a run between two of its readings.
async function top(server) {
    const child = spawn(shoal, ['top', '--server', server.url, '--json', '--interval', '0.05'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.on('data', (d) => { out += d; });
    const lines = () => out.split('\n').slice(0, -1).map((l) => JSON.parse(l)), ended = t.ended(child);
    const reply = (l) => l.models.find((m) => m.model === 'reply');
    await t.until(() => out.includes('\n'), 'a first interval');
    t.same((await json([server.url, '-n', '5', '--rate', '100', '-m', 'reply', '-p', 'how are you?'])).json.answered, 5, 'traffic');
    await t.until(() => lines().some((l) => reply(l).requests_per_s > 0), 'it is seen');
    await t.until(() => lines().some((l) => reply(l).output_tokens_per_s > 0 && l.answers_per_s > 0), 'its tokens too');
    child.kill('SIGINT');
    t.same((await t.within(ended, 'Ctrl-C')).code, 0, 'ends well');
    const seen = lines().find((l) => reply(l).first_token_p50_ms !== null);
    t.check(reply(seen).first_token_p50_ms > 0 && reply(seen).first_token_p50_ms <= reply(seen).first_token_p99_ms, JSON.stringify(reply(seen)));
    t.check(reply(seen).memory_bytes > 1000000 && seen.uptime_s > 0, 'memory and uptime');
    const text = await new Promise((done) => execFile(shoal, ['top', '--server', server.url, '--once', '--interval', '0.01'], (e, o) => done(o)));
    t.check(text.startsWith(`${server.url}  up `) && /^reply +\d/m.test(text), text);
    const gone = await new Promise((done) => execFile(shoal, ['top', '--server', 'http://127.0.0.1:1', '--once'], (e, o, err) => done({ e, err })));
    t.check(gone.e.code === 1 && /cannot reach/.test(gone.err), gone.err);
}

// A server whose n-th request is answered by answer(req, res, n, body).
async function peer(answer, secure) {
    const asked = [];
    const server = (secure ? https : http).createServer(secure ?? {}, (req, res) => {
        let body = '';
        req.on('data', (d) => { body += d; });
        req.on('end', () => {
            if (req.method === 'GET')
                return res.end('{"data": [{"id": "m"}]}');
            asked.push({ url: req.url, key: req.headers.authorization, body: JSON.parse(body) });
            answer(req, res, asked.length - 1);
        });
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { url: `http${secure ? 's' : ''}://127.0.0.1:${server.address().port}`, asked, close: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }) };
}

const piece = (s) => `data: ${JSON.stringify({ choices: [{ delta: { content: s } }] })}\n\n`;
const good = (res, s = 'hello') => res.end(piece(s) + piece('!') + 'data: [DONE]\n\n');

async function failures() {
    const answers = [
        (req, res) => { res.statusCode = 429; res.end('{"error": {"message": "too many"}}'); },
        (req, res) => { res.statusCode = 503; res.end('busy'); },
        (req, res) => { res.statusCode = 404; res.end('{"error": "no such model"}'); },
        (req, res) => { res.statusCode = 500; res.end(); },
        (req, res) => res.write(piece('a'), () => req.socket.destroy()),
        (req, res) => res.end(piece('a')), // without the last event
        (req, res) => res.end(piece('a') + 'data: {"error": {"message": "died"}}\n\ndata: [DONE]\n\n'),
        (req, res) => res.end('data: {oops\n\n'),
        (req) => req.socket.end('SSH-2.0-hello\r\n'),
        (req, res) => good(res),
        (req, res) => { setTimeout(() => good(res), 20); },
    ];
    const p = await peer((req, res, n) => answers[n](req, res));
    const r = await json([p.url, '-n', String(answers.length), '--rate', '200', '--key', 'secret']);
    t.same(errors(r), 'broken 2,client 1,format 2,refused 2,reported 1,server 1', r.out);
    t.same(`${r.code} ${r.json.answered} ${r.json.failed} ${r.json.goodput_share}`, '0 2 9 0.1818', 'two are good');
    t.same(r.json.errors.find((e) => e.kind === 'client').example, 'no such model', 'an example');
    t.same(r.json.errors.find((e) => e.kind === 'client').status, 404, 'its status');
    t.same(`${p.asked[0].key} ${p.asked[0].url} ${p.asked[0].body.model}`, 'Bearer secret /v1/chat/completions m', 'the request');
    await p.close();

    const gone = await json(['http://127.0.0.1:1', '-m', 'm', '-n', '2', '--rate', '100']);
    t.same(`${gone.code} ${errors(gone)}`, '1 connect 2', 'nobody is there');
    const silent = await peer(() => {});
    const late = await json([silent.url, '-n', '3', '--rate', '100', '--timeout', '0.2']);
    t.same(`${late.code} ${errors(late)}`, '1 timeout 3', 'no answer');
    // Ctrl-C ends with the report of what there is
    const cut = await json([silent.url, '--rate', '200', '--duration', '3600'], async (child) => {
        await t.until(() => silent.asked.length > 5, 'requests came');
        child.kill('SIGINT');
    });
    t.same(`${cut.code} ${cut.json.interrupted} ${cut.json.failed}`, '130 true 0', cut.out);
    t.check(cut.json.unfinished >= 3 && cut.json.unfinished === cut.json.requests, 'all are unfinished');
    await silent.close();
}

// A server that is slow with one request delays the others, and the figures say so: they count from when requests were due.
async function omission() {
    const p = await peer((req, res, n) => setTimeout(() => good(res), n === 0 ? 400 : 0));
    const r = await json([p.url, '-n', '5', '--arrivals', 'constant', '--rate', '1000', '--connections', '1', '--slo', 'e2e:350']);
    t.same(r.json.answered, 5, 'all are answered');
    t.check(r.json.e2e_ms.p50 > 390 && r.json.late_ms.p50 > 390, `those behind it waited too: ${JSON.stringify(r.json.e2e_ms)}`);
    t.same(r.json.goodput_share, 0, 'and are not good');
    await p.close();
}

async function sessions() {
    const p = await peer((req, res, n) => good(res, `answer ${n}`));
    const r = await json([p.url, '-n', '1', '--turns', '3', '--think', '0.01', '--duration', '100', '-p', 'why?']);
    t.same(`${r.json.answered} ${p.asked.map((a) => a.body.messages.length).join()}`, '3 1,3,5', 'three turns');
    t.same(p.asked[2].body.messages.map((m) => `${m.role}: ${m.content}`).join('; '),
        'user: why?; assistant: answer 0!; user: why?; assistant: answer 1!; user: why?', 'with all that was said');
    // recorded traffic, in its order
    const file = path.join(t.tmp, 'trace.jsonl');
    p.asked.length = 0;
    fs.writeFileSync(file, '{"at_ms": 40, "kind": "completion", "prompt": "second", "max_tokens": 3}\n{"at_ms": 20, "prompt": "first", "model": "other"}\n' +
        '{"timestamp": 2000, "input_length": 5, "output_length": 2}\n');
    const replay = await json([p.url, '--trace', file, '--speed', '10', '--connections', '1']);
    t.same(`${replay.json.answered} ${replay.json.arrivals}`, '3 trace', replay.out);
    const [first, second, third] = p.asked.map((a) => a.body);
    t.same(`${first.messages[0].content} ${first.model} ${second.prompt} ${second.max_tokens} ${second.model}`, 'first other second 3 m', 'as it was');
    t.same(`${third.messages[0].content.split(' ').length} ${third.max_tokens}`, '5 2', 'made-up words');
    await p.close();
    // a connection that is closed after each answer without a word costs no request
    const rude = await peer((req, res) => { good(res); setImmediate(() => req.socket.destroySoon()); });
    t.same((await json([rude.url, '-n', '20', '--rate', '1000', '--connections', '2'])).json.answered, 20, 'sent once more');
    await rude.close();
}

async function capacity() {
    const p = await peer((req, res) => good(res));
    const all = await json([p.url, '--find-capacity', '-n', '2', '--duration', '100', '--rate', '1000', '--arrivals', 'constant', '--slo', 'e2e:100000']);
    t.same(`${all.code} ${all.json.capacity.steps.length} ${all.json.capacity.rate_per_s}`, `0 24 ${1000 * 2 ** 23}`, all.err);
    t.check(all.json.capacity.steps.every((s) => s.held) && all.json.answered === 2, 'everything was held');
    await p.close();
    const full = await peer((req, res) => { res.statusCode = 503; res.end(); });
    const html = path.join(t.tmp, 'capacity.html');
    const none = await json([full.url, '--find-capacity', '-n', '1', '--duration', '100', '--arrivals', 'constant', '--html', html]);
    t.same(`${none.code} ${none.json.capacity.rate_per_s} ${errors(none)}`, '1 0 refused 1', none.out);
    t.same(none.json.capacity.steps.map((s) => s.rate_per_s).join(), '1,0.5,0.25,0.125,0.0625,0.0312,0.0156', 'ever slower');
    t.same(fs.readFileSync(html, 'utf8').split('<svg').length - 1, 5, 'charts of the search');
    await full.close();
}

// The certificate must be that of the host, by a CA that the system knows.
async function tls() {
    const key = path.join(t.tmp, 'load.key'), cert = path.join(t.tmp, 'load.pem');
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert,
        '-subj', '/CN=load', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'pipe' });
    const p = await peer((req, res) => good(res), { key: fs.readFileSync(key), cert: fs.readFileSync(cert) });
    const unknown = await json([p.url, '-m', 'm', '-n', '2', '--rate', '100']);
    t.check(unknown.json.answered === 0 && /certificate/.test(unknown.json.errors[0].example), unknown.out);
    t.same(p.asked.length, 0, 'nothing is sent');
    process.env.SSL_CERT_FILE = cert;
    t.same((await json([p.url, '-n', '4', '--rate', '100'])).json.answered, 4, 'a known one');
    delete process.env.SSL_CERT_FILE;
    await p.close();
}

async function wrong() {
    const says = async (want, ...args) => {
        const r = await load(args);
        t.check(r.code === 2 && want.test(r.err), `${args.join(' ')}: ${r.code} ${r.err}`);
    };
    await says(/write http:\/\/HOST:PORT/, 'ftp://a');
    await says(/unknown kind of request 'shout'/, 'http://127.0.0.1:1', '--mix', 'shout');
    await says(/write limits in ms/, 'http://127.0.0.1:1', '--slo', 'fast');
    await says(/Ollama's API has no 'ask'/, 'http://127.0.0.1:1', '--api', 'ollama', '--mix', 'ask');
    await says(/leave --trace out/, 'http://127.0.0.1:1', '--find-capacity', '--trace', 'x');
    const file = path.join(t.tmp, 'wrong.jsonl');
    fs.writeFileSync(file, '{"at_ms": 1}\n{}\n');
    const r = await load(['http://127.0.0.1:1', '--trace', file]);
    t.check(r.code === 1 && /wrong.jsonl: line 2: at_ms must be/.test(r.err), r.err);
}

(async () => {
    await real();
    await failures();
    await omission();
    await sessions();
    await capacity();
    await tls();
    await wrong();
    t.finish();
})().catch(t.abandon);
