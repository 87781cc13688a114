// chaos_admin.js - administrators who deploy, remove, drain and undrain while the faults go on, and whether what they and the
// readers saw is linearizable.  They change a model that no node may have, and a node that does not exist: the requests of the
// run do not notice.
'use strict';
const { execFile } = require('child_process');
const path = require('path');
const t = require('../integration/serve.js');
const { violationBetween } = require('./history.js');

const MODEL = 'nobodys', NODE = 'nobody', SUM = '5'.repeat(64);
const restMs = 400; // between two commands of one administrator: each is a process

class Admins {
    constructor(site, r) {
        this.site = site;
        this.pick = (n) => r.between(0, n - 1);
        this.next = 0;
        this.history = { [MODEL]: [], [NODE]: [] };
    }

    command(...args) {
        const { shoal, ca, urls } = this.site;
        return new Promise((done) => {
            execFile(shoal, ['cluster', ...args, '--json', '--cluster', 'chaos', '--certs', path.join(ca, 'members', 'admin'),
                ...urls.flatMap((url) => ['--nats', url]), '--timeout', '20'], { maxBuffer: 1 << 26 },
            (error, out, err) => done({ code: error ? error.code ?? -1 : 0, out, err }));
        });
    }

    // A command that fails may have changed the state: its outcome is not known.
    async write(name, value, args, good = [0]) {
        const op = { type: 'write', value, start: performance.now(), end: Infinity };
        this.history[name].push(op);
        if (good.includes((await this.command(...args)).code))
            op.end = performance.now();
    }

    async change(goes) {
        while (goes()) {
            const which = this.pick(4);
            if (which < 2)
                await this.write(MODEL, ++this.next, ['deploy', MODEL, '--sha256', SUM, '--min', '0', '--max', '1', '--label', 'nowhere',
                    '--priority', String(this.next)]);
            else if (which === 2)
                await this.write(MODEL, null, ['remove', MODEL]);
            else if (this.pick(2))
                await this.write(NODE, true, ['drain', NODE, '--force', '--wait', '0'], [0, 3]);
            else
                await this.write(NODE, false, ['undrain', NODE]);
            await t.sleep(restMs);
        }
    }

    // What nobody could confirm says nothing.
    async read(goes) {
        while (goes()) {
            const start = performance.now(), got = await this.command('desired'), end = performance.now();
            if (got.code === 0 && !got.err.includes('may be old')) {
                const d = JSON.parse(got.out);
                this.history[MODEL].push({ type: 'read', value: d.models.find((m) => m.name === MODEL)?.priority ?? null, start, end });
                this.history[NODE].push({ type: 'read', value: (d.drained ?? []).includes(NODE), start, end });
            }
            await t.sleep(restMs);
        }
    }

    // All operations, to look for the reason.
    tell(ops) {
        const at = (ms) => (ms === Infinity ? 'unknown' : ms.toFixed(0));
        return [...ops, ...this.site.wipes.map((w) => ({ type: 'loss of NATS', ...w }))].toSorted((a, b) => a.start - b.start)
            .map((o) => `  ${at(o.start)} to ${at(o.end)} ms: ${o.type} ${o.value ?? ''}`).join('\n');
    }

    // For the report; calls bad with what is not linearizable.
    judge(bad) {
        const all = Object.values(this.history).flat(), count = (f) => all.filter(f).length;
        let fine = true;
        for (const [name, ops] of Object.entries(this.history)) {
            const found = violationBetween(ops, this.site.wipes, name === NODE ? false : null);
            fine &&= !found;
            if (found)
                bad(`what administrators did to ${name} is not linearizable: ${JSON.stringify(found)}\n${this.tell(ops)}`);
        }
        return `control operations: ${count((o) => o.type === 'write')} changes (${count((o) => o.end === Infinity)} with unknown outcome), ` +
            `${count((o) => o.type === 'read')} reads, ${this.site.wipes.length} losses of NATS: ${fine ? '' : 'NOT '}linearizable`;
    }
}

module.exports = { Admins };
