// history.js - whether a history of concurrent operations on a register is linearizable: whether each of them can have
// happened at one moment between its start and its end, so that every read returns what was written last.
//
// An operation: { type: 'write' | 'read', value, start, end }.  A write without a known outcome has end Infinity: it may have
// happened at any time since its start, or never.  The search is that of Wing and Gong with Lowe's memory of what was tried.
'use strict';

// null: it is; otherwise the operations that fit in no order, with what the longest order found left as the value.
function violation(operations, initial = null) {
    const ops = operations.toSorted((a, b) => a.start - b.start), tried = new Set();
    let best = { done: -1 };
    const search = (mask, done, value) => {
        const key = `${mask.toString(36)} ${value}`;
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
            if (mask >> BigInt(i) & 1n || (ops[i].type === 'read' && ops[i].value !== value))
                continue;
            if (search(mask | 1n << BigInt(i), done + 1, ops[i].type === 'write' ? ops[i].value : value))
                return true;
        }
        return false;
    };
    return search(0n, 0, initial) ? null : best;
}

module.exports = { violation };
