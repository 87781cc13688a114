"""Real people's sentences (HWU64 and SLURP's development part, CC BY 4.0) read as plans, over sites that hold what they
name. The intents and entities of the sources decide; a sentence that they leave open is not used."""

import hashlib
import re

import sites
from plans import Span
from sentences import NoFit
from sites import Area, Thing

TIMES = ("date", "time", "timeofday")
GAP = re.compile(r"^\s*(at|on|in|of|for|the|in the|on the|at the|from|@|,)?\s*$")
NUMBER = r"(?:\d+|zero|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|half|max|maximum|minimum|full|percent)"
TO = re.compile(r"\b(?:to|at) ((?:level )?" + NUMBER + r"(?: " + NUMBER + r")*(?: percent| %)?)$")
BY = re.compile(r"\bby ((?:" + NUMBER + r")(?: " + NUMBER + r")*(?: percent| %)?)\b")
EVERY = re.compile(r"^every|^each|\b(daily|weekly|monthly|yearly|weekdays|weekends|all days|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b")
LEFT = re.compile(r"\b((?:(?:next|this|coming|following|the|every|each) )+)$")
AGREED = re.compile(r"(yes|yeah|yea|yep|yup|sure|ok|okay|right|correct|exactly|confirm|that's right|that is right|that's correct|affirmative|absolutely|definitely|indeed|of course|perfect|you got)\b")
LITTLE = re.compile(r"\b(a little|a bit|slightly|little bit|a notch|a tad)\b")
CONDITION = re.compile(r"\b(when i|whenever|if|when the|when you|before i|before the|after i|as soon as)\b")
ADD = re.compile(r"\b(?:add|put|include|write|place|insert) (.+?) (?:to|on|in|onto|into) (?:(?:my|the|our|a|your|today's) )?(.+?)(?: list)?\.?$")
ADD_ONLY = re.compile(r"\b(?:add|include) ((?!a |an |new |it|this|that|another|list)[\w ]+)$")
UPDATE = re.compile(r"\b(?:update|extend) (?:my|the|our) (.+?)(?: list)? with (.+?)\.?$")
NEED = re.compile(r"\b(?:i need|i want|get|have) ((?!to |you )[\w ]+?) (?:added|put) (?:to|on|in|onto) (?:(?:my|the|our|a) )?(.+?)(?: list)?\.?$")
NO_ITEM = re.compile(r"(?:(?:a|an|the|this|that|these|those|it|another|new|one|some|last|first|extra|item|items|thing|things|something|entry|entries|line|event|events)(?: |$))+")
REMOVE = re.compile(r"\b(?:remove|delete|erase|take|cross|drop|get rid of|clear|scratch) (.+?) (?:from|off|off of|out of|in|on) (?:(?:my|the|our|a|your) )?(.+?)(?: list)?\.?$")
CLEAR = re.compile(r"\b(?:remove|delete|erase|clear|empty|get rid of|wipe) (?:(?:my|the|our|this|that|a|all|old) )*(?:(.+?) )?list\b")
CREATE = re.compile(r"\b(?:create|make|start|new|fresh|begin|open|generate|produce|set up|put together)\b.*\b(?:list|checklist|catalogue|register)\b")
GENERIC = {"meeting", "meetings", "event", "events", "appointment", "appointments", "reminder", "reminders", "schedule", "alarm", "alarms", "plans", "tasks"}
GROUND = {"floor", "floors", "carpet", "carpets", "rug", "rugs"}
WHOLE = {"house", "home", "apartment", "flat", "whole house"}
HERE = {"room", "this room", "the room", "here", "my room", "current room"}

