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


def small(**more):
    return {**BASE, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2,
            "num_key_value_heads": 1, **more}


def longrope(part, n):
    """Two tables of divisors for the rotated part of a head of 16 values."""
    return rope(rope_type="longrope", partial_rotary_factor=part, factor=4.0,
                short_factor=[1.0 + 0.05 * i for i in range(n // 2)],
                long_factor=[1.5 + 0.5 * i for i in range(n // 2)])


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
    "qwen2-yarn": (tf.Qwen2ForCausalLM, tf.Qwen2Config(**small(
        tie_word_embeddings=True, use_sliding_window=False, rope_parameters=rope(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16))), torch.float16,
        None),
    "llama-dynamic": (tf.LlamaForCausalLM, tf.LlamaConfig(**small(
        max_position_embeddings=16, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters=rope(rope_type="dynamic", factor=2.0))), torch.float16, None),
    "phi3": (tf.Phi3ForCausalLM, tf.Phi3Config(**small(
        hidden_size=48, num_attention_heads=3, num_key_value_heads=1, sliding_window=7,
        rms_norm_eps=1e-5, rope_parameters=rope())), torch.bfloat16, None),
    "phi4-mini": (tf.Phi3ForCausalLM, tf.Phi3Config(**small(
        tie_word_embeddings=True, sliding_window=None, original_max_position_embeddings=32,
        rope_parameters=longrope(0.75, 12))), torch.float16, None),
    "phi4-long": (tf.Phi3ForCausalLM, tf.Phi3Config(**small(
        tie_word_embeddings=True, sliding_window=None, original_max_position_embeddings=16,
        rope_parameters=longrope(0.75, 12))), torch.float16, None),
    "smollm3": (tf.SmolLM3ForCausalLM, tf.SmolLM3Config(**small(
        num_hidden_layers=5, tie_word_embeddings=True, use_sliding_window=False,
        no_rope_layers=[1, 1, 1, 0, 1], rope_parameters=rope(5000000.0))), torch.bfloat16, None),
    "granite": (tf.GraniteForCausalLM, tf.GraniteConfig(**small(
        tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22,
        attention_multiplier=0.25, logits_scaling=4.0, rope_parameters=rope())), torch.float16,
        None),
    "olmo2": (tf.Olmo2ForCausalLM, tf.Olmo2Config(**small(
        rms_norm_eps=1e-6, rope_parameters=rope(500000.0))), torch.float16, None),
    "exaone4": (tf.Exaone4ForCausalLM, tf.Exaone4Config(**small(
        num_hidden_layers=4, sliding_window=6, sliding_window_pattern=4, tie_word_embeddings=True,
        rope_parameters={**LLAMA3, "rope_theta": 1000000.0})), torch.float16, None),
    "ernie4_5": (tf.Ernie4_5ForCausalLM, tf.Ernie4_5Config(**small(
        tie_word_embeddings=True, use_bias=True, head_dim=16,
        rope_parameters=rope(500000.0))), torch.bfloat16,
        None),
    "hunyuan": (tf.HunYuanDenseV1ForCausalLM, tf.HunYuanDenseV1Config(**small(
        tie_word_embeddings=True, head_dim=16, rope_parameters=rope(
            rope_type="dynamic", alpha=1000.0, factor=1.0))), torch.bfloat16, None),
    "gptneox": (tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig(**small(
        use_parallel_residual=True, tie_word_embeddings=False, rope_parameters=rope(
            partial_rotary_factor=0.25))), torch.float16, None),
    "gptneox-serial": (tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig(**small(
        use_parallel_residual=False, tie_word_embeddings=False, rope_parameters=rope(
            partial_rotary_factor=0.5))), torch.float16, None),
    "stablelm": (tf.StableLmForCausalLM, tf.StableLmConfig(**small(
        use_qkv_bias=True, tie_word_embeddings=False, rope_parameters=rope(
            partial_rotary_factor=0.25))), torch.float16, None),
    "gemma2": (tf.Gemma2ForCausalLM, tf.Gemma2Config(**small(
        num_hidden_layers=3, head_dim=16, query_pre_attn_scalar=24, sliding_window=6,
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0, tie_word_embeddings=True,
        rope_parameters=rope())), torch.bfloat16, None),
    "gemma3": (tf.Gemma3ForCausalLM, tf.Gemma3TextConfig(**small(
        num_hidden_layers=6, head_dim=16, query_pre_attn_scalar=24, sliding_window=6,
        tie_word_embeddings=True, rope_parameters={
            "full_attention": rope(1000000.0, rope_type="linear", factor=8.0),
            "sliding_attention": rope()})), torch.bfloat16, None),
    "mamba2": (tf.Mamba2ForCausalLM, tf.Mamba2Config(
        vocab_size=N_VOCAB, hidden_size=32, num_hidden_layers=2, num_heads=4, head_dim=16, state_size=24,
        n_groups=1, tie_word_embeddings=False, pad_token_id=None, bos_token_id=269, eos_token_id=271),
        torch.float16, None),
    "granitehybrid": (tf.GraniteMoeHybridForCausalLM, tf.GraniteMoeHybridConfig(**small(
        num_hidden_layers=3, tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22,
        attention_multiplier=0.25, logits_scaling=4.0, num_local_experts=0, shared_intermediate_size=64,
        mamba_n_heads=4, mamba_d_head=16, mamba_d_state=24, mamba_n_groups=1, position_embedding_type="nope",
        layer_types=["linear_attention", "full_attention", "linear_attention"])), torch.float16, None),
    "qwen35": (tf.Qwen3_5ForCausalLM, tf.Qwen3_5TextConfig(**small(
        num_hidden_layers=4, head_dim=32, tie_word_embeddings=True, linear_key_head_dim=16,
        linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2,
        rope_parameters=rope(10000000.0, partial_rotary_factor=0.25, mrope_section=[2, 1, 1],
                             mrope_interleaved=True))), torch.float16, None),
    "lfm2": (tf.Lfm2ForCausalLM, tf.Lfm2Config(**small(
        num_hidden_layers=4, intermediate_size=96, block_multiple_of=32, conv_bias=True,
        tie_word_embeddings=True, layer_types=["conv", "full_attention", "conv", "conv"],
        rope_parameters=rope(1000000.0))), torch.float16, None),
}


def randomize(model, rng):
    """Makes weights as uneven as trained ones, so that every part of the computation matters."""
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, p in model.named_parameters():
            norm = p.ndim == 1 and name.endswith("weight") and "Gemma" not in type(model).__name__
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
    exact = kind(conf).eval().double()  # the rotation table must not be rounded like the weights
    exact.load_state_dict(model.state_dict())
    model = exact
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
