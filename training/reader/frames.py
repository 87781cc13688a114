"""What people say around a command and what takes it away again: reasons, forms of address, what should stay as it is, the
past, questions about abilities, corrections, lists that share one verb. Everything is drawn, nothing is a fixed sentence."""

import re

import words as W
from plans import Span
from sentences import STATES, Clause, NoFit
from sites import COVERS, FIRST, LOCKS, OPENS, POWER, RUNS, Area

WHO = "i'm|we're|the kids are|my wife is|the baby is|the baby's|grandma is|everyone's|he's|she's|the dog is|my husband is|the guests are|the crew is|my son is|our daughter is|dad's|mum's|the boys are|they're".split("|")
IS = "cold|freezing|hot|sweating|tired|exhausted|asleep|awake|leaving|going out|going to bed|off to work|late|hungry|cooking|working|reading|studying|watching a film|on the phone|on my way|ready|bored|done|home early|in bed|in the bath|at the door|not well|half asleep|out of here|sleeping|hurt|still up|here|expecting guests|having a party|busy|in a hurry|scared of the dark".split("|")
ITS = "dark|getting dark|so dark|pitch black|freezing|cold|chilly|so chilly|hot|boiling|stuffy|loud|too loud|noisy|late|getting late|early|bedtime|raining|about to rain|sunny|windy|bright|too bright|humid|dusty|filthy|smelly|a mess|quiet|six already|nearly midnight|time for bed|movie night|monday|an emergency|draughty|dim|gloomy|warm enough|hot as hell|like a fridge".split("|")
CANT = "see a thing|see anything|hear myself think|sleep|reach the switch|concentrate|find my glasses|get up|hear the tv|read|work like this|breathe|stand the noise|see my own hand|wake the baby|hear you|find the remote|relax|move".split("|")
FACT = """the sun is in my eyes|the neighbours are complaining|the guests are here|the pizza is here|the bill is too high|my hands are full|my hands are wet|my hands are dirty|my head hurts|i have a headache|the cat wants out|the film is starting|there's a draft|somebody's at the door|the floor is filthy|
it has been on all day|it has been running for hours|it's giving me a headache|this one is awful|this one sucks|i want to see the snow|i want to look outside|nobody's in there|no one is using it|you left it on again|it is driving me mad|i like it that way|we save energy that way|the electricity is expensive|
i have a meeting|i need some sleep|i need to concentrate|i am about to leave|we have company|the food is burning|the laundry is done|the plants need it|my feet are cold|my back is killing me|the show is over|the shift is over|it's break time|we ran out of time|the truck is waiting|the customer is here|
i forgot earlier|it makes cold|it is very hot here now|the air is bad|there is a strange smell|the dog is barking|the kids are loud|the music is too loud|it looks better|the inspector is coming|that noise is killing me|i hate that song|i don't want to miss it|the match is on|it got cold|the window is steamed up""".replace("\n", "").split("|")
PURPOSE = "so i can sleep|so that i can see|so we can eat|so i can read|so nobody trips|before i forget|before it rains|before bed|for the night|for the guests|for the baby|for a while|for now|until further notice|like yesterday|as usual|like last time|the way i like it|first thing|once more|one more time|as well|too|instead|again".split("|")


def reason(r):
    x = r.random()
    if x < 0.22:
        return r.choice(WHO) + " " + r.choice(IS)
    if x < 0.42:
        return r.choice(("it's ", "it is ", "it's so ", "it's gone ", "dear me it is ", "it's a bit ", "god it's ", "it's way too ")) + r.choice(ITS) + r.choice(("", "", "", " in here", " in there", " outside"))
    if x < 0.55:
        return r.choice(("i can't ", "i cannot ", "we can't ", "nobody can ", "i can hardly ", "i can barely ")) + r.choice(CANT)
    return r.choice(FACT) if x < 0.9 else r.choice(W.MESSAGES)


BEFORE = ["%s, ", "%s ", "%s so ", "%s, so ", "%s. ", "%s and ", "since %s, ", "because %s ", "as %s, ", "%s, please ", "%s, could you ", "%s can you ", "%s, would you ", "%s, can you please ", "%s, do ", "now that %s "]
AFTER = [", %s", " %s", " because %s", " since %s", ", because %s", ". %s", " as %s", ", %s you know", " %s now", " 'cause %s", "; %s"]
ADDRESS = [", dear", ", love", " dear", ", there's a dear", ", there's a good chap", ", would you", ", will you", ", if you would", ", mate", ", quick", ", chop chop", ", ok", ", please and thank you", " for me, love", " for me dear", ", thanks a lot", ", there's a love", ", if you'd be so kind", ", please dear", ", cheers",
           ", if you please", " now please", ", would you be a dear", ", pronto", ", asap", " real quick", ", will ya", ", hurry", ", my friend", " would you mind", ", thank you kindly", ", darling", ", if it's no trouble", ", i beg you", " immediately please", ", over", ", please hurry", ", good man", ", robot", ", computer"]
OPEN = ["would it be possible to {c}", "i would love you to {c}", "i'd love for you to {c}", "it would be good if you could {c}", "be a love and {c}", "be a dear and {c}", "right then, {c}", "right, {c}", "might i trouble you to {c}", "i wonder if you might {c}", "i wonder if you could {c}", "do {c}", "do please {c}", "would you ever {c}", "before i forget, {c}", "first of all {c}", "you can {c} now please", "you can {c} now", "i should like you to {c}",
        "please please {c}", "i think it's time to {c}", "hey you, {c}", "dear me, {c}", "oh dear, {c}", "good morning, {c}", "good evening, please {c}", "hello, {c}", "hello i want to {c}", "hi, could you {c}", "i want to {c}", "i would like to {c}", "i'd like to {c}", "i wish to {c}", "the thing is, {c}", "listen up, {c}", "ok google {c}", "yo {c}",
        "what i need is for you to {c}", "all i want is for you to {c}", "you may now {c}", "it's about time you {c}", "you forgot to {c}, do it now", "somebody needs to {c} now", "my orders are: {c}", "step one, {c}", "as a first step {c}", "if you would, {c}", "would you kindly {c}", "one thing: {c}", "one more thing, {c}", "now would be a good time to {c}", "feel free to {c}", "let's go and {c}", "try and {c}", "make yourself useful and {c}", "i command you to {c}"]
