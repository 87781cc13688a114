// voice.js - the microphone of the Ask view: hold to talk, or hands free; words appear while they are spoken. Sound goes to this
// server (WebSocket /v1/voice) and is kept nowhere but in this tab, to be played again.
import { $, getJson, h, icon, keep, kept, request, socket } from './lib.js';

const RATE = 16000, HELD_MS = 350; // a shorter press switches on and off
let ears = null; // while it listens
let button, status, level, hands, view, playing;

// What is wrong, and what to do.
function explain(e) {
    return !window.isSecureContext ? ['Browsers allow a microphone only on secure pages.', 'Open this page over https, or on the machine itself at http://localhost.'] : {
        NotAllowedError: ['This page may not use the microphone.', 'Allow it beside the address of the page, then try again.'],
        NotFoundError: ['There is no microphone.', 'Plug one in, then try again.'],
        NotReadableError: ['The microphone cannot be used.', 'Perhaps another program is using it.'],
        Heard: [e.message, ''],
    }[e.name] ?? ['The server does not listen.', 'It needs a model that recognizes speech; if it has keys, enter one.'];
}

function show(state, text = '') {
    button.dataset.state = state;
    button.setAttribute('aria-pressed', String(state !== 'off'));
    button.setAttribute('aria-label', state === 'off' ? 'Talk' : 'Stop listening');
    status.textContent = text;
}

function fail(e) {
    stop();
    const [what, todo] = explain(e);
    $('ask-heard').replaceChildren(h('div', { class: 'error', role: 'alert' }, icon('i-warn'), h('div', {}, h('strong', {}, what), ' ', todo)));
}

// The sound from start to end (seconds since the microphone was opened) as a WAV file.
function recorded({ start, end }) {
    const from = Math.max(0, start - 0.3) * RATE, to = (end + 0.2) * RATE;
    let at = ears.dropped;
    const pieces = ears.pieces.filter((p) => (at += p.length) > from && at - p.length < to);
    const n = 2 * pieces.reduce((sum, p) => sum + p.length, 0), head = new DataView(new ArrayBuffer(44));
    [[0, 'RIFF'], [8, 'WAVEfmt '], [36, 'data']].forEach(([i, s]) => [...s].forEach((c, k) => head.setUint8(i + k, c.charCodeAt(0))));
    [[4, 36 + n], [16, 16], [20, 65537], [24, RATE], [28, 2 * RATE], [32, 1048578], [40, n]].forEach(([i, v]) => head.setUint32(i, v, true));
    return URL.createObjectURL(new Blob([head, ...pieces], { type: 'audio/wav' }));
}

// A spoken reply, where the server has a voice.
let voice;
async function say(text) {
    voice ??= getJson('/v1/models').then(({ data }) => data.find((m) => m.kinds?.includes('speak'))?.id);
    const model = await voice;
    if (!model || !text)
        return;
    const r = await request('/v1/audio/speech', { body: { model, input: text } });
    hush();
    playing = new Audio(URL.createObjectURL(await r.blob()));
    await playing.play();
}

// Somebody talks: the reply is not needed any more.
function hush() {
    playing?.pause();
    playing = null;
}

function onMessage({ data }) {
    const m = JSON.parse(data), turn = ears.turns.get(m.turn);
    if (m.type === 'ready') {
        ears.ready = true;
    } else if (m.type === 'partial') {
        hush();
        $('ask-heard').textContent = m.text;
    } else if (m.type === 'transcript') {
        $('ask-heard').replaceChildren();
        if (m.text) {
            ears.turns.set(m.turn, view.heard(m.text, recorded(m)));
        } else if (ears.ended) {
            stop();
            status.textContent = 'I heard nothing.';
        }
    } else if (m.type === 'error' && !turn) {
        fail(Object.assign(new Error(m.error.message), { name: 'Heard' }));
    } else {
        turn?.[m.type](m.type === 'text' ? m.text : m.type === 'error' ? m.error : m);
        if (m.type === 'done')
            say(m.reply).catch(() => {});
        if (['done', 'error'].includes(m.type) && !hands.checked)
            stop();
    }
}

