#!/usr/bin/env node
// The conformance tests of npm `webai-at-home` (`openai_test conformance`) against `shoal serve`: every check of its
// core and streaming profiles. Its exit code only tells that it ran; the results are in its report. Usage: webai.js
// SHOAL
'use strict';
const { execFile } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);

// Only this program of the package is needed, and these three of its dependencies, which need no others: 2 MB instead
// of the 100 MB of the full dependency list.
const program = path.join(t.tmp, 'openai_test');
t.modules('openai@6.9.1', 'commander@12.1.0', 'chalk@5.3.0');
fs.cpSync(path.join(t.npm('webai-at-home@0.1.8', 'package.json', 'dist/vendor/openai_test/*'),
    'dist/vendor/openai_test'), program, { recursive: true });
fs.writeFileSync(path.join(program, 'package.json'), '{"type": "module"}');

// The checks of the profiles.
const profiles = {
    core: ['models.list', 'chat.basic', 'chat.system_message', 'usage.present', 'usage.total_is_sum',
        'errors.unknown_model', 'errors.missing_messages', 'errors.malformed_json'],
    streaming: ['streaming.headers', 'streaming.basic', 'streaming.content_concatenates',
        'streaming.finish_reason', 'streaming.done', 'streaming.timing'],
};

// The report of one run.
async function conformance(server, profile, ...args) {
    const r = await new Promise((done) => execFile(process.execPath, [path.join(program, 'dist/cli.js'),
        'conformance', '--base_url', `${server.url}/v1`, '--model', 'reply', '--profile', profile,
        '--format', 'json', '--timeout_ms', '60000', ...args], { timeout: 120000 },
    (e, out, err) => done({ code: e ? e.code ?? e.signal : 0, out, err })));
    if (!t.same(r.code, 0, `${profile}: ${r.err}`))
        return [];
    const report = JSON.parse(r.out);
    t.same(report.summary.passed, report.tests.filter((one) => one.status === 'pass').length, 'its summary');
    return report.tests;
}

// Warns when a whole answer came within 5 ms, as a short one does on a fast machine; a server that buffers the whole
// answer never passes.
async function streamsAsItGoes(server, first) {
    let one = first;
    for (let i = 0; i < 20 && one.status === 'warn'; i++)
        [one] = await conformance(server, 'streaming', '--test', one.id);
    return one;
}

(async () => {
    const server = await t.start(shoal, ['-m', `reply=${t.root}/models/reply.gguf`]);
    for (const [profile, ids] of Object.entries(profiles)) {
        const tests = await conformance(server, profile);
        t.same(tests.map((one) => one.id).sort().join(), ids.toSorted().join(), `tests of ${profile}`);
        for (let one of tests) {
            if (one.id === 'streaming.timing')
                one = await streamsAsItGoes(server, one);
            t.same(one.status, 'pass', `${one.id} (${one.detail})`);
        }
        console.log(`${profile}: ${tests.length} tests`);
    }
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
