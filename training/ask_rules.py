"""The rules of `shoal ask` between the models: docs/ASK.md in Python.

Text to clauses, entities to slots, values to their normal form, slots to action and context. No model is
run here; training/ask_examples.py does that and writes the examples that the program is tested against.
"""

import re

# action: slots in the order of a context line; '!' marks what must be there
ACTIONS = {
    "turn_on": "device! room duration", "turn_off": "device! room duration", "set_brightness": "device! room value!",
    "set_color": "device! room color!", "set_temperature": "device room value!", "open": "device! room value",
    "close": "device! room value", "lock": "device! room", "unlock": "device! room", "start": "device! room duration",
    "stop": "device! room", "set_volume": "device room value!", "mute": "device! room", "set_mode": "device! room mode!",
    "activate_scene": "room scene!", "arm_alarm": "mode", "disarm_alarm": "", "set_timer": "duration! name",
    "cancel_timer": "duration", "set_alarm": "time! date", "cancel_alarm": "time", "set_reminder": "task! time date",
    "add_to_list": "item! list!", "remove_from_list": "item! list!", "play_media": "room media! artist", "pause_media": "room",
    "next_track": "", "start_machine": "machine!", "stop_machine": "machine!", "set_machine": "machine! sensor value!",
    "report_fault": "machine!", "add_event": "event! date! time", "send_message": "person! message!", "call": "person!",
    "announce": "room message!", "find": "item!",
}
QUERIES = {
    "get_state": "device! room", "get_sensor": "sensor! room", "machine_status": "machine!", "explain_alarm": "machine",
    "get_weather": "place date", "get_time": "place", "get_date": "", "query_timer": "", "query_list": "list!",
    "query_calendar": "date", "calculate": "expr!",
}
SLOTS = {a: [s.rstrip("!") for s in t.split()] for a, t in {**ACTIONS, **QUERIES}.items()}
NEEDED = {a: [s[:-1] for s in t.split() if s.endswith("!")] for a, t in {**ACTIONS, **QUERIES}.items()}
REASON = {"get_state": "no device is connected", "get_sensor": "no sensor is connected", "machine_status": "no sensor is connected",
          "explain_alarm": "no sensor is connected", "get_weather": "no weather service is connected", "get_time": "I only know the local time"}
LATER = set("turn_on turn_off set_brightness set_color set_temperature open close lock unlock start stop set_volume mute set_mode activate_scene "
            "arm_alarm disarm_alarm play_media pause_media start_machine stop_machine set_machine announce send_message call".split())

# ------------------------------------------------------------------ clauses

VERBS = set("""turn switch put shut set dim brighten make change adjust open close raise lower lock unlock start stop run play pause resume skip mute
unmute silence activate deactivate enable disable arm disarm cancel wake remind add remove delete take call text message tell send announce
broadcast find locate calculate increase reduce decrease heat cool warm vacuum mop clean mow power schedule create book report show read check
give bring keep draw pull lift halt abort restart what what's how is are when where why who do does did will""".split())
FREE = set("remind tell text message send announce broadcast say write note let".split())  # the rest of such a clause is what someone says
CARRY = set("turn switch put set dim change make bring".split())
TITLES = {"mr.", "mrs.", "ms.", "dr.", "st."}
POLITE = set("please hey hi ok okay shoal can could would will you just now also then and i want need to go ahead quickly".split())
ARTICLES = ("the", "my", "our", "all", "every", "both", "a", "an", "some")


def plain(word):
    return word.lower().strip(".,;:!?\"()")


def first_verb(words):
    """The word that says what a clause wants: the first that is not politeness."""
    for w in words:
        if plain(w) not in POLITE:
            return plain(w)
    return plain(words[0]) if words else ""


def clauses(text):
    words = text.split()
    out, cur, i = [], [], 0

    def end():
        nonlocal cur
        if cur:
            out.append(" ".join(cur).rstrip(",;"))
        cur = []

    while i < len(words):
        w = words[i]
        if cur:
            hard = cur[-1][-1] in ".;!?" and cur[-1].lower() not in TITLES
            comma = cur[-1].endswith(",")
            j, then = i, False
            while j < len(words) and plain(words[j]) in ("and", "then", "also", "please"):
                then = then or plain(words[j]) == "then"
                j += 1
            joined = comma or any(plain(x) in ("and", "then") for x in words[i:j])
            if hard and j < len(words):
                end()
                i = j
                continue
            free = first_verb(cur) in FREE
            if joined and j < len(words) and (not free or then):
                nxt = plain(words[j])
                if nxt in VERBS:
                    end()
                    i = j
                    continue
                verb = first_verb(cur)
                if nxt in ("the", "my", "our", "all") and verb in CARRY and any(plain(x) in ("to", "on", "off", "up", "down") for x in cur):
                    k = j  # what follows, up to the next "and" or comma, says where to or on/off: the verb is meant again
                    while k + 1 < len(words) and not words[k].endswith((",", ".", ";", "!", "?")) and plain(words[k + 1]) not in ("and", "then"):
                        k += 1
                    rest = [plain(x) for x in words[j : k + 1]]
                    if rest[-1] in ("on", "off") or "to" in rest:
                        end()
                        cur = [verb]
                        i = j
                        continue
        cur.append(w)
        i += 1
    end()
    return out


