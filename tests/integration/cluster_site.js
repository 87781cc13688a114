// cluster_site.js - for tests with several members: starts nodes and gateways as processes of their own, kills, stops and
// starts them again, and reads streams.
'use strict';
const { spawn } = require('child_process');
const fs = require('fs');
const http = require('http');
const path = require('path');
const t = require('./serve.js');

const members = new Set();
process.on('exit', () => members.forEach((m) => m.child.kill('SIGKILL')));

// A member as a process: `shoal node` or `shoal gateway`. args: what follows the command.
class Member {
    constructor(shoal, command, name, args) {
        Object.assign(this, { shoal, command, name, args, log: '', n_starts: 0 });
    }

    // prefix: words in front of the command line, such as those that run it in another network.
    async start() {
        const [program, ...words] = [...(this.prefix ?? []), this.shoal, this.command];
        this.child = spawn(program, [...words, ...this.args,
            ...(this.args.includes('--config') ? [] : ['--name', this.name]), '--log-level', 'info'], {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: { ...process.env, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache'), ...this.env },
        });
        members.add(this);
        t.watch(this);
        this.n_starts++;
        this.out = '';
        const child = this.child;
        child.stderr.on('data', (d) => { this.log += d; });
        this.ended = t.ended(child);
        await t.within(new Promise((done, give) => {
            child.stdout.on('data', (d) => {
                this.out += d;
                if (/(models:|in a browser)/.test(this.out))
                    done();
            });
            this.ended.then(() => give(new Error(`${this.name} ended: ${this.log}`)));
        }), { toString: () => `the start of ${this.name}: ${this.log.slice(-2000)}` });
        const url = this.out.match(/listening on (http\S+)/);
        this.url = url && url[1];
        return this;
    }

    signal(name) {
        this.child.kill(name);
    }

    // SIGSTOP, until all its threads are stopped: one of them must run before the kernel can stop the others.
    async stop() {
        this.child.kill('SIGSTOP');
        const tasks = `/proc/${this.child.pid}/task`;
        const state = (id) => fs.readFileSync(`${tasks}/${id}/stat`, 'utf8').replace(/^.*\) /, '')[0];
        await t.until(() => fs.readdirSync(tasks).every((id) => state(id) === 'T'), `${this.name} stands still`);
    }

    // Ends it: SIGKILL like a crash, SIGTERM as an operator would.
    async end(signal = 'SIGKILL') {
        this.child.kill(signal);
        const how = await t.within(this.ended, { toString: () => `the end of ${this.name} after ${signal}: ${this.log.slice(-2000)}` });
        members.delete(this);
        return how;
    }
}

// A NATS server.  It is started again when it ends without having been told to, as an init system would: a server that
// ends by itself is not what these tests look at.  What it printed is shown when the test fails.
const RESTARTS = 5;
class Nats {
    constructor(args, cwd = t.tmp) {
        Object.assign(this, { args, cwd, log: '', n_ended: 0 });
        process.on('exit', () => this.child.kill('SIGKILL'));
        t.watch(this);
        this.start();
    }

    start() {
        const child = spawn('nats-server', this.args, { cwd: this.cwd, stdio: ['ignore', 'pipe', 'pipe'] });
        for (const out of [child.stdout, child.stderr])
            out.on('data', (d) => { this.log = (this.log + d).slice(-20000); });
        this.child = child;
        this.told = false;
        this.ended = new Promise((done) => child.on('exit', done));
        this.ended.then(() => {
            if (this.told || this.n_ended++ >= RESTARTS)
                return;
            console.log(`NATS ended by itself (${child.exitCode ?? child.signalCode}): ${this.log.slice(-3000)}`);
            this.start();
        });
    }

    // kill -9; resolves when it has ended.
    kill() {
        this.told = true;
        this.child.kill('SIGKILL');
        return this.ended;
    }
}

// Nodes on unix sockets and a gateway in front of them.  models: NAME=PATH of every node.
async function open(shoal, { nodes = 3, models = [], node_args = [], gateway_args = [] } = {}) {
    const site = { nodes: [], shoal };
    for (let i = 0; i < nodes; i++) {
        const name = `node${i + 1}`, sock = path.join(t.tmp, `${name}.sock`);
        const node = new Member(shoal, 'node', name, ['--listen', `unix:${sock}`, ...models.flatMap((m) => ['-m', m]),
            ...node_args]);
        node.address = `unix:${sock}`;
        site.nodes.push(await node.start());
    }
    site.gateway = await gateway(site, 'gateway', gateway_args);
    await all_ready(site, nodes);
    return site;
}

async function gateway(site, name, args = []) {
    return new Member(site.shoal, 'gateway', name, ['--listen', '127.0.0.1:0',
        ...site.nodes.flatMap((n) => ['--node', n.address]), ...args]).start();
}

// Waits until the gateway sees this many nodes and knows the versions of their models.
async function all_ready(site, n, gw = site.gateway) {
    for (let i = 0; i < 6000; i++) {
        if (await t.metric(gw, 'shoal_nodes{state="ready"}') === n)
            return;
        await t.sleep(10);
    }
    throw new Error(`the gateway does not see ${n} nodes: ${gw.log}`);
}

async function close(site) {
    for (const m of [...members])
        await m.end('SIGKILL');
}

// One streamed completion: its text, chunk count and first node; on_chunk(text, n, node) is called for each chunk.
function stream(url, body, on_chunk = () => {}) {
    const said = { n: 0 };
    return t.within(new Promise((done, give) => {
        const got = { text: '', n: 0, gaps: [], error: null, status: 0 };
        let last = process.hrtime.bigint(), rest = '';
        const req = http.request(`${url}/v1/completions`, { method: 'POST', agent: false }, (res) => {
            got.status = res.statusCode;
            got.node = res.headers['x-shoal-node'];
            res.setEncoding('utf8');
            res.on('data', (d) => {
                rest += d;
                for (let at; (at = rest.indexOf('\n\n')) >= 0; rest = rest.slice(at + 2)) {
                    const data = rest.slice(0, at).replace(/^data: /, '');
                    if (data === '[DONE]') {
                        got.ended = true;
                        continue;
                    }
                    const event = JSON.parse(data);
                    if (event.error)
                        got.error = event.error;
                    if (event.usage)
                        got.usage = event.usage;
                    if (!event.choices?.length)
                        continue;
                    const now = process.hrtime.bigint();
                    got.gaps.push(Number(now - last) / 1e6);
                    last = now;
                    got.text += event.choices[0].text;
                    got.finish = event.choices[0].finish_reason ?? got.finish;
                    said.n = ++got.n;
                    on_chunk(got);
                }
            });
            res.on('end', () => {
                if (!got.ended && !got.error && rest)
                    got.error = rest;
                done(got);
            });
            res.on('error', give);
        });
        req.on('error', give);
        req.end(JSON.stringify({ stream: true, stream_options: { include_usage: true }, ...body }));
    }), { toString: () => `the end of a stream after ${said.n} chunks: ${url} ${JSON.stringify(body)}` });
}

module.exports = { Nats, Member, open, gateway, all_ready, close, stream };
