// shoal.js - the Shoal view: nodes, their models and load, what was moved; live over one event stream.
import { $, bytes, count, errorBox, events, getJson, h, request } from './lib.js';

const states = { ready: 'good', draining: 'wait', unknown: 'wait', lost: 'bad' };
const seen = new Map(); // node -> state, for what happened
const rates = new Map(); // of counts: [time, requests, rate]
let stop = null, moved = null;

export async function start() {
    try { // the view exists where there are several nodes
        const c = await getJson('/v1/cluster');
        $('nav-shoal').hidden = c.nodes.length === 0 && c.nats === 'none';
    } catch { /* no key yet, or no server: app.js tells */ }
}

export async function enter() {
    leave();
    const mine = stop = new AbortController();
    try {
        const response = await request('/v1/cluster?stream=true', { signal: mine.signal });
        $('shoal-note').replaceChildren();
        for await (const e of events(response))
            if (e.data)
                draw(JSON.parse(e.data));
    } catch (e) {
        if (!mine.signal.aborted && e.status)
            $('shoal-note').replaceChildren(errorBox(e, ['Try again', enter]));
    }
}

export function leave() {
    stop?.abort();
    stop = null;
}

function happened(text) {
    $('shoal-events-title').hidden = false;
    $('shoal-events').prepend(h('li', {}, h('time', {}, new Date().toLocaleTimeString()), ` ${text}`));
    while ($('shoal-events').children.length > 50)
        $('shoal-events').lastChild.remove();
}

function notice(c) {
    for (const n of c.nodes) {
        const was = seen.get(n.name);
        if (was && was !== n.state)
            happened(n.state === 'ready' ? `${n.name} takes requests` :
                `${n.name} is ${n.state}${n.error ? `: ${n.error}` : ''}`);
        seen.set(n.name, n.state);
    }
    if (moved !== null && c.counts.moved > moved)
        happened(`${c.counts.moved - moved} ${c.counts.moved - moved === 1 ? 'answer' : 'answers'} went on at another node`);
    moved = c.counts.moved;
}

function perSecond(c) {
    const now = performance.now(), last = rates.get('requests');
    if (last && now - last.at < 1500)
        return last.rate;
    const rate = last ? Math.max(0, c.counts.requests - last.n) / (now - last.at) * 1000 : 0;
    rates.set('requests', { at: now, n: c.counts.requests, rate });
    return rate;
}

function draw(c) {
    const ready = c.nodes.filter((n) => n.state === 'ready').length;
    notice(c);
    $('shoal-sum').textContent = `${ready} of ${c.nodes.length} nodes ready${c.nats === 'none' ? '' : `, NATS ${c.nats}`}. ` +
        `${count(c.counts.requests)} requests, ${perSecond(c).toFixed(1)} a second; ${count(c.counts.moved)} went on at another ` +
        `node, ${count(c.counts.lost)} lost.`;
    $('shoal-nodes').replaceChildren(...c.nodes.map(node));
}

function node(n) {
    const models = n.models ?? [], busy = models.reduce((sum, m) => sum + m.in_flight, 0);
    const facts = [
        ['Machine', n.isa && `${n.isa}, ${n.cores} cores`],
        ['Memory free', n.memory_bytes ? `${bytes(n.memory_free)} of ${bytes(n.memory_bytes)}` : undefined],
        ['Zone', n.zone],
        ['In flight', n.isa ? busy : undefined],
        ['Round trip', n.rtt_us ? `${Math.round(n.rtt_us)} µs` : undefined],
        ['Address', n.address],
    ].filter(([, v]) => v !== undefined && v !== '');
    return h('article', { class: 'model', 'aria-labelledby': `node-${n.name}` },
        h('div', { class: 'model-head' }, h('h2', { id: `node-${n.name}` }, n.name),
            h('span', { class: `pill ${states[n.state] ?? ''}` }, n.state)),
        n.error && h('p', { class: 'model-error' }, n.error),
        h('dl', {}, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, String(v))))),
        models.length > 0 && h('p', { class: 'hint' }, models.map((m) => m.token_us ?
            `${m.name} (${count(Math.round(1e6 / m.token_us))} tokens/s)` : m.name).join(', ')));
}