GERUND_OPEN = ["would you mind {g}", "do you mind {g}", "how about {g}", "could you start by {g}", "can i bother you with {g}", "what about {g} for me", "i would appreciate you {g}", "thank you for {g} now", "mind {g}", "i'd be happy about you {g}"]

PAST = {"put": "put", "shut": "shut", "set": "set", "cut": "cut", "let": "let", "get": "got", "make": "made", "bring": "brought", "stick": "stuck", "run": "ran", "begin": "began", "hold": "held", "send": "sent", "find": "found", "ring": "rang", "tell": "told", "take": "took", "keep": "kept", "leave": "left", "wake": "woke", "light": "lit", "have": "had", "sweep": "swept", "throw": "threw", "draw": "drew", "lift": "lifted"}
PART = {"begin": "begun", "run": "run", "ring": "rung", "take": "taken", "wake": "woken", "throw": "thrown", "draw": "drawn"}
DOUBLE = {"stop", "dim", "drop", "flip", "pop", "skip", "bump", "cut", "get", "put", "set", "shut", "let", "run", "begin", "hop", "mop"}


def past(w):
    if w in PAST:
        return PAST[w]
    if w.endswith("e"):
        return w + "d"
    if w.endswith("y") and w[-2] not in "aeiou":
        return w[:-1] + "ied"
    return (w + w[-1] if w in DOUBLE and not w.endswith("mp") else w) + "ed"


def participle(w):
    return PART.get(w) or past(w)


def gerund(w):
    if w.endswith("e") and not w.endswith("ee"):
        return w[:-1] + "ing"
    return (w + w[-1] if w in DOUBLE and not w.endswith("mp") else w) + "ing"


def inflect(parts, how):
    """The parts with their first word in another form; NoFit if that is not one plain verb."""
    text = parts[0][0]
    m = re.match(r"[a-z]+(?= |$)", text)
    if not m or parts[0][1]:
        raise NoFit
    return [(how(m.group()) + text[m.end() :], None)] + list(parts[1:])


def around(parts, text):
    a, _, b = text.partition("{c}")
    return [(a, None)] + list(parts) + [(b, None)]


def dress(g, c):
    """A command with a reason, a form of address or other words around it: it stays the same command."""
    r = g.r
    x = r.random()
    if not c.parts or c.plan[0] in ("none", "chat", "answer", "cancel", "undo", "repeat"):
        return c
    free = isinstance(c.plan[-1], Span) and any(s in ("what", "item", "name", "list") for s in c.plan if isinstance(s, str))
    if x < 0.3 and not free:
        c.parts = c.parts + [(r.choice(AFTER) % reason(r), None)]
    elif x < 0.55:
        b = r.choice(BEFORE)
        if c.plan[0] == "ask" and any(w in b for w in ("you", "please", " do ")):
            b = "%s, "
        c.parts = [(b % reason(r), None)] + c.parts
    elif x < 0.72 and not free:
        c.parts = c.parts + [(r.choice(ADDRESS), None)]
    elif x < 0.78 and not free and c.plan[0] != "ask":
        c.parts = c.parts + [(r.choice((" ", ", ")) + r.choice(PURPOSE[:18]), None)]
    elif c.imperative and c.plan[0] != "ask":
        if x < 0.93:
            c.parts = around(c.parts, r.choice(OPEN))
        else:
            try:
                ing = inflect(c.parts, gerund)
            except NoFit:
                return c
            a, _, b = r.choice(GERUND_OPEN).partition("{g}")
            c.parts = [(a, None)] + ing + [(b, None)]
        if r.random() < 0.2 and not free:
            c.parts = c.parts + [(r.choice(ADDRESS), None)]
    return c


# ---- what should stay as it is ----
STAY = ["keep {x} {st}", "leave {x} {st}", "please leave {x} {st}", "just leave {x} {st}", "let {x} stay {st}", "{x} stays {st}", "{x} should stay {st}", "{x} can stay {st}", "{x} has to stay {st}", "{x} must remain {st}", "{x} must stay {st}", "i'd rather you left {x} {st}", "i'd be grateful if you left {x} {st}", "no, {x} stays {st}",
        "whatever happens, {x} stays {st}", "make sure {x} stays {st}", "i want {x} to stay {st}", "see that {x} stays {st}", "{x} should remain {st} at all times", "keep {x} {st} at all times", "keep {x} {st} please", "you may leave {x} {st}", "we always leave {x} {st}", "i left {x} {st} on purpose", "{x} is supposed to be {st}, leave it"]
ALONE = ["hands off {x}", "don't touch {x}", "do not touch {x}", "leave {x} alone", "leave {x} as it is", "leave {x} be", "let {x} be", "not {x}", "not {x} please", "not {x}, please", "no, not {x}", "i won't be needing {x}", "i won't need {x} tonight", "we don't need {x} today", "no {x0} today", "skip {x} today", "skip {x} for now", "forget about {x}",
         "never mind {x}", "{x} is fine as it is", "stay away from {x}", "nobody touches {x}", "keep your hands off {x}", "don't mess with {x}", "anything but {x}", "we need no {x0} tonight", "no need for {x} today", "{x} is none of your business", "nothing with {x}, thanks", "{x} doesn't need to do anything", "i told you not {x}"]
