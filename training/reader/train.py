#!/usr/bin/env python3
"""Trains the reader. Processes generate examples all the while, the main one trains on a pool of the newest.

    training/reader/train.py --minutes 9 --out DIR           # one GPU, 16 cores
    training/reader/train.py --steps 50 --workers 1 --pool 2000 --tokens 4096 --out DIR     # a try on a CPU
"""

import argparse
import json
import math
import multiprocessing as mp
import os
import pathlib
import random
import threading
import time

import numpy as np

HERE = pathlib.Path(__file__).parent
MAX_IN, MAX_OUT = 288, 44


class Coder:
    """Tokens to ids; each word is encoded by itself, as the program does."""

    def __init__(self):
        from plans import IDS
        from tokenizers import Tokenizer
        self.t, self.ids, self.cache = Tokenizer.from_file(str(HERE / "tokenizer.json")), IDS, {}

    def word(self, w):
        ids = self.cache.get(w)
        if ids is None:
            if len(self.cache) > 300000:
                self.cache.clear()
            ids = self.cache[w] = self.t.encode(w).ids
        return ids

    def source(self, tokens):
        out = []
        for t in tokens:
            i = self.ids.get(t)
            if i is not None:
                out.append(i)
            else:
                out.extend(self.word(t))
        out.append(1)
        return out

    def plan(self, tokens):
        return [self.ids[t] for t in tokens] + [1]


def pack(rows):
    x, y = np.zeros((len(rows), MAX_IN), np.int16), np.zeros((len(rows), MAX_OUT), np.int16)
    for i, (a, b) in enumerate(rows):
        x[i, : len(a)], y[i, : len(b)] = a, b
    return x, y


def work(seed, sources, queue):
    os.nice(5)
    import build
    r, s, c = random.Random(seed), build.Sources(sources), Coder()
    rows = []
    while True:
        for e in build.batch(r, s):
            w = build.write(r, e)
            if w is None:
                continue
            a, b = c.source(w[0]), c.plan(w[1])
            if len(a) <= MAX_IN and len(b) <= MAX_OUT:
                rows.append((a, b))
        if len(rows) >= 256:
            queue.put(pack(rows))
            rows = []


class Pool:
    """The newest examples."""

    def __init__(self, size, queue):
        self.x, self.y, self.n, self.at, self.made = np.zeros((size, MAX_IN), np.int16), np.zeros((size, MAX_OUT), np.int16), 0, 0, 0
        self.queue, self.size = queue, size
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        while True:
            x, y = self.queue.get()
            k = min(len(x), self.size - self.at)
            self.x[self.at : self.at + k], self.y[self.at : self.at + k] = x[:k], y[:k]
            self.at = (self.at + k) % self.size
            self.n = min(self.size, self.n + k)
            self.made += len(x)

    def batches(self, rng, tokens):
        """Batches of similar length, about `tokens` input tokens each."""
        while True:
            idx = rng.integers(0, self.n, max(64, min(self.n, tokens // 8)))
            lens = (self.x[idx] != 0).sum(1)
            idx = idx[np.argsort(lens + rng.random(len(idx)) * 8)]
            cut = []
            at = 0
            while at < len(idx):
                k = at + 1
                longest = 0
                chunk = idx[at : at + tokens // 32]
                ls = (self.x[chunk] != 0).sum(1)
                top = np.maximum.accumulate(ls)
                k = int(np.searchsorted(top * np.arange(1, len(chunk) + 1), tokens, "right")) or 1
                longest = int(top[k - 1])
                cut.append((chunk[:k], longest))
                at += k
            rng.shuffle(cut)
            for chunk, longest in cut:
                longest = (longest + 7) // 8 * 8
                y = self.y[chunk]
                yield self.x[chunk, :longest], y[:, : int((y != 0).sum(1).max())]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--sources", default=".cache/reader/sources.json.gz")
    a.add_argument("--out", required=True, type=pathlib.Path)
    a.add_argument("--start", help="weights to go on from")
    a.add_argument("--minutes", type=float, default=0)
    a.add_argument("--steps", type=int, default=0)
    a.add_argument("--workers", type=int, default=15)
    a.add_argument("--pool", type=int, default=3_000_000)
    a.add_argument("--tokens", type=int, default=98304)
    a.add_argument("--lr", type=float, default=2e-3)
    a.add_argument("--drop", type=float, default=0.05)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    begin = time.time()
    queue = mp.Queue(64)
    procs = [mp.Process(target=work, args=(o.seed * 1000 + i, o.sources, queue), daemon=True) for i in range(o.workers)]
    for p in procs:
        p.start()
    import torch
    import torch.nn.functional as F
    from model import CONFIG, Reader
    cuda = torch.cuda.is_available()
    dev = "cuda" if cuda else "cpu"
    torch.manual_seed(o.seed)
    torch.set_float32_matmul_precision("high")
    m = Reader(CONFIG, o.drop).to(dev)
    if o.start:
        m.load_state_dict({k: v.float() for k, v in torch.load(o.start, map_location=dev).items()})
    print(sum(p.numel() for p in m.parameters()), "parameters on", dev, flush=True)
    flat = [p for p in m.parameters() if p.dim() > 1]
    opt = torch.optim.AdamW([{"params": flat, "weight_decay": 0.02}, {"params": [p for p in m.parameters() if p.dim() == 1], "weight_decay": 0.0}], lr=o.lr, betas=(0.9, 0.98), eps=1e-8, fused=cuda)
    pool = Pool(o.pool, queue)
    while pool.n < min(o.pool, 30000 if cuda else 500):
        time.sleep(0.5)
    gen = pool.batches(np.random.default_rng(o.seed), o.tokens)
    start, step, seen, shown, losses = time.time(), 0, 0, time.time(), []
    ema = {k: v.detach().clone() for k, v in m.state_dict().items()}
    limit = o.minutes * 60 - (start - begin)
    while True:
        part = (time.time() - start) / limit if o.minutes else step / o.steps
        if part >= 1:
            break
        warm = min(1.0, (step + 1) / (1000 if not o.start else 200))
        for grp in opt.param_groups:
            grp["lr"] = o.lr * warm * max(0.01, 0.5 * (1 + math.cos(math.pi * part)))
        x, y = next(gen)
        x = torch.from_numpy(x.astype(np.int64)).to(dev, non_blocking=True)
        y = torch.from_numpy(y.astype(np.int64)).to(dev, non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            logits = m(x, y)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), ignore_index=0)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        step += 1
        seen += len(x)
        losses.append(loss.detach())
        if step % 20 == 0:
            d = min(0.98, step / (step + 100))
            sd = m.state_dict()
            torch._foreach_mul_(list(ema.values()), d)
            torch._foreach_add_(list(ema.values()), [sd[k] for k in ema], alpha=1 - d)
        if time.time() - shown > 15:
            shown = time.time()
            print(f"{shown - begin:5.0f} s  step {step}  loss {torch.stack(losses).mean():.4f}  examples seen {seen}  made {pool.made}", flush=True)
            losses = []
    m.load_state_dict(ema)
    o.out.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.half() for k, v in m.state_dict().items()}, o.out / "reader.pt")
    json.dump({"steps": step, "seen": seen, "made": pool.made, "minutes": (time.time() - begin) / 60}, open(o.out / "train.json", "w"))
    print("done", step, seen, pool.made, flush=True)
    for p in procs:
        p.terminate()


if __name__ == "__main__":
    main()
