// serve.js - for tests that talk to `shoal serve`: starts it on a free port, stops it, counts checks.
'use strict';
const { spawn, execFileSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const root = path.resolve(__dirname, '../..');
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-serve-'));
process.on('exit', () => fs.rmSync(tmp, { recursive: true, force: true }));
let failed = 0, checked = 0;
const running = new Set(), servers = new Set();
process.on('exit', () => running.forEach((p) => p.kill('SIGKILL')));

function check(ok, what) {
    checked++;
    if (ok)
        return true;
    failed++;
    console.log(`FAIL ${what}`);
    return false;
}

function same(got, want, what) {
    return check(got === want, `${what}: got ${JSON.stringify(got)}, expected ` +
        JSON.stringify(want));
}

// The error that a promise ends with; a promise that does not fail is a failed check.
async function fails(promise, what) {
    try {
        await promise;
    } catch (e) {
        return e;
    }
    check(false, `${what}: no error`);
    return {};
}

// A promise with a time limit: a call that gets no answer names itself instead of hanging until ctest ends the test.
const MAX_WAIT_MS = 120000;
function within(promise, what, ms = MAX_WAIT_MS) {
    let timer;
    const late = new Promise((done, give) => {
        timer = setTimeout(() => give(new Error(`no answer within ${ms / 1000} s: ${what}`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Ends the test after an error: prints it, and what the running servers logged last and do now.
function abandon(e) {
    console.log(e);
    for (const server of servers) {
        const tasks = `/proc/${server.child.pid}/task`;
        console.log(`-- process ${server.child.pid}: ${server.child.spawnargs.join(' ')}`);
        console.log(server.log.split('\n').slice(-60).join('\n'));
        for (const id of fs.existsSync(tasks) ? fs.readdirSync(tasks) : [])
            console.log(['comm', 'wchan'].map((f) => fs.readFileSync(`${tasks}/${id}/${f}`, 'utf8').trim()).join(' in '));
    }
    process.exit(1);
}

// Starts the server; resolves when it listens and its models are loaded.  With options.admin it listens on a unix
// socket too, for admin().
async function start(shoal, args, options = {}) {
    const listen = options.listen === null ? [] : ['--listen', options.listen ?? '127.0.0.1:0']; // null: the config says it
    const sock = path.join(tmp, `admin-${running.size}-${Date.now()}.sock`);
    if (options.admin)
        listen.push('--listen', `unix:${sock}`);
    const child = spawn(shoal, ['serve', ...listen, '--log-level', 'info', ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, SHOAL_CACHE_DIR: path.join(tmp, 'cache') },
    });
    running.add(child);
    const server = { child, log: '', out: '', tmp, sock };
    servers.add(server);
    child.stderr.on('data', (d) => { server.log += d; });
    server.ended = new Promise((done) => child.on('exit', (code, signal) => {
        running.delete(child);
        servers.delete(server);
        done({ code, signal });
    }));
    await new Promise((done, give) => {
        child.stdout.on('data', (d) => {
            server.out += d;
            if (server.out.includes('models:'))
                done();
        });
        child.on('exit', () => give(new Error(`the server ended: ${server.log}`)));
    });
    server.urls = [...server.out.matchAll(/listening on (\S+)/g)].map((m) => m[1]);
    server.url = server.urls[0];
    server.port = Number(new URL(server.url).port);
    while (options.ready !== false && !/^https/.test(server.url) &&
        (await within(fetch(`${server.url}/readyz`), 'GET /readyz')).status !== 200)
        await sleep(10);
    server.stop = async (signal = 'SIGTERM') => {
        child.kill(signal);
        return within(server.ended, `the end of the server after ${signal}`);
    };
    return server;
}

// GET /admin/models, or POST with a body, over the unix socket: a keyless server accepts changes from nowhere else.
function admin(server, body, headers = {}) {
    return within(new Promise((done, give) => {
        const req = http.request({ socketPath: server.sock, path: '/admin/models', method: body ? 'POST' : 'GET', headers },
            (res) => {
                let text = '';
                res.on('data', (d) => { text += d; });
                res.on('end', () => done({ status: res.statusCode, ...JSON.parse(text) }));
            });
        req.on('error', give);
        req.end(body && JSON.stringify(body));
    }), `/admin/models ${JSON.stringify(body)}`);
}

function sleep(ms) {
    return new Promise((done) => setTimeout(done, ms));
}

// Waits until what fn promises is true: for things that happen soon but not at once.  The limit is for busy machines.
async function until(fn, what, limit_ms = 60000) {
    const end = Date.now() + limit_ms;
    do {
        if (await fn())
            return true;
        await sleep(10);
    } while (Date.now() < end);
    return check(false, `${what}: did not happen`);
}

// The value of a metric, summed over what matches; labels are part of the pattern.
async function metric(server, pattern) {
    const text = await within(fetch(`${server.url}/metrics`).then((r) => r.text()), 'GET /metrics');
    return text.split('\n').filter((l) => l.startsWith(pattern))
        .reduce((sum, l) => sum + Number(l.split(' ').pop()), 0);
}

// What the process has in memory, and the most it had, in KiB; undefined: it has ended.
function memory(server) {
    const file = `/proc/${server.child.pid}/status`, text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    const of = (name) => Number(text.match(new RegExp(`${name}:\\s+(\\d+)`))?.[1]);
    return text.includes('VmRSS') ? { rss: of('VmRSS'), peak: of('VmHWM') } : undefined;
}

// The folder of a package; with patterns only of those files.
function npm(name, ...patterns) {
    return execFileSync(path.join(root, 'tools/fetch-npm'), [name, ...patterns]).toString().trim().split('\n').pop();
}

// A node_modules in tmp with these packages: for those that need each other.
function modules(...names) {
    const dir = path.join(tmp, 'node_modules');
    fs.mkdirSync(dir, { recursive: true });
    for (const name of names)
        fs.symlinkSync(npm(name), path.join(dir, name.split('@')[0]));
    return dir;
}

const failures = () => failed;

function finish() {
    console.log(`${checked} checks, ${failed} failed`);
    process.exit(failed ? 1 : 0);
}

module.exports = { abandon, admin, start, check, same, fails, sleep, until, within, memory, metric, modules, npm, failures, finish, root, tmp };
