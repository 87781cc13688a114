// try_map.js - texts as points: what is alike lies close together. The two directions in which the embeddings differ most
// (principal components, by power iteration) become the axes.
const NS = 'http://www.w3.org/2000/svg', SIZE = 400, EDGE = 36, ROUNDS = 60;

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const scaled = (v, k) => v.map((x) => x * k);
const unit = (v) => scaled(v, 1 / (Math.sqrt(dot(v, v)) || 1));

export const cosine = (a, b) => dot(unit(a), unit(b));

// The direction of the largest spread, without those already found. Begins with the rows themselves, so it is the same each time.
function component(rows, found) {
    let v = unit(rows.reduce((a, r, i) => a.map((x, k) => x + r[k] * (i + 1)), rows[0].map(() => 0)));
    for (let n = 0; n < ROUNDS; n++) {
        let next = v.map(() => 0);
        for (const r of rows) {
            const along = dot(r, v);
            next = next.map((x, k) => x + along * r[k]);
        }
        for (const f of found) {
            const along = dot(next, f);
            next = next.map((x, k) => x - along * f[k]);
        }
        v = unit(next);
    }
    return v;
}

// Places of the vectors in a square of 0 to 1.
export function places(vectors) {
    const mean = vectors[0].map((_, k) => vectors.reduce((sum, v) => sum + v[k], 0) / vectors.length);
    const rows = vectors.map((v) => v.map((x, k) => x - mean[k]));
    const axes = [];
    axes.push(component(rows, axes));
    axes.push(component(rows, axes));
    const at = rows.map((r) => axes.map((a) => dot(r, a)));
    const reach = Math.max(...at.flat().map(Math.abs)) || 1;
    return at.map((p) => p.map((x) => 0.5 + x / reach / 2));
}

function shape(tag, attributes, text) {
    const e = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes))
        e.setAttribute(name, value);
    e.textContent = text ?? '';
    return e;
}

export function drawMap(texts, vectors) {
    const svg = shape('svg', { class: 'map', viewBox: `0 0 ${SIZE} ${SIZE}`, role: 'img', 'aria-label': `A map of ${texts.length} texts; the list beside it has their similarity` });
    places(vectors).forEach(([x, y], i) => {
        const cx = EDGE + x * (SIZE - 2 * EDGE), cy = SIZE - EDGE - y * (SIZE - 2 * EDGE), right = cx > SIZE / 2;
        const point = shape('g', { class: 'point' });
        point.append(shape('title', {}, texts[i]), shape('circle', { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 6 }),
            shape('text', { x: (cx + (right ? -10 : 10)).toFixed(1), y: (cy + 4).toFixed(1), 'text-anchor': right ? 'end' : 'start' }, String(i + 1)));
        svg.append(point);
    });
    return svg;
}
