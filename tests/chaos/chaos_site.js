// chaos_site.js - a whole shoal for the chaos test: certificates, NATS servers, nodes, gateways, and a bad network between
// them; and a single process outside of it, whose answers are the right ones.  Every gateway reaches every node over a link of its own through chaos_proxy (proxy.c): the first gateway has a list
// of nodes, the others find them through NATS.
'use strict';
const { execFile, execFileSync, spawn } = require('child_process');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const readline = require('readline');
const t = require('../integration/serve.js');
const c = require('../integration/cluster_site.js');

// Commands are answered in order, one line each.
class Proxy {
    constructor(program, args) {
        this.child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
        this.asked = [];
        readline.createInterface({ input: this.child.stdout }).on('line', (line) => this.asked.shift()(line));
        this.child.on('exit', (code) => this.asked.splice(0).forEach((done) => done(`error the proxy ended with ${code}`)));
    }

    async say(line) {
        const answer = await new Promise((done) => {
            this.asked.push(done);
            this.child.stdin.write(`${line}\n`);
        });
        if (answer.startsWith('error'))
            throw new Error(`chaos_proxy: ${line}: ${answer}`);
        return answer;
    }

    end() {
        this.child.stdin.end();
    }
}

const listens = (port) => new Promise((done) => {
    const s = net.createServer().once('error', () => done(false)).listen(port, '127.0.0.1', () => s.close(() => done(true)));
});

// n consecutive free ports.
async function freePorts(n) {
    for (let tries = 0; tries < 1000; tries++) {
        const first = 20000 + Math.floor(Math.random() * 12000); // below the ephemeral range
        const free = await Promise.all(Array.from({ length: n }, (_, i) => listens(first + i)));
        if (free.every(Boolean))
            return first;
    }
    throw new Error(`no ${n} free ports in a row`);
}

// A NATS server with the configuration of `shoal cluster init`.
class Nats {
    constructor(name, dir, { prefix, address }) {
        Object.assign(this, { name, dir, prefix, address });
    }

    start() {
        const [program, ...words] = [...this.prefix, 'nats-server', '-c', 'nats.conf'];
        this.child = spawn(program, words, { cwd: this.dir, stdio: 'ignore' });
        this.ended = new Promise((done) => this.child.on('exit', done));
    }

    signal(name) {
        this.child.kill(name);
    }
}

async function natsServers(shoal, ca, n, place) {
    const port = await freePorts(2 * n), names = Array.from({ length: n }, (_, i) => `nats-${i + 1}`), places = [];
    for (const name of names)
        places.push(await place(name));
    execFileSync(shoal, ['cluster', 'init', '--dir', ca, '--name', 'chaos', '--servers', String(n), '--port', String(port),
        '--route-port', String(port + n), ...places.flatMap((p) => ['--host', p.address])]);
    const list = names.map((name, i) => new Nats(name, path.join(ca, 'members', name), places[i]));
    for (const server of list)
        server.start();
    process.on('exit', () => list.forEach((server) => server.signal('SIGKILL')));
    return { list, join: natsUrls(list).flatMap((url) => ['--join', url]).concat('--shoal', 'chaos') };
}

// Where they listen: servers on one machine use different ports.
const natsUrls = (list) => list.map((server) => {
    const conf = fs.readFileSync(path.join(server.dir, 'nats.conf'), 'utf8');
    return `tls://${server.address}:${conf.match(/^listen: "[^"]*:(\d+)"/m)[1]}`;
});

function certificates(shoal, dir, names, hosts) {
    for (const [name, role] of names)
        execFileSync(shoal, ['ca', 'issue', name, '--dir', dir, '--role', role, ...hosts.flatMap((h) => ['--host', h])]);
    return (name) => ['--certs', path.join(dir, 'members', name)];
}

// The library that makes a member's disk and clock bad (faults.c), and the file that tells it; {}: it is not built.
function faults(proxyProgram, name) {
    const library = path.join(path.dirname(proxyProgram), 'libchaos_faults.so'), file = path.join(t.tmp, `${name}.faults`);
    if (!fs.existsSync(library))
        return {};
    fs.writeFileSync(file, Buffer.alloc(24));
    return { faults: file, env: { LD_PRELOAD: library, SHOAL_CHAOS_FAULTS: file } };
}

