// chaos_site.js - a whole shoal for the chaos test: certificates, nodes, gateways, and a bad network between them.
// Every gateway reaches every node over a link of its own through chaos_proxy (proxy.c).
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const t = require('../integration/serve.js');
const c = require('../integration/cluster_site.js');

// Commands are answered in order, one line each.
class Proxy {
    constructor(program) {
        this.child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
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

function certificates(shoal, names) {
    const dir = path.join(t.tmp, 'ca');
    execFileSync(shoal, ['ca', 'init', '--dir', dir]);
    for (const [name, role] of names)
        execFileSync(shoal, ['ca', 'issue', name, '--dir', dir, '--role', role, '--host', '127.0.0.1']);
    return (name) => ['--certs', path.join(dir, 'members', name)];
}

// A place for more: a node that runs arm64 code under qemu-user is another `program` here, and NATS servers are members
// beside the nodes that `disturb` in chaos_events.js may hit too.
async function open(shoal, proxyProgram, { nodes = 3, gateways = 2, program = () => shoal } = {}) {
    const site = { nodes: [], gateways: [], links: [], proxy: new Proxy(proxyProgram) };
    const names = (what, n) => Array.from({ length: n }, (_, i) => `${what}${i + 1}`);
    const tls = certificates(shoal, [...names('node', nodes).map((n) => [n, 'node']),
        ...names('gateway', gateways).map((n) => [n, 'gateway'])]);
    const config = path.join(t.tmp, 'node.yaml');
    fs.writeFileSync(config, 'cache: {bytes: 0}\n'); // an answer that is kept cannot break off in the middle
    for (const name of names('node', nodes)) {
        const node = new c.Member(program(name), 'node', name, ['--config', config, '--listen', '127.0.0.1:0', '--threads', '1',
            ...tls(name)]);
        site.nodes.push(node);
        node.links = names('gateway', gateways).map((g) => `${g}-${name}`);
        await node.start();
    }
    for (const [i, name] of names('gateway', gateways).entries()) {
        const args = [];
        for (const node of site.nodes) {
            const [, port] = (await site.proxy.say(`link ${node.links[i]} ${address(node)}`)).split(' ');
            args.push('--node', `127.0.0.1:${port}`);
        }
        const gateway = new c.Member(shoal, 'gateway', name, ['--listen', '127.0.0.1:0', '--threads', '1', ...args, ...tls(name)]);
        site.gateways.push(await gateway.start());
    }
    for (const g of site.gateways)
        await c.all_ready(site, nodes, g);
    return site;
}

// Where a node listens since it was started last.
const address = (node) => node.out.match(/for other members on (?:\w+:\/\/)?(\S+)/)[1];

// Starts a node again; it has another port than before.
async function restart(site, node) {
    await node.ended;
    await node.start();
    for (const link of node.links)
        await site.proxy.say(`target ${link} ${address(node)}`);
}

// Ends everything as an operator would; what did not end well.
async function close(site) {
    const bad = [];
    for (const m of [...site.gateways, ...site.nodes]) {
        m.signal('SIGCONT');
        const { code, signal } = await m.end('SIGTERM');
        if (code !== 0)
            bad.push(`${m.name} ended with ${code ?? signal}: ${m.log.slice(-4000)}`);
    }
    site.proxy.end();
    return bad;
}

module.exports = { open, restart, close };
