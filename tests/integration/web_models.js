#!/usr/bin/env node
// The Models and Try views in a real Chromium: the table and the detail of a model, a model that is pulled from a registry
// with its progress, stopped, failed and removed; every task with a real request.
// Usage: web_models.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const web = require('./page.js');
const hubs = require('./model_hub.js');
const { reranker } = require('./reranker.js');

const shoal = path.resolve(process.argv[2]), data = path.join(t.root, 'tests/data');
const gguf = fs.readFileSync(path.join(data, 'refs/llama-gqa.gguf'));
process.chdir(t.root); // where ./models is
const text = (page, selector) => page.textContent(selector);

// A registry with the models NAME of Ollama's kind.
async function registry(names) {
    const hub = await hubs.start(), sum = (bytes) => `sha256:${hubs.sha256(bytes)}`;
    for (const name of names) { // the slow one has a file of its own: nobody else waits for it
        const bytes = name === 'slow' ? fs.readFileSync(path.join(data, 'refs/qwen2.gguf')) : gguf, digest = sum(bytes);
        hub.blobs[digest] = bytes;
        hub.registry[`library/${name}:latest`] = Buffer.from(JSON.stringify({ schemaVersion: 2,
            layers: [{ digest, size: bytes.length, mediaType: 'application/vnd.ollama.image.model' }] }));
        if (name === 'slow')
            hub.slow = digest;
    }
    return { hub, digest: hub.slow };
}

async function models(page, { hub, digest }) {
    await page.waitForSelector('[data-model="reply"]');
    t.check(/^1 of 12 models ready, [\d.]+ MB of memory in total\.$/.test(await text(page, '#models-sum')), `the sum: ${await text(page, '#models-sum')}`);
    await page.click('#load-reply');
    await page.waitForSelector('[data-model="reply"] .pill.good');
    t.check(/replygenerates textready[\d.]+ MB16\.9 MB/.test(await text(page, '[data-model="reply"]')), `a row: ${await text(page, '[data-model="reply"]')}`);
    await page.click('#open-card-reply');
    await page.waitForSelector('#card-text table');
    t.check(/Parameters15\.7 M.*Context1024 tokens/.test(await text(page, '#card-facts')), 'the detail');
    await page.click('#detail-load-reply');
    await page.waitForFunction(() => /Stateunloaded/.test(document.getElementById('card-facts').textContent));
    await page.click('#detail-load-reply');
    await page.waitForFunction(() => /Stateready/.test(document.getElementById('card-facts').textContent));
    await page.keyboard.press('Escape');

    // pulled: what is on its way is shown, can be stopped, and says why it failed
    const add = async (name) => {
        await page.fill('#add-name', name);
        await page.keyboard.press('Enter');
    };
    hub.silent.add(digest);
    await add('slow');
    await page.waitForFunction(() => /of \d+ kB/.test(document.querySelector('[data-pull="slow"]')?.textContent));
    await web.accessible(page, 'axe: a pull');
    await page.click('[data-pull="slow"] button');
    await page.waitForSelector('[data-pull="slow"]', { state: 'detached' });
    hub.silent.clear();
    page.allowed = /status of (4|5)\d\d/;
    await add('nothing');
    await page.waitForSelector('[data-pull="nothing"] .error');
    t.check(/has no model/.test(await text(page, '[data-pull="nothing"] .error')), `says why: ${await text(page, '[data-pull="nothing"] .error')}`);
    await page.click('[data-pull="nothing"] >> text=Dismiss');
    await add('tiny');
    await page.waitForSelector('[data-model^="tiny"]');
    t.same(await page.$$eval('[data-pull]', (all) => all.length), 0, 'nothing is on its way any more');

    // removed, after a yes
    const name = await page.getAttribute('[data-model^="tiny"]', 'data-model');
    await page.click(`[id="open-card-${name}"]`);
    await page.click('#card-actions >> text=Remove');
    await page.waitForSelector('#confirm[open]');
    await web.accessible(page, 'axe: a question');
    await page.click('#confirm-no');
    t.check(await page.isVisible(`[data-model="${name}"]`), 'a no keeps it');
    await page.click(`[id="open-card-${name}"]`);
    await page.click('#card-actions >> text=Remove');
    await page.click('#confirm-yes');
    await page.waitForSelector(`[data-model="${name}"]`, { state: 'detached' });
}

// What fits this machine.
async function machine(page) {
    await page.waitForFunction(() => /free [\d.]+ GB of [\d.]+ GB/.test(document.getElementById('machine').textContent));
    await page.waitForFunction(() => /to download.*of memory.*tokens\/s expected/.test(document.querySelector('[data-fits^="smollm2"]')?.textContent));
    t.check(await page.isVisible('[id^="pull-smollm2"]'), 'can be added');
}

