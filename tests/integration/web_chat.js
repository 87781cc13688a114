#!/usr/bin/env node
// The Chat view in a real Chromium, with models that say what they are told: Markdown that is not HTML, an answer that is
// followed, stopped, continued, made again and edited, two models side by side, probabilities, conversations that stay.
// Usage: web_chat.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const web = require('./page.js');
const { parrot } = require('./parrot.js');

const shoal = path.resolve(process.argv[2]);
const chatml = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}" +
    '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
const marked = `# Fish

Some are **big**, some *small*, none is <img src=x onerror=alert(1)>.
See [a page](https://example.org/a) or [not](javascript:alert(2)).

1. cod
2. eel
   - young
   - old

> deep

| name | size |
|---|---|
| ray | 2 m |

\`\`\`js
let a = '<b>';
\`\`\`
`;
const lines = Array.from({ length: 220 }, (_, i) => `${i}. row ${i * 7919} ${(i * 104729).toString(36)}`).join('\n');

const model = (name, say) => `${name}=${parrot(path.join(t.tmp, `${name}.gguf`),
    { template: chatml, special: ['<|im_start|>', '<|im_end|>'], say, context: 4096 })}`;
const text = (page, selector) => page.textContent(selector);

// Sends a message; resolves when all answers are complete.
async function send(page, words) {
    await page.fill('#chat-text', words);
    await page.keyboard.press('Enter');
    await complete(page);
}

const complete = (page) => page.waitForFunction(() => document.querySelector('#chat-form .send').getAttribute('aria-label') === 'Send' &&
    document.querySelector('.message:last-child .tools .tool') && !document.querySelector('.streaming'));

async function markdown(page) {
    await page.selectOption('#chat-model', 'mark');
    await send(page, 'tell me about <b>fish</b>');
    t.same(await text(page, '.user .bubble'), 'tell me about <b>fish</b>', 'what was typed is text');
    const shape = await page.$eval('.assistant .bubble', (b) => [...b.children].map((e) => e.tagName).join());
    t.same(shape, 'H2,P,OL,BLOCKQUOTE,DIV,DIV', 'Markdown');
    t.same(await page.$$eval('.bubble ol > li > ul > li', (all) => all.map((e) => e.textContent).join()), 'young,old', 'a list in a list');
    t.same(await page.$$eval('.bubble td', (all) => all.map((e) => e.textContent).join()), 'ray,2 m', 'a table');
    t.same(await text(page, '.bubble pre'), "let a = '<b>';", 'code');
    t.same(await page.$$eval('.bubble img, .bubble b, .bubble script', (all) => all.length), 0, 'no HTML of a model becomes part of the page');
    t.check((await text(page, '.bubble p')).includes('<img src=x onerror=alert(1)>'), 'it is text');
    t.same(await page.$$eval('.bubble a', (all) => all.map((a) => `${a.href} ${a.rel}`).join()), 'https://example.org/a noopener noreferrer',
        'only addresses of the web are links');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('.assistant .tools >> text=Copy');
    await page.waitForFunction(() => document.querySelector('.assistant > .answers > .answer > .tools .copy').textContent === 'Copied');
    t.same(await page.evaluate(() => navigator.clipboard.readText()), marked, 'the answer is copied as it came');
    await page.click('.code .copy');
    await page.waitForFunction(() => document.querySelector('.code .copy').textContent === 'Copied');
    t.same(await page.evaluate(() => navigator.clipboard.readText()), "let a = '<b>';", 'code is copied alone');
    await web.accessible(page, 'axe: an answer');
}

