"""Contexts and replies for the decoder, generated.

A context is a few lines; a line is "kind: value; key: value; key: value". sample() returns
(context, reply, must): what the reply says and the strings a correct reply has to contain.
The format is described in models/reply.md.
"""

import re

import home
import values as v
from grammar import expand

FAVOUR = 0.7  # how often the first wording is used: greedy decoding then has one clear favourite


def say(rng, wordings):
    return wordings[0] if rng.random() < FAVOUR else rng.choice(wordings)


# ------------------------------------------------------------------ noun phrases


def cap(s):
    return s[:1].upper() + s[1:]


def starts_proper(noun):
    first = noun.split()[0]
    return first.lower() in ("the", "my", "our", "all", "some", "a", "an", "both", "everything", "everyone") or "'s" in first


def has_code(noun):
    return any(c.isdigit() for c in noun) or (noun[:1].isupper() and not noun.split()[0].isupper())


def an(noun):
    return ("an " if noun[:1].lower() in "aeio" else "a ") + noun


def the(noun):
    if starts_proper(noun) or has_code(noun) or noun.lower() in v.NO_ARTICLE:
        return noun
    return "the " + noun


def in_room(r):
    return r if r.lower() in v.NO_ARTICLE else "in " + the(r)


def plural(noun):
    low = noun.lower().split()[-1] if noun.split() else ""
    return low.endswith("s") and not low.endswith(("ss", "us", "is", "'s")) or low in ("speakers", "people")


def phrase(slots, rng):
    """The device with its room: 'the kitchen lights', 'the lights in the kitchen'."""
    d, r = slots.get("device"), slots.get("room")
    if d is None:
        if r is None:
            return say(rng, ["the temperature", "the heating"]) if "value" in slots else "it"
        return say(rng, ["the temperature " + in_room(r), the(r)])
    if r is None:
        return the(d)
    if r.lower() in v.NO_ARTICLE:
        return f"{the(d)} {r}"
    k = rng.random()
    if k < 0.85 and not has_code(d) and not MOVES.search(d):
        return f"{r} {d}" if "'s" in r or has_code(r) and rng.random() < 0.5 else f"the {r} {d}"
    return f"{the(d)} in {the(r)}"


MOVES = re.compile(r"\b(vacuum|robot|mower|mop|cleaner)\b")  # "the X in the room", not "the room X"


def on_date(d):
    return ("on " if d[0].isupper() or d[0].isdigit() else "") + d


def filler(slots, rng, np=None):
    np = np if np is not None else phrase(slots, rng)
    pl = plural(slots["device"]) if "device" in slots else False

    def fill(name):
        if name == "D":
            s = np
        elif name == "is":
            s = "are" if pl else "is"
        elif name == "has":
            s = "have" if pl else "has"
        elif name == "it":
            s = "they" if pl else "it"
        elif name == "R":
            r = slots["room"]
            s = the(r)
        elif name == "is_item":
            s = "are" if plural(slots["item"]) else "is"
        elif name == "ON_DATE":
            s = on_date(slots["date"])
        elif name in ("WHEN", "FOR_WHEN"):
            t, d = slots.get("time"), slots.get("date")
            if name == "WHEN":
                s = " ".join(x for x in [on_date(d) if d else "", "at " + t if t else ""] if x)
            else:
                s = "for " + (f"{d} at {t}" if d and t else d or t)
        else:
            s = slots[name]
        return [(s, None)]

    return fill


def text(template, rng, fill):
    s = "".join(p for p, _ in expand(template, rng, fill, FAVOUR))
    return s.replace("in upstairs", "upstairs").replace("in downstairs", "downstairs")


def line(kind, value, pairs):
    return "; ".join([f"{kind}: {value}"] + [f"{k}: {x}" for k, x in pairs])


# ------------------------------------------------------------------ actions

OPEN_DONE = ["", "", "", "", "Done. ", "Okay, ", "Sure, ", "All right, ", "Done: ", "Got it, ", "OK, ", "Of course, "]
DECIDED = [a for a in home.ACTIONS if home.ACTIONS[a]["done"]]
RESULTS = ["done"] * 12 + ["already", "failed", "failed", "offline", "denied", "scheduled", "unknown", "confirm", "pending", "partial"]


def keep_case(s):
    return s


def clause_done(action, slots, rng):
    spec = home.ACTIONS[action]
    t = spec["done"]
    if action in ("open", "close") and "value" in slots:
        t = spec["done_v"]
    elif action == "start" and "duration" in slots:
        t = spec["done_d"]
    elif action in ("turn_on", "turn_off") and "duration" in slots:
        t = [f"{{D}} {{is}} (now |){spec['state']} for {{duration}}", f"I turned {spec['state']} {{D}} for {{duration}}"]
    elif action == "set_volume" and "device" not in slots:
        t = ["the volume in {R} is (now |){value}", "I set the volume in {R} to {value}"] if "room" in slots else ["the volume is (now |){value}", "I set the volume to {value}"]
    elif action == "set_timer" and "name" in slots:
        t = ["(the |your |a |){name} timer is set for {duration}", "I started a {name} timer for {duration}", "I set the {name} timer to {duration}"]
    elif action == "set_timer" and "task" not in slots:
        t = ["(a |the |your |)timer is set for {duration}"] + spec["done"]
    elif action in ("add_to_list", "remove_from_list"):
        t = [spec["done"][1]] + ([spec["done"][0]] if not plural(slots["item"]) and " and " not in slots["item"] else []) + spec["done"][2:]
    elif action in ("activate_scene", "pause_media", "announce") and "room" in slots:
        t = spec["done_r"]
    elif action == "arm_alarm" and "mode" in slots:
        t = spec["done_m"]
    elif action == "set_timer" and "task" in slots or action == "cancel_timer" and "duration" in slots:
        t = spec["done_n"]
    elif action == "set_alarm" and "date" in slots:
        t = spec["done_t"]
    elif action == "cancel_alarm" and "time" in slots:
        t = spec["done_x"]
    elif action == "set_reminder" and ("time" in slots or "date" in slots):
        t = spec["done_x"]
    elif action == "play_media":
        key = "done" + ("_" if "artist" in slots or "room" in slots else "") + ("a" if "artist" in slots else "") + ("r" if "room" in slots else "")
        t = spec[key]
    return text(say(rng, t), rng, filler(slots, rng))


QUERIED = [a for a in home.ACTIONS if a in ("get_state", "get_sensor", "machine_status", "explain_alarm", "get_weather", "get_time", "query_calendar", "query_list", "query_timer")]


def timer_name(rng):
    return rng.choice(["pasta", "egg", "tea", "laundry", "oven", "pizza", "break", "workout", "rice", "nap", "cake", "bread"]) if rng.random() < 0.8 else v.novel(rng, 1)


def act_slots(action, rng):
    slots = home.draw_slots(action, rng, 0.6 if action not in ("open", "close") else 0.35)
    if action == "set_temperature" and "device" not in slots and "room" not in slots and rng.random() < 0.7:
        slots["device"] = home.fill_slot("device", "climate", rng)
    if action == "set_volume" and "device" not in slots and rng.random() < 0.6:
        slots["device"] = home.fill_slot("device", "speaker", rng)
    if action in ("turn_on", "turn_off"):
        if rng.random() < 0.05:
            slots["device"] = "everything"
        if rng.random() < 0.08:
            slots["duration"] = v.duration(rng)
    if action == "set_timer" and "task" not in slots and rng.random() < 0.35:
        slots["name"] = timer_name(rng)
    if "item" in slots and action != "find" and rng.random() < 0.2:
        more = [home.fill_slot("item", "", rng) for _ in range(rng.randint(1, 2))]
        slots["item"] = join_or(list(dict.fromkeys([slots["item"]] + more)), "and")
    order = sorted(slots, key=lambda k: ["device", "machine", "sensor", "room"].index(k) if k in ("device", "machine", "sensor", "room") else 9)
    return {k: slots[k] for k in order}


