"""The families of commands and questions: each draws a plan over a site and its sentence."""

import words as W
from plans import Span
from sentences import STATES, Clause, Gen, NoFit
from sites import BARE, FIRST, CLASS_WORDS, COVERS, IMPLIED, LOCKS, NUMBER, OPENS, OWN, POWER, QUANTITY_WORDS, RUNS, UNITS, Area, fill as fill_name

FAMILIES = []


def family(weight, group):
    def add(f):
        FAMILIES.append((f, weight, group))
        return f
    return add


def T_(text, tag=None):
    return lambda: [(text, tag)]


# ---- power, opening, locks ----
POWER_CLASSES = ["light", "light", "light", "light", "switch", "fan", "heating", "cooling", "media", "everything", "climate"]


@family(9, "power")
def power(g):
    on = g.r.random() < 0.5
    sym, slots, t = g.target(POWER, POWER_CLASSES)
    verb = "on" if on else "off"
    if g.r.random() < 0.04:
        return g.clause("toggle", slots, ["toggle"] + sym)
    return g.clause(verb, slots, [verb] + sym)


@family(3, "power")
def lights_at(g):
    on = g.r.random() < 0.5
    sym, in_, pl = g.place()
    return g.clause("lights_on" if on else "lights_off", {"in": lambda: in_, "place": lambda: pl}, ["on" if on else "off", "light"] + sym)


@family(5, "unknown")
def unknown_thing(g):
    sym, slots = g.unknown()
    if g.r.random() < 0.2:
        q, key = g.r.choice((("brightness", "unknown_level"), ("brightness", "unknown_level"), ("temperature", "unknown_heat")))
        k, _, v = g.v(q)
        return g.clause(key, {**slots, "v": lambda: v}, ["set"] + sym + [q, "to_value", Span(k)])
    verb, key = g.r.choice((("on", "on"), ("off", "off"), ("open", "open_plain"), ("close", "close_plain"), ("start", "start"), ("stop", "stop"), ("lock", "lock"), ("unlock", "unlock"), ("ask", "ask_state")))
    return g.clause(key, slots, [verb] + sym + (["state"] if verb == "ask" else []))


@family(5, "open")
def opening(g):
    verb = g.r.choice(("open", "close"))
    sym, slots, t = g.target(OPENS, ["blind", "curtain", "shutter", "shade", "awning", "door", "garage", "gate", "window", "valve"], 0.35)
    kind = t if isinstance(t, str) else t.kind
    return g.clause(verb if kind in COVERS or kind == "garage" else verb + "_plain", slots, [verb] + sym)


@family(3, "lock")
def locks(g):
    verb = g.r.choice(("lock", "unlock"))
    sym, slots, t = g.target(LOCKS, ["door", "lock", "gate", "window"], 0.3)
    return g.clause(verb, slots, [verb] + sym)


@family(2, "which")
def ambiguous(g):
    """A word that several things share: the plan names them all, and the program asks, unless one of them is here."""
    r = g.r
    by = {}
    for t in g.site.things:
        if t.kind != "sensor":
            for w in t.words:
                by.setdefault(w[-1], {})[id(t)] = t
    pool = [(w, list(ts.values())) for w, ts in by.items() if 2 <= len(ts) <= 4 and w not in BARE and w + "s" not in BARE and not w.isdigit() and len(w) > 2 and g.names.get(w, 0) == len(ts)]
    if not pool:
        raise NoFit
    w, ts = r.choice(pool)
    kinds = [t.kind for t in ts]
    verb, key = r.choice((("on", "on"), ("off", "off")) if all(k in POWER for k in kinds) else (("open", "open_plain"), ("close", "close_plain")) if all(k in OPENS for k in kinds) else (("start", "start"), ("stop", "stop")) if all(k in RUNS for k in kinds) else (("ask", "ask_state"),))
    here = [t for t in ts if g.here is not None and t.area is g.here]
    target = here if len(here) == 1 else ["one"] + ts
    return g.clause(key, {"x": T_("the " + w), "x0": T_(w)}, [verb] + target + (["state"] if verb == "ask" else []))


@family(2.5, "which")
def plural(g):
    """ "all fermenters", "both pumps": every thing that shares a word, one by one."""
    r = g.r
    by = {}
    for t in g.site.things:
        for w in t.words:
            core = [x for x in w if x.isalpha() and len(x) > 2 and x not in NUMBER]
            if core:
                by.setdefault(core[-1], {})[id(t)] = t
    pool = [(w, list(ts.values())) for w, ts in by.items() if 2 <= len(ts) <= 5 and w.isalpha() and w not in BARE and w + "s" not in BARE and len(w) > 2 and not w.endswith("s") and g.names.get(w, 0) == len(ts) and len({t.kind for t in ts.values()}) == 1]
    if not pool:
        raise NoFit
    w, ts = r.choice(pool)
    kind = ts[0].kind
    many = w[:-1] + "ies" if w.endswith("y") and w[-2] not in "aeiou" else w + ("es" if w.endswith(("ch", "sh", "x")) else "s")
    x = r.choice(("the ", "all ", "all the ", "all of the ", "all our ", "both ", "both the ", "every one of the ", "my "))
    if x.startswith("both") and len(ts) != 2:
        raise NoFit
    slots = {"x": T_(x + many), "x0": T_(many)}
    settable = [q for q in ts[0].settable() if all(t.can(q) for t in ts)]
    verbs = [("on", "on"), ("off", "off")] * (kind in POWER) + [("open", "open_plain"), ("close", "close_plain")] * (kind in OPENS) + [("start", "start"), ("stop", "stop")] * (kind in RUNS) + [("lock", "lock"), ("unlock", "unlock")] * (kind in LOCKS) + [("set", "set_q"), ("ask", "ask_q")] * bool(settable) + [("ask", "ask_is")]
    verb, key = r.choice(verbs)
    if key in ("set_q", "ask_q"):
        q = r.choice(settable)
        k, unit, v = g.v(q, ts[0])
        return g.clause(key, {**slots, "q": T_(r.choice(QUANTITY_WORDS[q])), "v": lambda: v}, [verb] + ts + [q] + (["to_value", Span(k)] if verb == "set" else []))
    if key == "ask_is":
        st, ws = r.choice(state_of(g, kind))
        return g.clause(key, {**slots, "st": T_(r.choice(ws))}, ["ask"] + ts + [st])
    return g.clause(key, slots, [verb] + ts)


T_ALL = {"lock": ["lock up", "lock up for the night", "lock everything", "lock the house", "lock the whole place", "lock all up", "make sure everything is locked", "lock up please"], "close": ["close everything", "close everything up", "shut everything", "make sure everything is closed"], "open": ["open everything", "open everything up"]}


@family(1, "lock")
def all_of_it(g):
    verb = g.r.choice(("lock", "lock", "close", "open"))
    return g.clause(verb + "_everything", {}, [verb, "everything"])


# ---- values ----
def quantity_plan(t, q, said, unit):
    """Which quantity a value means. None: the text leaves it open."""
    if said or q in IMPLIED.get(t.kind, ()) and t.settable()[:1] == [q] and (unit or len(t.settable()) == 1):
        return [q]
    if unit:
        return [q]
    return [q] if len(t.settable()) == 1 else []


@family(7, "set")
def set_thing(g):
    r = g.r
    t = g.thing(None, lambda t: t.kind != "sensor" and t.settable())
    q = r.choice(t.settable())
    k, unit, v = g.v(q, t)
    said = r.random() < 0.5
    slots = {**g.x(t), "v": lambda: v, "q": T_(r.choice(QUANTITY_WORDS[q]))}
    key = "set_q" if said else "set_light" if q == "brightness" and r.random() < 0.5 else "set_cover" if q == "position" else "set"
    if key == "set_light":
        said = True
    if key == "set_cover":
        said = True
    return g.clause(key, slots, ["set", t] + quantity_plan(t, q, said, unit) + ["to_value", Span(k)])


