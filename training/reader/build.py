"""Examples: a site, a state, a text and its plan, as tokens. Everything is drawn from one random generator."""

import gzip
import json
import re
import os
import random

import families
import followups
import frames
import ha
import noise
import people
import sites
import talk
import template
import tongues
import words as W
from candidates import Missing, choose, lines, symbols, text_tokens
from plans import MAX_WORDS, Span
from sentences import Clause, Gen, NoFit
from sites import Area, Thing

_F = [f for f, _, _ in families.FAMILIES]
_FW = [w for _, w, _ in families.FAMILIES]
_U = [f for f, _ in followups.FOLLOWUPS]
_UW = [w for _, w in followups.FOLLOWUPS]
JOIN = [" and ", " and ", " and ", ", ", " then ", " and then ", ", and ", ". ", " and also ", " after that ", ", also ", " plus ", " as well as ", " oh and ", "; ", " and please "]
NOT_JOINED = {"none", "other", "chat", "answer", "cancel", "undo", "repeat"}
LATER = {"on", "off", "open", "close", "lock", "unlock", "set", "start", "stop", "scene", "announce", "play", "up", "down", "mute", "pause", "dock", "toggle"}
OPPOSITE = {"on": "off", "off": "on", "open": "close", "close": "open", "lock": "unlock", "unlock": "lock", "start": "stop"}
IT = {"on": ["turn it on", "switch it on", "put it on"], "off": ["turn it off", "switch it off", "shut it off"], "open": ["open it"], "close": ["close it", "shut it"], "lock": ["lock it"], "unlock": ["unlock it"], "stop": ["stop it"]}
REGRET = [", no wait, ", " no wait ", ", no, ", " - no, ", " uh no ", ", sorry, ", " sorry i mean ", ", i mean ", ", actually ", " or rather ", ", hold on, ", " oops ", " no no ", ", correction, ", ", correction: ", ", hang on, ", ", wait wait, ", " - i meant ", ", i meant ", ", oh sorry, ", ", actually no, ", ", no hold on, ", ", forget that, ", ", scratch that, "]


class Example:
    __slots__ = ("site", "words", "plan", "state", "source", "kind")

    def __init__(self, site, words, plan, state, source, kind):
        self.site, self.words, self.plan, self.state, self.source, self.kind = site, words, plan, state, source, kind


def draw(g, tries=60):
    for _ in range(tries):
        try:
            return g.r.choices(_F, _FW)[0](g)
        except NoFit:
            pass
    raise NoFit


def draw_from(g, fs, ws, tries=60):
    for _ in range(tries):
        try:
            return g.r.choices(fs, ws)[0](g)
        except NoFit:
            pass
    raise NoFit


def later(g, c):
    """A command for later."""
    r = g.r
    if c.plan[0] not in LATER or not c.imperative or "what" in c.plan and c.plan[0] != "announce":
        raise NoFit
    x = r.random()
    if x < 0.4:
        sym, parts = families.at_slot(g)
    elif x < 0.65:
        sym, parts = families.in_slot(g)
    elif x < 0.82 and c.plan[0] in ("on", "open", "start", "off", "mute", "unlock", "play"):
        k = g.key("for")
        sym, parts = ["for", Span(k)], [("for ", None), (W.duration(r), k)]
    elif x < 0.9:
        k = g.key("until")
        sym, parts = ["until", Span(k)], [("until ", None), (W.clock(r), k)]
        if c.plan[0] not in ("on", "open", "off", "start"):
            raise NoFit
    else:
        k = g.key("every")
        sym, parts = ["every", Span(k)], [(W.every(r), k)]
    if r.random() < 0.25 and sym[0] not in ("for", "until"):
        c.parts = parts + [(r.choice((" ", ", ")), None)] + c.parts
    else:
        c.parts = c.parts + [(" ", None)] + parts
    c.plan = c.plan + sym
    return c


