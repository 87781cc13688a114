// sensors.js - the Sensors view: sensors with chart, normal range and score, alarms with explanations; live.
import { $, Gone, Refused, empty, errorBox, events, getJson, h, member, offers, redraw, request, several } from './lib.js';
import { Chart } from './chart.js';

const MAX_ALARMS = 20;
const severities = { critical: 'bad', warning: 'wait', info: '' };
const cards = new Map(); // sensor -> its card
const alarms = new Map(); // id -> the newest event of it
let stop = null, now = 0, planned = 0;
let quiet = true; // the first alarms received are not new

export async function start() {
    // The simulated plant of `make run`.
    for (const [id, broken] of [['demo-break', true], ['demo-heal', false]])
        $(id).addEventListener('click', async () => {
            try {
                await request('/v1/demo', { body: { broken } });
                $('sensors-note').replaceChildren();
            } catch (e) {
                $('sensors-note').replaceChildren(errorBox(e));
            }
        });
    try { // shown only if the server has sensors
        const has = (await member()).offers;
        $('nav-sensors').hidden = !has.includes('sensors');
        $('sensors-demo').hidden = !has.includes('demo');
    } catch { /* app.js reports it */ }
}

export async function enter() {
    leave();
    if (!await offers('sensors'))
        return $('sensors-note').replaceChildren(empty('No sensors here', "Add 'sensors' to the configuration, as in examples/plant.yaml."));
    const mine = stop = new AbortController();
    try {
        const response = await request('/v1/sensors?stream=true', { signal: mine.signal });
        $('sensors-note').replaceChildren();
        for await (const { event, data } of events(response)) {
            const v = data && JSON.parse(data);
            if (event === 'sensors')
                begin(v);
            else if (event === 'readings')
                readings(v.data);
            else if (event === 'alarm')
                alarmed(v);
            plan();
        }
        throw new Gone('the stream ended');
    } catch (e) {
        if (!mine.signal.aborted && e instanceof Refused)
            $('sensors-note').replaceChildren(errorBox(e, ['Try again', enter]));
        else if (!mine.signal.aborted)
            setTimeout(() => stop === mine && enter(), 1000);
    }
}

export function leave() {
    stop?.abort();
    stop = null;
}

// ---- sensors

// Three digits, as a person reads an instrument.
export function figure(v) {
    if (v === null)
        return '–';
    const size = Math.abs(v);
    return size >= 1e7 || size > 0 && size < 1e-3 ? v.toExponential(2) :
        String(Number(v.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)));
}

function begin(list) {
    const machines = new Map();
    cards.clear();
    alarms.clear();
    quiet = true;
    $('sensors-alarms').replaceChildren();
    for (const s of list.data) {
        if (!machines.has(s.machine))
            machines.set(s.machine, h('div', { class: 'sensors' }));
        const card = newCard(s);
        cards.set(s.sensor, card);
        machines.get(s.machine).append(card.element);
    }
    $('sensors-machines').replaceChildren(...[...machines].map(([name, grid]) => {
        const title = list.data.find((s) => s.machine === name).machine_title;
        return h('section', { class: 'machine', 'aria-label': title || 'Other sensors' },
            h('h2', { class: 'machine-title' }, title || (machines.size > 1 ? 'Other sensors' : 'All sensors')), grid);
    }),
    list.total > list.data.length && h('p', { class: 'hint' }, `${list.data.length} of ${list.total} sensors are shown.`) || '');
}

function newCard(sensor) {
    const value = h('strong', { class: 'sensor-value' }), normal = h('p', { class: 'hint' });
    const fill = h('span', { class: 'fill' }), score = h('span', { class: 'num' });
    const pill = h('span', { class: 'pill', hidden: true });
    const chart = new Chart(sensor);
    const element = h('article', { class: 'sensor', 'aria-label': sensor.title, 'data-sensor': sensor.sensor },
        h('div', { class: 'sensor-head' }, h('h3', {}, sensor.title), pill, value), chart.svg, normal,
        h('div', { class: 'sensor-score' }, h('span', {}, 'Score'), h('span', { class: 'track' }, fill), score));
    return { sensor, element, chart, value, normal, fill, score, pill };
}

function readings(list) {
    quiet = false;
    list.forEach(update);
}

function update(now) {
    const card = cards.get(now.sensor);
    if (!card)
        return;
    Object.assign(card.sensor, now);
    card.chart.push(now.value, now.time_ms);
}

