/* llamacpp_read.c - bodies of /completion, /infill and /apply-template to requests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/constraint_read.h"
#include "gateway/api/llama/llamacpp.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"

struct body {
    const char *model, *prefix, *suffix;
    const cJSON *lora, *prompt, *stop, *logit_bias, *messages, *template_vars, *tools,
        *generation_prompt, *response_fields, *extra;
    struct constraint_fields constraint;
    bool stream, ignore_eos, return_tokens, echo, progress, post_sampling, cache_prompt;
    int64_t n_predict, seed, top_k, repeat_last_n, n_probs, n_keep, priority, id_slot;
    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty,
        latency_budget_ms;
};

#define AT(member) offsetof(struct body, member)
#define MAX_SEED 9223372036854775807.0
#define MAX_RESPONSE_FIELDS 64
#define IGNORED(name)                                                                              \
    {                                                                                              \
        name, FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL                                \
    }
/* A sampler that we do not have, and the value that turns it off. */
#define OFF(name, value)                                                                           \
    {                                                                                              \
        name, FIELD_UNBUILT, 0, 0, 0, NULL, value                                                  \
    }
#define COMMON                                                                                       \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},                    \
        {"stream", FIELD_BOOL, AT(stream), 0, 0, "server-sent events as tokens come", NULL},         \
        {"n_predict", FIELD_INT, AT(n_predict), -2, 1 << 24, "maximum number of tokens; -1: none",   \
         NULL},                                                                                      \
        {"max_tokens", FIELD_INT, AT(n_predict), -1, 1 << 24, "same as n_predict", NULL},            \
        {"temperature", FIELD_NUM, AT(temperature), -100, 100, "0: the most likely token", NULL},    \
        {"top_k", FIELD_INT, AT(top_k), -1, 1e9, "number of most likely tokens to keep", NULL},      \
        {"top_p", FIELD_NUM, AT(top_p), 0, 1e9, "probability mass to keep", NULL},                   \
        {"min_p", FIELD_NUM, AT(min_p), -1, 1, "minimum probability, relative to the best", NULL},   \
        {"repeat_penalty", FIELD_NUM, AT(repeat_penalty), 0, 10, "1: none", NULL},                   \
        {"repeat_last_n",                                                                            \
         FIELD_INT,                                                                                  \
         AT(repeat_last_n),                                                                          \
         -1,                                                                                         \
         1 << 20,                                                                                    \
         "tokens that the penalty looks at; 0: none, -1: all",                                       \
         NULL},                                                                                      \
        {"presence_penalty", FIELD_NUM, AT(presence_penalty), -10, 10, "0: none", NULL},             \
        {"frequency_penalty", FIELD_NUM, AT(frequency_penalty), -10, 10, "0: none", NULL},           \
        {"seed", FIELD_INT, AT(seed), -MAX_SEED, MAX_SEED, "same seed, same answer; -1: any", NULL}, \
        {"stop", FIELD_VALUE, AT(stop), 0, 0, "texts that end the answer", "{\"type\":\"array\"}"},  \
        {"ignore_eos", FIELD_BOOL, AT(ignore_eos), 0, 0, "do not stop at the end token", NULL},      \
        {"logit_bias",                                                                               \
         FIELD_VALUE,                                                                                \
         AT(logit_bias),                                                                             \
         0,                                                                                          \
         0,                                                                                          \
         "[[token id or text, number or false], ...], or an object of them",                         \
         "{}"},                                                                                      \
        {"n_probs", FIELD_INT,          AT(n_probs),                                                 \
         0,         SHOAL_MAX_LOGPROBS, "most likely tokens to return with each",                    \
         NULL},                                                                                      \
        {"return_tokens", FIELD_BOOL, AT(return_tokens), 0, 0, "return the token ids", NULL},        \
        {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},               \
        {"latency_budget_ms",                                                                        \
         FIELD_NUM,                                                                                  \
         AT(latency_budget_ms),                                                                      \
         1,                                                                                          \
         86400000,                                                                                   \
         "refuse or stop a request that takes longer",                                               \
         NULL},                                                                                      \
        OFF("mirostat", "0"), OFF("dynatemp_range", "0"), OFF("typical_p", "1"),                     \
        OFF("xtc_probability", "0"), OFF("dry_multiplier", "0"), OFF("top_n_sigma", "-1"),           \
        {"lora",                                                                                     \
         FIELD_VALUE,                                                                                \
         AT(lora),                                                                                   \
         0,                                                                                          \
         0,                                                                                          \
         "[{\"id\": 0, \"scale\": 0.5}]: a LoRA adapter of /lora-adapters",                          \
         "{\"type\":\"array\"}"},                                                                    \
        OFF("n_cmpl", "1"), IGNORED("mirostat_tau"), IGNORED("mirostat_eta"),                        \
        IGNORED("dynatemp_exponent"), IGNORED("xtc_threshold"), IGNORED("dry_base"),                 \
        IGNORED("dry_allowed_length"), IGNORED("dry_penalty_last_n"),                                \
        IGNORED("dry_sequence_breakers"),                                                            \
        {"cache_prompt",                                                                             \
         FIELD_BOOL,                                                                                 \
         AT(cache_prompt),                                                                           \
         0,                                                                                          \
         0,                                                                                          \
         "false: compute all of the prompt, even if its beginning is cached",                        \
         NULL},                                                                                      \
        {"id_slot", FIELD_INT, AT(id_slot),                                                          \
         -1,        255,       "the slot that holds the text afterwards, for /slots",                \
         NULL},                                                                                      \
        {"n_keep",   FIELD_INT,                                                                      \
         AT(n_keep), -1,                                                                             \
         1 << 24,    "first tokens that a shift of the context keeps; -1: the whole prompt",         \
         NULL},                                                                                      \
        IGNORED("n_discard"), IGNORED("min_keep"), IGNORED("samplers"),                              \
        IGNORED("timings_per_token"), IGNORED("t_max_predict_ms"), IGNORED("n_indent"),              \
        IGNORED("backend_sampling"), {"return_progress",                                             \
                                      FIELD_BOOL,                                                    \
                                      AT(progress),                                                  \
                                      0,                                                             \
                                      0,                                                             \
                                      "streams: report prefill progress",                            \
                                      NULL},                                                         \
        {"post_sampling_probs",                                                                      \
         FIELD_BOOL,                                                                                 \
         AT(post_sampling),                                                                          \
         0,                                                                                          \
         0,                                                                                          \
         "n_probs: probabilities after sampling filters, instead of the model's own",                \
         NULL},                                                                                      \
        {"response_fields",                                                                          \
         FIELD_VALUE,                                                                                \
         AT(response_fields),                                                                        \
         0,                                                                                          \
         0,                                                                                          \
         "fields to return, such as \"content\" or \"timings/predicted_n\"; empty: all",             \
         "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},                                    \
        IGNORED("t_max_prompt_ms"), IGNORED("user"),                                                 \
        CONSTRAINT_FIELD(AT(constraint), grammar, "the answer matches this grammar, in GBNF",        \
                         "{\"type\":\"string\"}"),                                                   \
        CONSTRAINT_FIELD(AT(constraint), json_schema, "the answer is JSON of this schema",           \
                         "{\"type\":\"object\"}")

const struct field llamacpp_completion_fields[] = {{"prompt", FIELD_VALUE, AT(prompt), 0, 0,
                                                    "text, or token ids, or a list of one of these",
                                                    "{}"},
                                                   COMMON};
const size_t llamacpp_n_completion_fields =
    sizeof(llamacpp_completion_fields) / sizeof(llamacpp_completion_fields[0]);

const struct field llamacpp_infill_fields[] = {
    {"input_prefix", FIELD_STR, AT(prefix), 0, 0, "the text before", NULL},
    {"input_suffix", FIELD_STR, AT(suffix), 0, 0, "the text behind", NULL},
    {"prompt", FIELD_VALUE, AT(prompt), 0, 0, "the beginning of the text between",
     "{\"type\":\"string\"}"},
    {"input_extra", FIELD_VALUE, AT(extra), 0, 0,
     "files related to the text; their end is read if not all of it fits into the context",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"text\"],\"properties\":{"
     "\"filename\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"}}}}"},
    COMMON};
