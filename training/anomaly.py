#!/usr/bin/env python3
"""Trains the sensor anomaly scorer: LightGBM trees and a small LSTM on streaming features of a channel.

    training/anomaly.py --data ../shared/data/sensors      # models/anomaly, tests/data/anomaly; minutes
    training/anomaly.py --only lstm                        # on another machine: writes only that part to --work

Both score one channel, keep a fixed state and never look ahead; the channels of a machine are joined
afterwards. Trained on NAB alone, with whole series held out. C-MAPSS and SKAB are only measured on. A plain
threshold and a moving z-score are tuned and measured in the same run.
"""

import argparse
import csv
import datetime
import json
import pathlib
import random

import numpy as np
import torch
from scipy.signal import lfilter

torch.set_num_threads(1)
ROOT = pathlib.Path(__file__).resolve().parent.parent
SEED = 4242
SCALES = (4, 16, 64, 256, 2048)
LONG = 2048
WARM = 64  # no alarm before this many points
NAMES = ["z_long", "z_256", "z_64", "z_16", "shift_4", "shift_16", "shift_64", "shift_16_256", "spread_4", "spread_16", "spread_64", "spread_16_256",
         "step", "rough_16", "rough_64", "cusum_up", "cusum_down", "flat", "peak_16", "out_16", "first_16", "first_64", "first_spread_16", "first_spread_64", "first_rough_16"]
SIGNED = list(range(8)) + [20, 21]  # the trees take the size of these
FIRST = 256  # points at the start of a series that define what is normal
LSTM_IN = ["z_long", "z_64", "z_16", "spread_16", "step", "first_16", "first_spread_16"]  # signed; step with the sign of the last difference
HIDDEN = 24
SMOOTH = 16  # the score is averaged over about this many points
# share: weight of the LSTM in the score, the rest is the trees'; minus: this share of the score's long-term mean is subtracted.
# Chosen on the series that are not held out, of NAB for one channel and of C-MAPSS for several.
ONE, SEVERAL = dict(lstm_share=0.2, minus=0.75), dict(lstm_share=0.5, minus=0.5)
TOP = 3  # with several channels: the mean of this many highest scores
GAP = 24  # an alarm that pauses for up to this many points continues
HELD_OUT = {"skab": ["valve1/1", "valve1/10", "valve1/14", "valve1/6", "valve2/1", "other/2", "other/6", "other/11"],
            "cmapss": [f"engine {u}" for u in range(1, 101) if u % 10 < 3],
            "nab": ["art_daily_flatmiddle", "art_daily_small_noise", "ec2_cpu_utilization_ac20cd", "ec2_cpu_utilization_53ea38", "ec2_disk_write_bytes_c0d644", "grok_asg_anomaly", "rds_cpu_utilization_e47b3b",
                    "exchange-3_cpc_results", "exchange-4_cpm_results", "machine_temperature_system_failure", "rogue_agent_key_hold", "TravelTime_387", "speed_t4013", "Twitter_volume_AMZN", "Twitter_volume_IBM", "Twitter_volume_KO"]}
END_OF_LIFE = 30  # the last cycles of an engine count as anomalous


# ------------------------------------------------------------------ data


