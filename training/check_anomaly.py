#!/usr/bin/env python3
"""Computes the features of models/anomaly.md point by point, as the C code does, and compares them with tests/data/anomaly/check.json."""

import json
import math
import pathlib
import sys

SCALES = (4, 16, 64, 256, 2048)


class Mean:
    """ew(y, n): now, and before the last point."""

    def __init__(self, n):
        self.k, self.a, self.b, self.now, self.before = 1 - 1 / n, 0.0, 0.0, None, None

    def push(self, y):
        self.a, self.b = self.k * self.a + y, self.k * self.b + 1
        self.before, self.now = self.now, self.a / self.b
        if self.before is None:
            self.before = self.now


class Channel:
    def __init__(self):
        self.t, self.largest, self.up, self.down, self.flat, self.peaks = 0, 0.0, 0.0, 0.0, 0, []
        self.m, self.q = {n: Mean(n) for n in SCALES}, {n: Mean(n) for n in SCALES}
        self.s, self.s_before = {}, {}
        self.d_long, self.d16, self.d64, self.out = Mean(2048), Mean(16), Mean(64), Mean(16)
        self.sum_x = self.sum_xx = self.sum_d = 0.0

    def push(self, value):
        """(what the trees take, what the LSTM takes)"""
        if self.t == 0:
            self.zero, self.x = value, 0.0
        last, x = self.x, value - self.zero
        self.x, d = x, abs(x - last)
        self.largest = max(self.largest, abs(x))
        floor = 0.001 * max(self.largest, 1e-9)
        for n in SCALES:
            self.m[n].push(x)
            self.q[n].push(x * x)
            s = math.sqrt(max(self.q[n].now - self.m[n].now ** 2, 0))
            self.s_before[n] = self.s.get(n, s)
            self.s[n] = s
        for e in (self.d_long, self.d16, self.d64):
            e.push(d)
        m, s, mean, dev, step = self.m, self.s, self.m[2048].before, max(self.s_before[2048], floor), max(self.d_long.before, floor / 10)
        z = {n: math.asinh((x - m[n].before) / max(self.s_before[n], 0.02 * dev)) for n in (16, 64, 256)}
        ratio = lambda a, b, c: math.log((a + 0.01 * c) / (b + 0.01 * c))
        c = max(-20.0, min(20.0, (x - mean) / dev))
        self.up, self.down = min(max(0.0, self.up + c - 0.5), 100.0), min(max(0.0, self.down - c - 0.5), 100.0)
        self.flat = self.flat + 1 if d <= 0.001 * dev else 0
        self.peaks = (self.peaks + [abs(z[256])])[-16:]
        self.out.push(1.0 if abs(c) > 3 else 0.0)
        self.t += 1
        if self.t <= 256:
            self.sum_x, self.sum_xx, self.sum_d = self.sum_x + x, self.sum_xx + x * x, self.sum_d + d
        n = min(self.t, 256)
        m1 = self.sum_x / n
        s1, d1 = max(math.sqrt(max(self.sum_xx / n - m1 * m1, 0)), floor), max(self.sum_d / n, floor / 10)
        f = [math.asinh((x - mean) / dev), z[256], z[64], z[16], *(math.asinh((m[k].now - mean) / dev) for k in (4, 16, 64)),
             math.asinh((m[16].now - m[256].now) / max(s[256], 0.02 * dev)), *(ratio(s[k], dev, dev) for k in (4, 16, 64)), ratio(s[16], s[256], dev),
             math.log(1 + d / step), ratio(self.d16.now, step, step), ratio(self.d64.now, step, step), math.log(1 + self.up), math.log(1 + self.down), math.log(1 + self.flat),
             max(self.peaks), self.out.now, math.asinh((m[16].now - m1) / s1), math.asinh((m[64].now - m1) / s1), ratio(s[16], s1, s1), ratio(s[64], s1, s1), ratio(self.d16.now, d1, d1)]
        f = [max(-20.0, min(20.0, y)) for y in f]
        sign = (x > last) - (x < last)
        lstm = [f[0], f[2], f[3], f[9], f[12] * sign, f[20], f[22]]
        return [abs(y) if i < 8 or i in (20, 21) else y for i, y in enumerate(f)], lstm


if __name__ == "__main__":
    check = json.load(open(pathlib.Path(__file__).resolve().parent.parent / "tests/data/anomaly/check.json"))
    worst = 0.0
    for ch in range(2):
        channel = Channel()
        got = [channel.push(row[ch]) for row in check["values"]]
        for r in check["rows"]:
            trees, lstm = got[r["at"]]
            worst = max([worst] + [abs(a - b) for a, b in zip(trees + lstm, r["features"][ch] + r["lstm_in"][ch])])
    print(f"largest difference {worst:.2g}")
    sys.exit(worst > 2e-5)
