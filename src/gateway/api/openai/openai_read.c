/* openai_read.c - bodies of /v1/chat/completions and /v1/completions to requests. */
#include "gateway/api/openai/openai.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gateway/api/constraint_read.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"

/* Both bodies; missing fields keep their defaults. */
struct openai_body {
    const char *model, *reasoning_effort, *reasoning_format, *verbosity, *suffix;
    const cJSON *messages, *prompt, *stop, *logit_bias, *logprobs, *stream_options, *template_vars,
        *continue_final, *generation_prompt, *tools, *tool_choice, *functions, *function_call;
    bool parallel_calls, stream, echo, ignore_eos, explain, progress, cache_prompt;
    struct constraint_fields constraint;
    int64_t max_tokens, max_completion_tokens, n, best_of, seed, top_logprobs, top_k, priority;
    double temperature, top_p, min_p, presence_penalty, frequency_penalty, repeat_penalty,
        latency_budget_ms;
    const char *truncation;
};

#define AT(member) offsetof(struct openai_body, member)
#define MAX_SEED 9223372036854775807.0
#define MAX_N 16u
#define IDS_SCHEMA                                                                                 \
    "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"integer\",\"minimum\":0}}"
#define SEVERAL "{\"type\":\"array\",\"minItems\":1,\"maxItems\":64,\"items\":"
#define PROMPT_SCHEMA                                                                              \
    "{\"oneOf\":[{\"type\":\"string\"}," IDS_SCHEMA "," SEVERAL                                    \
    "{\"type\":\"string\"}}," SEVERAL IDS_SCHEMA "}]}"
_Static_assert(REQUEST_MAX_PROMPTS == 64, "as in SEVERAL");
#define STOP_SCHEMA                                                                                \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}"

