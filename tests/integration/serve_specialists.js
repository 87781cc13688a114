#!/usr/bin/env node
// Specialists over HTTP: the same answers as from the command line, one by one and in batches; the official OpenAI
// client for embeddings. Usage: serve_specialists.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const OpenAI = require(t.npm('openai@6.9.1'));
const encoder = path.join(t.root, 'models/encoder');
const cli = (command, text) => JSON.parse(execFileSync(shoal, [command, '-m', encoder, '--json', text],
    { env: { ...process.env, SHOAL_CACHE_DIR: `${t.tmp}/cache` } }).toString());
const texts = ['turn off the kitchen lights', 'wake me at seven tomorrow', 'call Anna', 'what is the weather'];

// What Prometheus scrapes: batches, memory and pages per model; names are escaped.
async function metrics(server, post, n_inputs) {
    const value = (pattern) => t.metric(server, pattern);
    t.same(await value('shoal_batch_size_count{model="enc"}'), n_inputs, 'every input is in one batch');
    t.same(await value('shoal_batch_size_bucket{model="enc",le="+Inf"}'), n_inputs, 'and in one bucket');
    const sum = await value('shoal_batch_size_sum{model="enc"}');
    t.check(sum > n_inputs, `some were computed together: ${sum} over ${n_inputs}`);
    t.check(await value('shoal_batch_size_bucket{model="enc",le="1"}') < n_inputs, 'so not all are alone');
    const kinds = ['weights', 'scratch', 'kv'];
    for (const model of ['enc', 'reply']) {
        const bytes = await Promise.all(kinds.map((k) => value(`shoal_model_memory_bytes{model="${model}",kind="${k}"}`)));
        t.same(bytes.reduce((a, b) => a + b), await value(`shoal_model_bytes{model="${model}"}`), 'memory by kind');
        t.check(bytes[0] > 0 && bytes[2] > 0 === (model === 'reply'), `kinds of ${model}: ${bytes}`);
    }
    const pages = await value('shoal_kv_pages{model="reply"}');
    t.check(pages > 0, 'pages of a decoder');
    t.same(await value('shoal_kv_pages_used{model="reply"}') + await value('shoal_kv_pages_free{model="reply"}'),
        pages, 'used and free');
    const invalid = await value('shoal_refused_total{reason="invalid"}');
    await post('/v1/classify', {});
    t.same(await value('shoal_refused_total{reason="invalid"}'), invalid + 1, 'refused');
    await t.admin(server, { model: 'a"b\\c\nd', action: 'add', path: path.join(t.root, 'models/x') });
    const text = await (await fetch(`${server.url}/metrics`)).text();
    t.check(text.includes('shoal_in_flight{model="a\\"b\\\\c\\nd"} 0\n'), 'a name with quotes');
    for (const name of ['shoal_batch_size', 'shoal_kv_pages', 'shoal_model_memory_bytes'])
        t.check(!text.includes(`${name}{model="a`) && !text.includes(`${name}_count{model="reply"`), `no ${name}`);
    t.check(!text.includes('shoal_kv_pages{model="enc"'), 'no pages of an encoder');
    const lint = spawnSync('promtool', ['check', 'metrics'], { input: text });
    if (lint.error)
        console.log('promtool is not here: the format is not checked by it');
    else
        t.same(`${lint.status}${lint.stdout}${lint.stderr}`, '0', 'promtool');
}

