// docs.js - the page /docs: lists every route of /openapi.json and lets you try it.
import { $, errorBox, getJson, h, keep, kept } from './lib.js';

const examples = {
    '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 64, stream: true },
    '/v1/completions': { prompt: 'Once upon a time', max_tokens: 32 },
    '/v1/embeddings': { input: 'turn off the lights' },
    '/v1/classify': { input: 'turn off the kitchen lights', top: 3 },
    '/v1/entities': { input: 'wake me at seven tomorrow' },
    '/v1/process': { text: 'turn off the kitchen lights', explain: true },
    '/v1/rerank': { query: 'lights', documents: ['lamps and bulbs', 'garden tools'] },
    '/v1/summarize': { input: 'One sentence. Another sentence. A third one.' },
    '/v1/score': { input: [0.1, 0.2] },
    '/tokenize': { text: 'hello world' },
    '/detokenize': { tokens: [1, 2, 3] },
    '/api/generate': { prompt: 'Hello', stream: false },
    '/api/chat': { messages: [{ role: 'user', content: 'Hello' }], stream: false },
    '/api/embed': { input: 'hello' },
};

// Shows the answer as it comes.
async function send(method, path, body, out) {
    const headers = { 'content-type': 'application/json' }, key = $('docs-key').value;
    if (key)
        headers.authorization = `Bearer ${key}`;
    out.hidden = false;
    out.textContent = '';
    const began = performance.now();
    const r = await fetch(path, { method, headers, body: method === 'GET' ? undefined : body });
    const reader = r.body.getReader(), decoder = new TextDecoder();
    let text = '';
    for (;;) {
        const { done, value } = await reader.read();
        if (done)
            break;
        text += decoder.decode(value, { stream: true });
        out.textContent = text;
    }
    try {
        text = JSON.stringify(JSON.parse(text), null, 2);
    } catch { /* a stream, or text */ }
    out.textContent = `${r.status} in ${(performance.now() - began).toFixed(1)} ms\n\n${text}`;
}

function fieldsOf(schema) {
    return h('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Fields' }, h('table', {},
        h('thead', {}, h('tr', {}, ['Field', 'Type', 'Meaning'].map((x) => h('th', { scope: 'col' }, x)))),
        h('tbody', {}, Object.entries(schema.properties).map(([name, f]) =>
            h('tr', {}, h('th', { scope: 'row' }, h('code', {}, name)), h('td', {}, f.type ?? ''), h('td', {}, f.description ?? ''))))));
}

function route(method, path, op) {
    const schema = op.requestBody?.content['application/json'].schema, verb = method.toUpperCase();
    const body = schema && h('textarea', { rows: '6', spellcheck: 'false' }, JSON.stringify(examples[path] ?? {}, null, 2));
    const out = h('pre', { class: 'json', tabindex: '0', 'aria-label': 'Answer', hidden: true });
    const what = path.includes('*') && h('input', { type: 'text', value: path, spellcheck: 'false' });
    return h('details', { class: 'route', 'data-route': `${verb} ${path} ${op.summary ?? ''}`.toLowerCase() },
        h('summary', {}, h('span', { class: `verb ${method}` }, verb), h('code', {}, path), h('span', { class: 'hint' }, op.summary ?? '')),
        h('div', { class: 'side-body' }, schema?.properties && fieldsOf(schema),
            what && h('label', { class: 'field' }, h('span', {}, 'Path'), what), body && h('label', { class: 'field mono' }, h('span', {}, 'Body'), body),
            h('div', { class: 'row' }, h('button', { type: 'button', class: 'button primary', onclick: () => send(verb, what ? what.value : path, body?.value, out).catch((e) => {
                out.textContent = String(e);
            }) }, 'Send')), out));
}

function draw(api) {
    const groups = new Map();
    for (const [path, ops] of Object.entries(api.paths))
        for (const [method, op] of Object.entries(ops)) {
            const tag = op.tags?.[0] ?? 'Other';
            groups.set(tag, [...groups.get(tag) ?? [], route(method, path, op)]);
        }
    $('docs-all').replaceChildren(...[...groups].map(([tag, list]) => h('section', { class: 'docs-group' }, h('h2', {}, tag), list)));
}

function search() {
    const words = $('docs-search').value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const group of document.querySelectorAll('.docs-group')) {
        let some = 0;
        for (const r of group.querySelectorAll('.route')) {
            r.hidden = !words.every((w) => r.dataset.route.includes(w));
            some += !r.hidden;
        }
        group.hidden = some === 0;
        found += some;
    }
    $('docs-none').hidden = found > 0;
}

async function start() {
    try {
        draw(await getJson('/openapi.json'));
    } catch (e) {
        $('docs-all').replaceChildren(errorBox(e, ['Try again', start]));
    }
}

$('docs-key').value = kept('key', '');
$('docs-key').addEventListener('change', (e) => keep('key', e.target.value.trim()));
$('docs-search').addEventListener('input', search);
start();
