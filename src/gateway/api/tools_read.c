/* tools_read.c - see tools_read.h. */
#include "gateway/api/tools_read.h"

#include <stdio.h>
#include <string.h>

#include "wire/value_json.h"

#define MAX_NAME 128u
#define MAX_BACK 256u /* messages between a call and its result */
#define CHOICE_HELP                                                                                \
    "'tool_choice' must be \"auto\", \"none\", \"required\" or {\"type\": \"function\", "          \
    "\"function\": {\"name\": \"...\"}}"

const char *tools_read_json(struct request *r, const cJSON *v, size_t *n)
{
    char *text = cJSON_PrintUnformatted(v);
    if (!text) {
        r->arena.rc = SHOAL_ENOMEM;
        return NULL;
    }
    const char *copy = request_copy_utf8(r, text, strlen(text), n);
    cJSON_free(text);
    return copy;
}

/* ---- tools ---- */

static bool good_name(const char *s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
    size_t n = strlen(s);
    return n > 0 && n <= MAX_NAME && strspn(s, allowed) == n;
}

bool tools_read_is_object(const char *text)
{
    cJSON *v = cJSON_Parse(text);
    bool ok = cJSON_IsObject(v);
    cJSON_Delete(v);
    return ok;
}

int tools_read_check(const struct chat_tool *list, uint32_t i, const char *param,
                     struct fields_error *e)
{
    if (!good_name(list[i].name))
        return fields_fail(e, param, "invalid_value",
                           "'%s' needs a name of 1 to %u letters, digits and _ - . : /", param,
                           MAX_NAME);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(list[k].name, list[i].name) == 0)
            return fields_fail(e, param, "invalid_value", "there are two tools named \"%s\"",
                               list[i].name);
    if (list[i].parameters.kind != VALUE_NULL && list[i].parameters.kind != VALUE_MAP)
        return fields_fail(e, param, "invalid_value",
                           "the parameters of \"%s\" must be a JSON Schema, an object",
                           list[i].name);
    return 0;
}

int tools_read_one(struct request *r, struct chat_tool *list, uint32_t *n, const cJSON *name,
                   const cJSON *description, const cJSON *parameters, const char *param,
                   struct fields_error *e)
{
    struct chat_tool *t = &list[*n];
    const char *text = cJSON_IsString(name) ? name->valuestring : "";
    t->name = request_copy(r, text, strlen(text));
    t->description = "";
    if (cJSON_IsString(description))
        t->description =
            request_copy_utf8(r, description->valuestring, strlen(description->valuestring), NULL);
    if (parameters && !cJSON_IsNull(parameters))
        t->parameters = value_json_of(&r->arena, parameters);
    if (r->arena.rc == SHOAL_EFORMAT) {
        r->arena.rc = 0;
        return fields_fail(e, param, "invalid_value",
                           "the parameters of \"%.64s\" are nested too deeply: at most 64 levels",
                           text);
    }
    if (request_rc(r) < 0)
        return 0; /* request_rc reports it */
    r->input_bytes += strlen(t->description) + value_json_bytes(&t->parameters);
    return tools_read_check(list, (*n)++, param, e);
}

/* field: the list's name. */
static int read_tools(struct request *r, const cJSON *tools, const char *field, bool flat,
                      struct fields_error *e)
{
    struct chat *c = &r->generate.chat;
    const cJSON *v;
    if (!tools || cJSON_IsNull(tools))
        return 0;
    if (!cJSON_IsArray(tools))
        return fields_fail(e, field, "invalid_type", "'%s' must be a list of functions", field);
    size_t n = (size_t)cJSON_GetArraySize(tools);
    if (n > REQUEST_MAX_TOOLS)
        return fields_fail(e, field, "invalid_value", "'%s' holds %zu tools: at most %u", field, n,
                           REQUEST_MAX_TOOLS);
    struct chat_tool *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    if (!list)
        return 0; /* request_rc tells */
    uint32_t i = 0;
    cJSON_ArrayForEach(v, tools)
    {
        char param[40];
        const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type");
        const cJSON *f = flat ? v : cJSON_GetObjectItemCaseSensitive(v, "function");
        snprintf(param, sizeof(param), "%s[%u]", field, i);
        if ((type && (!cJSON_IsString(type) || strcmp(type->valuestring, "function") != 0)) ||
            !cJSON_IsObject(f))
            return fields_fail(e, param, "invalid_value",
                               "'%s' must be {\"type\": \"function\", %s}: no other tools are "
                               "supported",
                               param, flat ? "\"name\": \"...\"" : "\"function\": {...}");
        int rc = tools_read_one(r, list, &i, cJSON_GetObjectItemCaseSensitive(f, "name"),
                                cJSON_GetObjectItemCaseSensitive(f, "description"),
                                cJSON_GetObjectItemCaseSensitive(f, "parameters"), param, e);
        if (rc < 0)
            return rc;
        list[i - 1].strict = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(f, "strict"));
    }
    c->tools = list;
    c->n_tools = i;
    return 0;
}