async function probabilities(page) {
    await page.selectOption('#chat-model', 'reply');
    await page.click('.assistant .tools >> text=Regenerate');
    await page.waitForFunction(() => document.querySelector('.assistant .who').textContent === 'reply');
    await complete(page);
    await page.click('text=Probabilities');
    await page.hover('.token >> nth=2');
    const said = await page.$$eval('.token-details li', (all) => all.map((e) => e.textContent));
    t.same(said.length, 5, `alternatives of a token: ${said}`);
    t.check(/\d+ %$/.test(said[0]), `with their share: ${said[0]}`);
    await page.focus('.token >> nth=0');
    await page.keyboard.press('ArrowRight');
    t.same(await page.evaluate(() => [...document.querySelectorAll('.token')].indexOf(document.activeElement)), 1, 'by the keyboard');
    await web.accessible(page, 'axe: probabilities');
    await page.click('text=Probabilities');
    t.same(await page.$('.token'), null, 'and back');
    await page.selectOption('#chat-model', 'mark');
}

// Stop, continue, regenerate, edit.
async function changes(page) {
    await page.fill('#chat-max', '9');
    await page.click('.assistant .tools >> text=Regenerate');
    await page.waitForFunction(() => /cut at the maximum/.test(document.querySelector('.assistant .meta').textContent));
    await complete(page);
    const begin = await text(page, '.assistant .bubble');
    await page.fill('#chat-max', '400');
    await page.click('.assistant .tools >> text=Continue');
    await page.waitForFunction((n) => document.querySelector('.assistant .bubble').textContent.length > n && !document.querySelector('.streaming'), begin.length);
    await complete(page);
    t.same(await page.$$eval('.message', (all) => all.length), 2, 'continued, not answered again');
    t.check((await text(page, '.assistant .bubble')).startsWith('Fish'), 'what was there stays');
    await page.click('.user .tools >> text=Edit');
    await page.fill('.edit textarea', 'another question');
    await web.accessible(page, 'axe: editing');
    await page.click('.edit >> text=Send');
    await complete(page);
    t.same(await text(page, '.user .bubble'), 'another question', 'an edited turn');
    t.same(await page.$$eval('.message', (all) => all.length), 2, 'the conversation goes on from there');
    await page.click('.assistant .tools >> text=Edit');
    await page.fill('.edit textarea', 'what **I** would say');
    await page.click('.edit >> text=Save');
    t.same(await page.$eval('.assistant .bubble p', (e) => e.innerHTML), 'what <strong>I</strong> would say', 'an edited answer');
}

// The page goes along with the answer until the reader scrolls up. The line is slow, so that there is time to.
async function following(page, server) {
    await page.click('#chat-new');
    await page.selectOption('#chat-model', 'long');
    await page.fill('#chat-max', '2000');
    const line = await page.context().newCDPSession(page);
    await line.send('Network.enable');
    await line.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: 30000, uploadThroughput: 30000 });
    await page.fill('#chat-text', 'count');
    await page.keyboard.press('Enter');
    const rows = (n) => page.waitForFunction((k) => document.querySelectorAll('.assistant li').length > k, n);
    await rows(30);
    const place = () => page.evaluate(() => [scrollY, document.documentElement.scrollHeight - innerHeight - scrollY]);
    await t.until(async () => (await place())[0] > 200 && (await place())[1] < 60, 'the page follows the answer');
    await page.mouse.move(300, 300);
    await page.mouse.wheel(0, -400);
    await page.waitForSelector('#chat-latest', { state: 'visible' });
    let at = -1;
    await t.until(async () => { // the wheel's own movement is over
        const was = at;
        await t.sleep(200);
        [at] = await place();
        return at === was;
    }, 'the wheel stops');
    await rows(await page.$$eval('.assistant li', (all) => all.length) + 10);
    t.same((await place())[0], at, 'a reader who has scrolled up stays there');
    await page.click('#chat-latest');
    await t.until(async () => (await place())[1] < 60, 'and goes along again');
    await page.click('#chat-form .send[aria-label="Stop"]');
    await page.waitForFunction(() => /stopped/.test(document.querySelector('.assistant .meta').textContent));
    const now = await page.$$eval('.assistant li', (all) => all.length);
    t.check(now < 200, `stopped after ${now} of 220 rows`);
    await line.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
    await t.until(async () => /shoal_in_flight\{model="long"\} 0/.test(await (await fetch(`${server.url}/metrics`)).text()), 'the server stops, too');
}

