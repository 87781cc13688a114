// Streams completions and asks commands, one after another in several lanes, until SIGTERM.  Prints the counts; exit
// status 1 if a request failed or a text was not the same every time.  Argument: the gateway's URL.
'use strict';
const [url] = process.argv.slice(2);
const counts = { streams: 0, commands: 0, failed: 0, different: 0, longest_ms: 0 };
const texts = new Map();
let running = true;
process.on('SIGTERM', () => { running = false; });

async function stream(seed) {
    const res = await fetch(`${url}/v1/completions`, { method: 'POST', signal: AbortSignal.timeout(60000),
        body: JSON.stringify({ model: 'reply', prompt: 'Once upon a time', max_tokens: 48,
            ignore_eos: true, seed, temperature: 1, stream: true }) });
    const body = await res.text();
    if (res.status !== 200 || !body.endsWith('data: [DONE]\n\n') || body.includes('"error"'))
        throw new Error(`stream: status ${res.status}: ${body.slice(-300)}`);
    const text = body.split('\n\n').filter((e) => e.startsWith('data: {'))
        .map((e) => JSON.parse(e.slice(6)).choices?.[0]?.text ?? '').join('');
    if (texts.has(seed) && texts.get(seed) !== text)
        counts.different++;
    texts.set(seed, text);
    counts.streams++;
}

async function command() {
    const res = await fetch(`${url}/v1/process`, { method: 'POST', signal: AbortSignal.timeout(60000),
        body: JSON.stringify({ text: 'turn off the kitchen lights' }) });
    const body = await res.text();
    if (res.status !== 200)
        throw new Error(`command: status ${res.status}: ${body.slice(0, 300)}`);
    counts.commands++;
}

async function lane(k) {
    for (let i = 0; running; i++) {
        const began = performance.now();
        try {
            await (k % 2 ? command() : stream(i % 8));
        } catch (e) {
            counts.failed++;
            console.log(String(e.cause ?? e));
        }
        counts.longest_ms = Math.max(counts.longest_ms, Math.round(performance.now() - began));
    }
}

Promise.all([0, 1, 2, 3].map(lane)).then(() => {
    console.log(`load: ${counts.streams} streams, ${counts.commands} commands, ${counts.failed} failed, ` +
        `${counts.different} different, longest ${counts.longest_ms} ms`);
    process.exit(counts.failed || counts.different || !counts.streams || !counts.commands ? 1 : 0);
});