SIMPLE = {
    "weather_query": ["other", "weather"], "general_quirky": ["other", "assistant"], "qa_factoid": ["other", "knowledge"], "qa_definition": ["other", "knowledge"], "news_query": ["other", "news"], "email_query": ["other", "email"], "email_sendemail": ["other", "email"],
    "email_querycontact": ["other", "contact"], "email_addcontact": ["other", "contact"], "social_post": ["other", "social"], "social_query": ["other", "social"], "general_confirm": ["chat", "confirm"], "general_praise": ["chat", "praise"], "general_affirm": ["answer", "yes"],
    "general_repeat": ["chat", "again"], "general_explain": ["chat", "explain"], "general_negate": ["chat", "wrong"], "general_dontcare": ["chat", "dontcare"], "general_greet": ["chat", "greet"], "general_joke": ["other", "joke"], "qa_currency": ["other", "convert"], "qa_stock": ["other", "stock"], "qa_maths": ["other", "maths"],
    "music_query": ["other", "music_info"], "music_likeness": ["other", "like"], "music_dislikeness": ["other", "like"], "recommendation_locations": ["other", "recommend"], "recommendation_events": ["other", "recommend"], "recommendation_movies": ["other", "recommend"], "takeaway_order": ["other", "takeaway"], "takeaway_query": ["other", "takeaway"],
    "cooking_recipe": ["other", "recipe"], "cooking_query": ["other", "recipe"], "transport_query": ["other", "transport"], "transport_traffic": ["other", "traffic"], "transport_ticket": ["other", "ticket"], "transport_taxi": ["other", "taxi"], "play_game": ["other", "game"], "datetime_convert": ["other", "time"],
}


def held_out(text):
    return hashlib.md5(text.encode()).digest()[1] % 10 == 0


class Row:
    """A sentence with tagged characters and a plan over a site that it asks for."""

    def __init__(self, row):
        self.text, self.intent, self.entities = row["text"], row["intent"], row["entities"]
        self.marks, self.n = [], 0

    def mark(self, start, end):
        self.n += 1
        k = f"p{self.n}"
        self.marks.append((start, end, k))
        return Span(k)

    def all(self, *types):
        return [e for e in self.entities if e["entity"] in types]

    def one(self, *types):
        es = self.all(*types)
        return es[0] if es else None

    def group(self, *types):
        """From the first to the last of these entities, if nothing of another kind lies between."""
        es = self.all(*types)
        if not es:
            return None
        a, b = min(e["start"] for e in es), max(e["end"] for e in es)
        if any(e["entity"] in TIMES and a < e["start"] < b for e in self.entities):
            a, b = es[0]["start"], es[0]["end"]
        return self.mark(a, b)

    def times(self, role="at"):
        es = sorted(self.all(*TIMES, "general_frequency"), key=lambda e: e["start"])
        runs = []
        for e in es:
            every = e["entity"] == "general_frequency" or bool(EVERY.search(e["value"].lower()))
            if runs and GAP.match(self.text[runs[-1][1] : e["start"]]):
                runs[-1] = (runs[-1][0], e["end"], runs[-1][2] or every)
            else:
                runs.append((e["start"], e["end"], every))
        out = []
        for a, b, every in runs[:3]:
            m = LEFT.search(self.text[:a].lower())
            if m:
                a = m.start(1)
            word = self.text[a:b]
            m = re.match(r"(at|on|for|in|by|until) ", word)
            rl = "every" if every else role
            if m and rl == "at":
                a += m.end()
                if m.group(1) == "in" and re.search(r"minute|hour|second", word):
                    rl = "in"
            elif rl == "at" and self.text[:a].rstrip().endswith(" in") and re.search(r"minute|hour|second", word):
                rl = "in"
            elif rl == "at" and self.text[:a].rstrip().endswith(" for") and re.search(r"minute|hour|second", word) and self.intent.startswith("audio"):
                rl = "for"
            out += [rl, self.mark(a, b)]
        return out


def place(r, row, site, unknown=0.08):
    e = row.one("house_place")
    text = row.text.lower()
    if e is None:
        if re.search(r"\b(in here|over here|around here)\b|\bhere$", text):
            return ["here"]
        if re.search(r"\b(in this room|this room|in the room|in my room)\b", text):
            return ["here"]
        if re.search(r"\b(everywhere|whole house|entire house|all over|(?:my|the|our) (?:house|home|apartment|flat)|in house|all rooms|every room)\b", text):
            return ["everywhere"]
        return []
    name = e["value"].lower()
    if name in GROUND:
        return []
    if name in WHOLE:
        return ["everywhere"]
    if name in HERE:
        return ["here"]
    if not re.fullmatch(r"[a-z' ]+", name):
        raise NoFit
    same = [a for a in site.areas if tuple(name.split()) in a.words]
    if same:
        return [same[0]]
    if any(set(name.split()) & set(w) for a in site.areas for w in a.words):
        raise NoFit
    if r.random() < unknown:
        return ["unknown", row.mark(e["start"], e["end"])]
    a = Area(name)
    site.areas.insert(r.randrange(len(site.areas) + 1), a)
    return [a]


