#!/usr/bin/env python3
"""Weights to a folder in the layout of transformers, which `shoal model convert FOLDER reader.gguf --type q8_0` reads.

    training/reader/export.py .cache/reader/reader.pt .cache/reader/folder
"""

import json
import pathlib
import shutil
import sys

import torch
from model import CONFIG, Reader, names
from plans import TOKENS


def export(model, folder):
    from safetensors.torch import save_file
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.detach().float().contiguous().cpu() for k, v in names(model).items()}, folder / "model.safetensors", metadata={"format": "pt"})
    c = model.c
    json.dump({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": c["dim"], "d_kv": c["head_dim"], "d_ff": c["ffn"], "num_layers": c["enc"], "num_decoder_layers": c["dec"], "num_heads": c["heads"],
               "relative_attention_num_buckets": c["buckets"], "relative_attention_max_distance": c["distance"], "dropout_rate": 0.0, "layer_norm_epsilon": 1e-6, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new", "is_gated_act": True,
               "is_encoder_decoder": True, "tie_word_embeddings": True, "vocab_size": c["vocab"], "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "n_positions": 512, "shoal_plan_tokens": len(TOKENS)}, open(folder / "config.json", "w"))
    shutil.copy(pathlib.Path(__file__).with_name("tokenizer.json"), folder / "tokenizer.json")
    json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>"}, open(folder / "tokenizer_config.json", "w"))
    json.dump({"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "num_beams": 1, "max_new_tokens": 48}, open(folder / "generation_config.json", "w"))


if __name__ == "__main__":
    torch.manual_seed(1)
    m = Reader(CONFIG)
    if sys.argv[1] != "random":
        m.load_state_dict({k: v.float() for k, v in torch.load(sys.argv[1], map_location="cpu").items()})
    export(m, sys.argv[2])
    print(sum(p.numel() for p in m.parameters()), "parameters")