async function tryOut(page) {
    const run = async (name, fields = {}) => {
        await page.click(`#try-tab-${name}`);
        for (const [field, value] of Object.entries(fields))
            await page.fill(`#try-fields [name="${field}"]`, value);
        await page.click('#try-form .primary');
        await page.waitForSelector('#try-out .meta, #try-out .error');
    };
    await page.click('nav >> text=Try');
    await run('classify', { input: 'turn off the kitchen lights' });
    t.check(/^turn off\d\d %/.test(await text(page, '#try-out .rank')), `classify: ${await text(page, '#try-out')}`);
    await run('tag', { input: 'wake me at seven tömorrow\nset the heating to 19 degrees' });
    t.check((await page.$$eval('#try-out mark', (all) => all.map((e) => e.firstChild.data))).join().startsWith('seven,tömorrow'), 'tag');
    await run('embed', { input: 'turn on the lights\nswitch on the lamp\nwill it rain tomorrow' });
    const [a, b, c] = await page.$$eval('.map circle', (all) => all.map((e) => [Number(e.getAttribute('cx')), Number(e.getAttribute('cy'))]));
    const far = ([x, y], [u, v]) => Math.hypot(x - u, y - v);
    t.check(far(a, b) < far(a, c) && far(a, b) < far(b, c), `what means the same is close: ${a} ${b} ${c}`);
    t.check(/nearest: 2, similarity 0\.\d\d/.test(await text(page, '.map-list li')), 'similarity in words');
    await web.accessible(page, 'axe: a map');
    await run('rerank');
    t.same(await page.$$eval('#try-out .rank', (all) => all.length), 3, 'rerank');
    await run('score', { input: '2.5\n2.6\n2.4\n9' });
    t.same(await page.$$eval('#try-out .rank', (all) => all.length), 4, 'score');
    await run('score', { input: 'two' });
    t.check(/cannot be sent.*Enter numbers/.test(await text(page, '#try-out .error')), 'not a number');
    await run('summarize', { count: '1' });
    t.same((await text(page, '.try-text')).split('. ').length, 1, 'summarize');
    await page.focus('#try-tab-summarize');
    await page.keyboard.press('ArrowRight');
    t.same(await page.evaluate(() => document.activeElement.id), 'try-tab-classify', 'tabs by the keyboard');
}

// A server with one decoder alone: what it cannot do says so.
async function bare(browser) {
    const server = await t.start(shoal, ['-m', `one=${path.join(data, 'refs/llama-gqa.gguf')}`], { env: { SHOAL_MODELS: t.tmp } }); // no pack: no home
    const page = await web.open(browser, server.url, {}, '/#try');
    await page.waitForSelector('#try-out .empty');
    t.check(/No model here can classify/.test(await text(page, '#try-out')), 'no such model');
    await web.accessible(page, 'axe: nothing to try');
    await page.click('nav >> text=Ask');
    await page.waitForSelector('#ask-note .empty');
    t.check(/takes no commands/.test(await text(page, '#ask-note')), 'no commands');
    t.check(!await page.isVisible('#ask-budget'), 'and no budget for them');
    for (const [view, title] of [['sensors', 'No sensors here'], ['home', 'No home here'], ['shoal', 'This server is alone']]) { // by their addresses
        await page.goto(`${server.url}/#${view}`);
        await page.waitForSelector(`#${view}-note .empty`);
        t.same(await text(page, `#${view}-note h2`), title, `nothing in ${view}`);
        t.same(await page.$$eval(`#view-${view} .error`, (all) => all.length), 0, `no failure in ${view}`);
    }
    t.check(!await page.isVisible('#home-form'), 'no field for a home that is not there');
    await page.waitForFunction(() => document.getElementById('status').textContent === '1 model ready');
    await page.click('nav >> text=Models');
    await page.waitForSelector('[data-model="one"]');
    t.check(await text(page, '[data-model="one"] td') !== '', 'no empty cell for a model without a task');
    t.check(await page.isVisible('#add-how') && !await page.isVisible('#add-form'), 'how to add a model where the page may not');
    await page.context().close();
    t.same((await server.stop()).code, 0, 'exit');
}

(async () => {
    const from = await registry(['slow', 'tiny']), config = path.join(t.tmp, 'models.yaml');
    fs.writeFileSync(config, `admin: loopback\nollama: {registry: "${from.hub.url}"}\nmodels: [{name: rank, path: ${reranker(`${data}/encoders/bert-cls`, `${t.tmp}/rank`)}}]\n`);
    const server = await t.start(shoal, ['--config', config], { all: true });
    const browser = await web.launch();
    const page = await web.open(browser, server.url, {}, '/#models');
    await models(page, from);
    await machine(page);
    await tryOut(page);
    await page.context().close();
    await bare(browser);
    await browser.close();
    t.same((await server.stop()).code, 0, 'exit');
    from.hub.stop();
    t.finish();
})().catch(t.abandon);