# ------------------------------------------------------------------ values

UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = {w: 10 * i for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}


def digits(text):
    """Number words become digits: 'twenty one degrees' -> '21 degrees', 'nineteen and a half' -> '19.5'."""
    words = re.sub(r"\b(" + "|".join(TENS) + r")-(" + "|".join(UNITS[1:10]) + r")\b", r"\1 \2", text.lower()).split()
    out, i = [], 0
    while i < len(words):
        n = None
        if words[i] in TENS:
            n = TENS[words[i]]
            if i + 1 < len(words) and words[i + 1] in UNITS[1:10]:
                i += 1
                n += UNITS.index(words[i])
        elif words[i] in UNITS:
            n = UNITS.index(words[i])
        if n is not None and i + 1 < len(words) and words[i + 1] == "hundred" and n < 10:
            i += 1
            n *= 100
        if n is None and words[i] == "hundred":
            n = 100
        if n is not None or re.fullmatch(r"\d+", words[i]):
            s = str(n) if n is not None else words[i]
            if words[i + 1 : i + 2] == ["point"] and i + 2 < len(words) and (words[i + 2] in UNITS[:10] or words[i + 2].isdigit()):
                s += "." + (str(UNITS.index(words[i + 2])) if words[i + 2] in UNITS else words[i + 2])
                i += 2
            elif words[i + 1 : i + 4] == ["and", "a", "half"]:
                s += ".5"
                i += 3
            out.append(s)
        else:
            out.append(words[i])
        i += 1
    return " ".join(out)


def number(s):
    f = float(s)
    return int(f) if f == int(f) else f


def value(text, action):
    """(display, {value, unit})"""
    t = digits(text)
    word = {"half": 50, "half way": 50, "halfway": 50, "full": 100, "maximum": 100, "max": 100, "minimum": 1, "min": 1}.get(t)
    if word is not None and action != "set_temperature" and action != "set_machine":
        return f"{word}%", dict(value=word, unit="percent")
    m = re.fullmatch(r"([-+]?\d+(?:\.\d+)?)\s*(.*)", t)
    if not m:
        return t, dict(value=t)
    n, u = m.group(1), m.group(2).strip()
    if u in ("%", "percent", "per cent") or not u and action in ("set_brightness", "open", "close"):
        return n + "%", dict(value=number(n), unit="percent")
    if u in ("°f", "f", "fahrenheit", "degrees fahrenheit", "degree fahrenheit"):
        return n + " °F", dict(value=number(n), unit="fahrenheit")
    if u in ("°", "°c", "c", "celsius", "degrees", "degree", "degrees celsius", "degree celsius") or not u and action == "set_temperature":
        return n + (" degree" if n == "1" else " degrees"), dict(value=number(n), unit="celsius")
    if not u:
        return n, dict(value=number(n))
    u = text[len(text) - len(u) :] if text.lower().endswith(u) else u  # units keep their case
    return f"{n} {u}", dict(value=number(n), unit=u)


SECONDS = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "m": 60, "hour": 3600, "h": 3600, "hr": 3600, "day": 86400, "week": 604800}
NAME = {1: "second", 60: "minute", 3600: "hour", 86400: "day", 604800: "week"}


def duration(text):
    """(display, {duration_s}); the user's own units are kept."""
    t = digits(text).replace("half an hour", "30 minutes").replace("half a minute", "30 seconds").replace("quarter of an hour", "15 minutes")
    t = re.sub(r"\b(an?|1) hour and (a half|30 minutes)", "1 hour 30 minutes", t).replace("an hour and a quarter", "1 hour 15 minutes")
    t = re.sub(r"\ba couple of\b", "2", t)
    t = re.sub(r"\ban?\b", "1", t)
    parts, total = [], 0.0
    for n, u in re.findall(r"(\d+(?:\.\d+)?)[ -]*([a-z]+)", t):
        u = u if u in SECONDS else u.rstrip("s")
        if u not in SECONDS:
            return text.lower(), {}
        parts.append(f"{n} {NAME[SECONDS[u]]}{'' if n == '1' else 's'}")
        total += float(n) * SECONDS[u]
    if not parts:
        return text.lower(), {}
    return " ".join(parts), dict(duration_s=int(total + 0.5))


