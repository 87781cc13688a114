// models_add.js - the machine's memory, the models that fit it, and adding one: a pull with its progress.
import { $, Refused, bytes, copyButton, count, errorBox, getJson, h, objects, redraw, request } from './lib.js';

const pulls = new Map(); // name -> {status, completed, total, stop, error}
let changed = () => {}, admin = false, machine = null, asked = 0, drawn = '';

// refresh: called when there are new models.
export function start(refresh) {
    changed = refresh;
    $('add-form').addEventListener('submit', (e) => {
        e.preventDefault();
        const name = $('add-name').value.trim();
        if (!name) {
            $('add-name').focus();
            return;
        }
        $('add-name').value = '';
        pull(name);
    });
}

export function leave() {
    asked = 0;
}

// Asks for the machine's figures now and then, and sooner while its speed is being measured.
async function look() {
    const wait = machine?.memory_bytes_per_s === null ? 1500 : 10000;
    if (performance.now() - asked < wait && asked > 0)
        return;
    asked = performance.now();
    try {
        machine = await getJson('/v1/machine');
    } catch {
        machine = null; // it is asked again: a key may be missing, or the server is away
    }
}

export async function show(mayChange) {
    admin = mayChange;
    await look();
    const now = JSON.stringify([admin, machine, [...pulls.keys()]]);
    if (now === drawn)
        return;
    drawn = now;
    $('add-form').hidden = !admin;
    $('add-how').hidden = admin;
    drawMemory();
    redraw($('add-fits'), () => (machine?.suggested ?? []).map(suggestion));
    $('add-fits-title').hidden = !machine?.suggested.length;
}

// ---- memory

function drawMemory() {
    const all = machine?.memory_bytes, box = $('machine');
    box.hidden = !all;
    if (!all)
        return;
    const models = Math.min(machine.models_bytes, all), free = Math.min(machine.memory_free_bytes, all - models), others = all - free - models;
    const part = (kind, n) => {
        const e = h('span', { class: `mem ${kind}` });
        e.style.width = `${(100 * n) / all}%`;
        return e;
    };
    box.replaceChildren(h('h2', {}, 'This machine'),
        h('div', { class: 'mem-bar', 'aria-hidden': 'true' }, part('mem-models', models), part('mem-others', others)),
        h('p', { class: 'mem-key' }, h('span', { class: 'k-models' }, `models ${bytes(models)}`), h('span', { class: 'k-others' }, `other programs ${bytes(others)}`),
            h('span', { class: 'k-free' }, `free ${bytes(free)} of ${bytes(all)}`)),
        h('p', { class: 'hint' }, [`${machine.cpus} CPUs`, machine.models_limit_bytes && `models may use ${bytes(machine.models_limit_bytes)}`,
            machine.memory_bytes_per_s && `memory reads ${bytes(machine.memory_bytes_per_s)} a second`,
            machine.disk_free_bytes && `${bytes(machine.disk_free_bytes)} of disk free`].filter(Boolean).join(', '), '.'));
}

// ---- models that could be added

function suggestion(s) {
    const speed = s.tokens_per_s && `${s.measured ? '' : 'about '}${count(Math.round(s.tokens_per_s))} tokens/s ${s.measured ? 'measured' : 'expected'}`;
    const figures = [`${bytes(s.download_bytes)} to download`, `${bytes(s.memory_bytes)} of memory`, speed, s.licence].filter(Boolean).join(' · ');
    const end = s.present ? h('span', { class: 'pill good' }, `here as ${s.present}`) : !s.fits ? h('span', { class: 'pill bad' }, 'does not fit') :
        admin ? h('button', { type: 'button', class: 'button small', id: `pull-${s.name}`, disabled: pulls.has(s.name), onclick: () => pull(s.name) },
            'Add', h('span', { class: 'sr' }, ` ${s.name}`)) : copyButton(() => `shoal pull ${s.name}`, 'Copy command');
    return h('li', { 'data-fits': s.name }, h('div', {}, h('strong', {}, s.name), h('p', {}, s.about), h('p', { class: 'hint' }, figures),
        !s.fits && !s.present && h('p', { class: 'hint' }, s.reason)), end);
}

// ---- pulling

async function pull(name) {
    if (pulls.has(name) && !pulls.get(name).error)
        return;
    const p = { status: 'asking where it is', completed: 0, total: 0, stop: new AbortController(), error: null };
    pulls.set(name, p);
    draw();
    try {
        const response = await request('/api/pull', { body: { model: name, stream: true }, signal: p.stop.signal });
        for await (const line of objects(response)) {
            if (line.error)
                throw new Refused(400, { message: line.error.message ?? line.error }, new Headers());
            p.status = line.status;
            p.completed = line.completed ?? p.completed;
            p.total = line.total ?? p.total;
            draw();
        }
        if (p.status !== 'success')
            throw new Error('the pull ended early');
        pulls.delete(name);
        $('add-live').textContent = `${name} is here.`;
        asked = 0;
        await changed();
    } catch (e) {
        if (e.name === 'AbortError')
            pulls.delete(name);
        else
            p.error = e;
    }
    draw();
}

function draw() {
    redraw($('add-pulls'), () => [...pulls].map(([name, p]) => h('li', { 'data-pull': name }, p.error ?
        [h('strong', {}, name), errorBox(p.error, ['Try again', () => pull(name)], ['Dismiss', () => {
            pulls.delete(name);
            draw();
        }])] :
        [h('strong', {}, name), h('progress', { max: '1', ...p.total ? { value: String(p.completed / p.total) } : {}, 'aria-label': `Pulling ${name}` }),
            h('span', { class: 'hint' }, p.total ? `${bytes(p.completed)} of ${bytes(p.total)}` : p.status),
            h('button', { type: 'button', class: 'button small', id: `stop-${name}`, onclick: () => p.stop.abort() }, 'Stop', h('span', { class: 'sr' }, ` ${name}`))])));
}