def extra_will(action, slots):
    """The slots that the verb phrase of will= omits, so that a refusal still names every slot."""
    out = []
    for k in ("duration", "mode", "task", "artist", "date", "time", "value"):
        if k in slots and "{" + k + "}" not in home.ACTIONS[action]["will"]:
            s = slots[k]
            out.append({"duration": f" for {s}", "mode": f" in {s} mode", "task": f" to {s}", "artist": f" by {s}", "date": " " + on_date(s),
                        "time": f" at {s}", "value": f" to {s}"}[k])
    if "room" in slots and "device" not in slots and action != "set_volume" and "{D}" not in home.ACTIONS[action]["will"]:
        out.append(" " + in_room(slots["room"]))
    return "".join(out)


def verb(action, slots, rng):
    if action in QUERIED:
        m, p = slots.get("machine"), slots.get("place")
        w = {"machine_status": f"check {the(m)}" if m else "", "explain_alarm": "explain the alarm" + (f" on {the(m)}" if m else ""), "get_weather": "get the weather" + (f" for {p}" if p else ""),
             "get_time": f"tell the time in {p}" if p else "tell the time", "get_sensor": f"read the {slots.get('sensor')}", "query_timer": "check the timer"}.get(action)
        return (w or text(home.ACTIONS[action]["will"], rng, filler(slots, rng))) + extra_will(action, slots)
    if action == "set_volume" and "device" not in slots:
        return "set the volume" + (" " + in_room(slots["room"]) if "room" in slots else "") + " to " + slots["value"]
    if action == "set_timer" and "name" in slots:
        return f"set the {slots['name']} timer to {slots['duration']}"
    if action == "cancel_timer" and "duration" in slots:
        return f"cancel the {slots['duration']} timer"
    if action == "announce" and "room" in slots:
        return text("announce in {R}: {message}", rng, filler(slots, rng))
    return text(home.ACTIONS[action]["will"], rng, filler(slots, rng)) + extra_will(action, slots)


def act(rng, action=None, result=None):
    """One action line: (line, sentence, clause or None, must)."""
    action = action or (rng.choice(DECIDED) if rng.random() < 0.92 else rng.choice(QUERIED))
    spec = home.ACTIONS[action]
    slots = act_slots(action, rng)
    result = result or rng.choice(RESULTS)
    if action in QUERIED:
        result = "failed" if rng.random() < 0.85 else "denied"
    if result == "already" and "state" not in spec or action == "cancel":
        result = "done"
    if result == "scheduled" and ("time" in slots or "date" in slots or "duration" in slots or action in ("set_timer", "cancel_timer", "next_track", "find", "cancel_alarm", "call", "set_reminder", "add_event", "set_alarm")):
        result = "done"
    if result in ("unknown", "partial", "offline") and "device" not in slots and "machine" not in slots:
        result = "failed"
    if result == "partial" and not plural(slots.get("device", "")):
        result = "done"
    pairs = list(slots.items())
    must = [x for _, x in pairs]
    f = filler(slots, rng)
    clause = None
    if result == "done":
        if "state" in spec and action in ("open", "close") and "value" in slots:
            pass
        clause = clause_done(action, slots, rng)
        o = say(rng, OPEN_DONE)
        s = o + (clause if o.endswith(", ") else cap(clause)) + say(rng, [".", ".", ".", ".", ".", "!"])
    elif result == "already":
        st = {"open": "open", "close": "closed"}.get(action, spec["state"])
        extra = f" at {slots['value']}" if "value" in slots else f" for {slots['duration']}" if "duration" in slots else ""
        s = cap(text(say(rng, ["{D} {is} already " + st, "{D} {is} " + st + " already", "{D} already {is} " + st]), rng, f)) + extra + "."
    elif result in ("failed", "denied"):
        r = rng.choice(v.REASONS) if rng.random() < 0.85 else v.novel(rng)
        pairs.append(("reason", r))
        must.append(r)
        w = verb(action, slots, rng)
        if result == "failed":
            s = say(rng, [f"I couldn't {w}: {r}.", f"Sorry, I couldn't {w} because {r}.", f"I was not able to {w}: {r}.", f"I tried to {w}, but {r}.",
                            f"That didn't work: {r}, so I couldn't {w}."])
        else:
            s = say(rng, [f"I can't {w}: {r}.", f"Sorry, I'm not allowed to {w}: {r}.", f"I may not {w} because {r}."])
    elif result == "offline":
        n = slots.get("machine") and the(slots["machine"]) or phrase(slots, rng)
        pl = plural(slots.get("device", ""))
        w = "they are" if pl else "it is"
        rest = [x for k, x in slots.items() if k not in ("device", "room", "machine")]
        base = say(rng, [f"{cap(n)} {'are' if pl else 'is'} offline", f"I can't reach {n}", f"{cap(n)} {'do' if pl else 'does'} not answer"])
        if rest:
            w2 = {"set_brightness": "set", "set_color": "set"}.get(action, "set")
            s = f"{base}, so I couldn't {w2} {'them' if pl else 'it'} to {' and '.join(rest)}." if action.startswith("set") else f"{base}, so I couldn't do that ({', '.join(rest)})."
        else:
            s = base + say(rng, [".", " right now.", ". Please check the power.", ", so I couldn't do that."])
    elif result == "scheduled":
        t = v.time_phrase(rng)
        pairs.append(("at", t))
        must.append(t)
        if "message" in slots:
            s = f"At {t} I'll {verb(action, slots, rng)}."
        else:
            when = f" at {t}"
            k = rng.random()
            if k < 0.45:
                pairs.pop()
                must.pop()
                if k < 0.3:
                    d = v.duration(rng)
                    pairs.append(("in", d))
                    when = f" in {d}"
                else:
                    d = v.date_phrase(rng)
                    pairs.append(("date", d))
                    when = " " + on_date(d)
                must.append(d)
            elif k < 0.65:
                d = v.date_phrase(rng)
                pairs.append(("date", d))
                must.append(d)
                when += " " + on_date(d)
            s = say(rng, ["I'll ", "Okay, I'll ", "I will "]) + verb(action, slots, rng) + when + "."
    elif result == "unknown":
        n = slots.get("machine") or phrase(slots, rng)
        rest = [x for k, x in slots.items() if k not in ("device", "room", "machine", "sensor")]
        must = [x for k, x in slots.items() if k in ("device", "room", "machine")]
        s = say(rng, [f"I don't know {n}.", f"I can't find {n}.", f"There is no device called {slots.get('machine') or slots['device']}" + (f" {in_room(slots['room'])}" if "room" in slots else "") + "."])
    elif result == "confirm":
        s = say(rng, ["Do you want me to ", "Should I ", "Shall I ", "Are you sure I should ", "Do you really want me to "]) + verb(action, slots, rng) + "?"
    elif result == "pending":
        s = say(rng, ["I'm about to ", "One moment, I'm about to ", "Working on it: I'll "]) + verb(action, slots, rng) + "."
    else:  # partial
        a = rng.randint(1, 8)
        b = a + rng.randint(1, 6)
        pairs.append(("count", f"{a} of {b}"))
        must.append(f"{a} of {b}")
        must = [x for x in must]
        s = say(rng, [f"I could {verb(action, slots, rng)}, but only {a} of {b}.", f"Only {a} of {b} answered when I tried to {verb(action, slots, rng)}."])
    pairs.append(("result", result))
    if rng.random() < 0.2:
        head, tail = pairs[:-1], pairs[-1:]
        rng.shuffle(head)
        pairs = (tail + head) if rng.random() < 0.3 else (head + tail)
    plain = s
    if clause is not None:
        plain = cap(clause) + "."
    return line("act", action, pairs), s, clause, must, plain


