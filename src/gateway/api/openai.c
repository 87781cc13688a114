/* openai.c - /v1/chat/completions and /v1/completions: what a request may say. */
#include "gateway/api/openai.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/json_out.h"

#define MAX_CONTEXT_BYTES ((size_t)64 << 20)
#define AT(member) offsetof(struct openai_body, member)
#define MAX_SEED 9223372036854775807.0
#define MAX_N 16u
#define IDS_SCHEMA                                                                                 \
    "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"integer\",\"minimum\":0}}"
#define SEVERAL "{\"type\":\"array\",\"minItems\":1,\"maxItems\":64,\"items\":"
#define PROMPT_SCHEMA                                                                              \
    "{\"oneOf\":[{\"type\":\"string\"}," IDS_SCHEMA "," SEVERAL                                    \
    "{\"type\":\"string\"}}," SEVERAL IDS_SCHEMA "}]}"
_Static_assert(GEN_MAX_PROMPTS == 64, "as in SEVERAL");
#define STOP_SCHEMA                                                                                \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}"

/* What both take. */
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
        {"max_tokens", FIELD_INT, AT(max_tokens), 1, 1 << 24, "most tokens of the answer", NULL},   \
        {"temperature", FIELD_NUM, AT(temperature), 0, 2, "0: always the likeliest token", NULL},   \
        {"top_p", FIELD_NUM, AT(top_p), 0, 1, "keep the likeliest tokens up to this mass", NULL},   \
        {"n", FIELD_INT, AT(n), 1, MAX_N, "answers to each prompt", NULL},                          \
        {"stop", FIELD_VALUE, AT(stop), 0, 0, "texts that end the answer", STOP_SCHEMA},            \
        {"seed", FIELD_INT, AT(seed), -MAX_SEED, MAX_SEED, "the same seed, the same answer", NULL}, \
        {"presence_penalty",                                                                        \
         FIELD_NUM,                                                                                 \
         AT(presence_penalty),                                                                      \
         -2,                                                                                        \
         2,                                                                                         \
         "against tokens that were there",                                                          \
         NULL},                                                                                     \
        {"frequency_penalty",        FIELD_NUM, AT(frequency_penalty), -2, 2,                       \
         "for every time they were", NULL},                                                         \
        {"logit_bias",                                                                              \
         FIELD_VALUE,                                                                               \
         AT(logit_bias),                                                                            \
         0,                                                                                         \
         0,                                                                                         \
         "token id to a number from -100 to 100",                                                   \
         "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}"},                   \
        {"user", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                            \
        {"top_k", FIELD_INT, AT(top_k), 0, INT_MAX, "keep so many tokens; 0: all", NULL},           \
        {"min_p", FIELD_NUM, AT(min_p), 0, 1, "keep tokens at least so likely, relative", NULL},    \
        {"repeat_penalty", FIELD_NUM, AT(repeat_penalty), 0, 10, "1: none", NULL},                  \
        {"ignore_eos", FIELD_BOOL, AT(ignore_eos), 0, 0, "do not stop at the end token", NULL},     \
        {"priority", FIELD_INT, AT(priority), -100, 100, "higher first", NULL},                     \
    {                                                                                               \
        "latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,                         \
            "refuse or stop what takes longer", NULL                                                \
    }

const struct field openai_chat_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation",
     "{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"object\",\"required\":[\"role\"],"
     "\"properties\":{\"role\":{\"enum\":[\"system\",\"developer\",\"user\",\"assistant\","
     "\"tool\"]},\"content\":{\"type\":\"string\"}}}}"},
    COMMON_FIELDS,
    {"max_completion_tokens", FIELD_INT, AT(max_completion_tokens), 1, 1 << 24,
     "most tokens of the answer", NULL},
    {"logprobs", FIELD_VALUE, AT(logprobs), 0, 0, "log-probability of every token",
     "{\"type\":\"boolean\"}"},
    {"top_logprobs", FIELD_INT, AT(top_logprobs), 0, 20, "and of so many likeliest ones", NULL},
    {"response_format", FIELD_VALUE, AT(response_format), 0, 0, "only {\"type\": \"text\"} yet",
     "{\"type\":\"object\",\"properties\":{\"type\":{\"enum\":[\"text\"]}}}"},
    {"chat_template_kwargs", FIELD_VALUE, AT(template_vars), 0, 0,
     "variables of the model's chat template", "{\"type\":\"object\"}"},
    {"metadata", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"safety_identifier", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
    {"tools", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"tool_choice", FIELD_UNBUILT, 0, 0, 0, NULL, "none"},
    {"parallel_tool_calls", FIELD_UNBUILT, 0, 0, 0, NULL, "false"},
    {"functions", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"function_call", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"modalities", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"audio", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"prediction", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"reasoning_effort", FIELD_UNBUILT, 0, 0, 0, NULL, "none"},
    {"store", FIELD_UNBUILT, 0, 0, 0, NULL, "false"},
    {"service_tier", FIELD_UNBUILT, 0, 0, 0, NULL, "auto"},
    {"web_search_options", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
};
const size_t openai_n_chat_fields = sizeof(openai_chat_fields) / sizeof(openai_chat_fields[0]);

const struct field openai_completion_fields[] = {
    {"prompt", FIELD_VALUE, AT(prompt), 0, 0, "text, or token ids, or a list of one of these",
     PROMPT_SCHEMA},
    COMMON_FIELDS,
    {"echo", FIELD_BOOL, AT(echo), 0, 0, "the prompt in front of the answer", NULL},
    {"best_of", FIELD_INT, AT(best_of), 1, 1, "only 1", NULL},
    {"logprobs", FIELD_VALUE, AT(logprobs), 0, 0, "so many likeliest tokens with each",
     "{\"type\":\"integer\",\"minimum\":0,\"maximum\":20}"},
    {"suffix", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
};
const size_t openai_n_completion_fields =
    sizeof(openai_completion_fields) / sizeof(openai_completion_fields[0]);

_Static_assert(sizeof(openai_chat_fields) / sizeof(openai_chat_fields[0]) <= FIELDS_MAX, "mask");

/* ---- parts of a body ---- */

int openai_read_stop(struct gen_params *p, const cJSON *stop, struct fields_error *e)
{
    const cJSON *one;
    if (!stop)
        return 0;
    if (cJSON_IsString(stop)) {
        p->stop[p->n_stop++] = stop->valuestring;
    } else if (cJSON_IsArray(stop)) {
        cJSON_ArrayForEach(one, stop)
        {
            if (!cJSON_IsString(one))
                return fields_fail(e, "stop", "invalid_type", "'stop' must hold strings");
            if (p->n_stop == GEN_MAX_STOPS)
                return fields_fail(e, "stop", "invalid_value", "'stop' holds more than %u texts",
                                   GEN_MAX_STOPS);
            p->stop[p->n_stop++] = one->valuestring;
        }
    } else {
        return fields_fail(e, "stop", "invalid_type", "'stop' must be a string or a list of them");
    }
    for (uint32_t i = 0; i < p->n_stop; i++)
        if (p->stop[i][0] == '\0')
            return fields_fail(e, "stop", "invalid_value", "'stop' has an empty text");
    return 0;
}

static int read_bias(struct gen_params *p, const cJSON *bias, struct fields_error *e)
{
    const cJSON *one;
    if (!bias)
        return 0;
    int n = cJSON_GetArraySize(bias);
    if (!cJSON_IsObject(bias))
        return fields_fail(e, "logit_bias", "invalid_type",
                           "'logit_bias' must be an object of token ids and numbers");
    if (n > (int)GEN_MAX_BIAS)
        return fields_fail(e, "logit_bias", "invalid_value", "'logit_bias' has more than %u tokens",
                           GEN_MAX_BIAS);
    if (n == 0)
        return 0;
    p->bias = mem_zalloc_n((size_t)n, sizeof(*p->bias));
    if (!p->bias)
        return fields_fail(e, "logit_bias", NULL, "out of memory");
    cJSON_ArrayForEach(one, bias)
    {
        char *end;
        long id = strtol(one->string, &end, 10);
        if (end == one->string || *end || id < 0 || id > INT32_MAX || !cJSON_IsNumber(one) ||
            !(one->valuedouble >= -100 && one->valuedouble <= 100))
            return fields_fail(e, "logit_bias", "invalid_value",
                               "'logit_bias' has \"%.20s\": a token id and a number from -100 to "
                               "100 are needed",
                               one->string);
        float v = (float)one->valuedouble;
        p->bias[p->sampling.n_bias++] =
            (struct shoal_bias){(int32_t)id, v <= -100.0f ? -INFINITY : v};
    }
    return 0;
}

static int read_stream_options(struct gen_params *p, const cJSON *o, bool lenient,
                               struct fields_error *e)
{
    static const struct field table[] = {
        {"include_usage", FIELD_BOOL, offsetof(struct gen_params, include_usage), 0, 0, NULL, NULL},
        {"include_obfuscation", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};
    if (!o)
        return 0;
    if (!p->stream && !lenient)
        return fields_fail(e, "stream_options", "invalid_value",
                           "'stream_options' needs 'stream': true");
    return fields_read(table, 2, o, p, lenient, e);
}

/* What both endpoints read alike. */
static int read_params(struct gen *g, const struct openai_body *b, struct fields_error *e)
{
    struct gen_params *p = &g->p;
    struct call *c = g->call;
    p->n = (uint32_t)b->n;
    p->stream = b->stream;
    p->max_tokens = (uint32_t)(b->max_completion_tokens ? b->max_completion_tokens : b->max_tokens);
    p->ignore_end = b->ignore_eos;
    p->priority = (int32_t)b->priority;
    p->has_seed = b->seed != INT64_MIN;
    p->sampling = (struct shoal_sampling){.temperature = (float)b->temperature,
                                          .top_k = (uint32_t)b->top_k,
                                          .top_p = b->top_p > 0 ? (float)b->top_p : 1e-6f,
                                          .min_p = (float)b->min_p,
                                          .repeat_penalty = (float)b->repeat_penalty,
                                          .presence_penalty = (float)b->presence_penalty,
                                          .frequency_penalty = (float)b->frequency_penalty,
                                          .seed = p->has_seed ? (uint64_t)b->seed : 0};
    call_set_budget(c, b->latency_budget_ms);
    int rc = openai_read_stop(p, b->stop, e);
    if (rc == 0)
        rc = read_bias(p, b->logit_bias, e);
    if (rc == 0)
        rc = read_stream_options(p, b->stream_options, c->lenient, e);
    return rc;
}

static struct openai_body defaults(void)
{
    return (struct openai_body){.n = 1, .temperature = 1, .top_p = 1, .seed = INT64_MIN};
}

/* ---- chat ---- */

static int put_content(struct json_out *j, const cJSON *content, int i, struct fields_error *e)
{
    char param[64];
    const cJSON *part;
    snprintf(param, sizeof(param), "messages[%d].content", i);
    if (!content || cJSON_IsNull(content)) {
        json_out_str(j, "");
        return 0;
    }
    if (cJSON_IsString(content)) {
        json_out_str(j, content->valuestring);
        return 0;
    }
    if (!cJSON_IsArray(content))
        return fields_fail(e, param, "invalid_type", "'%s' must be a string or a list of parts",
                           param);
    struct buf joined;
    buf_init(&joined, MAX_CONTEXT_BYTES);
    int rc = 0;
    cJSON_ArrayForEach(part, content)
    {
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "type"));
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "text"));
        if (!type || strcmp(type, "text") != 0 || !text) {
            rc = fields_fail(e, param, "invalid_value",
                             "'%s' has a part of type '%.32s': only text is understood", param,
                             type ? type : "?");
            break;
        }
        buf_puts(&joined, text);
    }
    if (rc == 0 && joined.rc < 0)
        rc = fields_fail(e, param, NULL, "out of memory");
    if (rc == 0)
        json_out_strn(j, buf_str(&joined), joined.len);
    buf_fini(&joined);
    return rc;
}

