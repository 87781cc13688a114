#!/usr/bin/env python3
"""Trains the reply and reply-draft decoders.

    training/prepare.py --data DIR          # once
    training/reply.py train --work DIR      # vocabulary, corpus, reply, draft; about 8 minutes on one H200
    training/reply.py export --work DIR     # GGUF files into models/, figures on the held-out contexts

The corpus is generated (reply_corpus.py); simple English comes from stories sampled out of stories15M.
"""

import argparse
import hashlib
import io
import json
import math
import os
import pathlib
import random
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import reply_corpus as rc  # noqa: E402
import values  # noqa: E402

SEED = 20260
VOCAB = 8192
CTX = 1024
BOS, END, START = 1, 2, 3
REPLY = dict(dim=384, layers=8, heads=6, kv=2, ffn=1024)
DRAFT = dict(dim=192, layers=4, heads=3, kv=1, ffn=512)
HELD_OUT = 500
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def load_texts(data):
    t = json.load(open(data / "reply-texts.json"))
    values.set_open_values(t["words"], t["names"], t["titles"])
    rc.TEXTS.update(oos=t["oos"], labels=t["labels"], plain=t["plain"], talk=[tuple(x) for x in t["talk"]], found=t["found"])
    return t


def held_out():
    """The contexts used for evaluation; the corpus excludes them."""
    rng = random.Random(SEED + 1)
    out, seen = [], set()
    while len(out) < HELD_OUT:
        c, r, m = rc.sample(rng)
        if m and c not in seen:
            seen.add(c)
            out.append(dict(context=c, reply=r, must=m))
    return out


# ------------------------------------------------------------------ vocabulary


def train_vocab(data, work, n):
    import sentencepiece as spm

    texts = load_texts(data)
    rng = random.Random(SEED + 2)
    lines = []
    for _ in range(n):
        c, r, _m = rc.sample(rng)
        lines += c.split("\n") + [r]
    lines += texts["words"] * 2 + texts["titles"] + texts["names"]
    lines += [p for a in texts["wiki"] for p in a] * 2
    if (work / "stories.txt").exists():
        lines += open(work / "stories.txt").read().split("\n")[:60000]
    for s in ("snips.train", "clinc150.train", "atis.train"):
        lines += [json.loads(x)["text"] for x in open(data / f"{s}.jsonl")]
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=VOCAB, model_type="bpe", byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False, character_coverage=0.9995, max_sentence_length=20000,
        unk_id=0, bos_id=BOS, eos_id=END, pad_id=-1, bos_piece="<s>", eos_piece="<|im_end|>", control_symbols=["<|im_start|>"], num_threads=os.cpu_count(),
        input_sentence_size=600000, shuffle_input_sentence=True, minloglevel=2)
    (work / "vocab.model").write_bytes(model.getvalue())


def tokenizer(work):
    import sentencepiece as spm

    return spm.SentencePieceProcessor(model_file=str(work / "vocab.model"))


class Format:
    """Converts turns to token ids, formatted as by the chat template."""

    def __init__(self, sp):
        self.sp = sp
        self.user = [START] + sp.encode("user\n")
        self.mid = [END] + sp.encode("\n") + [START] + sp.encode("assistant\n")
        self.nl = sp.encode("\n")

    def prompt(self, ctx):
        return [BOS] + self.user + self.sp.encode(ctx) + self.mid

    def turn(self, ctx, reply):
        """(ids, loss weights): 1 on the reply and its end, a little on the context."""
        a = self.user + self.sp.encode(ctx) + self.mid
        b = self.sp.encode(reply) + [END]
        return a + b + self.nl, [1] * len(a) + [10] * len(b) + [1] * len(self.nl)


def generate_shard(args):
    """One worker's share of the corpus: flat ids, flat weights, lengths."""
    data, work, seed, n = args
    load_texts(data)
    skip = {h["context"] for h in held_out()}
    fm = Format(tokenizer(work))
    rng = random.Random(seed)
    ids, wts, lens = [], [], []
    for _ in range(n):
        row, w = [BOS], [0]
        k = rng.random()
        for _t in range(1 if k < 0.7 else 2 if k < 0.85 else rng.randint(3, 8)):
            c, r, _m = rc.sample(rng)
            if c in skip:
                continue
            a, b = fm.turn(c, r)
            if len(row) + len(a) > CTX:
                break
            row += a
            w += b
        ids.append(np.array(row, np.uint16))
        wts.append(np.array(w, np.uint8))
        lens.append(len(row))
    return np.concatenate(ids), np.concatenate(wts), np.array(lens, np.int32)


