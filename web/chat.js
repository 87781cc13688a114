// chat.js - the Chat view: a conversation with any decoder of the server.
import { $, composer, count, errorBox, events, getJson, h, icon, keep, kept, ms, request, whenLoaded } from './lib.js';

const examples = ['timer: pasta; left: 4 minutes', 'sensor: temperature; room: bedroom; value: 21.5 °C; trend: rising',
    'chat: hello', 'anomaly: vibration; machine: pump 3; value: 7.4 mm/s; side: high; normal: 2.1 to 3.0 mm/s'];
let field, messages = [], running = null;

export function start() {
    field = composer($('chat-form'), $('chat-text'), 'chat', submit);
    const settings = kept('chat-settings', { system: '', temp: 0, max: 128 });
    $('chat-system').value = settings.system;
    $('chat-temp').value = settings.temp;
    $('chat-max').value = settings.max;
    showTemp();
    for (const id of ['chat-system', 'chat-temp', 'chat-max', 'chat-model'])
        $(id).addEventListener('input', saveSettings);
    $('chat-model').addEventListener('change', about);
    $('chat-clear').addEventListener('click', clear);
    $('chat-examples').append(...examples.map((text) => h('li', {}, h('button', {
        type: 'button', class: 'chip', onclick: () => {
            field.set(text);
            submit();
        },
    }, text))));
    messages = kept('chat', []);
    messages.forEach((m) => show(m));
    $('chat-side').open = matchMedia('(min-width: 60rem)').matches;
    empty();
}

export async function enter() {
    field.grow();
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

function fill(models) {
    const select = $('chat-model'), was = select.value || kept('chat-settings', {}).model;
    select.replaceChildren(...models.map((m) => h('option', { value: m.id },
        m.state === 'ready' ? m.id : `${m.id} (${m.state === 'failed' ? 'failed' : 'loads on first use'})`)));
    if (models.some((m) => m.id === was))
        select.value = was;
    select.disabled = models.length === 0;
    if (models.length === 0)
        $('chat-about').textContent = 'This server has no model that generates text.';
    else
        about();
}

function about() {
    $('chat-about').textContent = /^reply/.test($('chat-model').value)
        ? 'This model only phrases decisions of other models: enter a line like the examples, not a conversation.' : '';
}

const showTemp = () => { $('chat-temp-out').textContent = Number($('chat-temp').value).toFixed(1); };

function saveSettings() {
    showTemp();
    keep('chat-settings', {
        system: $('chat-system').value, temp: Number($('chat-temp').value),
        max: Number($('chat-max').value) || 128, model: $('chat-model').value,
    });
}

function clear() {
    running?.abort();
    messages = [];
    keep('chat', messages);
    $('chat-log').replaceChildren();
    empty();
    focus();
}

function empty() {
    $('chat-examples').hidden = messages.length > 0;
}

// ---- messages

function show(m) {
    const text = h('div', { class: 'bubble' }, m.content);
    const meta = h('p', { class: 'meta' }, m.meta ?? '');
    $('chat-log').append(h('li', { class: `message ${m.role}` }, h('span', { class: 'who' }, m.role === 'user' ? 'You' : m.model ?? 'Model'),
        text, meta));
    $('chat-log').lastChild.scrollIntoView({ block: 'nearest' });
    return { text, meta };
}

function submit() {
    if (running) {
        running.abort();
        return;
    }
    const text = $('chat-text').value.trim();
    if (!text || !$('chat-model').value) {
        focus();
        return;
    }
    field.set('');
    const m = { role: 'user', content: text };
    messages.push(m);
    keep('chat', messages);
    empty();
    show(m);
    answer();
}

function button(stops) {
    const b = $('chat-form').querySelector('.send');
    b.setAttribute('aria-label', stops ? 'Stop' : 'Send');
    b.classList.toggle('stops', stops);
    b.replaceChildren(icon(stops ? 'i-stop' : 'i-send'));
}

function requestBody(model) {
    const system = $('chat-system').value.trim();
    return {
        model, stream: true, stream_options: { include_usage: true },
        temperature: Number($('chat-temp').value), max_tokens: Number($('chat-max').value) || 128,
        messages: [...(system ? [{ role: 'system', content: system }] : []),
            ...messages.filter((m) => !m.failed).map(({ role, content }) => ({ role, content }))],
    };
}

async function answer() {
    const model = $('chat-model').value, m = { role: 'assistant', content: '', model };
    const body = requestBody(model), view = show(m), time = { begin: performance.now(), first: 0, last: 0, n: 0 };
    running = new AbortController();
    const { signal } = running;
    button(true);
    view.text.classList.add('streaming');
    try {
        const response = await whenLoaded(() => request('/v1/chat/completions', { body, signal }),
            (why) => { view.meta.textContent = why; }, signal);
        for await (const { data } of events(response)) {
            if (data === '[DONE]')
                break;
            take(JSON.parse(data), m, view, time);
        }
    } catch (e) {
        if (e.name === 'AbortError')
            m.finish = 'stopped';
        else
            fail(e, view);
    }
    view.text.classList.remove('streaming');
    running = null;
    button(false);
    if (m.content || m.finish) {
        m.meta = figures(m, time);
        view.meta.textContent = m.meta;
        messages.push(m);
        keep('chat', messages);
        $('chat-live').textContent = m.content;
    }
}

function take(chunk, m, view, time) {
    if (chunk.error)
        throw new Error(chunk.error.message);
    const choice = chunk.choices[0], piece = choice?.delta?.content;
    if (chunk.usage)
        time.tokens = chunk.usage.completion_tokens;
    if (choice?.finish_reason)
        m.finish = choice.finish_reason;
    if (!piece)
        return;
    time.last = performance.now();
    time.first ||= time.last;
    time.n++;
    m.content += piece;
    view.text.textContent = m.content;
    view.meta.textContent = figures(m, time);
}

function figures(m, time) {
    /* rate over the whole time, including prefill: the gaps between tokens that arrive together mean nothing */
    const n = time.tokens ?? time.n, took = time.last - time.begin;
    const parts = [`${n} tokens`];
    if (time.last && took > 0)
        parts.push(`${count(Math.round((n * 1000) / took))} tokens/s`);
    if (time.first)
        parts.push(`first after ${ms(time.first - time.begin)}`);
    if (m.finish === 'length')
        parts.push('cut at the maximum length');
    if (m.finish === 'stopped')
        parts.push('stopped');
    return parts.join(' · ');
}

// Puts the message back into the field, so that it can be sent again.
function fail(e, view) {
    const last = messages.pop();
    keep('chat', messages);
    view.meta.replaceChildren(errorBox(e, ['Send again', () => {
        for (const gone of [...$('chat-log').children].slice(-2))
            gone.remove();
        if ($('chat-text').value.trim() === '')
            field.set(last.content);
        submit();
    }]));
    if (!view.text.textContent)
        view.text.remove();
    if ($('chat-text').value === '')
        field.set(last.content);
}