const size_t llamacpp_n_infill_fields =
    sizeof(llamacpp_infill_fields) / sizeof(llamacpp_infill_fields[0]);

const struct field llamacpp_template_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation", "{\"type\":\"array\"}"},
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"chat_template_kwargs", FIELD_VALUE, AT(template_vars), 0, 0,
     "variables of the model's chat template", "{\"type\":\"object\"}"},
    {"tools", FIELD_VALUE, AT(tools), 0, 0, "functions that the model may call", TOOLS_READ_SCHEMA},
    {"add_generation_prompt", FIELD_VALUE, AT(generation_prompt), 0, 0,
     "the template begins an answer; default: true", "{\"type\":\"boolean\"}"},
    IGNORED("stream")};
const size_t llamacpp_n_template_fields =
    sizeof(llamacpp_template_fields) / sizeof(llamacpp_template_fields[0]);

_Static_assert(sizeof(llamacpp_infill_fields) / sizeof(llamacpp_infill_fields[0]) <= FIELDS_MAX,
               "mask");

/* One bias: of a token id, or of the tokens of a text.  v: a number, or false, which forbids. */
static bool add_bias(struct request *r, struct shoal_bias *ids, struct request_bias *texts,
                     const cJSON *id, const char *text, const cJSON *v)
{
    struct request_generate *g = &r->generate;
    const bool forbidden = cJSON_IsFalse(v);
    if (!forbidden && !cJSON_IsNumber(v))
        return false;
    const double bias = forbidden ? -100.0 : v->valuedouble;
    if (text && text[0]) {
        texts[g->n_bias_texts++] =
            (struct request_bias){request_copy(r, text, strlen(text)), prompt_bias(0, bias).bias};
        r->no_cache = true; /* the cache key covers only biases of ids */
        return true;
    }
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble <= INT32_MAX))
        return false;
    ids[g->sampling.n_bias++] = prompt_bias((int32_t)id->valuedouble, bias);
    return true;
}