def thing(r, site, kind, name, aliases=()):
    for t in site.things:
        if tuple(name.split()) in t.words:
            return t if t.kind == kind else None
    t = Thing(kind, name, [a for a in aliases if r.random() < 0.5], r.choice(site.areas) if site.areas and r.random() < 0.5 else None)
    site.things.insert(r.randrange(len(site.things) + 1), t)
    return t


def steps(row, verb, target, quantity):
    """up or down, or a value if one is said."""
    text = row.text.lower().rstrip(".")
    e = row.one("change_amount")
    if e is not None:
        v, a = e["value"].lower(), e["start"]
        m = re.match(r"(to|by|at) (the |a )?", v)
        if re.search(r"little|bit|slight|notch|some", v):
            return [verb] + target + [quantity, "bit"]
        if re.search(r"\blot\b|much", v):
            return [verb] + target + [quantity, "lot"]
        if m and m.group(1) == "by":
            return [verb] + target + [quantity, "by_value", row.mark(a + m.end(), e["end"])]
        if m or re.search(r"max|full|low|high|level", v):
            return ["set"] + target + [quantity, "to_value", row.mark(a + (m.end() if m else 0), e["end"])]
        before = text[:a].rstrip().split(" ")[-1]
        return (["set"] + target + [quantity, "to_value", row.mark(a, e["end"])]) if before in ("to", "at") else ([verb] + target + [quantity, "by_value", row.mark(a, e["end"])])
    m = TO.search(text)
    if m:
        return ["set"] + target + [quantity, "to_value", row.mark(*m.span(1))]
    m = BY.search(text)
    if m:
        return [verb] + target + [quantity, "by_value", row.mark(*m.span(1))]
    return [verb] + target + [quantity] + (["bit"] if LITTLE.search(text) else [])


def lights(r, row, site):
    text = row.text.lower()
    if CONDITION.search(text) or row.all("time", "date") and row.intent != "iot_hue_lightoff":
        raise NoFit
    e = row.one("device_type")
    where = place(r, row, site)
    target = (["all"] if re.search(r"\b(all|every)\b", text) else []) + ["light"] + where
    if e is not None:
        name = e["value"].lower()
        rest = [w for w in name.split() if w not in ("all", "light", "lights", "lamp", "lamps", "the", "every", "lighting", "bulb", "bulbs", "my")]
        if rest:
            if where:
                raise NoFit
            t = thing(r, site, "light", name)
            if t is None:
                raise NoFit
            target = [t]
    elif re.search(r"\b(corner|left|right|desk|bedside|disco|table|floor) (light|lamp)", text) and not where:
        raise NoFit
    i = row.intent[8:]
    if i in ("lightoff", "lighton"):
        if i == "lighton" and re.search(r"full|bright", text):
            raise NoFit
        if i == "lightoff" and row.entities and row.one("time"):
            raise NoFit
        return ["on" if i == "lighton" else "off"] + target
    if i == "lightchange":
        c = row.one("color_type")
        if row.one("change_amount") and not c:
            return steps(row, "up", target, "brightness")
        if row.one("change_amount") or row.one("player_setting"):
            raise NoFit
        if not c and not re.search(r"\bcolou?rs?\b", text):
            raise NoFit
        return ["set"] + target + ["color"] + (["to_value", row.mark(c["start"], c["end"])] if c else [])
    if i == "lightup" and re.search(r"\b(out|off|dim|down|lower|low)\b", text) or i == "lightdim" and re.search(r"\b(up|brighten|raise)\b", text):
        raise NoFit
    return steps(row, "up" if i == "lightup" else "down", target, "brightness")