@family(3, "set")
def set_group(g):
    r = g.r
    cls, q = r.choice((("light", "brightness"), ("light", "brightness"), ("light", "color"), ("heating", "temperature"), ("climate", "temperature"), ("blind", "position"), ("curtain", "position"), ("shutter", "position"), ("media", "volume"), ("fan", "speed"), ("cooling", "temperature"), ("window", "position")))
    sym, parts, _ = g.group([cls])
    if q == "color":
        k = g.key("v")
        v = [(r.choice(W.COLORS), k)]
        return g.clause("set_color", {"x": lambda: parts, "v": lambda: v}, ["set"] + sym + [q, "to_value", Span(k)])
    k, unit, v = g.v(q)
    key = r.choice({"brightness": ("set_light", "set", "set_q"), "position": ("set_cover",), "volume": ("set", "set_q"), "speed": ("set", "set_q"), "temperature": ("set", "set", "set_q")}[q])
    return g.clause(key, {"x": lambda: parts, "v": lambda: v, "q": T_(r.choice(QUANTITY_WORDS[q]))}, ["set"] + sym + [q, "to_value", Span(k)])


TEMP_AT = ["set the temperature to {v}", "set the temperature {in} to {v}", "{v} {in}", "make it {v} {in}", "i want it {v} {in}", "i want {v} {in}", "set {place} to {v}", "heat {place} to {v}", "cool {place} to {v}", "{place} at {v} please", "change the temperature {in} to {v}", "<raise> the temperature {in} to {v}", "<lower> the temperature {in} to {v}", "temperature {in} {v}", "{place} temperature to {v}", "adjust the temp {in} to {v}", "warm {place} up to {v}"]
BRIGHT_AT = ["set the brightness to {v}", "set the brightness {in} to {v}", "brightness {v} {in}", "set {place} to {v} brightness", "dim {place} to {v}", "make {place} {v} bright", "<set> the brightness of {place} to {v}", "{place} brightness {v}", "light {in} at {v}", "brightness {in} {v}"]
HUM_AT = ["set the humidity {in} to {v}", "<raise> the humidity {in} to {v}", "i want {v} humidity {in}", "keep the humidity {in} at {v}"]
from sentences import T  # noqa: E402  (the tables are extended here, so that all templates are held out the same way)
T.update({k + "_everything": v for k, v in T_ALL.items()})
T["unknown_level"] = ["dim {x} to {v}", "dim {x} down to {v}", "brighten {x} to {v}", "set the brightness of {x} to {v}", "put {x} at {v} brightness"]
T["unknown_heat"] = ["set the temperature of {x} to {v}", "heat {x} to {v}", "bring {x} to a temperature of {v}"]
T["temp_at"], T["bright_at"], T["hum_at"] = TEMP_AT, BRIGHT_AT, HUM_AT
T["temp_here"] = [x for x in TEMP_AT if "{place}" not in x]
T["bright_here"] = [x for x in BRIGHT_AT if "{place}" not in x]


@family(4, "set")
def set_at(g):
    r = g.r
    key, q = r.choice((("temp", "temperature"), ("temp", "temperature"), ("bright", "brightness"), ("hum", "humidity")))
    k, unit, v = g.v(q)
    if q == "temperature" and not unit:
        v = [(v[0][0] + " degrees", k)]
    if q == "humidity" and not unit:
        v = [(v[0][0] + " percent", k)]
    sym, in_, pl = g.place(none=0.25)
    if in_ is None:
        key, in_ = (key + "_here", [("", None)]) if key != "hum" else ("hum_at", [("", None)])
    else:
        key += "_at"
    target = {"temperature": ["climate"], "brightness": ["light"], "humidity": ["climate"]}[q]
    return g.clause(key, {"v": lambda: v, "in": lambda: in_, "place": lambda: pl}, ["set"] + target + sym + [q, "to_value", Span(k)])


@family(3, "set")
def color_mode(g):
    r = g.r
    k = g.key("v")
    if r.random() < 0.65:
        sym, slots, t = g.target(["light"], ["light"], 0.5)
        v = [(r.choice(W.COLORS), k)]
        return g.clause("set_color", {**slots, "v": lambda: v}, ["set"] + sym + ["color", "to_value", Span(k)])
    t = g.thing(["climate", "heating", "cooling", "media", "fan", "appliance", "machine", "vacuum"])
    v = [(r.choice(W.MODES), k)]
    return g.clause("set_mode", {**g.x(t), "v": lambda: v}, ["set", t, "mode", "to_value", Span(k)])


@family(4, "set")
def set_own(g):
    """Settings that only this thing has; also one that it has not."""
    r = g.r
    t = g.thing(None, lambda t: t.own)
    i = r.randrange(len(t.own))
    k = g.key("v")
    v = [(W.number(r, r.randint(1, 120), 1) + r.choice(("", "", " percent", " bar", "%", " mm", " degrees")), k)]
    if r.random() < 0.3:
        return g.clause("ask_q", {**g.x(t), "q": T_(t.own[i])}, ["ask", t, f"q{i + 1}"])
    return g.clause("set_q", {**g.x(t), "v": lambda: v, "q": T_(t.own[i])}, ["set", t, f"q{i + 1}", "to_value", Span(k)])


@family(1.2, "set")
def set_wrong(g):
    """A quantity that the thing does not list: the plan says what was said, the gate refuses."""
    r = g.r
    q = r.choice(("pressure", "temperature", "speed", "volume", "humidity", "flow", "power", "brightness"))
    t = g.thing(None, lambda t: not t.can(q) and t.kind not in ("sensor",))
    k, unit, v = g.v(q)
    return g.clause("set_q", {**g.x(t), "v": lambda: v, "q": T_(r.choice(QUANTITY_WORDS[q][:1]))}, ["set", t, q, "to_value", Span(k)])


STEPS = {
    "brightness": (["brighter", "lighter", "more light", "more bright"], ["darker", "dimmer", "less bright", "less light"], ["brighten {x}", "brighten up {x}", "make {x} brighter", "more light from {x}"], ["dim {x}", "darken {x}", "make {x} dimmer", "dim down {x}", "make {x} darker", "lower {x}"]),
    "temperature": (["warmer", "hotter", "more heat"], ["cooler", "colder", "less heat"], ["make {x} warmer", "warm up {x}", "heat up {x}", "make {x} hotter"], ["make {x} cooler", "cool down {x}", "make {x} colder"]),
    "volume": (["louder"], ["quieter", "softer", "less loud"], ["make {x} louder"], ["make {x} quieter", "make {x} softer"]),
    "speed": (["faster", "quicker"], ["slower"], ["make {x} faster", "speed up {x}", "speed {x} up", "run {x} faster"], ["make {x} slower", "slow down {x}", "slow {x} down", "run {x} slower"]),
    "position": (["further open", "higher"], ["further closed", "lower"], ["open {x} a bit more", "raise {x} a bit", "open {x} a little", "open {x} a crack", "crack {x} open", "open {x} slightly", "open {x} just a tiny bit"], ["close {x} a bit more", "lower {x} a bit", "close {x} a little"]),
}
for q_, (up_, down_, upx_, downx_) in STEPS.items():
    T["step_up_" + q_], T["step_down_" + q_] = upx_, downx_
    T["step_here_up_" + q_] = [p % w for w in up_ for p in ("%s", "%s please", "make it %s", "make it {amount} %s", "{amount} %s", "a bit %s", "can you make it %s", "i want it %s", "it should be %s", "%s {in}", "make it %s {in}", "make it {amount} %s {in}", "a little %s {in} please", "could it be {amount} %s {in}")]
    T["step_here_down_" + q_] = [p % w for w in down_ for p in ("%s", "%s please", "make it %s", "make it {amount} %s", "{amount} %s", "a bit %s", "can you make it %s", "i want it %s", "it should be %s", "%s {in}", "make it %s {in}", "make it {amount} %s {in}", "a little %s {in} please", "could it be {amount} %s {in}")]
