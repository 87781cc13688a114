#!/usr/bin/env node
// A gateway that stood still for longer than `silent` does not blame its nodes: what they sent meanwhile is there to be read, and
// its stream goes on where it was.
// Usage: cluster_still.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const silentMs = 2000, stillMs = silentMs + 500;

(async () => {
    const config = path.join(t.tmp, 'gateway.yaml');
    fs.writeFileSync(config, `cluster: {name: gateway, silent: ${silentMs}ms}\n`);
    const site = await c.open(shoal, { nodes: 2, models: [`reply=${path.join(t.root, 'models/reply.gguf')}`], gateway_args: ['--config', config] });
    let stopped = null;
    const got = await c.stream(site.gateway.url, { model: 'reply', prompt: 'the kitchen lights are', max_tokens: 60, ignore_eos: true,
        temperature: 0 }, (g) => {
        if (g.n === 3)
            stopped = site.gateway.stop().then(() => t.sleep(stillMs)).then(() => site.gateway.signal('SIGCONT'));
    });
    await stopped;
    t.same(got.error, null, 'the stream');
    t.same(got.usage?.completion_tokens, 60, 'its tokens');
    t.same(await t.metric(site.gateway, 'shoal_nodes{state="ready"}'), 2, 'both nodes are there');
    t.check(!/is lost/.test(site.gateway.log), `no node is lost: ${site.gateway.log}`);
    t.same(await t.metric(site.gateway, 'shoal_lost_total'), 0, 'given up');
    await c.close(site);
    t.finish();
})().catch(t.abandon);
