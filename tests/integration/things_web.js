#!/usr/bin/env node
// The Sensors and Home views of the page in a real Chromium: readings become charts, an alarm appears with its
// explanation and is acknowledged; a command changes the states of the house.
// Usage: things_web.js SHOAL    writes screenshots/sensors*.png and home*.png beside SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const web = require('./page.js');

const shoal = path.resolve(process.argv[2]), shots = path.join(path.dirname(shoal), 'screenshots');
process.chdir(t.root); // where ./models is
fs.mkdirSync(shots, { recursive: true });

const config = 'machines:\n  - {name: motor3, title: motor 3}\n  - {name: pump1, title: pump 1}\nsensors:\n' +
    '  - {name: vib, title: vibration, unit: mm/s, machine: motor3, limits: "..7", learn: 64, interval: 400ms, lost: 1h, clear: 1s, hold_off: 1ms}\n' +
    '  - {name: temp, title: bearing temperature, unit: °C, machine: motor3, learn: 64, interval: 400ms, lost: 1h}\n' +
    '  - {name: flow, title: flow, unit: l/min, machine: pump1, normal: "10..14", learn: 64, interval: 400ms, lost: 1h}\n' +
    '  - {name: hall, title: hall <b>temperature</b>, unit: °C, learn: 64, interval: 400ms, lost: 1h}\n' +
    '  - {name: fresh, title: fresh, unit: V, learn: 64, interval: 400ms, lost: 1h}\n';

