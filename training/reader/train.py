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
import traceback

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
    """Generates examples until it is ended. A slip in one example is shown and costs that example only."""
    os.nice(5)
    import build
    r, s, c = random.Random(seed), build.Sources(sources), Coder()
    rows, shown = [], 0
    while True:
        try:
            for e in build.batch(r, s):
                w = build.write(r, e)
                if w is None:
                    continue
                a, b = c.source(w[0]), c.plan(w[1])
                if len(a) <= MAX_IN and len(b) <= MAX_OUT:
                    rows.append((a, b))
        except Exception:
            shown += 1
            if shown <= 2:
                traceback.print_exc()
        if len(rows) >= 256:
            queue.put(pack(rows))
            rows = []


class Pool:
    """The newest examples, in the memory of the device."""

    def __init__(self, size, queue, dev):
        import torch
        self.x, self.y = torch.zeros(size, MAX_IN, dtype=torch.int16, device=dev), torch.zeros(size, MAX_OUT, dtype=torch.int16, device=dev)
        self.nx, self.ny = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self.n = self.at = self.made = 0
        self.queue, self.size, self.dev, self.torch = queue, size, dev, torch
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        while True:
            x, y = self.queue.get()
            k, at = min(len(x), self.size - self.at), self.at
            self.x[at : at + k].copy_(self.torch.from_numpy(x[:k]))
            self.y[at : at + k].copy_(self.torch.from_numpy(y[:k]))
            self.nx[at : at + k], self.ny[at : at + k] = (x[:k] != 0).sum(1), (y[:k] != 0).sum(1)
            self.at = (at + k) % self.size
            self.n = min(self.size, self.n + k)
            self.made += len(x)

    def batches(self, rng, tokens):
        """Batches of similar length, about `tokens` input tokens each."""
        while True:
            idx = rng.integers(0, self.n, max(64, min(self.n, tokens // 8)))
            idx = idx[np.argsort(self.nx[idx] + rng.random(len(idx)) * 8)]
            cut, at = [], 0
            while at < len(idx):
                chunk = idx[at : at + tokens // 32]
                top = np.maximum.accumulate(self.nx[chunk])
                k = int(np.searchsorted(top * np.arange(1, len(chunk) + 1), tokens, "right")) or 1
                cut.append((chunk[:k], int(top[k - 1])))
                at += k
            rng.shuffle(cut)
            for chunk, longest in cut:
                i = self.torch.from_numpy(chunk).to(self.dev)
                yield self.x[i, : (longest + 7) // 8 * 8].long(), self.y[i, : int(self.ny[chunk].max())].long()


def choose_attention(m, gen, F, torch):
    """The fused attention if it gives the gradients of the plain one and is faster."""
    from model import Attention
    x, y = next(gen)
    found = []
    for fused in (False, True):
        Attention.fused = fused
        try:
            for i in range(6):
                if i == 2:
                    torch.cuda.synchronize()
                    t0 = time.time()
                m.zero_grad()
                with torch.autocast("cuda", torch.bfloat16):
                    logits = m(x, y)
                loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), ignore_index=0)
                loss.backward()
            torch.cuda.synchronize()
            found.append(((time.time() - t0) / 4, m.enc_rel.weight.grad.clone(), m.enc[0].att.q.weight.grad.clone()))
        except RuntimeError as e:
            print("fused attention:", str(e)[:300], flush=True)
    m.zero_grad(set_to_none=True)
    Attention.fused = False
    if len(found) == 2:
        off = [float((a - b).norm() / a.norm()) for a, b in zip(found[0][1:], found[1][1:])]
        Attention.fused = max(off) < 0.1 and found[1][0] < found[0][0]
        print(f"attention: {1000 * found[0][0]:.1f} ms plain, {1000 * found[1][0]:.1f} ms fused, for {tuple(x.shape)}; gradients differ by {off}; fused {Attention.fused}", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--sources", default=".cache/reader/sources.json.gz")
    a.add_argument("--out", required=True, type=pathlib.Path)
    a.add_argument("--start", help="weights to go on from")
    a.add_argument("--state", type=pathlib.Path, help="file with the whole state of training: read if it is there, written at the end")
    a.add_argument("--minutes", type=float, default=0)
    a.add_argument("--steps", type=int, default=0)
    a.add_argument("--schedule", type=float, nargs=2, default=(0.0, 1.0), help="the part of the learning rate's schedule that this run is")
    a.add_argument("--workers", type=int, default=15)
    a.add_argument("--pool", type=int, default=3_000_000)
    a.add_argument("--tokens", type=int, default=65536)
    a.add_argument("--lr", type=float, default=8e-4)
    a.add_argument("--drop", type=float, default=0.0)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    begin = time.time()
    fork = mp.get_context("fork")  # before torch is loaded
    queue = fork.Queue(64)
    procs = [fork.Process(target=work, args=(o.seed * 1000 + i, o.sources, queue), daemon=True) for i in range(o.workers)]
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
    ema = {k: v.detach().clone() for k, v in m.state_dict().items()}
    step = seen = made = 0
    if o.state and o.state.exists():
        d = torch.load(o.state, map_location=dev)
        m.load_state_dict(d["model"])
        opt.load_state_dict(d["opt"])
        ema, step, seen, made = d["ema"], d["step"], d["seen"], d["made"]
        print("goes on after step", step, flush=True)
    pool = Pool(o.pool, queue, dev)
    while pool.n < min(o.pool, 30000 if cuda else 500):
        time.sleep(0.5)
        if time.time() - begin > 90 or not any(p.is_alive() for p in procs):
            raise SystemExit(f"only {pool.n} examples after {time.time() - begin:.0f} s")
    gen = pool.batches(np.random.default_rng(o.seed), o.tokens)
    if cuda:
        choose_attention(m, gen, F, torch)
    o.out.mkdir(parents=True, exist_ok=True)
    start = shown = saved = time.time()
    first, losses, best, calm = step, [], 1e9, 1.0
    limit = o.minutes * 60 - (start - begin)

    def save():
        torch.save({k: v.half() for k, v in ema.items()}, o.out / "reader.new")
        os.replace(o.out / "reader.new", o.out / "reader.pt")
        with open(o.out / "train.json", "w") as f:
            json.dump({"steps": step, "seen": seen, "made": made + pool.made, "minutes": (time.time() - begin) / 60}, f)

    while True:
        part = (time.time() - start) / limit if o.minutes else (step - first) / o.steps
        if part >= 1:
            break
        at = o.schedule[0] + part * (o.schedule[1] - o.schedule[0])
        warm = min(1.0, (step + 1) / (200 if o.start else 1000))
        for grp in opt.param_groups:
            grp["lr"] = o.lr * calm * warm * max(0.01, 0.5 * (1 + math.cos(math.pi * at)))
        x, y = next(gen)
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
        if step - first == 10 or time.time() - shown > 15:
            shown = time.time()
            mean = float(torch.stack(losses).mean())
            print(f"{shown - begin:5.0f} s  step {step}  loss {mean:.4f}  examples seen {seen}  made {made + pool.made}", flush=True)
            if not math.isfinite(mean):
                raise SystemExit("the loss is not a number")
            if mean > 1.15 * best and step - first > 1000:
                calm *= 0.7
                print(f"the loss grows: learning rate times {calm:.2f}", flush=True)
            best = min(best, mean)
            losses = []
        if time.time() - saved > 120:
            saved = time.time()
            save()
    save()
    if o.state:
        torch.save({"model": m.state_dict(), "opt": opt.state_dict(), "ema": ema, "step": step, "seen": seen, "made": made + pool.made}, o.state)
    print("done", step, seen, made + pool.made, flush=True)
    for p in procs:
        p.kill()
    os._exit(0)  # the thread that fills the pool may wait for ever


if __name__ == "__main__":
    main()
