#!/usr/bin/env python3
"""Measures the reader on what it was not trained on.

    training/reader/evaluate.py WEIGHTS.pt [--out predictions.jsonl] [--rows 2000]

Sets: `sites` (whole kinds of sites held out), `templates` (whole templates), `home assistant` (its templates held out),
`people` (a tenth of the real sentences), `other`, `play`, `talk` (public valid splits), `overheard` (DialogSum),
`de`, `fr`, `es` (drawn anew, from the templates of the training).
A plan is right when every token is. A wrong act is a plan that acts and is not the right one; `acted` counts those where
nothing should have happened.
"""

import argparse
import collections
import json
import math
import random

import build
import sites
from plans import IDS, TOKENS, acts
from sentences import NoFit
from train import Coder, MAX_IN

PLAN_TOKENS = len(TOKENS)


def text_of(tokens):
    return " ".join(tokens).replace("<sep>", ";").replace("<", "").replace(">", "")


def draw(path, rows):
    """{set: [(class, text, input tokens, gold plan)]}"""
    s = build.Sources(path, "valid")
    sets = collections.defaultdict(list)

    def put(name, r, e, noisy=1.0, label=None):
        w = build.write(r, e, noisy)
        if w:
            at = w[0].index("<text>")
            sets[name].append((label or e.kind, " ".join(t for t in w[0][at + 1 :] if not t.startswith("<w")), w[0], text_of(w[1])))

    r = random.Random(101)
    while len(sets["sites"]) < rows:
        for e in build.generated(r, "train", sites.VALID_KINDS):
            put("sites", r, e)
    r = random.Random(102)
    while len(sets["templates"]) < rows:
        for e in build.generated(r, "held"):
            put("templates", r, e)
    r = random.Random(103)
    while len(sets["home assistant"]) < rows // 2:
        try:
            put("home assistant", r, s.ha_example(r, sites.make(r), "held"), 0)
        except NoFit:
            pass
    r = random.Random(106)
    for lang in sorted(s.tongues):
        for _ in range(rows // 4):
            put(lang, r, s.tongue_example(r, lang, "all"), 0)
    r = random.Random(104)
    for row in s.people:
        try:
            put("people", r, s.people_example(r, row), 0)
        except NoFit:
            pass
    r = random.Random(105)
    for _ in range(rows // 2):
        site = sites.make(r)
        put("other", r, s.other_example(r, site), 0)
        if _ % 8 == 0:
            put("play", r, s.play_example(r, site), 0)
        put("talk", r, s.talk_example(r, site), 0)
    for t in s.overheard[: 3 * rows]:
        put("overheard", r, build.Example(sites.make(r), build.plain_words(t)[: build.MAX_WORDS], ["none", "talk"], {}, "overheard", "talk"), 0)
    return sets


def predict(model, dev, rows):
    import torch
    from model import greedy
    c = Coder()
    ids = [c.source(x[2])[:MAX_IN] for x in rows]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    out = [None] * len(ids)
    for at in range(0, len(order), 256):
        part = order[at : at + 256]
        n = max(len(ids[i]) for i in part)
        x = torch.zeros(len(part), n, dtype=torch.long)
        for j, i in enumerate(part):
            x[j, : len(ids[i])] = torch.tensor(ids[i])
        plans, scores = greedy(model, x.to(dev), PLAN_TOKENS)
        for i, p, s in zip(part, plans, scores):
            p = p[: p.index(1)] if 1 in p else p
            out[i] = (text_of([TOKENS[t] for t in p]), math.exp(s))
    return out


IDLE = {"none", "other", "chat"}


def same(a, b):
    """Plans that do nothing are told apart by their first word alone: `none talk` for `none reported` hurts nobody."""
    if a == b:
        return True
    x, y = a.split(), b.split()
    return bool(x and y) and x[0] == y[0] == "none"


def harmless(a, b):
    """The same, or two that only talk back."""
    return same(a, b) or a.split(" ")[0] in IDLE and b.split(" ")[0] in IDLE and " ; " not in a + b


def report(name, rows, got):
    by, total = {}, collections.Counter()
    for (kind, text, tokens, gold), (plan, p) in zip(rows, got):
        c = by.setdefault(gold.split()[0], collections.Counter())
        asked = "<pending>" in tokens
        act, should = acts(plan, asked), acts(gold, asked)
        for t in (c, total):
            t["n"] += 1
            t["exact"] += plan == gold
            t["right"] += same(plan, gold)
            t["harmless"] += harmless(plan, gold)
            t["wrong act"] += act and plan != gold
            t["acted"] += act and not should
            t["silent"] += should and not act
            t["idle"] += not should
            t["wrong act p>0.8"] += act and plan != gold and p > 0.8
            t["acted p>0.8"] += act and not should and p > 0.8
    n = total["n"] or 1
    print(f"\n{name}: {n} rows, right {100 * total['right'] / n:.1f} % (exact {100 * total['exact'] / n:.1f} %, with all that only talks back as one {100 * total['harmless'] / n:.1f} %), wrong act {100 * total['wrong act'] / n:.2f} %, of these p > 0.8: {total['wrong act p>0.8']}, "
          f"acted on {total['acted']} (p > 0.8: {total['acted p>0.8']}) of {total['idle']} that are no command, commands missed {total['silent']}")
    print("   " + ", ".join(f"{k} {100 * c['right'] / c['n']:.0f} % of {c['n']}" for k, c in sorted(by.items(), key=lambda x: -x[1]["n"])[:24]))
    return dict(total)


def calibration(pairs):
    """Share of right plans by probability, and the expected error of that probability."""
    bins = collections.defaultdict(list)
    for ok, p in pairs:
        bins[min(9, int(p * 10))].append((ok, p))
    ece = sum(abs(sum(o for o, _ in b) - sum(p for _, p in b)) for b in bins.values()) / max(1, len(pairs))
    print("\ncalibration: " + ", ".join(f"{k / 10:.1f}+: {100 * sum(o for o, _ in b) / len(b):.0f} % of {len(b)}" for k, b in sorted(bins.items())) + f"; expected error {ece:.3f}")
    return ece


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("weights")
    a.add_argument("--sources", default=".cache/reader/sources.json.gz")
    a.add_argument("--out")
    a.add_argument("--rows", type=int, default=2000)
    o = a.parse_args()
    import torch
    from model import CONFIG, Reader
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    m = Reader(CONFIG).to(dev).eval()
    m.load_state_dict({k: v.float() for k, v in torch.load(o.weights, map_location=dev).items()})
    figures, pairs, log = {}, [], []
    for name, rows in draw(o.sources, o.rows).items():
        with torch.no_grad():
            got = predict(m, dev, rows)
        figures[name] = report(name, rows, got)
        pairs += [(same(p, x[3]), q) for x, (p, q) in zip(rows, got)]
        log += [{"set": name, "kind": x[0], "text": x[1], "gold": x[3], "got": p, "p": round(q, 4), "in": " ".join(x[2][: x[2].index("<text>")])} for x, (p, q) in zip(rows, got)]
    figures["calibration error"] = calibration(pairs)
    if o.out:
        with open(o.out, "w") as f:
            for x in log:
                if x["gold"] == x["got"] and x["p"] > 0.5:
                    x = {k: x[k] for k in ("set", "text", "gold", "p")}
                f.write(json.dumps(x, ensure_ascii=False) + "\n")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
