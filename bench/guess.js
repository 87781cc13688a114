#!/usr/bin/env node
// Can one key find out by the time of an answer what another key has sent? A client sends a secret; an attacker with a key
// of its own sends guesses, the right one and wrong ones in turn, each only once: the server keeps what the attacker has
// sent, so every guess is of a fresh secret. Prints how often the attacker is right when it takes the faster of a right and
// a wrong guess: 50 % is chance. With `cache: shared` beside it, where the attack works.
// Usage: bench/run guess [--shoal FILE] [--guesses N]
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
            r.resume();
            r.on('end', () => (r.statusCode === 200 ? done(Number(process.hrtime.bigint() - from)) : give(new Error(`status ${r.statusCode}`))));
        });
        q.on('error', give);
        q.end(body);
    });
}

async function attack(port, model) {
    let right = 0;
    for (let i = 0; i < pairs; i++) {
        const code = crypto.randomInt(1e9), other = crypto.randomInt(1e9);
        await post(port, 'victim-key', model, secret(code));
        const order = crypto.randomInt(2) ? [code, other] : [other, code], times = [];
        for (const guess of order)
            times.push(await post(port, 'attacker-key', model, secret(guess)));
        right += order[times[0] < times[1] ? 0 : 1] === code;
    }
    const p = right / pairs, error = 1.96 * Math.sqrt(0.25 / pairs);
    console.log(`${model.padEnd(8)} ${2 * pairs} guesses: right in ${(100 * p).toFixed(1)} % of ${pairs} pairs; chance: 50 +- ${(100 * error).toFixed(1)} %`);
}

(async () => {
    const file = path.join(tmp, 'guess.yaml');
    fs.writeFileSync(file, `models:\n  - {name: reply, path: "${root}/models/reply.gguf"}\nroutes:\n  - {name: private, models: [reply]}\n`
        + `  - {name: shared, models: [reply], cache: shared}\nkeys:\n  - {name: victim, sha256: ${sha('victim-key')}}\n`
        + `  - {name: attacker, sha256: ${sha('attacker-key')}}\n`);
    const server = spawn(shoal, ['serve', '--listen', '127.0.0.1:0', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] });
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
    await attack(port, 'private');
    await attack(port, 'shared');
    server.kill();
    fs.rmSync(tmp, { recursive: true });
    process.exit(0);
})();
