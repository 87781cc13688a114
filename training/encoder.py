#!/usr/bin/env python3
"""Trains the encoder that intent, router, entities, embed and summary share.

    training/encoder.py vocab     # data/encoder-vocab.txt, once
    training/encoder.py all       # arrays, two teachers beside the distillation, one student; 6 minutes on one H200
    training/encoder.py export    # models/encoder/

A stock BERT of 3 layers starts from the folder of --start (an earlier encoder), or from layers of
all-MiniLM-L6-v2 (pieces, feed-forward neurons and layers left out). It learns MiniLM's vectors of plain
text and of queries with their passages, then all tasks at once from two fine-tuned MiniLM teachers.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import encoder_data as ed  # noqa: E402
import home  # noqa: E402

F, nn = torch.nn.functional, torch.nn
SEED = 31337
HERE = pathlib.Path(__file__).parent
VOCAB = 8192
STUDENT = dict(hidden=384, layers=3, heads=12, ffn=640, positions=ed.POSITIONS)
TEACHER = dict(hidden=384, layers=6, heads=12, ffn=1536, positions=512)
FROM_LAYERS = (0, 2, 5)
WIDTH, WORDS = 64, 52  # pieces and words of a labelled sample
QUOTA = dict(snips=112, atis=48, clinc150=112, oos=48, home=72, wnut17=56, names=72)
CASED = ("wnut17", "names")  # sets of samples whose capitals are read
INTENT_SETS = ["snips", "atis", "clinc150", "combined", "router"]
LIMIT = None  # rows measured; a number for smoke tests
TAG_SETS = ["snips", "atis", "home", "wnut17"]
# The kinds of names in other sets, and the tags of wnut17 that may stand for each; MISC says nothing.
NAME_KINDS = {"PER": ["person"], "LOC": ["location"], "ORG": ["corporation", "group"]}
NAME_TAGS = ["O"] + [p + k for k in NAME_KINDS for p in ("B-", "I-")]


# ------------------------------------------------------------------ labels


def label_sets(data):
    snips, atis, clinc = (ed.rows(data / f"{s}.train.jsonl") for s in ("snips", "atis", "clinc150"))
    wnut = ed.rows(data / "wnut17.train.jsonl")
    intents = dict(snips=sorted({r["label"] for r in snips}), atis=sorted({r["label"] for r in atis}), clinc150=sorted({r["label"] for r in clinc}) + ["oos"])
    both = {ed.combined(x) for s in ("snips", "clinc150") for x in intents[s]} | {x for x in intents["atis"] if "#" not in x} | set(home.LABELS)
    intents["combined"] = sorted(x for x in both if x)
    intents["router"] = list(ed.DOMAIN)
    bio = lambda types: ["O"] + [p + t for t in sorted(types) for p in ("B-", "I-")]
    kinds = lambda rs: {t[2:] for r in rs for t in r["tags"] if t != "O"}
    tags = dict(snips=bio(kinds(snips)), atis=bio(kinds(atis)), home=bio(home.TAGS), wnut17=bio(kinds(wnut)))
    return intents, tags


class Ranges:
    """The row range of each label set in a head."""

    def __init__(self, sets, order):
        self.at, n = {}, 0
        for s in order:
            self.at[s] = (n, n + len(sets[s]))
            n += len(sets[s])
        self.n = n
        self.id = {s: {x: i for i, x in enumerate(sets[s])} for s in order}


# ------------------------------------------------------------------ model, with the names of a stock BERT


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["hidden"]
        one = nn.Module()
        one.query, one.key, one.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.add_module("self", one)
        self.output = nn.Module()
        self.output.dense, self.output.LayerNorm = nn.Linear(d, d), nn.LayerNorm(d, eps=1e-12)
        self.heads = c["heads"]

    def forward(self, x, mask, drop):
        b, t, d = x.shape
        one = getattr(self, "self")
        q, k, v = (m(x).view(b, t, self.heads, -1).transpose(1, 2) for m in (one.query, one.key, one.value))
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=drop if self.training else 0.0)
        o = self.output.dense(o.transpose(1, 2).reshape(b, t, d))
        return self.output.LayerNorm(x + F.dropout(o, drop, self.training))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["hidden"]
        self.attention = Attention(c)
        self.intermediate, self.output = nn.Module(), nn.Module()
        self.intermediate.dense = nn.Linear(d, c["ffn"])
        self.output.dense, self.output.LayerNorm = nn.Linear(c["ffn"], d), nn.LayerNorm(d, eps=1e-12)

    def forward(self, x, mask, drop):
        x = self.attention(x, mask, drop)
        y = self.output.dense(F.gelu(self.intermediate.dense(x)))
        return self.output.LayerNorm(x + F.dropout(y, drop, self.training))


class Bert(nn.Module):
    def __init__(self, c, vocab):
        super().__init__()
        d = c["hidden"]
        e = self.embeddings = nn.Module()
        e.word_embeddings, e.position_embeddings, e.token_type_embeddings = nn.Embedding(vocab, d), nn.Embedding(c["positions"], d), nn.Embedding(ed.CASES, d)
        e.LayerNorm = nn.LayerNorm(d, eps=1e-12)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.pooler = nn.Module()
        self.pooler.dense = nn.Linear(d, d)
        self.drop = 0.1

    def forward(self, ids, cases=None):
        real = ids != 0
        e = self.embeddings
        case = e.token_type_embeddings.weight[0] if cases is None else e.token_type_embeddings(cases)
        x = e.word_embeddings(ids) + e.position_embeddings.weight[: ids.shape[1]] + case
        x = F.dropout(e.LayerNorm(x), self.drop, self.training)
        mask = real[:, None, None, :]
        for layer in self.encoder.layer:
            x = layer(x, mask, self.drop)
        return x, real


class Tasks(nn.Module):
    """The body with its heads: classifier (all intent sets), tagger (all tag sets), mean vector."""

    def __init__(self, c, vocab, n_intent, n_tag):
        super().__init__()
        self.bert = Bert(c, vocab)
        self.classifier = nn.Linear(c["hidden"], n_intent)
        self.tagger = nn.Linear(c["hidden"], n_tag)
        nn.init.normal_(self.classifier.weight, std=0.02)
        nn.init.normal_(self.tagger.weight, std=0.02)

    def intents(self, h):
        p = torch.tanh(self.bert.pooler.dense(h[:, 0]))
        return self.classifier(F.dropout(p, 0.1, self.training))

    def tags(self, words):
        return self.tagger(F.dropout(words, 0.1, self.training))


def mean_vector(h, real):
    r = real[..., None].to(h.dtype)
    return F.normalize((h * r).sum(1).float() / r.sum(1).float(), dim=-1)


def first_pieces(h, first):
    return h.gather(1, first.clamp(min=0).long()[..., None].expand(-1, -1, h.shape[-1]))


# ------------------------------------------------------------------ starting points


def neutral_cases(w, name):
    """Capitals start without effect, all with row 0: MiniLM's second row is for the second of two texts."""
    if len(w[name]) < ed.CASES:
        w[name] = w[name][:1].repeat(ed.CASES, 1)


