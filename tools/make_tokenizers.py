#!/usr/bin/env python3
"""Makes tests/data/tokenizers: small tokenizers in the formats of Hugging Face folders, trained on
generated text, and the results of PyPI's tokenizers and sentencepiece for some lines.  A developer's
tool: the tests only read its output.

usage: tools/make_tokenizers.py [FOLDER...]     only those folders; default all
Needs PyPI; makes a Python environment of its own in .cache.
The files are described in tests/data/tokenizers/README.md.
"""
import io
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/data/tokenizers"
VENV = ROOT / ".cache/tokenizers-venv"
PACKAGES = ["tokenizers==0.23.3", "sentencepiece==0.2.2", "protobuf==6.33.0"]

if pathlib.Path(sys.prefix) != VENV and not os.environ.get("SHOAL_VENV"):
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/pip"), "install", "-q", *PACKAGES], check=True)
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import sentencepiece  # noqa: E402
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,  # noqa: E402
                        pre_tokenizers, processors, trainers)

R = random.Random(20240531)
SENTENCES = [
    "turn the kitchen lights down to {n} percent before dinner",
    "the pump in hall {n} runs hot again, please send someone",
    "close both valves and wait until the pressure falls below {n} bar",
    "what is the temperature in the greenhouse right now",
    "remind me at {n} o'clock that the bread is still in the oven",
    "it's raining, isn't it? we'll stay inside and play",
    "la pompe de la cave fait du bruit depuis hier soir",
    "die Heizung im Bad läuft seit {n} Stunden ohne Pause",
    "el sensor del garaje ya no responde, ¿qué hacemos?",
    "в подвале темно и холодно, включи свет",
    "今日は暖かいので窓を開けてください",
    "请把客厅的灯关掉",
    "الباب مفتوح منذ ساعة",
]


def sentence():
    return R.choice(SENTENCES).format(n=R.randint(1, 99))


def corpus():
    return [sentence() for _ in range(600)] + [s.upper() for s in SENTENCES[:4]]


# Lines for the references: sentences, unusual spellings, and characters of many Unicode blocks.
BLOCKS = [(0x21, 0x7e), (0xa0, 0xff), (0x100, 0x17f), (0x300, 0x33f), (0x391, 0x3c9), (0x410, 0x44f),
          (0x5d0, 0x5ea), (0x621, 0x652), (0x904, 0x94d), (0xe01, 0xe3a), (0x1100, 0x1112),
          (0x2010, 0x203a), (0x2070, 0x208e), (0x2160, 0x2188), (0x2460, 0x24e9), (0x3041, 0x30fe),
          (0x3300, 0x33ff), (0x4e00, 0x4fff), (0xac00, 0xacff), (0xf900, 0xfa2d), (0xfb00, 0xfb06),
          (0xff01, 0xff9d), (0x1d400, 0x1d4ff), (0x1f300, 0x1f5ff), (0x1f600, 0x1f64f), (1, 0x1f)]
ODD = ["", " ", "  two  spaces  ", "\ttab\nnew line\r\n", "e\u0301 \u00e9 a\u0323\u0307 \u0130stanbul",
       "\u1112\u1161\u11ab \ud55c", "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
       "<s> </s> <unk> <pad> <mask>", "[MASK] a[MASK]b", "\u2581 \u2581under", "x\u00a0y\u3000z\u200bw",
       "\ufb01ne \u00bd \u2122 \uff28\uff49", "don't WE'LL I'd", "12345 1a2b 3.14", "a-b_c d.e!?",
       "\u4e2d\u6587abc", "\ufffd\ufffe\u0000\u0001", "<extra_id_0> and <extra_id_1>", "tag tags #tag",
       "wide  (space)\u2028line", "\u00df\u1e9e \u03a3\u03c2 \u01c5", "9\u00b2\u2460\u2167"]


def lines(n=90):
    out = list(ODD)
    while len(out) < n:
        kind, s = R.random(), sentence()
        if kind < 0.3:
            out.append(s)
        elif kind < 0.5:
            out.append("".join(R.choice([c, c, c, c.upper(), " " + c, c + "\u0301"]) for c in s[:40]))
        else:
            a, b = R.choice(BLOCKS)
            other = "".join(chr(R.randint(a, b)) for _ in range(R.randint(1, 8)))
            out.append(R.choice([s[:20] + other, other + " " + other, other]))
    return out


def bytes_at(text, at):
    return len(text[:at].encode())


