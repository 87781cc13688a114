"""Noise on the words of a sentence: slips of the keyboard, recognizers, hesitation, case and punctuation.

Works on [[word, tags]], so that copied spans stay where they are. A slip that would turn a word into its opposite ("off"
to "of" aside, which people do write) is not made.
"""

KEYS = {"q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij", "i": "uok", "o": "ipl", "p": "ol", "a": "qsz", "s": "adwx", "d": "sfec", "f": "dgrv", "g": "fhtb", "h": "gjyn", "j": "hkum", "k": "jlim", "l": "kop", "z": "ax", "x": "zcs", "c": "xvd", "v": "cbf", "b": "vng", "n": "bmh", "m": "nk"}
KEEP = set("on off up down lock unlock not no don't dont open close in to by at for and stop am pm all any".split())
HEARD = {"lights": ["lites", "light's", "likes"], "light": ["lite", "like"], "off": ["of"], "the": ["da", "teh", "th", "a"], "turn": ["tern", "trun", "turne"], "switch": ["swich", "witch", "swith"], "kitchen": ["kichen", "kitchin", "chicken"], "two": ["to", "too"], "four": ["for"], "eight": ["ate"], "blinds": ["blines", "blind"], "heating": ["heeting", "eating", "heatin"],
         "temperature": ["temprature", "temperture", "tempature"], "degrees": ["degree", "degres", "degress"], "volume": ["volum", "vollume"], "please": ["pls", "plz", "pleas"], "you": ["u", "ya"], "bedroom": ["bed room", "bedrom"], "garage": ["garaje", "garge"], "minutes": ["minuts", "mins", "minute", "mintues", "minuets"], "timer": ["timmer", "time"], "percent": ["per cent", "persent", "pecent", "percnt"],
         "living": ["livin", "liveing"], "room": ["rom", "roon"], "vacuum": ["vaccum", "vacum", "vacuume"], "bathroom": ["bath room", "barthroom"], "dim": ["dimm", "deem"], "pause": ["paws", "pose"], "door": ["dor", "doors"], "window": ["windo", "winder"], "close": ["clothes", "cloze"], "remind": ["rimind"], "reminder": ["remainder"], "alarm": ["alarms", "alam"], "wake": ["weak"], "hall": ["haul", "hole"], "fan": ["van"], "lock": ["log", "look"], "thermostat": ["thermastat"], "what's": ["whats", "wots"], "don't": ["dont"], "it's": ["its"], "i'm": ["im"], "can't": ["cant"], "where's": ["wheres"], "oven": ["often"]}
FILLERS = ["uh", "um", "er", "hmm", "like", "well", "so", "you know", "erm", "eh", "kind of", "oh"]


def typo(r, w):
    i = r.randrange(len(w))
    x = r.random()
    if x < 0.25:
        return w[:i] + w[i + 1 :]
    if x < 0.5 and i + 1 < len(w):
        return w[:i] + w[i + 1] + w[i] + w[i + 2 :]
    if x < 0.75:
        return w[:i] + r.choice(KEYS.get(w[i], w[i])) + w[i + 1 :]
    return w[:i] + w[i] + w[i:]


def add(r, words, level=1.0):
    """The noisy words. Half of the sentences stay as they are, apart from case and punctuation."""
    out = [list(w) for w in words]
    x = r.random()
    if x < 0.35 * level:
        rate = r.choice((0.05, 0.1, 0.15))
        for w in out:
            if r.random() < rate and w[0].isalpha() and len(w[0]) > 3 and w[0].lower() not in KEEP:
                w[0] = typo(r, w[0].lower())
            elif r.random() < rate * 1.5 and w[0] in HEARD and (not w[1] or w[0] in ("degrees", "minutes", "percent")):
                w[0] = r.choice(HEARD[w[0]])
    if r.random() < 0.12 * level:
        for _ in range(r.choice((1, 1, 2))):
            i = r.randrange(len(out) + 1)
            inside = 0 < i < len(out) and out[i - 1][1] & out[i][1]
            if not inside:
                out.insert(i, [r.choice(FILLERS), frozenset()])
    if r.random() < 0.05 * level and len(out) > 3:
        i = r.randrange(len(out) - 1)
        if not out[i][1]:
            out.insert(i, [out[i][0], frozenset()])
    if r.random() < 0.06 * level:
        out = [w for w in out if w[0] not in ("the", "a", "an", "my") or w[1]] or out
    flat = []
    for w, tags in out:
        for p in w.split():
            flat.append([p, tags])
    style = r.random()
    if style < 0.45:  # a recognizer: no punctuation, no case
        for w in flat:
            p = w[0].strip(",;!?\"")
            if p.endswith(".") and not p[:-1].endswith((".m", "a", "p")):
                p = p[:-1]
            w[0] = p or w[0]
        flat = [w for w in flat if w[0] not in ("-", "...")] or flat
    elif style < 0.75:
        flat[0][0] = flat[0][0][:1].upper() + flat[0][0][1:]
        if flat[-1][0][-1:].isalnum() and r.random() < 0.7:
            flat[-1][0] += r.choice(".....!!?") if r.random() < 0.9 else "!!!"
    elif style < 0.78:
        for w in flat:
            w[0] = w[0].upper()
    return flat
