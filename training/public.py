"""Further public texts for the encoder: pairs for retrieval, names in tweets, questions out of scope.

Folders of --public, each with files as their source publishes them:

    arxiv/*.tsv.xz             titles and abstracts of arXiv (metadata, CC0)
    wiki/*.bz2                 pages of English Wikipedia (XML dump, CC BY-SA 4.0)
    squad/src.txt, tgt.txt     sentences and questions, both from the training articles of SQuAD (CC BY-SA 4.0)
    books/*.cnxml              modules of OpenStax textbooks under CC BY 4.0 (anthropology, business, economics, nursing)
    docs/*.md                  documentation of Kubernetes (CC BY 4.0)
    trivia/*                   Open Trivia QA (CC BY-SA 4.0)
    queries/train.tsv          questions of query-wellformedness (CC BY-SA 4.0)
    btc/*.conll                Broad Twitter Corpus: names in tweets (CC BY 4.0)
    wikigold/wikigold.conll.txt  names in Wikipedia (CC BY 4.0)
    clinc/data_oos_plus.json   CLINC150's longer list of out-of-scope training rows (CC BY 3.0); only `oos_train` is read
    hwu/*.json                 texts to a home robot (CC BY 4.0); only their wording is read

XQuAD, Cranfield, DialogSum and every valid or test split stay out: training text that overlaps XQuAD is dropped.
"""

import bz2
import csv
import html
import json
import lzma
import random
import re
import sys

ARXIV_FIRST = ("physics.flu-dyn", "physics.class-ph", "physics.app-ph", "cs.RO", "eess.SY", "physics.ao-ph", "physics.ins-det", "cs.SY", "physics.med-ph", "physics.plasm-ph", "cs.CE")
# Words that would make a question one of CLINC150's own intents.
IN_SCOPE = re.compile(
    r"\b(mean|means|meaning|definition|define|spell|spelled|calories?|translate|weather|temperature|distance|far|miles|timezone|time|exchange|recipe|cook|bake|ingredients?|vaccin\w*|shots?|visa|tires?|oil|gas|mpg|interest|"
    r"credit|bank|card|account|bill|insurance|tax\w*|w2|flight|airline|hotel|restaurant|reservation|luggage|song|music|playlist|joke|pets?|bot|hobbies|alarm|timer|reminder|calendar|meeting|holiday|"
    r"plug|socket|traffic|directions?|convert|how many (?:cups|ounces|grams|feet|inches|pounds|meters)|square root|plus|minus|divided|your|you|my|me|i|balance|order|nutrition|healthy|substitut\w*|jump start|battery|phone|date)\b", re.I)


def clean(s):
    s = re.sub(r"\$[^$]{0,80}\$", " ", s)  # formulas
    s = re.sub(r"\\[a-zA-Z]+|[{}~^_]", " ", s)
    return " ".join(s.split())


def arxiv(folder, each, rng):
    """(title, abstract) of at most `each` papers per category, technical ones first."""
    csv.field_size_limit(sys.maxsize)
    out, seen = [], set()
    for p in sorted(folder.glob("*.tsv.xz"), key=lambda p: (not p.name.startswith(ARXIV_FIRST), p.name)):
        got = []
        for row in csv.DictReader(lzma.open(p, "rt", encoding="utf-8", newline=""), delimiter="\t"):
            t, a = clean(row["title"] or ""), clean(row["abstract"] or "")
            if row["arxiv_id"] in seen or not (20 < len(t) < 140) or not (250 < len(a) < 1600) or not (t + a).isascii():
                continue
            got.append((row["arxiv_id"], t, a))
            if len(got) >= 2 * each:
                break
        rng.shuffle(got)
        got = got[: each if p.name.startswith(ARXIV_FIRST) else each // 3]
        seen.update(x for x, _, _ in got)
        out += [(t, a) for _, t, a in got]
    return out


def plain_wiki(s):
    for _ in range(4):
        s = re.sub(r"\{\{[^{}]*\}\}", "", s)
    s = re.sub(r"\{\|.*?\|\}", "", s, flags=re.S)
    s = re.sub(r"<ref[^>/]*/>|<ref.*?</ref>|<!--.*?-->", "", s, flags=re.S)
    s = re.sub(r"\[\[(?:File|Image|Category)[^\[\]]*(?:\[\[[^\[\]]*\]\][^\[\]]*)*\]\]", "", s)
    s = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]|]*)\]\]", r"\1", s)
    s = re.sub(r"\[https?://\S+ ([^\]]*)\]", r"\1", s)
    return re.sub(r"<[^>]*>|'''?", "", s).replace("&nbsp;", " ")


