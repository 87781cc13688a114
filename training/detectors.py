#!/usr/bin/env python3
"""Compares the detector of `shoal anomaly` with plain and published ones on NAB, SKAB and C-MAPSS.

    training/detectors.py --data ../shared/data/sensors --shoal build/shoal      # numpy, scikit-learn, stumpy

Every method learns from the beginning of each series (15 % of NAB, 400 rows of SKAB, 50 cycles of C-MAPSS) and then
gives one score a row without looking ahead. The level of each is chosen on the series that are not held out
(the split of training/anomaly.py), the same way for all; nothing is chosen on the held-out ones. An alarm goes on
through a pause of at most 24 rows. A window is found if an alarm begins in it or up to 24 rows before; every other
beginning of an alarm is false.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import warnings

import numpy as np

GAP = 24
END_OF_LIFE = 30
HELD_OUT = {"skab": ["valve1/1", "valve1/10", "valve1/14", "valve1/6", "valve2/1", "other/2", "other/6", "other/11"],
            "cmapss": [f"engine {u}" for u in range(1, 101) if u % 10 < 3],
            "nab": ["art_daily_flatmiddle", "art_daily_small_noise", "ec2_cpu_utilization_ac20cd", "ec2_cpu_utilization_53ea38", "ec2_disk_write_bytes_c0d644", "grok_asg_anomaly", "rds_cpu_utilization_e47b3b",
                    "exchange-3_cpc_results", "exchange-4_cpm_results", "machine_temperature_system_failure", "rogue_agent_key_hold", "TravelTime_387", "speed_t4013", "Twitter_volume_AMZN", "Twitter_volume_IBM", "Twitter_volume_KO"]}


class Series:
    def __init__(self, kind, name, times, x, windows, learn):
        self.kind, self.name, self.times, self.x, self.windows, self.learn = kind, name, times, x, windows, learn
        self.step = float(np.median(np.diff(times)))
        self.held_out = name in HELD_OUT[kind]


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
    return out


# ------------------------------------------------------------------ methods: one score a row, the higher the odder


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


def ours(shoal, learned=True):
    def run(s):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/x.csv", "w") as f:
                f.write("time," + ",".join(f"c{i}" for i in range(s.x.shape[1])) + "\n")
                for t, row in zip(s.times, s.x):
                    f.write(datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S") + "," + ",".join(f"{v:.9g}" for v in row) + "\n")
            args = ["-l", f"{d}/m.json"] if learned else ["--learn", str(min(1024, max(32, s.learn)))]
            if learned:
                subprocess.run([shoal, "anomaly", "fit", "--rows", str(s.learn), "-o", f"{d}/m.json", f"{d}/x.csv"], check=True, stdout=subprocess.DEVNULL)
            text = subprocess.run([shoal, "anomaly", "run", *args, "--scores", f"{d}/x.csv"], check=True, capture_output=True, text=True).stdout
        n = np.array([float(line.split()[2]) for line in text.splitlines()])
        return -np.log10(np.maximum(n, 1e-300))
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
    # Alarms that last may cover most rows, so the levels reach over all values.
    levels = np.unique(np.quantile(values, np.concatenate([1 - np.geomspace(1e-5, 0.5, 120), np.linspace(0, 0.5, 60)])))
    return max(levels, key=lambda v: (measure(all_series, scores, v)["f1"], v))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--shoal", default="build/shoal")
    p.add_argument("--only", help="methods whose name contains this")
    p.add_argument("--sets", default="nab,skab,cmapss")
    p.add_argument("--tune-only", action="store_true", help="figures of the series that are not held out; the others are not scored")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    warnings.filterwarnings("ignore")
    os.environ.setdefault("SHOAL_MODELS", str(pathlib.Path(__file__).resolve().parent.parent / "models"))
    methods = {"shoal, learned": ours(a.shoal), "shoal, from the stream": ours(a.shoal, False), "shoal score -m anomaly": packed(a.shoal),
               "threshold": threshold, "z-score 64": z_score(64), "z-score 256": z_score(256), "z-score 1024": z_score(1024),
               "isolation forest": forest(1), "isolation forest, 8 rows": forest(8), "matrix profile 16": matrix_profile(16), "matrix profile 48": matrix_profile(48)}
    everything, rows = load(a.data), []
    for name, method in methods.items():
        if a.only and a.only not in name:
            continue
        for kind in a.sets.split(","):
            known = [s for s in everything if s.kind == kind and not s.held_out]
            new = [] if a.tune_only else [s for s in everything if s.kind == kind and s.held_out]
            known_scores, new_scores = [method(s) for s in known], [method(s) for s in new]
            level = tune(known, known_scores)
            on_known = measure(known, known_scores, level)
            r = dict(set=kind, method=name, level=float(level), tuned=on_known["f1"])
            line = f"{kind:7} {name:26} level {level:8.3f}  tuned on F1 {on_known['f1']:.3f} ({on_known['found']}/{on_known['windows']}, {on_known['false']} false)"
            if new:
                r.update(measure(new, new_scores, level))
                line += f"   held out F1 {r['f1']:.3f}  {r['found']:2}/{r['windows']:2}  {r['false']:3} false, {r['per_day']:.3f} a day, delay {r['delay'] if r['delay'] is None else round(r['delay'], 1)}"
                if name.startswith("shoal, "):
                    r["untuned"] = measure(new, new_scores, 1.0)
                    line += f"   at 0.1 a day: F1 {r['untuned']['f1']:.3f} {r['untuned']['found']}/{r['untuned']['windows']} {r['untuned']['false']} false"
            rows.append(r)
            print(line, flush=True)
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