NOTHING = ["turn nothing off", "switch nothing on", "turn nothing on", "open nothing", "change nothing", "do nothing", "don't do anything", "leave everything as it is", "leave everything on", "leave everything off", "nothing off please", "start nothing", "stop nothing", "close nothing", "lock nothing", "touch nothing", "keep everything as it is", "don't change anything", "nothing should change", "nothing at all"]
NO_DOING = ["i forbid {g}", "resist {g}", "please resist the urge of {g}", "i'm against {g}", "we are against {g}", "{g} is out of the question", "try to manage without {g}", "get by without {g}", "i refuse {g}", "i ban {g}", "{g} is not an option", "{g} is forbidden", "{g} would be a mistake", "{g} is the last thing i want", "avoid {g}", "refrain from {g}", "there's no point in {g}", "i'm opposed to {g}", "i don't like you {g}", "you have no business {g}", "i'm not in favour of {g}", "keep from {g}", "{g} makes no sense now", "we can do without {g}", "do without {g} today", "i'd hate {g}", "no one benefits from {g}", "{g} is not allowed here", "please don't think of {g}", "hold back on {g}", "i see no reason for {g}", "{g} can wait", "abstain from {g}", "nobody said anything about {g}"]
NO_CMD = ["i forbid you to {c}", "i forbid anyone to {c}", "by no means {c}", "that does not mean you should {c}", "i refuse to {c}", "i'd rather not {c}", "nobody asked you to {c}", "i didn't tell you to {c}", "i never asked you to {c}", "i did not say to {c}", "it's not my intention to {c}", "that doesn't mean that you may {c}", "in no case {c}", "at no time {c}", "i won't allow anyone to {c}", "i don't permit you to {c}", "it is out of place to {c}", "this is no reason to {c}", "you are not to {c}", "you're not supposed to {c}", "i prohibit you to {c}", "it would be wrong to {c}", "who would be so stupid to {c}", "there's no call to {c}"]
STOP_DOING = ["stop {g}", "quit {g}", "stop {g} all the time", "stop {g} please", "please stop {g}", "would you stop {g}", "no more {g}", "there'll be no {g} today", "i'm tired of you {g}", "why do you keep {g}", "enough with {g}", "stop trying {g}", "cut out {g}", "skip {g} today", "no {g} please", "i hate you {g}", "instead of {g} tell me a joke"]


def states_of(t):
    k = t.kind
    if k in ("lock",) or k in LOCKS and k not in OPENS:
        return STATES["lock"]
    if k in OPENS:
        return STATES["open"] + (STATES["lock"] if k in LOCKS else [])
    return STATES["power"] + (STATES["run"] if k in RUNS else [])


def stays(g, draw):
    r = g.r
    x = r.random()
    if x < 0.08:
        return [(r.choice(NOTHING), None)], ["none", "negated"]
    if x < 0.45:
        for _ in range(10):
            c = draw()
            if c.imperative and c.plan[0] in ("on", "off", "open", "close", "lock", "unlock", "set", "up", "down", "start", "play", "mute"):
                if r.random() < 0.35:
                    return around(c.parts, r.choice(NO_CMD)), ["none", "negated"]
                ing = inflect(c.parts, gerund)
                a, _, b = r.choice(STOP_DOING + NO_DOING).partition("{g}")
                return [(a, None)] + ing + [(b, None)], ["none", "negated"]
        raise NoFit
    if r.random() < 0.35:
        sym, parts, cls = g.group(["light", "light", "fan", "heating", "blind", "curtain", "door", "window", "switch", "media"])
        text = "".join(p for p, _ in parts).strip()
        st = STATES["open"] if cls in COVERS or cls in ("door", "window") else STATES["power"]
        x0 = text
    else:
        t = g.thing(None, lambda t: t.kind != "sensor")
        text, st, x0 = g.say(t), states_of(t), " ".join(t.words[0])
    if x < 0.78:
        s = r.choice(r.choice(st)[1])
        return [(r.choice(STAY).replace("{x}", text).replace("{st}", s), None)], ["none", "negated"]
    return [(r.choice(ALONE).replace("{x0}", x0).replace("{x}", text), None)], ["none", "negated"]


# ---- the past ----
PAST_FRAMES = ["i already {p}", "somebody {p}", "someone {p}", "who {p}", "{n} {p}", "{n} {p} yesterday", "i {p} an hour ago", "yesterday i {p}", "we {p} last night", "i just {p}", "she {p} and left", "he {p} before i could say anything", "they {p} again", "after i {p} the phone rang", "when she {p} it was too late", "the cleaner {p}", "last week we {p}",
               "i think {n} {p}", "you {p}, didn't you", "you {p} this morning", "nobody {p}", "the last shift {p}", "my sister {p} by accident", "i {p} myself", "thank you, i {p} already", "it was me who {p}", "once he {p} everything was fine", "the day they {p} it snowed", "i never {p}", "dad {p} twice"]
