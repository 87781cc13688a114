/* anthropic_read.c - bodies of /v1/messages to requests. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gateway/api/anthropic/anthropic.h"
#include "gateway/api/constraint_read.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"

#define MAX_BLOCKS 65536u

struct body {
    const char *model;
    const cJSON *messages, *system, *stop, *tools, *tool_choice, *thinking, *output;
    bool stream;
    int64_t max_tokens, top_k;
    double temperature, top_p;
};

#define AT(member) offsetof(struct body, member)
#define COMMON                                                                                     \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /v1/models", NULL},                  \
        {"messages",                                                                               \
         FIELD_VALUE,                                                                              \
         AT(messages),                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         "the conversation",                                                                       \
         "{\"type\":\"array\",\"minItems\":1}"},                                                   \
        {"system", FIELD_VALUE, AT(system), 0, 0, "a text, or blocks of text", "{}"},              \
        {"tools",                                                                                  \
         FIELD_VALUE,                                                                              \
         AT(tools),                                                                                \
         0,                                                                                        \
         0,                                                                                        \
         "functions that the model may call",                                                      \
         "{\"type\":\"array\"}"},                                                                  \
        {"tool_choice",                                                                            \
         FIELD_VALUE,                                                                              \
         AT(tool_choice),                                                                          \
         0,                                                                                        \
         0,                                                                                        \
         "{\"type\": \"auto\", \"any\", \"tool\" or \"none\"}",                                    \
         "{\"type\":\"object\"}"},                                                                 \
        {"thinking",                                                                               \
         FIELD_VALUE,                                                                              \
         AT(thinking),                                                                             \
         0,                                                                                        \
         0,                                                                                        \
         "{\"type\": \"enabled\", \"adaptive\" or \"disabled\"}",                                  \
         "{\"type\":\"object\"}"},                                                                 \
        {"cache_control", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                  \
    {                                                                                              \
        "betas", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL                             \
    }

const struct field anthropic_fields[] = {
    FIELDS_SESSION,
    COMMON,
    {"max_tokens", FIELD_INT, AT(max_tokens), 1, 1 << 24, "maximum number of tokens to generate",
     NULL},
    {"stream", FIELD_BOOL, AT(stream), 0, 0, "server-sent events as tokens come", NULL},
    {"stop_sequences", FIELD_VALUE, AT(stop), 0, 0, "texts that end the answer",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"temperature", FIELD_NUM, AT(temperature), 0, 2, "0: always the most likely token", NULL},
    {"top_p", FIELD_NUM, AT(top_p), 0, 1, "nucleus sampling: probability mass to keep", NULL},
    {"top_k", FIELD_INT, AT(top_k), 0, INT_MAX, "number of most likely tokens to keep; 0: all",
     NULL},
    {"output_config", FIELD_VALUE, AT(output), 0, 0,
     "format: {\"type\": \"json_schema\", \"schema\": ...}; effort: a variable of the model's chat "
     "template",
     "{\"type\":\"object\"}"},
    {"metadata", FIELD_IGNORED, 0, 0, 0, "for the rules of routes", NULL},
    {"service_tier", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},
};
const size_t anthropic_n_fields = sizeof(anthropic_fields) / sizeof(anthropic_fields[0]);

const struct field anthropic_count_fields[] = {COMMON};
const size_t anthropic_n_count_fields =
    sizeof(anthropic_count_fields) / sizeof(anthropic_count_fields[0]);

/* ---- texts ---- */

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* A text, or the joined texts of blocks; blocks of other types are skipped: the caller handles
 * them. */
static const char *join(struct request *r, const cJSON *v, size_t *n_out)
{
    size_t n = 0;
    const cJSON *block;
    if (cJSON_IsString(v))
        return request_copy_utf8(r, v->valuestring, strlen(v->valuestring), n_out);
    cJSON_ArrayForEach(block, v)
    {
        const char *type = text_of(block, "type"), *text = text_of(block, "text");
        n += type && strcmp(type, "text") == 0 && text ? strlen(text) : 0;
    }
    char *all = arena_bytes(&r->arena, n + 1);
    *n_out = 0;
    if (!all)
        return ""; /* request_rc tells */
    n = 0;
    cJSON_ArrayForEach(block, v)
    {
        const char *type = text_of(block, "type"), *text = text_of(block, "text");
        if (!type || strcmp(type, "text") != 0 || !text)
            continue;
        memcpy(all + n, text, strlen(text));
        n += strlen(text);
    }
    all[n] = '\0';
    return request_copy_utf8(r, all, n, n_out);
}