def load_minilm(folder):
    from safetensors.torch import load_file

    w = {k: x.float() for k, x in load_file(str(folder / "model.fp16.safetensors")).items() if "position_ids" not in k}
    neutral_cases(w, "embeddings.token_type_embeddings.weight")
    tok = json.load(open(folder / "tokenizer.json"))["model"]["vocab"]
    return w, [t for t, _ in sorted(tok.items(), key=lambda x: x[1])]


def shrink(w, base, vocab, sample_ids, device):
    """Weights of the student cut out of MiniLM: pieces by name, layers by number, neurons by use."""
    full = Bert(TEACHER, len(base))
    full.load_state_dict(w)
    full.to(device).eval()
    use = [torch.zeros(TEACHER["ffn"], device=device) for _ in full.encoder.layer]
    hooks = [l.intermediate.dense.register_forward_hook(lambda m, i, o, n=n: use[n].add_(F.gelu(o).float().abs().mean((0, 1)))) for n, l in enumerate(full.encoder.layer)]
    with torch.no_grad():
        for at in range(0, len(sample_ids), 512):
            full(sample_ids[at : at + 512].to(device).long())
    for h in hooks:
        h.remove()
    at = {t: i for i, t in enumerate(base)}
    out = {k: x for k, x in w.items() if not k.startswith("encoder.")}
    out["embeddings.word_embeddings.weight"] = w["embeddings.word_embeddings.weight"][[at[t] for t in vocab]]
    out["embeddings.position_embeddings.weight"] = w["embeddings.position_embeddings.weight"][: STUDENT["positions"]]
    for n, src in enumerate(FROM_LAYERS):
        p, q = f"encoder.layer.{src}.", f"encoder.layer.{n}."
        worth = use[src].cpu() * w[p + "output.dense.weight"].norm(dim=0)
        keep = worth.topk(STUDENT["ffn"]).indices.sort().values
        for k, x in w.items():
            if k.startswith(p):
                name = k[len(p) :]
                if name.startswith("intermediate"):
                    x = x[keep]
                elif name == "output.dense.weight":
                    x = x[:, keep]
                out[q + name] = x
    return out


# ------------------------------------------------------------------ arrays


def encode_shard(job):
    """Labelled samples as padded arrays; runs in a worker."""
    data, seed, n_aug, n_home, n_oos, vocab, base, intents, tags, part, parts = job
    s = ed.train_samples(pathlib.Path(data), seed, n_aug, n_home, n_oos)
    if part:  # the plain copies are in part 0 only
        random.Random(seed).shuffle(s)
    return encode_samples(s, vocab, base, intents, tags)


def encode_samples(s, vocab, base, intents, tags):
    sp, tp = ed.Pieces(vocab), ed.Pieces(base)
    ri = {x: {y: i for i, y in enumerate(v)} for x, v in intents.items()}
    rt = {x: {y: i for i, y in enumerate(v)} for x, v in tags.items()}
    n = len(s)
    a = dict(s=np.zeros((n, WIDTH), np.int16), t=np.zeros((n, WIDTH), np.int16), sc=np.zeros((n, WIDTH), np.uint8), tc=np.zeros((n, WIDTH), np.uint8), sf=np.zeros((n, WORDS), np.int16), tf=np.zeros((n, WORDS), np.int16), tag=np.full((n, WORDS), -1, np.int16),
             lab=np.full((n, len(INTENT_SETS)), -1, np.int16), src=np.zeros(n, np.int8), len=np.zeros(n, np.int16))
    names = list(QUOTA)
    names_of = {t: k for k, t in enumerate(NAME_TAGS)}
    for i, x in enumerate(s):
        words = x["words"][:WORDS]
        ids, first = sp.encode(words, WIDTH)
        tid, tfirst = tp.encode(words, WIDTH)
        a["s"][i, : len(ids)] = ids
        a["t"][i, : len(tid)] = tid
        a["sf"][i, : len(first)] = first
        a["tf"][i, : len(tfirst)] = tfirst
        if x["source"] in CASED:
            for k, of, total in (("sc", first, len(ids)), ("tc", tfirst, len(tid))):
                c = ed.cases(words, of, total)
                a[k][i, : len(c)] = c
        a["src"][i] = names.index(x["source"])
        a["len"][i] = max(len(ids), len(tid))
        if x["tags"]:
            ids = names_of if x["source"] == "names" else rt[x["source"]]
            for j, t in enumerate(x["tags"][:WORDS]):
                if first[j] >= 0 and tfirst[j] >= 0:
                    a["tag"][i, j] = ids.get(t, -1)
        for k, name in enumerate(INTENT_SETS):
            if name in x["labels"]:
                a["lab"][i, k] = ri[name].get(x["labels"][name], -1)
    return a


def text_shard(job):
    texts, vocab, base = job
    sp, tp = ed.Pieces(vocab), ed.Pieces(base)
    out = {32: [], 64: [], 128: [], 256: []}
    for t in texts:
        words = t.split()[:220]
        ids, first = sp.encode(words, 256)
        tid, tfirst = tp.encode(words, 256)
        n = max(len(ids), len(tid))
        w = next(w for w in out if n <= w)
        row = np.zeros((3, w), np.int16)
        row[0, : len(ids)] = ids
        row[1, : len(tid)] = tid
        m = min(w, len(words))
        pairs = [(f, g) for f, g in zip(first, tfirst) if f > 0 and g > 0][:m]
        al = np.zeros((2, w), np.int16)
        for j, (f, g) in enumerate(pairs):
            al[0, j], al[1, j] = f, g
        out[w].append(np.concatenate([row[:2], al]))
    return {w: np.stack(x) if x else np.zeros((0, 4, w), np.int16) for w, x in out.items()}