def acts(rng):
    k = rng.random()
    n = 1 if k < 0.68 else 2 if k < 0.94 else 3
    got = [act(rng, result="done" if n > 1 and rng.random() < 0.8 else None) for _ in range(n)]
    ctx = "\n".join(g[0] for g in got)
    must = [m for g in got for m in g[3]]
    clauses = [g[2] for g in got]
    if n == 1:
        return ctx, got[0][1], must
    if all(clauses) and not any(": " in c for c in clauses) and rng.random() < 0.85:
        o = say(rng, OPEN_DONE)
        if n == 2:
            body = clauses[0] + say(rng, [" and ", " and ", ", and ", "; "]) + clauses[1]
        else:
            body = f"{clauses[0]}, {clauses[1]} and {clauses[2]}"
        return ctx, o + (body if o.endswith(", ") else cap(body)) + ".", must
    return ctx, " ".join([got[0][1]] + [g[4] for g in got[1:]]), must


# ------------------------------------------------------------------ states, sensors, anomalies


def state_item(rng):
    pool = rng.choice(["switch", "cover", "lock", "run", "light", "climate"])
    st = {"switch": ["on", "off"], "light": ["on", "off", "dimmed"], "cover": ["open", "closed", "half open", "stuck"], "lock": ["locked", "unlocked", "open", "jammed"],
          "run": ["running", "stopped", "charging", "docked", "finished", "stuck", "idle"], "climate": ["heating", "cooling", "idle", "off", "on", "defrosting"]}[pool]
    slots = {"device": home.fill_slot("device", pool, rng)}
    if rng.random() < 0.5:
        slots["room"] = v.room(rng)
    s = rng.choice(st)
    pairs = list(slots.items())
    must = [x for _, x in pairs] + [s]
    tail, been = "", False
    k = rng.random()
    if k < 0.2:
        t = v.clock(rng)
        pairs.append(("since", t))
        must.append(t)
        tail = f" since {t}"
        been = True
    elif k < 0.3:
        p = v.percent(rng)
        pairs.append(("level", p))
        must.append(p)
        tail = f" at {p}"
    elif k < 0.42 and pool in ("climate",):
        p = v.temperature(rng)
        pairs.append(("target", p))
        must.append(p)
        tail = f" with a target of {p}"
    elif k < 0.40 and pool in ("run", "switch"):
        p = v.duration(rng)
        pairs.append(("left", p))
        must.append(p)
        tail = f" with {p} left"
    f = filler(slots, rng)
    clause = text(("{D} {has} been " if been else "{D} {is} ") + s, rng, f) + tail
    return line("state", s, pairs), clause, must


def states(rng):
    n = rng.choice([1, 1, 1, 2, 2, 3])
    got = [state_item(rng) for _ in range(n)]
    ctx = "\n".join(g[0] for g in got)
    cl = [g[1] for g in got]
    body = cl[0] if n == 1 else " and ".join(cl) if n == 2 else f"{cl[0]}, {cl[1]} and {cl[2]}"
    o = say(rng, ["", "", "", "Right now ", "At the moment ", "Yes, ", "I see that "]) if n == 1 else ""
    if o == "Yes, ":
        o = ""
    return ctx, o + (body if o else cap(body)) + ".", [m for g in got for m in g[2]]


def sensor(rng):
    n = rng.choice([1, 1, 1, 2])
    ctxs, sents, must = [], [], []
    for i in range(n):
        name = rng.choice(list(v.SENSORS))
        unit, lo, hi, dec = v.SENSORS[name]
        val = v.unit_value(rng, unit, lo, hi, dec)
        pairs = []
        where = ""
        k = rng.random()
        if k < 0.55:
            r = v.room(rng)
            pairs.append(("room", r))
            where = " " + in_room(r)
            must.append(r)
        elif k < 0.75:
            m = v.machine(rng)
            pairs.append(("machine", m))
            where = " of " + the(m)
            must.append(m)
        pairs.append(("value", val))
        must += [name, val]
        s = say(rng, [f"the {name}{where} is {val}", f"the {name}{where} is currently {val}", f"the {name}{where} reads {val}", f"{name}{where} is at {val}"])
        k = rng.random()
        if k < 0.15:
            t = rng.choice(["rising", "falling", "stable"])
            pairs.append(("trend", t))
            must.append(t)
            s += f" and {t}"
        elif k < 0.25:
            t = v.unit_value(rng, unit, lo, hi, dec)
            pairs.append(("target", t))
            must.append(t)
            s += say(rng, [f", with a target of {t}", f"; the target is {t}"])
        elif k < 0.35:
            t = v.clock(rng)
            pairs.append(("time", t))
            must.append(t)
            s += f", measured at {t}"
        elif k < 0.42:
            t = v.unit_value(rng, unit, lo, hi, dec)
            pairs.append(("limit", t))
            must.append(t)
            s += f"; the limit is {t}"
        ctxs.append(line("sensor", name, pairs))
        sents.append(s)
    return "\n".join(ctxs), cap(" and ".join(sents)) + ".", must