(async () => {
    const server = await t.start(shoal, ['-m', `enc=${encoder}`, '-m',
        `reply=${t.root}/models/reply-draft.gguf`], { admin: true });
    const post = async (url, body) => {
        const r = await fetch(server.url + url, { method: 'POST', body: JSON.stringify(body) });
        return { status: r.status, ...await r.json() };
    };
    let r = await post('/v1/classify', { input: texts });
    t.same(r.data?.length, texts.length, 'one answer for each');
    texts.forEach((text, i) => {
        const want = cli('classify', text);
        t.same(r.data[i].label, want.label, `class of "${text}"`);
        t.check(Math.abs(r.data[i].confidence - want.confidence) < 1e-4, 'confidence');
    });
    r = await post('/v1/classify', { model: 'enc', input: texts[0], top: 2 });
    t.same(r.data[0].labels.length, 2, 'top');
    r = await post('/v1/entities', { input: texts });
    texts.forEach((text, i) => {
        const names = (x) => x.spans.map((s) => `${s.label}:${s.text}`).join();
        t.same(names(r.data[i]), names(cli('tag', text)), `entities of "${text}"`);
    });
    // one request each: they are batched and give the same results
    const single = await Promise.all(texts.map((input) => post('/v1/classify', { input })));
    const batch = await post('/v1/classify', { input: texts });
    single.forEach((s, i) => t.same(s.data[0].label, batch.data[i].label, 'one by one'));

    const ai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const a = await ai.embeddings.create({ model: 'enc', input: texts }); // requests base64
    const b = await ai.embeddings.create({ model: 'enc', input: texts, encoding_format: 'float' });
    t.same(a.data.length, texts.length, 'embeddings');
    t.check(a.data.every((x, i) => x.embedding.every((v, k) => Math.abs(v - b.data[i].embedding[k]) < 1e-6)),
        'base64 and numbers are the same');
    const dot = (x, y) => x.reduce((s, v, k) => s + v * y[k], 0);
    t.check(Math.abs(dot(b.data[0].embedding, b.data[0].embedding) - 1) < 1e-3, 'of length 1');
    const short = await ai.embeddings.create({ model: 'enc', input: 'x', dimensions: 8 });
    t.same(short.data[0].embedding.length, 8, 'dimensions');
    const ollama = await post('/api/embed', { model: 'enc', input: texts });
    t.same(ollama.embeddings?.length, texts.length, 'Ollama');

    for (const [url, body, param] of [
        ['/v1/classify', {}, 'input'], ['/v1/classify', { input: [] }, 'input'],
        ['/v1/classify', { input: '' }, 'input'], ['/v1/classify', { input: [1] }, 'input'],
        ['/v1/classify', { input: 'x', model: 'reply' }, 'model'], ['/v1/embeddings', { input: 'x', frob: 1 }, 'frob'],
        ['/v1/embeddings', { input: 'x', encoding_format: 'hex' }, 'encoding_format'],
        ['/v1/rerank', { documents: ['a'] }, 'query'], ['/v1/rerank', { query: 'a' }, 'documents'],
        ['/v1/score', { input: 'x' }, 'input'], ['/v1/score', {}, 'input'],
        ['/v1/score', { series: [[1], [1, 2]] }, 'series'], ['/v1/score', { series: [1] }, 'series'],
        ['/v1/score', { input: [1], series: [[1]] }, 'series'], ['/v1/score', { series: [['x']] }, 'series'],
        ['/v1/classify', { input: Array(2049).fill('x') }, 'input']]) {
        r = await post(url, body);
        t.same(r.status, 400, `${url} ${JSON.stringify(body).slice(0, 60)}`);
        t.same(r.error?.param, param, 'param');
    }
    // JSON has no infinity, but a number can be too large: it is refused; null is a missing value
    for (const [body, param] of [['{"input":[1,1e999]}', 'input'], ['{"input":[[1],[-1e999]]}', 'input'],
        ['{"series":[[1],[1e999]]}', 'series'], ['{"stream":"s","input":[1e999]}', 'input']]) {
        const answer = await fetch(`${server.url}/v1/score`, { method: 'POST', body });
        const { error } = await answer.json();
        t.same(`${answer.status} ${error?.param}`, `400 ${param}`, body);
        t.check(/too large for a double/.test(error?.message), `${body}: ${error?.message}`);
    }
    t.same((await post('/v1/classify', { input: 'x', labels: 'no-such-set' })).status, 400, 'a set that is not there');
    r = await post('/v1/embeddings', { model: 'enc', input: 'x', prompt_name: 'nope' });
    t.same(r.status, 400, 'a prompt that is not there');
    t.check(/unknown prompt "nope"/.test(r.error?.message), 'the message names it');
    // classify: 4 together, 1, 4 alone, 4 together; entities 4; embeddings 4, 4, 1, 4
    await metrics(server, post, 30);
    // input longer than the model's limit is truncated and marked, or refused
    const long = 'word '.repeat(3000), cut = (list) => list?.map((x) => x.truncated ?? false).join();
    for (const [url, more] of [['/v1/embeddings', {}], ['/v1/embeddings', { encoding_format: 'base64' }], ['/v1/classify', {}],
        ['/v1/entities', {}]]) {
        t.same(cut((await post(url, { model: 'enc', input: ['x', long], ...more })).data), 'false,true', `${url}: cut`);
        t.same((await post(url, { model: 'enc', input: 'x', truncate: false, ...more })).status, 200, `${url}: a short text`);
        r = await post(url, { model: 'enc', input: ['x', long], truncate: false, ...more });
        t.same(`${r.status} ${r.error?.code}`, '400 context_length_exceeded', `${url}: refused`);
        t.check(/longer than the \d+ tokens/.test(r.error?.message), `says why: ${r.error?.message}`);
    }
    t.same((await post('/api/embed', { model: 'enc', input: ['x', long] })).truncated, true, 'Ollama: cut');
    t.same((await post('/api/embed', { model: 'enc', input: 'x' })).truncated, undefined, 'Ollama: not cut');
    t.same((await post('/api/embed', { model: 'enc', input: long, truncate: false })).status, 400, 'Ollama: refused');
    // a recurrent model reads a series as one; its rows are not independent
    await t.admin(server, { model: 'anomaly', action: 'add', path: path.join(t.root, 'models/anomaly') });
    const series = Array.from({ length: 100 }, (_, i) => [20 + Math.sin(i), 5 + Math.cos(i)]);
    r = await post('/v1/score', { model: 'anomaly', series });
    t.same(r.data?.[0].scores.length, 300, 'three numbers a row');
    t.check(r.data?.[0].scores.every(Number.isFinite), 'all finite');
    // rows are independent; with a stream name, they continue the earlier ones
    t.same((await post('/v1/score', { model: 'anomaly', input: series[0] })).data?.[0].scores.length, 3, 'a row');
    const streamed = [];
    for (const part of [series.slice(0, 1), series.slice(1, 40), series.slice(40)])
        streamed.push(...(await post('/v1/score', { model: 'anomaly', stream: 'pump', input: part })).data[0].scores);
    t.same(streamed.join(), r.data[0].scores.join(), 'a stream scores as the whole series does');
    const last = await post('/v1/score', { model: 'anomaly', stream: 'pump', input: series[0] });
    t.same(last.data?.[0].scores.length, 3, 'one more row');
    t.same((await post('/v1/score', { model: 'anomaly', stream: 'pump', input: [1, 2, 3] })).status, 400, 'other columns');
    t.same((await post('/v1/score', { model: 'anomaly', stream: 'x'.repeat(200), input: [1] })).status, 400, 'a long name');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