def corrected(g, c):
    """A command with a slip of the tongue in it."""
    r = g.r
    if c.plan[0] in OPPOSITE and c.imperative and r.random() < 0.4 and "except" not in c.plan and "at" not in c.plan:
        v = OPPOSITE[c.plan[0]]
        c.parts = c.parts + [(r.choice(REGRET) + r.choice(IT[v]), None)]
        c.plan = [v] + c.plan[1:]
        return c
    if "to_value" in c.plan and isinstance(c.plan[-1], Span):
        k = c.plan[-1].key
        first = "".join(p for p, t in c.parts if t == k)
        unit = first.split(" ", 1)[1] if " " in first and first[0].isdigit() else ""
        again = str(r.randint(1, 99)) + (" " + unit if unit and r.random() < 0.7 else "")
        c.parts = [(p, None if t == k else t) for p, t in c.parts] + [(r.choice(REGRET), None), (again, k)]
        return c
    d = draw(g)
    if c.plan[0] in NOT_JOINED or d.plan[0] in NOT_JOINED or d.plan[0] == "ask":
        raise NoFit
    d.parts = c.parts + [(r.choice(REGRET) + r.choice(("", "", "rather ", "better ")), None)] + d.parts
    d.state = {**c.state, **d.state}
    return d


def polite(g, c):
    r = g.r
    x = r.random()
    if x < 0.22:
        return frames.dress(g, c)
    if x < 0.55 and c.plan[0] not in ("none", "chat", "answer"):
        c.parts = talk.wrap(c.parts, r.choice(talk.POLITE if c.imperative else talk.POLITE_ANY))
    return c


def several(g):
    r = g.r
    cs = []
    while len(cs) < r.choice((2, 2, 2, 3, 3, 4)):
        c = draw(g)
        if c.plan[0] in NOT_JOINED or (cs and c.plan[0] in ("ask", "play", "message", "announce", "remind") and r.random() < 0.5) or c.last:
            continue
        if cs and cs[-1].plan[0] in ("message", "announce", "remind", "play", "add", "event"):
            if r.random() < 0.8:
                cs[-1] = c
                continue
        cs.append(c)
    parts, plan = list(cs[0].parts), list(cs[0].plan)
    for c in cs[1:]:
        parts += [(r.choice(JOIN), None)] + c.parts
        plan += ["sep"] + c.plan
    out = Clause(parts, plan)
    if r.random() < 0.08:
        d = draw(g)
        if d.imperative and d.plan[0] != "ask":
            out.parts = out.parts + [(r.choice((" but don't ", " but do not ", ", don't ", " but please don't ", " but never ")), None)] + d.parts
    return polite(g, out)


def command(g, kind):
    r = g.r
    if kind == "several":
        return several(g)
    if kind == "extra":
        for _ in range(30):
            try:
                return polite(g, frames.extra(g, lambda: draw(g)))
            except NoFit:
                pass
        raise NoFit
    if kind == "followup":
        c = draw_from(g, _U, _UW)
        if r.random() < 0.15:
            c.parts = talk.wrap(c.parts, r.choice(talk.POLITE_ANY))
        return c
    for _ in range(60):
        try:
            c = draw(g)
            if kind == "later":
                c = later(g, c)
            elif kind == "corrected":
                c = corrected(g, c)
            return polite(g, c)
        except NoFit:
            pass
    raise NoFit


def generated(r, mode="train", site_kinds=None, n=4):
    """A few examples over one site."""
    site = sites.make(r, site_kinds)
    if r.random() < 0.2:  # a home may have one lamp
        site.things = r.sample(site.things, min(len(site.things), r.randint(1, 5)))
        kept = {id(t.area) for t in site.things}
        site.areas = [a for a in site.areas if id(a) in kept][: r.randint(0, 3)]
        for t in site.everything():
            if t.area is not None and t.area not in site.areas:
                t.area = None
        for a in site.areas:
            a.floor = None
        site.floors = []
    out = []
    for _ in range(n):
        here = r.choice(site.areas) if site.areas and r.random() < 0.5 else None
        g = Gen(r, site, mode, here)
        kind = r.choices(("single", "several", "later", "corrected", "extra", "followup", "none"), (30, 9, 6, 4, 8, 12, 34))[0]
        try:
            if kind == "none":
                parts, plan = talk.not_a_command(g, lambda: draw(g))
                c = Clause(parts, plan)
            else:
                c = command(g, kind)
        except NoFit:
            continue
        state = dict(c.state)
        if here is not None:
            state["here"] = here
        if c.last is not None:
            state["last"] = c.last
        elif kind != "followup" and c.plan != ["none", "unclear"] and r.random() < 0.2:
            try:
                state["last"] = families.last_plan(g)
            except NoFit:
                pass
        elif kind in ("single", "several", "later", "none") and len(template.words(c.parts)) > 2 and c.plan[0] not in ("none", "answer", "cancel") and r.random() < 0.1:
            left_open(r, site, state)
        out.append(Example(site, template.words(c.parts), c.plan, state, "gen", kind))
    return out


