#!/usr/bin/env node
// Vercel's AI SDK against `shoal serve`, through its providers for OpenAI (chat, responses, completions), OpenAI-
// compatible servers, Anthropic and Ollama, and Hugging Face's inference client: with and without streaming, with
// tools, objects and embeddings.
// Usage: ai_sdk.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const { createRequire } = require('module');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');
const { install } = require('./npm_install.js');

const shoal = path.resolve(process.argv[2]);
const use = createRequire(path.join(install('ai-sdk', ['ai@6.0.326', '@ai-sdk/openai@3.0.139', '@ai-sdk/openai-compatible@2.0.87',
    '@ai-sdk/anthropic@3.0.138', 'ollama-ai-provider-v2@3.6.0', '@huggingface/inference@4.13.30', 'zod@4.6.7']), 'x.js'));
globalThis.AI_SDK_LOG_WARNINGS = false;
const { generateText, streamText, generateObject, streamObject, embed, embedMany, tool, stepCountIs } = use('ai');
const { z } = use('zod');
const { createOpenAI } = use('@ai-sdk/openai');
const { createOpenAICompatible } = use('@ai-sdk/openai-compatible');
const { createAnthropic } = use('@ai-sdk/anthropic');
const { createOllama } = use('ollama-ai-provider-v2');
const { InferenceClient } = use('@huggingface/inference');
const chatml = fs.readFileSync(path.join(t.root, 'tests/data/chat_templates/smollm2.jinja'), 'utf8');
const weather = { city: 'Paris', days: 3 };
const models = {
    says: 'It is 20 degrees and "sunny".',
    calls: `<tool_call>[{"name": "get_weather", "arguments": ${JSON.stringify(weather)}}]</tool_call>`,
    object: '{"city": "Oslo"}',
};
const system = 'Be brief.', prompt = 'How is the weather?';
let tried = 0, worked = 0;

// Runs one client call. An error counts as one failed check, and the next call still runs.
async function attempt(what, fn) {
    tried++;
    try {
        const found = await t.within(fn(), what);
        worked += found === true ? 1 : 0;
        t.check(found === true, `${what}: ${JSON.stringify(found)}`);
    } catch (e) {
        t.check(false, `${what}: ${e.message} ${e.responseBody ?? ''}`);
    }
}
const same = (got, want) => got === want || { got, want };

// The checks that every chat model must pass.
async function chat(name, model, objects) {
    const retry = { maxRetries: 0, temperature: 0 };
    await attempt(`${name}: whole`, async () => {
        const r = await generateText({ model: model('says'), system, prompt, ...retry });
        return r.usage.inputTokens > 5 && r.usage.outputTokens > 3 && r.finishReason === 'stop' ? same(r.text, models.says) : { usage: r.usage, why: r.finishReason };
    });
    await attempt(`${name}: streamed`, async () => {
        const pieces = [];
        const r = streamText({ model: model('says'), system, prompt, ...retry });
        for await (const piece of r.textStream)
            pieces.push(piece);
        return pieces.length > 3 ? same(pieces.join(''), models.says) : pieces;
    });
    if (name !== 'Ollama') // its provider sends a limit that Ollama ignores
        await attempt(`${name}: cut`, async () => same((await generateText({ model: model('says'), prompt, maxOutputTokens: 3, ...retry })).finishReason, 'length'));
    const inputSchema = z.object({ city: z.string(), days: z.number().int().optional() });
    const idle = { get_weather: tool({ description: 'The weather of a city', inputSchema }) };
    await attempt(`${name}: a call`, async () => {
        const r = await generateText({ model: model('calls'), prompt, tools: idle, ...retry });
        return same(JSON.stringify(r.toolCalls.map((c) => [c.toolName, c.input])), JSON.stringify([['get_weather', weather]]));
    });
    await attempt(`${name}: a call, streamed`, async () => {
        const r = streamText({ model: model('calls'), prompt, tools: idle, ...retry });
        return same(JSON.stringify((await r.toolCalls).map((c) => c.input)), JSON.stringify([weather]));
    });
    await attempt(`${name}: a forced call`, async () => {
        const r = await generateText({ model: model('calls'), prompt, tools: idle, toolChoice: { type: 'tool', toolName: 'get_weather' }, ...retry });
        return same(r.toolCalls[0]?.toolName, 'get_weather');
    });
    await attempt(`${name}: two rounds with a result`, async () => {
        const asked = [];
        const able = { get_weather: tool({ inputSchema, execute: async (x) => { asked.push(x.city); return { degrees: 20 }; } }) };
        const r = await generateText({ model: model('calls'), prompt, tools: able, stopWhen: stepCountIs(2), ...retry });
        return r.steps.length === 2 && r.steps[1].usage.inputTokens > r.steps[0].usage.inputTokens ? same(asked.join(), 'Paris,Paris') : { steps: r.steps.length };
    });
    if (!objects)
        return;
    const schema = z.object({ city: z.string().max(20), mood: z.enum(['sunny', 'rainy']), days: z.array(z.number().int().min(1).max(7)).max(3) });
    await attempt(`${name}: an object`, async () => schema.safeParse((await generateObject({ model: model('object'), schema, prompt, ...retry })).object).success);
    await attempt(`${name}: an object, streamed`, async () => {
        const r = streamObject({ model: model('object'), schema, prompt, ...retry });
        for await (const part of r.partialObjectStream) // the stream only runs while it is read
            void part;
        return schema.safeParse(await r.object).success;
    });
    await attempt(`${name}: one of a list`, async () => ['sunny', 'rainy'].includes(
        (await generateObject({ model: model('object'), output: 'enum', enum: ['sunny', 'rainy'], prompt, ...retry })).object));
}

