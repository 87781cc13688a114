#!/usr/bin/env node
// `shoal router fit`: a router model from labelled rows, and a route that uses it.  Usage: serve_router.js SHOAL
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const env = { ...process.env, SHOAL_MODELS: `${t.root}/models`, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') };
const run = (...args) => spawnSync(shoal, args, { encoding: 'utf8', env, timeout: 120000 });
const write = (name, text) => {
    fs.writeFileSync(path.join(t.tmp, name), text);
    return path.join(t.tmp, name);
};

const asks = ['how much is {}', 'please pay {}', 'what does {} cost', 'send money for {}', 'is {} on my bill', 'refund {} please'];
const trips = ['book a flight to {}', 'find a hotel in {}', 'how far is {}', 'when does the train to {} leave', 'plan a trip to {}', 'is {} nice in spring'];
const noise = ['why is the sky blue', 'tell me a joke', 'the dog sleeps', 'play some music', 'who wrote this song', 'is it art'];
const things = ['the phone', 'my rent', 'a ticket', 'the bill', 'insurance', 'gas'], places = ['Rome', 'Oslo', 'Lisbon', 'Tokyo', 'Vienna', 'Lima'];
const rows = [...asks.flatMap((a) => things.map((x) => ({ text: a.replace('{}', x), domain: 'money' }))),
    ...trips.flatMap((a) => places.map((x) => ({ text: a.replace('{}', x), domain: 'travel' }))), ...noise.map((text) => ({ text, domain: 'none' }))];

(async () => {
    const file = write('rows.jsonl', rows.map((r) => JSON.stringify(r)).join('\n'));
    const dir = path.join(t.tmp, 'fitted');
    const fit = run('router', 'fit', '-o', dir, '--json', file);
    t.same(fit.status, 0, fit.stderr);
    const said = JSON.parse(fit.stdout);
    t.same(said.domains.join(), 'money,travel', 'domains');
    t.check(said.accuracy >= 0.9 && said.heldout >= 5, `held out: ${fit.stdout}`);
    t.check(said.threshold >= 0 && said.threshold < 1 && said.none === noise.length, `threshold: ${fit.stdout}`);
    const seen = fs.readdirSync(dir).sort().join();
    t.same(seen, 'config.json,model.safetensors,tokenizer.json,tokenizer_config.json,vocab.txt', 'files of the model');
    // in other words than the rows, and without "ticket", which the rows use for money
    const unseen = ['get me on a plane to Madrid', 'which hotel in Madrid is good', 'how much do I owe for my insurance', 'pay the gas bill'];
    const labels = run('classify', '-m', dir, ...unseen).stdout.trim().split('\n').map((x) => x.split(' ')[0]);
    t.same(labels.join(), 'travel,travel,money,money', 'it classifies');
    // the embeddings alone, for the first step of a cascade
    const quick = path.join(t.tmp, 'quick'), cut = run('router', 'fit', '-o', quick, '--layers', '0', '--json', file);
    t.same(cut.status, 0, cut.stderr);
    t.check(JSON.parse(cut.stdout).accuracy >= 0.9, `without layers: ${cut.stdout}`);
    const size = (folder) => fs.statSync(path.join(folder, 'model.safetensors')).size;
    t.check(size(quick) < 0.7 * size(dir), `smaller: ${size(quick)} of ${size(dir)}`);
    t.check(/travel/.test(run('classify', '-m', quick, 'book a flight to Madrid').stdout.split(' ')[0]), 'it classifies');
    const curve = run('eval', 'cascade', '-m', quick, '--large', dir, '--json', '--gain', '100',
        write('known.jsonl', rows.filter((r) => r.domain !== 'none').map((r) => JSON.stringify({ text: r.text, label: r.domain })).join('\n')));
    t.same(curve.status, 0, curve.stderr);
    const known = JSON.parse(curve.stdout);
    t.check(known.small_accuracy > 0.8 && known.large_accuracy > 0.9 && known.curve.length === 11, `a cascade of both: ${curve.stdout}`);
    for (const bad of ['4', '-1', 'x']) {
        const no = run('router', 'fit', '-o', `${quick}2`, '--layers', bad, file);
        t.check(no.status === 1 && no.stderr.includes('0 to 3') && !fs.existsSync(`${quick}2`), `--layers ${bad}: ${no.stderr}`);
    }
    // errors
    const again = run('router', 'fit', '-o', dir, file);
    t.check(again.status === 1 && again.stderr.includes('fitted'), `a folder that is there: ${again.stderr}`);
    t.same(fs.readdirSync(dir).sort().join(), seen, 'stays as it is');
    const one = run('router', 'fit', '-o', `${dir}2`, write('one.jsonl', '{"text": "x", "domain": "a"}\n'));
    t.check(one.status === 1 && one.stderr.includes('1 domains'), `one domain: ${one.stderr}`);
    t.check(!fs.existsSync(`${dir}2`), 'a failure leaves no folder');
    t.same(run('router', 'fit', file).status, 2, 'no folder given');
    // a route
    const s = await t.start(shoal, ['--config', write('router.yaml', `models:
  - {name: bank, path: "${t.root}/models/reply.gguf", domains: [money]}
  - {name: tours, path: "${t.root}/models/reply-draft.gguf", domains: [travel]}
  - {name: all, path: "${t.root}/models/reply-draft.gguf"}
  - {name: finder, path: "${dir}"}
routes:
  - {name: desk, models: [bank, tours, all], classifier: {model: finder, threshold: ${said.threshold}}}
`)]);
    for (const [text, domain, model] of [['please pay the phone', 'money', 'bank'], ['book a flight to Oslo', 'travel', 'tours']]) {
        const out = run('route', '-r', 'desk', '--explain', '--json', '--server', s.url, text);
        t.same(out.status, 0, out.stderr);
        const got = out.status === 0 ? JSON.parse(out.stdout) : {};
        t.same(`${got.domain} ${got.model}`, `${domain} ${model}`, `${text}: ${out.stdout}`);
    }
    await s.stop();
    t.finish();
})().catch(t.abandon);
