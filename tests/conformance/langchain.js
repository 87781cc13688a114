#!/usr/bin/env node
// LangChain for JavaScript against `shoal serve`: its chat models for OpenAI (chat and responses), Ollama and
// Anthropic, its embeddings and its completions; with and without streaming, with tools, with structured output.
// Usage: langchain.js SHOAL
'use strict';
const fs = require('fs');
const path = require('path');
const { createRequire } = require('module');
const t = require('../integration/serve.js');
const { parrot } = require('../integration/parrot.js');
const { install } = require('./npm_install.js');

const shoal = path.resolve(process.argv[2]);
const use = createRequire(path.join(install('langchain', ['@langchain/core@1.2.13', '@langchain/openai@1.6.0', '@langchain/ollama@1.3.0',
    '@langchain/anthropic@1.5.11']), 'x.js'));
const { AIMessage, HumanMessage, SystemMessage, ToolMessage } = use('@langchain/core/messages');
const { ChatPromptTemplate } = use('@langchain/core/prompts');
const { StringOutputParser } = use('@langchain/core/output_parsers');
const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = use('@langchain/openai');
const { ChatOllama, OllamaEmbeddings } = use('@langchain/ollama');
const { ChatAnthropic } = use('@langchain/anthropic');
const chatml = fs.readFileSync(path.join(t.root, 'tests/data/chat_templates/smollm2.jinja'), 'utf8');
const weather = { city: 'Paris', days: 3 };
const models = {
    says: 'It is 20 degrees and "sunny".',
    calls: `<tool_call>[{"name": "get_weather", "arguments": ${JSON.stringify(weather)}}]</tool_call>`,
    object: '{"city": "Oslo"}',
};
const schema = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: schema } }];
const question = [new SystemMessage('Be brief.'), new HumanMessage('How is the weather?')];

// The checks that every chat model must pass.
async function chat(name, make) {
    const says = make('says');
    const whole = await says.invoke(question);
    t.same(whole.text, models.says, `${name}: whole`);
    t.check(whole.usage_metadata.input_tokens > 5 && whole.usage_metadata.output_tokens > 3, `${name}: usage ${JSON.stringify(whole.usage_metadata)}`);
    let all;
    let n = 0;
    for await (const chunk of await says.stream(question)) {
        all = all ? all.concat(chunk) : chunk;
        n++;
    }
    t.same(all.text, models.says, `${name}: streamed`);
    t.check(n > 3, `${name}: in pieces, ${n}`);
    const chain = ChatPromptTemplate.fromMessages([['system', 'You know {what}.'], ['human', '{question}']]).pipe(says).pipe(new StringOutputParser());
    t.same(await chain.invoke({ what: 'cities', question: 'How is it?' }), models.says, `${name}: a chain`);
    t.same((await chain.batch([{ what: 'a', question: 'b' }, { what: 'c', question: 'd' }])).join('|'), `${models.says}|${models.says}`, `${name}: a batch`);

    const able = make('calls').bindTools(tools);
    const called = await able.invoke(question);
    t.same(called.tool_calls.map((c) => `${c.name} ${JSON.stringify(c.args)}`).join(), `get_weather ${JSON.stringify(weather)}`, `${name}: a call`);
    all = undefined;
    for await (const chunk of await able.stream(question))
        all = all ? all.concat(chunk) : chunk;
    t.same(JSON.stringify(all.tool_calls.map((c) => c.args)), JSON.stringify([weather]), `${name}: a call, streamed`);
    const call = called.tool_calls[0];
    const answer = await make('says').bindTools(tools).invoke([...question, new AIMessage({ content: '', tool_calls: [call] }),
        new ToolMessage({ content: '20 degrees', tool_call_id: call.id ?? 'call_1', name: call.name })]);
    t.same(answer.text, models.says, `${name}: with its result`);
    t.check(answer.usage_metadata.input_tokens > whole.usage_metadata.input_tokens, `${name}: which is part of the prompt`);
}

(async () => {
    const args = ['-m', `embed=${t.root}/models/encoder`];
    for (const [name, say] of Object.entries(models))
        args.push('-m', `${name}=${parrot(path.join(t.tmp, `${name}.gguf`), { template: chatml, special: ['<|im_start|>', '<|im_end|>'], say })}`);
    const server = await t.start(shoal, args);
    const configuration = { baseURL: `${server.url}/v1` }, openai = { apiKey: 'none', configuration, maxRetries: 0, temperature: 0 };
    await chat('OpenAI', (model) => new ChatOpenAI({ ...openai, model }));
    await chat('responses', (model) => new ChatOpenAI({ ...openai, model, useResponsesApi: true }));
    await chat('Ollama', (model) => new ChatOllama({ baseUrl: server.url, model, temperature: 0, maxRetries: 0 }));
    await chat('Anthropic', (model) => new ChatAnthropic({ anthropicApiUrl: server.url, apiKey: 'none', model, maxTokens: 200, maxRetries: 0 }));

    for (const [name, model] of [['OpenAI', new ChatOpenAI({ ...openai, model: 'object' })],
        ['Ollama', new ChatOllama({ baseUrl: server.url, model: 'object', temperature: 0, maxRetries: 0 })]]) {
        const found = await model.withStructuredOutput(schema, { name: 'place', method: 'jsonSchema' }).invoke(question);
        t.same(typeof found.city, 'string', `${name}: structured output, ${JSON.stringify(found)}`);
    }
    t.same(await new OpenAI({ ...openai, model: 'says', maxTokens: 100 }).invoke('How?'), models.says, 'completions');
    const texts = ['the pump is hot', 'play some jazz'];
    const vectors = await new OpenAIEmbeddings({ apiKey: 'none', configuration, model: 'embed', maxRetries: 0 }).embedDocuments(texts);
    const same = await new OllamaEmbeddings({ baseUrl: server.url, model: 'embed', maxRetries: 0 }).embedDocuments(texts);
    t.same(`${vectors.length} ${vectors[0].length}`, '2 384', 'embeddings');
    t.check(vectors.every((v, i) => v.every((x, k) => Math.abs(x - same[i][k]) < 1e-5)), 'both interfaces give the same vectors');
    t.same((await t.fails(new ChatOpenAI({ ...openai, model: 'nope' }).invoke(question), 'a model that is not there')).status, 404, 'no such model');
    t.same((await server.stop()).code, 0, 'exit');
    t.finish();
})().catch(t.abandon);
