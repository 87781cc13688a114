#!/usr/bin/env node
// /v1/collections: who may change them, documents of several formats, queries while documents are added, cited answers
// with a verdict, limits, and errors. Usage: serve_collections.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const dir = path.join(t.tmp, 'collections');
const file = path.join(t.tmp, 'collections.yaml');
fs.writeFileSync(file, `models:
  - {name: embed, path: "${t.root}/models/encoder", task: embed}
  - {name: reply, path: "${t.root}/models/reply.gguf"}
collections: {dir: "${dir}", max_passages: 40, exact_passages: 3}
keys:
  - {name: boss, sha256: ${sha('admin-key')}, admin: true}
  - {name: reader, sha256: ${sha('reader-key')}}
`);

let url;
async function call(method, at, body, key = 'admin-key') {
    const r = await fetch(url + at, { method, body: body === undefined ? undefined : JSON.stringify(body),
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } });
    const text = await r.text();
    return { status: r.status, json: JSON.parse(text), text };
}
const post = (at, body, key) => call('POST', `/v1/collections${at}`, body, key);

const pump = `# Pump

## Cooling

The pump runs hot when the coolant is low. Refill it to the upper mark. The limit is 85 degrees.

## Noise

A grinding noise means that the bearing is worn. Replace the bearing.
`;

async function rights() {
    t.same((await post('', { name: 'm' }, 'reader-key')).status, 403, 'a plain key makes none');
    t.same((await post('', { name: 'm' }, 'wrong')).status, 401, 'nor does a wrong one');
    let r = await post('', { name: 'manuals' });
    t.same(`${r.status} ${r.json.name} ${r.json.model} ${r.json.chunk_tokens}`, '200 manuals embed 160', 'an admin does');
    t.same((await post('', { name: 'manuals' })).status, 400, 'once');
    t.same((await post('', { name: '../x' })).status, 400, 'a bad name');
    t.same((await post('', { name: 'x', overlap: 90 })).status, 400, 'a bad overlap');
    t.same((await post('', { name: 'x', chunks: 90 })).status, 400, 'an unknown field');
    t.same((await post('/manuals/documents', { documents: [{ name: 'a', text: 'b' }] }, 'reader-key')).status, 403, 'adding');
    t.same((await call('DELETE', '/v1/collections/manuals', undefined, 'reader-key')).status, 403, 'deleting');
}

async function documents() {
    const html = Buffer.from('<title>FAQ</title><h1>Warranty</h1><p>It ends after 24 months.</p>').toString('base64');
    let r = await post('/manuals/documents', { documents: [{ name: 'pump.md', text: pump },
        { name: 'faq.html', data: html, title: 'Questions' }, { name: 'list', format: 'jsonl', text: '{"id":"E42","text":"The door is open."}' }] });
    t.same(r.status, 200, `documents: ${r.text}`);
    t.same(r.json.data.map((d) => `${d.name} ${d.passages} ${d.unchanged}`).join(), 'pump.md 2 false,faq.html 1 false,list 1 false', 'passages');
    r = await post('/manuals/documents', { documents: [{ name: 'pump.md', text: pump }] });
    t.same(r.json.data[0].unchanged, true, 'the same again');
    r = await post('/manuals/query', { query: 'my machine is overheating', n: 1 }, 'reader-key');
    t.same(`${r.json.data[0].document} ${r.json.data[0].heading}`, 'pump.md Cooling', 'by meaning');
    r = await post('/manuals/query', { query: 'door', by: 'words' });
    t.same(r.json.data.map((h) => h.ref).join(), 'E42', 'by words');
    r = await call('GET', '/v1/collections/manuals');
    t.same(`${r.json.documents} ${r.json.passages} ${r.json.names.join()}`, '3 4 faq.html,list,pump.md', 'figures');
    t.same((await call('GET', '/v1/collections', undefined, 'reader-key')).json.data.map((x) => x.name).join(), 'manuals', 'the list');
    t.same((await post('/manuals/remove', { document: 'list' })).json.deleted, true, 'one document goes');
    t.same((await post('/manuals/remove', { document: 'list' })).status, 404, 'once');
    t.same((await post('/manuals/query', { query: 'door', by: 'words' })).json.data.length, 0, 'and is not found');
}