static int bad_block(const char *param, const char *type, struct fields_error *e)
{
    return fields_fail(e, param, "invalid_value",
                       "%s: a block of type '%.40s' is not supported here", param,
                       type ? type : "?");
}

/* All blocks must be texts. */
static int check_texts(const cJSON *v, const char *param, struct fields_error *e)
{
    const cJSON *block;
    if (cJSON_IsString(v))
        return 0;
    if (!cJSON_IsArray(v))
        return fields_fail(e, param, "invalid_type", "%s: a text or a list of blocks is expected",
                           param);
    cJSON_ArrayForEach(block, v)
    {
        const char *type = text_of(block, "type");
        if (!type || strcmp(type, "text") != 0 || !text_of(block, "text"))
            return bad_block(param, type, e);
    }
    return 0;
}

/* ---- messages ---- */

struct message_reader {
    struct request *r;
    struct chat_message *list; /* room for every block and the system message */
    uint32_t n;
    struct chat_call *calls; /* room for every block */
    uint32_t n_calls;
    struct fields_error *e;
};

static void add_text(struct message_reader *g, const char *role, const cJSON *content)
{
    struct chat_message *m = &g->list[g->n++];
    m->role = role;
    m->content = join(g->r, content, &m->content_bytes);
    g->r->input_bytes += m->content_bytes;
}

/* A result becomes a separate message. */
static int add_result(struct message_reader *g, const cJSON *block, const char *param)
{
    const char *id = text_of(block, "tool_use_id");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(block, "content");
    if (!id)
        return fields_fail(g->e, param, "invalid_value", "%s: 'tool_use_id' is missing", param);
    int rc = content && !cJSON_IsNull(content) ? check_texts(content, param, g->e) : 0;
    if (rc < 0)
        return rc;
    add_text(g, "tool", content);
    g->list[g->n - 1].call_id = request_copy_utf8(g->r, id, strlen(id), NULL);
    return 0;
}

static int add_call(struct message_reader *g, const cJSON *block, const char *param)
{
    const char *id = text_of(block, "id"), *name = text_of(block, "name");
    const cJSON *input = cJSON_GetObjectItemCaseSensitive(block, "input");
    struct chat_call *c = &g->calls[g->n_calls];
    if (!id || !name || !cJSON_IsObject(input))
        return fields_fail(g->e, param, "invalid_value",
                           "%s: a tool_use needs 'id', 'name' and 'input', an object", param);
    c->id = request_copy_utf8(g->r, id, strlen(id), NULL);
    c->name = request_copy_utf8(g->r, name, strlen(name), NULL);
    c->arguments = tools_read_json(g->r, input, &c->arguments_bytes);
    g->r->input_bytes += c->arguments_bytes;
    g->n_calls += request_rc(g->r) == 0;
    return 0;
}

/* The blocks of one message: results first, since templates expect them right after the calls. */
static int read_blocks(struct message_reader *g, const char *role, const cJSON *content, int i)
{
    bool user = strcmp(role, "user") == 0, text = false;
    uint32_t first = g->n_calls;
    const cJSON *block;
    int k = 0, rc = 0;
    cJSON_ArrayForEach(block, content)
    {
        char param[64];
        const char *type = text_of(block, "type");
        snprintf(param, sizeof(param), "messages.%d.content.%d", i, k++);
        if (type && strcmp(type, "text") == 0 && text_of(block, "text"))
            text = true;
        else if (type && user && strcmp(type, "tool_result") == 0)
            rc = add_result(g, block, param);
        else if (type && !user && strcmp(type, "tool_use") == 0)
            rc = add_call(g, block, param);
        else if (!type || user ||
                 (strcmp(type, "thinking") != 0 && strcmp(type, "redacted_thinking") != 0))
            rc = bad_block(param, type, g->e);
        if (rc < 0)
            return rc;
    }
    if (text || g->n_calls > first) {
        add_text(g, role, content);
        g->list[g->n - 1].calls = g->calls + first;
        g->list[g->n - 1].n_calls = g->n_calls - first;
    }
    return 0;
}

