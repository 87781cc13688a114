/* responses_read.c - bodies of /v1/responses to requests. */
#include <stdio.h>
#include <string.h>

#include "gateway/api/constraint_read.h"
#include "gateway/api/openai/conversations.h"
#include "gateway/api/openai/openai.h"
#include "gateway/api/openai/response_input.h"
#include "gateway/api/openai/response_store.h"
#include "gateway/api/openai/responses.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"

struct body {
    const char *model, *instructions, *previous_id, *user, *truncation;
    const cJSON *input, *metadata, *text, *reasoning, *include, *template_vars, *tools,
        *tool_choice, *conversation;
    bool stream, store, parallel_calls, background, progress, timings;
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
    FIELDS_SESSION,
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},
    {"input", FIELD_VALUE, AT(input), 0, 0,
     "a text, or a list of messages, calls and their results",
     "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"object\"}}]}"},
    {"instructions", FIELD_STR, AT(instructions), 0, 0, "a system message for this call", NULL},
    {"previous_response_id", FIELD_STR, AT(previous_id), 0, 0, "the response to continue from",
     NULL},
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
    {"text", FIELD_VALUE, AT(text), 0, 0, "format: constraint on the answer, like response_format",
     "{\"type\":\"object\"}"},
    {"reasoning", FIELD_VALUE, AT(reasoning), 0, 0,
     "effort: a variable of the model's chat template", "{\"type\":\"object\"}"},
    {"truncation", FIELD_STR, AT(truncation), 0, 0,
     "auto: leave out the oldest turns of a conversation that is too long; or disabled", NULL},
    {"chat_template_kwargs", FIELD_VALUE, AT(template_vars), 0, 0,
     "variables of the model's chat template", "{\"type\":\"object\"}"},
    {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,
     "refuse or stop a request that takes longer", NULL},
    {"tools", FIELD_VALUE, AT(tools), 0, 0, "functions that the model may call",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"type\",\"name\"],"
     "\"properties\":{\"type\":{\"enum\":[\"function\"]},\"name\":{\"type\":\"string\"},"
     "\"description\":{\"type\":\"string\"},\"parameters\":{\"type\":\"object\"},\"strict\":{"
     "\"type\":\"boolean\"}}}}"},
    {"tool_choice", FIELD_VALUE, AT(tool_choice), 0, 0, "auto, none, required, or a function",
     "{\"oneOf\":[{\"enum\":[\"none\",\"auto\",\"required\"]},{\"type\":\"object\"}]}"},
    {"parallel_tool_calls", FIELD_BOOL, AT(parallel_calls), 0, 0,
     "false: at most one call in an answer", NULL},
    {"background", FIELD_BOOL, AT(background), 0, 0,
     "answer at once with the id, and store the response when it is complete", NULL},
    {"conversation", FIELD_VALUE, AT(conversation), 0, 0,
     "a conversation of /v1/conversations, to which input and answer are added",
     "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}"},
    {"return_progress", FIELD_BOOL, AT(progress), 0, 0, "streams: report prefill progress", NULL},
    {"timings_per_token", FIELD_BOOL, AT(timings), 0, 0, "streams: timings with each piece of text",
     NULL},
    {"prompt", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
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

static int read_conversation(struct request *r, struct responses_shape *shape, const struct body *b,
                             const cJSON *body, struct fields_error *e)
{
    const char *id = conversations_named(body);
    if (b->conversation && !cJSON_IsNull(b->conversation) && !id)
        return fields_fail(e, "conversation", "invalid_type",
                           "'conversation' must be an id, or {\"id\": \"...\"}");
    if (id && b->previous_id)
        return fields_fail(e, "conversation", "invalid_value",
                           "'conversation' and 'previous_response_id' exclude each other");
    shape->conversation = copy(r, id);
    shape->conversation_items = id ? conversations_input(r, b->input) : NULL;
    return 0;
}

/* A message of an earlier call. */
static struct chat_message copy_message(struct request *r, const struct chat_message *m)
{
    struct chat_message out = {.role = m->role,
                               .name = copy(r, m->name),
                               .content = request_copy(r, m->content, m->content_bytes),
                               .content_bytes = m->content_bytes,
                               .call_id = copy(r, m->call_id)};
    struct chat_call *calls = arena_zalloc_n(&r->arena, m->n_calls, sizeof(*calls));
    r->input_bytes += m->content_bytes;
    for (uint32_t i = 0; calls && i < m->n_calls; i++) {
        const struct chat_call *c = &m->calls[i];
        calls[i] =
            (struct chat_call){.id = copy(r, c->id),
                               .name = copy(r, c->name),
                               .arguments = request_copy(r, c->arguments, c->arguments_bytes),
                               .arguments_bytes = c->arguments_bytes};
        r->input_bytes += c->arguments_bytes;
    }
    out.calls = calls;
    out.n_calls = calls ? m->n_calls : 0;
    return out;
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
    for (uint32_t i = 0; i < before; i++)
        all[n++] = copy_message(r, &previous->messages[i]);
    memcpy(all + n, chat->messages, chat->n_messages * sizeof(*all));
    n += chat->n_messages;
    tools_read_names(all, n); /* a result may belong to a call of the response before */
    chat->messages = all;
    chat->n_messages = n;
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
            shape->logprobs =
                true; /* the others belong to tools and thinking, which do not exist here */
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
static int read_text(struct request *r, struct responses_shape *shape, const cJSON *text,
                     bool lenient, struct fields_error *e)
{
    const struct constraint_fields f = {.response_format =
                                            cJSON_GetObjectItemCaseSensitive(text, "format")};
    shape->format = "{\"type\":\"text\"}";
    if (!f.response_format || cJSON_IsNull(f.response_format))
        return 0;
    shape->format = tools_read_json(r, f.response_format, NULL);
    int rc = constraint_read(r, &f, lenient, e);
    if (rc < 0)
        response_input_rename(e, "response_format", "text.format");
    return rc;
}

static int read_tools(struct request *r, struct responses_shape *shape, const struct body *b,
                      struct fields_error *e)
{
    shape->parallel_calls = b->parallel_calls;
    shape->tools = cJSON_IsArray(b->tools) ? tools_read_json(r, b->tools, NULL) : "[]";
    shape->tool_choice = b->tool_choice && !cJSON_IsNull(b->tool_choice)
                             ? tools_read_json(r, b->tool_choice, NULL)
                             : "\"auto\"";
    r->generate.chat.one_call = !b->parallel_calls;
    int rc = tools_read_flat(r, b->tools, e);
    return rc < 0 ? rc : tools_read_choice(r, b->tool_choice, e);
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
    r->streams = b->stream;
    g->progress = b->stream && b->progress;
    r->truncates = b->truncation && strcmp(b->truncation, "auto") == 0;
    if (b->truncation && !r->truncates && strcmp(b->truncation, "disabled") != 0)
        return fields_fail(e, "truncation", "invalid_value",
                           "'truncation' must be auto or disabled");
    *shape = (struct responses_shape){.stream = b->stream,
                                      .truncates = r->truncates,
                                      .store = b->store,
                                      .background = b->background,
                                      .progress = b->stream && b->progress,
                                      .timings = b->stream && b->timings,
                                      .logprobs = b->top_logprobs > 0,
                                      .instructions = copy(r, b->instructions),
                                      .previous_id = copy(r, b->previous_id),
                                      .user = copy(r, b->user),
                                      .effort = copy(r, effort),
                                      .temperature = b->temperature,
                                      .top_p = b->top_p,
                                      .max_output_tokens = b->max_output_tokens,
                                      .top_logprobs = b->top_logprobs};
    if (b->background && (b->stream || !b->store))
        return fields_fail(e, "background", "invalid_value",
                           "'background' needs 'store', and cannot be streamed: poll the response");
    int rc = read_include(shape, b->include, e);
    if (rc == 0)
        rc = read_metadata(r, shape, b->metadata, e);
    if (rc == 0)
        rc = read_text(r, shape, b->text, lenient, e);
    if (rc == 0)
        rc = read_tools(r, shape, b, e);
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
    struct body b = {.store = true, .parallel_calls = true, .temperature = 1, .top_p = 1};
    int rc = fields_read(responses_fields, responses_n_fields, body, &b, lenient, e);
    if (rc == 0)
        rc = use_body(r, shape, &b, lenient, e);
    if (rc == 0)
        rc = response_input_read(r, b.input, lenient, e);
    if (rc == 0)
        rc = read_conversation(r, shape, &b, body, e);
    if (rc == 0)
        rc = prompt_read_vars(r, b.template_vars, e);
    if (rc < 0)
        return rc;
    prompt_read_effort(r, shape->effort);
    join(r, shape, previous);
    prompt_prefill(r);
    return request_rc(r) < 0 ? fields_fail(e, "input", NULL, "out of memory") : 0;
}