async function vectors(server) {
    const values = ['the pump is hot', 'play some jazz'];
    const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' });
    let first;
    await attempt('OpenAI: embeddings', async () => {
        first = (await embedMany({ model: openai.embedding('embed'), values, maxRetries: 0 })).embeddings;
        return same(first.map((v) => v.length).join(), '384,384');
    });
    await attempt('Ollama: embedding', async () => {
        const { embedding } = await embed({ model: createOllama({ baseURL: `${server.url}/api` }).textEmbeddingModel('embed'), value: values[0], maxRetries: 0 });
        return embedding.every((x, i) => Math.abs(x - first[0][i]) < 1e-5);
    });
}

async function huggingface(server) {
    const hf = new InferenceClient('none', { endpointUrl: server.url, retry_on_error: false });
    const messages = [{ role: 'user', content: prompt }];
    await attempt('Hugging Face: chat', async () => same((await hf.chatCompletion({ model: 'says', messages, temperature: 0 })).choices[0].message.content, models.says));
    await attempt('Hugging Face: chat, streamed', async () => {
        let text = '';
        for await (const c of hf.chatCompletionStream({ model: 'says', messages, temperature: 0 }))
            text += c.choices[0]?.delta.content ?? '';
        return same(text, models.says);
    });
    await attempt('Hugging Face: text generation', async () => same(
        (await hf.textGeneration({ model: 'says', inputs: 'How?', parameters: { max_new_tokens: 50 } })).generated_text, models.says));
    await attempt('Hugging Face: text generation, streamed', async () => {
        let text = '';
        for await (const e of hf.textGenerationStream({ model: 'says', inputs: 'How?', parameters: { max_new_tokens: 50 } }))
            text += e.choices?.[0]?.text ?? e.token?.text ?? '';
        return same(text, models.says);
    });
}

(async () => {
    const args = ['-m', `embed=${t.root}/models/encoder`];
    for (const [name, say] of Object.entries(models))
        args.push('-m', `${name}=${parrot(path.join(t.tmp, `${name}.gguf`), { template: chatml, special: ['<|im_start|>', '<|im_end|>'], say })}`);
    const server = await t.start(shoal, args);
    const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' });
    await chat('OpenAI', (m) => openai.chat(m), true);
    await chat('responses', (m) => openai.responses(m), true);
    await chat('like OpenAI', createOpenAICompatible({ name: 'shoal', baseURL: `${server.url}/v1`, supportsStructuredOutputs: true }), true);
    await chat('Anthropic', createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'none' }), false);
    await chat('Ollama', createOllama({ baseURL: `${server.url}/api` }), true);
    await attempt('completions', async () => same((await generateText({ model: openai.completion('says'), prompt, temperature: 0, maxOutputTokens: 50, maxRetries: 0 })).text, models.says));
    await vectors(server);
    await huggingface(server);
    await attempt('an unknown model', async () => same((await t.fails(generateText({ model: openai.chat('nope'), prompt, maxRetries: 0 }), 'unknown')).statusCode, 404));
    console.log(`${worked} of ${tried} calls work`);
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