int tools_read(struct request *r, const cJSON *tools, struct fields_error *e)
{
    return read_tools(r, tools, "tools", false, e);
}

int tools_read_flat(struct request *r, const cJSON *tools, struct fields_error *e)
{
    return read_tools(r, tools, "tools", true, e);
}

int tools_read_functions(struct request *r, const cJSON *functions, const cJSON *choice,
                         struct fields_error *e)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(choice, "name");
    const char *word = cJSON_GetStringValue(choice);
    int rc = read_tools(r, functions, "functions", true, e);
    if (rc < 0 || !choice || (word && !word[0]) || request_rc(r) < 0)
        return rc;
    if (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0))
        return tools_read_word(r, word, e);
    if (!cJSON_IsString(name))
        return fields_fail(e, "function_call", "invalid_value",
                           "'function_call' must be \"auto\", \"none\" or {\"name\": \"...\"}");
    if (tools_read_force(r, name->valuestring, e) == 0)
        return 0;
    return fields_fail(e, "function_call", "invalid_value",
                       "'function_call' names the function \"%.64s\", which is not in 'functions'",
                       name->valuestring);
}

int tools_read_force(struct request *r, const char *name, struct fields_error *e)
{
    struct chat *c = &r->generate.chat;
    for (uint32_t i = 0; i < c->n_tools; i++)
        if (strcmp(c->tools[i].name, name) == 0) {
            c->tool_choice = CHAT_TOOLS_ONE;
            c->tool = i;
            return 0;
        }
    return fields_fail(e, "tool_choice", "invalid_value",
                       "'tool_choice' names the function \"%.64s\", which is not in 'tools'", name);
}

int tools_read_word(struct request *r, const char *word, struct fields_error *e)
{
    struct chat *c = &r->generate.chat;
    bool required = strcmp(word, "required") == 0;
    if (required && c->n_tools == 0)
        return fields_fail(e, "tool_choice", "invalid_value", "'tool_choice' needs 'tools'");
    if (!required && strcmp(word, "auto") != 0 && strcmp(word, "none") != 0)
        return fields_fail(e, "tool_choice", "invalid_value", CHOICE_HELP);
    c->tool_choice = required                    ? CHAT_TOOLS_REQUIRED
                     : strcmp(word, "none") == 0 ? CHAT_TOOLS_NONE
                                                 : CHAT_TOOLS_AUTO;
    return 0;
}

int tools_read_choice(struct request *r, const cJSON *choice, struct fields_error *e)
{
    if (!choice || cJSON_IsNull(choice))
        return 0;
    if (cJSON_IsString(choice))
        return tools_read_word(r, choice->valuestring, e);
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(choice, "type");
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(choice, "function");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(f ? f : choice, "name");
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "function") != 0 ||
        !cJSON_IsString(name))
        return fields_fail(e, "tool_choice", "invalid_value", CHOICE_HELP);
    return tools_read_force(r, name->valuestring, e);
}

/* ---- calls ---- */

int tools_read_call(struct request *r, struct chat_call *out, const cJSON *id, const cJSON *name,
                    const cJSON *args, const char *param, struct fields_error *e)
{
    out->id =
        cJSON_IsString(id) && id->valuestring[0]
            ? request_copy_utf8(r, id->valuestring, strlen(id->valuestring), NULL)
            : arena_printf(&r->arena, "%s", param); /* Ollama has no ids; templates need them */
    out->name = request_copy_utf8(r, name->valuestring, strlen(name->valuestring), NULL);
    out->arguments = "{}";
    out->arguments_bytes = 2;
    if (cJSON_IsObject(args)) {
        out->arguments = tools_read_json(r, args, &out->arguments_bytes);
    } else if (cJSON_IsString(args) && args->valuestring[0]) {
        if (!tools_read_is_object(args->valuestring))
            return fields_fail(e, param, "invalid_value",
                               "'%s': the arguments of \"%.64s\" are not a JSON object", param,
                               name->valuestring);
        out->arguments = request_copy_utf8(r, args->valuestring, strlen(args->valuestring),
                                           &out->arguments_bytes);
    } else if (args && !cJSON_IsNull(args) && !cJSON_IsString(args)) {
        return fields_fail(e, param, "invalid_type",
                           "'%s': arguments must be a JSON object, or its text", param);
    }
    r->input_bytes += out->arguments_bytes;
    return 0;
}

