// chart.js - the chart of one sensor: its recent values over the normal band, with its hard limits.
const NS = 'http://www.w3.org/2000/svg', WIDTH = 320, HEIGHT = 84;
const MAX_POINTS = 600, MIN_WINDOW_MS = 30000, STEPS = 120;

function shape(tag, name) {
    const e = document.createElementNS(NS, tag);
    e.setAttribute('class', name);
    return e;
}

// Draws into chart.svg; push(value, time_ms), then draw(now_ms, low, high).
export class Chart {
    constructor(sensor) {
        this.points = []; // [time_ms, value], in order of time
        this.limits = [sensor.limit_low, sensor.limit_high].filter((v) => v !== null);
        this.svg = shape('svg', 'chart');
        this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
        this.svg.setAttribute('preserveAspectRatio', 'none');
        this.svg.setAttribute('role', 'img');
        this.band = shape('rect', 'chart-band');
        this.lines = this.limits.map(() => shape('line', 'chart-limit'));
        this.path = shape('path', 'chart-line');
        this.svg.append(this.band, ...this.lines, this.path);
        const past = sensor.history;
        this.window = Math.max(MIN_WINDOW_MS, STEPS * (past?.interval_ms ?? 0));
        past?.values.forEach((v, i) => this.push(v, past.end_ms - (past.values.length - 1 - i) * past.interval_ms));
    }

    push(value, time) {
        if (value === null || this.points.length > 0 && time <= this.points[this.points.length - 1][0])
            return;
        this.points.push([time, value]);
        if (this.points.length > MAX_POINTS)
            this.points.shift();
    }

    // The range of values that is shown; a limit is part of it if the values are near.
    range(shown, low, high) {
        const all = [...shown.map(([, v]) => v), low, high].filter((v) => v !== null);
        let from = Math.min(...all), to = Math.max(...all);
        const span = to - from || Math.abs(to) || 1;
        for (const limit of this.limits) {
            if (limit > to && limit < to + 0.8 * span)
                to = limit;
            if (limit < from && limit > from - 0.8 * span)
                from = limit;
        }
        const pad = 0.12 * (to - from || span);
        return [from - pad, to + pad];
    }

    draw(now, low, high) {
        while (this.points.length > 1 && this.points[1][0] < now - this.window)
            this.points.shift();
        const shown = this.points;
        if (shown.length === 0)
            return;
        const [from, to] = this.range(shown, low, high);
        const x = (t) => ((t - now + this.window) / this.window * WIDTH).toFixed(1);
        const y = (v) => ((to - v) / (to - from) * HEIGHT).toFixed(1);
        const known = low !== null && high !== null;
        this.band.setAttribute('x', 0);
        this.band.setAttribute('width', WIDTH);
        this.band.setAttribute('y', known ? y(high) : 0);
        this.band.setAttribute('height', known ? Math.max(1, y(low) - y(high)) : 0);
        this.lines.forEach((line, i) => {
            const at = this.limits[i], inside = at > from && at < to;
            line.setAttribute('visibility', inside ? 'visible' : 'hidden');
            for (const [name, v] of [['x1', 0], ['x2', WIDTH], ['y1', inside ? y(at) : 0], ['y2', inside ? y(at) : 0]])
                line.setAttribute(name, v);
        });
        this.path.setAttribute('d', shown.map(([t, v], i) => `${i ? 'L' : 'M'}${x(t)} ${y(v)}`).join(''));
    }
}
