#!/usr/bin/env node
// POST /v1/process with the models that come with Shoal: whole, streamed, refused, abandoned; cards.
// Usage: serve_process.js SHOAL
'use strict';
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');

const WebSocket = require(t.npm('ws@8.18.0'));
const shoal = path.resolve(process.argv[2]);
const both = 'turn off the kitchen lights and set the heating to 19 degrees';
process.chdir(t.root); // where ./models is

async function post(server, body, headers = {}) {
    const r = await fetch(`${server.url}/v1/process`,
        { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
    return { status: r.status, headers: r.headers, text: await r.text() };
}

const json = async (server, body, headers) => JSON.parse((await post(server, body, headers)).text);

// The events of a stream as {event, data}.
function events(text) {
    return text.split('\n\n').filter(Boolean).map((e) => {
        const [name, data] = e.split('\n');
        return { event: name.replace('event: ', ''), data: JSON.parse(data.replace('data: ', '')) };
    });
}

// Nonsense texts of up to 4,096 bytes: each is answered without repetition or failure, and nothing happens.
async function hostile(server) {
    const fill = (words, end = '') => words.repeat(Math.floor((4096 - end.length - 1) / Buffer.byteLength(words))) + end;
    const texts = [fill('lamp ', 'off'), `which ${fill('lamp ').slice(0, 4000)}are on`, fill('every light in every room '),
        `turn off everything but ${fill('the lamp and ').slice(0, 4050)}`, fill('turn off the lamp and '), fill('xqzvv '), fill('tell '),
        fill('\u2019'), `set the heating to ${'9'.repeat(4000)}`, fill('\u{1f4a1} '), fill('\u0645\u0635\u0628\u0627\u062d '),
        fill('please '), `every light in every room ${'every light in every room '.repeat(20)}`];
    for (const text of texts) {
        const r = await post(server, { text });
        const name = JSON.stringify(text.slice(0, 40));
        t.same(r.status, 200, `${name}: ${r.text.slice(0, 200)}`);
        const { reply, actions } = JSON.parse(r.text), said = reply.split(/(?<=[.?!]) /);
        t.check(reply.length > 0 && reply.length < 500, `a short answer to ${name}: ${reply.length} bytes`);
        t.same(new Set(said).size, said.length, `each sentence once in the answer to ${name}: ${reply}`);
        t.check(actions.every((a) => !['done', 'simulated', 'scheduled'].includes(a.result)), `nothing happens for ${name}: ${JSON.stringify(actions).slice(0, 300)}`);
    }
    const stop = await json(server, { text: fill('stop the pump ') });
    t.same(stop.actions.map((a) => `${a.action} ${a.machine}`).join(), 'stop_machine pump', 'but a stop is obeyed, however often it is said');
    let r = await json(server, { text: 'when dinner is ready, turn off the oven' });
    t.same(r.reply, 'I did nothing: I can\'t wait for a condition.', 'a condition is said once');
    r = await json(server, { text: fill('stop the pump ') });
    t.same(r.actions.map((a) => `${a.action} ${a.id} ${a.result}`).join(), 'stop_machine pump_3 simulated', 'stopping one thing is never too long');
    r = await json(server, { text: fill('stop ') });
    t.same(r.reply, 'Simulated: stop everything.', 'stopping is never too long');
}

// A custom home: shown, replaced by those who may, refused with the position of the error.
async function home() {
    const config = path.join(t.tmp, 'home-server.yaml'), file = path.join(t.tmp, 'house.yaml');
    const sha = (key) => require('crypto').createHash('sha256').update(key).digest('hex');
    fs.writeFileSync(file, 'rooms: [{id: kitchen}]\ndevices: [{id: light.kitchen, name: ceiling light, kind: light, room: kitchen}]\n');
    fs.writeFileSync(config, `home: ${file}\nhome_state: ${path.join(t.tmp, 'states.json')}\n` +
        `keys: [{name: app, sha256: ${sha('one')}}, {name: boss, sha256: ${sha('two')}, admin: true}]\n`);
    const server = await t.start(shoal, ['--config', config]);
    const app = { authorization: 'Bearer one' }, boss = { authorization: 'Bearer two' };
    const put = (body, headers) => fetch(`${server.url}/v1/home`, { method: 'PUT', headers, body });
    const get = async () => (await fetch(`${server.url}/v1/home`, { headers: app })).json();
    t.same((await fetch(`${server.url}/v1/home`)).status, 401, 'a home is not for everybody');
    let r = await json(server, { text: 'turn on the kitchen light' }, app);
    t.same(`${r.actions[0].id} ${r.actions[0].result}`, 'light.kitchen simulated', 'its own thing');
    let h = await get();
    t.same(`${h.devices[0].id} ${h.simulated} ${h.states[0].id} ${h.states[0].value}`, 'light.kitchen true light.kitchen on', 'the home and its states');
    r = await json(server, { text: 'turn on the saw' }, app);
    t.same(`${r.actions[0].result} ${r.actions[0].unknown} ${r.reply}`, 'unknown saw I know no saw here.', 'a thing that is not there');
    t.same((await put('{}', app)).status, 403, 'not everybody may replace it');
    let bad = await put('machines:\n  - {id: saw, knd: machine}\n', boss);
    t.same(bad.status, 400, 'a home with an error');
    t.check(/body:2:15: unknown key 'knd'/.test((await bad.json()).error.message), 'says where');
    bad = await put('', boss);
    t.same(bad.status, 400, 'no home');
    t.same((await put(JSON.stringify({ machines: [{ id: 'saw.1', name: 'saw', kind: 'machine' }] }), boss)).status, 200, 'another home');
    r = await json(server, { text: 'stop the saw' }, app);
    t.same(`${r.actions[0].id} ${r.actions[0].result}`, 'saw.1 simulated', 'the new home');
    h = await get();
    t.same(`${h.devices.length} ${h.machines[0].id}`, '0 saw.1', 'the old things are gone');
    await server.stop();
}

async function answers(server) {
    let r = await json(server, { text: both });
    t.same(Object.keys(r).join(), 'actions,reply', 'members of an answer');
    t.same(r.actions.map((a) => `${a.action} ${a.id}`).join(), 'turn_off kitchen_lights,set_temperature heating',
        'actions');
    t.check(/kitchen lights.*19 degrees/.test(r.reply), `reply: ${r.reply}`);
    const cli = JSON.parse(execFileSync(shoal, ['ask', '--json', both]));
    t.same(JSON.stringify(r), JSON.stringify(cli), 'the same as shoal ask');
    r = await json(server, { text: 'what is 7 times 8', explain: true });
    t.same(r.actions[0].answer, 56, 'calculate');
    t.same(r.steps.map((s) => s.step).join(), 'read,decide,reply', 'steps');
    t.check(r.clauses[0].confidence > 0.5 && r.total_ms > 0, 'explained');
    r = await json(server, { text: both, reply: false });
    t.same(`${r.actions.length} ${r.reply}`, '2 ', 'actions only');
    const h2 = execFileSync('curl', ['-s', '--http2-prior-knowledge', `${server.url}/v1/process`, '-d',
        JSON.stringify({ text: 'set a timer for ten minutes' })]);
    t.same(JSON.parse(h2).actions[0].duration_s, 600, 'over HTTP/2');
}

async function streams(server) {
    const r = await post(server, { text: both, stream: true });
    t.same(r.headers.get('content-type'), 'text/event-stream', 'type of a stream');
    const all = events(r.text), last = all.at(-1);
    t.same(all[0].event, 'plan', 'first event');
    t.same(all[0].data.actions.length, 2, 'actions come first');
    t.check(all[0].data.clauses.every((c) => c.confidence > 0.5 && / sep /.test(c.intent)), 'the plan as it was read');
    t.same(last.event, 'done', 'last event');
    t.check(all.every((e) => e.data.type === e.event), 'types');
    const pieces = all.filter((e) => e.event === 'text');
    t.check(pieces.length > 5 && pieces.length === all.length - 2, `${pieces.length} pieces`);
    t.same(pieces.map((e) => e.data.text).join(''), last.data.reply, 'pieces are the reply');
    t.check(last.data.steps.length === 3 && last.data.total_ms > 0, 'steps at the end');
}

// The same events over the WebSocket.
async function socket(server) {
    const ws = new WebSocket(`ws://127.0.0.1:${server.port}/v1/stream`), seen = [];
    await new Promise((done, give) => ws.on('open', done).on('error', give));
    const end = new Promise((done) => ws.on('message', (m) => {
        seen.push(JSON.parse(m.toString()));
        if (seen.at(-1).done)
            done();
    }));
    ws.send(JSON.stringify({ id: 'a', path: '/v1/process', body: { text: 'what is 7 times 8', stream: true } }));
    await end;
    ws.terminate();
    const types = seen.filter((m) => m.event).map((m) => m.event.type);
    t.check(types[0] === 'plan' && types.at(-1) === 'done' && types.length > 4, `events of a socket: ${types}`);
    t.same(seen[0].event.actions[0].answer, 56, 'actions over a socket');
}

async function refusals(server) {
    const cases = [
        [{}, 400, 'text'], [{ text: 5 }, 400, 'text'], [{ text: '' }, 400, null], [{ text: ' \n ' }, 400, null],
        [{ text: 'x', what: 1 }, 400, 'what'], [{ text: 'x'.repeat(5000) }, 400, null], ['[]', 400, null],
        [{ text: both, latency_budget_ms: -1 }, 400, 'latency_budget_ms'],
    ];
    for (const [body, status, param] of cases) {
        const r = await post(server, body), what = JSON.stringify(body).slice(0, 60);
        t.same(r.status, status, what);
        const e = JSON.parse(r.text).error;
        t.check(e.message && e.param === param, `${what}: ${r.text}`);
    }
    const long = Array(12).fill('turn off the kitchen lights.').join(' ');
    let r = await post(server, { text: long, latency_budget_ms: 1 });
    t.same(`${r.status} ${JSON.parse(r.text).error.code}`, '504 deadline', 'budget in the body');
    r = await post(server, { text: long }, { 'x-latency-budget-ms': '1' });
    t.same(r.status, 504, 'budget in the header');
    t.same((await post(server, { text: 'hello' })).status, 200, 'and goes on');
}

async function abandoned(server) {
    const before = await t.metric(server, 'shoal_cancelled_total{model="reader"}');
    // a reply in several parts: it must not be over before the client is gone
    const give = new AbortController();
    const r = await fetch(`${server.url}/v1/process`, {
        method: 'POST', signal: give.signal,
        body: JSON.stringify({ stream: true, text: 'turn on the fan and close the blinds and set the heating to 19 degrees and lock the front door' }),
    });
    await r.body.getReader().read();
    give.abort();
    await t.until(async () => await t.metric(server, 'shoal_cancelled_total{model="reader"}') === before + 1,
        'cancelled');
    await t.until(async () => await t.metric(server, 'shoal_in_flight') === 0, 'nothing in flight');
}

// "yes" answers the question that was asked in the same session, whether the body or a header names it.
async function converses(server) {
    const say = async (text, body, headers = {}) => (await (await fetch(`${server.url}/v1/process`, { method: 'POST', headers,
        body: JSON.stringify({ text, ...body }) })).json()).actions.map((a) => `${a.action} ${a.result}`).join();
    for (const [body, headers] of [[{ session_id: 'k1' }, {}], [{}, { 'x-shoal-session': 'k2' }], [{}, { 'x-session-id': 'k3' }]]) {
        t.same(await say('unlock the front door', body, headers), 'unlock confirm', 'a question');
        t.same(await say('yes', { session_id: 'another' }), '', 'an answer in another session');
        t.same(await say('yes', body, headers), 'unlock simulated', 'the answer');
    }
}

// A token confirms in the session that it was given to, once.
// The language of a request: its words, the names of things in it, numbers and replies.
async function languages(server) {
    const said = {
        de: [['Schalte das Licht in der Küche aus', 'turn_off kitchen_lights', 'Simuliert: licht (küche) ausschalten.'],
            ['Wie spät ist es?', 'get_time undefined', 'Es ist '], ['Stopp die Pumpe 3', 'stop_machine pump_3', 'Simuliert: pumpe 3 anhalten.'],
            ['Schließ die Haustür auf', 'unlock front_door', 'Soll ich haustür aufschließen?'], ['Ja', 'unlock front_door', 'Simuliert: haustür aufschließen.']],
        fr: [['Éteins la télé', 'turn_off tv', 'éteindre télé'], ['Quelle heure est-il ?', 'get_time undefined', 'Il est '],
            ['Arrête la pompe 3', 'stop_machine pump_3', 'Simulé : arrêter pompe 3.']],
        es: [['Apaga la tele', 'turn_off tv', 'apagar televisión'], ['¿Qué hora es?', 'get_time undefined', 'Son las '],
            ['Para la bomba 3', 'stop_machine pump_3', 'Simulado: parar bomba 3.']],
    };
    for (const [language, rows] of Object.entries(said))
        for (const [text, act, reply] of rows) {
            const r = await json(server, { text, language, session_id: `in-${language}` });
            t.same(r.actions.map((a) => `${a.action} ${a.id}`).join(), act, `'${text}' in ${language}: ${JSON.stringify(r)}`);
            t.check(r.reply.includes(reply), `the reply to '${text}' is in ${language}: ${r.reply}`);
        }
    let r = await json(server, { text: 'Stell die Heizung im Schlafzimmer auf 21,5 Grad', language: 'de-AT' });
    t.check(r.actions[0].value === 21.5 && r.reply.includes('21,5 Grad'), `a number as Germans write it: ${JSON.stringify(r)}`);
    r = await json(server, { text: 'Wie spät ist es?' }, { 'Content-Language': 'de' });
    t.check(r.reply.startsWith('Es ist '), `Content-Language says the language of the text: ${r.reply}`);
    r = await json(server, { text: 'what time is it', language: 'en' }, { 'Content-Language': 'de' });
    t.check(r.reply.startsWith('It'), `the field comes before the header: ${r.reply}`);
    const refused = await post(server, { text: 'ciao', language: 'it' });
    t.same(refused.status, 400, `a language without words: ${refused.text}`);
    t.check(/language \\"it\\" here, only for en, \w\w, \w\w, \w\w/.test(refused.text), `and the message lists the others: ${refused.text}`);
}

async function confirms(server) {
    const send = async (body, session) => (await (await fetch(`${server.url}/v1/process`, { method: 'POST',
        headers: session ? { 'x-session-id': session } : {}, body: JSON.stringify(body) })).json()).actions;
    const did = (actions) => actions.map((a) => `${a.action} ${a.result}`).join();
    for (const session of ['t1', '']) {
        const token = (await send({ text: 'unlock the front door' }, session))[0].token;
        t.same(did(await send({ confirm: token }, 'another')), '', 'a token of another session');
        t.same(did(await send({ confirm: token }, session ? '' : 't2')), '', 'a token of another session');
        t.same(did(await send({ confirm: token }, session)), 'unlock simulated', 'a token');
        t.same(did(await send({ confirm: token }, session)), '', 'a token that was used');
    }
    const first = (await send({ text: 'unlock the front door' }, 't3'))[0].token;
    const second = (await send({ text: 'unlock the back door' }, 't3'))[0].token;
    t.same(did(await send({ confirm: first }, 't3')), '', 'a token of a plan that another one replaced');
    t.same((await send({ confirm: second }, 't3'))[0].id, 'back_door', 'the token of the last plan');
}

async function described(server) {
    const api = await (await fetch(`${server.url}/openapi.json`)).json();
    const schema = api.paths['/v1/process'].post.requestBody.content['application/json'].schema;
    t.same(Object.keys(schema.properties).join(), 'session_id,text,confirm,room,language,model,input,heard,stream,explain,reply,dry_run,priority,latency_budget_ms', 'openapi');
    const r = await fetch(`${server.url}/v1/models/intent/card`);
    t.same(r.headers.get('content-type'), 'text/markdown; charset=utf-8', 'type of a card');
    t.same(await r.text(), fs.readFileSync('models/intent.md', 'utf8'), 'a card');
    t.same((await fetch(`${server.url}/v1/models/none/card`)).status, 404, 'no card');
    const { models } = await (await fetch(`${server.url}/admin/models`)).json();
    const reply = models.find((m) => m.model === 'reply');
    t.check(reply.tokens_per_s > 0 && reply.median_ms > 0 && reply.file_bytes > 1e6 && reply.card,
        `figures of a model: ${JSON.stringify(reply)}`);
}

// A model whose file does not match the manifest is not used; the others are.
async function broken() {
    const pack = path.join(t.tmp, 'pack');
    fs.cpSync('models', pack, { recursive: true });
    const fd = fs.openSync(path.join(pack, 'reply.gguf'), 'r+');
    fs.writeSync(fd, 'x', 16000000);
    fs.closeSync(fd);
    process.env.SHOAL_MODELS = pack;
    const server = await t.start(shoal, []);
    delete process.env.SHOAL_MODELS;
    let r = await post(server, { text: both });
    t.same(r.status, 503, 'a broken model');
    t.check(/reply\.gguf/.test(r.text), `says which file: ${r.text}`);
    r = await post(server, { text: both, reply: false });
    t.same(r.status, 200, 'the others serve');
    await server.stop();
}

// A table of a newer version, as its manifest says: it has a key that the program does not know.
async function newer() {
    const pack = path.join(t.tmp, 'pack'), manifest = path.join(pack, 'models.json'), file = path.join(pack, 'home.json');
    const list = JSON.parse(fs.readFileSync(manifest));
    const bytes = JSON.stringify({ ...JSON.parse(fs.readFileSync(file)), from_the_future: 1 });
    fs.writeFileSync(file, bytes);
    Object.assign(list.tables.find((x) => x.name === 'home'), { bytes: Buffer.byteLength(bytes),
        sha256: require('crypto').createHash('sha256').update(bytes).digest('hex') });
    fs.writeFileSync(manifest, JSON.stringify(list));
    const env = { ...process.env, SHOAL_MODELS: pack };
    const server = await t.start(shoal, [], { env });
    const r = await post(server, { text: both });
    t.check(r.status === 503 && /must be of one version/.test(r.text), `commands: ${r.status} ${r.text}`);
    await server.stop();
    const { status, stderr } = spawnSync(shoal, ['ask', both], { env });
    t.check(status === 1 && /another version than this program.*from_the_future/.test(stderr), `ask: ${status} ${stderr}`);
}

async function without() {
    const server = await t.start(shoal, ['-m', 'reader=models/reader.gguf'], { admin: true });
    let r = await post(server, { text: both });
    t.same(r.status, 404, 'no reply model');
    t.check(/'reply'/.test(r.text), `names the model: ${r.text}`);
    t.same((await post(server, { text: both, reply: false })).status, 200, 'actions need the reader alone');
    t.same((await t.admin(server, { model: 'reader', action: 'unload' })).status, 200, 'unload');
    await t.until(async () => (await (await fetch(`${server.url}/v1/models`)).json()).data[0].state === 'unloaded',
        'unloaded');
    t.same((await post(server, { text: both, reply: false })).status, 200, 'loaded again when asked');
    t.same((await t.admin(server, { model: 'reader', action: 'remove' })).status, 200, 'remove');
    r = await post(server, { text: both, reply: false });
    t.check(r.status === 404 && /'reader'/.test(r.text), `no reader: ${r.text}`);
    await server.stop();
}

// Another table: its actions; an invalid table prevents the start and its position is reported.
async function tables() {
    const config = path.join(t.tmp, 'table.yaml');
    fs.writeFileSync(config, 'table: tests/data/ask/workshop.json\nhome: tests/data/ask/workshop.yaml\n');
    const server = await t.start(shoal, ['--config', config]);
    const r = await json(server, { text: 'start compressor 2', reply: false, explain: true });
    t.same(r.actions.map((a) => a.id).join(), 'compressor_2', 'an action of the table');
    await server.stop();
    const bad = path.join(t.tmp, 'bad.json');
    fs.writeFileSync(bad, '{"format": "shoal-home", "verbs": []}');
    fs.writeFileSync(config, `table: ${bad}\n`);
    const { status, stderr } = spawnSync(shoal, ['serve', '--config', config, '--listen', '127.0.0.1:0']);
    t.check(status === 1 && /bad\.json: verbs: unknown key/.test(stderr), `a wrong table: ${status} ${stderr}`);
}

// What the home cannot answer, a collection does: whole, streamed, and not at all.
async function documents() {
    const dir = path.join(t.tmp, 'collections'), manual = path.join(t.tmp, 'pump.md'), config = path.join(t.tmp, 'documents.yaml');
    fs.writeFileSync(manual, '# Pump\n\n## Cooling\n\nThe pump runs hot when the coolant is low. Refill it to the upper mark.\n');
    fs.writeFileSync(config, `collections: {dir: "${dir}"}\nprocess: {documents: [manuals]}\n`);
    execFileSync(shoal, ['index', 'add', 'manuals', '--dir', dir, manual]);
    const server = await t.start(shoal, ['--config', config]);
    const found = await json(server, { text: 'when does the pump run hot?' });
    t.same(found.reply, 'The pump runs hot when the coolant is low. That is from pump.md.', 'the answer of a document');
    const a = found.actions[0];
    t.same(`${a.action} ${a.collection} ${a.document} ${a.heading} ${a.result}`,
        `find_document manuals ${manual} Cooling done`, 'where it is from');
    t.check(a.score >= 0.35 && a.score <= 1, `its score: ${a.score}`);
    const none = await json(server, { text: 'who founded the city of Madrid?' });
    t.same(`${none.reply} ${none.actions[0].result}`, "I don't know. failed", 'a question that no document answers');
    t.same((await json(server, { text: 'turn on the kitchen lights' })).actions[0].action, 'turn_on', 'a command');
    const stream = events((await post(server, { text: 'when does the pump run hot?', stream: true })).text);
    t.same(stream.map((e) => e.event).join(), 'plan,text,done', 'the events of a stream');
    await server.stop();
}

(async () => {
    const server = await t.start(shoal, []);
    for (const part of [answers, streams, socket, refusals, abandoned, converses, confirms, described, hostile])
        await part(server);
    const taken = spawnSync(shoal, ['serve', '--listen', new URL(server.url).host]);
    t.check(taken.status === 1 && /choose another address with --listen/.test(taken.stderr), `a port in use: ${taken.stderr}`);
    t.same((await server.stop()).code, 0, 'ends cleanly');
    await broken();
    await newer();
    await without();
    await tables();
    await home();
    await documents();
    t.finish();
})();