static int read_message(struct message_reader *g, const cJSON *v, int i)
{
    char param[48];
    const char *role = text_of(v, "role");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(v, "content");
    bool user = role && strcmp(role, "user") == 0;
    snprintf(param, sizeof(param), "messages.%d", i);
    if (!user && (!role || strcmp(role, "assistant") != 0))
        return fields_fail(g->e, param, "invalid_value",
                           "%s.role: 'user' or 'assistant' is expected", param);
    role = user ? "user" : "assistant";
    if (cJSON_IsString(content)) {
        add_text(g, role, content);
        return 0;
    }
    if (!cJSON_IsArray(content))
        return fields_fail(g->e, param, "invalid_type",
                           "%s.content: a text or a list of blocks is expected", param);
    return read_blocks(g, role, content, i);
}

static int read_messages(struct request *r, const struct body *b, struct fields_error *e)
{
    const cJSON *v;
    size_t n = 1, n_messages = (size_t)cJSON_GetArraySize(b->messages);
    if (!cJSON_IsArray(b->messages) || n_messages == 0)
        return fields_fail(e, "messages",
                           b->messages ? "invalid_type" : "missing_required_parameter",
                           "messages: a list with at least one message is expected");
    cJSON_ArrayForEach(v, b->messages)
    {
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(v, "content");
        n += 1 + (cJSON_IsArray(content) ? (size_t)cJSON_GetArraySize(content) : 0);
    }
    if (n > MAX_BLOCKS)
        return fields_fail(e, "messages", "invalid_value", "messages: more than %u blocks",
                           MAX_BLOCKS);
    struct message_reader g = {.r = r,
                               .list = arena_zalloc_n(&r->arena, n, sizeof(*g.list)),
                               .calls = arena_zalloc_n(&r->arena, n, sizeof(*g.calls)),
                               .e = e};
    if (!g.list || !g.calls)
        return 0; /* request_rc tells */
    if (b->system && !cJSON_IsNull(b->system)) {
        int rc = check_texts(b->system, "system", e);
        if (rc < 0)
            return rc;
        add_text(&g, "system", b->system);
        g.n -= g.list[0].content_bytes == 0;
    }
    int i = 0;
    cJSON_ArrayForEach(v, b->messages)
    {
        int rc = read_message(&g, v, i++);
        if (rc < 0)
            return rc;
    }
    if (g.n == 0)
        return fields_fail(e, "messages", "invalid_value", "messages: there is nothing to answer");
    tools_read_names(g.list, g.n);
    r->generate.chat.messages = g.list;
    r->generate.chat.n_messages = g.n;
    return 0;
}

/* ---- tools ---- */

static int read_tools(struct request *r, const cJSON *tools, struct fields_error *e)
{
    const cJSON *v;
    if (!tools || cJSON_IsNull(tools))
        return 0;
    size_t n = (size_t)cJSON_GetArraySize(tools);
    if (!cJSON_IsArray(tools) || n > REQUEST_MAX_TOOLS)
        return fields_fail(e, "tools", "invalid_type", "tools: a list of at most %u is expected",
                           REQUEST_MAX_TOOLS);
    struct chat_tool *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    uint32_t i = 0;
    cJSON_ArrayForEach(v, tools)
    {
        char param[32];
        const char *type = text_of(v, "type");
        snprintf(param, sizeof(param), "tools.%u", i);
        if (!list)
            return 0; /* request_rc tells */
        if (type && strcmp(type, "custom") != 0)
            return fields_fail(e, param, "invalid_value",
                               "%s: a tool of type '%.40s' is not supported: only custom ones are",
                               param, type);
        int rc = tools_read_one(r, list, &i, cJSON_GetObjectItemCaseSensitive(v, "name"),
                                cJSON_GetObjectItemCaseSensitive(v, "description"),
                                cJSON_GetObjectItemCaseSensitive(v, "input_schema"), param, e);
        if (rc < 0 || request_rc(r) < 0)
            return rc;
        list[i - 1].strict = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(v, "strict"));
    }
    r->generate.chat.tools = list;
    r->generate.chat.n_tools = i;
    return 0;
}

