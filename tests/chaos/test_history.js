#!/usr/bin/env node
// The checker of histories (history.js) accepts what is linearizable, and refuses what is not.
// Usage: test_history.js
'use strict';
const t = require('../integration/serve.js');
const { ANY, violation, violationBetween } = require('./history.js');

const w = (value, start, end = Infinity) => ({ type: 'write', value, start, end });
const r = (value, start, end) => ({ type: 'read', value, start, end });

const good = {
    'nothing happened': [r(null, 0, 1)],
    'one after the other': [w(1, 0, 1), r(1, 2, 3), w(2, 4, 5), r(2, 6, 7)],
    'at the same time, either': [w(1, 0, 5), r(null, 1, 2), r(1, 3, 4)],
    'two writers': [w(1, 0, 9), w(2, 0, 9), r(2, 1, 2), r(1, 3, 4)],
    'an outcome that is not known': [w(1, 0), r(null, 1, 2), r(1, 30, 31)],
    'and that never came': [w(1, 0), r(null, 10, 11)],
};
const bad = {
    'a stale read': [w(1, 0, 1), w(2, 2, 3), r(1, 4, 5)],
    'a lost update': [w(1, 0, 1), r(null, 2, 3)],
    'back and forth': [w(1, 0, 9), w(2, 0, 9), r(1, 10, 11), r(2, 12, 13)],
    'seen, then unseen': [w(1, 0, 9), r(1, 1, 2), r(null, 3, 4)],
    'never written': [w(1, 0, 1), r(3, 2, 3)],
    'before it was asked for': [r(1, 0, 1), w(1, 2, 3)],
    'an unknown outcome that is taken back': [w(1, 0), r(1, 1, 2), r(null, 3, 4)],
};
for (const [name, history] of Object.entries(good))
    t.same(violation(history), null, `linearizable: ${name}`);
for (const [name, history] of Object.entries(bad))
    t.check(violation(history), `not linearizable: ${name}`);

// an initial value that nobody knows: the first read tells, and binds the others
t.same(violation([r(7, 0, 1), r(7, 2, 3), w(1, 4, 5), r(1, 6, 7)], ANY), null, 'linearizable: any value at first');
t.check(violation([r(7, 0, 1), r(8, 2, 3)], ANY), 'not linearizable: two values at first');

// a store that has lost its data may have lost what was acknowledged before, but nothing since
const lost = [{ start: 10, end: 12 }];
t.same(violationBetween([w(1, 0, 1), w(2, 2, 3), r(1, 20, 21)], lost), null, 'an older value after a loss');
t.same(violationBetween([w(1, 0, 1), w(2, 8, 11), r(1, 13, 14), r(2, 20, 21)], lost), null, 'a write across a loss');
t.check(violationBetween([w(1, 0, 1), w(2, 2, 3), r(1, 4, 5), r(2, 20, 21)], lost), 'a stale read before a loss');
t.check(violationBetween([w(1, 0, 1), r(1, 20, 21), r(null, 22, 23)], lost), 'seen after a loss, then unseen');
t.check(violationBetween([w(1, 0, 1), w(2, 20, 21), r(1, 22, 23)], lost), 'a lost update after a loss');
t.finish();
