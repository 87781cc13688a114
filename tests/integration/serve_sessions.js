#!/usr/bin/env node
// Sessions: a conversation continues by its id, on any gateway, after kill -9, encrypted for its key; Redis goes down
// and comes back. Usage: serve_sessions.js SHOAL
'use strict';
const { spawn, spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');
const path = require('path');
const t = require('./serve.js');

const shoal = path.resolve(process.argv[2]);
const sha = (key) => crypto.createHash('sha256').update(key).digest('hex');
const config = (name, more) => {
    const file = path.join(t.tmp, `${name}.yaml`);
    fs.writeFileSync(file, `models:
  - {name: reply, path: "${t.root}/models/reply.gguf"}
keys:
  - {name: anna, sha256: ${sha('anna-key')}}
  - {name: ben, sha256: ${sha('ben-key')}}
sessions:
  key_file: "${path.join(t.tmp, 'sessions.key')}"
${more}`);
    return file;
};

async function say(server, id, content, { key = 'anna-key', header = false, more = {} } = {}) {
    const body = { model: 'reply', max_tokens: 6, temperature: 0, messages: [{ role: 'user', content }], ...more };
    if (!header)
        body.session_id = id;
    const r = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body),
        headers: { authorization: `Bearer ${key}`, ...(header ? { 'x-shoal-session': id } : {}) } });
    const text = await r.text();
    return { status: r.status, state: r.headers.get('x-shoal-session'), text, json: text.startsWith('{') ? JSON.parse(text) : null };
}

async function show(server, id, key = 'anna-key', method = 'GET') {
    const r = await fetch(`${server.url}/v1/sessions/${id}`, { method, headers: { authorization: `Bearer ${key}` } });
    return { status: r.status, json: JSON.parse(await r.text()) };
}
const users = (shown) => (shown.json.messages || []).filter((m) => m.role === 'user').map((m) => m.content).join();

// Anthropic's and Ollama's clients continue the same conversation by the header.
async function of_others(server) {
    const post = async (url, body) => {
        const r = await fetch(server.url + url, { method: 'POST', body: JSON.stringify({ model: 'reply', ...body }),
            headers: { authorization: 'Bearer anna-key', 'x-shoal-session': 'shared' } });
        return { status: r.status, text: await r.text() };
    };
    const message = (content) => [{ role: 'user', content }];
    t.same((await say(server, 'shared', 'one')).status, 200, 'begun by one client');
    const anthropic = await post('/v1/messages', { max_tokens: 6, temperature: 0, messages: message('two') });
    t.same(anthropic.status, 200, anthropic.text);
    const streamed = await post('/v1/messages', { max_tokens: 6, temperature: 0, stream: true, messages: message('three') });
    t.check(streamed.text.includes('message_stop'), `a stream of messages: ${streamed.text}`);
    const ollama = await post('/api/chat', { stream: false, options: { num_predict: 6, temperature: 0 }, messages: message('four') });
    t.same(ollama.status, 200, ollama.text);
    const shown = await show(server, 'shared');
    t.same(users(shown), 'one,two,three,four', 'one conversation');
    t.same(shown.json.messages[3].content, JSON.parse(anthropic.text).content[0]?.text ?? '', 'with the answers');
    t.same(shown.json.messages[7].content, JSON.parse(ollama.text).message.content, 'of both');
    const tool = { name: 'f', input_schema: { type: 'object' } };
    t.same((await post('/v1/messages', { max_tokens: 6, tools: [tool], messages: message('x') })).status, 400, 'tools are refused');
}

