// models.js - the Models view: all models with state, memory and speed; loads and unloads them.
import { $, bytes, confirmed, count, errorBox, getJson, h, ms, redraw, request, several } from './lib.js';
import * as add from './models_add.js';
import * as card from './models_card.js';

export const tasks = {
    generate: 'generates text', classify: 'classifies texts', tag: 'finds entities', embed: 'computes embeddings',
    rerank: 'ranks documents', summarize: 'summarizes texts', score: 'scores numbers', transcribe: 'writes down speech',
    speak: 'reads texts aloud',
};
const does = (m) => tasks[m.task || m.kinds?.[0]] ?? m.task;
const states = { ready: 'good', loading: 'wait', unloading: 'wait', unloaded: '', failed: 'bad' };
let timer = 0, busy = new Set(), last = '', models = [], admin = false;

export function start() {
    card.start();
    add.start(enter);
}

export async function enter() {
    clearTimeout(timer);
    await refresh();
    timer = setTimeout(enter, 2000);
}

export function leave() {
    clearTimeout(timer);
    add.leave();
}

// What everybody may know: the public list, with the figures of the other one.
async function publicList() {
    const [{ data }, tags] = await Promise.all([getJson('/v1/models'), getJson('/api/tags')]);
    const of = new Map(tags.models.map((m) => [m.name, m]));
    return data.filter((m) => m.task !== 'route').map((m) => ({
        ...m, model: m.id, card: true, architecture: of.get(m.id)?.details.family, file_bytes: of.get(m.id)?.size,
    }));
}

async function refresh() {
    let list;
    try {
        const answer = await getJson('/admin/models').catch((e) => {
            if (e.status === 401 || e.status === 403)
                return { models: [], may_change: false };
            throw e;
        });
        admin = answer.may_change;
        list = answer.models.length > 0 ? answer.models : await publicList(); // none: no rights, or a gateway whose models are on other nodes
    } catch (e) {
        if (e.status)
            $('models-note').replaceChildren(errorBox(e, ['Try again', enter]));
        return;
    }
    models = list;
    await add.show(admin);
    const text = JSON.stringify([list, admin, [...busy]]);
    if (text === last)
        return;
    last = text;
    $('models-note').replaceChildren();
    draw();
}

function draw() {
    const files = new Map(models.map((m) => [m.path ?? m.model, m.bytes ?? 0]));
    const memory = [...files.values()].reduce((a, b) => a + b, 0), ready = models.filter((m) => m.state === 'ready').length;
    $('models-sum').textContent = models.length === 0 ? 'No model is here yet.' :
        `${ready} of ${several(models.length, 'model')} ready${memory ? `, ${bytes(memory)} of memory in total` : ''}.`;
    $('models-table').hidden = models.length === 0;
    redraw($('models-list'), () => models.map(row));
    card.update(facts);
}

// Models that share a file run together, so their measurements are shared too.
function speed(m) {
    if (!m.tokens_per_s && !m.median_ms)
        m = models.find((o) => o.path && o.path === m.path && (o.tokens_per_s || o.median_ms)) ?? m;
    if (m.tokens_per_s)
        return `${count(Math.round(m.tokens_per_s))} tokens/s`;
    return m.median_ms ? `${ms(m.median_ms)} per request` : 'not measured yet';
}

const sharing = (m) => models.filter((o) => o.path && o.path === m.path && o.model !== m.model).map((o) => o.model);
const memoryOf = (m) => (m.bytes ? `${bytes(m.bytes)}${sharing(m).length ? ', shared' : ''}` : m.state === 'unloaded' ? 'none' : '–');

function row(m) {
    const cell = (label, ...content) => h('td', { 'data-label': label }, ...content);
    const progress = m.state === 'loading' && h('progress', { max: '1', value: String(m.progress ?? 0), 'aria-label': `Loading ${m.model}` });
    return h('tr', { class: 'model-row', 'data-model': m.model },
        h('th', { scope: 'row' }, h('button', { type: 'button', class: 'link', id: `open-card-${m.model}`, onclick: () => card.open(m.model, facts, m.card) }, m.model)),
        cell('Does', does(m) || '–'),
        cell('State', h('span', { class: `pill ${states[m.state] ?? ''}` }, m.state), progress),
        cell('Memory', memoryOf(m)), cell('File', m.file_bytes ? bytes(m.file_bytes) : '–'),
        cell('Speed', m.requests === undefined ? '–' : speed(m)),
        h('td', { class: 'row-end' }, admin && loadButton(m, `load-${m.model}`)));
}

function loadButton(m, id) {
    const loads = m.state === 'unloaded' || m.state === 'failed';
    const waits = busy.has(m.model) || m.state === 'loading' || m.state === 'unloading';
    return h('button', { type: 'button', class: 'button small', disabled: waits, id, onclick: () => change(m.model, loads ? 'load' : 'unload') },
        loads ? 'Load' : 'Unload', h('span', { class: 'sr' }, ` ${m.model}`));
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

// ---- the detail of one model

// What the dialog shows above the card: [rows of a list, buttons].
function facts(name) {
    const m = models.find((x) => x.model === name);
    if (!m)
        return [[], []];
    const rows = [
        ['Does', does(m)], ['State', m.state], ['Memory', memoryOf(m)],
        ['File', m.file_bytes ? bytes(m.file_bytes) : undefined], ['Parameters', m.parameters ? count(m.parameters) : undefined],
        ['Kind', m.architecture], ['Context', m.context ? several(m.context, 'token') : undefined],
        ['Speed', m.requests === undefined ? undefined : speed(m)],
        ['Prompts', m.prompt_tokens_per_s ? `${count(Math.round(m.prompt_tokens_per_s))} tokens/s` : undefined],
        ['Requests', m.requests], ['Loaded in', m.load_ms && m.state === 'ready' ? ms(m.load_ms) : undefined],
        ['Kernels', m.kernels && `${m.kernels}, ${several(m.threads, 'thread')}`],
        ['Shares its file with', sharing(m).join(', ')], ['Version', m.version], ['Path', m.path], ['Error', m.error],
    ].filter(([, v]) => v !== undefined && v !== '' && v !== null);
    const removable = admin && /\/models\/[0-9a-f]{64}\//.test(m.path ?? '');
    return [rows, [admin && loadButton(m, `detail-load-${m.model}`), removable &&
        h('button', { type: 'button', class: 'button small', onclick: () => remove(m) }, 'Remove')].filter(Boolean)];
}

async function remove(m) {
    card.close();
    if (!await confirmed(`Remove ${m.model} from this machine?`, 'It can be pulled again.', 'Remove'))
        return;
    try {
        await request('/api/delete', { method: 'DELETE', body: { model: m.model } });
    } catch (e) {
        $('models-note').replaceChildren(errorBox(e));
    }
    await enter();
}
