/* openai_read.c - bodies of /v1/chat/completions and /v1/completions to requests. */
#include "gateway/api/openai/openai.h"

#include "gateway/api/constraint_read.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/tools_read.h"

/* Both bodies; missing fields keep their defaults. */
struct openai_body {
    const char *model, *reasoning_effort, *verbosity, *suffix;
    const cJSON *messages, *prompt, *stop, *logit_bias, *logprobs, *stream_options, *template_vars,
        *continue_final, *generation_prompt, *tools, *tool_choice, *functions, *function_call;
    bool parallel_calls, stream, echo, ignore_eos, explain, progress;
    struct constraint_fields constraint;
    int64_t max_tokens, max_completion_tokens, n, best_of, seed, top_logprobs, top_k, priority;
    double temperature, top_p, min_p, presence_penalty, frequency_penalty, repeat_penalty,
        latency_budget_ms;
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
         "{\"include_usage\": true} adds a last chunk with token counts",                           \
         "{\"type\":\"object\",\"properties\":{\"include_usage\":{\"type\":\"boolean\"}}}"},        \
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
        {"cache_prompt", FIELD_IGNORED, 0, 0, 0, "prompts are always cached", NULL},                \
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
    {"reasoning_format", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
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

/* ---- parts of a body ---- */

int openai_read_stop(struct request *r, const cJSON *stop, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    if (!stop)
        return 0;
    bool list = cJSON_IsArray(stop);
    const cJSON *one = list ? stop->child : stop;
    if (!list && !cJSON_IsString(stop))
        return fields_fail(e, "stop", "invalid_type", "'stop' must be a string or a list of them");
    const char **texts = arena_zalloc_n(&r->arena, REQUEST_MAX_STOPS, sizeof(*texts));
    for (; texts && one; one = list ? one->next : NULL) {
        if (!cJSON_IsString(one))
            return fields_fail(e, "stop", "invalid_type", "'stop' must hold strings");
        if (!one->valuestring[0])
            continue; /* an empty text would stop nothing */
        if (g->n_stop == REQUEST_MAX_STOPS)
            return fields_fail(e, "stop", "invalid_value", "'stop' holds more than %u texts",
                               REQUEST_MAX_STOPS);
        texts[g->n_stop++] = request_copy(r, one->valuestring, strlen(one->valuestring));
    }
    g->stop = texts;
    return 0;
}

int openai_read_bias(struct request *r, const cJSON *bias, struct fields_error *e)
{
    struct shoal_sampling *s = &r->generate.sampling;
    const cJSON *one;
    if (!bias)
        return 0;
    int n = cJSON_GetArraySize(bias);
    if (!cJSON_IsObject(bias))
        return fields_fail(e, "logit_bias", "invalid_type",
                           "'logit_bias' must be an object of token ids and numbers");
    if (n > (int)REQUEST_MAX_BIAS)
        return fields_fail(e, "logit_bias", "invalid_value", "'logit_bias' has more than %u tokens",
                           REQUEST_MAX_BIAS);
    struct shoal_bias *list = arena_zalloc_n(&r->arena, (size_t)n, sizeof(*list));
    if (!list)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(one, bias)
    {
        char *end;
        long id = strtol(one->string, &end, 10);
        if (end == one->string || *end || id < 0 || id > INT32_MAX || !cJSON_IsNumber(one) ||
            !(one->valuedouble >= -100 && one->valuedouble <= 100))
            return fields_fail(e, "logit_bias", "invalid_value",
                               "'logit_bias' has \"%.20s\": expected a token id and a number from "
                               "-100 to 100",
                               one->string);
        list[s->n_bias++] = openai_bias((int32_t)id, one->valuedouble);
    }
    s->bias = list;
    return 0;
}

static int read_stream_options(struct openai_shape *s, const cJSON *o, bool lenient,
                               struct fields_error *e)
{
    static const struct field table[] = {
        {"include_usage", FIELD_BOOL, offsetof(struct openai_shape, include_usage), 0, 0, NULL,
         NULL},
        {"include_obfuscation", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};
    if (!o || !s->stream) /* without a stream there is nothing to change */
        return 0;
    return fields_read(table, 2, o, s, lenient, e);
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
    shape->stream = r->streams = b->stream;
    shape->progress = g->progress = b->stream && b->progress;
    g->n = (uint32_t)b->n;
    g->n_prompts = 1;
    int64_t most = b->max_completion_tokens ? b->max_completion_tokens : b->max_tokens;
    g->max_tokens = most > 0 ? (uint32_t)most : 0;
    g->prompt_only = most == 0;
    g->ignore_end = b->ignore_eos;
    g->has_seed = b->seed != INT64_MIN;
    g->sampling = (struct shoal_sampling){.temperature = (float)b->temperature,
                                          .top_k = (uint32_t)b->top_k,
                                          .top_p = b->top_p > 0 ? (float)b->top_p : 1e-6f,
                                          .min_p = (float)b->min_p,
                                          .repeat_penalty = (float)b->repeat_penalty,
                                          .presence_penalty = (float)b->presence_penalty,
                                          .frequency_penalty = (float)b->frequency_penalty,
                                          .seed = g->has_seed ? (uint64_t)b->seed : 0};
    int rc = openai_read_stop(r, b->stop, e);
    if (rc == 0)
        rc = openai_read_bias(r, b->logit_bias, e);
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
                                .n = 1,
                                .temperature = 1,
                                .top_p = 1,
                                .seed = INT64_MIN,
                                .parallel_calls = true};
}

/* ---- chat ---- */

/* The text of one part of a content; NULL: it has none.  *type: for the message. */
static const char *part_text(const cJSON *part, const char **type)
{
    static const char *const types[][2] = {
        {"text", "text"}, {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"}};
    *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "type"));
    if (cJSON_IsString(part))
        return part->valuestring;
    for (size_t i = 0; *type && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(*type, types[i][0]) == 0)
            return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, types[i][1]));
    return NULL;
}

