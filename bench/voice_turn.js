#!/usr/bin/env node
// A spoken command from the end of speech to its action, over the WebSocket /v1/voice of a server on this machine.
// The sound comes in pieces of 20 ms at the speed of speech. Two ways to end a turn: the client says so (push to talk), and by
// silence (hands free), which includes the pause of 0.36 s that tells the end of a turn.
// Processor time is that of the server for a whole turn, partial hearings and reply among it.
// Usage: voice_turn.js [TURNS]; default: 20
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const t = require('../tests/integration/serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(__dirname, '../build/shoal'), turns = Number(process.argv[2] ?? 20);
process.chdir(t.root); // where ./models is
const speech = fs.readFileSync('tests/data/audio/kitchen_lights.wav').subarray(44);
const spoken = 1.59; // seconds: where the last word ends

// Processor time of the server so far, in milliseconds.
const worked = (pid) => { const f = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' '); return 10 * (Number(f[11]) + Number(f[12])); };
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];

// One turn; resolves with the milliseconds from the end of speech to the transcript, to the plan and to the end of the reply.
function turn(ws, hands) {
    return new Promise((resolve, reject) => {
        const pcm = hands ? Buffer.concat([speech, Buffer.alloc(32 * 1500)]) : speech.subarray(0, 32 * Math.round(spoken * 1000));
        const began = performance.now(), ended = began + spoken * 1000, out = {};
        let at = 0;
        const timer = setInterval(() => {
            for (; at < pcm.length && at / 32 <= performance.now() - began; at += 640)
                ws.send(pcm.subarray(at, at + 640));
            if (at < pcm.length)
                return;
            clearInterval(timer);
            if (!hands)
                ws.send('{"type":"end"}');
        }, 5);
        ws.removeAllListeners('message');
        ws.on('message', (m) => {
            const { type, ...rest } = JSON.parse(m);
            if (type === 'error')
                reject(new Error(JSON.stringify(rest)));
            out[type] ??= performance.now() - ended;
            if (type === 'done') {
                clearInterval(timer);
                resolve({ ...out, actions: rest.actions.length });
            }
        });
    });
}

(async () => {
    const server = await t.start(shoal, []);
    const ws = new WebSocket(`${server.url.replace('http', 'ws')}/v1/voice`);
    await new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); });
    console.log(`${os.cpus().length} cores, load ${os.loadavg()[0].toFixed(1)}, ${turns} turns each; milliseconds from the end of speech`);
    for (const hands of [false, true]) {
        const all = [];
        let before = 0;
        for (let i = -2; i < turns; i++) { // the first two warm up
            if (i === 0)
                before = worked(server.child.pid);
            const one = await turn(ws, hands);
            ws.send('{"type":"cancel"}');
            if (i >= 0 && one.actions === 1)
                all.push(one);
        }
        console.log(`${hands ? 'by silence' : 'push to talk'}  processor time ${((worked(server.child.pid) - before) / turns).toFixed(0)} ms a turn`);
        for (const what of ['transcript', 'plan', 'done'])
            console.log(`${hands ? 'by silence' : 'push to talk'}  ${what.padEnd(10)}  p50 ${quantile(all.map((x) => x[what]), 0.5).toFixed(0).padStart(5)}  p95 ${quantile(all.map((x) => x[what]), 0.95).toFixed(0).padStart(5)}  (${all.length} turns right)`);
    }
    ws.close();
    await server.stop();
})();