def clock(text):
    """(display, {time}): 24 hours; without am or pm the hour stays as it was said."""
    t = digits(text).replace("a.m.", "am").replace("p.m.", "pm").replace("o'clock", "").strip()
    if t in ("noon", "midday"):
        return t, dict(time="12:00")
    if t == "midnight":
        return t, dict(time="00:00")
    ap = None
    m = re.search(r"\s*(am|pm|in the morning|in the afternoon|in the evening|at night|tonight)$", t)
    if m:
        ap = "am" if m.group(1) in ("am", "in the morning") else "pm"
        t = t[: m.start()]
    m = re.fullmatch(r"(half|quarter|a quarter|\d+)(?: minutes?)? (past|after|to|before) (\d+)", t)
    if m:
        mins = {"half": 30, "quarter": 15, "a quarter": 15}.get(m.group(1)) or int(m.group(1))
        h = int(m.group(3))
        if m.group(2) in ("to", "before"):
            h, mins = (h - 1) % 24 or 12, 60 - mins
        hh = str(h)
    else:
        m = re.fullmatch(r"(\d{1,2})(?:[:. ](\d{1,2}))?", t)
        if not m:
            return text.lower(), {}
        hh, h, mins = m.group(1), int(m.group(1)), int(m.group(2) or 0)
    if h > 23 or mins > 59:
        return text.lower(), {}
    if ap and h <= 12:
        show = f"{h} {ap}" if mins == 0 else f"{h}:{mins:02d} {ap}"
        h = h % 12 + (12 if ap == "pm" else 0)
    else:
        show = f"{hh}:{mins:02d}"
    return show, dict(time=f"{h:02d}:{mins:02d}")


DAYS = "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december".split()


def date(text):
    t = re.sub(r"\b(\d+)(st|nd|rd|th)\b", r"\1", text.lower())
    t = " ".join(w.capitalize() if w in DAYS else w for w in t.split() if w != "of")
    return t[4:] if t.startswith("the ") and t[4:5].isdigit() else t


YOU = {"my": "your", "me": "you", "i": "you", "mine": "yours", "i'm": "you're", "i've": "you've", "am": "are", "our": "your"}
LOWER = {"device", "room", "color", "mode", "scene", "list", "sensor", "name", "expr"}


def show(slot, text, action):
    """(display, {key of the action: value}) of a slot."""
    text = " ".join(text.replace(";", ",").split())
    if slot == "value":
        return value(text, action)
    if slot == "duration":
        d, j = duration(text)
        return d, j or dict(duration=d)
    if slot == "time":
        d, j = clock(text)
        return d, j or dict(time=d)
    if slot == "date":
        d = date(text)
        return d, dict(date=d)
    if slot in LOWER:
        text = text.lower()
    if slot in ("device", "room", "item", "machine", "sensor", "list", "scene", "event"):
        w = text.split()
        while len(w) > 1 and w[0].lower() in ARTICLES:
            w = w[1:]
        text = " ".join(w)
    if slot == "task":
        return " ".join(YOU.get(w.lower(), w) for w in text.split()), dict(task=text)
    return text, {slot: text}


# ------------------------------------------------------------------ slots

KNOWN = set("""light lamp spotlight strip chandelier fan heater tv television radio speaker machine maker kettle dishwasher oven purifier humidifier
dehumidifier router printer projector computer monitor dryer blanket boiler pump sprinkler fountain outlet plug camera doorbell conditioner ac
conditioning hood stereo console charger tree tub sauna microwave toaster cooker freezer fridge ventilation floor screen diffuser heating thermostat
radiator heat control blind curtain shade shutter door gate window skylight awning drape garage roof lock safe shed entrance cabinet vacuum cleaner
mower washer irrigation robot mop soundbar music headphone alarm intercom sound volume appliance switch bulb everything""".split())


def known(device):
    """Whether a device can be one: its last word, codes aside, is a kind of device that is known."""
    w = [x for x in device.lower().split() if not re.fullmatch(r"[a-z]?-?\d+|[a-z]", x)]
    if not w:
        return False
    s = w[-1]
    return s in KNOWN or s.endswith("s") and s[:-1] in KNOWN or s.endswith("es") and s[:-2] in KNOWN


