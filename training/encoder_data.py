"""Data of the encoder: label sets, word pieces, augmentation.

A sample is a dict: text words, the name of its source, and where known an intent per label set and a
tag per word. Only training splits are read here; valid splits are read by encoder.py for measuring.
"""

import collections
import json
import random
import re
import unicodedata

import home
import oos
import reply_corpus
import values

POSITIONS = 256
CASES = 3  # what a word's capitals say, see case_of

# Labels of the public sets that mean the same as one of ours, in the combined set. None: left out.
CANONICAL = {
    "PlayMusic": "play_media", "GetWeather": "get_weather", "BookRestaurant": "restaurant_reservation", "AddToPlaylist": "update_playlist",
    "timer": "set_timer", "alarm": "set_alarm", "reminder_update": "set_reminder", "weather": "get_weather", "time": "get_time", "date": "get_date",
    "calendar": "query_calendar", "calendar_update": "add_event", "shopping_list": "query_list", "shopping_list_update": "add_to_list",
    "todo_list": "query_list", "todo_list_update": "add_to_list", "play_music": "play_media", "next_song": "next_track", "change_volume": "set_volume",
    "make_call": "call", "text": "send_message", "greeting": "greet", "thank_you": "thanks", "calculator": "calculate", "what_can_i_ask_you": "help",
    "find_phone": "find", "smart_home": None,
}
DOMAIN = {
    "home": "turn_on turn_off set_brightness set_color set_temperature open close lock unlock start stop set_mode activate_scene arm_alarm disarm_alarm get_state get_sensor smart_home find",
    "time": "set_timer cancel_timer query_timer set_alarm cancel_alarm set_reminder reminder get_time get_date timezone",
    "media": "play_media pause_media next_track set_volume mute update_playlist what_song SearchCreativeWork SearchScreeningEvent RateBook",
    "organizer": "add_to_list remove_from_list query_list query_calendar add_event meeting_schedule schedule_meeting next_holiday order order_status",
    "communication": "send_message call announce share_location",
    "machine": "machine_status start_machine stop_machine set_machine explain_alarm report_fault",
    "weather": "get_weather",
    "talk": "help greet thanks goodbye yes no cancel repeat maybe are_you_a_bot do_you_have_pets fun_fact how_old_are_you meaning_of_life tell_joke what_are_your_hobbies what_is_your_name "
            "where_are_you_from who_do_you_work_for who_made_you flip_coin roll_dice change_accent change_ai_name change_language change_speed change_user_name user_name whisper_mode reset_settings sync_device",
    "knowledge": "calculate definition spelling translate measurement_conversion distance directions current_location traffic",
    "money": "account_blocked apr balance bill_balance bill_due card_declined credit_limit credit_limit_change credit_score damaged_card direct_deposit exchange_rate expiration_date freeze_account improve_credit_score "
             "interest_rate international_fees min_payment new_card order_checks pay_bill pin_change redeem_rewards replacement_card_duration report_fraud report_lost_card rewards_balance rollover_401k routing "
             "spending_history taxes transactions transfer w2 income insurance insurance_change application_status",
    "work": "payday pto_balance pto_request pto_request_status pto_used",
    "food": "accept_reservations calories cancel_reservation confirm_reservation cook_time food_last how_busy ingredient_substitution ingredients_list meal_suggestion nutrition_info recipe restaurant_reservation restaurant_reviews restaurant_suggestion",
    "travel": "book_flight book_hotel car_rental carry_on flight_status international_visa lost_luggage plug_type travel_alert travel_notification travel_suggestion uber vaccines",
    "car": "gas gas_type jump_start last_maintenance mpg oil_change_how oil_change_when schedule_maintenance tire_change tire_pressure",
    "oos": "oos",
}
DOMAIN_OF = {x: d for d, xs in DOMAIN.items() for x in xs.split()}


def combined(label):
    return CANONICAL.get(label, label)


