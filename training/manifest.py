#!/usr/bin/env python3
"""Writes models/models.json from the files in models/, or checks it (--check)."""

import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "models"
LIMIT = 112 << 20  # 40 MiB, 8 MiB that the reader may add, 32 MiB each for the recognizer of speech and the voice
ENCODER = ["encoder/config.json", "encoder/vocab.txt", "encoder/tokenizer.json", "encoder/tokenizer_config.json"]
MODELS = [
    dict(name="reply", task="generate", format="gguf", file="reply.gguf", licence="CC-BY-SA-4.0"),
    dict(name="reply-draft", task="generate", format="gguf", file="reply-draft.gguf", licence="CC-BY-SA-4.0", drafts_for="reply"),
    dict(name="intent", task="classify", format="hf-bert", file="encoder/model.safetensors", also=ENCODER, head="intent", int8=True, licence="Apache-2.0"),
    dict(name="router", task="classify", format="hf-bert", file="encoder/model.safetensors", also=ENCODER, head="router", int8=True, labels="router", licence="Apache-2.0"),
    dict(name="entities", task="tag", format="hf-bert", file="encoder/model.safetensors", also=ENCODER, head="entities", int8=True, licence="Apache-2.0"),
    dict(name="reader", task="classify", format="gguf", file="reader.gguf", licence="CC-BY-SA-4.0"),
    dict(name="embed", task="embed", format="hf-bert", file="encoder/model.safetensors", also=ENCODER, head="embed", int8=True, licence="Apache-2.0"),
    dict(name="summary", task="summarize", format="shoal-summary", file="summary.json", also=["encoder/model.safetensors"] + ENCODER, int8=True, licence="CC-BY-SA-4.0"),
    dict(name="hear", task="transcribe", format="gguf", file="hear.gguf", licence="MIT"),
    dict(name="voice", task="speak", format="gguf", file="voice.gguf", licence="MIT AND BSD-2-Clause"),
    dict(name="anomaly", task="score", format="folder", file="anomaly/config.json", also=["anomaly/trees.txt", "anomaly/lstm/config.json", "anomaly/lstm/model.safetensors"], licence="MIT"),
]
TABLES = [
    dict(name="home", format="shoal-home", file="home.json", licence="MIT"),
    *(dict(name=f"home-{x}", format="shoal-home", file=f"home-{x}.json", licence="MIT", card="home.md") for x in ("de", "fr", "es")),
    dict(name="demo-home", format="shoal-home-file", file="demo-home.yaml", licence="MIT", card="home.md"),
    dict(name="recipes", format="shoal-recipes", file="recipes.json", licence="MIT"),
    dict(name="wake", format="shoal-scorer", file="wake/config.json", licence="MIT"),
    dict(name="wake-weights", format="safetensors", file="wake/model.safetensors", licence="MIT", card="wake.md"),
]


def entry(name):
    b = (ROOT / name).read_bytes()
    return dict(file=name, bytes=len(b), sha256=hashlib.sha256(b).hexdigest())


def card(m):
    return m.get("card", m["name"] + ".md")


def rows(models):
    out = []
    for m in models:
        if not (ROOT / m["file"]).exists():
            continue
        also = m.get("also", [])
        row = {k: x for k, x in m.items() if k not in ("also", "file")} | entry(m["file"])
        row["card"] = card(m)
        if also:
            row["also"] = [entry(x) for x in also]
        out.append(row)
    return out


def build():
    return dict(version=1, models=rows(MODELS), tables=rows(TABLES))


if __name__ == "__main__":
    want = json.dumps(build(), indent=2) + "\n"
    total = sum(p.stat().st_size for p in ROOT.rglob("*") if p.is_file())
    missing = [m["name"] for m in MODELS + TABLES if (ROOT / m["file"]).exists() and not (ROOT / card(m)).exists()]
    if missing:
        sys.exit(f"no card for {', '.join(missing)}")
    if total > LIMIT:
        sys.exit(f"models/ holds {total} bytes, more than {LIMIT}")
    if "--check" in sys.argv:
        if (ROOT / "models.json").read_text() != want:
            sys.exit("models/models.json does not fit the files: run training/manifest.py")
        print(f"models/models.json fits, {total / 2**20:.1f} MiB in all")
    else:
        (ROOT / "models.json").write_text(want)
        print(f"{total / 2**20:.1f} MiB in all")
