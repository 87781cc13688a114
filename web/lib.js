// lib.js - shared by all views: elements, requests, event streams, error messages, saved state.

// Makes an element: h('p', {class: 'x', onclick: f}, 'text', child, ...).  Text is never parsed as HTML.
export function h(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === undefined || value === null || value === false)
            continue;
        if (name.startsWith('on'))
            e.addEventListener(name.slice(2), value);
        else
            e.setAttribute(name, value === true ? '' : value);
    }
    e.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false));
    return e;
}

export const $ = (id) => document.getElementById(id);

// ---- live lists, which are redrawn while their buttons are in use

let pressed = false;
const drawings = new Map(); // place -> what to draw there after the release

// Replaces the children of a place by those that draw() returns; focus stays on the element with the same id.  A button
// that leaves the page between press and release gets no click, even if it is put back: drawing waits for the release.
export function redraw(place, draw) {
    if (pressed) {
        drawings.set(place, draw);
        return;
    }
    const held = place.contains(document.activeElement) ? document.activeElement.id : '';
    place.replaceChildren(...draw());
    if (held)
        $(held)?.focus();
}

function press() {
    pressed = true;
}

function release() {
    setTimeout(() => { // after the click that the release causes
        pressed = false;
        const waiting = [...drawings];
        drawings.clear();
        waiting.forEach(([place, draw]) => redraw(place, draw));
    });
}

addEventListener('pointerdown', press, true);
addEventListener('keydown', press, true);
for (const event of ['pointerup', 'pointercancel', 'keyup'])
    addEventListener(event, release, true);
addEventListener('blur', release); // only the window's own event, not those of elements

export function icon(name) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
    svg.setAttribute('aria-hidden', 'true');
    use.setAttribute('href', `#${name}`);
    svg.append(use);
    return svg;
}

// ---- state kept while the tab is open (drafts, settings): it survives a reload

export function keep(name, value) {
    try {
        sessionStorage.setItem(`shoal-${name}`, JSON.stringify(value));
    } catch { /* storage full or not allowed: nothing is saved */ }
}

