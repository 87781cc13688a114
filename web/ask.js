// ask.js - the Ask view: sends a text to /v1/process and shows all details of the answer.
import { $, Gone, Refused, composer, days, empty, errorBox, events, getJson, h, keep, kept, moment, ms, offers, percent, request, whenLoaded, words } from './lib.js';
import { look } from './ring.js';
import * as voice from './voice.js';

const examples = [
    'turn off the kitchen lights and set the heating to 19 degrees',
    'set a timer for ten minutes',
    'what is 7 times 8',
    'remind me to call Anna at six',
    'dim the bedroom lights to 40 percent',
    'tell me a joke',
];
const MAX_TURNS = 30;
let field, history = []; // answers, oldest first; kept while the tab is open
let session; // "it" and "yes" refer to earlier turns of it

function newSession() {
    session = `page-${Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('')}`;
    keep('ask-session', session);
}

export function start() {
    field = composer($('ask-form'), $('ask-text'), 'ask', send);
    $('ask-examples').append(...examples.map((text) => h('li', {},
        h('button', {
            type: 'button', class: 'chip', onclick: () => {
                field.set(text);
                send();
            },
        }, text))));
    session = kept('ask-session', '');
    if (!session)
        newSession();
    history = kept('asks', []);
    for (const { text, answer, page, limit, enforced } of history)
        newTurn(text).done(answer, page, limit, enforced);
    for (const old of $('ask-turns').querySelectorAll('details.more'))
        old.open = false;
    $('ask-live').textContent = '';
    $('ask-clear').addEventListener('click', () => {
        history = [];
        keep('asks', history);
        newSession();
        $('ask-turns').replaceChildren();
        $('ask-clear').hidden = true;
        focus();
    });
    voice.start({ heard, session: () => session });
    $('ask-budget').value = kept('budget', 100);
    $('ask-enforce').checked = kept('enforce', false);
    $('ask-budget').addEventListener('input', () => keep('budget', budget()));
    $('ask-enforce').addEventListener('change', (e) => keep('enforce', e.target.checked));
}

// Commands need a home, and a model that understands them.
async function understands() {
    const [home, { data }] = await Promise.all([offers('home'), getJson('/v1/models')]);
    return home && data.some((m) => m.task === 'classify');
}

export async function enter() {
    field.grow();
    const able = await understands().catch(() => true); // what is wrong is reported when asking
    $('ask-under').hidden = !able; // the form stays: nodes with the models may come
    $('ask-note').replaceChildren(...able ? [] : [empty('This server takes no commands',
        'They need the models that come with Shoal. You can still use ', h('a', { href: '#chat' }, 'Chat'), ' and ', h('a', { href: '#try' }, 'Try'), '.')]);
}

export function focus() {
    $('ask-text').focus();
}

export const leave = () => voice.stop();

const budget = () => Math.max(1, Number($('ask-budget').value) || 100);

function send() {
    const text = $('ask-text').value.trim();
    if (!text) {
        focus();
        return;
    }
    field.set('');
    focus();
    ask(text);
}

// confirm: the token of actions that wait for a yes.
async function ask(text, confirm) {
    const turn = newTurn(text), began = performance.now();
    const body = confirm ? { confirm, stream: true, explain: true } : { text, stream: true, explain: true };
    const limit = budget(), enforced = $('ask-enforce').checked;
    if (enforced)
        body.latency_budget_ms = limit;
    try {
        const response = await whenLoaded(() => request('/v1/process', { body, session }), (why) => turn.wait(why));
        turn.wait('');
        let complete = false;
        for await (const { event, data } of events(response)) {
            const v = JSON.parse(data);
            if (event === 'plan') {
                turn.plan(v);
            } else if (event === 'text') {
                turn.say(v.text);
            } else if (event === 'done') {
                answered(turn, { text, answer: v, page: performance.now() - began, limit, enforced });
                complete = true;
            } else if (event === 'error') {
                throw Object.assign(new Error(v.error.message), { stream: v.error });
            }
        }
        if (!complete)
            throw new Gone('the answer was interrupted');
    } catch (e) {
        turn.fail(e.stream ? fromStream(e.stream) : e);
        if ($('ask-text').value === '') // keep the typed text
            field.set(text);
    }
}

