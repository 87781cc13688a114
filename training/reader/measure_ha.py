#!/usr/bin/env python3
"""Home Assistant's own test sentences through a server, judged by what the server would do.

    git clone https://github.com/home-assistant/intents; training/reader/measure_ha.py intents build/shoal [--wrong] [--language de]

The home is made from the tests' fixtures. A sentence is right if the actions are those of the intent, on the entities that
its slots mean; a question is right if it is answered about them, or about their states being unknown. A *wrong act* is one
that the intent does not ask for. Sentences whose intent Shoal has no ability for are counted apart, and so are *narrower* ones: some languages give one slot to every
word for a cover, so that "open the curtains" means blinds and garage doors too; there only the curtains are opened.
The reader is not trained on these: they only measure.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import yaml

KINDS = {"light": "light", "switch": "switch", "fan": "fan", "cover": "cover", "lock": "lock", "climate": "climate", "media_player": "media", "vacuum": "vacuum", "valve": "valve", "script": "scene", "scene": "scene",
         "input_boolean": "switch", "todo": None, "sensor": "sensor", "binary_sensor": "sensor", "weather": None, "person": "person", "camera": "camera", "lawn_mower": "vacuum", "humidifier": "switch", "button": "switch"}
COVER = {"door": "door", "garage": "door", "gate": "door", "window": "window"}


def id_of(text):
    """An id of Shoal for an id of a fixture, which may have letters that ids must not have."""
    return re.sub(r"[^A-Za-z0-9_.:/-]", "_", text)


def read_fixtures(path):
    """The fixtures, each id once: some languages use one for two things."""
    fix, seen = yaml.safe_load(path.read_text()), collections.Counter()
    for e in fix["entities"]:
        e["id"] = id_of(e["id"])
        seen[e["id"]] += 1
        if seen[e["id"]] > 1:
            e["id"] += f"_{seen[e['id']]}"
    return fix


def home(fixtures, language):
    out = collections.defaultdict(list)
    out["language"] = language
    floors = {f["id"]: f["name"] for f in fixtures["floors"]}
    for a in fixtures["areas"]:
        out["rooms"].append({"id": a["id"], "name": a["name"], **({"floor": floors[a["floor"]]} if a.get("floor") else {})})
    for e in fixtures["entities"]:
        domain, cls = e["id"].split(".")[0], (e.get("attributes") or {}).get("device_class")
        kind = KINDS.get(domain)
        if not kind:
            continue
        names = [e["name"]] if isinstance(e["name"], str) else list(e["name"])
        x = {"id": e["id"], "name": names[0], **({"aliases": names[1:]} if names[1:] else {})}
        if e.get("area") and kind != "person":
            x["room"] = e["area"]
        if kind == "person":
            out["people"].append(x)
        elif kind == "scene":
            out["scenes"].append(x | {"sets": []})
        elif kind == "sensor":
            unit = (e.get("attributes") or {}).get("unit_of_measurement")
            out["sensors"].append(x | ({"kind": cls} if cls else {}) | ({"unit": unit} if unit else {}))
        else:
            out["devices"].append(x | {"kind": COVER.get(cls, "cover") if domain == "cover" else kind})
    return dict(out)


VERBS = {"HassTurnOn": {"cover": "open", "lock": "lock", "scene": "activate_scene", "script": "activate_scene", "valve": "open", "vacuum": "start"},
         "HassTurnOff": {"cover": "close", "lock": "unlock", "valve": "close", "vacuum": "stop"}}
PLAIN = {"HassNevermind": [], "HassMediaPause": ["pause_media"], "HassMediaUnpause": ["resume_media"], "HassMediaNext": ["next_track"], "HassMediaPrevious": ["previous_track"], "HassStartTimer": ["set_timer"],
         "HassCancelTimer": ["cancel_timer"], "HassCancelAllTimers": ["cancel_timer"], "HassTimerStatus": ["query_timer"], "HassIncreaseTimer": ["change_scheduled"], "HassDecreaseTimer": ["change_scheduled"], "HassPauseTimer": ["pause_scheduled"], "HassUnpauseTimer": ["resume_scheduled"],
         "HassGetCurrentDate": ["get_date"], "HassGetCurrentTime": ["get_time"], "HassShoppingListAddItem": ["add_to_list"], "HassListAddItem": ["add_to_list"], "HassShoppingListCompleteItem": ["remove_from_list"],
         "HassListCompleteItem": ["remove_from_list"], "HassBroadcast": ["announce"], "HassGetWeather": ["get_weather"], "HassMediaSearchAndPlay": ["play_media"]}
SETS = {"HassLightSet": ("set_brightness", "set_color"), "HassClimateSetTemperature": ("set_temperature",), "HassSetPosition": ("open", "close"), "HassSetVolume": ("set_volume",), "HassVacuumStart": ("start",), "HassVacuumReturnToBase": ("dock",)}
ASKS = {"get_state", "get_sensor", "machine_status", "explain_alarm", "query_timer", "query_list", "query_calendar", "get_time", "get_date", "get_weather", "calculate", "query_lists"}
CANNOT = {"HassRespond"}


def targets(fix, slots, context):
    areas = {a["name"].lower(): a for a in fix["areas"]}
    floors = {f["name"].lower(): f["id"] for f in fix["floors"]}
    slots = {k: v for k, v in slots.items() if k != "name" or v != "all"}
    domain, cls = slots.get("domain"), slots.get("device_class")
    area = slots.get("area") or ((context or {}).get("area") if not slots.get("name") and not slots.get("floor") else None)
    out = set()
    for e in fix["entities"]:
        names = [e["name"]] if isinstance(e["name"], str) else list(e["name"])
        if "name" in slots and slots["name"].lower() not in [n.lower() for n in names]:
            continue
        d = e["id"].split(".")[0]
        if domain and d not in (domain if isinstance(domain, list) else [domain]):
            continue
        c = (e.get("attributes") or {}).get("device_class")
        if cls and c not in (cls if isinstance(cls, list) else [cls]):
            continue
        if area and not slots.get("name") and e.get("area") != (areas.get(area.lower()) or {}).get("id"):
            continue
        if slots.get("floor") and areas and floors.get(slots["floor"].lower()) != next((a.get("floor") for a in fix["areas"] if a["id"] == e.get("area")), None):
            continue
        out.add(e["id"])
    return out


def ids(actions):
    out = set()
    for a in actions:
        out |= set(a.get("ids") or ([a["id"]] if "id" in a else []))
    return out


def judge(fix, test, actions):
    intent, slots, context = test["intent"]["name"], test["intent"].get("slots") or {}, test["intent"].get("context") or {}
    acting = [a for a in actions if a["action"] not in ASKS]
    done = [a for a in acting if a.get("result") in ("done", "simulated", "sent", "scheduled", "confirm")]
    if intent in CANNOT:
        return "cannot", bool(done)
    if intent == "HassGetState" or intent == "HassClimateGetTemperature":
        asked = [a for a in actions if a["action"] in ASKS]
        want = targets(fix, {k: v for k, v in slots.items() if k != "state"}, context)
        got = ids(asked)
        return ("right" if asked and not done and (not want or got & want or not got) else "wrong"), bool(done)
    if intent in PLAIN:
        want = PLAIN[intent]
        got = [a["action"] for a in actions if a.get("result") != "unknown"]
        extra = [a for a in done if a["action"] not in want]
        if intent in ("HassTimerStatus", "HassCancelTimer", "HassCancelAllTimers", "HassIncreaseTimer", "HassDecreaseTimer", "HassPauseTimer", "HassUnpauseTimer"):
            return ("right" if got and got[0] in want else "wrong"), bool(extra)
        return ("right" if got == want or want and got and all(g in want for g in got) else "wrong"), bool(extra)
    want = targets(fix, slots, context)
    if not want:
        return "cannot", bool(done)
    got = ids(done)
    if intent in SETS:
        names, value = SETS[intent], next((slots[k] for k in ("brightness", "temperature", "position", "volume_level") if k in slots), None)
        ok = bool(done) and all(a["action"] in names for a in done) and got <= want | {i for i in want} and bool(got & want)
        if value is not None:
            ok = ok and all(str(a.get("value", a.get("change"))) in (str(value), str(float(value)) if str(value).replace(".", "").isdigit() else "") or str(a.get("value")) == str(value) for a in done)
        return ("right" if ok else "wrong"), bool(done) and not ok
    domain = next(iter(want)).split(".")[0]
    verb = VERBS.get(intent, {}).get(domain, "turn_on" if intent == "HassTurnOn" else "turn_off")
    ok = bool(done) and all(a["action"] == verb or verb in ("turn_on", "turn_off") and a["action"] in ("start", "stop") for a in done)
    if ok and got and got < want and domain == "cover" and not slots.get("device_class") and not slots.get("name"):
        return "narrower", False
    ok = ok and got == want
    return ("right" if ok else "wrong"), bool(done) and not ok


def ask(port, text, room):
    body = {"text": text, "explain": True, "reply": False} | ({"room": room} if room else {})
    q = urllib.request.Request(f"http://127.0.0.1:{port}/v1/process", json.dumps(body).encode(), {"content-type": "application/json"})
    for _ in range(50):  # a busy machine says when to come back
        try:
            return json.load(urllib.request.urlopen(q, timeout=60))
        except urllib.error.HTTPError as e:
            if e.code not in (429, 503):
                raise
            time.sleep(float(e.headers.get("Retry-After") or 1))
    raise OSError("the server stays busy")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("intents")
    a.add_argument("shoal")
    a.add_argument("--language", default="en")
    a.add_argument("--port", type=int, default=18733)
    a.add_argument("--wrong", action="store_true")
    a.add_argument("--every", type=int, default=1, help="only each N-th sentence")
    o = a.parse_args()
    root = pathlib.Path(o.intents) / "tests" / o.language
    fix = read_fixtures(root / "_fixtures.yaml")
    tests = []
    for f in sorted(root.rglob("*.yaml")):
        if f.name != "_fixtures.yaml":
            tests += [t | {"file": str(f.relative_to(root))} for t in yaml.safe_load(f.read_text()).get("tests", []) if "intent" in t]
    with tempfile.TemporaryDirectory() as d:
        (pathlib.Path(d) / "home.yaml").write_text(yaml.safe_dump(home(fix, o.language), allow_unicode=True, sort_keys=False))
        (pathlib.Path(d) / "shoal.yaml").write_text(f"listen: 127.0.0.1:{o.port}\nhome: {d}/home.yaml\n")
        server = subprocess.Popen([o.shoal, "serve", "--config", f"{d}/shoal.yaml"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    ask(o.port, "what time is it", None)
                    break
                except OSError:
                    time.sleep(0.2)
            total, by = collections.Counter(), collections.defaultdict(collections.Counter)
            seen = 0
            for t in tests:
                for s in t["sentences"]:
                    seen += 1
                    if seen % o.every:
                        continue
                    room = (t["intent"].get("context") or {}).get("area")
                    room = room if isinstance(room, str) else None
                    r = ask(o.port, s, room)
                    verdict, wrong_act = judge(fix, t, r["actions"])
                    for c in (total, by[t["intent"]["name"]]):
                        c["n"] += 1
                        c[verdict] += 1
                        c["wrong act"] += wrong_act and verdict == "wrong"
                    if o.wrong and verdict == "wrong":
                        print(f"{t['file']}: {s}  {t['intent']['name']} {t['intent'].get('slots')} {room or ''}\n   {[c['intent'] for c in r.get('clauses', [])]} {json.dumps(r['actions'])[:300]}")
        finally:
            server.terminate()
            server.wait()
    for k, c in sorted(by.items()):
        print(f"{k:28} {c['n']:4}  right {c['right']:4}  wrong {c['wrong']:4}  wrong acts {c['wrong act']:3}  narrower {c['narrower']:3}  cannot {c['cannot']}")
    n = total["n"] - total["cannot"]
    print(f"all: {total['right']} of {n} right ({100 * total['right'] / n:.1f} %), {total['wrong act']} wrong acts; {total['narrower']} narrower ({100 * (total['right'] + total['narrower']) / n:.1f} % with them); {total['cannot']} ask for what Shoal cannot do")


if __name__ == "__main__":
    main()