PAST_FRAMES += ["could it be that {n} {p}", "could it be that someone {p}", "on {d} {n} {p}", "last {d} {n} {p}", "at {t} {n} {p}", "it was {n} who {p}", "could it be {n} {p}", "is it true that {n} {p}", "i heard that {n} {p}", "they say {n} {p}", "{n} {p} at {t}", "on {d} someone {p}", "this morning {n} {p}", "rumour has it {n} {p}", "maybe {n} {p}"]
FUTURE = ["since when can you {c}", "since when do you {c}", "since when does {n} {c}", "is there any harm if we {c}", "the plumber is going to {c} tomorrow", "{n} will {c}", "{n} is going to {c} on {d}", "{n} wants to {c} on {d}", "the electrician will {c} next week", "they plan to {c} in spring", "my brother is about to {c}", "we will have to {c} one day", "{n} promised to {c}", "soon they will {c}", "at what time did {n} {c}", "when did {n} {c}", "how come you {c}", "do the guests ever {c}", "did {n} ever {c}", "is there a risk if we {c}", "what did {n} say when you {c}", "which of you will {c}", "shall i {c}", "shall we {c} later", "{n} may {c} if she likes", "don't you think {n} should {c}"]
PERFECT = ["you could have {p}", "you should have {p}", "i could have {p}", "i have {p}", "i've already {p}", "we have {p} today", "somebody must have {p}", "who has {p}", "{n} has {p}", "she would have {p}", "i had {p} before dinner", "you might have {p}", "i would have {p} myself", "they had just {p}", "you ought to have {p}", "nobody has {p}", "we'd have {p} by now", "has anyone {p}", "have you {p}", "i wish you had {p}", "you've {p}, thanks"]
PASSIVE = ["{x} was {st} at {t}", "{x} was {st} all night", "{x} should have been {st}", "{x} has been {st} since {t}", "{x} went {st} at {t}", "{x} used to be {st}", "{x} was already {st}", "when i came home {x} was {st}", "{x} is {st}, thanks", "{x} had been {st} for days", "{x} started at {t}", "{x} stopped at {t}", "{x} was running when i left", "somebody left {x} {st}", "i found {x} {st}", "{x} is never {st}", "{x} will be {st} when we get there", "i see {x} is {st}", "they found {x} {st}", "{x} is {st} again, typical"]


def named(r, text):
    return text.replace("{n}", r.choice(FIRST)).replace("{d}", r.choice(W.DAYS)).replace("{t}", W.clock(r))


def gone(g, draw):
    r = g.r
    if r.random() < 0.1:
        t = g.thing(None, lambda t: t.kind != "sensor" and t.settable())
        v = g.v(t.settable()[0], t)[2][0][0]
        return [(g.say(t) + r.choice((" runs at ", " is at ", " was at ", " has been running at ", " stands at ", " stood at ")) + v + r.choice(("", " since " + r.choice(W.DAYS), " all day", " now", " again", " and that's fine")), None)], ["none", "reported"]
    if r.random() < 0.3:
        t = g.thing(None, lambda t: t.kind != "sensor")
        s = r.choice(r.choice(states_of(t))[1])
        return [(r.choice(PASSIVE).replace("{x}", g.say(t)).replace("{st}", s).replace("{t}", W.clock(r)), None)], ["none", "reported"]
    for _ in range(12):
        c = draw()
        if c.imperative and c.plan[0] not in ("none", "other", "chat", "answer", "ask", "cancel"):
            if r.random() < 0.25:
                return around(c.parts, named(r, r.choice(FUTURE))), ["none", "reported"]
            perfect = r.random() < 0.45
            p = inflect(c.parts, participle if perfect else past)
            a, _, b = named(r, r.choice(PERFECT if perfect else PAST_FRAMES)).partition("{p}")
            return [(a, None)] + p + [(b, None)], ["none", "reported"]
    raise NoFit


# ---- questions about what could be ----
ABLE = ["can this app {c}", "can this thing {c}", "can one {c} from here", "can you even {c}", "does this app {c}", "do you know how to {c}", "is there a way to {c}", "is there a button to {c}", "would it be wise to {c}", "would it be smart to {c}", "is it wise to {c}", "is it dangerous to {c}", "is it allowed to {c}", "what time do you usually {c}",
        "when do you usually {c}", "how often do you {c}", "how do i {c}", "how can i {c}", "how would i {c}", "do people usually {c}", "do you ever {c}", "who usually {c}", "why would i {c}", "what does it cost to {c}", "can my phone {c}", "can anna {c} too", "do you remember to {c}", "are the kids allowed to {c}", "could one {c}", "will you ever {c}", "what if i {c}", "what happens when i {c}", "do i need a permit to {c}",
        "am i supposed to {c}", "was it right to {c}", "how many times did you {c}", "do you think we should {c}", "which button do i press to {c}", "what would it mean to {c}", "would you {c} if you were me", "is anyone able to {c} remotely", "do you like to {c}", "does it hurt to {c}", "where can i learn to {c}"]
THING_ABLE = ["can {x} reach {v}", "can {x} do {v}", "can {x} even go to {v}", "does {x} work with alexa", "can {x} clean carpets", "is {x} too old", "do you think {x} is too loud", "do you think {x} is too bright", "how old is {x}", "is {x} any good", "is {x} expensive", "who made {x}", "what is {x} for", "does {x} need cleaning", "how much power does {x} take", "where did we buy {x}", "is {x} better than the old one", "can {x} be repaired", "does anyone use {x}", "why is {x} so slow", "why is {x} always on", "what colour was {x} before", "is {x} supposed to make that noise", "can {x} handle {v}", "is {v} too much for {x}", "how loud is {x} at {v}"]
COULD_BE = ["it'd be funny if {p}", "what if {p}", "it would be nice if {p}", "imagine {p}", "i would laugh if {p}", "wouldn't it be great if {p}", "i'd be scared if {p}", "maybe one day {p}"]