// What a node serves. The second node runs a model in a process of its own.
function models(apart) {
    const file = (name) => path.join(t.root, 'models', name);
    return `cache: {bytes: 0}
models:
  - {name: reply, path: "${file('reply.gguf')}"}
  - {name: intent, path: "${file('encoder')}", task: classify}
  - {name: reader, path: "${file('reader.gguf')}"}
  - {name: story, path: "${path.join(t.tmp, 'story.gguf')}"${apart ? ', isolation: process' : ''}}
`; // no cache: a cached answer cannot be interrupted in the middle
}

// Clients and the network stand for other machines, so what the members compute must not hold them up: they come first, if this
// user may say so.  Returns the words that start a member with the usual priority.
function comeFirst(by = 10) {
    try {
        os.setPriority(os.getPriority() - by);
        return ['nice', '-n', String(by)];
    } catch {
        return [];
    }
}

// program(name): the program to run as this node, for example one of another architecture under qemu. net: from
// chaos_net.js; without it, every member is on 127.0.0.1.
async function open(shoal, proxyProgram, { nodes = 3, gateways = 2, servers = 3, program = () => shoal, net = null } = {}) {
    const hub = net?.hub ?? '127.0.0.1';
    const usual = comeFirst();
    const place = async (name) => {
        const { prefix, address } = net ? await net.plug(name) : { prefix: [], address: '127.0.0.1' };
        return { prefix: [...usual, ...prefix], address };
    };
    const site = { nodes: [], gateways: [], wipes: [], net, proxy: new Proxy(proxyProgram, [hub]) };
    const names = (what, n) => Array.from({ length: n }, (_, i) => `${what}${i + 1}`);
    const ca = path.join(t.tmp, 'ca'), nats = await natsServers(shoal, ca, servers, place);
    site.nats = nats.list;
    fs.copyFileSync(path.join(t.root, 'models/reply.gguf'), path.join(t.tmp, 'story.gguf'));
    Object.assign(site, { ca, shoal, urls: natsUrls(nats.list) });
    const tls = certificates(shoal, ca, [...names('node', nodes).map((n) => [n, 'node,controller']),
        ...names('gateway', gateways).map((n) => [n, 'gateway'])], [hub]);
    for (const name of names('node', nodes)) {
        const config = path.join(t.tmp, `${name}.yaml`), links = names('gateway', Math.min(gateways, 2)).map((g) => `${g}-${name}`);
        const ports = [], { prefix, address } = await place(name);
        for (const link of links) // the node's address is known later
            ports.push((await site.proxy.say(`link ${link} 127.0.0.1:1`)).split(' ')[1]);
        fs.writeFileSync(config, `${models(name === 'node2')}cluster: {name: ${name}, advertise: "${hub}:${ports.at(-1)}", lease: 3s}\n`);
        const node = new c.Member(program(name), 'node', name, ['--config', config, '--listen', `${address}:0`, '--threads', '1',
            ...nats.join, ...tls(name)]);
        Object.assign(node, { links, ports, prefix, apart: name === 'node2', ...(program(name) === shoal ? faults(proxyProgram, name) : {}) });
        site.nodes.push(node);
        await node.start();
        await retarget(site, node);
    }
    for (const [i, name] of names('gateway', gateways).entries()) {
        const way = i === 0 ? site.nodes.flatMap((n) => ['--node', `${hub}:${n.ports[0]}`]) : nats.join;
        const { prefix, address } = await place(name);
        const gateway = new c.Member(shoal, 'gateway', name, ['--listen', `${address}:0`, '--threads', '1', ...way, ...tls(name)]);
        Object.assign(gateway, { prefix, losses: 0, stops: [], away: false });
        site.gateways.push(await gateway.start());
        gateway.args[gateway.args.indexOf(`${address}:0`)] = new URL(gateway.url).host; // where its clients look for it again
    }
    for (const g of site.gateways)
        await c.all_ready(site, nodes, g);
    return site;
}

