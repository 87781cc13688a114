#!/usr/bin/env python3
"""Compares the detector of `shoal anomaly` with plain and published ones on NAB, SKAB, C-MAPSS, Tennessee Eastman, ASD, SMD and BATADAL.

    training/detectors.py --data ../shared/data/sensors --shoal build/shoal      # numpy, scikit-learn, stumpy
    training/detectors.py --data ../shared/data/sensors --defaults               # nothing is tuned, as `make bench BENCH=things` does

Every method learns from the beginning of each series (15 % of NAB, 400 rows of SKAB, 50 cycles of C-MAPSS) and then
gives one score per row without looking ahead. The series of a set, sorted by name, are dealt in turn to the development
half (first, third, ...) and the judged half (second, fourth, ...). The level of each method, and its setting where it has
several (a window, a weight), are chosen on the development half; the figures are of the judged half.

An alarm continues through a pause of at most 24 rows. A window is found if an alarm begins in it or up to 24 rows before:
an alarm that is always on finds nothing. Every other beginning of an alarm is false. The delay is counted from the start of
the window; the windows of NAB start well before the anomaly.

With --defaults no level is chosen: each method alarms at the settings of its textbook (`at_defaults`), and ours where the
program itself raises alarms. Four sets are judged only, nothing was ever chosen on them; each is optional:
    tep      Tennessee Eastman process, d00_te.dat to d21_te.dat of Braatz
    asd      12 application servers, data/processed/omi-*.pkl of InterFusion; learned from the train files
    smd      server machines, data/processed/machine-*.pkl of the same
    batadal  a water network under attack, dataset03.csv (learned), dataset04.csv, test_dataset.csv; simulated
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import warnings

import numpy as np

GAP = 24
END_OF_LIFE = 30
KINDS = ("nab", "skab", "cmapss")
class Series:
    def __init__(self, kind, name, times, x, windows, learn):
        self.kind, self.name, self.times, self.x, self.windows, self.learn = kind, name, times, x, windows, learn
        self.step = float(np.median(np.diff(times)))
        self.judged = False


def load(folder):
    out = []
    marks = json.load(open(folder / "nab/labels/combined_windows.json"))
    seconds = lambda s: datetime.datetime.fromisoformat(s[:19]).replace(tzinfo=datetime.timezone.utc).timestamp()
    for path in sorted((folder / "nab/data").glob("*/*.csv")):
        rows = list(csv.reader(open(path)))[1:]
        t = np.array([seconds(r[0]) for r in rows])
        windows = []
        for a, b in marks.get(f"{path.parent.name}/{path.name}", []):
            i = np.flatnonzero((t >= seconds(a)) & (t <= seconds(b)))
            windows.append((int(i[0]), int(i[-1]) + 1))
        out.append(Series("nab", path.stem, t, np.array([[float(r[1])] for r in rows]), windows, int(0.15 * len(rows))))
    for path in sorted((folder / "skab").glob("*/*.csv")):
        rows = list(csv.reader(open(path), delimiter=";"))
        n = rows[0].index("Volume Flow RateRMS") + 1
        t = np.array([seconds(r[0]) for r in rows[1:]])
        x = np.array([[float(v) for v in r[1:n]] for r in rows[1:]])
        y = np.array([float(r[rows[0].index("anomaly")]) > 0 for r in rows[1:]]) if "anomaly" in rows[0] else np.zeros(len(x), bool)
        edge = np.flatnonzero(np.diff(np.concatenate([[0], y.astype(int), [0]])))
        out.append(Series("skab", f"{path.parent.name}/{path.stem}", t, x, list(zip(edge[::2].tolist(), edge[1::2].tolist())), 400))
    table = np.loadtxt(folder / "cmapss/train_FD001.txt")
    for u in np.unique(table[:, 0]):
        x = table[table[:, 0] == u][:, 5:]
        out.append(Series("cmapss", f"engine {int(u)}", 3600.0 * np.arange(len(x)) + 3600, x, [(len(x) - END_OF_LIFE, len(x))], 50))
    for kind in KINDS:
        for s in sorted((s for s in out if s.kind == kind), key=lambda s: s.name)[1::2]:
            s.judged = True
    for path in sorted((folder / "tep").glob("d*_te.dat")):  # a fault from row 160 on, except in d00; a row every three minutes
        x = np.loadtxt(path)
        windows = [] if path.name.startswith("d00") else [(160, len(x))]
        # ... learned from 100 rows: an alarm that is always on must begin long before the fault to find nothing
        out.append(Series("tep", path.stem, 180.0 * np.arange(len(x)) + 180, x, windows, 100))
        out[-1].judged = True
    return out + servers(folder, "asd", "omi-*", 300.0) + servers(folder, "smd", "machine-*", 60.0) + batadal(folder)


class Arrays(pickle.Unpickler):
    """Pickles of NumPy arrays: any other name in such a file could run code."""
    def find_class(self, module, name):
        if (module.split(".")[0], name) in {("numpy", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no array")


def joined(kind, name, learn, x, marks, step):
    """Rows to learn from, then rows with marks: one series that is judged only."""
    edge = np.flatnonzero(np.diff(np.concatenate([[0], (marks > 0).astype(int), [0]]))) + len(learn)
    rows = np.concatenate([learn, x])
    s = Series(kind, name, step * np.arange(len(rows)) + step, rows, list(zip(edge[::2].tolist(), edge[1::2].tolist())), len(learn))
    s.judged = True
    return s


def servers(folder, kind, names, step):
    out = []
    for path in sorted((folder / kind).glob(f"{names}_train.pkl")):
        learn, x, marks = (Arrays(open(str(path).replace("_train", part), "rb")).load() for part in ("_train", "_test", "_test_label"))
        out.append(joined(kind, path.stem.removesuffix("_train"), np.asarray(learn, float), np.asarray(x, float), np.asarray(marks).ravel(), step))
    return out


def batadal(folder):
    read = lambda f: np.array([[float(v) for v in r[1:]] for r in list(csv.reader(open(folder / "batadal" / f)))[1:]])
    tests = [f for f in ("dataset04.csv", "test_dataset.csv") if (folder / "batadal" / f).exists()]
    learn = read("dataset03.csv")[:, :-1] if tests else None
    return [joined("batadal", f[:-4], learn, x[:, :-1], x[:, -1], 3600.0) for f in tests for x in [read(f)]]


def plants(seed=2026, n_series=40, n=4000, learn=800):
    """Plants that do not exist, unlike the public sets: a check against overfitting to those. Nothing was tuned on them."""
    rng, out = np.random.default_rng(seed), []
    t = np.arange(n)

    def ar(phi, size):
        v = np.zeros(size)
        for i in range(1, len(v)):
            v[i] = phi * v[i - 1] + rng.normal(size=size[1:])
        return v

    def thermostat():  # heats to 70, cools to 60, with a slower room
        v, on, x = np.zeros(n), True, 65.0
        for i in range(n):
            on = x < 70 if on else x < 60
            x += (0.25 if on else -0.12) + rng.normal(0, 0.05)
            v[i] = x + rng.normal(0, 0.1)
        return v[:, None]

    def tank():  # emptied slowly, filled at random times
        v, x = np.zeros(n), 50.0
        for i in range(n):
            x -= 0.08 + rng.exponential(0.02)
            if x < 20 + rng.uniform(0, 15) * (rng.random() < 0.01):
                x = 80 + rng.normal(0, 2)
            v[i] = x + rng.normal(0, 0.2)
        return v[:, None]

    def counter():  # parts per minute, with work shifts
        return rng.poisson(40 + 15 * ((t // 480) % 3 > 0))[:, None].astype(float)

    def compressor():  # vibration, current, temperature and flow, driven by one load
        load = ar(0.98, (n, 1))[:, 0] / 5
        slow = np.convolve(load, np.exp(-np.arange(300) / 80) / 80)[:n]
        return np.stack([2 + 0.3 * load + rng.laplace(0, 0.15, n), 14 + load + rng.normal(0, 0.2, n),
                         60 + 3 * slow + rng.normal(0, 0.2, n), 100 + 4 * load + rng.laplace(0, 1, n)], 1)

    def line():  # six channels that wander, two by two
        return np.repeat(ar(0.9, (n, 3)), 2, 1) + rng.standard_t(5, (n, 6)) * 0.5 + 20

    def fault(x, a, b):
        kind, c = rng.integers(6), rng.integers(x.shape[1])
        v, m = x[:, c], b - a
        spread = v[:learn].std()
        size = rng.uniform(1.5, 5) * rng.choice([-1, 1])
        if kind == 0:
            v[a:b] += size * spread
        elif kind == 1:  # grows until it is repaired
            v[a:b] += np.linspace(0, 1.5 * size, m) * spread
        elif kind == 2:
            v[a:b] += rng.normal(0, abs(size) * spread, m)
        elif kind == 3:  # an oscillation
            v[a:b] += size * spread * np.sin(np.arange(m) / 3)
        elif kind == 4:  # bursts of wrong values
            at = a + rng.integers(0, m, 6)
            v[at] += 4 * size * spread
        else:  # two channels of the plant at once
            for k in {c, (c + 1) % x.shape[1]}:
                x[a:b, k] += 0.6 * size * x[:learn, k].std()

    makers = [thermostat, tank, counter, compressor, line]
    for i in range(n_series):
        x, windows = makers[i % len(makers)](), []
        at = learn + int(rng.integers(200, 800))
        while at + 300 < n:
            windows.append((at, at + int(rng.integers(60, 250))))
            fault(x, *windows[-1])
            at += int(rng.integers(700, 1500))
        s = Series("plants", f"plant {i:02}", 60.0 * t + 60, x, windows, learn)
        s.judged = i // len(makers) % 2 == 1
        out.append(s)
    return out


def drifts(seed=7, n_series=48, n=6000, learn=800, rate=0.005):
    """Channels that are calm, then drift by `rate` deviations a row. Half of them never do. They are random, so nothing can have been memorized."""
    rng, out = np.random.default_rng(seed), []
    t = np.arange(n)
    for i in range(n_series):
        phi, step = (0.0, 0.5, 0.9, 0.0)[i % 4], 300.0 if i % 4 == 3 else 1.0
        v, e = np.zeros(n), rng.normal(size=n) if i % 8 < 4 else rng.standard_t(5, n)
        for k in range(1, n):
            v[k] = phi * v[k - 1] + e[k]
        v /= v.std()
        if i % 4 == 3:  # ... on top of a daily pattern
            v += 3 * np.sin(2 * np.pi * t / 288)
        windows = []
        if i // 4 % 2 == 0:
            at = int(rng.integers(2000, 4500))
            v[at:at + 1500] += rate * rng.choice([-1, 1]) * np.arange(min(1500, n - at))
            windows.append((at, at + 1500))
            v = v[:at + 1500]
        s = Series("drifts", f"drift {i:02}", step * (t[:len(v)] + 1), (50 + 2 * v)[:, None], windows, learn)
        s.judged = i // 8 % 2 == 1
        out.append(s)
    return out


# ------------------------------------------------------------------ methods: one score per row, higher is more anomalous


def scaled(s):
    a = s.x[:s.learn]
    return (s.x - a.mean(0)) / np.maximum(a.std(0), 1e-3 * np.maximum(np.abs(a).max(0), 1e-9))


def threshold(s):
    return np.abs(scaled(s)).max(1)


def z_score(n):
    def run(s):
        k, out = 1 - 1 / n, np.zeros(len(s.x))
        x = scaled(s)
        m, q, w = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0.0
        for i, v in enumerate(x):
            if w > 0:
                sd = np.sqrt(np.maximum(q / w - (m / w) ** 2, 1e-4))
                out[i] = np.abs((v - m / w) / sd).max()
            m, q, w = k * m + v, k * q + v * v, k * w + 1
        return out
    return run


def ewma(weight):
    """Control chart: an exponentially weighted mean of the scaled values."""
    def run(s):
        out, m = np.zeros(len(s.x)), 0.0
        for i, v in enumerate(np.clip(scaled(s), -10, 10)):
            m = (1 - weight) * m + weight * v
            out[i] = np.abs(m).max()
        return out
    return run


def cusum(slack):
    """Page's cumulative sums, upwards and downwards."""
    def run(s):
        x = scaled(s)
        out, up, down = np.zeros(len(x)), np.zeros(x.shape[1]), np.zeros(x.shape[1])
        for i, v in enumerate(x):
            up, down = np.maximum(0, up + v - slack), np.maximum(0, down - v - slack)
            out[i] = max(up.max(), down.max())
        return out
    return run