ERRAND_VERBS = set("apply ask book buy cancel change check contact fill find fix get help locate make mail order pay pick post print put read renew rent replace report request research reserve return schedule search see send set sign sort start submit switch take transfer turn unfreeze update use verify write".split())


def errand(row):
    """What a request to somebody else asks for, as something to be reminded of; None: it is no request."""
    text = re.sub(r"^(please |can you |could you |i need you to |i need to |i want to |i'd like to |would you |help me )+", "", row[0].lower().strip(" .!?"))
    words = text.split()
    if not 3 <= len(words) <= 11 or words[0] not in ERRAND_VERBS or "remind" in text or not set(text) <= set("abcdefghijklmnopqrstuvwxyz' -"):
        return None
    return text


class Sources:
    """Public texts (sources.py), as examples over random sites."""

    def __init__(self, path, split="train"):
        d = json.load((gzip.open if str(path).endswith(".gz") else open)(path, "rt"))
        self.split, self.ha = split, d["ha"]
        self.tongues = d.get("tongues", {})
        for t in self.tongues.values():
            t["intents"] = {}
            for e in t["ha"]["entries"]:
                t["intents"].setdefault(e["intent"], []).append(e)
        self.people, self.other, self.play, self.talk = (d[k][split] for k in ("people", "other", "play", "talk"))
        self.overheard = d["overheard"] if split == "valid" else []
        W.TALK[:] = [t.lower().strip(".!?") for t in self.talk if 3 <= len(t.split()) <= 10 and t.isascii() and not set(t) & set("\"();:")][:8000]
        W.ERRANDS[:] = sorted({e for e in map(errand, self.other) if e})
        self.intents = {}
        for e in self.ha["entries"]:
            self.intents.setdefault(e["intent"] + (" one" if e["domains"] else ""), []).append(e)
        self.intent_names = sorted(self.intents)
        # Intents with a plan of their own are drawn more often than chat and what we cannot do.
        self.said = people.values(self.people)
        self.people_w = [1 if p["intent"] in people.SIMPLE else 4 for p in self.people]

    def ha_example(self, r, site, mode):
        g = Gen(r, site, mode, None)
        for _ in range(30):
            e = r.choice(self.intents[r.choice(self.intent_names)])
            try:
                c = ha.clause(g, self.ha, e)
            except NoFit:
                continue
            if r.random() < 0.25 and c.plan[0] not in ("cancel",):
                c.parts = talk.wrap(c.parts, r.choice(talk.POLITE if c.imperative and c.plan[0] not in ("ask", "other") else talk.POLITE_ANY))
            return Example(site, template.words(c.parts), c.plan, {}, "ha", c.plan[0])
        raise NoFit

    def tongue_example(self, r, lang, mode):
        t, tongue = self.tongues[lang], tongues.TONGUES[lang]
        for _ in range(30):
            site = tongues.make(r, tongue, lang)
            here = r.choice(site.areas) if r.random() < 0.5 else None
            g = Gen(r, site, mode, here)
            try:
                state = {}
                if r.random() < 0.5:
                    c, state = tongues.clause(g, lang, t["texts"])
                else:
                    e = r.choice(t["ha"]["entries"]) if r.random() < 0.4 else r.choice(t["intents"][r.choice(list(t["intents"]))])
                    c = ha.clause(g, t["ha"], e, tongue)
                    if r.random() < 0.25:
                        c.parts = talk.wrap(c.parts, r.choice(tongue["polite"].split("|")))
            except (NoFit, KeyError):
                continue
            if here is not None:
                state["here"] = here
            return Example(site, template.words(c.parts), c.plan, state, "tongue " + lang, c.plan[0])
        raise NoFit

    def people_example(self, r, raw=None):
        for _ in range(20):
            row = raw or r.choices(self.people, self.people_w)[0]
            try:
                site, words, plan = people.example(r, row if raw or r.random() < 0.45 else people.swap(r, row, self.said))
            except NoFit:
                if raw:
                    raise
                continue
            if not raw and r.random() < 0.12:
                words = addressed(r, words, plan)
            return Example(site, words, plan, {}, "people", row["intent"])
        raise NoFit

    def other_example(self, r, site):
        text, plan = r.choice(self.other)
        return Example(site, plain_words(text), list(plan), {}, "other", plan[0])

    def play_example(self, r, site):
        tokens, at = r.choice(self.play)
        words = [[t, frozenset(["what"]) if at and at[0] <= i <= at[1] else frozenset()] for i, t in enumerate(tokens)]
        return Example(site, words, ["play"] + (["what", Span("what")] if at else []), {}, "play", "play")

    def talk_example(self, r, site):
        text = r.choice(self.talk)
        if r.random() < 0.15:
            text += " " + r.choice(self.talk)
        return Example(site, plain_words(text)[:MAX_WORDS], ["none", "talk"], {}, "talk", "talk")