async function wrong() {
    for (const [at, body, status, words] of [
        ['/nosuch/query', { query: 'x' }, 404, "no collection 'nosuch'"],
        ['/manuals/query', {}, 400, "'query'"],
        ['/manuals/query', { query: 'x', by: 'luck' }, 400, 'both, meaning or words'],
        ['/manuals/query', { query: 'x', n: 1000 }, 400, "'n'"],
        ['/manuals/query', { query: 'x', model: 'reply' }, 400, 'not used here'],
        ['/manuals/nosuch', {}, 404, '/documents'],
        ['/manuals/documents', { documents: [] }, 400, '1 to 256'],
        ['/manuals/documents', { documents: [{ name: 'x' }] }, 400, "'text' or 'data'"],
        ['/manuals/documents', { documents: [{ name: 'x', data: '!!' }] }, 400, 'base64'],
        ['/manuals/documents', { documents: [{ name: 'x', text: 'y', format: 'docx' }] }, 400, 'markdown'],
        ['/manuals/documents', { documents: [{ name: 'x.jsonl', text: '{"a":1}' }] }, 400, 'line 1'],
        ['/manuals/documents', { documents: [{ name: 'big', text: 'word. '.repeat(20000) }] }, 400, 'passages'],
        ['/manuals/documents', { documents: [{ name: 'big', text: 'word. '.repeat(20000) }] }, 400, 'limit_exceeded'],
        ['/manuals/answer', { question: 'x', rerank: 'nosuch' }, 404, 'nosuch'],
        ['/manuals/answer', { question: 'when does the pump run hot', model: 'nosuch' }, 404, 'nosuch']]) {
        const r = await post(at, body);
        t.check(r.status === status && r.text.includes(words), `${at} ${JSON.stringify(body).slice(0, 60)}: ${r.status} ${r.text}`);
    }
    t.same((await call('GET', '/v1/collections/manuals')).json.documents, 2, 'nothing of it stayed');
}

async function answers() {
    let r = await post('/manuals/answer', { question: 'when does the pump run hot' }, 'reader-key');
    t.same(r.status, 200, r.text);
    t.check(r.json.found && r.json.by === 'quote' && /pump runs hot/.test(r.json.answer) && r.json.score > 0.35, `a quote: ${r.text}`);
    t.check(r.json.quotes[0].document && r.json.citations.length === 1 && r.json.citations[0].text.includes(r.json.quotes[0].text), 'and where it is from');
    t.check(r.json.usage.embedding_tokens > 0 && r.json.usage.completion_tokens === 0, 'no model wrote it');
    r = await post('/manuals/answer', { question: 'who founded the city of Madrid' }, 'reader-key');
    t.check(r.status === 200 && !r.json.found && r.json.answer === '' && r.json.closest.length > 0, `not found: ${r.text}`);
    r = await post('/manuals/answer', { question: 'when does the pump run hot', model: 'reply', n: 2, max_tokens: 24 }, 'reader-key');
    t.same(r.status, 200, r.text);
    t.check(r.json.generated.model === 'reply' && r.json.usage.prompt_tokens > 50, 'a model was asked');
    t.check(r.json.by === (r.json.generated.supported === true ? 'model' : 'quote'), 'its answer counts only if it is supported');
    t.check(r.json.generated.sentences.every((s) => s.supported || s.reason), 'what is not supported says why');
    // a prompt that is longer than the context of the model: fewer passages are given
    const long = Array.from({ length: 12 }, (_, i) => ({ name: `long${i}`, text: `The boiler number ${i} heats. `.repeat(40) + `Boiler ${i} has a tank of ${i}0 litres.` }));
    t.same((await post('/manuals/documents', { documents: long })).status, 200, 'long texts');
    r = await post('/manuals/answer', { question: 'how many litres has the tank of boiler 7?', model: 'reply', n: 12, max_tokens: 24 }, 'reader-key');
    t.check(r.status === 200 && r.json.found, `a small context: ${r.text}`);
    for (const d of long)
        t.same((await post('/manuals/remove', { document: d.name })).status, 200, 'removed');
}

// A folder of the configuration: its documents come and go with their files.
async function followed() {
    const folder = path.join(t.tmp, 'followed'), config = path.join(t.tmp, 'followed.yaml');
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, 'one.md'), 'The gate opens at noon.');
    fs.writeFileSync(config, `pack: false\nmodels: [{name: embed, path: ${t.root}/models/encoder}]\ncollections: {dir: ${t.tmp}/followed-db, watch: ["site=${folder}/"]}\n`);
    const other = await t.start(shoal, ['--config', config]);
    const names = async () => (((await (await fetch(`${other.url}/v1/collections/site`)).json()).names) || []).map((x) => path.basename(x)).join();
    await t.until(async () => await names() === 'one.md', 'what is there at the start');
    fs.mkdirSync(path.join(folder, 'below'));
    fs.writeFileSync(path.join(folder, 'below/two.txt'), 'The lamp is green.');
    await t.until(async () => await names() === 'two.txt,one.md', 'a file in a new folder');
    fs.rmSync(path.join(folder, 'one.md'));
    await t.until(async () => await names() === 'two.txt', 'one that is gone');
    t.same((await other.stop()).code, 0, 'exit');
    fs.writeFileSync(config, `collections: {dir: ${t.tmp}/followed-db, watch: [nothing]}\n`);
    let why = '';
    await t.start(shoal, ['--config', config]).catch((e) => { why = e.message; });
    t.check(/use NAME=FOLDER/.test(why), `a wrong entry: ${why}`);
}

