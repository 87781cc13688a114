#!/usr/bin/env node
// The interfaces of llama.cpp's server, Text Embeddings Inference and Cohere: every path, with the answers that those
// servers give. Usage: serve_interfaces.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const t = require('./serve.js');
const { reranker } = require('./reranker.js');

const shoal = path.resolve(process.argv[2]);
const long = path.join(t.root, 'tests/data/refs/qwen3.gguf');
let url;

async function post(where, body) {
    const r = await t.within(fetch(url + where, { method: 'POST', body: JSON.stringify(body) }), where);
    return { status: r.status, body: await r.json() };
}
const get = async (where) => (await t.within(fetch(url + where), where)).json();

// The events of a stream.
async function events(where, body) {
    const r = await t.within(fetch(url + where, { method: 'POST', body: JSON.stringify({ ...body, stream: true }) }), where);
    return (await r.text()).split('\n').filter((l) => /^data: (?!\[DONE\])/.test(l)).map((l) => JSON.parse(l.slice(6)));
}

// A copy of a GGUF file with different texts for its last tokens.
function rename_tokens(from, to, names) {
    const b = fs.readFileSync(from), sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
    let at = 8;
    const u32 = () => b.readUInt32LE((at += 4) - 4), u64 = () => Number(b.readBigUInt64LE((at += 8) - 8));
    const text = () => { const n = u64(); return b.toString('latin1', at, at += n); };
    const skip = (type) => {
        if (type === 8)
            return void text();
        if (type !== 9)
            return void (at += sizes[type]);
        const inner = u32();
        for (let n = u64(); n > 0; n--)
            skip(inner);
    };
    const n_tensors = u64(), n_pairs = u64();
    let begin = 0, tail = 0;
    for (let i = 0; i < n_pairs; i++) {
        const key = text(), type = u32();
        if (key !== 'tokenizer.ggml.tokens') {
            skip(type);
            continue;
        }
        u32();
        for (let n = u64(); n > 0; n--) {
            if (n === names.length)
                begin = at;
            text();
        }
        tail = at;
    }
    for (let i = 0; i < n_tensors; i++) {
        text();
        for (let n = u32(); n > 0; n--)
            u64();
        u32(), u64();
    }
    const lengths = names.map((s) => Buffer.concat([Buffer.from(new BigUint64Array([BigInt(s.length)]).buffer), Buffer.from(s)]));
    const head = Buffer.concat([b.subarray(0, begin), ...lengths, b.subarray(tail, at)]);
    const pad = (n) => (32 - n % 32) % 32;
    fs.writeFileSync(to, Buffer.concat([head, Buffer.alloc(pad(head.length)), b.subarray(at + pad(at))]));
    return to;
}

// A copy of a RoBERTa folder with a tokenizer of single characters.
function with_letters(from, to) {
    fs.cpSync(from, to, { recursive: true });
    const vocab = Object.fromEntries(['<s>', '<pad>', '</s>', '<unk>', '\u0120', ...'abcdefghijklmnopqrstuvwxyz'].map((c, i) => [c, i]));
    const special = (id, content) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true });
    fs.writeFileSync(`${to}/tokenizer.json`, JSON.stringify({ version: '1.0', truncation: null, padding: null, normalizer: null,
        added_tokens: [special(0, '<s>'), special(1, '<pad>'), special(2, '</s>'), special(3, '<unk>')],
        pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
        post_processor: { type: 'RobertaProcessing', sep: ['</s>', 2], cls: ['<s>', 0], trim_offsets: true, add_prefix_space: false },
        decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
        model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: '', end_of_word_suffix: '', fuse_unk: false, vocab, merges: [] } }));
    return to;
}

