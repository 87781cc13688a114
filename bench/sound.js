// What the benchmarks of sound share (speech.js, voice.js, whisper.js).
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const { ROOT } = require('./lib.js');

const sphinx = '/usr/share/pocketsphinx/test/data';

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

// [file, what is said]
function sounds() {
    const own = path.join(ROOT, 'tests/data/audio');
    const list = [[`${own}/jfk.flac`, 'and so my fellow americans ask not what your country can do for you ask what you can do for your country']];
    for (const [folder, table] of [['librivox', 'transcription'], ['cards', 'cards.transcription']])
        if (fs.existsSync(`${sphinx}/${folder}/${table}`))
            for (const line of fs.readFileSync(`${sphinx}/${folder}/${table}`, 'utf8').trim().split('\n')) {
                const [, text, name] = /^<s>(.*)<\/s>\s*\((.*)\)/.exec(line);
                list.push([`${sphinx}/${folder}/${name}.wav`, text.trim()]);
            }
    return list;
}

const words = (s) => s.toLowerCase().replace(/mr\./g, 'mister').replace(/-/g, ' ').replace(/[^a-z0-9' ]/g, '').split(/\s+/).filter(Boolean);

module.exports = { program, errors, sounds, words };
