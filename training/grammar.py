"""A tiny template language for generated data.

    "(please |)turn off {dev}( now|)"

Parentheses hold alternatives split by '|', nested as deep as wanted; {name} is a slot that the
caller fills. compile() parses once; expand() draws one path with the caller's random generator.
"""


class Node:
    __slots__ = ("kind", "value")

    def __init__(self, kind, value):
        self.kind = kind
        self.value = value


def _parse(text, pos, closing):
    alts, seq, lit = [], [], []

    def flush():
        if lit:
            seq.append(Node("lit", "".join(lit)))
            lit.clear()

    while pos < len(text):
        c = text[pos]
        if c == "(":
            flush()
            node, pos = _parse(text, pos + 1, True)
            seq.append(node)
        elif c == "|" and closing:
            flush()
            alts.append(seq)
            seq = []
            pos += 1
        elif c == ")" and closing:
            flush()
            alts.append(seq)
            return Node("alt", alts), pos + 1
        elif c == "{":
            flush()
            end = text.index("}", pos)
            seq.append(Node("slot", text[pos + 1 : end]))
            pos = end + 1
        else:
            lit.append(c)
            pos += 1
    if closing:
        raise ValueError("unclosed ( in template: " + text)
    flush()
    return Node("alt", [seq]), pos


_cache = {}


def compile(text):
    node = _cache.get(text)
    if node is None:
        node = _cache[text] = _parse(text, 0, False)[0]
    return node


def expand(text, rng, fill, first=0.0):
    """fill(name) returns a list of pieces (text, tag); literals come out as (text, None).

    The first alternative is taken with probability first, else any of them."""
    out = []

    def walk(node):
        if node.kind == "lit":
            out.append((node.value, None))
        elif node.kind == "slot":
            out.extend(fill(node.value))
        else:
            alts = node.value
            for child in alts[0] if len(alts) == 1 or first and rng.random() < first else rng.choice(alts):
                walk(child)

    walk(compile(text))
    return out
