#!/usr/bin/env python3
"""Makes tests/data/lora: LoRA adapters of bases in tests/data/folders, as PEFT writes them and as
llama.cpp has them, and the logits of PEFT's merged models. A developer's tool: the tests only read
its output.

usage: tools/make_lora_refs.py

Needs PyPI; uses the Python environment of tools/make_refs.py with PEFT added.
"""
import shutil
import subprocess
import sys

from refs_common import ROOT, SEED, VENV, enter_venv, write_ref

enter_venv()

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as tf  # noqa: E402

try:
    import peft  # noqa: E402
except ImportError:
    subprocess.run([VENV / "bin/pip", "install", "-q", "peft==0.21.2"], check=True)
    import peft  # noqa: E402

OUT, FOLDERS = ROOT / "tests/data/lora", ROOT / "tests/data/folders"
N_TOKENS = 24
# name -> (base, PEFT's settings)
ADAPTERS = {
    "llama": ("llama", dict(r=4, lora_alpha=6, target_modules=["q_proj", "k_proj", "v_proj", "o_proj",
                                                              "gate_proj", "down_proj"])),
    "llama-qv": ("llama", dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])),
    "gptneox": ("gptneox", dict(r=3, lora_alpha=4, use_rslora=True,
                                target_modules=["query_key_value", "dense_h_to_4h"])),
}
NAMES = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
         "gate_proj": "ffn_gate", "down_proj": "ffn_down"}


def pairs(b, heads):
    """Rows of each head from halves to neighbouring pairs, as in GGUF files of llama."""
    return b.reshape(heads, 2, b.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(b.shape)


def write_gguf(path, model, alpha):
    w = gguf.GGUFWriter(path, "llama")
    w.add_type("adapter")
    w.add_string("adapter.type", "lora")
    w.add_float32("adapter.lora.alpha", alpha)
    c = model.config
    for name, p in peft.get_peft_model_state_dict(model).items():
        parts = name.split(".")  # base_model.model.model.layers.N.BLOCK.MODULE.lora_A.weight
        x = p.float().numpy()
        if parts[-2] == "lora_B" and parts[-3] in ("q_proj", "k_proj"):
            x = pairs(x, c.num_attention_heads if parts[-3] == "q_proj" else c.num_key_value_heads)
        w.add_tensor(f"blk.{parts[4]}.{NAMES[parts[-3]]}.weight.lora_{parts[-2][-1].lower()}",
                     np.ascontiguousarray(x))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(name):
    base, settings = ADAPTERS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    torch.manual_seed(SEED)
    model = tf.AutoModelForCausalLM.from_pretrained(FOLDERS / base, dtype=torch.float32,
                                                    attn_implementation="eager")
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_" in key:
                p.copy_(torch.tensor(rng.normal(0, p.shape[1] ** -0.5, p.shape)))
    shutil.rmtree(OUT / name, ignore_errors=True)
    model.save_pretrained(OUT / name)
    (OUT / name / "README.md").unlink(missing_ok=True)
    conf = OUT / name / "adapter_config.json"
    conf.write_text(conf.read_text().replace(str(FOLDERS / base), base))
    (OUT / name / "adapter_model.safetensors").chmod(0o644)
    if name == "llama":
        write_gguf(OUT / f"{name}.gguf", model, settings["lora_alpha"])
    ids = [int(v) for v in rng.integers(3, model.config.vocab_size, N_TOKENS)]
    with torch.no_grad():
        logits = model.merge_and_unload().double()(torch.tensor([ids])).logits[0].numpy()
    write_ref(OUT / f"{name}.ref", [("tokens", np.array(ids, "<u4")),
                                    ("logits", logits.astype("<f4"))])
    print(name, "made", flush=True)


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in ADAPTERS:
        make(name)


main()
