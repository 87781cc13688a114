// chaos_clients.js - the requests of the chaos test's clients, and the comparison of each answer with that of an
// undisturbed run.
'use strict';
const http = require('http');

const limitMs = 120000; // an answer that is silent for this long counts as lost

const prompts = ['ask: what is the weather', 'the kitchen lights are', 'set the heating to', 'the garage door is open and'];
const commands = ['turn off the kitchen lights and set the heating to 19 degrees', 'turn on the radio', 'lock the front door'];

// The same file twice; one node runs the second one in a process of its own.
const models = ['reply', 'story'];

const streamed = { ignore_eos: true, stream: true, stream_options: { include_usage: true } };
const completion = (i, tokens, more) => ({ path: '/v1/completions',
    body: { model: models[i % models.length], prompt: prompts[i % prompts.length], max_tokens: tokens, ...streamed, ...more } });
const chat = (i, tokens, more) => ({ path: '/v1/chat/completions', body: { model: 'reply',
    messages: [{ role: 'user', content: commands[i % commands.length] }], max_tokens: tokens, ...streamed, ...more } });

// Streams of roughly this many tokens: greedy and seeded, one choice and several, with and without log-probabilities.
const streams = (n) => [0, 1].flatMap((i) => [completion(i, n, { temperature: 0 }),
    completion(i, n, { temperature: 0.9, seed: 7 + i }), chat(i, n, { temperature: 0.7, top_p: 0.9, seed: 70 + i }),
    completion(i + 2, n / 2, { temperature: 0.8, seed: i, n: 2 }), completion(i + 2, n, { temperature: 0.6, seed: i, logprobs: 2 }),
    completion(i, n, { temperature: 0, stream: false, stream_options: undefined })]);
// Requests without streaming.
const shorts = () => [
    { path: '/v1/classify', body: { model: 'intent', input: ['turn off the lights', 'what time is it'] } },
    ...commands.map((text) => ({ path: '/v1/process', body: { text } })),
];

const leastTokens = 64; // a stream that is over at once cannot be interrupted

// How many tokens a single stream needs to last half a second on this machine, within limits. With all streams running,
// each lasts several seconds.
async function fitting(url) {
    const probe = completion(0, 20, { temperature: 0 });
    await ask(url, probe); // loads the model
    const from = performance.now();
    await ask(url, probe);
    return 2 * Math.round(Math.min(200, Math.max(leastTokens, 20 * 500 / (performance.now() - from))) / 2);
}

// One request: { status, text, gaps: [{ from, ms }] between events, error }.
function ask(url, request) {
    return new Promise((done) => {
        const got = { status: 0, text: '', gaps: [], error: null };
        const body = JSON.stringify(request.body);
        let last = 0;
        const over = (error) => {
            got.error ??= error;
            clearTimeout(timer);
            done(got);
        };
        const req = http.request(url + request.path, { method: 'POST', agent: false,
            headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } }, (res) => {
            got.status = res.statusCode;
            got.id = res.headers['x-request-id'];
            got.node = res.headers['x-shoal-node'];
            res.setEncoding('utf8');
            res.on('data', (d) => {
                const now = performance.now();
                timer.refresh();
                if (last)
                    got.gaps.push({ from: last, ms: now - last });
                last = now;
                got.text += d;
            });
            res.on('end', () => over(null));
            res.on('error', (e) => over(e.message));
        });
        const timer = setTimeout(() => req.destroy(new Error(`nothing came for ${limitMs / 1000} s`)), limitMs);
        req.on('error', (e) => over(e.message));
        req.end(body);
    });
}

function readStream(text) {
    const answer = { texts: [], finish: [], logprobs: [], usage: null, ends: 0 };
    for (const event of text.split('\n\n').filter(Boolean)) {
        const data = event.replace(/^data: /, '');
        if (data === '[DONE]') {
            answer.ends++;
            continue;
        }
        const e = JSON.parse(data);
        if (e.error)
            return { error: data };
        if (e.usage)
            answer.usage = [e.usage.prompt_tokens, e.usage.completion_tokens];
        for (const x of e.choices ?? []) {
            answer.texts[x.index] = (answer.texts[x.index] ?? '') + (x.text ?? x.delta?.content ?? '');
            if (x.finish_reason)
                answer.finish[x.index] = (answer.finish[x.index] ?? '') + x.finish_reason;
            for (const p of x.logprobs?.token_logprobs ?? [])
                answer.logprobs.push(p);
        }
    }
    return answer.ends ? answer : { error: `the stream broke off after ${text.length} bytes`, texts: answer.texts };
}

// The parts of an answer that must be equal in every run: all but times and ids.
function readWhole(text) {
    const j = JSON.parse(text);
    return j.choices ? { texts: j.choices.map((x) => x.text), finish: j.choices.map((x) => x.finish_reason),
        usage: [j.usage.prompt_tokens, j.usage.completion_tokens] } :
        { data: j.data, actions: j.actions, reply: j.reply, clauses: j.clauses };
}

// What a client has of a stream that broke off; the last event may be incomplete.
function readPart(text) {
    const end = text.lastIndexOf('\n\n');
    return end < 0 ? [] : readStream(text.slice(0, end + 2)).texts ?? []; // not even one, or no stream
}

// Whether what came of a stream before its gateway was lost is the beginning of the answer.
function begins(want, got) {
    return readPart(got.text).every((text, i) => (want.texts?.[i] ?? '').startsWith(text));
}

function read(request, got) {
    if (got.error)
        return { error: got.error };
    if (got.status !== 200)
        return { error: `status ${got.status}: ${got.text.slice(0, 500)}` };
    try {
        return request.body.stream ? readStream(got.text) : readWhole(got.text);
    } catch (e) {
        return { error: `${e.message} in ${got.text.slice(-300)}` };
    }
}

// 'good', 'lost' (incomplete), 'repeated' (longer than it should be) or 'different'.
function judge(want, answer) {
    if (answer.error)
        return 'lost';
    if (JSON.stringify(answer) === JSON.stringify(want))
        return 'good';
    const longer = want.texts?.some((w, i) => (answer.texts?.[i]?.length ?? 0) > w.length);
    return longer || answer.ends > 1 || answer.usage?.[1] > want.usage?.[1] ? 'repeated' : 'different';
}

module.exports = { streams, shorts, fitting, ask, read, begins, judge };
