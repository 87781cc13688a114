#!/usr/bin/env python3
"""Makes tests/data/t5: small random T5 models as Hugging Face folders, and the results of transformers
for them.  A developer's tool: the tests only read its output.

usage: tools/make_t5_refs.py [NAME ...]     all by default

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.  The files are described
in tests/data/t5/README.md.
"""
import json
import shutil
import sys

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv()

import numpy as np  # noqa: E402
import tokenizers as tk  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402

OUT = ROOT / "tests/data/t5"
LENGTHS = [20, 1, 33, 2, 7, 48]
TARGET = 18  # decoder tokens whose logits are stored, more than a page
TEXTS = ["The old harbour wakes: gulls argue, the ropes creak and 27 boats wait for the tide.",
         "Go? asks Ana.", "The boats wait. The gulls argue. The old ropes creak and the tide wakes the harbour."]
WORDS = "light door pump valve water north south rain wind ship crew deck mast sail fish net salt cold warm red blue"
VOCAB = 128

COMMON = dict(vocab_size=VOCAB, n_positions=64, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
# name -> (config, type of the file)
MODELS = {
    # all widths are multiples of 64: can be rounded to 8 bits
    "t5-relu": (tf.T5Config(**COMMON, d_model=64, d_kv=16, d_ff=64, num_layers=2, num_decoder_layers=1,
                            num_heads=4, feed_forward_proj="relu"), torch.float32),
    # flan-style: a gate, a separate output matrix; odd widths, other buckets, different depths
    "t5-gated": (tf.T5Config(**COMMON, d_model=40, d_kv=12, d_ff=72, num_layers=1, num_decoder_layers=3,
                             num_heads=3, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                             relative_attention_num_buckets=16, relative_attention_max_distance=40),
                 torch.float16),
}
# generation settings for every source; names as in generation_config.json
GENERATIONS = {
    "greedy": dict(max_new_tokens=24),
    "greedy.ngram": dict(max_new_tokens=24, no_repeat_ngram_size=2, min_new_tokens=9),
    "beam3": dict(max_new_tokens=24, num_beams=3),
    "beam3.early": dict(max_new_tokens=24, num_beams=3, early_stopping=True, length_penalty=2.0,
                        no_repeat_ngram_size=3, min_new_tokens=5),
    "beam4.never": dict(max_new_tokens=20, num_beams=4, early_stopping="never", length_penalty=-0.5),
}
SUMMARIZATION = dict(prefix="summarize: ", num_beams=3, max_length=25, min_length=6, early_stopping=True,
                     length_penalty=2.0, no_repeat_ngram_size=3)


def randomize(model, rng):
    """Makes weights as uneven as trained ones, with attention scores of about one and a likely end token."""
    c = model.config
    with torch.no_grad():
        for name, p in model.named_parameters():
            spread = p.shape[-1] ** -0.5
            if p.ndim == 1:
                spread = 0.1
            elif "relative_attention_bias" in name:
                spread = 1.0
            elif name == "shared.weight":  # small if it is also the output: otherwise tokens predict themselves
                spread = 0.3 if c.scale_decoder_outputs else 1.0
            elif ".q." in name:
                spread = (c.d_model * c.d_kv) ** -0.5 * 2.0
            p.copy_(torch.tensor(rng.normal(1.0 if p.ndim == 1 else 0.0, spread, p.shape)))
        model.lm_head.weight[1] *= 2.2 if c.scale_decoder_outputs else 1.4
        if c.scale_decoder_outputs:  # the scale would make all tokens equally likely
            model.decoder.final_layer_norm.weight *= 8


def make_tokenizer(folder):
    """A Unigram vocabulary of characters and words of TEXTS, set up as T5's."""
    words = sorted({w for t in [*TEXTS, "summarize: ", WORDS] for w in t.replace(":", " : ").split()})
    chars = sorted({c for t in [*TEXTS, "summarize:"] for c in t if c != " "})
    pieces = ["<pad>", "</s>", "<unk>", "\u2581", *chars]
    pieces += [p for w in words for p in ("\u2581" + w, w) if p not in pieces][:VOCAB - len(pieces)]
    pieces += [f"<extra_id_{i}>" for i in range(VOCAB - len(pieces))]
    t = tk.Tokenizer(tk.models.Unigram([(p, -0.5 * i if i > 3 else 0.0) for i, p in enumerate(pieces)], 2, False))
    t.pre_tokenizer = tk.pre_tokenizers.Metaspace("\u2581", prepend_scheme="always")
    t.decoder = tk.decoders.Metaspace("\u2581", prepend_scheme="always")
    t.post_processor = tk.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    t.add_special_tokens(["<pad>", "</s>", "<unk>"])
    t.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}) + "\n")
    return t


