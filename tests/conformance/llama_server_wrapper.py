#!/usr/bin/env python3
"""Stands in for llama-server: translates its options to a configuration of `shoal serve` and becomes that program.

SHOAL is the program, STORIES the GGUF file for the tests' story models.  Options that no configuration has (--temp, --seed,
--lora, ...) are left out; a model that is not to be had ends the program with status 3."""
import hashlib
import os
import pathlib
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
# The templates behind llama-server's names.
TEMPLATES = {
    "chatml": CHATML,
    "llama3": "{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] + '<|eot_id|>' }}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "command-r": "{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|><|' + {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'}"
                 "[m['role']] + '_TOKEN|>' + m['content'] + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
                 "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}",
}


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def with_entries(source, out, entries):
    """A copy of a GGUF file with more metadata at its beginning.  What is added is a multiple of 256 bytes long, so that the
    tensors stay aligned."""
    data = source.read_bytes()
    magic, version, n_tensors, n_kv = struct.unpack_from("<4sIQQ", data)
    added = b""
    for key, value in entries.items():
        added += text(key) + (struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value))
    filler = text("shoal.filler") + struct.pack("<I", 8)
    room = -(len(added) + len(filler) + 8) % 256
    added += filler + text("x" * room)
    out.write_bytes(struct.pack("<4sIQQ", magic, version, n_tensors, n_kv + len(entries) + 1) + added + data[24:])


class Options:
    def __init__(self, argv):
        self.argv = argv

    def get(self, name, default=None):
        return self.argv[self.argv.index(name) + 1] if name in self.argv else default

    def has(self, name):
        return name in self.argv


def story(options, tmp, infill):
    entries = {}
    template = options.get("--chat-template")
    file = options.get("--chat-template-file")
    if file:
        entries["tokenizer.chat_template"] = pathlib.Path(file).read_text()
    else:
        entries["tokenizer.chat_template"] = TEMPLATES.get(template, template) if template else CHATML
    if infill:
        entries.update({"tokenizer.ggml.fim_pre_token_id": 3, "tokenizer.ggml.fim_suf_token_id": 4, "tokenizer.ggml.fim_mid_token_id": 5})
    out = tmp / "model.gguf"
    with_entries(pathlib.Path(os.environ["STORIES"]), out, entries)
    return out


def model_of(options, tmp):
    repo = f"{options.get('--hf-repo', '')} {options.get('--hf-file', '')}"
    if "stories260K" in repo or not repo.strip():  # llama-server without a model waits for one; ours needs one
        return story(options, tmp, "infill" in repo)
    if options.has("--embedding") or options.has("--reranking"):
        return ROOT / "models/encoder"
    return None


# What llama.cpp's tests of many models ask for by name.
ROUTED = ["ggml-org/tinygemma3-GGUF:Q8_0", "ggml-org/test-model-stories260K:F32", "ggml-org/test-model-stories260K-infill:F32"]


def routed(options, tmp):
    """A server of several models, which its clients load and unload."""
    lines = ["admin: loopback", "models:"]
    for i, name in enumerate(ROUTED):
        folder = tmp / str(i)
        folder.mkdir()
        lines += [f"  - {{name: '{name}', path: {story(options, folder, 'infill' in name)}, context: 1024}}"]
    return lines


def main():
    options = Options(sys.argv[1:])
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="llama-server."))
    many = "--hf-repo" not in options.argv and "--alias" not in options.argv and "--models-dir" not in options.argv
    lines = [f'listen: ["{options.get("--host")}:{options.get("--port")}"]']
    lines += [] if many else ['hosts: ["*"]', "any_model: true"]
    lines.append('cors: ["%s"]' % options.get("--cors-origins", "*"))
    if many:
        lines += routed(options, tmp)
    elif "--hf-repo" in options.argv or "--models-dir" not in options.argv:
        path = model_of(options, tmp)
        if not path:
            print(f"llama_server_wrapper: there is no {options.get('--hf-repo')} here", file=sys.stderr)
            return 3
        slots = int(options.get("--parallel", "1"))
        each = int(options.get("--ctx-size", "0")) // (1 if options.has("--kv-unified") else slots)
        lines += ["models:", f"  - name: {options.get('--alias', 'model')}", f"    path: {path}"]
        lines.append(f"    parallel: {slots}")
        if each and not options.has("--embedding") and not options.has("--reranking"):
            lines.append(f"    context: {each}")
            if options.has("--context-shift"):
                lines.append("    context_shift: true")
    else:
        lines += ["models: []"]
    if options.get("--slot-save-path"):
        lines.append(f"slots: {{dir: {options.get('--slot-save-path')}}}")
    if options.get("--api-key"):
        sha = hashlib.sha256(options.get("--api-key").encode()).hexdigest()
        lines.append(f"keys: [{{name: test, sha256: {sha}, admin: true}}]")
    config = tmp / "shoal.yaml"
    config.write_text("\n".join(lines) + "\n")
    os.environ.setdefault("SHOAL_CACHE_DIR", str(tmp / "cache"))
    os.execv(os.environ["SHOAL"], ["shoal", "serve", "--only", "--config", str(config)])


if __name__ == "__main__":
    sys.exit(main())
