#!/usr/bin/env node
// The page in a real Chromium: answers that stream, errors, a server that goes away and comes back, the keyboard
// alone, small screens, accessibility (axe-core), no request to anywhere else, nothing on the console.
// Usage: web.js SHOAL [--refresh]    writes screenshots/*.png beside SHOAL; --refresh: only these, and docs/screenshots
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const web = require('./page.js');

const shoal = path.resolve(process.argv[2]), refresh = process.argv.includes('--refresh');
const shots = path.join(path.dirname(shoal), 'screenshots');
const both = 'turn off the kitchen lights and set the heating to 19 degrees';
process.chdir(t.root); // where ./models is
fs.mkdirSync(shots, { recursive: true });

const open = (browser, server, options, hash) => web.open(browser, server.url, options, hash);
const text = (page, selector) => page.textContent(selector);
const shown = (page, selector) => page.waitForSelector(selector, { state: 'visible' });

async function ask(page, words) {
    await page.fill('#ask-text', words);
    await page.keyboard.press('Enter');
    await page.waitForFunction((w) => {
        const first = document.querySelector('.turn');
        return first?.getAttribute('aria-label') === w && first.querySelector('.wf, .error');
    }, words);
}

// A conversation of five turns on the Ask view: pronouns, a correction, a confirmation, and a question about what was done.
async function commands(browser, server) {
    const page = await open(browser, server);
    const action = async () => JSON.parse(await text(page, '.turn:first-child .action .json'));
    await ask(page, 'turn on the kitchen lights');
    t.same(await text(page, '.turn:first-child .pill'), 'simulated', 'the demo home says that it is one');
    t.check(/Only simulated: no device is connected\./.test(await text(page, '.turn:first-child .action')), 'in words, too');
    await ask(page, 'hello');
    t.check(!(await page.$$eval('.turn:first-child .conf-name', (all) => all.map((e) => e.textContent))).includes('act'), 'no act, no bar');
    await ask(page, 'turn on the kitchen lights');
    await ask(page, 'turn them off');
    let a = await action();
    t.same(`${a.action} ${a.room} ${a.device}`, 'turn_off kitchen lights', 'them');
    await ask(page, 'open the garage door, no wait, close it');
    a = await action();
    t.same(`${a.action} ${a.device} ${a.result}`, 'close garage door simulated', 'a correction');
    t.same(await page.$$eval('.turn:first-child .action', (all) => all.length), 1, 'and nothing else');
    await ask(page, 'unlock the back door');
    t.same((await action()).result, 'confirm', 'a dangerous action waits');
    t.check((await page.$$eval('.turn:first-child .conf-name', (all) => all.map((e) => e.textContent))).includes('act'), 'the act is shown');
    const labels = (await page.$$eval('.turn .conf-label', (all) => all.map((e) => e.textContent))).join(' ');
    t.check(!/\b[aw]\d+\b/.test(labels), `no places of the text among the labels: ${labels}`);
    await page.click('.turn:first-child button:has-text("Confirm")');
    await page.waitForFunction(() => {
        const first = document.querySelector('.turn');
        return first?.getAttribute('aria-label') === 'Yes' && first.querySelector('.wf, .error');
    });
    a = await action();
    t.same(`${a.action} ${a.device} ${a.result}`, 'unlock back door simulated', 'after a yes');
    await ask(page, 'is it locked?');
    t.check(/unlocked/.test(await text(page, '.turn:first-child .reply')), `its state: ${await text(page, '.turn:first-child .reply')}`);
    await ask(page, 'turn off the flux capacitor');
    t.same((await action()).result, 'unknown', 'what is not known does not act');
    await ask(page, 'turn on the fan every monday at 9');
    t.check(/, every Monday/.test(await text(page, '.turn:first-child .action')), 'how it repeats');
    await ask(page, 'turn off the fan in 20 minutes');
    t.same(await text(page, '.turn:first-child .pill'), 'scheduled', 'for later');
    t.check(/Happens at .*\d\d:\d\d:\d\d/.test(await text(page, '.turn:first-child .action')), 'and when');
    t.check(/It will only be simulated/.test(await text(page, '.turn:first-child .action')), 'what will only be simulated is said');
    await ask(page, 'open the blinds and water the plants');
    t.check(/can't help with that/.test(await page.textContent('.turn:first-child')), 'what cannot be done is said');
    await page.context().close();
}

// Waits until the answer in the Chat view is complete, with its figures.
async function answered(page) {
    await page.waitForFunction(() => /^\d+ tokens · /.test(document.querySelector('.message:last-child .meta')?.textContent) &&
        document.querySelector('#chat-form .send')?.getAttribute('aria-label') === 'Send');
}

async function answers(browser, server) {
    const page = await open(browser, server, { reducedMotion: 'no-preference' });
    t.check((await (await fetch(server.url)).headers.get('content-security-policy')).includes("default-src 'none'"), 'CSP');
    await page.evaluate(() => {
        window.seen = new Set();
        new MutationObserver(() => window.seen.add(document.querySelector('.reply')?.textContent))
            .observe(document.getElementById('ask-turns'), { subtree: true, childList: true, characterData: true });
    });
    await page.click('.chip >> nth=0');
    await shown(page, '.turn .wf');
    const pieces = await page.evaluate(() => [...window.seen]);
    t.check(pieces.length > 3 && pieces.every((p, i) => i === 0 || p.startsWith(pieces[i - 1])),
        `the reply streams: ${JSON.stringify(pieces)}`);
    t.check(/kitchen lights.*19 degrees/.test(await text(page, '.reply')), 'reply');
    const actions = await page.$$eval('.action .json', (all) => all.map((e) => JSON.parse(e.textContent)));
    t.same(actions.map((a) => a.action).join(), 'turn_off,set_temperature', 'action cards');
    t.same(await page.$$eval('.conf', (all) => all.length), 2, 'confidence bars');
    t.same((await page.$$eval('.wf-name', (all) => all.map((e) => e.firstChild.data))).join(), 'Read,Decide,Reply',
        'waterfall');
    const tops = (selector) => page.$$eval(selector, (all) => all.map((e) => e.getBoundingClientRect().top));
    const rows = await tops('.wf-name'), bars = await tops('.wf-track');
    t.check(bars.length === rows.length && bars.every((y, i) => Math.abs(y - rows[i]) < 1), // not rounded: 1078.49 lies beside 1078.51
        `bars stand beside their names: ${bars} and ${rows}`);
    t.check(/of the budget of 100 ms|over the budget of 100 ms/.test(await text(page, '.time-sum')), 'budget');
    await page.fill('#ask-budget', '1');
    await ask(page, 'what is 7 times 8');
    t.check(/56/.test(await text(page, '.reply')), 'second reply');
    t.check(/over the budget of 1\.0 ms, which is not enforced$/.test(await text(page, '.time-sum')), `what was done in spite of the budget: ${await text(page, '.time-sum')}`);
    await page.fill('#ask-budget', '100');
    t.same(await page.$$eval('.turn', (all) => all.length), 2, 'history');
    await ask(page, 'hello');
    t.same(await page.$$eval('.turn:first-child .action', (all) => all.length), 0, 'no action');
    await page.reload();
    t.same(await page.$$eval('.turn', (all) => all.length), 3, 'history after a reload');
    page.allowed = /status of 504/;
    await page.fill('#ask-budget', '1');
    await page.check('#ask-enforce');
    const long = Array(12).fill('turn off the kitchen lights.').join(' ');
    await ask(page, long);
    t.check(/exceeded the budget.*Raise the budget/.test(await text(page, '.turn:first-child .error')), 'an error in words');
    t.same(await page.inputValue('#ask-text'), long, 'what was typed is still there');
    await page.uncheck('#ask-enforce');
    await page.click('.turn:first-child .error button');
    await shown(page, '.turn:first-child .wf');
    t.check(!await page.$('.error'), 'asked again');
    page.allowed = /status of 400/;
    await page.evaluate(() => document.getElementById('ask-text').removeAttribute('maxlength'));
    await ask(page, Array(200).fill('turn off the lights.').join(' '));
    t.check(/maximum is 4096/.test(await text(page, '.turn:first-child .error')), 'says what the server said');
    await page.click('#ask-clear');
    await page.reload();
    t.same(await page.$$eval('.turn', (all) => all.length), 0, 'a history that is cleared');
    await page.context().close();
}

// The page is small, and has everything in it: this is all that a browser fetches to show any view.
function size() {
    const files = fs.readdirSync('web').filter((f) => f !== 'README.md'), bytes = files.reduce((sum, f) => sum + fs.statSync(`web/${f}`).size, 0);
    t.check(bytes < 200000, `the page has ${bytes} bytes in ${files.length} files`);
}

async function conversation(browser, server) {
    const page = await open(browser, server, {}, '/#chat');
    await page.waitForSelector('#chat-model option[value="reply"]', { state: 'attached' });
    t.same((await page.$$eval('#chat-model option', (all) => all.map((o) => o.value))).join(), 'reply,reply-draft,auto',
        'decoders and routes to them');
    const send = async (words) => {
        await page.fill('#chat-text', words);
        await page.keyboard.press('Enter');
    };
    await send('timer: pasta; left: 4 minutes');
    await answered(page);
    t.check(/pasta.*4 minutes/.test(await text(page, '.assistant .bubble')), 'an answer');
    await page.reload();
    t.check(/pasta.*4 minutes/.test(await text(page, '.assistant .bubble')), 'the conversation is still there');
    await page.context().close();
}

// Waits until the Models view says that n of all models are ready.
function ready(page, n, all) {
    return page.waitForFunction((s) => document.getElementById('models-sum')?.textContent?.startsWith(s),
        `${n} of ${all} models ready`);
}

async function modelsView(browser, server) {
    const names = JSON.parse(fs.readFileSync('models/models.json')).models.map((m) => m.name);
    const page = await open(browser, server, {}, '/#models');
    await shown(page, '.model-row');
    t.same((await page.$$eval('.model-row th', (all) => all.map((e) => e.textContent))).join(),
        names.join(), 'models');
    await ready(page, names.length - 1, names.length); // all but the draft, which is loaded on demand
    t.check(!await page.$('[id^="load-"]'), 'a keyless server cannot be changed by a page');
    const cells = await page.$$eval('.model-row', (all) => all.map((e) => e.innerText.replaceAll('\n', ' ')));
    t.check(cells.every((c) => /[kM]B/.test(c)), `the size of each file: ${cells.find((c) => !/[kM]B/.test(c))}`);
    t.check(cells.some((c) => /^voice\b.*reads texts aloud/.test(c)), 'what the voice does');
    await page.click('#open-card-reply');
    t.check(/Memory.*MB.*File16\.9 MB.*Parameters15\.7 M.*tokens\/s/.test(await text(page, '#card-facts')), 'facts');
    await page.keyboard.press('Escape');
    await page.click('#open-card-intent');
    await shown(page, '#card .prose table');
    const figure = /^\| snips [^|]*\| ([\d.]+ %)/m.exec(fs.readFileSync('models/intent.md', 'utf8'))[1];
    t.check((await text(page, '#card-body')).includes(figure), 'a card');
    await page.click('#open-card-intent', { force: true, timeout: 500 }).catch(() => {}); // behind the dialog
    await web.accessible(page, 'axe: card');
    await page.keyboard.press('Escape');
    await page.click('#open-card-embed');
    await page.click('#card-text .link >> nth=0');
    t.same(await text(page, '#card-title'), 'intent', 'a link to another card');
    await page.context().close();
}

// The server is killed while the page is open, and started again on the same port.
async function goneAndBack(browser, server) {
    const page = await open(browser, server);
    await ask(page, 'set a timer for ten minutes');
    page.allowed = /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_SOCKET_NOT_CONNECTED/;
    await server.stop('SIGKILL');
    await page.fill('#ask-text', both);
    await page.keyboard.press('Enter');
    await shown(page, '#banner');
    t.check(/does not respond.*Your text is kept/.test(await text(page, '#banner')), 'a banner');
    await shown(page, '.turn:first-child .error');
    t.same(await page.inputValue('#ask-text'), both, 'the text is back in the field');
    t.same(await text(page, '#status'), 'No server', 'status');
    await web.accessible(page, 'axe: no server');
    const again = await t.start(shoal, [], { listen: `127.0.0.1:${server.port}` });
    await page.waitForFunction(() => /Reconnected/.test(document.getElementById('banner')?.textContent));
    await page.waitForFunction(() => /models ready/.test(document.getElementById('status')?.textContent));
    t.same(await page.inputValue('#ask-text'), both, 'the text is still in the field');
    await page.focus('#ask-text');
    await page.keyboard.press('Enter');
    await shown(page, '.turn:first-child .wf');
    t.check(/kitchen lights/.test(await text(page, '.reply')), 'it works again');
    await page.waitForSelector('#banner', { state: 'hidden' });
    await page.fill('#ask-text', 'a draft');
    await page.reload();
    t.same(await page.inputValue('#ask-text'), 'a draft', 'a draft outlives the page');
    await page.context().close();
    return again;
}

// A server with keys: the page asks for one; without the right to administer, nothing can be loaded or unloaded.
async function keys(browser) {
    const hash = (key) => crypto.createHash('sha256').update(key).digest('hex');
    const config = path.join(t.tmp, 'keys.yaml');
    fs.writeFileSync(config, `keys: [{name: app, sha256: ${hash('one')}}, {name: boss, sha256: ${hash('two')}, admin: true}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const page = await open(browser, server);
    page.allowed = /status of 40[13]/;
    const enter = async (key, button) => {
        await page.click(button);
        await page.fill('#key-text', key);
        await page.keyboard.press('Enter');
        await page.waitForFunction(() => /models ready/.test(document.getElementById('status')?.textContent));
    };
    await ask(page, 'what is 7 times 8');
    t.check(/requires an API key/.test(await text(page, '.error')), 'a key is needed');
    await enter('one', '.error button');
    t.same(await page.inputValue('#ask-text'), 'what is 7 times 8', 'the text is still there');
    await ask(page, 'what is 7 times 8');
    t.check(/56/.test(await text(page, '.reply')), 'with the key it answers');
    await page.click('nav >> text=Models');
    await shown(page, '.model-row');
    t.check(!await page.$('[id^="load-"]'), 'no right to load');
    await page.evaluate(() => sessionStorage.setItem('shoal-key', '"two"'));
    await page.reload();
    await shown(page, '#load-reply');
    const all = JSON.parse(fs.readFileSync('models/models.json')).models.length;
    await ready(page, all - 1, all);
    await page.click('#load-reply-draft');
    await ready(page, all, all);
    await page.click('#load-reply-draft');
    await ready(page, all - 1, all);
    await page.context().close();
    await server.stop();
}

async function keyboard(browser, server) {
    const page = await open(browser, server);
    const focused = () => page.evaluate(() => document.activeElement.textContent.trim().slice(0, 80) || document.activeElement.id ||
        document.activeElement.getAttribute('aria-label'));
    const tabTo = async (what, key = 'Tab') => {
        for (let i = 0; i < 60; i++) {
            await page.keyboard.press(key);
            const now = await page.evaluate(() => [document.activeElement.id, document.activeElement.textContent.trim(),
                document.activeElement.getAttribute('aria-label')]);
            if (now.includes(what))
                return true;
        }
        return t.check(false, `Tab does not reach ${what}`);
    };
    t.same(await focused(), 'ask-text', 'the field has the focus');
    await page.keyboard.type('what is 7 times 8');
    await page.keyboard.press('Enter');
    await shown(page, '.turn .wf');
    await tabTo('How it was answered');
    await page.keyboard.press('Enter');
    t.check(!await page.isVisible('.turn .wf'), 'details close');
    await page.keyboard.press('/');
    t.same(await focused(), 'ask-text', '/ goes to the field');
    await tabTo('Colours: system', 'Shift+Tab');
    await page.keyboard.press('Enter');
    t.same(await page.evaluate(() => document.documentElement.dataset.theme), 'light', 'light');
    await page.keyboard.press('Space');
    t.same(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'dark');
    await tabTo('Models', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await shown(page, '#open-card-reply');
    await tabTo('open-card-reply');
    await page.keyboard.press('Enter');
    await shown(page, '#card .prose table');
    await tabTo('Close');
    await page.keyboard.press('Enter');
    t.check(!await page.isVisible('#card'), 'the card closes');
    await t.until(async () => await page.evaluate(() => document.activeElement.id) === 'open-card-reply', 'the focus is where it was'); // a dialog's close event comes later
    await page.context().close();
}

async function screens(browser, server) {
    for (const [colorScheme, width] of [['light', 1180], ['dark', 590], ['dark', 375], ['light', 320]]) {
        const page = await open(browser, server, { viewport: { width, height: width === 590 ? 430 : 760 }, colorScheme }); // 590: 1180 at 200 %
            const look = async (view) => {
            await web.noScroll(page, `${view} at ${width}`);
            if (width !== 320)
                await web.accessible(page, `axe: ${view}, ${colorScheme}, ${width}`);
        };
        await ask(page, both);
        await look('ask');
        await page.click('nav >> text=Chat');
        await page.waitForSelector('#chat-model option', { state: 'attached' });
        await page.click('#chat-examples .chip >> nth=0');
        await answered(page);
        await look('chat');
        await page.click('nav >> text=Try');
        await page.click('#try-tab-embed');
        await page.click('#try-form .primary');
        await shown(page, '.map');
        await look('try');
        await page.click('nav >> text=Models');
        await shown(page, '.model-row');
        await look('models');
        await page.goto(`${server.url}/docs`);
        await shown(page, 'details');
        await page.click('summary >> nth=0');
        await look('docs');
        await page.context().close();
    }
}

// Pictures for the README. Other work on the machine makes answers late: then it asks again.
async function pictures(browser, server) {
    const page = await open(browser, server, { viewport: { width: 1120, height: 700 } });
    const save = async (name) => {
        await page.evaluate(() => document.activeElement.blur());
        const file = path.join(shots, `${name}.png`);
        await page.screenshot({ path: file, fullPage: name === 'ask' });
        t.check(fs.statSync(file).size < 200000, `${file} has ${fs.statSync(file).size} bytes`);
        if (refresh)
            fs.copyFileSync(file, path.join(t.root, 'docs/screenshots', `${name}.png`));
    };
    for (let i = 0; i < (refresh ? 60 : 3); i++) {
        await page.evaluate(() => sessionStorage.clear());
        await page.reload();
        await ask(page, both);
        if (!await page.$('.k-over'))
            break;
    }
    await save('ask');
    await page.click('nav >> text=Chat');
    await page.waitForSelector('#chat-model option', { state: 'attached' });
    for (const line of ['timer: pasta; left: 4 minutes',
        'anomaly: vibration; machine: pump 3; value: 7.4 mm/s; side: high; normal: 2.1 to 3.0 mm/s; advice: check the bearing']) {
        await page.fill('#chat-text', line);
        await page.keyboard.press('Enter');
        await answered(page);
    }
    await save('chat');
    await page.click('nav >> text=Models');
    await shown(page, '.model-row');
    await page.setViewportSize({ width: 1120, height: 1000 });
    await save('models');
    await page.context().close();
}

(async () => {
    let server = await t.start(shoal, []);
    const browser = await web.launch();
    size();
    for (const part of refresh ? [pictures] : [answers, commands, conversation, modelsView, keyboard, keys, screens, pictures])
        await part(browser, server);
    if (!refresh)
        server = await goneAndBack(browser, server);
    await browser.close();
    await server.stop();
    t.finish();
})().catch(t.abandon);