def text_rows(sp, texts, length):
    """Plain text: documents end to end, cut into rows."""
    flat = []
    for t in texts:
        flat += [BOS] + sp.encode(t) + [END]
    flat = np.array(flat, np.uint16)
    rows = [flat[i : i + length] for i in range(0, len(flat) - 32, length)]
    return np.concatenate(rows), np.concatenate([np.full(len(r), 10, np.uint8) for r in rows]), np.array([len(r) for r in rows], np.int32)


def held_stories(st):
    return min(300, len(st) // 10)


def corpus(data, work, n, workers):
    import multiprocessing as mp

    per = 2000
    jobs = [(data, work, SEED + 100 + i, min(per, n - i * per)) for i in range((n + per - 1) // per)]
    with mp.get_context("fork").Pool(workers) as pool:
        parts = pool.map(generate_shard, jobs, chunksize=1)
    sp = tokenizer(work)
    texts = json.load(open(data / "reply-texts.json"))
    wiki = [p for a in texts["wiki"][: len(texts["wiki"]) * 9 // 10] for p in a]
    parts += [text_rows(sp, wiki, 512)] * 3
    if (work / "stories.txt").exists():
        st = open(work / "stories.txt").read().split("\n")[:-1]
        st = st[: len(st) - held_stories(st)]
        parts += [text_rows(sp, [s.replace("\\n", "\n") for s in st], 768)]
    return tuple(np.concatenate(x) for x in zip(*parts))


# ------------------------------------------------------------------ model


def build(torch):
    nn, F = torch.nn, torch.nn.functional

    class Norm(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x):
            return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-5)

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.h, self.kv, d = c["heads"], c["kv"], c["dim"]
            self.attn_norm, self.ffn_norm = Norm(d), Norm(d)
            self.wq = nn.Linear(d, self.h * 64, bias=False)
            self.wk = nn.Linear(d, self.kv * 64, bias=False)
            self.wv = nn.Linear(d, self.kv * 64, bias=False)
            self.wo = nn.Linear(self.h * 64, d, bias=False)
            self.gate = nn.Linear(d, c["ffn"], bias=False)
            self.up = nn.Linear(d, c["ffn"], bias=False)
            self.down = nn.Linear(c["ffn"], d, bias=False)

        def forward(self, x, cos, sin, cache=None):
            b, t, _ = x.shape
            y = self.attn_norm(x)
            q = rope(self.wq(y).view(b, t, self.h, 64), cos, sin).transpose(1, 2)
            k = rope(self.wk(y).view(b, t, self.kv, 64), cos, sin).transpose(1, 2)
            val = self.wv(y).view(b, t, self.kv, 64).transpose(1, 2)
            mask = None
            if cache is not None:
                cache["k"].append(k)
                cache["v"].append(val)
                k, val = torch.cat(cache["k"], 2), torch.cat(cache["v"], 2)
                mask = cache["mask"]
            rep = self.h // self.kv
            k, val = k.repeat_interleave(rep, 1), val.repeat_interleave(rep, 1)
            o = F.scaled_dot_product_attention(q, k, val, attn_mask=mask, is_causal=mask is None)
            x = x + self.wo(o.transpose(1, 2).reshape(b, t, -1))
            y = self.ffn_norm(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def rope(x, cos, sin):
        """Rotates neighbouring pairs: GGUF's order of the llama architecture."""
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    class Llama(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c = c
            self.embed = nn.Embedding(VOCAB, c["dim"])
            self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
            self.norm = Norm(c["dim"])
            f = 1.0 / (10000 ** (torch.arange(0, 64, 2).float() / 64))
            ang = torch.arange(CTX).float()[:, None] * f[None]
            self.register_buffer("cos", ang.cos()[None, :, None], persistent=False)
            self.register_buffer("sin", ang.sin()[None, :, None], persistent=False)
            for n, p in self.named_parameters():
                if p.dim() == 2:
                    s = 0.02 if "embed" in n else (1 / p.shape[1]) ** 0.5
                    if n.endswith(("wo.weight", "down.weight")):
                        s /= (2 * c["layers"]) ** 0.5
                    nn.init.normal_(p, std=s)

        def hidden(self, ids, pos=None, caches=None):
            x = self.embed(ids)
            if torch.is_autocast_enabled():
                x = x.bfloat16()
            if pos is None:
                cos, sin = self.cos[:, : ids.shape[1]], self.sin[:, : ids.shape[1]]
            else:
                cos, sin = self.cos[0][pos], self.sin[0][pos]
            cos, sin = cos.to(x.dtype), sin.to(x.dtype)
            for i, b in enumerate(self.blocks):
                x = b(x, cos, sin, caches[i] if caches else None)
            return self.norm(x)

        def forward(self, ids, pos=None, caches=None):
            h = self.hidden(ids, pos, caches)
            return F.linear(h if caches is None else h[:, -1:], self.embed.weight)

    return Llama


def greedy(torch, model, prompts, n_new=96, device="cpu"):
    """Greedy text of many prompts at once, left padded."""
    out = []
    model.eval()
    with torch.no_grad():
        for at in range(0, len(prompts), 256):
            part = prompts[at : at + 256]
            width = max(map(len, part))
            ids = torch.full((len(part), width), END)
            for i, p in enumerate(part):
                ids[i, width - len(p) :] = torch.tensor(p)
            ids = ids.to(device)
            pad = torch.tensor([width - len(p) for p in part], device=device)
            pos = (torch.arange(width, device=device)[None] - pad[:, None]).clamp(min=0)
            caches = [dict(k=[], v=[]) for _ in model.blocks]
            keys = torch.arange(width + n_new, device=device)
            real = keys[None] >= pad[:, None]
            m = real[:, None, None, :width] & (keys[:width][None] <= keys[:width][:, None])[None, None]
            m = m | torch.eye(width, dtype=torch.bool, device=device)[None, None]
            for c in caches:
                c["mask"] = m
            logits = model(ids, pos, caches)[:, -1]
            got = [[] for _ in part]
            done = torch.zeros(len(part), dtype=torch.bool, device=device)
            for step in range(n_new):
                nxt = logits.argmax(-1)
                done |= nxt == END
                for i, t in enumerate(nxt.tolist()):
                    if not done[i]:
                        got[i].append(t)
                if bool(done.all()):
                    break
                for c in caches:
                    c["mask"] = real[:, None, None, : width + step + 1]
                    c["k"], c["v"] = [torch.cat(c["k"], 2)], [torch.cat(c["v"], 2)]
                logits = model(nxt[:, None], (width + step - pad)[:, None], caches)[:, -1]
            out += got
    return out


def nll(torch, model, rows, device):
    """Mean loss per weighted token of (ids, weights) rows."""
    tot = n = 0.0
    with torch.no_grad():
        for ids, w in rows:
            x = torch.tensor(ids, device=device).long()[None]
            lp = torch.log_softmax(model(x)[0, :-1].float(), -1).gather(1, x[0, 1:, None])[:, 0]
            k = (torch.tensor(w, device=device)[1:] == 10).float()
            tot -= float((lp * k).sum())
            n += float(k.sum())
    return tot / n


# ------------------------------------------------------------------ stories


def sample_stories(data, work, n, device):
    """Samples simple stories from stories15M (llama2.c weights) with the GPU."""
    import sentencepiece as spm
    import torch

    z = np.load(data / "stories15M.npz")
    dim, ffn, layers, heads, kv, vocab, seq = (int(x) for x in z["cfg"])
    vocab = abs(vocab)
    w = torch.from_numpy(z["w"].astype(np.float32))
    at = 0

    def take(*shape):
        nonlocal at
        k = math.prod(shape)
        t = w[at : at + k].view(*shape)
        at += k
        return t.to(device)

    hd = dim // heads
    emb = take(vocab, dim)
    an, wq, wk, wv, wo = take(layers, dim), take(layers, dim, dim), take(layers, kv * hd, dim), take(layers, kv * hd, dim), take(layers, dim, dim)
    fn, w1, w2, w3, on = take(layers, dim), take(layers, ffn, dim), take(layers, dim, ffn), take(layers, ffn, dim), take(dim)
    f = 1.0 / (10000 ** (torch.arange(0, hd, 2).float() / hd))
    ang = torch.arange(seq).float()[:, None] * f
    cos, sin = ang.cos().to(device), ang.sin().to(device)
    F = torch.nn.functional

    def rot(x, p):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos[p] - b * sin[p], a * sin[p] + b * cos[p]], -1).flatten(-2)

    sp = spm.SentencePieceProcessor(model_file=str(data / "stories15M.model"))
    torch.manual_seed(SEED)
    out, batch = [], min(n, 4096)
    dt = torch.bfloat16 if device == "cuda" else torch.float32
    cast = lambda t: t.to(dt)
    emb, wq, wk, wv, wo, w1, w2, w3 = map(cast, (emb, wq, wk, wv, wo, w1, w2, w3))
    an, fn, on, cos, sin = map(cast, (an, fn, on, cos, sin))
    with torch.no_grad():
        while len(out) < n:
            K = torch.zeros(layers, batch, heads, seq, hd, device=device, dtype=dt)
            V = torch.zeros_like(K)
            tok = torch.ones(batch, dtype=torch.long, device=device)
            hist = []
            for p in range(seq):
                x = emb[tok]
                for i in range(layers):
                    y = F.rms_norm(x, (dim,), an[i], 1e-5)
                    q = rot((y @ wq[i].T).view(batch, heads, 1, hd), p)
                    K[i][:, :, p] = rot((y @ wk[i].T).view(batch, heads, 1, hd), p)[:, :, 0]
                    V[i][:, :, p] = (y @ wv[i].T).view(batch, heads, hd)
                    o = F.scaled_dot_product_attention(q, K[i][:, :, : p + 1], V[i][:, :, : p + 1])
                    x = x + o.reshape(batch, dim) @ wo[i].T
                    y = F.rms_norm(x, (dim,), fn[i], 1e-5)
                    x = x + (F.silu(y @ w1[i].T) * (y @ w3[i].T)) @ w2[i].T
                lg = (F.rms_norm(x, (dim,), on, 1e-5) @ emb.T).float() / 0.8
                top = lg.topk(40, -1)
                pick = torch.multinomial(torch.softmax(top.values, -1), 1)
                tok = top.indices.gather(1, pick)[:, 0]
                hist.append(tok)
            for row in torch.stack(hist, 1).tolist():
                cut = [i for i, t in enumerate(row) if t in (1, 2)]
                row = row[: cut[0]] if cut else row
                s = sp.decode(row).strip()
                if not cut:  # unfinished: end at the last full sentence
                    s = s[: max(s.rfind("."), s.rfind("!"), s.rfind("?"), s.rfind('"')) + 1]
                if len(s) > 60:
                    out.append(s.replace("\n", "\\n"))
    (work / "stories.txt").write_text("\n".join(out[:n]) + "\n")


# ------------------------------------------------------------------ training


class Batches:
    """Rows of like length together, so that little is padding; drawn epoch after epoch."""

    EDGES = [64, 96, 128, 160, 192, 256, 384, 512, 768, 1024]

    def __init__(self, ids, wts, lens, tokens, seed):
        self.ids, self.wts, self.tokens = ids, wts, tokens
        self.lens = lens
        self.start = np.concatenate([[0], np.cumsum(lens.astype(np.int64))])[:-1]
        self.rng = np.random.default_rng(seed)
        bucket = np.searchsorted(self.EDGES, lens)
        self.groups = [(self.EDGES[b], np.flatnonzero(bucket == b)) for b in range(len(self.EDGES)) if (bucket == b).any()]

    def __iter__(self):
        while True:
            jobs = []
            for width, idx in self.groups:
                p = self.rng.permutation(idx)
                n = max(1, self.tokens // width)
                jobs += [(width, p[i : i + n]) for i in range(0, len(p), n)]
            for j in self.rng.permutation(len(jobs)):
                width, rows = jobs[j]
                x = np.full((len(rows), width), END, np.int64)
                w = np.zeros((len(rows), width), np.float32)
                for i, r in enumerate(rows):
                    s, k = self.start[r], self.lens[r]
                    x[i, :k] = self.ids[s : s + k]
                    w[i, :k] = self.wts[s : s + k]
                yield x, w


def prefetch(it, depth=8):
    import queue
    import threading

    q = queue.Queue(depth)

    def run():
        for x in it:
            q.put(x)

    threading.Thread(target=run, daemon=True).start()
    while True:
        yield q.get()


def fit(torch, model, batches, steps, lr, device, teacher=None, max_seconds=1e9, name=""):
    F = torch.nn.functional
    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW([dict(params=decay, weight_decay=0.1), dict(params=rest, weight_decay=0.0)], lr=lr, betas=(0.9, 0.95), eps=1e-9, fused=device == "cuda")
    t0, seen, log = time.time(), 0, []
    amp = torch.autocast(device, torch.bfloat16)
    model.train()
    for step, (x, w) in enumerate(batches):
        done = max(step / steps, (time.time() - t0) / max_seconds)
        if done >= 1:
            break
        rate = lr * min(1.0, (step + 1) / min(200, steps * 0.1)) * (0.5 + 0.5 * math.cos(math.pi * done))
        for g in opt.param_groups:
            g["lr"] = rate
        x = torch.from_numpy(x).to(device, non_blocking=True)
        w = torch.from_numpy(w).to(device, non_blocking=True)[:, 1:].reshape(-1) / 10
        with amp:
            h = model.hidden(x[:, :-1])
            keep = w.nonzero()[:, 0]
            h = h.reshape(-1, h.shape[-1])[keep]
            logits = F.linear(h, model.embed.weight)
            tgt, ww = x[:, 1:].reshape(-1)[keep], w[keep]
            ce = F.cross_entropy(logits.float(), tgt, reduction="none")
            loss = (ce * ww).sum() / ww.sum()
            if teacher is not None:
                with torch.no_grad():
                    th = teacher.hidden(x[:, :-1])
                    th = th.reshape(-1, th.shape[-1])[keep]
                    tp = torch.softmax(F.linear(th, teacher.embed.weight).float(), -1)
                kd = -(tp * torch.log_softmax(logits.float(), -1)).sum(-1)
                loss = 0.2 * loss + 0.8 * (kd * ww).sum() / ww.sum()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        seen += x.numel()
        if step % 200 == 0 or step < 3:
            print(f"{name} step {step} loss {float(loss):.4f} lr {rate:.2e} {seen / 1e6:.1f} M tokens {time.time() - t0:.0f} s", flush=True)
    print(f"{name} end: step {step} loss {float(loss):.4f} {seen / 1e6:.1f} M tokens {time.time() - t0:.0f} s", flush=True)
    return dict(steps=step, tokens_m=round(seen / 1e6, 1), seconds=round(time.time() - t0), loss=round(float(loss), 4))


def evaluate(torch, model, work, data, device, quick=False):
    fm = Format(tokenizer(work))
    held = held_out()[: 40 if quick else None]
    got = greedy(torch, model, [fm.prompt(h["context"]) for h in held], device=device)
    said = [fm.sp.decode(g) for g in got]
    good = [rc.ok(s, h["must"]) for s, h in zip(said, held)]
    rows = []
    for h in held[:200]:
        a, b = fm.turn(h["context"], h["reply"])
        rows.append(([BOS] + a, [0] + b))
    fig = dict(contexts=len(held), correct=sum(good), correct_pct=round(100 * sum(good) / len(held), 2), exact_pct=round(100 * sum(s == h["reply"] for s, h in zip(said, held)) / len(held), 2),
               reply_ppl=round(math.exp(nll(torch, model, rows, device)), 3))
    texts = json.load(open(data / "reply-texts.json"))["wiki"]
    tail = [p for a in texts[len(texts) * 9 // 10 :] for p in a][:60]
    plain = {"wiki": tail}
    if (work / "stories.txt").exists():
        st = open(work / "stories.txt").read().split("\n")[:-1]
        plain["story"] = [s.replace("\\n", "\n") for s in st[-held_stories(st) :]][:100]
    for k, tt in plain.items():
        r = [([BOS] + fm.sp.encode(t)[:500], None) for t in tt]
        fig[k + "_ppl"] = round(math.exp(nll(torch, model, [(a, [0] + [10] * (len(a) - 1)) for a, _ in r], device)), 2)
    bad = [dict(context=h["context"], said=s, must=h["must"]) for s, h, g in zip(said, held, good) if not g]
    return fig, bad, said


def agreement(torch, big, small, work, said, device):
    """How often the draft's next token is the one reply chooses, which is the gain of speculation."""
    fm = Format(tokenizer(work))
    same = n = 0
    with torch.no_grad():
        for h, s in list(zip(held_out(), said))[:200]:
            p = fm.prompt(h["context"])
            x = torch.tensor(p + fm.sp.encode(s) + [END], device=device)[None]
            a = big(x).argmax(-1)[0, len(p) - 1 : -1]
            b = small(x).argmax(-1)[0, len(p) - 1 : -1]
            same += int((a == b).sum())
            n += len(a)
    return round(100 * same / n, 2)


def save(torch, model, path):
    from safetensors.torch import save_file

    save_file({k: p.detach().half().cpu().contiguous() for k, p in model.state_dict().items()}, str(path))


def train(a):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    data, work = pathlib.Path(a.data), pathlib.Path(a.work)
    work.mkdir(parents=True, exist_ok=True)
    t0 = time.time()

    def say(s):
        print(f"[{time.time() - t0:6.1f} s] {s}", flush=True)

    if a.stories and not (work / "stories.txt").exists():
        sample_stories(data, work, a.stories, device)
        say("stories sampled")
    if not (work / "vocab.model").exists():
        train_vocab(data, work, a.vocab_samples)
        say("vocabulary trained")
    load_texts(data)
    ids, wts, lens = corpus(data, work, a.samples, a.workers)
    say(f"corpus: {len(lens)} rows, {len(ids) / 1e6:.1f} M tokens")
    Llama = build(torch)
    figures = {}
    model = Llama(REPLY).to(device)
    say(f"reply: {sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")
    feed = iter(prefetch(iter(Batches(ids, wts, lens, a.tokens, SEED))))
    figures["reply"] = fit(torch, model, feed, a.steps, a.lr, device, max_seconds=a.reply_seconds, name="reply")
    save(torch, model, work / "reply.safetensors")
    fig, bad, said = evaluate(torch, model, work, data, device, a.quick)
    figures["reply"].update(fig)
    say("reply " + json.dumps(fig))
    for b in bad[:8]:
        print("  wrong:", json.dumps(b))
    draft = Llama(DRAFT).to(device)
    say(f"draft: {sum(p.numel() for p in draft.parameters()) / 1e6:.2f} M parameters")
    model.eval()
    feed = iter(prefetch(iter(Batches(ids, wts, lens, a.tokens, SEED + 1))))
    figures["reply-draft"] = fit(torch, draft, feed, a.draft_steps, a.lr * 1.5, device, teacher=model, max_seconds=a.draft_seconds, name="draft")
    save(torch, draft, work / "reply-draft.safetensors")
    fig, bad, _ = evaluate(torch, draft, work, data, device, a.quick)
    fig["next_token_agreement_pct"] = agreement(torch, model, draft, work, said, device)
    figures["reply-draft"].update(fig)
    say("draft " + json.dumps(fig))
    json.dump(figures, open(work / "reply-figures.json", "w"), indent=1)
    json.dump(dict(said=said, bad=bad), open(work / "reply-said.json", "w"))
    fm = Format(tokenizer(work))
    for p in ("Once upon a time", "The little dog", "The pump in the basement", "The weather today"):
        print("  completes:", p, "->", fm.sp.decode(greedy(torch, model, [[BOS] + fm.sp.encode(p)], 40, device)[0]))
    say("all done")


# ------------------------------------------------------------------ export


def export_one(work, name, cfg, out, kind, described):
    from safetensors.numpy import load_file

    import gguf_out

    w = load_file(str(work / f"{name}.safetensors"))
    sp = tokenizer(work)
    n = range(VOCAB)
    kinds = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in n]
    meta = {
        "general.architecture": "llama", "general.name": "shoal-" + name, "general.description": described, "general.license": "cc-by-sa-4.0",
        "general.file_type": {"F16": 1, "Q8_0": 7, "Q4_0": 2}[kind], "general.quantization_version": 2,
        "llama.context_length": CTX, "llama.embedding_length": cfg["dim"], "llama.block_count": cfg["layers"], "llama.feed_forward_length": cfg["ffn"],
        "llama.attention.head_count": cfg["heads"], "llama.attention.head_count_kv": cfg["kv"], "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": 64, "llama.rope.freq_base": 10000.0, "llama.vocab_size": VOCAB,
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": [sp.id_to_piece(i) for i in n], "tokenizer.ggml.scores": [float(sp.get_score(i)) for i in n],
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": BOS, "tokenizer.ggml.eos_token_id": END, "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False, "tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.remove_extra_whitespaces": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    names = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
    tensors = [("token_embd.weight", w["embed.weight"], kind)]
    for i in range(cfg["layers"]):
        for ours, theirs in names.items():
            x = w[f"blocks.{i}.{ours}.weight"]
            tensors.append((f"blk.{i}.{theirs}.weight", x, "F32" if x.ndim == 1 else kind))
    tensors.append(("output_norm.weight", w["norm.weight"], "F32"))
    gguf_out.write(out, meta, tensors)


def peer(path, prompts):
    """Greedy ids of llama.cpp (bench/build-peer), the engine that others will run the file with."""
    import subprocess

    with subprocess.Popen(["build/peer_llama"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:

        def ask(**q):
            p.stdin.write(json.dumps(dict(id=1, **q)) + "\n")
            p.stdin.flush()
            r = json.loads(p.stdout.readline())
            assert r["ok"], r
            return r

        ask(op="load", model=str(path), threads=1, ctx=CTX)
        out = [ask(op="generate", tokens=x, n=96)["tokens"] for x in prompts]
        ask(op="quit")
    return out


def export(a):
    data, work, out = pathlib.Path(a.data), pathlib.Path(a.work), pathlib.Path(a.out)
    load_texts(data)
    out.mkdir(exist_ok=True)
    held = held_out()
    with open(pathlib.Path(__file__).parent / "data" / "reply-heldout.jsonl", "w") as f:
        for h in held:
            f.write(json.dumps(h, ensure_ascii=False) + "\n")
    figures = json.load(open(work / "reply-figures.json"))
    fm = Format(tokenizer(work))
    prompts = [fm.prompt(h["context"]) for h in held]
    for name, cfg, what in (("reply", REPLY, "Turns a structured context into one or two English sentences"), ("reply-draft", DRAFT, "Drafts for reply; same vocabulary")):
        export_one(work, name, cfg, out / f"{name}.gguf", "Q8_0", what)
        b = (out / f"{name}.gguf").read_bytes()
        print(name, len(b), hashlib.sha256(b).hexdigest(), flush=True)
        for kind in ("F16", "Q8_0", "Q4_0"):
            path = work / f"{name}-{kind}.gguf"
            export_one(work, name, cfg, path, kind, what)
            said = [fm.sp.decode(x) for x in peer(path, prompts)]
            good = [rc.ok(s, h["must"]) for s, h in zip(said, held)]
            figures[name][kind + "_correct_pct"] = round(100 * sum(good) / len(held), 2)
            print(name, kind, f"{sum(good)} of {len(held)} correct with llama.cpp", flush=True)
            for s, h, g in zip(said, held, good):
                if not g and kind == "Q8_0":
                    print("   wrong:", h["context"].replace("\n", " // "), "=>", s)
            json.dump(said, open(work / f"{name}-{kind}-said.json", "w"))
    json.dump(figures, open(work / "reply-figures.json", "w"), indent=1)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["train", "export"])
    ap.add_argument("--data", default=".cache/train-data")
    ap.add_argument("--work", default=".cache/train-reply")
    ap.add_argument("--out", default="models")
    ap.add_argument("--stories", type=int, default=60000)
    ap.add_argument("--vocab-samples", type=int, default=120000)
    ap.add_argument("--samples", type=int, default=1200000)
    ap.add_argument("--workers", type=int, default=os.cpu_count())
    ap.add_argument("--tokens", type=int, default=65536, help="tokens per step")
    ap.add_argument("--steps", type=int, default=6000)
    ap.add_argument("--draft-steps", type=int, default=3000)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--reply-seconds", type=float, default=1e9, help="stop early, with the rate decayed, after so long")
    ap.add_argument("--draft-seconds", type=float, default=1e9)
    ap.add_argument("--quick", action="store_true")
    args = ap.parse_args()
    (train if args.what == "train" else export)(args)