async function completion() {
    const base = { model: 'long', prompt: 'Once upon a time', n_predict: 6, temperature: 0 };
    const whole = (await post('/completion', { ...base, n_probs: 2, return_tokens: true })).body;
    const openai = (await post('/v1/completions', { model: 'long', prompt: base.prompt, max_tokens: 6, temperature: 0 })).body;
    t.same(whole.content, openai.choices[0].text, 'the text of the other interface');
    t.same(`${whole.tokens.length} ${whole.tokens_predicted} ${whole.tokens_evaluated}`, `6 6 ${openai.usage.prompt_tokens}`, 'counts');
    t.same(`${whole.stop} ${whole.stop_type} ${whole.truncated}`, 'true limit false', 'why it ended');
    t.check(whole.completion_probabilities.every((p, i) => p.id === whole.tokens[i] && p.top_logprobs.length === 2 &&
        p.logprob <= 0 && p.logprob === p.top_logprobs[0].logprob), 'probabilities');
    t.same(whole.generation_settings.n_predict, 6, 'settings');
    t.same(`${whole.prompt} ${whole.has_new_line}`, `${base.prompt} ${whole.content.includes('\n')}`, 'prompt and has_new_line');
    const some = (await post('/completion', { ...base, response_fields: ['content', 'generation_settings/n_predict', 'none'] })).body;
    t.same(JSON.stringify(some), JSON.stringify({ content: whole.content, 'generation_settings/n_predict': 6 }), 'response_fields');
    const mixed = (await post('/completion', { ...base, prompt: [base.prompt, { prompt_string: base.prompt }, [5, 6, 7]] })).body;
    t.same(`${mixed.length} ${mixed[1].content === whole.content} ${mixed[2].tokens_evaluated}`, '3 true 3', 'prompts of several kinds');
    const biased = (await post('/completion', { ...base, logit_bias: [[5, false], [6, 2.5]] })).body.generation_settings.logit_bias;
    t.same(JSON.stringify(biased), '[{"bias":null,"token":5},{"bias":2.5,"token":6}]', 'logit_bias in the settings');
    const pieces = (await post('/completion', { ...base, prompt: [5, 6, base.prompt, 7] })).body;
    const alone = (await post('/tokenize', { model: 'long', content: base.prompt })).body.tokens;
    const same = (await post('/completion', { ...base, prompt: [5, 6, ...alone, 7] })).body;
    t.same(`${pieces.tokens_evaluated} ${pieces.content}`, `${alone.length + 3} ${same.content}`, 'texts and ids in one prompt');
    t.same((await post('/completion', { ...base, prompt: [[5, base.prompt], [6]] })).body.length, 2, 'and in one of several');
    await bias_of_text();
    t.check(whole.timings.predicted_n === 6 && whole.timings.prompt_n + whole.timings.cache_n > 0, 'timings');
    await drawn(base, whole);
    await progress();
    const list = await events('/completion', base);
    t.same(list.map((e) => e.content).join(''), whole.content, 'streamed');
    t.check(list.slice(0, -1).every((e) => !e.stop && e.tokens.length === 1) && list.at(-1).stop, 'its events');
    t.same(list.at(-1).tokens_predicted, 6, 'the last one counts');
    const two = (await post('/completion', { ...base, prompt: ['Once upon a time', 'The sea'] })).body;
    t.same(`${two.length} ${two[0].content === whole.content} ${two[1].index}`, '2 true 1', 'several prompts');
    const ask = 'act: turn_off; device: lights; room: kitchen; result: done';
    const ids = (await post('/tokenize', { model: 'reply', parse_special: true,
        text: `<|im_start|>user\n${ask}<|im_end|>\n<|im_start|>assistant\n` })).body.tokens;
    const said = (await post('/completion', { model: 'reply', prompt: ids, temperature: 0 })).body;
    t.same(said.stop_type, 'eos', 'the end of the model');
    const cut = (await post('/completion', { model: 'reply', prompt: ids, temperature: 0, stop: ['never', ' lights'] })).body;
    t.same(`${cut.stop_type} ${cut.content}`, `word ${said.content.split(' lights')[0]}`, 'a stop text');
    t.same(cut.stopping_word, ' lights', 'which one');
    t.same((await post('/completion', { ...base, n_predict: 0 })).body.tokens_predicted, 0, 'n_predict: 0');
    const never = (await post('/completion', { ...base, return_tokens: true, logit_bias: [[whole.tokens[0], false]] })).body;
    t.check(never.tokens.every((id) => id !== whole.tokens[0]), 'logit_bias');
    const off = { mirostat: 0, typical_p: 1, xtc_probability: 0, dry_multiplier: 0, dynatemp_range: 0, cache_prompt: true, id_slot: -1,
        samplers: ['top_k'], min_keep: 0, n_keep: 0, grammar: '', lora: [] };
    t.same((await post('/completion', { ...base, ...off })).body.content, whole.content, 'samplers that are off');
    for (const [bad, param] of [[{ mirostat: 2 }, 'mirostat'], [{ n_probs: 257 }, 'n_probs'], [{ prompt: 5 }, 'prompt'],
        [{ logit_bias: [[1]] }, 'logit_bias'], [{ response_fields: [5] }, 'response_fields'], [{ response_fields: 'content' }, 'response_fields'],
        [{ prompt: { prompt_string: 'a', multimodal_data: ['x'] } }, 'prompt'], [{ frob: 1 }, 'frob']]) {
        const r = await post('/completion', { ...base, ...bad });
        t.same(`${r.status} ${r.body.error?.param}`, `400 ${param}`, JSON.stringify(bad));
    }
}

