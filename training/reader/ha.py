"""Home Assistant's sentence templates (home-assistant/intents, CC BY 4.0), read as plans.

load() makes a plain list from the YAML files (once, into the sources); clause() draws a sentence from an entry of it.
Only the folder `sentences` is read: the folder `tests` measures.
"""

import re

import words as W
from plans import Span
from sentences import Clause, NoFit
from sites import COVERS, LOCKS, OPENS, POWER
from template import expand, held_out

BINARY = {
    "battery": ("battery", "is_low", "is_ok"), "battery_charging": ("battery", "is_charging", None), "carbon_monoxide": ("co", "is_detected", "is_clear"), "gas": ("gas", "is_detected", "is_clear"), "smoke": ("smoke", "is_detected", "is_clear"),
    "motion": ("motion", "is_detected", "is_clear"), "occupancy": ("presence", "is_detected", "is_clear"), "sound": ("sound", "is_detected", "is_clear"), "vibration": ("vibration", "is_detected", "is_clear"), "tamper": ("problem", "is_detected", "is_clear"),
    "cold": ("everything", "is_cold", "is_ok"), "heat": ("everything", "is_hot", "is_ok"), "connectivity": ("everything", "is_connected", "is_disconnected"), "door": ("door", "is_open", "is_closed"), "garage_door": ("garage", "is_open", "is_closed"), "window": ("window", "is_open", "is_closed"),
    "opening": (None, "is_open", "is_closed"), "light": ("light", "is_detected", "is_clear"), "lock": ("lock", "is_unlocked", "is_locked"), "moisture": ("leak", "is_wet", "is_dry"), "plug": ("everything", "is_plugged", "is_unplugged"), "power": ("everything", "is_on", "is_off"),
    "presence": ("everything", "is_home", "is_away"), "problem": ("problem", "is_problem", "is_ok"), "running": ("everything", "is_running", "is_stopped"), "safety": (None, "is_problem", "is_ok"),
}
SENSOR = {"aqi": "air", "atmospheric_pressure": "pressure", "battery": "charge", "carbon_dioxide": "co2", "current": "current", "distance": "distance", "energy": "energy", "energy_storage": "energy", "frequency": "frequency", "humidity": "humidity", "illuminance": "light_level", "moisture": "humidity", "ph": "ph",
          "power": "power", "pressure": "pressure", "signal_strength": "level", "sound_pressure": "noise", "speed": "speed", "temperature": "temperature", "voltage": "voltage", "volume_flow_rate": "flow", "volume_storage": "level", "water": "consumption", "weight": "weight", "wind_speed": "speed"}
DOMAIN = {"light": ["light"], "switch": ["switch"], "fan": ["fan"], "media_player": ["media"], "cover": COVERS + ["garage", "gate", "window"], "valve": ["valve"], "lock": ["lock", "door", "gate"], "climate": ["climate", "heating", "cooling"], "vacuum": ["vacuum"], "sensor": ["sensor"], "input_boolean": ["switch"]}
MODES = {"any": "any", "all": "all", "which": "which", "how_many": "count"}
LOCKABLE = [("lock", "lock"), ("door", "door"), ("window", "window"), ("gate", "gate"), ("garage door", "garage"), ("shutter", "shutter")]
# Rules that become slots, since the plan needs to know what was said in them.
TAKEN = ("everywhere", "here", "in_here", "all", "timer_duration", "timer_start", "brightness", "temperature", "position", "volume", "lockable", "name", "area", "floor", "area_floor", "in_area_floor")
FOREIGN = ("timer_duration", "timer_start", "brightness", "temperature", "position", "volume")


