#!/usr/bin/env python3
"""The weights of a reader.gguf as a file that train.py --start takes: training goes on from what the pack has.

    training/reader/restore.py models/reader.gguf .cache/reader/reader.pt          # needs PyPI gguf
"""

import sys

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from model import CONFIG, Reader

PARTS = {"attn_q": "att.q", "attn_k": "att.k", "attn_v": "att.v", "attn_o": "att.o", "attn_norm": "n1", "cross_attn_q": "cross.q", "cross_attn_k": "cross.k", "cross_attn_v": "cross.v", "cross_attn_o": "cross.o",
         "cross_attn_norm": "nc", "ffn_gate": "ffn.gate", "ffn_up": "ffn.up", "ffn_down": "ffn.down", "ffn_norm": "n2"}
OTHERS = {"token_embd.weight": "embed.weight", "enc.output_norm.weight": "enc_norm.weight", "dec.output_norm.weight": "dec_norm.weight", "enc.blk.0.attn_rel_b.weight": "enc_rel.weight", "dec.blk.0.attn_rel_b.weight": "dec_rel.weight"}


def name_of(name):
    if name in OTHERS:
        return OTHERS[name]
    side, _, i, part, _ = name.split(".")
    return f"{side}.{i}.{PARTS[part]}.weight"


def main():
    weights = {}
    for t in GGUFReader(sys.argv[1]).tensors:
        k = name_of(t.name)
        w = torch.from_numpy(dequantize(t.data, t.tensor_type).copy())
        if k.endswith((".q.weight",)):
            w = w * CONFIG["head_dim"] ** 0.5  # names() divides
        weights[k] = w
    Reader(CONFIG).load_state_dict(weights)
    torch.save({k: v.half() for k, v in weights.items()}, sys.argv[2])


if __name__ == "__main__":
    main()
