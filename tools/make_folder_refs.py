#!/usr/bin/env python3
"""Makes tests/data/folders: small random decoders as Hugging Face folders, and the results of
transformers for them. A developer's tool: the tests only read its output.

usage: tools/make_folder_refs.py [NAME ...]     all by default

Needs PyPI; makes a Python environment of its own in .cache/refs-venv.  The files are described
in tests/data/folders/README.md.
"""
import json
import shutil
import sys

from refs_common import ROOT, SEED, enter_venv, write_ref

enter_venv()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402

OUT = ROOT / "tests/data/folders"
TEXT = ("The old harbour wakes: gulls argue, the ropes creak and 27 boats wait for the tide. "
        "\"Go?\" asks Ana.\n")
N_VOCAB, N_TOKENS = 272, 24
BASE = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=3, max_position_embeddings=64, vocab_size=N_VOCAB, pad_token_id=None,
            bos_token_id=269, eos_token_id=271, attn_implementation="eager")
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def config(**more):
    return {**BASE, **more}


def rope(theta=10000.0, **more):
    return {"rope_type": "default", "rope_theta": theta, **more}


# name -> (class, config, type, bytes of a shard)
MODELS = {
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(
        vocab_size=N_VOCAB, n_positions=64, n_embd=48, n_layer=2, n_head=3, bos_token_id=269,
        eos_token_id=271), torch.float32, None),
    "gptneo": (tf.GPTNeoForCausalLM, tf.GPTNeoConfig(
        vocab_size=N_VOCAB, max_position_embeddings=64, hidden_size=32, num_layers=4, num_heads=2,
        intermediate_size=64, attention_types=[[["global", "local"], 2]], window_size=5,
        bos_token_id=269, eos_token_id=271, attn_implementation="eager"), torch.float32, None),
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(**config(
        num_key_value_heads=1, head_dim=16, attention_bias=True, rms_norm_eps=1e-5,
        tie_word_embeddings=False, rope_parameters=rope())), torch.bfloat16, 40000),
    "llama3": (tf.LlamaForCausalLM, tf.LlamaConfig(**config(
        num_key_value_heads=1, head_dim=32, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters=LLAMA3)), torch.float16, None),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(**config(
        num_key_value_heads=1, head_dim=16, sliding_window=6, rope_parameters=rope())),
        torch.bfloat16, None),
    "qwen2": (tf.Qwen2ForCausalLM, tf.Qwen2Config(**config(
        num_key_value_heads=1, tie_word_embeddings=True, use_sliding_window=False,
        rope_parameters=rope(1000000.0))), torch.float32, None),
    "qwen3": (tf.Qwen3ForCausalLM, tf.Qwen3Config(**config(
        num_key_value_heads=1, head_dim=32, tie_word_embeddings=True, use_sliding_window=False,
        attention_bias=False, rope_parameters=rope(1000000.0))), torch.float16, None),
    "phi": (tf.PhiForCausalLM, tf.PhiConfig(**config(
        layer_norm_eps=1e-5, rope_parameters=rope(partial_rotary_factor=0.5))), torch.float32,
        None),
}


def randomize(model, rng):
    """Makes weights as uneven as trained ones, so that every part of the computation matters."""
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = p.ndim == 1 and name.endswith("weight")
            embedding = any(k in name for k in ("embed", "wte", "wpe"))
            conv = "Conv1D" in str(type(model.get_submodule(name.rsplit(".", 1)[0])))
            fan_in = p.shape[0] if conv else p.shape[-1]
            spread = (0.1 if p.ndim == 1 else (0.3 if tied else 1.0) if embedding
                      else 1 / fan_in ** 0.5)
            if "attention.q_proj" in name:  # GPT-Neo does not scale scores: its weights include the scale
                spread /= 4
            p.copy_(torch.tensor(rng.normal(1.0 if norm else 0.0, spread, p.shape)))


def byte_level():
    """tokenizer.json: bytes, the most frequent pairs of TEXT, three special tokens."""
    import tokenizers as tk
    t = tk.Tokenizer(tk.models.BPE())
    t.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tk.decoders.ByteLevel()
    t.train_from_iterator([TEXT], tk.trainers.BpeTrainer(
        vocab_size=N_VOCAB - 3, show_progress=False,
        initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    assert t.get_vocab_size() == N_VOCAB
    return t


def make(name):
    kind, conf, dtype, shard = MODELS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    model = kind(conf).eval()
    randomize(model, rng)
    model = model.to(dtype)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
    (folder / "generation_config.json").unlink(missing_ok=True)
    byte_level().save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>",
         "eos_token": "<|im_end|>"}) + "\n")
    model = model.double()
    ids = [int(v) for v in rng.integers(3, conf.vocab_size, N_TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    write_ref(OUT / f"{name}.ref", [("tokens", np.array(ids, "<u4")), ("logits", logits.astype("<f4"))])
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(name, sum(p.numel() for p in model.parameters()), size, "bytes", flush=True)


def main():
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        if name not in MODELS:
            sys.exit(f"{name}: not one of {' '.join(MODELS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in names:
        make(name)


main()
