// mqtt_site.js - for tests with an MQTT broker: starts a real `mosquitto`, kills it, restarts it with its stored state,
// and connects the npm client `mqtt`.
'use strict';
const { spawn, execFileSync } = require('child_process');
const fs = require('fs');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

// The npm client with its dependencies, each in a tested version.
function load_client() {
    const dir = path.join(t.tmp, 'node_modules');
    for (const spec of ['mqtt@5.16.0', 'mqtt-packet@9.0.2', 'bl@6.1.6', 'readable-stream@4.8.0', 'process@0.11.10', 'string_decoder@1.3.0',
        'safe-buffer@5.2.1', 'inherits@2.0.4', 'debug@4.4.3', 'ms@2.1.3', 'process-nextick-args@2.0.1', 'rfdc@1.4.1', 'lru-cache@10.4.3',
        'worker-timers@8.0.34', 'worker-timers-broker@8.0.18', 'broker-factory@3.1.15', 'fast-unique-numbers@9.0.27',
        '@babel/runtime@7.29.13']) {
        const link = path.join(dir, spec.slice(0, spec.lastIndexOf('@')));
        fs.mkdirSync(path.dirname(link), { recursive: true });
        fs.symlinkSync(t.npm(spec), link);
    }
    process.env.NODE_PATH = dir; // a package is resolved through its link, and looks for others beside the link
    require('module').Module._initPaths();
    return require('mqtt');
}
const mqtt = load_client();

const started = new Set();
process.on('exit', () => started.forEach((p) => p.kill('SIGKILL')));

function find_broker() {
    for (const dir of [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'])
        if (fs.existsSync(path.join(dir, 'mosquitto')))
            return path.join(dir, 'mosquitto');
    throw new Error('mosquitto is not installed (tools/install-deps test)');
}

function accepts(port) {
    return new Promise((done) => {
        const s = net.connect(port, '127.0.0.1');
        s.on('connect', () => { s.destroy(); done(true); });
        s.on('error', () => done(false));
    });
}

// A broker on a port of its own.  more: further lines of its configuration, or a function of its ports.
class Broker {
    static async open(more = '', ports = 1) {
        for (let i = 0; ; i++) { // another process may take the port first
            const b = new Broker();
            b.ports = await Promise.all(Array.from({ length: ports }, t.free_port));
            b.port = b.ports[0];
            b.dir = fs.mkdtempSync(path.join(t.tmp, 'broker-'));
            b.url = `mqtt://127.0.0.1:${b.port}`;
            b.conf = path.join(b.dir, 'mosquitto.conf');
            fs.writeFileSync(b.conf, `per_listener_settings true\nlistener ${b.port} 127.0.0.1\nallow_anonymous true\n` +
                `user root\npersistence true\npersistence_location ${b.dir}/\nautosave_on_changes true\nautosave_interval 1\n` +
                'max_queued_messages 100000\nlog_dest stderr\nset_tcp_nodelay true\n' +
                (typeof more === 'function' ? more(b) : more));
            try {
                return await b.start();
            } catch (e) {
                if (i === 4)
                    throw e;
            }
        }
    }

    async start() {
        this.log = '';
        this.child = spawn(find_broker(), ['-c', this.conf], { stdio: ['ignore', 'ignore', 'pipe'] });
        const child = this.child;
        started.add(child);
        t.watch(this);
        child.stderr.on('data', (d) => { this.log += d; });
        this.ended = new Promise((done) => child.on('exit', () => {
            started.delete(child);
            done();
        }));
        for (let i = 0; i < 6000; i++) {
            if (child.exitCode !== null)
                throw new Error(`mosquitto ended: ${this.log}`);
            if (await accepts(this.port))
                return this;
            await t.sleep(10);
        }
        throw new Error(`mosquitto does not accept connections: ${this.log}`);
    }

    // Waits until it has written to disk what it has acknowledged so far; losing anything else would be the broker's
    // fault.
    async flush(client) {
        const from = Date.now(), file = path.join(this.dir, 'mosquitto.db');
        for (let i = 0; i < 3000; i++) {
            await client.publishAsync('flush', `${i}`, { qos: 1, retain: true });
            if (fs.existsSync(file) && fs.statSync(file).mtimeMs > from)
                return;
            await t.sleep(10);
        }
        throw new Error('mosquitto does not write its state');
    }

    async kill(signal = 'SIGKILL') {
        this.child.kill(signal);
        await t.within(this.ended, 'the end of mosquitto');
    }
}

// Waits until the server is connected to its broker, and the broker has confirmed its subscriptions.
const up = (server) => t.until(async () => await t.metric(server, 'shoal_mqtt_up') === 1 &&
    await t.metric(server, 'shoal_mqtt_unconfirmed') === 0, 'a connection to the broker');

// A connected MQTT 5 client. `seen` collects all messages.
function connect(broker, options = {}) {
    const client = new mqtt.MqttClient(() => net.connect(broker.port, '127.0.0.1'),
        { protocolVersion: 5, clientId: `test-${Math.random().toString(36).slice(2)}`, reconnectPeriod: 50, ...options });
    client.seen = [];
    client.on('message', (topic, payload, packet) => client.seen.push({ topic, text: payload.toString(), packet,
        properties: { ...packet.properties?.userProperties } }));
    client.on('error', () => {});
    return t.within(new Promise((done) => client.once('connect', () => done(client))), 'a connection to mosquitto');
}

const subscribe = (client, topic, options = { qos: 1 }) => t.within(client.subscribeAsync(topic, options), `subscribe ${topic}`);
const publish = (client, topic, payload, options = { qos: 1 }) =>
    t.within(client.publishAsync(topic, payload, options), `publish ${topic}`);

let n_requests = 0;
// One request; resolves with its messages, the last of which is `done`.
async function ask(client, topic, payload, properties = {}, options = {}) {
    const correlation = `c${++n_requests}`, responseTopic = options.response ?? `shoal/response/${client.options.clientId}`;
    if (!client.answers) {
        client.answers = true;
        await subscribe(client, responseTopic, { qos: 2 });
    }
    const mine = () => client.seen.filter((m) => m.packet.properties?.correlationData?.toString() === correlation);
    await publish(client, topic, typeof payload === 'string' ? payload : JSON.stringify(payload), { qos: options.qos ?? 1,
        properties: { responseTopic, correlationData: Buffer.from(correlation), userProperties: { from: 'test', ...properties },
            ...options.properties } });
    for (let i = 0; i < 6000; i++) {
        const got = mine();
        if (got.some((m) => m.properties.done === 'true'))
            return got;
        await t.sleep(10);
    }
    throw new Error(`no answer to ${topic}: ${JSON.stringify(payload).slice(0, 200)}`);
}

// A CA, a certificate for the broker at 127.0.0.1 and one for a client, in a folder.
function certificates(dir) {
    const run = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' });
    fs.mkdirSync(dir, { recursive: true });
    run('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test CA');
    for (const [name, ext] of [['broker', 'subjectAltName=IP:127.0.0.1'], ['client', 'extendedKeyUsage=clientAuth']]) {
        run('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
        fs.writeFileSync(path.join(dir, 'ext'), `${ext}\n`);
        run('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'ext',
            '-out', `${name}.pem`);
    }
    return dir;
}

module.exports = { Broker, ask, certificates, connect, publish, subscribe, up };
