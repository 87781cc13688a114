"""Turns that need the state of the conversation: answers, "it", "and the bedroom too", "no, 22", "make it 15"."""

import words as W
from families import T_, dur_slot, last_plan, person
from plans import Span
from sentences import T, Clause, NoFit
from sites import BARE, COVERS, LOCKS, OPENS, POWER, QUANTITY_WORDS, RUNS, Area

T["it_on"] = ["turn it on", "switch it on", "it on please", "put it on", "turn that on", "turn it back on", "switch that thing on", "on again", "now on"]
T["it_off"] = ["turn it off", "switch it off", "turn that off", "turn it off again", "switch that off please", "shut it off", "kill it", "turn the thing off", "off again", "now off"]
T["it_open"] = ["open it", "open that", "open it again", "open it up", "now open it"]
T["it_close"] = ["close it", "shut it", "close that", "close it again", "close it up please"]
T["it_lock"] = ["lock it", "lock that", "lock it please", "lock it again"]
T["it_unlock"] = ["unlock it", "unlock that", "unlock it again"]
T["it_start"] = ["start it", "start that", "run it", "start it again", "get it going"]
T["it_stop"] = ["stop it", "stop that", "stop that one", "make it stop", "halt it"]
T["it_set"] = ["set it to {v}", "make it {v}", "put it on {v}", "{v}", "turn it to {v}", "turn it up to {v}", "turn it down to {v}", "change it to {v}", "bring it to {v}", "{v} please", "better {v}", "let's say {v}", "rather {v}", "no, {v}", "no {v}", "i meant {v}", "sorry, {v}", "actually {v}", "make that {v}", "i said {v}", "not that, {v}"]
T["it_up"] = ["turn it up", "turn it up {amount}", "a bit more", "more", "higher", "up {amount}", "turn it up by {v}", "{v} more", "even more", "still more", "some more"]
T["it_down"] = ["turn it down", "turn it down {amount}", "a bit less", "less", "lower", "down {amount}", "turn it down by {v}", "{v} less", "even less", "not so much"]
T["it_ask"] = ["is it {st}", "is it still {st}", "is it {st} now", "what's its state", "how is it doing", "and is it {st}"]
T["too_area"] = ["and {in} too", "and {in}", "{place} too", "also {in}", "the same {in}", "same {in}", "do the same {in}", "and {place}", "and the ones {in}", "likewise {in}", "{place} as well", "and also {place}", "and now {in}", "now {place}", "the same for {place}", "repeat that {in}", "ditto {in}", "ditto for {place}", "{in} ditto"]
T["too_thing"] = ["and {x}", "and {x} too", "{x} too", "also {x}", "the same for {x}", "same with {x}", "{x} as well", "and also {x}", "now {x}", "do the same with {x}", "and then {x}", "{x} likewise"]
T["not_that"] = ["no, {x}", "no i meant {x}", "not that one, {x}", "i meant {x}", "no no, {x}", "i said {x}", "wrong one, {x}", "sorry, {x}", "no, i want {x}", "oops, {x} i mean", "actually {x}", "that's the wrong one, i meant {x}"]
T["not_area"] = ["no, {in}", "no, {place}", "i meant {in}", "not there, {in}", "i meant {place}", "no i said {place}", "sorry {in}", "wrong room, {place}"]
T["it_timer"] = ["make it {d}", "make that {d}", "change it to {d}", "no, {d}", "i meant {d}", "{d} instead", "set it to {d}", "actually {d}", "better {d}", "no make it {d}"]
T["it_timer_n"] = ["make it {n}", "make that {n}", "no, {n}", "i meant {n}", "{n} instead", "actually {n}", "better {n}"]
T["it_timer_more"] = ["add {d}", "{d} more", "another {d}", "give it {d} more", "plus {d}", "add another {d}"]
T["it_timer_cancel"] = ["cancel it", "stop it", "delete it", "turn it off", "remove it again", "cancel that timer", "scrap it"]
T["it_timer_ask"] = ["how much longer", "how long is left", "how much time is left", "how long to go", "when is it over", "is it over yet"]
T["it_alarm"] = ["make it {t}", "no, {t}", "change it to {t}", "i meant {t}", "better {t}", "move it to {t}", "{t} instead", "make that {t}"]
T["call_them"] = ["call her", "call him", "call them", "ring her", "phone him", "give her a call", "give him a ring", "call that person"]
T["tell_them"] = ["tell her {what}", "tell him {what}", "tell them that {what}", "text her {what}", "text him that {what}", "let him know {what}"]
T["ans_value"] = ["{v}", "{v} please", "make it {v}", "to {v}", "let's say {v}", "um {v}", "{v} i guess", "set it to {v}", "i think {v}", "{v} would be good", "{v} should do"]
T["ans_which"] = ["{x}", "{x} please", "i mean {x}", "{x} of course", "the one {in}", "{x}, please", "i want {x}", "take {x}", "that would be {x}"]
T["ans_both"] = ["both", "all of them", "both of them", "all", "every one of them", "the two of them", "both please"]
T["ans_first"] = ["the first one", "the first", "number one", "first", "the former"]
T["ans_second"] = ["the second one", "the second", "number two", "the last one", "the other one", "the latter", "the other", "no the other one"]
T["ans_time"] = ["{t}", "{t} please", "for {t}", "make it {t}", "um {t}", "say {t}"]
T["ans_text"] = ["{what}", "say {what}", "that {what}", "tell them {what}", "write {what}", "{what} please"]


