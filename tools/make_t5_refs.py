#!/usr/bin/env python3
"""Makes tests/data/t5: small random models of T5 and its relatives (mT5, BART, Marian) as Hugging Face
folders, and the results of transformers for them.  A developer's tool: the tests only read its output.

usage: tools/make_t5_refs.py [NAME ...]     all by default

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.  The files are described
in tests/data/t5/README.md.
"""
import io
import json
import shutil
import sys

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv("sentencepiece")

import numpy as np  # noqa: E402
import sentencepiece as spm  # noqa: E402
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
TWO_SIDES = dict(max_position_embeddings=64, encoder_attention_heads=4, decoder_attention_heads=4)
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
    # a folder as google/mt5-small: spiece.model alone
    "mt5": (tf.MT5Config(**COMMON, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=1,
                         num_heads=4), torch.float16),
    "marian": (tf.MarianConfig(**TWO_SIDES, vocab_size=VOCAB, d_model=32, encoder_layers=2, decoder_layers=1,
                               encoder_ffn_dim=48, decoder_ffn_dim=48, activation_function="swish",
                               scale_embedding=True, pad_token_id=VOCAB - 1, decoder_start_token_id=VOCAB - 1,
                               eos_token_id=0, forced_eos_token_id=0, bos_token_id=None), torch.float16),
    "bart": (tf.BartConfig(**TWO_SIDES, vocab_size=288, d_model=32, encoder_layers=1, decoder_layers=2,
                           encoder_ffn_dim=48, decoder_ffn_dim=48), torch.float16),
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


def randomize_two_sides(model, rng):
    """The same for BART and Marian, whose norms have biases and whose outputs have one as well."""
    c = model.config
    with torch.no_grad():
        for name, p in model.named_parameters():
            if c.model_type == "marian" and "embed_positions" in name:
                continue
            spread, mean = p.shape[-1] ** -0.5, 0.0
            if p.ndim == 1:
                spread, mean = 0.1, 1.0 if "norm" in name and name.endswith("weight") else 0.0
            elif "embed_positions" in name:
                spread = 0.5
            elif "shared" in name:  # small where it is scaled: otherwise tokens predict themselves
                spread = 0.2 if c.scale_embedding else 0.4
            elif ".q_proj." in name or ".k_proj." in name:
                spread *= 1.6
            elif c.scale_embedding:
                spread *= 3.0
            p.copy_(torch.tensor(rng.normal(mean, spread, p.shape)))
        model.final_logits_bias.copy_(torch.tensor(rng.normal(0.0, 0.4, model.final_logits_bias.shape)))
        model.final_logits_bias[0, c.eos_token_id] += 1.5


def train_spm(path, texts, size, **options):
    """A SentencePiece model of so many pieces, with a small normalizer of its own."""
    model, rules = io.BytesIO(), path.with_suffix(".tsv")
    rules.write_text("".join(f"{ord(a):X}\t{' '.join(f'{ord(x):X}' for x in b)}\n"
                             for a, b in (("\uff21", "A"), ("\u2026", "..."), ("\u00bd", "1/2"))))
    spm.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, vocab_size=size, model_type="unigram",
                                   normalization_rule_tsv=str(rules), hard_vocab_limit=False, num_threads=1,
                                   minloglevel=2, **options)
    rules.unlink()
    path.write_bytes(model.getvalue())
    return spm.SentencePieceProcessor(model_proto=model.getvalue())


class SpieceTokenizer:
    """mT5's: the pieces of the model, then the end."""

    def __init__(self, folder):
        self.sp = train_spm(folder / "spiece.model", [*TEXTS, WORDS], VOCAB - 8, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "T5Tokenizer", "extra_ids": 0, "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}) + "\n")

    def encode(self, text):
        return [*self.sp.encode(text), 1]

    def decode(self, ids):
        return self.sp.decode([i for i in ids if 2 < i < self.sp.get_piece_size()])


TARGET_TEXTS = ["Der alte Hafen erwacht: M\u00f6wen streiten und 27 Boote warten auf die Flut.", "Gehen? fragt Ana.",
                "Die Boote warten. Die M\u00f6wen streiten. Gr\u00fc\u00dfe!"]


class PairTokenizer:
    """Marian's: pieces of two languages, numbered by vocab.json.  Some pieces of the source have no number."""

    def __init__(self, folder):
        source = train_spm(folder / "source.spm", [*TEXTS, WORDS], 90)
        target = train_spm(folder / "target.spm", TARGET_TEXTS, 70)
        pieces = [[p.id_to_piece(i) for i in range(3, p.get_piece_size())] for p in (source, target)]
        longest = sorted(pieces[0], key=len)[-1]
        tokens = ["</s>", "<unk>", ">>deu<<", ">>fra<<"]
        tokens += [p for p in dict.fromkeys([*pieces[0][::2], *pieces[1], *pieces[0][1::2]])
                   if p not in (longest, "?", "\u2581the")][:VOCAB - 1 - len(tokens)]
        tokens += [f"unused{i}" for i in range(VOCAB - 1 - len(tokens))] + ["<pad>"]
        assert "\u00df" in tokens and len(tokens) == VOCAB
        (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}, ensure_ascii=False) + "\n")
        (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "eng", "target_lang": "deu"}) + "\n")
        self.t = tf.MarianTokenizer.from_pretrained(folder)

    def encode(self, text):
        return self.t(text).input_ids

    def decode(self, ids):
        return self.t.decode(ids, skip_special_tokens=True)