// A text in logit_bias stands for its tokens.
async function bias_of_text() {
    const base = { model: 'reply', prompt: 'Once upon a time', n_predict: 8, temperature: 0, return_tokens: true };
    const whole = (await post('/completion', base)).body;
    let word;
    for (const id of whole.tokens) { // a text that is a single token
        const { content } = (await post('/detokenize', { model: 'reply', tokens: [id] })).body;
        const ids = (await post('/tokenize', { model: 'reply', content })).body.tokens;
        if (ids.length === 1 && ids[0] === id)
            word ??= { content, id };
    }
    t.check(word, 'a word of the answer');
    for (const logit_bias of [[[word.content, false]], [[word.content, -100]], { [word.content]: -100 }]) {
        const got = (await post('/completion', { ...base, logit_bias })).body;
        t.check(got.tokens.length > 0 && !got.tokens.includes(word.id), `a text in logit_bias: ${JSON.stringify(logit_bias)}`);
    }
}

// The probabilities that tokens were sampled with.
async function drawn(base, whole) {
    const ask = { ...base, temperature: 1, top_k: 5, top_p: 1, min_p: 0, seed: 7, n_probs: 10, post_sampling_probs: true };
    const list = (await post('/completion', ask)).body.completion_probabilities;
    t.same(list.length, 6, 'a set for each token');
    t.check(list.every((p) => p.top_probs.length === 5 && p.top_probs.some((q) => q.id === p.id && q.prob === p.prob)), 'five could be drawn');
    t.check(list.every((p) => Math.abs(p.top_probs.reduce((s, q) => s + q.prob, 0) - 1) < 1e-4), 'their probabilities add up to 1');
    const own = (await post('/completion', { ...ask, post_sampling_probs: false })).body.completion_probabilities;
    t.check(own.every((p, i) => p.id === list[i].id && Math.exp(p.logprob) < list[i].prob), 'the model\'s own are smaller, the tokens the same');
    const sure = (await post('/completion', { ...base, n_probs: 3, post_sampling_probs: true })).body;
    t.check(sure.content === whole.content && sure.completion_probabilities.every((p) => p.prob === 1 && p.top_probs.length === 1), 'greedy');
}

// Progress of the prompt.
async function progress() {
    const prompt = 'The sea is deep and the sky is high. '.repeat(20);
    for (const [where, body] of [['/completion', { prompt, n_predict: 2 }], ['/v1/chat/completions', { messages: [{ role: 'user', content: prompt }],
        max_tokens: 2 }]]) {
        const name = where === '/completion' ? 'long' : 'reply';
        const list = await events(where, { model: name, temperature: 0, return_progress: true, ...body });
        const steps = list.map((e) => e.prompt_progress).filter(Boolean);
        t.check(steps.length > 1 && steps[0].processed === steps[0].cache, `${where}: begins with what is cached`);
        t.check(steps.every((p, i) => p.total === steps[0].total && (i === 0 || p.processed > steps[i - 1].processed)), `${where}: goes on`);
        t.same(steps.at(-1).processed, steps[0].total, `${where}: to the end`);
        const at = list.findIndex((e) => e.content || e.choices?.[0]?.delta.content);
        t.check(at < 0 || list.slice(at).every((e) => !e.prompt_progress), `${where}: before the tokens`);
        const none = await events(where, { model: name, temperature: 0, ...body });
        t.check(none.every((e) => !e.prompt_progress), `${where}: only if asked`);
    }
}

