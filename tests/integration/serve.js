// serve.js - for tests that talk to `shoal serve`: starts it on a free port, stops it, counts checks.
'use strict';
const { spawn, execFileSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const net = require('net');
const os = require('os');
const path = require('path');

const root = path.resolve(__dirname, '../..');
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'shoal-serve-'));
delete process.env.STATE_DIRECTORY;
process.env.XDG_STATE_HOME = path.join(tmp, 'state'); // each test has its own sessions, collections and schedules
delete process.env.SHOAL_STORE;
process.env.XDG_DATA_HOME = path.join(tmp, 'data'); // and its own store of models
process.on('exit', () => fs.rmSync(tmp, { recursive: true, force: true }));
let failed = 0, checked = 0;
const complaints = []; // the first failures
const running = new Set(), watched = new Set();
process.on('exit', () => running.forEach((p) => p.kill('SIGKILL')));

// A process with its log (child, log), which is shown when the test fails.
const watch = (it) => watched.add(it);
const PROCESSES = 8, LOG_LINES = 40, LOG_BYTES = 5000;

// Prints the last log lines of the last processes, what the running ones are doing, and the failures once more, so that
// the end of the output tells what failed.
function explain() {
    for (const { child, log } of [...watched].slice(-PROCESSES)) {
        const tasks = `/proc/${child.pid}/task`, how = child.exitCode ?? child.signalCode;
        console.log(`-- process ${child.pid}: ${child.spawnargs.join(' ')}: ${how === null ? 'runs' : `ended with ${how}`}`);
        console.log(log.split('\n').slice(-LOG_LINES).join('\n').slice(-LOG_BYTES));
        for (const id of how === null && fs.existsSync(tasks) ? fs.readdirSync(tasks) : [])
            console.log(['comm', 'wchan'].map((f) => fs.readFileSync(`${tasks}/${id}/${f}`, 'utf8').trim()).join(' in '));
    }
    console.log(complaints.map((c) => c.slice(0, 2000)).join('\n'));
}

function check(ok, what) {
    checked++;
    if (ok)
        return true;
    if (++failed <= 10)
        complaints.push(`FAIL ${what}`);
    console.log(`FAIL ${what}`);
    return false;
}

function same(got, want, what) {
    return check(got === want, `${what}: got ${JSON.stringify(got)}, expected ` +
        JSON.stringify(want));
}

// The error that a promise rejects with; a promise that resolves is a failed check.
async function fails(promise, what) {
    try {
        await promise;
    } catch (e) {
        return e;
    }
    check(false, `${what}: no error`);
    return {};
}