function answered(turn, one) {
    turn.done(one.answer, one.page, one.limit, one.enforced);
    history = [...history, one].slice(-MAX_TURNS);
    keep('asks', history);
    if (one.answer.actions.some((a) => a.scheduled_id))
        look();
}

// A turn that was spoken; its events come from voice.js.
function heard(text, sound) {
    const turn = newTurn(text), began = performance.now();
    turn.play(sound);
    return {
        plan: turn.plan, text: turn.say, error: (e) => turn.fail(fromStream(e)),
        done: (answer) => answered(turn, { text, answer, page: performance.now() - began, limit: budget() }),
    };
}

// Makes an error inside a stream look like an error response.
function fromStream(error) {
    return new Refused(error.type === 'timeout_error' ? 504 : 500, error, new Headers());
}

// ---- one turn

function newTurn(text) {
    const reply = h('p', { class: 'reply streaming' });
    const meta = h('p', { class: 'meta' });
    const inside = h('div', { class: 'turn-grid' });
    const more = h('details', { class: 'more', open: true, hidden: true },
        h('summary', {}, 'How it was answered'), inside);
    const turn = h('article', { class: 'turn', 'aria-label': text },
        h('h2', { class: 'asked' }, text), reply, meta, more);
    const list = $('ask-turns');
    for (const old of list.querySelectorAll('details.more'))
        old.open = false;
    list.prepend(turn);
    $('ask-clear').hidden = false;
    while (list.children.length > MAX_TURNS)
        list.lastChild.remove();
    let said = '', happened = false;
    return {
        play(sound) {
            reply.after(h('button', { type: 'button', class: 'button small', onclick: () => new Audio(sound).play() }, 'Play what I said'));
        },
        wait(why) {
            meta.textContent = why && `Waiting: ${why}`;
        },
        plan(v) {
            happened = v.actions.some((a) => did.has(a.result));
            inside.replaceChildren(actionsBlock(v.actions), clausesBlock(v.clauses));
            more.hidden = false;
        },
        say(piece) {
            said += piece;
            reply.textContent = said;
        },
        done(v, page, limit, enforced) {
            reply.classList.remove('streaming');
            reply.textContent = v.reply;
            inside.replaceChildren(actionsBlock(v.actions), clausesBlock(v.clauses), timeBlock(v, limit, enforced));
            more.hidden = false;
            meta.replaceChildren(h('strong', {}, ms(v.total_ms)), ' in the models, ',
                h('strong', {}, ms(page)), ' to this page');
            $('ask-live').textContent = v.reply;
        },
        fail(e) {
            reply.classList.remove('streaming');
            meta.replaceChildren();
            const box = errorBox(e, ['Ask again', () => {
                if ($('ask-text').value.trim() === text)
                    field.set('');
                turn.remove();
                ask(text);
            }]);
            reply.after(box);
            if (happened) // an error never says that nothing came of it
                box.before(h('p', { class: 'hint' }, 'The action below was carried out: only the answer is missing.'));
            if (!said)
                reply.remove();
        },
    };
}

// ---- actions

function json(value) {
    const out = h('pre', { class: 'json' });
    const parts = JSON.stringify(value, null, 1).replaceAll(/\n */g, ' ').split(/("(?:[^"\\]|\\.)*"(?=:)|"(?:[^"\\]|\\.)*"|-?\d[\d.e+-]*|true|false|null)/);
    parts.forEach((p, i) => {
        const key = i % 2 && p.startsWith('"') && parts[i + 1]?.startsWith(':');
        out.append(i % 2 ? h('span', { class: key ? 'j-key' : p.startsWith('"') ? 'j-str' : 'j-num' }, p) : p);
    });
    return out;
}

