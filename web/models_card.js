// models_card.js - the dialog with everything about one model: its figures, and its card.
import { $, errorBox, h, request } from './lib.js';
import { markdown, outside } from './markdown.js';

const cards = new Map(); // name -> promise of its text
let opener = '', shown = '';

export function start() {
    $('card-close').addEventListener('click', close);
    $('card').addEventListener('close', () => $(opener)?.focus()); // its opener may have been redrawn
    $('card').addEventListener('click', (e) => {
        if (e.target === $('card'))
            close();
    });
}

export const close = () => $('card').close();

function fetchCard(name) {
    if (!cards.has(name)) {
        cards.set(name, request(`/v1/models/${encodeURIComponent(name)}/card`).then((r) => r.text(), (e) => {
            if (e.status === 404) // not every model has one
                return '';
            cards.delete(name); // allows a retry
            throw e;
        }));
    }
    return cards.get(name);
}

// Links to other cards open them; repository paths are shown as text.
const linkOf = (facts) => (text, target) => {
    const other = /^([\w-]+)\.md$/.exec(target);
    return other ? h('button', { type: 'button', class: 'link', onclick: () => open(other[1], facts) }, text) : outside(text, target);
};

// The figures change while the dialog is open.
export function update(facts) {
    if (!$('card').open)
        return;
    const [rows, buttons] = facts(shown);
    $('card-facts').replaceChildren(...rows.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, String(v)))));
    $('card-facts').hidden = rows.length === 0;
    const held = $('card-actions').contains(document.activeElement) ? document.activeElement.id : '';
    $('card-actions').replaceChildren(...buttons);
    if (held)
        $(held)?.focus();
}

// has: false: it has no card.
export async function open(name, facts, has = true) {
    const dialog = $('card'), text = $('card-text');
    shown = name;
    $('card-title').textContent = name;
    text.replaceChildren(h('p', { class: 'hint' }, 'Loading…'));
    if (!dialog.open) {
        opener = `open-card-${name}`;
        dialog.showModal();
    }
    update(facts);
    $('card-body').scrollTop = 0;
    try {
        const card = has ? await fetchCard(name) : '';
        text.replaceChildren(...card ? markdown(card.replace(/^# .*\n/, ''), { link: linkOf(facts) }) : [h('p', { class: 'hint' }, 'This model has no card.')]);
    } catch (e) {
        text.replaceChildren(errorBox(e, ['Try again', () => open(name, facts)]));
    }
}
