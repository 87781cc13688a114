#!/usr/bin/env python3
"""The tokenizer: byte-level BPE over lower-case text, with the words of the plan language in front as special tokens.

    training/reader/vocab.py .cache/reader/sources.json.gz training/reader/tokenizer.json
"""

import json
import random
import sys

import build
from plans import TOKENS

SIZE = 4096


def texts(path, n=30000):
    r = random.Random(1)
    s = build.Sources(path)
    done = 0
    while done < n:
        for e in build.batch(r, s):
            x = build.write(r, e, 0.3)
            if x:
                done += 1
                yield " ".join(t for t in x[0] if not t.startswith("<"))


def main():
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts(sys.argv[1]), trainers.BpeTrainer(vocab_size=SIZE, special_tokens=TOKENS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.save(sys.argv[2], pretty=False)
    d = json.load(open(sys.argv[2]))
    assert [x["content"] for x in d["added_tokens"]] == TOKENS
    print(len(TOKENS), "plan tokens,", t.get_vocab_size(), "in all")
    for w in ("turn off the kitchen lights", "fermenter fv2 1.2 bar 17:30", "Jürgen's Küche 灯"):
        print(t.encode(w).tokens)


if __name__ == "__main__":
    main()