def able(g, draw):
    r = g.r
    x = r.random()
    if x < 0.25:
        t = g.thing(None, lambda t: t.kind != "sensor")
        q = r.choice(t.settable() or ["temperature"])
        v = g.v(q, t)[2][0][0]
        return [(r.choice(THING_ABLE).replace("{x}", g.say(t)).replace("{v}", v), None)], ["none", "question"]
    for _ in range(12):
        c = draw()
        if c.imperative and c.plan[0] not in ("none", "other", "chat", "answer", "ask", "cancel", "stop"):
            if x < 0.35:
                t = g.thing(None, lambda t: t.kind != "sensor")
                st = r.choice(r.choice(states_of(t))[1])
                return [(r.choice(COULD_BE).replace("{p}", g.say(t) + r.choice((" turned ", " went ", " were ", " was ")) + st), None)], ["none", "condition"]
            return around(c.parts, r.choice(ABLE)), ["none", "question"]
    raise NoFit


# ---- taken back ----
BACK = ["{c}, cancel that please", "{c}, cancel that", "{c}. cancel", "{c}, strike that", "{c} strike that", "{c}, ah leave it", "{c}, ah, leave it", "{c}, no need", "{c}, wait, don't", "{c} nah, forget it", "{c}, nah", "{c}, no, better not", "{c} hang on, not now", "{c}, hang on, {why}, leave it", "{c}, as you were", "{c}, false alarm", "{c}, no, {why}",
        "{c}, on second thought {why}", "{c}, never mind, i'll do it myself", "{c}, oh it's already done", "{c} oh no, it already is", "{c}, ignore me", "{c}, don't bother", "{c}... no, it's fine", "{c}, no wait, it's fine as it is", "{c} wait wait no", "{c}, no no no", "{c}, hmm, maybe not", "{c}, i take it back", "{c} - actually, leave it", "{c}, sorry, wrong room, forget it",
        "{c}, not really", "{c}. not!", "{c} stop, no, leave it", "{c}, oh forget i asked", "{c}, let it be", "{c}, disregard", "{c}, disregard that", "{c}, undo that before you start", "{c}, no leave it on", "{c}, hold on, leave it off", "{c} uh never mind", "{c}, oh don't", "{c} i'm kidding", "{c}, no that's silly", "{c} wait, not yet", "{c}, not yet though", "{c}, hold that", "{c}, don't do it yet"]


def back(g, draw):
    r = g.r
    for _ in range(12):
        c = draw()
        if c.imperative and c.plan[0] not in ("none", "other", "chat", "answer", "ask", "cancel", "stop"):
            return around(c.parts, r.choice(BACK).replace("{why}", r.choice((reason(r), "we have some", "i'd rather have silence", "there's enough", "i'm still listening", "i still need it", "somebody is in there")))), ["none", "retracted"]
    raise NoFit


IF_BEFORE = ["provided {i}, {c}", "provided that {i}, {c}", "as long as {i}, {c}", "so long as {i} {c}", "assuming {i}, {c}", "supposing {i}, {c}", "only if {i} {c}", "if {i} then {c}", "when {i}, {c}", "whenever {i} {c}", "in case of {e} {c}", "in the case of {e}, {c}", "with {e} coming you would {c}", "should {e} come, {c}", "if there's {e}, {c}", "during {e} {c}", "after {e} you should {c}", "on days when {i}, {c}"]
IF_AFTER = ["{c} provided {i}", "{c} as long as {i}", "{c} only after {i}", "{c} only when {i}", "{c} on the condition {i}", "{c} but only if {i}", "{c} depending on whether {i}", "{c} in case of {e}", "{c} whenever there is {e}", "{c} in times of {e}", "{c} if {i}", "{c} when {i}", "{c} unless {i}", "{c} if {n} agrees", "{c} when {n} says so", "{c} once {n} is back", "{c} if {n} wants it", "{c} but not yet", "{c} later maybe", "{c} sometime", "{c} but not before {i}"]
EVENT = "a storm|an outage|a power cut|a fire|rain|frost|an alarm|a fault|a leak|snow|an emergency|visitors|a heat wave|strong wind".split("|")
THEN = ["{c} or {bad}", "if you {c} {bad}", "if you {c} again {bad}", "once you {c} {bad}", "if i {c} {bad}", "as soon as we {c} {bad}"]
BAD = "the food will spoil|the cat gets out|i'll be angry|we all freeze|the neighbours wake up|everything breaks|i'm leaving|the alarm goes off|we lose everything|she'll never forgive us|i turn off the tv|the plants die|the baby wakes up".split("|")


def condition(g):
    r = g.r
    x = r.random()
    t = g.thing(None, None)
    if x < 0.4:
        return g.say(t) + r.choice((" is ", " is ", " gets ", " goes ")) + r.choice(r.choice(states_of(t))[1])
    if x < 0.65:
        return r.choice(("the temperature", "the humidity", "the pressure", "the level", "the price", "the noise", "the wind", "the load")) + r.choice((" rises", " drops", " falls below ", " goes above ", " is over ", " is under ")).rstrip() + r.choice((" 20", " ten percent", " 3 bar", ""))
    if x < 0.8:
        return r.choice(WHO) + " " + r.choice(IS)
    return r.choice(("it's ", "it is ")) + r.choice(ITS) + r.choice(("", " outside"))


def conditional(g, draw):
    r = g.r
    for _ in range(12):
        c = draw()
        if c.imperative and c.plan[0] not in ("none", "other", "chat", "answer", "ask", "cancel", "stop"):
            if r.random() < 0.15:
                return around(c.parts, r.choice(WISH).replace("{bad}", r.choice(BROKEN))), ["none", "condition"]
            if r.random() < 0.15:
                return around(c.parts, r.choice(THEN).replace("{bad}", r.choice(BAD))), ["none", "condition"]
            f = named(r, r.choice(IF_BEFORE + IF_AFTER)).replace("{i}", condition(g)).replace("{e}", r.choice(EVENT))
            return around(c.parts, f), ["none", "condition"]
    raise NoFit