def padded(rows):
    out = np.zeros((len(rows), max(len(r) for r in rows)), "<u4")
    for i, r in enumerate(rows):
        out[i, :len(r)] = r
    return out


def generate(model, ids, **options):
    # the library's cache does not support different depths of encoder and decoder
    out = model.generate(torch.tensor([ids]), do_sample=False, use_cache=False, output_scores=True, return_dict_in_generate=True,
                         **options)
    score = float(out.sequences_scores[0]) if "sequences_scores" in out else 0.0
    return out.sequences[0].tolist()[1:], score


def make(name):
    config, dtype = MODELS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    model = tf.T5ForConditionalGeneration(config).eval()
    if not config.scale_decoder_outputs:  # this version ties it whatever the configuration says
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    randomize(model, rng)
    model = model.to(dtype)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    written["task_specific_params"] = {"summarization": SUMMARIZATION}
    (folder / "config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    (folder / "model.safetensors").chmod(0o644)
    tokenizer = make_tokenizer(folder)
    model = model.double()
    ids, encoded, targets, logits = [], [], [], []
    sources = [[int(v) for v in rng.integers(3, VOCAB, n)] for n in LENGTHS]
    with torch.no_grad():
        for i in sources:
            t = [0, *[int(v) for v in rng.integers(2, VOCAB, TARGET - 1)]]
            out = model(input_ids=torch.tensor([i]), decoder_input_ids=torch.tensor([t]))
            ids += i
            targets += t
            encoded.append(out.encoder_last_hidden_state[0].numpy())
            logits.append(out.logits[0].numpy())
    sections = [("lengths", np.array(LENGTHS, "<u4")), ("tokens", np.array(ids, "<u4")),
                ("encoded", np.concatenate(encoded).astype("<f4")), ("targets", np.array(targets, "<u4")),
                ("logits", np.concatenate(logits).astype("<f4"))]
    for kind, options in GENERATIONS.items():
        made = [generate(model, i, **options) for i in sources]
        sections.append((kind, padded([m[0] for m in made])))
        print(name, kind, [len(m[0]) for m in made])
        if "num_beams" in options:
            sections.append((kind + ".s", np.array([m[1] for m in made], "<f4")))
    buckets = model.encoder.block[0].layer[0].SelfAttention._relative_position_bucket
    d = torch.arange(-1000, 1001)
    n, far = config.relative_attention_num_buckets, config.relative_attention_max_distance
    sections += [("buckets.enc", buckets(d, True, n, far).numpy().astype("<u2")),
                 ("buckets.dec", buckets(d, False, n, far).numpy().astype("<u2"))]
    write_ref(OUT / f"{name}.ref", sections)
    texts = []
    for text in TEXTS:
        options = {k: v for k, v in SUMMARIZATION.items() if k != "prefix"}
        i = tokenizer.encode(SUMMARIZATION["prefix"] + text).ids
        texts.append({"text": text, "ids": i, "summary": tokenizer.decode(generate(model, i, **options)[0]),
                      "greedy": tokenizer.decode(generate(model, i, **{**options, "num_beams": 1,
                                                                       "early_stopping": False})[0])})
    (OUT / f"{name}.json").write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n")
    print(name, sum(p.numel() for p in model.parameters()), [f"{s} {a.shape}" for s, a in sections], flush=True)


def main():
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit(f"{name}: not one of {' '.join(MODELS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in names:
        make(name)


main()
