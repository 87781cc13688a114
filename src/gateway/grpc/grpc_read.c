/* grpc_read.c - see grpc_read.h. */
#include "gateway/grpc/grpc_read.h"

#include <math.h>
#include <string.h>

#include <shoal/v1/shoal.pb-c.h>

#include "base/utf8.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/openai/speech.h"
#include "gateway/api/own/specialists.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"
#include "wire/json_out.h"
#include "wire/pb.h"
#include "wire/value_json.h"

/* ---- unpacking ---- */

/* Decodes the message into the request's arena; NULL: malformed, or out of memory. */
static void *unpack(struct request *r, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                    size_t n)
{
    return pb_unpack(d, &r->arena, p, n);
}

/* A text of the message, which need not be UTF-8 though it should. */
static const char *text_of(struct request *r, const char *s, size_t *n)
{
    *n = strlen(s);
    return utf8_valid_prefix(s, *n) == *n ? s : request_copy_utf8(r, s, *n, n);
}

static const char *name_of(struct request *r, const char *s)
{
    size_t n;
    return s[0] ? text_of(r, s, &n) : NULL;
}

/* ---- generate ---- */

static int check(const char *name, double v, struct fields_error *e)
{
    return fields_check(openai_completion_fields, openai_n_completion_fields, name, v, e);
}

static int read_sampling(struct request *r, const Shoal__V1__GenerateRequest *m,
                         struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    double temperature =
        m->set_temperature_case == SHOAL__V1__GENERATE_REQUEST__SET_TEMPERATURE_TEMPERATURE
            ? m->temperature
            : 1;
    double top_p = m->set_top_p_case == SHOAL__V1__GENERATE_REQUEST__SET_TOP_P_TOP_P ? m->top_p : 1;
    g->has_seed = m->set_seed_case == SHOAL__V1__GENERATE_REQUEST__SET_SEED_SEED;
    int rc = m->max_tokens > 0 ? check("max_tokens", m->max_tokens, e) : 0;
    if (rc == 0)
        rc = check("temperature", temperature, e);
    if (rc == 0)
        rc = check("top_p", top_p, e);
    if (rc == 0)
        rc = check("top_k", m->top_k, e);
    if (rc == 0)
        rc = check("priority", m->priority, e);
    g->max_tokens = m->max_tokens;
    g->ignore_end = m->ignore_eos;
    r->priority = m->priority;
    g->sampling = (struct shoal_sampling){.temperature = (float)temperature,
                                          .top_k = m->top_k,
                                          .top_p = top_p > 0 ? (float)top_p : 1e-6f,
                                          .seed = g->has_seed ? (uint64_t)m->seed : 0};
    return rc;
}

static int read_stops(struct request *r, const Shoal__V1__GenerateRequest *m,
                      struct fields_error *e)
{
    const char **list = arena_zalloc_n(&r->arena, m->n_stop, sizeof(*list));
    size_t n;
    if (m->n_stop > REQUEST_MAX_STOPS)
        return fields_fail(e, "stop", "invalid_value", "'stop' holds more than %u texts",
                           REQUEST_MAX_STOPS);
    for (size_t i = 0; list && i < m->n_stop; i++) {
        list[i] = text_of(r, m->stop[i], &n);
        if (n == 0)
            return fields_fail(e, "stop", "invalid_value", "'stop' has an empty text");
    }
    r->generate.stop = list;
    r->generate.n_stop = (uint32_t)m->n_stop;
    return 0;
}