def slots_of(g, t):
    return g.x(t)


def it_verbs(t):
    return (["on", "off"] if t.kind in POWER else []) + (["open", "close"] if t.kind in OPENS else []) + (["lock", "unlock"] if t.kind in LOCKS else []) + (["start", "stop"] if t.kind in RUNS else [])


def pronoun(g):
    """ "turn it off" after something was done with a thing; without that, the pronoun stays open."""
    r = g.r
    t = g.thing(None, lambda t: it_verbs(t))
    v = r.choice(it_verbs(t))
    if r.random() < 0.2:
        return g.clause("it_" + v, {}, [v, "it"])
    c = g.clause("it_" + v, {}, [v, t])
    c.last = [r.choice(it_verbs(t) + ["ask"]), t]
    if c.last[0] == "ask":
        c.last.append("state")
    return c


def pronoun_group(g):
    r = g.r
    sym, _, cls = g.group(["light", "light", "blind", "curtain", "shutter", "fan", "switch"])
    if "unknown" in sym:
        raise NoFit
    opens = cls in COVERS
    v = r.choice(("open", "close") if opens else ("on", "off"))
    c = g.clause("it_" + v, {}, [v] + sym)
    c.parts = [(p.replace(" it", " them").replace(" that", " those"), k) for p, k in c.parts]
    c.last = [r.choice(("open", "close") if opens else ("on", "off"))] + sym
    return c


def pronoun_value(g):
    r = g.r
    t = g.thing(None, lambda t: t.kind != "sensor" and t.settable())
    q = r.choice(t.settable())
    k, unit, v = g.v(q, t)
    x = r.random()
    verb = r.choice(("set", "set", "up", "down")) if x < 0.7 else "ask"
    if x < 0.5:
        c = g.clause("it_set", {"v": lambda: v}, ["set", t, q, "to_value", Span(k)])
    else:
        d = r.choice(("up", "down"))
        amount, aw = g.amount()
        key = "it_" + d

        def plan(used):
            return [d, t, q] + (["by_value", Span(k)] if "v" in used else amount if "amount" in used else [])
        c = g.clause(key, {"v": lambda: v, "amount": T_(aw)}, plan)
        if c.plan[-1] == q and any(w in "".join(p[0] for p in c.parts) for w in ("a bit", )):
            c.plan.append("bit")
        verb = r.choice(("set", "up", "down"))
    c.last = [verb, t, q]
    return c