T["too_cold"] = ["it's too cold {in}", "it is too cold {in}", "too cold {in}", "it's a bit too cold {in}, do something", "we're freezing {in}, warm it up"]
T["too_hot"] = ["it's too hot {in}", "it is too warm {in}", "too hot {in}", "it's boiling {in}, cool it down", "it's far too warm {in}"]
T["too_bright"] = ["it's too bright {in}", "too bright {in}", "the light is too bright {in}", "it is way too bright {in}"]


@family(5, "step")
def step_thing(g):
    r = g.r
    t = g.thing(None, lambda t: t.kind != "sensor" and t.settable())
    q = r.choice(t.settable())
    d = r.choice(("up", "down"))
    amount, aw = g.amount()
    k, unit, v = g.v(q, t, True)
    said = r.random() < 0.5
    if q in STEPS and said and r.random() < 0.6:
        c = g.clause(f"step_{d}_{q}", g.x(t), [d, t, q])
        text = "".join(p[0] for p in c.parts)
        if q == "position":
            c.plan.append("bit")
        elif r.random() < 0.4:
            c.parts.append((" " + aw, None))
            c.plan += amount
        del text
        return c
    slots = {**g.x(t), "v": lambda: v, "amount": T_(aw), "q": T_(r.choice(QUANTITY_WORDS[q]))}
    implied = IMPLIED.get(t.kind, ())
    first = t.settable()[0]

    def plan(used):
        quant = [q] if said or ("v" in used and unit) or len(t.settable()) == 1 or (implied and q == first) else []
        return [d, t] + quant + (["by_value", Span(k)] if "v" in used else amount if "amount" in used else [])
    if not said and q == "position":
        raise NoFit
    return g.clause(d + ("_q" if said else ""), slots, plan)


MORE_LESS = {"brightness": (["brighter", "lighter"], ["darker", "dimmer"]), "temperature": (["warmer", "hotter", "higher"], ["cooler", "colder", "lower"]), "volume": (["louder", "higher"], ["quieter", "lower"]), "speed": (["faster"], ["slower"])}
T["by_than"] = ["make {x} {v} {w}", "{x} {v} {w}", "set {x} {v} {w}", "i want {x} {v} {w}", "{v} {w} for {x}", "turn {x} {v} {w}", "i'd like {x} {v} {w}", "could you make {x} {v} {w}", "{x} {up} {v}", "turn {x} {up} {v}", "bump {x} {up} {v}", "take {x} {up} {v}", "nudge {x} {up} {v}", "{x} {up} by {v}"]
T["by_than_here"] = ["{v} {w}", "{v} {w} please", "make it {v} {w}", "{v} {w} {in}", "make it {v} {w} {in}", "{place} {v} {w}", "make {place} {v} {w}", "i'd like it {v} {w} {in}", "it should be {v} {w} {in}"]


@family(3.5, "step")
def step_by(g):
    """ "two degrees cooler", "the lamp 15 percent brighter", "the oven up 20 degrees" """
    r = g.r
    q = r.choice(list(MORE_LESS))
    d = r.choice((0, 1))
    k = g.key("v")
    unit = {"temperature": r.choice((" degrees", " degrees", "°", " degrees celsius")), "speed": " percent"}.get(q, r.choice((" percent", " percent", "%")))
    n = r.choice((1, 2, 3, 5, 10, 15, 20, 25, 30)) if q != "temperature" else r.choice((1, 2, 2, 3, 4, 5, 20))
    v = W.number(r, n, 0, 0.4) + unit
    if n == 1:
        v = "a degree" if q == "temperature" else "one percent"
    if r.random() < 0.08 and q == "temperature":
        v = r.choice(("half a degree", "one and a half degrees", "a degree and a half", "a couple of degrees"))
    slots = {"v": lambda: [(v, k)], "w": T_(r.choice(MORE_LESS[q][d])), "up": T_("down" if d else "up")}
    verb = ("up", "down")[d]
    if r.random() < 0.45:
        cls = {"brightness": "light", "temperature": "climate", "volume": "media", "speed": "fan"}[q]
        sym, in_, pl = g.place(none=0)
        c = g.clause("by_than_here", {**slots, "in": lambda: in_, "place": lambda: pl}, lambda used: [verb, cls] + (sym if used & {"in", "place"} else []) + [q, "by_value", Span(k)])
        if verb == "down" and q == "temperature" and any(w == "lower" for w in "".join(p for p, _ in c.parts).split()) and q != "temperature":
            raise NoFit
        return c
    t = g.thing(None, lambda t: t.kind != "sensor" and q in t.settable())
    return g.clause("by_than", {**slots, **g.x(t)}, [verb, t, q, "by_value", Span(k)])


T["must_be"] = ["it must be {v} {in}", "i like to have {v} {in}", "it has to be {v} {in}", "we need {v} {in}", "i prefer {v} {in}", "let it be {v} {in}", "please have {v} {in}", "{place} needs to be {v}", "{place} should be {v}", "get {place} to {v}"]


@family(1, "set")
def must_be(g):
    k = g.key("v")
    v = W.number(g.r, g.r.randint(15, 26), 0) + g.r.choice((" degrees", " degrees", "°", " degree"))
    v = v.replace("°", " degrees") if not v[:1].isdigit() else v
    sym, in_, pl = g.place(none=0)
    return g.clause("must_be", {"v": lambda: [(v, k)], "in": lambda: in_, "place": lambda: pl}, ["set", "climate"] + sym + ["temperature", "to_value", Span(k)])


@family(4, "step")
def step_group(g):
    r = g.r
    cls, q = r.choice((("light", "brightness"), ("light", "brightness"), ("heating", "temperature"), ("climate", "temperature"), ("media", "volume"), ("fan", "speed"), ("cooling", "temperature"), ("blind", "position")))
    sym, parts, _ = g.group([cls])
    d = r.choice(("up", "down"))
    amount, aw = g.amount()
    if r.random() < 0.5 or q == "position":
        c = g.clause(f"step_{d}_{q}", {"x": lambda: parts}, [d] + sym + [q] + (["bit"] if q == "position" else []))
        if q != "position" and r.random() < 0.4:
            c.parts.append((" " + aw, None))
            c.plan += amount
        return c
    k, unit, v = g.v(q, None, True)
    said = r.random() < 0.4
    slots = {"x": lambda: parts, "v": lambda: v, "amount": T_(aw), "q": T_(r.choice(QUANTITY_WORDS[q]))}
    return g.clause(d + ("_q" if said else ""), slots, lambda used: [d] + sym + [q] + (["by_value", Span(k)] if "v" in used else amount if "amount" in used else []))


NATURAL = {"brightness": "light", "temperature": "climate", "volume": "media", "speed": None}


@family(3, "step")
def step_here(g):
    """ "a bit warmer": no thing is named; the last one if it fits, else what is here."""
    r = g.r
    q = r.choice(("brightness", "temperature", "volume", "speed", "temperature", "brightness"))
    d = r.choice(("up", "down"))
    amount, aw = g.amount()
    sym, in_, _ = g.place(none=0.5)
    last = None
    if r.random() < 0.5:
        try:
            last = g.thing(None, lambda t: t.can(q))
        except NoFit:
            last = None
    if q == "speed" and not last:
        raise NoFit

    def plan(used):
        if last is not None and not ("in" in used and sym):
            target = [last]
        else:
            target = [NATURAL[q]] if NATURAL[q] else []
        a = amount if "amount" in used else ["bit"] if small else []
        return [d] + target + (sym if "in" in used else []) + [q] + a
    key = f"step_here_{d}_{q}"
    t = g.template(key)
    small = "a bit" in t or "a little" in t
    g2 = g.template
    g.template = lambda _: t
    try:
        c = g.clause(key, {"amount": T_(aw), "in": (lambda: in_) if in_ else T_("")}, plan)
    finally:
        g.template = g2
    c.last = [r.choice(("on", "set", "up")), last] + ([q] if r.random() < 0.5 else []) if last is not None else None
    return c