def other_iot(r, row, site):
    text = row.text.lower()
    if CONDITION.search(text) or re.match(r"(is|what|how|why|where|does|do) ", text):
        raise NoFit
    i = row.intent
    if i == "iot_coffee":
        if row.one("business_type", "business_name"):
            return ["other", "takeaway"]
        t = thing(r, site, "appliance", r.choice(("coffee machine", "coffee maker", "espresso machine", "coffee machine")), ("coffee maker", "coffee pot"))
        if t is None or re.search(r"\b(off|stop)\b", text):
            raise NoFit
        return ["start", t] + row.times()
    if i == "iot_cleaning":
        where = place(r, row, site)
        e = row.one("device_type")
        name = e["value"].lower() if e else "vacuum"
        if "vacuum" in name or "hoover" in name:
            target = ["vacuum"]
        else:
            t = thing(r, site, "vacuum", name)
            if t is None:
                raise NoFit
            target = [t]
        if re.search(r"\b(stop|off)\b", text):
            return ["stop"] + target
        return ["start"] + target + where + row.times()
    on = i == "iot_wemo_on"
    where = place(r, row, site)
    e = row.one("device_type")
    name = e["value"].lower() if e else "plug"
    if row.one("time") or re.search(r"\bon off\b|clapping", text):
        raise NoFit
    if name in ("plug", "socket", "plug socket", "plugs", "sockets"):
        if not re.search("plug|socket", text):
            raise NoFit
        return ["on" if on else "off"] + (["all"] if " all " in text else []) + ["switch"] + where
    t = thing(r, site, "switch", name, ("plug",))
    if t is None or where:
        raise NoFit
    return ["on" if on else "off", t]


def sound(r, row, site):
    text = row.text.lower()
    if CONDITION.search(text):
        raise NoFit
    if row.intent == "audio_volume_mute":
        if re.search(r"\bunmute\b", text):
            return ["unmute"]
        if re.search(r"\bpause\b", text):
            raise NoFit
        if row.one("event_name", "change_amount"):
            raise NoFit
        return ["mute"] + row.times("for" if re.search(r"minute|hour|second", text) and "until" not in text else "until" if "until" in text else "at")
    if "unmute" in text:
        return ["unmute"]
    if row.one("song_name"):
        raise NoFit
    return steps(row, "up" if row.intent == "audio_volume_up" else "down", ["media"], "volume")


STEP = re.compile(r"\b(next|skip|forward|previous|last|backward|back)\b")
PLAIN = re.compile(r"(?:(?:please|can you|could you|olly|hey|just|play|start|go|get|move|skip|continue|onto|to|the|a|an|this|that|of|in|on|my|next|previous|last|forward|backward|back|episode|episodes|one|podcast|podcasts|song|songs|track|series|show|i|want|am|ready|hear|see|listen|playing|radio|station|switch|activate|find|turn|let's|have|put|me|some|set|open)(?: |$))+")


def play(r, row, site):
    text = row.text.lower().rstrip(".")
    if all(e["entity"] == "podcast_descriptor" for e in row.entities) and PLAIN.fullmatch(text):
        m = STEP.search(text)
        if m:
            return ["next" if m.group(1) in ("next", "skip", "forward") else "previous"]
        if row.intent == "play_radio" and "radio" in text:
            at = text.index("radio")
            return ["play", "what", row.mark(at, at + 5)]
    if row.intent == "play_radio" and row.one("radio_name") and not row.one(*TIMES, "house_place", "device_type") and not re.match(r"(what|which|how|who|when|is|are|do|show)\b", text):
        return ["play", "what", row.group("radio_name")]
    if re.match(r"(what|which|show|find|do|is|how|who|when|are|check|list|tell|give me (the )?(list|name))\b", text) or row.one("house_place", "device_type") or row.one(*TIMES):
        raise NoFit
    if not re.search(r"\b(play|start|put|hear|listen|resume|continue|turn|open|tune|want|queue|switch|begin|read)\b", text):
        raise NoFit
    if re.search(r"\b(next|previous|last|skip)\b", text) and not row.one("song_name", "artist_name", "audiobook_name", "podcast_name", "radio_name"):
        raise NoFit
    what = row.group("song_name", "artist_name", "music_genre", "playlist_name", "music_descriptor", "radio_name", "podcast_name", "podcast_descriptor", "audiobook_name", "audiobook_author", "person", "media_type", "album_name", "movie_name")
    verb = "resume" if re.search(r"^(please |olly |hey |can you )*(resume|continue)\b", text) else "play"
    return [verb] + (["what", what] if what else [])


def items(row, start, end):
    """The items of a list phrase."""
    out, at = [], start
    for part in re.split(r"(,? and |, )", row.text[start:end]):
        if part.strip() and not re.fullmatch(r",? and |, ", part):
            a = at + len(part) - len(part.lstrip())
            out += ["item", row.mark(a, at + len(part.rstrip()))]
        at += len(part)
    return out


