// models.js - the Models view: state, memory and speed of each model; load, unload, cards.
import { $, bytes, count, errorBox, getJson, h, ms, redraw, request } from './lib.js';
import { markdown, outside } from './markdown.js';

const tasks = {
    generate: 'generates text', classify: 'classifies texts', tag: 'finds entities', embed: 'computes embeddings',
    rerank: 'ranks documents', summarize: 'summarizes texts', score: 'scores numbers',
};
const states = { ready: 'good', loading: 'wait', unloading: 'wait', unloaded: '', failed: 'bad' };
const cards = new Map(), asked = new Map(); // name -> text, name -> promise of it
let opener = '', timer = 0, busy = new Set(), last = '';

export function start() {
    $('card-close').addEventListener('click', () => $('card').close());
    $('card').addEventListener('close', () => $(opener)?.focus()); // its opener may have been redrawn
    $('card').addEventListener('click', (e) => {
        if (e.target === $('card'))
            $('card').close();
    });
}

export async function enter() {
    clearTimeout(timer);
    await refresh();
    timer = setTimeout(enter, 2000);
}

export function leave() {
    clearTimeout(timer);
}

async function refresh() {
    let list, admin = true;
    try {
        const answer = await getJson('/admin/models');
        list = answer.models;
        admin = answer.may_change;
        if (list.length === 0) { // a gateway: the models are on other nodes
            admin = false;
            list = (await getJson('/v1/models')).data.filter((m) => m.task !== 'route').map((m) => ({ ...m, model: m.id }));
        }
    } catch (e) {
        if (e.status !== 401 && e.status !== 403) {
            if (e.status)
                $('models-note').replaceChildren(errorBox(e, ['Try again', enter]));
            return;
        }
        admin = false;
        try { // without administration rights: the public list
            list = (await getJson('/v1/models')).data.filter((m) => m.task !== 'route').map((m) => ({ ...m, model: m.id, card: true }));
        } catch (again) {
            $('models-note').replaceChildren(errorBox(again));
            return;
        }
    }
    const text = JSON.stringify(list) + [...busy].join() + [...cards.keys()].join();
    if (text === last)
        return;
    last = text;
    $('models-note').replaceChildren();
    draw(list, admin);
}

function draw(list, admin) {
    const files = new Map();
    for (const m of list)
        files.set(m.path ?? m.model, m.bytes ?? 0);
    const memory = [...files.values()].reduce((a, b) => a + b, 0);
    const ready = list.filter((m) => m.state === 'ready').length;
    $('models-sum').textContent = `${ready} of ${list.length} ready${memory ? `, ${bytes(memory)} of memory in total` : ''}.`;
    redraw($('models-list'), () => list.map((m) => model(m, list, admin)));
    for (const m of list)
        if (m.card && !asked.has(m.model))
            fetchCard(m.model).then(refresh, () => {});
}

// Models that share a file run together, so their measurements are shared too.
function speed(m, list) {
    if (!m.tokens_per_s && !m.median_ms)
        m = list.find((o) => o.path === m.path && (o.tokens_per_s || o.median_ms)) ?? m;
    if (m.tokens_per_s)
        return `${count(Math.round(m.tokens_per_s))} tokens/s`;
    return m.median_ms ? `${ms(m.median_ms)} per request` : 'not measured yet';
}