@family(1.5, "step")
def too(g):
    key, plan = g.r.choice((("too_cold", ["up", "climate", "temperature"]), ("too_hot", ["down", "climate", "temperature"]), ("too_bright", ["down", "light", "brightness"])))
    sym, in_, _ = g.place(none=0.1)
    return g.clause(key, {"in": (lambda: in_) if in_ else T_("")}, plan[:2] + sym + plan[2:])


# ---- machines, stop, media ----
@family(3, "start")
def start(g):
    t = g.thing(RUNS)
    return g.clause("start", g.x(t), ["start", t])


@family(4, "stop")
def stop_thing(g):
    sym, slots, t = g.target(RUNS | {"fan", "garage", "blind", "shutter", "media", "gate", "heating", "cooling"}, ["machine", "pump"], 0.12)
    return g.clause("stop", slots, ["stop"] + sym)


@family(2, "stop")
def stop_all(g):
    return g.clause("stop_all", {}, ["stop", "everything"])


@family(1.5, "stop")
def stop_it(g):
    c = g.clause("stop_it", {}, ["stop"])
    if g.r.random() < 0.4:
        try:
            t = g.thing(RUNS | {"media", "garage", "blind"})
            c.last = [g.r.choice(("start", "on", "open")), t]
            if g.r.random() < 0.5:
                c.parts = [(g.r.choice(("stop it", "stop that", "no stop it", "make it stop", "stop that thing")), None)]
                c.plan = ["stop", t]
        except NoFit:
            pass
    return c


def media_target(g, none=0.45):
    """(symbols, slots with x and on)"""
    r = g.r
    if r.random() < none:
        return [], {"x": T_(r.choice(("the music", "it", "the song", "the movie", "the player", "the playback"))), "on": T_("")}, None
    if r.random() < 0.35:
        sym, in_, pl = g.place(unknown=0)
        return sym, {"x": lambda: [("the music ", None)] + in_, "on": lambda: in_}, None
    t = g.thing(["media"])
    w = g.say(t)
    return [t], {"x": T_(w), "on": T_(r.choice(("on ", "on ", "on ", "with ", "via ", "over ")) + w)}, t


def media_plan(verb, sym):
    """Places need the class in front; a thing does not."""
    def plan(used):
        if not (used & {"x", "on"}):
            return [verb]
        return [verb] + (["media"] if sym and sym[0].__class__ is not str and hasattr(sym[0], "floor") or sym and isinstance(sym[0], str) else []) + sym
    return plan


@family(5, "media")
def media_control(g):
    verb = g.r.choice(("pause", "resume", "next", "previous", "mute", "unmute"))
    sym, slots, t = media_target(g)
    c = g.clause(verb, slots, media_plan(verb, sym))
    if verb in ("pause", "next") and g.r.random() < 0.3:
        c.state["playing"] = t
    return c


@family(3, "media")
def play(g):
    k = g.key("what")
    sym, slots, t = media_target(g, 0.6)
    what = g.r.choice(W.MUSIC)
    slots["what"] = lambda: [(what, k)]
    base = media_plan("play", sym)
    if not sym:
        slots["x"] = lambda: (_ for _ in ()).throw(NoFit())
    return g.clause("play", slots, lambda used: base(used) + ["what", Span(k)])


@family(3, "media")
def volume(g):
    r = g.r
    sym, slots, t = media_target(g, 0.5)
    k, unit, v = g.v("volume")
    amount, aw = g.amount()
    slots = {**slots, "v": lambda: v, "amount": T_(aw)}
    key = r.choice(("volume", "volume_up", "volume_down"))
    if not sym and key == "volume":
        slots["x"] = T_("")
    verb = {"volume": "set", "volume_up": "up", "volume_down": "down"}[key]

    def plan(used):
        head = media_plan(verb, sym)(used)
        return head + ([] if len(head) > 1 else ["media"]) + ["volume"] + (["to_value" if verb == "set" else "by_value", Span(k)] if "v" in used else amount if "amount" in used else [])
    return g.clause(key, slots, plan)


@family(3, "vacuum")
def vacuum(g):
    r = g.r
    if r.random() < 0.5:
        sym, in_, pl = g.place(none=0, unknown=0.02)
        return g.clause("vacuum", {"in": lambda: in_, "place": lambda: pl}, ["start", "vacuum"] + sym)
    t = g.thing(["vacuum", "mower"])
    if r.random() < 0.4:
        return g.clause("dock", g.x(t), ["dock", t])
    sym, in_, pl = g.place(unknown=0)
    return g.clause("vacuum_x", {**g.x(t), "place": lambda: pl}, lambda used: ["start", t] + (sym if "place" in used else []))


@family(0.4, "vacuum")
def dock_class(g):
    c = g.r.choice(("the vacuum", "the robot vacuum", "the hoover", "the vacuum cleaner"))
    return g.clause("dock", {"x": T_(c)}, ["dock", "vacuum"])


@family(0.5, "find")
def find(g):
    t = g.thing(["vacuum", "mower"] if g.r.random() < 0.5 else ["sensor"], lambda t: t.kind != "sensor" or "phone" in t.name)
    return g.clause("find", g.x(t), ["find", t])


@family(3, "scene")
def scene(g):
    if not g.site.scenes:
        raise NoFit
    t = g.r.choice(g.site.scenes)
    name = " ".join(g.r.choice(t.words))
    c = g.clause("scene", {"x": T_("the " + name), "x0": T_(name)}, ["scene", t])
    return c


@family(1.5, "siren")
def alarm_system(g):
    verb = g.r.choice(("arm", "disarm"))
    ts = [t for t in g.site.things if t.kind == "siren"]
    t = g.r.choice(ts) if ts and g.r.random() < 0.7 else None
    said = [False]

    def x():
        if t is None:
            raise NoFit
        said[0] = True
        return [(g.say(t), None)]
    return g.clause(verb, {"x": x}, lambda used: [verb] + ([t] if "x" in used else ["siren"]))


# ---- people ----
def person(g):
    if not g.site.people:
        raise NoFit
    return g.r.choice(g.site.people)


def person_or_unknown(g):
    r = g.r
    if r.random() < 0.2 or not g.site.people:
        names = {w for p in g.site.people for ws in p.words for w in ws}
        name = r.choice(FIRST) if r.random() < 0.6 else r.choice(("gerald", "the dentist", "aunt polly", "ophelia", "mr popov", "the pizzeria", "lieselotte", "zbigniew", "the bank", "the school", "pat"))
        if set(name.split()) & names:
            raise NoFit
        k = g.key("who")
        return ["unknown", Span(k)], [(name, k)]
    t = person(g)
    return [t], [(g.say(t), None)]


@family(2.5, "people")
def call(g):
    sym, parts = person_or_unknown(g)
    return g.clause("call", {"x": lambda: parts}, ["call"] + sym)


@family(2.5, "people")
def message(g):
    sym, parts = person_or_unknown(g)
    k = g.key("what")
    what = W.message(g.r)
    if g.r.random() < 0.25:
        task = W.task(g.r)
        return g.clause("message_to", {"x": lambda: parts, "what": lambda: [(task, k)]}, ["message"] + sym + ["what", Span(k)])
    return g.clause("message", {"x": lambda: parts, "what": lambda: [(what, k)], "that": T_("that")}, ["message"] + sym + ["what", Span(k)])


@family(2, "people")
def announce(g):
    k = g.key("what")
    what = W.message(g.r)
    sym, in_, _ = g.place(unknown=0, none=0)
    if sym == ["here"]:
        raise NoFit
    return g.clause("announce", {"what": lambda: [(what, k)], "in": lambda: in_}, lambda used: ["announce"] + (sym if "in" in used else []) + ["what", Span(k)])


HOME_WORDS = [("is_home", ["home", "at home", "in the house", "here", "in"]), ("is_away", ["away", "out", "not home", "gone"])]


