#!/usr/bin/env node
// The same sentences through `shoal ask` and through /v1/process, with the same home: act for act and reply for reply.
// tests/data/ask/both-ways.txt is one conversation. A server does what is asked for later, which the command cannot: there the
// acts are compared without the times that only a server has.
// Usage: serve_same.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), home = path.join(t.root, 'models/demo-home.yaml');
const LATER = [
    'set a timer for ten minutes', 'wake me at 7 am', 'remind me to water the plants at six pm', 'remind me in twenty minutes to check the oven',
    'turn off the tv in 30 minutes', 'turn on the fan for ten minutes', 'lock the doors at 11 pm', 'set a timer for 90 seconds',
    'set an alarm for 7:15 am tomorrow', 'open the blinds at 7 tomorrow', 'set the heating to 18 degrees at 11 pm'];
process.chdir(t.root); // where ./models is

// What an answer does and says; ids and tokens are of one process.
function outcome(answer, later) {
    const acts = answer.actions.map((a) => {
        const { token, id, ...rest } = a;
        if (later)
            for (const key of ['due', 'ends', 'scheduled_id', 'simulated', 'result'])
                delete rest[key];
        return rest;
    });
    return JSON.stringify(later ? { acts } : { acts, reply: answer.reply });
}

function command(texts) {
    const r = spawnSync(shoal, ['ask', '--json', '--home', home], { input: `${texts.join('\n')}\n`, encoding: 'utf8', maxBuffer: 1 << 28 });
    t.same(r.status, 0, `shoal ask: ${r.stderr}`);
    return r.stdout.trim().split('\n').map((x) => JSON.parse(x));
}

async function compare(server, texts, later) {
    const said = command(texts);
    t.same(said.length, texts.length, 'an answer for each');
    for (const [i, text] of texts.entries()) {
        const r = await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ text, session_id: later ? 'later' : 'now' }) });
        t.same(outcome(await r.json(), later), outcome(said[i], later), `'${text}' over HTTP and on the command line`);
    }
}

// What is set can be paused, go on, be changed and asked about; what rang rings again.
async function turns(server) {
    const rows = [
        ['set a pasta timer for ten minutes', 'set_timer scheduled', 'pasta'], ['set a timer for twenty minutes', 'set_timer scheduled', '20 minutes'],
        ['add 5 minutes to the pasta timer', 'change_scheduled done', 'timer: 15 minutes, pasta'],
        ['how long is left on the pasta timer', 'query_timer done', 'Set: timer: 15 minutes, pasta (1'],
        ['pause the pasta timer', 'pause_scheduled done', 'paused'], ['how long is left on the pasta timer', 'query_timer done', 'left, paused'],
        ['resume the pasta timer', 'resume_scheduled done', 'Goes on: timer: 15 minutes, pasta'],
        ['cancel the pasta timer', 'cancel_timer done', 'Cancelled: timer: 15 minutes, pasta'],
        ['wake me at 7 am tomorrow', 'set_alarm scheduled', '7 am'], ['move my alarm to 8 am', 'change_scheduled done', 'alarm: 08:00 (tomorrow, 08:00)'],
        ['when is my next alarm', 'query_timer done', 'alarm: 08:00 (tomorrow, 08:00)'], ['set a timer for one second', 'set_timer scheduled', '1 second']];
    const ask = async (text) => (await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ text, session_id: 'turns' }) })).json();
    for (const [text, act, reply] of rows) {
        const r = await ask(text);
        t.same(r.actions.map((a) => `${a.action} ${a.result}`).join(), act, `'${text}': ${JSON.stringify(r)}`);
        t.check(r.reply.includes(reply), `'${text}' is answered with '${reply}': ${r.reply}`);
    }
    const rang = async () => (await (await fetch(`${server.url}/v1/home`)).json()).recent.some((x) => x.result === 'rang');
    while (!await rang())
        ;
    const r = await ask('snooze');
    t.same(r.actions.map((a) => `${a.action} ${a.result} ${a.duration_s}`).join(), 'set_timer scheduled 600', `snooze: ${JSON.stringify(r)}`);
}

(async () => {
    const config = path.join(t.tmp, 'same.yaml');
    fs.writeFileSync(config, `home: ${home}\nhome_schedule: ${t.tmp}/scheduled.json\n`);
    const server = await t.start(shoal, ['--config', config], { all: true, env: { SHOAL_STORE: path.join(t.tmp, 'store'), XDG_STATE_HOME: path.join(t.tmp, 'state') } });
    const texts = fs.readFileSync(path.join(t.root, 'tests/data/ask/both-ways.txt'), 'utf8').trim().split('\n');
    t.check(texts.length >= 200, `${texts.length} sentences`);
    await compare(server, texts, false);
    await turns(server);
    await compare(server, LATER, true);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    t.finish();
})();