def wiki(folder):
    """(page and section, paragraph)"""
    out = []
    for p in sorted(folder.glob("*.bz2")):
        xml = bz2.open(p, "rt", encoding="utf-8").read()
        for title, text in re.findall(r"<title>(.*?)</title>.*?<text[^>]*>(.*?)</text>", xml, flags=re.S):
            text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
            if text.startswith("#") or ":" in title:
                continue
            head = ""
            for line in plain_wiki(text).split("\n"):
                h = re.fullmatch(r"=+ *(.*?) *=+ *", line)
                if h:
                    head = h.group(1)
                elif len(line) > 200 and line[0] not in "*#|!:;{" and head not in ("References", "External links", "Further reading", "See also"):
                    out.append((f"{title} {head}".strip(), " ".join(line.split())[:1600]))
    return out


def books(folder):
    """(module and section, paragraph) of textbooks"""
    out = []
    for p in sorted(folder.glob("*.cnxml")):
        xml = p.read_text(encoding="utf-8")
        found = re.search(r"<title>(.*?)</title>", xml)
        head, title = "", re.sub(r"<[^>]*>", "", found.group(1)) if found else ""
        for tag, text in re.findall(r"<(title|para)\b[^>]*>(.*?)</\1>", xml[xml.find("<content") :], flags=re.S):
            text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
            if tag == "title":
                head = text
            elif len(text) > 200:
                out.append((f"{title} {head}".strip(), text[:1600]))
    return out


def documentation(folder):
    """(page and section, paragraph) of Markdown files"""
    out = []
    for p in sorted(folder.glob("*.md")):
        text = re.sub(r"```.*?```|<!--.*?-->|\{\{.*?\}\}", " ", p.read_text(encoding="utf-8"), flags=re.S)
        found = re.search(r"^title: *\"?(.*?)\"?$", text, flags=re.M)
        head, title = "", found.group(1) if found else ""
        for par in re.split(r"\n\s*\n", text):
            par = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", par.strip())
            h = re.match(r"#+ *([^\n{]*)", par)
            if h:
                head = h.group(1).strip()
            elif len(par) > 200 and par[0].isalpha():
                out.append((f"{title} {head}".strip(), " ".join(re.sub(r"[`*]", "", par).split())[:1600]))
    return out


def sentences(p):
    return [s for s in re.split(r"(?<=[.!?]) +(?=[A-Z\"])", p) if len(s) > 30]


def asked(rng, title, text):
    """The title finds the text, or one sentence finds the rest."""
    ss = sentences(text)
    if len(ss) < 4 or rng.random() < 0.6:
        return title, text
    i = rng.randrange(len(ss))
    return ss[i], " ".join(ss[:i] + ss[i + 1 :])


def conll(path):
    """Sentences of (tokens, tags)."""
    words, tags = [], []
    for line in open(path, encoding="utf-8"):
        f = line.split()
        if not f or line.startswith("-DOCSTART"):
            if words:
                yield words, tags
            words, tags = [], []
        else:
            words.append(f[0])
            tags.append(f[-1])
    if words:
        yield words, tags


def bio(tags):
    """Tags of either style as BIO."""
    out, prev = [], "O"
    for t in tags:
        k = t[2:] if t[:2] in ("B-", "I-") else "O"
        out.append("O" if k == "O" else ("I-" if prev == k and not t.startswith("B-") else "B-") + k)
        prev = k
    return out