KITCHEN = "turn the steaks over, they're burning|add a pinch of salt and stir|stir the sauce slowly|set the table for six|turn the page|light the candles on the cake|open the wine and let it breathe|cut the bread|close your eyes and count to ten|put the plates away|bring the chairs inside|switch places with me|start the car, we are late|stop by the shop on the way|raise your glass|lower the sails|lock your bike|mix the eggs with sugar|pour some milk|fold the towels|heat the oil in a pan|drain the pasta|turn around slowly|play with the dog|call the dog|dim sum tonight".split("|")
ABOUT_ROOM = ["i spilled {i} all over {a}", "the kids are in {a}", "there's {i} on the floor in {a}", "we had {i} in {a}", "the lights in that restaurant were way too bright", "somebody spilled {i} in {a}", "{a} smells of {i}", "we moved the sofa to {a}", "i'm in {a}", "they are all in {a}", "my phone is in {a}", "who left {i} in {a}", "i dropped {i} in {a}", "she is asleep in {a}", "we painted {a} last year", "the {i} in {a} is mine"]


def overheard(g, draw):
    r = g.r
    if r.random() < 0.4 or not g.site.areas:
        text = r.choice(KITCHEN)
        return [(text if r.random() < 0.6 else text + ", " + r.choice(FIRST), None)], ["none", "talk"]
    return [(r.choice(ABOUT_ROOM).replace("{a}", g.say_area(r.choice(g.site.areas))).replace("{i}", r.choice(W.ITEMS)), None)], ["none", "talk"]


def no_command(g, draw):
    r = g.r
    return r.choices((stays, gone, able, back, conditional, overheard), (6, 5, 4, 4, 5, 2))[0](g, draw)


# ---- corrections: the same verb, another thing, place or value ----
SLIP = [", no, ", ", no wait, ", " no wait ", ", i mean ", " i mean ", ", or rather ", " or rather ", ", sorry, ", ", make that ", ", no make that ", ", actually make that ", ", hmm, make it ", ", actually ", " uh ", ", scratch that, ", " - scratch that - ", ", no sorry, ", ", oh no, ", ", well, ", " make that ", ", not that, "]
VALUE_SLIP = [", no, ", ", make that ", ", no make that ", ", sorry, ", " sorry ", ", i mean ", ", no wait, ", ", or rather ", ", actually ", ", hmm, make it ", ", better ", " no ", ", wait, ", ", no, make it ", " uh ", ", let's say "]
WHERE = {"on": "on", "off": "off", "open": "open_plain", "close": "close_plain", "lock": "lock", "unlock": "unlock", "start": "start", "stop": "stop"}


def verbs_for(t):
    return (["on", "off"] if t.kind in POWER else []) + (["open", "close"] if t.kind in OPENS else []) + (["lock", "unlock"] if t.kind in LOCKS else []) + (["start"] if t.kind in RUNS else [])


def slip(g):
    r = g.r
    x = r.random()
    if x < 0.45:
        t = g.thing(None, verbs_for)
        v = r.choice(verbs_for(t))
        u = g.thing(None, lambda u: u is not t and v in verbs_for(u))
        c = g.clause(WHERE[v], g.x(t), [v, u])
        c.parts = c.parts + [(r.choice(SLIP) + g.say(u), None)]
        return c
    if x < 0.65:
        if len(g.site.areas) < 2:
            raise NoFit
        a, b = r.sample(g.site.areas, 2)
        on = r.random() < 0.5
        w, w2 = g.say_area(a), g.say_area(b)
        c = g.clause("lights_on" if on else "lights_off", {"in": lambda: [("in " + w, None)], "place": lambda: [(w, None)]}, ["on" if on else "off", "light", b])
        c.parts = c.parts + [(r.choice(SLIP) + r.choice(("", "in ", "the one in ")) + w2, None)]
        return c
    if x < 0.85:
        t = g.thing(None, lambda t: t.kind != "sensor" and t.settable())
        q = r.choice(t.settable())
        k, unit, v = g.v(q, t)
        first = g.v(q, t)[2][0][0]
        said = r.random() < 0.4
        key = "set_q" if said else "set"
        from families import quantity_plan
        from sites import QUANTITY_WORDS
        c = g.clause(key, {**g.x(t), "v": lambda: [(first, None)], "q": lambda: [(r.choice(QUANTITY_WORDS[q]), None)]}, ["set", t] + quantity_plan(t, q, said, unit) + ["to_value", Span(k)])
        if not c.parts[-1][0].endswith(first):
            raise NoFit
        c.parts = c.parts + [(r.choice(VALUE_SLIP), None), (v[0][0], k)]
        return c
    k = g.key("at")
    kind = r.random()
    if kind < 0.5:
        c = g.clause("alarm_set", {"t": lambda: [("at " + W.clock(r), None)], "e": lambda: (_ for _ in ()).throw(NoFit())}, ["alarm", "set_one", "at", Span(k)])
        c.parts = [(p.replace("for at ", "for ").replace("to at ", "to "), t) for p, t in c.parts] + [(r.choice(VALUE_SLIP), None), (W.clock(r), k)]
        return c
    if kind < 0.75:
        c = g.clause("timer_set", {"d": lambda: [(W.duration(r), None)], "name": lambda: (_ for _ in ()).throw(NoFit())}, ["timer", "set_one", "dur", Span(k)])
        c.parts = c.parts + [(r.choice(VALUE_SLIP), None), (W.duration(r), k)]
        return c
    c = g.clause("play", {"what": lambda: [(r.choice(W.MUSIC), None)], "on": lambda: [("", None)], "x": lambda: (_ for _ in ()).throw(NoFit())}, ["play", "what", Span(k)])
    c.parts = c.parts + [(r.choice(VALUE_SLIP) + r.choice(("", "", "play ")), None), (r.choice(W.MUSIC), k)]
    return c