// Queries keep working while documents are added and removed, and while another process adds some.
async function live() {
    let over = false, wrongs = 0, asked = 0;
    const ask = async () => {
        while (!over) {
            const r = await post('/manuals/query', { query: 'grinding noise of the bearing', n: 1 });
            wrongs += r.status !== 200 || r.json.data[0].document !== 'pump.md';
            asked++;
        }
    };
    const askers = [ask(), ask()];
    for (let i = 0; i < 5; i++) {
        t.same((await post('/manuals/documents', { documents: [{ name: `n${i}`, text: `Note ${i}: nothing of interest here.` }] })).status, 200, 'added');
        if (i % 2)
            t.same((await post('/manuals/remove', { document: `n${i}` })).status, 200, 'removed');
    }
    const other = path.join(t.tmp, 'other.txt');
    fs.writeFileSync(other, 'The zebra crossing is closed on Sundays.\n');
    const add = spawnSync(shoal, ['index', 'add', 'manuals', '--dir', dir, '--name', 'other', other],
        { encoding: 'utf8', env: { ...process.env, SHOAL_MODELS: `${t.root}/models` } });
    t.same(add.status, 0, add.stderr);
    const r = await post('/manuals/query', { query: 'zebra', n: 1 });
    t.same(r.json.data[0].document, 'other', 'what another process added');
    over = true;
    await Promise.all(askers);
    t.check(wrongs === 0 && asked > 0, `${wrongs} of ${asked} queries were wrong`);
}

// More passages than exact_passages: an index is built in the background, and searches find the same.
async function indexed() {
    const stats = async () => JSON.parse((await call('GET', '/v1/collections/many')).text);
    t.same((await post('', { name: 'many', model: 'embed' })).status, 200, 'made');
    const documents = ['lamp', 'boiler', 'garage', 'fridge', 'window', 'sprinkler'].map((what) =>
        ({ name: what, text: `The ${what} is described here, and how the ${what} is cleaned.` }));
    for (const some of [documents.slice(0, 3), documents.slice(3)]) {
        t.same((await post('/many/documents', { documents: some })).status, 200, 'added');
        const r = await post('/many/query', { query: 'clean the boiler', n: 1, by: 'meaning' });
        t.same(r.json?.data?.[0]?.document, 'boiler', r.text);
        t.check(some[0].name !== 'lamp' || (await stats()).indexed === 0, 'few passages have no index');
    }
    await t.until(async () => (await stats()).indexed === 6, 'all passages are in the index');
    for (const d of documents) {
        const r = await post('/many/query', { query: d.text, n: 1, by: 'meaning' });
        t.same(r.json?.data?.[0]?.document, d.name, r.text);
    }
}

// The index is in a file beside the collection, and is loaded from it after a restart unless the file is damaged.
async function restarted(server) {
    const graph = path.join(dir, 'many.db-graph');
    const stats = async () => JSON.parse((await call('GET', '/v1/collections/many')).text);
    const again = async (before) => {
        t.same((await before.stop()).code, 0, 'exit');
        const next = await t.start(shoal, ['--config', file]);
        url = next.url;
        return next;
    };
    const ask = async () => (await post('/many/query', { query: 'clean the boiler', n: 1, by: 'meaning' })).json?.data?.[0]?.document;
    let next = await again(server);
    t.check(fs.existsSync(graph) && (fs.statSync(graph).mode & 0o77) === 0, 'the file of the index, for its owner alone');
    t.same(await ask(), 'boiler', 'after a restart');
    t.same((await stats()).indexed, 6, 'with its index');
    t.check(!next.log.includes('rebuilding it'), `which came from the file: ${next.log}`);
    t.same((await next.stop()).code, 0, 'exit');
    const bytes = fs.readFileSync(graph);
    bytes[50] ^= 1;
    fs.writeFileSync(graph, bytes);
    next = await t.start(shoal, ['--config', file]);
    url = next.url;
    t.same(await ask(), 'boiler', 'with a damaged file');
    await t.until(() => /many.db: the index of vectors is damaged.* rebuilding it/.test(next.log), `the log: ${next.log}`);
    await t.until(async () => (await stats()).indexed === 6, 'the index is made again');
    t.same((await call('DELETE', '/v1/collections/many')).status, 200, 'gone');
    return next;
}

(async () => {
    let server = await t.start(shoal, ['--config', file]);
    url = server.url;
    await rights();
    await documents();
    await wrong();
    await answers();
    await followed();
    await live();
    await indexed();
    server = await restarted(server);
    t.same((await call('DELETE', '/v1/collections/manuals')).status, 200, 'the collection goes');
    t.same((await call('DELETE', '/v1/collections/manuals')).status, 404, 'once');
    t.same(fs.readdirSync(dir).join(), '', 'with its files');
    await server.stop();
    t.finish();
})().catch(t.abandon);