export function kept(name, otherwise) {
    try {
        return JSON.parse(sessionStorage.getItem(`shoal-${name}`)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

// ---- settings that stay in this browser

export function store(name, value) {
    try {
        localStorage.setItem(`shoal-${name}`, JSON.stringify(value));
    } catch { /* storage full or not allowed: nothing is saved */ }
}

export function stored(name, otherwise) {
    try {
        return JSON.parse(localStorage.getItem(`shoal-${name}`)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

// ---- copying

// The clipboard needs https or this machine; elsewhere the text is selected and copied as a person would.
async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
        await navigator.clipboard.writeText(text);
        return;
    }
    const field = h('textarea', { class: 'sr' });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    if (!done)
        throw new Error('not allowed');
}

// A button that copies what text() returns, and says so for a moment.
export function copyButton(text, label) {
    const button = h('button', {
        type: 'button', class: 'tool copy', onclick: async () => {
            try {
                await copy(text());
                button.textContent = 'Copied';
            } catch {
                button.textContent = 'Copying is not allowed';
            }
            setTimeout(() => { button.textContent = label; }, 2000);
        },
    }, label);
    return button;
}

// ---- numbers

export function ms(v) {
    return v < 10 ? `${v.toFixed(v < 1 ? 2 : 1)} ms` : v < 1000 ? `${v.toFixed(0)} ms` : `${(v / 1000).toFixed(2)} s`;
}

export function bytes(n) {
    return n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e3).toFixed(0)} kB`;
}

// "1 model", "2 models".
export const several = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

export function count(n) {
    return n >= 1e9 ? `${(n / 1e9).toFixed(2)} B` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : String(n);
}

export const percent = (p) => `${Math.round(p * 100)} %`;

// "turn_off" as words.
export const words = (name) => name.replaceAll('_', ' ');

// A moment in the reader's own time: "18:00" of today, "Mon, 23 Nov, 06:00" of another day.
export function moment(at, seconds) {
    const d = new Date(at), today = d.toDateString() === new Date().toDateString();
    return d.toLocaleString('en-GB', { ...today ? {} : { weekday: 'short', day: 'numeric', month: 'short' },
        hour: '2-digit', minute: '2-digit', ...seconds ? { second: '2-digit' } : {} });
}

// "every monday" as it is written.
export const days = (text) => text.replaceAll(/\b(mon|tues|wednes|thurs|fri|satur|sun)day/g, (d) => d[0].toUpperCase() + d.slice(1));

// ---- requests

export class Refused extends Error {
    constructor(status, error, headers) {
        super(error?.message ?? `status ${status}`);
        this.status = status;
        this.code = error?.code ?? '';
        this.retry = Number(headers.get('retry-after')) || 0;
        this.id = headers.get('x-request-id') ?? '';
    }
}

// What was entered cannot be sent.
export class Wrong extends Error {}

// The server cannot be reached, or the connection was lost.
export class Gone extends Error {}

const watchers = new Set();
export const onGone = (fn) => watchers.add(fn);

function gone() {
    watchers.forEach((fn) => fn());
    return new Gone('the server does not respond');
}

// A WebSocket with the key, which browsers can only send as a protocol (in hex: a key may have any characters).
export function socket(path) {
    const key = [...new TextEncoder().encode(kept('key', ''))].map((b) => b.toString(16).padStart(2, '0')).join('');
    return new WebSocket(location.origin.replace('http', 'ws') + path, key ? ['shoal', `shoal-key.${key}`] : []);
}

// session: the conversation that the request belongs to.
export async function request(path, { body, signal, method, session } = {}) {
    const headers = {}, key = kept('key', '');
    if (session)
        headers['x-session-id'] = session;
    if (body)
        headers['content-type'] = 'application/json';
    if (key)
        headers.authorization = `Bearer ${key}`;
    let r;
    try {
        r = await fetch(path, {
            method: method ?? (body ? 'POST' : 'GET'), headers, signal, cache: 'no-store',
            body: body ? JSON.stringify(body) : undefined,
        });
    } catch (e) {
        throw e.name === 'AbortError' ? e : gone();
    }
    if (r.ok)
        return r;
    const text = await r.text().catch(() => '');
    let error;
    try {
        error = JSON.parse(text).error;
        if (typeof error === 'string') // as Ollama's interface says it
            error = { message: error };
    } catch {
        error = { message: text.slice(0, 300) };
    }
    throw new Refused(r.status, error, r.headers);
}

export const getJson = async (path, options) => (await request(path, options)).json();

// What the server is and offers, fetched once.
let first = null;
export const member = () => (first ??= getJson('/v1/cluster').catch((e) => {
    first = null; // it may be there later
    throw e;
}));

// Without an answer true: asking for it tells what is wrong.
export const offers = (what) => member().then((m) => m.offers.includes(what), () => true);

export const empty = (title, ...text) => h('div', { class: 'empty' }, h('h2', {}, title), h('p', {}, ...text));

// The parts of a response between separators, as texts.
async function* parts(response, separator) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let rest = '';
    for (;;) {
        let part;
        try {
            part = await reader.read();
        } catch (e) {
            throw e.name === 'AbortError' ? e : gone();
        }
        if (part.done)
            return;
        rest += decoder.decode(part.value, { stream: true });
        const whole = rest.split(separator);
        rest = whole.pop();
        yield* whole;
    }
}

// The objects of a response with one per line.
export async function* objects(response) {
    for await (const line of parts(response, '\n'))
        if (line.trim())
            yield JSON.parse(line);
}

// Server-sent events of a response: {event, data} with data as text.
export async function* events(response) {
    for await (const block of parts(response, '\n\n')) {
        const out = { event: 'message', data: '' };
        for (const line of block.split('\n')) {
            const at = line.indexOf(': ');
            if (at > 0)
                out[line.slice(0, at)] = line.slice(at + 2);
        }
        yield out;
    }
}

// Repeats fn while it is refused because a model is being loaded.
export async function whenLoaded(fn, waiting, signal) {
    for (let tries = 0; ; tries++) {
        try {
            return await fn();
        } catch (e) {
            if (e.code !== 'model_loading' || tries >= 30 || signal?.aborted)
                throw e;
            waiting(e.message);
            await new Promise((done) => setTimeout(done, Math.max(1, e.retry) * 1000));
        }
    }
}

// ---- error messages: what happened, and what to do

const sentence = (s) => s && (s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.'));

export function explain(e) {
    if (e instanceof Gone)
        return ['The server does not respond.', 'Your text is kept. This page retries automatically; if this takes long, check that “shoal serve” is still running.'];
    if (e instanceof Wrong)
        return ['This cannot be sent.', e.message];
    if (!(e instanceof Refused))
        return ['Something went wrong in this page.', `${e.message}. Reload it; your text is kept.`];
    const said = sentence(e.message);
    if (e.status === 401)
        return ['This server requires an API key.', 'Enter a key from its configuration.'];
    if (e.status === 403)
        return ['This key does not allow that.', said];
    if (e.code === 'model_not_found')
        return ['The required model is missing.', said];
    if (e.status === 429)
        return ['The server is overloaded.', `${said} Try again in ${e.retry || 1} s.`];
    if (e.status === 504)
        return ['It would have exceeded the budget.', 'Raise the budget, or turn off “Enforce the budget”.'];
    if (e.status === 503)
        return ['The server cannot answer right now.', said];
    if (e.status >= 500)
        return ['The server could not answer.', `${said} In its log this is ${e.id || 'there'}.`];
    return ['The server did not accept this.', said];
}

// A box with the message and buttons: errorBox(e, ['Ask again', fn], ...).
export function errorBox(e, ...actions) {
    const [what, todo] = explain(e);
    if (e.status === 401)
        actions.unshift(['Enter a key', askKey]);
    return h('div', { class: 'error', role: 'alert' }, icon('i-warn'),
        h('div', {}, h('strong', {}, what), ' ', h('span', {}, todo),
            actions.length > 0 && h('div', { class: 'row' },
                actions.map(([label, fn]) => h('button', { type: 'button', class: 'button small', onclick: fn }, label)))));
}

export function askKey() {
    const dialog = $('key');
    $('key-text').value = kept('key', '');
    $('key-cancel').onclick = () => dialog.close();
    $('key-form').onsubmit = () => {
        keep('key', $('key-text').value.trim());
        location.reload();
    };
    dialog.showModal();
}

// Asks for a yes; resolves with whether it was given.
export function confirmed(question, detail, yes = 'Yes, do it') {
    const dialog = $('confirm');
    $('confirm-title').textContent = question;
    $('confirm-detail').textContent = detail ?? '';
    $('confirm-yes').textContent = yes;
    dialog.returnValue = '';
    dialog.showModal();
    $('confirm-no').focus();
    return new Promise((done) => dialog.addEventListener('close', () => done(dialog.returnValue === 'yes'), { once: true }));
}

// ---- text fields: grow with their text, Enter sends, drafts are kept

export function composer(form, field, name, send) {
    const grow = () => {
        field.style.height = 'auto';
        field.style.height = `${Math.min(field.scrollHeight, 240)}px`;
        keep(`draft-${name}`, field.value);
    };
    field.value = kept(`draft-${name}`, '');
    field.addEventListener('input', grow);
    field.addEventListener('keydown', (e) => {
        if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
            e.preventDefault();
            form.requestSubmit();
        }
    });
    form.addEventListener('submit', (e) => {
        e.preventDefault();
        send();
    });
    return {
        grow,
        set(text) {
            field.value = text;
            grow();
        },
    };
}