/* [[id or text, bias], ...], or an object of them. */
static int read_bias(struct request *r, const cJSON *bias, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    const cJSON *one;
    if (!bias || (cJSON_IsArray(bias) && !bias->child))
        return 0;
    int n = cJSON_GetArraySize(bias);
    if (n > (int)REQUEST_MAX_BIAS)
        return fields_fail(e, "logit_bias", "invalid_value", "'logit_bias' has more than %u tokens",
                           REQUEST_MAX_BIAS);
    struct shoal_bias *ids = arena_zalloc_n(&r->arena, (size_t)n, sizeof(*ids));
    struct request_bias *texts = arena_zalloc_n(&r->arena, (size_t)n, sizeof(*texts));
    if (!ids || !texts)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(one, bias)
    {
        const bool member = cJSON_IsObject(bias);
        const cJSON *id = member ? NULL : cJSON_GetArrayItem(one, 0);
        const cJSON *v = member ? one : cJSON_GetArrayItem(one, 1);
        const char *text = member ? one->string : cJSON_GetStringValue(id);
        char *end = NULL;
        const long number = member ? strtol(text, &end, 10) : 0;
        const cJSON key = {.type = cJSON_Number, .valuedouble = (double)number};
        const bool is_id = member && end != text && !*end;
        if (!add_bias(r, ids, texts, is_id ? &key : id, is_id ? NULL : text, v))
            return fields_fail(e, "logit_bias", "invalid_value",
                               "'logit_bias' must hold pairs of a token id or a text and a number, "
                               "or false");
    }
    g->sampling.bias = ids;
    g->bias_texts = texts;
    return 0;
}

/* The fields of the answer that the client wants. */
static int read_response_fields(struct request *r, struct llamacpp_shape *shape, const cJSON *list,
                                struct fields_error *e)
{
    const cJSON *one;
    int n = list ? cJSON_GetArraySize(list) : 0;
    if (list && (!cJSON_IsArray(list) || n > MAX_RESPONSE_FIELDS))
        return fields_fail(e, "response_fields", "invalid_value",
                           "'response_fields' must be a list of at most %d texts",
                           MAX_RESPONSE_FIELDS);
    const char **names = n > 0 ? arena_zalloc_n(&r->arena, (size_t)n, sizeof(*names)) : NULL;
    if (!names)
        return 0; /* none, or request_rc tells */
    cJSON_ArrayForEach(one, list)
    {
        if (!cJSON_IsString(one))
            return fields_fail(e, "response_fields", "invalid_type",
                               "'response_fields' must hold texts");
        names[shape->n_fields++] = request_copy(r, one->valuestring, strlen(one->valuestring));
    }
    shape->fields = names;
    return 0;
}