@family(2, "ask_people")
def where(g):
    r = g.r
    t = person(g)
    st, ws = r.choice(HOME_WORDS)
    arr = r.choice((("arrived", "arrive"), ("left", "leave"), ("come home", "come home")))
    sym, in_, pl = g.place(unknown=0, none=0)
    if sym[0] in ("here", "everywhere"):
        raise NoFit

    def plan(used):
        if "home" in used:
            return ["ask", t, st]
        if "place" in used:
            return ["ask", t] + sym + ["place"]
        if "arrived" in used or "arrive" in used:
            return ["ask", t, "history"]
        return ["ask", t, "place"]
    return g.clause("ask_where", {"x": T_(g.say(t)), "home": T_(r.choice(ws)), "arrived": T_(arr[0]), "arrive": T_(arr[1]), "place": lambda: pl}, plan)


@family(2, "ask_people")
def who(g):
    r = g.r
    st, ws = r.choice(HOME_WORDS)
    sym, in_, pl = g.place(unknown=0.02, none=0)
    if sym[0] in ("here", "everywhere"):
        raise NoFit
    c = g.clause("ask_who", {"home": T_(r.choice(ws)), "place": lambda: pl}, lambda used: (sym if "place" in used else [], used))
    place, used = c.plan
    text = "".join(p[0] for p in c.parts)
    mode = "count" if "how many" in text else "all" if "every" in text or "house empty" in text else "which" if text.startswith("who") else "any"
    state = "is_away" if "house empty" in text else st if "home" in used else "place" if place else "is_home"
    c.plan = ["ask", mode, "person"] + place + [state]
    return c


# ---- lists ----
def list_name(g):
    """(symbols, parts)"""
    r = g.r
    if r.random() < 0.3:
        return [], [(r.choice(("the list", "my list", "the shopping list", "my shopping list", "our list", "shopping list")), None)]
    k = g.key("list")
    name = fill_name(r, r.choice(W.LISTS[1:]))
    return ["list", Span(k)], [(r.choice(("the ", "my ", "our ", "")), None), (name, k), (r.choice((" list", " list", " list", "")) if name not in ("grocery", "to do") else " list", None)]


def items(g):
    r = g.r
    n = r.choice((1, 1, 1, 2, 2, 3, 4))
    chosen = r.sample(W.ITEMS, n)
    sym, parts = [], []
    for i, it in enumerate(chosen):
        k = g.key("item")
        if r.random() < 0.12 and W.TALK:  # whatever it is
            said = r.choice(W.TALK).split()
            at = r.randrange(len(said))
            it = " ".join(w for w in said[at : at + r.randint(1, 2)] if w.isalpha() and w not in ("and", "to", "on", "from", "the", "list")) or it
        if i:
            parts.append((r.choice((" and ", ", and ")) if i == n - 1 else r.choice((", ", ", ", " ", " and ")), None))
        if n > 1 and " and " in it and r.random() < 0.8:
            it = "salt"
        if r.random() < 0.15 and it[0] not in "0123456789" and not it.startswith("a "):
            parts.append((r.choice(("some ", "more ", "the ")), None))
        parts.append((it, k))
        sym += ["item", Span(k)]
    return sym, parts


@family(4, "list")
def list_add(g):
    r = g.r
    verb = r.choice(("add", "add", "remove"))
    isym, iparts = items(g)
    lsym, lparts = list_name(g)
    return g.clause(verb, {"items": lambda: iparts, "list": lambda: lparts}, lambda used: [verb] + isym + (lsym if "list" in used else []))


@family(2, "list")
def list_other(g):
    r = g.r
    lsym, lparts = list_name(g)
    key = r.choice(("ask_list", "ask_list", "clear_list", "create_list"))
    if key == "create_list":
        k = g.key("name")
        name = fill_name(r, r.choice(W.LISTS))
        return g.clause(key, {"name": lambda: [(name, k)]}, lambda used: ["create"] + (["name", Span(k)] if "name" in used else []))
    k = g.key("item")
    it = r.choice(W.ITEMS)
    if key == "ask_list":
        return g.clause(key, {"list": lambda: lparts, "item": lambda: [(it, k)]}, lambda used: ["ask", "list"] + (["item", Span(k)] if "item" in used else []) + (["name", lsym[1]] if "list" in used and lsym else []))
    return g.clause(key, {"list": lambda: lparts}, ["clear"] + (["list", lsym[1]] if lsym else []))


# ---- times ----
def at_slot(g, role="at"):
    k = g.key("at")
    pre, phrase = W.at(g.r)
    return [role, Span(k)], [(pre, None), (phrase, k)]


def bare_at(g):
    """A time without its preposition, for "set an alarm for {t}"."""
    k = g.key("at")
    _, phrase = W.at(g.r)
    return ["at", Span(k)], [(phrase, k)]


def dur_slot(g):
    k = g.key("dur")
    return Span(k), [(W.duration(g.r), k)]


TIMER_NAMES = "pizza|pasta|eggs|egg|tea|laundry|cake|workout|nap|rice|chicken|bread|meditation|mash|boil|hop|oven|homework|break|parking|potato|roast|dough|cookies|steak|second|kitchen|plank|sauna|dye|sourdough|curing".split("|")


def timer_slot(g):
    """A phrase that says which timer: (symbols, parts)"""
    r = g.r
    x = r.random()
    the = r.choice(("the ", "my ", "the ", "that ", ""))
    if x < 0.45:
        return [], [(the + "timer", None)]
    if x < 0.65:
        k = g.key("name")
        n = r.choice(TIMER_NAMES)
        return ["name", Span(k)], r.choice(([(the, None), (n, k), (" timer", None)], [(the + "timer for ", None), (n, k)], [(the + "timer called ", None), (n, k)]))
    if x < 0.85:
        k = g.key("d")
        d = W.duration(r)
        return ["dur", Span(k)], r.choice(([(the, None), (d, k), (" timer", None)], [(the + "timer for ", None), (d, k)]))
    if x < 0.92 and g.site.areas:
        a = r.choice(g.site.areas)
        n = " ".join(r.choice(a.words))
        return [a], r.choice(([(the + n + " timer", None)], [(the + "timer in the " + n, None)]))
    return ["all_of"], [(r.choice(("all timers", "all my timers", "every timer", "all of the timers")), None)]


@family(4, "timer")
def timer_set(g):
    k = g.key("name")
    n = g.r.choice(TIMER_NAMES)
    d, dp = dur_slot(g)
    return g.clause("timer_set", {"d": lambda: dp, "name": lambda: [(n, k)]}, lambda used: ["timer", "set_one", "dur", d] + (["name", Span(k)] if "name" in used else []))


@family(5, "timer")
def timer_change(g):
    r = g.r
    what, word = r.choice((("timer_cancel", "cancel_one"), ("timer_pause", "pause_one"), ("timer_resume", "resume_one"), ("timer_more", "more"), ("timer_less", "less"), ("timer_change", "change"), ("timer_ask", "ask_one")))
    sym, parts = timer_slot(g)
    if what in ("timer_more", "timer_less", "timer_change") and sym == ["all_of"]:
        raise NoFit
    d, dp = dur_slot(g)
    return g.clause(what, {"timer": lambda: parts, "d": lambda: dp}, lambda used: ["timer", word] + (sym if "timer" in used else []) + (["to_value" if word == "change" else "by_value", d] if "d" in used else []))