async function sideBySide(page) {
    await page.click('#chat-new');
    await page.fill('#chat-max', '30');
    await page.selectOption('#chat-model', 'mark');
    await page.selectOption('#chat-second', 'long');
    await page.fill('#chat-system', 'be short');
    const asked = [];
    page.on('request', (r) => r.url().endsWith('/chat/completions') && asked.push(r.postDataJSON()));
    await send(page, 'both');
    t.same((await page.$$eval('.pair .who', (all) => all.map((e) => e.textContent))).join(), 'mark,long', 'two answers');
    t.check((await page.$$eval('.pair .meta', (all) => all.map((e) => e.textContent))).every((m) => /tokens\/s · first after/.test(m)), 'with their speed');
    await send(page, 'and now?');
    t.same(asked.map((b) => b.messages.length).join(), '2,2,4,4', 'system prompt and history');
    t.check(asked[2].messages[2].content.startsWith('# Fish') && asked[3].messages[2].content.startsWith('0. row'), 'each has its own past');
    await page.selectOption('#chat-second', '');
    await web.accessible(page, 'axe: side by side');
}

async function conversations(page) {
    const titles = () => page.$$eval('.conversation', (all) => all.map((e) => e.textContent).join());
    t.same(await titles(), 'both,count,another question', 'conversations, the newest first');
    await page.reload();
    await page.waitForSelector('#chat-model option[value="mark"]', { state: 'attached' });
    t.same(await titles(), 'both,count,another question', 'they stay');
    t.same(await page.$$eval('.message', (all) => all.length), 4, 'and the open one is open');
    await page.click('.conversation >> text=another question');
    t.same(await text(page, '.assistant .bubble'), 'what I would say', 'another one');
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('#chat-export')]);
    t.same(file.suggestedFilename(), 'another-question.md', 'its file');
    t.check(fs.readFileSync(await file.path(), 'utf8').endsWith('## You\n\nanother question\n\n## mark\n\nwhat **I** would say\n'), 'as Markdown');
    await page.click('[aria-label="Delete another question"]');
    t.same(await titles(), 'both,count', 'one is deleted');
    await page.click('#chat-delete-all');
    t.same(await titles(), 'both,count', 'all only after a second click');
    await page.click('#chat-delete-all');
    t.same(await titles(), '', 'all are deleted');
    await page.reload();
    t.check(await page.isVisible('#chat-empty h2'), 'the empty view');
    await page.setViewportSize({ width: 1180, height: 560 });
    t.same(await page.evaluate(() => document.documentElement.scrollHeight), 560, 'which fills the window, not more');
    await page.setViewportSize({ width: 1180, height: 860 });
}

// A message that the model cannot take: the error says why, and the message can be changed.
async function refused(page) {
    page.allowed = /status of 400/;
    await page.fill('#chat-text', 'word '.repeat(9000));
    await page.keyboard.press('Enter');
    await page.waitForSelector('.chat-log .error');
    t.check(/did not accept.*context/.test(await text(page, '.chat-log .error')), 'an error in words');
    t.check(await page.isVisible('.user .tools >> text=Edit'), 'the message is still there, to be changed');
    await page.reload();
    t.check(await page.isVisible('text=Answer it'), 'also after a reload');
    await page.click('.user .tools >> text=Edit');
    await page.fill('.edit textarea', 'short');
    await page.click('.edit >> text=Send');
    await complete(page);
    t.same(await page.$$eval('.message', (all) => all.length), 2, 'and is answered');
}

(async () => {
    const server = await t.start(shoal, ['-m', model('mark', marked), '-m', model('long', lines), '-m', `reply=${t.root}/models/reply-draft.gguf`]);
    const browser = await web.launch();
    const page = await web.open(browser, server.url, { acceptDownloads: true }, '/#chat');
    await page.waitForSelector('#chat-model option[value="long"]', { state: 'attached' });
    await markdown(page);
    await probabilities(page);
    await changes(page);
    await following(page, server);
    await sideBySide(page);
    await conversations(page);
    await refused(page);
    await browser.close();
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
