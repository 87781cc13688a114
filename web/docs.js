// docs.js - the page /docs: lists every route of /openapi.json and lets you try it.
'use strict';
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
function make(tag, text, parent) {
    const e = document.createElement(tag);
    if (text) e.textContent = text;
    if (parent) parent.append(e);
    return e;
}
async function send(method, path, body, out) {
    const key = document.getElementById('key').value;
    const headers = { 'content-type': 'application/json' };
    if (key) headers.authorization = `Bearer ${key}`;
    out.textContent = '';
    const started = performance.now();
    const r = await fetch(path, { method, headers, body: method === 'GET' ? undefined : body });
    const reader = r.body.getReader(), text = new TextDecoder();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        out.textContent += text.decode(value, { stream: true });
    }
    try {
        out.textContent = JSON.stringify(JSON.parse(out.textContent), null, 2);
    } catch { /* a stream, or text */ }
    out.textContent = `${r.status} in ${(performance.now() - started).toFixed(1)} ms\n\n${out.textContent}`;
}
function show(method, path, op, parent) {
    const box = make('details', '', parent), head = make('summary', '', box);
    make('code', `${method.toUpperCase()} ${path}`, head);
    make('span', op.summary, head).className = 'what';
    const inside = make('div', '', box);
    inside.className = 'inside';
    const schema = op.requestBody?.content['application/json'].schema;
    if (schema?.properties) {
        const table = make('table', '', inside);
        for (const [name, f] of Object.entries(schema.properties)) {
            const row = make('tr', '', table);
            make('code', name, make('td', '', row));
            make('td', f.type ?? '', row);
            make('td', f.description ?? '', row);
        }
    }
    let body;
    if (schema) {
        body = make('textarea', JSON.stringify(examples[path] ?? {}, null, 2), inside);
        body.rows = 6;
    }
    const button = make('button', 'Send', inside), out = make('pre', '', inside);
    button.onclick = () => send(method.toUpperCase(), path, body?.value, out)
        .catch((e) => { out.textContent = String(e); });
}
fetch('/openapi.json').then((r) => r.json()).then((api) => {
    const all = document.getElementById('all'), groups = new Map();
    all.textContent = '';
    for (const [path, ops] of Object.entries(api.paths))
        for (const [method, op] of Object.entries(ops)) {
            const tag = op.tags?.[0] ?? 'Other';
            if (!groups.has(tag)) {
                make('h2', tag, all);
                groups.set(tag, make('section', '', all));
            }
            show(method, path, op, groups.get(tag));
        }
});