def no_referent(g):
    """A pronoun, a place or a value that nothing before explains: it stays open."""
    r = g.r
    x = r.random()
    if x < 0.4:
        q = r.choice(("brightness", "temperature", "volume", "position", "speed"))
        k, unit, v = g.v(q)
        if not unit or q not in ("temperature",) and r.random() < 0.5:
            return g.clause("it_set", {"v": lambda: v}, ["set", "it", "to_value", Span(k)])
        return g.clause("it_set", {"v": lambda: v}, ["set", "it"] + ([q] if q == "temperature" else []) + ["to_value", Span(k)])
    sym, parts, cls = g.group(["light", "light", "blind", "heating", "fan", "media"])
    if len(sym) > 1 or sym[0] in ("all", "everything"):
        raise NoFit
    v = r.choice(("open", "close") if cls in COVERS else ("on", "off"))
    c = g.clause({"on": "on", "off": "off", "open": "open_plain", "close": "close_plain"}[v], {"x": lambda: parts, "x0": lambda: parts}, [v, cls, "it"])
    c.parts = c.parts + [(r.choice((" there", " over there", " in there", " in that room")), None)]
    areas = g.site.areas
    if areas and r.random() < 0.6:
        a = r.choice(areas)
        c.plan = [v, cls, a]
        c.last = r.choice(([r.choice(("on", "off")), "light", a], ["ask", a, "temperature"], ["set", "light", a, "brightness"]))
    else:
        c.plan = ["none", "unclear"]
    return c


def color_again(g):
    r = g.r
    sym, _, t = g.target(["light"], ["light"], 0.5)
    if "unknown" in sym or "except" in sym:
        raise NoFit
    k = g.key("v")
    v = [(r.choice(W.COLORS), k)]
    c = g.clause("it_set", {"v": lambda: v}, ["set"] + sym + ["color", "to_value", Span(k)])
    c.last = [r.choice(("on", "set"))] + sym + (["color"] if r.random() < 0.5 else [])
    if c.last[0] == "set" and c.last[-1] != "color":
        c.last.append("color")
    return c


def ask_again(g):
    from families import state_of
    r = g.r
    t = g.thing(None, lambda t: t.kind != "sensor")
    st, ws = r.choice(state_of(g, t.kind))
    c = g.clause("it_ask", {"st": T_(r.choice(ws))}, lambda used: ["ask", t, st if "st" in used else "state"])
    c.last = [r.choice(it_verbs(t) or ["ask"]), t]
    if c.last[0] == "ask":
        c.last.append("state")
    return c


def same_elsewhere(g):
    """ "and the bedroom too" """
    r = g.r
    sym, _, cls = g.group(["light", "light", "blind", "curtain", "heating", "fan", "shutter"])
    if "unknown" in sym or "except" in sym:
        raise NoFit
    place, in_, pl = g.place(unknown=0.03)
    if place in (["here"],):
        raise NoFit
    v = r.choice(("open", "close") if cls in COVERS else ("on", "off", "on", "off", "set", "up", "down"))
    tail = [r.choice({"light": ("brightness", "color"), "heating": ("temperature",), "fan": ("speed",)}[cls])] if v == "set" else [{"light": "brightness", "heating": "temperature", "fan": "speed"}[cls]] if v in ("up", "down") else []
    head = [s for s in sym if isinstance(s, str) and s not in ("here", "everywhere", "all")]
    correct = r.random() < 0.3
    c = g.clause("not_area" if correct else "too_area", {"in": lambda: in_, "place": lambda: pl}, [v] + head + place + tail + (["same"] if tail and v == "set" else []))
    c.last = [v] + sym + tail
    return c


def same_thing(g):
    r = g.r
    t = g.thing(None, lambda t: it_verbs(t))
    u = g.thing(None, lambda u: u is not t and it_verbs(u))
    both = [v for v in it_verbs(t) if v in it_verbs(u)]
    common = [q for q in t.settable() if u.can(q)]
    if common and r.random() < 0.4:
        q = r.choice(common)
        c = g.clause(r.choice(("too_thing", "not_that")), g.x(u), ["set", u, q, "same"])
        c.last = ["set", t, q]
        return c
    if not both:
        raise NoFit
    v = r.choice(both)
    c = g.clause(r.choice(("too_thing", "not_that")), g.x(u), [v, u])
    c.last = [v, t]
    return c


def timer_again(g):
    r = g.r
    d, dp = dur_slot(g)
    key, word = r.choice((("it_timer", "change"), ("it_timer", "change"), ("it_timer_n", "change"), ("it_timer_more", "more"), ("it_timer_cancel", "cancel_one"), ("it_timer_ask", "ask_one")))
    k = g.key("n")
    n = [(W.number(r, r.randint(1, 60)), k)]

    def plan(used):
        return ["timer", word] + (["to_value" if word == "change" else "by_value", d if "d" in used else Span(k)] if used else [])
    c = g.clause(key, {"d": lambda: dp, "n": lambda: n}, plan)
    c.last = ["timer", r.choice(("set_one", "set_one", "change"))]
    return c


