#!/usr/bin/env python3
"""Trains and measures the extractive summarizer: sentences scored by a few features over models/encoder.

    training/summary.py --data ../shared/data      # models/summary.json, tests/data/summary/; minutes

The model is one linear layer over features of a sentence; models/summary.md defines them. Learned from
articles of WikiText-2 (sentences of the body that say what the article's lead says) and generated reports;
measured on held-out ones, and on Cranfield and DialogSum, which are not trained on. The two weights of
dialogues are chosen by hand: sets of everyday talk with summaries may not be trained on, and weights learned
from consultations and meetings did worse on DialogSum than the first turns. Sentence vectors come from build/shoal.
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
ENOUGH_CONTENT = 4  # content words of a sentence that says something
MIN_TURNS, MAX_LABEL = 4, 40
DIALOGUE = {"start": 1.2, "content": 1.0}  # the first turns that say something


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
    return lines[:MAX_SENTENCES]


def said(line):
    """A turn without the name of its speaker."""
    return line[len(speaker(line)) + 1 :].strip() if speaker(line) else line


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
        val = [scores[i] - redundancy * max((float(vectors[i] @ vectors[j]) for j in got), default=0.0) for i in left]
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
    a section, title)]; sentences with words that the set hides are dropped."""
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


def cranfield(path, n):
    out = []
    for r in map(json.loads, open(path)):
        t = r["text"][len(r["title"]) :].strip() if r["text"].startswith(r["title"]) else r["text"]
        s = [x.strip() for x in re.split(r" \.(?: |$)", t) if len(x.split()) > 3]
        s = [x[0].upper() + x[1:] + "." for x in s]
        if len(s) >= 5 and len(r["title"].split()) >= 5:
            out.append(("", s, r["title"]))
    return out[:n]