def collect(public, data, out, each):
    rng = random.Random(11)
    squad_words = lambda s: re.sub(r"[^a-z0-9]", "", s.lower())
    xquad = [json.loads(x) for x in open(data / "retrieval/xquad-en.jsonl", encoding="utf-8")]
    held = " ".join(squad_words(r["context"]) for r in xquad)
    pairs = [(*asked(rng, t, a), "arxiv") for t, a in arxiv(public / "arxiv", each, rng)]
    paras = [(*x, "wiki") for x in wiki(public / "wiki")]
    paras += [(*x, "book") for x in books(public / "books")] + [(*x, "docs") for x in documentation(public / "docs")]
    for head, p, kind in paras:
        if squad_words(p)[:60] in held:
            continue
        pairs.append((head, p, kind))
        ss = sentences(p)
        if len(ss) > 2:  # one sentence finds the rest of its paragraph
            i = rng.randrange(len(ss))
            pairs.append((ss[i], " ".join(ss[:i] + ss[i + 1 :]), kind))
    src = open(public / "squad/src.txt", encoding="utf-8").read().split("\n")
    tgt = open(public / "squad/tgt.txt", encoding="utf-8").read().split("\n")
    left = 0
    wanted = []
    for i, (s, q) in enumerate(zip(src, tgt)):
        if not s or not q:
            continue
        if squad_words(s)[:50] in held:
            left += 1
            continue
        near = [x for x in src[max(0, i - 6) : i + 7] if x != s]
        near = list(dict.fromkeys(x for x in near if squad_words(x)[:50] not in held))
        pairs.append((q, s, "squad"))
        pairs.append((q, " ".join((near[:1] + [s] + near[-2:])), "squad"))  # with its neighbours
        wanted.append(q)
    questions, facts = [], []
    for p in sorted((public / "trivia").glob("*")):
        for block in open(p, encoding="utf-8", errors="ignore").read().split("\n\n"):
            m = re.match(r"#Q (.*?)\n\^ (.*)", block, flags=re.S)
            if m:
                q, a = " ".join(m.group(1).split()), m.group(2).split("\n")[0]
                facts.append(q)
                if a not in ("True", "False") and q.endswith("?") and len(q) < 100:
                    questions.append(q)
    questions += wanted + [x.split("\t")[0] for x in open(public / "queries/train.tsv", encoding="utf-8")]
    questions = sorted({" ".join(q.lower().replace(" ?", "").rstrip("? .").split()) for q in questions})
    questions = [q for q in questions if 3 <= len(q.split()) <= 16 and q.isascii() and not IN_SCOPE.search(q)]
    more = [r[0] for r in json.load(open(public / "clinc/data_oos_plus.json"))["oos_train"]]
    hwu = set()
    for p in sorted((public / "hwu").glob("*.json")):
        hwu.update(" ".join(x.split()) for x in re.findall(r'"text"\s*:\s*"([^"]*)"', open(p, encoding="utf-8").read()))
    names = []
    kinds = {"PER": "PER", "LOC": "LOC", "ORG": "ORG", "MISC": "MISC"}
    for p in [*sorted((public / "btc").glob("*.conll")), public / "wikigold/wikigold.conll.txt"]:
        for words, tags in conll(p):
            tags = bio([t if t == "O" or t[2:] in kinds else "O" for t in tags])
            if len(words) >= 3:
                names.append(dict(tokens=words[:60], tags=tags[:60]))
    texts = sorted(hwu) + [f for f in facts if len(f) > 20]
    put = lambda name, rows: open(out / name, "w", encoding="utf-8").write("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    put("pairs.jsonl", pairs)
    put("names.train.jsonl", names)
    put("questions.jsonl", questions)
    put("oos_more.jsonl", more)
    put("more_texts.jsonl", texts)
    print(dict(pairs=len(pairs), names=len(names), questions=len(questions), oos=len(more), texts=len(texts), left_out_of_squad=left))
