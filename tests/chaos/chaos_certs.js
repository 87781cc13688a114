// chaos_certs.js - certificates that last for seconds, which `shoal ca` does not issue: made by openssl with the key of the CA.
'use strict';
const { execFile } = require('child_process');
const { X509Certificate } = require('crypto');
const fs = require('fs');
const path = require('path');
const { promisify } = require('util');

const run = promisify(execFile);

const settings = (ca, dir, names) => `[ca]
default_ca = short
[short]
database = ${dir}/index.txt
new_certs_dir = ${dir}
certificate = ${ca}/ca.crt
private_key = ${ca}/ca.key
default_md = sha256
policy = any
x509_extensions = member
unique_subject = no
rand_serial = yes
[any]
commonName = supplied
[member]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = ${names}
`;

// Replaces the certificate of a member by one with the same names, roles and key that expires at `at` (a Date).
async function expireAt(ca, name, at) {
    const member = path.join(ca, 'members', name), dir = path.join(member, 'short');
    const names = new X509Certificate(fs.readFileSync(path.join(member, 'cert.pem'))).subjectAltName.replaceAll('IP Address:', 'IP:');
    fs.rmSync(dir, { recursive: true, force: true });
    fs.mkdirSync(dir);
    fs.writeFileSync(path.join(dir, 'index.txt'), '');
    fs.writeFileSync(path.join(dir, 'conf'), settings(ca, dir, names.replaceAll(', ', ',')));
    await run('openssl', ['req', '-new', '-key', path.join(member, 'key.pem'), '-subj', `/CN=${name}`, '-out', path.join(dir, 'csr')]);
    await run('openssl', ['ca', '-batch', '-notext', '-config', path.join(dir, 'conf'), '-in', path.join(dir, 'csr'),
        '-out', path.join(dir, 'cert.pem'), '-enddate', at.toISOString().replace(/[-:T]|\.\d+/g, '')]);
    fs.renameSync(path.join(dir, 'cert.pem'), path.join(member, 'cert.pem')); // at once, as `shoal ca` does
}

module.exports = { expireAt };
