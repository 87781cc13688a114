"""The rules of `shoal ask` between the models: docs/ASK.md in Python.

Text to clauses, entities to slots, values to their normal form, slots to action and context. The words come from
models/home.json (home_table.py). No model is run here; training/ask_examples.py does that and writes the examples that
the program is tested against.
"""

import re

from home_table import ACTIONS, QUERIES, TABLE

CLAUSES = TABLE["clauses"]
REPEAT = CLAUSES["repeat"]
ALWAYS = set(CLAUSES["join_always"])
JOIN = set(CLAUSES["join"]) | ALWAYS
DROP = set(CLAUSES["drop"]) | JOIN
CLOSING = ".,;:!?)"


def plain(word):
    return word.lower().strip(".,;:!?\"()")


def alternatives(words):
    """A regular expression for any of them, the longest first."""
    return "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))


# ------------------------------------------------------------------ clauses


def first_verb(words):
    """The word that says what a clause wants: the first that is not politeness."""
    for w in words:
        if plain(w) not in CLAUSES["polite"]:
            return plain(w)
    return plain(words[0]) if words else ""


def repeats_verb(cur, words, j):
    """Does what follows word j, up to the next joint, say where to or on/off? Then the clause's verb is meant again."""
    if plain(words[j]) not in REPEAT["first"] or first_verb(cur) not in REPEAT["verbs"] or not any(plain(x) in REPEAT["before"] for x in cur):
        return False
    k = j
    while k + 1 < len(words) and not words[k].endswith((",", ".", ";", "!", "?")) and plain(words[k + 1]) not in JOIN:
        k += 1
    rest = [plain(x) for x in words[j : k + 1]]
    return rest[-1] in REPEAT["last"] or any(x in REPEAT["any"] for x in rest)


def clauses(text):
    words = text.split()
    out, cur, i = [], [], 0

    def end():
        nonlocal cur
        if cur:
            out.append(" ".join(cur).rstrip(",;"))
        cur = []

    fresh = True
    while i < len(words):
        if cur and not fresh:
            hard = cur[-1][-1] in ".;!?" and cur[-1].lower() not in CLAUSES["titles"]
            j = i
            while j < len(words) and plain(words[j]) in DROP:
                j += 1
            dropped = {plain(x) for x in words[i:j]}
            joined = cur[-1].endswith(",") or dropped & JOIN
            free = first_verb(cur) in CLAUSES["free_text"] and not dropped & ALWAYS
            if j < len(words) and (hard or joined and not free):
                verb = first_verb(cur)
                if hard or plain(words[j]) in CLAUSES["verbs"]:
                    end()
                    i, fresh = j, True
                    continue
                if repeats_verb(cur, words, j):
                    end()
                    cur, i, fresh = [verb], j, True
                    continue
        cur.append(words[i])
        fresh = False
        i += 1
    end()
    return out


# ------------------------------------------------------------------ values

NUMBERS = TABLE["numbers"]["words"]
ONES = {w: n for w, n in NUMBERS.items() if 0 < n < 10}
TENS = {w: n for w, n in NUMBERS.items() if 20 <= n < 100 and n % 10 == 0}
HALVES = [p.split() for p in TABLE["numbers"]["and_a_half"]]


def digits(text):
    """Number words become digits: 'twenty one degrees' -> '21 degrees', 'nineteen and a half' -> '19.5'."""
    words = re.sub(rf"(?<!\S)({alternatives(TENS)})-({alternatives(ONES)})(?!\S)", r"\1 \2", text.lower()).split()
    out, i = [], 0
    while i < len(words):
        n = NUMBERS.get(words[i])
        if words[i] in TENS and i + 1 < len(words) and words[i + 1] in ONES:
            i += 1
            n += ONES[words[i]]
        if n is not None and n < 10 and i + 1 < len(words) and words[i + 1] in TABLE["numbers"]["hundred"]:
            i += 1
            n *= 100
        if n is None and words[i] in TABLE["numbers"]["hundred"]:
            n = 100
        if n is not None or re.fullmatch(r"[0-9]+", words[i]):
            s = str(n) if n is not None else words[i]
            half = next((h for h in HALVES if words[i + 1 : i + 1 + len(h)] == h), None)
            if i + 2 < len(words) and words[i + 1] in TABLE["numbers"]["point"]:
                d = NUMBERS.get(words[i + 2], 10)
                if d < 10 or re.fullmatch(r"[0-9]+", words[i + 2]):
                    s += "." + (str(d) if d < 10 else words[i + 2])
                    i += 2
            elif half:
                s += ".5"
                i += len(half)
            out.append(s)
        else:
            out.append(words[i])
        i += 1
    return " ".join(out)


def number(s):
    f = float(s)
    return int(f) if f == int(f) else f


