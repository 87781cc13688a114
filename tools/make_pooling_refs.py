#!/usr/bin/env python3
"""Makes tests/data/pooling: sentence embedders on the encoder tests/data/encoders/bert, as
sentence-transformers writes them, and the embeddings it computes. A developer's tool: the tests only
read its output.

usage: tools/make_pooling_refs.py

Needs PyPI; makes a Python environment of its own in .cache/pooling-venv.  Each case keeps only what
differs from the encoder: the JSON files and the weights of dense layers.  See README.md there.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from refs_common import ROOT, SEED, write_ref

VENV = ROOT / ".cache/pooling-venv"
PACKAGES = ["torch==2.15.0", "transformers==5.22.2", "sentence-transformers==6.2.0", "numpy"]
if "SHOAL_POOLING_VENV" not in os.environ and pathlib.Path(sys.prefix).resolve() != VENV.resolve():
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import numpy as np  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer  # noqa: E402

OUT = ROOT / "tests/data/pooling"
BERT = ROOT / "tests/data/encoders/bert"
TEXTS = [
    "the old harbour wakes",
    "go?",
    "gulls argue, the ropes creak and 27 boats wait for the tide",
    "ana asks the boats and the gulls: the ropes creak, the tide argue, the old harbour wait",
]
OLD_KEYS = {
    "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens", "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens", "lasttoken": "pooling_mode_lasttoken",
}
# name: pooling modes, and other options of the case
CASES = {
    "cls": (["cls"], {}),
    "max": (["max"], {}),
    "mean": (["mean"], {}),
    "sqrt": (["mean_sqrt_len_tokens"], dict(similarity="dot")),
    "weighted": (["weightedmean"], {}),
    "last": (["lasttoken"], {}),
    "two": (["mean", "cls"], {}),  # a list keeps its order
    "three-old": (["cls", "max", "weightedmean"], dict(old=True)),
    "short": (["mean"], dict(max_tokens=8)),
    "short-tokenizer": (["mean"], dict(tokenizer_max=9)),
    "dense": (["mean"], dict(dense=[(24, torch.nn.Tanh(), True)], normalize=True)),
    "dense-two": (["mean", "max"], dict(dense=[(40, torch.nn.GELU(), True), (130, torch.nn.Identity(), False)],
                                        similarity="dot")),
    "prompts": (["mean"], dict(prompts={"query": "ana asks: ", "passage": "tide "}, default="query")),
}


def make(name, modes, old=False, max_tokens=None, tokenizer_max=None, dense=(), normalize=False, similarity=None,
         prompts=None, default=None):
    torch.manual_seed(SEED)
    base = pathlib.Path(tempfile.mkdtemp())
    shutil.copytree(BERT, base / "bert")
    if tokenizer_max:
        path = base / "bert/tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": tokenizer_max}))
    transformer = Transformer(str(base / "bert"), **({"max_seq_length": max_tokens} if max_tokens else {}))
    width = 64
    modules = [transformer, Pooling(width, pooling_mode=modes[0] if len(modes) == 1 else modes)]
    width *= len(modes)
    for n_out, act, bias in dense:
        modules.append(Dense(width, n_out, bias=bias, activation_function=act))
        width = n_out
    modules += [Normalize()] if normalize else []
    model = SentenceTransformer(modules=modules, device="cpu", prompts=prompts, default_prompt_name=default,
                                similarity_fn_name=similarity).eval()
    saved, folder = base / "saved", OUT / name
    model.save(str(saved), create_model_card=False)
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(saved.rglob("*")):
        at = path.relative_to(saved)
        keep = {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"}
        if path.is_dir() or not (len(at.parts) > 1 or at.name in keep):
            continue
        (folder / at).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / at)
    if tokenizer_max:  # as in the encoder's folder; the saved one is for another tokenizer class
        shutil.copy(base / "bert/tokenizer_config.json", folder)
    if max_tokens:  # newer versions write it only into the tokenizer's configuration
        path = folder / "sentence_bert_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "max_seq_length": max_tokens}, indent=4) + "\n")
    if old:
        (folder / "1_Pooling/config.json").write_text(json.dumps(
            {"word_embedding_dimension": 64, **{k: m in modes for m, k in OLD_KEYS.items()}}, indent=4) + "\n")
    sections = []
    for prompt in [None, *(prompts or {})]:
        kind = dict(prompt_name=prompt) if prompt else {}
        v = model.encode(TEXTS, batch_size=1, convert_to_numpy=True, **kind).astype("<f4")
        if not similarity:  # we scale embeddings to length 1, unless their length matters
            v = v / np.linalg.norm(v, axis=1, keepdims=True)
        sections.append((prompt or "vectors", v))
    n = [len(transformer.tokenizer(t, truncation=True)["input_ids"]) for t in TEXTS]
    sections.append(("lengths", np.array(n, "<u4")))
    write_ref(OUT / f"{name}.ref", sections)
    print(name, [(s, a.shape) for s, a in sections], n, flush=True)


def main():
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    for name, (modes, more) in CASES.items():
        make(name, modes, **more)


main()
