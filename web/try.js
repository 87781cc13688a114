// try.js - the Try view: one small form for each thing that models do besides writing text.
import { $, Wrong, empty, errorBox, getJson, h, ms, percent, request, store, stored, whenLoaded, words } from './lib.js';
import { cosine, drawMap } from './try_map.js';

const lines = (text) => text.split('\n').map((l) => l.trim()).filter(Boolean);

function bar(label, p, text = percent(p)) {
    const fill = h('span', { class: p < 0.5 ? 'fill low' : 'fill' });
    fill.style.width = `${Math.max(1, Math.min(1, p) * 100)}%`;
    return h('li', { class: 'rank' }, h('span', {}, label), h('span', { class: 'track', 'aria-hidden': 'true' }, fill), h('span', { class: 'num' }, text));
}

// The text with its spans marked; positions are those of characters in the text.
function marked(text, spans) {
    const out = [], letters = [...text];
    let at = 0;
    for (const s of [...spans].sort((a, b) => a.start - b.start)) {
        out.push(letters.slice(at, s.start).join(''), h('mark', { class: `ent ent-${s.label.length % 5}`, title: percent(s.score) },
            letters.slice(s.start, s.end).join(''), h('span', { class: 'ent-type' }, words(s.label))));
        at = s.end;
    }
    out.push(letters.slice(at).join(''));
    return h('p', { class: 'clause-text' }, ...out);
}

function numbers(text) {
    const rows = lines(text).map((l) => l.split(/[\s,;]+/).filter(Boolean).map((x) => (x === '-' || x === 'null' ? null : Number(x))));
    if (rows.some((r) => r.some(Number.isNaN)))
        throw new Wrong('Enter numbers, separated by spaces: a line for each row, - for a missing value.');
    return rows;
}

// By what a model can do. fields: [name, label, rows (0: a number, -1: a checkbox), example]; body: the request; show: the answer.
const tools = {
    classify: {
        title: 'Classify', path: '/v1/classify', about: 'Which of the labels that the model knows fits a text.',
        fields: [['input', 'Texts, one per line', 3, 'turn off the kitchen lights\nwill it rain tomorrow?']],
        body: (v) => ({ input: lines(v.input), top: 5 }),
        show: (a, v) => a.data.map((d, i) => h('section', {}, h('h2', {}, lines(v.input)[i]), h('ul', { class: 'ranks' }, (d.labels ?? []).map((l) => bar(words(l.label), l.score))))),
    },
    tag: {
        title: 'Tag', path: '/v1/entities', about: 'Names, places, times and values in a text.',
        fields: [['input', 'Texts, one per line', 3, 'wake me at seven tomorrow\nset the heating in the bedroom to 19 degrees']],
        body: (v) => ({ input: lines(v.input) }),
        show: (a, v) => a.data.map((d, i) => (d.spans.length > 0 ? marked(lines(v.input)[i], d.spans) : h('p', {}, lines(v.input)[i], ' ', h('span', { class: 'hint' }, 'nothing found')))),
    },
    embed: {
        title: 'Embed', path: '/v1/embeddings', about: 'Texts as points: what means the same lies close together.',
        fields: [['input', 'Texts, one per line', 7, 'turn on the lights\nswitch on the lamp\nit is too dark here\nset a timer for ten minutes\nremind me in an hour\nwhat is the weather like\nwill it rain tomorrow']],
        body: (v) => ({ input: lines(v.input) }),
        show: (a, v) => {
            const texts = lines(v.input), vectors = a.data.map((d) => d.embedding);
            const nearest = (i) => texts.map((_, k) => [k, k === i ? -2 : cosine(vectors[i], vectors[k])]).sort((x, y) => y[1] - x[1])[0];
            return texts.length < 3 ? [h('p', {}, texts.length === 2 ? `Their similarity is ${cosine(...vectors).toFixed(2)}.` : `${vectors[0].length} numbers. Add more lines for a map.`)]
                : [h('div', { class: 'map-side' }, drawMap(texts, vectors), h('ol', { class: 'map-list' }, texts.map((t, i) => {
                    const [k, c] = nearest(i);
                    return h('li', {}, t, h('span', { class: 'hint' }, ` nearest: ${k + 1}, similarity ${c.toFixed(2)}`));
                })))];
        },
    },
    rerank: {
        title: 'Rerank', path: '/v1/rerank', about: 'Documents in the order in which they answer a question.',
        fields: [['query', 'Question', 1, 'how do I descale the coffee machine?'],
            ['documents', 'Documents, one per line', 5, 'Empty the drip tray every day.\nUse a descaling liquid once a month and rinse twice.\nThe garden hose is in the shed.']],
        body: (v) => ({ query: v.query, documents: lines(v.documents) }),
        show: (a, v) => [h('ol', { class: 'ranks' }, a.results.map((r) => bar(lines(v.documents)[r.index], r.relevance_score, r.relevance_score.toFixed(3))))],
    },
    score: {
        title: 'Score', path: '/v1/score', about: 'How unusual, or how likely, rows of numbers are; the rows of a series follow each other in time.',
        fields: [['input', 'Numbers, a row per line', 9, '2.5\n2.6\n2.4\n2.5\n2.6\n2.5\n2.4\n2.5\n6.2'], ['series', 'They are one series', -1, true]],
        body: (v) => (v.series ? { series: numbers(v.input) } : { input: numbers(v.input) }),
        show: (a, v) => {
            const rows = lines(v.input), all = a.data.flatMap((d) => d.scores), n = all.length / rows.length; // scores of a row
            const first = rows.map((_, i) => all[i * n]), most = Math.max(...first.map(Math.abs)) || 1;
            return [h('ol', { class: 'ranks' }, rows.map((row, i) => bar(row, Math.abs(first[i]) / most, first[i].toPrecision(3))))];
        },
    },
    summarize: {
        title: 'Summarize', path: '/v1/summarize', about: 'The sentences that say most.',
        fields: [['input', 'A text', 8, 'The pump was installed in 2019. It moves cooling water from the basin to the three presses. In March its bearing was replaced after it had run hot twice. ' +
            'Since then the vibration has stayed below two millimetres a second. The next inspection is due in autumn. Spare seals are kept in cabinet four.'],
        ['count', 'Sentences at most', 0, '2']],
        body: (v) => ({ input: v.input, max_sentences: Math.max(1, Number(v.count) || 2) }),
        show: (a) => a.data.map((d) => h('p', { class: 'try-text' }, d.summary)),
    },
};
let models = [], current = 'classify';