(async () => {
    const file = path.join(t.tmp, 'things.yaml');
    fs.writeFileSync(file, config);
    const server = await t.start(shoal, ['--config', file]);
    const put = async (...readings) => t.same((await fetch(`${server.url}/v1/readings`, { method: 'POST',
        headers: { 'content-type': 'application/json' }, body: JSON.stringify({ readings }) })).status, 202, 'readings are taken');
    const browser = await web.launch();
    const page = await web.open(browser, server.url);
    const until = (fn, arg) => page.waitForFunction(fn, arg);

    // the last 32 s, which is history when the page opens: well within the 60 s that a clock may be off
    const began = Date.now() - 33000, noise = (i) => Math.sin(i * 12.9898) * 43758.5453 % 1;
    const row = (i, vib, temp) => ['vib', 'temp', 'flow', 'hall'].map((sensor, k) => ({ sensor, time_ms: i < 80 ? began + i * 400 : undefined,
        value: Number(([vib, temp, 12, 21][k] + [0.2, 0.5, 0.4, 0.2][k] * noise(i + 7 * k)).toFixed(3)) }));
    const past = [];
    for (let i = 0; i < 80; i++)
        past.push(...row(i, 2.5, 61));
    await put(...past, ...Array.from({ length: 5 }, (_, i) => ({ sensor: 'fresh', time_ms: began + i * 400, value: 5 + 0.1 * noise(i) })));
    await page.click('#nav-sensors');
    await page.waitForSelector('[data-sensor="vib"] .chart-line[d*="L"]', { state: 'attached' });
    await until(() => /Normal is 2\.\d+ to 2\.\d+ mm\/s\.( \d+ readings? in doubt\.)?$/.test(document.querySelector('[data-sensor="vib"] .hint').textContent));
    t.same((await page.$$eval('.machine-title', (all) => all.map((e) => e.textContent))).join(), 'motor 3,pump 1,Other sensors', 'machines');
    t.same(await page.textContent('[data-sensor="hall"] h3'), 'hall <b>temperature</b>', 'a title is text');
    t.same(await page.textContent('#sensors-sum'), '5 sensors, no open alarm. 1 still learns what is normal.', 'the sum');
    t.same(await page.textContent('[data-sensor="fresh"] .pill'), 'still learning', 'a sensor that is new says so');
    const points = await page.$eval('[data-sensor="vib"] .chart-line', (e) => e.getAttribute('d').split('L').length);
    t.check(points > 20, `a chart with what was before: ${points} points`);
    await web.accessible(page, 'axe: sensors');
    await page.screenshot({ path: path.join(shots, 'sensors-calm.png') });

    // the bearing breaks
    await put(...row(80, 2.6, 61));
    await put(...row(81, 4.9, 63));
    await put(...row(82, 7.6, 66));
    await page.waitForSelector('.alarm.bad');
    await until(() => /^vibration on motor 3 rose from 2\.\d+ to 7\.\d+ mm\/s.* above the limit of 7 mm\/s/.test(
        document.querySelector('.alarm.bad .alarm-text')?.textContent));
    await until(() => document.querySelector('[data-sensor="vib"].alarmed .pill')?.textContent === 'limit');
    t.check(/^vibration on motor 3/.test(await page.textContent('#sensors-live')), 'a screen reader hears of it');
    await until(() => /^7\.\d+ mm\/s$/.test(document.querySelector('[data-sensor="vib"] .sensor-value').textContent));
    await until(() => getComputedStyle(document.querySelector('[data-sensor="vib"] .chart-limit')).visibility === 'visible');
    await web.accessible(page, 'axe: an alarm');
    await page.screenshot({ path: path.join(shots, 'sensors.png') });
    await page.click('.alarm.bad button');
    await until(() => /acknowledged/.test(document.querySelector('.alarm.bad .hint').textContent));
    t.same(await page.$('.alarm.bad button'), null, 'acknowledged once');

    // ... and is repaired
    await t.until(async () => {
        await put({ sensor: 'vib', value: 2.5 + 0.2 * noise(Date.now() % 1000) });
        return await page.$('.alarm.over') !== null;
    }, 'the alarm is over on the page');
    await until(() => !document.querySelector('[data-sensor="vib"]').classList.contains('alarmed'));

    // the house
    await page.click('#nav-home');
    await until(() => /No device is connected/.test(document.getElementById('home-sum').textContent));
    const is = (id, value) => page.waitForSelector(`[data-thing="${id}"] [data-value="${value}"][aria-pressed="true"]`, { state: 'attached' });
    await is('kitchen_lights', 'off'); // from the start
    t.same(await page.$$eval('.segment:not(:has([aria-pressed="true"]))', (all) => all.filter((e) => !e.closest('.thing-more')).length), 0, 'every thing has its state');
    t.same(await page.textContent('[data-thing="bedroom_temperature"] .thing-states'), 'not known yet', 'but what nobody measured');
    await page.fill('#home-text', 'turn on the kitchen lights and set the heating to 19 degrees');
    await page.keyboard.press('Enter');
    await is('kitchen_lights', 'on');
    await until(() => /19 °C/.test(document.querySelector('[data-thing="heating"] .thing-states').textContent));
    await until(() => /kitchen lights are now on/.test(document.getElementById('home-reply').textContent));
    await until(() => document.querySelector('[data-thing="kitchen_lights"]').classList.contains('changed'));
    await page.fill('#home-text', 'turn off the kitchen lights');
    await page.keyboard.press('Enter');
    await is('kitchen_lights', 'off');
    // commands of other clients show up too
    await fetch(`${server.url}/v1/process`, { method: 'POST', body: JSON.stringify({ text: 'lock the front door' }) });
    await is('front_door', 'locked');
    t.same(await page.textContent('[data-thing="front_door"] .thing-states'), 'locked', 'in words, where the control is not open');
    // things can be clicked: through the gate, which asks for what is dangerous
    await page.click('[data-thing="office_lights"] [data-value="on"]');
    await is('office_lights', 'on');
    await is('hall_light', 'off'); // and nothing else
    await page.click('[data-thing="office_lights"] .thing-name');
    await page.$eval('[data-thing="office_lights"] input[type="range"]', (e) => { e.value = 40; e.dispatchEvent(new Event('change')); });
    await until(() => /40 %/.test(document.querySelector('[data-thing="office_lights"] .thing-states').textContent));
    await page.click('[data-thing="oven"] [data-value="on"]');
    await page.waitForSelector('#confirm[open]');
    t.same(await page.textContent('#confirm-title'), 'Shall I turn on the oven?', 'what is dangerous is asked');
    await web.accessible(page, 'axe: a confirmation');
    await page.keyboard.press('Escape');
    await until(() => document.getElementById('home-reply').textContent === 'Nothing was done.');
    await is('oven', 'off'); // not without a yes
    await page.click('[data-thing="oven"] [data-value="on"]');
    await page.click('#confirm-yes');
    await is('oven', 'on');
    await page.click('#home-scenes button');
    await is('living_room_blinds', 'closed');
    // scheduled actions
    await page.fill('#home-text', 'turn off the heating in 20 minutes');
    await page.keyboard.press('Enter');
    await until(() => /turn off the heating/.test(document.querySelector('[data-scheduled]')?.textContent));
    await page.fill('#home-text', 'remind me every monday at 9 to call Anna');
    await page.keyboard.press('Enter');
    await until(() => [...document.querySelectorAll('[data-scheduled]')].some((e) => /^Reminder: call AnnaMon.*, 09:00every MondayCancel$/.test(e.textContent)));
    // what rings is heard on every view
    await page.evaluate(() => {
        const make = AudioContext.prototype.createOscillator;
        window.tones = 0;
        AudioContext.prototype.createOscillator = function () {
            window.tones++;
            return make.call(this);
        };
    });
    await page.fill('#home-text', 'remind me in 1 second to check the oven');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.ring');
    t.check(/^Reminder.*check the oven/i.test(await page.textContent('.ring')), `what rings: ${await page.textContent('.ring')}`);
    await until(() => window.tones > 1);
    await web.accessible(page, 'axe: a ring');
    await page.click('.ring button');
    t.same(await page.$('.ring'), null, 'stopped');
    t.check(!/⏰/.test(await page.title()), 'the title is as it was');
    await until(() => /check the oven.*rang/i.test(document.querySelector('[data-over]')?.textContent));
    await web.accessible(page, 'axe: home');
    const left = await page.$$eval('[data-scheduled]', (all) => all.length);
    await page.click('[data-scheduled] button');
    await until((n) => document.querySelectorAll('[data-scheduled]').length === n - 1, left);
    await page.screenshot({ path: path.join(shots, 'home.png'), fullPage: true });

    for (const [colorScheme, width] of [['dark', 1180], ['dark', 375], ['light', 320]]) {
        const small = await web.open(browser, server.url, { viewport: { width, height: 760 }, colorScheme }, '/#sensors');
        await small.waitForSelector('[data-sensor="vib"] .chart-line[d*="L"]', { state: 'attached' });
        await web.noScroll(small, `sensors at ${width}`);
        if (width !== 320)
            await web.accessible(small, `axe: sensors, ${colorScheme}, ${width}`);
        await small.screenshot({ path: path.join(shots, `sensors-${colorScheme}-${width}.png`) });
        await small.click('#nav-home');
        await small.waitForSelector('[data-thing="oven"]');
        await web.noScroll(small, `home at ${width}`);
        if (width !== 320)
            await web.accessible(small, `axe: home, ${colorScheme}, ${width}`);
        await small.screenshot({ path: path.join(shots, `home-${colorScheme}-${width}.png`) });
        await small.context().close();
    }
    t.check(await page.isHidden('#sensors-demo'), 'a real plant has no button that breaks it');
    await page.context().close();
    t.same((await server.stop()).code, 0, 'exit');

    // the simulated plant of `make run`
    fs.writeFileSync(file, `${fs.readFileSync('examples/plant.yaml')}alarms: {file: ${path.join(t.tmp, 'open.json')}}\n`);
    const demo = await t.start(shoal, ['--config', file]);
    const plant = await web.open(browser, demo.url, {}, '/#sensors');
    await plant.click('#demo-break');
    await plant.waitForSelector('[data-sensor="vibration"].alarmed');
    await plant.waitForFunction(() => /Vibration on motor 3 rose/i.test(document.querySelector('#sensors-alarms')?.textContent));
    await plant.screenshot({ path: path.join(shots, 'plant.png') });
    await web.accessible(plant, 'axe: the plant');
    await plant.click('#demo-heal');
    await plant.waitForFunction(() => parseFloat(document.querySelector('[data-sensor="vibration"] .sensor-value')?.textContent) < 3);
    await browser.close();
    t.same((await demo.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
