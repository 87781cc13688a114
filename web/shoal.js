// shoal.js - the Shoal view: nodes, their models and load, and recent moves; live.
import { $, bytes, count, empty, errorBox, events, h, member, redraw, request } from './lib.js';

const states = { ready: 'good', draining: 'wait', unknown: 'wait', lost: 'bad' };
const seen = new Map(); // node -> last known state, to detect changes
const rates = new Map(); // of counts: [time, requests, rate]
let stop = null, moved = null;

export async function start() {
    try { // shown only if there are nodes or a NATS server
        const c = await member();
        $('nav-shoal').hidden = c.nodes.length === 0 && c.nats === 'none';
    } catch { /* app.js reports it */ }
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
            happened(n.state === 'ready' ? `${n.name} accepts requests` :
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
    if (c.nodes.length === 0 && c.nats === 'none')
        return $('shoal-note').replaceChildren(empty('This server is alone', 'Several machines are a shoal: see docs/CLUSTER.md.'));
    const ready = c.nodes.filter((n) => n.state === 'ready').length;
    notice(c);
    $('shoal-sum').textContent = `${ready} of ${c.nodes.length} nodes ready${c.nats === 'none' ? '' : `, NATS ${c.nats}`}` +
        `${c.controller ? `, controller ${c.controller}` : ''}. ` +
        `${count(c.counts.requests)} requests, ${perSecond(c).toFixed(1)} a second; ${count(c.counts.moved)} went on at another ` +
        `node, ${count(c.counts.lost)} lost.`;
    wanted(c);
    const drained = new Set(c.desired?.drained ?? []);
    redraw($('shoal-nodes'), () => c.nodes.map((n) => node(n, c.may_change && c.desired, drained.has(n.name))));
    drawRollouts(c);
}

const rolloutStates = { done: 'good', failed: 'bad', undone: 'bad', paused: 'wait', undoing: 'wait' };
const over = ['done', 'failed', 'undone'];
let drawn = '';

function drawRollouts(c) {
    const list = (c.rollouts ?? []).slice().reverse(), now = JSON.stringify([list, c.may_change]);
    if (now === drawn) // so that an error message below a button stays
        return;
    drawn = now;
    $('shoal-rollouts-title').hidden = list.length === 0;
    redraw($('shoal-rollouts'), () => list.map((r) => rollout(r, c.may_change)));
}

function rollout(r, mayChange) {
    const step = r.history[r.history.length - 1];
    const actions = r.state === 'undoing' ? [] : r.state === 'done' ? ['undo'] : over.includes(r.state) ? [] :
        r.state === 'paused' || r.kind === 'canary' && r.state === 'running' && r.share < 1000 ?
            ['promote', ...(r.state === 'paused' ? [] : ['pause']), 'undo'] : ['pause', 'undo'];
    const note = h('div', {});
    const button = (action) => h('button', {
        type: 'button', class: 'button small', id: `${action}-${r.id}`,
        onclick: async (e) => {
            e.target.disabled = true;
            try {
                await request('/admin/rollouts', { body: { rollout: r.id, action } });
            } catch (error) {
                note.replaceChildren(errorBox(error));
            }
            e.target.disabled = false;
        },
    }, action[0].toUpperCase() + action.slice(1));
    return h('article', { class: 'model', 'aria-labelledby': `rollout-${r.id}` },
        h('div', { class: 'model-head' }, h('h3', { id: `rollout-${r.id}` }, r.id),
            h('span', { class: `pill ${rolloutStates[r.state] ?? ''}` }, r.state)),
        h('p', { class: 'hint' }, `${r.kind}: ${r.from.slice(0, 12)} to ${r.to.slice(0, 12)}` +
            (r.kind === 'canary' && r.share < 1000 ? `, ${r.share / 10} % of the requests` : '')),
        step && h('p', { class: r.state === 'failed' ? 'model-error' : '' }, step.text),
        mayChange && actions.length > 0 && h('div', { class: 'row' }, actions.map(button)), note);
}

// The models that the shoal should serve, and their actual replicas.
function wanted(c) {
    const models = c.desired?.models ?? [];
    $('shoal-wanted').hidden = models.length === 0;
    $('shoal-wanted').replaceChildren(h('caption', {}, c.gap ? `Not everything has its place: ${c.gap}` : 'Deployed models'),
        h('thead', {}, h('tr', {}, ['Model', 'Ready', 'Wanted', 'Between', 'Nodes'].map((x) => h('th', { scope: 'col' }, x)))),
        h('tbody', {}, models.map((m) => h('tr', {}, h('th', { scope: 'row' }, m.name),
            h('td', { class: m.ready < m.want ? 'bad' : '' }, String(m.ready)), h('td', {}, String(m.want)),
            h('td', {}, `${m.min} to ${m.max}`),
            h('td', {}, m.nodes.map((n) => n.duty !== 'serve' ? `${n.node} (${n.duty}s)` : n.replicas > 1 ? `${n.node} (${n.replicas} replicas)` : n.node).join(', ') || 'none')))));
}

function drainButton(name, drained) {
    return h('button', { type: 'button', class: 'button small', id: `drain-${name}`,
        onclick: () => drain(name, drained ? 'undrain' : 'drain') }, drained ? 'Undrain' : 'Drain');
}

async function drain(name, action) {
    try {
        await request('/admin/cluster', { body: { node: name, action } });
        happened(action === 'drain' ? `${name} is being drained` : `${name} is back in service`);
    } catch (e) {
        $('shoal-note').replaceChildren(errorBox(e));
    }
}

function node(n, may_drain, drained) {
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
            h('span', { class: `pill ${states[n.state] ?? ''}` }, drained && n.state === 'draining' ? 'drained' : n.state),
            may_drain && drainButton(n.name, drained)),
        n.error && h('p', { class: 'model-error' }, n.error),
        h('dl', {}, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, String(v))))),
        models.length > 0 && h('p', { class: 'hint' }, models.map((m) => m.error ? `${m.name} (${m.error})` :
            m.duty && (m.duty !== 'serve' || m.state !== 'ready') ? `${m.name} (${m.duty}s, ${m.state})` : m.token_us ?
                `${m.name} (${m.replicas > 1 ? `${m.replicas} replicas, ` : ''}${count(Math.round(1e6 / m.token_us))} tokens/s)` : m.name).join(', ')));
}