static int read_call(struct request *r, struct chat_call *out, const cJSON *v, const char *param,
                     struct fields_error *e)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(v, "function");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(v, "id");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(f, "name");
    if (!cJSON_IsString(name) || (id && !cJSON_IsNull(id) && !cJSON_IsString(id)))
        return fields_fail(e, param, "invalid_value",
                           "'%s' must be {\"id\": \"...\", \"type\": \"function\", \"function\": "
                           "{\"name\": \"...\", \"arguments\": \"...\"}}",
                           param);
    return tools_read_call(r, out, id, name, cJSON_GetObjectItemCaseSensitive(f, "arguments"),
                           param, e);
}

int tools_read_calls(struct request *r, struct chat_message *m, const cJSON *calls, uint32_t i,
                     struct fields_error *e)
{
    char param[64];
    const cJSON *v;
    snprintf(param, sizeof(param), "messages[%u].tool_calls", i);
    if (!calls || cJSON_IsNull(calls))
        return 0;
    if (!cJSON_IsArray(calls))
        return fields_fail(e, param, "invalid_type", "'%s' must be a list", param);
    size_t n = (size_t)cJSON_GetArraySize(calls);
    if (n > 0 && strcmp(m->role, "assistant") != 0)
        return fields_fail(e, param, "invalid_value",
                           "'%s': only messages of the assistant have calls", param);
    if (n > REQUEST_MAX_CALLS)
        return fields_fail(e, param, "invalid_value", "'%s' holds more than %u calls", param,
                           REQUEST_MAX_CALLS);
    struct chat_call *list = arena_zalloc_n(&r->arena, n, sizeof(*list));
    if (!list)
        return 0; /* request_rc tells */
    uint32_t k = 0;
    cJSON_ArrayForEach(v, calls)
    {
        snprintf(param, sizeof(param), "messages[%u].tool_calls[%u]", i, k);
        int rc = read_call(r, &list[k++], v, param, e);
        if (rc < 0)
            return rc;
    }
    m->calls = list;
    m->n_calls = k;
    return 0;
}

int tools_read_function_call(struct request *r, struct chat_message *m, const cJSON *call,
                             uint32_t i, struct fields_error *e)
{
    char param[64];
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(call, "name");
    snprintf(param, sizeof(param), "messages[%u].function_call", i);
    if (!call || m->n_calls > 0) /* a message with both repeats the same call */
        return 0;
    if (strcmp(m->role, "assistant") != 0 || !cJSON_IsString(name))
        return fields_fail(e, param, "invalid_value",
                           "'%s' must be {\"name\": \"...\", \"arguments\": \"...\"}, in a message "
                           "of the assistant",
                           param);
    struct chat_call *one = arena_zalloc(&r->arena, sizeof(*one));
    if (!one)
        return 0; /* request_rc tells */
    m->calls = one;
    m->n_calls = 1;
    return tools_read_call(r, one, NULL, name, cJSON_GetObjectItemCaseSensitive(call, "arguments"),
                           param, e);
}

/* The call that message i, a result, belongs to: by its id; without one (Ollama) by its name, or by
 * its place behind the calls. */
static const struct chat_call *call_of(const struct chat_message *list, uint32_t i)
{
    const char *id = list[i].call_id, *name = list[i].name;
    uint32_t place = 0;
    for (uint32_t k = i; k-- > 0 && i - k <= MAX_BACK;) {
        const struct chat_message *m = &list[k];
        for (uint32_t c = 0; c < m->n_calls; c++)
            if (id     ? strcmp(m->calls[c].id, id) == 0
                : name ? strcmp(m->calls[c].name, name) == 0
                       : c == place)
                return &m->calls[c];
        if (!id && strcmp(m->role, "tool") != 0)
            return NULL;
        place++;
    }
    return NULL;
}

void tools_read_names(struct chat_message *list, uint32_t n)
{
    uint32_t n_calls = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_calls += list[i].n_calls;
        const struct chat_call *c =
            n_calls > 0 && strcmp(list[i].role, "tool") == 0 ? call_of(list, i) : NULL;
        if (c && !list[i].name)
            list[i].name = c->name;
        if (c && !list[i].call_id)
            list[i].call_id = c->id;
    }
}