async function on_sqlite() {
    const db = path.join(t.tmp, 'sessions.db');
    const file = config('sqlite', `  store: "sqlite:${db}"\n  history_tokens: 60\n`);
    let one = await t.start(shoal, ['--config', file]);
    const first = await say(one, 's1', 'turn on the lamp');
    t.same(first.status, 200, first.text);
    const second = await say(one, 's1', 'and the kitchen', { header: true });
    t.check(second.json.usage.prompt_tokens > first.json.usage.prompt_tokens, 'the second turn reads the first');
    t.same(second.state, null, 'nothing is degraded');
    let s = await show(one, 's1');
    t.same(s.json.messages.map((m) => m.role).join(), 'user,assistant,user,assistant', 'four messages');
    t.same(s.json.messages[1].content, first.json.choices[0].message.content, 'the answer is among them');
    const streamed = await say(one, 's1', 'a stream', { more: { stream: true } });
    t.check(streamed.text.includes('[DONE]'), 'a stream ends');
    t.same(users(await show(one, 's1')), 'turn on the lamp,and the kitchen,a stream', 'and is kept');
    const again = await say(one, 's2', 'x', { more: { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'x' }] } });
    t.same(again.status, 200, again.text);
    await of_others(one);
    // others
    t.same((await show(one, 's1', 'ben-key')).status, 404, 'another key does not see it');
    t.same((await say(one, 's1', 'ben here', { key: 'ben-key' })).status, 200, 'it has its own of this name');
    t.same(users(await show(one, 's1', 'ben-key')), 'ben here', 'with its own messages');
    t.same((await say(one, '../x', 'y')).status, 400, 'a bad id');
    t.same((await say(one, 's1', 'y', { more: { n: 2 } })).status, 400, 'n');
    const bytes = Buffer.concat(fs.readdirSync(t.tmp).filter((f) => f.startsWith('sessions.db')).map((f) => fs.readFileSync(path.join(t.tmp, f))));
    t.check(!bytes.includes('kitchen') && !bytes.includes('anna'), 'neither texts nor names are in the file');
    t.same((fs.statSync(path.join(t.tmp, 'sessions.key')).mode & 0o777).toString(8), '600', 'the key file');
    // a second gateway continues it, at the same time
    const two = await t.start(shoal, ['--config', file]);
    t.same(users(await show(two, 's1')), 'turn on the lamp,and the kitchen,a stream', 'a second gateway');
    await Promise.all([say(one, 's3', 'a'), say(two, 's3', 'b'), say(one, 's3', 'c'), say(two, 's3', 'd')]);
    t.same(users(await show(one, 's3')).split(',').sort().join(), 'a,b,c,d', 'turns at the same time');
    // killed in the middle of a turn
    const cut = fetch(`${one.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: 'Bearer anna-key' },
        body: JSON.stringify({ model: 'reply', session_id: 's1', stream: true, max_tokens: 400, ignore_eos: true, messages: [{ role: 'user', content: 'lost' }] }) })
        .then((r) => r.text()).catch(() => 'cut');
    await t.sleep(50);
    one.child.kill('SIGKILL');
    await one.ended;
    await cut;
    one = await t.start(shoal, ['--config', file]);
    const after = users(await show(one, 's1'));
    t.check(after.startsWith('turn on the lamp,and the kitchen,a stream'), `after kill -9: ${after}`);
    t.same((await say(one, 's1', 'go on')).status, 200, 'it goes on');
    t.check(users(await show(two, 's1')).endsWith('go on'), 'for everybody');
    // trimmed
    for (let i = 0; i < 4; i++)
        await say(one, 's4', `message number ${i} with some more words so that there are many tokens of it here`);
    s = await show(one, 's4');
    t.check(s.json.messages.length < 8 && s.json.messages[0].role === 'user', `trimmed: ${s.json.messages.length}`);
    t.same((await show(one, 's1', 'anna-key', 'DELETE')).json.deleted, true, 'forgotten');
    t.same((await show(one, 's1')).status, 404, 'for good');
    await one.stop();
    await two.stop();
}

async function ends() {
    const file = config('ttl', `  store: "sqlite:${path.join(t.tmp, 'ttl.db')}"\n  ttl: 1s\n`);
    const one = await t.start(shoal, ['--config', file]);
    await say(one, 'short', 'x');
    await t.until(async () => (await show(one, 'short')).status === 404, 'a conversation ends');
    await one.stop();
    const off = await t.start(shoal, ['--config', config('off', '  store: "off"\n')]);
    t.same((await say(off, 'x', 'y')).status, 400, 'sessions can be off');
    await off.stop();
}

// The decision of a route is reported as without a session.
async function decisions() {
    const file = path.join(t.tmp, 'decisions.yaml');
    fs.writeFileSync(file, `models:
  - {name: small, path: "${t.root}/models/reply-draft.gguf", quality: 0.2}
  - {name: big, path: "${t.root}/models/reply.gguf", quality: 0.9}
keys: [{name: anna, sha256: ${sha('anna-key')}}]
sessions: {store: "sqlite:${path.join(t.tmp, 'decisions.db')}", key_file: "${path.join(t.tmp, 'sessions.key')}"}
routes:
  - {name: home, models: [small, big], cache: false}
  - {name: careful, cascade: {models: [small, big], threshold: 1}, cache: false}
`);
    const one = await t.start(shoal, ['--config', file]);
    const told = ({ json }) => JSON.stringify({ candidates: json.shoal.candidates?.map((c) => [c.model, c.verdict]), kind: json.shoal.ensemble?.kind,
        steps: json.shoal.ensemble?.steps.map((s) => [s.model, s.what, s.answered]) });
    for (const model of ['home', 'careful']) {
        const more = { model, explain: true };
        const alone = await say(one, undefined, 'turn on the lamp', { more }), turn = await say(one, model, 'turn on the lamp', { more });
        t.same(`${alone.status} ${turn.status}`, '200 200', turn.text);
        t.same(told(turn), told(alone), `${model}: the decision inside a session`);
        t.check(/\[\["small"/.test(told(turn)) && /"big"/.test(told(turn)), `${model}: both models are in it: ${told(turn)}`);
    }
    await one.stop();
}

// A conversation longer than the model's context continues with its last messages.
async function long_talk() {
    const file = config('long', `  store: "sqlite:${path.join(t.tmp, 'long.db')}"\n`);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('reply.gguf"}', 'reply.gguf", context: 128}'));
    const server = await t.start(shoal, ['--config', file]);
    for (let i = 0; i < 12; i++) {
        const r = await say(server, 'long', `chat: hello, this is turn ${i} of a conversation that is never over`, { more: { max_tokens: 8 } });
        t.same(r.status, 200, `turn ${i}: ${r.text}`);
    }
    t.same((await show(server, 'long')).json.messages.length, 24, 'all turns are kept');
    const r = await say(server, 'long', 'word '.repeat(200));
    t.check(r.status === 400 && r.json.error.code === 'context_length_exceeded', `a message that is too long itself: ${r.text}`);
    t.same((await server.stop()).code, 0, 'exit');
}

async function on_redis() {
    const port = await t.free_port(), dir = path.join(t.tmp, 'redis');
    fs.mkdirSync(dir);
    const start = async () => {
        const child = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--dir', dir, '--appendonly', 'yes',
            '--appendfsync', 'always', '--save', '', '--daemonize', 'no'], { stdio: 'ignore' });
        process.on('exit', () => child.kill('SIGKILL'));
        await t.until(() => new Promise((done) => {
            const s = net.connect(port, '127.0.0.1', () => s.write('PING\r\n'));
            s.on('data', (d) => { s.destroy(); done(d.toString().startsWith('+PONG')); });
            s.on('error', () => done(false));
        }), 'redis-server answers');
        return child;
    };
    const stop = (child) => new Promise((done) => { child.on('exit', done); child.kill('SIGKILL'); });
    let redis = await start();
    const file = config('redis', `  store: "redis://127.0.0.1:${port}/2"\n`);
    const one = await t.start(shoal, ['--config', file]), two = await t.start(shoal, ['--config', file]);
    // Redis has half a second to answer; a turn that it did not accept in time is reported as degraded, and stored
    // later
    const settled = (server, want, what) => t.until(async () => users(await show(server, 'r')) === want, what);
    for (const server of [one, two])
        await t.until(async () => (await say(server, 'other', 'x')).state === null, 'in Redis');
    t.same((await say(one, 'r', 'first')).status, 200, 'a turn');
    await settled(two, 'first', 'the other gateway sees it');
    t.same((await say(two, 'r', 'second')).status, 200, 'a turn on another gateway');
    await settled(one, 'first,second', 'both');
    await t.until(async () => await t.metric(one, 'shoal_sessions_unsaved') === 0, 'nothing waits');
    await stop(redis);
    let r = await say(one, 'r', 'third');
    t.same(`${r.status} ${r.state}`, '200 degraded', 'Redis is away: answered, and said so');
    r = await say(one, 'r', 'fourth');
    t.same(`${r.status} ${r.state}`, '200 degraded', 'and again');
    t.check(await t.metric(one, 'shoal_sessions_unsaved') === 1, 'a figure says that it waits');
    t.same((await show(one, 'r')).status, 503, 'what is away cannot be shown');
    redis = await start();
    await t.until(async () => (await say(one, 'other', 'x')).state === null, 'it recovers by itself');
    await settled(two, 'first,second,third,fourth', 'nothing is lost');
    t.same((await say(two, 'r', 'fifth')).status, 200, 'a further turn');
    await settled(one, 'first,second,third,fourth,fifth', 'and it goes on');
    await one.stop();
    await two.stop();
    await stop(redis);
}

// What no longer fits is condensed into a note, by a model that summarizes or by one that chats, and read again.
async function notes() {
    const facts = ['My name is Ada and I live in Bern with two cats.', 'The code of the garden gate is 4417.', 'The plumber comes on Friday at nine.'];
    const filler = 'Please tell me something about the weather of the next days, it does not matter much what it is.';
    for (const [writer, path_] of [['summary', 'models/summary.json'], ['writer', 'models/reply-draft.gguf']]) {
        const file = config(`notes-${writer}`, `  store: "sqlite:${t.tmp}/notes-${writer}.db"\n  history_tokens: 120\n  summary: ${writer}\n`);
        fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('models:\n', `models:\n  - {name: ${writer}, path: "${t.root}/${path_}"}\n`));
        const server = await t.start(shoal, ['--config', file]);
        const talk = async (text) => t.same((await say(server, 'n', text)).status, 200, 'a turn');
        for (const text of facts)
            await talk(text);
        t.same((await show(server, 'n')).json.note, undefined, `${writer}: everything fits`);
        await talk(filler);
        await talk(filler);
        await t.until(async () => (await show(server, 'n')).json.note, `${writer}: a note`);
        const first = (await show(server, 'n')).json;
        t.check(first.note.length > 5 && first.messages[0].role === 'user' && !first.messages.some((m) => m.content === facts[0]),
            `${writer}: in place of the oldest: ${JSON.stringify(first)}`);
        if (writer === 'summary') // its notes are sentences of the conversation
            t.check(facts.some((f) => first.note.includes(f)), `a fact is kept: ${first.note}`);
        // the model reads it: the same messages without a note are shorter by its tokens
        const told = (await say(server, 'n', 'So?')).json.usage.prompt_tokens;
        const plain = (await say(server, 'other', 'So?', { more: { messages: [...first.messages, { role: 'user', content: 'So?' }] } })).json.usage.prompt_tokens;
        t.check(told > plain + 4, `${writer}: the note is read: ${told} and ${plain} tokens`);
        for (let i = 0; i < 3; i++)
            await talk(filler);
        await t.until(async () => (await show(server, 'n')).json.note !== first.note, `${writer}: the next note`);
        t.same((await server.stop()).code, 0, 'ends well');
    }
    const bad = config('notes-bad', '  summary: sumary\n');
    const check = spawnSync(shoal, ['config', 'check', bad]);
    t.check(check.status !== 0 && /there is no model 'sumary'/.test(`${check.stdout}${check.stderr}`), `an unknown model: ${check.stdout}${check.stderr}`);
}

(async () => {
    await notes();
    await on_sqlite();
    await ends();
    await decisions();
    await long_talk();
    await on_redis();
    t.finish();
})().catch(t.abandon);
