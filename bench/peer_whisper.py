# peer_whisper.py - whisper.cpp (pywhispercpp) and faster-whisper for bench/whisper.js: reads lines with names of files of 16-bit samples and
# answers each with one line of JSON: milliseconds, processor milliseconds, text.  Arguments: cpp|faster MODEL.bin THREADS FOLDER; FOLDER gets
# the same weights as CTranslate2 wants them.  Greedy, in English, without the text before, as ours.
import json
import os
import resource
import struct
import sys
import time

import numpy as np

which, model, threads, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


LANGUAGES = ("en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is "
             "hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue")


def read_ggml(path):
    with open(path, "rb") as f:
        u = lambda n: struct.unpack(f"<{n}I", f.read(4 * n))
        head = u(12)
        mels, n = u(2)
        f.read(4 * mels * n)
        tokens = [f.read(u(1)[0]) for _ in range(u(1)[0])]
        w = {}
        while part := f.read(12):
            dims, name_bytes, half = struct.unpack("<3I", part)
            shape = u(dims)[::-1]
            name = f.read(name_bytes).decode()
            w[name] = np.frombuffer(f.read(int(np.prod(shape)) * (2 if half else 4)), "<f2" if half else "<f4").reshape(shape).astype("f4")
    return head, tokens, w


def letters():
    """GPT-2's printable characters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, n = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in out:
            out[b] = chr(256 + n)
            n += 1
    return out


def merges_of(tokens):
    """A token is made of the two that a merge by rank leaves last."""
    rank, out = {t: i for i, t in enumerate(tokens)}, []
    for t in tokens:
        parts = [t[i:i + 1] for i in range(len(t))]
        while len(parts) > 2:
            i = min(range(len(parts) - 1), key=lambda k: rank.get(parts[k] + parts[k + 1], 1 << 30) if parts[k] + parts[k + 1] != t else 1 << 30)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            out.append(parts)
    return out


def write_tokenizer(path, tokens, n_vocab):
    import tokenizers
    of = letters()
    name = lambda t: "".join(of[b] for b in t)
    vocab = {name(t): i for i, t in enumerate(tokens)}
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [tuple(map(name, m)) for m in merges_of(tokens)]))
    t.pre_tokenizer, t.decoder = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    languages = LANGUAGES.split()[:n_vocab - len(tokens) - 1509]
    special = ["<|endoftext|>", "<|startoftranscript|>", *[f"<|{x}|>" for x in languages], "<|translate|>", "<|transcribe|>", "<|startoflm|>",
               "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    t.add_special_tokens([tokenizers.AddedToken(x, special=True) for x in special])
    t.save(path)
    return [*vocab, *special, *[f"<|{i * 0.02:.2f}|>" for i in range(n_vocab - len(tokens) - len(special))]], len(languages)


def convert(path, out):
    from ctranslate2.converters import utils
    from ctranslate2.specs import common_spec, whisper_spec
    head, tokens, w = read_ggml(path)
    spec = whisper_spec.WhisperSpec(head[5], head[4], head[9], head[8])

    def linear(name):
        s = common_spec.LinearSpec()
        s.weight = w[f"{name}.weight"]
        s.bias = w.get(f"{name}.bias")
        if s.bias is None:
            s.bias = np.zeros(len(s.weight), "f4")
        return s

    def norm(s, name):
        s.gamma, s.beta = w[f"{name}.weight"], w[f"{name}.bias"]

    def copy(s, name):
        s.weight, s.bias = linear(name).weight, linear(name).bias

    def layer(s, name, cross):
        norm(s.self_attention.layer_norm, f"{name}.attn_ln")
        utils.fuse_linear(s.self_attention.linear[0], [linear(f"{name}.attn.{x}") for x in ("query", "key", "value")])
        copy(s.self_attention.linear[1], f"{name}.attn.out")
        if cross:
            norm(s.attention.layer_norm, f"{name}.cross_attn_ln")
            copy(s.attention.linear[0], f"{name}.cross_attn.query")
            utils.fuse_linear(s.attention.linear[1], [linear(f"{name}.cross_attn.{x}") for x in ("key", "value")])
            copy(s.attention.linear[2], f"{name}.cross_attn.out")
        norm(s.ffn.layer_norm, f"{name}.mlp_ln")
        copy(s.ffn.linear_0, f"{name}.mlp.0")
        copy(s.ffn.linear_1, f"{name}.mlp.2")

    for i in (1, 2):
        conv = getattr(spec.encoder, f"conv{i}")
        conv.weight, conv.bias = w[f"encoder.conv{i}.weight"], w[f"encoder.conv{i}.bias"].reshape(-1)
    for side, ln in (("encoder", "ln_post"), ("decoder", "ln")):
        s = getattr(spec, side)
        s.position_encodings.encodings = w[f"{side}.positional_embedding"]
        norm(s.layer_norm, f"{side}.{ln}")
        for i, each in enumerate(s.layer):
            layer(each, f"{side}.blocks.{i}", side == "decoder")
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = w["decoder.token_embedding.weight"]
    os.makedirs(out, exist_ok=True)
    names, n_languages = write_tokenizer(f"{out}/tokenizer.json", tokens, head[1])
    start = len(tokens) + 1
    spec.config.lang_ids = list(range(start + 1, start + 1 + n_languages))
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], [names.index("\u0120"), len(tokens)]
    spec.config.alignment_heads = [(head[9] - 1, h) for h in range(head[8])]
    spec.register_vocabulary(names)
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(out)


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return (r.ru_utime + r.ru_stime) * 1e3


if which == "cpp":
    from pywhispercpp.model import Model
    quiet = os.dup(1)  # it writes to stdout
    os.dup2(2, 1)
    sys.stdout = os.fdopen(quiet, "w")
    m = Model(model, n_threads=threads, print_progress=False, print_realtime=False, redirect_whispercpp_logs_to=None)
    hear = lambda x: " ".join(s.text.strip() for s in m.transcribe(x, language="en", greedy={"best_of": 1}, no_context=True))
else:
    if not os.path.exists(f"{folder}/model.bin"):
        convert(model, folder)
    from faster_whisper import WhisperModel
    f = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads)
    hear = lambda x: " ".join(s.text.strip() for s in f.transcribe(x, language="en", beam_size=1, best_of=1, condition_on_previous_text=False)[0])

for line in sys.stdin:
    x = np.fromfile(line.strip(), np.int16).astype(np.float32) / 32768
    start, used = time.perf_counter(), cpu()
    text = hear(x)
    print(json.dumps(dict(ms=(time.perf_counter() - start) * 1e3, cpu_ms=cpu() - used, text=text)), flush=True)