# ------------------------------------------------------------------ losses



def set_loss(x, y, soft, alpha, smooth, temp):
    """Cross entropy of logits x against y (-1: not counted), distilled from the logits `soft` if given."""
    m = y >= 0
    n = m.sum().clamp(min=1)
    loss = F.cross_entropy(x, y, ignore_index=-1, label_smoothing=smooth, reduction="sum") / n
    if soft is None:
        return loss
    t = torch.softmax(soft.float() / temp, -1)
    kd = -((t * torch.log_softmax(x / temp, -1)).sum(-1) * m).sum() / n * temp
    return (1 - alpha) * loss + alpha * kd


def task_loss(lg, tg, b, ri, rt, soft=None, alpha=0.0, smooth=0.0, temp=2.0):
    """Cross entropy inside each label set; with soft=(intents, tags) of the teachers, distilled too.

    Masks instead of selections: a selection would wait for the device."""
    total, parts = 0.0, {}
    for k, name in enumerate(INTENT_SETS):
        lo, hi = ri.at[name]
        loss = set_loss(lg[:, lo:hi].float(), b["lab"][:, k].long(), soft and soft[0][:, lo:hi], alpha, smooth, temp)
        parts[name] = loss.detach()
        total = total + {"combined": 0.7, "router": 0.3}.get(name, 1.0) * loss
    for name in TAG_SETS:
        (a, z), (lo, hi) = b["rows"][name], rt.at[name]
        x, y = tg[a:z, :, lo:hi].float(), b["tag"][a:z].long()
        loss = set_loss(x.flatten(0, 1), y.flatten(), soft and soft[1][a:z, :, lo:hi].flatten(0, 1), alpha, 0.0, temp)
        parts["tag-" + name] = loss.detach()
        total = total + 2.0 * loss
    (a, z), (lo, hi) = b["rows"]["names"], rt.at["wnut17"]
    y = b["tag"][a:z].long()
    m = y >= 0
    x = torch.log_softmax(tg[a:z, :, lo:hi].float(), -1)
    loss = -(torch.logsumexp(x + b["allowed"][y.clamp(min=0)], -1) * m).sum() / m.sum()
    if soft is not None:
        t = torch.softmax(soft[1][a:z, :, lo:hi].float(), -1)
        loss = (1 - alpha) * loss - alpha * ((t * x).sum(-1) * m).sum() / m.sum()
    parts["tag-names"] = loss.detach()
    return total + 2.0 * loss, parts


def allowed_tags(rt, device):
    """[NAME_TAGS, wnut17 tags]: 0 where the first may be the second, else a large negative number."""
    out = torch.full((len(NAME_TAGS), len(rt.id["wnut17"])), -1e4, device=device)
    covered = {k for ks in NAME_KINDS.values() for k in ks}
    for t, i in rt.id["wnut17"].items():
        if t[2:] not in covered:  # O, products and works are O in the other sets
            out[0, i] = 0
        for n, kind in enumerate(NAME_TAGS):
            if n and t[:2] == kind[:2] and t[2:] in NAME_KINDS[kind[2:]]:
                out[n, i] = 0
    return out


