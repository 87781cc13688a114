#!/usr/bin/env python3
"""Makes tests/data/whisper: a small random Whisper model as a Hugging Face folder and as a file of whisper.cpp,
and the results of transformers for it.  A developer's tool: the tests only read its output.

usage: tools/make_whisper_refs.py

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.
"""
import json
import shutil
import struct

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402

OUT = ROOT / "tests/data/whisper"
DIM, HEADS, FFN, MELS = 32, 2, 128, 80
PIECES = [b" t", b"he", b" the", b"in", b" a", b"th", b" b", b"oat"]  # merges; b" the" is b" t" + b"he"
N_TEXT = 256 + len(PIECES)
N_VOCAB = N_TEXT + 2 + 99 + 6 + 1501
SECONDS, EVERY_FRAME, EVERY_LOGIT, TARGET = 5, 25, 8, 20
NAMES = {  # whisper.cpp's
    "embed_positions.weight": "positional_embedding", "embed_tokens": "token_embedding", "layers": "blocks",
    "self_attn_layer_norm": "attn_ln", "encoder_attn_layer_norm": "cross_attn_ln", "final_layer_norm": "mlp_ln",
    "self_attn.": "attn.", "encoder_attn.": "cross_attn.", "q_proj": "query", "k_proj": "key", "v_proj": "value",
    "out_proj": "out", "fc1": "mlp.0", "fc2": "mlp.2"}


def sound():
    """A rough tone that rises, and noise, in whole numbers; tests/unit/model/test_whisper.c makes the same."""
    seed, out = 1, []
    for i in range(SECONDS * 16000):
        seed = (seed * 1664525 + 1013904223) % 2 ** 32
        out.append(i * i // 4096 % 8000 - 4000 + (seed >> 21) - 1024)
    return np.array(out, np.float32) / 32768


def randomize(model, rng):
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.copy_(torch.tensor(rng.normal(0.5, 0.3, p.shape)))
            else:
                p.copy_(torch.tensor(rng.normal(0.0, (p[0].numel()) ** -0.5 * 1.5, p.shape)))
        model.model.decoder.embed_positions.weight.mul_(2.0)


def ggml_name(name):
    name = name.removeprefix("model.")
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return name.replace("encoder.layer_norm", "encoder.ln_post").replace("decoder.layer_norm", "decoder.ln")


def write_ggml(path, model):
    c = model.config
    with open(path, "wb") as f:
        f.write(struct.pack("<12I", 0x67676d6c, c.vocab_size, 1500, DIM, HEADS, c.encoder_layers, c.max_target_positions, DIM, HEADS,
                            c.decoder_layers, MELS, 1))
        f.write(struct.pack("<2I", MELS, 201) + np.zeros((MELS, 201), "<f4").tobytes())
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        tokens = [bytes([b]) for b in printable + [b for b in range(256) if b not in printable]] + PIECES
        f.write(struct.pack("<I", len(tokens)) + b"".join(struct.pack("<I", len(t)) + t for t in tokens))
        for name, p in model.state_dict().items():
            if name == "proj_out.weight":
                continue
            a, name = p.numpy(), ggml_name(name).encode()
            if b"conv" in name and a.ndim == 1:
                a = a.reshape(-1, 1)
            half = a.ndim > 1 and b"positional" not in name and b"bias" not in name
            f.write(struct.pack("<3I", a.ndim, len(name), int(half)) + struct.pack(f"<{a.ndim}I", *a.shape[::-1]) + name)
            f.write(a.astype("<f2" if half else "<f4").tobytes())


def main():
    rng = np.random.default_rng([SEED, *b"whisper"])
    config = tf.WhisperConfig(
        vocab_size=N_VOCAB, d_model=DIM, encoder_layers=2, decoder_layers=1, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=FFN, decoder_ffn_dim=FFN, max_target_positions=64, num_mel_bins=MELS, decoder_start_token_id=N_TEXT + 1,
        pad_token_id=N_TEXT, bos_token_id=N_TEXT, eos_token_id=N_TEXT, suppress_tokens=None, begin_suppress_tokens=None)
    model = tf.WhisperForConditionalGeneration(config).eval()
    randomize(model, rng)
    model = model.half().float()
    shutil.rmtree(OUT, ignore_errors=True)
    model.half().save_pretrained(OUT / "folder")
    (OUT / "folder/generation_config.json").unlink(missing_ok=True)
    written = json.loads((OUT / "folder/config.json").read_text())
    (OUT / "folder/config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    (OUT / "folder/model.safetensors").chmod(0o644)
    model = model.float()
    write_ggml(OUT / "whisper.bin", model)
    features = tf.WhisperFeatureExtractor()(sound(), sampling_rate=16000, return_tensors="pt").input_features
    targets = [N_TEXT + 1, *[int(v) for v in rng.integers(0, N_VOCAB, TARGET - 1)]]
    model = model.double()
    with torch.no_grad():
        out = model(input_features=features.double(), decoder_input_ids=torch.tensor([targets]))
    write_ref(OUT / "whisper.ref", [
        ("features", features[0].T[::EVERY_FRAME].numpy().astype("<f4")),
        ("encoded", out.encoder_last_hidden_state[0][::EVERY_FRAME].numpy().astype("<f4")),
        ("targets", np.array(targets, "<u4")), ("logits", out.logits[0][:, ::EVERY_LOGIT].numpy().astype("<f4"))])
    print("logits", float(out.logits.min()), float(out.logits.max()), "spread of the best",
          len(set(out.logits[0].argmax(1).tolist())), "features", float(features.min()), float(features.max()))


if __name__ == "__main__":
    main()
