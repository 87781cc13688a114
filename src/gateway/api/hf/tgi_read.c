/* tgi_read.c - bodies of /generate and /generate_stream to requests. */
#include <stdio.h>
#include <string.h>

#include "gateway/api/constraint_read.h"
#include "gateway/api/hf/tgi.h"
#include "gateway/api/prompt_read.h"

struct body {
    const char *model, *inputs;
    const cJSON *parameters;
    bool stream;
};

struct parameters {
    const cJSON *stop, *grammar;
    bool do_sample, details, full;
    int64_t max_new_tokens, seed, top_k, top_n_tokens;
    double temperature, top_p, repetition_penalty, frequency_penalty;
};

#define MAX_SEED 9223372036854775807.0
#define AT(member) offsetof(struct body, member)
#define OF(member) offsetof(struct parameters, member)

const struct field tgi_fields[] = {
    {"inputs", FIELD_STR, AT(inputs), 0, 0, "the text to continue", NULL},
    {"parameters", FIELD_VALUE, AT(parameters), 0, 0,
     "max_new_tokens, temperature, top_k, top_p, repetition_penalty, frequency_penalty, seed, "
     "stop, "
     "do_sample, return_full_text, details, top_n_tokens, grammar",
     "{\"type\":\"object\"}"},
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"stream", FIELD_BOOL, AT(stream), 0, 0, "/generate answers as /generate_stream does", NULL}};
const size_t tgi_n_fields = sizeof(tgi_fields) / sizeof(tgi_fields[0]);

static const struct field parameter_fields[] = {
    {"max_new_tokens", FIELD_INT, OF(max_new_tokens), 1, 1 << 24, NULL, NULL},
    {"temperature", FIELD_NUM, OF(temperature), 0, 100, NULL, NULL},
    {"top_k", FIELD_INT, OF(top_k), 0, 1e9, NULL, NULL},
    {"top_p", FIELD_NUM, OF(top_p), 0, 1, NULL, NULL},
    {"repetition_penalty", FIELD_NUM, OF(repetition_penalty), 0, 10, NULL, NULL},
    {"frequency_penalty", FIELD_NUM, OF(frequency_penalty), -2, 2, NULL, NULL},
    {"seed", FIELD_INT, OF(seed), 0, MAX_SEED, NULL, NULL},
    {"stop", FIELD_VALUE, OF(stop), 0, 0, NULL, NULL},
    {"stop_sequences", FIELD_VALUE, OF(stop), 0, 0, NULL, NULL},
    {"do_sample", FIELD_BOOL, OF(do_sample), 0, 0, NULL, NULL},
    {"return_full_text", FIELD_BOOL, OF(full), 0, 0, NULL, NULL},
    {"details", FIELD_BOOL, OF(details), 0, 0, NULL, NULL},
    {"top_n_tokens", FIELD_INT, OF(top_n_tokens), 0, 5, NULL, NULL},
    {"grammar", FIELD_VALUE, OF(grammar), 0, 0, NULL, NULL},
    {"decoder_input_details", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"best_of", FIELD_UNBUILT, 0, 0, 0, NULL, "1"},
    {"truncate", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"typical_p", FIELD_UNBUILT, 0, 0, 0, NULL, "1"},
    {"watermark", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"adapter_id", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};

/* {"type": "json" or "regex", "value": ...} */
static int read_grammar(struct request *r, const cJSON *grammar, struct fields_error *e)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(grammar, "type"));
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(grammar, "value");
    struct constraint_fields f = {.response_format = NULL};
    if (!grammar)
        return 0;
    if (type && value && strcmp(type, "json") == 0)
        f.json_schema = value;
    else if (type && value && strcmp(type, "regex") == 0)
        f.guided_regex = value;
    else
        return fields_fail(e, "parameters.grammar", "invalid_value",
                           "'parameters.grammar' must be {\"type\": \"json\" or \"regex\", "
                           "\"value\": ...}");
    return constraint_read(r, &f, false, e);
}

static int use(struct request *r, struct tgi_shape *shape, const struct parameters *p,
               struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    bool samples = p->do_sample || p->temperature > 0 || p->top_k > 0 || p->top_p < 1;
    shape->details = p->details;
    shape->full = p->full;
    g->max_tokens = (uint32_t)p->max_new_tokens;
    g->has_seed = p->seed >= 0;
    g->sampling = (struct shoal_sampling){
        .temperature = !samples             ? 0.0f
                       : p->temperature > 0 ? (float)p->temperature
                                            : 1.0f,
        .top_k = (uint32_t)p->top_k,
        .top_p = p->top_p > 0 ? (float)p->top_p : 1e-6f,
        .repeat_penalty = (float)p->repetition_penalty,
        .frequency_penalty = (float)p->frequency_penalty,
        .seed = g->has_seed ? (uint64_t)p->seed : 0,
        .logprobs = p->details || shape->stream,
        .n_logprobs = p->details || shape->stream ? (uint32_t)p->top_n_tokens : 0};
    int rc = prompt_read_stop(r, p->stop, e);
    r->no_cache |= g->n_stop > 0; /* a cached answer does not record why it ended */
    return rc < 0 ? rc : read_grammar(r, p->grammar, e);
}

int tgi_read(struct request *r, struct tgi_shape *shape, const cJSON *body, bool stream,
             bool lenient, struct fields_error *e)
{
    struct body b = {.model = NULL};
    struct parameters p = {.max_new_tokens = 100, .seed = -1, .top_p = 1, .repetition_penalty = 1};
    struct fields_error inner = {{0}, {0}, NULL};
    int rc = fields_read(tgi_fields, tgi_n_fields, body, &b, lenient, e);
    *shape = (struct tgi_shape){.stream = stream || b.stream};
    if (rc < 0)
        return rc;
    if (!b.inputs)
        return fields_fail(e, "inputs", "missing_required_parameter",
                           "'inputs' must be the text to continue");
    if (b.parameters &&
        fields_read(parameter_fields, sizeof(parameter_fields) / sizeof(parameter_fields[0]),
                    b.parameters, &p, lenient, &inner) < 0) {
        char param[sizeof(inner.param) + 12];
        snprintf(param, sizeof(param), "parameters%s%s", inner.param[0] ? "." : "", inner.param);
        return fields_fail(e, param, inner.code, "parameters: %.200s", inner.msg);
    }
    r->kind = REQUEST_GENERATE;
    r->streams = shape->stream;
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
    struct request_prompt *prompt = arena_zalloc(&r->arena, sizeof(*prompt));
    if (prompt) {
        prompt->text_bytes = strlen(b.inputs);
        prompt->text = request_copy(r, b.inputs, prompt->text_bytes);
        r->input_bytes += prompt->text_bytes;
    }
    r->generate.prompts = prompt;
    r->generate.parse_special = true;
    r->generate.n = r->generate.n_prompts = 1;
    rc = use(r, shape, &p, e);
    if (rc < 0)
        return rc;
    return request_rc(r) < 0 ? fields_fail(e, "inputs", NULL, "out of memory") : 0;
}
