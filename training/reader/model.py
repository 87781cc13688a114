"""The reader's model: T5 (v1.1: gated GELU, RMS norms, relative positions), embeddings tied to the output.

Written out here rather than taken from transformers, since training needs no more; names() maps the weights to theirs.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"dim": 256, "heads": 4, "head_dim": 64, "ffn": 640, "enc": 6, "dec": 2, "vocab": 4096, "buckets": 32, "distance": 128}


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = F.rms_norm(x.float(), self.weight.shape, self.weight, 1e-6)
        return y.to(torch.get_autocast_dtype("cuda")) if torch.is_autocast_enabled("cuda") else y


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h, self.d = c["heads"], c["head_dim"]
        inner = self.h * self.d
        self.q, self.k, self.v = (nn.Linear(c["dim"], inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, c["dim"], bias=False)
        for m in (self.q, self.k, self.v):
            nn.init.normal_(m.weight, std=c["dim"] ** -0.5)
        nn.init.normal_(self.o.weight, std=inner ** -0.5)

    def forward(self, x, source, bias):
        b, n, _ = x.shape
        if x is source:
            q, k, v = F.linear(x, torch.cat([self.q.weight, self.k.weight, self.v.weight])).view(b, n, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = (m(y).view(b, -1, self.h, self.d).transpose(1, 2) for m, y in ((self.q, x), (self.k, source), (self.v, source)))
        # T5 does not divide by sqrt(d): names() puts the division into the weights of q. Here it stays outside, so that
        # q's weights are as large as the others' and one learning rate fits them all.
        if Attention.fused:
            w = F.scaled_dot_product_attention(q, k, v, bias, scale=self.d ** -0.5)
        else:
            w = torch.softmax((q @ k.transpose(2, 3) * self.d ** -0.5 + bias).float(), -1).to(v.dtype) @ v
        return self.o(w.transpose(1, 2).reshape(b, n, -1))

    fused = False


class Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(c["dim"], c["ffn"], bias=False), nn.Linear(c["dim"], c["ffn"], bias=False), nn.Linear(c["ffn"], c["dim"], bias=False)
        nn.init.normal_(self.gate.weight, std=c["dim"] ** -0.5)
        nn.init.normal_(self.up.weight, std=c["dim"] ** -0.5)
        nn.init.normal_(self.down.weight, std=c["ffn"] ** -0.5)

    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


class Layer(nn.Module):
    def __init__(self, c, cross):
        super().__init__()
        self.n1, self.att, self.n2, self.ffn = Norm(c["dim"]), Attention(c), Norm(c["dim"]), Feed(c)
        if cross:
            self.nc, self.cross = Norm(c["dim"]), Attention(c)
        self.drop = 0.0

    def forward(self, x, bias, source=None, source_bias=None):
        d = lambda y: F.dropout(y, self.drop, self.training) if self.drop else y
        y = self.n1(x)
        x = x + d(self.att(y, y, bias))
        if source is not None:
            x = x + d(self.cross(self.nc(x), source, source_bias))
        return x + d(self.ffn(self.n2(x)))


def bucket(d, both, n, far):
    first = 0
    if both:
        n //= 2
        first = (d > 0).long() * n
        d = d.abs()
    else:
        d = (-d).clamp(min=0)
    exact = n // 2
    large = exact + (torch.log(d.float().clamp(min=1) / exact) / math.log(far / exact) * (n - exact)).long()
    return first + torch.where(d < exact, d, large.clamp(max=n - 1))


class Reader(nn.Module):
    def __init__(self, c=CONFIG, drop=0.0):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["vocab"], c["dim"])
        nn.init.normal_(self.embed.weight, std=1.0)
        self.enc = nn.ModuleList(Layer(c, False) for _ in range(c["enc"]))
        self.dec = nn.ModuleList(Layer(c, True) for _ in range(c["dec"]))
        self.enc_rel, self.dec_rel = nn.Embedding(c["buckets"], c["heads"]), nn.Embedding(c["buckets"], c["heads"])
        for e in (self.enc_rel, self.dec_rel):
            nn.init.normal_(e.weight, std=c["dim"] ** -0.5)
        self.enc_norm, self.dec_norm = Norm(c["dim"]), Norm(c["dim"])
        for m in (*self.enc, *self.dec):
            m.drop = drop

    def bias(self, table, n, both, device):
        p = torch.arange(n, device=device)
        b = bucket(p[None, :] - p[:, None], both, self.c["buckets"], self.c["distance"])
        return table(b).permute(2, 0, 1)[None]

    def encode(self, x):
        """(encoded source, bias that hides the padding)"""
        mask = torch.zeros(x.shape, device=x.device).masked_fill_(x == 0, -1e4)[:, None, None, :]
        h = self.embed(x)
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else h.dtype
        bias = self.bias(self.enc_rel, x.shape[1], True, x.device).to(dtype) + mask.to(dtype)
        for m in self.enc:
            h = m(h, bias)
        return self.enc_norm(h), mask.to(dtype)

    def decode(self, y, source, mask):
        h = self.embed(y)
        n = y.shape[1]
        bias = self.bias(self.dec_rel, n, False, y.device) + torch.full((n, n), -1e4, device=y.device).triu(1)
        bias = bias.to(source.dtype)
        for m in self.dec:
            h = m(h, bias, source, mask)
        return F.linear(self.dec_norm(h) * self.c["dim"] ** -0.5, self.embed.weight)

    def forward(self, x, y):
        """Logits for y, each token from those before it; 0 starts."""
        source, mask = self.encode(x)
        return self.decode(F.pad(y[:, :-1], (1, 0)), source, mask)


@torch.no_grad()
def greedy(model, x, n_plan, steps=48):
    """Plans and the log-probability of each, over the tokens of the plan language only."""
    source, mask = model.encode(x)
    y = torch.zeros(x.shape[0], 1, dtype=torch.long, device=x.device)
    score = torch.zeros(x.shape[0], device=x.device)
    done = torch.zeros(x.shape[0], dtype=torch.bool, device=x.device)
    for _ in range(steps):
        p = torch.log_softmax(model.decode(y, source, mask)[:, -1, :n_plan].float(), -1)
        best, token = p.max(-1)
        token = torch.where(done, 0, token)
        score += torch.where(done, 0.0, best)
        y = torch.cat([y, token[:, None]], 1)
        done |= token == 1
        if done.all():
            break
    return y[:, 1:].tolist(), score.tolist()


def names(model):
    """{name in transformers: weight}"""
    out = {"shared.weight": model.embed.weight, "encoder.final_layer_norm.weight": model.enc_norm.weight, "decoder.final_layer_norm.weight": model.dec_norm.weight,
           "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": model.enc_rel.weight, "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": model.dec_rel.weight}
    for side, layers in (("encoder", model.enc), ("decoder", model.dec)):
        for i, m in enumerate(layers):
            p = f"{side}.block.{i}.layer."
            f = 1 if side == "encoder" else 2
            for x in "qkvo":
                scale = model.c["head_dim"] ** -0.5 if x == "q" else 1
                out[f"{p}0.SelfAttention.{x}.weight"] = getattr(m.att, x).weight * scale
                if f == 2:
                    out[f"{p}1.EncDecAttention.{x}.weight"] = getattr(m.cross, x).weight * scale
            out[f"{p}0.layer_norm.weight"] = m.n1.weight
            if f == 2:
                out[f"{p}1.layer_norm.weight"] = m.nc.weight
            out[f"{p}{f}.layer_norm.weight"] = m.n2.weight
            out[f"{p}{f}.DenseReluDense.wi_0.weight"], out[f"{p}{f}.DenseReluDense.wi_1.weight"], out[f"{p}{f}.DenseReluDense.wo.weight"] = m.ffn.gate.weight, m.ffn.up.weight, m.ffn.down.weight
    return out
