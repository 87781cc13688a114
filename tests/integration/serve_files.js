#!/usr/bin/env node
// Model files that change under a running server: the model fails with a clear error, the server and its other models
// go on, and reloading it helps. Usage: serve_files.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const source = `${t.root}/models/reply-draft.gguf`;
const encoder = path.join(t.root, 'tests/data/encoders/bert');

(async () => {
    const gguf = `${t.tmp}/changing.gguf`, folder = `${t.tmp}/bert`;
    fs.copyFileSync(source, gguf);
    fs.cpSync(encoder, folder, { recursive: true });
    const server = await t.start(shoal, ['-m', `lm=${gguf}`, '-m', `enc=${folder}`, '-m', `other=${source}`],
        { admin: true });
    const post = async (url, body) => {
        const r = await fetch(server.url + url, { method: 'POST', body: JSON.stringify(body) });
        return { status: r.status, ...await r.json() };
    };
    const complete = (model, prompt = 'the lights') => post('/v1/completions',
        { model, prompt, max_tokens: 12, temperature: 0 });
    const embed = () => post('/v1/embeddings', { model: 'enc', input: 'the tide' });
    const state = async (model) => (await t.admin(server)).models.find((m) => m.model === model).state;
    const reload = async (model) => { // both take effect when their thread gets to them
        for (const action of ['unload', 'load']) {
            t.same((await t.admin(server, { model, action })).status, 200, `${action} ${model}`);
            await t.until(async () => (await state(model) === 'ready') === (action === 'load'), `${action} ${model}`);
        }
    };
    const broken = (r, what) => {
        t.same(r.status, 503, `${what}: status`);
        t.same(r.error?.code, 'model_changed', `${what}: code`);
        t.check(/changed while it was in use: reload the model/.test(r.error?.message), `${what}: message`);
    };
    const want = (await complete('lm')).choices[0].text;
    const vector = (await embed()).data[0].embedding;
    const harms = {
        truncated: (file) => fs.truncateSync(file, 5000),
        overwritten: (file) => {
            const fd = fs.openSync(file, 'r+'), size = fs.fstatSync(fd).size, noise = Buffer.alloc(65536, 17);
            for (let at = 65536; at + noise.length < size; at += noise.length)
                fs.writeSync(fd, noise, 0, noise.length, at);
            fs.closeSync(fd);
        },
    };
    for (const [name, harm] of Object.entries(harms)) {
        harm(gguf);
        broken(await complete('lm', `a prompt that no cache has: ${name}`), `GGUF ${name}`);
        t.same((await complete('other')).choices?.[0].text, want, 'the other model goes on');
        fs.copyFileSync(source, gguf);
        await reload('lm');
        t.same((await complete('lm')).choices?.[0].text, want, `GGUF ${name}, loaded again`);
        harm(`${folder}/model.safetensors`);
        broken(await embed(), `folder ${name}`);
        fs.copyFileSync(`${encoder}/model.safetensors`, `${folder}/model.safetensors`);
        await reload('enc');
        t.same(JSON.stringify((await embed()).data?.[0].embedding), JSON.stringify(vector), `folder ${name}, loaded again`);
    }
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
