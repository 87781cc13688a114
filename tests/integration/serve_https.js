#!/usr/bin/env node
// Webhooks, deeds and calls of flows over https: a server with a valid certificate is called; one with the certificate
// of another CA or host, or an expired one, never gets a byte. Usage: serve_https.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const https = require('https');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]), dir = path.join(t.tmp, 'certs');
const openssl = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });

function authority(name) {
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.pem`,
        '-days', '2', '-subj', `/CN=${name}`);
}

function issue(ca, name, ext, days = '2') {
    openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    fs.writeFileSync(path.join(dir, 'ext'), `subjectAltName=${ext}\n`);
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial', '-days', days, '-extfile', 'ext',
        '-out', `${name}.pem`);
}

// A server with this certificate. got: the requests that reached it.
async function serve(name, more = {}) {
    const got = [];
    const server = https.createServer({ key: fs.readFileSync(`${dir}/${name}.key`), cert: fs.readFileSync(`${dir}/${name}.pem`), ...more },
        (req, res) => {
            let body = '';
            req.on('data', (d) => { body += d; });
            req.on('end', () => {
                got.push({ method: req.method, url: req.url, body, host: req.headers.host, protocol: req.socket.getProtocol() });
                res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
            });
        });
    let refused = 0;
    server.on('tlsClientError', () => { refused++; });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { server, got, port: server.address().port, refused: () => refused };
}

(async () => {
    fs.mkdirSync(dir);
    authority('ca');
    authority('other');
    issue('ca', 'good', 'IP:127.0.0.1,DNS:localhost');
    issue('ca', 'elsewhere', 'IP:127.0.0.9,DNS:example.org');
    issue('other', 'foreign', 'IP:127.0.0.1,DNS:localhost');
    issue('ca', 'old', 'IP:127.0.0.1,DNS:localhost', '-1');
    const good = await serve('good'), old_tls = await serve('good', { maxVersion: 'TLSv1.2' });
    const bad = { elsewhere: await serve('elsewhere'), foreign: await serve('foreign'), old: await serve('old') };
    const wrong = Object.values(bad), hosts = [...[good, old_tls, ...wrong].map((s) => `127.0.0.1:${s.port}`), `localhost:${good.port}`];
    const list = hosts.map((h) => `"${h}"`).join(', '), home = path.join(t.tmp, 'home.yaml'), file = path.join(t.tmp, 'https.yaml');
    const rooms = ['kitchen', 'office', 'bedroom', 'garage', 'bathroom'], targets = [good, bad.elsewhere, bad.foreign, bad.old, old_tls];
    fs.writeFileSync(home, `name: test house\nrooms:\n${rooms.map((r) => `  - {id: ${r}}\n`).join('')}devices:\n` +
        rooms.map((r) => `  - {id: light.${r}, name: light, kind: light, room: ${r}}\n`).join(''));
    const config = (ca) => `home: ${home}\ndeeds_allow: {hosts: [${list}]${ca ? `, ca: ${ca}` : ''}}\ndeeds:\n` +
        rooms.map((r, i) => `  - {things: light.${r}, via: http, url: "https://127.0.0.1:${targets[i].port}/lights/{id}", ` +
            'payload: \'{"to": "{value}"}\', method: put, timeout: 60s, retry: 0}\n').join('') +
        `flows_allow: {hosts: [${list}]${ca ? `, ca: ${ca}` : ''}}\nflows:\n` +
        rooms.map((r, i) => `  - {name: call-${r}, output: "\${state.json.ok}", steps: [{name: state, do: call, method: get, json: true, retry: 0, ` +
            `timeout: 60s, url: "https://127.0.0.1:${targets[i].port}/state/\${input.text}"}]}\n`).join('') +
        'sensors:\n  - {name: vib, title: Vibration, unit: mm/s, limits: "..7", lost: 1h}\n' +
        `alarms:\n  file: ${path.join(t.tmp, 'open.json')}\n  allow: [${list}]\n  webhooks:\n` +
        [`https://localhost:${good.port}/hook`, ...[old_tls, ...wrong].map((s) => `https://127.0.0.1:${s.port}/hook`)]
            .map((url) => `    - {url: "${url}", timeout: 60s${ca ? `, ca: ${ca}` : ''}}\n`).join('');

    // a CA file that is missing or useless is reported at startup
    for (const [ca, why] of [[`${dir}/none.pem`, /none\.pem/], [`${dir}/good.key`, /good\.key/]]) {
        fs.writeFileSync(file, config(ca));
        const r = spawnSync(shoal, ['serve', '--listen', '127.0.0.1:0', '--config', file], { timeout: 60000,
            env: { ...process.env, SHOAL_CACHE_DIR: `${t.tmp}/cache` } });
        t.check(r.status !== 0 && r.status !== null && why.test(r.stderr.toString()), `${ca}: ${r.status} ${r.stderr.toString().slice(-300)}`);
    }
    fs.writeFileSync(file, config(`${dir}/ca.pem`));
    let server = await t.start(shoal, ['--config', file]);
    const ask = async (room) => (await (await t.within(fetch(`${server.url}/v1/process`, { method: 'POST',
        body: JSON.stringify({ text: `turn on the light in the ${room}` }) }), room)).json()).actions?.[0] ?? {};
    const count = (i, result) => t.metric(server, `shoal_webhook_events_total{webhook="${i}",result="${result}"}`);

    // deeds
    for (const [room, to] of [['kitchen', good], ['bathroom', old_tls]]) {
        const a = await ask(room);
        t.same(a.result, 'sent', `${room}: ${JSON.stringify(a)}`);
        t.same(to.got.map((g) => `${g.method} ${g.url} ${g.body} ${g.host}`).join(), `PUT /lights/light.${room} {"to": "on"} 127.0.0.1:${to.port}`, room);
    }
    t.same(`${good.got[0].protocol} ${old_tls.got[0].protocol}`, 'TLSv1.3 TLSv1.2', 'TLS');
    for (const [i, why] of [[1, /IP address mismatch/], [2, /certificate/], [3, /expired/]]) {
        const a = await ask(rooms[i]);
        t.same(a.result, 'failed', `${rooms[i]}: ${JSON.stringify(a)}`);
        t.check(why.test(a.reason), `${rooms[i]} says why: ${a.reason}`);
    }
    // calls of flows
    const call = async (room) => (await t.within(fetch(`${server.url}/v1/process`, { method: 'POST',
        body: JSON.stringify({ model: `call-${room}`, text: room }) }), room)).text();
    for (const [room, to] of [['kitchen', good], ['bathroom', old_tls]]) {
        const a = await call(room);
        t.same(JSON.parse(a).text, 'true', `${room}: ${a}`);
        t.same(to.got.filter((g) => g.url === `/state/${room}`).map((g) => g.method).join(), 'GET', `flow: ${room}`);
    }
    for (const [i, why] of [[1, /IP address mismatch/], [2, /certificate/], [3, /expired/]]) {
        const a = await call(rooms[i]);
        t.check(why.test(a), `the flow says why: ${a}`);
    }
    // webhooks: by name and by address; those for untrusted servers wait, and nothing is sent
    const put = async (value) => t.same((await fetch(`${server.url}/v1/readings`, { method: 'POST',
        body: JSON.stringify({ readings: [{ sensor: 'vib', value }] }) })).status, 202, 'reading');
    await put(2.5);
    await put(7.5);
    await t.until(async () => await count(1, 'delivered') === 1 && await count(2, 'delivered') === 1, 'the alarm is told over https');
    t.same(good.got.filter((g) => g.url === '/hook').map((g) => JSON.parse(g.body).change).join(), 'raised', 'the event');
    t.check(good.got.some((g) => g.host === `localhost:${good.port}`), 'by name');
    await t.until(() => wrong.every((s, i) => server.log.includes(`127.0.0.1:${s.port}, retrying`)), 'the log names those that are refused');
    t.same(wrong.map((s) => s.got.length).join(), '0,0,0', 'a server with a wrong certificate gets nothing');
    t.check(wrong.every((s) => s.refused() > 0), 'though it was asked');
    for (const i of [3, 4, 5])
        t.same(`${await count(i, 'delivered')} ${await count(i, 'refused')} ${await count(i, 'lost')}`, '0 0 0', `webhook ${i} waits`);
    // the certificate is fixed: what waited arrives, once
    bad.foreign.server.setSecureContext({ key: fs.readFileSync(`${dir}/good.key`), cert: fs.readFileSync(`${dir}/good.pem`) });
    await t.until(async () => await count(4, 'delivered') === 1, 'a mended server gets what waited');
    t.same(bad.foreign.got.length, 1, 'once');
    t.same((await server.stop()).code, 0, 'exit');

    // without a CA file the system's CAs are used, which know none of these certificates
    fs.writeFileSync(file, config(''));
    server = await t.start(shoal, ['--config', file]);
    t.same((await ask('kitchen')).result, 'failed', 'the authorities of the system');
    t.check(/certificate/.test(await call('kitchen')), 'a flow with the authorities of the system');
    await server.stop();
    [good, old_tls, ...wrong].forEach((s) => s.server.close());
    t.finish();
})().catch(t.abandon);
