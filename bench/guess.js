#!/usr/bin/env node
// Can one key find out what another key has sent by the time of an answer, its usage or its headers? A client sends a secret; an attacker with a key
// of its own sends guesses, the right one and wrong ones in turn, each only once: the server keeps what the attacker has
// sent, so every guess is of a fresh secret. Prints how often the attacker is right when it takes the faster of a right and
// a wrong guess, the one with more cached tokens, or the one whose headers tell of a
// hit or are rare: 50 % is chance. With `cache: shared` beside
// it, where the attack works. The same with keys: whether one that is nearly right is refused later. Fails if
// something is better than chance (by 4 standard errors) without sharing.
// Usage: bench/run guess [--shoal FILE] [--guesses N] [--only private, keys or shared]
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');

const option = (name, usual) => {
    const at = process.argv.indexOf(name);
    return at < 0 ? usual : process.argv[at + 1];
};
const root = path.resolve(__dirname, '..');
const shoal = path.resolve(option('--shoal', path.join(root, 'build/shoal')));
const pairs = Math.ceil(Number(option('--guesses', 10000)) / 2);
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-guess-'));
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

const secret = (code) => `The code of the front door is ${code}. Please remember it, tell nobody, and lock the door of the house every night`
    + ' at ten, then close the shutters of the living room and the kitchen, and turn off all of the lights of the first floor.';

function post(port, key, model, prompt) {
    return new Promise((done, give) => {
        const body = JSON.stringify({ model, prompt, max_tokens: 1, temperature: 0, stream: false });
        const from = process.hrtime.bigint();
        const q = http.request({ port, agent, method: 'POST', path: '/v1/completions', headers: { authorization: `Bearer ${key}`,
            'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } }, (r) => {
            let text = '';
            r.on('data', (x) => { text += x; });
            r.on('end', () => {
                const ns = Number(process.hrtime.bigint() - from);
                if (r.statusCode !== 200)
                    return give(new Error(`status ${r.statusCode}: ${text}`));
                const { date, 'x-request-id': id, ...headers } = r.headers; // of every answer
                for (const [name, value] of Object.entries(headers))
                    headers[name] = value.replace(/\d+(\.\d+)?/g, '#'); // times and counts are judged apart
                done({ ns, cached: JSON.parse(text).usage.prompt_tokens_details?.cached_tokens ?? 0, headers: JSON.stringify(headers) });
            });
        });
        q.on('error', give);
        q.end(body);
    });
}

async function attack(port, model) {
    const right = { time: 0, usage: 0, headers: 0 }, seen = new Map();
    const told = (g) => (g.headers.includes('hit') ? pairs * 4 : 0) - seen.get(g.headers);
    // 1: the first is taken; nothing to choose by: a coin
    const first = (a, b) => (a === b ? crypto.randomInt(2) : Number(a > b));
    for (let i = 0; i < pairs; i++) {
        const code = crypto.randomInt(1e9), other = crypto.randomInt(1e9);
        await post(port, 'victim-key', model, secret(code));
        const order = crypto.randomInt(2) ? [code, other] : [other, code], got = [];
        for (const guess of order)
            got.push(await post(port, 'attacker-key', model, secret(guess)));
        for (const g of got)
            seen.set(g.headers, (seen.get(g.headers) ?? 0) + 1);
        const [a, b] = got, is = (took) => Number(order[took ? 0 : 1] === code);
        right.time += is(first(b.ns, a.ns));
        right.usage += is(first(a.cached, b.cached));
        right.headers += is(first(told(a), told(b)));
    }
    const error = 100 * Math.sqrt(0.25 / pairs);
    let worst = 0;
    for (const [by, n] of Object.entries(right)) {
        const p = 100 * n / pairs;
        worst = Math.max(worst, (p - 50) / error);
        console.log(`${model.padEnd(8)} by ${by.padEnd(8)} ${2 * pairs} guesses: right in ${p.toFixed(1)} % of ${pairs} pairs; chance: 50 +- ${(1.96 * error).toFixed(1)} %`);
    }
    return worst;
}

// Is a key that shares all but its last letter with the right one refused later than one that shares nothing?
async function keys(port) {
    const right = 'victim-key', letters = 'abcdefghijklmnopqrstuvwxyz';
    const random = (n) => Array.from({ length: n }, () => letters[crypto.randomInt(letters.length)]).join('');
    const refused = async (key) => {
        const from = process.hrtime.bigint();
        await post(port, key, 'private', 'x').catch((e) => { if (!e.message.startsWith('status 401')) throw e; });
        return Number(process.hrtime.bigint() - from);
    };
    let later = 0;
    for (let i = 0; i < pairs; i++) {
        const both = [right.slice(0, -1) + '_', random(right.length)], swap = crypto.randomInt(2);
        const times = [await refused(both[swap]), await refused(both[1 - swap])];
        later += times[swap] > times[1 - swap];
    }
    const error = 100 * Math.sqrt(0.25 / pairs), p = 100 * later / pairs;
    console.log(`keys     by time     ${2 * pairs} guesses: the nearer one is refused later in ${p.toFixed(1)} % of ${pairs} pairs; chance: 50 +- ${(1.96 * error).toFixed(1)} %`);
    return Math.abs(p - 50) / error;
}

(async () => {
    const file = path.join(tmp, 'guess.yaml');
    fs.writeFileSync(file, `models:\n  - {name: reply, path: "${root}/models/reply.gguf"}\nroutes:\n  - {name: private, models: [reply]}\n`
        + `  - {name: shared, models: [reply], cache: shared}\nkeys:\n  - {name: victim, sha256: ${sha('victim-key')}}\n`
        + `  - {name: attacker, sha256: ${sha('attacker-key')}}\n`);
    const server = spawn(shoal, ['serve', '--listen', '127.0.0.1:0', '--only', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, XDG_STATE_HOME: `${tmp}/state`, XDG_DATA_HOME: `${tmp}/data` } });
    const port = await new Promise((done) => {
        let out = '';
        server.stdout.on('data', (d) => {
            out += d;
            const at = out.match(/listening on http:\/\/127\.0\.0\.1:(\d+)/);
            if (at && out.includes('models:'))
                done(Number(at[1]));
        });
    });
    while (await new Promise((done) => http.get({ port, path: '/readyz' }, (r) => { r.resume(); done(r.statusCode !== 200); })))
        await new Promise((done) => setTimeout(done, 20));
    const only = option('--only', ''), parts = { private: () => attack(port, 'private'), keys: () => keys(port), shared: () => attack(port, 'shared') };
    const sigmas = {};
    for (const [name, run] of Object.entries(parts))
        sigmas[name] = !only || only === name ? await run() : NaN;
    server.kill();
    fs.rmSync(tmp, { recursive: true });
    if (sigmas.shared < 4)
        console.log('the attack does not even work with sharing: this run shows nothing');
    process.exit(sigmas.private >= 4 || sigmas.keys >= 4 || sigmas.shared < 4 ? 1 : 0);
})();