def hourly(s):
    """Distance from the median of the hour of the day, if at least two days were learned."""
    x, n = s.x.copy(), s.learn
    if s.times[n - 1] - s.times[0] >= 2 * 86400 and s.step < 3600:
        hour = (s.times // 3600 % 24).astype(int)
        for h in range(24):
            known = hour[:n] == h
            x[hour == h] -= np.median(s.x[:n][known] if known.any() else s.x[:n], 0)
    a = x[:n]
    return np.abs((x - a.mean(0)) / np.maximum(a.std(0), 1e-3 * np.maximum(np.abs(s.x[:n]).max(0), 1e-9))).max(1)


def hotelling(s):
    """Hotelling's T squared: the distance from the learned mean by the learned covariances."""
    x = scaled(s)
    a = x[:s.learn]
    inverse = np.linalg.pinv(np.cov(a.T).reshape(x.shape[1], -1) + 0.01 * np.eye(x.shape[1]))
    d = x - a.mean(0)
    return np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", d, inverse, d), 0))


def windows_of(x, n):
    pad = np.concatenate([np.repeat(x[:1], n - 1, 0), x])
    return np.stack([pad[i:i + len(x)] for i in range(n)], 1).reshape(len(x), -1)


def forest(n):
    def run(s):
        from sklearn.ensemble import IsolationForest
        w = windows_of(scaled(s), n)
        return -IsolationForest(n_estimators=100, random_state=1).fit(w[:s.learn]).score_samples(w)
    return run


def matrix_profile(m):
    def run(s):
        import stumpy
        out = np.zeros((len(s.x), s.x.shape[1]))
        for c in range(s.x.shape[1]):
            v = s.x[:, c]
            if v[:s.learn].std() == 0:
                continue
            d = stumpy.stump(v, m, v[:s.learn], ignore_trivial=False)[:, 0].astype(float)
            out[m - 1:, c] = np.nan_to_num(d, posinf=0)
        return out.mean(1)
    return run


def page_hinkley(delta, forget):
    """Page and Hinkley's test, upwards and downwards, against the mean of all values so far."""
    def run(s):
        x = scaled(s)
        out, up, down, mean = np.zeros(len(x)), np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
        for i, v in enumerate(x):
            mean += (v - mean) / (i + 1)
            up, down = np.maximum(0, forget * up + v - mean - delta), np.maximum(0, forget * down + mean - v - delta)
            out[i] = max(up.max(), down.max())
        return out
    return run


def watch(shoal, s, learned, *more):
    """The lines of `shoal anomaly run --scores`: score, alarm, expected a day."""
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/x.csv", "w") as f:
            f.write("time," + ",".join(f"c{i}" for i in range(s.x.shape[1])) + "\n")
            for t, row in zip(s.times, s.x):
                f.write(datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S") + "," + ",".join(f"{v:.9g}" for v in row) + "\n")
        args = ["-l", f"{d}/m.json"] if learned else []
        if learned:
            subprocess.run([shoal, "anomaly", "fit", "--rows", str(s.learn), "-o", f"{d}/m.json", f"{d}/x.csv"], check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run([shoal, "anomaly", "run", *args, *more, "--scores", f"{d}/x.csv"], check=True, capture_output=True, text=True).stdout
    return np.array([[float(v) for v in line.split()] for line in text.splitlines()])


def ours(shoal, learned=True, *more):
    def run(s):
        args = [] if learned else ["--learn", str(min(1024, max(32, s.learn)))]
        score = watch(shoal, s, learned, *args, *more)[:, 0]  # 1 / (1 + expected / accepted)
        return np.log10(np.maximum(score, 1e-300)) - np.log10(np.maximum(1 - score, 1e-300))
    return run


def packed(shoal):
    def run(s):
        rows = "\n".join(",".join(f"{v:.9g}" for v in row) for row in s.x)
        text = subprocess.run([shoal, "score", "-m", "anomaly"], input=rows + "\n", check=True, capture_output=True, text=True).stdout
        return np.array([float(line.split()[2]) for line in text.splitlines()])
    return run


# ------------------------------------------------------------------ measuring


def starts(score, level, learn):
    """Rows at which an alarm begins."""
    on = np.flatnonzero(score[learn:] >= level) + learn
    return on if len(on) == 0 else on[np.concatenate([[True], np.diff(on) > GAP + 1])]


def measure(all_series, scores, level):
    found = false = total = 0
    delays, days = [], 0.0
    for s, score in zip(all_series, scores):
        begin = starts(score, level, s.learn)
        used = np.zeros(len(begin), bool)
        for a, b in s.windows:
            if b <= s.learn:
                continue
            total += 1
            hit = (begin >= a - GAP) & (begin < b)
            used |= hit
            if hit.any():
                found += 1
                delays.append(max(0, begin[hit][0] - a))
        false += int((~used).sum())
        days += (len(s.x) - s.learn - sum(b - a for a, b in s.windows)) * s.step / 86400
    f1 = 2 * found / (found + false + total) if found else 0.0
    return dict(f1=f1, found=found, windows=total, false=false, per_day=false / days, delay=float(np.mean(delays)) if delays else None)


def tune(all_series, scores):
    values = np.concatenate([score[s.learn:] for s, score in zip(all_series, scores)])
    # Long alarms may cover most rows, so the levels span all values.
    levels = np.unique(np.quantile(values, np.concatenate([1 - np.geomspace(1e-5, 0.5, 120), np.linspace(0, 0.5, 60)])))
    return max(levels, key=lambda v: (measure(all_series, scores, v)["f1"], v))


def methods(shoal):
    """Name, then settings that the development half chooses from."""
    return {"shoal anomaly, learned": {"": ours(shoal)},
            "shoal anomaly, from the stream": {"": ours(shoal, False)},
            "shoal score -m anomaly": {"": packed(shoal)},
            "threshold": {"": threshold},
            "z-score, rolling": {n: z_score(n) for n in (64, 256, 1024)},
            "EWMA": {w: ewma(w) for w in (0.2, 0.05, 0.01)},
            "CUSUM": {k: cusum(k) for k in (0.5, 1.0, 2.0)},
            "Page-Hinkley": {d: page_hinkley(d, 0.9999) for d in (0.005, 0.05, 0.5)},
            "by hour of the day": {"": hourly},
            "Hotelling": {"": hotelling},
            "isolation forest": {n: forest(n) for n in (1, 8)},
            "matrix profile": {m: matrix_profile(m) for m in (16, 48)}}


def at_defaults(shoal):
    """Methods that need no level: 1 where they alarm. Limits of three deviations; Montgomery's weight of an EWMA chart and slack and
    level of CUSUM; delta, level and forgetting of river's Page-Hinkley; contamination "auto" of scikit-learn's forest."""
    def beyond(method, level):
        return lambda s: (method(s) > level).astype(float)

    def restarted(slack, level, follows):
        """Cumulative sums that begin again after each alarm, against the learned mean (CUSUM) or that of all values (Page-Hinkley)."""
        def run(s):
            x = scaled(s)
            out, up, down, mean, n = np.zeros(len(x)), np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
            for i, v in enumerate(x):
                n += 1
                mean = mean + (v - mean) / n if follows else mean
                up, down = np.maximum(0, up + v - mean - slack), np.maximum(0, down + mean - v - slack)
                if max(up.max(), down.max()) > level:
                    out[i], n = 1, 0
                    up, down, mean = 0 * up, 0 * down, 0 * mean
            return out
        return run

    def isolation_forest(s):
        from sklearn.ensemble import IsolationForest
        x = scaled(s)
        return (IsolationForest(random_state=1).fit(x[:s.learn]).predict(x) < 0).astype(float)

    return {"shoal anomaly, learned": lambda s: watch(shoal, s, True)[:, 1],
            "shoal anomaly, from the stream": lambda s: watch(shoal, s, False)[:, 1],
            "threshold": beyond(threshold, 3),
            "EWMA": beyond(ewma(0.2), 3 * (0.2 / 1.8) ** 0.5),
            "CUSUM": restarted(0.5, 5, False),
            "Page-Hinkley": restarted(0.005, 50, True),
            "isolation forest": isolation_forest}


def judge_defaults(a, everything):
    rows = []
    for name, method in at_defaults(a.shoal).items():
        if a.only and a.only not in name:
            continue
        for kind in a.sets.split(","):
            for part, judged in (("dev", False), ("judged", True)):
                these = [s for s in everything if s.kind == kind and s.judged == judged]
                if not these or (judged and a.dev_only):
                    continue
                m = measure(these, [method(s) for s in these], 0.5)
                rows.append(dict(set=kind, method=name, part=part, **m))
                print(f"{kind:7} {name:30} {part:6} {shown(m)}", flush=True)
    return rows


def judge(name, settings, kind, everything, dev_only):
    """Chooses setting and level on the development half, then measures the judged half."""
    dev, new = ([s for s in everything if s.kind == kind and s.judged == j] for j in (False, True))
    best = None
    for setting, method in settings.items():
        scores = [method(s) for s in dev]
        level = tune(dev, scores)
        m = measure(dev, scores, level)
        if best is None or m["f1"] > best[0]["f1"]:
            best = m, setting, method, level
    on_dev, setting, method, level = best
    if name.startswith("shoal anomaly"):
        on_dev["shipped"] = measure(dev, [method(s) for s in dev], 0.0)
    r = dict(set=kind, method=name, setting=setting, level=float(level), dev=on_dev)
    if not dev_only:
        scores = [method(s) for s in new]
        r.update(measure(new, scores, level))
        if name.startswith("shoal anomaly"):
            r["shipped"] = measure(new, scores, 0.0)  # the default
    return r


def shown(m):
    delay = "-" if m["delay"] is None else f"{m['delay']:.1f}"
    return f"F1 {m['f1']:.3f}  {m['found']:2}/{m['windows']:2}  {m['false']:3} false, {m['per_day']:.3f} a day, delay {delay}"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--shoal", default="build/shoal")
    p.add_argument("--only", help="methods whose name contains this")
    p.add_argument("--sets", default=",".join(KINDS), help="of nab, skab, cmapss; judged only: tep, asd, smd, batadal; generated: plants, drifts")
    p.add_argument("--defaults", action="store_true", help="nothing is tuned: every method at the settings it comes with")
    p.add_argument("--dev-only", action="store_true", help="figures of the development half; the judged half is not scored")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    warnings.filterwarnings("ignore")
    os.environ.setdefault("SHOAL_MODELS", str(pathlib.Path(__file__).resolve().parent.parent / "models"))
    everything, rows = load(a.data) + plants() + drifts(), []
    if a.defaults:
        rows = judge_defaults(a, everything)
        if a.json:
            a.json.write_text(json.dumps(rows, indent=1))
        return
    for name, settings in methods(a.shoal).items():
        if a.only and a.only not in name:
            continue
        for kind in a.sets.split(","):
            r = judge(name, settings, kind, everything, a.dev_only)
            rows.append(r)
            print(f"{kind:7} {name:30} {str(r['setting']):5} level {r['level']:9.3f}  dev {shown(r['dev'])}", end="")
            print("" if a.dev_only else f"   judged {shown(r)}", flush=True)
            if a.dev_only and "shipped" in r["dev"]:
                print(f"{'':8}at the default: {shown(r['dev']['shipped'])}", flush=True)
            if "shipped" in r:
                print(f"{'':8}at the default: {shown(r['shipped'])}", flush=True)
        mine = [r for r in rows if r["method"] == name]
        if len(mine) == len(KINDS):
            print(f"mean    {name:30} dev {np.mean([r['dev']['f1'] for r in mine]):.3f}", end="")
            print("" if a.dev_only else f"   judged {np.mean([r['f1'] for r in mine]):.3f}", flush=True)
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