static int use_body(struct request *r, struct llamacpp_shape *shape, const struct body *b,
                    struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    bool window = b->repeat_last_n != 0;
    r->kind = REQUEST_GENERATE;
    if (b->model)
        r->model = request_copy(r, b->model, strlen(b->model));
    r->priority = (int32_t)b->priority;
    request_set_budget(r, b->latency_budget_ms);
    g->n = g->n_prompts = 1;
    g->max_tokens = b->n_predict > 0 ? (uint32_t)b->n_predict : 0;
    g->prompt_only = b->n_predict == 0;
    g->ignore_end = b->ignore_eos;
    g->has_seed = b->seed >= 0;
    g->sampling = (struct shoal_sampling){
        .temperature = b->temperature > 0 ? (float)b->temperature : 0,
        .top_k = b->top_k > 0 ? (uint32_t)b->top_k : 0,
        .top_p = b->top_p <= 0   ? 1e-6f
                 : b->top_p >= 1 ? 1.0f
                                 : (float)b->top_p,
        .min_p = b->min_p > 0 ? (float)b->min_p : 0,
        .repeat_penalty = window ? (float)b->repeat_penalty : 1.0f,
        .repeat_last_n = b->repeat_last_n < 0 ? 1u << 20 : (uint32_t)b->repeat_last_n,
        .presence_penalty = window ? (float)b->presence_penalty : 0,
        .frequency_penalty = window ? (float)b->frequency_penalty : 0,
        .seed = g->has_seed ? (uint64_t)b->seed : 0,
        .n_logprobs = (uint32_t)b->n_probs,
        .logprobs = b->n_probs > 0};
    g->progress = b->stream && b->progress;
    g->drawn_logprobs = b->post_sampling && b->n_probs > 0;
    g->fresh_prefix = !b->cache_prompt;
    g->keep_tokens = b->n_keep < 0 ? 1u << 24 : (uint32_t)b->n_keep;
    r->no_cache |= g->fresh_prefix;
    r->no_cache |= g->drawn_logprobs; /* cached answers have the model's own probabilities */
    r->streams = b->stream;
    *shape = (struct llamacpp_shape){.stream = b->stream,
                                     .return_tokens = b->return_tokens,
                                     .drawn = g->drawn_logprobs,
                                     .id_slot = b->id_slot};
    int rc = read_response_fields(r, shape, b->response_fields, e);
    if (rc == 0)
        rc = lora_api_read(&shape->lora, b->lora, e);
    if (rc == 0)
        rc = prompt_read_stop(r, b->stop, e);
    r->no_cache |= g->n_stop > 0; /* a cached answer does not record why it ended */
    if (rc == 0)
        rc = constraint_read(r, &b->constraint, false, e);
    return rc < 0 ? rc : read_bias(r, b->logit_bias, e);
}

/* [{"filename": ..., "text": ...}, ...] */
static int read_extra(struct request *r, struct request_prompt *p, const cJSON *extra,
                      struct fields_error *e)
{
    const cJSON *one;
    const int n = cJSON_IsArray(extra) ? cJSON_GetArraySize(extra) : 0;
    if (extra && (!cJSON_IsArray(extra) || n > (int)REQUEST_MAX_PIECES))
        return fields_fail(e, "input_extra", "invalid_value",
                           "'input_extra' must be a list of at most %u files", REQUEST_MAX_PIECES);
    struct request_piece *list = arena_zalloc_n(&r->arena, (size_t)n, sizeof(*list));
    cJSON_ArrayForEach(one, extra)
    {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(one, "filename");
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "text"));
        if (!text || (name && !cJSON_IsString(name)))
            return fields_fail(e, "input_extra", "invalid_value",
                               "'input_extra' must hold objects with the texts 'text' and, if "
                               "given, 'filename'");
        if (!list)
            return 0; /* request_rc tells */
        struct request_piece *piece = &list[p->n_pieces++];
        piece->text_bytes = strlen(text);
        piece->text = request_copy(r, text, piece->text_bytes);
        piece->name = name ? request_copy(r, name->valuestring, strlen(name->valuestring)) : NULL;
        r->input_bytes += piece->text_bytes;
    }
    p->pieces = list;
    return 0;
}