// Fields of llama.cpp's server in OpenAI's answers.
async function extras() {
    const body = { model: 'reply', messages: [{ role: 'user', content: 'chat: hello' }], max_tokens: 4, temperature: 0 };
    const whole = (await post('/v1/chat/completions', body)).body, u = whole.usage;
    t.same(`${whole.timings.predicted_n} ${whole.timings.prompt_n + whole.timings.cache_n}`, `${u.completion_tokens} ${u.prompt_tokens}`, 'timings');
    const list = await events('/v1/chat/completions', { ...body, seed: 1 }), usage = await events('/v1/chat/completions',
        { ...body, seed: 2, stream_options: { include_usage: true } });
    t.check(list.at(-1).timings.predicted_n > 0 && list.slice(0, -1).every((e) => !e.timings), 'timings of a stream, at its end');
    t.check(usage.at(-1).usage && usage.at(-1).timings.predicted_n > 0 && usage.slice(0, -1).every((e) => !e.timings), 'with its usage');
    const tools = [{ type: 'function', function: { name: 'light', parameters: { type: 'object', properties: {} } } }];
    for (const where of ['/v1/chat/completions/input_tokens', '/chat/completions/input_tokens']) {
        t.same((await post(where, body)).body.input_tokens, u.prompt_tokens, where);
        t.check((await post(where, { ...body, tools, stream: true, n: 3 })).body.input_tokens > u.prompt_tokens, `${where}, with tools`);
    }
    const input = body.messages[0].content;
    const counted = (await post('/v1/responses/input_tokens', { model: 'reply', input })).body;
    t.same(`${counted.object} ${counted.input_tokens}`, `response.input_tokens ${u.prompt_tokens}`, 'of a response');
    t.same((await post('/v1/responses/input_tokens', { model: 'reply', input, previous_response_id: 'resp_none' })).status, 404, 'after an unknown one');
    t.same((await post('/v1/chat/completions/input_tokens', { model: 'reply' })).body.error?.param, 'messages', 'no messages');
}

async function infill() {
    const none = await post('/infill', { model: 'long', input_prefix: 'a', input_suffix: 'b' });
    t.check(none.status === 400 && /cannot fill in/.test(none.body.error.message), 'a model that cannot fill in');
    const base = { model: 'fill', input_prefix: 'Once ', input_suffix: ' time', n_predict: 5, temperature: 0 };
    const whole = (await post('/infill', base)).body;
    t.same(whole.tokens_predicted, 5, 'infill');
    const tokens = async (content) => (await post('/tokenize', { model: 'fill', content, add_special: false })).body.tokens;
    const count = (await tokens('Once ')).length + (await tokens(' time')).length;
    t.check(whole.tokens_evaluated - count >= 3 && whole.tokens_evaluated - count <= 4, 'three tokens more than the texts');
    const openai = (await post('/v1/completions', { model: 'fill', prompt: 'Once ', suffix: ' time', max_tokens: 5, temperature: 0 })).body;
    t.same(openai.choices[0].text, whole.content, 'suffix of /v1/completions');
    const plain = (await post('/completion', { model: 'fill', prompt: 'Once ', n_predict: 5, temperature: 0 })).body;
    t.check(plain.tokens_evaluated < whole.tokens_evaluated, 'the suffix is read');
    const begun = (await post('/infill', { ...base, input_prefix: 'On', prompt: 'ce ' })).body;
    t.same(begun.content, whole.content, 'the beginning of the text between');
    const input_extra = [{ filename: 'a.txt', text: 'One upon two' }, { text: 'three' }];
    const beside = (await post('/infill', { ...base, input_extra })).body;
    t.check(beside.tokens_evaluated > whole.tokens_evaluated + (await tokens('One upon two')).length, 'files beside the text');
    const full = (await post('/infill', { ...base, ignore_eos: true, input_extra: [{ text: 'x y '.repeat(4000) }] })).body;
    const { n_ctx } = (await get('/props')).default_generation_settings;
    t.check(full.tokens_predicted === 5 && full.tokens_evaluated > n_ctx / 2 && full.tokens_evaluated <= n_ctx - 5, `as much of them as fits: ${full.tokens_evaluated} and ${full.tokens_predicted} of ${n_ctx}`);
    for (const bad of [[{}], [{ filename: 'a' }], [{ filename: 1, text: 'a' }], 'a', [5]])
        t.same((await post('/infill', { ...base, input_extra: bad })).body.error?.param, 'input_extra', `input_extra: ${JSON.stringify(bad)}`);
    t.same((await post('/infill', { ...base, input_suffix: undefined })).body.error?.param, 'input_suffix', 'both texts are needed');
}