def anomaly(rng):
    name = rng.choice(list(v.SENSORS))
    unit, lo, hi, dec = v.SENSORS[name]
    if rng.random() < 0.6:
        key, m = "machine", v.machine(rng)
        where = " " + say(rng, ["on", "of", "at"]) + " " + the(m)
        subject = the(m)
    else:
        key, m = "room", v.room(rng)
        where = " " + in_room(m)
        subject = the(m)
    if rng.random() < 0.12:
        pairs = [(key, m)]
        must = [m]
        if rng.random() < 0.6:
            val = v.unit_value(rng, unit, lo, hi, dec)
            pairs += [("sensor", name), ("value", val)]
            must += [name, val]
            s = say(rng, [f"Nothing unusual{where}: the {name} is {val}.", f"Everything looks normal{where}; the {name} is {val}."])
        else:
            s = say(rng, [f"Nothing unusual{where}.", f"Everything looks normal{where}.", f"I see no anomaly{where}."])
        return line("anomaly", "none", pairs), s, must
    a, b = sorted([rng.uniform(lo, hi), rng.uniform(lo, hi)])
    fmt = (lambda x: str(int(round(x)))) if dec == 0 else (lambda x: f"{x:.{dec}f}")
    span = f"{fmt(a)} to {fmt(b)} {unit}" if rng.random() < 0.7 else f"{fmt(a)}-{fmt(b)} {unit}"
    high = rng.random() < 0.7
    val = fmt(b + (hi - lo) * rng.uniform(0.02, 0.6) if high else a - (hi - lo) * rng.uniform(0.02, 0.4)) + " " + unit
    pairs, must = [(key, m), ("value", val)], [m, name, val]
    word = say(rng, ["unusually", "abnormally", "too", "unexpectedly"]) + (" high" if high else " low")
    lead = say(rng, [f"The {name}{where} is {word} at {val}", f"{cap(name)}{where} is {val}, which is {word}", f"{cap(subject)} shows an anomaly: {name} at {val}",
                       f"Warning: the {name}{where} is {val}", f"I noticed an anomaly{where}: the {name} is {val}", f"The {name}{where} reached {val}"])
    pairs.append(("side", "high" if high else "low"))
    rest = []
    if rng.random() < 0.35:
        t = v.clock(rng)
        pairs.append(("since", t))
        must.append(t)
        lead += say(rng, [f" since {t}", f", since {t}"])
    elif rng.random() < 0.2:
        t = v.duration(rng)
        pairs.append(("for", t))
        must.append(t)
        lead += f" for {t}"
    if rng.random() < 0.7:
        pairs.append(("normal", span))
        must.append(span)
        lead += say(rng, [f", outside its normal {span}", f" (normal is {span})", f"; normal is {span}", f", while {span} is normal"])
    if rng.random() < 0.25:
        t = f"{rng.uniform(0.5, 0.999):.2f}"
        pairs.append(("score", t))
        must.append(t)
        rest.append(say(rng, [f"The anomaly score is {t}", f"Its anomaly score is {t}"]))
    c = d = None
    if rng.random() < 0.5:
        c = rng.choice(v.CAUSES) if rng.random() < 0.9 else v.novel(rng)
        pairs.append(("cause", c))
        must.append(c)
    if rng.random() < 0.45:
        d = rng.choice(v.ADVICE)
        pairs.append(("advice", d))
        must.append(d)
    if c and d:
        rest.append(say(rng, [f"The likely cause is {c}; please {d}", f"It may be {c}, so please {d}", f"This points to {c}. Please {d}"]))
    elif c:
        rest.append(say(rng, [f"The likely cause is {c}", f"It may be {c}", f"This points to {c}"]))
    elif d:
        rest.append(say(rng, [f"Please {d}", f"I suggest you {d}", f"You should {d}"]))
    return line("anomaly", name, pairs), ". ".join([lead] + rest) + ".", must


# ------------------------------------------------------------------ asking, refusing, not knowing


def join_or(xs, word="or"):
    return xs[0] if len(xs) == 1 else ", ".join(xs[:-1]) + f" {word} " + xs[-1]


def ask(rng):
    action = rng.choice([a for a in DECIDED if home.ACTIONS[a]["slots"] and a != "cancel_timer"])
    kinds = {s.name: s.kind for s in home.ACTIONS[action]["slots"]}
    slots = act_slots(action, rng)
    miss = rng.choice([n for n in kinds if n != "name"])
    if rng.random() < 0.35 and miss in ("room", "device", "machine", "person", "list", "scene"):
        opts = []
        for _ in range(rng.randint(2, 4)):
            o = home.fill_slot(miss, kinds.get(miss, ""), rng)
            if o not in opts:
                opts.append(o)
    else:
        opts = []
    slots.pop(miss, None)
    plain = action.replace("_", " ")
    known = [(k, x) for k, x in slots.items() if k in ("device", "room", "machine", "item", "media", "task", "event", "value")]
    if miss == "device":
        known = [(k, x) for k, x in known if k != "value"]
    known = known[:2]
    must = [x for _, x in known] + opts
    dev = slots.get("device")
    tgt = ""
    if any(k == "device" for k, _ in known):
        d = {k: x for k, x in known if k in ("device", "room")}
        tgt = phrase(d, rng)
        left = [x for k, x in known if k not in ("device", "room")]
    else:
        left = [x if k != "room" else None for k, x in known]
        left = [x for x in left if x]
        r = [x for k, x in known if k == "room"]
        if r:
            tgt = the(r[0])
    about = " ".join(x for x in [tgt] if x)
    if left:
        about = (about + " " if about else "") + "(" + ", ".join(left) + ")" if about else left[0] if len(left) == 1 else " and ".join(left)
    suffix = f" for {about}" if about else ""
    word = {"value": "value", "time": "time", "date": "day", "duration": "long", "person": "person", "list": "list", "item": "item"}.get(miss, miss)
    if opts:
        q = say(rng, [f"Which {word} do you mean{suffix}: {join_or(opts)}?", f"Which {word}{suffix}: {join_or(opts)}?", f"Do you mean {join_or(opts)}{suffix}?"])
    else:
        q = {
            "room": [f"In which room{suffix}?", f"Which room do you mean{suffix}?"],
            "value": [f"What value should I set{suffix}?", f"To what value{suffix}?", f"What should I set{suffix}?"],
            "time": [f"At what time{suffix}?", f"What time should I use{suffix}?"],
            "date": [f"On which day{suffix}?", f"Which day{suffix}?"],
            "duration": [f"For how long{suffix}?", f"How long should it be{suffix}?"],
            "person": [f"Who should I contact{suffix}?", f"Who do you mean{suffix}?"],
            "message": [f"What should I say{suffix}?"],
        }.get(miss, [f"Which {word} do you mean{suffix}?", f"What {word} should I use{suffix}?"])
        q = say(rng, q)
    pairs = [("act", action)] + known + ([("options", ", ".join(opts))] if opts else [])
    return line("ask", miss, pairs), q, must


def refuse(rng):
    action = rng.choice(DECIDED)
    slots = act_slots(action, rng)
    r = rng.choice(v.REASONS) if rng.random() < 0.8 else v.novel(rng)
    w = verb(action, slots, rng)
    pairs = list(slots.items()) + [("reason", r)]
    s = say(rng, [f"Sorry, I can't {w}: {r}.", f"I won't {w} because {r}.", f"I'm not allowed to {w}: {r}."])
    return line("refuse", action, pairs), s, [x for _, x in slots.items()] + [r]


OOS_REPLY = ["Sorry, I can't help with that.", "That is outside what I can do.", "I don't know that one, sorry.", "I'm afraid I can't help with that. Ask me about your home or your machines.",
             "Sorry, I don't have an answer to that.", "That is not something I can do yet."]


def oos(rng):
    t = rng.choice(TEXTS["oos"]) if TEXTS["oos"] else "what is love"
    return line("oos", t, []), say(rng, OOS_REPLY), []


# ------------------------------------------------------------------ information


ADJECTIVE = {"sunny", "cloudy", "windy", "partly cloudy", "overcast", "clear", "hot and dry", "mild and cloudy", "humid"}