SENSOR_WORDS = [("temperature", "temperature warm cold hot degrees cool freezing"), ("humidity", "humid humidity damp"), ("light level", "bright light dark"), ("noise", "loud noise noisy quiet"),
                ("air quality", "air"), ("power", "power electricity"), ("energy use", "energy"), ("pressure", "pressure")]


CLOSING = ".,;:!?)"


def merged(ents, words):
    """[(type, from, to)] in words to [(type, text, word before)]: pieces of one value that touch are one; the parts
    of a task or message are one from the first to the last."""
    out = []
    for t, a, b in ents:
        if out and out[-1][0] == t and (t in ("value", "duration", "time", "date") and out[-1][2] == a or t in ("task", "message")):
            out[-1] = (t, out[-1][1], b)
        else:
            out.append((t, a, b))
    return [(t, " ".join(words[a:b]).rstrip(CLOSING), plain(words[a - 1]) if a else "") for t, a, b in out]


OPPOSITE = [("turn_on", "turn_off", ("on",), ("off",)), ("lock", "unlock", ("lock",), ("unlock",)), ("open", "close", ("open",), ("close", "shut")),
            ("start_machine", "stop_machine", ("start",), ("stop",)), ("start", "stop", ("start",), ("stop",))]


def side(label, words):
    """The words themselves settle on and off, lock and unlock: a wrong guess there would be the worst one."""
    low = {plain(w) for w in words}
    for yes, no, yes_words, no_words in OPPOSITE:
        if label in (yes, no):
            y, n = any(w in low for w in yes_words), any(w in low for w in no_words)
            return no if n and (label == no or not y or yes == "turn_on") else yes if y and not n else label
    return label


def groups(action, ents, words):
    """Entities of a clause to the slot sets of one or more actions: a slot that comes again opens another set."""
    sets, cur = [], {}
    for t, text, before in merged(ents, words):
        if action == "set_timer" and t in ("item", "task", "event", "media", "device"):
            t = "name"
        if action == "play_media" and t in ("device", "list"):
            continue
        if t in ("time", "date", "duration") and t not in SLOTS[action]:
            if action not in LATER:
                continue
            if t == "duration":
                t = "in" if before in ("in", "after") else "for"
        elif t == "duration" and action in LATER and before in ("in", "after"):
            t = "in"
        elif t not in SLOTS[action]:
            continue
        if t == "item" and "item" in cur and "list" not in cur:
            cur["item"] = cur["item"] + [text]
            continue
        if t in cur:
            sets.append(cur)
            cur = {}
        cur[t] = [text] if t == "item" else text
    sets.append(cur)
    for i, s in enumerate(sets):  # what a set lacks and must have, the nearest other one says
        for n in NEEDED[action]:
            if n not in s:
                for o in sets[i + 1 :] + sets[:i][::-1]:
                    if n in o:
                        s[n] = o[n]
                        break
    return sets


def defaults(action, s, words):
    low = [plain(w) for w in words]
    if action in ("turn_on", "turn_off", "set_brightness", "set_color") and "device" not in s:
        s["device"] = "everything" if "everything" in low else "lights"
    elif action == "set_temperature" and "device" not in s and "room" not in s:
        s["device"] = "heating"
    elif action == "start" and "device" not in s:
        if "mow" in low:
            s["device"] = "robot mower"
        elif set(low) & {"vacuum", "clean", "mop", "hoover"}:
            s["device"] = "vacuum"
    elif action == "mute" and "device" not in s:
        s["device"] = "sound"
    elif action in ("add_to_list", "remove_from_list", "query_list") and "list" not in s:
        s["list"] = "shopping"
    elif action == "play_media" and "media" not in s:
        s["media"] = s.pop("artist", "music")
    elif action == "add_event" and "date" not in s and "time" in s:
        s["date"] = "today"
    elif action == "get_sensor" and "sensor" not in s:
        for name, ws in SENSOR_WORDS:
            if set(ws.split()) & set(low):
                s["sensor"] = name
                break
    return s


def line(kind, val, pairs):
    return "; ".join([f"{kind}: {val}"] + [f"{k}: {v}" for k, v in pairs])


def join_and(xs):
    return xs[0] if len(xs) == 1 else ", ".join(xs[:-1]) + " and " + xs[-1]