@family(3, "alarm")
def alarm(g):
    r = g.r
    key, word = r.choice((("alarm_set", "set_one"), ("alarm_set", "set_one"), ("alarm_cancel", "cancel_one"), ("alarm_ask", "ask_one"), ("snooze", "snooze")))
    t = g.template(key)
    keep, g.template = g.template, lambda _: t
    try:
        with_prep = any(x in t for x in ("up {t}", "me {t}", "alarm {t}", "{t} alarm", "alarms {t}")) and "for {t}" not in t
        sym, parts = at_slot(g) if with_prep and "{t} alarm" not in t else bare_at(g)
        ke = g.key("every")
        ep = [(W.every(r), ke)]
        d, dp = dur_slot(g)

        def plan(used):
            out = ["alarm", word]
            if "t" in used:
                out += sym
            if "e" in used:
                out += ["every", Span(ke)]
            if "d" in used:
                out += ["dur", d]
            if "all" in t and key == "alarm_cancel":
                out += ["all_of"]
            return out
        c = g.clause(key, {"t": lambda: parts, "e": lambda: ep, "d": lambda: dp}, plan)
    finally:
        g.template = keep
    if key == "snooze":
        c.state["ringing"] = True
    return c


def in_slot(g):
    k = g.key("in")
    return ["in", Span(k)], [("in ", None), (W.duration(g.r), k)]


@family(4, "remind")
def remind(g):
    r = g.r
    key, word = r.choice((("remind", "set_one"),) * 6 + (("remind_ask", "ask_one"), ("remind_cancel", "cancel_one")))
    t = g.template(key)
    keep, g.template = g.template, lambda _: t
    try:
        kw, ke = g.key("what"), g.key("every")
        what = W.task(r)
        sym, parts = bare_at(g) if "for {t}" in t else at_slot(g)
        isym, iparts = in_slot(g)
        ep = [(W.every(r), ke)]

        def plan(used):
            out = ["remind", word]
            if "what" in used:
                out += ["what", Span(kw)]
            if "t" in used:
                out += sym
            if "i" in used:
                out += isym
            if "e" in used:
                out += ["every", Span(ke)]
            if key == "remind_cancel" and "what" not in used:
                out += ["all_of"] if "all" in t or "reminders" in t else []
            return out
        return g.clause(key, {"what": lambda: [(what, kw)], "t": lambda: parts, "i": lambda: iparts, "e": lambda: ep}, plan)
    finally:
        g.template = keep


@family(4, "event")
def event(g):
    r = g.r
    key, word = r.choice((("event_set", "set_one"), ("event_set", "set_one"), ("event_ask", "ask_one"), ("event_cancel", "cancel_one"), ("event_change", "change")))
    t = g.template(key)
    keep, g.template = g.template, lambda _: t
    try:
        kw = g.key("what")
        what = r.choice(W.EVENTS)
        sym, parts = bare_at(g) if "for {t}" in t or "to {t}" in t else at_slot(g)
        return g.clause(key, {"what": lambda: [(what, kw)], "t": lambda: parts}, lambda used: ["event", word] + (["what", Span(kw)] if "what" in used else []) + (sym if "t" in used else []))
    finally:
        g.template = keep


OPEN_EVENT = """add an event|create an event|make a new event|put an event on my calendar|new calendar entry|add to my calendar|schedule an appointment|set up an event|add an appointment|create a calendar entry|please add an event|i need an event|
enter an event|add event|set an event|set event|calendar event|make an entry in my calendar|new event|make an appointment|can you add a calendar event|start a new event""".replace("\n", "").split("|")
PUT_EVENT = "add|put|schedule|book|set up|set|create|mark|enter|make|plan|note|save|arrange|pencil in|write down|please add|can you schedule|i want to schedule|i need to schedule|put down|log|record|fix".split("|")
TO_CALENDAR = ["", "", "", " to my calendar", " in my calendar", " on my calendar", " to the calendar", " on my schedule", " in my diary", " please", " for me", " into the calendar"]
NOTE_IT = [", put it in my calendar", ", add it to my calendar", " please write it down", ", make a note of that", " so put that in the calendar", " mark it", ", can you add that", ", schedule it", " please add it to my schedule", ", remember that"]
OPEN_REMINDER = "set a notification|set an alert|set a reminder|give me a notification|make a reminder|create a reminder|add a reminder|put a reminder|give me a reminder|send me a reminder|i need a reminder|remind me|notify me|alert me|give me a heads up|set reminder|please remind me".split("|")


def when(g):
    """A day and a time of day, or one of them: [(preposition, phrase)]; together they are one phrase."""
    r = g.r
    d, t = W.date(r), W.clock(r).replace(" tonight", "")
    on = "" if d.split()[0] in ("tomorrow", "today", "tonight", "this", "next") or d.startswith("the day") else r.choice(("on ", "on ", "for ", ""))
    at = r.choice(("at ", "at ", "at ", "from ", "for ", "starting at ", "beginning at ", ""))
    x = r.random()
    if x < 0.2:
        return [(on, d)]
    if x < 0.4:
        return [(at, t)]
    if x < 0.6:
        return [(on, d + r.choice((" at ", " at ", " ")) + t)]
    if x < 0.75:
        return [(at, t + (" " + on).rstrip() + " " + d)]
    both = [(on, d), (at, t)]
    r.shuffle(both)
    return both


def mixed(g, first, times):
    """The phrases in any order with a place or somebody between them: parts and the times' symbols in the order of the text."""
    r, sym, parts = g.r, [], []
    pieces = [(pre, phrase, g.key("at")) for pre, phrase in times]
    if r.random() < 0.25:
        pieces.insert(r.randrange(len(pieces) + 1), (r.choice(("at ", "in ", "in ")), r.choice(W.PLACES), None))
    if first:
        pieces.insert(0 if r.random() < 0.6 else r.randrange(len(pieces) + 1), first)
    last = None
    for pre, phrase, key in pieces:
        if last and key and key.startswith("at") and "ing" not in pre:
            parts += [(" " + pre + phrase, last)]  # a day and a time side by side are one phrase
            continue
        parts += [(" " + pre, None), (phrase, key)]
        last = key if key and key.startswith("at") else None
        if last:
            sym += ["at", Span(key)]
    return parts, sym


@family(5, "event")
def event_said(g):
    """An appointment as people say it: what, when and where in any order."""
    r, k = g.r, g.key("what")
    what, x = W.occasion(r), r.random()
    plan = ["event", "set_one", "what", Span(k)]
    if x < 0.35:
        parts, sym = mixed(g, (r.choice(("for ", "for ", "called ", "named ", "titled ", "to ", "of ", "that is ", "")), what, k), when(g))
        return Clause([(r.choice(OPEN_EVENT), None)] + parts, plan + sym, True)
    article = r.choice(("a ", "a ", "my ", "the ", "", "", "an "))
    if x < 0.5:  # the time stands in front of it
        t, d = g.key("at"), g.key("at")
        return Clause([(r.choice(PUT_EVENT) + " a ", None), (W.clock(r).replace(" tonight", ""), t), (" ", None), (what, k), (r.choice((" ", " ", " time ", " down ", " down for ", " for ", " on ")), None), (W.date(r), d), (r.choice(TO_CALENDAR), None)], plan + ["at", Span(t), "at", Span(d)], True)
    parts, sym = mixed(g, None, when(g))
    if x < 0.8:
        return Clause([(r.choice(PUT_EVENT) + " " + article, None), (what, k)] + parts + [(r.choice(TO_CALENDAR), None)], plan + sym, True)
    return Clause([(r.choice(("i have ", "i've got ", "we have ", "there is ", "i am having ")) + article, None), (what, k)] + parts + [(r.choice(NOTE_IT), None)], plan + sym)


@family(3, "remind")
def remind_said(g):
    """The same for reminders, with the time in front or behind."""
    r, k = g.r, g.key("what")
    to = r.random() < 0.5
    what, link = (W.task(r), "to ") if to else (W.occasion(r), r.choice(("about ", "about the ", "of ", "about my ", "for ", "that there is a ", "that i have ", "that i have a ", "i have ")))
    parts, sym = mixed(g, None, when(g))
    said = [(" " + link, None), (what, k)]
    return Clause([(r.choice(OPEN_REMINDER), None)] + (parts + said if r.random() < 0.5 else said + parts), ["remind", "set_one", "what", Span(k)] + sym, True)


