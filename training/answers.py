#!/usr/bin/env python3
"""Fits and measures the extractive answers of src/knowledge/quote_rank.c.

Asks XQuAD's questions of a collection of all its paragraphs (they have an answer), and of collections that lack
their paragraph (they have none, though other paragraphs of the same article are there). A sentence is right if it is of the question's
paragraph and contains the answer. Two thirds of the paragraphs are for fitting, one third for measuring: blocks, so that an article is on
one side.

    training/answers.py --data DIR [--shoal build/shoal] [--fit]
"""
import argparse, json, math, os, pathlib, socket, subprocess, sys, tempfile, time, urllib.request

FOLDS = 8


def serve(shoal, folder):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, SHOAL_COLLECTIONS=str(folder))
    p = subprocess.Popen([shoal, "serve", "--listen", f"127.0.0.1:{port}"], env=env, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            urllib.request.urlopen(url + "/readyz")
            return p, url
        except OSError:
            time.sleep(0.1)
    p.terminate()
    sys.exit("the server does not get ready")


def ask(url, collection, question):
    body = json.dumps(dict(question=question, explain=True)).encode()
    r = urllib.request.Request(f"{url}/v1/collections/{collection}/answer", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(r))


def gather(shoal, rows):
    """[(paragraph, present, [(features, right)])], the sentences in the order of their scores now."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, SHOAL_COLLECTIONS=folder)
        for k in range(-1, FOLDS):
            files = []
            for i, r in enumerate(rows):
                if k < 0 or i % FOLDS != k:
                    f = pathlib.Path(folder) / f"p{i}.txt"
                    f.write_text(r["context"], encoding="utf-8")
                    files.append(str(f))
            subprocess.run([shoal, "index", "add", f"c{k + 1}", *files], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        p, url = serve(shoal, folder)
        out = []
        try:
            for i, r in enumerate(rows):
                for q in r["qas"]:
                    for present in (True, False):
                        a = ask(url, "c0" if present else f"c{i % FOLDS + 1}", q["question"])
                        found = a.get("quotes", a.get("closest"))
                        own = os.path.join(folder, f"p{i}.txt")
                        out.append((i, present, q["question"], [(x["features"], x["document"] == own and any(y in x["text"] for y in q["answers"]), x["score"], x["text"]) for x in found], a["found"]))
        finally:
            p.terminate()
            p.wait()
    return out


def fit(data, names):
    import numpy as np
    x = np.array([[f[n] for n in names] + [1.0] for *_, s, _ in data for f, *_ in s])
    y = np.array([float(right) for *_, s, _ in data for _, right, *_ in s])
    w, ridge = np.zeros(x.shape[1]), 1.0
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ w))
        g = x.T @ (y - p) - ridge * w
        h = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(w))
        step = np.linalg.solve(h, g)
        w += step
        if abs(step).max() < 1e-6:
            break
    return w


def rescore(data, names, w):
    out = []
    for i, present, q, s, _ in data:
        s = [(f, right, 1 / (1 + math.exp(-(sum(f[n] * v for n, v in zip(names, w)) + w[-1]))), t) for f, right, _, t in s]
        s.sort(key=lambda x: -x[2])
        out.append((i, present, q, s, None))
    return out


def report(name, data, enough):
    yes = [d for d in data if d[1]]
    no = [d for d in data if not d[1]]
    first = sum(bool(s) and s[0][1] for *_, s, _ in yes)
    three = sum(any(x[1] for x in s[:3]) for *_, s, _ in yes)
    told = sum(bool(s) and s[0][2] >= enough for *_, s, _ in yes)
    right = sum(bool(s) and s[0][2] >= enough and s[0][1] for *_, s, _ in yes)
    none = sum(not s or s[0][2] < enough for *_, s, _ in no)
    n = len(yes)
    print(f"{name}: {n} questions. The right sentence is first in {100 * first / n:.1f} %, among three in {100 * three / n:.1f} %. "
          f"At {enough}: answered {100 * told / n:.1f} %, of these right {100 * right / max(told, 1):.1f} %; "
          f"without its paragraph 'not found' is right in {100 * none / len(no):.1f} %")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--data", required=True, type=pathlib.Path)
    a.add_argument("--shoal", default="build/shoal")
    a.add_argument("--fit", action="store_true")
    a.add_argument("--enough", type=float, default=0.35)
    a.add_argument("--cache", type=pathlib.Path)
    o = a.parse_args()
    rows = [json.loads(x) for x in open(o.data / "retrieval/xquad-en.jsonl", encoding="utf-8")]
    if o.cache and o.cache.exists():
        data = json.load(open(o.cache))
    else:
        data = gather(o.shoal, rows)
        if o.cache:
            json.dump(data, open(o.cache, "w"))
    cut = len(rows) * 2 // 3
    train, test = [d for d in data if d[0] < cut], [d for d in data if d[0] >= cut]
    if o.fit:
        names = list(data[0][3][0][0])
        w = fit(train, names)
        for n, v in zip(names + ["bias"], w):
            print(f"  {n} {v:.3f}")
        train, test = rescore(train, names, w), rescore(test, names, w)
        for enough in (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6):
            report("fitted", train, enough)
    report("fitted on", train, o.enough)
    report("held out", test, o.enough)


if __name__ == "__main__":
    main()
