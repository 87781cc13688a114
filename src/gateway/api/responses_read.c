/* responses_read.c - bodies of /v1/responses to requests. */
#include <stdio.h>
#include <string.h>

#include "gateway/api/constraint_read.h"
#include "gateway/api/openai.h"
#include "gateway/api/response_store.h"
#include "gateway/api/responses.h"

struct body {
    const char *model, *instructions, *previous_id, *user, *truncation;
    const cJSON *input, *metadata, *text, *reasoning, *include, *template_vars;
    bool stream, store;
    int64_t max_output_tokens, top_logprobs, priority;
    double temperature, top_p, latency_budget_ms;
};

#define AT(member) offsetof(struct body, member)
#define IGNORED(name)                                                                              \
    {                                                                                              \
        name, FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL                                \
    }
#define MAX_METADATA_BYTES 16384u

const struct field responses_fields[] = {
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"input", FIELD_VALUE, AT(input), 0, 0, "a text, or a list of messages",
     "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"object\"}}]}"},
    {"instructions", FIELD_STR, AT(instructions), 0, 0, "a system message for this call", NULL},
    {"previous_response_id", FIELD_STR, AT(previous_id), 0, 0, "the response to go on from", NULL},
    {"stream", FIELD_BOOL, AT(stream), 0, 0, "typed events as tokens come", NULL},
    {"store", FIELD_BOOL, AT(store), 0, 0, "keep the response for a while; default: true", NULL},
    {"max_output_tokens", FIELD_INT, AT(max_output_tokens), 1, 1 << 24,
     "maximum number of tokens to generate", NULL},
    {"temperature", FIELD_NUM, AT(temperature), 0, 2, "0: always the most likely token", NULL},
    {"top_p", FIELD_NUM, AT(top_p), 0, 1, "nucleus sampling: probability mass to keep", NULL},
    {"top_logprobs", FIELD_INT, AT(top_logprobs), 0, 20,
     "number of most likely tokens to return with each token", NULL},
    {"include", FIELD_VALUE, AT(include), 0, 0, "message.output_text.logprobs",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"metadata", FIELD_VALUE, AT(metadata), 0, 0, "returned with the response",
     "{\"type\":\"object\"}"},
    {"user", FIELD_STR, AT(user), 0, 0, "returned with the response", NULL},
    {"text", FIELD_VALUE, AT(text), 0, 0,
     "format: what the answer must look like, as response_format", "{\"type\":\"object\"}"},
    {"reasoning", FIELD_VALUE, AT(reasoning), 0, 0,
     "effort: a variable of the model's chat template", "{\"type\":\"object\"}"},
    {"truncation", FIELD_STR, AT(truncation), 0, 0, "auto or disabled", NULL},
    {"chat_template_kwargs", FIELD_VALUE, AT(template_vars), 0, 0,
     "variables of the model's chat template", "{\"type\":\"object\"}"},
    {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,
     "refuse or stop a request that takes longer", NULL},
    {"tools", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"tool_choice", FIELD_UNBUILT, 0, 0, 0, NULL, "auto"},
    {"background", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"conversation", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"prompt", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    IGNORED("parallel_tool_calls"),
    IGNORED("max_tool_calls"),
    IGNORED("service_tier"),
    IGNORED("safety_identifier"),
    IGNORED("prompt_cache_key"),
    IGNORED("prompt_cache_retention"),
    IGNORED("stream_options"),
};
const size_t responses_n_fields = sizeof(responses_fields) / sizeof(responses_fields[0]);

const char *responses_previous(const cJSON *body)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "previous_response_id"));
}

static const char *copy(struct request *r, const char *text)
{
    return text ? request_copy(r, text, strlen(text)) : NULL;
}

/* The input's messages into the request; afterwards the others are put in front of them. */
static int read_input(struct request *r, const cJSON *input, bool lenient, struct fields_error *e)
{
    struct chat *chat = &r->generate.chat;
    const cJSON *one;
    int i = 0;
    if (cJSON_IsString(input)) {
        struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
        if (!m)
            return 0; /* request_rc tells */
        m->role = "user";
        m->content =
            request_copy_utf8(r, input->valuestring, strlen(input->valuestring), &m->content_bytes);
        r->input_bytes += m->content_bytes;
        chat->messages = m;
        chat->n_messages = 1;
        return 0;
    }
    if (!cJSON_IsArray(input) || !input->child)
        return fields_fail(e, "input", input ? "invalid_type" : "missing_required_parameter",
                           "'input' must be a text, or a list with at least one message");
    cJSON_ArrayForEach(one, input)
    {
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "type"));
        char param[32];
        snprintf(param, sizeof(param), "input[%d]", i++);
        if (type && strcmp(type, "message") != 0)
            return fields_fail(e, param, "unsupported_parameter",
                               "'%s' is of the type '%.32s': only messages are supported", param,
                               type);
    }
    int rc = openai_read_messages(r, input, lenient, e);
    static const char theirs[] = "messages";
    if (rc < 0 && strncmp(e->param, theirs, sizeof(theirs) - 1) == 0) { /* as it is called here */
        char param[sizeof(e->param)];
        snprintf(param, sizeof(param), "input%.50s", e->param + sizeof(theirs) - 1);
        memcpy(e->param, param, sizeof(param));
    }
    return rc;
}