def alarm_again(g):
    r = g.r
    k = g.key("at")
    t = [(W.clock(r), k)]
    kind = r.choice(("alarm", "remind", "event"))
    if r.random() < 0.25:
        c = g.clause("it_timer_cancel", {}, [kind, "cancel_one"])
        c.parts = [(p.replace("timer", kind), x) for p, x in c.parts]
    else:
        c = g.clause("it_alarm", {"t": lambda: t}, [kind, "change", "at", Span(k)])
    c.last = [kind, "set_one"]
    return c


def call_them(g):
    r = g.r
    t = person(g)
    k = g.key("what")
    what = r.choice(W.MESSAGES)
    tell = r.random() < 0.4
    known = r.random() < 0.75
    who = [t] if known else ["it"]
    c = g.clause("tell_them" if tell else "call_them", {"what": lambda: [(what, k)]}, (["message"] + who + ["what", Span(k)]) if tell else ["call"] + who)
    if known:
        c.last = r.choice((["ask", t, "place"], ["call", t], ["message", t]))
    return c


def yes_no(g):
    r = g.r
    word = r.choice(("yes", "no"))
    c = g.clause(word, {}, ["answer", word])
    if r.random() < 0.75:
        c.state["pending"] = ["ask_yes"]
        c.last = last_plan(g)
        if c.last[0] == "ask":
            c.last = None
    elif r.random() < 0.3:
        c.last = last_plan(g)
    return c


def answer_value(g):
    r = g.r
    t = g.thing(None, lambda t: t.settable())
    q = r.choice(t.settable())
    k, unit, v = g.v(q, t)
    c = g.clause("ans_value", {"v": lambda: v}, ["answer", "to_value", Span(k)])
    c.state["pending"] = ["ask_value"]
    c.last = ["set", t] + ([q] if r.random() < 0.7 else [])
    return c


def answer_which(g):
    r = g.r
    n = r.choice((2, 2, 3))
    pool = g.things(None, lambda t: t.kind != "sensor")
    if len(pool) < n:
        raise NoFit
    choices = r.sample(pool, n)
    t = r.choice(choices)
    x = r.random()
    if x < 0.12:
        c = g.clause("ans_both", {}, ["answer", "all"])
    elif x < 0.24:
        c = g.clause("ans_first", {}, ["answer", choices[0]])
    elif x < 0.36:
        c = g.clause("ans_second", {}, ["answer", choices[1]])
        if n == 3:
            raise NoFit
    else:
        areas = [u.area for u in choices]

        def in_():
            if t.area is None or areas.count(t.area) > 1:
                raise NoFit
            return [("in " + g.say_area(t.area), None)]
        c = g.clause("ans_which", {**g.x(t), "in": in_}, ["answer", t])
    c.state["pending"] = ["ask_which"] + choices
    c.last = [r.choice(("on", "off", "open", "close", "start", "stop"))]
    return c


def answer_time(g):
    r = g.r
    k = g.key("at")
    kind = r.choice(("alarm", "remind", "event", "timer"))
    phrase = W.duration(r) if kind == "timer" else W.at(r)[1]
    c = g.clause("ans_time", {"t": lambda: [(phrase, k)]}, ["answer", "dur" if kind == "timer" else "at", Span(k)])
    c.state["pending"] = ["ask_time"]
    c.last = [kind, "set_one"]
    return c


def answer_text(g):
    r = g.r
    k = g.key("what")
    kind = r.choice(("message", "remind", "announce", "add"))
    what = r.choice(W.MESSAGES if kind in ("message", "announce") else W.TASKS if kind == "remind" else W.ITEMS)
    c = g.clause("ans_text", {"what": lambda: [(what, k)]}, ["answer", "what", Span(k)])
    c.state["pending"] = ["ask_text"]
    c.last = [kind] + ([person(g)] if kind == "message" else ["set_one"] if kind == "remind" else [])
    return c


FOLLOWUPS = [(pronoun, 4), (pronoun_group, 2), (pronoun_value, 5), (color_again, 1), (no_referent, 2), (ask_again, 1), (same_elsewhere, 4), (same_thing, 3), (timer_again, 4), (alarm_again, 2), (call_them, 1.5), (yes_no, 4), (answer_value, 3), (answer_which, 4), (answer_time, 1.5), (answer_text, 1.5)]
