#!/usr/bin/env python3
"""Runs the exported decoders with llama.cpp (bench/peer_llama) and with PyTorch: same ids, same greedy text.

    bench/build-peer && training/check_gguf.py
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import gguf_out  # noqa: E402
import reply  # noqa: E402
import reply_corpus as rc  # noqa: E402

ap = argparse.ArgumentParser()
ap.add_argument("--data", default=".cache/train-data")
ap.add_argument("--work", default=".cache/train-reply")
ap.add_argument("--peer", default="build/peer_llama")
ap.add_argument("-n", type=int, default=100)
a = ap.parse_args()
work = pathlib.Path(a.work)
reply.load_texts(pathlib.Path(a.data))
held = reply.held_out()
fm = reply.Format(reply.tokenizer(work))
failed = False
for name, cfg in (("reply", reply.REPLY), ("reply-draft", reply.DRAFT)):
    p = subprocess.Popen([a.peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(**q):
        p.stdin.write(json.dumps(dict(id=1, **q)) + "\n")
        p.stdin.flush()
        r = json.loads(p.stdout.readline())
        assert r["ok"], r
        return r

    ask(op="load", model=f"models/{name}.gguf", threads=1, ctx=1024)
    w = load_file(str(work / f"{name}.safetensors"))
    model = reply.build(torch)(cfg)
    model.load_state_dict({k: torch.from_numpy((gguf_out.dequant(x, "Q8_0") if x.ndim == 2 else x).astype(np.float32)) for k, x in w.items()})
    texts = [h["context"] for h in held] + [h["reply"] for h in held] + ["naïve café 東京 🙂 x", "a  b   c\n\nd ", " lead", "1234.50"]
    same = sum(ask(op="tokenize", text=t, special=False)["tokens"] == fm.sp.encode(t) for t in texts)
    print(f"{name}: {same} of {len(texts)} texts tokenized alike")
    prompts = [fm.prompt(h["context"]) for h in held[: a.n]]
    ours = reply.greedy(torch, model, prompts)
    theirs = [ask(op="generate", tokens=x, n=96)["tokens"] for x in prompts]
    eq = sum(x == y for x, y in zip(ours, theirs))
    good = sum(rc.ok(fm.sp.decode(y), h["must"]) for y, h in zip(theirs, held))
    print(f"{name}: {eq} of {len(prompts)} greedy replies alike, {good} of {len(prompts)} correct with llama.cpp")
    for x, y in [(x, y) for x, y in zip(ours, theirs) if x != y][:3]:
        print("   ours  ", fm.sp.decode(x), "\n   theirs", fm.sp.decode(y))
    x = prompts[0] + ours[0]
    logits = np.array(ask(op="logits", tokens=x)["logits"], np.float32)
    with torch.no_grad():
        mine = model(torch.tensor(x)[None])[0].numpy()
    print(f"{name}: largest logit difference {np.abs(logits - mine).max():.3f} of range {mine.min():.1f}..{mine.max():.1f}")
    failed |= same < len(texts) or eq < 0.95 * len(prompts)
    ask(op="quit")
sys.exit(failed)
