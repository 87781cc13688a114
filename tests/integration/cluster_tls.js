#!/usr/bin/env node
// Members of a shoal over TCP with certificates: valid ones work; those of another CA, of another role, revoked or
// expired do not, and both sides say why. Replacing a certificate does not disturb a running stream.
// Usage: cluster_tls.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const tls = require('tls');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]), dir = t.tmp;
const ca = (...args) => execFileSync(shoal, ['ca', ...args], { cwd: dir });
const certs = (name, base = 'ca') => path.join(dir, base, 'members', name);
const body = { model: 'reply', prompt: 'ask: what is the weather', max_tokens: 100, ignore_eos: true, temperature: 0 };

async function node(name) {
    const m = await new c.Member(shoal, 'node', name, ['--listen', '127.0.0.1:0', '--certs', certs(name)]).start();
    m.address = m.out.match(/listening for other members on (\S+)/)[1];
    return m;
}

async function gateway(name, nodes, folder) {
    return new c.Member(shoal, 'gateway', name, ['--listen', '127.0.0.1:0', '--certs', folder,
        ...nodes.flatMap((n) => ['--node', n.address])]).start();
}

// Waits until the log of a member contains this.
const says = (m, what, why) => t.until(() => what.test(m.log), `${why}: ${m.log.slice(-600)}`);

(async () => {
    ca('init');
    for (const name of ['node1', 'node2', 'bad-node'])
        ca('issue', name, '--role', 'node', '--host', '127.0.0.1');
    for (const name of ['gw', 'gone'])
        ca('issue', name, '--role', 'gateway');
    ca('issue', 'boss', '--role', 'admin');
    ca('issue', 'old', '--role', 'gateway', '--days', '1');
    fs.mkdirSync(path.join(dir, 'foreign'));
    execFileSync(shoal, ['ca', 'init'], { cwd: path.join(dir, 'foreign') });
    execFileSync(shoal, ['ca', 'issue', 'gw', '--role', 'gateway'], { cwd: path.join(dir, 'foreign') });

    const nodes = [await node('node1'), await node('node2')];
    const gw = await gateway('gw', nodes, certs('gw'));
    await c.all_ready({ nodes, gateway: gw }, 2);
    const want = await c.stream(gw.url, body);
    t.same(want.error, null, 'a stream over TLS');
    t.check(/^node[12]$/.test(want.node), `answered by ${want.node}`);

    // members with wrong certificates
    const foreign = await gateway('gw', nodes, certs('gw', 'foreign/ca'));
    await says(foreign, /not signed by our CA/, 'a foreign CA');
    t.same((await fetch(`${foreign.url}/readyz`)).status, 503, 'a foreign gateway has no node');
    await foreign.end();
    const role = spawnSync(shoal, ['gateway', '--node', nodes[0].address, '--certs', certs('boss')]);
    t.same(role.status, 1, 'a gateway with the role admin');
    t.check(/does not have the role gateway/.test(role.stderr), `says ${role.stderr}`);
    const plain = spawnSync(shoal, ['node', '--listen', '127.0.0.1:0']);
    t.check(plain.status === 1 && /need certificates/.test(plain.stderr), `without certificates: ${plain.stderr}`);
    const name = spawnSync(shoal, ['node', '--listen', '127.0.0.1:0', '--certs', certs('node1'), '--name', 'other']);
    t.check(name.status === 1 && /its certificate is for 'node1'/.test(name.stderr), `another name: ${name.stderr}`);
    const bare = await new Promise((done) => {
        const [host, port] = nodes[0].address.split(':');
        const s = tls.connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ['h2'] });
        s.on('error', (e) => done(e.code));
        s.on('close', () => done('closed'));
        s.on('secureConnect', () => s.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'));
    });
    t.check(bare, `a client without a certificate: ${bare}`);

    // revoked: the node reloads the list by itself
    ca('revoke', 'gone');
    for (const n of nodes)
        fs.copyFileSync(path.join(dir, 'ca/crl.pem'), path.join(certs(n.name), 'crl.pem'));
    const gone = await gateway('gone', nodes, certs('gone')).catch((e) => e);
    if (gone instanceof Error)
        t.check(/revoked/.test(gone.message), gone.message);
    else
        await says(gone, /node \S+ is lost/, 'a revoked gateway');

    // a stream continues while every certificate is replaced, and the next connection uses the new one
    const unasked = { ...body, prompt: 'what no node has the answer of yet' };
    const first = c.stream(gw.url, unasked, (g) => {
        if (g.n === 3)
            for (const m of ['gw', 'node1', 'node2'])
                ca('issue', m, '--force', ...(m === 'gw' ? [] : ['--host', '127.0.0.1']));
    });
    const kept = (await first).text;
    t.same(kept, (await c.stream(gw.url, unasked)).text, 'a stream while certificates are replaced');
    await nodes[0].end('SIGKILL');
    await nodes[0].start();
    nodes[0].address = nodes[0].out.match(/listening for other members on (\S+)/)[1];
    const again = await gateway('gw', nodes, certs('gw'));
    await c.all_ready({ nodes, gateway: again }, 2, again);
    t.same((await c.stream(again.url, body)).text, want.text, 'with new certificates');
    t.same((await again.end('SIGTERM')).code, 0, 'exit');
    await c.close();
    t.finish();
})().catch(t.abandon);