# ---- what was left unsaid ----
NO_VALUE = [
    (["timer", "set_one"], "set a timer|start a timer|timer|new timer|i need a timer|set the timer|make a timer|a timer please|set timer|start timer|create a timer|could you set a timer|i want a timer|put a timer on|time something|set me a timer|start the timer|add a timer|start a new timer|countdown|start a countdown"),
    (["alarm", "set_one"], "set an alarm|new alarm|i need an alarm|create an alarm|set the alarm clock|set my alarm|make an alarm|add an alarm|set alarm|an alarm please|can you set an alarm|i want an alarm|set a wake-up alarm|set up an alarm|could you wake me|put an alarm on"),
    (["remind", "set_one"], "remind me|remind me of something|remind me about something|set a reminder|new reminder|add a reminder|i need a reminder|make a reminder|create a reminder|set reminder|can you remind me of something|could you remind me|set up a reminder|remind me please|i want a reminder|reminder|i have to be reminded of something"),
    (["event", "set_one"], "add an event|create an event|new appointment|make an appointment|add something to my calendar|put something in my calendar|schedule something|add an appointment|set up an event|new calendar entry|i need an appointment|schedule an event|add to my calendar|create an appointment|schedule a meeting|set up a meeting"),
    (["create"], "create a list|make a list|new list|start a list|i need a new list|make a new list|start a new list|make me a list|i want a new list"),
    (["call"], "call|call someone|make a call|call somebody|phone someone|i want to call someone|place a call|make a phone call|call somebody for me|start a call"),
    (["message"], "send a message|text someone|send a text|write a message|message somebody|i want to send a message|send somebody a message|send a text message|write a text"),
    (["announce"], "make an announcement|announce something|broadcast something|i have an announcement|broadcast a message|make a broadcast|i want to make an announcement"),
    (["play"], "play|play something|play music|play some music|put on some music|music please|start the music|i want to hear something|put some music on|play me something|i want music|let's have some music|play anything|play a song|can i hear some music|music on|start playing"),
    (["set", "media", "volume"], "set the volume|change the volume|adjust the volume|set volume|change volume|volume|i want another volume|put the volume somewhere else|change the sound level|adjust volume"),
    (["set", "light", "brightness"], "set the brightness|change the brightness|adjust the brightness|change the brightness of the lights|set the brightness of the lights|adjust the brightness of the lights|change light brightness"),
    (["set", "light", "color"], "change the color|set the color|change the color of the lights|change the colour of the lights|set the lights to a color|set the lights to another color|change the light color|make the lights another color|i want the lights in another colour|give the lights a different color|change lights to a different colour"),
]


@family(4, "unsaid")
def no_value(g):
    """A command that lacks what it needs; the program asks for it."""
    plan, texts = g.r.choice(NO_VALUE)
    text = g.r.choice(texts.split("|"))
    return Clause([(text, None)], list(plan), text.split()[0] in ("set", "start", "make", "create", "add", "call", "send", "play", "change", "adjust", "schedule", "announce", "put"))


@family(3, "unsaid")
def thing_without_value(g):
    """"Set the thermostat", "change the speed of the fan"."""
    r = g.r
    x = r.random()
    if x < 0.35:
        t = g.thing(["climate", "heating", "cooling", "fan", "media", "light", "blind", "shutter", "curtain"])
        return Clause([(r.choice(("set ", "set ", "adjust ", "change ", "change the setting of ", "change the settings of ", "i want to adjust ")), None), (g.say(t), None)], ["set", t], True)
    if x < 0.75:
        t = g.thing(["climate", "heating", "cooling", "fan", "media", "light"])
        q = r.choice(IMPLIED[t.kind])
        return Clause([(r.choice(("set ", "change ", "adjust ", "set ", "i want to change ")) + "the " + r.choice(QUANTITY_WORDS[q]) + r.choice((" of ", " of ", " on ", " for ")), None), (g.say(t), None)], ["set", t, q], True)
    cls, q = r.choice((("light", "brightness"), ("light", "color"), ("climate", "temperature"), ("media", "volume")))
    sym, in_, _ = g.place(unknown=0, none=0)
    return Clause([(r.choice(("set ", "change ", "adjust ")) + "the " + (r.choice(("light ", "")) if q == "color" else "") + r.choice(QUANTITY_WORDS[q]) + " ", None)] + in_, ["set", cls] + sym + [q] if cls != "climate" else ["set"] + sym + [q], True)


@family(2, "unsaid")
def someone_without_words(g):
    sym, parts = person_or_unknown(g)
    before, after = g.r.choice((("message ", ""), ("text ", ""), ("send ", " a message"), ("send a message to ", ""), ("write to ", ""), ("write ", " a message"), ("send a text to ", ""), ("send ", " a text"), ("i want to text ", ""), ("tell ", " something"), ("drop ", " a line"), ("leave a message for ", "")))
    return Clause([(before, None)] + parts + [(after, None)], ["message"] + sym, True)


@family(2, "unsaid")
def list_without_item(g):
    lsym, lparts = list_name(g)
    before = g.r.choice(("add to ", "add something to ", "put something on ", "add an item to ", "i want to add something to ", "i need to add something to ", "put another thing on ", "write something on ", "add one more thing to ", "new item for "))
    return Clause([(before, None)] + lparts, ["add"] + lsym, True)


@family(3, "remind")
def moved(g):
    """A reminder or an alarm that is put off or brought forward."""
    r = g.r
    sym, parts = bare_at(g)
    if r.random() < 0.55:
        k = g.key("what")
        what = r.choice(W.ITEMS + W.EVENTS) if r.random() < 0.5 else W.task(r)
        named = r.choice(([("the ", None), (what, k), (" reminder", None)], [("the reminder to ", None), (what, k)], [("my reminder about ", None), (what, k)], [("my ", None), (what, k), (" reminder", None)], [("the reminder for ", None), (what, k)]))
        plan = ["remind", "change", "what", Span(k)]
    else:
        named, plan = [(r.choice(("my alarm", "the alarm", "my wake-up alarm", "the alarm clock")), None)] if r.random() < 0.6 else [(r.choice(("the reminder", "my reminder", "that reminder")), None)], None
        plan = ["alarm" if "alarm" in named[0][0] else "remind", "change"]
    before, to = r.choice((("move ", " to "), ("change ", " to "), ("put ", " off until "), ("reschedule ", " to "), ("shift ", " to "), ("postpone ", " until "), ("push ", " back to "), ("set ", " to "), ("delay ", " until "), ("move ", " back to "), ("bring ", " forward to "), ("make ", " ")))
    return Clause([(before, None)] + named + [(to, None)] + parts, plan + sym, True)


DRINKS = "coffee|coffee|coffee|espresso|latte|cappuccino|cup of coffee|cup of joe|brew|double espresso|black coffee|americano|mocha|flat white|strong coffee".split("|")


@family(1.2, "start")
def drink(g):
    """A coffee is made by the machine that makes it."""
    r = g.r
    have = [t for t in g.site.things if t.kind == "appliance" and any("coffee" in w or "espresso" in w for w in t.words)]
    if len(have) != 1:
        raise NoFit
    d = r.choice(DRINKS)
    a = "an " if d[0] in "aeiou" else "a "
    said = r.choice(("get me {a}{d}", "get me some {d}", "make me {a}{d}", "make us {a}{d}", "make some {d}", "brew {a}{d}", "brew me some {d}", "can i have {a}{d}", "may i have {a}{d}", "prepare {a}{d}", "one {d}", "i would like {a}{d}", "i'd like {a}{d} now", "i want {a}{d}", "start the {d}", "fix me {a}{d}", "please make {a}{d}", "could you make me {a}{d}", "pour me {a}{d}"))
    return Clause([(said.replace("{a}", a).replace("{d}", d) + r.choice(("", "", "", " please", " now")), None)], ["start", have[0]], said.startswith(("get", "make", "brew", "start", "fix")))


