// npm_install.js - packages with dependencies: installed once, without scripts, by exact versions.
'use strict';
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const root = path.resolve(__dirname, '../..');

// The node_modules with these packages.  name: of the folder in .cache.
function install(name, packages) {
    const hash = crypto.createHash('sha256').update(packages.join()).digest('hex').slice(0, 8);
    const dir = path.join(root, '.cache', `npm-${name}-${hash}`);
    if (!fs.existsSync(dir)) {
        fs.mkdirSync(path.dirname(dir), { recursive: true });
        const tmp = fs.mkdtempSync(`${dir}.`);
        execFileSync('npm', ['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', tmp,
            ...packages], { stdio: ['ignore', 'ignore', 'inherit'] });
        try {
            fs.renameSync(tmp, dir);
        } catch (e) { // another run finished first
            fs.rmSync(tmp, { recursive: true, force: true });
        }
    }
    return path.join(dir, 'node_modules');
}

module.exports = { install };