def dialogs(path, n):
    got = [("", turns(r["dialogue"]), r["summary"]) for r in map(json.loads, open(path))]
    return [x for x in got if x[1]][:n]


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


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="../shared/data")
    ap.add_argument("--texts", default=".cache/train-data", help="what prepare.py wrote")
    ap.add_argument("--work", default=".cache/train-summary")
    ap.add_argument("--shoal", default="build/shoal")
    ap.add_argument("--n", type=int, default=300, help="documents of each set that is only measured on")
    a = ap.parse_args()
    data, work, texts = pathlib.Path(a.data), pathlib.Path(a.work), pathlib.Path(a.texts)
    work.mkdir(parents=True, exist_ok=True)
    t = json.load(open(texts / "reply-texts.json"))
    values.set_open_values(t["words"], t["names"], t["titles"])
    arts = articles(texts / "wiki-articles.json")
    cut = len(arts) * 4 // 5
    train = [d for x, _n in arts[:cut] for d in x]
    named = [d for _x, n in arts[:cut] for d in n]
    made = reports(120, SEED)
    test = {"wikitext articles": [d for x, _n in arts[cut:] for d in x], "wikitext sections": [d for _x, n in arts[cut:] for d in n], "generated reports": reports(100, SEED + 1), "cranfield": cranfield(data / "retrieval/cranfield-docs.jsonl", a.n)}
    counts = {"wikitext articles": (3,), "wikitext sections": (1,), "generated reports": (3,), "cranfield": (1,)}
    print(len(train), "parts and", len(named), "sections of", cut, "articles;", {k: len(d) for k, d in test.items()}, flush=True)
    own = [(title, turns(text) or sentences(text), bool(turns(text)), text) for title, text in TEXTS]
    need = sorted({s for docs in (train, named, made, *test.values()) for d in docs for s in d[1]} | {s for _t, ss, _d, _x in own for s in ss})
    cache_path = work / "vectors.npz"
    cache = {}
    if cache_path.exists():
        with np.load(cache_path) as z:
            cache = dict(zip(z["texts"].tolist(), z["vectors"]))
    missing = [s for s in need if s not in cache]
    cache.update(zip(missing, np.array(embed(a.shoal, missing), np.float32)))
    np.savez(cache_path, texts=np.array(list(cache)), vectors=np.stack(list(cache.values())))
    vectors = lambda sents: np.stack([cache[s] for s in sents]).astype(np.float64)
    xs, ys, ws = [], [], []
    for docs, weight, blank in ((train, 1.0, 0.3), (named, 0.3, 1.0), (made, 0.7, 1.0)):
        for n, (title, sents, ref) in enumerate(docs):
            f = features(sents, vectors(sents), "" if n % 10 < blank * 10 else title)
            y = np.array([rouge(s, ref)[:2].sum() for s in sents])
            xs.append(f)
            ys.append((y - y.mean()) / max(y.std(), 1e-6))
            ws.append(np.full(len(y), weight / len(y)))
    x, y, w = np.concatenate(xs), np.concatenate(ys), np.concatenate(ws)
    m = np.concatenate([x[:, :-1], np.ones((len(x), 1))], 1)  # content is for dialogues
    reg = np.eye(m.shape[1]) * 1e-3 * w.sum()
    reg[-1, -1] = 0
    beta = np.insert(np.round(np.linalg.solve(m.T @ (m * w[:, None]) + reg, m.T @ (y * w)), 4), -1, 0.0)
    print({k: float(b) for k, b in zip(NAMES + ["bias"], beta)}, flush=True)
    talk = np.array([DIALOGUE.get(k, 0.0) for k in NAMES] + [0.0])

    def scores(doc, weights):
        return features(doc[1], vectors(doc[1]), doc[0]) @ weights[:-1] + weights[-1]

    score = lambda doc, got: rouge(" ".join(doc[1][i] for i in got), doc[2])
    rng = random.Random(SEED)
    fig = {}
    for name, docs in test.items():
        for k in counts[name]:
            some = [d for d in docs if len(d[1]) > k]
            rows = {}
            rows["random"] = np.mean([np.mean([score(d, sorted(rng.sample(range(len(d[1])), k))) for _ in range(3)], 0) for d in some], 0)
            rows["lead"] = np.mean([score(d, range(k)) for d in some], 0)
            rows["nearest the centre"] = np.mean([score(d, sorted(np.argsort(-features(d[1], vectors(d[1]))[:, 0])[:k].tolist())) for d in some], 0)
            rows["ours"] = np.mean([score(d, choose(scores(d, beta), vectors(d[1]), k, 0.0)[0]) for d in some], 0)
            fig[f"{name}, {k}, {len(some)} texts"] = {q: [round(100 * float(z), 1) for z in r] for q, r in rows.items()}
            print(name, k, len(some), list(fig.values())[-1], flush=True)
    for k in (1, 2, 3):
        rows = collections.defaultdict(list)
        for d in dialogs(data / "text/dialogsum-dev.jsonl", 10**9):
            if len(d[1]) > k:
                none = np.zeros((len(d[1]), 2))
                f = features([said(s) for s in d[1]], none)
                rows["lead"].append(score(d, range(k)))
                rows["ours"].append(score(d, choose(f @ talk[:-1], none, k, 0.0)[0]))
        fig[f"dialogsum dev, {k}"] = {q: [round(100 * float(z), 1) for z in np.mean(r, 0)] for q, r in rows.items()}
        print("dialogsum dev", k, len(rows["lead"]), fig[f"dialogsum dev, {k}"], flush=True)
    weights = lambda b: dict(weights=[float(z) for z in b[:-1]], bias=float(b[-1]), redundancy=0.0)
    out = dict(model_type="shoal_summary", encoder="encoder", features=NAMES, **weights(beta), dialogue=weights(talk), sentences=3, max_sentences=MAX_SENTENCES,
               abbreviations=ABBREVIATIONS, stop_words=STOP, backward_words=BACKWARD)
    json.dump(out, open(ROOT / "models/summary.json", "w"), indent=1)
    (ROOT / "tests/data/summary").mkdir(parents=True, exist_ok=True)
    with open(ROOT / "tests/data/summary/examples.jsonl", "w") as o:
        for title, s, dialogue, text in own:
            v, b = vectors(s), talk if dialogue else beta
            f = features([said(z) for z in s] if dialogue else s, v, title)
            sc = f @ b[:-1] + b[-1]
            got, margin = choose(sc, v, 3, 0.0)
            one, margin1 = choose(sc, v, 1, 0.0)
            if min(margin, margin1) < 0.01:
                print("close call:", round(min(margin, margin1), 4), text[:50])
            o.write(json.dumps(dict(title=title, text=text, sentences=s, dialogue=dialogue, features=np.round(f, 4).tolist(), scores=np.round(sc, 4).tolist(), chosen=got, one=one,
                                    margin=round(min(margin, margin1), 4), summary=" ".join(s[i] for i in got)), ensure_ascii=False) + "\n")
    (work / "figures.json").write_text(json.dumps(fig, indent=1))


if __name__ == "__main__":
    main()
