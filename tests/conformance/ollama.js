#!/usr/bin/env node
// Ollama's own client against `shoal serve`.  Usage: ollama.js SHOAL
'use strict';
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
process.env.NODE_PATH = t.modules('ollama@0.6.3', 'whatwg-fetch@3.6.20');
require('module').Module._initPaths();
const { Ollama } = require('ollama');
const ask = 'act: turn_off; device: lights; room: kitchen; result: done';
const options = { temperature: 0, repeat_penalty: 1 };

(async () => {
    const server = await t.start(shoal, ['-m', `reply=${t.root}/models/reply-draft.gguf`]);
    const o = new Ollama({ host: server.url });
    const openai = await (await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({
        model: 'reply', temperature: 0, messages: [{ role: 'user', content: ask }] }) })).json();
    const want = openai.choices[0].message.content;
    const messages = [{ role: 'user', content: ask }];
    const whole = await o.chat({ model: 'reply', messages, options });
    t.same(whole.message.content, want, 'chat');
    t.same(whole.done_reason, 'stop', 'done');
    t.same(whole.eval_count, openai.usage.completion_tokens, 'counts');
    let text = '', last;
    for await (const part of await o.chat({ model: 'reply', messages, options, stream: true })) {
        text += part.message.content;
        last = part;
    }
    t.same(text, want, 'chat, streamed');
    t.check(last.done && last.total_duration > 0, 'the last part');
    t.same((await o.generate({ model: 'reply', prompt: ask, options })).response, want, 'generate');
    text = '';
    for await (const part of await o.generate({ model: 'reply', prompt: ask, options, stream: true }))
        text += part.response;
    t.same(text, want, 'generate, streamed');
    const raw = await o.generate({ model: 'reply', prompt: ask, raw: true, options: { ...options, num_predict: 3 } });
    t.check(raw.eval_count <= 3, 'num_predict');
    t.same((await o.list()).models.map((m) => m.name).join(), 'reply', 'list');
    t.same((await o.ps()).models.length, 1, 'ps');
    t.check((await o.show({ model: 'reply' })).capabilities.includes('completion'), 'show');
    t.same((await t.fails(o.chat({ model: 'no', messages }), 'no model')).status_code, 404, 'no model');
    // the Python library always sends these
    const plain = await o.chat({ model: 'reply', messages, options, tools: [], format: '' });
    t.check(plain.done && plain.message.content.length > 0, `empty fields: ${JSON.stringify(plain)}`);
    // options that ask for nothing are no error: at the top level, in messages, and in options
    const empty = await o.chat({ model: 'reply:latest', stream: false, think: false, keep_alive: null,
        messages: [{ role: 'user', content: ask, images: [], tool_calls: [], thinking: '' }],
        options: { ...options, top_k: 40.7, top_p: 1.5, repeat_last_n: -1, typical_p: 1, mirostat: 0, num_ctx: 2048 } });
    t.same(empty.message.content, want, 'defaults of every field');
    await t.until(() => /unknown option ignored .*option=typical_p/.test(server.log), 'the log names options that are not known');
    const bare = await o.generate({ model: 'reply:latest', prompt: ask, suffix: '', images: null, template: '', context: [],
        options });
    t.same(bare.response, want, 'defaults of every field of generate');
    for (const [bad, why] of [[{ options: { temperature: 'hot' } }, /temperature/], [{ options: { top_k: [] } }, /top_k/],
        [{ messages: [{ role: 'user', content: 'x', images: ['aGk='] }] }, /images/]])
        t.check(why.test((await t.fails(o.chat({ model: 'reply', messages, ...bad }), 'refused')).message), `${why}`);
    t.check((await o.show({ model: 'reply:latest' })).details, 'show of NAME:latest');
    const shaped = await o.chat({ model: 'reply', messages, options, format: { enum: ['on', 'off'] } });
    t.check(['on', 'off'].includes(JSON.parse(shaped.message.content)), `a format: ${shaped.message.content}`);
    const bad = await t.fails(o.chat({ model: 'reply', messages, format: 'yaml' }), 'format');
    t.check(/format/.test(bad.message), `an error in Ollama's shape: ${bad.message}`);
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