async function server_state(server) {
    // llama.cpp's form of /tokenize adds no tokens and parses special ones; ours does the opposite
    const ids = async (body) => (await post('/tokenize', { model: 'reply', ...body })).body.tokens.join();
    t.same(await ids({ content: '<|im_end|>hi' }), await ids({ text: '<|im_end|>hi', add_special: false, parse_special: true }), 'tokenize');
    t.check(await ids({ content: 'hi' }) !== await ids({ text: 'hi' }), 'with its own defaults');
    const props = await get('/props'), slots = await get('/slots');
    t.same(`${props.total_slots} ${slots.length}`, '8 8', 'slots');
    t.check(props.default_generation_settings.n_ctx > 0 && props.default_generation_settings.params.temperature > 0.7, 'settings');
    t.check(slots.every((s, i) => s.id === i && s.is_processing === false), 'idle slots');
    t.check(!JSON.stringify(props).includes(t.root), 'no paths of the server');
    t.same(JSON.stringify(await get('/health')), '{"status":"ok"}', 'health');
    t.same((await get('/models')).data.length, (await get('/v1/models')).data.length, 'models');
    t.same((await get('/lora-adapters')).length, 0, 'no adapters');
    const messages = [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: 'Hi <|im_end|>' }];
    const shown = (await post('/apply-template', { model: 'reply', messages })).body.prompt;
    t.check(shown.endsWith('<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n'),
        `a template: ${JSON.stringify(shown)}`);
    // a prompt is what the model reads: the output of a template is that conversation, in every form of request
    const plain = [{ role: 'user', content: 'Hi' }], few = { model: 'reply', max_tokens: 4, temperature: 0 };
    const talk = (await post('/v1/chat/completions', { ...few, messages: plain })).body;
    const prompt = (await post('/apply-template', { model: 'reply', messages: plain })).body.prompt;
    const forms = {
        'llama.cpp': (await post('/completion', { ...few, n_predict: 4, prompt })).body,
        OpenAI: (await post('/v1/completions', { ...few, prompt })).body,
        Ollama: (await post('/api/generate', { model: 'reply', prompt, raw: true, stream: false, options: { num_predict: 4, temperature: 0 } })).body,
        TGI: (await post('/generate', { model: 'reply', inputs: prompt, parameters: { max_new_tokens: 4 } })).body,
    };
    const said = (x) => x.content ?? x.response ?? x.generated_text ?? x.choices[0].text;
    for (const [name, x] of Object.entries(forms))
        t.same(said(x), talk.choices[0].message.content, `${name}: the prompt of a template`);
    t.same(`${forms['llama.cpp'].tokens_evaluated} ${forms.OpenAI.usage.prompt_tokens} ${forms.Ollama.prompt_eval_count}`,
        Array(3).fill(talk.usage.prompt_tokens).join(' '), 'as many tokens: special ones are parsed, and the first is not doubled');
    const before = await t.metric(server, 'shoal_generated_tokens_total');
    await post('/apply-template', { model: 'reply', messages });
    t.same(await t.metric(server, 'shoal_generated_tokens_total'), before, 'nothing was generated for it');
    t.same((await post('/apply-template', { model: 'reply' })).body.error?.param, 'messages', 'no messages');
}