def weather(rng):
    w = rng.choice(v.WEATHER)
    pairs, must = [], [w]
    place = date = None
    if rng.random() < 0.6:
        place = v.place(rng)
        pairs.append(("place", place))
        must.append(place)
    if rng.random() < 0.6:
        date = v.date_phrase(rng)
        pairs.append(("date", date))
        must.append(date)
    where = (f" in {place}" if place else "") + (f" {on_date(date)}" if date else "")
    adj = w in ADJECTIVE
    it = "it will be" if date else "it is"
    if adj:
        s = say(rng, [f"{cap(it)} {w}{where}", f"The weather{where} {'will be' if date else 'is'} {w}", f"The forecast{where} is {w}"])
    else:
        s = say(rng, [f"Expect {w}{where}", f"The forecast{where} says {w}", f"There {'will be' if date else 'is'} {w}{where}", f"The forecast{where} is {w}"])
    k = rng.random()
    if k < 0.35:
        hi_, lo_ = v.unit_value(rng, "°C", 5, 40, 0), v.unit_value(rng, "°C", -15, 25, 0)
        pairs += [("high", hi_), ("low", lo_)]
        must += [hi_, lo_]
        s += say(rng, [f", with a high of {hi_} and a low of {lo_}", f", {lo_} to {hi_}", f", between {lo_} and {hi_}"])
    elif k < 0.7:
        t = v.unit_value(rng, "°C", -15, 40, 0)
        pairs.append(("temperature", t))
        must.append(t)
        s += say(rng, [f", at {t}", f", with {t}", f" and {t}"])
    if rng.random() < 0.25:
        t = f"{rng.randint(1, 100)}%"
        pairs.append(("rain", t))
        must.append(t)
        s += say(rng, [f". The chance of rain is {t}", f", with a {t} chance of rain"])
    if rng.random() < 0.2:
        t = f"{rng.randint(2, 110)} km/h"
        pairs.append(("wind", t))
        must.append(t)
        s += say(rng, [f". The wind reaches {t}", f", with wind at {t}"])
    return line("weather", w, pairs), s + ".", must


def clock_date(rng):
    k = rng.random()
    if k < 0.5:
        t = v.clock(rng)
        if rng.random() < 0.4:
            p = v.place(rng)
            return line("time", t, [("place", p)]), say(rng, [f"It is {t} in {p}.", f"The time in {p} is {t}.", f"In {p} it is {t}."]), [t, p]
        return line("time", t, []), say(rng, [f"It is {t}.", f"The time is {t}.", f"It's {t} right now."]), [t]
    d = f"{rng.choice(v.DAYS)}, {rng.choice([f'{rng.choice(v.MONTHS)} {rng.randint(1, 31)}', f'{rng.randint(1, 31)} {rng.choice(v.MONTHS)}', f'{rng.randint(1, 31)} {rng.choice(v.MONTHS)} {rng.randint(2024, 2031)}'])}"
    if rng.random() < 0.3:
        d = v.date_phrase(rng) if rng.random() < 0.3 else rng.choice(v.DAYS)
    return line("date", d, []), say(rng, [f"Today is {d}.", f"It is {d}.", f"It's {d} today."]), [d]


def timer(rng):
    left = v.duration(rng)
    k = rng.random()
    name = timer_name(rng)
    if k < 0.55:
        if rng.random() < 0.5:
            return line("timer", name, [("left", left)]), say(rng, [f"The {name} timer has {left} left.", f"There are {left} left on the {name} timer.", f"{cap(left)} left on the {name} timer."]), [name, left]
        return line("timer", "running", [("left", left)]), say(rng, [f"The timer has {left} left.", f"{cap(left)} left on the timer.", f"Your timer has {left} left."]), [left]
    if k < 0.8:
        return line("timer", "done", [("name", name)]), say(rng, [f"Your {name} timer is done.", f"Time is up for the {name} timer.", f"The {name} timer has finished."]), [name]
    return line("timer", "none", []), say(rng, ["There is no timer running.", "You have no timer running."]), []


def calendar(rng):
    if rng.random() < 0.12:
        d = v.date_phrase(rng)
        return line("event", "none", [("date", d)]), say(rng, [f"You have nothing planned {on_date(d)}.", f"Your calendar is empty {on_date(d)}.", f"Nothing is scheduled {on_date(d)}."]), [d]
    n = rng.choice([1, 1, 1, 2, 2, 3])
    d = v.date_phrase(rng) if rng.random() < 0.6 else None
    ctxs, parts, must = [], [], []
    for i in range(n):
        e, t = (rng.choice(v.EVENTS) if rng.random() < 0.85 else v.novel(rng)), v.clock(rng)
        pairs = [("time", t)]
        if d:
            pairs.append(("date", d))
        must += [e, t]
        p = f"{e} at {t}"
        if rng.random() < 0.15:
            pl = rng.choice(["room 3", "the clinic", "the town hall", "the main office"]) if rng.random() < 0.5 else v.place(rng)
            pairs.append(("place", pl))
            must.append(pl)
            p += f" in {pl}"
        elif rng.random() < 0.15:
            pe = v.person(rng)
            pairs.append(("person", pe))
            must.append(pe)
            p += f" with {pe}"
        ctxs.append(line("event", e, pairs))
        parts.append(p)
    if d:
        must.append(d)
    body = parts[0] if n == 1 else " and ".join(parts) if n == 2 else f"{parts[0]}, {parts[1]} and {parts[2]}"
    lead = say(rng, [f"{cap(on_date(d))} you have ", f"You have the following {on_date(d)}: ", f"On your calendar {on_date(d)}: "]) if d else say(rng, ["You have ", "Your next events: ", "Coming up: ", "Next you have "])
    return "\n".join(ctxs), lead + body + ".", must


def lists(rng):
    name = rng.choice(v.LISTS) if rng.random() < 0.9 else v.novel(rng, 1)
    if rng.random() < 0.12:
        return line("list", name, [("items", "none")]), say(rng, [f"Your {name} list is empty.", f"There is nothing on your {name} list."]), [name]
    items = []
    for _ in range(rng.randint(1, 6)):
        x = v.mostly(rng, v.ITEMS, 0.12)
        if x not in items:
            items.append(x)
    body = join_or(items, "and")
    return line("list", name, [("items", ", ".join(items))]), say(rng, [f"Your {name} list has {body}.", f"On your {name} list: {body}.", f"You have {body} on your {name} list."]), [name] + items


def media(rng):
    m, a = home.fill_slot("media", "", rng), home.fill_slot("artist", "", rng)
    st = rng.choice(["playing", "playing", "paused"])
    pairs, must = [("state", st)], [m]
    s = f"{m}"
    if rng.random() < 0.6:
        pairs.append(("artist", a))
        must.append(a)
        s += f" by {a}"
    if rng.random() < 0.4:
        r = v.room(rng)
        pairs.append(("room", r))
        must.append(r)
        where = " " + in_room(r)
    else:
        where = ""
    if st == "playing":
        s = say(rng, [f"This is {s}, playing{where}.", f"{cap(s)} is playing{where}.", f"You are listening to {s}{where}."])
    else:
        s = say(rng, [f"{cap(s)} is paused{where}.", f"{cap(s)} is on pause{where}."])
    return line("media", m, pairs), s, must


def message(rng):
    p, m = v.person(rng), home.fill_slot("message", "", rng)
    t = v.clock(rng)
    pairs, must = [("text", m)], [p, m]
    at = ""
    if rng.random() < 0.4:
        pairs.append(("time", t))
        must.append(t)
        at = f" at {t}"
    return line("message", p, pairs), say(rng, [f"{cap(p)} wrote{at}: {m}.", f"You have a message from {p}{at}: {m}.", f"{cap(p)} says{at}: {m}."]), must


def calculation(rng):
    a, b = rng.randint(1, 999), rng.randint(1, 99)
    e, x = rng.choice([(f"{a} plus {b}", a + b), (f"{a} + {b}", a + b), (f"{a} times {b}", a * b), (f"{a} * {b}", a * b), (f"{a} minus {b}", a - b), (f"{a} - {b}", a - b),
                       (f"{a} divided by {b}", a / b), (f"{a} / {b}", a / b), (f"{b} percent of {a}", a * b / 100), (f"the square root of {a}", a**0.5)])
    r = f"{x:.2f}".rstrip("0").rstrip(".")
    return line("result", r, [("expr", e)]), say(rng, [f"{cap(e)} is {r}.", f"That makes {r} for {e}.", f"{cap(e)} equals {r}."]), [e, r]


