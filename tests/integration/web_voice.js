#!/usr/bin/env node
// The microphone of the page in a real Chromium, fed from a WAV file: hands free, held, by the keyboard, played again; what is
// shown when there is none, or no permission.
// Usage: web_voice.js SHOAL    writes screenshots/voice-*.png beside SHOAL
'use strict';
const { createHash } = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const web = require('./page.js');

const shoal = path.resolve(process.argv[2]), shots = path.join(path.dirname(shoal), 'screenshots');
process.chdir(t.root); // where ./models is
fs.mkdirSync(shots, { recursive: true });

// The command with silence around it: Chromium plays the file again and again.
function microphone() {
    const file = path.join(t.tmp, 'microphone.wav'), speech = fs.readFileSync(path.join(t.root, 'tests/data/audio/kitchen_lights.wav'));
    const pcm = Buffer.concat([Buffer.alloc(32 * 700), speech.subarray(44), Buffer.alloc(32 * 3000)]);
    const head = Buffer.from(speech.subarray(0, 44));
    head.writeUInt32LE(36 + pcm.length, 4);
    head.writeUInt32LE(pcm.length, 40);
    fs.writeFileSync(file, Buffer.concat([head, pcm]));
    return file;
}

const fake = (file) => ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', `--use-file-for-fake-audio-capture=${file}`];
const heard = (page) => page.waitForFunction(() => document.querySelector('.turn')?.querySelector('.wf, .error'));
const asked = (page) => page.textContent('.turn:first-child .asked');

async function talks(server) {
    const browser = await web.launch(fake(microphone()));
    const page = await web.open(browser, server.url);
    const partials = page.evaluate(() => new Promise((resolve) => {
        const box = document.getElementById('ask-heard');
        new MutationObserver(() => box.textContent && resolve(box.textContent)).observe(box, { childList: true, characterData: true, subtree: true });
    }));
    await page.check('#ask-hands');
    await page.click('.mic');
    t.check((await partials).length > 0, 'words appear while they are spoken');
    await page.screenshot({ path: path.join(shots, 'voice-light.png') });
    await heard(page);
    t.check(/kitchen lights/i.test(await asked(page)), `hands free: ${await asked(page)}`);
    t.check(/kitchen/.test(await page.textContent('.turn:first-child .action')), 'and done');
    t.same(await page.getAttribute('.mic', 'aria-pressed'), 'true', 'it goes on listening');
    const level = await page.waitForFunction(() => Number(document.querySelector('.level').style.transform.slice(7, -1)) > 0.2);
    t.check(await level.jsonValue(), 'the level moves');
    const length = await page.evaluate(() => new Promise((resolve, reject) => {
        const real = window.Audio;
        window.Audio = function (url) {
            const a = new real(url);
            a.addEventListener('loadedmetadata', () => resolve(a.duration));
            a.addEventListener('error', () => reject(new Error('it cannot be played')));
            return a;
        };
        document.querySelector('.turn button').click();
    }));
    t.check(length > 1 && length < 6, `what was said is played again: ${length} s`);
    await web.accessible(page, 'while it listens');
    await page.click('.mic');
    t.same(await page.getAttribute('.mic', 'aria-pressed'), 'false', 'off');

    await page.uncheck('#ask-hands'); // by the keyboard: on, and off when it has answered
    await page.click('#ask-clear');
    await page.focus('.mic');
    await page.keyboard.press('Enter');
    await heard(page);
    t.check(/kitchen lights/i.test(await asked(page)), `by the keyboard: ${await asked(page)}`);
    await page.waitForFunction(() => document.querySelector('.mic').getAttribute('aria-pressed') === 'false');
    await page.click('.mic'); // switched off before anything was said
    await page.keyboard.press('Escape');
    t.same(await page.getAttribute('.mic', 'aria-pressed'), 'false', 'Escape stops it');
    for (const [name, options] of [['dark', { colorScheme: 'dark' }], ['phone', { viewport: { width: 390, height: 760 } }]]) {
        const other = await web.open(browser, server.url, options);
        await other.check('#ask-hands');
        await other.click('.mic');
        await heard(other);
        await web.noScroll(other, name);
        await other.screenshot({ path: path.join(shots, `voice-${name}.png`) });
        await web.accessible(other, name);
    }
    await browser.close();
}

// No permission, no device, no server that listens: each is said in words.
async function refused(server) {
    const browser = await web.launch();
    for (const [error, part] of [['NotAllowedError', 'may not use the microphone'], ['NotFoundError', 'There is no microphone'], ['NotReadableError', 'another program']]) {
        const page = await web.open(browser, server.url);
        await page.evaluate((name) => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', name)); }, error);
        await page.click('.mic');
        const said = await page.textContent('#ask-heard .error');
        t.check(said.includes(part), `${error}: ${said}`);
        t.same(await page.getAttribute('.mic', 'aria-pressed'), 'false', `${error}: it is off`);
        if (error === 'NotAllowedError') {
            await web.accessible(page, error);
            await page.screenshot({ path: path.join(shots, 'voice-refused.png') });
        }
        await page.context().close();
    }
    await browser.close();
}

// A server with keys: without one the page says what to do; with one the microphone works, the reply is spoken, and whoever
// talks stops it. The reply is played over and over, so that it lasts until the fake microphone talks again.
async function keyed() {
    const config = path.join(t.tmp, 'keys.yaml');
    fs.writeFileSync(config, `keys: [{name: page, sha256: ${createHash('sha256').update('a key / with = signs').digest('hex')}}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const browser = await web.launch(fake(microphone()));
    const page = await browser.newPage();
    web.watch(page);
    page.allowed = /401|HTTP Authentication failed/; // until there is a key
    await page.goto(server.url);
    await page.click('.mic');
    t.check(/keys, enter one/.test(await page.textContent('#ask-heard .error')), 'without a key it says so');
    await page.evaluate(() => {
        sessionStorage.setItem('shoal-key', JSON.stringify('a key / with = signs'));
    });
    await page.reload();
    await page.evaluate(() => {
        const real = window.Audio;
        window.spoken = [];
        window.Audio = function (url) {
            const a = new real(url);
            a.loop = true;
            for (const what of ['playing', 'pause'])
                a.addEventListener(what, () => window.spoken.push(`${what} ${a.duration > 0.5}`));
            return a;
        };
    });
    await page.check('#ask-hands');
    await page.click('.mic');
    await heard(page);
    t.check(/kitchen lights/i.test(await asked(page)), `with a key: ${await asked(page)}`);
    await page.waitForFunction(() => window.spoken.length >= 2);
    t.same((await page.evaluate(() => window.spoken)).slice(0, 2).join(), 'playing true,pause true', 'the reply is spoken, and stops when somebody talks');
    await browser.close();
    t.same((await server.stop()).code, 0, 'ends cleanly');
}

(async () => {
    const server = await t.start(shoal, []);
    await talks(server);
    await refused(server);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    await keyed();
    t.finish();
})();