/* Infill: llama.cpp puts the beginning of the answer after the prefix. */
static int use_infill(struct request *r, const struct body *b, struct fields_error *e)
{
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    const char *begin = cJSON_IsString(b->prompt) ? b->prompt->valuestring : "";
    if (b->prompt && !cJSON_IsString(b->prompt))
        return fields_fail(e, "prompt", "invalid_type", "'prompt' must be a text");
    if (!b->prefix || !b->suffix)
        return fields_fail(e, b->prefix ? "input_suffix" : "input_prefix",
                           "missing_required_parameter",
                           "'input_prefix' and 'input_suffix' are required");
    size_t n = strlen(b->prefix), k = strlen(begin);
    char *text = arena_bytes(&r->arena, n + k + 1);
    if (!p || !text)
        return 0; /* request_rc tells */
    memcpy(text, b->prefix, n);
    memcpy(text + n, begin, k + 1);
    p->text = text;
    p->text_bytes = n + k;
    p->suffix_bytes = strlen(b->suffix);
    p->suffix = request_copy(r, b->suffix, p->suffix_bytes);
    r->input_bytes += n + k + p->suffix_bytes;
    r->generate.prompts = p;
    r->no_cache = true;
    return read_extra(r, p, b->extra, e);
}

int llamacpp_read(struct request *r, struct llamacpp_shape *shape, const cJSON *body, bool infill,
                  bool lenient, struct fields_error *e)
{
    /* the server's own defaults */
    struct body b = {.n_predict = -1,
                     .cache_prompt = true,
                     .id_slot = -1,
                     .seed = -1,
                     .temperature = 0.8,
                     .top_k = 40,
                     .top_p = 0.95,
                     .min_p = 0.05,
                     .repeat_penalty = 1,
                     .repeat_last_n = 64};
    int rc =
        infill ? fields_read(llamacpp_infill_fields, llamacpp_n_infill_fields, body, &b, lenient, e)
               : fields_read(llamacpp_completion_fields, llamacpp_n_completion_fields, body, &b,
                             lenient, e);
    if (rc == 0)
        rc = use_body(r, shape, &b, e);
    if (rc == 0)
        rc = infill ? use_infill(r, &b, e) : prompt_read_texts(r, b.prompt, true, e);
    if (rc < 0)
        return rc;
    shape->n_prompts = r->generate.n_prompts;
    shape->several = r->generate.n_prompts > 1;
    return request_rc(r) < 0 ? fields_fail(e, "prompt", NULL, "out of memory") : 0;
}

int llamacpp_read_template(struct request *r, struct llamacpp_shape *shape, const cJSON *body,
                           bool lenient, struct fields_error *e)
{
    struct body b = {.model = NULL};
    struct request_generate *g = &r->generate;
    int rc =
        fields_read(llamacpp_template_fields, llamacpp_n_template_fields, body, &b, lenient, e);
    if (rc < 0)
        return rc;
    r->kind = REQUEST_GENERATE;
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
    g->n = g->n_prompts = 1;
    g->echo = g->special = g->prompt_only = true;
    *shape = (struct llamacpp_shape){.n_prompts = 1, .id_slot = -1};
    rc = prompt_read_messages(r, b.messages, lenient, e);
    if (rc == 0)
        rc = prompt_read_vars(r, b.template_vars, e);
    if (rc == 0)
        rc = tools_read(r, b.tools, e);
    if (rc < 0)
        return rc;
    if (b.generation_prompt)
        prompt_add_var(r, "add_generation_prompt", value_bool(cJSON_IsTrue(b.generation_prompt)));
    prompt_prefill(r);
    return request_rc(r) < 0 ? fields_fail(e, "messages", NULL, "out of memory") : 0;
}