const results = {
    done: ['good', 'done'], scheduled: ['wait', 'scheduled'], ask: ['wait', 'asks for details'],
    unknown: ['bad', 'unknown device'], failed: ['bad', 'failed'], confirm: ['wait', 'asks for a yes'],
    refused: ['bad', 'refused'], unsure: ['wait', 'not sure'], simulated: ['wait', 'simulated'], sent: ['good', 'sent'],
};
const did = new Set(['done', 'sent', 'simulated', 'scheduled']);

// What came of an action, in words.
function outcome(a) {
    const why = a.reason ? `: ${a.reason}` : '';
    return a.result === 'simulated' ? (a.reason ? `Nothing happened${why}.` : 'Only simulated: no device is connected.') :
        a.result === 'scheduled' && a.simulated ? 'It will only be simulated: no device is connected.' :
            a.result === 'sent' ? 'Sent. The device does not confirm what it does.' :
                a.reason ? `It was not done${why}.` : '';
}

function actionsBlock(actions) {
    return h('section', { class: 'block' }, h('h3', {}, actions.length === 1 ? 'Action' : 'Actions'),
        actions.length === 0 && h('p', { class: 'hint' }, 'No actions.'),
        actions.map((a) => {
            const [kind, label] = results[a.result] ?? ['wait', a.result];
            return h('div', { class: 'action' },
                h('div', { class: 'action-head' }, h('span', { class: 'action-name' }, words(a.action)),
                    h('span', { class: `pill ${kind}` }, label)),
                outcome(a) && h('p', { class: 'hint' }, outcome(a)),
                a.due && h('p', { class: 'hint' }, `${a.action === 'set_timer' ? 'Rings' : 'Happens'} at ${moment(a.due, true)}${a.date?.startsWith('every') ? `, ${days(a.date)}` : ''}`),
                a.ends && h('p', { class: 'hint' }, `Ends at ${moment(a.ends, true)}`),
                a.rest && h('p', { class: 'hint' }, `Not understood: ${a.rest}`),
                a.unknown && h('p', { class: 'hint' }, `Not in this home: ${a.unknown}`),
                a.choices && h('p', { class: 'hint' }, `One of: ${a.choices.join(', ')}`),
                a.token && h('button', { type: 'button', class: 'button small', onclick: () => ask('Yes', a.token) }, 'Confirm'),
                json(a));
        }));
}

// ---- interpretation

// The clause's text with its entities marked, in text order.
function marked(clause) {
    const out = [];
    let at = 0;
    for (const e of clause.entities) {
        const found = clause.text.indexOf(e.text, at);
        if (found < 0)
            continue;
        out.push(clause.text.slice(at, found),
            h('mark', { class: `ent ent-${hue(e.type)}` }, e.text, h('span', { class: 'ent-type' }, words(e.type))));
        at = found + e.text.length;
    }
    out.push(clause.text.slice(at));
    return h('p', { class: 'clause-text' }, ...out);
}

function hue(type) {
    let n = 0;
    for (const c of type)
        n = (n * 31 + c.charCodeAt(0)) % 997;
    return n % 5;
}

function bar(name, label, p) {
    const fill = h('span', { class: p < 0.5 ? 'fill low' : 'fill' });
    fill.style.width = `${Math.max(1, p * 100)}%`;
    return h('div', { class: 'conf' }, h('span', { class: 'conf-name' }, name),
        h('span', { class: 'conf-label' }, words(label)),
        h('span', { class: 'track', 'aria-hidden': 'true' }, fill), h('span', { class: 'num' }, percent(p)));
}

