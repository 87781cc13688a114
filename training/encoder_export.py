"""Writes models/encoder: a stock BERT folder with the extra heads, and checks what 8 and 4 bits cost."""

import copy
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import encoder as en
import encoder_data as ed
import gguf_out

# How much the counted tag transitions weigh in decoding, chosen on the valid splits; 0 keeps only the
# rule that an I- tag follows its own type.
TRANSITION_WEIGHT = {"snips": 0.5, "atis": 0.0, "home": 0.0, "wnut17": 0.0}
NEVER = -1e4


def transitions(data, tags):
    """Per tag set: [n + 1, n] of weight x log P(next | previous), NEVER where BIO forbids it; the last row starts."""
    import random

    out = {}
    for name, names in tags.items():
        n, at = len(names), {t: i for i, t in enumerate(names)}
        c = np.zeros((n + 1, n))
        if name == "home":
            rng = random.Random(4)
            seqs = [ed.home_sample(rng)["tags"] for _ in range(5000)]
        else:
            seqs = [r["tags"] for r in ed.rows(data / f"{name}.train.jsonl")]
        for s in seqs:
            prev = n
            for t in s:
                c[prev, at[t]] += 1
                prev = at[t]
        lp = np.log((c + 0.01) / (c + 0.01).sum(1, keepdims=True)) * TRANSITION_WEIGHT[name]
        for i, x in enumerate(names + ["O"]):
            for j, y in enumerate(names):
                if y[0] == "I" and (x == "O" or x[2:] != y[2:]):
                    lp[i, j] = NEVER
        out[name] = lp.astype(np.float16)
    return out


def decode(logits, table, names):
    """Viterbi over log-softmax of the logits and a transition table."""
    lp = np.log(en.softmax(logits) + 1e-9)
    table = table.astype(np.float32)
    score, back = lp[0] + table[-1], []
    for row in lp[1:]:
        m = score[:, None] + table[:-1]
        back.append(m.argmax(0))
        score = m.max(0) + row
    path = [int(score.argmax())]
    for b in reversed(back):
        path.append(int(b[path[-1]]))
    return [names[i] for i in reversed(path)]


def quantized(model, bits):
    """A copy whose matrices went through 8-bit rows or 4-bit blocks of 32."""
    m = copy.deepcopy(model)
    for name, p in m.named_parameters():
        if p.dim() != 2 or "position" in name or "token_type" in name:
            continue
        x = p.detach().numpy()
        if bits == 8:
            s = np.abs(x).max(1, keepdims=True) / 127
            p.data = torch.from_numpy(np.rint(x / s) * s)
        else:
            p.data = torch.from_numpy(gguf_out.dequant(x, "Q4_0"))
    return m


def slots(model, pieces, data, tags, rt, table):
    out = {}
    for name, split in (("snips", "valid"), ("atis", "valid"), ("wnut17", "valid")):
        r = ed.rows(data / f"{name}.{split}.jsonl")[: en.LIMIT]
        a, b = rt.at[name]
        _, tg, _ = en.logits_of(model, [x["tokens"] for x in r], pieces, "cpu", cased=name in en.CASED)
        out[name] = round(en.f1([x["tags"][: len(z)] for x, z in zip(r, tg)], [decode(z[:, a:b], table[name], tags[name]) for z in tg]), 4)
    return out


def write_tokenizer(out, vocab, positions):
    """The word pieces in the three files of a stock folder."""
    (out / "vocab.txt").write_text("\n".join(vocab) + "\n")
    special = {x: vocab.index(x) for x in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    json.dump(dict(
        version="1.0", truncation=None, padding=None,
        added_tokens=[dict(id=i, content=x, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for x, i in special.items()],
        normalizer=dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True), pre_tokenizer=dict(type="BertPreTokenizer"),
        post_processor=dict(type="TemplateProcessing", single=[{"SpecialToken": dict(id="[CLS]", type_id=0)}, {"Sequence": dict(id="A", type_id=0)}, {"SpecialToken": dict(id="[SEP]", type_id=0)}],
                            pair=[{"SpecialToken": dict(id="[CLS]", type_id=0)}, {"Sequence": dict(id="A", type_id=0)}, {"SpecialToken": dict(id="[SEP]", type_id=0)}, {"Sequence": dict(id="B", type_id=1)}, {"SpecialToken": dict(id="[SEP]", type_id=1)}],
                            special_tokens={x: dict(id=x, ids=[special[x]], tokens=[x]) for x in ("[CLS]", "[SEP]")}),
        decoder=dict(type="WordPiece", prefix="##", cleanup=True),
        model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100, vocab={t: i for i, t in enumerate(vocab)})),
        open(out / "tokenizer.json", "w"), ensure_ascii=False)
    json.dump(dict(tokenizer_class="BertTokenizer", do_lower_case=True, model_max_length=positions, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]"),
              open(out / "tokenizer_config.json", "w"), indent=1)