def domain(label):
    if label.startswith("atis_"):
        return "travel"
    return DOMAIN_OF[combined(label) or label]


def rows(path):
    return [json.loads(x) for x in open(path, encoding="utf-8")]


# ------------------------------------------------------------------ word pieces


def basic(text):
    """BERT's uncased splitting: lower case, accents off, punctuation apart."""
    text = unicodedata.normalize("NFD", text.lower())
    out, cur = [], ""
    for c in text:
        cat = unicodedata.category(c)
        if cat == "Mn" or cat[0] == "C" and c not in "\t\n\r":
            continue
        o = ord(c)
        if c.isspace():
            if cur:
                out.append(cur)
            cur = ""
        elif 33 <= o <= 47 or 58 <= o <= 64 or 91 <= o <= 96 or 123 <= o <= 126 or cat[0] == "P" or 0x4E00 <= o <= 0x9FFF or 0x3400 <= o <= 0x4DBF:
            if cur:
                out.append(cur)
            out.append(c)
            cur = ""
        else:
            cur += c
    if cur:
        out.append(cur)
    return out


class Pieces:
    """Greedy longest match, with a cache per whitespace word."""

    def __init__(self, vocab):
        self.list = list(vocab)
        self.id = {t: i for i, t in enumerate(self.list)}
        self.cache = {}
        self.cls, self.sep, self.pad, self.unk, self.mask = (self.id[x] for x in ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"))

    def word(self, w):
        got = self.cache.get(w)
        if got is None:
            got = []
            for part in basic(w):
                got += self._pieces(part)
            self.cache[w] = got = got or [self.unk]
        return got

    def _pieces(self, s):
        if len(s) > 100:
            return [self.unk]
        out, at = [], 0
        while at < len(s):
            end = len(s)
            while end > at:
                t = ("##" if at else "") + s[at:end]
                if t in self.id:
                    break
                end -= 1
            if end == at:
                return [self.unk]
            out.append(self.id[t])
            at = end
        return out

    def encode(self, words, limit=POSITIONS):
        """(ids with [CLS] and [SEP], index of each word's first piece or -1 when cut off)"""
        ids, first = [self.cls], []
        for w in words:
            p = self.word(w)
            if len(ids) + len(p) > limit - 1:
                first.append(-1)
                continue
            first.append(len(ids))
            ids += p
        return ids + [self.sep], first


def case_of(word):
    """0: no capital, 1: only the first letter is one, 2: any other. Only ASCII letters count."""
    letters = [c for c in word if "A" <= c <= "Z" or "a" <= c <= "z"]
    capitals = sum(c <= "Z" for c in letters)
    return 0 if capitals == 0 else 1 if capitals == 1 and letters[0] <= "Z" else 2


def cases(words, first, n):
    """The case of each of n pieces, given the first piece of every word; [CLS] and [SEP] have none."""
    out = [0] * n
    at = [(f, w) for f, w in zip(first, words) if f >= 0]
    for (f, w), (end, _) in zip(at, at[1:] + [(n - 1, "")]):
        out[f:end] = [case_of(w)] * (end - f)
    return out


def recase(rng, words):
    """Sometimes puts all words in lower or upper case, so that names are found in such texts too."""
    k = rng.random()
    return [w.lower() for w in words] if k < 0.12 else [w.upper() for w in words] if k < 0.15 else words


def choose_vocab(base, texts, size):
    """The pieces of the base vocabulary that our texts use most, with all ASCII characters kept."""
    full = Pieces(base)
    keep = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    keep += [t for t in base if len(t) == 1 and t.isascii() or len(t) == 3 and t.startswith("##") and t[2].isascii()]
    keep += [t for t in "°€£é–’“”" if t in full.id]
    have = set(keep)
    for share in (0.85, 1.0):  # twice: dropped words split into pieces, which then count too
        pieces = full if share < 1 else Pieces(keep)
        n = collections.Counter()
        for weight, ts in texts:
            for w, k in collections.Counter(w for t in ts for w in t.split()).items():
                for i in pieces.word(w):
                    n[pieces.list[i]] += k * weight
        if share < 1:
            for t, _ in n.most_common():
                if len(keep) >= int(size * 1.4):
                    break
                if t not in have:
                    have.add(t)
                    keep.append(t)
        else:
            must = [t for t in keep if len(t) == 1 or len(t) == 3 and t.startswith("##") or t.startswith("[") and t.endswith("]")]
            rest = [t for t, _ in n.most_common() if t not in set(must)]
            keep = must + rest[: size - len(must)]
    order = {t: i for i, t in enumerate(base)}
    return sorted(keep, key=lambda t: order[t])


# ------------------------------------------------------------------ samples


def sample(words, source, tags=None, **labels):
    return dict(words=words, source=source, tags=tags, labels=labels)


def spans_to_tags(text, spans):
    """Words of a text and their BIO tags; a word belongs to the span that holds its first character."""
    words, tags = [], []
    for m in re.finditer(r"\S+", text):
        t = "O"
        for a, b, tag in spans:
            if a <= m.start() < b:
                t = ("B-" if m.start() == a or not any(a <= x < m.start() for x in (y.start() for y in re.finditer(r"\S+", text))) else "I-") + tag
        words.append(m.group())
        tags.append(t)
    return words, tags


def punctuate(rng, words, tags):
    """Imitates typed text: occasional capitals, commas and full stops."""
    words = list(words)
    k = rng.random()
    if k < 0.25 and words:
        words[0] = words[0][:1].upper() + words[0][1:]
        words[-1] += rng.choice([".", "!", "?", "."])
    elif k < 0.35:
        words[-1] += rng.choice([".", "?", "!"])
    return words, tags


def home_sample(rng):
    k = rng.random()
    if k < 0.72:
        text, spans, act = home.command(rng)
        lab = dict(combined=act, router=domain(act))
    elif k < 0.84:
        text, spans, act = home.two_commands(rng)
        lab = {}
    else:
        text, spans, act = home.pii(rng)
        lab = {}
    words, tags = spans_to_tags(text, spans)
    words, tags = punctuate(rng, words, tags)
    return sample(words, "home", tags, **lab)


OPEN = {"object_name", "entity_name", "artist", "album", "track", "movie_name", "playlist", "restaurant_name", "geographic_poi", "poi", "location_name", "served_dish"}


class Slots:
    """Values of each slot type seen in a training split, for swapping."""

    def __init__(self, data):
        self.values = collections.defaultdict(list)
        for r in data:
            for t, a, b in chunks(r["tags"]):
                self.values[t].append(r["tokens"][a:b])

    def swap(self, rng, words, tags, p, p_new):
        out_w, out_t, at = [], [], 0
        for t, a, b in chunks(tags):
            out_w += words[at:a]
            out_t += tags[at:a]
            v = words[a:b]
            k = rng.random()
            if k < p and self.values[t]:
                v = rng.choice(self.values[t])
            elif k < p + p_new and t in OPEN:
                v = values.novel(rng, 4).lower().split()
            out_w += v
            out_t += ["B-" + t] + ["I-" + t] * (len(v) - 1)
            at = b
        return out_w + words[at:], out_t + tags[at:]


def chunks(tags):
    """(type, from, to) of BIO tags, as conlleval reads them."""
    out, cur = [], None
    for i, t in enumerate(list(tags) + ["O"]):
        if cur and (t[0] != "I" or t[2:] != cur[0]):
            out.append((cur[0], cur[1], i))
            cur = None
        if t[0] == "B" or t[0] == "I" and cur is None:
            cur = (t[2:], i)
    return out


POLITE = [["please"], ["hey"], ["can", "you"], ["could", "you"], ["i", "want", "to", "know"], ["tell", "me"], ["ok"], ["so"], ["hi"], ["would", "you"], ["i", "need", "to", "know"]]
KEYS = {"a": "qsz", "b": "vn", "c": "xv", "d": "sf", "e": "wr", "f": "dg", "g": "fh", "h": "gj", "i": "uo", "k": "jl", "l": "k", "m": "n", "n": "bm", "o": "ip", "p": "o", "r": "et", "s": "ad", "t": "ry", "u": "yi", "v": "cb", "w": "qe", "y": "tu"}


def typo(rng, w):
    if len(w) < 4 or not w.isalpha():
        return w
    i = rng.randrange(1, len(w) - 1)
    k = rng.random()
    if k < 0.3:
        return w[:i] + w[i + 1] + w[i] + w[i + 2 :]
    if k < 0.6:
        return w[:i] + w[i + 1 :]
    if k < 0.8:
        return w[:i] + w[i] + w[i:]
    return w[:i] + rng.choice(KEYS.get(w[i], w[i])) + w[i + 1 :]


def noise(rng, words, tags, p_typo=0.02, p_drop=0.0):
    out_w, out_t = [], []
    for i, w in enumerate(words):
        if p_drop and len(words) > 3 and (tags is None or tags[i] == "O") and rng.random() < p_drop:
            continue
        out_w.append(typo(rng, w) if rng.random() < p_typo else w)
        out_t.append(tags[i] if tags else "O")
    return out_w, out_t if tags else None


def train_samples(data, seed, n_aug, n_home, n_oos):
    """The labelled training data with its augmented copies."""
    rng = random.Random(seed)
    t = json.load(open(data / "reply-texts.json"))
    values.set_open_values(t["words"], t["names"], t["titles"])
    out = []
    for name in ("snips", "atis"):
        data_rows = rows(data / f"{name}.train.jsonl")
        slots = Slots(data_rows)
        for r in data_rows:
            lab = {name: r["label"], "router": domain(r["label"])}
            c = combined(r["label"])
            if c and "#" not in c:
                lab["combined"] = c
            out.append(sample(r["tokens"], name, r["tags"], **lab))
            for _ in range(n_aug):
                w, tg = slots.swap(rng, r["tokens"], r["tags"], 0.55, 0.15 if name == "snips" else 0.0)
                w, tg = noise(rng, w, tg, 0.012, 0.015)
                if rng.random() < 0.12:
                    pre = rng.choice(POLITE)
                    w, tg = pre + w, ["O"] * len(pre) + tg
                elif rng.random() < 0.08:
                    w, tg = w + ["please"], tg + ["O"]
                if w:
                    out.append(sample(w, name, tg, **lab))
    for r in rows(data / "clinc150.train.jsonl"):
        lab = dict(clinc150=r["label"], router=domain(r["label"]))
        if combined(r["label"]):
            lab["combined"] = combined(r["label"])
        words = r["text"].split()
        out.append(sample(words, "clinc150", None, **lab))
        for _ in range(n_aug):
            w, _x = noise(rng, words, None, 0.03, 0.05)
            if rng.random() < 0.15:
                w = rng.choice(POLITE) + w
            elif rng.random() < 0.1:
                w = w + rng.choice([["please"], ["thanks"], ["now"], ["for", "me"]])
            out.append(sample(w, "clinc150", None, **lab))
    lab = dict(clinc150="oos", combined="oos", router="oos")
    known = [r["text"] for r in rows(data / "clinc150.oos_train.jsonl")]
    known = sorted({*known, *rows(data / "oos_more.jsonl")})
    for x in known * (4 * (n_aug + 1)):
        w, _x = noise(rng, x.split(), None, 0.03, 0.05)
        out.append(sample(w, "oos", None, **lab))
    asked = rows(data / "questions.jsonl")
    for _ in range(n_oos):
        k = rng.random()
        x = oos.question(rng) if k < 0.45 else rng.choice(asked) if k < 0.94 else rng.choice(t["plain"]).lower()
        out.append(sample(x.split()[:40], "oos", None, **lab))
    tweets, names = rows(data / "wnut17.train.jsonl"), rows(data / "names.train.jsonl")
    slots, found = Slots(tweets), Slots(names)
    for ours, theirs in (("person", "PER"), ("location", "LOC")):
        slots.values[ours] += found.values[theirs]
    for r in tweets:
        w, tg = r["tokens"][:60], r["tags"][:60]
        if n_aug:
            w, tg = slots.swap(rng, w, tg, 0.5, 0.0)
            w, tg = noise(rng, w, tg, 0.01, 0.02)
            w = recase(rng, w)
        out.append(sample(w[:60], "wnut17", tg[:60]))
    for r in names:
        w, tg = r["tokens"], r["tags"]
        if n_aug:
            w, tg = found.swap(rng, w, tg, 0.4, 0.0)
            w = recase(rng, w)
        out.append(sample(w[:60], "names", tg[:60]))
    out += [home_sample(rng) for _ in range(n_home)]
    return out


def held_out_intents(data):
    """27 of the 77 banking intents: their texts are in no training data, the embedder is measured on them."""
    names = sorted({r["label"] for r in rows(data / "banking77.train.jsonl")})
    random.Random(7).shuffle(names)
    return set(names[:27])


def held_out_pairs(pairs):
    """(pairs to train on, pairs to choose settings by): of one kind that has no near copies among the others."""
    held = {i for i, x in enumerate(pairs) if x[2] == "arxiv" and i % 67 == 0}
    return [x for i, x in enumerate(pairs) if i not in held], [pairs[i] for i in sorted(held)]


def plain_texts(data, stories, seed, n_generated):
    """Unlabelled text for distillation; leaves out what the embedder is measured on."""
    rng = random.Random(seed)
    t = json.load(open(data / "reply-texts.json"))
    reply_corpus.TEXTS.update(oos=t["oos"], labels=t["labels"], plain=t["plain"], talk=[tuple(x) for x in t["talk"]])
    values.set_open_values(t["words"], t["names"], t["titles"])
    skip = held_out_intents(data)
    out = [r["text"] for s in ("snips", "atis", "clinc150") for r in rows(data / f"{s}.train.jsonl")]
    out += [r["text"] for r in rows(data / "banking77.train.jsonl") if r["label"] not in skip] * 2
    out += [r["text"] for r in rows(data / "wnut17.train.jsonl")]
    split = lambda p: [s for s in re.split(r"(?<=[.!?]) +(?=[A-Z\"])", p) if 12 < len(s) < 600]
    paras = [p for a in t["wiki"] for p in a]
    out += [s for p in paras for s in split(p)] * 2 + [p[:1100] for p in paras]
    out += rows(data / "more_texts.jsonl") + rows(data / "questions.jsonl")
    pairs = held_out_pairs(rows(data / "pairs.jsonl"))[0]
    out += [x for q, p, _ in pairs for x in (q, p)] + [s for _, p, _ in pairs for s in rng.sample(split(p), min(1, len(split(p))))]
    out += [x for q, a in t["talk"] for x in (q, a)]
    if stories.exists():
        for s in open(stories).read().split("\n")[: n_generated // 8]:
            parts = split(s.replace("\\n", " "))
            out += rng.sample(parts, min(5, len(parts)))
            if len(parts) > 4 and rng.random() < 0.2:
                out.append(" ".join(parts[:4]))
    for _ in range(n_generated):
        k = rng.random()
        if k < 0.3:
            out.append(home.command(rng)[0])
        elif k < 0.5:
            out.append(oos.question(rng))
        elif k < 0.6:
            out.append(reply_corpus.fact(rng)[rng.randint(0, 1)])
        else:
            c, r, _m = reply_corpus.sample(rng)
            out.append(r if len(r) > 12 else c)
    rng.shuffle(out)
    return out