class BytesTokenizer:
    """BART's: vocab.json and merges.txt, as older folders have them, without naming the class."""

    def __init__(self, folder):
        t = tk.ByteLevelBPETokenizer()
        t.train_from_iterator([*TEXTS, WORDS], vocab_size=288, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                              show_progress=False)
        t.save_model(str(folder))
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64}) + "\n")
        self.t = tf.BartTokenizer(vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"))

    def encode(self, text):
        return self.t(text).input_ids

    def decode(self, ids):
        return self.t.decode(ids, skip_special_tokens=True)


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


def references(model, sources, rng):
    """What the tests compare: encoded sources, and logits of random targets."""
    c = model.config
    ids, encoded, targets, logits = [], [], [], []
    with torch.no_grad():
        for i in sources:
            t = [c.decoder_start_token_id, *[int(v) for v in rng.integers(2, c.vocab_size, TARGET - 1)]]
            out = model(input_ids=torch.tensor([i]), decoder_input_ids=torch.tensor([t]))
            ids += i
            targets += t
            encoded.append(out.encoder_last_hidden_state[0].numpy())
            logits.append(out.logits[0].numpy())
    return [("lengths", np.array([len(s) for s in sources], "<u4")), ("tokens", np.array(ids, "<u4")),
            ("encoded", np.concatenate(encoded).astype("<f4")), ("targets", np.array(targets, "<u4")),
            ("logits", np.concatenate(logits).astype("<f4"))]


# What folders of the relatives have in generation_config.json, and texts that show how they tokenize.
RELATIVES = {
    "mt5": (tf.MT5ForConditionalGeneration, SpieceTokenizer, dict(num_beams=2, max_length=20, min_length=5),
            ["The \uff21 waits\u2026  for   27 ropes", "\u00bd sails"]),
    "marian": (tf.MarianMTModel, PairTokenizer,
               dict(num_beams=4, max_length=24, forced_eos_token_id=0, bad_words_ids=[[VOCAB - 1]], renormalize_logits=True),
               [">>fra<< The boats wait.", "the \u00df and the \u00df\u00fc >>deu<< wait", "salt? \u2026 the mast the"]),
    "bart": (tf.BartForConditionalGeneration, BytesTokenizer,
             dict(num_beams=4, max_length=24, min_length=6, forced_bos_token_id=0, forced_eos_token_id=2, early_stopping=True,
                  length_penalty=2.0, no_repeat_ngram_size=3),
             ["  Go?\n\u00dcber", "rope 27"]),
}


def make_relative(name):
    config, dtype = MODELS[name]
    kind, tokenizer_kind, settings, texts = RELATIVES[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    model = kind(config).eval()
    if name == "mt5":
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        config.scale_decoder_outputs = False
        randomize(model, rng)
    else:
        randomize_two_sides(model, rng)
    model = model.to(dtype)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    tokens = dict(eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id,
                  decoder_start_token_id=config.decoder_start_token_id)
    model.generation_config = tf.GenerationConfig(**tokens, **settings)
    model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    tokenizer = tokenizer_kind(folder)
    model = model.double()
    for side in (model.model.encoder, model.model.decoder) if name == "marian" else ():  # were rounded as well
        side.embed_positions.weight.data = side.embed_positions.create_weight().double()
    model.generation_config = tf.GenerationConfig(**tokens)
    sources = [[int(v) for v in rng.integers(3, config.vocab_size, n)] for n in LENGTHS[:3]]
    sections = references(model, sources, rng)
    plain = generate(model, sources[0], max_new_tokens=24, num_beams=3)[0]
    rules = dict(forced_bos_token_id=plain[1], forced_eos_token_id=config.eos_token_id,
                 bad_words_ids=[[plain[0]], [plain[1], plain[2]], [plain[3], plain[4]]], renormalize_logits=True)
    for what, options in {**GENERATIONS, "beam3.rules": dict(max_new_tokens=12, num_beams=3, **rules),
                          "greedy.rules": dict(max_new_tokens=12, **rules)}.items():
        made = [generate(model, i, **options) for i in sources]
        sections.append((what, padded([m[0] for m in made])))
        print(name, what, [len(m[0]) for m in made], [m[0][:6] for m in made])
        if "num_beams" in options:
            sections.append((what + ".s", np.array([m[1] for m in made], "<f4")))
    sections.append(("rules", np.array(plain[:5], "<u4")))
    write_ref(OUT / f"{name}.ref", sections)
    made = []
    for text in [*TEXTS, *texts]:
        i = tokenizer.encode(text)
        made.append({"text": text, "ids": i, "summary": tokenizer.decode(generate(model, i, **settings)[0]),
                     "greedy": tokenizer.decode(generate(model, i, **{**settings, "num_beams": 1, "early_stopping": False})[0])})
        print(made[-1])
    (OUT / f"{name}.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(name, sum(p.numel() for p in model.parameters()), [f"{s} {a.shape}" for s, a in sections], flush=True)


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
    sources = [[int(v) for v in rng.integers(3, VOCAB, n)] for n in LENGTHS]
    sections = references(model, sources, rng)
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
        make_relative(name) if name in RELATIVES else make(name)


main()
