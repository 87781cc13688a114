#!/usr/bin/env python3
"""Writes and measures the extractive summarizer: sentences scored by a few features over models/encoder.

    training/summary.py --data ../shared/data      # models/summary.json, tests/data/summary/; minutes

The model is one linear layer over features of a sentence; models/summary.md defines them. Its few weights are
chosen by hand, those of prose on articles of WikiText-2, generated reports, Cranfield and descriptions of Debian
packages, those of dialogues on DialogSum: weights learned by regression favoured long sentences and scored below the
first-sentences baseline on technical texts. Nothing is trained on the sets. Sentence vectors come from build/shoal.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess

import numpy as np

import reply_corpus
import values

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEED = 99
CLOSE, OPEN = "\"')]”’", "\"'([“‘"
ABBREVIATIONS = "mr mrs ms dr st prof e.g i.e etc fig figs no nos vs inc ltd co approx ca cf eq sec ref refs vol pp p jan feb mar apr jun jul aug sep sept oct nov dec".split()
STOP = """about above after again against also although among another because been before being below between both could does doing down during each either from further
have having here hers herself himself however into itself just like made make many might more most much must near nearly need never often once only other others ought ours over own
same several shall she should since some such than that their theirs them themselves then there therefore these they this those though through thus under until upon very was were what
when where whether which while who whom whose will with within without would your yours""".split()
BACKWARD = "this these that those it its they he she his her their however but and also thus therefore such then there another other both so moreover furthermore".split()
NAMES = ["centroid", "start", "position", "length", "short", "digit", "frequency", "title", "backward", "first", "question", "content"]
MAX_SENTENCES = 200
ENOUGH_CONTENT = 4  # content words of an informative sentence
MIN_TURNS, MAX_LABEL = 4, 40
PROSE = {"first": 2.0, "frequency": 1.4, "centroid": 1.0, "title": 0.4, "length": -0.5, "position": -0.5, "start": -0.8}  # the opening, then what the text is about
DIALOGUE = {"content": 1.0, "start": 0.6, "frequency": 0.5}  # early informative sentences


def sentences(text):
    """Paragraphs end at an empty line; a sentence ends at . ! ? before a word that can begin one."""
    out = []
    for par in re.split(r"\n[ \t\r]*\n", text):
        words, cur = par.split(), []
        for i, w in enumerate(words):
            cur.append(w)
            core = w.rstrip(CLOSE)
            if i + 1 < len(words) and core and core[-1] in ".!?":
                head = words[i + 1].lstrip(OPEN)[:1]
                begins = bool(head) and (head.isascii() and (head.isupper() or head.isdigit()) or not head.isascii())
                name = core[:-1].lstrip(OPEN).lower()
                short = core[-1] == "." and (name in ABBREVIATIONS or len(name) == 1 and name.isascii() and name.isalpha())
                if begins and not short:
                    out.append(" ".join(cur))
                    cur = []
        if cur:
            out.append(" ".join(cur))
    return out[:MAX_SENTENCES]


def speaker(line):
    """The name before a colon and a space, or ""."""
    m = re.match(r"([^:]+):(\s|$)", line)
    return m.group(1) if m and len(m.group(1).encode()) <= MAX_LABEL else ""


def turns(text):
    """The lines of a dialogue, or None: most lines begin with a speaker who speaks more than once."""
    lines = [" ".join(x.split()) for x in text.split("\n") if x.split()]
    who = [speaker(x) for x in lines if speaker(x)]
    if len(lines) < MIN_TURNS or 4 * len(who) < 3 * len(lines) or 2 * len(set(who)) > len(who):
        return None
    return lines


def said(line):
    """A line without the name of its speaker."""
    return line[len(speaker(line)) + 1 :].strip() if speaker(line) else line


def split(text):
    """[(turn, name, sentence)]; prose is one turn without a name."""
    lines = turns(text)
    if lines is None:
        return [(0, "", s) for s in sentences(text)]
    return [(i, speaker(x), s) for i, x in enumerate(lines) for s in sentences(said(x)) or [""]][:MAX_SENTENCES]


def joined(parts):
    """The text of chosen parts: a name stands before the first sentence of its turn."""
    out, last = [], None
    for turn, name, s in parts:
        out.append(f"{name}: {s}".strip() if name and turn != last else s)
        last = turn
    return " ".join(out)


def content(text):
    """Words of letters and digits (ASCII), lower case, four characters or more, no stop words."""
    return [w for w in re.findall(r"[a-z0-9]+", text.lower()) if len(w) > 3 and w not in STOP_SET]


STOP_SET = set(STOP)


def features(sents, vectors, title=""):
    n = len(sents)
    mean = vectors.mean(0)
    mean = mean / max(np.linalg.norm(mean), 1e-12)
    bags = [content(s) for s in sents]
    count = collections.Counter(w for b in bags for w in b)
    top = max(count.values(), default=1)
    want = set(content(title))
    out = np.zeros((n, len(NAMES)))
    for i, s in enumerate(sents):
        words = s.split()
        first = re.sub(r"[^a-z]", "", words[0].lower()) if words else ""
        out[i] = [vectors[i] @ mean, 1 / (1 + i), i / (n - 1) if n > 1 else 0, min(len(words), 40) / 40, len(words) < 6, any(c in "0123456789" for c in s),
                  sum(count[w] for w in bags[i]) / (len(bags[i]) * top) if bags[i] else 0, len(want & set(bags[i])) / len(want) if want else 0,
                  first in BACKWARD, i == 0, s.rstrip(CLOSE).endswith("?"), min(len(set(bags[i])), ENOUGH_CONTENT) / ENOUGH_CONTENT]
    return out


def choose(scores, vectors, k, redundancy):
    """Greedy: the best score less redundancy times the nearest chosen one. (indices in text order, smallest lead of a choice)"""
    left, got, margin = list(range(len(scores))), [], 1e9
    while left and len(got) < k:
        val = [scores[i] - (redundancy * max((float(vectors[i] @ vectors[j]) for j in got), default=0.0) if redundancy else 0.0) for i in left]
        best = int(np.argmax(val))
        if len(val) > 1:
            margin = min(margin, val[best] - max(v for j, v in enumerate(val) if j != best))
        got.append(left.pop(best))
    return sorted(got), margin


# ------------------------------------------------------------------ ROUGE


def tokens(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def f1(hit, a, b):
    return 2 * hit / (a + b) if a + b else 0.0


def rouge_n(a, b, n):
    x, y = (collections.Counter(zip(*(t[i:] for i in range(n)))) for t in (a, b))
    return f1(sum((x & y).values()), sum(x.values()), sum(y.values()))


def rouge_l(a, b):
    row = [0] * (len(b) + 1)
    for w in a:
        prev = 0
        for j, v in enumerate(b, 1):
            prev, row[j] = row[j], prev + 1 if w == v else max(row[j], row[j - 1])
    return f1(row[-1], len(a), len(b))


def rouge(text, reference):
    a, b = tokens(text), tokens(reference)
    return np.array([rouge_n(a, b, 1), rouge_n(a, b, 2), rouge_l(a, b)])


# ------------------------------------------------------------------ data


def articles(path):
    """Per article of WikiText: [(title, sentences of a part of the body, lead)] and [("", sentences of the lead or of
    a section, title)]; sentences with <unk> words are dropped."""
    out = []
    for art in json.load(open(path)):
        title = art[0].strip("= ").strip()
        clean = lambda p: " ".join(s for s in sentences(p) if "<unk>" not in s)
        at = next((i for i, p in enumerate(art[1:], 1) if p.startswith("=")), len(art))
        lead = " ".join(clean(p) for p in art[1:at])
        body, parts, named = [], [], []
        opening = sentences(lead)
        if len(opening) >= 4:
            named.append(("", opening[:12], title))
        head = ""
        for p in art[at:]:
            if p.startswith("="):
                head = p.strip("= ")
            else:
                s = sentences(clean(p)) if clean(p) else []
                if head and len(s) >= 4:
                    named.append(("", s, f"{head} {title}"))
                head = ""
                body += s
            if len(body) >= 18:
                parts.append(body[:24])
                body = []
        if len(body) >= 8:
            parts.append(body)
        if len(tokens(lead)) >= 30:
            out.append(([(title, b, lead) for b in parts[:6]], named[:5]))
    return out


def reports(n, seed):
    rng = random.Random(seed)
    out = []
    while len(out) < n:
        ctx, _reply, _must = reply_corpus.summary(rng)
        s = sentences(ctx[len("summarize: ") :])
        keep = [x for x in s if x not in reply_corpus.FILL]
        if len(s) >= 4:
            out.append(("", s, " ".join(keep)))
    return out


def cranfield(path):
    out = []
    for r in map(json.loads, open(path)):
        t = r["text"][len(r["title"]) :].strip() if r["text"].startswith(r["title"]) else r["text"]
        s = [x.strip() for x in re.split(r" \.(?: |$)", t) if len(x.split()) > 3]
        s = [x[0].upper() + x[1:] + "." for x in s]
        if len(s) >= 5 and len(r["title"].split()) >= 5:
            out.append(("", s, r["title"]))
    return out


def packages(path, n):
    """Descriptions of Debian packages against their synopses: Translation-en of a package index, as text."""
    out, seen = [], set()
    for synopsis, body in re.findall(r"^Description-en: (.*)\n((?: .*\n?)+)", open(path).read(), re.M):
        parts = [" ".join(par.split()) for par in re.split(r"^ \.$", body, flags=re.M) if not re.search(r"^ +([*+o-]|\d+[.)]) ", par, re.M)]
        s = [x for par in parts for x in sentences(par) if not re.match(r"This (meta)?package|This is a dummy", x)]
        if len(s) >= 4 and len(tokens(synopsis)) >= 4 and not {s[0], s[-1]} & seen:
            seen |= {s[0], s[-1]}
            out.append(("", s[:20], synopsis))
    random.Random(SEED).shuffle(out)
    return out[:n]


def dialogs(path):
    return [(r["dialogue"], r["summary"]) for r in map(json.loads, open(path)) if turns(r["dialogue"])]


# ------------------------------------------------------------------ our own texts for tests

TEXTS = [
    ("Pump 3", "Pump 3 was inspected on Monday. The vibration had risen from 2.4 to 7.1 mm/s within two weeks. The bearing on the drive side showed clear wear. Gloves must be worn in the pump room. Nina replaced the bearing and aligned the shaft. After the restart the vibration fell to 1.9 mm/s. The next inspection is due in March."),
    ("Heating", "The heating in the east wing did not start this morning. The controller reported a lost sensor, see error E17. A cable behind the boiler was found cut. It was replaced at 9:40 and the controller was restarted. All rooms of the wing reached 20 degrees again at noon. Dr. Singh asked for a spare cable to be stored in the cellar."),
    ("", "A gateway collects the values of all sensors once a second. Each value is checked against its limits. When a value leaves its limits, an alarm is sent to the operator. The gateway keeps the last 24 hours on disk. It can work without a network for that time. After the network is back, stored values are sent in order. No value is lost unless the disk is full."),
    ("Filter", "The filter protects the compressor from dust. A blocked filter lowers the pressure and raises the power draw by up to 12 %. Check the filter every 500 hours. Replace it when the pressure drop is above 0.4 bar. Keep this manual near the machine. Only original parts may be used. Using other parts ends the warranty."),
    ("", "Line 2 stopped at 14:05. The cause was a jammed bottle at the labeler. Tom cleared it and restarted the line at 14:20. 340 bottles were lost. The guide rail had come loose. It will be fixed in the night shift. Until then the speed is limited to 80 %."),
    ("Backup", "The server in the plant keeps its own backup. Every night at 02:00 the database is copied to the second disk. A full copy takes 35 minutes. On Sundays the copy is also written to tape. Tapes are kept in the safe for one year. The restore was last tested in May. It took two hours and nothing was missing. The next test is planned for November."),
    ("Small models", "Small language models run on machines that stand close to the people who use them. They need little memory and little power. A model with 15 million parameters fits in 16 MB. It cannot know the world. It can say well what other parts of a system have found. Several small models together can do what one large model does slowly. Each of them is tested for its own task."),
    ("", "The cold room must stay between 2 and 6 degrees. On Friday the door was left open for 40 minutes. The temperature rose to 11 degrees. The alarm was sent to an old phone number. Nobody came before 7 am. All goods from shelf A were thrown away. The number has been corrected. A second person now gets every alarm."),
    ("Valve V7", "Valve V7 controls the flow to the mixer. During the test it closed in 3.2 seconds. The limit is 2.0 seconds. The actuator was dry and the seal was hard. Both were replaced. The test was repeated three times with 1.4, 1.5 and 1.4 seconds. The valve may be used again."),
    ("", "To change the battery, first switch off the unit. Disconnect the black cable, then the red one. Lift the battery out with both hands; it weighs 14 kg. Put the new battery in and connect red before black. Do not let the cables touch. Switch the unit on and wait for the green light. If the light stays red, see chapter 5."),
    ("Noise", "Neighbours of the plant complained about noise at night in two letters. A measurement at the fence showed 52 dB at 23:00. The limit is 45 dB. The exhaust fan on the roof was by far the loudest of the four sources that were found. Its speed can be lowered at night without harm. With 60 % speed the fence measured 43 dB. The control was changed to do so from 22:00 to 06:00."),
    ("", "The elevator uses a frequency converter. Braking energy is fed back into the grid. This saves about 1,800 kWh a year. The converter needs a fan that must be cleaned twice a year. A dirty fan leads to error F30. The fan sits behind the lower cover. Is the cover open, the elevator does not move."),
    ("Water", "The water meter shows a use of 12 l per hour at night. No one is in the building then. A leak is likely. The toilets on floor 2 and the humidifier were checked first. The valve of the humidifier did not close fully. It was cleaned. Since then the use at night is zero."),
    ("", "The robot stops when a person enters the cell. A scanner watches the floor in front of it. Its field is 3 m wide. The scanner must be cleaned every week, because dust makes it blind. A blind scanner stops the robot too. In April 14 of 16 stops were caused by dust. An air curtain was added in May. In June there was one stop."),
    ("Shift report", "The night shift produced 4,120 parts. 37 were rejected, mostly for scratches. The press ran 20 minutes late because oil had to warm up. Mr. Keller tested a new tool on press 2. It made 200 good parts. The tool can go into use next week. The store is low on gloves."),
    ("", "Solar panels on the roof deliver up to 48 kW. In winter they deliver less than a tenth. The battery stores 60 kWh. It is charged at noon and used in the evening. On 40 days of last year no power was bought at all. The inverter is the weakest part. It failed twice, each time in the heat of July. A fan was added to its cabinet."),
    ("Calibration", "All scales are calibrated once a year. A scale that is off by more than 0.1 % is taken out of use. The weights are kept in a wooden box. They must not be touched by hand. The results are signed and stored for ten years. Scale 5 failed this year with 0.3 %. It was repaired and calibrated again."),
    ("", "Updates are installed on one node first. The node answers a copy of real requests for ten minutes. If errors stay below 0.5 %, the next node follows. Otherwise the old version comes back by itself. Users notice nothing. In two years this saved us three times. The last bad update filled the memory within four minutes."),
    ("Smoke alarm", "The smoke alarm in hall B went off at 10:12. The hall was empty within three minutes. There was no fire. A grinder had been used right below the sensor. Work with sparks needs a permit, and none had been asked for. The rule was explained again to all teams."),
    ("", "The tank holds 800 l of coolant. The level is measured by a float. Below 30 % the machine shows a warning, below 15 % it stops. Refill only with the same coolant. Mixed coolant forms foam and the float sticks. Once a month a sample goes to the lab. The lab checks the pH and the bacteria. The pH must lie between 8.5 and 9.3."),
    ("", "Nina: Hi Tom, the labeler is down.\nTom: Morning!\nNina: The labeler on line 2 has jammed again since the night shift.\nTom: Is the guide rail loose?\nNina: Yes, the screw is gone.\n\nTom: I will bring a new one after the break.\nNina: Thanks, that helps."),
    ("", "Operator 1: Can you hear me?\nOperator 2: Yes: loud and clear.\nOperator 1: The pressure of boiler 3 is above 9 bar, please close valve V7.\nand open the drain slowly\nOperator 2: Valve V7 is closed.\nOperator 1: Good."),
    ("", "Machine: press 2\nState: stopped\nCause: oil is cold\nNext check: Monday"),
]


def embed(shoal, texts):
    """The vector of each text by the encoder, in full precision."""
    lines = "".join(" ".join(t.split())[:4000] + "\n" for t in texts)
    got = subprocess.run([shoal, "embed", "-m", str(ROOT / "models/encoder"), "--json", "-f", "-"], input=lines, capture_output=True, text=True, check=True).stdout
    return [json.loads(x)["embedding"] for x in got.split("\n") if x]


def vector_cache(path, shoal, texts):
    cache = {}
    if path.exists():
        with np.load(path) as z:
            cache = dict(zip(z["texts"].tolist(), z["vectors"]))
    missing = sorted(set(texts) - cache.keys())
    cache.update(zip(missing, np.array(embed(shoal, missing), np.float32)))
    np.savez(path, texts=np.array(list(cache)), vectors=np.stack(list(cache.values())))
    return lambda sents: np.stack([cache[s] for s in sents]).astype(np.float64)


def percent(rows):
    return [round(100 * float(z), 1) for z in np.mean(rows, 0)]


def measure_prose(docs, k, vectors, rng):
    rows = collections.defaultdict(list)
    for title, sents, reference in docs:
        if len(sents) > k:
            f = features(sents, vectors(sents), title)
            score = lambda got: rouge(" ".join(sents[i] for i in sorted(got)), reference)
            rows["random"].append(np.mean([score(rng.sample(range(len(sents)), k)) for _ in range(3)], 0))
            rows["lead"].append(score(range(k)))
            rows["nearest the centre"].append(score(np.argsort(-f[:, 0], kind="stable")[:k]))
            rows["ours"].append(score(choose(f @ weights(PROSE), None, k, 0.0)[0]))
    return len(rows["lead"]), {name: percent(r) for name, r in rows.items()}


def measure_dialogues(docs, k, rng):
    rows = collections.defaultdict(list)
    for text, reference in docs:
        parts, lines = split(text), turns(text)
        if len(lines) > k:
            f = features([s for _t, _n, s in parts], np.zeros((len(parts), 2)))
            score = lambda got: rouge(joined(parts[i] for i in got), reference)
            rows["random"].append(np.mean([score(sorted(rng.sample(range(len(parts)), k))) for _ in range(3)], 0))
            rows["lead"].append(rouge(" ".join(lines[:k]), reference))
            rows["first sentences"].append(score(range(k)))
            rows["ours"].append(score(choose(f @ weights(DIALOGUE), None, k, 0.0)[0]))
    return len(rows["lead"]), {name: percent(r) for name, r in rows.items()}


def weights(chosen):
    return np.array([chosen.get(name, 0.0) for name in NAMES])


def write_model():
    layer = lambda w: dict(weights=weights(w).tolist(), bias=0.0, redundancy=0.0)
    out = dict(model_type="shoal_summary", encoder="encoder", features=NAMES, **layer(PROSE), dialogue=layer(DIALOGUE), sentences=3, max_sentences=MAX_SENTENCES,
               abbreviations=ABBREVIATIONS, stop_words=STOP, backward_words=BACKWARD)
    json.dump(out, open(ROOT / "models/summary.json", "w"), indent=1)


def write_examples(vectors):
    folder = ROOT / "tests/data/summary"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "examples.jsonl", "w") as o:
        for title, text in TEXTS:
            parts, dialogue = split(text), turns(text) is not None
            sents = [joined([p]) for p in parts]
            f = features([s for _t, _n, s in parts], vectors(sents), title)
            score = f @ weights(DIALOGUE if dialogue else PROSE)
            got, margin = choose(score, None, 3, 0.0)
            one, margin1 = choose(score, None, 1, 0.0)
            if min(margin, margin1) < 0.01:
                print("close call:", round(min(margin, margin1), 4), text[:50])
            o.write(json.dumps(dict(title=title, text=text, sentences=sents, dialogue=dialogue, features=np.round(f, 4).tolist(), scores=np.round(score, 4).tolist(), chosen=got, one=one,
                                    margin=round(min(margin, margin1), 4), summary=joined(parts[i] for i in got)), ensure_ascii=False) + "\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="../shared/data")
    ap.add_argument("--texts", default=".cache/train-data", help="what prepare.py wrote")
    ap.add_argument("--packages", help="Translation-en of a Debian package index, unpacked (optional)")
    ap.add_argument("--work", default=".cache/train-summary")
    ap.add_argument("--shoal", default="build/shoal")
    ap.add_argument("--n", type=int, default=300, help="descriptions of packages")
    a = ap.parse_args()
    data, work, texts = pathlib.Path(a.data), pathlib.Path(a.work), pathlib.Path(a.texts)
    work.mkdir(parents=True, exist_ok=True)
    t = json.load(open(texts / "reply-texts.json"))
    values.set_open_values(t["words"], t["names"], t["titles"])
    arts = articles(texts / "wiki-articles.json")
    abstracts = cranfield(data / "retrieval/cranfield-docs.jsonl")
    sets = {"wikitext articles": [d for x, _n in arts for d in x], "wikitext sections": [d for _x, n in arts for d in n], "generated reports": reports(100, SEED + 1),
            "cranfield, first 300": abstracts[:300], "cranfield, the others": abstracts[300:]}
    if a.packages:
        sets["packages"] = packages(a.packages, a.n)
    vectors = vector_cache(work / "vectors.npz", a.shoal, [s for docs in sets.values() for d in docs for s in d[1]] + [joined([p]) for _t, text in TEXTS for p in split(text)])
    figures, rng = {}, random.Random(SEED)
    talks = dialogs(data / "text/dialogsum-dev.jsonl")
    for k in (1, 2, 3):
        for name, docs in sets.items():
            figures[f"{name}, {k}"] = measure_prose(docs, k, vectors, rng)
            print(name, k, *figures[f"{name}, {k}"], flush=True)
        figures[f"dialogsum dev, {k}"] = measure_dialogues(talks, k, rng)
        print("dialogsum dev", k, *figures[f"dialogsum dev, {k}"], flush=True)
    write_model()
    write_examples(vectors)
    (work / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