def load(folder):
    """[(set, name, seconds per point, values [n, channels], labels [n], windows [(from, to)])]"""
    out = []
    marks = json.load(open(folder / "nab/labels/combined_windows.json"))
    for path in sorted((folder / "nab/data").glob("*/*.csv")):
        rows = list(csv.reader(open(path)))[1:]
        t = [datetime.datetime.fromisoformat(r[0]) for r in rows]
        x = np.array([[float(r[1])] for r in rows])
        y = np.zeros(len(x), bool)
        wins = []
        for a, b in marks.get(f"{path.parent.name}/{path.name}", []):
            a, b = (datetime.datetime.fromisoformat(s[:19]) for s in (a, b))
            i = [k for k, s in enumerate(t) if a <= s <= b]
            y[i] = True
            wins.append((i[0], i[-1] + 1))
        step = float(np.median([(q - p).total_seconds() for p, q in zip(t, t[1:])]))
        out.append(("nab", path.stem, step, x, y, wins))
    for path in sorted((folder / "skab").glob("*/*.csv")):
        rows = list(csv.reader(open(path), delimiter=";"))
        head = rows[0]
        n = head.index("Volume Flow RateRMS") + 1
        x = np.array([[float(v) for v in r[1:n]] for r in rows[1:]])
        y = np.array([float(r[head.index("anomaly")]) > 0 for r in rows[1:]]) if "anomaly" in head else np.zeros(len(x), bool)
        edge = np.flatnonzero(np.diff(np.concatenate([[0], y.astype(int), [0]])))
        out.append(("skab", f"{path.parent.name}/{path.stem}", 1.0, x, y, [(int(a), int(b)) for a, b in zip(edge[::2], edge[1::2])]))
    path = folder / "cmapss/train_FD001.txt"
    if path.exists():
        table = np.loadtxt(path)
        for u in np.unique(table[:, 0]):  # engines run until they fail; a cycle is one flight, counted as an hour
            x = table[table[:, 0] == u][:, 5:]
            y = np.arange(len(x)) >= len(x) - END_OF_LIFE
            out.append(("cmapss", f"engine {int(u)}", 3600.0, x, y, [(len(x) - END_OF_LIFE, len(x))]))
    return out


# ------------------------------------------------------------------ features


def ew(x, n):
    """Exponentially weighted mean with the weight of a window of n points, without start-up bias."""
    k = 1.0 - 1.0 / n
    return lfilter([1], [1, -k], x) / lfilter([1], [1, -k], np.ones(len(x)))


def before(x):
    """The value one point earlier (the first keeps its own)."""
    return np.concatenate([x[:1], x[:-1]])


def channel_features(x):
    """[n, 25] of one channel, signed; every column at t uses points up to t only."""
    x = x - x[0]
    d = np.abs(np.diff(x, prepend=x[0]))
    m = {n: ew(x, n) for n in SCALES}
    s = {n: np.sqrt(np.maximum(ew(x * x, n) - m[n] ** 2, 0)) for n in SCALES}
    ml, sl = before(m[LONG]), before(s[LONG])
    floor = 1e-3 * np.maximum(np.maximum.accumulate(np.abs(x)), 1e-9)
    sl = np.maximum(sl, floor)
    dl = np.maximum(before(ew(d, LONG)), 0.1 * floor)
    z = lambda n: np.arcsinh((x - before(m[n])) / np.maximum(before(s[n]), 0.02 * sl))
    far = lambda a, b: np.arcsinh(a / b)
    log = lambda a, b: np.log((a + 0.01 * sl) / (b + 0.01 * sl))
    zl = np.clip((x - ml) / sl, -20, 20)  # for the sums; the column itself has no limit
    up, down, a, b = np.zeros(len(x)), np.zeros(len(x)), 0.0, 0.0
    flat, run = np.zeros(len(x)), 0
    still = d <= 1e-3 * sl
    for i, v in enumerate(zl):
        a = min(max(0.0, a + v - 0.5), 100.0)
        b = min(max(0.0, b - v - 0.5), 100.0)
        run = run + 1 if still[i] else 0
        up[i], down[i], flat[i] = a, b, run
    n = np.minimum(np.arange(len(x)), FIRST - 1)
    mean1, mean2, rough = (np.cumsum(v) / np.arange(1, len(x) + 1) for v in (x, x * x, d))
    fm, fs, fd = mean1[n], np.sqrt(np.maximum(mean2[n] - mean1[n] ** 2, 0)), np.maximum(rough[n], 0.1 * floor)
    fs = np.maximum(fs, floor)
    flog = lambda a: np.log((a + 0.01 * fs) / (1.01 * fs))
    peak = np.abs(z(256))
    for k in (1, 2, 4, 8):  # largest of the last 16 points
        peak = np.maximum(peak, np.concatenate([np.zeros(k), peak[:-k]]))
    out = np.stack([far(x - ml, sl), z(256), z(64), z(16), far(m[4] - ml, sl), far(m[16] - ml, sl), far(m[64] - ml, sl), far(m[16] - m[256], np.maximum(s[256], 0.02 * sl)),
                    log(s[4], sl), log(s[16], sl), log(s[64], sl), log(s[16], s[256]), np.log1p(d / dl), np.log((ew(d, 16) + 0.01 * dl) / (1.01 * dl)), np.log((ew(d, 64) + 0.01 * dl) / (1.01 * dl)),
                    np.log1p(up), np.log1p(down), np.log1p(flat), peak, ew((np.abs(zl) > 3).astype(float), 16),
                    far(m[16] - fm, fs), far(m[64] - fm, fs), flog(s[16]), flog(s[64]), np.log((ew(d, 16) + 0.01 * fd) / (1.01 * fd))], 1)
    return np.clip(out, -20, 20).astype(np.float32)


