// chat_turn.js - one turn of the conversation: what was said, what it cost, what can be done with it.
import { copyButton, errorBox, h } from './lib.js';
import { markdown } from './markdown.js';
import { tokenView } from './chat_tokens.js';

const tool = (label, onclick) => h('button', { type: 'button', class: 'tool', onclick }, label);

// Replaces an element by a field with its text, until it is saved or left.
function edit(element, text, label, save) {
    const field = h('textarea', { 'aria-label': label, rows: String(Math.min(12, text.split('\n').length + 1)) });
    const done = (saved) => {
        form.replaceWith(element);
        if (saved && field.value.trim() && field.value !== text)
            save(field.value);
    };
    const form = h('form', {
        class: 'edit', onsubmit: (e) => {
            e.preventDefault();
            done(true);
        }, onkeydown: (e) => {
            if (e.key === 'Escape')
                done(false);
        },
    }, field, h('div', { class: 'row' }, h('button', { class: 'button small primary', type: 'submit' }, label),
        h('button', { class: 'button small', type: 'button', onclick: () => done(false) }, 'Cancel')));
    field.value = text;
    element.replaceWith(form);
    field.focus();
}

// actions.edit(text): the conversation goes on from here with another text.
export function userTurn(message, actions) {
    const bubble = h('div', { class: 'bubble' }, message.content);
    return h('li', { class: 'message user' }, h('span', { class: 'who' }, 'You'), bubble,
        h('div', { class: 'tools' }, copyButton(() => message.content, 'Copy'),
            tool('Edit', () => edit(bubble, message.content, 'Send', actions.edit))));
}

// One answer; its view follows the answer as it comes.
export function answerView(model, actions) {
    const bubble = h('div', { class: 'bubble prose' }), meta = h('p', { class: 'meta' }), tools = h('div', { class: 'tools' });
    const element = h('div', { class: 'answer', role: 'group', 'aria-label': `Answer of ${model}` }, h('span', { class: 'who' }, model), bubble, meta, tools);
    let planned = 0, text = '', tokens = [], shown = false, over = false;
    const paint = () => {
        cancelAnimationFrame(planned);
        planned = 0;
        bubble.replaceChildren(...shown ? [tokenView(tokens)] : markdown(text, { breaks: true }),
            ...over && !text ? [h('p', { class: 'hint' }, 'The model had nothing to say.')] : []);
        actions.grown?.();
    };
    const toggle = (e) => {
        shown = !shown;
        e.currentTarget.setAttribute('aria-pressed', String(shown));
        paint();
    };
    return {
        element,
        wait(why) {
            meta.textContent = why;
        },
        begin() {
            bubble.classList.add('streaming');
            tools.replaceChildren();
        },
        say(all, figures) {
            text = all;
            meta.textContent = figures;
            planned ||= requestAnimationFrame(paint);
        },
        // last: the newest answer, which can be continued and made again.
        end(answer, last) {
            bubble.classList.remove('streaming');
            over = true;
            text = answer.content;
            tokens = answer.tokens ?? [];
            meta.textContent = answer.meta ?? '';
            paint();
            const probabilities = tokens.length > 0 && tool('Probabilities', toggle);
            if (probabilities)
                probabilities.setAttribute('aria-pressed', 'false');
            tools.replaceChildren(...[copyButton(() => text, 'Copy'),
                last && tool('Continue', actions.proceed),
                last && tool('Regenerate', actions.again),
                tool('Edit', () => edit(bubble, text, 'Save', actions.edit)), probabilities].filter(Boolean));
            actions.grown?.();
        },
        fail(e) {
            bubble.classList.remove('streaming');
            if (!text)
                bubble.remove();
            meta.replaceChildren(errorBox(e, ['Try again', actions.again]));
        },
    };
}

export function assistantTurn(views) {
    return h('li', { class: views.length > 1 ? 'message assistant pair' : 'message assistant' }, h('div', { class: 'answers' }, views.map((v) => v.element)));
}

// What stands after a message that nobody has answered yet.
export function unanswered(again) {
    return h('li', { class: 'message assistant' }, h('p', { class: 'hint' }, 'This message has no answer yet. ',
        h('button', { type: 'button', class: 'button small', onclick: again }, 'Answer it')));
}
