#!/usr/bin/env node
// The official client of the Model Context Protocol against /mcp of `shoal serve`, and against `shoal mcp` on stdin and stdout.
// Usage: mcp.js SHOAL
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const t = require('../integration/serve.js');
const { install } = require('./npm_install.js');

const shoal = path.resolve(process.argv[2]);
const modules = install('mcp', ['@modelcontextprotocol/sdk@1.20.2']);
const use = (name) => require(path.join(modules, '@modelcontextprotocol/sdk/dist/cjs', name));
const { Client } = use('client/index.js');
const { StreamableHTTPClientTransport } = use('client/streamableHttp.js');
const { StdioClientTransport } = use('client/stdio.js');

async function tools(transport, what) {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport);
    t.same(client.getServerVersion().name, 'shoal', `${what}: its name`);
    await client.ping();
    const list = (await client.listTools()).tools;
    t.same(list.map((x) => x.name).join(), 'classify,tag,search,ask', `${what}: tools`);
    t.check(list.every((x) => x.inputSchema.type === 'object' && x.description.length > 10), `${what}: schemas`);
    const call = async (name, args, more) => client.callTool({ name, arguments: args }, undefined, more);
    const label = await call('classify', { text: 'turn off the kitchen lights' });
    t.same(label.structuredContent.data[0].label, 'turn_off', `${what}: classify`);
    t.same(JSON.stringify(JSON.parse(label.content[0].text)), JSON.stringify(label.structuredContent), `${what}: as text`);
    const tags = await call('tag', { text: 'meet Anna in Oslo' });
    t.check(tags.structuredContent.data[0].spans.some((s) => s.text === 'Oslo'), `${what}: tag`);
    const texts = ['Play some jazz.', 'The coolant of the pump is low.', 'Buy milk.'];
    const found = await call('search', { query: 'problem with a cooling pump', texts, top: 2 });
    t.same(found.structuredContent.results[0].text, texts[1], `${what}: search`);
    t.same(found.structuredContent.results.length, 2, `${what}: top`);
    const asked = await call('ask', { text: 'turn off the kitchen lights' });
    t.same(asked.structuredContent.actions[0].action, 'turn_off', `${what}: ask`);
    const several = await Promise.all(texts.map((text) => call('classify', { text })));
    t.check(several.every((r) => !r.isError), `${what}: several at a time`);
    const failed = await call('classify', { text: 'x', model: 'nope' });
    t.check(failed.isError && failed.content[0].text.includes('nope'), `${what}: a tool that fails says why`);
    for (const [name, args] of [['rm', {}], ['classify', {}], ['classify', { text: 'x', y: 1 }], ['search', { query: 'x', texts: [] }]]) {
        const e = await t.fails(call(name, args), `${name} ${JSON.stringify(args)}`);
        t.same(e.code, -32602, `${what}: ${name} ${JSON.stringify(args)}`);
    }
    t.same((await t.fails(client.request({ method: 'resources/list' }, { parse: (x) => x }), 'resources')).code, -32601,
        `${what}: a method that is not there`);
    const stop = new AbortController();
    const cancelled = t.fails(call('classify', { text: 'x' }, { signal: stop.signal }), 'cancelled');
    stop.abort();
    t.check(/abort/i.test(String(await cancelled)), `${what}: a call can be cancelled`);
    t.check(!(await call('classify', { text: 'hello' })).isError, `${what}: it goes on`);
    await client.close();
}

// Which versions of the protocol are spoken: a handshake up to 2025-11-25, none from 2026-07-28 on.
async function versions(post) {
    const all = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
    const rpc = async (method, params, header) => {
        const r = await post(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), header ? { 'mcp-protocol-version': header } : {});
        return { status: r.status, ...(await r.json()) };
    };
    const meta = (v) => ({ _meta: { 'io.modelcontextprotocol/protocolVersion': v, 'io.modelcontextprotocol/clientCapabilities': {} } });
    for (const v of all.slice(1))
        t.same((await rpc('initialize', { protocolVersion: v, capabilities: {}, clientInfo: { name: 'x', version: '1' } })).result.protocolVersion, v, v);
    t.same((await rpc('initialize', { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: {} })).result.protocolVersion, all[1],
        'the newest one with a handshake is offered');
    const hello = (await rpc('server/discover', meta(all[0]), all[0])).result;
    t.same(hello.supportedVersions.join(), all.join(), 'discovered');
    t.check(hello.resultType === 'complete' && hello.capabilities.tools && hello.serverInfo.name === 'shoal', 'the server says what it is');
    const list = (await rpc('tools/list', meta(all[0]))).result;
    t.check(list.resultType === 'complete' && list.tools.length === 4 && list.ttlMs > 0 && list.cacheScope === 'public', 'tools without a handshake');
    const called = (await rpc('tools/call', { name: 'classify', arguments: { text: 'turn off the lights' }, ...meta(all[0]) })).result;
    t.check(called.resultType === 'complete' && !called.isError, 'a call without a handshake');
    t.same((await rpc('tools/list', {})).result.resultType, undefined, 'older clients get what they know');
    for (const bad of ['2000-01-01', '2099-01-01', 'nonsense']) {
        for (const r of [await rpc('tools/list', {}, bad), await rpc('tools/list', meta(bad))]) {
            t.same(r.status, 400, `${bad} is refused`);
            t.same(r.error.code, -32022, `${bad}: by its code`);
            t.same(r.error.data.requested, bad, `${bad}: by name`);
            t.same(r.error.data.supported.join(), all.join(), `${bad}: with what is spoken`);
        }
    }
    t.same((await rpc('tools/list', meta(all[0]), all[1])).error.code, -32600, 'header and message must agree');
}

async function overHttp() {
    const config = path.join(t.tmp, 'keys.yaml');
    fs.writeFileSync(config, `keys:\n  - {name: anna, sha256: ${crypto.createHash('sha256').update('secret').digest('hex')}}\n`);
    const server = await t.start(shoal, ['--config', config]);
    const url = new URL(`${server.url}/mcp`);
    const open = (key) => new StreamableHTTPClientTransport(url, { requestInit: { headers: key ? { authorization: `Bearer ${key}` } : {} } });
    await tools(open('secret'), 'HTTP');
    t.check(await t.fails(new Client({ name: 'test', version: '1' }).connect(open()), 'no key'), 'a key is needed');
    const post = (body, headers = {}) => fetch(url, { method: 'POST', body, headers: { authorization: 'Bearer secret', ...headers } });
    t.same((await post('{}', { origin: 'http://evil.example' })).status, 403, 'a page of another origin');
    t.same((await (await post('{"id":1}')).json()).error.code, -32600, 'no JSON-RPC');
    t.same((await post('{"jsonrpc":"2.0","method":"notifications/initialized"}')).status, 202, 'a notification');
    t.same((await fetch(url, { headers: { authorization: 'Bearer secret' } })).status, 405, 'no stream from the server');
    await versions(post);
    t.same((await server.stop()).code, 0, 'ends well');
}

(async () => {
    await overHttp();
    const env = { ...process.env, SHOAL_CACHE_DIR: path.join(t.tmp, 'cache') };
    await tools(new StdioClientTransport({ command: shoal, args: ['mcp'], env }), 'stdio');
    const server = await t.start(shoal, []);
    t.same((await fetch(`${server.url}/mcp`, { method: 'POST', body: '{}', headers: { origin: 'http://evil.example' } })).status, 403,
        'pages of other origins are refused');
    await tools(new StdioClientTransport({ command: shoal, args: ['mcp', '--server', server.url], env }), 'stdio to a server');
    await server.stop();
    t.finish();
})().catch(t.abandon);