def load(folder):
    """Entries {intent, domain, slots, response, sentences, rules} of one language's sentences."""
    import pathlib

    import yaml
    common = yaml.safe_load((pathlib.Path(folder) / "_common.yaml").read_text())
    lists = {}
    for k, v in common["lists"].items():
        if "values" in v:
            lists[k] = [[x["in"], str(x["out"])] if isinstance(x, dict) else [x, x] for x in v["values"]]
    out = []
    for p in sorted(pathlib.Path(folder).rglob("*.yaml")):
        if p.name == "_common.yaml":
            continue
        d = yaml.safe_load(p.read_text())
        blocks = [(p.parent.name, b) for b in d["data"]] if "data" in d else [(i, b) for i, x in d["intents"].items() for b in x["data"]]
        for intent, b in blocks:
            dom = (b.get("requires_context") or {}).get("domain") or b.get("name_domains") or []
            dc = (b.get("requires_context") or {}).get("device_class") or (b.get("slots") or {}).get("device_class")
            out.append({"intent": intent, "domains": [dom] if isinstance(dom, str) else dom, "class": dc, "slots": {k: str(v) for k, v in (b.get("slots") or {}).items()}, "response": b.get("response", ""),
                        "sentences": b["sentences"], "rules": b.get("expansion_rules") or {}, "inferred": b.get("inferred_domain", ""), "file": p.name})
    return {"rules": common["expansion_rules"], "lists": lists, "entries": out}


class Use:
    """What a sentence of Home Assistant said."""

    def __init__(self):
        self.thing = self.area = self.floor = None
        self.all = self.everywhere = self.here = False
        self.spans, self.values = {}, {}

    def place(self):
        return [self.area] if self.area else [self.floor] if self.floor else ["everywhere"] if self.everywhere else ["here"] if self.here else []


def draw_name(g, e):
    kinds = [k for d in e["domains"] for k in DOMAIN.get(d, ())]
    d = e["domains"]
    if "person" in d:
        pool = g.site.people
    elif "scene" in d or "script" in d:
        pool = g.site.scenes
    elif "sensor" in d and e["class"]:
        q = SENSOR.get(e["class"])
        pool = [t for t in g.site.things if q in t.quantities]
    elif "binary_sensor" in d or not d:
        pool = [t for t in g.site.things if t.kind != "sensor"] if d else [t for t in g.site.things if t.kind in POWER]
        if not d and e["intent"] == "HassGetState":
            pool = g.site.things
    else:
        pool = [t for t in g.site.things if t.kind in kinds]
    from sites import BARE
    pool = [t for t in pool if t.name not in BARE]
    if not pool:
        raise NoFit
    return g.r.choice(pool)