/* A content of several parts: their texts, one a line, as llama.cpp and vLLM join them. */
static int join_parts(struct request *r, struct chat_message *m, const cJSON *parts,
                      const char *param, struct fields_error *e)
{
    const cJSON *part;
    const char *type;
    size_t n = 0;
    cJSON_ArrayForEach(part, parts)
    {
        const char *text = part_text(part, &type);
        if (!text)
            return fields_fail(e, param, "invalid_value",
                               "'%s' has a part of type '%.32s': only text is supported", param,
                               type ? type : "?");
        n += strlen(text) + 1;
    }
    char *joined = arena_bytes(&r->arena, n + 1);
    if (!joined)
        return 0; /* request_rc tells */
    n = 0;
    cJSON_ArrayForEach(part, parts)
    {
        const char *text = part_text(part, &type);
        if (part != parts->child)
            joined[n++] = '\n';
        memcpy(joined + n, text, strlen(text));
        n += strlen(text);
    }
    m->content = request_copy_utf8(r, joined, n, &m->content_bytes);
    return 0;
}

int openai_read_content(struct request *r, struct chat_message *m, const cJSON *content, int i,
                        struct fields_error *e)
{
    char param[64];
    m->content = "";
    if (!content || cJSON_IsNull(content))
        return 0;
    if (cJSON_IsString(content)) {
        m->content = request_copy_utf8(r, content->valuestring, strlen(content->valuestring),
                                       &m->content_bytes);
        return 0;
    }
    snprintf(param, sizeof(param), "messages[%d].content", i);
    if (cJSON_IsArray(content))
        return join_parts(r, m, content, param, e);
    return fields_fail(e, param, "invalid_type", "'%s' must be a string or a list of parts", param);
}

struct message_body {
    const char *role, *name, *call_id;
    const cJSON *content, *calls, *function_call;
};