// A promise with a time limit: a call without an answer names itself instead of hanging until ctest ends the test.
const MAX_WAIT_MS = 120000;
function within(promise, what, ms = MAX_WAIT_MS) {
    let timer;
    const late = new Promise((done, give) => {
        timer = setTimeout(() => give(new Error(`no answer within ${ms / 1000} s: ${what}`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Ends the test after an error: prints the error and the logs of the processes.
function abandon(e) {
    explain();
    console.log(e);
    process.exit(1);
}

// A free port below the ephemeral range: a process that is restarted still finds it free.
const claims = new Set();
process.on('exit', () => claims.forEach((file) => fs.rmSync(file, { force: true })));

// Until this process ends no other test gets the port, also while nothing listens there; nats_site.h looks, too.
function claim(port) {
    const file = `/tmp/shoal-test-port-${port}`;
    try {
        fs.writeFileSync(file, String(process.pid), { flag: 'wx' });
    } catch {
        try {
            process.kill(Number(fs.readFileSync(file, 'utf8')) || process.pid, 0);
        } catch (e) {
            if (e.code === 'ESRCH') // of a test that was killed
                fs.rmSync(file, { force: true });
        }
        return false;
    }
    claims.add(file);
    return true;
}

async function free_port() {
    for (let tries = 0; tries < 1000; tries++) {
        const port = 10000 + Math.floor(Math.random() * 10000);
        if (!claim(port))
            continue;
        const free = await new Promise((done) => {
            const s = net.createServer().once('error', () => done(false)).listen(port, '127.0.0.1', () => s.close(() => done(true)));
        });
        if (free)
            return port;
    }
    throw new Error('no free port');
}

// How a child exited, { code, signal }, once all its output was read; its own children may hold its pipes open.
function ended(child) {
    return new Promise((done) => child.on('exit', (code, signal) => {
        const timer = setTimeout(() => done({ code, signal }), 5000);
        child.on('close', () => {
            clearTimeout(timer);
            done({ code, signal });
        });
    }));
}

// Starts the server; resolves when it listens and its models are loaded.  With options.admin it listens on a unix
// socket too, for admin().
async function start(shoal, args, options = {}) {
    const listen = options.listen === null ? [] : ['--listen', options.listen ?? '127.0.0.1:0']; // null: in the config
    const sock = path.join(tmp, `admin-${running.size}-${Date.now()}.sock`);
    if (options.admin)
        listen.push('--listen', `unix:${sock}`);
    // Tests name the models that they need: those that come with Shoal are not added to them, unless options.all.
    const config = args[args.indexOf('--config') + 1];
    const own = args.includes('-m') || (args.includes('--config') && fs.existsSync(config) && /^models:/m.test(fs.readFileSync(config, 'utf8')));
    const only = own && !options.all && !args.includes('--only') ? ['--only'] : [];
    const child = spawn(shoal, ['serve', ...listen, ...only, '--log-level', 'info', ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, SHOAL_CACHE_DIR: path.join(tmp, 'cache'), ...options.env },
    });
    running.add(child);
    const server = { child, log: '', out: '', tmp, sock };
    watch(server);
    child.stderr.on('data', (d) => { server.log += d; });
    child.on('exit', () => running.delete(child));
    server.ended = ended(child);
    await within(new Promise((done, give) => {
        child.stdout.on('data', (d) => {
            server.out += d;
            if (server.out.includes('models:'))
                done();
        });
        server.ended.then(() => give(new Error(`the server ended: ${server.log}`)));
    }), `the start of shoal serve ${args.join(' ')}`);
    server.urls = [...server.out.matchAll(/listening on (\S+)/g)].map((m) => m[1]);
    server.url = server.urls[0];
    server.port = Number(new URL(server.url).port);
    // A configuration that names what is not there is not ready either, but its models are loaded: tests use such files.
    const loaded = async () => {
        const r = await within(fetch(`${server.url}/readyz`), 'GET /readyz');
        return r.status === 200 || (await r.text()).includes('wrong_configuration');
    };
    while (options.ready !== false && !/^https/.test(server.url) && !await loaded())
        await sleep(10);
    server.stop = async (signal = 'SIGTERM') => {
        child.kill(signal);
        return within(server.ended, `the end of the server after ${signal}`);
    };
    return server;
}

// GET /admin/models, or POST with a body, over the unix socket: a keyless server accepts changes only there.
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

// Waits until fn resolves to true, for things that happen soon but not at once. The limit allows for busy machines.
async function until(fn, what, limit_ms = 60000) {
    const end = Date.now() + limit_ms;
    do {
        if (await fn())
            return true;
        await sleep(10);
    } while (Date.now() < end);
    return check(false, `${what}: did not happen`);
}

// The value of a metric, summed over all matches; labels are part of the pattern.
async function metric(server, pattern) {
    const text = await within(fetch(`${server.url}/metrics`).then((r) => r.text()), 'GET /metrics');
    return text.split('\n').filter((l) => l.startsWith(pattern))
        .reduce((sum, l) => sum + Number(l.split(' ').pop()), 0);
}

// The process's current and peak memory in KiB; undefined: it has exited.
function memory(server) {
    const file = `/proc/${server.child.pid}/status`, text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    const of = (name) => Number(text.match(new RegExp(`${name}:\\s+(\\d+)`))?.[1]);
    return text.includes('VmRSS') ? { rss: of('VmRSS'), peak: of('VmHWM') } : undefined;
}

// The worker that has a model's file mapped.
function worker_of(server, file) {
    const tasks = `/proc/${server.child.pid}/task`;
    const pids = fs.readdirSync(tasks).flatMap((id) => {
        try {
            return fs.readFileSync(`${tasks}/${id}/children`, 'utf8').split(/\s+/).filter(Boolean);
        } catch {
            return [];
        }
    });
    return pids.map(Number).find((pid) => {
        try {
            return fs.readFileSync(`/proc/${pid}/maps`, 'utf8').includes(file);
        } catch {
            return false;
        }
    });
}

// The folder of a package; with patterns, only those files.
function npm(name, ...patterns) {
    return execFileSync(path.join(root, 'tools/fetch-npm'), [name, ...patterns]).toString().trim().split('\n').pop();
}

// A node_modules in tmp with these packages, for packages that import each other.
function modules(...names) {
    const dir = path.join(tmp, 'node_modules');
    fs.mkdirSync(dir, { recursive: true });
    for (const name of names)
        fs.symlinkSync(npm(name), path.join(dir, name.split('@')[0]));
    return dir;
}

const failures = () => failed;

function finish() {
    if (failed)
        explain();
    console.log(`${checked} checks, ${failed} failed`);
    process.exit(failed ? 1 : 0);
}

module.exports = { worker_of, abandon, admin, start, check, same, ended, fails, free_port, sleep, until, watch, within, memory, metric, modules, npm, failures,
    finish, root, tmp };