def calculate(expr):
    t = digits(expr)
    num = r"(-?\d+(?:\.\d+)?)"
    m = re.fullmatch(rf"(?:the )?square root of {num}", t)
    if m:
        x = float(m.group(1))
        return x**0.5 if x >= 0 else None
    m = re.fullmatch(rf"{num} (?:percent|%) of {num}", t) or re.fullmatch(rf"{num}% of {num}", t)
    if m:
        return float(m.group(1)) * float(m.group(2)) / 100
    m = re.fullmatch(rf"{num}\s*(plus|\+|minus|-|times|multiplied by|x|\*|divided by|over|/)\s*{num}", t)
    if not m:
        return None
    a, o, b = float(m.group(1)), m.group(2), float(m.group(3))
    if o in ("plus", "+"):
        return a + b
    if o in ("minus", "-"):
        return a - b
    if o in ("times", "multiplied by", "x", "*"):
        return a * b
    return a / b if b else None


def act(action, s, words, now):
    """One slot set to (action object, context line)."""
    s = defaults(action, s, words)
    obj, pairs, later = dict(action=action), [], []
    for k in SLOTS[action]:
        if k not in s:
            continue
        if k == "item":
            xs = [show("item", x, action)[0] for x in s["item"]]
            obj["item"] = xs[0] if len(xs) == 1 else xs
            pairs.append(("item", join_and(xs)))
            continue
        d, j = show(k, s[k], action)
        obj.update(j)
        pairs.append((k, d))
    for k in ("for", "time", "in", "date"):
        if k in s and k not in SLOTS[action]:
            d, j = show("duration" if k in ("for", "in") else k, s[k], action)
            if k == "in":
                j = dict(in_s=j["duration_s"]) if "duration_s" in j else {"in": d}
            obj.update(j)
            (pairs if k == "for" else later).append(({"for": "duration", "time": "at"}.get(k, k), d))
    if "device" in obj:
        obj["id"] = re.sub(r"[^a-z0-9]+", "_", (obj["room"] + " " if "room" in obj else "") + obj["device"]).strip("_")
    missing = [n for n in NEEDED[action] if n not in s]
    if missing:
        if action == "calculate":
            return dict(obj, result="unknown"), None
        return dict(obj, result="ask", ask=missing[0]), line("ask", missing[0], [("act", action)] + pairs)
    if "device" in obj and not known(obj["device"]):
        return dict(obj, result="unknown"), line("act", action, pairs + [("result", "unknown")])
    if action in QUERIES:
        if action == "get_date":
            return dict(obj, result="done"), line("date", f"{now.strftime('%A')}, {now.day} {now.strftime('%B')} {now.year}", [])
        if action == "get_time" and "place" not in s:
            return dict(obj, result="done"), line("time", now.strftime("%H:%M"), [])
        if action == "query_timer":
            return dict(obj, result="done"), line("timer", "none", [])
        if action == "query_list":
            return dict(obj, result="done"), line("list", dict(pairs)["list"], [("items", "none")])
        if action == "query_calendar":
            return dict(obj, result="done"), line("event", "none", [("date", dict(pairs).get("date", "today"))])
        if action == "calculate":
            x = calculate(s["expr"])
            if x is None:
                return dict(obj, result="unknown"), None
            r = f"{x:.2f}".rstrip("0").rstrip(".")
            return dict(obj, result="done", answer=number(r)), line("result", "0" if r == "-0" else r, pairs)
        why = REASON[action]
        return dict(obj, result="failed", reason=why), line("act", action, pairs + [("reason", why), ("result", "failed")])
    if later:
        return dict(obj, result="scheduled"), line("act", action, pairs + later + [("result", "scheduled")])
    return dict(obj, result="done"), line("act", action, pairs + [("result", "done")])


def decide(clause, intent, router, entities, now, threshold=0.56, flow=None):
    """intent, router: (label, probability); entities: [(type, from word, to word)] -> ([actions], [context lines])"""
    words = clause.split()
    label, p = intent
    known_label = label in ACTIONS or label in QUERIES
    sure = p >= threshold or known_label and flow[router[0]] in ("act", "machine") and router[1] >= 0.5
    text = " ".join(clause.replace(";", ",").split())
    if label == "oos" or not sure:
        return [], [line("oos", text, [])]
    if not known_label:
        kind = "chat" if flow[router[0]] == "chat" else "oos"
        return [], [line(kind, text, [])]
    label = side(label, words)
    acts, lines = [], []
    for s in groups(label, entities, words):
        a, l = act(label, s, words, now)
        acts.append(a)
        lines.append(l if l else line("oos", text, []))
    return acts, lines


def contexts(lines):
    """Lines to what is given to reply: up to three act lines together, any other line alone."""
    out = []
    for l in lines:
        if l.startswith("act:") and out and out[-1].startswith("act:") and out[-1].count("\n") < 2:
            out[-1] += "\n" + l
        else:
            out.append(l)
    return out