// Whether it is a command or a question; where the words alone decided, there is no probability.
function act(c) {
    if (c.act === 'none')
        return null;
    return c.act_confidence >= 0.5 ? bar('act', c.act, c.act_confidence) : h('div', { class: 'conf' },
        h('span', { class: 'conf-name' }, 'act'), h('span', { class: 'conf-label' }, words(c.act)), h('span', { class: 'hint' }, 'by its words'));
}

// A plan of the reader without its places in the text: "off light a1 sep set heating temperature to value w10".
const plan = (label) => label.split(' ').filter((w) => !/^[a-z]\d+$/.test(w)).join(' ').replaceAll(' sep ', ', ');

function clausesBlock(clauses) {
    return h('section', { class: 'block' }, h('h3', {}, 'Understood'),
        clauses.map((c) => h('div', { class: 'clause' }, marked(c), act(c),
            c.intent && bar('intent', plan(c.intent), c.confidence), c.router && bar('router', c.router, c.router_confidence))));
}

// ---- the waterfall

const steps = { read: 'Read', act: 'Act', split: 'Split', understand: 'Understand', decide: 'Decide', reply: 'Reply' };

function nice(v) {
    const unit = 10 ** Math.floor(Math.log10(v));
    return unit * ([1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].find((k) => k * unit >= v) ?? 10);
}

function timeBlock(v, limit, enforced) {
    const total = v.total_ms, seen = limit <= total * 20;
    const scale = nice((seen ? Math.max(limit, total) : total) * 1.02);
    const at = (t) => `${(t / scale) * 100}%`;
    const row = (i, e) => { // next to the lines, which span all rows
        e.style.gridRow = i + 1;
        return e;
    };
    const rows = v.steps.flatMap((s, i) => {
        const fill = h('span', { class: `wf-bar wf-${s.model ?? 'rules'}` });
        fill.style.left = at(s.start_ms);
        fill.style.width = at(s.ms);
        return [
            row(i, h('span', { class: 'wf-name' }, steps[s.step] ?? s.step, ' ',
                h('small', {}, s.model ? `${s.model}, ${s.tokens} tokens` : 'rules'))),
            row(i, h('span', { class: i % 2 ? 'wf-track' : 'wf-track even' }, fill)),
            row(i, h('span', { class: 'num' }, ms(s.ms), h('small', {}, ` ${percent(s.ms / total)}`))),
        ];
    });
    const lines = h('span', { class: 'wf-lines', 'aria-hidden': 'true' });
    lines.style.gridRow = `1 / span ${v.steps.length}`;
    const line = (t, kind) => {
        const e = h('span', { class: `wf-line ${kind}` });
        e.style.left = at(t);
        lines.append(e);
    };
    const said = v.steps.find((s) => s.step === 'reply');
    if (said)
        line(said.start_ms, 'ready');
    if (seen)
        line(limit, total > limit ? 'budget over' : 'budget');
    const used = total / limit;
    return h('section', { class: 'block wide' }, h('h3', {}, 'Time'),
        h('p', { class: 'time-sum' },
            said && h('span', { class: 'key k-ready' }, v.actions.length > 0 ? 'action known after ' : 'decided after ', h('strong', {}, ms(said.start_ms))),
            h('span', { class: used > 1 ? 'key k-over' : 'key k-budget' },
                used > 1 ? [h('strong', {}, `${ms(total - limit)} over the budget of ${ms(limit)}`),
                    said?.start_ms <= limit && v.actions.some((a) => did.has(a.result)) ? ': only the answer, not the action' : enforced ? '' : ', which is not enforced']
                    : [h('strong', {}, percent(used)), ` of the budget of ${ms(limit)}`])),
        h('div', { class: 'wf' }, rows, lines),
        h('div', { class: 'wf-axis', 'aria-hidden': 'true' }, [0, 0.25, 0.5, 0.75, 1].map((k) => {
            const e = h('span', {}, k === 0 ? '0' : ms(k * scale));
            e.style.left = `${k * 100}%`;
            return e;
        })));
}