/* The instructions, then the conversation so far, then the input. */
static void join(struct request *r, struct responses_shape *shape,
                 const struct response_entry *previous)
{
    struct chat *chat = &r->generate.chat;
    uint32_t before = previous ? previous->n_messages : 0, n = 0;
    struct chat_message *all =
        arena_zalloc_n(&r->arena, (size_t)chat->n_messages + before + 1, sizeof(*all));
    shape->n_input = chat->n_messages;
    if (!all)
        return; /* request_rc tells */
    if (shape->instructions && shape->instructions[0]) {
        all[n].role = "system";
        all[n].content = request_copy_utf8(r, shape->instructions, strlen(shape->instructions),
                                           &all[n].content_bytes);
        r->input_bytes += all[n++].content_bytes;
    }
    shape->n_instructions = n;
    for (uint32_t i = 0; i < before; i++, n++) {
        const struct response_message *m = &previous->messages[i];
        all[n] = (struct chat_message){.role = m->role,
                                       .content = request_copy(r, m->text, m->text_bytes),
                                       .content_bytes = m->text_bytes};
        r->input_bytes += m->text_bytes;
    }
    memcpy(all + n, chat->messages, chat->n_messages * sizeof(*all));
    chat->messages = all;
    chat->n_messages += n;
}

static int read_include(struct responses_shape *shape, const cJSON *include, struct fields_error *e)
{
    const cJSON *one;
    if (include && !cJSON_IsArray(include))
        return fields_fail(e, "include", "invalid_type", "'include' must be a list");
    cJSON_ArrayForEach(one, include)
    {
        const char *what = cJSON_GetStringValue(one);
        if (what && strcmp(what, "message.output_text.logprobs") == 0)
            shape->logprobs = true; /* the others belong to tools and thinking: there are none */
    }
    return 0;
}

static int read_metadata(struct request *r, struct responses_shape *shape, const cJSON *metadata,
                         struct fields_error *e)
{
    shape->metadata = "{}";
    if (!metadata)
        return 0;
    if (!cJSON_IsObject(metadata))
        return fields_fail(e, "metadata", "invalid_type", "'metadata' must be an object");
    char *text = cJSON_PrintUnformatted(metadata);
    size_t n = text ? strlen(text) : 0;
    if (text && n <= MAX_METADATA_BYTES)
        shape->metadata = request_copy_utf8(r, text, n, NULL);
    cJSON_free(text);
    if (n > MAX_METADATA_BYTES)
        return fields_fail(e, "metadata", "invalid_value", "'metadata' has more than %u bytes",
                           MAX_METADATA_BYTES);
    return text ? 0 : fields_fail(e, "metadata", NULL, "out of memory");
}

/* text.format is what response_format is elsewhere. */
static int read_text(struct request *r, const cJSON *text, bool lenient, struct fields_error *e)
{
    const struct constraint_fields f = {.response_format =
                                            cJSON_GetObjectItemCaseSensitive(text, "format")};
    return cJSON_IsNull(f.response_format) ? 0 : constraint_read(r, &f, lenient, e);
}

static int use_body(struct request *r, struct responses_shape *shape, const struct body *b,
                    bool lenient, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    const char *effort =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(b->reasoning, "effort"));
    r->kind = REQUEST_GENERATE;
    r->model = copy(r, b->model);
    r->priority = (int32_t)b->priority;
    request_set_budget(r, b->latency_budget_ms);
    *shape = (struct responses_shape){.stream = b->stream,
                                      .store = b->store,
                                      .logprobs = b->top_logprobs > 0,
                                      .instructions = copy(r, b->instructions),
                                      .previous_id = copy(r, b->previous_id),
                                      .user = copy(r, b->user),
                                      .effort = copy(r, effort),
                                      .temperature = b->temperature,
                                      .top_p = b->top_p,
                                      .max_output_tokens = b->max_output_tokens,
                                      .top_logprobs = b->top_logprobs};
    int rc = read_include(shape, b->include, e);
    if (rc == 0)
        rc = read_metadata(r, shape, b->metadata, e);
    if (rc == 0)
        rc = read_text(r, b->text, lenient, e);
    g->n = g->n_prompts = 1;
    g->max_tokens = (uint32_t)b->max_output_tokens;
    g->sampling = (struct shoal_sampling){.temperature = (float)b->temperature,
                                          .top_p = b->top_p > 0 ? (float)b->top_p : 1e-6f,
                                          .logprobs = shape->logprobs,
                                          .n_logprobs = (uint32_t)b->top_logprobs};
    return rc;
}

int responses_read(struct request *r, struct responses_shape *shape, const cJSON *body,
                   const struct response_entry *previous, bool lenient, struct fields_error *e)
{
    struct body b = {.store = true, .temperature = 1, .top_p = 1};
    int rc = fields_read(responses_fields, responses_n_fields, body, &b, lenient, e);
    if (rc == 0)
        rc = use_body(r, shape, &b, lenient, e);
    if (rc == 0)
        rc = read_input(r, b.input, lenient, e);
    if (rc == 0)
        rc = openai_read_template_vars(r, b.template_vars, e);
    if (rc < 0)
        return rc;
    openai_read_effort(r, shape->effort);
    join(r, shape, previous);
    openai_prefill(r);
    return request_rc(r) < 0 ? fields_fail(e, "input", NULL, "out of memory") : 0;
}
