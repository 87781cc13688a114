#!/usr/bin/env node
// Streams under a JSON Schema survive the loss of their node: several run at once, the node is killed, and every answer
// is complete, valid, and equal to that of an undisturbed run.
// Usage: cluster_constraint.js SHOAL
'use strict';
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const streams = 8;
const levels = ['low', 'high', 'off'];
// An answer of many short strings: long enough to be interrupted, and never truncated.
const schema = { type: 'object', required: ['room_name', 'readings', 'comment_text'], additionalProperties: false,
    properties: {
        room_name: { type: 'string', minLength: 4, maxLength: 12 },
        readings: { type: 'array', minItems: 12, maxItems: 12, items: { type: 'object', required: ['sensor_level', 'value'],
            additionalProperties: false,
            properties: { sensor_level: { enum: levels }, value: { type: 'integer', minimum: 0, maximum: 99 } } } },
        comment_text: { type: 'string', minLength: 10, maxLength: 30 },
    } };
const body = (i, round = 0) => ({ model: 'reply', prompt: `reading number ${i} of ${round}:`, max_tokens: 480,
    temperature: 1, seed: 40 + i, response_format: { type: 'json_schema', json_schema: { name: 'report', strict: true, schema } } });

function valid(text) {
    const x = JSON.parse(text);
    const short = (s, min, max) => typeof s === 'string' && [...s].length >= min && [...s].length <= max;
    return Object.keys(x).sort().join() === 'comment_text,readings,room_name' && short(x.room_name, 4, 12) &&
        short(x.comment_text, 10, 30) && x.readings.length === 12 && x.readings.every((r) =>
        Object.keys(r).sort().join() === 'sensor_level,value' && levels.includes(r.sensor_level) &&
        Number.isInteger(r.value) && r.value >= 0 && r.value <= 99);
}

let site;
(async () => {
    site = await c.open(shoal, {});
    const want = [];
    for (let i = 0; i < streams; i++) {
        want.push(await c.stream(site.gateway.url, body(i)));
        t.same(want[i].error, null, `undisturbed stream ${i}`);
        t.same(want[i].finish, 'stop', `undisturbed stream ${i}: ${want[i].text}`);
        t.check(valid(want[i].text), `undisturbed stream ${i} is valid: ${want[i].text}`);
    }
    // A node may finish before it is hit: then nothing has moved, and the test retries with a new prompt, since nodes
    // cache their answers.
    let moved = 0;
    for (let tries = 0; tries < 50 && moved === 0; tries++) {
        const before = await t.metric(site.gateway, 'shoal_moved_total');
        let victim = null;
        const got = await Promise.all(want.map((_, i) => c.stream(site.gateway.url, body(i, tries + 1), (g) => {
            if (!victim && g.n >= 2) {
                victim = site.nodes.find((n) => n.name === g.node);
                victim.signal('SIGKILL');
            }
        })));
        moved = await t.metric(site.gateway, 'shoal_moved_total') - before;
        await victim.ended;
        await victim.start();
        await c.all_ready(site, 3);
        for (const [i, g] of got.entries()) {
            const undisturbed = await c.stream(site.gateway.url, body(i, tries + 1));
            t.same(g.error, null, `stream ${i}: error`);
            t.same(g.text, undisturbed.text, `stream ${i}: text`);
            t.same(g.finish, undisturbed.finish, `stream ${i}: finish`);
            t.same(g.usage?.completion_tokens, undisturbed.usage.completion_tokens, `stream ${i}: tokens`);
            t.check(g.finish !== 'stop' || valid(g.text), `stream ${i} is valid: ${g.text}`);
        }
    }
    t.check(moved > 0, 'no stream was hit in the middle');
    t.same(await t.metric(site.gateway, 'shoal_lost_total'), 0, 'lost');
    console.log(`${moved} streams moved, ${want.map((w) => w.usage.completion_tokens)} tokens`);
    await c.close(site);
    t.finish();
})().catch(t.abandon);