def found(rng):
    i = rng.choice(home.FINDABLE)
    r = v.room(rng)
    is_ = "are" if plural(i) else "is"
    return line("found", i, [("room", r)]), say(rng, [f"Your {i} {is_} {in_room(r)}.", f"I found your {i} {in_room(r)}."]), [i, r]


def flights(rng):
    a, b = v.place(rng), v.place(rng)
    n = rng.randint(1, 24)
    pairs, must = [("from", a), ("to", b)], [str(n), a, b]
    w = "flight" if n == 1 else "flights"
    s = say(rng, [f"I found {n} {w} from {a} to {b}", f"There {'is' if n == 1 else 'are'} {n} {w} from {a} to {b}"])
    if rng.random() < 0.6:
        d = v.date_phrase(rng)
        pairs.append(("date", d))
        must.append(d)
        s += " " + on_date(d)
    if rng.random() < 0.6:
        c = v.money(rng)
        pairs.append(("cheapest", c))
        must.append(c)
        s += say(rng, [f"; the cheapest costs {c}", f", from {c}", f". The cheapest is {c}"])
    if rng.random() < 0.4:
        t = v.clock(rng)
        pairs.append(("departs", t))
        must.append(t)
        s += say(rng, [f". The first departs at {t}", f"; the first leaves at {t}"])
    if rng.random() < 0.3:
        al = rng.choice(["United", "Delta", "Lufthansa", "Swiss", "American", "Air France", "KLM", "Northwest", "Continental", "TWA", "US Air"])
        pairs.append(("airline", al))
        must.append(al)
        s += f", with {al}"
    return line("flights", n, pairs), s + ".", must


def other_acts(rng):
    """Requests of the public label sets: restaurants, playlists, books, films, banking, travel."""
    k = rng.randint(0, 7)
    P = v.person(rng)
    if k == 0:
        n, r, t = rng.randint(1, 12), v.novel(rng, 3), v.time_phrase(rng)
        pairs = [("restaurant", r), ("party", str(n)), ("time", t)]
        s = say(rng, [f"I booked a table for {n} at {r} for {t}.", f"Your table for {n} at {r} is booked for {t}.", f"Done: {r}, {n} people, {t}."])
        return line("act", "BookRestaurant", pairs + [("result", "done")]), s, [x for _, x in pairs]
    if k == 1:
        m, p = home.fill_slot("media", "", rng), rng.choice(["chill", "workout", "party hits", "road trip", "focus"]) if rng.random() < 0.6 else v.novel(rng, 2)
        return line("act", "AddToPlaylist", [("media", m), ("playlist", p), ("result", "done")]), say(rng, [f"I added {m} to your {p} playlist.", f"{cap(m)} is now in {p}."]), [m, p]
    if k == 2:
        b, n = v.novel(rng, 3), rng.randint(0, 6)
        return line("act", "RateBook", [("object", b), ("rating", str(n)), ("result", "done")]), say(rng, [f"I rated {b} {n}.", f"Your rating for {b} is {n}.", f"{cap(b)} now has a rating of {n}."]), [b, str(n)]
    if k == 3:
        b, t, p = v.novel(rng, 3), v.clock(rng), v.novel(rng, 2)
        return line("screening", b, [("time", t), ("cinema", p)]), say(rng, [f"{cap(b)} plays at {t} at {p}.", f"You can see {b} at {p} at {t}."]), [b, t, p]
    if k == 4:
        m, a, b = v.money(rng), rng.choice(["checking", "savings", "joint", "business"]), rng.choice(["savings", "checking", "credit card", "holiday"])
        return line("act", "transfer", [("amount", m), ("from", a), ("to", b), ("result", "done")]), say(rng, [f"I transferred {m} from {a} to {b}.", f"{cap(m)} moved from your {a} account to {b}."]), [m, a, b]
    if k == 5:
        m, a = v.money(rng), rng.choice(["checking", "savings", "joint", "business", "credit card", "electricity", "phone", "water"])
        return line("balance", m, [("account", a)]), say(rng, [f"Your {a} balance is {m}.", f"You have {m} on your {a} account."]), [m, a]
    if k == 6:
        w, l, t = v.novel(rng, 2), rng.choice(["French", "Spanish", "German", "Italian", "Japanese", "Chinese", "Portuguese"]), v.novel(rng, 2)
        return line("translation", t, [("text", w), ("language", l)]), say(rng, [f"{cap(w)} in {l} is {t}.", f"In {l}, {w} is {t}."]), [t, w, l]
    # an intent never seen: name it and say the slots
    name = rng.choice(TEXTS["labels"]) if TEXTS["labels"] else "do_thing"
    keys = rng.sample(["amount", "person", "place", "date", "time", "item", "number", "name", "account", "city", "order", "size", "topic", "object"], rng.randint(0, 3))
    gen = {"amount": v.money, "person": v.person, "place": v.place, "city": v.place, "date": v.date_phrase, "time": v.clock, "number": lambda r: str(r.randint(1, 99999)), "size": lambda r: str(r.randint(1, 50))}
    pairs = [(key, gen.get(key, v.novel)(rng)) for key in keys]
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("atis ", "").lower()
    tail = ", ".join(f"{a} {b}" for a, b in pairs)
    if rng.random() < 0.7:
        s = say(rng, [f"Okay, {plain}", f"Done: {plain}", f"I've done that: {plain}"]) + (f", {tail}." if tail else ".")
        res = "done"
        extra = []
    else:
        r = rng.choice(v.REASONS)
        s = f"I couldn't do that ({plain}{', ' + tail if tail else ''}): {r}."
        res, extra = "failed", [("reason", r)]
    return line("act", name, pairs + extra + [("result", res)]), s, [b for _, b in pairs + extra] + [plain]


# ------------------------------------------------------------------ text that was found

THINGS = ["filter", "oil", "belt", "battery", "seal", "air filter", "coolant", "nozzle", "bearing", "water tank", "brush", "lamp", "drive belt", "dust bin", "sensor", "gasket",
          "grease", "fuse", "ink cartridge", "heating coil", "mesh screen", "valve", "pump head", "drain hose", "blade"]
ACTS = ["replaced", "cleaned", "checked", "changed", "inspected", "calibrated", "tightened", "lubricated"]
FILL = ["Keep this manual near the machine.", "Always wear gloves when working on the unit.", "Only trained staff may open the cover.", "Disconnect the power before any work.",
        "The housing is made of steel.", "Store the device in a dry place.", "See the last page for spare parts.", "Contact the service desk if the fault stays.",
        "The display shows the current state.", "The unit is designed for indoor use.", "Do not cover the vents.", "The cable must not be bent.",
        "A green light means that all is well.", "The warranty covers material defects.", "Read the safety notes first.", "The panel is locked with a key."]


