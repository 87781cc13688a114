// chat_tokens.js - the tokens of an answer with their probabilities and alternatives.
import { h, percent } from './lib.js';

const shade = (p) => (p >= 0.9 ? 0 : p >= 0.5 ? 1 : p >= 0.1 ? 2 : 3);
const visible = (text) => text.replaceAll('\n', '↵').replaceAll('\t', '⇥') || '∅';
const share = (p) => (p > 0 && p < 0.005 ? '< 1 %' : percent(p));

// What the server says about one token, as {text, p, others: [[text, p], ...]}.
export function tokenOf(entry) {
    return { text: entry.token, p: Math.exp(entry.logprob), others: (entry.top_logprobs ?? []).map((o) => [o.token, Math.exp(o.logprob)]) };
}

function details(token) {
    return [h('p', {}, h('code', {}, visible(token.text)), ` ${share(token.p)}`),
        h('ul', {}, token.others.map(([text, p]) => {
            const fill = h('span', { class: 'fill' });
            fill.style.width = `${Math.max(1, p * 100)}%`;
            return h('li', {}, h('code', {}, visible(text)), h('span', { class: 'track', 'aria-hidden': 'true' }, fill), h('span', { class: 'num' }, share(p)));
        }))];
}

// Hovering over a token, or moving to it with the arrow keys, shows its alternatives below.
export function tokenView(tokens) {
    const panel = h('div', { class: 'token-details', role: 'status' },
        h('p', { class: 'hint' }, 'Point at a token, or move with the arrow keys, to see its probability and what else was likely.'));
    const buttons = tokens.map((token, i) => {
        const show = () => panel.replaceChildren(...details(token));
        return h('span', { // a button would not break its line as text does
            role: 'button', class: `token p${shade(token.p)}`, tabindex: i === 0 ? '0' : '-1', onmouseenter: show, onfocus: show, onclick: show,
            'aria-label': token.text.trim() === '' ? 'space' : null,
        }, token.text.includes('\n') ? `${visible(token.text)}\n` : token.text || '∅');
    });
    const line = h('div', {
        class: 'tokens', role: 'group', 'aria-label': 'Tokens of the answer', onkeydown: (e) => {
            const at = buttons.indexOf(document.activeElement), step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
            const next = step ? buttons[at + step] : e.key === 'Home' ? buttons[0] : e.key === 'End' ? buttons.at(-1) : null;
            if (at < 0 || !next)
                return;
            e.preventDefault();
            buttons[at].tabIndex = -1;
            next.tabIndex = 0;
            next.focus();
        },
    }, buttons);
    return h('div', { class: 'token-view' }, line, panel);
}
