// chat.js - the Chat view: conversations with any decoder of the server, or with two side by side.
import { $, composer, getJson, errorBox, h, icon, store, stored } from './lib.js';
import { asMarkdown, create, download, load, save, title } from './chat_store.js';
import { answerView, assistantTurn, unanswered, userTurn } from './chat_turn.js';
import { fetchAnswer } from './chat_answer.js';

const phrasing = ['timer: pasta; left: 4 minutes', 'sensor: temperature; room: bedroom; value: 21.5 °C; trend: rising',
    'chat: hello', 'anomaly: vibration; machine: pump 3; value: 7.4 mm/s; side: high; normal: 2.1 to 3.0 mm/s'];
const general = ['Why is the sky blue?', 'Write a short poem about the sea', 'Explain recursion with an example', 'List three uses for baking soda'];
// The fields of the sampling settings: id, name in the request, value that is not sent.
const sampling = [['chat-temp', 'temperature'], ['chat-max', 'max_tokens'], ['chat-top-p', 'top_p', 1], ['chat-top-k', 'top_k', 0],
    ['chat-min-p', 'min_p', 0], ['chat-repeat', 'repeat_penalty', 1], ['chat-seed', 'seed', '']];
const NEAR = 48; // pixels from the end that still count as the end
let field, all = [], now, models = [], running = null, following = true;

export function start() {
    field = composer($('chat-form'), $('chat-text'), 'chat', submit);
    restore(stored('chat-settings', {}));
    for (const id of [...sampling.map(([id]) => id), 'chat-system', 'chat-stop', 'chat-probs', 'chat-model', 'chat-second'])
        $(id).addEventListener('input', saveSettings);
    for (const id of ['chat-model', 'chat-second'])
        $(id).addEventListener('change', about);
    $('chat-new').addEventListener('click', () => open(create(), true));
    $('chat-export').addEventListener('click', () => download(`${fileName()}.md`, 'text/markdown', asMarkdown(now, $('chat-system').value.trim())));
    $('chat-export-all').addEventListener('click', () => download('shoal-conversations.json', 'application/json',
        `${JSON.stringify(all.filter((c) => c.messages.length > 0), null, 1)}\n`));
    $('chat-delete-all').addEventListener('click', deleteAll);
    $('chat-latest').addEventListener('click', () => follow(true));
    addEventListener('scroll', watchScroll, { passive: true });
    const wide = matchMedia('(min-width: 60rem)').matches;
    $('chat-side').open = wide;
    all = load();
    open(all.find((c) => c.id === stored('chat-now', '')) ?? all[0] ?? create());
}

export async function enter() {
    field.grow();
    follow(true);
    try {
        const { data } = await getJson('/v1/models');
        fill(data.filter((m) => m.kinds.includes('generate') || (m.kinds.length === 0 && m.task === 'generate')));
    } catch (e) {
        if (e.status)
            $('chat-about').replaceChildren(errorBox(e));
    }
}

export function focus() {
    $('chat-text').focus();
}

const fileName = () => title(now).toLowerCase().replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-|-$/g, '').slice(0, 40) || 'conversation';

// ---- models and settings

function fill(list) {
    models = list;
    const settings = stored('chat-settings', {});
    const option = (m) => h('option', { value: m.id },
        m.state === 'ready' ? m.id : `${m.id} (${m.state === 'failed' ? 'failed' : 'loads on first use'})`);
    for (const [id, was, none] of [['chat-model', settings.model], ['chat-second', settings.second, 'None']]) {
        const select = $(id), value = select.value || was || '';
        select.replaceChildren(...none ? [h('option', { value: '' }, none)] : [], ...list.map(option));
        select.value = list.some((m) => m.id === value) ? value : none ? '' : list[0]?.id ?? '';
        select.disabled = list.length === 0;
    }
    about();
}

function about() {
    const words = $('chat-model').value.startsWith('reply');
    $('chat-about').textContent = models.length === 0 ? '' : words
        ? 'This model only phrases decisions of other models: enter a line like the examples, not a conversation.' : '';
    $('chat-examples').replaceChildren(...(words ? phrasing : general).map((text) => h('li', {}, h('button', {
        type: 'button', class: 'chip', onclick: () => {
            field.set(text);
            submit();
        },
    }, text))));
    empty();
}