def with_unit(n, unit):
    u = TABLE["units"][unit]
    return u.get("show_one" if n == "1" else "show", u["show"]).replace("{n}", n), dict(value=number(n), unit=unit)


def value(text, action):
    """(display, {value, unit})"""
    t = digits(text)
    x = ACTIONS[action]
    if x.get("amounts", True) and t in TABLE["amounts"]["words"]:
        return with_unit(str(TABLE["amounts"]["words"][t]), TABLE["amounts"]["unit"])
    m = re.fullmatch(r"([-+]?[0-9]+(?:\.[0-9]+)?)\s*(.*)", t)
    if not m:
        return t, dict(value=t)
    n, u = m.group(1), m.group(2).strip()
    unit = next((k for k, v in TABLE["units"].items() if u in v["words"]), None) if u else x.get("unit")
    if unit:
        return with_unit(n, unit)
    if not u:
        return n, dict(value=number(n))
    u = text[len(text) - len(u) :] if text.lower().endswith(u) else u  # units keep their case
    return f"{n} {u}", dict(value=number(n), unit=u)


DURATIONS = TABLE["durations"]
DURATION_UNITS = {w: u for u in DURATIONS["units"] for w in u["words"]}


def duration(text):
    """(display, {duration_s}); the user's own units are kept."""
    t = digits(text)
    for a, b in DURATIONS["replace"].items():
        t = t.replace(a, b)
    t = re.sub(rf"(?<!\S)({alternatives(DURATIONS['phrases'])})(?!\S)", lambda m: DURATIONS["phrases"][m.group(1)], t)
    parts, total = [], 0.0
    for n, u in re.findall(r"([0-9]+(?:\.[0-9]+)?)[ -]*([a-z]+)", t):
        while u not in DURATION_UNITS and len(u) > 1 and u.endswith(DURATIONS["plural"]):
            u = u[: -len(DURATIONS["plural"])]
        if u not in DURATION_UNITS:
            return text.lower(), {}
        unit = DURATION_UNITS[u]
        parts.append(f"{n} {unit['one' if n == '1' else 'many']}")
        total += float(n) * unit["seconds"]
    if not parts:
        return text.lower(), {}
    return " ".join(parts), dict(duration_s=int(total + 0.5))


TIMES = TABLE["times"]


def clock(text):
    """(display, {time}): 24 hours; without am or pm the hour stays as it was said."""
    t = digits(text)
    for a, b in TIMES["replace"].items():
        t = t.replace(a, b)
    t = t.strip()
    if t in TIMES["words"]:
        return t, dict(time=TIMES["words"][t])
    half = None
    for side in ("am", "pm"):
        end = next((w for w in TIMES[side] if t.endswith(w)), None)
        if half is None and end is not None:
            half, t = TIMES[side][0], t[: len(t) - len(end)].rstrip(" ")
    parts, sides = TIMES["parts"], {**dict.fromkeys(TIMES["past"], 1), **dict.fromkeys(TIMES["to"], -1)}
    m = re.fullmatch(rf"({alternatives(parts)}|[0-9]{{1,3}})(?: (?:{alternatives(TIMES['minutes'])}))? ({alternatives(sides)}) ([0-9]{{1,2}})", t)
    if m:
        mins, h = parts.get(m.group(1)) or int(m.group(1)), int(m.group(3))
        if sides[m.group(2)] < 0:
            h, mins = {1: 12, 0: 23}.get(h, h - 1), 60 - mins
        hh = str(h)
    else:
        m = re.fullmatch(r"([0-9]{1,2})(?:[:. ]([0-9]{1,2}))?", t)
        if not m:
            return text.lower(), {}
        hh, h, mins = m.group(1), int(m.group(1)), int(m.group(2) or 0)
    if h > 23 or not 0 <= mins <= 59:
        return text.lower(), {}
    if half and h <= 12:
        show = f"{h} {half}" if mins == 0 else f"{h}:{mins:02d} {half}"
        h = h % 12 + (12 if half == TIMES["pm"][0] else 0)
    else:
        show = f"{hh}:{mins:02d}"
    return show, dict(time=f"{h:02d}:{mins:02d}")


DATES = TABLE["dates"]
DATE_NAMES = {w.lower(): w for w in DATES["weekdays"] + DATES["months"]}


def date(text):
    words = [w for w in text.lower().split() if w not in DATES["drop"]]
    words = [re.sub(rf"^([0-9]+)({alternatives(DATES['ordinals'])})$", r"\1", w) for w in words]
    t = " ".join(DATE_NAMES.get(w, w) for w in words)
    return re.sub(rf"^({alternatives(DATES['articles'])}) (?=[0-9])", "", t)


