#!/usr/bin/env python3
"""Makes tests/data/scorers/trees: small LightGBM models of every kind, and LightGBM's results for 1,000
rows.  A developer's tool: the tests only read its output.

usage: tools/make_tree_refs.py

Needs PyPI; makes a Python environment of its own in .cache/trees-venv.  NAME.txt is the model,
NAME.f64 has the predictions of all rows and then their raw scores, as little-endian doubles.  The
rows themselves are made by a formula, here in rows() and in tests/unit/score/test_trees.c.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".cache/trees-venv"
OUT = ROOT / "tests/data/scorers/trees"
PACKAGES = ["lightgbm==4.7.0", "numpy", "scipy"]

if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import lightgbm as lgb  # noqa: E402
import numpy as np  # noqa: E402

N_FEATURES = 8
N_ROWS = 1000
MASK = (1 << 64) - 1


def mix(x):
    """hash_mix of src/base/hash.h"""
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & MASK
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def value(row, f, missing):
    h = mix(row * 64 + f + 1)
    if missing and h % 7 == 0:
        return float("nan")
    if f < 5:
        v = (h >> 11) / 2**51 - 2
        return 0.0 if missing and h % 5 == 0 else v
    if f == 5:
        return float(h % 12)
    if f == 6:
        return float(h % 70) - (1 if missing else 0)
    return float(h % 4)


def rows(first, n, missing):
    return np.array([[value(first + r, f, missing) for f in range(N_FEATURES)] for r in range(n)])


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    test = rows(0, N_ROWS, True)
    full, holes = rows(100000, 3000, False), rows(200000, 3000, True)
    plain = {"num_leaves": 15, "min_data_in_leaf": 5, "learning_rate": 0.15, "seed": 7,
             "verbosity": -1, "num_threads": 1, "deterministic": True, "force_row_wise": True}
    sets = {"max_cat_to_onehot": 2, "min_data_per_group": 10, "cat_smooth": 1}
    kinds = {  # name: rows, objective and other parameters, number of rounds, categorical features
        "regression": (full, {"objective": "regression"}, 13, []),
        "sqrt": (full, {"objective": "regression", "reg_sqrt": True}, 5, []),
        "categorical": (full, {"objective": "binary", **sets}, 12, [5, 6, 7]),
        "categorical_onehot": (holes, {"objective": "regression_l1", "max_cat_to_onehot": 16}, 9, [5, 7]),
        "missing": (holes, {"objective": "binary", "sigmoid": 0.7}, 20, []),
        "missing_zero": (holes, {"objective": "regression", "zero_as_missing": True}, 17, []),
        "missing_categorical": (holes, {"objective": "regression", **sets}, 12, [5, 6]),
        "dart": (holes, {"objective": "binary", "boosting": "dart", "drop_rate": 0.5}, 20, []),
        "multiclass": (holes, {"objective": "multiclass", "num_class": 3}, 9, [6]),
        "multiclassova": (full, {"objective": "multiclassova", "num_class": 4}, 5, []),
        "forest": (full, {"objective": "binary", "boosting": "rf", "bagging_freq": 1,
                          "bagging_fraction": 0.6, "feature_fraction": 0.7}, 11, []),
        "forest_multiclass": (full, {"objective": "multiclass", "num_class": 3, "boosting": "rf",
                                     "bagging_freq": 1, "bagging_fraction": 0.5}, 4, []),
        "poisson": (full, {"objective": "poisson"}, 8, []),
        "gamma": (full, {"objective": "gamma"}, 8, []),
        "tweedie": (full, {"objective": "tweedie"}, 8, []),
        "cross_entropy": (full, {"objective": "cross_entropy"}, 8, []),
        "cross_entropy_lambda": (full, {"objective": "cross_entropy_lambda"}, 8, []),
        "lambdarank": (full, {"objective": "lambdarank"}, 8, []),
        "linear": (holes, {"objective": "regression", "linear_tree": True, "linear_lambda": 0.1,
                           "num_leaves": 8}, 6, []),
        "custom": (full, {"objective": "none"}, 3, []),
        "stump": (full, {"objective": "regression", "num_leaves": 2}, 3, []),
    }
    for name, (x, params, rounds, categories) in kinds.items():
        z = np.nan_to_num(x)
        score = (np.sin(2 * z[:, 0]) + z[:, 1] * (z[:, 5] % 3 - 1) + 0.3 * z[:, 3] ** 2
                 + 0.1 * (z[:, 6] % 7) - 0.5 * np.isnan(x[:, 1]) + 0.2 * z[:, 7])
        objective = params["objective"]
        if objective.startswith("multiclass"):
            y = np.digitize(score, np.quantile(score, np.arange(1, params["num_class"]) / params["num_class"]))
        elif objective == "binary":
            y = (score > np.median(score)).astype(int)
        elif objective.startswith("cross_entropy"):
            y = 1 / (1 + np.exp(-score))
        elif objective == "lambdarank":
            y = np.digitize(score, np.quantile(score, [0.4, 0.7, 0.9]))
        elif objective in ("poisson", "gamma", "tweedie"):
            y = np.exp(score / 2)
        else:
            y = score
        group = [30] * (len(y) // 30) if objective == "lambdarank" else None
        data = lgb.Dataset(x, y, group=group, categorical_feature=categories,
                           params={**plain, **params})
        if objective == "none":  # custom gradients: no transformation in the file
            params = {**params, "objective": lambda p, d: (p - d.get_label(), np.ones_like(p))}
        model = lgb.train({**plain, **params}, data, num_boost_round=rounds)
        path = OUT / f"{name}.txt"
        model.save_model(path)
        loaded = lgb.Booster(model_file=path)
        answers = [loaded.predict(test), loaded.predict(test, raw_score=True)]
        np.concatenate([a.reshape(-1) for a in answers]).astype("<f8").tofile(OUT / f"{name}.f64")
        print(name, loaded.num_trees(), path.stat().st_size, answers[0].reshape(-1)[:3])


main()
