#!/usr/bin/env python3
"""Writes tests/data/ask/examples.jsonl: texts with the full result of `shoal ask`, as the program answers today.

    training/ask_examples.py --library build/libshoal.so

Read the difference before you commit it: the tests hold the program to these answers.
"""

import argparse
import ctypes
import datetime
import json
import pathlib

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
lock the front door. what time is it?
do not unlock the front door
unlock the front door
please don't stop the pump
my wife told me to unlock the back door yesterday
you shouldn't have opened the gate
what happens if I turn off the freezer?
open the garage, no wait, close it
stop it, harold
add up
brighter home
STOP
stop everything
stop the saw
set the mixer speed to 12,000 rpm
lower the temperature by 2 degrees
cancel all my alarms
turn off the smoke alarm
set a timer for -5 minutes
set an alarm for 25:00
set the oven to 500 degrees
set the boiler pressure to 120 bar
text Maria that I'm running late and turn off the oven
remind me in twenty minutes to check the oven
cancel my dentist appointment
device: safe
turn it off""".split("\n")


class RequestOpts(ctypes.Structure):
    """struct shoal_ask_request_opts of include/shoal/shoal_ask.h"""

    _fields_ = [("size", ctypes.c_size_t), ("text", ctypes.c_char_p), ("text_bytes", ctypes.c_size_t), ("now_s", ctypes.c_int64), ("no_reply", ctypes.c_bool), ("priority", ctypes.c_int32),
                ("deadline_ns", ctypes.c_uint64), ("event", ctypes.c_void_p), ("event_ctx", ctypes.c_void_p), ("conversation", ctypes.c_char_p), ("confirm", ctypes.c_char_p)]


class Shoal:
    def __init__(self, library):
        self.lib = ctypes.CDLL(str(library))
        self.ask = ctypes.c_void_p()
        if self.lib.shoal_ask_open(ctypes.byref(self.ask), None, None) < 0:
            raise SystemExit("cannot open the models: run this in the root of the repository")

    def answer(self, text, now):
        raw = text.encode()
        o = RequestOpts(size=ctypes.sizeof(RequestOpts), text=raw, text_bytes=len(raw), now_s=int(now.timestamp()))
        r, out, n = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_size_t()
        if self.lib.shoal_ask_submit(self.ask, ctypes.byref(o), ctypes.byref(r), None) < 0 or self.lib.shoal_ask_wait(r) < 0:
            raise SystemExit(f"failed: {text}")
        self.lib.shoal_ask_json(r, 1, ctypes.byref(out), ctypes.byref(n), None)
        got = json.loads(out.value)
        self.lib.shoal_ask_free(r)
        return got


def row(shoal, text):
    got = shoal.answer(text, datetime.datetime.fromisoformat(NOW))
    clauses = [dict(text=c["text"], act=c["act"], plan=c["intent"]) for c in got["clauses"]]
    actions = [{k: x for k, x in a.items() if k != "token"} for a in got["actions"]]  # a token is new each time
    return dict(text=text, now=NOW, clauses=clauses, actions=actions, contexts=got["contexts"], reply=got["reply"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--library", default=ROOT / "build/libshoal.so", type=pathlib.Path)
    ap.add_argument("--out", default=ROOT / "tests/data/ask/examples.jsonl", type=pathlib.Path)
    a = ap.parse_args()
    shoal = Shoal(a.library)
    rows = [row(shoal, t) for t in TEXTS]
    a.out.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    print(f"{len(rows)} examples in {a.out}")


if __name__ == "__main__":
    main()
