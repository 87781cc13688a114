// ring.js - timers, alarms and reminders ring on every view: with a message that stays, and a sound.
import { $, getJson, h, member } from './lib.js';

const kinds = { timer: 'Timer', alarm: 'Alarm', reminder: 'Reminder' };
const SLOW_MS = 20000, SOON_MS = 500, SOUND_MS = 2000, MAX_SOUNDS = 30;
const seen = new Set(); // what has rung: "id time"
let timer = 0, first = true, audio = null, sound = 0, title = '';

export async function start() {
    addEventListener('pointerdown', unlock, { once: true });
    addEventListener('keydown', unlock, { once: true });
    try {
        if ((await member()).offers.includes('home'))
            await look();
    } catch { /* no home, no key yet, or no server: app.js reports it */ }
}

// Browsers make no sound before the first click or key.
function unlock() {
    audio ??= new AudioContext();
    audio.resume();
}

// What the entry is about, without its moment, which is shown beside it: "call Anna" of "reminder: call Anna, 06:00".
export function about(x) {
    const what = x.what.replace(/^(timer|alarm|reminder): /, '').replace(x.repeats ? `, ${x.repeats}` : /$^/, '');
    return what.replace(/(^|, )\d\d:\d\d(?=,|$)/, '').replace(/^, /, '');
}

export const kindOf = (x) => kinds[x.kind] ?? '';

// Rings what has become due, and comes back when the next thing will.
export async function look() {
    clearTimeout(timer);
    timer = setTimeout(look, SLOW_MS);
    const { scheduled, recent } = await getJson('/v1/scheduled').catch(() => ({ scheduled: [], recent: [] }));
    for (const x of recent.filter((r) => kinds[r.kind] && r.result === 'rang')) {
        const key = `${x.id} ${x.ended_ms}`;
        if (!seen.has(key) && !first)
            ring(x);
        seen.add(key);
    }
    first = false;
    const next = Math.min(...scheduled.filter((x) => kinds[x.kind]).map((x) => x.due_ms)) - Date.now();
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(SLOW_MS, Math.max(SOON_MS, next + 100)));
}

function ring(x) {
    const card = h('article', { class: 'ring', 'data-ring': x.id }, h('div', {}, h('strong', {}, kindOf(x)), h('p', {}, about(x) || kindOf(x))),
        h('button', { type: 'button', class: 'button primary', onclick: () => stop(card) }, 'Stop'));
    $('rings').append(card);
    if (!title)
        title = document.title;
    document.title = `⏰ ${kindOf(x)}: ${about(x)}`;
    if (!sound)
        play(0);
}

function stop(card) {
    card.remove();
    if ($('rings').children.length > 0)
        return;
    clearTimeout(sound);
    sound = 0;
    document.title = title;
    title = '';
}

// Two short tones, again and again until it is stopped.
function play(n) {
    sound = n < MAX_SOUNDS ? setTimeout(() => play(n + 1), SOUND_MS) : 0;
    if (audio?.state !== 'running')
        return;
    for (const [at, pitch] of [[0, 880], [0.25, 1175]]) {
        const tone = audio.createOscillator(), volume = audio.createGain(), begin = audio.currentTime + at;
        tone.frequency.value = pitch;
        volume.gain.setValueAtTime(0.2, begin);
        volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.22);
        tone.connect(volume).connect(audio.destination);
        tone.start(begin);
        tone.stop(begin + 0.25);
    }
}
