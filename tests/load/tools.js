#!/usr/bin/env node
// `wrk` and `h2load` against `shoal serve`: no failed request, and afterwards the server's counts match theirs. Usage:
// tools.js SHOAL
'use strict';
const { execFile, execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const chat = { model: 'chat', messages: [{ role: 'user', content: 'Once upon a time' }], max_tokens: 4 };
const text = 'turn off the kitchen lights';

// The requests: path, body (none: GET), text that each answer must contain.
const kinds = {
    health: ['/healthz', undefined, 'ok'],
    cached: ['/v1/chat/completions', { ...chat, temperature: 0 }, '"finish_reason":"length"'],
    chat: ['/v1/chat/completions', { ...chat, temperature: 1, ignore_eos: true }, '"finish_reason":"length"'],
    stream: ['/v1/chat/completions', { ...chat, temperature: 1, ignore_eos: true, stream: true }, 'data: [DONE]'],
    embed: ['/v1/embeddings', { model: 'enc', input: text }, '"embedding"'],
    classify: ['/v1/classify', { model: 'enc', input: text }, '"turn_off"'],
};
const route = (kind) => `${kinds[kind][1] ? 'POST' : 'GET'} ${kinds[kind][0]}`;

function tool(program, args) {
    return new Promise((done, give) => execFile(program, args, { timeout: 120000 }, (e, out, err) => (e
        ? give(new Error(`${program} ${args.join(' ')}: ${err}${out}`)) : done(out))));
}

// HTTP/1.1 for a while, and longer if the machine is so busy that nothing was answered. wrk drops what is in flight at
// the end, so the server may have counted up to one more per connection. Resolves with the number of answers that wrk
// counted, and how many it may have dropped.
async function wrk(server, kind, connections, seconds = 1) {
    const [url, body, wanted] = kinds[kind];
    const out = await tool('wrk', ['-t', '1', '-c', `${connections}`, '-d', `${seconds}s`, '--timeout', '60s', '-s',
        path.join(__dirname, 'wrk.lua'), server.url, '--', body ? 'POST' : 'GET', url, wanted,
        ...(body ? [JSON.stringify(body)] : [])]);
    const counts = Object.fromEntries([...out.matchAll(/(\w+)=(\d+)/g)].map((m) => [m[1], Number(m[2])]));
    const more = counts.requests === 0 && seconds < 60 ? await wrk(server, kind, connections, 4 * seconds) : { n: 0, dropped: 0 };
    t.check(counts.requests + more.n > 0, `wrk ${kind} was answered: ${out}`);
    t.check(['wrong', 'connect', 'read', 'write', 'status', 'timeout'].every((name) => counts[name] === 0),
        `wrk ${kind}: ${out}`);
    console.log(`wrk    ${server.url.split(':')[0].padEnd(5)} ${kind.padEnd(8)} ${counts.requests} requests`);
    return { n: counts.requests + more.n, dropped: connections + more.dropped };
}

// A number of requests, on connections with many streams each (or pipelined: --h1).
async function h2load(server, kind, n, connections, streams, ...more) {
    const [url, body] = kinds[kind], file = path.join(t.tmp, `${kind}.json`);
    if (body)
        fs.writeFileSync(file, JSON.stringify(body));
    const out = await tool('h2load', ['-n', `${n}`, '-c', `${connections}`, '-m', `${streams}`, ...more,
        ...(body ? ['-d', file, '-H', 'content-type: application/json'] : []), server.url + url]);
    t.check(out.includes(`requests: ${n} total, ${n} started, ${n} done, ${n} succeeded, 0 failed, 0 errored, 0 timeout`) &&
        out.includes(`status codes: ${n} 2xx, 0 3xx, 0 4xx, 0 5xx`), `h2load ${kind}: ${out}`);
    const spoken = more.includes('--h1') ? 'http/1.1' : server.url.startsWith('https') ? 'h2' : 'h2c';
    t.check(out.includes(`Application protocol: ${spoken}\n`), `h2load ${kind} by ${spoken}: ${out}`);
    console.log(`h2load ${spoken.padEnd(8)} ${kind.padEnd(8)} ${n} requests`);
    return n;
}

// The server's metrics, read with curl: this program's own client does not trust the certificate.
function figures(server) {
    const page = execFileSync('curl', ['-sk', `${server.url}/metrics`]).toString();
    const values = new Map(page.split('\n').filter((l) => l && l[0] !== '#')
        .map((l) => [l.slice(0, l.lastIndexOf(' ')), Number(l.slice(l.lastIndexOf(' ') + 1))]));
    return (name) => (values.has(name) ? values.get(name) : NaN);
}

// The server's metrics count exactly the requests of h2load.
async function counted(server) {
    await tool('curl', ['-skf', '-d', JSON.stringify(kinds.cached[1]), server.url + kinds.cached[0]]); // caches it
    const before = figures(server), asked = {};
    for (const [kind, ...how] of [['health', 4000, 50, 10], ['cached', 2000, 20, 100], ['chat', 600, 20, 30],
        ['stream', 600, 20, 30], ['embed', 300, 10, 10], ['classify', 300, 10, 10],
        ['health', 2000, 20, 10, '--h1']]) // the last pipelined
        asked[route(kind)] = (asked[route(kind)] ?? 0) + await h2load(server, kind, ...how);
    // an answer is counted when its last byte is written, which its client may see a moment earlier
    let after = figures(server), asks = 1;
    const rise = (name) => after(name) - before(name), count = (name) => rise(`shoal_http_seconds_count{route="${name}"}`);
    await t.until(() => Object.entries(asked).every(([name, n]) => count(name) >= n) || !(after = figures(server), asks++),
        'everything is counted');
    for (const [name, n] of Object.entries(asked))
        t.same(count(name), n, `counted by the server: ${name}`);
    const all = Object.values(asked).reduce((a, b) => a + b);
    t.same(rise('shoal_responses_total{status="2xx"}') - asks, all, 'answers: these and the figures themselves');
    for (const status of ['3xx', '4xx', '5xx'])
        t.same(rise(`shoal_responses_total{status="${status}"}`), 0, `answers: ${status}`);
    t.same(rise('shoal_prompt_cache_hits_total{model="chat"}'), 2000, 'from the cache');
    t.same(rise('shoal_requests_total{model="chat"}'), 3200, 'requests to the model');
    t.same(rise('shoal_requests_total{model="enc"}'), 600, 'requests to the encoder');
}

// At least as many as wrk has seen, at most one more per connection.
async function timed(server) {
    const before = figures(server);
    const asked = {}, more = {};
    for (const [kind, connections] of [['health', 100], ['cached', 100], ['chat', 64], ['stream', 64], ['embed', 32],
        ['classify', 32]]) {
        const { n, dropped } = await wrk(server, kind, connections);
        asked[route(kind)] = (asked[route(kind)] ?? 0) + n;
        more[route(kind)] = (more[route(kind)] ?? 0) + dropped;
    }
    await idle(server);
    const after = figures(server), rise = (name) => after(name) - before(name);
    for (const [name, n] of Object.entries(asked)) {
        const seen = rise(`shoal_http_seconds_count{route="${name}"}`);
        t.check(seen >= n && seen <= n + more[name], `${name}: the server counted ${seen}, wrk ${n}`);
    }
    t.check(rise('shoal_responses_total{status="4xx"}') <= Object.values(more).reduce((a, b) => a + b),
        'only what wrk dropped was not answered');
    t.same(rise('shoal_responses_total{status="5xx"}'), 0, 'answers: 5xx');
}

const idle = (server) => t.until(() => ['chat', 'enc'].every((m) =>
    figures(server)(`shoal_in_flight{model="${m}"}`) === 0), 'nothing in flight');

async function serve(how) {
    const file = path.join(t.tmp, 'config.yaml');
    fs.writeFileSync(file, `
models:
  - {name: chat, path: ${t.root}/tests/data/refs/qwen3.gguf, parallel: 16, queue: 1000, context: 256}
  - {name: enc, path: ${t.root}/models/encoder, queue: 1000}
log_requests: false
${how}`);
    const server = await t.start(shoal, ['--config', file]);
    // polling /readyz while the models load counts as refused
    server.notLoaded = figures(server)('shoal_refused_total{reason="not_loaded"}');
    return server;
}

async function over(server) {
    await idle(server);
    const end = figures(server);
    for (const reason of ['auth', 'rate', 'busy', 'deadline', 'draining', 'invalid'])
        t.same(end(`shoal_refused_total{reason="${reason}"}`), 0, `refused: ${reason}`);
    t.same(end('shoal_refused_total{reason="not_loaded"}'), server.notLoaded, 'refused: not_loaded');
    for (const m of ['chat', 'enc'])
        t.same(end(`shoal_errors_total{model="${m}"}`), 0, `errors of ${m}`);
    t.same(end('shoal_kv_pages_used{model="chat"}'), 0, 'pages that nobody gave back');
    t.same((await server.stop()).code, 0, `exit: ${server.log}`);
}

(async () => {
    const plain = await serve('');
    await timed(plain);
    const warm = t.memory(plain).rss;
    await counted(plain);
    const grown = t.memory(plain).rss - warm;
    console.log(`${(grown / 1024).toFixed(1)} MiB more after the second round`);
    t.check(grown < 24 << 10, `memory grew by ${grown} KiB from one round to the next`);
    await over(plain);

    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days',
        '2', '-subj', '/CN=127.0.0.1', '-keyout', 'key.pem', '-out', 'cert.pem'], { cwd: t.tmp, stdio: 'pipe' });
    const secure = await serve(`tls: {cert: ${t.tmp}/cert.pem, key: ${t.tmp}/key.pem}`);
    await counted(secure);
    for (const kind of ['cached', 'chat'])
        await wrk(secure, kind, 50);
    await over(secure);
    t.finish();
})().catch(t.abandon);