struct message {
    const char *role, *name;
    const cJSON *content;
};

static int read_message(struct message *m, const cJSON *v, int i, bool lenient,
                        struct fields_error *e)
{
    static const struct field table[] = {
        {"role", FIELD_STR, offsetof(struct message, role), 0, 0, NULL, NULL},
        {"content", FIELD_VALUE, offsetof(struct message, content), 0, 0, NULL, NULL},
        {"name", FIELD_STR, offsetof(struct message, name), 0, 0, NULL, NULL},
        {"refusal", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"annotations", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
        {"tool_calls", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
        {"tool_call_id", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
        {"function_call", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
        {"audio", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    struct fields_error inner = {{0}, {0}, NULL};
    if (fields_read(table, sizeof(table) / sizeof(table[0]), v, m, lenient, &inner) < 0) {
        char param[64];
        snprintf(param, sizeof(param), "messages[%d]%s%.40s", i, inner.param[0] ? "." : "",
                 inner.param);
        return fields_fail(e, param, inner.code, "messages[%d]: %.200s", i, inner.msg);
    }
    for (size_t k = 0; m->role && k < sizeof(roles) / sizeof(roles[0]); k++)
        if (strcmp(m->role, roles[k]) == 0)
            return 0;
    char param[64];
    snprintf(param, sizeof(param), "messages[%d].role", i);
    return fields_fail(e, param, "invalid_value",
                       "'%s' must be system, developer, user, assistant or tool", param);
}

int openai_put_messages(struct buf *b, const cJSON *messages, bool lenient, struct fields_error *e)
{
    struct json_out j = json_out_make(b);
    const cJSON *v;
    int i = 0, rc = 0;
    if (!cJSON_IsArray(messages) || !messages->child)
        return fields_fail(e, "messages", messages ? "invalid_type" : "missing_required_parameter",
                           "'messages' must be a list with at least one message");
    json_out_array(&j);
    cJSON_ArrayForEach(v, messages)
    {
        struct message m = {NULL, NULL, NULL};
        rc = read_message(&m, v, i, lenient, e);
        if (rc < 0)
            return rc;
        json_out_object(&j);
        json_out_key(&j, "role");
        /* models were trained with system messages; "developer" is their new name */
        json_out_str(&j, strcmp(m.role, "developer") == 0 ? "system" : m.role);
        if (m.name) {
            json_out_key(&j, "name");
            json_out_str(&j, m.name);
        }
        json_out_key(&j, "content");
        rc = put_content(&j, m.content, i, e);
        if (rc < 0)
            return rc;
        json_out_object_end(&j);
        i++;
    }
    json_out_array_end(&j);
    return b->rc < 0 ? fields_fail(e, "messages", NULL, "out of memory") : 0;
}

/* The context of the template, made while the request is read, becomes tokens. */
static int prepare_chat(struct gen *g, struct err *e)
{
    struct buf *context = g->user;
    return shoal_chat_tokens(registry_engine(g->model), buf_str(context), context->len, &g->tokens,
                             &g->n_tokens, e);
}

static int put_context(struct buf *b, const struct openai_body *body, bool lenient,
                       struct fields_error *e)
{
    const cJSON *v;
    buf_puts(b, "{\"messages\":");
    int rc = openai_put_messages(b, body->messages, lenient, e);
    if (rc < 0)
        return rc;
    if (body->template_vars && !cJSON_IsObject(body->template_vars))
        return fields_fail(e, "chat_template_kwargs", "invalid_type",
                           "'chat_template_kwargs' must be an object");
    struct json_out j = json_out_make(b);
    j.comma = true;
    json_out_key(&j, "add_generation_prompt");
    json_out_bool(&j, true);
    cJSON_ArrayForEach(v, body->template_vars)
    {
        char *text = cJSON_PrintUnformatted(v);
        json_out_key(&j, v->string);
        buf_puts(b, text ? text : "null");
        j.comma = true;
        cJSON_free(text);
    }
    buf_putc(b, '}');
    return b->rc < 0 ? fields_fail(e, "messages", NULL, "out of memory") : 0;
}

static int read_chat(struct gen *g, struct openai_body *b, struct fields_error *e)
{
    struct call *c = g->call;
    int rc = fields_read(openai_chat_fields, openai_n_chat_fields, c->json, b, c->lenient, e);
    if (rc == 0)
        rc = read_params(g, b, e);
    if (rc < 0)
        return rc;
    if (b->logprobs && !cJSON_IsBool(b->logprobs))
        return fields_fail(e, "logprobs", "invalid_type", "'logprobs' must be true or false");
    g->p.sampling.logprobs = cJSON_IsTrue(b->logprobs);
    g->p.sampling.n_logprobs = (uint32_t)b->top_logprobs;
    if (b->top_logprobs > 0 && !g->p.sampling.logprobs)
        return fields_fail(e, "top_logprobs", "invalid_value",
                           "'top_logprobs' needs 'logprobs': true");
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(b->response_format, "type");
    if (b->response_format && !c->lenient &&
        (!cJSON_IsString(type) || strcmp(type->valuestring, "text") != 0))
        return fields_fail(e, "response_format", "unsupported_parameter",
                           "'response_format' other than {\"type\": \"text\"} is not supported "
                           "yet");
    return put_context(g->user, b, c->lenient, e);
}

void openai_chat(struct call *c)
{
    struct openai_body b = defaults();
    struct fields_error e = {{0}, {0}, NULL};
    struct gen *g = gen_create(c, &openai_chat_sink, "chatcmpl-");
    if (!g)
        return;
    g->user = &g->prompt;
    if (read_chat(g, &b, &e) < 0) {
        call_fail_fields(c, &e);
        gen_free(g);
        return;
    }
    g->sink = g->p.stream ? &openai_chat_stream_sink : &openai_chat_sink;
    g->prepare = prepare_chat;
    g->prompt_kind = PROMPT_KIND_CHAT;
    g->recallable = true;
    gen_run(g, b.model);
}

/* ---- completions ---- */

static int take_ids(struct buf *out, const cJSON *list, const char *name, struct fields_error *e)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, list)
    {
        if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > INT32_MAX ||
            v->valuedouble != floor(v->valuedouble))
            return fields_fail(e, name, "invalid_value",
                               "'%s' has something that is not a token id", name);
        int32_t id = (int32_t)v->valuedouble;
        buf_put(out, &id, sizeof(id));
    }
    return 0;
}

/* What has been gathered is the prompts' tokens. */
static int keep_tokens(struct gen *g, struct buf *ids)
{
    size_t n;
    g->tokens = (int32_t *)(void *)buf_take(ids, &n);
    g->n_tokens = g->tokens ? n / sizeof(*g->tokens) : 0;
    return g->tokens ? 0 : SHOAL_ENOMEM;
}

/* A list of prompts, all texts or all lists of ids. */
static int read_prompts(struct gen *g, const cJSON *list, struct buf *ids, struct fields_error *e)
{
    bool texts = cJSON_IsString(list->child);
    const cJSON *v;
    uint32_t i = 0;
    g->ends = mem_zalloc_n(g->p.n_prompts, sizeof(*g->ends));
    if (!g->ends)
        return fields_fail(e, "prompt", NULL, "out of memory");
    cJSON_ArrayForEach(v, list)
    {
        char name[32];
        snprintf(name, sizeof(name), "prompt[%u]", i);
        if (texts ? !cJSON_IsString(v) : !cJSON_IsArray(v) || !v->child)
            return fields_fail(e, name, "invalid_type",
                               texts ? "'%s' must be a text, like the first one"
                                     : "'%s' must be a list of token ids",
                               name);
        if (texts)
            buf_puts(&g->prompt, v->valuestring);
        else if (take_ids(ids, v, name, e) < 0)
            return SHOAL_EINVAL;
        g->ends[i++] = texts ? g->prompt.len : ids->len / sizeof(*g->tokens);
    }
    return 0;
}

/* How many there are; what there may be is bounded, since each is a task for every choice. */
static int count_prompts(struct gen *g, const cJSON *list, struct fields_error *e)
{
    uint64_t n = (uint64_t)cJSON_GetArraySize(list);
    if (n > GEN_MAX_PROMPTS)
        return fields_fail(e, "prompt", "invalid_value",
                           "'prompt' holds %llu prompts: at most %u may be sent at a time",
                           (unsigned long long)n, GEN_MAX_PROMPTS);
    if (n * g->p.n > GEN_MAX_CHOICES)
        return fields_fail(e, "prompt", "invalid_value",
                           "'prompt' holds %llu prompts, which makes %llu choices with 'n': at "
                           "most %u may be asked for at a time",
                           (unsigned long long)n, (unsigned long long)(n * g->p.n),
                           GEN_MAX_CHOICES);
    g->p.n_prompts = (uint32_t)n;
    g->p.n *= (uint32_t)n;
    return 0;
}

static int read_prompt(struct gen *g, const cJSON *prompt, struct fields_error *e)
{
    struct buf ids;
    int rc = 0;
    if (cJSON_IsArray(prompt) && prompt->child && !prompt->child->next &&
        !cJSON_IsNumber(prompt->child))
        prompt = prompt->child; /* a list of one prompt */
    const cJSON *first = cJSON_IsArray(prompt) ? prompt->child : NULL;
    buf_init(&ids, MAX_CONTEXT_BYTES);
    if (cJSON_IsString(prompt))
        buf_puts(&g->prompt, prompt->valuestring);
    else if (cJSON_IsNumber(first))
        rc = take_ids(&ids, prompt, "prompt", e);
    else if (!cJSON_IsString(first) && !cJSON_IsArray(first))
        rc = fields_fail(e, "prompt", prompt ? "invalid_type" : "missing_required_parameter",
                         "'prompt' must be a text, a list of token ids, or a list of these");
    else if ((rc = count_prompts(g, prompt, e)) == 0)
        rc = read_prompts(g, prompt, &ids, e);
    bool short_of = g->prompt.rc < 0 || ids.rc < 0;
    if (rc == 0 && (short_of || (ids.len > 0 && keep_tokens(g, &ids) < 0)))
        rc = fields_fail(e, "prompt", NULL, "out of memory");
    buf_fini(&ids);
    return rc;
}

/* Texts of several prompts: their tokens behind each other, and `ends` says where. */
static int prepare_texts(struct gen *g, struct err *e)
{
    struct buf ids;
    size_t at = 0;
    int rc = 0;
    buf_init(&ids, (size_t)256 << 20);
    for (uint32_t i = 0; i < g->p.n_prompts && rc == 0; i++) {
        int32_t *tokens = NULL;
        size_t n = 0, end = g->ends[i];
        rc = shoal_tokenize(registry_engine(g->model), buf_str(&g->prompt) + at, end - at,
                            SHOAL_TEXT_ADD_SPECIAL, &tokens, &n, e);
        if (rc == 0)
            buf_put(&ids, tokens, n * sizeof(*tokens));
        g->ends[i] = ids.len / sizeof(*tokens);
        at = end;
        shoal_free(tokens);
    }
    if (rc == 0 && (ids.rc < 0 || keep_tokens(g, &ids) < 0))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    buf_fini(&ids);
    return rc;
}

static int prepare_text(struct gen *g, struct err *e)
{
    if (g->tokens)
        return 0; /* ids were given */
    if (g->ends)
        return prepare_texts(g, e);
    return shoal_tokenize(registry_engine(g->model), buf_str(&g->prompt), g->prompt.len,
                          SHOAL_TEXT_ADD_SPECIAL, &g->tokens, &g->n_tokens, e);
}

static int read_completion(struct gen *g, struct openai_body *b, struct fields_error *e)
{
    struct call *c = g->call;
    int rc = fields_read(openai_completion_fields, openai_n_completion_fields, c->json, b,
                         c->lenient, e);
    if (rc == 0)
        rc = read_params(g, b, e);
    if (rc == 0)
        rc = read_prompt(g, b->prompt, e);
    if (rc < 0 || !b->logprobs || cJSON_IsFalse(b->logprobs))
        return rc;
    double n = b->logprobs->valuedouble;
    if (!cJSON_IsNumber(b->logprobs) || !(n >= 0 && n <= 20) || n != floor(n))
        return fields_fail(e, "logprobs", "invalid_value",
                           "'logprobs' must be a whole number from 0 to 20");
    g->p.sampling.logprobs = true;
    g->p.sampling.n_logprobs = (uint32_t)n;
    return 0;
}

void openai_completions(struct call *c)
{
    struct openai_body b = defaults();
    struct fields_error e = {{0}, {0}, NULL};
    b.max_tokens = 16; /* the default of this endpoint */
    struct gen *g = gen_create(c, &openai_text_sink, "cmpl-");
    if (!g)
        return;
    bool ok = read_completion(g, &b, &e) == 0;
    if (!ok)
        call_fail_fields(c, &e);
    if (!ok || !call_enter_more(c, g->p.n_prompts)) {
        gen_free(g);
        return;
    }
    g->sink = g->p.stream ? &openai_text_stream_sink : &openai_text_sink;
    g->prepare = prepare_text;
    g->prompt_kind = PROMPT_KIND_TEXT;
    g->recallable = true;
    g->echo = b.echo;
    gen_run(g, b.model);
}