def fact(rng):
    """(sentence of a manual, question, answer sentence, must)"""
    m, th = (v.machine(rng) if rng.random() < 0.7 else rng.choice(v.MACHINES)), rng.choice(THINGS)
    k = rng.randint(0, 7)
    n = rng.randint(2, 24)
    if k == 0:
        a = rng.choice(ACTS)
        per = rng.choice([f"every {n} months", f"every {n * 50} hours", f"once a week", f"after {n * 100} cycles", f"every {n} weeks", f"twice a year", f"every {n} days"])
        return (f"The {th} of {the(m)} must be {a} {per}.", rng.choice([f"how often should the {th} be {a}", f"when must the {th} of {the(m)} be {a}", f"how often is the {th} {a}"]),
                say(rng, [f"The {th} of {the(m)} must be {a} {per}.", f"The {th} must be {a} {per}."]), [th, per])
    if k == 1:
        s = rng.choice(list(v.SENSORS))
        val = v.unit_value(rng, *v.SENSORS[s])
        return (f"The maximum {s} of {the(m)} is {val}.", rng.choice([f"what is the maximum {s} of {the(m)}", f"how high may the {s} get", f"what is the limit for {s}"]),
                say(rng, [f"The maximum {s} of {the(m)} is {val}.", f"The maximum {s} is {val}."]), [s, val])
    if k == 2:
        c = f"{rng.choice('EFAW')}{rng.randint(1, 99):02d}"
        cause = rng.choice(v.CAUSES)
        return (f"Error {c} means {cause}.", rng.choice([f"what does error {c} mean", f"what is {c}", f"why does it show {c}"]), f"Error {c} means {cause}.", [c, cause])
    if k == 3:
        r = v.room(rng)
        return (f"The {th} is kept {in_room(r)}.", rng.choice([f"where is the {th}", f"where do we keep the {th}"]), f"The {th} is kept {in_room(r)}.", [th, r])
    if k == 4:
        p = v.person(rng)
        role = rng.choice(["shift leader", "safety officer", "technician on call", "site manager", "electrician"])
        return (f"The {role} is {p}.", rng.choice([f"who is the {role}", f"who can i ask as {role}"]), f"The {role} is {p}.", [role, p])
    if k == 5:
        t, u = v.clock(rng), v.clock(rng)
        w = rng.choice(["canteen", "workshop", "service desk", "reception", "store room", "clinic", "library"])
        return (f"The {w} is open from {t} to {u}.", rng.choice([f"when is the {w} open", f"what are the hours of the {w}"]), f"The {w} is open from {t} to {u}.", [w, t, u])
    if k == 6:
        adv = rng.choice(v.ADVICE)
        s = rng.choice(["overheats", "stops", "makes a loud noise", "does not start", "leaks", "vibrates", "shows a red light", "loses pressure"])
        return (f"If {the(m)} {s}, {adv}.", rng.choice([f"what should i do if {the(m)} {s}", f"{m} {s} what now", f"what to do when {the(m)} {s}"]), say(rng, [f"If {the(m)} {s}, {adv}.", f"Please {adv}."]), [adv])
    val = rng.choice([f"{rng.randint(1, 90)} l", f"{rng.randint(1, 900)} kg", f"{rng.randint(10, 480)} V", f"{rng.randint(1, 60)} A"])
    q = rng.choice(["capacity", "weight", "supply voltage", "fuse rating", "tank size"])
    return (f"The {q} of {the(m)} is {val}.", rng.choice([f"what is the {q} of {the(m)}", f"tell me the {q}"]), say(rng, [f"The {q} of {the(m)} is {val}.", f"The {q} is {val}."]), [q, val])


STOP = set("the a an of in on at to for and or by with from is are was were be been it its this that these those as which who whom whose what when where how why not no also has have had their his her they he she than then there into over under after before between during".split())
NOT_SAID = ["The text does not say.", "I found nothing about that.", "I have no information on that."]
ABOUT = ["what does the text say about {}", "tell me about {}", "what is said about {}", "what about {}", "what do you know about {}", "{}"]


def passage(rng):
    """The answer is a sentence of real text; its question was written by people or made from its words."""
    sents, asked = rng.choice(TEXTS["found"])
    lo = 0
    if asked and rng.random() < 0.6:
        q, pick, answer = rng.choice(asked)
        must = [answer]
    else:
        pick = rng.randrange(len(sents))
        words = [w for w in re.findall(r"[A-Za-z][A-Za-z'-]+|\d+", sents[pick]) if w.lower() not in STOP and len(w) > 3]
        if len(words) < 3:
            return None
        at = rng.randrange(len(words) - 1)
        q = rng.choice(ABOUT).format(" ".join(w if rng.random() < 0.5 else w.lower() for w in words[at : at + rng.choice([1, 2, 2, 3])]))
        must = []
    must += re.findall(r"\d+(?:[.,]\d+)*", sents[pick])
    lo, hi = max(0, pick - rng.choice([0, 1, 1, 2, 3])), pick + 1 + rng.choice([0, 0, 1, 2])
    body = sents[lo:hi]
    if sum(sum(w.lower() in s.lower() for w in q.split() if w.lower() not in STOP) >= 2 for s in body) > 1 and not asked:
        return None
    if len(sents[pick]) > 220:
        return None
    if asked and rng.random() < 0.12:  # another text: it does not contain the answer
        other = rng.choice(TEXTS["found"])[0]
        if other is not sents:
            at = rng.randrange(len(other))
            return f"question: {q.rstrip('?')}?\ntext: {' '.join(other[at : at + 3])}", say(rng, NOT_SAID), []
    return f"question: {q.rstrip('?')}{rng.choice(['?', '?', ''])}\ntext: {' '.join(body)}", sents[pick], must


def retrieved(rng):
    if TEXTS["found"] and rng.random() < 0.5:
        got = None
        while got is None:
            got = passage(rng)
        return got
    n = rng.choice([1, 1, 2, 3])
    facts = [fact(rng) for _ in range(n)]
    pick = rng.randrange(n)
    sents = [f[0] for f in facts]
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        sents.insert(rng.randint(0, len(sents)), rng.choice(FILL) if rng.random() < 0.7 or not TEXTS["plain"] else rng.choice(TEXTS["plain"]))
    t = " ".join(cap(s) for s in sents)
    q, a, must = facts[pick][1:]
    if rng.random() < 0.1:
        q = fact(rng)[1]
        if all(q != f[1] for f in facts) and rng.random() < 0.9:
            return f"question: {q}?\ntext: " + " ".join(cap(s) for s in sents if s in FILL or rng.random() < 0.0) if any(s in FILL for s in sents) else f"question: {q}?\ntext: none", \
                say(rng, NOT_SAID), []
    return f"question: {q}{rng.choice(['?', '?', ''])}\ntext: {t}", cap(a), must


def summary(rng):
    m = v.machine(rng)
    s = rng.choice(list(v.SENSORS))
    val = v.unit_value(rng, *v.SENSORS[s])
    c, d, t = rng.choice(v.CAUSES), rng.choice(v.ADVICE), v.clock(rng)
    who = v.person(rng)
    open_ = rng.choice([f"At {t} the {s} of {the(m)} rose to {val}.", f"{cap(the(m))} raised an alarm at {t} when the {s} reached {val}.", f"The {s} of {the(m)} was {val} at {t}."])
    why = rng.choice([f"The cause was {c}.", f"Inspection showed {c}.", f"We found {c}."])
    fix = rng.choice([f"{cap(who)} repaired it.", f"It was repaired by {who}.", f"{cap(who)} fixed the fault and restarted the line."])
    sents = [open_, why, fix]
    for _ in range(rng.randint(0, 3)):
        sents.insert(rng.randint(1, len(sents)), rng.choice(FILL))
    out = say(rng, [f"{cap(the(m))} had {an(s)} of {val} at {t} because of {c}; {who} fixed it.", f"At {t} the {s} of {the(m)} was {val}. The cause was {c}, and {who} fixed it."])
    return "summarize: " + " ".join(sents), out, [m, s, val, t, c, who]