ADDRESSED = "please|olly|hey|hi|ok|hey there|alexa|could you please|can you|computer|excuse me|i'd like you to|so|um|well|hello|quickly|now".split("|")


def addressed(r, words, plan):
    """The same with a form of address in front of it or a please behind it."""
    if plan[0] in ("none", "chat", "ask", "answer"):
        return words
    if r.random() < 0.3:
        return words + plain_words(r.choice(("please", "now", "for me", "thanks", "olly", "right now", "will you")))
    return plain_words(r.choice(ADDRESSED[:5] if plan[0] == "other" else ADDRESSED)) + words


def plain_words(text):
    return [[w, frozenset()] for w in text.split()]


def open_question(r, site):
    """A question that was left open, and what it was about: (pending, last)"""
    t = r.choice(site.things) if site.things else None
    x = r.random()
    if x < 0.3:
        return ["ask_yes"], None
    if x < 0.59:
        return ["ask_time"], [r.choice(("alarm", "timer", "remind")), "set_one"]
    if x < 0.8 and t is not None and t.settable():
        return ["ask_value"], ["set", t, r.choice(t.settable())]
    if len(site.things) > 2:
        return ["ask_which"] + r.sample(site.things, 2), [r.choice(("on", "off", "open", "start"))]
    return ["ask_yes"], None


def left_open(r, site, state):
    """Somebody may say something new instead of answering."""
    state["pending"], last = open_question(r, site)
    if last:
        state["last"] = last


def with_state(r, e):
    """A state that has nothing to do with the text."""
    if r.random() < 0.04 and e.plan[0] not in ("answer", "cancel", "chat"):
        left_open(r, e.site, e.state)
        return e
    if e.site.areas and r.random() < 0.5:
        e.state["here"] = r.choice(e.site.areas)
    if r.random() < 0.2:
        try:
            e.state["last"] = families.last_plan(Gen(r, e.site, "all"))
        except NoFit:
            pass
    return e


TONGUES_SHARE = float(os.environ.get("TONGUES_SHARE", 0.12))


