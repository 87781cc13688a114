#!/usr/bin/env node
// A conversation stays on the node that has read its beginning: 8 of them with 7 turns each on three nodes, the turns
// without and with a session id; two gateways; and what one client's key learns about another's prompts from it: nothing.
// Usage: cluster_affinity.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const reply = path.join(t.root, 'models/reply.gguf');
const CHATS = 8, TURNS = 7;
const words = 'lamp door window heater kitchen garden cellar attic clock radio blind oven fan pump gate siren'.split(' ');
const sentence = (chat, turn, n) => Array.from({ length: n }, (_, i) => words[(chat * 7 + turn * 5 + i * (chat + 3)) % words.length]).join(' ');

async function ask(gateway, messages, headers = {}) {
    const body = JSON.stringify({ model: 'reply', messages, max_tokens: 24, temperature: 0 });
    const r = await t.within(fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body, headers }), `a turn: ${body}`);
    const text = await r.text();
    t.same(r.status, 200, `a turn: ${text}`);
    const got = JSON.parse(text);
    return { node: r.headers.get('x-shoal-node'), text: got.choices[0].message.content,
        prompt: got.usage.prompt_tokens, cached: got.usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

// All conversations at the same time.  Gateways take turns.
async function talk(gateways, salt, headers = () => ({})) {
    const sum = { moves: 0, prompt: 0, cached: 0, nodes: {} };
    await Promise.all(Array.from({ length: CHATS }, async (_, chat) => {
        const messages = [{ role: 'system', content: `You look after house ${salt}.` }];
        let node = null;
        for (let turn = 0; turn < TURNS; turn++) {
            messages.push({ role: 'user', content: `${salt} ${chat}: ${sentence(chat, turn, 30)}` });
            const got = await ask(gateways[turn % gateways.length], messages, headers(chat));
            messages.push({ role: 'assistant', content: got.text });
            sum.moves += node !== null && got.node !== node;
            sum.prompt += got.prompt;
            sum.cached += got.cached;
            sum.nodes[got.node] = (sum.nodes[got.node] ?? 0) + 1;
            node = got.node;
            if (gateways.length > 1)
                await t.sleep(500); // the other gateway learns it from a heartbeat
        }
    }));
    sum.share = sum.cached / sum.prompt;
    console.log(`${salt}: ${sum.moves} of ${CHATS * (TURNS - 1)} turns changed node, ${(100 * sum.share).toFixed(1)} % cached, ` +
        `turns by node ${JSON.stringify(sum.nodes)}`);
    return sum;
}

(async () => {
    const config = path.join(t.tmp, 'gateway.yaml');
    fs.writeFileSync(config, 'cluster: {name: keyed}\nkeys:\n' + ['anna', 'bert'].map((name) =>
        `  - {name: ${name}, sha256: ${crypto.createHash('sha256').update(`key-of-${name}`).digest('hex')}}\n`).join(''));
    const site = await c.open(shoal, { models: [`reply=${reply}`] });
    const other = await c.gateway(site, 'other');
    const keyed = await c.gateway(site, 'keyed', ['--config', config]);
    await c.all_ready(site, 3, other);
    await c.all_ready(site, 3, keyed);

    // By load alone, 31 to 39 of 48 turns changed node, and 53 to 61 % of the prompt tokens came from a cache; 78 % if none
    // does.  A few may: nodes that share a machine measure very different speeds.
    const alone = await talk([site.gateway], 'one gateway');
    t.check(alone.moves <= 12, `${alone.moves} turns changed node`);
    t.check(alone.share > 0.68, `cached share ${alone.share}`);
    // no hot spot: every node has a part of the 56 turns
    t.check(Object.keys(alone.nodes).length === 3 && Math.min(...Object.values(alone.nodes)) >= 3, `by node: ${JSON.stringify(alone.nodes)}`);

    // Two gateways share nothing, but both hear the nodes.
    const both = await talk([site.gateway, other], 'two gateways');
    t.check(both.moves <= 12, `two gateways: ${both.moves} turns changed node`);

    // A question that a client repeats goes where it was read.  Another client's reads nothing of what others have sent.
    let same = 0;
    const anna = { authorization: 'Bearer key-of-anna' }, bert = { authorization: 'Bearer key-of-bert' };
    for (let i = 0; i < 3; i++) {
        const secret = [{ role: 'user', content: `The code of safe ${i} is ${4711 * (i + 1)}. ${sentence(i, 1, 60)}` }];
        const home = (await ask(keyed, secret, anna)).node;
        same += (await ask(keyed, secret, anna)).node === home;
        const guess = await ask(keyed, secret, bert);
        t.same(guess.cached, 0, 'bert reads nothing of what anna has sent');
    }

    t.check(same >= 2, `anna's question went where it was read in ${same} of 3 cases`);

    // A conversation whose beginning changes every time, as after the oldest turns were left out, follows its session.  By
    // load alone two of three turns change node.  On a busy machine nodes measure very different speeds for a while, and a
    // session rightly leaves a slow one: then another session is looked at.
    const session_moves = async (name) => {
        let node = null, moves = 0;
        for (let i = 0; i < 12; i++) {
            const got = await ask(site.gateway, [{ role: 'user', content: `${i} ${sentence(i, 2, 300)}` }], { 'x-session-id': name });
            moves += node !== null && got.node !== node;
            node = got.node;
        }
        return moves;
    };
    let moves = Infinity;
    for (let n = 1; n <= 3 && moves > 4; n++)
        moves = Math.min(moves, await session_moves(`chat-${n}`));
    t.check(moves <= 4, `a session changed node in ${moves} of 11 turns at least`);
    await c.close(site);
    t.finish();
})().catch(t.abandon);