# ---- several with one verb ----
def shared(g):
    """ "turn on the lamp, the fan and the radio"; "kitchen off, office on"; "heating to 18 and the oven to 200" """
    r = g.r
    x = r.random()
    if x < 0.3:
        t = g.thing(None, verbs_for)
        v = r.choice(verbs_for(t))
        pool = [u for u in g.things(None, lambda u: v in verbs_for(u)) if u is not t]
        n = min(len(pool), r.choice((1, 2, 2, 3)))
        if n == 0:
            raise NoFit
        us = r.sample(pool, n)
        w = g.say(t)
        for i, u in enumerate(us):
            w += (r.choice((" and ", ", and ", " and also ", " and then ")) if i == n - 1 else r.choice((", ", " and ", ", "))) + g.say(u)
        return g.clause(WHERE[v], {"x": lambda: [(w, None)], "x0": lambda: [(w, None)]}, [v, t] + us)
    if x < 0.55:
        parts, plan, used = [], [], []
        for i in range(r.choice((2, 2, 3))):
            if r.random() < 0.4 and g.site.areas:
                a = r.choice(g.site.areas)
                v = r.choice(("on", "off"))
                bare = r.random() < 0.5
                w = " ".join(r.choice(a.words)) + ("" if bare else r.choice((" lights", " light", " lighting")))
                if not bare and any(tuple(w.split()) in t.words for t in g.site.things):
                    raise NoFit
                sym, word = [v, "light", a], v
            else:
                t = g.thing(None, lambda t: t not in used and verbs_for(t))
                used.append(t)
                v = r.choice(verbs_for(t))
                w, sym = g.say(t), [v, t]
                word = {"on": "on", "off": "off", "open": "open", "close": r.choice(("closed", "shut")), "lock": "locked", "unlock": "unlocked", "start": "start"}[v]
            parts += [((r.choice((", ", " and ", ", and ", " ", "; ", ". ")) if i else "") + w + " " + word, None)]
            plan += (["sep"] if i else []) + sym
        return Clause(parts, plan)
    if x < 0.8:
        parts, plan, used = [(r.choice(("set ", "set ", "put ", "turn ", "i want ", "")), None)], [], []
        for i in range(2):
            t = g.thing(None, lambda t: t not in used and t.kind != "sensor" and t.settable())
            used.append(t)
            q = t.settable()[0]
            k, unit, v = g.v(q, t)
            from families import quantity_plan
            parts += [((r.choice((" and ", ", ", ", and ")) if i else "") + g.say(t) + r.choice((" to ", " to ", " at ")), None)] + v
            plan += (["sep"] if i else []) + ["set", t] + quantity_plan(t, q, False, unit) + ["to_value", Span(k)]
        return Clause(parts, plan)
    if x < 0.9 and len(g.site.areas) > 1:
        a, b = r.sample(g.site.areas, 2)
        parts, plan = [(r.choice(("set ", "heat ", "i want ", "make ")), None)], []
        for i, area in enumerate((a, b)):
            k = g.key("v")
            parts += [((r.choice((" and ", ", ", ", and ")) if i else "") + g.say_area(area) + r.choice((" to ", " to ", " at ")), None), (W.number(r, r.randint(15, 25)) + (r.choice((" degrees", " degrees", "°")) if i == 0 or r.random() < 0.4 else ""), k)]
            plan += (["sep"] if i else []) + ["set", "climate", area, "temperature", "to_value", Span(k)]
        return Clause(parts, plan)
    t = g.thing(None, lambda t: verbs_for(t))
    v = r.choice(verbs_for(t))
    u = g.thing(None, lambda u: u is not t and v in verbs_for(u))
    ka, kb = g.key("at"), g.key("at")
    c = g.clause(WHERE[v], g.x(t), [v, t, "at", Span(ka), "sep", v, u, "at", Span(kb)])
    c.parts = c.parts + [(" at ", None), (W.clock(r), ka), (r.choice((" and ", ", ")) + g.say(u) + " at ", None), (W.clock(r), kb)]
    return c


KEEP_ON = [" but keep {y} {st}", " but leave {y} {st}", ", leave {y} {st}", " but don't touch {y}", ", but not {y}", " but leave {y} alone", " only, not {y}", " and leave {y} as it is", ", keep {y} {st} though", " but let {y} stay {st}", " and don't touch {y}", ", {y} stays {st}", " but {y} can stay {st}"]


WISH = ["i'd like to {c} but {bad}", "i wanted to {c} but {bad}", "i would {c} but {bad}", "i tried to {c} but {bad}", "we could {c} but {bad}", "i'd love to {c}, only {bad}"]
BROKEN = "the bulb is broken|it's late|there's no power|i can't reach it|nobody is home|it's stuck|the battery is flat|i changed my mind|he said no|it never works|i lost the remote|they're asleep".split("|")


