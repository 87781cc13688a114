#!/usr/bin/env python3
"""Writes tests/data/voice/refs.bin: what ONNX Runtime computes of a Piper voice, block by block.

    python tools/make_voice_refs.py en_US-joe-medium.onnx tests/data/voice/refs.bin

The same file as models/voice.gguf was made of (training/voice/vits.py).  Its two sources of noise
become inputs, which get the deviates of src/model/voice/voice_math.h.  Each text: number of ids, of
frames (u32), noise and its share in the durations (f32), ids (u16), then half floats: statistics of the text encoder
[ids][384], logarithms of durations [ids], frames [frames][192], samples [frames * 256]."""

import json
import math
import struct
import sys

import numpy as np
import onnx
import onnxruntime

TEXTS = [("həlˈoʊ.", 0.0, 0.0), ("ɪts tˈɛn.", 0.667, 0.8)]
SEED = 7
MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def normal(seed, stream, i):
    key = mix(seed ^ mix((stream << 40) | i))
    other = mix((key + 0x9E3779B97F4A7C15) & MASK)
    return math.sqrt(-2 * math.log(((key >> 11) + 1) / 9007199254740993)) * math.cos(2 * math.pi * (other >> 11) / 9007199254740992)


def open_voice(path):
    """A session whose noise is an input, and which shows what is between the blocks."""
    model = onnx.load(path)
    graph = model.graph
    for name in ("/dp/RandomNormalLike", "/RandomNormalLike"):
        node = next(n for n in graph.node if n.name == name)
        node.op_type = "Identity"
        del node.attribute[:]
        node.input[0] = "noise" + name.replace("/", "_")
        graph.input.append(onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None))
    inside = ["/enc_p/proj/Conv_output_0", "/dp/Split_output_0", next(n for n in graph.node if n.name == "/dec/conv_pre/Conv").input[0]]
    for name in inside:
        graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]), inside


def run(session, inside, ids, noise, duration_noise, n_frames):
    pace = np.array([[[normal(SEED, 1 + half, i) for i in range(len(ids))] for half in (0, 1)]], np.float32)
    frames = np.array([[normal(SEED, 3, f * 192 + c) for c in range(192)] for f in range(n_frames)], np.float32).T[None]
    feed = {"input": np.array([ids], np.int64), "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([noise, 1.0, duration_noise], np.float32), "noise_dp_RandomNormalLike": pace, "noise_RandomNormalLike": frames}
    return session.run(["output"] + inside, feed)


def frames_of(session, inside, ids, duration_noise):
    """How many frames there are: the durations do not depend on the noise of the frames."""
    pace = np.array([[[normal(SEED, 1 + half, i) for i in range(len(ids))] for half in (0, 1)]], np.float32)
    feed = {"input": np.array([ids], np.int64), "input_lengths": np.array([len(ids)], np.int64), "scales": np.array([0, 1.0, duration_noise], np.float32),
            "noise_dp_RandomNormalLike": pace, "noise_RandomNormalLike": np.zeros((1, 192, 1), np.float32)}
    return int(np.ceil(np.exp(session.run([inside[1]], feed)[0])).sum())


def main():
    path, out = sys.argv[1:]
    table = json.load(open(path + ".json"))["phoneme_id_map"]
    session, inside = open_voice(path)
    with open(out, "wb") as f:
        f.write(struct.pack("<I", len(TEXTS)))
        for text, noise, duration_noise in TEXTS:
            ids = table["^"] + [0]
            for c in text:
                ids += table[c] + [0]
            ids += table["$"]
            n = frames_of(session, inside, ids, duration_noise)
            sound, stats, log_durations, frames = run(session, inside, ids, noise, duration_noise, n)
            f.write(struct.pack("<IIff", len(ids), n, noise, duration_noise) + np.array(ids, "<u2").tobytes())
            for x in (stats[0].T, log_durations.reshape(-1), frames[0].T, sound.reshape(-1)):
                f.write(np.ascontiguousarray(x).astype("<f2").tobytes())
            print(text, len(ids), n, stats.shape, frames.shape, sound.shape)


if __name__ == "__main__":
    main()