def show(slot, text, action, key=None):
    """(display, {key of the action: value}) of a slot."""
    key, kind = key or slot, TABLE["slots"][slot]
    text = " ".join(text.replace(";", ",").split())
    if kind["type"] == "value":
        return value(text, action)
    if kind["type"] == "duration":
        d, j = duration(text)
        return d, {key + "_s": j["duration_s"]} if j else {key: d}
    if kind["type"] == "time":
        d, j = clock(text)
        return d, {key: j.get("time", d)}
    if kind["type"] == "date":
        d = date(text)
        return d, {key: d}
    if kind.get("lower"):
        text = text.lower()
    if kind.get("strip_articles"):
        w = text.split()
        while len(w) > 1 and w[0].lower() in TABLE["articles"]:
            w = w[1:]
        text = " ".join(w)
    if kind.get("to_you"):
        return " ".join(TABLE["you"].get(w.lower(), w) for w in text.split()), {key: text}
    return text, {key: text}


# ------------------------------------------------------------------ slots


def known(slot, text):
    """Whether a text can be what the slot holds: its last word, codes aside, is one that the table knows."""
    kind = TABLE["slots"][slot]
    w = [x for x in text.lower().split()]
    while w and re.fullmatch(r"[a-z]?-?[0-9]+|[a-z]", w[-1]):
        w.pop()
    if not w:
        return False
    forms = [w[-1]] + [w[-1][: -len(e)] for e in kind.get("known_endings", []) if w[-1].endswith(e)]
    return any(f in kind["known"] for f in forms)


def merged(ents, words):
    """[(type, from, to)] in words to [(type, text, word before)]: pieces of one value that touch are one; those of a
    slot that gathers are one from the first to the last."""
    out = []
    for t, a, b in ents:
        kind = TABLE["slots"].get(t, dict(type="text"))
        if out and out[-1][0] == t and (kind.get("gather") or kind["type"] != "text" and out[-1][2] == a):
            out[-1] = (t, out[-1][1], b)
        else:
            out.append((t, a, b))
    return [(t, " ".join(words[a:b]).rstrip(CLOSING), plain(words[a - 1]) if a else "") for t, a, b in out]


def side(label, words):
    """The words themselves settle on and off, lock and unlock: a wrong guess there would be the worst one."""
    low = {plain(w) for w in words}
    for o in TABLE["opposites"]:
        if label in o["actions"]:
            there = [bool(low & set(w)) for w in o["words"]]
            if all(there):
                return o.get("both", label)
            return o["actions"][there.index(True)] if any(there) else label
    return label


def place(action, t, before):
    """Where an entity goes: a slot of the action, a row of "when" as its number, or None."""
    x = ACTIONS[action]
    t = next((slot for slot, types in x.get("accepts", {}).items() if t in types), t)
    rows = list(enumerate(TABLE["when"])) if x.get("can_wait") else []
    for i, w in rows:
        if w["slot"] == t and before in w.get("after", []):
            return i
    if t in x["slots"]:
        return t
    return next((i for i, w in rows if w["slot"] == t and "after" not in w), None)


def groups(action, ents, words):
    """Entities of a clause to the slot sets of one or more actions: a slot that comes again opens another set."""
    sets, cur = [], {}
    for t, text, before in merged(ents, words):
        p = place(action, t, before)
        if p is None:
            continue
        until = TABLE["slots"][p].get("several_until") if isinstance(p, str) else None
        if until and p in cur and until not in cur:
            cur[p] = cur[p] + [text]
            continue
        if p in cur:
            sets.append(cur)
            cur = {}
        cur[p] = [text] if until else text
    sets.append(cur)
    for i, s in enumerate(sets):  # what a set lacks and must have, the nearest other one says
        for n in ACTIONS[action].get("needs", []):
            if n not in s:
                for o in sets[i + 1 :] + sets[:i][::-1]:
                    if n in o:
                        s[n] = o[n]
                        break
    return sets


def defaults(action, s, words):
    low = {plain(w) for w in words}
    for d in TABLE["defaults"]:
        if action not in d["actions"] or d["slot"] in s or "words" in d and not low & set(d["words"]):
            continue
        if all(x in s for x in d.get("with", [])) and not any(x in s for x in d.get("without", [])):
            if "value" in d:
                s[d["slot"]] = d["value"]
            elif d["from"] in s:
                s[d["slot"]] = s.pop(d["from"])
    return s


def join_and(xs):
    return xs[0] if len(xs) == 1 else ", ".join(xs[:-1]) + f" {TABLE['lines']['and']} " + xs[-1]


OPERATORS = TABLE["arithmetic"]["operators"]