def features(values):
    """(what the trees see [channels, n, 25], what the LSTM sees [channels, n, 7])"""
    per = np.stack([channel_features(values[:, c]) for c in range(values.shape[1])])
    step = np.sign(np.diff(values, axis=0, prepend=values[:1])).T * per[..., NAMES.index("step")]
    seq = np.stack([per[..., NAMES.index(k)] if k != "step" else step for k in LSTM_IN], -1)
    per[..., SIGNED] = np.abs(per[..., SIGNED])
    return per, seq.astype(np.float32)


def targets(f, y, wins):
    """1, 0 or -1 (not used). A NAB window is wide around its anomaly: only its most surprising points count."""
    t = y.astype(np.int8)
    odd = f[:, :4].max(1) + f[:, 4:8].max(1) + 2 * np.abs(f[:, 8:12]).max(1)
    for a, b in wins:
        t[a:b] = np.where(odd[a:b] >= np.quantile(odd[a:b], 0.8), 1, -1)
    t[:WARM] = -1
    return t


# ------------------------------------------------------------------ measuring


def onsets(on):
    """Where alarms begin; one that pauses for GAP points or fewer continues."""
    at = np.flatnonzero(on)
    return at[np.diff(at, prepend=-GAP - 2) > GAP + 1]


def judge(series, scores, level):
    """By alarms: a window is found when an alarm begins in it (or just before it), every alarm that begins
    elsewhere is false. By points: F1 of alarm against label."""
    tp = fn = fp = 0
    hours, delay, a, b, c = 0.0, [], 0, 0, 0
    for (_kind, _n, step, _x, y, wins), s in zip(series, scores):
        on = (s >= level) & (np.arange(len(s)) >= WARM)
        start = onsets(on)
        good = np.zeros(len(start), bool)
        for i, j in wins:
            hit = (start >= i - GAP) & (start < j)
            good |= hit
            if hit.any():
                tp += 1
                delay.append(max(0, int(start[hit][0]) - i))
            else:
                fn += 1
        fp += int((~good).sum())
        hours += (len(y) - y.sum()) * step / 3600
        a += int((on & y).sum())
        b += int((on & ~y).sum())
        c += int((~on & y).sum())
    return dict(event_f1=round(2 * tp / max(1, 2 * tp + fp + fn), 4), found=f"{tp} of {tp + fn}", false_alarms=fp, false_alarms_per_hour=round(float(fp / max(hours, 1e-9)), 4),
                delay_points=round(float(np.mean(delay)), 1) if delay else None, point_f1=round(2 * a / max(1, 2 * a + b + c), 4))


def tune(series, scores, levels):
    """The level with the best F1 over events."""
    return float(max(levels, key=lambda l: (judge(series, scores, l)["event_f1"], l)))


def odds(p):
    return np.log((p + 1e-4) / (1 - p + 1e-4))


def setting(channels):
    return ONE if len(channels) == 1 else SEVERAL


def joined(trees, lstm):
    w = setting(trees)["lstm_share"]
    return (1 - w) * trees + w * lstm


def level_of(u):
    """Combines log odds [channels, n] into the value that is compared with the alarm level."""
    minus = setting(u)["minus"]
    u = np.sort(u, 0)[::-1][:TOP].mean(0)
    return ew(u, SMOOTH) - minus * before(ew(u, LONG))