def lists(r, row, site):
    text = row.text.lower()
    if CONDITION.search(text) or row.one("date") and row.intent != "lists_query":
        raise NoFit
    ln = row.one("list_name")
    name = None
    if ln is not None:
        a, b = ln["start"], ln["end"]
        if text[a:b].endswith(" list"):
            b -= 5
        name = (a, b)
    # The shopping list is the list that is meant when none is named.
    which = ["list", row.mark(*name)] if name and text[name[0] : name[1]] not in ("list", "shopping") else []
    if row.intent == "lists_query":
        m = re.search(r"\b(?:add|have|is|are) ((?!i |my |the |there |any|on )[\w ]+?) (?:to|on|in) (?:my|the|our)", text)
        it = ["item", row.mark(*m.span(1))] if m and not re.search(r"\bhow many\b|\bwhat\b", text) else []
        if re.search(r"\blists\b", text):
            if row.entities or not re.search(r"\b(what|which|show|list|name|names|tell|see|read|find|give|how many|available|do i have)\b", text):
                raise NoFit
            return ["ask", "list", "all_of"]
        return ["ask", "list"] + it + (["name", which[1]] if which else [])
    if row.intent == "lists_createoradd":
        m = ADD.search(text)
        if m and not re.search(r"\b(this|that|it|these|item|something)\b", m.group(1)) and not re.search("calendar|playlist|favou?rite", m.group(2)) and not re.match(r"(a |an )?(new )?(list|item)", m.group(1)):
            if not which and m.group(2).strip(". ") not in ("list", "lists", "the list", "shopping"):
                which = ["list", row.mark(*m.span(2))]
            return ["add"] + items(row, *m.span(1)) + which
        if CREATE.search(text) and not re.search(r"\bwith\b|\badd\b", text):
            return ["create"] + (["name", which[1]] if which else [])
        m = ADD_ONLY.search(text)
        if m and not which and not NO_ITEM.fullmatch(m.group(1)):
            return ["add"] + items(row, *m.span(1))
        for form, item, name in ((UPDATE, 2, 1), (NEED, 1, 2)):
            m = form.search(text)
            if m and not NO_ITEM.fullmatch(m.group(item)):
                return ["add"] + items(row, *m.span(item)) + (["list", row.mark(*m.span(name))] if m.group(name) not in ("list", "shopping") else [])
        m = re.search(r"\b(?:add|put|include|insert) (.+?)(?: (?:to|on|in|into|onto) (?:(?:my|the|our|a|your) )?(?:[\w ]+ )?list)?\.?$", text)
        if m and NO_ITEM.fullmatch(m.group(1)) and "calendar" not in text:
            return ["add"] + which
        raise NoFit
    m = REMOVE.search(text)
    if m and not re.search(r"\b(this|that|it|these|item|items|everything|all|last|first|list)\b", m.group(1)):
        if not which and m.group(2).strip(". ") not in ("list", "lists", "shopping"):
            which = ["list", row.mark(*m.span(2))]
        return ["remove"] + items(row, *m.span(1)) + which
    m = CLEAR.search(text)
    if m and not (m.group(1) and (len(m.group(1).split()) > 4 or re.search(r"\b(from|off|in|on|out|item|items|event|entry|this|that)\b", m.group(1)))):
        return ["clear"] + which
    m = re.search(r"\b(?:remove|delete|erase|take|cross|drop|get rid of|clear|scratch|take off) (.+?)(?: (?:from|off|off of|out of|in|on) (?:(?:my|the|our|a|your) )?(?:[\w ]+ )?list)?(?: please)?\.?$", text)
    if m and NO_ITEM.fullmatch(m.group(1)) and "playlist" not in text:
        return ["remove"] + which
    raise NoFit


def calendar(r, row, site):
    text = row.text.lower()
    if row.one("place_name") and row.intent != "calendar_set" or CONDITION.search(text):
        raise NoFit
    reminder = re.search(r"\bremind|reminder|remainder\b", text)
    at = row.times()
    if row.intent == "calendar_query":
        e = row.one("event_name")
        what = ["what", row.mark(e["start"], e["end"])] if e and e["value"].lower() not in GENERIC else []
        return ["remind" if reminder else "event", "ask_one"] + what + at
    if row.intent == "calendar_remove":
        what = row.group("event_name", "meal_type", "person", "relation")
        e = row.one("event_name")
        if e and e["value"].lower() in GENERIC and re.search(r"\b(all|every|any)\b", text):
            what = None
        return ["remind" if reminder else "event", "cancel_one"] + (["what", what] if what else []) + at + (["all_of"] if re.search(r"\b(all|every|everything)\b", text) else [])
    if not re.search(r"\b(set|add|put|create|schedule|remind|make|mark|book|new|plan|arrange|enter|note|save|invite|send|alert|notify|have|reminder|remainder|calendar|appointment)\b", text):
        raise NoFit
    what = row.group("event_name", "meal_type", "person", "relation") if not reminder else row.group("event_name")
    if reminder and not what:
        m = re.search(r"\bremind(?:er)?(?: me)? (?:to|of|about|that) (.+?)$", text)
        if m is None and not re.search(r"\bif\b|\bwhen\b|\bmeeting\b", text) and len(text.split()) < 12:
            return ["remind", "set_one"] + at  # of what is asked
        if m is None or at:
            raise NoFit
        what = row.mark(*m.span(1))
    return ["remind" if reminder else "event", "set_one"] + (["what", what] if what else []) + at