def calculate(expr):
    t = digits(expr)
    num = r"(-?[0-9]+(?:\.[0-9]+)?)"
    m = re.fullmatch(rf"(?:{alternatives(TABLE['arithmetic']['root'])}){num}", t)
    if m:
        x = float(m.group(1))
        return x**0.5 if x >= 0 else None
    m = re.fullmatch(rf"{num}(?:{alternatives(TABLE['arithmetic']['percent_of'])}){num}", t)
    if m:
        return float(m.group(1)) * float(m.group(2)) / 100
    m = re.fullmatch(rf"{num}\s*({alternatives(OPERATORS)})\s*{num}", t)
    if not m:
        return None
    a, o, b = float(m.group(1)), OPERATORS[m.group(2)], float(m.group(3))
    if o == "/":
        return a / b if b else None
    return a + b if o == "+" else a - b if o == "-" else a * b


def fill(template, names):
    return re.sub(r"\{([^{}|]*)\|?([^{}]*)\}", lambda m: names.get(m.group(1), m.group(2)), template)


def line(kind, **names):
    return fill(TABLE["lines"][kind], names)


def act(action, s, words, now):
    """One slot set to (action object, context line, whether the line may share a context)."""
    x = ACTIONS[action]
    s = defaults(action, s, words)
    obj, shows, pairs, later = dict(action=action), {}, "", False
    for k in x["slots"]:
        if k not in s:
            continue
        if isinstance(s[k], list):
            xs = [show(k, text, action)[0] for text in s[k]]
            obj[k], shows[k] = xs[0] if len(xs) == 1 else xs, join_and(xs)
        else:
            shows[k], keys = show(k, s[k], action)
            obj.update(keys)
        pairs += f"; {k}: {shows[k]}"
    for i, w in enumerate(TABLE["when"]):
        if i in s:
            d, keys = show(w["slot"], s[i], action, w.get("key"))
            obj.update(keys)
            pairs += f"; {w.get('show', w['slot'])}: {d}"
            later = later or w.get("later", False)
    if TABLE["id"][-1] in obj:
        obj["id"] = re.sub(r"[^a-z0-9]+", "_", " ".join(obj[k] for k in TABLE["id"] if k in obj)).strip("_")
    names = dict(action=action, slots=pairs, **shows)
    missing = [n for n in x.get("needs", []) if n not in s]
    if missing and "compute" not in x:
        return dict(obj, result="ask", ask=missing[0]), line("ask", ask=missing[0], **names), False
    if not missing and not all(known(k, obj[k]) for k in x["slots"] if k in obj and "known" in TABLE["slots"][k]):
        return dict(obj, result="unknown"), line("act", result="unknown", **names), True
    if action not in QUERIES:
        result = "scheduled" if later else "done"
        return dict(obj, result=result), line("act", result=result, **names), True
    if "reason" in x and ("answer" not in x or any(k in s for k in x.get("reason_if", []))):
        return dict(obj, result="failed", reason=x["reason"]), line("failed", reason=x["reason"], result="failed", **names), True
    if "compute" in x:
        value = calculate(s[x["compute"]]) if x["compute"] in s else None
        if value is None:
            return dict(obj, result="unknown"), None, False
        r = f"{value:.2f}".rstrip("0").rstrip(".")
        r = "0" if r == "-0" else r
        return dict(obj, result="done", answer=number(r)), fill(x["answer"], dict(names, answer=r)), False
    clock_names = dict(weekday=DATES["weekdays"][now.weekday()], day=str(now.day), month=DATES["months"][now.month - 1], year=str(now.year),
                       hour=f"{now.hour:02d}", minute=f"{now.minute:02d}")
    return dict(obj, result="done"), fill(x["answer"], {**clock_names, **names}), False


def decide(clause, intent, router, entities, now, threshold=0.56, flow=None):
    """intent, router: (label, probability); entities: [(type, from word, to word)] -> ([actions], [(context line, whether it may share a context)])"""
    words, flows = clause.split(), TABLE["flows"]
    label, p = intent
    sure = p >= threshold or label in ACTIONS and flow[router[0]] in flows["act"] and router[1] >= flows["min_confidence"]
    text = " ".join(clause.replace(";", ",").split())
    if not sure or label not in ACTIONS:
        chat = sure and label != TABLE["labels"]["out_of_scope"] and flow[router[0]] in flows["chat"]
        return [], [(line("chat" if chat else "out_of_scope", text=text), False)]
    label = side(label, words)
    acts, lines = [], []
    for s in groups(label, entities, words):
        a, l, joins = act(label, s, words, now)
        acts.append(a)
        lines.append((l, joins) if l is not None else (line("out_of_scope", text=text), False))
    return acts, lines


def contexts(lines):
    """Lines to what is given to reply: a few lines of actions together, any other line alone."""
    out, joined = [], 0
    for l, joins in lines:
        if joins and 0 < joined < TABLE["lines"]["together"]:
            out[-1] += "\n" + l
            joined += 1
        else:
            out.append(l)
            joined = int(joins)
    return out