async function embeddings() {
    const texts = ['switch the lamp on', 'what is the weather'], source = 'turn on the lamp';
    const want = (await post('/v1/embeddings', { model: 'enc', input: texts })).body.data.map((d) => d.embedding);
    const same = (got, what) => t.same(JSON.stringify(got), JSON.stringify(want), what);
    same((await post('/embed', { inputs: texts, truncate: true, normalize: true })).body, 'TEI');
    same((await post('/embed', { inputs: texts[0] })).body.concat([want[1]]), 'TEI, one text');
    same((await post('/embedding', { content: texts })).body.map((d) => d.embedding[0]), 'llama.cpp');
    same((await post('/embeddings', { input: texts })).body.map((d) => d.embedding[0]), 'llama.cpp\'s other name');
    t.same(JSON.stringify((await post('/api/embeddings', { model: 'enc', prompt: texts[0] })).body.embedding),
        JSON.stringify(want[0]), 'Ollama\'s older form');
    const few = (await post('/embed', { inputs: texts[0], dimensions: 8 })).body[0];
    t.check(few.length === 8 && Math.abs(few.reduce((s, v) => s + v * v, 0) - 1) < 1e-3, 'dimensions, of length 1');
    const alike = (await post('/similarity', { inputs: { source_sentence: source, sentences: texts } })).body;
    t.check(alike.length === 2 && alike[0] > 0.8 && alike[1] < 0.5, `similarity: ${alike}`);
    // token ids stand for their text; lists may be long
    const many = await post('/v1/embeddings', { model: 'enc', input: Array.from({ length: 2048 }, (_, i) => texts[i % 2]) });
    t.same(`${many.status} ${many.body.data?.length}`, '200 2048', 'a list of 2,048');
    t.check(many.body.data?.every((d, i) => d.index === i && d.embedding[0] === want[i % 2][0]), 'in their order');
    t.same((await post('/v1/embeddings', { model: 'enc', input: Array(2049).fill('a') })).body.error?.param, 'input', 'not more');
    const ids = (await post('/v1/embeddings', { model: 'enc', input: [[2000, 2001], [2002]] })).body;
    t.check(ids.data?.length === 2 && ids.data[0].embedding.length === want[0].length, `token ids: ${JSON.stringify(ids).slice(0, 200)}`);
    const one = (await post('/v1/embeddings', { model: 'enc', input: [2000, 2001] })).body;
    t.same(JSON.stringify(one.data?.[0].embedding), JSON.stringify(ids.data?.[0].embedding), 'one list of ids');
    const empty = (await post('/v1/embeddings', { model: 'enc', input: ['', texts[0]] })).body.data;
    t.check(empty?.[0].embedding.length === want[0].length && Math.abs(empty[0].embedding.reduce((s, v) => s + v * v, 0) - 1) < 1e-3, 'an empty text');
    t.same(JSON.stringify(empty?.[1].embedding), JSON.stringify(want[0]), 'beside another');
    t.same((await post('/v1/classify', { model: 'enc', input: '' })).body.error?.param, 'input', 'which has no class');
    t.same((await post('/v1/embeddings', { model: 'enc', input: [99999999] })).status, 400, 'an id that does not exist');
    for (const [bad, param] of [[{ inputs: 'x', normalize: false }, 'normalize'], [{ inputs: 'x', truncation_direction: 'left' },
        'truncation_direction'], [{}, 'inputs'], [{ inputs: 5 }, 'inputs'], [{ inputs: [[1], ['a']] }, 'inputs']]) {
        const r = await post('/embed', bad);
        t.same(`${r.status} ${r.body.error?.param}`, `400 ${param}`, JSON.stringify(bad));
    }
}

