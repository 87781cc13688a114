"""Sentence templates in the notation of Home Assistant: [optional], (one|of|these), (in;any;order), <rule>, {slot}."""

import hashlib

_CACHE = {}


def _parse(text, pos, close):
    """A node is a str, ("alt", [seq]), ("opt", seq), ("perm", [seq]), ("rule", name) or ("slot", name); a seq is a list of nodes."""
    groups, sep = [[]], None
    lit = []

    def flush():
        if lit:
            groups[-1].append("".join(lit))
            lit.clear()

    while pos < len(text):
        c = text[pos]
        if c in "([":
            flush()
            node, pos = _parse(text, pos + 1, ")" if c == "(" else "]")
            groups[-1].append(("opt", [node]) if c == "[" else node)
        elif c == close:
            flush()
            pos += 1
            break
        elif c in "|;" and (close or c == "|"):
            flush()
            sep = sep or c
            groups.append([])
            pos += 1
        elif c in "<{":
            flush()
            end = text.index(">" if c == "<" else "}", pos)
            groups[-1].append(("rule" if c == "<" else "slot", text[pos + 1 : end]))
            pos = end + 1
        else:
            lit.append(c)
            pos += 1
    flush()
    if len(groups) == 1:
        return ("seq", groups[0]), pos
    return ("perm" if sep == ";" else "alt", groups), pos


def parse(text):
    node = _CACHE.get(text)
    if node is None:
        node = _CACHE[text] = _parse(text, 0, None)[0]
    return node


def expand(text, r, fill, rules, keep=0.45):
    """Draws a sentence: [(text, tag)]. fill(slot) gives such a list; keep is the chance of an optional part."""
    out = []

    def walk(node):
        if node.__class__ is str:
            out.append((node, None))
            return
        kind, x = node
        if kind == "seq":
            for n in x:
                walk(n)
        elif kind == "alt":
            for n in r.choice(x):
                walk(n)
        elif kind == "opt":
            if r.random() < keep:
                for n in x:
                    walk(n)
        elif kind == "perm":
            parts = list(x)
            r.shuffle(parts)
            for i, p in enumerate(parts):
                if i:
                    out.append((" ", None))
                for n in p:
                    walk(n)
        elif kind == "rule":
            walk(parse(rules[x]))
        else:
            out.extend(fill(x))

    walk(parse(text))
    return out


def words(parts):
    """Splits the parts at white space: [(word, tags)], tags being those of the parts that the word touches."""
    text, marks = "", []
    for s, tag in parts:
        if tag:
            marks.append((len(text), len(text) + len(s), tag))
        text += s
    out, at = [], 0
    for w in text.split():
        at = text.index(w, at)
        out.append([w, frozenset(t for a, b, t in marks if a < at + len(w) and at < b)])
        at += len(w)
    return out


_HELD = {}


def held_out(template):
    """True for one template in twelve, always the same: used for validation only."""
    h = _HELD.get(template)
    if h is None:
        h = _HELD[template] = hashlib.md5(template.encode()).digest()[0] % 12 == 0
    return h
