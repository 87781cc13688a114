// markdown.js - renders the Markdown of model cards: headings, paragraphs, lists, tables, code, links.  No part of
// the text is parsed as HTML.
import { h } from './lib.js';

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

function inline(text, link) {
    const out = [];
    let at = 0;
    for (const m of text.matchAll(INLINE)) {
        out.push(text.slice(at, m.index));
        if (m[2] !== undefined)
            out.push(h('code', {}, m[2].replaceAll('\\|', '|')));
        else if (m[3] !== undefined)
            out.push(h('strong', {}, ...inline(m[3], link)));
        else
            out.push(link(m[4], m[5]));
        at = m.index + m[0].length;
    }
    out.push(text.slice(at).replaceAll('\\|', '|'));
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
    return h('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Table' },
        h('table', {}, named && h('thead', {}, row('th', head)), h('tbody', {}, rows.map((r) => row('td', r)))));
}

// link(text, target) returns the element for a link.
export function markdown(text, link) {
    const out = [], lines = text.split('\n');
    let i = 0;
    const take = (test) => {
        const from = i;
        while (i < lines.length && test(lines[i]))
            i++;
        return lines.slice(from, i);
    };
    while (i < lines.length) {
        const line = lines[i];
        const heading = /^(#{1,4}) (.*)/.exec(line);
        if (line.startsWith('```')) {
            i++;
            out.push(h('pre', { tabindex: '0' }, take((l) => !l.startsWith('```')).join('\n')));
            i++;
        } else if (heading) {
            i++;
            out.push(h(`h${Math.min(6, heading[1].length + 1)}`, {}, ...inline(heading[2], link)));
        } else if (line.startsWith('|')) {
            out.push(table(take((l) => l.startsWith('|')), link));
        } else if (/^[-*] /.test(line)) {
            const items = take((l) => /^([-*] | {2,}\S)/.test(l)).join('\n').split(/\n?^[-*] /m).filter(Boolean);
            out.push(h('ul', {}, items.map((t) => h('li', {}, ...inline(t.replace(/\s*\n\s*/g, ' '), link)))));
        } else if (line.trim() === '') {
            i++;
        } else {
            const block = take((l) => l.trim() !== '' && !/^(#|```|\||[-*] )/.test(l));
            out.push(h('p', {}, ...inline((block.length ? block : [lines[i++]]).join(' '), link)));
        }
    }
    return out;
}
