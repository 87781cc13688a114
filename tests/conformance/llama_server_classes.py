"""Why tests of llama.cpp's server fail against ours: every failure has a class and a reason.

A rule is a pattern of test names (file::test), a pattern of messages, a class and a reason; the first that matches counts.
Classes: `missing`: a feature that Shoal does not have; `model`: the test needs a model that is not here; `flag`: a setting of
llama-server that the wrapper has no counterpart for; `choice`: Shoal answers otherwise on purpose."""
import collections
import re

ANY = ""
RULES = [
    ("test_vision_api::test_vision_embeddings", ANY, "model", "a model that sees, from a hub"),
    ("test_vision_api|test_anthropic_(tool_result_with_image|vision)|test_slot_save.*(image|multimodal|media)|test_local_media_file", ANY, "missing", "images"),
    ("test_lora", ANY, "model", "a model with its LoRA adapter from a hub"),
    ("test_speculative", ANY, "missing", "flags of speculative decoding, and a draft model from a hub"),
    ("test_mcp_servers|test_tools_builtin", ANY, "missing", "tools and MCP servers inside the server"),
    ("test_proxy|test_cors_proxy", ANY, "missing", "a proxy for other servers"),
    ("test_router_(models_max|queue|props)", ANY, "flag", "`--models-max` and what waits for it: memory is bounded in bytes"),
    ("test_router_no_models_autoload", ANY, "flag", "`--no-models-autoload`"),
    ("test_router_(reload|dedup)", ANY, "flag", "`--models-preset`"),
    ("test_router_remote_preset", ANY, "model", "a preset from a hub"),
    ("test_router_(download|delete)_model", ANY, "missing", "downloads by `POST /models` with `/models/sse`; `/api/pull` does that"),
    ("test_sleep", ANY, "missing", "a server that sleeps"),
    ("test_stream", ANY, "missing", "streams that can be resumed"),
    ("test_compat_gcp", ANY, "missing", "Google's form of a request"),
    ("test_rerank", ANY, "model", "the reranker is from a hub"),
    ("test_load_split_model", ANY, "model", "a model in several files, from a hub"),
    ("test_slot_erase", "assert 5 == 21", "choice", "an erased slot is forgotten, its prompt stays in the cache of its key"),
    ("test_slot_save", "assert 256 == 84", "flag", "`--n-predict` of the server"),
    ("test_server_multiple_addresses", ANY, "flag", "several `--host`"),
    ("test_server_slots|test_metrics_disabled|test_no_ui", ANY, "flag", "turning `/slots`, `/metrics` or the page off"),
    ("test_server_model_aliases_and_tags", ANY, "flag", "aliases and tags of a model"),
    ("test_completion::test_completion_stream\\[", "4294967295 == 42", "flag", "`--seed` of the server"),
    ("test_completion_stream_vs_non_stream|test_completion_with_tokens_input", ANY, "flag", "`--seed` and `--temp` of the server"),
    ("test_clear_and_restore", ANY, "flag", "looks for a line in the log"),
    ("test_embedding_pooling_none", ANY, "flag", "`--pooling none`: pooling is the model's own"),
    ("test_server_props", ANY, "choice", "the path of the model is not shown"),
    ("test_server_models", ANY, "choice", "`/v1/models` lists the route `auto` too"),
    ("test_chat_completion|test_completion_with_openai_library", "startswith", "choice", "`system_fingerprint` is the model's hash, not `b` and a build number"),
    ("test_completion_with_openai_library|test_chat_completion_with_openai_library", "fp_", "choice", "`system_fingerprint` is the model's hash, not `b` and a build number"),
    (ANY, "assert '' is None|non empty content delta", "choice", "the first chunk has `\"content\": \"\"`, as OpenAI's has"),
    (ANY, "__verbose", "choice", "`__verbose` does not exist"),
    ("test_verbose_debug", ANY, "choice", "`__verbose` does not exist"),
    ("test_chat_completion_cached_tokens", ANY, "choice", "cached tokens are whole pages of 16"),
    ("test_return_progress", ANY, "choice", "steps of `prompt_progress` have the size of our batches"),
    ("test_apply_chat_template", ANY, "choice", "`/apply-template` shows the model's first token"),
    ("test_invalid_chat_completion_req", ANY, "choice", "an answer may follow an answer"),
    ("test_context_size_exceeded|test_ctx_shift_disabled_long_prompt", ANY, "choice", "a prompt that is too long has OpenAI's type and code, and our words"),
    ("test_anthropic_empty_messages", ANY, "choice", "an empty list of messages is refused"),
    ("test_anthropic_thinking$", ANY, "choice", "the thought is asked for of a model that does not think"),
    ("test_anthropic_thinking_history", ANY, "choice", "thinking of earlier messages is left out"),
    ("test_compat_oai_responses", "None is not None", "choice", "an answer that `max_output_tokens` ends is `response.incomplete`, as OpenAI's"),
    ("test_completion_response_fields", ANY, "choice", "`prompt` is returned as it was sent, without the model's first token"),
    ("test_embedding_mixed_input", ANY, "choice", "texts and token ids are not mixed in one input"),
    ("test_embedding_error_prompt_too_long", ANY, "choice", "a text that is too long is cut and marked, not refused"),
    ("test_ignore_eos", ANY, "choice", "`ignore_eos` is not shown as a bias in the settings"),
    ("test_metrics", ANY, "choice", "names and headers of the figures"),
    ("test_security::test_access_static_assets", ANY, "choice", "files of its page"),
    ("test_security::test_cors", ANY, "choice", "CORS: no credentials, headers by name, origins as configured"),
    ("test_template::test_reasoning", ANY, "choice", "models think only when requested, where llama.cpp leaves it to the template; the first token is shown"),
]


def classify(name, message):
    """(class, reason), or None."""
    for test, text, kind, reason in RULES:
        if re.search(test, name) and re.search(text, message):
            return kind, reason
    return None


def tables(counts, failures):
    """Markdown: results by file with their reasons, and failures by class. failures: [(file, name, message)]."""
    words = ("passed", "text differs", "failed", "skipped")
    reasons, kinds, unknown = collections.defaultdict(collections.Counter), collections.Counter(), []
    for file, name, message in failures:
        found = classify(name, message)
        if not found:
            unknown.append(f"{name}: {message}")
            continue
        kinds[found[0]] += 1
        reasons[file][found] += 1
    lines = ["| file | " + " | ".join(words) + " | failures: number, class, reason |", "|---|" + "---|" * (len(words) + 1)]
    for file, n in counts.items():
        why = "; ".join(f"{k} {kind}: {reason}" for (kind, reason), k in reasons[file].most_common())
        lines.append(f"| {file.removesuffix('.py')} | " + " | ".join(str(n[w]) for w in words) + f" | {why} |")
    total = sum(counts.values(), collections.Counter())
    by_kind = ", ".join(f"{k} {kind}" for kind, k in kinds.most_common())
    lines.append("| total | " + " | ".join(str(total[w]) for w in words) + f" | {by_kind} |")
    return lines, unknown
