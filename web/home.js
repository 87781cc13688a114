// home.js - the Home view: rooms, their things with live states and controls, and a field for commands.
import { $, Gone, Refused, composer, confirmed, days, empty, errorBox, events, getJson, h, keep, kept, member, moment, offers, redraw, request, several, whenLoaded,
    words } from './lib.js';
import { controls, reflect, spoken } from './home_controls.js';
import { about, kindOf, look } from './ring.js';

const states = new Map(); // "id ability" -> the shown value
let stop = null, drawn = '', field, session;

export async function start() {
    field = composer($('home-form'), $('home-text'), 'home', send);
    session = kept('home-session', '') ||
        `home-${Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('')}`;
    keep('home-session', session);
    try { // shown only if the server has a home
        $('nav-home').hidden = !(await member()).offers.includes('home');
    } catch { /* app.js reports it */ }
}

export async function enter() {
    leave();
    field.grow();
    $('home-form').hidden = !await offers('home');
    if ($('home-form').hidden)
        return $('home-note').replaceChildren(empty('No home here', "It needs the models that come with Shoal, or 'home' in the configuration."));
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
    if (!await say(text) && $('home-text').value === '') // keep the typed text
        field.set(text);
    focus();
}

const unsaid = / ?Please say yes to confirm\.$/;

// Does what the words say; true: the server took them. What needs a yes asks for it in a dialog.
async function say(text, confirm) {
    const body = confirm ? { confirm } : { text };
    $('home-reply').textContent = '…';
    try {
        const answer = await whenLoaded(() => getJson('/v1/process', { body, session }), (why) => { $('home-reply').textContent = `Waiting: ${why}`; });
        const token = answer.actions.find((a) => a.token)?.token, risk = answer.actions.find((a) => a.token)?.risk;
        $('home-reply').textContent = token ? '' : answer.reply;
        $('home-note').replaceChildren();
        if (answer.actions.some((a) => a.scheduled_id))
            look();
        if (!token)
            return true;
        if (await confirmed(answer.reply.replace(unsaid, ''), risk === 'dangerous' ? 'This can be dangerous: look first.' : ''))
            return await say(text, token);
        $('home-reply').textContent = 'Nothing was done.';
    } catch (e) {
        $('home-reply').textContent = '';
        $('home-note').replaceChildren(errorBox(e));
        return false;
    }
    return true;
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
        const names = new Map(home.rooms.map((r) => [r.id, r.name]));
        $('home-rooms').replaceChildren(...groups.map(([name, list]) => h('article', { class: 'model room', 'aria-label': name },
            h('h2', {}, name), h('ul', {}, list.map((x) => row(x, names.get(x.room)))))));
        drawScenes(home.scenes ?? []);
    }
    $('home-sum').textContent = `${home.name ? `${home.name}: ` : ''}${several(things.length, 'thing')} in ${several(home.rooms.length, 'room')}. ` +
        (home.simulated ? 'No device is connected: commands change what is shown here alone.' : 'Commands are carried out by the devices.');
    drawLater(home);
    const of = new Map();
    for (const s of home.states)
        of.set(s.id, [...of.get(s.id) ?? [], s]);
    for (const li of $('home-rooms').querySelectorAll('[data-thing]'))
        drawStates(li, of.get(li.dataset.thing) ?? []);
}

function row(x, room) {
    const { first, rest } = controls(x, room, (text) => say(text));
    const more = rest.length > 0 && h('div', { class: 'thing-more', id: `more-${x.id}`, hidden: true }, rest);
    const name = more ? h('button', {
        type: 'button', class: 'thing-name', 'aria-expanded': 'false', 'aria-controls': `more-${x.id}`, onclick: (e) => {
            more.hidden = !more.hidden;
            e.currentTarget.setAttribute('aria-expanded', String(!more.hidden));
        },
    }, x.name) : h('span', { class: 'thing-name' }, x.name);
    return h('li', { 'data-thing': x.id }, name, h('span', { class: 'thing-states' }), first, more);
}

function drawScenes(list) {
    $('home-scenes').hidden = list.length === 0;
    $('home-scenes').replaceChildren(h('span', { class: 'hint' }, list.length === 1 ? 'Scene' : 'Scenes'), ...list.map((x) =>
        h('button', { type: 'button', class: 'button small', onclick: () => say(`activate ${spoken(x).replace(/^the /, '')}`) }, x.name)));
}

// ---- what happens later

function drawLater(home) {
    const list = home.scheduled ?? [], over = (home.recent ?? []).slice(0, 5);
    $('home-later').hidden = list.length === 0 && over.length === 0;
    redraw($('home-scheduled'), () => [...list.map((x) => h('li', { 'data-scheduled': x.id },
        h('span', { class: 'thing-name' }, [kindOf(x), about(x)].filter(Boolean).join(': ')), h('span', { class: 'thing-states' },
            h('span', { class: 'pill' }, moment(x.due_ms, x.kind === 'timer')), x.repeats && h('span', { class: 'pill' }, days(x.repeats)),
            h('button', { type: 'button', class: 'button small', id: `cancel-${x.id}`, 'aria-label': `Cancel ${about(x) || kindOf(x)}`, onclick: () => cancel(x) }, 'Cancel')))),
    ...over.map((x) => h('li', { 'data-over': x.id }, h('span', { class: 'thing-name' }, [kindOf(x), about(x)].filter(Boolean).join(': ')),
        h('span', { class: 'thing-states' }, h('span', { class: `pill ${bad.has(x.result) ? 'bad' : 'good'}`, title: x.reason ?? '' },
            `${words(x.result)}, ${moment(x.ended_ms)}`))))]);
}

const bad = new Set(['failed', 'missed', 'interrupted']);

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
    for (const b of li.querySelectorAll('[aria-pressed]'))
        b.setAttribute('aria-pressed', 'false');
    const rest = list.filter((s) => !reflect(li, s)), pills = rest.map((s) => h('span', { class: `pill ${active.has(s.value) ? 'good' : ''}` },
        plain.has(s.ability) ? valueText(s) : `${words(s.ability)} ${valueText(s)}`));
    li.querySelector('.thing-states').replaceChildren(...list.length === 0 && !li.querySelector('.segment') ? [h('span', { class: 'hint' }, 'not known yet')] : pills);
    li.classList.remove('changed');
    if (was !== undefined) {
        void li.offsetWidth; // restarts the animation
        li.classList.add('changed');
    }
}