def main(a):
    data, work, out = pathlib.Path(a.data), pathlib.Path(a.work), pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    vocab = (en.HERE / "data" / "encoder-vocab.txt").read_text().split("\n")[:-1]
    saved = json.load(open(work / "encoder-figures.json"))
    intents, tags, fig = saved["intents"], saved["tags"], saved["figures"]
    ri, rt = en.Ranges(intents, en.INTENT_SETS), en.Ranges(tags, en.TAG_SETS)
    w = load_file(str(work / "encoder.safetensors"))
    table = transitions(data, tags)
    model = en.Tasks(en.STUDENT, len(vocab), ri.n, rt.n)
    model.load_state_dict({k: x.float() for k, x in w.items()})
    model.eval()
    for name in en.TAG_SETS:
        w["tagger.transitions." + name] = torch.from_numpy(table[name])
    save_file({k: x.half().contiguous() for k, x in sorted(w.items())}, str(out / "model.safetensors"), metadata={"format": "pt"})

    c = en.STUDENT
    flat = [f"{s}/{x}" for s in en.INTENT_SETS for x in intents[s]]
    sets = {}
    for s in en.INTENT_SETS:
        sets[s] = dict(first=ri.at[s][0], count=len(intents[s]), temperature=fig[s]["temperature"], labels=intents[s])
    sets["clinc150"].update(oos="oos", threshold=fig["clinc150"]["threshold"])
    sets["combined"].update(oos="oos", threshold=round(fig["clinc150"]["threshold"], 2))
    sets["router"].update(oos="oos", threshold=0.0)
    flow = {d: {"home": "act", "time": "act", "media": "act", "organizer": "act", "communication": "act", "machine": "machine", "talk": "chat", "oos": "refuse"}.get(d, "answer") for d in intents["router"]}
    config = dict(
        architectures=["BertForSequenceClassification"], model_type="bert", hidden_size=c["hidden"], num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
        intermediate_size=c["ffn"], hidden_act="gelu", layer_norm_eps=1e-12, max_position_embeddings=c["positions"], type_vocab_size=ed.CASES, vocab_size=len(vocab),
        pad_token_id=0, position_embedding_type="absolute", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, torch_dtype="float16",
        id2label={str(i): x for i, x in enumerate(flat)}, label2id={x: i for i, x in enumerate(flat)},
        shoal=dict(
            intent=dict(weight="classifier.weight", bias="classifier.bias", pooling="pooler", default="combined", label_sets=sets),
            router=dict(uses="intent", label_set="router", flow=flow),
            entities=dict(weight="tagger.weight", bias="tagger.bias", unit="first piece of each whitespace word", default="home", pii=en.home.PII,
                          label_sets={s: dict(first=rt.at[s][0], count=len(tags[s]), transitions="tagger.transitions." + s, cased=s in en.CASED, labels=tags[s]) for s in en.TAG_SETS}),
            embed=dict(pooling="mean", normalize=True, dimensions=c["hidden"]),
        ))
    json.dump(config, open(out / "config.json", "w"), indent=1)
    write_tokenizer(out, vocab, c["positions"])

    pieces = ed.Pieces(vocab)
    report = {}
    for bits in (16, 8, 4):
        m = model if bits == 16 else quantized(model, bits)
        got, _ = en.measure(m, pieces, data, intents, tags, ri, rt, "cpu", True)
        got["slots"] = slots(m, pieces, data, tags, rt, table)
        got["embed"] = en.measure_embed(lambda ts: en.logits_of(m, [t.split() for t in ts], pieces, "cpu")[2], data)
        report[bits] = got
        print(bits, "bits", json.dumps(got), flush=True)
    json.dump(report, open(work / "encoder-bits.json", "w"), indent=1)

    if en.LIMIT:
        return
    try:  # the folder must load as a stock BERT
        from transformers import BertForSequenceClassification
        from tokenizers import Tokenizer
    except ImportError:
        return
    stock = BertForSequenceClassification.from_pretrained(str(out), dtype=torch.float32).eval()
    tok = Tokenizer.from_file(str(out / "tokenizer.json"))
    worst = 0.0
    for r in ed.rows(data / "snips.valid.jsonl")[:50]:
        ids = tok.encode(r["text"]).ids
        assert ids == pieces.encode(r["text"].split())[0], r["text"]
        x = torch.tensor(ids)[None]
        with torch.no_grad():
            worst = max(worst, float((stock(input_ids=x).logits - model.intents(model.bert(x)[0])).abs().max()))
    print(f"transformers and ours differ by at most {worst:.5f}")
    assert worst < 1e-3
