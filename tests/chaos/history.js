// history.js - whether a history of concurrent operations on a register is linearizable: whether each of them can have
// happened at one moment between its start and its end, so that every read returns what was written last.
//
// An operation: { type: 'write' | 'read', value, start, end }.  A write without a known outcome has end Infinity: it may have
// happened at any time since its start, or never.  The search is that of Wing and Gong with Lowe's memory of what was tried.
'use strict';

const ANY = Symbol('any'); // an initial value that is not known: the first read tells

// null: it is; otherwise the operations that fit in no order, with what the longest order found left as the value.
function violation(operations, initial = null) {
    const ops = operations.toSorted((a, b) => a.start - b.start), tried = new Set();
    let best = { done: -1 };
    const search = (mask, done, value) => {
        const key = `${mask.toString(36)} ${String(value)}`;
        if (tried.has(key))
            return false;
        tried.add(key);
        let first = Infinity, left = 0; // the earliest end of what is not ordered yet
        for (let i = 0; i < ops.length; i++) {
            if (mask >> BigInt(i) & 1n)
                continue;
            first = Math.min(first, ops[i].end);
            left += ops[i].end !== Infinity;
        }
        if (left === 0)
            return true;
        if (done > best.done)
            best = { done, value, open: ops.filter((o, i) => !(mask >> BigInt(i) & 1n) && o.start <= first) };
        for (let i = 0; i < ops.length && ops[i].start <= first; i++) {
            if (mask >> BigInt(i) & 1n || (ops[i].type === 'read' && value !== ANY && ops[i].value !== value))
                continue;
            if (search(mask | 1n << BigInt(i), done + 1, ops[i].value))
                return true;
        }
        return false;
    };
    return search(0n, 0, initial) ? null : best;
}

// The same, of a register whose store has lost its data at these moments ({ start, end }).  What was acknowledged just before
// may then be gone, so each part of the history is judged for itself: it begins with any value, and with the writes before it
// whose outcome was open.  null: all parts are linearizable.
function violationBetween(operations, losses, initial = null) {
    let from = -Infinity, value = initial, open = [];
    for (const loss of [...losses.toSorted((a, b) => a.start - b.start), { start: Infinity, end: Infinity }]) {
        const ops = [...open];
        for (const o of operations.filter((x) => x.start >= from && x.start < loss.start)) {
            if (o.end < loss.start)
                ops.push(o);
            else if (o.type === 'write') // before the loss, after it, or never
                ops.push({ ...o, end: Infinity });
            if (o.type === 'write' && o.end >= loss.start)
                open.push({ ...o, end: Infinity });
        }
        const bad = violation(ops, value);
        if (bad)
            return bad;
        // what began during the loss is judged with what came after it
        from = loss.start;
        value = ANY;
    }
    return null;
}

module.exports = { ANY, violation, violationBetween };
