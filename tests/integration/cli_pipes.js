#!/usr/bin/env node
// Commands that read lines answer each line while their input stays open.  Usage: cli_pipes.js SHOAL
'use strict';
const { spawn, execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const env = { ...process.env, SHOAL_MODELS: path.join(t.root, 'models'), SHOAL_CACHE_DIR: `${t.tmp}/cache` };

// Writes one line, waits for its answer, then writes the next: only a command that answers at once passes.
async function talk(args, lines, head) {
    const child = spawn(shoal, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    let out = '', err = '', ended = false;
    child.stdout.on('data', (d) => { out += d; });
    child.stderr.on('data', (d) => { err += d; });
    const over = new Promise((done) => child.on('close', (code) => { ended = true; done(code); }));
    const answers = () => out.split('\n').length - 1;
    if (head)
        child.stdin.write(`${head}\n`);
    for (let i = 0; i < lines.length; i++) {
        child.stdin.write(`${lines[i]}\n`);
        const until = Date.now() + 60000;
        while (answers() <= i && !ended && Date.now() < until)
            await new Promise((done) => setTimeout(done, 5));
        t.check(answers() > i, `${args.join(' ')}: no answer to line ${i + 1} while the pipe is open: ${err}`);
        if (answers() <= i)
            break;
    }
    child.stdin.end();
    t.same(await over, 0, `${args.join(' ')}: exit code, ${err}`);
    return out;
}

// A growing file, as a logger writes it: tail -f passes on each row, and its score comes before the next row is
// written.
async function tail(rows, want) {
    const file = path.join(t.tmp, 'growing.csv');
    fs.writeFileSync(file, '');
    const follow = spawn('tail', ['-n', '+1', '-f', file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const child = spawn(shoal, ['score', '-m', 'anomaly'], { env, stdio: [follow.stdout, 'pipe', 'inherit'] });
    let out = '';
    child.stdout.on('data', (d) => { out += d; });
    for (let i = 0; i < rows.length; i++) {
        fs.appendFileSync(file, `${rows[i]}\n`);
        if (!await t.until(() => out.split('\n').length - 1 > i, `tail -f: the score of row ${i + 1}`))
            break;
    }
    const over = t.ended(child);
    follow.kill();
    t.same((await over).code, 0, 'tail -f: exit code');
    t.same(out, want, 'tail -f scores as arguments do');
}

(async () => {
    const rows = Array.from({ length: 40 }, (_, i) => `${(20 + Math.sin(i)).toFixed(3)},${(3 + Math.cos(i)).toFixed(3)}`);
    const whole = execFileSync(shoal, ['score', '-m', 'anomaly', ...rows], { env }).toString();
    t.same(await talk(['score', '-m', 'anomaly'], rows), whole, 'a pipe scores as arguments do');
    t.same(await talk(['score', '-m', 'anomaly', '-f', '-'], rows, 'temperature,pressure'), whole, 'names first');
    t.same(execFileSync(shoal, ['score', '-m', 'anomaly'], { env, input: `${rows.join('\n')}\n` }).toString(), whole,
        'all at once');
    await tail(rows, whole);
    const low = execFileSync(shoal, ['score', '-m', 'anomaly', '--level', '-100', ...rows], { env }).toString();
    t.check(low.trim().split('\n').every((l) => l.split(' ')[1] === '1'), 'every value is above a low level');
    const trees = path.join(t.root, 'tests/data/scorers/trees/missing.txt');
    const row = '1,2,3,4,nan,6,7,8';
    const one = execFileSync(shoal, ['score', '-m', trees, row], { env }).toString();
    t.same(await talk(['score', '-m', trees], [row, row]), one + one, 'trees');
    const texts = ['turn off the kitchen lights', 'play some jazz'];
    t.check((await talk(['classify', '-m', 'intent'], texts)).startsWith('turn_off '), 'classify');
    await talk(['tag', '-m', 'entities'], texts);
    await talk(['embed', '-m', 'embed'], texts);
    t.finish();
})().catch(t.abandon);
