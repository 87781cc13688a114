#!/usr/bin/env node
// The Shoal view of the page in a real Chromium: live nodes; a node that is killed and comes back; a stream that moves
// to another node.
// Usage: cluster_web.js SHOAL    writes screenshots/shoal*.png beside SHOAL
'use strict';
const { spawn } = require('child_process');
const { createHash } = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');
const web = require('./page.js');

const shoal = path.resolve(process.argv[2]), shots = path.join(path.dirname(shoal), 'screenshots');
process.chdir(t.root); // where ./models is
fs.mkdirSync(shots, { recursive: true });

// A page whose console is watched. Each server view uses a new page: a page that navigates away may complain about what
// the browser still fetches for the old address, such as its icon.
async function open(context) {
    const page = await context.newPage();
    web.watch(page);
    return page;
}

const pills = (page, want) => page.waitForFunction((w) => [...document.querySelectorAll('#shoal-nodes .pill')]
    .map((p) => p.textContent).sort().join() === w, want);

// A shoal with NATS: the page shows the controller, drains a node and resumes it.
async function drain(context) {
    const nats = spawn('nats-server', ['-js', '-sd', path.join(t.tmp, 'js'), '-a', '127.0.0.1', '-p', '-1', '--ports_file_dir',
        t.tmp], { stdio: 'ignore' });
    process.on('exit', () => nats.kill('SIGKILL'));
    const file = path.join(t.tmp, `nats-server_${nats.pid}.ports`);
    await t.until(() => fs.existsSync(file) && fs.readFileSync(file, 'utf8').includes('nats://'), 'NATS listens');
    const url = JSON.parse(fs.readFileSync(file, 'utf8')).nats[0], join = ['--insecure', '--join', url];
    await new c.Member(shoal, 'node', 'hub1', [...join, '--listen', `unix:${path.join(t.tmp, 'hub1.sock')}`, '--no-models']).start();
    const config = path.join(t.tmp, 'front.yaml'), sum = createHash('sha256').update('sesame').digest('hex');
    fs.writeFileSync(config, `listen: 127.0.0.1:0\nkeys: [{name: boss, sha256: ${sum}, admin: true}, {name: other, sha256: ${
        createHash('sha256').update('guest').digest('hex')}}]\n`);
    const gateway = await new c.Member(shoal, 'gateway', 'front', [...join, '--name', 'front', '--config', config]).start();
    const enter = async (key) => { // with this key
        const page = await open(context);
        await page.addInitScript((k) => sessionStorage.setItem('shoal-key', JSON.stringify(k)), key);
        await page.goto(gateway.url);
        await page.click('#nav-shoal');
        await pills(page, 'ready');
        return page;
    };
    let page = await enter('guest');
    t.same(await page.$('#drain-hub1'), null, 'a key without administration has no button');
    await page.close();
    const refused = await fetch(`${gateway.url}/admin/cluster`, { method: 'POST', headers: { authorization: 'Bearer guest' },
        body: '{"node": "hub1", "action": "drain"}' });
    t.same(refused.status, 403, 'nor may it drain');
    page = await enter('sesame');
    await page.waitForFunction(() => /controller (hub1|front)/.test(document.querySelector('#shoal-sum')?.textContent));
    // the list is redrawn between press and release: the click still counts
    await page.hover('#drain-hub1');
    await page.mouse.down();
    const other = await fetch(`${gateway.url}/admin/cluster`, { method: 'POST', headers: { authorization: 'Bearer sesame' },
        body: '{"node": "hub1", "action": "drain"}' });
    t.same(other.status, 202, 'somebody else drains it');
    const told = (text) => page.waitForFunction((x) => document.querySelector('#shoal-events')?.textContent?.includes(x), text);
    await told('hub1 is draining');
    t.same(await page.textContent('#drain-hub1'), 'Drain', 'the button stays while it is pressed');
    await page.mouse.up();
    await told('hub1 is being drained');
    await pills(page, 'drained');
    await page.waitForFunction(() => document.querySelector('#drain-hub1')?.textContent === 'Undrain');
    await page.screenshot({ path: path.join(shots, 'shoal-drained.png') });
    await page.click('#drain-hub1');
    await pills(page, 'ready');
    await page.close();
    await c.close();
    nats.kill('SIGKILL');
}

(async () => {
    const site = await c.open(shoal, {});
    const browser = await web.launch();
    const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, reducedMotion: 'reduce' });
    const page = await open(context);
    await page.goto(site.gateway.url);
    await page.waitForSelector('#nav-shoal', { state: 'visible' });
    await page.click('#nav-shoal');
    await pills(page, 'ready,ready,ready');
    t.check(/^3 of 3 nodes ready/.test(await page.textContent('#shoal-sum')), 'the sum');
    await page.screenshot({ path: path.join(shots, 'shoal.png') });
    await web.accessible(page, 'axe: shoal');

    await site.nodes[1].end('SIGKILL');
    await pills(page, 'lost,ready,ready');
    await page.waitForFunction(() => /node2 is lost/.test(document.querySelector('#shoal-events')?.textContent));
    await page.screenshot({ path: path.join(shots, 'shoal-lost.png') });
    await site.nodes[1].start();
    await pills(page, 'ready,ready,ready');
    await page.waitForFunction(() => /node2 accepts requests/.test(document.querySelector('#shoal-events')?.textContent));

    // the other views, at a gateway without models
    await page.click('nav a[href="#models"]');
    await page.waitForFunction(() => /reply/.test(document.querySelector('#models-list')?.textContent));
    await page.click('nav a[href="#ask"]');
    await page.fill('#ask-text', 'turn off the kitchen lights');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /kitchen lights are now off/i.test(document.querySelector('.turn')?.textContent));
    await page.setViewportSize({ width: 360, height: 720 });
    await page.click('#nav-shoal');
    await pills(page, 'ready,ready,ready');
    await web.noScroll(page, 'on a small screen');
    await page.close();
    t.same((await site.gateway.end('SIGTERM')).code, 0, 'the gateway ends while nobody watches');
    await c.close(site);
    await drain(context);
    await browser.close();
    t.finish();
})().catch(t.abandon);