function restore(s) {
    $('chat-system').value = s.system ?? '';
    $('chat-stop').value = s.stop ?? '';
    $('chat-probs').checked = s.probs ?? true;
    const before = { temperature: 0, max_tokens: 256, top_p: 1, top_k: 0, min_p: 0, repeat_penalty: 1, seed: '' };
    for (const [id, name] of sampling)
        $(id).value = s[name] ?? before[name];
    showTemp();
}

const showTemp = () => { $('chat-temp-out').textContent = Number($('chat-temp').value).toFixed(1); };

function saveSettings() {
    showTemp();
    store('chat-settings', {
        system: $('chat-system').value, stop: $('chat-stop').value, probs: $('chat-probs').checked,
        model: $('chat-model').value, second: $('chat-second').value,
        ...Object.fromEntries(sampling.map(([id, name]) => [name, $(id).value])),
    });
}

// The messages that the model of a column has seen: its own answers, or those of the first.
function requestBody(model, column, messages) {
    const system = $('chat-system').value.trim(), stop = $('chat-stop').value.split('\n').filter(Boolean);
    const body = {
        model, stream: true, stream_options: { include_usage: true },
        messages: [...(system ? [{ role: 'system', content: system }] : []), ...messages.map((m) => (m.role === 'user' ? { role: 'user', content: m.content }
            : { role: 'assistant', content: (m.answers[column] ?? m.answers.find(Boolean))?.content ?? '' }))],
    };
    for (const [id, name, off] of sampling) {
        const text = $(id).value.trim(), value = Number(text);
        if (text !== '' && Number.isFinite(value) && value !== off)
            body[name] = value;
    }
    if (stop.length > 0)
        body.stop = stop;
    if ($('chat-probs').checked && !['route', 'flow'].includes(models.find((m) => m.id === model)?.task))
        Object.assign(body, { logprobs: true, top_logprobs: 5 });
    return body;
}

// ---- conversations

function keepAll() {
    now.at = Date.now();
    all = [now, ...all.filter((c) => c !== now)];
    store('chat-now', now.id);
    $('chat-full').hidden = save(all);
    drawList();
}

function drawList() {
    $('chat-list').replaceChildren(...all.filter((c) => c.messages.length > 0).map((c) => h('li', {},
        h('button', { type: 'button', class: 'conversation', 'aria-current': c === now ? 'true' : null, onclick: () => open(c, true) }, title(c)),
        h('button', { type: 'button', class: 'tool', 'aria-label': `Delete ${title(c)}`, onclick: () => remove(c) }, 'Delete'))));
    const none = $('chat-list').children.length === 0;
    $('chat-none').hidden = !none;
    for (const id of ['chat-export-all', 'chat-delete-all'])
        $(id).hidden = none;
    $('chat-export').hidden = now.messages.length === 0;
}

function remove(c) {
    all = all.filter((x) => x !== c);
    save(all);
    if (c === now)
        open(all[0] ?? create(), true);
    else
        drawList();
    $('chat-new').focus();
}

function deleteAll(e) {
    if (e.target.dataset.sure) {
        all = [];
        save(all);
        open(create(), true);
        $('chat-new').focus();
    }
    const sure = !e.target.dataset.sure;
    e.target.dataset.sure = sure ? 'yes' : '';
    e.target.textContent = sure ? 'Really delete all?' : 'Delete all';
}

function open(c, byHand) {
    running?.stop.abort(); // what has come so far stays in its conversation
    running = null;
    button(false);
    now = c;
    store('chat-now', c.id);
    draw();
    drawList();
    follow(true);
    if (byHand)
        focus();
}

// ---- the log

function empty() {
    const none = now.messages.length === 0;
    $('chat-examples').hidden = !none || models.length === 0;
    $('chat-empty').hidden = !none;
    $('chat-empty').replaceChildren(h('h2', {}, models.length === 0 ? 'No model here can chat' : 'What shall we talk about?'),
        h('p', {}, models.length === 0 ? ['This server has no model that generates text. ', h('a', { href: '#models' }, 'Add one'), '.']
            : 'Answers come from this machine. Conversations stay in this browser.'));
}

function draw() {
    const log = $('chat-log');
    log.replaceChildren(...now.messages.map((m, i) => (m.role === 'user' ? userTurn(m, { edit: (text) => rewrite(i, text) }) : drawnAnswers(m, i))));
    if (now.messages.at(-1)?.role === 'user' && !running)
        log.append(unanswered(again));
    empty();
    follow();
}