def answer(encoding, a, b):
    """The output format of tests/tools/tok_lines.c."""
    parts = []
    for i, t, (s, e), k in zip(encoding.ids, encoding.type_ids, encoding.offsets, encoding.sequence_ids):
        text = b if k == 1 else a
        parts.append(f"{i}:{t}:{2 if k is None else k}:{bytes_at(text, s)}:{bytes_at(text, e)}")
    return " ".join(parts)


def write(folder, files, refs):
    if sys.argv[1:] and folder not in sys.argv[1:]:
        return
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        mode = "wb" if isinstance(data, bytes) else "w"
        with open(OUT / folder / name, mode) as f:
            f.write(data)
    with open(OUT / folder / "expected.jsonl", "w") as f:
        for r in refs:
            f.write(json.dumps(r, ensure_ascii=True) + "\n")


def refs_of(tok, strip=False, unlike=None):
    """strip: remove leading spaces; unlike: a token whose text is not compared."""
    out, texts = [], [a.lstrip(" ") if strip else a for a in lines()]
    for i, a in enumerate(texts):
        b = texts[(i * 7) % len(texts)] if i % 4 == 3 else None
        e = tok.encode(a, b) if b is not None else tok.encode(a)
        text = None if unlike in e.ids else tok.decode(e.ids)
        out.append({"a": a, "b": b, "tokens": answer(e, a, b), "text": text})
    return out


def from_json(tok):
    return json.dumps(json.loads(tok.to_str()), ensure_ascii=False, separators=(",", ":"))


def save(folder, tok, **how):
    write(folder, {"tokenizer.json": from_json(tok)}, refs_of(tok, **how))


def template(tok, first, last, second_type=0):
    ids = {t: tok.token_to_id(t) for t in (first, last) if t}
    single = [x for x in (first, "$A", last) if x]
    pair = single + [f"{x}:{second_type}" for x in ("$B", last) if x]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(ids.items()))


# ---- tokenizer.json ----

def unigram(byte_fallback):
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                           normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if byte_fallback else "always")
    tok.decoder = decoders.Metaspace()
    tok.train_from_iterator(corpus(), trainers.UnigramTrainer(
        vocab_size=500, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"], show_progress=False))
    if byte_fallback:
        j = json.loads(tok.to_str())
        j["model"]["byte_fallback"] = True
        n = len(j["model"]["vocab"])
        j["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0] for i in range(256)]
        assert n + 256 == len(j["model"]["vocab"])
        j["decoder"] = {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
        tok = Tokenizer.from_str(json.dumps(j))
    tok.post_processor = template(tok, None, "</s>")
    return tok


def charsmap(model):
    """Unigram with SentencePiece's table, as in T5's tokenizer.json."""
    import base64
    from sentencepiece import sentencepiece_model_pb2 as pb
    m = pb.ModelProto()
    m.ParseFromString(model)
    vocab = [[p.piece, p.score] for p in m.pieces]
    j = {"version": "1.0", "truncation": None, "padding": None,
         "added_tokens": [{"id": i, "content": p.piece, "single_word": False, "lstrip": False, "rstrip": False,
                           "normalized": False, "special": True}
                          for i, p in enumerate(m.pieces) if p.type in (2, 3)],
         "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(
             m.normalizer_spec.precompiled_charsmap).decode()},
         "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
             {"type": "WhitespaceSplit"},
             {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}]},
         "post_processor": None,
         "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
         "model": {"type": "Unigram", "unk_id": m.trainer_spec.unk_id, "vocab": vocab, "byte_fallback": False}}
    tok = Tokenizer.from_str(json.dumps(j))
    tok.post_processor = template(tok, None, "</s>")
    return tok


def bpe_words():
    """BPE over characters with normalizers, and every kind of added token."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFD(), normalizers.StripAccents(),
                                           normalizers.Lowercase(), normalizers.Replace("``", '"')])
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(),
                                                 pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.Punctuation("contiguous")])
    tok.decoder = decoders.BPEDecoder(suffix="</w>")
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False))
    tok.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    tok.add_tokens([AddedToken("tag", single_word=True), AddedToken("(space)", rstrip=True),
                    AddedToken("PUMP", normalized=True), AddedToken("Wide", normalized=False)])
    tok.post_processor = template(tok, "<s>", "</s>", 1)
    return tok


def bpe_split():
    """BPE with all behaviors of Split, byte fallback and Prepend/Replace as in Llama 2."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split("\u2581", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"\d{1,3}(?=(\d{3})*\b)"), "isolated"),
        pre_tokenizers.Split("-", "merged_with_previous"),
        pre_tokenizers.Split(Regex(r"[^\s]+"), "removed", invert=True)])
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=700, special_tokens=special,
                                                          show_progress=False))
    j = json.loads(tok.to_str())
    j["added_tokens"] = [t for t in j["added_tokens"] if not t["content"].startswith("<0x")]
    tok = Tokenizer.from_str(json.dumps(j))
    tok.post_processor = template(tok, "<s>", None)
    return tok


