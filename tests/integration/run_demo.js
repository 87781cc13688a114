#!/usr/bin/env node
// tools/run-demo (`make run`): comes up, answers, what it tells to try works, ends cleanly; a taken port is no end.
// Usage: run_demo.js SHOAL
'use strict';
const { execSync, spawn } = require('child_process');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const demo = path.join(t.root, 'tools/run-demo');

function listen(port) {
    return new Promise((done) => {
        const s = net.createServer((c) => c.destroy());
        s.listen(port, '127.0.0.1', () => done(s));
    });
}

// Runs the demo until it says how to end it; resolves with what it said.
async function run(port) {
    const child = spawn(demo, [], {
        detached: true, // a group of its own, as in a terminal
        env: { ...process.env, PORT: String(port), SHOAL: shoal, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') },
    });
    const it = { child, out: '' };
    it.ended = new Promise((done) => child.on('exit', (code) => done(code)));
    await new Promise((done, give) => {
        child.stdout.on('data', (d) => {
            it.out += d;
            if (it.out.includes('Ctrl-C ends it'))
                done();
        });
        child.stderr.on('data', (d) => { it.out += d; });
        it.ended.then(() => give(new Error(`it ended: ${it.out}`)), give);
    });
    it.url = /is ready at (\S+),/.exec(it.out)[1];
    it.stop = () => {
        process.kill(-child.pid, 'SIGINT'); // Ctrl-C
        return it.ended;
    };
    return it;
}

(async () => {
    const free = await listen(0), { port } = free.address();
    await new Promise((done) => free.close(done));
    let it = await run(port);
    t.same(it.url, `http://127.0.0.1:${port}`, 'address');
    t.check((await (await fetch(it.url)).text()).includes('<title>Shoal</title>'), 'the page');
    const commands = it.out.split('\n').filter((l) => /^ {2}(curl|\S*shoal) /.test(l));
    t.same(commands.length, 2, 'commands to try');
    for (const c of commands) {
        const said = execSync(`${c.trim()} 2>/dev/null`, { cwd: t.root }).toString();
        t.check(/"action":"(set_timer|turn_off)"/.test(said), `${c}: ${said}`);
    }
    t.same(await it.stop(), 0, 'Ctrl-C ends it');
    t.check(it.out.includes('Stopped.'), 'and says so');
    await t.until(() => fetch(it.url).then(() => false, () => true), 'the server is gone');

    const other = await listen(0);
    it = await run(other.address().port);
    t.check(it.out.includes(`Port ${other.address().port} is taken`) && !it.url.endsWith(`:${other.address().port}`),
        `a port that is taken: ${it.out}`);
    t.same((await fetch(`${it.url}/readyz`)).status, 200, 'ready');
    it.child.kill('SIGTERM');
    t.same(await it.ended, 0, 'SIGTERM ends it');
    other.close();
    t.finish();
})();
