// home.js - the Home view: rooms, their things with live states, and a field for commands.
import { $, Gone, Refused, composer, errorBox, events, getJson, h, keep, kept, member, request, whenLoaded, words } from './lib.js';

const states = new Map(); // "id ability" -> the shown value
let stop = null, drawn = '', field, session;

export async function start() {
    field = composer($('home-form'), $('home-text'), 'home', send);
    session = kept('home-session', '') ||
        `home-${Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('')}`;
    keep('home-session', session);
    try { // shown only if the server has a home
        $('nav-home').hidden = !(await member()).offers.includes('home');
    } catch { /* no home, no key yet, or no server: app.js reports it */ }
}

export async function enter() {
    leave();
    field.grow();
    const mine = stop = new AbortController();
    try {
        const response = await request('/v1/home?stream=true', { signal: mine.signal });
        $('home-note').replaceChildren();
        for await (const { data } of events(response))
            if (data)
                draw(JSON.parse(data));
        throw new Gone('the stream ended');
    } catch (e) {
        if (!mine.signal.aborted && e instanceof Refused)
            $('home-note').replaceChildren(errorBox(e, ['Try again', enter]));
        else if (!mine.signal.aborted)
            setTimeout(() => stop === mine && enter(), 1000);
    }
}

export function leave() {
    stop?.abort();
    stop = null;
}

export function focus() {
    $('home-text').focus();
}

async function send() {
    const text = $('home-text').value.trim();
    if (!text)
        return;
    field.set('');
    $('home-reply').textContent = '…';
    try {
        const answer = await whenLoaded(() => getJson('/v1/process', { body: { text }, session }),
            (why) => { $('home-reply').textContent = `Waiting: ${why}`; });
        $('home-reply').textContent = answer.reply;
        $('home-note').replaceChildren();
    } catch (e) {
        $('home-reply').textContent = '';
        $('home-note').replaceChildren(errorBox(e));
        if ($('home-text').value === '') // keep the typed text
            field.set(text);
    }
    focus();
}

// ---- rooms

const units = { percent: ' %', celsius: ' °C', fahrenheit: ' °F' };

function valueText(s) {
    if (typeof s.value === 'number')
        return `${Number(s.value.toFixed(2))}${units[s.unit] ?? (s.unit ? ` ${s.unit}` : '')}`;
    return words(String(s.value));
}

const plain = new Set(['power', 'open', 'lock', 'run']); // "on", "locked": the value says it
const active = new Set(['on', 'open', 'opened', 'unlocked', 'running', 'started', 'armed']);

function draw(home) {
    const things = [...home.devices, ...home.machines, ...home.sensors];
    const listed = new Set(things.map((x) => x.id)), others = new Map();
    for (const s of home.states) // an open home accepts unlisted things by name
        if (!listed.has(s.id))
            others.set(s.id, { id: s.id, name: words(s.id), kind: 'other' });
    const groups = [...home.rooms.map((r) => [r.name, things.filter((x) => x.room === r.id)]),
        ['Anywhere', [...home.devices, ...home.sensors].filter((x) => !x.room)],
        ['Machines', home.machines.filter((x) => !x.room)], ['Others', [...others.values()]]]
        .filter(([, list]) => list.length > 0);
    const shape = JSON.stringify(groups);
    if (shape !== drawn) { // the set of things changed: redraw everything
        drawn = shape;
        states.clear();
        $('home-rooms').replaceChildren(...groups.map(([name, list]) => h('article', { class: 'model room', 'aria-label': name },
            h('h2', {}, name), h('ul', {}, list.map((x) => h('li', { 'data-thing': x.id },
                h('span', { class: 'thing-name' }, x.name), h('span', { class: 'thing-states' })))))));
    }
    $('home-sum').textContent = `${home.name ? `${home.name}: ` : ''}${things.length} things in ${home.rooms.length} rooms. ` +
        (home.simulated ? 'No device is connected: commands change what is shown here alone.' : 'Commands are carried out by the devices.');
    drawLater(home);
    const of = new Map();
    for (const s of home.states)
        of.set(s.id, [...of.get(s.id) ?? [], s]);
    for (const li of $('home-rooms').querySelectorAll('[data-thing]'))
        drawStates(li, of.get(li.dataset.thing) ?? []);
}

// ---- what happens later

function drawLater(home) {
    const list = home.scheduled ?? [], over = (home.recent ?? []).slice(0, 5);
    $('home-later').hidden = list.length === 0 && over.length === 0;
    $('home-scheduled').replaceChildren(...list.map((x) => h('li', { 'data-scheduled': x.id },
        h('span', { class: 'thing-name' }, x.what), h('span', { class: 'thing-states' },
            h('span', { class: 'pill' }, moment(x.due_ms)),
            h('button', { type: 'button', class: 'button small', 'aria-label': `Cancel ${x.what}`, onclick: () => cancel(x) }, 'Cancel')))),
    ...over.map((x) => h('li', { 'data-over': x.id }, h('span', { class: 'thing-name' }, x.what),
        h('span', { class: 'thing-states' }, h('span', { class: `pill ${bad.has(x.result) ? 'bad' : 'good'}`, title: x.reason ?? '' },
            `${words(x.result)}, ${moment(x.ended_ms)}`)))));
}

const bad = new Set(['failed', 'missed', 'interrupted']);

function moment(ms) {
    const at = new Date(ms), day = at.toDateString() === new Date().toDateString() ? {} : { weekday: 'short', day: 'numeric', month: 'short' };
    return at.toLocaleString('en-GB', { ...day, hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

async function cancel(x) {
    try {
        await getJson(`/v1/scheduled/${x.id}`, { method: 'DELETE' });
        $('home-note').replaceChildren();
    } catch (e) {
        $('home-note').replaceChildren(errorBox(e));
    }
}

function drawStates(li, list) {
    const id = li.dataset.thing, text = list.map((s) => `${s.ability} ${valueText(s)}`).join(';');
    const was = states.get(id);
    if (was === text)
        return;
    states.set(id, text);
    li.lastChild.replaceChildren(...list.length === 0 ? [h('span', { class: 'hint' }, 'unknown')] : list.map((s) =>
        h('span', { class: `pill ${active.has(s.value) ? 'good' : ''}` },
            plain.has(s.ability) ? valueText(s) : `${words(s.ability)} ${valueText(s)}`)));
    li.classList.remove('changed');
    if (was !== undefined) {
        void li.offsetWidth; // restarts the animation
        li.classList.add('changed');
    }
}
