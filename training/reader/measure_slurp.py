#!/usr/bin/env python3
"""SLURP's test sentences that a home can do, through a server with the demo home.

    training/reader/measure_slurp.py slurp/dataset/slurp/test.jsonl build/shoal [--wrong] [--rows N]

Real people's sentences with their intents. *Done*: the action is one that the intent means (its slots are not compared: SLURP's
homes are not this one). *Asked*: the same action, but it asks back. *Wrong act*: another action would be carried out.
Neither the reader nor the rules were trained on this part; sentences that stand word for word in a template of the generator
("what time is it") are left out.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import tempfile
import time

import families
import sentences
from measure_ha import ASKS, ask

INTENTS = {
    "iot_hue_lightoff": "turn_off set_brightness", "iot_hue_lighton": "turn_on", "iot_hue_lightup": "set_brightness turn_on", "iot_hue_lightdim": "set_brightness", "iot_hue_lightchange": "set_color set_brightness set_mode",
    "iot_cleaning": "start turn_on", "iot_coffee": "start turn_on", "iot_wemo_on": "turn_on start", "iot_wemo_off": "turn_off stop",
    "audio_volume_up": "set_volume unmute", "audio_volume_down": "set_volume", "audio_volume_mute": "mute set_volume turn_off", "audio_volume_other": "set_volume",
    "alarm_set": "set_alarm", "alarm_remove": "cancel_alarm", "alarm_query": "query_timer", "play_music": "play_media resume_media turn_on", "play_radio": "play_media turn_on", "play_podcasts": "play_media next_track previous_track", "play_audiobook": "play_media resume_media", "play_game": "play_media",
    "lists_createoradd": "add_to_list create_list", "lists_remove": "remove_from_list clear_list", "lists_query": "query_list query_lists", "calendar_set": "set_reminder add_event set_alarm", "calendar_remove": "cancel_scheduled cancel_event add_event",
    "calendar_query": "query_calendar query_timer", "datetime_query": "get_time get_date", "weather_query": "get_weather"}


def in_templates():
    """What the generator can say without filling a slot, in lower case."""
    texts = sum(sentences.T.values(), []) + sum((v for v in vars(families).values() if isinstance(v, list) and v and isinstance(v[0], str)), [])
    return {re.sub(r"\s*\{\w+\}", "", t).strip() for t in texts}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("test")
    a.add_argument("shoal")
    a.add_argument("--port", type=int, default=18734)
    a.add_argument("--rows", type=int, default=0)
    a.add_argument("--wrong", action="store_true")
    o = a.parse_args()
    rows = [json.loads(x) for x in open(o.test)]
    rows = [(x["sentence"], f"{x['scenario']}_{x['action']}") for x in rows]
    rows = [(s, i) for s, i in dict.fromkeys(rows) if i in INTENTS]
    random.Random(3).shuffle(rows)
    known = in_templates()
    rows = [(s, i) for s, i in rows if s.lower().strip() not in known]
    rows = rows[: o.rows or len(rows)]
    total, by = collections.Counter(), collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as d:
        (pathlib.Path(d) / "shoal.yaml").write_text(f"listen: 127.0.0.1:{o.port}\n")
        server = subprocess.Popen([o.shoal, "serve", "--config", f"{d}/shoal.yaml"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            for _ in range(300):
                try:
                    ask(o.port, "what time is it", None)
                    break
                except OSError:
                    time.sleep(0.2)
            for s, i in rows:
                r = ask(o.port, s, None)
                want = INTENTS[i].split()
                got = [x for x in r["actions"] if x["action"] in want]
                acted = [x for x in r["actions"] if x["action"] not in ASKS and x["action"] not in want and x.get("result") in ("done", "simulated", "sent", "scheduled")]
                verdict = "wrong act" if acted else "done" if any(x.get("result") not in ("ask", "unknown", "unsure") for x in got) else "asked" if got else "missed"
                for c in (total, by[i]):
                    c[verdict] += 1
                    c["n"] += 1
                if o.wrong and verdict in ("missed", "wrong act"):
                    print(f"{verdict}: {s}  {i}\n   {[c['intent'] for c in r.get('clauses', [])]} {json.dumps(r['actions'])[:200]}")
        finally:
            server.terminate()
            server.wait()
    for k, c in sorted(by.items()):
        print(f"{k:24} {c['n']:4}  done {c['done']:4}  asked {c['asked']:3}  missed {c['missed']:4}  wrong acts {c['wrong act']:3}")
    n = total["n"]
    print(f"all: of {n} sentences {100 * total['done'] / n:.1f} % done, {100 * total['asked'] / n:.1f} % asked back, {100 * total['missed'] / n:.1f} % not understood, {100 * total['wrong act'] / n:.1f} % acted on wrongly")


if __name__ == "__main__":
    main()
