// page.js - for tests of the page: a real Chromium, a page whose console is watched, accessibility (axe-core), widths.
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const { chromium } = require(t.npm('playwright-core@1.56.1'));
const axe = fs.readFileSync(path.join(t.npm('axe-core@4.11.0'), 'axe.min.js'), 'utf8');

function browserPath() {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
        const found = spawnSync('sh', ['-c', `command -v ${name}`]).stdout.toString().trim();
        if (found)
            return found;
    }
    throw new Error('no Chromium here: run tools/install-deps test');
}

const launch = (args = []) => chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox', ...args] });

// Every message on the console and every failure of the page is a failed check. page.allowed: expected messages.
function watch(page) {
    page.allowed = /^$/;
    page.on('console', (m) => t.check(!['error', 'warning'].includes(m.type()) || page.allowed.test(m.text()),
        `console: ${m.text()} ${m.location().url}`));
    page.on('pageerror', (e) => t.check(false, `the page failed: ${e.stack}`));
    page.setDefaultTimeout(60000);
}

// A page whose console and requests are watched.
async function open(browser, url, options = {}, hash = '') {
    const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    watch(page);
    page.on('request', (r) => t.check(r.url().replace(/^blob:/, '').startsWith(url), `a request to ${r.url()}`));
    await page.goto(url + hash);
    return page;
}

async function noScroll(page, what) {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    t.check(over <= 0, `${what}: ${over} pixels too wide`);
}

async function accessible(page, what) {
    await page.evaluate(axe);
    const { violations, passes } = await page.evaluate(() => window.axe.run(document));
    t.check(passes.some((p) => p.id === 'color-contrast'), `${what}: colours were measured`);
    for (const v of violations)
        t.check(false, `${what}: ${v.impact}: ${v.help}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`);
}

module.exports = { accessible, launch, noScroll, open, watch };
