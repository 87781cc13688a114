// app.js - the frame: switches views, colours, and shows whether the server is reachable.
import { $, getJson, h, icon, kept, onGone, several } from './lib.js';
import * as ask from './ask.js';
import * as chat from './chat.js';
import * as home from './home.js';
import * as models from './models.js';
import * as ring from './ring.js';
import * as sensors from './sensors.js';
import * as shoal from './shoal.js';
import * as tryout from './try.js';

const views = { ask, chat, try: tryout, models, sensors, home, shoal };
let current = null;

// ---- views

function show() {
    const name = views[location.hash.slice(1)] ? location.hash.slice(1) : 'ask';
    if (location.hash === '#main' && current)
        return; // the skip link
    if (current && current !== name)
        views[current].leave?.();
    for (const v of Object.keys(views))
        $(`view-${v}`).hidden = v !== name;
    for (const a of document.querySelectorAll('nav a')) {
        if (a.hash === `#${name}`)
            a.setAttribute('aria-current', 'page');
        else
            a.removeAttribute('aria-current');
    }
    document.title = `${name[0].toUpperCase()}${name.slice(1)} · Shoal`;
    current = name;
    views[name].enter?.();
}

// ---- colours

const themes = { auto: ['i-auto', 'system'], light: ['i-sun', 'light'], dark: ['i-moon', 'dark'] };

function setTheme(name) {
    window.setTheme(name);
    $('theme').replaceChildren(icon(themes[name][0]));
    $('theme').setAttribute('aria-label', `Colours: ${themes[name][1]}`);
    $('theme').title = `Colours: ${themes[name][1]}`;
}

function nextTheme() {
    const names = Object.keys(themes);
    setTheme(names[(names.indexOf(document.documentElement.dataset.choice) + 1) % names.length]);
}

// ---- is the server reachable?

let there = true, timer = 0;

async function look() {
    clearTimeout(timer);
    let answered = false;
    try {
        answered = (await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(3000) })).ok;
    } catch { /* unreachable */ }
    const was = there;
    there = answered;
    if (there && !was)
        await back();
    else if (!there)
        lost();
    timer = setTimeout(look, there ? 5000 : 1000);
}

function lost() {
    $('status').className = 'status off';
    $('status').textContent = 'No server';
    const banner = $('banner');
    if (!banner.hidden && banner.dataset.kind === 'lost')
        return;
    banner.dataset.kind = 'lost';
    banner.replaceChildren(h('p', {}, h('strong', {}, 'The server does not respond.'),
        ' Your text is kept, and this page reconnects automatically. If this takes long, check that ',
        h('code', {}, 'shoal serve'), ' is still running.'),
    h('button', { type: 'button', class: 'button small', onclick: look }, 'Try now'));
    banner.hidden = false;
}

async function back() {
    const banner = $('banner');
    banner.dataset.kind = 'back';
    banner.replaceChildren(h('p', {}, h('strong', {}, 'Reconnected.')));
    setTimeout(() => {
        if (banner.dataset.kind === 'back')
            banner.hidden = true;
    }, 4000);
    await status();
    views[current].enter?.();
}

async function status() {
    const s = $('status');
    try {
        const data = (await getJson('/v1/models')).data.filter((m) => m.task !== 'route');
        const ready = data.filter((m) => m.state === 'ready').length;
        const busy = data.some((m) => m.state === 'loading');
        s.className = busy ? 'status wait' : 'status on';
        s.textContent = busy ? 'Loading models' : `${several(ready, 'model')} ready`;
        if (busy)
            setTimeout(status, 1000);
    } catch (e) {
        if (e.status)
            s.textContent = e.status === 401 ? 'Needs a key' : 'Server running';
    }
}

// ---- start

document.addEventListener('keydown', (e) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
    if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
        e.preventDefault();
        views[current].focus?.();
    }
});
document.addEventListener('visibilitychange', () => {
    if (!document.hidden)
        look();
});
window.addEventListener('hashchange', show);
onGone(() => {
    there = false;
    lost();
    clearTimeout(timer);
    timer = setTimeout(look, 300);
});
$('theme').addEventListener('click', nextTheme);
setTheme(document.documentElement.dataset.choice);
for (const v of Object.values(views))
    v.start();
ring.start();
show();
if (kept('draft-ask', '') === '' && matchMedia('(hover: hover)').matches)
    views[current].focus?.();
status();
timer = setTimeout(look, 5000);