// Text Generation Inference.
async function generate() {
    const inputs = 'Once upon a time', parameters = { max_new_tokens: 6 };
    const want = (await post('/completion', { model: 'long', prompt: inputs, n_predict: 6, temperature: 0, return_tokens: true })).body;
    const plain = (await post('/generate', { model: 'long', inputs, parameters })).body;
    t.same(JSON.stringify(plain), JSON.stringify({ generated_text: want.content }), 'generate is greedy unless told otherwise');
    const { details, generated_text } = (await post('/generate', { model: 'long', inputs, parameters: { ...parameters, details: true,
        top_n_tokens: 2, return_full_text: true, seed: 7 } })).body;
    t.same(generated_text, inputs + want.content, 'the whole text');
    t.same(`${details.finish_reason} ${details.generated_tokens} ${details.seed} ${details.prefill.length}`, 'length 6 7 0', 'details');
    t.same(details.tokens.map((x) => x.id).join(), want.tokens.join(), 'tokens');
    t.check(details.tokens.every((x, i) => x.logprob <= 0 && details.top_tokens[i].length === 2 && details.top_tokens[i][0].id === x.id), 'log-probabilities');
    const list = await events('/generate_stream', { model: 'long', inputs, parameters });
    t.same(list.map((e) => e.token.id).join(), want.tokens.join(), 'streamed');
    t.same(list.map((e) => e.token.text).join(''), want.content, 'its texts');
    t.check(list.slice(0, -1).every((e, i) => e.generated_text === null && e.details === null && e.index === i + 1), 'the end comes last');
    t.same(`${list.at(-1).generated_text} ${list.at(-1).details.generated_tokens}`, `${want.content} 6`, 'with the whole text');
    const asked = await events('/generate', { model: 'long', inputs, parameters });
    t.same(asked.at(-1).generated_text, want.content, 'stream: true, as Hugging Face\'s client asks');
    t.same(JSON.stringify((await post('/', { model: 'long', inputs, parameters })).body), JSON.stringify([plain]), 'POST /, for older clients');
    t.check((await (await t.within(fetch(`${url}/`), 'the page')).text()).includes('<html'), 'GET / is the page');
    const bound = (await post('/generate', { model: 'long', inputs, parameters: { grammar: { type: 'regex', value: '[0-9]{3}' } } })).body;
    t.check(/^[0-9]{3}$/.test(bound.generated_text), `grammar: ${bound.generated_text}`);
    const json = (await post('/generate', { model: 'long', inputs, parameters: { grammar: { type: 'json', value: { enum: [42] } } } })).body;
    t.same(json.generated_text, '42', 'a schema');
    for (const [bad, param] of [[{ inputs: undefined }, 'inputs'], [{ parameters: { best_of: 2 } }, 'parameters.best_of'], [{ frob: 1 }, 'frob'],
        [{ parameters: { max_new_tokens: 0 } }, 'parameters.max_new_tokens'], [{ parameters: { grammar: { type: 'abnf' } } }, 'parameters.grammar'],
        [{ parameters: 5 }, 'parameters']]) {
        const r = await post('/generate', { model: 'long', inputs, ...bad });
        t.same(`${r.status} ${r.body.error?.param}`, `400 ${param}`, JSON.stringify(bad));
    }
}

async function ranks() {
    const query = 'the pump', documents = ['jazz', 'the pump and the coolant', 'it rains a lot in the north'];
    const own = (await post('/v1/rerank', { model: 'rank', query, documents, top_n: 2, return_documents: true })).body;
    const [first, second] = own.results ?? [];
    t.check(own.results?.length === 2 && first.document.text === documents[first.index], `Cohere: ${JSON.stringify(own)}`);
    t.check(typeof own.id === 'string' && first?.relevance_score > second?.relevance_score, 'in order');
    for (const model of ['rank-distilbert', 'rank-roberta']) { // any folder of a classifier with one label
        const { results } = (await post('/v1/rerank', { model, query, documents })).body;
        t.check(results?.length === 3 && results.every((x, i) => i === 0 || x.relevance_score <= results[i - 1].relevance_score), `${model}: ${JSON.stringify(results)}`);
        const alone = (await post('/v1/rerank', { model, query, documents: [documents[results[0].index]] })).body.results[0].relevance_score;
        t.check(Math.abs(alone - results[0].relevance_score) < 1e-5, `${model}: a score does not depend on the others`);
    }
    for (const where of ['/v2/rerank', '/rerank', '/reranking', '/v1/reranking'])
        t.same((await post(where, { query, documents, max_chunks_per_doc: 3 })).body.results?.[0].index, first?.index, where);
    const tei = (await post('/rerank', { query, texts: documents, return_text: true, truncate: true })).body;
    t.same(`${tei.length} ${tei[0]?.index} ${tei[0]?.text}`, `3 ${first?.index} ${documents[first?.index]}`, 'TEI');
    t.same(tei[0]?.score, first?.relevance_score, 'the same score');
    t.same((await post('/rerank', { texts: ['a'] })).body.error?.param, 'query', 'no query');
    const text = 'turn off the kitchen lights', label = (await post('/v1/classify', { model: 'enc', input: text })).body.data[0].label;
    const predicted = (await post('/predict', { inputs: text })).body;
    t.check(predicted[0].label === label && predicted.every((x, i) => i === 0 || x.score <= predicted[i - 1].score), 'predict');
    const batch = (await post('/predict', { inputs: [text, 'call Anna'], parameters: { top_k: 1 } })).body;
    t.same(`${batch.length} ${batch[0].length} ${batch[0][0].label}`, `2 1 ${label}`, 'predict, several');
    t.same((await post('/predict', { inputs: text, parameters: {} })).body[0][0].label, label, 'as Hugging Face\'s client asks');
    t.same((await post('/predict', { inputs: text, raw_scores: true })).body.error?.param, 'raw_scores', 'no logits');
    const info = await get('/info');
    t.check(info.model_id === 'enc' && info.max_input_length > 0 && info.max_client_batch_size === 2048, 'info');
}

