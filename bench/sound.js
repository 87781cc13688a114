// What the benchmarks of sound share (speech.js, voice.js).
'use strict';
const { spawn } = require('child_process');
const readline = require('readline');

// A program that answers a line with a line of JSON.
function program(command, args) {
    const p = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = readline.createInterface({ input: p.stdout })[Symbol.asyncIterator]();
    return { ask: async (line) => { p.stdin.write(`${line}\n`); return JSON.parse((await lines.next()).value); }, end: () => p.stdin.end() };
}

// How many words must be changed, added or left out to make one text of the other.
function errors(said, heard) {
    let row = heard.map((_, i) => i + 1);
    row.unshift(0);
    said.forEach((w, i) => {
        const next = [i + 1];
        heard.forEach((h, j) => next.push(Math.min(next[j] + 1, row[j + 1] + 1, row[j] + (h === w ? 0 : 1))));
        row = next;
    });
    return row.at(-1);
}

module.exports = { program, errors };