export function start() {
    current = tools[stored('try', '')] ? stored('try', '') : 'classify';
    $('try-tabs').replaceChildren(...Object.entries(tools).map(([name, tool]) => h('button', {
        type: 'button', role: 'tab', id: `try-tab-${name}`, 'aria-controls': 'try-panel', onclick: () => choose(name), onkeydown: move,
    }, tool.title)));
    $('try-form').addEventListener('submit', (e) => {
        e.preventDefault();
        run();
    });
    choose(current);
}

export async function enter() {
    try {
        models = (await getJson('/v1/models')).data;
    } catch (e) {
        models = [];
        $('try-out').replaceChildren(...e.status ? [errorBox(e, ['Try again', enter])] : []);
        return;
    }
    choose(current);
}

export function focus() {
    $('try-fields').querySelector('textarea, input')?.focus();
}

// The arrow keys go from tab to tab.
function move(e) {
    const names = Object.keys(tools), step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step)
        return;
    e.preventDefault();
    choose(names[(names.indexOf(current) + step + names.length) % names.length]);
    $(`try-tab-${current}`).focus();
}

const key = (name) => `try-${current}-${name}`;

function choose(name) {
    const tool = tools[name];
    current = name;
    store('try', name);
    for (const b of $('try-tabs').children) {
        b.setAttribute('aria-selected', String(b.id === `try-tab-${name}`));
        b.tabIndex = b.id === `try-tab-${name}` ? 0 : -1;
    }
    $('try-panel').setAttribute('aria-labelledby', `try-tab-${name}`);
    $('try-about').textContent = tool.about;
    $('try-fields').replaceChildren(...tool.fields.map(([field, label, rows, example]) => {
        if (rows < 0)
            return h('label', { class: 'check' }, h('input', { name: field, type: 'checkbox', checked: example }), label);
        const input = rows > 1 ? h('textarea', { name: field, rows: String(rows) }) : h('input', { name: field, type: rows ? 'text' : 'number', min: '1' });
        input.value = stored(key(field), example);
        input.addEventListener('input', () => store(key(field), input.value));
        return h('label', { class: 'field' }, h('span', {}, label), input);
    }));
    // those made for it first: an encoder can do several things, but has learned one
    const able = models.filter((m) => m.task !== 'route' && (m.kinds.includes(name) || m.kinds.length === 0 && m.task === name))
        .sort((a, b) => (b.task === name) - (a.task === name));
    $('try-model').replaceChildren(...able.map((m) => h('option', { value: m.id }, m.id)));
    const none = $('try-form').hidden = models.length > 0 && able.length === 0;
    $('try-out').replaceChildren(...none ? [empty(`No model here can ${tool.title.toLowerCase()}`, h('a', { href: '#models' }, 'Add one'), ' in Models.')] : []);
}

async function run() {
    const tool = tools[current], mine = current, out = $('try-out'), values = {};
    for (const [field, , rows] of tool.fields) {
        const input = $('try-fields').querySelector(`[name="${field}"]`);
        values[field] = rows < 0 ? input.checked : input.value.trim();
    }
    if (Object.values(values).includes('')) {
        focus();
        return;
    }
    out.replaceChildren(h('p', { class: 'hint', role: 'status' }, 'Asking…'));
    const began = performance.now();
    try {
        const body = { model: $('try-model').value, ...tool.body(values) };
        const answer = await (await whenLoaded(() => request(tool.path, { body }), (why) => out.replaceChildren(h('p', { class: 'hint' }, why)))).json();
        const took = performance.now() - began;
        if (mine !== current)
            return;
        out.replaceChildren(...tool.show(answer, values), h('p', { class: 'meta', role: 'status' }, `${answer.model ?? body.model}, ${ms(took)}`),
            h('details', { class: 'more' }, h('summary', {}, 'Request and answer'), h('pre', { class: 'json', tabindex: '0' },
                `POST ${tool.path}\n${JSON.stringify(body)}\n\n${JSON.stringify(answer, null, 1).slice(0, 4000)}`)));
    } catch (e) {
        out.replaceChildren(errorBox(e, ['Try again', run]));
    }
}