def words():
    tok = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tok.normalizer = normalizers.NFKD()
    tok.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    tok.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=200, special_tokens=["<unk>"],
                                                                show_progress=False))
    return tok


def roberta():
    """Byte-level BPE with RoBERTa's pairs; also as vocab.json and merges.txt."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                      add_prefix_space=True)
    return tok


def save_bpe_files(tok):
    j = json.loads(tok.to_str())
    vocab = dict(j["model"]["vocab"])
    for t in j["added_tokens"]:
        vocab[t["content"]] = t["id"]
    merges = "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in j["model"]["merges"])
    config = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True,
              "mask_token": {"content": "<mask>", "lstrip": True}}
    write("bpe-files", {"vocab.json": json.dumps(vocab, ensure_ascii=False), "merges.txt": merges,
                        "tokenizer_config.json": json.dumps(config)}, refs_of(tok, strip=True))


def wordpiece():
    """As vocab.txt, cased, accents kept."""
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=False)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    vocab = sorted(tok.get_vocab().items(), key=lambda kv: kv[1])
    write("vocab-txt", {"vocab.txt": "".join(t + "\n" for t, _ in vocab),
                        "tokenizer_config.json": json.dumps({"do_lower_case": False})}, refs_of(tok))


# ---- spiece.model ----

RULES = {"\uff21": "A", "\ufb01": "fi", "\u2122": "TM", "e\u0301": "\u00e9", "\u00a0": " ", "\u3000": " ", "\t": " ",
         "\n": " ", "\u200b": "", "\u00bd": "1/2", "\u2467": "8", "a\u0301": "\u00e1"}


def spiece(kind, **more):
    rules = ROOT / ".cache/tokenizer-rules.tsv"
    rules.parent.mkdir(exist_ok=True)
    with open(rules, "w") as f:
        for a, b in RULES.items():
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=out, model_type=kind, num_threads=1,
        minloglevel=2, **({"normalization_rule_tsv": os.path.relpath(rules)} | more))
    rules.unlink()
    return out.getvalue()


def save_spiece(folder, model, config, first, last, number=lambda i: i):
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    refs = []
    for a in lines():
        if any(x in a for x in ("<s>", "<extra", "\x00", "\u2581", "<unk>")):
            continue  # here special tokens are recognized in texts, and there U+2581 is a space
        plain = sp.encode(a)
        ids = first + [number(i) for i in plain] + last
        text = None if sp.unk_id() in plain else sp.decode(plain)  # it prints unknown tokens
        refs.append({"a": a, "b": None, "ids": ids, "text": text})
    write(folder, {"spiece.model": model, "tokenizer_config.json": json.dumps(config)}, refs)


def main():
    save("unigram", unigram(False))
    save("unigram-bytes", unigram(True))
    tok = bpe_words()
    save("bpe-words", tok, unlike=tok.token_to_id("PUMP"))  # it decodes to its normalized form
    save("bpe-split", bpe_split())
    save("words", words())
    tok = roberta()
    save("roberta", tok, strip=True)  # it counts a leading space twice: also as the one it adds
    save_bpe_files(tok)
    wordpiece()
    model = spiece("unigram", vocab_size=300, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
                   user_defined_symbols=["#tag"])
    save_spiece("spiece-unigram", model, {"tokenizer_class": "T5Tokenizer", "extra_ids": 10}, [], [1])
    save("unigram-charsmap", charsmap(model))
    bpe = spiece("bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                 remove_extra_whitespaces=False, normalization_rule_tsv="")
    save_spiece("spiece-bpe", bpe, {"tokenizer_class": "LlamaTokenizer"}, [1], [])
    # XLM-RoBERTa numbers the pieces differently: <s>, <pad>, </s>, <unk>, then the others shifted by one
    model = spiece("unigram", vocab_size=300)
    save_spiece("spiece-xlmr", model, {"tokenizer_class": "XLMRobertaTokenizer"}, [0], [2],
                lambda i: {0: 3, 1: 0, 2: 2}.get(i, i + 1))


main()
