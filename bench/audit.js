#!/usr/bin/env node
// What the audit log costs: processor time of a server per request, with and without the log, in turn, each request with a prompt of
// its own, four at once. Processor time, since the other programs of a machine do not change it much.
// Usage: audit.js [--rounds N] [--requests N]
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const root = path.join(__dirname, '..');
const option = (name, otherwise) => { const i = process.argv.indexOf(`--${name}`); return i > 0 ? Number(process.argv[i + 1]) : otherwise; };
const rounds = option('rounds', 9), requests = option('requests', 300), AT_ONCE = 4;
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-audit-'));
const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
const median = (v) => [...v].sort((a, b) => a - b)[v.length >> 1];

function serve(name, more) {
    const file = path.join(dir, `${name}.yaml`);
    fs.writeFileSync(file, `models: [{name: m, path: "${path.join(root, 'models/reply-draft.gguf')}"}]\npack: false\ncache: {weights_dir: "${path.join(dir, 'cache')}"}\n${more}`);
    const child = spawn(path.join(root, 'build/shoal'), ['serve', '--config', file, '--listen', '127.0.0.1:0', '--log-level', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] });
    return new Promise((done, failed) => {
        let text = '';
        child.on('exit', () => failed(new Error(`${name} ended`)));
        child.stdout.on('data', (d) => { const m = (text += d).match(/listening on (http:\S+)/); if (m) done({ child, url: m[1] }); });
    });
}
const ask = (s, prompt, max_tokens) => new Promise((done, failed) => {
    const r = http.request(`${s.url}/v1/completions`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, (a) => {
        a.on('data', () => {});
        a.on('end', () => (a.statusCode === 200 ? done() : failed(new Error(`status ${a.statusCode}`))));
    });
    r.on('error', failed);
    r.end(JSON.stringify({ model: 'm', prompt, max_tokens, temperature: 0 }));
});
const cpu = (s) => fs.readdirSync(`/proc/${s.child.pid}/task`).reduce((sum, t) => {
    try { return sum + Number(fs.readFileSync(`/proc/${s.child.pid}/task/${t}/schedstat`, 'utf8').split(' ')[0]) / 1e3; } catch { return sum; }
}, 0);
let number = 0;
async function round(s, max_tokens) { // microseconds per request
    const before = cpu(s);
    let left = requests;
    await Promise.all(Array.from({ length: AT_ONCE }, async () => { while (left-- > 0) await ask(s, `chat: hello number ${number++}, how are you today?`, max_tokens); }));
    return (cpu(s) - before) / requests;
}

(async () => {
    const servers = [await serve('without', ''), await serve('with', `audit: {dir: "${path.join(dir, 'audit')}"}\n`)], rows = [];
    try {
        console.log(`${'tokens'.padEnd(8)}${'without us'.padStart(12)}${'with us'.padStart(12)}${'cost %'.padStart(9)}   (median of ${rounds} x ${requests} requests; spread of the cost)`);
        for (const tokens of [1, 16]) {
            for (const s of servers) await round(s, tokens); // warm
            const got = [[], []], cost = [];
            for (let i = 0; i < rounds; i++) {
                for (const k of i % 2 ? [1, 0] : [0, 1]) got[k].push(await round(servers[k], tokens));
                cost.push(100 * (got[1][i] / got[0][i] - 1));
            }
            const [a, b] = got.map(median), by = [...cost].sort((x, y) => x - y);
            rows.push({ part: 'audit', tokens, without: a, with: b, cost: 100 * (b / a - 1) });
            console.log(`${String(tokens).padEnd(8)}${a.toFixed(0).padStart(12)}${b.toFixed(0).padStart(12)}${(100 * (b / a - 1)).toFixed(1).padStart(9)}   (${by[0].toFixed(1)} to ${by.at(-1).toFixed(1)})`);
        }
        fs.writeFileSync(path.join(root, 'build/bench-audit.json'), JSON.stringify(rows, null, 1));
    } finally {
        for (const s of servers) { s.child.removeAllListeners('exit'); s.child.kill(); }
        agent.destroy();
        await Promise.all(servers.map((s) => new Promise((done) => (s.child.exitCode === null ? s.child.on('exit', done) : done()))));
        fs.rmSync(dir, { recursive: true });
    }
})().catch((e) => { console.error(e.message); process.exit(1); });
