// registry_start.js - a real OCI registry on a free port of this machine.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

// Resolves with its process, the folder of its blobs and HOST:PORT, which it logs. http, more: further lines of its configuration.
async function start(program, { name = 'registry', http = '', more = '' } = {}) {
    const config = path.join(t.tmp, `${name}.yml`), dir = path.join(t.tmp, name);
    fs.writeFileSync(config, `version: 0.1\nlog: {level: info}\nstorage: {delete: {enabled: true}, filesystem: {rootdirectory: ${dir}}}\n` +
        `http: {addr: "127.0.0.1:0"${http}}\n${more}`);
    const child = spawn(program, ['serve', config], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, OTEL_TRACES_EXPORTER: 'none' } });
    let log = '';
    for (const out of [child.stdout, child.stderr])
        out.on('data', (x) => { log += x; });
    process.on('exit', () => child.kill('SIGKILL'));
    child.on('error', (e) => { log += String(e); });
    const host = () => /listening on (127\.0\.0\.1:\d+)/.exec(log)?.[1];
    await t.until(() => host() || child.exitCode !== null || /ENOENT/.test(log), `${program} listens`);
    if (!host())
        throw new Error(`${program} does not start: ${log}`);
    return { child, dir, host: host(), url: `http://${host()}` };
}

module.exports = { start };
