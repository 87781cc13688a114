/* prompt_read.c - see prompt_read.h. */
#include "gateway/api/prompt_read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/tools_read.h"

int prompt_read_stop(struct request *r, const cJSON *stop, struct fields_error *e)
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

int prompt_read_bias(struct request *r, const cJSON *bias, struct fields_error *e)
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
        list[s->n_bias++] = prompt_bias((int32_t)id, one->valuedouble);
    }
    s->bias = list;
    return 0;
}

/* ---- conversations ---- */

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

int prompt_read_content(struct request *r, struct chat_message *m, const cJSON *content, int i,
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

const char *prompt_role(const char *given, uint32_t i, struct fields_error *e)
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

int prompt_read_message(struct request *r, struct chat_message *m, const cJSON *v, int i,
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
    m->role = prompt_role(b.role, (uint32_t)i, e);
    if (!m->role)
        return SHOAL_EINVAL;
    if (b.name)
        m->name = request_copy_utf8(r, b.name, strlen(b.name), NULL);
    if (b.call_id)
        m->call_id = request_copy_utf8(r, b.call_id, strlen(b.call_id), NULL);
    int rc = tools_read_calls(r, m, b.calls, (uint32_t)i, e);
    if (rc == 0)
        rc = tools_read_function_call(r, m, b.function_call, (uint32_t)i, e);
    return rc < 0 ? rc : prompt_read_content(r, m, b.content, i, e);
}

int prompt_read_messages(struct request *r, const cJSON *messages, bool lenient,
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
        int rc = prompt_read_message(r, &list[i], v, i, lenient, e);
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

int prompt_read_vars(struct request *r, const cJSON *vars, struct fields_error *e)
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

void prompt_add_var(struct request *r, const char *name, struct value v)
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

void prompt_prefill(struct request *r)
{
    const struct chat *chat = &r->generate.chat;
    if (chat->n_messages == 0)
        return;
    const struct chat_message *last = &chat->messages[chat->n_messages - 1];
    if (strcmp(last->role, "assistant") == 0 && last->content_bytes > 0)
        prompt_add_var(r, CHAT_CONTINUE_VAR, value_bool(true));
}

/* How much a model thinks is its template's matter. */
void prompt_read_effort(struct request *r, const char *effort)
{
    if (!effort || !effort[0])
        return;
    struct value v = {.kind = VALUE_TEXT};
    v.text.p = request_copy_utf8(r, effort, strlen(effort), &v.text.n);
    prompt_add_var(r, "reasoning_effort", v);
    if (strcmp(effort, "none") == 0)
        prompt_add_var(r, "enable_thinking", value_bool(false));
}

/* ---- texts ---- */

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

int prompt_read_texts(struct request *r, const cJSON *prompt, bool may_mix, struct fields_error *e)
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
