#!/usr/bin/env python3
"""Makes tests/data/whisper/words.*: what OpenAI's whisper/timing.py says about the times of words.  A developer's tool: the tests
only read its output.

usage: tools/make_word_refs.py WHISPER-TINY.bin [--shoal build/shoal]

words.ref: where the heads of the random model of tests/data/whisper look, and an alignment of random weights.  words.txt: tokens, parts
and words of real sounds, heard with Whisper tiny (a file of whisper.cpp, as `shoal pull whisper-tiny` has it).  --shoal compares the
times that the program gives for these sounds.  Needs PyPI; makes a Python environment of its own in .cache/refs-venv.
"""
import argparse
import base64
import gzip
import json
import struct
import subprocess
import sys

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv("openai-whisper==20250625", "soundfile")

import numpy as np  # noqa: E402
import soundfile  # noqa: E402
import torch  # noqa: E402
import whisper  # noqa: E402
from whisper import timing  # noqa: E402

OUT = ROOT / "tests/data/whisper"
SOUNDS = ["jfk.flac", "amiable.wav", "cards.flac", "kitchen_lights.wav", "talk.flac"]
EVERY_FRAME = 25


def load(path):
    """A file of whisper.cpp as OpenAI's model."""
    with open(path, "rb") as f:
        u = lambda n: struct.unpack(f"<{n}I", f.read(4 * n))
        head = u(12)
        mels, n = u(2)
        f.read(4 * mels * n)
        for _ in range(u(1)[0]):
            f.read(u(1)[0])
        state = {}
        while f.read(1):
            f.seek(-1, 1)
            dims, name_bytes, half = u(3)
            shape = u(dims)[::-1]
            name = f.read(name_bytes).decode()
            a = np.frombuffer(f.read(int(np.prod(shape)) * (2 if half else 4)), "<f2" if half else "<f4")
            state[name] = torch.tensor(a.reshape(shape).astype("f4"))
    dims = whisper.model.ModelDimensions(n_mels=head[10], n_audio_ctx=head[2], n_audio_state=head[3], n_audio_head=head[4],
                                         n_audio_layer=head[5], n_vocab=head[1], n_text_ctx=head[6], n_text_state=head[7],
                                         n_text_head=head[8], n_text_layer=head[9])
    model = whisper.model.Whisper(dims)
    for name, p in model.state_dict().items():
        p.copy_(state[name].reshape(p.shape))
    return model.eval()


def read_ref(path, wanted):
    with open(path, "rb") as f:
        f.read(8)
        for _ in range(struct.unpack("<I", f.read(4))[0]):
            name, kind, rows, cols = struct.unpack("<16sIII", f.read(28))
            data = f.read(rows * cols * (4, 4, 2, 1)[kind] + -rows * cols * (4, 4, 2, 1)[kind] % 4)
            if name.rstrip(b"\0").decode() == wanted:
                return np.frombuffer(data, ("<f4", "<u4", "<u2", "u1")[kind]).reshape(rows, cols)
    raise SystemExit(f"{path} has no {wanted}")


