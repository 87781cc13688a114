/* response_input.c - see response_input.h. */
#include "gateway/api/openai/response_input.h"

#include <stdio.h>
#include <string.h>

#include "gateway/api/prompt_read.h"
#include "gateway/api/tools_read.h"

static int read_text_input(struct request *r, const char *text)
{
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    if (!m)
        return 0; /* request_rc tells */
    m->role = "user";
    m->content = request_copy_utf8(r, text, strlen(text), &m->content_bytes);
    r->input_bytes += m->content_bytes;
    r->generate.chat.messages = m;
    r->generate.chat.n_messages = 1;
    return 0;
}

enum item { ITEM_MESSAGE, ITEM_CALL, ITEM_RESULT, ITEM_REASONING, ITEM_OTHER };

static enum item item_of(const cJSON *v, const char **type)
{
    *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "type"));
    return !*type || strcmp(*type, "message") == 0      ? ITEM_MESSAGE
           : strcmp(*type, "function_call") == 0        ? ITEM_CALL
           : strcmp(*type, "function_call_output") == 0 ? ITEM_RESULT
           : strcmp(*type, "reasoning") == 0            ? ITEM_REASONING
                                                        : ITEM_OTHER;
}

struct items {
    struct chat_message *list;
    uint32_t n;
    uint32_t room; /* for calls that follow, in the last message */
};

/* Makes room for this call and those after it, in the preceding assistant's message or a new one: a
 * model sees one answer as one message. */
static int begin_calls(struct request *r, struct items *x, const cJSON *v, const char *param,
                       struct fields_error *e)
{
    const char *type;
    uint32_t most = 0;
    for (const cJSON *next = v; next && item_of(next, &type) == ITEM_CALL; next = next->next)
        if (++most > REQUEST_MAX_CALLS)
            return fields_fail(e, param, "invalid_value",
                               "more than %u calls follow each other from '%s' on",
                               REQUEST_MAX_CALLS, param);
    struct chat_message *last = x->n > 0 ? &x->list[x->n - 1] : NULL;
    if (!last || strcmp(last->role, "assistant") != 0 || last->calls) {
        last = &x->list[x->n++];
        *last = (struct chat_message){.role = "assistant", .content = ""};
    }
    last->calls = arena_zalloc_n(&r->arena, most, sizeof(*last->calls));
    x->room = last->calls ? most : 0;
    return 0;
}

static int read_call(struct request *r, struct items *x, const cJSON *v, const char *param,
                     struct fields_error *e)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(v, "call_id");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(v, "name");
    if (!cJSON_IsString(id) || !id->valuestring[0] || !cJSON_IsString(name))
        return fields_fail(e, param, "invalid_value",
                           "'%s' must be {\"type\": \"function_call\", \"call_id\": \"...\", "
                           "\"name\": \"...\", \"arguments\": \"...\"}",
                           param);
    int rc = x->room > 0 ? 0 : begin_calls(r, x, v, param, e);
    if (rc < 0 || x->room == 0)
        return rc; /* 0: request_rc tells */
    struct chat_message *m = &x->list[x->n - 1];
    /* allocated by begin_calls */
    struct chat_call *calls = (struct chat_call *)(uintptr_t)m->calls;
    x->room--;
    return tools_read_call(r, &calls[m->n_calls++], id, name,
                           cJSON_GetObjectItemCaseSensitive(v, "arguments"), param, e);
}

void response_input_rename(struct fields_error *e, const char *theirs, const char *ours)
{
    char param[sizeof(e->param)], msg[sizeof(e->msg)];
    size_t n = strlen(theirs), quote = e->msg[0] == '\'';
    if (strncmp(e->param, theirs, n) != 0)
        return;
    snprintf(param, sizeof(param), "%s%.50s", ours, e->param + n);
    memcpy(e->param, param, sizeof(param));
    if (strncmp(e->msg + quote, theirs, n) != 0)
        return;
    snprintf(msg, sizeof(msg), "%.*s%s%.200s", (int)quote, e->msg, ours, e->msg + quote + n);
    memcpy(e->msg, msg, sizeof(msg));
}