def but(g, draw):
    """ "turn off the tv but keep the radio on"; "don't lock the door, just close it"; "lights off and if it rains close the windows" """
    r = g.r
    x = r.random()
    if x < 0.55:
        t = g.thing(None, verbs_for)
        v = r.choice(verbs_for(t))
        u = g.thing(None, lambda u: u is not t and u.kind != "sensor")
        c = g.clause(WHERE[v], g.x(t), [v, t])
        c.parts = c.parts + [(r.choice(KEEP_ON).replace("{y}", g.say(u)).replace("{st}", r.choice(r.choice(states_of(u))[1])), None)]
        return c
    for _ in range(15):
        c, d = draw(), draw()
        if not (c.imperative and d.imperative) or {c.plan[0], d.plan[0]} & {"none", "other", "chat", "answer", "ask", "cancel", "stop", "play", "message", "announce", "remind", "event", "undo", "repeat"} or c.last or d.last:
            continue
        if x < 0.8:
            d.parts = [(r.choice(("don't ", "do not ", "no, don't ", "please don't ")), None)] + c.parts + [(r.choice((", just ", ", ", " but ", ", instead ", ", rather ", "; ")), None)] + d.parts
            return d
        from talk import IFS
        c.parts = c.parts + [(r.choice((" and if {i} ", " and when {i} ", ", and if {i}, ", ". if {i} ", " and once {i} ")).replace("{i}", r.choice(IFS)), None)] + d.parts
        return c
    raise NoFit


CANNOT = "water the plants|feed the cat|order a pizza|walk the dog|iron my shirt|do the dishes|make the bed|fold the laundry|cook dinner|paint the fence|buy me a car|write my essay|book a flight|do my homework|wash the car|bring me a beer|fix the roof|pay the rent".split("|")
IT = {"on": "turn it on", "off": "turn it off", "open": "open it", "close": "close it", "lock": "lock it", "unlock": "unlock it", "start": "start it"}


def odd(g, draw):
    """A time in front of two commands, "don't lock it, just close it", a part that nobody here can do, two questions at once."""
    r = g.r
    x = r.random()
    if x < 0.3:
        k = g.key("at")
        pre, phrase = W.at(r) if r.random() < 0.7 else ("", W.every(r))
        role = "every" if phrase.startswith(("every", "each", "daily", "on week")) else "at"
        t = g.thing(None, verbs_for)
        u = g.thing(None, lambda u: u is not t and verbs_for(u))
        v, w = r.choice(verbs_for(t)), r.choice(verbs_for(u))
        c, d = g.clause(WHERE[v], g.x(t), [v, t]), g.clause(WHERE[w], g.x(u), [w, u])
        if not (c.imperative and d.imperative):
            raise NoFit
        return Clause([(pre, None), (phrase, k), (r.choice((" ", ", ")), None)] + c.parts + [(" and ", None)] + d.parts, [v, t, role, Span(k), "sep", w, u, role, Span(k)])
    if x < 0.5:
        t = g.thing(None, lambda t: len(verbs_for(t)) > 1)
        v, w = r.sample(verbs_for(t), 2)
        c = g.clause(WHERE[v], g.x(t), [w, t])
        if not c.imperative:
            raise NoFit
        c.parts = [(r.choice(("don't ", "do not ", "please don't ")), None)] + c.parts + [(r.choice((", just ", ", only ", " but ", ", ")) + IT[w], None)]
        return c
    if x < 0.8:
        c = draw()
        if c.plan[0] in ("none", "other", "chat", "answer", "ask", "cancel", "play", "message", "announce", "remind", "event", "add", "undo", "repeat") or c.last or "sep" in c.plan:
            raise NoFit
        return Clause(c.parts + [(r.choice((" and ", " and ", ", then ", " and then ", " and please ")) + r.choice(CANNOT), None)], c.plan + ["sep", "other", "assistant"])
    parts, plan = [], []
    for i, key in enumerate(r.sample(("time", "date", "weather"), 2)):
        parts += ([(" and ", None)] if i else []) + g.clause(key, {}, []).parts
        plan += (["sep"] if i else []) + ["other", key]
    return Clause(parts, plan)


BUT_PLACE = [" except in {a}", " except {a}", " except for {a}", " but not in {a}", " but not {a}", " apart from {a}", " other than in {a}", " but leave {a} {o}", " but keep {a} {o}", ", leave {a} {o}", ", but leave the ones in {a} {o}",
             " except the ones in {a}", ", just not in {a}", ", not in {a} though", ", only leave {a} {o}", " with the exception of {a}", ", {a} stays {o}", " but {a} can stay {o}", " excluding {a}", ", all but {a}"]
BUT_THING = [" except {y}", " but not {y}", " but leave {y} {o}", " but keep {y} {o}", ", leave {y} {o}", " apart from {y}", ", just not {y}", ", {y} stays {o}", " with the exception of {y}", ", all but {y}", " but leave {y} as it is", " but don't touch {y}"]


def exception(g):
    """ "lights off everywhere but leave the kitchen on": a class, less what stands in one room or one thing of it """
    r = g.r
    sym, parts, cls = g.group(["light", "light", "light", "blind", "curtain", "shutter", "fan", "heating", "switch", "media", "everything"])
    if "unknown" in sym or any(isinstance(s, Area) for s in sym):
        raise NoFit
    opens = cls in COVERS
    v = r.choice(("open", "close") if opens else ("off", "off", "on"))
    other = {"on": "off", "off": "on", "open": r.choice(("closed", "shut")), "close": "open"}[v]
    if g.site.areas and r.random() < 0.6:
        a = r.choice(g.site.areas)
        left, tail = [a], r.choice(BUT_PLACE).replace("{a}", g.say_area(a))
    else:
        t = g.thing(None, lambda t: v in verbs_for(t)) if cls == "everything" else g.thing([cls], None)
        left, tail = [t], r.choice(BUT_THING).replace("{y}", g.say(t))
    c = g.clause(WHERE[v], {"x": lambda: parts, "x0": lambda: parts}, [v] + sym + ["except"] + left)
    c.parts = c.parts + [(tail.replace("{o}", other), None)]
    return c


def extra(g, draw):
    f = g.r.choices((slip, shared, but, odd, exception), (5, 5, 3, 3, 3))[0]
    return f(g, draw) if f in (but, odd) else f(g)