def sound():
    """As in make_whisper_refs.py."""
    i = np.arange(5 * 16000, dtype=np.int64)
    seeds, seed = [], 1
    for _ in i:
        seed = (seed * 1664525 + 1013904223) % 2 ** 32
        seeds.append(seed >> 21)
    return ((i * i // 4096 % 8000 - 4000 + np.array(seeds) - 1024) / 32768).astype("f4")


def looks(model, samples, tokens):
    """[token][head of the first decoder layer][frame]"""
    found = []
    hook = model.decoder.blocks[0].cross_attn.register_forward_hook(lambda _m, _i, out: found.append(out[-1][0]))
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(samples))
    with torch.no_grad(), whisper.model.disable_sdpa():
        model(mel[None], torch.tensor([tokens]))
    hook.remove()
    return found[0].softmax(-1).permute(1, 0, 2)


def align(weights, heard, first, n):
    """timing.find_alignment, from the weights [row][head][frame] on."""
    w = torch.tensor(weights).permute(1, 0, 2)[:, :, :heard]
    w = w / w.sum(-1, keepdim=True)
    std, mean = torch.std_mean(w, dim=-2, keepdim=True, unbiased=False)
    w = timing.median_filter((w - mean) / std, 7).mean(axis=0)[first:first + n]
    rows, frames = timing.dtw(-w)
    return frames[np.pad(np.diff(rows), (1, 0), constant_values=1).astype(bool)]


def references():
    rng = np.random.default_rng([SEED, *b"words"])
    targets = [int(t) for t in read_ref(OUT / "whisper.ref", "targets")[0]]
    seen = looks(load(OUT / "whisper.bin"), sound(), targets).numpy()
    bumps = np.exp(-(np.arange(40)[None, None] - np.arange(11)[:, None, None] * 3.1 - rng.normal(0, 2, (11, 3, 1))) ** 2 / 9)
    weights = (bumps + rng.random((11, 3, 40)) * 0.4).astype("<f4")
    write_ref(OUT / "words.ref", [("looks", seen.reshape(-1, seen.shape[-1])[:, ::EVERY_FRAME].astype("<f4")),
                                  ("weights", weights.reshape(-1, 40)), ("begin", align(weights, 36, 2, 8).astype("<u4"))])


class Heard:
    """What happens inside of the first window of whisper.transcribe."""

    def __init__(self, model, path):
        module = sys.modules["whisper.transcribe"]
        self.add, self.dtw, self.parts = module.add_word_timestamps, timing.dtw, None
        module.add_word_timestamps, timing.dtw = self.on_words, self.on_dtw
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == 16000 and samples.ndim == 1, path
        self.result = whisper.transcribe(model, samples, word_timestamps=True, fp16=False, condition_on_previous_text=False)
        module.add_word_timestamps, timing.dtw = self.add, self.dtw

    def on_dtw(self, x):
        rows, frames = self.dtw(x)
        self.path = frames[np.pad(np.diff(rows), (1, 0), constant_values=1).astype(bool)] * 0.02
        return rows, frames

    def on_words(self, *, segments, tokenizer, **rest):
        parts = [([t for t in s["tokens"] if t < tokenizer.eot], s["start"], s["end"]) for s in segments]
        self.add(segments=segments, tokenizer=tokenizer, **rest)
        if self.parts is None:
            self.parts, self.begin, self.tokenizer = parts, self.path, tokenizer
            self.words = [w for s in segments for w in s["words"]]


def write_words(f, name, heard):
    tokens = [t for p in heard.parts for t in p[0]]
    print("sound", name, file=f)
    for p in heard.parts:
        print(f"part {len(p[0])} {p[1]:.3f} {p[2]:.3f}", file=f)
    for token, begin in zip(tokens, heard.begin):
        print(f"token {begin:.3f} {heard.tokenizer.encoding.decode_single_token_bytes(token).hex()}", file=f)
    print(f"end {heard.begin[len(tokens)]:.3f}", file=f)
    for w in heard.words:
        print(f"word {w['start']:.3f} {w['end']:.3f} {w['word'].strip().encode().hex()}", file=f)
    print("done", file=f)


def compare(shoal, model, name, heard):
    out = subprocess.run([shoal, "transcribe", "-m", model, "--words", "--json", ROOT / "tests/data/audio" / name],
                         check=True, capture_output=True, text=True).stdout
    ours = json.loads(out).get("words", [])
    bare = lambda words: [w["word"].strip(" .,!?").lower() for w in words]
    same = bare(ours) == bare(heard.words)
    off = [abs(a[k] - b[k]) for a, b in zip(ours, heard.words) for k in ("start", "end")] if same else []
    print(f"{name}: {len(ours)} words, {'the same' if same else 'OTHER WORDS than the reference'}; "
          f"times differ by {np.mean(off) if off else 0:.3f} s, at most {max(off, default=0):.3f} s")


def show_heads():
    """For src/model/aligned.c."""
    sizes = {"tiny": 6, "base": 8, "small": 12, "medium": 16, "large": 20}
    for name, packed in whisper._ALIGNMENT_HEADS.items():
        n = sizes[name.split(".")[0].split("-")[0].replace("turbo", "large")]
        flags = gzip.decompress(base64.b85decode(packed))
        print(name, [divmod(i, n) for i, on in enumerate(flags) if on])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", help="Whisper tiny as a file of whisper.cpp")
    p.add_argument("--shoal", help="program whose times are compared")
    p.add_argument("--heads", action="store_true", help="also print OpenAI's lists of heads")
    a = p.parse_args()
    references()
    model = load(a.model)
    model.set_alignment_heads(whisper._ALIGNMENT_HEADS["tiny"])
    with open(OUT / "words.txt", "w") as f:
        for name in SOUNDS:
            heard = Heard(model, ROOT / "tests/data/audio" / name)
            write_words(f, name, heard)
            if a.shoal:
                compare(a.shoal, a.model, name, heard)
    if a.heads:
        show_heads()


if __name__ == "__main__":
    main()