static int read_choice(struct request *r, const cJSON *choice, struct fields_error *e)
{
    const char *type = text_of(choice, "type"), *name = text_of(choice, "name");
    if (!choice || cJSON_IsNull(choice))
        return 0;
    r->generate.chat.one_call =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(choice, "disable_parallel_tool_use"));
    if (type && strcmp(type, "tool") == 0 && name)
        return tools_read_force(r, name, e);
    if (type && strcmp(type, "any") == 0)
        return tools_read_word(r, "required", e);
    if (type && (strcmp(type, "auto") == 0 || strcmp(type, "none") == 0))
        return tools_read_word(r, type, e);
    return fields_fail(e, "tool_choice", "invalid_value",
                       "tool_choice: {\"type\": \"auto\"}, \"any\", \"none\" or \"tool\" with a "
                       "'name' is expected");
}

/* What the answer must be, and how much is to be thought about it. */
static int read_output(struct request *r, const cJSON *output, bool lenient, struct fields_error *e)
{
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(output, "format");
    const char *type = text_of(format, "type");
    if (output && !cJSON_IsObject(output) && !cJSON_IsNull(output))
        return fields_fail(e, "output_config", "invalid_type",
                           "output_config: an object is expected");
    prompt_read_effort(r, text_of(output, "effort"));
    if (!format || cJSON_IsNull(format))
        return 0;
    if (!type || strcmp(type, "json_schema") != 0 ||
        !cJSON_GetObjectItemCaseSensitive(format, "schema"))
        return fields_fail(
            e, "output_config.format", "invalid_value",
            "output_config.format: {\"type\": \"json_schema\", \"schema\": {...}} is "
            "expected");
    const struct constraint_fields f = {.response_format = format};
    return constraint_read(r, &f, lenient, e);
}

int anthropic_read(struct request *r, bool *stream, const cJSON *body, bool count, bool lenient,
                   struct fields_error *e)
{
    struct body b = {.temperature = 1, .top_p = 1};
    struct request_generate *g = &r->generate;
    int rc =
        count ? fields_read(anthropic_count_fields, anthropic_n_count_fields, body, &b, lenient, e)
              : fields_read(anthropic_fields, anthropic_n_fields, body, &b, lenient, e);
    if (rc < 0)
        return rc;
    const char *thinking = text_of(b.thinking, "type");
    if (thinking && strcmp(thinking, "disabled") != 0 && strcmp(thinking, "enabled") != 0 &&
        strcmp(thinking, "adaptive") != 0)
        return fields_fail(e, "thinking", "invalid_value",
                           "thinking: the type is enabled, adaptive or disabled");
    if (thinking) /* how much a model thinks is its own matter: budget_tokens is not used */
        prompt_add_var(r, "enable_thinking", value_bool(strcmp(thinking, "disabled") != 0));
    if (!count && b.max_tokens == 0)
        return fields_fail(e, "max_tokens", "missing_required_parameter",
                           "max_tokens: the field is required");
    r->kind = REQUEST_GENERATE;
    g->n = g->n_prompts = 1;
    g->max_tokens = count ? 1 : (uint32_t)b.max_tokens;
    g->prompt_only = count;
    g->sampling = (struct shoal_sampling){.temperature = (float)b.temperature,
                                          .top_k = (uint32_t)b.top_k,
                                          .top_p = b.top_p > 0 ? (float)b.top_p : 1e-6f};
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
    *stream = r->streams = b.stream;
    rc = read_messages(r, &b, e);
    if (rc == 0)
        rc = prompt_read_stop(r, b.stop, e);
    r->no_cache |= r->generate.n_stop > 0; /* a cached answer does not record which text ended it */
    if (rc == 0)
        rc = read_tools(r, b.tools, e);
    if (rc == 0)
        rc = read_choice(r, b.tool_choice, e);
    if (rc == 0)
        rc = read_output(r, b.output, lenient, e);
    if (rc == 0 && request_rc(r) == 0)
        prompt_prefill(r);
    return rc == 0 && request_rc(r) < 0 ? fields_fail(e, "messages", NULL, "out of memory") : rc;
}