const char *openai_role(const char *given, uint32_t i, struct fields_error *e)
{
    /* models were trained with system messages; "developer" is their new name */
    static const char *const roles[][2] = {
        {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"},
        {"tool", "tool"},     {"function", "tool"}}; /* the older name of "tool" */
    char param[64];
    for (size_t k = 0; given && k < sizeof(roles) / sizeof(roles[0]); k++)
        if (strcmp(given, roles[k][0]) == 0)
            return roles[k][1];
    snprintf(param, sizeof(param), "messages[%u].role", i);
    fields_fail(e, param, "invalid_value",
                "'%s' must be system, developer, user, assistant or tool", param);
    return NULL;
}

int openai_read_message(struct request *r, struct chat_message *m, const cJSON *v, int i,
                        bool lenient, struct fields_error *e)
{
    static const struct field table[] = {
        {"role", FIELD_STR, offsetof(struct message_body, role), 0, 0, NULL, NULL},
        {"content", FIELD_VALUE, offsetof(struct message_body, content), 0, 0, NULL, NULL},
        {"name", FIELD_STR, offsetof(struct message_body, name), 0, 0, NULL, NULL},
        {"refusal", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"annotations", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"thinking", FIELD_IGNORED, 0, 0, 0, NULL, NULL}, /* templates leave it out anyway */
        {"reasoning", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"reasoning_content", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"id", FIELD_IGNORED, 0, 0, 0, NULL, NULL}, /* in /v1/responses, also: */
        {"type", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"status", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"images", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
        {"tool_calls", FIELD_VALUE, offsetof(struct message_body, calls), 0, 0, NULL, NULL},
        {"tool_call_id", FIELD_STR, offsetof(struct message_body, call_id), 0, 0, NULL, NULL},
        {"tool_name", FIELD_STR, offsetof(struct message_body, name), 0, 0, NULL, NULL},
        {"function_call", FIELD_VALUE, offsetof(struct message_body, function_call), 0, 0, NULL,
         NULL},
        {"audio", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
    struct message_body b = {.role = NULL};
    struct fields_error inner = {{0}, {0}, NULL};
    if (fields_read(table, sizeof(table) / sizeof(table[0]), v, &b, lenient, &inner) < 0) {
        char param[64];
        snprintf(param, sizeof(param), "messages[%d]%s%.40s", i, inner.param[0] ? "." : "",
                 inner.param);
        return fields_fail(e, param, inner.code, "messages[%d]: %.200s", i, inner.msg);
    }
    m->role = openai_role(b.role, (uint32_t)i, e);
    if (!m->role)
        return SHOAL_EINVAL;
    if (b.name)
        m->name = request_copy_utf8(r, b.name, strlen(b.name), NULL);
    if (b.call_id)
        m->call_id = request_copy_utf8(r, b.call_id, strlen(b.call_id), NULL);
    int rc = tools_read_calls(r, m, b.calls, (uint32_t)i, e);
    if (rc == 0)
        rc = tools_read_function_call(r, m, b.function_call, (uint32_t)i, e);
    return rc < 0 ? rc : openai_read_content(r, m, b.content, i, e);
}

int openai_read_messages(struct request *r, const cJSON *messages, bool lenient,
                         struct fields_error *e)
{
    const cJSON *v;
    int i = 0;
    if (!cJSON_IsArray(messages) || !messages->child)
        return fields_fail(e, "messages", messages ? "invalid_type" : "missing_required_parameter",
                           "'messages' must be a list with at least one message");
    size_t n = (size_t)cJSON_GetArraySize(messages);
    struct chat_message *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    if (!list)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(v, messages)
    {
        int rc = openai_read_message(r, &list[i], v, i, lenient, e);
        if (rc < 0)
            return rc;
        r->input_bytes += list[i++].content_bytes;
    }
    tools_read_names(list, (uint32_t)n);
    r->generate.chat.messages = list;
    r->generate.chat.n_messages = (uint32_t)n;
    return 0;
}

static struct value read_value(struct request *r, const cJSON *v);

static struct value read_list(struct request *r, const cJSON *v)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value *items = arena_zalloc_n(&r->arena, n, sizeof(*items));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (items) items[i++] = read_value(r, one);
    return (struct value){.kind = VALUE_LIST, .list = {items, i}};
}

static struct value read_map(struct request *r, const cJSON *v)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value_member *members = arena_zalloc_n(&r->arena, n, sizeof(*members));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (members)
    {
        members[i].key = request_copy_utf8(r, one->string, strlen(one->string), NULL);
        members[i++].value = read_value(r, one);
    }
    return (struct value){.kind = VALUE_MAP, .map = {members, i}};
}

/* The parser bounds the nesting depth. */
static struct value read_value(struct request *r, const cJSON *v)
{
    struct value out = {.kind = VALUE_NULL};
    if (cJSON_IsBool(v))
        out = value_bool(cJSON_IsTrue(v));
    else if (cJSON_IsNumber(v) && isfinite(v->valuedouble))
        out = (struct value){.kind = VALUE_NUMBER, .number = v->valuedouble};
    else if (cJSON_IsArray(v))
        out = read_list(r, v);
    else if (cJSON_IsObject(v))
        out = read_map(r, v);
    else if (cJSON_IsString(v)) {
        out.kind = VALUE_TEXT;
        out.text.p = request_copy_utf8(r, v->valuestring, strlen(v->valuestring), &out.text.n);
    }
    return out;
}

int openai_read_template_vars(struct request *r, const cJSON *vars, struct fields_error *e)
{
    if (!vars)
        return 0;
    if (!cJSON_IsObject(vars))
        return fields_fail(e, "chat_template_kwargs", "invalid_type",
                           "'chat_template_kwargs' must be an object");
    struct value map = read_map(r, vars);
    r->generate.chat.vars = map.map.members;
    r->generate.chat.n_vars = (uint32_t)map.map.n;
    return 0;
}

void openai_add_var(struct request *r, const char *name, struct value v)
{
    struct chat *chat = &r->generate.chat;
    struct value_member *all = arena_zalloc_n(&r->arena, chat->n_vars + 1u, sizeof(*all));
    if (!all)
        return; /* request_rc tells */
    all[0] = (struct value_member){.key = name, .value = v};
    if (chat->n_vars > 0)
        memcpy(all + 1, chat->vars, chat->n_vars * sizeof(*all));
    chat->vars = all;
    chat->n_vars++;
}

void openai_prefill(struct request *r)
{
    const struct chat *chat = &r->generate.chat;
    if (chat->n_messages == 0)
        return;
    const struct chat_message *last = &chat->messages[chat->n_messages - 1];
    if (strcmp(last->role, "assistant") == 0 && last->content_bytes > 0)
        openai_add_var(r, CHAT_CONTINUE_VAR, value_bool(true));
}

/* Reads the fields after the last message. */
static int read_ending(struct request *r, const struct openai_body *b, struct fields_error *e)
{
    bool more = cJSON_IsTrue(b->continue_final), own = cJSON_IsTrue(b->generation_prompt);
    if (more && own)
        return fields_fail(e, CHAT_CONTINUE_VAR, "invalid_value",
                           "'continue_final_message' and 'add_generation_prompt' exclude each "
                           "other");
    if (b->generation_prompt)
        openai_add_var(r, "add_generation_prompt", value_bool(own));
    if (more)
        openai_add_var(r, CHAT_CONTINUE_VAR, value_bool(true));
    else if (!b->continue_final && !own)
        openai_prefill(r);
    return 0;
}

/* How much a model thinks is its template's matter. */
void openai_read_effort(struct request *r, const char *effort)
{
    if (!effort || !effort[0])
        return;
    struct value v = {.kind = VALUE_TEXT};
    v.text.p = request_copy_utf8(r, effort, strlen(effort), &v.text.n);
    openai_add_var(r, "reasoning_effort", v);
    if (strcmp(effort, "none") == 0)
        openai_add_var(r, "enable_thinking", value_bool(false));
}

static void read_verbosity(struct request *r, const char *verbosity)
{
    if (!verbosity || !verbosity[0])
        return;
    struct value v = {.kind = VALUE_TEXT};
    v.text.p = request_copy_utf8(r, verbosity, strlen(verbosity), &v.text.n);
    openai_add_var(r, "verbosity", v);
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
    rc = openai_read_messages(r, b.messages, lenient, e);
    if (rc == 0)
        rc = openai_read_template_vars(r, b.template_vars, e);
    if (rc == 0)
        openai_read_effort(r, b.reasoning_effort);
    if (rc == 0)
        read_verbosity(r, b.verbosity);
    if (rc == 0)
        rc = read_ending(r, &b, e);
    if (rc == 0)
        rc = read_chat_tools(r, shape, &b, e);
    return rc < 0 ? rc : finish(r, shape, "messages", e);
}

/* ---- completions ---- */

static bool read_id(int32_t *out, const cJSON *v)
{
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > INT32_MAX ||
        v->valuedouble != floor(v->valuedouble))
        return false;
    *out = (int32_t)v->valuedouble;
    return true;
}

static int read_ids(struct request *r, struct request_prompt *p, const cJSON *list,
                    const char *name, struct fields_error *e)
{
    size_t n = (size_t)cJSON_GetArraySize(list);
    int32_t *ids = arena_zalloc_n(&r->arena, n, sizeof(*ids));
    const cJSON *v;
    if (!ids)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(v, list)
    {
        if (!read_id(&ids[p->n_ids++], v))
            return fields_fail(e, name, "invalid_value",
                               "'%s' contains a value that is not a token id", name);
    }
    p->ids = ids;
    r->input_bytes += n * sizeof(*ids);
    return 0;
}

/* A prompt as text: a string, or as llama.cpp writes it, {"prompt_string": ...}, where data beside
 * it would be an image or a sound.  NULL: it is neither. */
static const char *prompt_text(const cJSON *v)
{
    if (cJSON_IsObject(v) && v->child && !v->child->next)
        v = cJSON_GetObjectItemCaseSensitive(v, "prompt_string");
    return cJSON_GetStringValue(v);
}

static void read_text(struct request *r, struct request_prompt *p, const char *text)
{
    p->text_bytes = strlen(text);
    p->text = request_copy(r, text, p->text_bytes);
    r->input_bytes += p->text_bytes;
}

/* Whether a list has both texts and token ids: then it is one prompt, as llama.cpp has it. */
static bool is_mixed(const cJSON *list)
{
    const cJSON *v;
    bool text = false, id = false;
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(v, list)
    {
        text |= cJSON_IsString(v);
        id |= cJSON_IsNumber(v);
    }
    return text && id;
}

/* How many numbers follow each other from v on. */
static size_t n_ids_from(const cJSON *v)
{
    size_t n = 0;
    for (; cJSON_IsNumber(v); v = v->next)
        n++;
    return n;
}

/* Texts and runs of ids. */
static int read_mixed(struct request *r, struct request_prompt *p, const cJSON *list,
                      const char *name, struct fields_error *e)
{
    size_t n = (size_t)cJSON_GetArraySize(list), at = 0;
    int32_t *ids = arena_zalloc_n(&r->arena, n, sizeof(*ids));
    struct request_piece *pieces = arena_zalloc_n(&r->arena, n, sizeof(*pieces));
    const cJSON *v = list->child;
    while (ids && pieces && v && p->n_pieces < REQUEST_MAX_PIECES) {
        struct request_piece *piece = &pieces[p->n_pieces++];
        size_t k = n_ids_from(v);
        if (k == 0 && !cJSON_IsString(v))
            return fields_fail(e, name, "invalid_type", "'%s' must hold texts and token ids", name);
        if (k == 0) {
            piece->text_bytes = strlen(v->valuestring);
            piece->text = request_copy(r, v->valuestring, piece->text_bytes);
            r->input_bytes += piece->text_bytes;
            v = v->next;
            continue;
        }
        piece->ids = ids + at;
        piece->n_ids = k;
        r->input_bytes += k * sizeof(*ids);
        for (; k > 0; k--, v = v->next)
            if (!read_id(&ids[at++], v))
                return fields_fail(e, name, "invalid_value",
                                   "'%s' contains a value that is not a token id", name);
    }
    if (ids && pieces && v)
        return fields_fail(e, name, "invalid_value",
                           "'%s' changes between texts and token ids more than %u times", name,
                           REQUEST_MAX_PIECES);
    p->pieces = pieces;
    r->no_cache = true; /* the cache key covers texts or ids, not a mix */
    return 0;
}

/* A list of prompts, each a text or a list of ids, or of both. */
static int read_prompts(struct request *r, struct request_prompt *out, const cJSON *list,
                        bool may_mix, struct fields_error *e)
{
    const cJSON *v;
    uint32_t i = 0;
    cJSON_ArrayForEach(v, list)
    {
        char name[32];
        const char *text = prompt_text(v);
        snprintf(name, sizeof(name), "prompt[%u]", i);
        if (!text && (!cJSON_IsArray(v) || !v->child))
            return fields_fail(e, name, "invalid_type",
                               "'%s' must be a text or a list of token ids", name);
        if (text)
            read_text(r, &out[i], text);
        else if (may_mix && is_mixed(v)) {
            if (read_mixed(r, &out[i], v, name, e) < 0)
                return SHOAL_EINVAL;
        } else if (read_ids(r, &out[i], v, name, e) < 0)
            return SHOAL_EINVAL;
        i++;
    }
    return 0;
}

/* Number of prompts; bounded, since each is a task for every choice. */
static int count_prompts(struct request_generate *g, const cJSON *list, struct fields_error *e)
{
    uint64_t n = (uint64_t)cJSON_GetArraySize(list);
    if (n > REQUEST_MAX_PROMPTS)
        return fields_fail(e, "prompt", "invalid_value",
                           "'prompt' holds %llu prompts: at most %u may be sent at a time",
                           (unsigned long long)n, REQUEST_MAX_PROMPTS);
    if (n * g->n > REQUEST_MAX_CHOICES)
        return fields_fail(e, "prompt", "invalid_value",
                           "'prompt' holds %llu prompts, which makes %llu choices with 'n': at "
                           "most %u may be requested at a time",
                           (unsigned long long)n, (unsigned long long)(n * g->n),
                           REQUEST_MAX_CHOICES);
    g->n_prompts = (uint32_t)n;
    return 0;
}

int openai_read_prompt(struct request *r, const cJSON *prompt, bool may_mix, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    int rc = 0;
    if (cJSON_IsArray(prompt) && prompt->child && !prompt->child->next &&
        !cJSON_IsNumber(prompt->child))
        prompt = prompt->child; /* a list of one prompt */
    const cJSON *first = cJSON_IsArray(prompt) ? prompt->child : NULL;
    bool mixed = may_mix && is_mixed(prompt);
    bool several = !mixed && (prompt_text(first) || cJSON_IsArray(first));
    if (several)
        rc = count_prompts(g, prompt, e);
    struct request_prompt *list = arena_zalloc_n(&r->arena, g->n_prompts, sizeof(*list));
    if (rc < 0 || !list)
        return rc;
    g->prompts = list;
    g->parse_special = true;
    if (prompt_text(prompt))
        read_text(r, &list[0], prompt_text(prompt));
    else if (mixed)
        rc = read_mixed(r, &list[0], prompt, "prompt", e);
    else if (cJSON_IsNumber(first))
        rc = read_ids(r, &list[0], prompt, "prompt", e);
    else if (several)
        rc = read_prompts(r, list, prompt, may_mix, e);
    else
        rc = fields_fail(e, "prompt", prompt ? "invalid_type" : "missing_required_parameter",
                         "'prompt' must be a text, a list of token ids, or a list of these");
    return rc;
}

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
        rc = openai_read_prompt(r, b.prompt, false, e);
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