// What Prometheus scrapes of all this.
async function metrics(server) {
    const value = (pattern) => t.metric(server, pattern);
    const classes = await value('shoal_confidence_count{model="enc"}');
    const { body } = await post('/v1/classify', { model: 'enc', input: ['turn off the lights', 'call Anna'] });
    t.same(await value('shoal_confidence_count{model="enc"}'), classes + 2, 'confidences');
    t.same(await value('shoal_confidence_bucket{model="enc",le="+Inf"}'), classes + 2, 'all of them');
    t.same(await value('shoal_confidence_bucket{model="enc",le="1"}'), classes + 2, 'are at most 1');
    t.check(body.data.every((d) => d.confidence > 0), 'confidence');
    const hits = await value('shoal_prefix_cache_hits_total{model="long"}'), tokens = await value('shoal_prefix_cache_tokens_total{model="long"}');
    const long = { model: 'long', prompt: 'The same words again and again. '.repeat(4), n_predict: 1 };
    await post('/completion', long);
    await post('/completion', long);
    t.same(await value('shoal_prefix_cache_hits_total{model="long"}'), hits + 1, 'a prefix that was computed before');
    t.check(await value('shoal_prefix_cache_tokens_total{model="long"}') >= tokens + 16, 'its tokens');
    const refused = await value('shoal_model_refused_total{model="long",reason="invalid"}');
    t.same((await post('/completion', { ...long, prompt: 'x y '.repeat(4000) })).status, 400, 'too long');
    t.same(await value('shoal_model_refused_total{model="long",reason="invalid"}'), refused + 1, 'refusals of a model');
    t.same(await value('shoal_model_refused_total{model="reply",reason="busy"}'), 0, 'by reason');
}

// A server that answers to any model name and ignores unknown fields.
async function forgiving() {
    const file = path.join(t.tmp, 'any.yaml');
    fs.writeFileSync(file, `listen: ["127.0.0.1:0"]\nany_model: true\nlenient: true\nmodels: [{name: long, path: ${long}}]\n`);
    const server = await t.start(shoal, ['--config', file]);
    url = server.url;
    const chat = await post('/v1/completions', { model: 'gpt-4o', prompt: 'Once', max_tokens: 2, frobnicate: 1 });
    t.same(`${chat.status} ${chat.body.model}`, '200 long', 'any_model');
    t.same((await post('/tokenize', { model: 'gpt-4o', text: 'a' })).status, 200, 'any_model, tokens');
    t.same((await post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'a' })).status, 404, 'but no model here can embed');
    const info = await get('/info');
    t.same(`${info.model_id} ${info.model_pipeline_tag}`, 'long text-generation', 'info of a server that generates');
    t.same((await server.stop()).code, 0, 'exit');
}

(async () => {
    const fill = rename_tokens(long, path.join(t.tmp, 'fill.gguf'), ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>']);
    const server = await t.start(shoal, ['-m', `long=${long}`, '-m', `reply=${t.root}/models/reply-draft.gguf`, '-m', `fill=${fill}`,
        '-m', `enc=${t.root}/models/encoder`, '-m', `rank=${reranker(`${t.root}/tests/data/encoders/bert-cls`, `${t.tmp}/rank`)}`,
        '-m', `rank-distilbert=${reranker(`${t.root}/tests/data/encoders/distilbert-cls`, `${t.tmp}/rank2`)}`,
        '-m', `rank-roberta=${with_letters(`${t.root}/tests/data/encoders/roberta-cls`, `${t.tmp}/rank3`)}`]);
    url = server.url;
    await completion();
    await extras();
    await infill();
    await server_state(server);
    await embeddings();
    await ranks();
    await generate();
    await metrics(server);
    t.same((await server.stop()).code, 0, 'exit');
    await forgiving();
    t.finish();
})().catch(t.abandon);
