#!/usr/bin/env node
// The clock of a member's machine is set forward and back while it is connected to NATS: libnats waits until a time of the day, so
// what waits when the clock is set back would go on to wait by as much.  The member connects anew, and ends when it is told to.
// Usage: cluster_clock.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const c = require('./cluster_site.js');

const shoal = path.resolve(process.argv[2]);
const library = path.join(path.dirname(shoal), 'tests/libchaos_faults.so'), faults = path.join(t.tmp, 'faults');
const HOUR_MS = 3600000n;

// As tests/chaos/faults.c reads it.
function set_clock(ms) {
    const bytes = Buffer.alloc(24);
    bytes.writeBigInt64LE(ms, 16);
    fs.writeFileSync(faults, bytes, { flag: 'r+' });
}

let nats = null;

(async () => {
    if (!fs.existsSync(library)) { // a build with a sanitizer has none
        console.log('skipped: libchaos_faults.so is not built');
        process.exit(77);
    }
    const port = await t.free_port(), url = `nats://127.0.0.1:${port}`;
    nats = new c.Nats(['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', path.join(t.tmp, 'nats')]);
    fs.writeFileSync(faults, Buffer.alloc(24));
    const node = new c.Member(shoal, 'node', 'node1', ['--no-models', '--insecure', '--join', url, '--listen', '127.0.0.1:0']);
    node.env = { LD_PRELOAD: library, SHOAL_CHAOS_FAULTS: faults };
    await node.start();
    const connects = () => node.log.split('NATS is there').length - 1;
    const until = (what, why) => t.until(what, { toString: () => `${why}: ${node.log.slice(-2000)}` });
    await until(() => connects() === 1, 'it connects');
    set_clock(HOUR_MS);
    await until(() => /set forward by 3600/.test(node.log), 'it notices that the clock was set forward');
    t.same(connects(), 1, 'which is no reason to connect anew');
    set_clock(0n);
    await until(() => connects() === 2, 'it connects anew when the clock was set back');
    t.check(/set back by 3600/.test(node.log), 'and says why');
    t.same((await node.end('SIGTERM')).code, 0, 'it ends');
    t.finish();
})().catch(t.abandon);
