#!/usr/bin/env python3
"""Makes tests/data/rerankers: small random cross-encoders as Hugging Face folders with the files of their tokenizers, and the
scores of transformers for pairs of texts. A developer's tool: the tests only read its output.

usage: tools/make_reranker_refs.py [NAME ...]     all by default

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.
"""
import json
import random
import shutil
import subprocess
import sys
import tempfile
import pathlib

from refs_common import ROOT, VENV, enter_venv

enter_venv()

try:
    import sentencepiece as spm
except ImportError:
    subprocess.run([VENV / "bin/pip", "install", "-q", "sentencepiece", "protobuf", "tiktoken"], check=True)
    import sentencepiece as spm
import torch  # noqa: E402
import transformers as tf  # noqa: E402

OUT = ROOT / "tests/data/rerankers"
WORDS = ("the old harbour wakes gulls argue ropes creak and boats wait for tide asks Ana what is capital of France Paris city light kitchen "
         "turn on off warm cold door window garden river mountain seven eight nine").split()
PAIRS = [("what is the capital of France", "Paris is the capital city of France."), ("what is the capital of France", "turn on the light in the kitchen"),
         ("gulls argue", "the old harbour wakes: gulls argue, ropes creak and 27 boats wait."), ("Cold  door?", "A WARM window, and more: naïve café")]
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, num_labels=1)


def corpus(tmp):
    file = tmp / "corpus.txt"
    file.write_text("\n".join(" ".join(random.Random(i).choices(WORDS, k=12)) + "." for i in range(2000)) + "\n")
    return file


def pieces(tmp, name, **how):
    """A SentencePiece model."""
    spm.SentencePieceTrainer.train(input=str(corpus(tmp)), model_prefix=str(tmp / "sp"), vocab_size=150, model_type="unigram", hard_vocab_limit=False,
                                   normalization_rule_name="identity", minloglevel=2, **how)
    shutil.move(tmp / "sp.model", tmp / name)


def vocab(special):
    text = "".join(WORDS).lower()
    return special + sorted(set(text + ".:,?0123456789")) + ["##" + c for c in sorted(set(text))] + sorted({w.lower() for w in WORDS if len(w) > 1})


def files(tmp, tokenizer_class, model_type, **config):
    (tmp / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer_class, **config}) + "\n")
    (tmp / "config.json").write_text(json.dumps({"model_type": model_type}))
    return tf.AutoTokenizer.from_pretrained(tmp)


def deberta(tmp):
    pieces(tmp, "spm.model", pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
    t = files(tmp, "DebertaV2Tokenizer", "deberta-v2", do_lower_case=False, vocab_type="spm")
    return t, tf.DebertaV2ForSequenceClassification(tf.DebertaV2Config(
        **SIZES, vocab_size=len(t) + 3, relative_attention=True, position_buckets=16, max_position_embeddings=64, norm_rel_ebd="layer_norm",
        share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False, type_vocab_size=0)), ["spm.model"], {}


def albert(tmp):
    pieces(tmp, "spiece.model", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>", control_symbols="[CLS],[SEP],[MASK]")
    t = files(tmp, "AlbertTokenizer", "albert")
    return t, tf.AlbertForSequenceClassification(tf.AlbertConfig(
        **SIZES, vocab_size=len(t), embedding_size=8, hidden_act="gelu_new", max_position_embeddings=64)), ["spiece.model"], dict(return_token_type_ids=True)


def xlmr(tmp):
    pieces(tmp, "sentencepiece.bpe.model", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    t = files(tmp, "XLMRobertaTokenizer", "xlm-roberta")
    return t, tf.XLMRobertaForSequenceClassification(tf.XLMRobertaConfig(
        **SIZES, vocab_size=len(t) + 2, max_position_embeddings=66, type_vocab_size=1, pad_token_id=1)), ["sentencepiece.bpe.model"], {}


def electra(tmp):
    (tmp / "vocab.txt").write_text("\n".join(vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])) + "\n")
    t = files(tmp, "ElectraTokenizer", "electra", do_lower_case=True)
    return t, tf.ElectraForSequenceClassification(tf.ElectraConfig(
        **SIZES, vocab_size=len(t), embedding_size=8, max_position_embeddings=64)), ["vocab.txt"], {}


def mpnet(tmp):
    (tmp / "vocab.txt").write_text("\n".join(vocab(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])) + "\n")
    t = files(tmp, "MPNetTokenizer", "mpnet", do_lower_case=True)
    return t, tf.MPNetForSequenceClassification(tf.MPNetConfig(**SIZES, vocab_size=len(t), max_position_embeddings=66)), ["vocab.txt"], {}


def modernbert(tmp):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    k = Tokenizer(models.BPE())
    k.pre_tokenizer, k.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    k.train([str(corpus(tmp))], trainers.BpeTrainer(vocab_size=330, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], show_progress=False,
                                                    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    k.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    k.save(str(tmp / "tokenizer.json"))
    t = tf.PreTrainedTokenizerFast(tokenizer_object=k, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]")
    return t, tf.ModernBertForSequenceClassification(tf.ModernBertConfig(
        **SIZES, vocab_size=len(t), max_position_embeddings=64, local_attention=8, pad_token_id=3, cls_token_id=1, sep_token_id=2, bos_token_id=1,
        eos_token_id=2)), ["tokenizer.json"], {}


def randomize(model):
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, p in model.named_parameters():
            spread = 0.1 if p.ndim == 1 else 0.5 if "embed" in name else 1.2 / p.shape[-1] ** 0.5
            p.copy_(torch.randn(p.shape, generator=g) * spread + (1 if "norm.weight" in name.lower() else 0))


def make(name, build):
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        tokenizer, model, keep, how = build(tmp)
        randomize(model.eval())
        out = OUT / name
        shutil.rmtree(out, ignore_errors=True)
        model.save_pretrained(out)
        for file in [*keep, "tokenizer_config.json"]:
            if (tmp / file).exists():
                shutil.copy(tmp / file, out / file)
        scores = []
        for query, text in PAIRS:
            with torch.no_grad():
                scores.append(float(model(**tokenizer(query, text, return_tensors="pt", **how)).logits[0, 0]))
        print(name, scores, flush=True)
        return scores


def main():
    every = dict(deberta=deberta, albert=albert, xlmr=xlmr, electra=electra, mpnet=mpnet, modernbert=modernbert)
    file = OUT / "scores.json"
    known = json.loads(file.read_text())["scores"] if file.exists() else {}
    for name in sys.argv[1:] or every:
        torch.manual_seed(1)
        known[name] = make(name, every[name])
    file.write_text(json.dumps({"pairs": PAIRS, "scores": known}, indent=1, ensure_ascii=False) + "\n")


main()