static int read_bias(struct request *r, const Shoal__V1__GenerateRequest *m, struct fields_error *e)
{
    struct shoal_bias *list = arena_zalloc_n(&r->arena, m->n_logit_bias, sizeof(*list));
    if (m->n_logit_bias > REQUEST_MAX_BIAS)
        return fields_fail(e, "logit_bias", "invalid_value", "'logit_bias' has more than %u tokens",
                           REQUEST_MAX_BIAS);
    for (size_t i = 0; list && i < m->n_logit_bias; i++) {
        const Shoal__V1__GenerateRequest__LogitBiasEntry *b = m->logit_bias[i];
        if (b->key < 0 || !(b->value >= -100 && b->value <= 100))
            return fields_fail(e, "logit_bias", "invalid_value",
                               "'logit_bias' has \"%d\": expected a token id and a number from "
                               "-100 to 100",
                               b->key);
        list[i] = prompt_bias(b->key, b->value);
    }
    r->generate.sampling.bias = list;
    r->generate.sampling.n_bias = (uint32_t)m->n_logit_bias;
    return 0;
}

static int read_calls(struct request *r, struct chat_message *out, const Shoal__V1__Message *m,
                      uint32_t i, struct fields_error *e)
{
    struct chat_call *list = arena_zalloc_n(&r->arena, m->n_tool_calls, sizeof(*list));
    size_t n;
    if (m->n_tool_calls > REQUEST_MAX_CALLS)
        return fields_fail(e, "messages", "invalid_value", "messages[%u] has more than %u calls", i,
                           REQUEST_MAX_CALLS);
    for (size_t k = 0; list && k < m->n_tool_calls; k++) {
        const Shoal__V1__ToolCall *from = m->tool_calls[k];
        const char *args = from->arguments[0] ? from->arguments : "{}";
        list[k].id = text_of(r, from->id, &n);
        list[k].name = text_of(r, from->name, &n);
        list[k].arguments = text_of(r, args, &list[k].arguments_bytes);
        if (!tools_read_is_object(args))
            return fields_fail(e, "messages", "invalid_value",
                               "messages[%u]: the arguments of a call are not a JSON object", i);
        r->input_bytes += list[k].arguments_bytes;
    }
    out->calls = list;
    out->n_calls = (uint32_t)m->n_tool_calls;
    if (m->tool_call_id[0])
        out->call_id = text_of(r, m->tool_call_id, &n);
    return 0;
}

static int read_tools(struct request *r, const Shoal__V1__GenerateRequest *m,
                      struct fields_error *e)
{
    struct chat *c = &r->generate.chat;
    struct chat_tool *list = arena_zalloc_n(&r->arena, m->n_tools, sizeof(*list));
    const char *choice = m->tool_choice;
    size_t n;
    int rc = 0;
    if (m->n_tools > REQUEST_MAX_TOOLS)
        return fields_fail(e, "tools", "invalid_value", "'tools' holds %zu tools: at most %u",
                           m->n_tools, REQUEST_MAX_TOOLS);
    for (size_t i = 0; list && i < m->n_tools; i++) {
        const Shoal__V1__Tool *from = m->tools[i];
        list[i].name = text_of(r, from->name, &n);
        list[i].description = text_of(r, from->description, &n);
        if (from->parameters[0] && value_json_read(&list[i].parameters, &r->arena, from->parameters,
                                                   strlen(from->parameters)) == SHOAL_EFORMAT) {
            r->arena.rc = 0; /* anything but an object is refused below */
            list[i].parameters = value_bool(false);
        }
        list[i].strict = from->strict;
        r->input_bytes += n + strlen(from->parameters);
        rc = tools_read_check(list, (uint32_t)i, "tools", e);
        if (rc < 0)
            return rc;
    }
    c->tools = list;
    c->n_tools = list ? (uint32_t)m->n_tools : 0;
    c->one_call = m->single_tool_call;
    if (strncmp(choice, "function:", 9) == 0)
        return tools_read_force(r, choice + 9, e);
    return choice[0] ? tools_read_word(r, choice, e) : 0;
}