function drawnAnswers(m, i) {
    const last = i === now.messages.length - 1;
    return assistantTurn(m.answers.map((a, column) => [a, column]).filter(([a]) => a).map(([a, column]) => {
        const view = answerView(a.model, actionsOf(m, column));
        view.end(a, last);
        return view;
    }));
}

function actionsOf(message, column) {
    return {
        grown: () => follow(),
        again,
        proceed: () => answer(message, column),
        edit: (text) => {
            Object.assign(message.answers[column], { content: text, tokens: undefined, meta: 'edited' });
            keepAll();
            draw();
        },
    };
}

// ---- following the answer, unless the reader has scrolled up

const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR;
let lastY = 0;

function watchScroll() {
    if ($('view-chat').hidden)
        return;
    if (scrollY < lastY - 2 && !atEnd())
        following = false;
    else if (atEnd())
        following = true;
    lastY = scrollY;
    $('chat-latest').hidden = following;
}

function follow(always) {
    if ($('view-chat').hidden)
        return;
    following ||= Boolean(always);
    if (following)
        scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
    lastY = scrollY;
    $('chat-latest').hidden = following;
}

// ---- asking

function button(stops) {
    const b = $('chat-form').querySelector('.send');
    b.setAttribute('aria-label', stops ? 'Stop' : 'Send');
    b.classList.toggle('stops', stops);
    b.replaceChildren(icon(stops ? 'i-stop' : 'i-send'));
}

function submit() {
    if (running) {
        running.stop.abort();
        return;
    }
    const text = $('chat-text').value.trim();
    if (!text || !$('chat-model').value) {
        focus();
        return;
    }
    field.set('');
    if (now.messages.at(-1)?.role === 'user') // it was never answered: this one takes its place
        now.messages.pop();
    now.messages.push({ role: 'user', content: text });
    answer();
}

// What is being written is not wanted any more.
function drop() {
    if (!running)
        return;
    running.dropped = true;
    running.stop.abort();
}

// The conversation goes on from another text.
function rewrite(i, text) {
    drop();
    now.messages = [...now.messages.slice(0, i), { role: 'user', content: text }];
    answer();
}

function again() {
    drop();
    if (now.messages.at(-1)?.role === 'assistant')
        now.messages.pop();
    answer();
}

// Asks for new answers; with a message, which is the last one, a column of it is continued.
async function answer(message, column) {
    const mine = running = { stop: new AbortController(), dropped: false }, conversation = now;
    const names = [$('chat-model').value, $('chat-second').value].filter(Boolean);
    const m = message ?? { role: 'assistant', answers: names.map((model) => ({ model, content: '' })) };
    keepAll();
    draw();
    const views = m.answers.map((a, i) => answerView(a?.model ?? '', actionsOf(m, i)));
    const turn = assistantTurn(views.filter((_, i) => m.answers[i]));
    if (message)
        $('chat-log').lastChild.remove();
    $('chat-log').append(turn);
    follow(true);
    button(true);
    const failed = await Promise.all(m.answers.map((a, i) => {
        if (a && (!message || i === column))
            return one(a, views[i], requestBody(a.model, i, now.messages), mine.stop.signal);
        views[i].end(a ?? { content: '' }, false);
        return false;
    }));
    if (running === mine) {
        running = null;
        button(false);
    }
    if (mine.dropped)
        return;
    if (!message) {
        m.answers = m.answers.map((a, i) => (a.content || !(failed[i] || a.finish === 'stopped') ? a : null));
        if (m.answers.some(Boolean))
            conversation.messages.push(m);
    }
    if (conversation !== now) {
        save(all);
        return;
    }
    keepAll();
    if (!m.answers.some(Boolean) && !failed.some(Boolean))
        draw();
    m.answers.forEach((a, i) => a && !failed[i] && views[i].end(a, true));
    $('chat-live').textContent = m.answers.map((a) => a?.content ?? '').join('\n');
}

// Returns whether it failed.
async function one(a, view, body, signal) {
    view.begin();
    view.say(a.content, '');
    try {
        await fetchAnswer(body, a, view, signal);
        return false;
    } catch (e) {
        view.fail(e);
        return true;
    }
}
