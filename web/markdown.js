// markdown.js - renders Markdown as elements: model cards and answers.  No part of the text is parsed as HTML, and
// nothing is fetched: an image is shown as a link to it.
import { copyButton, h } from './lib.js';

const MAX_DEPTH = 6; // of lists and quotations inside each other
const INLINE = new RegExp([
    '(`+)(.+?)\\1(?!`)', // 1, 2: code
    '\\*\\*(?=\\S)(.+?)\\*\\*', // 3: strong
    '(?<!\\w)__(?=\\S)(.+?)__(?!\\w)', // 4: strong
    '\\*(?=[^\\s*])([^*]+?)\\*', // 5: emphasis
    '(?<!\\w)_(?=[^\\s_])([^_]+?)_(?!\\w)', // 6: emphasis
    '~~(?=\\S)(.+?)~~', // 7: struck out
    '!?\\[([^\\]]*)\\]\\(([^)\\s]+)[^)]*\\)', // 8, 9: a link
    '(https?://[^\\s<>()]*[^\\s<>().,;:!?\'"])', // 10: an address
    '\\\\([\\\\`*_{}\\[\\]()#+.!|~>-])', // 11: a plain character
].join('|'), 'g');

function inline(text, link) {
    const out = [];
    let at = 0;
    for (const m of text.matchAll(INLINE)) {
        out.push(text.slice(at, m.index));
        const strong = m[3] ?? m[4], em = m[5] ?? m[6];
        if (m[2] !== undefined)
            out.push(h('code', {}, m[2].replaceAll('\\|', '|')));
        else if (strong !== undefined)
            out.push(h('strong', {}, ...inline(strong, link)));
        else if (em !== undefined)
            out.push(h('em', {}, ...inline(em, link)));
        else if (m[7] !== undefined)
            out.push(h('s', {}, ...inline(m[7], link)));
        else if (m[9] !== undefined)
            out.push(link(m[8] || m[9], m[9]));
        else
            out.push(m[10] !== undefined ? link(m[10], m[10]) : m[11]);
        at = m.index + m[0].length;
    }
    out.push(text.slice(at));
    return out;
}

// Splits a row into cells; a bar after a backslash or inside code does not split.
function cells(line) {
    const out = [''];
    let code = false;
    for (let i = 0; i < line.length; i++) {
        if (line[i] === '`')
            code = !code;
        if (line[i] === '|' && !code && line[i - 1] !== '\\')
            out.push('');
        else
            out[out.length - 1] += line[i];
    }
    return out.slice(1, line.trimEnd().endsWith('|') ? -1 : undefined).map((c) => c.trim());
}

function table(lines, link) {
    const [head, , ...rows] = lines.map(cells);
    const named = head.some((c) => c !== '');
    const row = (tag, list) => h('tr', {}, list.map((c, i) =>
        h(!named && i === 0 ? 'th' : tag, !named && i === 0 ? { scope: 'row' } : tag === 'th' ? { scope: 'col' } : {},
            ...inline(c, link))));
    return h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' },
        h('table', {}, named && h('thead', {}, row('th', head)), h('tbody', {}, rows.map((r) => row('td', r)))));
}

const FENCE = /^ {0,3}(```+|~~~+) *([\w+#.-]*)/, HEADING = /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/, RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +)(?=\S)/, QUOTE = /^ {0,3}> ?/, SEPARATOR = /^ *\|[ :|-]+$/;

const isTable = (lines, i) => lines[i].startsWith('|') && SEPARATOR.test(lines[i + 1] ?? '');
const begins = (lines, i) => FENCE.test(lines[i]) || HEADING.test(lines[i]) || RULE.test(lines[i]) || ITEM.test(lines[i]) ||
    QUOTE.test(lines[i]) || isTable(lines, i);

function code(lines, language) {
    const pre = h('pre', { tabindex: '0', 'aria-label': language ? `Code: ${language}` : 'Code' }, lines.join('\n'));
    return h('div', { class: 'code' }, copyButton(() => pre.textContent, 'Copy code'), pre);
}

// The items of the list that begins at line i, each as its own lines without the indentation.
function items(lines, i) {
    const indent = ITEM.exec(lines[i])[1].length, out = [];
    let inside = 0;
    for (; i < lines.length; i++) {
        const m = ITEM.exec(lines[i]);
        if (m && m[1].length <= indent + 1) {
            if (m[1].length < indent)
                break;
            inside = m[0].length;
            out.push([lines[i].slice(inside)]);
        } else if (lines[i].trim() === '') {
            const next = lines[i + 1] ?? '';
            if (!/^ {2,}\S/.test(next) && !(ITEM.exec(next)?.[1].length >= indent))
                break;
            out[out.length - 1].push('');
        } else if (/^ {2,}/.test(lines[i]) || !begins(lines, i)) {
            const space = /^ */.exec(lines[i])[0].length;
            out[out.length - 1].push(lines[i].slice(Math.min(space, inside)));
        } else {
            break;
        }
    }
    return [out, i];
}

function list(lines, from, options, depth) {
    const first = ITEM.exec(lines[from])[2], [all, end] = items(lines, from);
    const ordered = /\d/.test(first);
    return [h(ordered ? 'ol' : 'ul', ordered && parseInt(first, 10) !== 1 ? { start: parseInt(first, 10) } : {}, all.map((item) => {
        const parts = blocks(item, options, depth + 1);
        return h('li', {}, ...parts.flatMap((p, i) => p.tagName === 'P' && i === 0 ? [...p.childNodes] : [p]));
    })), end];
}

function blocks(lines, options, depth) {
    const out = [], { link } = options;
    let i = 0;
    const take = (test) => {
        const from = i;
        while (i < lines.length && test(i))
            i++;
        return lines.slice(from, i);
    };
    while (i < lines.length) {
        const fence = FENCE.exec(lines[i]), heading = HEADING.exec(lines[i]);
        if (fence) {
            i++;
            const body = take((k) => !lines[k].trimStart().startsWith(fence[1]));
            out.push(code(body, fence[2]));
            i++;
        } else if (heading) {
            i++;
            out.push(h(`h${Math.min(6, heading[1].length + 1)}`, {}, ...inline(heading[2], link)));
        } else if (RULE.test(lines[i])) {
            i++;
            out.push(h('hr'));
        } else if (isTable(lines, i)) {
            out.push(table(take((k) => lines[k].startsWith('|')), link));
        } else if (ITEM.test(lines[i]) && depth < MAX_DEPTH) {
            const [element, end] = list(lines, i, options, depth);
            out.push(element);
            i = end;
        } else if (QUOTE.test(lines[i]) && depth < MAX_DEPTH) {
            out.push(h('blockquote', {}, ...blocks(take((k) => QUOTE.test(lines[k])).map((l) => l.replace(QUOTE, '')), options, depth + 1)));
        } else if (lines[i].trim() === '') {
            i++;
        } else {
            const from = i++;
            take((k) => lines[k].trim() !== '' && !begins(lines, k));
            out.push(h('p', {}, ...inline(lines.slice(from, i).join(options.breaks ? '\n' : ' '), link)));
        }
    }
    return out;
}

// Addresses of the web open in a new tab; everything else is text.
export function outside(text, target) {
    return /^https?:\/\//.test(target) ? h('a', { href: target, target: '_blank', rel: 'noopener noreferrer' }, text)
        : h('span', { title: target }, text);
}

// link(text, target) returns the element for a link; breaks: a line of the text is a line on the page.
export function markdown(text, options = {}) {
    return blocks(text.replaceAll('\r', '').split('\n'), { link: outside, breaks: false, ...options }, 0);
}