def alarm(r, row, site):
    text = row.text.lower()
    if CONDITION.search(text) or row.one("event_name"):
        raise NoFit
    word = {"alarm_set": "set_one", "alarm_query": "ask_one", "alarm_remove": "cancel_one"}[row.intent]
    if word == "cancel_one" and re.search(r"\b(change|edit|modify|set it|and set)\b", text):
        raise NoFit
    if word == "set_one" and re.match(r"(confirm|is|did|what|when|have)\b", text):
        word = "ask_one"
    return ["alarm", word] + row.times() + (["all_of"] if word == "cancel_one" and re.search(r"\b(all|every)\b", text) else [])


def plan(r, row, site):
    i, text = row.intent, row.text.lower()
    if i == "general_affirm" and not AGREED.match(text):
        raise NoFit
    if i == "general_praise" and "thank" in text:
        return ["chat", "thanks"]
    if i in SIMPLE:
        return list(SIMPLE[i])
    if i == "datetime_query":
        return ["other", "date" if re.search(r"\b(day|date|month|year)\b", text) and not re.search(r"\btime\b", text) else "time"]
    if i == "general_commandstop":
        return ["cancel"] if "cancel" in text else ["chat", "bye"] if "later" in text or "bye" in text else ["stop"]
    if i.startswith("iot_hue"):
        return lights(r, row, site)
    if i.startswith("iot_"):
        return other_iot(r, row, site)
    if i.startswith("audio_"):
        return sound(r, row, site)
    if i == "music_settings":
        e = row.one("player_setting")
        if e is None or "stop" in e["value"]:
            raise NoFit
        return ["set", "media", "mode", "to_value", row.mark(e["start"], e["end"])]
    if i.startswith("play_"):
        return play(r, row, site)
    if i.startswith("lists_"):
        return lists(r, row, site)
    if i.startswith("calendar_"):
        return calendar(r, row, site)
    if i.startswith("alarm_"):
        return alarm(r, row, site)
    raise NoFit


SWAPPED = set("""date time timeofday event_name person relation song_name artist_name music_genre playlist_name radio_name podcast_name podcast_descriptor
audiobook_name audiobook_author color_type coffee_type list_name place_name business_name food_type news_topic meal_type game_name currency_name stock_name definition_word""".split())


def values(rows):
    """What real people said for each kind of entity."""
    out = {}
    for row in rows:
        for e in row["entities"]:
            if e["entity"] in SWAPPED:
                out.setdefault(e["entity"], []).append(e["value"])
    return out


def swap(r, raw, said):
    """The same sentence with what somebody else said in the place of some entities."""
    text, es, at = "", [], 0
    for e in sorted(raw["entities"], key=lambda e: e["start"]):
        if e["start"] < at or raw["text"][e["start"] : e["end"]] != e["value"]:
            return raw
        text += raw["text"][at : e["start"]]
        v = e["value"]
        if e["entity"] in said and r.random() < 0.7:
            v = r.choice(said[e["entity"]])
        es.append({**e, "value": v, "start": len(text), "end": len(text) + len(v)})
        text += v
        at = e["end"]
    return {**raw, "text": text + raw["text"][at:], "entities": es}


def example(r, raw, site=None):
    """(site, words with tags, plan)"""
    site = site or sites.make(r)
    row = Row(raw)
    p = plan(r, row, site)
    words, at = [], 0
    for w in row.text.split():
        at = row.text.index(w, at)
        words.append([w, frozenset(k for a, b, k in row.marks if a < at + len(w) and at < b)])
        at += len(w)
    return site, words, p