def clause(g, ha, e, tongue=None):
    """A clause, or NoFit. tongue: an entry of tongues.py; None: English."""
    r = g.r
    pool = [s for s in e["sentences"] if held_out(s) == (g.mode == "held")] if g.mode != "all" else e["sentences"]
    if not pool:
        raise NoFit
    u = Use()
    rules = {**ha["rules"], **e["rules"]}
    if tongue:  # the values have their units
        rules.update(dict.fromkeys(("pourcent", "porciento", "degres", "degre"), ""))
    text = r.choice(pool)
    same = lambda t: [x for x in g.site.everything() if x is not t and set(x.words) & set(t.words)]

    def name():
        if u.thing is None:
            u.thing = draw_name(g, e)
            if u.area is not None and u.thing.area is not u.area:
                raise NoFit
            if same(u.thing):
                raise NoFit
        return [(r.choice(("", "", "the ", "my ")) if u.thing.kind != "person" and not tongue else "", None), (" ".join(r.choice(u.thing.words)), None)]

    def area():
        if u.area is None:
            if u.thing is not None:
                u.area = u.thing.area
            elif g.site.areas:
                u.area = r.choice(g.site.areas)
            if u.area is None:
                raise NoFit
        return [(r.choice(("", "the ", "the ", "my ")) if not tongue else "", None), (" ".join(r.choice(u.area.words)), None)]

    def floor():
        if not g.site.floors or u.thing is not None:
            raise NoFit
        u.floor = u.floor or r.choice(g.site.floors)
        return [(r.choice(("", "the ")) if not tongue else "", None), (" ".join(r.choice(u.floor.words)), None)]

    def span(key, words):
        k = u.spans.get(key)
        if k is None:
            k = u.spans[key] = g.key(key)
        return [(words, k)]

    def sub(t):
        return expand(t, r, fill, rules)

    def number(key, lo, hi, units):
        n = W.number(r, r.randint(lo, hi), 0, 0.25)
        unit = r.choice(units)
        if unit.startswith(("%", "°")) and not n[-1].isdigit():
            unit = ""
        return span(key, n + unit)

    def foreign(s):
        """What a slot says in another language; None: as in English."""
        if s in ("timer_duration", "timer_start"):
            return span("dur" if s == "timer_duration" else "start", tongue["duration"](r))
        if s in ("brightness", "position", "volume", "temperature", "volume_level"):
            q = "volume" if s == "volume_level" else s
            lo, hi = (12, 30) if s == "temperature" else (0, 100)
            return span("value", str(r.randint(lo, hi)) + r.choice(tongue["unit"][q].split("|")))
        if s in ("brightness_level", "volume_mapping", "position_level") and s in ha["lists"]:
            return span("value", "".join(w for w, _ in expand(r.choice(ha["lists"][s])[0], r, fill, {})))
        table = {"color": ("color", "colors"), "timer_name": ("timer", "timers"), "shopping_list_item": ("item", "items"), "todo_list_item": ("item", "items"), "item": ("item", "items"), "message": ("message", "messages"), "search_query": ("query", "music")}.get(s)
        return span(table[0], r.choice(tongue[table[1]].split("|"))) if table else None

    def fill(s):
        s, _, role = s.partition(":")
        other = foreign(s.lstrip("@")) if tongue else None
        if other:
            return other
        if tongue and s in ("zone", "media_class", "brightness_level"):
            raise NoFit
        if tongue and s.lstrip("@") == "name" and e["intent"].startswith("HassList"):
            return span("list", r.choice(tongue["list_names"].split("|")))
        if s.startswith("@"):
            s = s[1:]
            if s in ("everywhere", "all"):
                setattr(u, s, True)
                return sub(ha["rules"][s])
            if s in ("here", "in_here"):
                u.here = True
                return sub(rules.get(s) or ha["rules"]["here"])
            if s == "timer_duration":
                return span("dur", W.duration(r))
            if s == "timer_start":
                return span("start", W.duration(r))
            if s == "brightness":
                return number("value", 0, 100, ("%", " %", " percent", ""))
            if s in ("position", "volume"):
                return number("value", 0, 100, ("%", " percent", "", " %"))
            if s == "temperature":
                return number("value", 12, 30, (" degrees", "°", "", " degree"))
            if s == "lockable":
                w, u.values["lockable"] = r.choice(LOCKABLE)
                return [(r.choice(("", "the ", "my ")) + w + r.choice(("", "s")), None)]
            if s == "name":
                return name()
            if s == "area":
                return area()
            if s == "floor":
                return floor() + [(r.choice(("", "", " floor")) if "floor" not in " ".join(u.floor.words[0]) and "stairs" not in " ".join(u.floor.words[0]) else "", None)]
            if s == "area_floor":
                return area() if r.random() < 0.7 else floor()
            return sub("[<in>] ") + (area() if r.random() < 0.7 else floor())
        if s in ("name", "area", "floor"):
            return {"name": name, "area": area, "floor": floor}[s]()[1:]
        if s in ("brightness", "temperature", "volume", "position"):
            return fill("@" + s)
        if s == "brightness_level":
            return span("value", r.choice(("max", "maximum", "min", "minimum", "highest", "lowest")))
        if s == "color":
            return span("color", r.choice(W.COLORS))
        if s == "timer_name":
            from families import TIMER_NAMES
            return span("timer", r.choice(TIMER_NAMES))
        if s in ("shopping_list_item", "todo_list_item"):
            return span("item", r.choice(W.ITEMS))
        if s == "message":
            return span("message", r.choice(W.MESSAGES))
        if s == "search_query":
            return span("query", r.choice(W.MUSIC))
        if s == "media_class":
            return [(r.choice(("artist", "album", "track", "song", "playlist", "podcast", "movie", "show")), None)]
        if s == "zone":
            x = r.random()
            if x < 0.4:
                u.values["zone"] = ["is_home"]
                return [(r.choice(("home", "house", "home")), None)]
            if x < 0.65 and g.site.areas:
                a = r.choice(g.site.areas)
                u.values["zone"] = [a, "place"]
                return [(" ".join(r.choice(a.words)), None)]
            k = g.key("zone")
            u.values["zone"] = ["name", Span(k), "place"]
            return [(r.choice(("work", "school", "office", "gym", "beach", "shop", "airport", "park")), k)]
        if s in ha["lists"]:
            i, o = r.choice(ha["lists"][s])
            u.values[role or s] = o
            u.values["list"] = s
            return sub(i)
        raise NoFit

    class Rules(dict):
        def __getitem__(self, k):
            return "{@%s}" % k if k in (FOREIGN if tongue else TAKEN) else dict.__getitem__(self, k)
    rules = Rules(rules)
    try:
        parts = expand(text, r, fill, rules)
    except KeyError:
        raise NoFit from None
    text = "".join(p[0] for p in parts)
    if tongue and u.place() == [] and re.search(tongue["all_house"], text, re.I):
        u.everywhere = True
    return Clause(parts, plan(g, e, u, text, tongue), not tongue)