function onSound(samples) {
    let sum = 0;
    const out = Int16Array.from(samples, (x) => {
        sum += x * x;
        return Math.max(-32768, Math.min(32767, Math.round(x * 32768)));
    });
    level.style.transform = `scaleY(${Math.max(0, Math.min(1, 1.2 + Math.log10(sum / samples.length + 1e-9) / 5))})`;
    ears.pieces.push(out);
    if (ears.pieces.length > 3000) // a minute
        ears.dropped += ears.pieces.shift().length;
    if (ears.ready && !ears.ended)
        ears.ws.send(out);
}

async function listen() {
    hush();
    $('ask-heard').replaceChildren();
    show('on', 'Starting the microphone\u2026');
    const mine = ears = { pieces: [], dropped: 0, turns: new Map() };
    try {
        mine.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
        mine.context = new AudioContext({ sampleRate: RATE });
        await mine.context.audioWorklet.addModule('voice_worklet.js');
        mine.ws = socket('/v1/voice');
        await new Promise((resolve, reject) => {
            mine.ws.onopen = resolve;
            mine.ws.onerror = reject;
        });
    } catch (e) {
        if (ears === mine)
            fail(e);
    }
    if (ears !== mine) // stopped meanwhile
        return close(mine);
    mine.ws.onmessage = (m) => ears === mine && onMessage(m);
    mine.ws.onclose = () => ears === mine && fail(new Error());
    mine.ws.send(JSON.stringify({ type: 'start', session_id: view.session() }));
    const node = new AudioWorkletNode(mine.context, 'microphone');
    node.port.onmessage = ({ data }) => ears === mine && onSound(data);
    mine.context.createMediaStreamSource(mine.stream).connect(node);
    show('on', hands.checked ? 'Listening: speak at any time.' : 'Listening\u2026');
}

function close(e) {
    e.stream?.getTracks().forEach((t) => t.stop());
    e.context?.close().catch(() => {}); // it may be closed already
    if (e.ws?.readyState) // while it connects, listen() waits for it and comes back here
        e.ws.onclose = null, e.ws.close();
}

export function stop() {
    const e = ears;
    ears = null;
    if (e)
        close(e);
    level.style.transform = 'scaleY(0)';
    show('off');
}

// The turn is over: what was said is answered.
function end() {
    if (!ears?.ready)
        return stop();
    ears.ended = true;
    ears.ws.send('{"type":"end"}');
    show('wait', 'One moment\u2026');
}

let pressed = 0;
const isKey = (e) => e.key === undefined || e.key === ' ' || e.key === 'Enter';

function press(e) {
    if (!isKey(e) || e.repeat || e.button > 0)
        return;
    e.preventDefault();
    if (!ears) {
        pressed = performance.now();
        listen();
    } else if (hands.checked || ears.ended) {
        stop();
    } else {
        end();
    }
}

function release(e) {
    if (isKey(e) && pressed && !hands.checked && performance.now() - pressed > HELD_MS)
        end();
    pressed = 0;
}

// of: makes turns (`heard`), and knows the conversation (`session`).
export function start(of) {
    view = of;
    level = h('span', { class: 'level', 'aria-hidden': 'true' });
    button = h('button', { type: 'button', class: 'send mic', title: 'Hold to talk, or press to start and stop' }, level, icon('i-mic'));
    status = $('ask-status');
    hands = $('ask-hands');
    hands.checked = kept('hands', false);
    hands.addEventListener('change', () => {
        keep('hands', hands.checked);
        stop();
    });
    for (const [type, fn] of [['pointerdown', press], ['keydown', press], ['pointerup', release], ['pointercancel', release], ['keyup', release]])
        button.addEventListener(type, fn);
    addEventListener('keydown', (e) => e.key === 'Escape' && (hush(), stop()));
    $('ask-voice').append(button);
    show('off');
}
