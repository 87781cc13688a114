#!/usr/bin/env node
// The JSON Schema of the configuration with npm's ajv: it is a schema, and it accepts and refuses the same files as
// `shoal config check`.  Usage: config_schema.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');

const shoal = path.resolve(process.argv[2]);
process.env.NODE_PATH = t.modules('ajv@8.17.1', 'fast-deep-equal@3.1.3', 'fast-uri@3.0.6', 'json-schema-traverse@1.0.0',
    'require-from-string@2.0.2', 'yaml@2.5.1');
require('module').Module._initPaths();
const Ajv = require('ajv');
const yaml = require('yaml');

const run = (...args) => spawnSync(shoal, args, { encoding: 'utf8' });
const schema = JSON.parse(run('config', 'schema').stdout);
const ajv = new Ajv({ strict: true, allowUnionTypes: true });
t.check(ajv.validateSchema(schema), 'it is a schema');
const validate = ajv.compile(schema);

const model = `${t.root}/models/reply-draft.gguf`;
const sha = '0'.repeat(64);
const good = [
    '{}',
    'listen: 127.0.0.1:0',
    'listen: [127.0.0.1:0, "unix:/tmp/x.sock"]',
    `models: [{name: a, path: "${model}", kv: q8, lazy: true, priority: -3, context: 64}]`,
    `models: {name: a, path: "${model}"}`,
    `keys: [{name: a, sha256: "${sha}", rate: 0.5, admin: true}]`,
    'limits: {body: 1.5MiB, in_flight: 3, idle_timeout: 2m}\nmemory: 123456',
    'deadline: {default: 500, max: 3s}\ncache: {bytes: 0, ttl: 1h}',
    'cluster: {nodes: [a:1], heartbeat: 50ms, insecure: true}',
];
const bad = [
    'lisen: x',
    'listen: {a: 1}',
    'threads: 65',
    'threads: many',
    'threads: 1.5',
    'memory: 5XB',
    'memory: -5',
    'limits: {bdy: 1}',
    'limits: 5',
    'models: [{name: a}]',
    `models: [{name: a, path: "${model}", kv: q7}]`,
    'keys: [{name: a}]',
    'watch: perhaps',
    'listen: [a, b, c, d, e, f, g, h, i]',
    'cluster: {insecure: 5}',
];
for (const [texts, want] of [[good, true], [bad, false]])
    for (const text of texts) {
        const file = path.join(t.tmp, 'x.yaml');
        fs.writeFileSync(file, text);
        t.same(validate(yaml.parse(text)), want, `ajv: ${text}: ${JSON.stringify(validate.errors)}`);
        const r = run('config', 'check', file);
        t.same(r.status, want ? 0 : 1, `check: ${text}: ${r.stderr}`);
    }
// init writes a file that both accept.
const r = run('init', path.join(t.root, 'models'), '-o', '-');
t.check(validate(yaml.parse(r.stdout)), `init: ${JSON.stringify(validate.errors)}`);
t.finish();
