// attack_client.js - a normal client, in a thread of its own: sends requests, each on a new connection, until told to
// stop. Reports { n, failed, times }.
'use strict';
const http = require('http');
const https = require('https');

module.exports = (port, data) => {
    let stop = false;
    port.on('message', () => { stop = true; });

    function ask(method, path, body) {
        return new Promise((done, give) => {
            const req = (data.ca ? https : http).request({ ca: data.ca, port: data.port, host: '127.0.0.1', method, path, agent: false, timeout: 60000,
                headers: { authorization: `Bearer ${data.key}` } }, (res) => {
                let text = '';
                res.on('data', (d) => { text += d; });
                res.on('end', () => (res.statusCode === 200 ? done() : give(new Error(`${res.statusCode} ${text}`))));
                res.on('error', give);
            });
            req.on('error', give);
            req.on('timeout', () => req.destroy(new Error('no answer in 60 s')));
            req.end(body);
        });
    }

    (async () => {
        const report = { n: 0, failed: [], times: [] };
        while (!stop || report.n < 20) {
            const before = process.hrtime.bigint();
            try {
                if (report.n % 4 === 0)
                    await ask('POST', '/v1/completions', JSON.stringify({ model: 'm', prompt: `${report.n}`, max_tokens: 4,
                        ignore_eos: true }));
                else
                    await ask('GET', '/v1/models');
            } catch (e) {
                report.failed.push(e.message);
            }
            report.times.push(Number(process.hrtime.bigint() - before) / 1e6);
            if (++report.n === 1)
                port.postMessage('begun');
            await new Promise((done) => setTimeout(done, 2));
        }
        port.postMessage(report);
        port.close();
    })();
};