/* One of the texts: as a JSON list. */
static int read_choices(struct request *r, const Shoal__V1__Choices *m, struct fields_error *e)
{
    struct request_constraint *c = &r->generate.constraint;
    struct buf list;
    size_t n;
    if (m->n_texts == 0)
        return fields_fail(e, "choice", "invalid_value", "'choice' has no texts");
    buf_init(&list, REQUEST_MAX_BYTES);
    struct json_out j = json_out_make(&list);
    json_out_array(&j);
    for (size_t i = 0; i < m->n_texts; i++) {
        const char *text = text_of(r, m->texts[i], &n);
        json_out_strn(&j, text, n);
    }
    json_out_array_end(&j);
    c->kind = SHOAL_CONSTRAINT_CHOICE;
    c->text = request_copy(r, buf_str(&list), list.len);
    c->text_bytes = list.len;
    int rc = list.rc < 0 ? fields_fail(e, "choice", NULL, "out of memory") : 0;
    buf_fini(&list);
    return rc;
}

static int read_constraint(struct request *r, const Shoal__V1__GenerateRequest *m,
                           struct fields_error *e)
{
    struct request_constraint *c = &r->generate.constraint;
    switch (m->constraint_case) {
    case SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_JSON_OBJECT:
        c->kind = m->json_object ? SHOAL_CONSTRAINT_JSON : SHOAL_CONSTRAINT_NONE;
        return 0;
    case SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_JSON_SCHEMA:
        c->kind = SHOAL_CONSTRAINT_SCHEMA;
        c->text = text_of(r, m->json_schema, &c->text_bytes);
        return 0;
    case SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_GRAMMAR:
        c->kind = SHOAL_CONSTRAINT_GBNF;
        c->text = text_of(r, m->grammar, &c->text_bytes);
        return 0;
    case SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_REGEX:
        c->kind = SHOAL_CONSTRAINT_REGEX;
        c->text = text_of(r, m->regex, &c->text_bytes);
        return 0;
    case SHOAL__V1__GENERATE_REQUEST__CONSTRAINT_CHOICE:
        return read_choices(r, m->choice, e);
    default:
        return 0;
    }
}

static int read_messages(struct request *r, const Shoal__V1__GenerateRequest *m,
                         struct fields_error *e)
{
    struct chat_message *list = arena_zalloc_n(&r->arena, m->n_messages, sizeof(*list));
    if (m->prompt[0])
        return fields_fail(e, "prompt", "unknown_parameter", "unknown field 'prompt'");
    for (size_t i = 0; list && i < m->n_messages; i++) {
        list[i].role = prompt_role(m->messages[i]->role, (uint32_t)i, e);
        if (!list[i].role)
            return SHOAL_EINVAL;
        list[i].content = text_of(r, m->messages[i]->content, &list[i].content_bytes);
        r->input_bytes += list[i].content_bytes;
        int rc = read_calls(r, &list[i], m->messages[i], (uint32_t)i, e);
        if (rc < 0)
            return rc;
    }
    if (list)
        tools_read_names(list, (uint32_t)m->n_messages);
    r->generate.chat.messages = list;
    r->generate.chat.n_messages = list ? (uint32_t)m->n_messages : 0;
    return read_tools(r, m, e);
}

static void read_prompt(struct request *r, const Shoal__V1__GenerateRequest *m)
{
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    if (!p)
        return; /* request_rc tells */
    p->text = text_of(r, m->prompt, &p->text_bytes);
    r->input_bytes += p->text_bytes;
    r->generate.prompts = p;
    r->generate.parse_special = true;
}

static int read_generate(struct request *r, const Shoal__V1__GenerateRequest *m,
                         struct fields_error *e)
{
    r->kind = REQUEST_GENERATE;
    r->model = name_of(r, m->model);
    r->generate.n = r->generate.n_prompts = 1;
    int rc = read_sampling(r, m, e);
    if (rc == 0)
        rc = read_stops(r, m, e);
    if (rc == 0)
        rc = read_bias(r, m, e);
    if (rc == 0)
        rc = read_constraint(r, m, e);
    if (rc == 0 && m->n_messages > 0)
        rc = read_messages(r, m, e);
    else if (rc == 0)
        read_prompt(r, m);
    return rc;
}

/* ---- specialists ---- */