class Stream:
    """Batches with a fixed share of every source, all arrays on the device."""

    def __init__(self, a, device, seed, allowed):
        self.allowed = allowed
        self.dev = {k: torch.from_numpy(v).to(device) for k, v in a.items() if k != "len"}
        self.len = a["len"]
        self.rng = np.random.default_rng(seed)
        self.idx = {s: np.flatnonzero(a["src"] == i) for i, s in enumerate(QUOTA)}
        self.perm = {s: self.rng.permutation(x) for s, x in self.idx.items()}
        self.pos = collections.Counter()

    def next(self, scale=1.0):
        out = []
        for s, q in QUOTA.items():
            q = max(2, int(q * scale))
            if self.pos[s] + q > len(self.perm[s]):
                self.perm[s] = self.rng.permutation(self.idx[s])
                self.pos[s] = 0
            out.append(self.perm[s][self.pos[s] : self.pos[s] + q])
            self.pos[s] += q
        rows = np.concatenate(out)
        w = min(WIDTH, (int(self.len[rows].max()) + 7) // 8 * 8)
        i = torch.from_numpy(rows).to(self.dev["s"].device)
        b = {k: v[i] for k, v in self.dev.items()}
        for k in ("s", "t", "sc", "tc"):
            b[k] = b[k][:, :w].int()
        ends = np.cumsum([len(x) for x in out]).tolist()
        b["rows"] = {s: (e - len(x), e) for s, x, e in zip(QUOTA, out, ends)}
        b["allowed"] = self.allowed
        return b


class Texts:
    def __init__(self, groups, device, seed, batch_pieces):
        self.g = {w: torch.from_numpy(x).to(device) for w, x in groups.items() if len(x) >= 32}
        self.rng = np.random.default_rng(seed)
        self.w = list(self.g)
        share = np.array([len(self.g[w]) * (w**0.5) for w in self.w])
        self.p = share / share.sum()
        self.pieces = batch_pieces

    def next(self):
        w = self.w[self.rng.choice(len(self.w), p=self.p)]
        x = self.g[w]
        i = torch.from_numpy(self.rng.integers(0, len(x), max(16, self.pieces // w))).to(x.device)
        r = x[i].int()
        return r[:, 0], r[:, 1], r[:, 2], r[:, 3]


def text_loss(student, minilm, batch):
    """MiniLM's vector of the text, its vectors of the words, and their neighbours."""
    s, t, sf, tf = batch
    with torch.no_grad():
        th, treal = minilm(t)
        tv = mean_vector(th, treal)
        tw = first_pieces(th, tf)
    h, real = student(s)
    v = mean_vector(h, real)
    m = (sf > 0)[..., None]
    w = first_pieces(h, sf)
    word = (((w - tw).float() ** 2) * m).sum() / (m.sum() * w.shape[-1])
    with torch.autocast(v.device.type, enabled=False):
        sim_s, sim_t = v @ v.T, tv @ tv.T
    eye = torch.eye(len(v), device=v.device) * 1e4
    near = F.kl_div(torch.log_softmax(sim_s / 0.05 - eye, -1), torch.softmax(sim_t / 0.05 - eye, -1), reduction="batchmean")
    cos = (1 - (v * tv).sum(-1)).mean()
    return 4 * cos + word + 0.5 * near, cos.detach()


def pair_shard(job):
    """Queries and passages as pieces of both vocabularies, with their numbers of pieces."""
    pairs, vocab, base = job
    n = len(pairs)
    out = {}
    for side, width in ((0, 64), (1, ed.POSITIONS)):
        for name, pieces in (("s", ed.Pieces(vocab)), ("t", ed.Pieces(base))):
            a, count = np.zeros((n, width), np.int16), np.zeros(n, np.int16)
            for i, x in enumerate(pairs):
                ids = pieces.encode(x[side].split()[:400], width)[0]
                a[i, : len(ids)] = ids
                count[i] = len(ids)
            out[f"{name}{side}"], out[f"{name}{side}n"] = a, count
    return out


class Pairs:
    """Queries with their passages, MiniLM's vectors of both, and the passages that lie nearest to each."""

    def __init__(self, arrays, ids, common, minilm, device, seed):
        """common: which pairs are of the most common kind; they are drawn half of the time."""
        self.rng = np.random.default_rng(seed)
        self.kinds = [x for x in (np.flatnonzero(common), np.flatnonzero(~common)) if len(x)]
        self.a = {k: torch.from_numpy(x).to(device) for k, x in arrays.items() if not k.endswith("n")}
        self.n = {k: x for k, x in arrays.items() if k.endswith("n")}
        self.id = torch.from_numpy(ids).to(device)
        self.size = len(ids)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16):
            run = lambda k: torch.cat([mean_vector(*minilm(self.cut(k, np.arange(at, min(at + 512, self.size))))).float() for at in range(0, self.size, 512)])
            self.query, self.passage = run("t0"), run("t1")
            k = min(self.size, 40)
            self.near = torch.cat([(self.passage[at : at + 2048] @ self.passage.T).topk(k).indices for at in range(0, self.size, 2048)]).cpu().numpy()

    def cut(self, k, rows):
        w = (int(self.n[k + "n"][rows].max()) + 15) // 16 * 16
        return self.a[k][torch.from_numpy(rows).to(self.id.device)][:, :w].int()

    def next(self, size):
        if self.rng.random() < 0.6:  # neighbourhoods: the other passages are hard to tell apart
            rows = np.unique(self.near[self.rng.choice(self.kinds[self.rng.integers(len(self.kinds))], max(1, size // 32))][:, :32])
        else:
            rows = np.unique(np.concatenate([self.rng.choice(k, size // len(self.kinds)) for k in self.kinds]))
        i = torch.from_numpy(rows).to(self.id.device)
        return self.cut("s0", rows), self.cut("s1", rows), self.query[i], self.passage[i], self.id[i]


def pair_loss(student, batch):
    """MiniLM's vectors of queries and passages, its ranking among them, and the right passage first."""
    q, p, tq, tp, same = batch
    vq, vp = mean_vector(*student(q)), mean_vector(*student(p))
    cos_q, cos_p = (1 - (vq * tq).sum(-1)).mean(), (1 - (vp * tp).sum(-1)).mean()
    with torch.autocast(vq.device.type, enabled=False):
        ours, theirs, pp, tt = vq @ vp.T / 0.05, tq @ tp.T / 0.05, vp @ vp.T / 0.05, tp @ tp.T / 0.05
    kl = lambda a, b: F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="batchmean")
    eye = torch.eye(len(vp), device=vp.device) * 1e4
    rank = kl(ours, theirs) + kl(ours.T, theirs.T) + 0.5 * kl(pp - eye, tt - eye)
    twin = ((same[:, None] == same[None]) | (tt > 0.9 / 0.05)) & (eye == 0)
    right = F.cross_entropy(ours - twin * 1e4, torch.arange(len(vq), device=vq.device))
    return 3 * (cos_q + cos_p) + 0.7 * rank + 0.4 * right, cos_p.detach()


class Ema:
    def __init__(self, model, keep):
        self.keep, self.w = keep, {k: x.detach().clone() for k, x in model.state_dict().items()}

    def step(self, model, n):
        k = min(self.keep, (1 + n) / (10 + n))
        now = model.state_dict()
        torch._foreach_lerp_(list(self.w.values()), [now[x].detach() for x in self.w], 1 - k)


def optimizer(model, lr, wd, device, faster=1.0):
    """faster: learning rate of the heads relative to the body."""
    groups = collections.defaultdict(list)
    for name, p in model.named_parameters():
        head = name.startswith(("classifier", "tagger", "bert.pooler"))
        groups[faster if head else 1.0, wd if p.dim() > 1 else 0.0].append(p)
    return torch.optim.AdamW([dict(params=ps, weight_decay=w, times=t) for (t, w), ps in groups.items()], lr=lr, betas=(0.9, 0.98), fused=device == "cuda")


def rate(opt, lr, done, step, warm=200):
    for g in opt.param_groups:
        g["lr"] = lr * g["times"] * min(1.0, (step + 1) / warm) * (0.5 + 0.5 * math.cos(math.pi * min(1, done)))


def train_teacher(w, base, stream, ri, rt, steps, lr, device, seed, seconds, say, check):
    torch.manual_seed(seed)
    model = Tasks(TEACHER, len(base), ri.n, rt.n)
    model.bert.load_state_dict(w)
    model.to(device).train()
    opt, ema, t0 = optimizer(model, lr, 0.01, device, 6.0), Ema(model, 0.998), time.time()
    for step in range(steps):
        done = max(step / steps, (time.time() - t0) / seconds)
        if done >= 1:
            break
        rate(opt, lr, done, step)
        b = stream.next()
        with torch.autocast(device, torch.bfloat16):
            h, _ = model.bert(b["t"], b["tc"])
            loss, parts = task_loss(model.intents(h), model.tags(first_pieces(h, b["tf"])), b, ri, rt, smooth=0.05)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        ema.step(model, step)
        if step % 500 == 0:
            say(f"teacher step {step} loss {float(loss.detach()):.3f} " + " ".join(f"{k} {x:.3f}" for k, x in parts.items()))
    model.load_state_dict(ema.w)
    model.eval()
    say(f"teacher: {step} steps, {time.time() - t0:.0f} s; {check(model, True)}")
    return model


# ------------------------------------------------------------------ measuring


def logits_of(model, words, pieces, device, width=ed.POSITIONS, cased=False):
    """Per sample: intent logits, tag logits of its words, mean vector."""
    out_i, out_t, out_v = [], [], []
    enc = [pieces.encode(w, width) for w in words]
    model.eval()
    with torch.no_grad():
        for at in range(0, len(enc), 256):
            part = enc[at : at + 256]
            ids = torch.zeros(len(part), max(len(x) for x, _ in part), dtype=torch.int)
            first = torch.zeros(len(part), max(max(len(f) for _, f in part), 1), dtype=torch.int)
            for i, (x, f) in enumerate(part):
                ids[i, : len(x)] = torch.tensor(x)
                first[i, : len(f)] = torch.tensor(f)
            cases = torch.zeros_like(ids)
            for i, (x, f) in enumerate(part if cased else []):
                cases[i, : len(x)] = torch.tensor(ed.cases(words[at + i], f, len(x)))
            ids, first = ids.to(device), first.to(device)
            h, real = model.bert(ids, cases.to(device))
            out_i.append(model.intents(h).float().cpu().numpy())
            tg = model.tags(first_pieces(h, first)).float().cpu().numpy()
            out_t += [tg[i, : len(f)] for i, (_, f) in enumerate(part)]
            out_v.append(mean_vector(h, real).float().cpu().numpy())
    return np.concatenate(out_i), out_t, np.concatenate(out_v)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def ece(conf, right, bins=15):
    at = np.minimum((conf * bins).astype(int), bins - 1)
    return float(sum(abs(conf[at == b].mean() - right[at == b].mean()) * (at == b).mean() for b in range(bins) if (at == b).any()))


def best_temperature(lg, y):
    """The temperature with the least calibration error among those near the least negative log likelihood."""
    ts = np.exp(np.linspace(np.log(0.2), np.log(4), 80))
    nll = np.array([-np.log(softmax(lg / t)[np.arange(len(y)), y] + 1e-12).mean() for t in ts])
    err = np.array([ece(softmax(lg / t).max(1), softmax(lg / t).argmax(1) == y) for t in ts])
    ok = nll < nll.min() * 1.03 + 1e-4
    return float(ts[np.where(ok, err, 9).argmin()])




def f1(gold, got):
    tp = fp = fn = 0
    for a, b in zip(gold, got):
        a, b = set(ed.chunks(a)), set(ed.chunks(b))
        tp += len(a & b)
        fp += len(b - a)
        fn += len(a - b)
    return 2 * tp / max(1, 2 * tp + fp + fn)


def legal_path(lp, names):
    """The best tag sequence in which an I- follows its own type (Viterbi over a 0/1 transition table)."""
    n = len(names)
    ok = np.array([[y[0] != "I" or (x != "O" and x[2:] == y[2:]) for y in names] for x in names])
    cost = np.where(ok, 0.0, -1e9)
    start = np.array([0.0 if y[0] != "I" else -1e9 for y in names])
    score = lp[0] + start
    back = []
    for row in lp[1:]:
        m = score[:, None] + cost
        back.append(m.argmax(0))
        score = m.max(0) + row
    path = [int(score.argmax())]
    for b in reversed(back):
        path.append(int(b[path[-1]]))
    return [names[i] for i in reversed(path)]


def measure(model, pieces, data, intents, tags, ri, rt, device, brief=False):
    """Every figure on the valid splits."""
    out, extra = {}, {}
    for name, split in (("snips", "valid"), ("atis", "valid"), ("clinc150", "val")):
        r = ed.rows(data / f"{name}.{split}.jsonl")[:LIMIT]
        lo, hi = ri.at[name]
        words = [x["tokens"] if "tokens" in x else x["text"].split() for x in r]
        lg, tg, _ = logits_of(model, words, pieces, device)
        lg = lg[:, lo:hi]
        y = np.array([ri.id[name].get(x["label"], -1) for x in r])
        if name == "clinc150":
            o = ed.rows(data / "clinc150.oos_val.jsonl")[:LIMIT]
            og = logits_of(model, [x["text"].split() for x in o], pieces, device)[0][:, lo:hi]
            oi = ri.id[name]["oos"]
            t = best_temperature(np.concatenate([lg, og]), np.concatenate([y, np.full(len(og), oi)]))
            p, q = softmax(lg / t), softmax(og / t)
            out["clinc150"] = dict(in_scope_acc_no_threshold=round(float((p.argmax(1) == y).mean()), 4), oos_recall_no_threshold=round(float((q.argmax(1) == oi).mean()), 4), temperature=round(t, 3))
            curve = []
            for th in np.linspace(0, 0.95, 96):
                dec = lambda z: np.where((z.max(1) < th) | (z.argmax(1) == oi), oi, z.argmax(1))
                acc, rec = float((dec(p) == y).mean()), float((dec(q) == oi).mean())
                curve.append((round(float(th), 2), round(acc, 4), round(rec, 4)))
            good = [c for c in curve if c[1] >= 0.945] or [max(curve, key=lambda c: c[1])]
            th, acc, rec = max(good, key=lambda c: (c[2], c[1]))
            allp = np.concatenate([p, q])
            ally = np.concatenate([y, np.full(len(q), oi)])
            out["clinc150"].update(threshold=th, in_scope_acc=acc, oos_recall=rec, ece=round(ece(allp.max(1), allp.argmax(1) == ally), 4), ece_in_scope=round(ece(p.max(1), p.argmax(1) == y), 4))
            extra["curve"] = curve[::6]
            continue
        t = best_temperature(lg[y >= 0], y[y >= 0])
        p = softmax(lg / t)
        out[name] = dict(acc=round(float((p.argmax(1) == y).mean()), 4), ece=round(ece(p.max(1), p.argmax(1) == y), 4), temperature=round(t, 3))
        a, b = rt.at[name]
        names = tags[name]
        gold = [x["tags"] for x in r]
        out[name]["slot_f1"] = round(f1(gold, [[names[i] for i in z[:, a:b].argmax(1)] for z in tg]), 4)
        if not brief:
            out[name]["slot_f1_legal"] = round(f1(gold, [legal_path(np.log(softmax(z[:, a:b]) + 1e-9), names) for z in tg]), 4)
    r = ed.rows(data / "wnut17.valid.jsonl")[:LIMIT]
    a, b = rt.at["wnut17"]
    _, tg, _ = logits_of(model, [x["tokens"] for x in r], pieces, device, cased=True)
    out["wnut17"] = dict(f1=round(f1([x["tags"][: len(z)] for x, z in zip(r, tg)], [[tags["wnut17"][i] for i in z[:, a:b].argmax(1)] for z in tg]), 4))
    rng = random.Random(99)
    hs = [ed.home_sample(rng) for _ in range(LIMIT or 1500)]
    lg, tg, _ = logits_of(model, [x["words"] for x in hs], pieces, device)
    a, b = rt.at["home"]
    got = [[tags["home"][i] for i in z[:, a:b].argmax(1)] for z in tg]
    out["home"] = dict(slot_f1=round(f1([x["tags"] for x in hs], got), 4))
    for name in ("combined", "router"):
        lo, hi = ri.at[name]
        m = [i for i, x in enumerate(hs) if name in x["labels"]]
        y = np.array([ri.id[name][hs[i]["labels"][name]] for i in m])
        z = lg[m][:, lo:hi]
        out["home"][name + "_acc"] = round(float((z.argmax(1) == y).mean()), 4)
    # the combined and router sets on everything that has a valid split
    zs, ys, zr, yr = [], [], [], []
    for name, split in (("snips", "valid"), ("atis", "valid"), ("clinc150", "val"), ("clinc150", "oos_val")):
        r = ed.rows(data / f"{name}.{split}.jsonl")[:LIMIT]
        lg = logits_of(model, [x["text"].split() for x in r], pieces, device)[0]
        for x, z in zip(r, lg):
            c = ed.combined(x["label"])
            if c in ri.id["combined"]:
                zs.append(z[slice(*ri.at["combined"])])
                ys.append(ri.id["combined"][c])
            zr.append(z[slice(*ri.at["router"])])
            yr.append(ri.id["router"][ed.domain(x["label"])])
    for name, z, y in (("combined", np.array(zs), np.array(ys)), ("router", np.array(zr), np.array(yr))):
        t = best_temperature(z, y)
        p = softmax(z / t)
        out[name] = dict(acc=round(float((p.argmax(1) == y).mean()), 4), ece=round(ece(p.max(1), p.argmax(1) == y), 4), temperature=round(t, 3))
    return out, extra


def recall_at(v, labels, k=5):
    """Share of texts with another text of the same intent among the k nearest; and with one text per intent to find."""
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    labels = np.array(labels)
    k = min(k, len(set(labels)) - 1)
    sim = v @ v.T
    np.fill_diagonal(sim, -9)
    top = np.argpartition(-sim, k, 1)[:, :k]
    easy = float((labels[top] == labels[:, None]).any(1).mean())
    rng = np.random.default_rng(5)
    hard = []
    for _ in range(20):
        gal = np.array([rng.choice(np.flatnonzero(labels == x)) for x in np.unique(labels)])
        q = np.setdiff1d(np.arange(len(labels)), gal)
        s = v[q] @ v[gal].T
        top = np.argpartition(-s, k, 1)[:, :k]
        hard.append((labels[gal][top] == labels[q][:, None]).any(1).mean())
    return dict(recall_at_5=round(easy, 4), recall_at_5_one_per_intent=round(float(np.mean(hard)), 4))


def measure_embed(vectors, data):
    """vectors(texts) gives one vector per text."""
    skip = ed.held_out_intents(data)
    r = [x for x in ed.rows(data / "banking77.train.jsonl") if x["label"] in skip][:LIMIT]
    out = dict(banking77_held_out=recall_at(vectors([x["text"] for x in r]), [x["label"] for x in r]))
    r = ed.rows(data / "clinc150.val.jsonl")[:LIMIT]
    out["clinc150_val"] = recall_at(vectors([x["text"] for x in r]), [x["label"] for x in r])
    return out


def measure_pairs(model, pieces, pairs, device):
    """The share of queries whose passage is the nearest, or among five."""
    vec = lambda ts: logits_of(model, [t.split() for t in ts], pieces, device)[2]
    sim = vec([x[0] for x in pairs]) @ vec([x[1] for x in pairs]).T
    rank = (sim > sim.diagonal()[:, None]).sum(1)
    return dict(recall_at_1=round(float((rank < 1).mean()), 4), recall_at_5=round(float((rank < 5).mean()), 4))


def measure_passages(model, pieces, data, device):
    """XQuAD, which is in no training data: the share of questions whose paragraph is the nearest, or among five."""
    r = json.load(open(data / "xquad.json"))
    of = [i for i, x in enumerate(r) for _ in x["questions"]]
    vec = lambda ts: logits_of(model, [t.split() for t in ts], pieces, device)[2]
    sim = vec([q for x in r for q in x["questions"]]) @ vec([x["context"] for x in r]).T
    rank = (sim > sim[np.arange(len(of)), of][:, None]).sum(1)
    return dict(recall_at_1=round(float((rank < 1).mean()), 4), recall_at_5=round(float((rank < 5).mean()), 4))


# ------------------------------------------------------------------ commands


def vocab_command(a):
    data = pathlib.Path(a.data)
    _, base = load_minilm(pathlib.Path(a.minilm))
    s = ed.train_samples(data, 1, 1, 20000, 6000)
    plain = ed.plain_texts(data, pathlib.Path(a.stories), 3, 20000)
    pairs = [y for x in ed.rows(data / "pairs.jsonl") for y in x[:2]]
    by = lambda *src: [" ".join(x["words"]) for x in s if x["source"] in src]
    v = ed.choose_vocab(base, [(4, by("snips", "atis", "clinc150")), (1, by("home", "oos")), (0.5, by("wnut17", "names")), (0.5, plain), (a.passage_weight, pairs)], VOCAB)
    (HERE / "data" / "encoder-vocab.txt").write_text("\n".join(v) + "\n")
    print(len(v), "pieces")


def say(text, t0=time.time()):
    print(f"[{time.time() - t0:6.1f} s] {text}", flush=True)


class Setting:
    """State shared by all commands of a run."""

    def __init__(self, a):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_float32_matmul_precision("high")
        torch.manual_seed(SEED)
        self.data, self.work = pathlib.Path(a.data), pathlib.Path(a.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.w, self.base = load_minilm(pathlib.Path(a.minilm))
        self.vocab = (HERE / "data" / "encoder-vocab.txt").read_text().split("\n")[:-1]
        self.intents, self.tags = label_sets(self.data)
        self.ri, self.rt = Ranges(self.intents, INTENT_SETS), Ranges(self.tags, TAG_SETS)
        self.sp, self.tp = ed.Pieces(self.vocab), ed.Pieces(self.base)

    def check(self, model, pieces):
        return json.dumps(measure(model, pieces, self.data, self.intents, self.tags, self.ri, self.rt, self.device, True)[0])

    def stream(self, seed):
        """The labelled samples, once `arrays` has written them."""
        path = self.work / "arrays.npz"
        while not path.exists():
            time.sleep(0.5)
        with np.load(path) as z:
            return Stream({k: z[k] for k in z.files}, self.device, seed, allowed_tags(self.rt, self.device))


def arrays(a):
    import multiprocessing as mp

    x = Setting(a)
    jobs = [(a.data, SEED + i, 1 if i else 0, a.home // a.shards, a.oos // a.shards, x.vocab, x.base, x.intents, x.tags, i, a.shards) for i in range(a.shards)]
    with mp.get_context("fork").Pool(a.workers) as pool:
        parts = pool.map(encode_shard, jobs, chunksize=1)
    arr = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    np.savez(x.work / "arrays.part.npz", **arr)
    (x.work / "arrays.part.npz").rename(x.work / "arrays.npz")
    say(f"{len(arr['s'])} labelled samples")


def teacher(a):
    x = Setting(a)
    seed = SEED + a.number
    m = train_teacher(x.w, x.base, x.stream(seed), x.ri, x.rt, a.teacher_steps, a.teacher_lr, x.device, seed, a.teacher_seconds, say, lambda m, _: x.check(m, x.tp))
    torch.save({k: v.half().cpu() for k, v in m.state_dict().items()}, x.work / f"teacher-{a.number}.part")
    (x.work / f"teacher-{a.number}.part").rename(x.work / f"teacher-{a.number}.pt")


def load_teachers(a, x):
    out = []
    for i in range(a.teachers):
        path = x.work / f"teacher-{i}.pt"
        while not path.exists():
            time.sleep(0.5)
        m = Tasks(TEACHER, len(x.base), x.ri.n, x.rt.n)
        m.load_state_dict(torch.load(path))
        m.bert.drop = 0.0
        out.append(m.to(x.device).eval())
    return out


def start_from(student, folder, x):
    """Weights of an earlier encoder: pieces and labels by name; a new piece begins as MiniLM's."""
    from safetensors.torch import load_file

    old = {k: v.float() for k, v in load_file(str(folder / "model.safetensors")).items() if "transitions" not in k}
    vocab = (folder / "vocab.txt").read_text().split("\n")[:-1]
    shoal = json.load(open(folder / "config.json"))["shoal"]
    at, theirs = {t: i for i, t in enumerate(vocab)}, {t: i for i, t in enumerate(x.base)}
    k = "bert.embeddings.word_embeddings.weight"
    have = [t for t in x.vocab if t in at]
    move = (old[k][[at[t] for t in have]] - x.w[k[5:]][[theirs[t] for t in have]]).mean(0)
    old[k] = torch.stack([old[k][at[t]] if t in at else x.w[k[5:]][theirs[t]] + move for t in x.vocab])
    now = student.state_dict()
    for head, sets, ranges in (("classifier", shoal["intent"]["label_sets"], x.ri), ("tagger", shoal["entities"]["label_sets"], x.rt)):
        for part in ("weight", "bias"):
            rows = now[f"{head}.{part}"].clone()
            for name, ids in ranges.id.items():
                lo, first = ranges.at[name][0], sets[name]["first"]
                for i, label in enumerate(sets[name]["labels"]):
                    if label in ids:
                        rows[lo + ids[label]] = old[f"{head}.{part}"][first + i]
            old[f"{head}.{part}"] = rows
    neutral_cases(old, "bert.embeddings.token_type_embeddings.weight")
    student.load_state_dict(old)
    say(f"starts from {folder}: {len(x.vocab) - len(have)} new pieces")


def text_step(student, minilm, tx, pairs, rng, size):
    return pair_loss(student, pairs.next(size)) if rng.random() < 0.65 else text_loss(student, minilm, tx.next())


def train(a):
    import multiprocessing as mp

    x = Setting(a)
    device = x.device
    texts = ed.plain_texts(x.data, pathlib.Path(a.stories), SEED, a.texts)
    pairs, held = ed.held_out_pairs(ed.rows(x.data / "pairs.jsonl")[: a.pairs])
    with mp.get_context("fork").Pool(a.workers) as pool:
        chunk = (len(texts) + 63) // 64
        later = pool.map_async(text_shard, [(texts[i : i + chunk], x.vocab, x.base) for i in range(0, len(texts), chunk)], chunksize=1)
        step = (len(pairs) + 31) // 32
        pparts = pool.map(pair_shard, [(pairs[i : i + step], x.vocab, x.base) for i in range(0, len(pairs), step)], chunksize=1)
        tparts = later.get()
    groups = {g: np.concatenate([p[g] for p in tparts]) for g in tparts[0]}
    number = {}
    ids = np.array([number.setdefault(p[1], len(number)) for p in pairs])
    say(f"{len(texts)} texts, {len(pairs)} pairs")
    minilm = Bert(TEACHER, len(x.base))
    minilm.load_state_dict(x.w)
    minilm.to(device).eval()
    tx = Texts(groups, device, SEED, a.text_pieces)
    pr = Pairs({k: np.concatenate([p[k] for p in pparts]) for k in pparts[0]}, ids, np.array([p[2] == "arxiv" for p in pairs]), minilm, device, SEED)
    say("MiniLM's vectors of the pairs")

    student = Tasks(STUDENT, len(x.vocab), x.ri.n, x.rt.n)
    if a.start:
        start_from(student, pathlib.Path(a.start), x)
    else:
        sample = torch.from_numpy(groups[64][:2000, 1])
        student.bert.load_state_dict(shrink(x.w, x.base, x.vocab, sample, device))
    student.to(device).train()
    say(f"student: {sum(p.numel() for p in student.parameters()) / 1e6:.3f} M parameters")
    rng = np.random.default_rng(SEED)

    student.bert.drop = 0.0
    opt, t1 = optimizer(student, a.lr, 0.01, device), time.time()
    for step in range(a.distil_steps):
        done = max(step / a.distil_steps, (time.time() - t1) / a.distil_seconds)
        if done >= 1:
            break
        rate(opt, a.lr, done * 0.7, step)
        with torch.autocast(device, torch.bfloat16):
            loss, cos = text_step(student.bert, minilm, tx, pr, rng, a.pair_batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        opt.step()
        if step % 500 == 0:
            say(f"distil step {step} loss {float(loss.detach()):.4f} cosine {1 - cos:.4f}")
    say(f"distilled: {step} steps, cosine {1 - cos:.4f}; held-out pairs {json.dumps(measure_pairs(student, x.sp, held, device))}")
    torch.save({k: v.half().cpu() for k, v in student.state_dict().items()}, x.work / "distilled.pt")
    teachers, stream = load_teachers(a, x), x.stream(SEED + 50)
    if teachers and not a.start:
        for part in ("bert.pooler", "classifier", "tagger"):
            student.get_submodule(part).load_state_dict(teachers[0].get_submodule(part).state_dict())
    say("teachers are there")

    student.train()
    student.bert.drop = 0.05
    lr = a.lr * 0.7
    opt, ema, t1 = optimizer(student, lr, 0.02, device), Ema(student, 0.9995), time.time()
    for step in range(a.steps):
        done = max(step / a.steps, (time.time() - t1) / a.seconds)
        if done >= 1:
            break
        rate(opt, lr, done, step)
        b = stream.next()
        with torch.autocast(device, torch.bfloat16):
            soft = None
            if teachers:
                with torch.no_grad():
                    hs = [(t, t.bert(b["t"], b["tc"])[0]) for t in teachers]
                    soft = (sum(t.intents(h) for t, h in hs) / len(hs), sum(t.tags(first_pieces(h, b["tf"])) for t, h in hs) / len(hs))
            h, _ = student.bert(b["s"], b["sc"])
            loss, parts = task_loss(student.intents(h), student.tags(first_pieces(h, b["sf"])), b, x.ri, x.rt, soft, a.alpha)
            more, cos = text_step(student.bert, minilm, tx, pr, rng, a.pair_batch)
            loss = loss + a.text_weight * more
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        opt.step()
        ema.step(student, step)
        if step % 1000 == 0:
            say(f"step {step} loss {float(loss.detach()):.3f} cosine {1 - cos:.4f} " + " ".join(f"{k} {v:.3f}" for k, v in parts.items()))
    say(f"fine-tuned: {step} steps in {time.time() - t1:.0f} s")
    student.load_state_dict(ema.w)
    from safetensors.torch import save_file

    save_file({k: v.detach().half().cpu().contiguous() for k, v in student.state_dict().items()}, str(x.work / "encoder.safetensors"))
    figures, extra = measure(student, x.sp, x.data, x.intents, x.tags, x.ri, x.rt, device)
    vec = lambda m, p: (lambda ts: logits_of(m, [t.split() for t in ts], p, device)[2])
    plain = Tasks(TEACHER, len(x.base), 1, 1)
    plain.bert = minilm
    plain.to(device)
    figures["embed"], figures["embed_minilm"] = measure_embed(vec(student, x.sp), x.data), measure_embed(vec(plain, x.tp), x.data)
    figures["held_out_pairs"], figures["held_out_pairs_minilm"] = measure_pairs(student, x.sp, held, device), measure_pairs(plain, x.tp, held, device)
    figures["passages"], figures["passages_minilm"] = measure_passages(student, x.sp, x.data, device), measure_passages(plain, x.tp, x.data, device)
    say(json.dumps(figures))
    say(json.dumps(extra))
    json.dump(dict(figures=figures, intents=x.intents, tags=x.tags), open(x.work / "encoder-figures.json", "w"), indent=1)


def everything(a):
    """Runs arrays and teachers in separate processes, in parallel with train."""
    work = pathlib.Path(a.work)
    for p in [work / "arrays.npz", *work.glob("teacher-*.pt")]:
        p.unlink(missing_ok=True)
    rest = sys.argv[2:]
    this = [sys.executable, __file__]
    beside = [subprocess.Popen(this + ["arrays", *rest])] + [subprocess.Popen(this + ["teacher", "--number", str(i), *rest]) for i in range(a.teachers)]
    try:
        subprocess.run(this + ["train", *rest], check=True)
    finally:
        for p in beside:
            p.terminate()
            p.wait()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["vocab", "arrays", "teacher", "train", "all", "export"])
    ap.add_argument("--data", default=".cache/train-data")
    ap.add_argument("--minilm", default=".cache/train-minilm")
    ap.add_argument("--stories", default=".cache/train-reply/stories.txt")
    ap.add_argument("--work", default=".cache/train-encoder")
    ap.add_argument("--out", default="models/encoder")
    ap.add_argument("--start", help="folder of an earlier encoder to start from")
    ap.add_argument("--number", type=int, default=0, help="which teacher")
    ap.add_argument("--pairs", type=int, default=10**9)
    ap.add_argument("--pair-batch", type=int, default=256)
    ap.add_argument("--shards", type=int, default=12, help="augmented copies of the training data")
    ap.add_argument("--home", type=int, default=120000)
    ap.add_argument("--oos", type=int, default=24000)
    ap.add_argument("--texts", type=int, default=100000)
    ap.add_argument("--workers", type=int, default=os.cpu_count())
    ap.add_argument("--teachers", type=int, default=2)
    ap.add_argument("--teacher-steps", type=int, default=3000)
    ap.add_argument("--teacher-lr", type=float, default=1.5e-4)
    ap.add_argument("--teacher-seconds", type=float, default=1e9)
    ap.add_argument("--distil-steps", type=int, default=5000)
    ap.add_argument("--distil-seconds", type=float, default=1e9)
    ap.add_argument("--steps", type=int, default=14000)
    ap.add_argument("--seconds", type=float, default=1e9)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--alpha", type=float, default=0.7)
    ap.add_argument("--text-pieces", type=int, default=16384)
    ap.add_argument("--text-weight", type=float, default=1.0)
    ap.add_argument("--passage-weight", type=float, default=0.5, help="of the words of passages among those that choose the vocabulary")
    ap.add_argument("--seed", type=int, default=SEED)
    ap.add_argument("--limit", type=int, help="rows measured, for smoke tests")
    args = ap.parse_args()
    LIMIT, SEED = args.limit, args.seed
    {"vocab": vocab_command, "arrays": arrays, "teacher": teacher, "train": train, "all": everything, "export": lambda a: __import__("encoder_export").main(a)}[args.what](args)
