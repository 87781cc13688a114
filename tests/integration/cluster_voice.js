#!/usr/bin/env node
// Live sound with the recognizer on other machines: whoever hears a turn is killed or stopped in the middle of it, and the turn is
// heard by the next in rank: another node, then the home's own recognizer, which is held in reserve. No turn is lost, none done twice.
// Usage: cluster_voice.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(process.argv[2]), hear = path.join(t.root, 'models/hear.gguf');
process.chdir(t.root); // where ./models is
const speech = fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav')).subarray(44);

async function ears(name) {
    const sock = path.join(t.tmp, `${name}.sock`), m = new c.Member(shoal, 'node', name, ['--listen', `unix:${sock}`, '-m', `hear=${hear}`]);
    m.address = `unix:${sock}`;
    return m.start();
}

// Hearings that a node has been asked for, and those it has answered.
const asked = (m) => (m.log.match(/path=\/shoal\.node\.v1\.Node\/Run/g) ?? []).length;

// Speaks a command; when half of it was said and a node has heard it once, hit(that node).
async function turn(home, nodes, hit) {
    const ws = new WebSocket(`${home.url.replace('http', 'ws')}/v1/voice`), got = [];
    let woken = () => {};
    ws.on('message', (m) => { got.push(JSON.parse(m)); woken(); });
    await t.within(new Promise((done, give) => { ws.on('open', done); ws.on('error', give); }), 'a connection');
    const next = async (type) => {
        for (let i = 0; ; i++) {
            while (i >= got.length)
                await t.within(new Promise((done) => { woken = done; }), `${type} after ${JSON.stringify(got.slice(-2))}`);
            if (got[i].type === type || got[i].type === 'error')
                return got[i];
        }
    };
    const before = nodes.map(asked), half = speech.length / 2 & ~1;
    ws.send(speech.subarray(0, half));
    if (hit) {
        await t.until(() => nodes.some((n, i) => asked(n) > before[i]), 'a node that hears');
        await hit(nodes.find((n, i) => asked(n) > before[i]));
    }
    ws.send(speech.subarray(half));
    ws.send('{"type":"end"}');
    const words = await next('transcript'), done = await next('done');
    ws.close();
    t.same(words.text, 'Please turn on the kitchen lights.', `heard: ${JSON.stringify(words)}`);
    t.same(`${got.filter((m) => m.type === 'transcript').length} ${(got.find((m) => m.type === 'plan')?.actions ?? []).map((a) => `${a.action} ${a.room}`)}`, '1 turn_on kitchen', 'done once');
    t.check(/kitchen/.test(done.reply), `answered: ${JSON.stringify(done)}`);
}

(async () => {
    const nodes = [await ears('ears1'), await ears('ears2')], config = path.join(t.tmp, 'home.yaml');
    fs.writeFileSync(config, `cluster: {nodes: [${nodes.map((n) => `"${n.address}"`)}], name: home}\nmodels: [{name: hear, path: ${hear}, standby: true}]\n`);
    const home = await t.start(shoal, ['--config', config], { all: true });
    await c.all_ready({ gateway: home }, 2);
    await t.until(() => nodes.every((n) => /loaded path=\S*hear\.gguf/.test(n.log)), 'the recognizers are loaded');
    await t.until(async () => { // and the home has heard of it
        const form = new FormData();
        form.append('file', new Blob([fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav'))]), 'a.wav');
        return (await fetch(`${home.url}/v1/audio/transcriptions`, { method: 'POST', body: form })).status === 200;
    }, 'the home knows them');
    await turn(home, nodes); // undisturbed, so that everything is loaded
    const live = [...nodes];
    await turn(home, live, async (n) => { n.stopped = true; await n.stop(); }); // silent, its connection stays open
    t.same(nodes.filter((n) => n.stopped).length, 1, 'one node was stopped in the middle of a turn');
    const left = nodes.find((n) => !n.stopped);
    nodes.find((n) => n.stopped).signal('SIGKILL');
    await turn(home, [left], async (n) => { n.signal('SIGKILL'); await n.ended; });
    await turn(home, []); // only the reserve is left
    t.same((await home.stop()).code, 0, 'ends cleanly');
    t.finish();
})();