// Where a node listens since its last start.
const address = (node) => node.out.match(/for other members on (?:\w+:\/\/)?(\S+)/)[1];

async function retarget(site, node) {
    for (const link of node.links)
        await site.proxy.say(`target ${link} ${address(node)}`);
}

// Starts a node again, on another port than before.
async function restart(site, node) {
    await node.ended;
    await node.start();
    await retarget(site, node);
}

// Counters of a gateway in all its lives so far.
const counted = ['shoal_moved_total', 'shoal_retried_total', 'shoal_lost_total'];
const figure = async (gateway, name) => (gateway.figures?.[name] ?? 0) + await t.metric(gateway, name);

// Before it is ended: what it counts until then is not seen.
async function keepFigures(gateway) {
    const values = await Promise.all(counted.map((name) => figure(gateway, name)));
    gateway.figures = Object.fromEntries(counted.map((name, i) => [name, values[i]]));
}

// Starts a gateway again where it was, and waits until it sees every node that another gateway sees.
async function restartGateway(site, gateway) {
    await gateway.ended;
    await gateway.start();
    const seen = (g) => t.metric(g, 'shoal_nodes{state="ready"}');
    const other = site.gateways.find((g) => g !== gateway);
    while (await seen(gateway) < await seen(other))
        await t.sleep(20);
}

// NATS loses everything: all servers are killed and start again with empty folders.
async function wipe(site, ms) {
    const loss = { start: performance.now(), end: Infinity };
    site.wipes.push(loss);
    for (const server of site.nats)
        server.signal('SIGKILL');
    await Promise.all(site.nats.map((server) => server.ended));
    for (const server of site.nats) {
        const conf = fs.readFileSync(path.join(server.dir, 'nats.conf'), 'utf8');
        await fs.promises.rm(path.resolve(server.dir, conf.match(/store_dir: *"?([^"\s]+)/)[1]), { recursive: true, force: true });
    }
    await t.sleep(ms);
    for (const server of site.nats)
        server.start();
    loss.end = performance.now();
}

// shoal cluster ARGS as an administrator; null: it failed.
function cluster(site, ...args) {
    return new Promise((done) => {
        execFile(site.shoal, ['cluster', ...args, '--json', '--cluster', 'chaos', '--certs', path.join(site.ca, 'members', 'admin'),
            ...site.urls.flatMap((url) => ['--nats', url]), '--timeout', '60'], { maxBuffer: 1 << 26 }, (error, out, err) => {
            try {
                done(JSON.parse(out.trim().split('\n').pop()));
            } catch (e) {
                site.refused = err || error?.message;
                done(null);
            }
        });
    });
}

// One process that serves the same models and knows nothing of a cluster.
async function outside(shoal) {
    const config = path.join(t.tmp, 'outside.yaml');
    fs.writeFileSync(config, models(false));
    return new c.Member(shoal, 'serve', 'outside', ['--config', config, '--listen', '127.0.0.1:0']).start();
}

// The worker process of a node's isolated model; undefined while it is being started.
function workerOf(node) {
    const tasks = `/proc/${node.child.pid}/task`;
    const list = fs.existsSync(tasks) ? fs.readdirSync(tasks).flatMap((id) => {
        try {
            return fs.readFileSync(`${tasks}/${id}/children`, 'utf8').split(' ').filter(Boolean);
        } catch {
            return []; // the thread has just ended
        }
    }) : [];
    return list.map(Number)[0];
}

// Stops everything as an operator would; returns what did not exit cleanly.
async function close(site) {
    const bad = [];
    for (const m of [...site.gateways, ...site.nodes]) {
        m.signal('SIGCONT');
        const { code, signal } = await m.end('SIGTERM');
        if (code !== 0)
            bad.push(`${m.name} ended with ${code ?? signal}: ${m.log.slice(-4000)}`);
    }
    for (const server of site.nats) {
        server.signal('SIGKILL');
        await server.ended;
    }
    site.proxy.end();
    site.net?.end();
    return bad;
}

module.exports = { natsServers, open, figure, keepFigures, outside, restart, restartGateway, wipe, cluster, workerOf, close };
