// Lines for the conformance test of tokenizers: sentences of our own, and characters of many blocks,
// always the same ones.  Every line is a Buffer; some are not valid UTF-8.
"use strict";

function random(seed) { // mulberry32
    return () => {
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

// First and last character of blocks that were complete by Unicode 8, and emoji.
const BLOCKS = [
    [0x21, 0x7e], [0x30, 0x39], [0x41, 0x7a], [0xa1, 0xff], [0x100, 0x17f], [0x180, 0x24f], [0x250, 0x2af],
    [0x2b0, 0x2ff], [0x300, 0x36f], [0x391, 0x3ff], [0x400, 0x4ff], [0x531, 0x556], [0x591, 0x5c7],
    [0x5d0, 0x5ea], [0x620, 0x65f], [0x660, 0x6d5], [0x710, 0x72f], [0x905, 0x94d], [0x985, 0x9b9],
    [0xa05, 0xa39], [0xa85, 0xab9], [0xb85, 0xbb9], [0xc05, 0xc39], [0xd05, 0xd39], [0xe01, 0xe3a],
    [0xe40, 0xe5b], [0xe81, 0xebd], [0xf00, 0xf47], [0x1000, 0x1049], [0x10a0, 0x10c5], [0x10d0, 0x10fa],
    [0x1100, 0x11ff], [0x1200, 0x1248], [0x13a0, 0x13f4], [0x1400, 0x14ff], [0x1680, 0x169c],
    [0x16a0, 0x16f0], [0x1780, 0x17b3], [0x1820, 0x1842], [0x1e00, 0x1eff], [0x1f00, 0x1f45],
    [0x2000, 0x200a], [0x200b, 0x200f], [0x2010, 0x2027], [0x2028, 0x202f], [0x2030, 0x205e],
    [0x2060, 0x2064], [0x2070, 0x208e], [0x20a0, 0x20bd], [0x2100, 0x2188], [0x2190, 0x22ff],
    [0x2460, 0x24ff], [0x2500, 0x25ff], [0x2600, 0x26ff], [0x2701, 0x27bf], [0x2c60, 0x2c7f],
    [0x2e80, 0x2e99], [0x3000, 0x303f], [0x3041, 0x3096], [0x3099, 0x309f], [0x30a0, 0x30ff],
    [0x3105, 0x312d], [0x3131, 0x318e], [0x3200, 0x321e], [0x3300, 0x33ff], [0x3400, 0x34ff],
    [0x4e00, 0x9fcc], [0xa000, 0xa48c], [0xac00, 0xd7a3], [0xe000, 0xe00f], [0xf900, 0xfa2d],
    [0xfb00, 0xfb06], [0xfb1d, 0xfb36], [0xfb50, 0xfbb1], [0xfe20, 0xfe2f], [0xfe30, 0xfe52],
    [0xfe70, 0xfe74], [0xff01, 0xffbe], [0xfff9, 0xfffd], [0x10000, 0x1000b], [0x10400, 0x1044f],
    [0x12000, 0x120ff], [0x1d400, 0x1d454], [0x1f1e6, 0x1f1ff], [0x1f300, 0x1f578], [0x1f600, 0x1f642],
    [0x1f680, 0x1f6cf], [0x20000, 0x200ff], [0xe0020, 0xe007e],
];
const EMOJI = ["👍🏽", "👨‍👩‍👧", "🇩🇪", "❤️", "☎️", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "👩🏿‍🚀", "😀", "🫠"];
const WORDS = ("turn on the kitchen lights set thermostat to 21.5 degrees pump P-101 is overheating again don't we'll " +
    "I'd you're it's CAN'T what was yesterday's energy use in kWh? close all windows! e-mail: someone@example.org " +
    "http://example.org/a/b?c=d&e=f#g 12,345,678 3.1415 1e-9 0x7F snake_case camelCase HTTPServer (brackets) [list] " +
    "{set} <tag> \"quoted\" 'single' a/b a\\b ... -- — – “typographic” ‘quotes’ naïve café Zürich Straße İstanbul ŁÓDŹ " +
    "Ångström résumé coöperate привет мир данные συντήρηση ελέγξτε בדיקה שלום درجة الحرارة تحقق नमस्ते तापमान " +
    "আলো சோதனை ทดสอบ ระบบ 温度 设置 检查 照明を消して 窓を開ける テスト 조명을 꺼줘 확인 ქართული հայերեն " +
    "playing unbelievably antidisestablishmentarianism ##ing ▁under <0x0A> __init__ ΑΒΓ ΣΊΣΥΦΟΣ ǅ ﬁne ½ ™ № ①").split(" ");
const SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>",
    "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<tool_call>"];
const GAPS = [" ", " ", " ", " ", "  ", "", "\t", "\n", "\n\n", " \n", "\r\n", "   ", "\u00a0", "\u3000", ", ", ". "];
const FIXED = ["", " ", "\n", "a", "  leading", "trailing  ", "\u0000", "a\u0000b", "\u0001\u0002\u007f\u0085", "x".repeat(300),
    "é", "e\u0301", "\u0344\u0345", "\u1100\u1161\u11a8", "가각", "a\u0315\u0300\u05ae\u0062", "\u200d\u200d", "\ufeffbom", "\ufffd",
    "'s 'S 're 'LL", "1234567890", "１２３", "٣٤٥", "²³¹", "a b c d e f g", "\t\t\t", "\u2028\u2029", "......", "!?!?", "中文字符", "🙂".repeat(20)];

function makeLines(n) {
    const rnd = random(42), pick = (a) => a[Math.floor(rnd() * a.length)], lines = FIXED.map((s) => Buffer.from(s));
    const block = () => pick(BLOCKS), char = (b) => String.fromCodePoint(b[0] + Math.floor(rnd() * (b[1] - b[0] + 1)));
    while (lines.length < n) {
        const kind = rnd(), parts = [], words = 1 + Math.floor(rnd() * 14);
        for (let i = 0; i < words; i++) {
            const what = rnd(), b = block();
            if (kind < 0.4 || what < 0.35) parts.push(pick(WORDS));
            else if (what < 0.7) parts.push(Array.from({ length: 1 + Math.floor(rnd() * 8) }, () => char(b)).join(""));
            else if (what < 0.9) parts.push(Array.from({ length: 1 + Math.floor(rnd() * 6) }, () => char(block())).join(""));
            else if (what < 0.95) parts.push(pick(EMOJI));
            else if (what < 0.98) parts.push(pick(SPECIAL));
            else parts.push(String.fromCharCode(Math.floor(rnd() * 32)));
            parts.push(pick(GAPS));
        }
        let line = Buffer.from(parts.join(""));
        if (rnd() < 0.12) // damaged, so that it may be invalid UTF-8
            for (let i = 0; i < 3 && line.length > 0; i++) {
                const at = Math.floor(rnd() * line.length), how = rnd();
                if (how < 0.4) line = Buffer.concat([line.subarray(0, at), line.subarray(at + 1)]);
                else if (how < 0.8) line = Buffer.concat([line.subarray(0, at), Buffer.from([Math.floor(128 + rnd() * 128)]), line.subarray(at)]);
                else line[at] = pick([0xc0, 0xe0, 0xed, 0xf0, 0xf4, 0xf5, 0xff, 0x80, 0xa0, 0xbf]);
            }
        lines.push(line);
    }
    return lines;
}
module.exports = { makeLines };
