// chaos_net.js - gives every member of the chaos test its own machine as far as the network goes: a network namespace
// with one cable (veth) to a switch (bridge). Clients and chaos_proxy are at the switch. Pulling a cable is a real
// partition: packets are lost, for gateways and NATS alike, and TCP has to notice.
'use strict';
const { execFileSync, spawn, spawnSync } = require('child_process');
const fs = require('fs');
const t = require('../integration/serve.js');

const hub = '10.77.0.1';
const inside = 'CHAOS_NET_INSIDE'; // set in the process that has the switch

const ip = (...args) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] });

// Runs this script again in a network namespace of its own, which holds the switch and disappears with the script.
// Returns if that is not needed, or not possible here; then it says why.
function enter() {
    if (process.env[inside])
        return true;
    const probe = spawnSync('unshare', ['--net', 'sh', '-c', 'ip link set lo up && ip link add probe type bridge && ' +
        'ip link add cable type veth peer name plug && nsenter --net=/proc/$$/ns/net true'], { encoding: 'utf8' });
    if (probe.status !== 0) {
        console.log(`no network namespaces here (${(probe.error?.message ?? probe.stderr).trim()}): the proxy alone breaks links`);
        return false;
    }
    const again = spawnSync('unshare', ['--net', process.execPath, ...process.argv.slice(1)],
        { stdio: 'inherit', env: { ...process.env, [inside]: '1' } });
    process.exit(again.status ?? 1);
}

// The switch and the machines plugged into it.
class Net {
    constructor() {
        this.hub = hub;
        this.cables = new Map();
        ip('link', 'set', 'lo', 'up');
        ip('link', 'add', 'switch', 'type', 'bridge');
        ip('address', 'add', `${hub}/16`, 'dev', 'switch');
        ip('link', 'set', 'switch', 'up');
    }

    // A machine. prefix: put in front of a command line to run it there.
    async plug(name) {
        const n = this.cables.size + 1, cable = `cable${n}`, address = `10.77.1.${n}`;
        const anchor = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] }); // ends with this process
        const ours = fs.readlinkSync('/proc/self/ns/net'), theirs = `/proc/${anchor.pid}/ns/net`;
        if (!await t.until(() => fs.readlinkSync(theirs) !== ours, `a network namespace for ${name}`))
            throw new Error(`no network namespace for ${name}`);
        const prefix = ['nsenter', `--net=${theirs}`];
        ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(anchor.pid));
        ip('link', 'set', cable, 'master', 'switch', 'up');
        for (const line of [`address add ${address}/16 dev eth0`, 'link set eth0 up', 'link set lo up'])
            execFileSync(prefix[0], [...prefix.slice(1), 'ip', ...line.split(' ')]);
        this.cables.set(name, { cable, anchor });
        return { prefix, address };
    }

    pull(name) {
        ip('link', 'set', this.cables.get(name).cable, 'down');
    }

    push(name) {
        ip('link', 'set', this.cables.get(name).cable, 'up');
    }

    end() {
        for (const { anchor } of this.cables.values())
            anchor.stdin.end();
    }
}

module.exports = { Net, enter };