# ---- questions ----
def state_of(g, kind):
    if kind in ("door", "gate", "garage"):
        return STATES["door"] + (STATES["lock"] if kind in LOCKS else [])
    if kind == "window" or kind in COVERS or kind == "valve":
        return STATES["open"] if kind in COVERS else STATES["door"]
    if kind == "lock":
        return STATES["lock"]
    if kind in ("machine", "pump", "appliance", "vacuum", "mower"):
        return STATES["run"] + STATES["power"]
    if kind == "media":
        return STATES["media"]
    if kind == "siren":
        return STATES["siren"]
    if kind in ("motion", "smoke", "presence", "gas", "co", "vibration", "sound"):
        return STATES["detect"]
    if kind == "leak":
        return STATES["leak"] + STATES["detect"]
    return STATES["power"]


@family(5, "ask")
def ask_is(g):
    r = g.r
    t = g.thing(None, lambda t: t.kind != "sensor")
    pool = state_of(g, t.kind)
    if r.random() < 0.08:
        pool = STATES["net"] + STATES["plug"] + STATES["heat"] + STATES["battery"]
    st, ws = r.choice(pool)
    return g.clause("ask_is", {**g.x(t), "st": T_(r.choice(ws))}, ["ask", t, st])


@family(5, "ask")
def ask_state(g):
    t = g.thing(None, lambda t: t.kind != "sensor")
    if g.r.random() < 0.45:
        return g.clause("ask_history", g.x(t), ["ask", t, "history"])
    return g.clause("ask_state", g.x(t), ["ask", t, "state"])


@family(4, "ask")
def ask_quantity(g):
    r = g.r
    t = g.thing(None, lambda t: t.quantities or t.kind in IMPLIED, )
    q = r.choice(t.quantities or [x for x in IMPLIED[t.kind] if x != "mode"] or ["state"])
    if t.kind == "sensor" and r.random() < 0.5:
        return g.clause("ask_sensor", g.x(t), ["ask", t, q])
    return g.clause("ask_q", {**g.x(t), "q": T_(r.choice(QUANTITY_WORDS[q]))}, ["ask", t, q])


@family(4, "ask")
def ask_at(g):
    r = g.r
    key, q = r.choice((("ask_temp", "temperature"), ("ask_temp", "temperature"), ("ask_hum", "humidity")))
    sym, in_, pl = g.place(none=0.15)

    def place():
        if pl is None:
            raise NoFit
        return pl
    return g.clause(key, {"in": (lambda: in_) if in_ else T_(""), "place": place}, lambda used: ["ask"] + sym + [q])


ASK_CLASSES = [("light", "power"), ("light", "power"), ("window", "open"), ("window", "open"), ("door", "door"), ("door", "lock"), ("blind", "open"), ("curtain", "open"), ("shutter", "open"), ("garage", "door"), ("lock", "lock"), ("fan", "power"), ("switch", "power"), ("gate", "door"), ("media", "media"),
               ("machine", "run"), ("pump", "run"), ("heating", "power"), ("everything", "power"), ("everything", "lock"), ("everything", "open"), ("everything", "net"), ("everything", "plug"), ("everything", "run"), ("battery", "battery"), ("awning", "open"), ("valve", "door"), ("shade", "open"), ("camera", "net"), ("motion", "detect"), ("smoke", "detect"), ("leak", "leak"), ("everything", "heat")]
SENSOR_WORDS = {"battery": ["batteries"], "motion": ["motion sensors"], "smoke": ["smoke sensors", "smoke detectors"], "leak": ["water sensors", "leak sensors"], "everything": ["devices", "things"]}
SINGULAR = {"battery": "battery", "everything": "device", "motion": "motion sensor", "smoke": "smoke detector", "leak": "water sensor", "media": "speaker", "heating": "heater", "light": "light", "blind": "blind", "switch": "switch"}


@family(6, "ask_group")
def ask_group(g):
    r = g.r
    cls, states = r.choice(ASK_CLASSES)
    mode = r.choice(("any", "all", "which", "count"))
    st, ws = r.choice(STATES[states])
    c = r.choice(SENSOR_WORDS.get(cls) or [w for w in CLASS_WORDS[cls] if w.endswith("s")] or CLASS_WORDS[cls])
    sym, in_, pl = g.place(none=0.45, unknown=0.02)
    key = "ask_" + mode
    t = g.template(key)
    if "{place}" in t and pl is None:
        raise NoFit
    keep, g.template = g.template, lambda _: t
    try:
        if "{c}" not in t and "{c1}" not in t and cls != "everything":
            raise NoFit
        return g.clause(key, {"c": T_(c), "c1": T_(SINGULAR.get(cls, cls)), "st": T_(r.choice(ws)), "in": (lambda: in_) if in_ else T_(""), "place": lambda: [(p.replace("the ", ""), k) for p, k in pl]}, ["ask", mode, cls] + sym + [st])
    finally:
        g.template = keep


DETECT = [("motion", ["motion", "movement"]), ("smoke", ["smoke", "fire"]), ("leak", ["leak", "water", "flooding", "flood", "water leak"]), ("gas", ["gas", "gas leak"]), ("co", ["carbon monoxide"]), ("sound", ["noise", "sound"]), ("vibration", ["vibration"]), ("presence", ["presence", "occupancy", "somebody"])]


@family(2, "ask_group")
def ask_detect(g):
    cls, ws = g.r.choice(DETECT)
    sym, in_, _ = g.place(none=0.25, unknown=0.02)
    return g.clause("ask_detect", {"thing": T_(g.r.choice(ws)), "any": T_(g.r.choice(("any", "", "some"))), "in": (lambda: in_) if in_ else T_("")}, ["ask", "any", cls] + sym + ["is_detected"])


@family(1.5, "ask")
def ask_alert(g):
    x = g.r.random()
    if x < 0.6:
        return g.clause("ask_alert", {}, ["ask", "problem"])
    return g.clause("schedule_ask", {}, ["ask", "event", "here_all"]) if x < 0.8 else g.clause("schedule_cancel", {}, ["cancel", "everything"])


@family(2, "meta")
def meta(g):
    r = g.r
    key = r.choice(("undo", "repeat", "cancel", "cancel"))
    c = g.clause(key, {}, [key])
    if key != "cancel" or r.random() < 0.4:
        c.last = last_plan(g)
    return c


# ---- chat and what we have no ability for ----
@family(3, "chat")
def chat(g):
    key = g.r.choice(("greet", "bye", "thanks", "how_are_you"))
    return g.clause(key, {}, ["chat", key])


@family(5, "other")
def other(g):
    r = g.r
    key = r.choice(("help", "about", "time", "date", "weather", "maths", "knowledge", "joke", "manual"))
    if key == "manual":
        t = g.thing()
        return g.clause(key, {**g.x(t), "cmd": T_(r.choice(("descale ", "clean ", "install ", "service ", "repair ", "calibrate ")) + g.say(t))}, ["other", key])
    return g.clause(key, {"n": T_(W.number(r, r.randint(1, 300)))}, ["other", key])


# ---- the state of a conversation ----
def last_plan(g):
    """What was done last, as the state tells it."""
    r = g.r
    x = r.random()
    if x < 0.2:
        return [r.choice(("timer", "alarm", "remind", "event")), "set_one"]
    if x < 0.4:
        sym, _, _ = g.group(["light", "light", "blind", "heating", "media"])
        if "unknown" in sym:
            raise NoFit
        return [r.choice(("on", "off", "set", "up", "down")) if sym[-1] != "blind" else r.choice(("open", "close"))] + sym
    t = g.thing()
    verbs = (["on", "off"] if t.kind in POWER else []) + (["open", "close"] if t.kind in OPENS else []) + (["lock", "unlock"] if t.kind in LOCKS else []) + (["start", "stop"] if t.kind in RUNS else []) + (["set"] if t.settable() else []) + ["ask"]
    v = r.choice(verbs)
    return [v, t] + ([r.choice(t.settable())] if v == "set" else ["state"] if v == "ask" else [])
