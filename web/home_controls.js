// home_controls.js - what can be clicked at a thing of the home. A click becomes a command in words, which takes the same
// way as a typed one: through the gate, with its limits and confirmations.
import { h } from './lib.js';

// ability -> [[value, what the button says, the command], ...]; {x}: the thing
const choices = {
    power: [['on', 'On', 'turn on {x}'], ['off', 'Off', 'turn off {x}']],
    open: [['open', 'Open', 'open {x}'], ['closed', 'Closed', 'close {x}']],
    lock: [['locked', 'Locked', 'lock {x}'], ['unlocked', 'Unlocked', 'unlock {x}']],
    run: [['running', 'Run', 'start {x}'], ['stopped', 'Stop', 'stop {x}']],
    alarm: [['armed', 'Armed', 'arm {x}'], ['disarmed', 'Disarmed', 'disarm {x}']],
};
// ability -> [from, to, step, unit, the command]; limits of the thing come before these
const ranges = {
    brightness: [0, 100, 5, '%', 'set the brightness of {x} to {v} percent'],
    position: [0, 100, 5, '%', 'open {x} to {v} percent'],
    volume: [0, 100, 5, '%', 'set the volume of {x} to {v} percent'],
    temperature: [5, 30, 0.5, '°C', 'set {x} to {v} degrees'],
};
const same = { opened: 'open', started: 'running', paused: 'stopped', shut: 'closed' };
const talks = { media: ['run'], cover: ['run'], fan: ['run'], light: [], heater: ['run'], appliance: ['power', 'open'] }; // only in words

// "the kitchen lights", "pump 3".
export function spoken(thing, room) {
    const name = room && !thing.name.toLowerCase().includes(room.toLowerCase()) ? `${room} ${thing.name}` : thing.name;
    return /\d$/.test(name) ? name : `the ${name}`;
}

const label = (ability) => ability[0].toUpperCase() + ability.slice(1);

function segment(thing, ability, name, say) {
    const buttons = choices[ability].map(([value, text, command]) => h('button', {
        type: 'button', 'data-value': value, 'aria-pressed': 'false', onclick: () => say(command.replace('{x}', name), thing.id),
    }, text));
    return h('span', { class: 'segment', role: 'group', 'aria-label': `${label(ability)} of ${name}`, 'data-ability': ability }, buttons);
}

function range(thing, ability, name, say) {
    const [from, to, step, unit, command] = ranges[ability], limit = thing.limits?.[ability] ?? {};
    const low = limit.min ?? from, high = limit.max ?? to, out = h('output', {}, '–');
    const input = h('input', { type: 'range', min: String(low), max: String(high), step: String(step), 'aria-label': `${label(ability)} of ${name}` });
    input.addEventListener('input', () => { out.textContent = `${input.value} ${unit}`; });
    input.addEventListener('change', () => say(command.replace('{x}', name).replace('{v}', input.value), thing.id));
    return h('label', { class: 'dial', 'data-ability': ability }, h('span', {}, label(ability)), input, out);
}

// The first control stands beside the name, the others below it: {first, rest}.
export function controls(thing, room, say) {
    const name = spoken(thing, room), words = talks[thing.kind] ?? [];
    const all = (thing.abilities ?? []).filter((a) => (choices[a] || ranges[a]) && !words.includes(a))
        .map((a) => (choices[a] ? segment(thing, a, name, say) : range(thing, a, name, say)));
    return all[0]?.className === 'segment' ? { first: all[0], rest: all.slice(1) } : { first: null, rest: all };
}

// Shows a state at its control; true: that one is always visible, so the state needs no words.
export function reflect(li, state) {
    const place = li.querySelector(`[data-ability="${state.ability}"]`);
    if (!place)
        return false;
    if (place.className === 'dial') {
        const input = place.querySelector('input');
        if (typeof state.value !== 'number' || input === document.activeElement)
            return false;
        input.value = state.value;
        place.querySelector('output').textContent = `${Number(state.value.toFixed(1))} ${ranges[state.ability][3]}`;
        return false;
    }
    const value = same[state.value] ?? state.value;
    let shown = false;
    for (const b of place.children) {
        b.setAttribute('aria-pressed', String(b.dataset.value === value));
        shown ||= b.dataset.value === value;
    }
    return shown && !place.closest('.thing-more');
}
