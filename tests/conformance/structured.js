#!/usr/bin/env node
// JSON from random-weight models under many schemas, checked with npm's ajv: whatever a model prefers, a complete
// answer is valid. Random models try everything that a grammar allows.
// Usage: structured.js SHOAL [GENERATIONS] [FOLDER with one schema per file]
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
const total = Number(process.argv[3] ?? 300);
process.env.NODE_PATH = t.modules('ajv@8.17.1', 'ajv-formats@3.0.1', 'fast-deep-equal@3.1.3', 'fast-uri@3.0.6',
    'json-schema-traverse@1.0.0', 'require-from-string@2.0.2');
require('module').Module._initPaths();
const Ajv = require('ajv');
const Ajv2020 = require('ajv/dist/2020');
const addFormats = require('ajv-formats');
// one model per kind of tokenizer
const models = ['qwen2', 'llama-gqa', 'phi2', 'gemma3'];
const ids = {}; // of texts that close something: otherwise random models never stop

function schemas() {
    const own = JSON.parse(fs.readFileSync(path.join(t.root, 'tests/data/schemas/schemas.json')));
    const folder = process.argv[4];
    if (!folder)
        return own;
    return fs.readdirSync(folder).filter((f) => f.endsWith('.json'))
        .map((f) => ({ name: f, schema: JSON.parse(fs.readFileSync(path.join(folder, f))) }));
}

function validator(schema) {
    const options = { strict: false, allErrors: true, validateFormats: true };
    const newer = JSON.stringify(schema).match(/"(prefixItems|dependentRequired|dependentSchemas|\$defs)"/);
    const ajv = newer ? new Ajv2020(options) : new Ajv(options);
    addFormats(ajv);
    return ajv.compile(schema);
}

async function post(server, url, body) {
    const r = await fetch(server.url + url, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body) });
    return { status: r.status, body: await r.json() };
}

// Generates an answer, with a bias towards tokens that close something.
async function answer(server, model, seed, constraint) {
    const bias = Object.fromEntries(ids[model].map((id) => [id, 4]));
    return post(server, '/v1/completions', { model, prompt: 'Write JSON: ', max_tokens: 1200, temperature: 1, seed,
        logit_bias: bias, ...constraint });
}

async function random(server, list) {
    const refused = new Map();
    let complete = 0, cut = 0;
    for (let i = 0; i < Math.max(total, list.length); i += 8) {
        const batch = [];
        for (let k = i; k < Math.min(i + 8, Math.max(total, list.length)); k++)
            batch.push((async () => {
                const { name, schema, valid } = list[k % list.length];
                const model = models[(k + Math.floor(k / list.length)) % models.length];
                const r = await answer(server, model, k, { response_format: { type: 'json_schema',
                    json_schema: { name: 'x', strict: true, schema } } });
                if (r.status !== 200) {
                    refused.set(name, r.body.error?.message);
                    return;
                }
                const { text, finish_reason } = r.body.choices[0];
                if (finish_reason === 'length') {
                    cut++;
                    return;
                }
                complete++;
                let value, wrong = '';
                try {
                    value = JSON.parse(text);
                    if (!valid(value))
                        wrong = JSON.stringify(valid.errors.map((e) => `${e.instancePath} ${e.message}`));
                } catch (e) {
                    wrong = e.message;
                }
                t.check(!wrong, `${name}, ${model}, seed ${k}: ${wrong}: ${text}`);
            })());
        await Promise.all(batch);
    }
    console.log(`${list.length} schemas, ${complete} complete answers, ${cut} cut off, ${refused.size} schemas refused`);
    for (const [name, why] of refused)
        console.log(`refused: ${name}: ${why}`);
    t.check(complete >= 0.8 * (complete + cut), `most answers are complete: ${complete}, ${cut} cut off`);
    t.check(refused.size <= 0.05 * list.length, 'at most one schema of twenty is refused');
    for (const [name, why] of refused)
        t.check(/'[$a-zA-Z]+'/.test(why), `the refusal of ${name} names a keyword: ${why}`);
}