def batch(r, sources, mode="all"):
    """A few examples of all kinds, as they are mixed in training."""
    try:
        if r.random() < TONGUES_SHARE:
            return [sources.tongue_example(r, r.choice(("de", "fr", "es")), mode) for _ in range(4)]
        x = r.uniform(0.12, 1)
        if x < 0.59:
            return generated(r, mode)
        if x < 0.66:
            site = sites.make(r)
            return [with_state(r, sources.ha_example(r, site, mode)) for _ in range(4)]
        if x < 0.83:
            return [with_state(r, sources.people_example(r)) for _ in range(4)]
        site = sites.make(r)
        if x < 0.88:
            return [with_state(r, sources.other_example(r, site)) for _ in range(4)]
        if x < 0.893:
            return [with_state(r, sources.play_example(r, site)) for _ in range(4)]
        return [with_state(r, sources.talk_example(r, site)) for _ in range(4)]
    except NoFit:
        return []


def spans(plan, words):
    """The plan with spans as word tokens; None if a span is lost."""
    where = {}
    for i, (_, tags) in enumerate(words):
        for t in tags:
            a, b = where.get(t, (i, i))
            where[t] = (min(a, i), max(b, i))
    out = []
    for s in plan:
        if isinstance(s, Span):
            if s.key not in where:
                return None
            a, b = where[s.key]
            if b >= MAX_WORDS:
                return None
            out += [f"w{a}", f"w{b}"]
        else:
            out.append(s)
    return out


GENERIC = set("the a an some any my our your this that song songs track tracks music musics playlist podcast podcasts radio station channel album audiobook book called named by from of for me to on tune tunes show episode please stuff something list".split())


def trim_titles(plan, words):
    """What to play, without the words around it that only say that it is music; nothing if no other word is left."""
    out, i, playing = [], 0, False
    while i < len(plan):
        s = plan[i]
        if isinstance(s, str) and s in ("play", "sep"):
            playing = s == "play"
        if playing and s == "what" and isinstance(plan[i + 1], Span):
            key = plan[i + 1].key
            at = [j for j, w in enumerate(words) if key in w[1]]
            general = lambda j: words[j][0].lower().strip(".,!?") in GENERIC
            while at and general(at[0]):
                words[at[0]][1] = words[at[0]][1] - {key}
                del at[0]
            while at and general(at[-1]):
                words[at[-1]][1] = words[at[-1]][1] - {key}
                del at[-1]
            if not at:
                i += 2
                continue
        out.append(s)
        i += 1
    return out


def in_order(gold):
    """Things that stand together, and areas, come in the order of their lines: the order of the words means nothing."""
    i = 0
    while i < len(gold):
        j = i + 1
        if gold[i][1] in "taf" and gold[i][2:-1].isdigit():
            while j < len(gold) and gold[j][1] == gold[i][1] and gold[j][2:-1].isdigit():
                j += 1
            gold[i:j] = sorted(gold[i:j], key=lambda t: int(t[2:-1]))
        i = j


def write(r, e, noisy=1.0):
    """(input tokens, plan tokens) or None. Input tokens are <...> or words."""
    words = noise.add(r, e.words, noisy) if noisy else [list(w) for w in e.words]
    if not words or len(words) > MAX_WORDS:
        return None
    plan = spans(trim_titles(e.plan, words), words)
    if plan is None:
        return None
    need = [s for k in ("last", "pending") for s in (e.state.get(k) or ()) if isinstance(s, (Thing, Area))]
    if isinstance(e.state.get("playing"), Thing):
        need.append(e.state["playing"])
    texts = [w for w, _ in words]
    choice = choose(e.site, texts, e.state.get("here"), need, r)
    try:
        gold = symbols(plan, choice.number)
    except Missing:
        return None
    in_order(gold)
    try:
        return lines(choice, e.state) + text_tokens(texts), gold
    except (Missing, KeyError):
        return None


if __name__ == "__main__":
    import sys
    import time
    r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    n, lost, t0 = 0, 0, time.time()
    shown = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    while n < 3000:
        for e in generated(r):
            x = write(r, e)
            n += 1
            if x is None:
                lost += 1
            elif n <= shown:
                tokens, gold = x
                at = tokens.index("<text>")
                print(e.kind, "|", " ".join(w for w in tokens[at:] if not (w.startswith("<w"))), "=>", " ".join(gold).replace("<", "").replace(">", ""))
                if n % 10 == 0:
                    print("    ", " ".join(tokens[:at]))
    print("per second", n / (time.time() - t0), "lost", lost / n)