def state_token(e, u):
    v, which = u.values.get("state") or e["slots"].get("state"), u.values.get("list", "")
    dc = e["class"]
    if dc in BINARY and v in ("on", "off"):
        s = BINARY[dc][1 if v == "on" else 2]
        if s is None:
            raise NoFit
        return s
    s = {"on": "is_on", "off": "is_off", "open": "is_open", "closed": "is_closed", "locked": "is_locked", "unlocked": "is_unlocked"}.get(v)
    if s is None:
        raise NoFit
    return s


def plan(g, e, u, text, tongue=None):
    i, doms, place = e["intent"], e["domains"], u.place()
    dom = e["slots"].get("domain") or e["inferred"] or (doms[0] if doms else "")
    cls = u.values.get("device_class") or e["slots"].get("device_class")
    if cls and cls.startswith("["):  # several: all that shades a window
        cls = "cover"
    if not cls and tongue and dom == "cover":  # some languages have one slot for every word
        cls = next((c for words, c in tongue["covers"] if re.search(words, text, re.I)), None)
    sp = lambda k: Span(u.spans[k])
    allm = ["all"] if u.all or re.search(tongue["all"] if tongue else r"\b(all|every|each)\b", text, re.I) else []
    if not place and re.search(r"\b(everywhere|(?:whole|entire) (?:house|home))\b", text):
        place = ["everywhere"]
    if i in ("HassTurnOn", "HassTurnOff"):
        on = i == "HassTurnOn"
        if dom == "lock":
            verb = "lock" if on else "unlock"
            if u.thing is None:
                cls = u.values.get("lockable", "lock")
        elif dom in ("cover", "valve"):
            verb = "open" if on else "close"
        elif dom in ("scene", "script"):
            return ["scene", u.thing]
        else:
            verb = "on" if on else "off"
        if u.thing is not None:
            return [verb, u.thing]
        if cls == "garage" and any(t.name == "garage door" for t in g.site.things):
            raise NoFit
        if not cls and dom not in ("light", "fan", "switch", "lock"):
            raise NoFit
        return [verb] + allm + [cls or dom] + place
    if i == "HassLightSet":
        target = [u.thing] if u.thing is not None else allm + ["light"] + place
        if "color" in u.spans:
            return ["set"] + target + ["color", "to_value", sp("color")]
        return ["set"] + target + ["brightness", "to_value", sp("value")]
    if i == "HassSetPosition":
        if cls == "garage":
            raise NoFit
        return ["set"] + ([u.thing] if u.thing is not None else [cls] + place) + ["position", "to_value", sp("value")]
    if i == "HassClimateSetTemperature":
        return ["set"] + ([u.thing] if u.thing is not None else ["climate"] + place) + ["temperature", "to_value", sp("value")]
    if i == "HassClimateGetTemperature":
        return ["ask"] + ([u.thing] if u.thing is not None else place) + ["temperature"]
    if i == "HassSetVolume":
        return ["set"] + ([u.thing] if u.thing is not None else ["media"] + place) + ["volume", "to_value", sp("value")]
    media = {"HassMediaPause": "pause", "HassMediaUnpause": "resume", "HassMediaNext": "next", "HassMediaPrevious": "previous"}
    if i in media or i == "HassMediaSearchAndPlay":
        head = [media.get(i, "play")] + ([u.thing] if u.thing is not None else ["media"] + place if place else [])
        return head + (["what", sp("query")] if i == "HassMediaSearchAndPlay" else [])
    if "Timer" in i:
        which = (["name", sp("timer")] if "timer" in u.spans else ["dur", sp("start")] if "start" in u.spans else []) + place
        if i == "HassStartTimer":
            if "dur" not in u.spans:
                raise NoFit
            return ["timer", "set_one", "dur", sp("dur")] + (["name", sp("timer")] if "timer" in u.spans else [])
        word = {"HassCancelTimer": "cancel_one", "HassCancelAllTimers": "cancel_one", "HassPauseTimer": "pause_one", "HassUnpauseTimer": "resume_one", "HassIncreaseTimer": "more", "HassDecreaseTimer": "less", "HassTimerStatus": "ask_one"}[i]
        return ["timer", word] + which + (["all_of"] if i == "HassCancelAllTimers" else []) + (["by_value", sp("dur")] if "dur" in u.spans else [])
    if i in ("HassShoppingListAddItem", "HassShoppingListCompleteItem"):
        return ["add" if i == "HassShoppingListAddItem" else "remove", "item", sp("item")]
    if i in ("HassListAddItem", "HassListCompleteItem") and tongue:
        return ["add" if i == "HassListAddItem" else "remove", "item", sp("item"), "list", sp("list")]
    if i == "HassVacuumStart":
        return ["start", u.thing] if u.thing is not None else ["start", "vacuum"] + place
    if i == "HassVacuumReturnToBase":
        return ["dock", u.thing]
    if i == "HassGetWeather":
        return ["other", "weather"]
    if i in ("HassGetCurrentTime", "HassGetCurrentDate"):
        return ["other", "time" if i.endswith("Time") else "date"]
    if i == "HassBroadcast":
        return ["announce"] + (["everywhere"] if not tongue and "everywhere" in text.split(u.spans["message"])[0] and " everywhere " in f" {text} " else []) + ["what", sp("message")]
    if i == "HassNevermind":
        return ["cancel"]
    if i == "HassGetState":
        mode = MODES.get(e["response"])
        if "person" in doms or dom == "person":
            zone = u.values.get("zone") or ["place"]
            if u.thing is not None:
                return ["ask", u.thing] + zone
            if tongue:
                raise NoFit
            mode = "any" if "anyone" in text else "all" if "everyone" in text else "count" if "how many" in text else "which"
            return ["ask", mode, "person"] + zone
        if "sensor" in doms and e["class"]:
            return ["ask", u.thing, SENSOR[e["class"]]]
        if u.thing is not None:
            if "state" in u.values or "state" in e["slots"]:
                return ["ask", u.thing, state_token(e, u)]
            return ["ask", u.thing, u.thing.quantities[0] if u.thing.kind == "sensor" else "state"]
        if mode is None:
            if tongue:
                raise NoFit
            if "how many" in text:
                mode = "count"
            elif " all " in f" {text} ":
                mode = "all"
            elif text.split()[0] in ("which", "what") or "which" in text or "know what" in text:
                mode = "which"
            elif " any" in f" {text} ":
                mode = "any"
            else:
                raise NoFit
        c = u.values.get("device_class") or u.values.get("domain") or (BINARY[e["class"]][0] if e["class"] in BINARY else None) or u.values.get("lockable")
        if isinstance(c, list) or c and c.startswith("["):
            c = "cover"
        if c is None or c == "garage" and not tongue and not text.count("garage doors"):
            raise NoFit
        return ["ask", mode, c] + place + [state_token(e, u)]
    raise NoFit