function model(m, list, admin) {
    const shared = list.filter((o) => o.path && o.path === m.path && o.model !== m.model).map((o) => o.model);
    const facts = [
        ['Memory', m.bytes ? `${bytes(m.bytes)}${shared.length ? ', shared' : ''}` : m.state === 'unloaded' ? 'none' : undefined],
        ['File', m.file_bytes ? bytes(m.file_bytes) : undefined],
        ['Parameters', m.parameters ? count(m.parameters) : undefined],
        ['Kind', m.architecture],
        ['Speed', m.requests === undefined ? undefined : speed(m, list)],
        ['Loaded in', m.load_ms && m.state === 'ready' ? ms(m.load_ms) : undefined],
        ['Requests', m.requests],
        ['Kernels', m.kernels && `${m.kernels}, ${m.threads} ${m.threads === 1 ? 'thread' : 'threads'}`],
    ].filter(([, v]) => v !== undefined && v !== '');
    const progress = h('progress', { max: '1', value: String(m.progress ?? 0), 'aria-label': `Loading ${m.model}` });
    return h('article', { class: 'model', 'aria-labelledby': `model-${m.model}` },
        h('div', { class: 'model-head' }, h('h2', { id: `model-${m.model}` }, m.model),
            h('span', { class: `pill ${states[m.state] ?? ''}` }, m.state)),
        h('p', { class: 'model-task' }, tasks[m.task] ?? m.task ?? ''),
        h('p', { class: 'model-about' }, about(m.model)),
        m.state === 'loading' && progress,
        m.error && h('p', { class: 'model-error' }, `Loading failed: ${m.error}`),
        h('dl', {}, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, String(v))))),
        shared.length > 0 && h('p', { class: 'hint' }, `Shares its file and memory with ${shared.join(', ')}.`),
        h('div', { class: 'row' }, buttons(m, admin)));
}

function buttons(m, admin) {
    const loads = m.state === 'unloaded' || m.state === 'failed';
    const waits = busy.has(m.model) || m.state === 'loading' || m.state === 'unloading';
    return [
        m.card && h('button', {
            type: 'button', class: 'button', id: `open-card-${m.model}`, onclick: () => openCard(m.model),
        }, 'Card', h('span', { class: 'sr' }, ` of ${m.model}`)),
        admin && h('button', {
            type: 'button', class: 'button', disabled: waits, id: `load-${m.model}`,
            onclick: () => change(m.model, loads ? 'load' : 'unload'),
        }, loads ? 'Load' : 'Unload', h('span', { class: 'sr' }, ` ${m.model}`)),
    ];
}

async function change(name, action) {
    busy.add(name);
    try {
        await request('/admin/models', { body: { model: name, action } });
    } catch (e) {
        $('models-note').replaceChildren(errorBox(e, ['Try again', () => change(name, action)]));
    }
    busy.delete(name);
    await enter();
}

// ---- cards

async function fetchCard(name) {
    if (!asked.has(name))
        asked.set(name, request(`/v1/models/${encodeURIComponent(name)}/card`).then((r) => r.text()));
    try {
        cards.set(name, await asked.get(name));
    } catch (e) {
        asked.delete(name); // allows a retry
        throw e;
    }
    return cards.get(name);
}

// The first paragraph of the card.
function about(name) {
    const text = (cards.get(name) ?? '').split('\n\n').find((p) => p && !/^[#|]/.test(p)) ?? '';
    const first = /^.*?[.:](?=\s|$)/.exec(text.replaceAll('\n', ' '))?.[0] ?? text;
    return first.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll('`', '').replace(/:$/, '.');
}

// Links to other cards open them; external links open in a new tab; repository paths are shown as text.
function link(text, target) {
    const card = /^([\w-]+)\.md$/.exec(target);
    if (card)
        return h('button', { type: 'button', class: 'link', onclick: () => openCard(card[1]) }, text);
    return outside(text, target);
}

async function openCard(name) {
    const dialog = $('card'), body = $('card-body');
    $('card-title').textContent = name;
    body.replaceChildren(h('p', { class: 'hint' }, 'Loading…'));
    if (!dialog.open) {
        opener = `open-card-${name}`;
        dialog.showModal();
    }
    try {
        const text = await fetchCard(name);
        body.replaceChildren(...markdown(text.replace(/^# .*\n/, ''), { link }));
    } catch (e) {
        body.replaceChildren(errorBox(e, ['Try again', () => openCard(name)]));
    }
    body.scrollTop = 0;
}
