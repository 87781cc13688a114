#!/usr/bin/env python3
"""Makes tests/data/scorers/NAME: small random layer programs (docs/SCORERS.md) and the results of PyTorch
for a series of 400 samples.  A developer's tool: the tests only read its output.

usage: tools/make_scorer_refs.py

Needs PyPI; makes a Python environment of its own in .cache/scorers-venv.  NAME/config.json and
NAME/model.safetensors are the scorer, NAME/expected.f32 has the scores as little-endian floats.  The
series itself is made by a formula, here in series() and in tests/unit/score/test_recurrent.c.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".cache/scorers-venv"
OUT = ROOT / "tests/data/scorers"
PACKAGES = ["torch==2.15.0", "safetensors", "numpy"]

if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

N_SAMPLES = 400
MASK = (1 << 64) - 1


def mix(x):
    """hash_mix of src/base/hash.h"""
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 & MASK
    x ^= x >> 27
    x = x * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def series(channels):
    """[N_SAMPLES, channels]: noise on a saw tooth, exact in floats"""
    return torch.tensor([[(mix(t * 64 + c + 1) >> 40) / 2**23 - 1 + (t * (c + 1)) % 50 / 32
                          for c in range(channels)] for t in range(N_SAMPLES)], dtype=torch.float32)


def windows(x, window, hop):
    return [x[i:i + window] for i in range(0, len(x) - window + 1, hop)]


class Stream(nn.Module):
    """One sample per step with state: an anomaly score for a sensor."""
    config = {"input": {"channels": 7, "window": 1, "stateful": True, "mean": [0.5] * 7, "std": [2.0] * 7},
              "layers": [{"type": "lstm", "name": "lstm", "hidden": 24}, {"type": "linear", "name": "out"},
                         {"type": "sigmoid"}],
              "output": {"names": ["anomaly"], "threshold": 0.5}}

    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(7, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(self.lstm(((x - 0.5) / 2)[None])[0][0]))


class Both(nn.Module):
    """Windows, two layers in both directions, mean, three classes."""
    config = {"input": {"channels": 3, "window": 32, "hop": 16, "names": ["x", "y", "z"]},
              "layers": [{"type": "lstm", "name": "rnn", "hidden": 20, "layers": 2, "bidirectional": True},
                         {"type": "mean"}, {"type": "linear", "name": "head"}, {"type": "softmax"}],
              "output": {"names": ["rest", "walk", "run"]}}

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 20, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(40, 3)

    def forward(self, x):
        return torch.stack([self.head(self.rnn(w[None])[0][0].mean(0)).softmax(-1)
                            for w in windows(x, 32, 16)])


class Gru(nn.Module):
    """Two layers of GRU, a norm, the last sample; hidden is not a multiple of 32."""
    config = {"input": {"channels": 5, "window": 20},
              "layers": [{"type": "gru", "name": "gru", "hidden": 33, "layers": 2},
                         {"type": "layer_norm", "name": "norm", "eps": 1e-3}, {"type": "last"},
                         {"type": "linear", "name": "a"}, {"type": "tanh"}, {"type": "linear", "name": "b"}]}

    def __init__(self):
        super().__init__()
        self.gru, self.norm = nn.GRU(5, 33, 2, batch_first=True), nn.LayerNorm(33, 1e-3)
        self.a, self.b = nn.Linear(33, 40), nn.Linear(40, 2, bias=False)

    def forward(self, x):
        return torch.stack([self.b(torch.tanh(self.a(self.norm(self.gru(w[None])[0][0])[-1])))
                            for w in windows(x, 20, 20)])


class Conv(nn.Module):
    """Convolutions with stride, padding and dilation, paddings of all kinds, maximum, flatten."""
    config = {"input": {"channels": 2, "window": 50, "hop": 25},
              "layers": [{"type": "pad", "left": 3, "right": 2, "mode": "reflect"},
                         {"type": "conv1d", "name": "c1", "stride": 2, "padding": 1}, {"type": "relu"},
                         {"type": "pad", "left": 1, "mode": "edge"}, {"type": "pad", "right": 2},
                         {"type": "conv1d", "name": "c2", "dilation": 3}, {"type": "relu"},
                         {"type": "conv1d", "name": "c3", "stride": 3}, {"type": "flatten"},
                         {"type": "linear", "name": "out"}, {"type": "max"}]}

    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(2, 12, 5, 2, 1), nn.Conv1d(12, 9, 4, dilation=3)
        self.c3, self.out = nn.Conv1d(9, 6, 3, 3), nn.Linear(6 * 7, 2)

    def forward(self, x):
        out = []
        for w in windows(x, 50, 25):
            y = F.pad(w.T[None], (3, 2), mode="reflect")
            y = F.pad(F.pad(F.relu(self.c1(y)), (1, 0), mode="replicate"), (0, 2))
            y = self.c3(F.relu(self.c2(y)))
            out.append(self.out(y[0].T.reshape(-1)))
        return torch.stack(out)


class Voice(nn.Module):
    """A small voice detector: spectrum as a convolution, convolutions, and a recurrent cell."""
    config = {"input": {"channels": 1, "window": 36, "hop": 32, "stateful": True},
              "layers": [{"type": "pad", "right": 8, "mode": "reflect"},
                         {"type": "conv1d", "name": "stft", "stride": 8}, {"type": "magnitude"},
                         {"type": "conv1d", "name": "conv1", "padding": 1}, {"type": "relu"},
                         {"type": "conv1d", "name": "conv2", "padding": 1, "stride": 4}, {"type": "relu"},
                         {"type": "lstm", "name": "cell", "hidden": 32}, {"type": "relu"},
                         {"type": "conv1d", "name": "final"}, {"type": "sigmoid"}, {"type": "mean"}],
              "output": {"names": ["speech"], "threshold": 0.5}}

    def __init__(self):
        super().__init__()
        self.stft, self.conv1 = nn.Conv1d(1, 18, 16, 8, bias=False), nn.Conv1d(9, 16, 3, padding=1)
        self.conv2, self.cell = nn.Conv1d(16, 24, 3, 4, padding=1), nn.LSTMCell(24, 32)
        self.final = nn.Conv1d(32, 1, 1)

    def forward(self, x):
        x = torch.cat([torch.zeros(4, 1), x])
        state, out = None, []
        for w in windows(x, 36, 32):
            y = self.stft(F.pad(w.T[None], (0, 8), mode="reflect"))
            y = torch.sqrt(y[:, :9] ** 2 + y[:, 9:] ** 2)
            y = F.relu(self.conv2(F.relu(self.conv1(y))))
            hidden = []
            for t in range(y.shape[2]):
                state = self.cell(y[:, :, t], state)
                hidden.append(state[0])
            y = torch.sigmoid(self.final(F.relu(torch.stack(hidden, 2))))
            out.append(y[0].mean(1))
        return torch.stack(out)


class Int8(nn.Module):
    """Stores 8-bit matrices in the file; PyTorch computes with the dequantized values."""
    config = {"input": {"channels": 4, "window": 25},
              "layers": [{"type": "conv1d", "name": "conv", "padding": 4}, {"type": "relu"},
                         {"type": "lstm", "name": "lstm", "hidden": 40}, {"type": "last"},
                         {"type": "linear", "name": "out"}, {"type": "sigmoid"}]}

    def __init__(self):
        super().__init__()
        self.conv, self.lstm = nn.Conv1d(4, 48, 9, padding=4), nn.LSTM(48, 40, batch_first=True)
        self.out = nn.Linear(40, 2)

    def forward(self, x):
        return torch.stack([torch.sigmoid(self.out(self.lstm(F.relu(self.conv(w.T[None])).transpose(1, 2))[0][0, -1]))
                            for w in windows(x, 25, 25)])


def main():
    kinds = {"stream": (Stream, torch.float32), "both": (Both, torch.float32), "gru": (Gru, torch.float32),
             "conv": (Conv, torch.bfloat16), "voice": (Voice, torch.float16), "int8": (Int8, torch.int8)}
    for name, (kind, dtype) in kinds.items():
        torch.manual_seed(20261115)
        model = kind().eval()
        tensors = {}
        with torch.no_grad():
            for key, p in model.named_parameters():
                p *= 3  # further from zero than a newly initialized model
                if dtype == torch.int8 and p.ndim > 1:
                    scale = p.abs().reshape(len(p), -1).max(1).values / 127
                    shape = (-1,) + (1,) * (p.ndim - 1)
                    tensors[key] = torch.round(p / scale.reshape(shape)).to(torch.int8)
                    tensors[key + "_scale"] = scale
                    p.copy_(tensors[key].float() * scale.reshape(shape))
                else:
                    tensors[key] = p.detach().to(torch.float32 if dtype == torch.int8 else dtype).contiguous()
                    p.copy_(tensors[key].float())
            expected = model(series(kind.config["input"]["channels"]))
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"model_type": "shoal_scorer", **kind.config}, indent=1) + "\n")
        save_file(tensors, folder / "model.safetensors")
        expected.numpy().astype("<f4").tofile(folder / "expected.f32")
        print(name, tuple(expected.shape), expected.reshape(-1)[:4].tolist(), expected.std(0).tolist())


main()
