#!/usr/bin/env python3
"""Writes tests/data/ask/examples.jsonl: what `shoal ask` must make of each text (docs/ASK.md).

    training/ask_examples.py --shoal build/shoal      # replies by the program itself, greedy
    training/ask_examples.py --show < texts           # the same for any texts, readable

The encoder is run by PyTorch, the rules are those of ask_rules.py.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import torch
from safetensors.torch import load_file

import ask_rules as rules
import encoder as en
import encoder_data as ed
from encoder_export import decode

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOW = "2026-11-15T14:05:00"
TEXTS = """turn off the kitchen lights
turn off the kitchen lights and set the heating to 19 degrees
Turn on the lights in the living room, please!
dim the bedroom lamp to forty percent
make the living room lights blue
set the heating to nineteen and a half degrees
set the thermostat to 21.5 in the office
set the temperature in the bedroom to 66 °F
close the blinds in the bedroom
open the garage door
lock the front door and turn off all the lights
unlock the back door
start the vacuum in the hall
vacuum the living room
stop the robot vacuum
put the washing machine on eco mode
movie night scene
arm the alarm
set a timer for ten minutes
set a timer for an hour and a half
set a timer for 10 minutes for pasta
cancel the timer
how long is left on my timer
wake me up at half past seven
set an alarm for 7:30 am tomorrow
remind me to call my sister at 6 pm
add milk and eggs to my shopping list
what's on my shopping list
play some jazz in the kitchen
play Clair de Lune by Debussy
pause the music
next song
turn the volume up to 60%
mute the tv
what is the temperature in the bedroom
is the front door locked
what is the status of pump 3
why is pump 3 vibrating
start compressor 2
set the pressure of pump 3 to 4 bar
there is a leak at pump 7
what is the weather in Lyon tomorrow
what time is it
what time is it in Tokyo
what's the date today
what is 7 times 8
who won the game last night
what is the capital of France
what is my bank balance
hello
thank you
what can you do
turn on the disco ball
turn on the flux capacitor in the attic
turn on the kitchen and bedroom lights
turn off the lights and the tv in the lounge
close the curtains, dim the lights to 20% and play some jazz
set the kitchen light to 50 % and the bedroom light to 20 %
turn the lights off and the heating on
set the heating to 19 and the kitchen lights to 40%
turn on the heating at 6 am
turn off the lights in ten minutes
turn on the fan for two hours
turn off everything
open the window and tell Tom that dinner is ready
remind me to lock the shed and feed the cat
schedule dentist appointment for Tuesday at 9:30
what's on my calendar tomorrow
send a message to Anna saying I'm on my way
call mom
where are my keys
set a timer
remind me
please open
Set the bedroom temperature to 20 degrees, then lock the back door
turn off the fan in the office at quarter to nine tomorrow
play music
lock the front door. what time is it?""".split("\n")


class Encoder:
    """models/encoder in PyTorch: intent, router and entities of a text in one pass."""

    def __init__(self, folder):
        self.cfg = json.load(open(folder / "config.json"))
        self.w = {k: v.float() for k, v in load_file(str(folder / "model.safetensors")).items()}
        self.pieces = ed.Pieces([x.rstrip("\n") for x in open(folder / "vocab.txt", encoding="utf-8")])
        self.heads = self.cfg["num_attention_heads"]
        self.flow = self.cfg["shoal"]["router"]["flow"]

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"], self.cfg["layer_norm_eps"])

    def body(self, ids):
        e = "bert.embeddings."
        x = self.w[e + "word_embeddings.weight"][ids] + self.w[e + "position_embeddings.weight"][: len(ids)] + self.w[e + "token_type_embeddings.weight"][0]
        x = self.norm(x, e + "LayerNorm")
        for i in range(self.cfg["num_hidden_layers"]):
            l = f"bert.encoder.layer.{i}."
            q, k, v = (self.linear(x, f"{l}attention.self.{n}").view(len(ids), self.heads, -1).transpose(0, 1) for n in ("query", "key", "value"))
            a = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, -1) @ v
            x = self.norm(x + self.linear(a.transpose(0, 1).reshape(len(ids), -1), l + "attention.output.dense"), l + "attention.output.LayerNorm")
            h = torch.nn.functional.gelu(self.linear(x, l + "intermediate.dense"))
            x = self.norm(x + self.linear(h, l + "output.dense"), l + "output.LayerNorm")
        return x

    def vector(self, text):
        """The embedding: mean over all pieces, length 1."""
        ids, _ = self.pieces.encode(text.split())
        with torch.no_grad():
            return torch.nn.functional.normalize(self.body(ids).mean(0), dim=0).numpy()

    def run(self, text):
        words = text.split()
        ids, first = self.pieces.encode(words)
        with torch.no_grad():
            h = self.body(ids)
            lg = self.linear(torch.tanh(self.linear(h[0], "bert.pooler.dense")), "classifier")
            tg = self.linear(h[first], "tagger")
        sets = self.cfg["shoal"]["intent"]["label_sets"]

        def best(name):
            s = sets[name]
            p = torch.softmax(lg[s["first"] : s["first"] + s["count"]] / s["temperature"], 0)
            i = int(p.argmax())
            return s["labels"][i], float(p[i])

        s = self.cfg["shoal"]["entities"]["label_sets"]["home"]
        tags = decode(tg[:, s["first"] : s["first"] + s["count"]].numpy(), self.w["tagger.transitions.home"].numpy(), s["labels"])
        return best("combined"), best("router"), ed.chunks(tags)


def understand(enc, text, now):
    row = dict(text=text, now=now.isoformat(), clauses=[], actions=[], contexts=[])
    lines = []
    for c in rules.clauses(text):
        intent, router, ents = enc.run(c)
        acts, got = rules.decide(c, intent, router, ents, now, enc.cfg["shoal"]["intent"]["label_sets"]["combined"]["threshold"], enc.flow)
        row["clauses"].append(dict(text=c, intent=intent[0], intent_p=round(intent[1], 4), router=router[0], router_p=round(router[1], 4), entities=[dict(type=t, text=" ".join(c.split()[i:j]).rstrip(rules.CLOSING)) for t, i, j in ents]))
        row["actions"] += acts
        lines += got
    row["contexts"] = rules.contexts(lines)
    return row


def reply(shoal, model, context):
    p = f"<|im_start|>user\n{context}<|im_end|>\n<|im_start|>assistant\n"
    r = subprocess.run([shoal, "generate", "-m", str(model), "--special", "--temp", "0", "-n", "120", "--stop", "<|im_end|>", "-f", "-"], input=p + "\n", capture_output=True, text=True, check=True)
    return r.stdout.strip().replace("<|im_end|>", "").strip()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--models", default=ROOT / "models", type=pathlib.Path)
    ap.add_argument("--shoal", help="the program, for the replies")
    ap.add_argument("--out", default=ROOT / "tests/data/ask/examples.jsonl", type=pathlib.Path)
    ap.add_argument("--show", action="store_true", help="texts from stdin, to stdout")
    a = ap.parse_args()
    enc = Encoder(a.models / "encoder")
    rows = []
    for text in sys.stdin.read().splitlines() if a.show else TEXTS:
        row = understand(enc, text, datetime.datetime.fromisoformat(NOW))
        if a.shoal:
            row["reply"] = " ".join(reply(a.shoal, a.models / "reply.gguf", c) for c in row["contexts"])
        rows.append(row)
        if a.show:
            print(text, *("   " + json.dumps(x, ensure_ascii=False) for x in row["actions"]), *("   " + c.replace("\n", "\n   ") for c in row["contexts"]), "   -> " + row.get("reply", ""), sep="\n")
    if not a.show:
        a.out.parent.mkdir(parents=True, exist_ok=True)
        a.out.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
        print(f"{len(rows)} examples in {a.out}")


if __name__ == "__main__":
    main()