// The other notations, and errors.
async function others(server) {
    const ask = async (constraint, check, what) => {
        for (const [k, model] of models.entries()) {
            const r = await answer(server, model, k, constraint);
            t.same(r.status, 200, `${what}: ${JSON.stringify(r.body.error)}`);
            const c = r.body.choices[0];
            t.check(c.finish_reason === 'length' || check(c.text), `${what}, ${model}: ${JSON.stringify(c)}`);
        }
    };
    await ask({ guided_choice: ['yes', 'no', 'not sure'] }, (x) => ['yes', 'no', 'not sure'].includes(x), 'choice');
    await ask({ guided_regex: '[a-f]{3}-\\d{2,4}' }, (x) => /^[a-f]{3}-\d{2,4}$/.test(x), 'regex');
    await ask({ structured_outputs: { regex: '\\d+(\\.\\d{2})?€' } }, (x) => /^\d+(\.\d{2})?€$/.test(x), 'structured_outputs');
    await ask({ grammar: 'root ::= item ("," item){0,3}\nitem ::= [0-9]{1,3} | "(" root ")"' },
        (x) => /^[0-9,()]+$/.test(x) && x.split('(').length === x.split(')').length, 'grammar');
    await ask({ response_format: { type: 'json_object' } }, (x) => typeof JSON.parse(x) === 'object', 'json_object');
    await ask({ json_schema: { enum: [1, 2] } }, (x) => [1, 2].includes(JSON.parse(x)), 'json_schema');
    const long = await post(server, '/v1/completions', { model: 'qwen2', prompt: 'x', max_tokens: 3, seed: 1,
        guided_regex: '[a-z]{200}' });
    t.same(long.body.choices[0].finish_reason, 'length', 'cut off by max_tokens');
    const several = await post(server, '/v1/completions', { model: 'gemma3', prompt: ['x', 'y'], n: 3, seed: 1, max_tokens: 20,
        guided_choice: ['left', 'right'] });
    t.same(several.body.choices.filter((c) => ['left', 'right'].includes(c.text)).length, 6, 'six answers at once');
    for (const [constraint, why] of [[{ grammar: 'root ::= (' }, /line 1, column/], [{ guided_regex: '(?=x)' }, /look-ahead/],
        [{ response_format: { type: 'json_schema', json_schema: { schema: { type: 'object', $dynamicRef: '#x' } } } }, /'\$dynamicRef'/],
        [{ response_format: { type: 'xml' } }, /response_format/], [{ guided_choice: ['a'], guided_regex: 'b' }, /only one/],
        [{ guided_choice: 'a' }, /guided_choice/], [{ response_format: { type: 'json_schema' } }, /json_schema/]]) {
        const r = await answer(server, 'qwen2', 0, constraint);
        t.same(r.status, 400, `refused: ${JSON.stringify(constraint)}`);
        t.check(why.test(r.body.error.message), `${why}: ${r.body.error.message}`);
    }
    for (const nothing of [{ grammar: '' }, { guided_choice: [] }, { response_format: { type: 'text' } }, { json_schema: null }])
        t.same((await answer(server, 'qwen2', 0, { ...nothing, max_tokens: 1 })).status, 200, 'asks for nothing');
    const format = await post(server, '/api/generate', { model: 'llama-gqa', prompt: 'x', stream: false, raw: true,
        format: { type: 'integer', minimum: 10, maximum: 99 }, options: { seed: 3 } });
    const completion = await post(server, '/completion', { model: 'phi2', prompt: 'x', n_predict: 50, seed: 3,
        json_schema: { enum: ['a', 'b'] } });
    t.check(['"a"', '"b"'].includes(completion.body.content), `llama.cpp's json_schema: ${JSON.stringify(completion.body)}`);
    t.check(/^[1-9][0-9]$/.test(format.body.response), `Ollama's format: ${JSON.stringify(format.body)}`);
}

(async () => {
    const list = schemas().map((s) => ({ ...s, valid: validator(s.schema) })); // slow for large ones
    const server = await t.start(shoal, ['--threads', '1',
        ...models.flatMap((m) => ['-m', `${m}=${path.join(t.root, `tests/data/refs/${m}.gguf`)}`])]);
    for (const model of models) {
        ids[model] = [];
        for (const content of ['"', '}', ']', ')']) {
            const r = await post(server, '/tokenize', { model, content, add_special: false });
            ids[model].push(r.body.tokens.at(-1));
        }
    }
    await others(server);
    await random(server, list);
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
