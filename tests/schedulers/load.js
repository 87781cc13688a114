// Streams completions and sends commands, one after another in several lanes, until SIGTERM. Prints the counts; exit
// status 1 if a request failed or texts differed. Arguments: the gateways' URLs; with more than one, a request whose
// connection breaks is retried at the next, as a client of several gateways does. LANES: how many (4).
'use strict';
const urls = process.argv.slice(2);
const lanes = Number(process.env.LANES ?? 4);
const counts = { streams: 0, commands: 0, failed: 0, different: 0, again: 0, longest_ms: 0 };
const texts = new Map();
let running = true, said = false;
process.on('SIGTERM', () => { running = false; });

async function post(url, path, body) {
    const res = await fetch(url + path, { method: 'POST', signal: AbortSignal.timeout(60000), body: JSON.stringify(body) });
    return { status: res.status, body: await res.text() };
}

async function stream(url, seed) {
    const { status, body } = await post(url, '/v1/completions', { model: 'reply', prompt: 'Once upon a time', max_tokens: 48,
        ignore_eos: true, seed, temperature: 1, stream: true });
    if (status !== 200 || !body.endsWith('data: [DONE]\n\n') || body.includes('"error"'))
        throw new Error(`stream: status ${status}: ${body.slice(-300)}`);
    const text = body.split('\n\n').filter((e) => e.startsWith('data: {'))
        .map((e) => JSON.parse(e.slice(6)).choices?.[0]?.text ?? '').join('');
    if (texts.has(seed) && texts.get(seed) !== text)
        counts.different++;
    texts.set(seed, text);
    counts.streams++;
}

async function command(url) {
    const { status, body } = await post(url, '/v1/process', { text: 'turn off the kitchen lights' });
    if (status !== 200)
        throw new Error(`command: status ${status}: ${body.slice(0, 300)}`);
    counts.commands++;
}

// A broken connection, as fetch reports it; an error response is not one.
const is_broken = (e) => e instanceof TypeError;

async function ask(k, i) {
    for (let tries = 0;; tries++) {
        const url = urls[(k + i + tries) % urls.length];
        try {
            return await (k % 2 ? command(url) : stream(url, i % 8));
        } catch (e) {
            if (!is_broken(e) || tries + 1 >= urls.length)
                throw e;
            counts.again++;
        }
    }
}

async function lane(k) {
    for (let i = 0; running; i++) {
        const began = performance.now();
        try {
            await ask(k, i);
        } catch (e) {
            counts.failed++;
            console.log(`${new Date().toISOString()} ${e} ${e.cause ?? ''}`);
            await new Promise((done) => setTimeout(done, 100)); // a failure must not flood the log
        }
        counts.longest_ms = Math.max(counts.longest_ms, Math.round(performance.now() - began));
        if (!said && counts.streams && counts.commands)
            said = !console.log('under way');
    }
}

Promise.all([...Array(lanes).keys()].map(lane)).then(() => {
    console.log(`${counts.streams} streams, ${counts.commands} commands, ${counts.failed} failed, ` +
        `${counts.different} different, ${counts.again} asked again, longest ${counts.longest_ms} ms`);
    process.exit(counts.failed || counts.different || !counts.streams || !counts.commands ? 1 : 0);
});