# ------------------------------------------------------------------ talk

CHAT = [
    ("(hello|hi|hey|hi there|hello there|good day|hey shoal|hello shoal)", ["Hello! What can I do for you?", "Hi, how can I help?", "Hello there!"]),
    ("good morning( shoal|)", ["Good morning! How can I help?", "Good morning to you!"]),
    ("good (evening|afternoon)( shoal|)", ["Good day! What can I do for you?", "Hello, nice to hear from you."]),
    ("good night( shoal|)", ["Good night, sleep well!", "Good night!"]),
    ("(how are you|how are you doing|how is it going|how do you feel)( today|)", ["I'm running fine, thank you. How can I help?", "All systems are fine, thanks for asking."]),
    ("(thanks|thank you|thank you very much|thanks a lot|cheers)", ["You're welcome.", "Happy to help.", "Any time."]),
    ("(bye|goodbye|see you|see you later)", ["Goodbye!", "See you soon."]),
    ("(who are you|what are you|what is your name|introduce yourself|tell me about yourself)", ["I'm Shoal, a group of small models that run right here on this machine.", "I'm Shoal, your local assistant."]),
    ("(what can you do|help|help me|what do you know|how can you help me)", ["I can control devices, set timers and reminders, read sensors, explain alarms and answer from your documents.", "Ask me to switch lights, set the heating, check a machine or set a timer."]),
    ("(are you a robot|are you human|are you real|are you an ai|are you a bot)", ["I'm a program: several small language models working together.", "I'm not a person, just software on this machine."]),
    ("(do you listen to me|is my data safe|where does my data go|do you send my data)", ["Everything stays on this machine.", "I run locally, so your data does not leave this machine."]),
    ("(who made you|where do you come from|who built you)", ["I was trained from scratch as part of the Shoal project.", "I come from the Shoal project and run on your own hardware."]),
    ("(tell me a joke|make me laugh|do you know a joke)", ["Why did the sensor blush? It saw the thermostat change.", "I would tell you a joke about UDP, but you might not get it.", "Why was the fish good at its job? It worked well in a shoal."]),
    ("(i am bored|i'm bored|entertain me)", ["Shall I play some music?", "I could play some music or set a scene for you."]),
    ("(i am tired|i'm tired|i am sleepy)", ["Maybe it is time to rest. I can dim the lights.", "I can set the good night scene for you."]),
    ("(i am cold|it is cold|i'm freezing)", ["I can turn up the heating. What temperature would you like?"]),
    ("(i am hot|it is too hot|i'm sweating)", ["I can lower the heating or start the fan. Which one would you like?"]),
    ("(you are great|good job|well done|nice work|you are helpful|i like you)", ["Thank you, that is kind.", "Glad to hear that."]),
    ("(you are stupid|you are wrong|that is wrong|that was wrong|you misunderstood)", ["Sorry about that. Please tell me what you meant.", "I'm sorry, let me try again."]),
    ("(i love you|do you love me|are you my friend)", ["I'm software, but I'm always here to help."]),
    ("(how old are you|when were you born)", ["I was trained not long ago, so I'm quite young."]),
    ("(what is the meaning of life|why are we here)", ["That is a big question. I'm better with lights and timers."]),
    ("(yes|yeah|sure|ok|okay)", ["Okay."]),
    ("(no|nope|no thanks|no thank you)", ["All right.", "Okay, never mind."]),
    ("(never mind|forget it|cancel)", ["All right, nothing is changed.", "Okay, never mind."]),
    ("(can you sing|sing a song|sing for me)", ["I can't sing, but I can play music for you."]),
    ("(what is an edge device|what is edge computing)", ["An edge device computes close to where the data is made, without sending it to the cloud."]),
    ("(what is a small language model|what is a language model)", ["A language model predicts the next words of a text. A small one does that with few resources."]),
    ("(what is a sensor|what is a thermostat)", ["A sensor measures something, such as a temperature, and a thermostat uses it to control the heating."]),
    ("(are you there|can you hear me|hello are you listening)", ["Yes, I'm here.", "Yes, how can I help?"]),
    ("(i had a bad day|i am sad|i feel bad|i'm sad)", ["I'm sorry to hear that. Would some music help?", "I'm sorry. Is there anything I can do?"]),
    ("(i am happy|i had a great day|i feel good)", ["That is good to hear!", "Wonderful, I'm glad."]),
    ("(where are you|where do you live)", ["I live on this machine, close to you."]),
    ("(do you sleep|do you eat|do you dream)", ["No, I only need a little power.", "I don't, but I'm always ready."]),
    ("(what is your favorite color|what is your favourite color)", ["Blue, like the sea."]),
]
RAW_COMMAND = ["I can't run commands in this chat. Please use ask for that.", "To control a device, please use ask instead of this chat."]
TEXTS = {"oos": [], "labels": [], "plain": [], "talk": [], "found": []}  # found: [(sentences, [(question, index of the sentence that answers it, answer)])]


def chat(rng):
    k = rng.random()
    if k < 0.62 or not TEXTS["talk"]:
        t, answers = rng.choice(CHAT)
        q = "".join(p for p, _ in expand(t, rng, lambda n: []))
        a = say(rng, answers)
    elif k < 0.88:
        q, a = rng.choice(TEXTS["talk"])
    elif k < 0.94:
        q, a = home.command(rng, rng.choice(DECIDED))[0], say(rng, RAW_COMMAND)
    else:
        q, a = (rng.choice(TEXTS["oos"]) if TEXTS["oos"] else "why"), say(rng, OOS_REPLY)
    if rng.random() < 0.35:
        q = cap(q) + rng.choice(["", ".", "?", "!"])
    return (line("chat", q, []) if rng.random() < 0.4 else q), a, []


KINDS = [(acts, 40), (states, 9), (sensor, 9), (anomaly, 13), (ask, 5), (refuse, 3), (oos, 2), (weather, 5), (clock_date, 3), (timer, 3), (calendar, 4), (lists, 3),
         (media, 3), (message, 3), (calculation, 2), (found, 1), (flights, 3), (other_acts, 7), (retrieved, 13), (summary, 4), (chat, 6)]
_FUN = [f for f, w in KINDS for _ in range(w)]


def sample(rng, fun=None):
    while True:
        ctx, reply, must = (fun or rng.choice(_FUN))(rng)
        if fun is None and ctx.startswith("act:") and rng.random() < 0.12:
            u = home.command(rng, rng.choice(DECIDED))[0]
            ctx = f"user: {u}\n" + ctx
        reply = reply.replace("..", ".").replace("?.", "?").replace("!.", "!").replace("  ", " ")
        if len(ctx) < 900 and ok(reply, must):
            return ctx, reply, must


def ok(reply, must):
    """Whether every string occurs as a whole: '2:15' does not count inside '12:15'."""
    low = reply.lower()
    for m in must:
        m = m.lower()
        at = low.find(m)
        while at >= 0:
            before, after = low[at - 1 : at] if at else "", low[at + len(m) : at + len(m) + 1]
            if not (m[0].isalnum() and before.isalnum()) and not (m[-1].isalnum() and after.isalnum()):
                break
            at = low.find(m, at + 1)
        if at < 0:
            return False
    return True
