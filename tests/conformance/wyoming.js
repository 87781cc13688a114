#!/usr/bin/env node
// The official Wyoming client (PyPI) against `shoal serve --wyoming` and `shoal satellite`.
// Usage: wyoming.js SHOAL PYTHON
'use strict';
const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const [shoal, python] = process.argv.slice(2).map((p) => path.resolve(p));
process.chdir(t.root); // where ./models is

function report(r, n) {
    t.check(r.status === 0, `the client: ${r.stderr}`);
    for (const line of r.stdout.trim().split('\n').filter(Boolean)) {
        const { what, ok, got } = JSON.parse(line);
        t.check(ok, `${what}: ${JSON.stringify(got)}`);
    }
    t.same(r.stdout.trim().split('\n').length, n, 'all of the client\'s checks ran');
}

// `shoal satellite --listen`: its microphone is a WAV file, its loudspeaker another.
async function satellite() {
    const file = path.join(t.root, 'tests/data/audio/kitchen_lights.wav'), reply = path.join(t.tmp, 'reply.wav');
    const child = spawn(shoal, ['satellite', '--listen', 'tcp://127.0.0.1:0', '-d', '-', '-o', reply, '--name', 'kitchen', '--room', 'Kitchen'],
        { stdio: [fs.openSync(file), 'pipe', 'inherit'] });
    const uri = await t.within(new Promise((done) => child.stdout.on('data', (d) => done(String(d).match(/tcp:\S+/)?.[0]))), 'a satellite');
    const samples = (fs.statSync(file).size - 44) / 2;
    report(spawnSync(python, [path.join(__dirname, 'wyoming_satellite.py'), uri, String(samples)], { encoding: 'utf8', timeout: 120000 }), 6);
    t.same(fs.statSync(reply).size, 44 + 10 * 4410, 'what it has played');
    child.kill('SIGINT');
    t.same((await t.within(t.ended(child), 'its end')).code, 0, 'the satellite ends cleanly');
}

(async () => {
    const port = await t.free_port();
    const config = path.join(t.tmp, 'wake.yaml');
    fs.writeFileSync(config, 'wake: hey shoal\n');
    const server = await t.start(shoal, ['--config', config, '--wyoming', `tcp://127.0.0.1:${port}`]);
    const audio = path.join(t.root, 'tests/data/audio');
    const r = spawnSync(python, [path.join(__dirname, 'wyoming_client.py'), `tcp://127.0.0.1:${port}`, path.join(audio, 'kitchen_lights.wav'),
        path.join(audio, 'amiable.wav'), path.join(audio, 'hey_shoal.wav')], { encoding: 'utf8', timeout: 300000 });
    report(r, 21);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    await satellite();
    t.finish();
})();
