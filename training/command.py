#!/usr/bin/env python3
"""Trains command, the model behind `shoal ask`: which words are a command, which action it is, and its slots.

    training/command.py texts --data DIR   # .cache/train-command/overheard.json: public talk and text without commands
    training/command.py train              # .cache/train-command/model: a BERT folder; four minutes on one H200
    build/shoal model quantize .cache/train-command/model models/command.gguf --type q8_0

It starts from the body of models/encoder and learns all heads at once: the speech act of every word and of the whole
text (training/speech.py), intents, router and entities of the home (training/home.py) in many more wordings than the
shared encoder has seen. The shared encoder stays what it is.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import encoder_data as ed  # noqa: E402
import home  # noqa: E402
import speech  # noqa: E402
import values as v  # noqa: E402

SEED = 4711
HERE = pathlib.Path(__file__).parent
WIDTH, WORDS = 72, 60
TAGS = ["O"] + [p + x for x in ("command", "ask", "negate", "suppose", "report", "retract") for p in ("B-", "I-")]
ACTS = ["nothing", "command"]
ENTITIES = ["O"] + [p + x for x in sorted(home.TAGS) for p in ("B-", "I-")]
QUESTION = re.compile(r"^(so |and |well |hey |ok )?(what|how|when|where|why|who|which|is|are|was|were|does|do|did|has|have|will it|am|whose)\b", re.I)


# ------------------------------------------------------------------ public texts


def talk(folder):
    out = []
    for path in sorted(folder.glob("*.yml")):
        for line in open(path, encoding="utf-8"):
            m = re.match(r"^\s*- (- )?(.+)$", line.rstrip("\n"))
            if m and 3 <= len(m[2]) <= 200 and "|" not in m[2]:
                out.append(m[2].strip("'\""))
    return out


def texts(a):
    data, work = pathlib.Path(a.data), pathlib.Path(a.work)
    work.mkdir(parents=True, exist_ok=True)
    nothing = talk(data / "text/smalltalk")
    for line in open(data / "text/wikitext2-valid.txt", encoding="utf-8"):
        if not line.startswith(" ="):
            nothing += [s for s in re.split(r"(?<=[.!?]) +", line.strip().replace("<unk>", "it").replace(" @-@ ", "-").replace(" n't", "n't").replace(" 's", "'s")) if 20 < len(s) < 220]
    play = open(data / "text/tinyshakespeare.txt", encoding="utf-8").read().split("\n\n")
    nothing += [" ".join(x.split("\n")[1:])[:200] for x in play if "\n" in x][:6000]
    nothing += [r["text"] for r in ed.rows(data / "nlu/wnut17/train.jsonl")]
    nothing += [r["text"] for r in ed.rows(data / "nlu/banking77/train.jsonl")][::4]
    nothing += [r["text"] for r in ed.rows(data / "nlu/clinc150/oos_train.jsonl")]
    said = [(r["text"], ed.combined(r["label"])) for r in ed.rows(data / "nlu/snips/train.jsonl")]
    clinc = ed.rows(data / "nlu/clinc150/train.jsonl")
    ours = set(home.LABELS)
    said += [(r["text"], ed.combined(r["label"])) for r in clinc if ed.combined(r["label"]) in ours]
    said = [(t, x) for t, x in said if x in ours]
    other = [(r["text"], r["label"]) for r in clinc if ed.combined(r["label"]) not in ours and r["label"] != "smart_home"]
    json.dump(dict(nothing=nothing, said=said, other=other), open(work / "overheard.json", "w"))
    print({k: len(x) for k, x in dict(nothing=nothing, said=said, other=other).items()})


# ------------------------------------------------------------------ samples


MODIFIERS = """silver|golden|oak|wooden|glass|antique|smart|old|new|big|small|left|right|upper|lower|rear|mini|portable|retro|brass|copper|marble|round|square|hanging|folding|sliding|double|main|spare|second|
third|first|outer|inner|guest|nightstand|cupboard|shelf|mirror|aquarium|crystal|paper|salt|moon|tree|flower|cat|dog|baby|kids|grandma's|anna's|tom's|samsung|philips|sony|ikea|bosch|dyson|white|black|red|
green|striped|heavy|thick|blackout|wool|silk|cotton|west|south|east|side|service|delivery|pedestrian|cargo|fire|emergency|wine|tool|storage|pool|pond|camping|turbo|super|pro|max""".replace("\n", "").split("|")
# machines that are not household devices: "turn on the oven" is about a device
v.MACHINES[:] = [x for x in v.MACHINES if x not in ("fan", "oven", "freezer")]
BARE = [x for x in v.MACHINES + speech.THINGS if x not in set(v.LIGHTS + v.SWITCHES + v.CLIMATE + v.RUNNABLE) and x not in ("fan", "drill", "water tank")]
_fill = home.fill_slot


def fill_slot(name, kind, rng):
    """Names of unlisted devices: a word before a known kind."""
    out = _fill(name, kind, rng)
    if name == "value" and kind == "percent" and rng.random() < 0.12:
        return rng.choice(["half", "halfway", "half way", "a quarter", "three quarters"])
    if name == "value" and kind == "temperature" and rng.random() < 0.08:
        return rng.choice(["nineteen", "twenty", "twenty one", "18", "21"]) + " and a half" + rng.choice(["", " degrees"])
    if name == "machine" and rng.random() < 0.35:
        return rng.choice(BARE)
    if name == "device" and rng.random() < 0.22 and len(out.split()) == 1:
        out = rng.choice(MODIFIERS) + " " + out
    return out


home.fill_slot = fill_slot
# Wordings that the shared encoder was not trained on.
EXTRA = {
    "set_temperature": ["(lower|raise|reduce|increase|drop) (the temperature|the heating) by {value}", "(lower|raise|reduce|increase) the temperature in {the_room} by {value}", "turn {dev} (up|down) by {value}",
                        "turn (up|down) {dev}", "make it (a bit|a little|slightly|) (warmer|cooler|colder)( in {the_room}|)", "put {dev} on {value}", "set the temperature (of|in) {the_room} to {value}", "set {the_room} temperature to {value}", "(make|set) {the_room} (warmer|cooler)", "warm up {the_room} to {value}"],
    "set_brightness": ["(dim|brighten) {dev} by {value}", "(increase|reduce|raise|lower) the brightness of {dev} by {value}", "make {dev} (a bit|a little) (brighter|darker)"],
    "set_volume": ["turn (the volume|{dev}) (up|down) by {value}", "set the volume to {value}", "(a bit|a little) (louder|quieter)"],
    "cancel_alarm": ["(cancel|delete|clear|remove|turn off|switch off) (all |)(my |the |)alarms( for tomorrow|)", "(delete|cancel|remove|clear) my alarm( for {time}| at {time}|)", "turn off (my|the) alarm for {time}"],
    "cancel_timer": ["turn off the timer", "(cancel|stop|clear) all timers"],
    "turn_off": ["turn off {dev}", "turn {dev} off", "switch off {dev}", "switch {dev} off", "turn off {dev}", "lights out in {the_room}", "turn off everything", "(turn|switch) everything off( in {the_room}|)", "{dev} off (now|please)"],
    "turn_on": ["turn on {dev}", "turn {dev} on", "switch on {dev}", "switch {dev} on", "turn on {dev}", "(could|can) (we|i) have {dev} on", "{dev} on (now|please)", "switch {dev} on in {the_room}"],
    "start_machine": ["start {machine}", "start {machine}", "run {machine}", "start up {machine}"],
    "stop_machine": ["stop {machine}", "stop {machine}", "stop {machine} now", "halt {machine}", "{machine} stop", "shut down {machine}"],
    "set_machine": ["set {machine} {sensor} to {value}", "set the {sensor} of {machine} to {value}"],
    "play_media": ["turn on some music", "play some music in {the_room}"],
    "open": ["open {dev} {value}", "open {dev} to {value}"],
    "report_fault": ["{machine} is leaking", "there is a leak at {machine}"],
    "call": ["call {person}", "ring up {person}"],
}
for _a, _say in EXTRA.items():
    home.ACTIONS[_a]["say"] = home.ACTIONS[_a]["say"] + _say * 2
CANNOT = ["(cancel|delete|move|postpone|reschedule) (my|the) {event}( {date}|)", "(cancel|delete|change) my reminder to {task}", "(cancel|delete) the meeting with {person}", "rename {device}", "(sell|buy|repair|paint|clean up) {device}"]


def cannot(rng):
    """Impossible requests: out of scope, though worded like commands."""
    pieces = speech.expand(rng.choice(CANNOT), rng, lambda n: [(_fill(n, "", rng), None)])
    return "".join(p for p, _ in pieces)


def later(rng, text, spans, act):
    """Some commands say when, or for how long."""
    if home.home_table.ACTIONS.get(act, {}).get("can_wait") and rng.random() < 0.15 and not any(t in ("time", "date", "duration") for _, _, t in spans):
        word, tag, value = rng.choice([("in", "duration", v.duration(rng)), ("for", "duration", v.duration(rng)), ("at", "time", v.time_phrase(rng)), ("at", "time", v.time_phrase(rng)), ("", "date", rng.choice(["tomorrow", "tonight"]))])
        at = len(text) + len(word) + (2 if word else 1)
        text = f"{text} {word} {value}" if word else f"{text} {value}"
        spans = spans + [(at, at + len(value), tag)]
    return text, spans


WRAPPERS = [t for t in speech.TEMPLATES["command"] if t.count("{vp}") + t.count("{ing}") == 1 and t.count("<") == 1 and not any(x in t for x in ("{p}", "{np}", "remind", "announce", "text"))]


def whole(text, label):
    w = text.split()[:WORDS]
    return w, ["O"] * len(w) if not label else [("B-" if i == 0 else "I-") + label for i in range(len(w))]


def with_articles(rng, text, spans):
    """"start the compressor": a machine without a number has an article."""
    for i, (a, b, tag) in enumerate(spans):
        if tag == "machine" and not any(c.isdigit() for c in text[a:b]) and rng.random() < 0.8:
            the = rng.choice(["the ", "the ", "the ", "our ", "that "])
            text = text[:a] + the + text[a:]
            spans = [(x + len(the), y + len(the), t) if x >= a else (x, y, t) for x, y, t in spans]
    return text, spans


def command(rng):
    """One command or question, often with words around it: words, speech acts, intent, entities."""
    text, spans, act = home.command(rng, None, rng.random() < 0.6)
    text, spans = later(rng, *with_articles(rng, text, spans), act)
    first, _, rest = text.partition(" ")
    label = "command" if act in home.IMPERATIVE or act == "next_track" else "ask" if act.startswith(("get_", "query_", "machine_status", "explain_")) or act in ("find", "calculate") else None
    if act in home.IMPERATIVE and rng.random() < 0.6:
        t = rng.choice(WRAPPERS)
        body = text
        if "{ing}" in t:
            if first not in speech.VERBS:
                return command(rng)
            body = speech.VERBS[first][0] + " " + rest
            spans = [(a + len(body) - len(text), b + len(body) - len(text), x) for a, b, x in spans]
        t = "".join(p for p, _ in speech.expand(t[3:].replace("{vp}", "\0").replace("{ing}", "\0"), rng, lambda n: [(speech.fill(rng, n), None)]))
        at = t.index("\0")
        text = t.replace("\0", body)
        spans = [(a + at, b + at, x) for a, b, x in spans]
    w, ents = ed.spans_to_tags(text, spans)
    w, ents = ed.punctuate(rng, w, ents)
    return w, whole(" ".join(w), label)[1] if label else None, act, ents


def sample(rng, t):
    """(words, speech acts or None, intent or None, entities or None)"""
    k = rng.random()
    acts = intent = ents = None
    if k < 0.46:
        w, acts = speech.sample(rng)
    elif k < 0.76:
        w, acts, intent, ents = command(rng)
    elif k < 0.79:
        text, spans, _ = home.two_commands(rng)
        w, ents = ed.spans_to_tags(text, spans)
    elif k < 0.84:
        text, intent = rng.choice(t["said"])
        w, acts = whole(text, "ask" if QUESTION.match(text) else "command")
        if intent not in home.IMPERATIVE and not QUESTION.match(text):
            acts = None
    elif k < 0.88:
        text = rng.choice(t["other"])[0] if rng.random() < 0.85 else cannot(rng)
        w, intent = text.split()[:WORDS], home.OOS
    elif k < 0.97:
        w, acts = whole(rng.choice(t["nothing"]), None)
        intent = home.OOS
    else:  # a longer talk
        w, acts = whole(" ".join(rng.choice(t["nothing"]) for _ in range(2)), None)
    if rng.random() < 0.3:
        at = list(range(len(w)))
        w, at = ed.noise(rng, w, at, 0.04, 0.0)
    if rng.random() < 0.3:
        w = [x.lower() for x in w]
    return w[:WORDS], acts, intent, ents


def router_of(intent):
    return ed.domain(intent) if intent != home.OOS else "oos"


def shard(job):
    import numpy as np

    seed, n, work = job
    t = json.load(open(pathlib.Path(work) / "overheard.json"))
    speech.OVERHEARD[:] = [(x, None) for x in t["nothing"] if len(x.split()) < 14]
    rng = random.Random(seed)
    pieces = ed.Pieces((HERE / "data" / "encoder-vocab.txt").read_text().split("\n")[:-1])
    at, ent_at = {x: i for i, x in enumerate(TAGS)}, {x: i for i, x in enumerate(ENTITIES)}
    intent_at, router_at = {x: i for i, x in enumerate(home.LABELS)}, {x: i for i, x in enumerate(ed.DOMAIN)}
    a = dict(ids=np.zeros((n, WIDTH), np.int16), first=np.full((n, WORDS), -1, np.int16), tag=np.full((n, WORDS), -1, np.int8), ent=np.full((n, WORDS), -1, np.int8),
             act=np.full(n, -1, np.int8), intent=np.full(n, -1, np.int16), router=np.full(n, -1, np.int8))
    for i in range(n):
        w, acts, intent, ents = sample(rng, t)
        x, f = pieces.encode(w, WIDTH)
        a["ids"][i, : len(x)] = x
        for j, p in enumerate(f):
            if p >= 0:
                a["first"][i, j] = p
                if acts and j < len(acts):
                    a["tag"][i, j] = at[acts[j]]
                if ents and j < len(ents):
                    a["ent"][i, j] = ent_at[ents[j]]
        if acts:
            a["act"][i] = any(y.endswith("command") for y in acts)
        if intent:
            a["intent"][i], a["router"][i] = intent_at[intent], router_at[router_of(intent)]
    return a


# ------------------------------------------------------------------ training


def train(a):
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file

    import encoder as en

    F, nn = torch.nn.functional, torch.nn
    torch.manual_seed(SEED)
    device, work, t0 = a.device, pathlib.Path(a.work), time.time()
    say = lambda *x: print(f"[{time.time() - t0:6.1f}]", *x, flush=True)
    with multiprocessing.Pool(a.workers) as pool:
        parts = pool.map(shard, [(SEED + i, a.samples // a.shards, a.work) for i in range(a.shards)])
    d = {k: torch.from_numpy(np.concatenate([p[k] for p in parts])).to(device) for k in parts[0]}
    ids, n_act, n_intent, n_tag = d["ids"], len(ACTS), len(home.LABELS), len(TAGS)
    say("samples", len(ids), "commands", float((d["act"] == 1).float().mean()))
    w = {k: x.float() for k, x in load_file(str(HERE.parent / "models/encoder/model.safetensors")).items()}
    model = en.Tasks(en.STUDENT, ed_vocab(), n_act + n_intent + len(ed.DOMAIN), n_tag + len(ENTITIES))
    body = {k[5:]: x for k, x in w.items() if k.startswith("bert.")}
    model.bert.load_state_dict(body)
    model.to(device).train()
    model.bert.drop = 0.1
    # the last samples are held out
    held = torch.arange(len(ids) - 20000, len(ids), device=device)
    n = len(ids) - 20000
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW([dict(params=decay, weight_decay=0.02), dict(params=rest, weight_decay=0.0)], lr=a.lr, betas=(0.9, 0.98), fused=device == "cuda")
    ema = None
    gen = torch.Generator(device=device).manual_seed(SEED)

    def some(x, y, **more):
        m = y >= 0
        return F.cross_entropy(x[m], y[m], **more) if bool(m.any()) else 0.0

    def loss_of(i):
        b = {k: x[i].long() for k, x in d.items()}
        h, _ = model.bert(b["ids"])
        lt = model.tags(en.first_pieces(h, b["first"])).float()
        lc = model.intents(h).float()
        la, li, lr = lc[:, :n_act], lc[:, n_act : n_act + n_intent], lc[:, n_act + n_intent :]
        loss = some(lt[..., :n_tag], b["tag"], label_smoothing=0.02) + 0.5 * some(la, b["act"], label_smoothing=0.01) + 0.7 * some(li, b["intent"]) + 0.2 * some(lr, b["router"]) + some(lt[..., n_tag:], b["ent"])
        return loss, lt, la, li, b

    for step in range(a.steps):
        done = step / a.steps
        lr = a.lr * min(1.0, step / 300) * (1 - done) ** 1.0
        for g in opt.param_groups:
            g["lr"] = lr
        i = torch.randint(0, n, (a.batch,), generator=gen, device=device)
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(i)[0]
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step >= a.steps // 2:
            state = {k: x.detach() for k, x in model.state_dict().items()}
            if ema is None:
                ema = {k: x.clone().float() for k, x in state.items()}
            else:
                for k, x in state.items():
                    ema[k].lerp_(x.float(), 0.002)
        if step % 500 == 0:
            say("step", step, "loss", round(float(loss.detach()), 4))
    model.load_state_dict(ema)
    model.eval()
    got = dict.fromkeys(("words", "n_words", "acted", "nothing", "missed", "commands", "intents", "n_intents", "slots", "n_slots"), 0)
    with torch.no_grad():
        for at in range(0, len(held), 2000):
            _, lt, la, li, b = loss_of(held[at : at + 2000])
            for key, x, y in (("words", lt[..., :n_tag], b["tag"]), ("slots", lt[..., n_tag:], b["ent"]), ("intents", li, b["intent"])):
                m = y >= 0
                got[key] += int((x.argmax(-1) == y)[m].sum())
                got["n_" + key] += int(m.sum())
            p, z = la.softmax(-1)[:, 1], b["act"]
            got["acted"] += int(((p > 0.5) & (z == 0)).sum())
            got["nothing"] += int((z == 0).sum())
            got["missed"] += int(((p <= 0.5) & (z == 1)).sum())
            got["commands"] += int((z == 1).sum())
    say(json.dumps({k: round(got[k] / max(1, got[n]), 5) for k, n in (("words", "n_words"), ("slots", "n_slots"), ("intents", "n_intents"), ("acted", "nothing"), ("missed", "commands"))}))
    out = work / "model"
    out.mkdir(parents=True, exist_ok=True)
    state = {k: x.detach().float().cpu() for k, x in model.state_dict().items()}
    for name, tags in (("act", TAGS), ("home", ENTITIES)):
        table = np.zeros((len(tags) + 1, len(tags)), np.float32)
        for i, x in enumerate(tags + ["O"]):
            for j, y in enumerate(tags):
                if y[0] == "I" and (x == "O" or x[2:] != y[2:]):
                    table[i, j] = -1e4
        state["tagger.transitions." + name] = torch.from_numpy(table)
    save_file({k: x.half().contiguous() for k, x in sorted(state.items())}, str(out / "model.safetensors"), metadata={"format": "pt"})
    c = json.load(open(HERE.parent / "models/encoder/config.json"))
    flat = ["act/" + x for x in ACTS] + ["home/" + x for x in home.LABELS] + ["router/" + x for x in ed.DOMAIN]
    c["id2label"], c["label2id"] = {str(i): x for i, x in enumerate(flat)}, {x: i for i, x in enumerate(flat)}
    flow = c["shoal"]["router"]["flow"]
    c["shoal"] = dict(
        intent=dict(weight="classifier.weight", bias="classifier.bias", pooling="pooler", default="home", label_sets=dict(
            act=dict(first=0, count=n_act, temperature=1.0, labels=ACTS),
            home=dict(first=n_act, count=n_intent, temperature=1.0, labels=home.LABELS, oos=home.OOS, threshold=a.threshold),
            router=dict(first=n_act + n_intent, count=len(ed.DOMAIN), temperature=1.0, labels=list(ed.DOMAIN), oos="oos", threshold=0.0))),
        router=dict(uses="intent", label_set="router", flow=flow),
        entities=dict(weight="tagger.weight", bias="tagger.bias", unit="first piece of each whitespace word", default="home", pii=home.PII, label_sets=dict(
            act=dict(first=0, count=n_tag, transitions="tagger.transitions.act", labels=TAGS),
            home=dict(first=n_tag, count=len(ENTITIES), transitions="tagger.transitions.home", labels=ENTITIES))))
    json.dump(c, open(out / "config.json", "w"), indent=1)
    say("wrote", out)


def ed_vocab():
    return len((HERE / "data" / "encoder-vocab.txt").read_text().split("\n")) - 1


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["texts", "train"])
    ap.add_argument("--data", default="../shared/data")
    ap.add_argument("--work", default=".cache/train-command")
    ap.add_argument("--samples", type=int, default=1400000)
    ap.add_argument("--shards", type=int, default=64)
    ap.add_argument("--workers", type=int, default=os.cpu_count())
    ap.add_argument("--steps", type=int, default=8500)
    ap.add_argument("--batch", type=int, default=768)
    ap.add_argument("--lr", type=float, default=4e-4)
    ap.add_argument("--threshold", type=float, default=0.56)
    ap.add_argument("--device", default="cuda")
    args = ap.parse_args()
    {"texts": texts, "train": train}[args.what](args)