static int check_count(size_t n, struct fields_error *e)
{
    if (n == 0)
        return fields_fail(e, "input", "missing_required_parameter", "'input' is missing");
    if (n > REQUEST_MAX_INPUTS)
        return fields_fail(e, "input", "invalid_value", "'input' must hold 1 to %u items",
                           REQUEST_MAX_INPUTS);
    return 0;
}

static int read_texts(struct request *r, char *const *texts, size_t n, struct fields_error *e)
{
    int rc = check_count(n, e);
    struct request_input *list = rc == 0 ? arena_zalloc_n(&r->arena, n, sizeof(*list)) : NULL;
    for (size_t i = 0; list && i < n; i++) {
        list[i].text = text_of(r, texts[i], &list[i].text_bytes);
        if (list[i].text_bytes == 0)
            return fields_fail(e, "input", "invalid_value", "'input' has an empty text");
        r->input_bytes += list[i].text_bytes;
    }
    r->infer.inputs = list;
    r->infer.n_inputs = list ? (uint32_t)n : 0;
    return rc;
}

static int read_classify(struct request *r, uint32_t *top, const Shoal__V1__ClassifyRequest *m,
                         struct fields_error *e)
{
    r->model = name_of(r, m->model);
    r->infer.labels = name_of(r, m->labels);
    r->infer.whole = m->whole;
    *top = m->top;
    int rc = m->top > 0 ? fields_check(specialists_classify_fields, specialists_n_classify_fields,
                                       "top", m->top, e)
                        : 0;
    return rc < 0 ? rc : read_texts(r, m->input, m->n_input, e);
}

static int read_tag(struct request *r, const Shoal__V1__TagRequest *m, struct fields_error *e)
{
    r->model = name_of(r, m->model);
    r->infer.labels = name_of(r, m->labels);
    r->infer.whole = m->whole;
    return read_texts(r, m->input, m->n_input, e);
}

static int read_embed(struct request *r, const Shoal__V1__EmbedRequest *m, struct fields_error *e)
{
    r->model = name_of(r, m->model);
    r->infer.dimensions = m->dimensions;
    r->infer.whole = m->whole;
    int rc = m->dimensions > 0 ? fields_check(specialists_embed_fields, specialists_n_embed_fields,
                                              "dimensions", m->dimensions, e)
                               : 0;
    return rc < 0 ? rc : read_texts(r, m->input, m->n_input, e);
}

/* Joins the rows of a stream into one input, so that they keep their order. */
static int join_rows(struct request *r, struct request_input *list, struct fields_error *e)
{
    uint32_t n = r->infer.n_inputs, columns = list[0].n_values;
    double *all = arena_zalloc_n(&r->arena, (size_t)n * columns, sizeof(*all));
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].n_values != columns)
            return fields_fail(e, "input", "invalid_value", "the rows of 'input' differ in length");
        if (all)
            memcpy(all + (size_t)i * columns, list[i].values, columns * sizeof(*all));
    }
    list[0] = (struct request_input){.values = all, .n_values = n * columns};
    r->infer.n_inputs = 1;
    r->infer.n_columns = columns;
    return 0;
}

static int read_score(struct request *r, const Shoal__V1__ScoreRequest *m, struct fields_error *e)
{
    int rc = check_count(m->n_input, e);
    struct request_input *list =
        rc == 0 ? arena_zalloc_n(&r->arena, m->n_input, sizeof(*list)) : NULL;
    r->model = name_of(r, m->model);
    r->infer.raw = m->raw;
    for (size_t i = 0; list && i < m->n_input; i++) {
        const Shoal__V1__Row *row = m->input[i];
        if (row->n_values == 0 || row->n_values > SPECIALIST_MAX_VALUES)
            return fields_fail(e, "input", "invalid_type",
                               "'input' must be a row of numbers, or a list of rows");
        for (size_t k = 0; k < row->n_values; k++)
            if (!isfinite(row->values[k]))
                row->values[k] = (double)NAN; /* missing */
        list[i].values = row->values;
        list[i].n_values = (uint32_t)row->n_values;
        r->input_bytes += row->n_values * sizeof(double);
    }
    r->infer.inputs = list;
    r->infer.n_inputs = list ? (uint32_t)m->n_input : 0;
    if (rc == 0 && list && m->stream && *m->stream) {
        r->infer.stream = name_of(r, m->stream);
        rc = join_rows(r, list, e);
    }
    return rc;
}

