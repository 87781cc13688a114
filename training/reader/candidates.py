"""Which lines the reader sees, and how they are written.

The choice never decides anything: it only has to contain what is meant. PLAN.md states the same rules for the program.
"""

import re

from plans import IDS, MAX_AREAS, MAX_FLOORS, MAX_OWN, MAX_THINGS, MAX_WORDS
from sites import CLASS_WORDS, Area, Floor, Thing

NUMBERS = {w: str(i) for i, w in enumerate("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split())}
_EDGE = re.compile(r"^[^\w%°]+|[^\w%°]+$")
_plain, _tri = {}, {}
FILL = 8  # lines that are written even if nothing matches


def plain(word):
    """A word as it is compared: lower case, without punctuation, possessive and plural s; numbers as digits."""
    p = _plain.get(word)
    if p is None:
        p = _EDGE.sub("", word.lower())
        if p.endswith("'s"):
            p = p[:-2]
        if len(p) > 3 and p.endswith("s") and not p.endswith("ss"):
            p = p[:-1]
        p = NUMBERS.get(p, p)
        if len(_plain) > 200000:
            _plain.clear()
        _plain[word] = p
    return p


def trigrams(p):
    t = _tri.get(p)
    if t is None:
        s = "^" + p + "$"
        if len(_tri) > 200000:
            _tri.clear()
        t = _tri[p] = frozenset(s[i : i + 3] for i in range(len(s) - 2))
    return t


def said(words):
    """The plain words of a text, and neighbours joined ("dish washer")."""
    one = [p for p in map(plain, words) if p]
    return one + [a + b for a, b in zip(one, one[1:])]


class Said:
    """The plain words of a text, and how near another word is to one of them."""

    def __init__(self, words):
        self.words = said(words)
        self.known = dict.fromkeys(self.words, 1.0)
        self.index = {}
        for i, w in enumerate(self.words):
            if len(w) > 3:
                for t in trigrams(w):
                    self.index.setdefault(t, []).append(i)

    def near(self, p):
        """1: said; else the largest share of common trigrams (twice the common ones over all), 0 under 0.45 or below 4 letters."""
        s = self.known.get(p)
        if s is not None:
            return s
        s = 0.0
        if len(p) > 3:
            mine, common = trigrams(p), {}
            for t in mine:
                for i in self.index.get(t, ()):
                    common[i] = common.get(i, 0) + 1
            for i, n in common.items():
                s = max(s, 2 * n / (len(mine) + len(trigrams(self.words[i]))))
            if s < 0.45:
                s = 0.0
        self.known[p] = s
        return s


def score(names, text):
    """(how well the best of the names is said, whether every word of it is there exactly)"""
    best, exact = 0.0, False
    for name in names:
        total, all_ = 0.0, True
        for w in name:
            s = text.near(plain(w))
            total += s
            all_ = all_ and s == 1.0
        total /= len(name)
        if total > best or all_ and not exact:
            best, exact = total, all_
    return best, exact


_KIND_WORDS = {k: {plain(x) for w in ws for x in w.split()} for k, ws in CLASS_WORDS.items()}


class Choice:
    """The lines for one text: things, areas and floors in the order of their numbers, with marks."""
    __slots__ = ("things", "areas", "floors", "marks", "number")


def choose(site, words, here=None, need=(), r=None):
    """need: what the state names; it is always among the lines. r: for training, adds a random number of further lines."""
    text = Said(words)
    known = set(text.words)
    marks = {}
    need_t = [x for x in need if isinstance(x, Thing)]
    need_a = [x for x in need if isinstance(x, Area)]
    ranked = []
    area_hit = {}
    for a in site.areas + site.floors:
        s, exact = score(a.words, text)
        area_hit[id(a)] = s
        if exact:
            marks[id(a)] = "exact"
        elif s >= 0.55:
            marks[id(a)] = "near"
    for i, t in enumerate(site.everything()):
        s, exact = score(t.words, text)
        if exact:
            marks[id(t)] = "exact"
        elif s >= 0.55:
            marks[id(t)] = "near"
        for k, own in enumerate(t.own):
            if all(plain(w) in known for w in own.split()):
                marks[id(t), k] = "exact"
        rank = s + (0.5 if exact else 0)
        if t.area is not None:
            if area_hit[id(t.area)] >= 0.99:
                rank += 0.3
            if t.area is here:
                rank += 0.1
        if _KIND_WORDS.get(t.kind, known) & known and t.kind in _KIND_WORDS:
            rank += 0.25
        if any(t is n for n in need_t):
            rank += 9
        ranked.append((-rank, i, t))
    ranked.sort(key=lambda x: x[:2])
    fill = FILL if r is None else r.choice((0, 3, 6, FILL, FILL, FILL, 12))
    things = [t for n, (rank, i, t) in enumerate(ranked) if -rank >= 0.4 or n < fill][:MAX_THINGS]
    areas = need_a + ([here] if here is not None else [])
    areas += sorted((a for a in site.areas if area_hit[id(a)] >= 0.45), key=lambda a: -area_hit[id(a)])
    areas += [t.area for t in things if t.area is not None]
    if r is None or r.random() < 0.5:
        areas += site.areas
    c = Choice()
    c.things, c.marks = things, marks
    seen, c.areas, c.floors = set(), [], []
    for a in areas:
        if id(a) in seen:
            continue
        seen.add(id(a))
        (c.floors if isinstance(a, Floor) else c.areas).append(a)
    c.areas = c.areas[:MAX_AREAS]
    for f in site.floors:
        if id(f) not in seen and len(c.floors) < MAX_FLOORS:
            seen.add(id(f))
            c.floors.append(f)
    c.number = {id(t): f"t{i + 1}" for i, t in enumerate(c.things)}
    c.number.update({id(a): f"a{i + 1}" for i, a in enumerate(c.areas)})
    c.number.update({id(f): f"f{i + 1}" for i, f in enumerate(c.floors)})
    return c


def _names(out, x, marks):
    m = marks.get(id(x))
    if m:
        out.append(f"<{m}>")
    for i, n in enumerate(x.words[:3]):
        if i:
            out.append("<or>")
        out.extend(n)


def lines(choice, state):
    """The input in front of the text: tokens of the plan language in <>, and words."""
    num, out = choice.number, []
    if state.get("here") is not None:
        out += ["<here_is>", f"<{num[id(state['here'])]}>"]
    if state.get("last"):
        out += ["<last>"] + symbols(state["last"], num)
    if state.get("pending"):
        out += ["<pending>"] + symbols(state["pending"], num)
    if state.get("ringing"):
        out.append("<ringing>")
    if "playing" in state:
        out.append("<playing>")
        if state["playing"] is not None and id(state["playing"]) in num:
            out.append(f"<{num[id(state['playing'])]}>")
    for f in choice.floors:
        out.append(f"<{num[id(f)]}>")
        _names(out, f, choice.marks)
    for a in choice.areas:
        out.append(f"<{num[id(a)]}>")
        _names(out, a, choice.marks)
        if a.floor is not None and id(a.floor) in num:
            out.append(f"<{num[id(a.floor)]}>")
    for t in choice.things:
        out += [f"<{num[id(t)]}>", f"<{t.kind}>"]
        _names(out, t, choice.marks)
        if t.area is not None and id(t.area) in num:
            out.append(f"<{num[id(t.area)]}>")
        out += [f"<{q}>" for q in t.quantities]
        for i, o in enumerate(t.own[:MAX_OWN]):
            out.append(f"<q{i + 1}>")
            if (id(t), i) in choice.marks:
                out.append("<exact>")
            out.extend(o.split())
    return out


class Missing(Exception):
    """The plan names something that has no line."""


def symbols(plan, num):
    out = []
    for s in plan:
        if s.__class__ is str:
            out.append(f"<{s}>")
        else:
            n = num.get(id(s))
            if n is None:
                raise Missing
            out.append(f"<{n}>")
    return out


def text_tokens(words):
    out = ["<text>"]
    for i, w in enumerate(words[:MAX_WORDS]):
        out += [f"<w{i}>", w]
    return out


assert all(f"<{k}>" in IDS for k in CLASS_WORDS)