static int read_result(struct request *r, struct chat_message *m, const cJSON *v, int i,
                       const char *param, struct fields_error *e)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(v, "call_id");
    const cJSON *output = cJSON_GetObjectItemCaseSensitive(v, "output");
    if (!cJSON_IsString(id) || !id->valuestring[0] ||
        (!cJSON_IsString(output) && !cJSON_IsArray(output)))
        return fields_fail(e, param, "invalid_value",
                           "'%s' must be {\"type\": \"function_call_output\", \"call_id\": "
                           "\"...\", \"output\": \"...\"}",
                           param);
    m->role = "tool";
    m->call_id = request_copy_utf8(r, id->valuestring, strlen(id->valuestring), NULL);
    int rc = prompt_read_content(r, m, output, i, e);
    if (rc < 0) {
        char theirs[32], ours[32];
        snprintf(theirs, sizeof(theirs), "messages[%d].content", i);
        snprintf(ours, sizeof(ours), "input[%d].output", i);
        response_input_rename(e, theirs, ours);
    }
    return rc;
}

static int read_item(struct request *r, struct items *x, const cJSON *v, int i, bool lenient,
                     struct fields_error *e)
{
    char param[32];
    const char *type;
    enum item item = item_of(v, &type);
    snprintf(param, sizeof(param), "input[%d]", i);
    if (item == ITEM_OTHER)
        return fields_fail(e, param, "unsupported_parameter",
                           "'%s' is of the type '%.32s': only message, function_call, "
                           "function_call_output and reasoning are supported",
                           param, type);
    if (item == ITEM_REASONING)
        return 0; /* thoughts of an earlier answer: chat templates leave them out as well */
    if (item == ITEM_CALL)
        return read_call(r, x, v, param, e);
    struct chat_message *m = &x->list[x->n++];
    int rc = item == ITEM_RESULT ? read_result(r, m, v, i, param, e)
                                 : prompt_read_message(r, m, v, i, lenient, e);
    r->input_bytes += m->content_bytes;
    return rc;
}

int response_input_read(struct request *r, const cJSON *input, bool lenient, struct fields_error *e)
{
    const cJSON *one;
    struct items x = {.n = 0};
    int i = 0;
    if (cJSON_IsString(input))
        return read_text_input(r, input->valuestring);
    if (!cJSON_IsArray(input) || !input->child)
        return fields_fail(e, "input", input ? "invalid_type" : "missing_required_parameter",
                           "'input' must be a text, or a list with at least one message");
    x.list = arena_zalloc_n(&r->arena, (size_t)cJSON_GetArraySize(input), sizeof(*x.list));
    if (!x.list)
        return 0; /* request_rc tells */
    cJSON_ArrayForEach(one, input)
    {
        int rc = read_item(r, &x, one, i++, lenient, e);
        if (rc < 0) {
            response_input_rename(e, "messages", "input");
            return rc;
        }
    }
    if (x.n == 0)
        return fields_fail(e, "input", "invalid_value", "'input' holds no message");
    r->generate.chat.messages = x.list;
    r->generate.chat.n_messages = x.n;
    return 0;
}

int response_input_read_items(struct request *r, const cJSON *items, bool lenient,
                              struct fields_error *e)
{
    if (!cJSON_IsArray(items) || !items->child)
        return fields_fail(e, "items", items ? "invalid_type" : "missing_required_parameter",
                           "'items' must be a list with at least one item");
    int rc = response_input_read(r, items, lenient, e);
    if (rc < 0)
        response_input_rename(e, "input", "items");
    return rc < 0 || request_rc(r) == 0 ? rc : fields_fail(e, "items", NULL, "out of memory");
}