static int read_speak(struct request *r, const Shoal__V1__SpeakRequest *m, struct fields_error *e)
{
    size_t n;
    int rc = 0;
    r->model = name_of(r, m->model);
    r->infer = (struct request_infer){
        .speed = m->speed, .volume = m->volume, .labels = name_of(r, m->voice)};
    if (m->speed != 0)
        rc = fields_check(speech_fields, speech_n_fields, "speed", (double)m->speed, e);
    if (rc == 0 && m->volume != 0)
        rc = fields_check(speech_fields, speech_n_fields, "volume", (double)m->volume, e);
    return rc < 0 ? rc : speech_input(r, text_of(r, m->input, &n), e);
}

/* ---- every method ---- */

const struct grpc_method *grpc_method(const char *name)
{
    static const struct grpc_method methods[] = {
        {"Generate", SHOAL_KIND_GENERATE, false}, {"GenerateStream", SHOAL_KIND_GENERATE, true},
        {"Classify", SHOAL_KIND_CLASSIFY, false}, {"Tag", SHOAL_KIND_TAG, false},
        {"Embed", SHOAL_KIND_EMBED, false},       {"Score", SHOAL_KIND_SCORE, false},
        {"Speak", SHOAL_KIND_SPEAK, true}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static const ProtobufCMessageDescriptor *message_of(const struct grpc_method *m)
{
    switch (m->kind) {
    case SHOAL_KIND_GENERATE:
        return &shoal__v1__generate_request__descriptor;
    case SHOAL_KIND_CLASSIFY:
        return &shoal__v1__classify_request__descriptor;
    case SHOAL_KIND_TAG:
        return &shoal__v1__tag_request__descriptor;
    case SHOAL_KIND_EMBED:
        return &shoal__v1__embed_request__descriptor;
    case SHOAL_KIND_SPEAK:
        return &shoal__v1__speak_request__descriptor;
    default:
        return &shoal__v1__score_request__descriptor;
    }
}

int grpc_read(struct request *r, uint32_t *top, const struct grpc_method *m, const uint8_t *p,
              size_t n, size_t max_fields, struct fields_error *e)
{
    char path[sizeof(e->param)];
    int rc = pb_check(message_of(m), p, n, max_fields, path, sizeof(path));
    *top = 0;
    if (rc == SHOAL_EFORMAT)
        return fields_fail(e, path, "invalid_value",
                           "'%s' contains NUL (\\0), which is not allowed in a request", path);
    if (rc < 0)
        return rc;
    void *message = unpack(r, message_of(m), p, n);
    if (!message)
        return request_rc(r) < 0 ? SHOAL_ENOMEM : SHOAL_EFORMAT;
    r->kind = REQUEST_INFER;
    r->infer.kind = m->kind;
    switch (m->kind) {
    case SHOAL_KIND_GENERATE:
        memset(&r->infer, 0, sizeof(r->infer));
        rc = read_generate(r, message, e);
        break;
    case SHOAL_KIND_CLASSIFY:
        rc = read_classify(r, top, message, e);
        break;
    case SHOAL_KIND_TAG:
        rc = read_tag(r, message, e);
        break;
    case SHOAL_KIND_EMBED:
        rc = read_embed(r, message, e);
        break;
    case SHOAL_KIND_SPEAK:
        rc = read_speak(r, message, e);
        break;
    default:
        rc = read_score(r, message, e);
        break;
    }
    return rc == 0 && request_rc(r) < 0 ? SHOAL_ENOMEM : rc;
}