def threshold_scores(series):
    """Plain limits: how far a value leaves the range of the first part of its series, in its deviations."""
    out = []
    for _k, _n, _s, x, _y, _w in series:
        n = max(WARM, min(len(x) * 15 // 100, 400))
        m, s = x[:n].mean(0), x[:n].std(0) + 1e-9
        out.append(np.abs((x - m) / s).max(1))
    return out


def zscore_scores(series, w):
    """Moving z-score over the last w points."""
    out = []
    for _k, _n, _s, x, _y, _ww in series:
        c1, c2 = np.cumsum(np.vstack([np.zeros(x.shape[1]), x]), 0), np.cumsum(np.vstack([np.zeros(x.shape[1]), (x - x[0]) ** 2]), 0)
        i = np.arange(len(x))
        lo = np.maximum(0, i - w)
        n = np.maximum(i - lo, 1)[:, None]
        m = (c1[i] - c1[lo]) / n
        v = (c2[i] - c2[lo]) / n - (m - x[0]) ** 2
        s = np.sqrt(np.maximum(v, 0)) + 1e-6 * (np.abs(x).max(0) + 1e-9)
        out.append(np.abs((x - m) / s).max(1) * (i > 8))
    return out


# ------------------------------------------------------------------ models


def fit_trees(parts, rounds, up):
    import lightgbm as lgb

    x = np.concatenate([f[t >= 0] for f, t in parts])
    y = np.concatenate([t[t >= 0] for _f, t in parts])
    p = dict(objective="binary", learning_rate=0.05, num_leaves=15, min_data_in_leaf=200, max_bin=63, feature_fraction=0.4, bagging_fraction=0.5, bagging_freq=1, lambda_l2=10.0, seed=SEED, deterministic=True, num_threads=1, verbose=-1)
    return lgb.train(p, lgb.Dataset(x, y, weight=np.where(y == 1, up, 1.0), feature_name=NAMES), rounds)


class Lstm(torch.nn.Module):
    """Runs on each channel alone; the inputs are halved, as config.json says."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(len(LSTM_IN), HIDDEN, batch_first=True)
        self.out = torch.nn.Linear(HIDDEN, 1)

    def forward(self, x):  # [channels, n, 7]
        return self.out(self.lstm(x / 2)[0])[..., 0]


def fit_lstm(parts, steps, seed, device, up):
    """parts: [(sequence [n, 7], target [n])]; windows of 256 points, half of them with an anomaly."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model = Lstm().to(device)
    with torch.no_grad():
        model.out.bias.fill_(-2.0)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    pos, neg = [], []
    for seq, t in parts:
        for at in range(0, max(1, len(seq) - 64), 96):
            tt = t[at : at + 256]
            if (tt >= 0).any():
                x = np.zeros((256, len(LSTM_IN)), np.float32)
                x[: len(tt)] = seq[at : at + 256]
                y = np.full(256, -1.0, np.float32)
                y[: len(tt)] = tt
                (pos if (tt == 1).any() else neg).append((x, y))
    move = lambda rows: [torch.from_numpy(np.stack(c)).to(device) for c in zip(*rows)]
    (px, py), (nx, ny) = move(pos), move(neg)
    for step in range(steps):
        for g in opt.param_groups:
            g["lr"] = 4e-3 * min(1, (step + 1) / 20) * (1 - step / steps)
        i, j = rng.sample(range(len(pos)), min(24, len(pos))), rng.sample(range(len(neg)), min(24, len(neg)))
        x, y = torch.cat([px[i], nx[j]]), torch.cat([py[i], ny[j]])
        w = (y >= 0).float() * torch.where(y > 0.5, up, 1.0)
        loss = (w * torch.nn.functional.binary_cross_entropy_with_logits(model(x), y.clamp(min=0), reduction="none")).sum() / w.sum()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 240 == 0:
            print(f"   lstm step {step} loss {float(loss.detach()):.4f}", flush=True)
    return model.cpu().eval()


def rounded(net):
    """The same with the weights as they are stored (F16)."""
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.half().float())
    return net


def quants(w):
    """(8-bit rows, a scale per row)"""
    s = w.abs().amax(1) / 127
    return torch.round(w / s[:, None]).to(torch.int8), s


def in_8_bits(net):
    """As it is stored: the recurrent matrix, which is most of it, in 8 bits."""
    out = Lstm()
    out.load_state_dict(net.state_dict())
    with torch.no_grad():
        q, s = quants(out.lstm.weight_hh_l0)
        out.lstm.weight_hh_l0.copy_(q * s[:, None])
    return out.eval()


def lstm_odds(net, seq):
    with torch.no_grad():
        return odds(torch.sigmoid(net(torch.from_numpy(seq))).numpy().astype(np.float64))


def tree_odds(bst, f):
    return odds(np.stack([bst.predict(c) for c in f]))


def lstm_part(a, order, parts, up):
    """An LSTM per fold, trained without the fold's series, and one trained on all."""
    path = pathlib.Path(a.work) / "lstm.pt"
    if not path.exists():
        device = "cuda" if torch.cuda.is_available() else "cpu"
        nets = []
        for k in list(range(a.folds)) + [None]:
            out = order[k :: a.folds] if k is not None else []
            nets.append(fit_lstm(parts([i for i in order if i not in out]), a.steps, SEED + (k or 0), device, up).state_dict())
            print("lstm", "of all" if k is None else f"fold {k + 1} of {a.folds}", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(nets, path)
    out = []
    for state in torch.load(path):
        net = Lstm()
        net.load_state_dict(state)
        out.append(rounded(net).eval())
    return out[:-1], out[-1]


def candidates(scores):
    """Alarm levels worth trying: quantiles of the scores themselves."""
    q = np.concatenate([np.linspace(0.3, 0.95, 27), np.linspace(0.955, 0.9995, 60)])
    return np.unique(np.quantile(np.concatenate(scores), q))


def measure(name, series, held, scores):
    """Figures on the held-out series of one set, every level tuned on its other series. scores: {model: {i: odds}}"""
    S, T = ([i for i, s in enumerate(series) if s[0] == name and held[i] == h] for h in (False, True))
    A, B = [series[i] for i in S], [series[i] for i in T]
    rows = {}
    lv = tune(A, threshold_scores(A), np.linspace(1, 60, 119))
    rows["threshold"] = judge(B, threshold_scores(B), lv) | dict(level=lv)
    best = max((judge(A, z, l)["event_f1"], w, l) for w in (16, 32, 64, 128, 256, 512, 1024) for z in [zscore_scores(A, w)] for l in [tune(A, z, np.linspace(1, 30, 59))])
    rows[f"z-score of {best[1]}"] = judge(B, zscore_scores(B, best[1]), best[2]) | dict(level=best[2])
    for k, u in scores.items():
        x, y = [level_of(u[i]) for i in S], [level_of(u[i]) for i in T]
        lv = tune(A, x, candidates(x))
        rows[k] = judge(B, y, lv) | dict(level=round(lv, 3), tuned=judge(A, x, lv)["event_f1"])
    for k, r in rows.items():
        print(f"{name:7}", f"{k:16}", json.dumps(r), flush=True)
    return rows


def check_series():
    """A series of our own for tests: 400 points, two channels, with a fault."""
    rng = np.random.default_rng(1)
    x = np.stack([20 + np.sin(np.arange(400) / 9) + 0.1 * rng.standard_normal(400), 5 + 0.2 * rng.standard_normal(400)], 1)
    x[350:380, 0] += 4
    return np.round(x, 3)


def write(a, bst, net, level):
    from safetensors.torch import save_file

    out = pathlib.Path(a.out)
    (out / "lstm").mkdir(parents=True, exist_ok=True)
    bst.save_model(str(out / "trees.txt"))
    w = {k: v.half().contiguous() for k, v in net.state_dict().items()}
    w["lstm.weight_hh_l0"], w["lstm.weight_hh_l0_scale"] = quants(net.lstm.weight_hh_l0.detach())
    save_file(w, str(out / "lstm/model.safetensors"), metadata={"format": "pt"})
    (out / "lstm/model.safetensors").chmod(0o644)
    net = in_8_bits(net)
    n = len(LSTM_IN)
    json.dump(dict(model_type="shoal_scorer", input=dict(channels=n, window=1, stateful=True, names=LSTM_IN, mean=[0.0] * n, std=[2.0] * n),
                   layers=[dict(type="lstm", name="lstm", hidden=HIDDEN), dict(type="linear", name="out"), dict(type="sigmoid")], output=dict(names=["anomaly"])), open(out / "lstm/config.json", "w"), indent=1)
    json.dump(dict(model_type="shoal_anomaly", features=NAMES, absolute=[NAMES[i] for i in SIGNED], scales=list(SCALES), long=LONG, first=FIRST, warm_up=WARM, pause=GAP, trees="trees.txt", lstm="lstm", smooth=SMOOTH, top=TOP,
                   one_channel=dict(level=level["one_channel"], **ONE), several=dict(level=level["several"], **SEVERAL)), open(out / "config.json", "w"), indent=1)
    x = check_series()
    f, q = features(x)
    t, l = tree_odds(bst, f), lstm_odds(net, q)
    v = level_of(joined(t, l))
    at = [0, 1, 10, 100, 256, 300, 349, 350, 351, 355, 370, 385, 399]
    r = lambda y, d: np.round(np.asarray(y, np.float64), d).tolist()
    path = pathlib.Path(a.check)
    path.mkdir(parents=True, exist_ok=True)
    rows = [dict(at=i, features=r(f[:, i], 5), lstm_in=r(q[:, i], 5), trees=r(t[:, i], 5), lstm=r(l[:, i], 4), compared=r(v[i], 4), one_channel=r(level_of(joined(t[:1], l[:1]))[i], 4)) for i in at]
    with open(path / "check.json", "w") as o:
        o.write('{"values": ' + json.dumps(x.tolist()) + ',\n "rows": [\n' + ",\n".join(json.dumps(z) for z in rows) + "\n]}\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="../shared/data/sensors")
    ap.add_argument("--work", default=".cache/train-anomaly")
    ap.add_argument("--out", default=ROOT / "models/anomaly")
    ap.add_argument("--check", default=ROOT / "tests/data/anomaly")
    ap.add_argument("--only", choices=["lstm"], help="stop after this part")
    ap.add_argument("--rounds", type=int, default=100)
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--folds", type=int, default=4)
    ap.add_argument("--limit", type=int, help="series used, for smoke tests")
    a = ap.parse_args()
    series = load(pathlib.Path(a.data))
    if a.limit:
        series = series[:: max(1, len(series) // a.limit)]
    held = [s[1] in HELD_OUT[s[0]] for s in series]
    feats = [features(s[3]) for s in series]
    train = [i for i, s in enumerate(series) if s[0] == "nab" and not held[i]]
    tg = {i: targets(feats[i][0][0], series[i][4], series[i][5]) for i in train}
    n1, n0 = (sum(int((t == v).sum()) for t in tg.values()) for v in (1, 0))
    up = 0.35 * n0 / max(1, n1)
    print(f"{len(series)} series, {len(train)} of them trained on with {n1} anomalous points of {n0 + n1}", flush=True)
    order = train[:]
    random.Random(SEED).shuffle(order)
    nets, net = lstm_part(a, order, lambda idx: [(feats[i][1][0], tg[i]) for i in idx], up)
    if a.only == "lstm":
        return
    part = lambda idx: [(feats[i][0][0], tg[i]) for i in idx]
    bst = fit_trees(part(train), a.rounds, up)
    t = {i: tree_odds(bst, f) for i, (f, _q) in enumerate(feats)}
    l = {i: lstm_odds(net, q) for i, (_f, q) in enumerate(feats)}
    l8 = {i: lstm_odds(in_8_bits(net), q) for i, (_f, q) in enumerate(feats)}
    for k in range(a.folds):  # levels are tuned on scores of models that have not seen the series
        out = order[k :: a.folds]
        b = fit_trees(part([i for i in order if i not in out]), a.rounds, up)
        for i in out:
            t[i], l[i], l8[i] = tree_odds(b, feats[i][0]), lstm_odds(nets[k], feats[i][1]), lstm_odds(in_8_bits(nets[k]), feats[i][1])
    mean = lambda x, y: {i: joined(x[i], y[i]) for i in x}
    report = {s: measure(s, series, held, dict(trees=t, lstm=l, both=mean(t, l), both_int8=mean(t, l8))) for s in ("nab", "cmapss", "skab") if any(x[0] == s for x in series)}
    level = dict(one_channel=report["nab"]["both_int8"]["level"], several=report["cmapss"]["both_int8"]["level"] if "cmapss" in report else None)
    write(a, bst, net, level)
    pathlib.Path(a.work).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(a.work) / "figures.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