/* Fields of both bodies. */
#define COMMON_FIELDS                                                                               \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},                   \
        {"stream", FIELD_BOOL, AT(stream), 0, 0, "server-sent events as tokens come", NULL},        \
        {"stream_options",                                                                          \
         FIELD_VALUE,                                                                               \
         AT(stream_options),                                                                        \
         0,                                                                                         \
         0,                                                                                         \
         "include_usage adds a last chunk with token counts; replace: the text may be replaced "    \
         "by "                                                                                      \
         "a marked event",                                                                          \
         "{\"type\":\"object\",\"properties\":{\"include_usage\":{\"type\":\"boolean\"},"           \
         "\"replace\":{\"type\":\"boolean\"}}}"},                                                   \
        {"max_tokens", FIELD_INT, AT(max_tokens),                                                   \
         -1,           1 << 24,   "maximum number of tokens to generate; -1: no limit",             \
         NULL},                                                                                     \
        {"temperature", FIELD_NUM, AT(temperature), 0, 2, "0: always the most likely token", NULL}, \
        {"top_p", FIELD_NUM, AT(top_p), 0, 1, "nucleus sampling: probability mass to keep", NULL},  \
        {"n", FIELD_INT, AT(n), 1, MAX_N, "answers to each prompt", NULL},                          \
        {"stop", FIELD_VALUE, AT(stop), 0, 0, "texts that end the answer", STOP_SCHEMA},            \
        {"seed", FIELD_INT, AT(seed), -MAX_SEED, MAX_SEED, "same seed, same answer", NULL},         \
        {"presence_penalty",                                                                        \
         FIELD_NUM,                                                                                 \
         AT(presence_penalty),                                                                      \
         -2,                                                                                        \
         2,                                                                                         \
         "penalty for tokens that occurred before",                                                 \
         NULL},                                                                                     \
        {"frequency_penalty",                                                                       \
         FIELD_NUM,                                                                                 \
         AT(frequency_penalty),                                                                     \
         -2,                                                                                        \
         2,                                                                                         \
         "penalty per earlier occurrence",                                                          \
         NULL},                                                                                     \
        {"logit_bias",                                                                              \
         FIELD_VALUE,                                                                               \
         AT(logit_bias),                                                                            \
         0,                                                                                         \
         0,                                                                                         \
         "token id to a number from -100 to 100",                                                   \
         "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}"},                   \
        CONSTRAINT_FIELDS(AT(constraint)),                                                          \
        {"user", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                            \
        {"metadata", FIELD_IGNORED, 0, 0, 0, "for the rules of routes", NULL},                      \
        {"store", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                           \
        {"service_tier", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                    \
        {"safety_identifier", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},               \
        {"prompt_cache_key", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                \
        {"prompt_cache_retention", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},          \
        {"cache_prompt",                                                                            \
         FIELD_BOOL,                                                                                \
         AT(cache_prompt),                                                                          \
         0,                                                                                         \
         0,                                                                                         \
         "false: compute all of the prompt, even if its beginning is cached",                       \
         NULL},                                                                                     \
        {"top_k", FIELD_INT, AT(top_k), 0, INT_MAX, "number of most likely tokens to keep; 0: all", \
         NULL},                                                                                     \
        {"min_p", FIELD_NUM, AT(min_p), 0, 1, "minimum probability, relative to the best", NULL},   \
        {"repeat_penalty", FIELD_NUM, AT(repeat_penalty), 0, 10, "1: none", NULL},                  \
        {"repetition_penalty",     FIELD_NUM, AT(repeat_penalty), 0, 10,                            \
         "same as repeat_penalty", NULL},                                                           \
        {"min_tokens", FIELD_UNBUILT, 0, 0, 0, NULL, "0"},                                          \
        {"typical_p", FIELD_UNBUILT, 0, 0, 0, NULL, "1"},                                           \
        {"mirostat", FIELD_UNBUILT, 0, 0, 0, NULL, "0"},                                            \
        {"use_beam_search", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},                                    \
        {"ignore_eos", FIELD_BOOL, AT(ignore_eos), 0, 0, "do not stop at the end token", NULL},     \
        {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},              \
        {"explain", FIELD_BOOL, AT(explain), 0, 0, "explain how a route chose the model", NULL},    \
    {                                                                                               \
        "latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,                         \
            "refuse or stop a request that takes longer", NULL                                      \
    }

const struct field openai_chat_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation",
     "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"object\",\"required\":[\"role\"],"
     "\"properties\":{\"role\":{\"enum\":[\"system\",\"developer\",\"user\",\"assistant\","
     "\"tool\"]},\"content\":{\"type\":\"string\"}}}}"},
    COMMON_FIELDS,
    FIELDS_SESSION,
    {"max_completion_tokens", FIELD_INT, AT(max_completion_tokens), 1, 1 << 24,
     "maximum number of tokens to generate", NULL},
    {"logprobs", FIELD_VALUE, AT(logprobs), 0, 0, "log-probability of every token",
     "{\"type\":\"boolean\"}"},
    {"top_logprobs", FIELD_INT, AT(top_logprobs), 0, 20,
     "number of most likely tokens to return as well", NULL},
    {"continue_final_message", FIELD_VALUE, AT(continue_final), 0, 0,
     "the answer continues the last message; default: if that is the assistant's",
     "{\"type\":\"boolean\"}"},
    {"add_generation_prompt", FIELD_VALUE, AT(generation_prompt), 0, 0,
     "the template begins an answer; default: true", "{\"type\":\"boolean\"}"},
    {"chat_template_kwargs", FIELD_VALUE, AT(template_vars), 0, 0,
     "variables of the model's chat template", "{\"type\":\"object\"}"},
    {"tools", FIELD_VALUE, AT(tools), 0, 0, "functions that the model may call", TOOLS_READ_SCHEMA},
    {"tool_choice", FIELD_VALUE, AT(tool_choice), 0, 0, "auto, none, required, or a function",
     "{\"oneOf\":[{\"enum\":[\"none\",\"auto\",\"required\"]},{\"type\":\"object\"}]}"},
    {"parallel_tool_calls", FIELD_BOOL, AT(parallel_calls), 0, 0,
     "false: at most one call in an answer", NULL},
    {"functions", FIELD_VALUE, AT(functions), 0, 0,
     "older form of tools; the answer then has function_call",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\"]}}"},
    {"function_call", FIELD_VALUE, AT(function_call), 0, 0,
     "with functions: auto, none, or {\"name\": ...}",
     "{\"oneOf\":[{\"enum\":[\"none\",\"auto\"]},{\"type\":\"object\"}]}"},
    {"modalities", FIELD_UNBUILT, 0, 0, 0, NULL, "text"},
    {"audio", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"prediction", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"reasoning_effort", FIELD_STR, AT(reasoning_effort), 0, 0,
     "a variable of the model's chat template, if it has one", NULL},
    {"verbosity", FIELD_STR, AT(verbosity), 0, 0,
     "a variable of the model's chat template, if it has one", NULL},
    {"web_search_options", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    /* Open WebUI's own records of a chat: it handles them itself. */
    {"chat_id", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"id", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"message_id", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"parent_id", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"parent_message", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"features", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"background_tasks", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"variables", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"model_item", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"filter_ids", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"params", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}, /* fine while empty, as are the next */
    {"files", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"tool_ids", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"tool_servers", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    /* Sent by the page of llama.cpp's server: its own samplers only while they are off. */
    {"id_slot", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"timings_per_token", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"return_progress", FIELD_BOOL, AT(progress), 0, 0, "streams: report prefill progress", NULL},
    {"truncation", FIELD_STR, AT(truncation), 0, 0,
     "auto: leave out the oldest turns of a conversation that is too long; or disabled", NULL},
    {"reasoning_format", FIELD_STR, AT(reasoning_format), 0, 0,
     "none: a thought stays in the content; otherwise it is reasoning_content", NULL},
    {"backend_sampling", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"samplers", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"n_keep", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"min_keep", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dynatemp_exponent", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"xtc_threshold", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dry_base", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dry_allowed_length", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dry_penalty_last_n", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dry_sequence_breakers", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"dynatemp_range", FIELD_UNBUILT, 0, 0, 0, NULL, "0"},
    {"xtc_probability", FIELD_UNBUILT, 0, 0, 0, NULL, "0"},
    {"dry_multiplier", FIELD_UNBUILT, 0, 0, 0, NULL, "0"},
};
const size_t openai_n_chat_fields = sizeof(openai_chat_fields) / sizeof(openai_chat_fields[0]);

const struct field openai_completion_fields[] = {
    {"prompt", FIELD_VALUE, AT(prompt), 0, 0, "text, or token ids, or a list of one of these",
     PROMPT_SCHEMA},
    COMMON_FIELDS,
    {"echo", FIELD_BOOL, AT(echo), 0, 0, "return the prompt before the answer", NULL},
    {"best_of", FIELD_INT, AT(best_of), 1, MAX_N,
     "answers to compute; the n likeliest are returned", NULL},
    {"logprobs", FIELD_VALUE, AT(logprobs), 0, 0,
     "number of most likely tokens to return with each token",
     "{\"type\":\"integer\",\"minimum\":0,\"maximum\":20}"},
    {"n_predict", FIELD_INT, AT(max_tokens), -1, 1 << 24, "same as max_tokens, llama.cpp's name",
     NULL},
    {"suffix", FIELD_STR, AT(suffix), 0, 0, "text after the answer, for models that support infill",
     NULL},
};
const size_t openai_n_completion_fields =
    sizeof(openai_completion_fields) / sizeof(openai_completion_fields[0]);

_Static_assert(sizeof(openai_chat_fields) / sizeof(openai_chat_fields[0]) <= FIELDS_MAX, "mask");

static int read_stream_options(struct openai_shape *s, const cJSON *o, bool lenient,
                               struct fields_error *e)
{
    static const struct field table[] = {
        {"include_usage", FIELD_BOOL, offsetof(struct openai_shape, include_usage), 0, 0, NULL,
         NULL},
        {"replace", FIELD_BOOL, offsetof(struct openai_shape, replace), 0, 0, NULL, NULL},
        {"include_obfuscation", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};
    struct fields_error inner = {{0}, {0}, NULL};
    char param[sizeof(inner.param) + 16];
    if (!o || !s->stream || /* without a stream there is nothing to change */
        fields_read(table, sizeof(table) / sizeof(table[0]), o, s, lenient, &inner) == 0)
        return 0;
    snprintf(param, sizeof(param), "stream_options%s%s", inner.param[0] ? "." : "", inner.param);
    return fields_fail(e, param, inner.code, "stream_options: %.200s", inner.msg);
}

/* Reads the fields that both bodies share. */
static int read_params(struct request *r, struct openai_shape *shape, const struct openai_body *b,
                       bool lenient, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    r->kind = REQUEST_GENERATE;
    if (b->model)
        r->model = request_copy(r, b->model, strlen(b->model));
    r->priority = (int32_t)b->priority;
    request_set_budget(r, b->latency_budget_ms);
    r->explain |= b->explain;
    r->truncates = b->truncation && strcmp(b->truncation, "auto") == 0;
    if (b->truncation && !r->truncates && strcmp(b->truncation, "disabled") != 0)
        return fields_fail(e, "truncation", "invalid_value",
                           "'truncation' must be auto or disabled");
    shape->stream = r->streams = b->stream;
    shape->progress = g->progress = b->stream && b->progress;
    g->n = (uint32_t)b->n;
    g->n_prompts = 1;
    int64_t most = b->max_completion_tokens ? b->max_completion_tokens : b->max_tokens;
    g->max_tokens = most > 0 ? (uint32_t)most : 0;
    g->prompt_only = most == 0;
    g->ignore_end = b->ignore_eos;
    g->fresh_prefix = !b->cache_prompt;
    r->no_cache |= g->fresh_prefix;
    g->has_seed = b->seed != INT64_MIN;
    g->sampling = (struct shoal_sampling){.temperature = (float)b->temperature,
                                          .top_k = (uint32_t)b->top_k,
                                          .top_p = b->top_p > 0 ? (float)b->top_p : 1e-6f,
                                          .min_p = (float)b->min_p,
                                          .repeat_penalty = (float)b->repeat_penalty,
                                          .presence_penalty = (float)b->presence_penalty,
                                          .frequency_penalty = (float)b->frequency_penalty,
                                          .seed = g->has_seed ? (uint64_t)b->seed : 0};
    int rc = prompt_read_stop(r, b->stop, e);
    if (rc == 0)
        rc = prompt_read_bias(r, b->logit_bias, e);
    if (rc == 0)
        rc = read_stream_options(shape, b->stream_options, lenient, e);
    if (rc == 0)
        rc = constraint_read(r, &b->constraint, lenient, e);
    return rc;
}

/* Checks that depend on several fields, after everything is read. */
static int finish(struct request *r, struct openai_shape *shape, const char *param,
                  struct fields_error *e)
{
    shape->logprobs = r->generate.sampling.logprobs;
    shape->n_prompts = r->generate.n_prompts;
    shape->n = r->generate.n;
    shape->named = r->model != NULL;
    return request_rc(r) < 0 ? fields_fail(e, param, NULL, "out of memory") : 0;
}

static struct openai_body defaults(void)
{
    return (struct openai_body){.max_tokens = -1,
                                .cache_prompt = true,
                                .n = 1,
                                .temperature = 1,
                                .top_p = 1,
                                .seed = INT64_MIN,
                                .parallel_calls = true};
}

/* ---- chat ---- */

/* Reads the fields after the last message. */
static int read_ending(struct request *r, const struct openai_body *b, struct fields_error *e)
{
    bool more = cJSON_IsTrue(b->continue_final), own = cJSON_IsTrue(b->generation_prompt);
    if (more && own)
        return fields_fail(e, CHAT_CONTINUE_VAR, "invalid_value",
                           "'continue_final_message' and 'add_generation_prompt' exclude each "
                           "other");
    if (b->generation_prompt)
        prompt_add_var(r, "add_generation_prompt", value_bool(own));
    if (more)
        prompt_add_var(r, CHAT_CONTINUE_VAR, value_bool(true));
    else if (!b->continue_final && !own)
        prompt_prefill(r);
    return 0;
}

static void read_verbosity(struct request *r, const char *verbosity)
{
    if (!verbosity || !verbosity[0])
        return;
    struct value v = {.kind = VALUE_TEXT};
    v.text.p = request_copy_utf8(r, verbosity, strlen(verbosity), &v.text.n);
    prompt_add_var(r, "verbosity", v);
}

static int read_chat_logprobs(struct shoal_sampling *s, const struct openai_body *b,
                              struct fields_error *e)
{
    if (b->logprobs && !cJSON_IsBool(b->logprobs))
        return fields_fail(e, "logprobs", "invalid_type", "'logprobs' must be true or false");
    s->logprobs = cJSON_IsTrue(b->logprobs);
    s->n_logprobs = (uint32_t)b->top_logprobs;
    if (b->top_logprobs > 0 && !s->logprobs)
        return fields_fail(e, "top_logprobs", "invalid_value",
                           "'top_logprobs' needs 'logprobs': true");
    return 0;
}

static int read_chat_tools(struct request *r, struct openai_shape *shape,
                           const struct openai_body *b, struct fields_error *e)
{
    shape->functions = cJSON_IsArray(b->functions) && b->functions->child;
    if (shape->functions && cJSON_IsArray(b->tools) && b->tools->child)
        return fields_fail(e, "functions", "invalid_value",
                           "'functions' is the older form of 'tools': give only one of them");
    int rc = tools_read(r, b->tools, e);
    if (rc == 0)
        rc = tools_read_choice(r, b->tool_choice, e);
    if (rc == 0 && (shape->functions || b->function_call))
        rc = tools_read_functions(r, b->functions, b->function_call, e);
    r->generate.chat.one_call = !b->parallel_calls || shape->functions;
    shape->tools = chat_has_tools(&r->generate.chat);
    return rc;
}

int openai_read_chat(struct request *r, struct openai_shape *shape, const cJSON *body, bool lenient,
                     struct fields_error *e)
{
    struct openai_body b = defaults();
    *shape = (struct openai_shape){.chat = true};
    int rc = fields_read(openai_chat_fields, openai_n_chat_fields, body, &b, lenient, e);
    if (rc == 0)
        rc = read_params(r, shape, &b, lenient, e);
    if (rc == 0)
        rc = read_chat_logprobs(&r->generate.sampling, &b, e);
    if (rc < 0)
        return rc;
    rc = prompt_read_messages(r, b.messages, lenient, e);
    if (rc == 0)
        rc = prompt_read_vars(r, b.template_vars, e);
    if (rc == 0)
        prompt_read_effort(r, b.reasoning_effort);
    if (rc == 0)
        read_verbosity(r, b.verbosity);
    shape->keeps_thoughts = b.reasoning_format && strcmp(b.reasoning_format, "none") == 0;
    if (rc == 0)
        rc = read_ending(r, &b, e);
    if (rc == 0)
        rc = read_chat_tools(r, shape, &b, e);
    return rc < 0 ? rc : finish(r, shape, "messages", e);
}

/* ---- completions ---- */

/* More answers than are shown: they become choices like the others, and the best are chosen. */
static int read_best_of(struct request *r, struct openai_shape *shape, const struct openai_body *b,
                        struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    if (b->best_of == 0 || b->best_of == b->n)
        return 0;
    if (b->best_of < b->n)
        return fields_fail(e, "best_of", "invalid_value", "'best_of' must be at least 'n'");
    if (b->stream)
        return fields_fail(
            e, "best_of", "invalid_value",
            "'best_of' cannot be streamed: the best answer is known only at the end");
    if (g->n_prompts * (uint64_t)b->best_of > REQUEST_MAX_CHOICES)
        return fields_fail(e, "best_of", "invalid_value",
                           "'best_of' and 'prompt' make more than %u choices", REQUEST_MAX_CHOICES);
    shape->n_best = g->n;
    g->n = (uint32_t)b->best_of;
    return 0;
}

static void read_suffix(struct request *r, const char *suffix)
{
    struct request_prompt *list = (struct request_prompt *)(uintptr_t)r->generate.prompts;
    if (!suffix || !suffix[0] || !list) /* without a list, request_rc reports the error */
        return;
    size_t n = strlen(suffix);
    const char *text = request_copy(r, suffix, n);
    r->no_cache = true;
    for (uint32_t i = 0; i < r->generate.n_prompts; i++) {
        list[i].suffix = list[i].text ? text : NULL;
        list[i].suffix_bytes = n;
        r->input_bytes += n;
    }
}

int openai_read_completion(struct request *r, struct openai_shape *shape, const cJSON *body,
                           bool lenient, struct fields_error *e)
{
    struct openai_body b = defaults();
    struct shoal_sampling *s = &r->generate.sampling;
    b.max_tokens = 16; /* the default of this endpoint */
    *shape = (struct openai_shape){.chat = false};
    int rc =
        fields_read(openai_completion_fields, openai_n_completion_fields, body, &b, lenient, e);
    if (rc == 0)
        rc = read_params(r, shape, &b, lenient, e);
    if (rc == 0)
        rc = prompt_read_texts(r, b.prompt, false, e);
    if (rc == 0)
        rc = read_best_of(r, shape, &b, e);
    if (rc == 0)
        read_suffix(r, b.suffix);
    if (rc < 0)
        return rc;
    r->generate.echo = b.echo;
    if (b.logprobs && !cJSON_IsFalse(b.logprobs)) {
        double n = b.logprobs->valuedouble;
        if (!cJSON_IsNumber(b.logprobs) || !(n >= 0 && n <= 20) || n != floor(n))
            return fields_fail(e, "logprobs", "invalid_value",
                               "'logprobs' must be a whole number from 0 to 20");
        s->logprobs = true;
        s->n_logprobs = (uint32_t)n;
        r->generate.prompt_logprobs = b.echo;
        r->no_cache |= b.echo;
    }
    rc = finish(r, shape, "prompt", e);
    s->logprobs |= shape->n_best > 0; /* the answers are compared by them */
    return rc;
}