function draw(card) {
    const s = card.sensor, all = alarms.get(s.alarm), alarm = all?.evidence.findLast((x) => x.sensor === s.sensor) ?? all;
    const unit = s.unit ? ` ${s.unit}` : '', known = s.normal_low !== null && s.normal_high !== null;
    card.value.textContent = `${figure(s.value)}${unit}`;
    card.normal.textContent = s.value === null ? 'No reading yet.' : (known ?
        `Normal is ${figure(s.normal_low)} to ${figure(s.normal_high)}${unit}${s.learning ? ' so far' : ''}.` : 'Learning what is normal.') +
        (s.learning && s.learn ? ` Learned from ${s.learned} of ${several(s.learn, 'reading')}.` : '') +
        (s.doubtful ? ` ${several(s.doubtful, 'reading')} in doubt.` : '');
    card.fill.style.width = `${Math.round(100 * s.score)}%`;
    card.score.textContent = s.score.toFixed(2);
    card.element.classList.toggle('alarmed', s.alarm !== 0);
    const learning = s.alarm === 0 && s.learning && s.value !== null;
    card.pill.hidden = s.alarm === 0 && !learning;
    card.pill.className = learning ? 'pill' : `pill ${severities[alarm?.severity] ?? 'wait'}`;
    card.pill.textContent = learning ? 'still learning' : alarm?.kind ?? 'alarm';
    card.chart.draw(now, s.normal_low, s.normal_high);
    card.chart.svg.setAttribute('aria-label', `${s.title}: ${card.value.textContent}. ${card.normal.textContent}`);
}

// Draws once for all changes since the last frame.
function plan() {
    if (planned)
        return;
    planned = requestAnimationFrame(() => {
        planned = 0;
        now = Math.max(...[...cards.values()].map((c) => c.sensor.time_ms), 0);
        cards.forEach(draw);
        sum();
    });
}

function sum() {
    const all = [...cards.values()].map((c) => c.sensor), open = [...alarms.values()].filter((a) => a.cleared_ms === null).length;
    const learning = all.filter((s) => s.learning && s.time_ms).length;
    const text = `${several(all.length, 'sensor')}, ` +
        `${open === 0 ? 'no open alarm' : open === 1 ? '1 open alarm' : `${open} open alarms`}.` +
        `${learning ? ` ${learning} still ${learning === 1 ? 'learns' : 'learn'} what is normal.` : ''}`;
    if ($('sensors-sum').textContent !== text)
        $('sensors-sum').textContent = text;
}

// ---- alarms

function alarmed(a) {
    if (!quiet && a.cleared_ms === null && alarms.get(a.id)?.severity !== a.severity)
        $('sensors-live').textContent = a.text;
    alarms.set(a.id, { ...alarms.get(a.id), ...a });
    const list = [...alarms.values()].sort((x, y) => (x.cleared_ms !== null) - (y.cleared_ms !== null) || y.id - x.id);
    list.slice(MAX_ALARMS).forEach((x) => alarms.delete(x.id));
    redraw($('sensors-alarms'), () => list.slice(0, MAX_ALARMS).filter((x, i) => x.cleared_ms === null || i < 5).map(alarmCard));
}

const time = (ms) => new Date(ms).toLocaleTimeString();

function alarmCard(a) {
    const open = a.cleared_ms === null, note = h('div', {});
    const where = [a.machine_title, ...a.channels.map((c) => c.title)].filter(Boolean).join(', ');
    return h('article', { class: open ? `alarm ${severities[a.severity]}` : 'alarm over', 'aria-label': a.text, 'data-alarm': a.id },
        h('div', { class: 'alarm-head' },
            h('span', { class: `pill ${open ? severities[a.severity] : 'good'}` }, open ? `${a.severity} ${a.kind}` : 'over'),
            h('span', { class: 'hint' }, `${where}, since ${time(a.since_ms)}${open ? '' : `, over at ${time(a.cleared_ms)}`}` +
                `${a.acknowledged ? `, acknowledged${a.acknowledged_by ? ` by ${a.acknowledged_by}` : ''}` : ''}`),
            open && !a.acknowledged && h('button', {
                type: 'button', class: 'button small', id: `ack-${a.id}`,
                onclick: async (e) => {
                    e.target.disabled = true;
                    try {
                        await getJson('/v1/alarms/acknowledge', { body: { id: a.id } });
                    } catch (error) {
                        e.target.disabled = false;
                        note.replaceChildren(errorBox(error));
                    }
                },
            }, 'Acknowledge')),
        h('p', { class: 'alarm-text' }, a.text),
        a.passage && h('blockquote', { class: 'passage' }, h('p', {}, a.passage), h('cite', {}, a.source)), note);
}
