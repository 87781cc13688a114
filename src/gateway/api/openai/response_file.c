/* response_file.c - see response_file.h. */
#include "gateway/api/openai/response_file.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/arena.h"
#include "gateway/api/openai/response_entry.h"
#include "wire/json_out.h"
#include "wire/json_scan.h"

#define MAX_VALUES 1000000u

/* A model may write NUL, at which cJSON would end the string: such a text is the list of the pieces
 * between its NULs. */
static void put_text(struct json_out *j, const char *key, const char *text, size_t n)
{
    if (!text)
        return;
    json_out_key(j, key);
    if (!memchr(text, '\0', n)) {
        json_out_strn(j, text, n);
        return;
    }
    json_out_array(j);
    for (const char *end = text + n, *zero;; text = zero + 1) {
        zero = memchr(text, '\0', (size_t)(end - text));
        json_out_strn(j, text, (size_t)((zero ? zero : end) - text));
        if (!zero)
            break;
    }
    json_out_array_end(j);
}

static void put_str(struct json_out *j, const char *key, const char *text)
{
    put_text(j, key, text, text ? strlen(text) : 0);
}

static void put_message(struct json_out *j, const struct chat_message *m)
{
    json_out_object(j);
    put_str(j, "role", m->role);
    put_str(j, "name", m->name);
    put_text(j, "content", m->content, m->content_bytes);
    put_str(j, "call_id", m->call_id);
    json_out_member_array(j, "calls");
    for (uint32_t i = 0; i < m->n_calls; i++) {
        json_out_object(j);
        put_str(j, "id", m->calls[i].id);
        put_str(j, "name", m->calls[i].name);
        put_text(j, "arguments", m->calls[i].arguments, m->calls[i].arguments_bytes);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
}

void response_file_put(struct buf *out, const struct response_entry *e, int64_t until_s)
{
    struct json_out j = json_out_make(out);
    json_out_object(&j);
    put_str(&j, "id", e->id);
    put_str(&j, "owner", e->owner);
    json_out_member_uint(&j, "until", (uint64_t)until_s);
    json_out_member_uint(&j, "input", e->n_input);
    put_text(&j, "json", e->json, e->json_bytes);
    json_out_member_array(&j, "messages");
    for (uint32_t i = 0; i < e->n_messages; i++)
        put_message(&j, &e->messages[i]);
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(out, '\n');
}

/* ---- reading ---- */

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The pieces with a NUL between each two of them. */
static const char *joined(struct arena *a, const cJSON *pieces, size_t *n)
{
    const cJSON *one;
    size_t at = 0;
    *n = 0;
    if (cJSON_GetArraySize(pieces) < 2)
        return NULL;
    cJSON_ArrayForEach(one, pieces)
    {
        if (!cJSON_IsString(one))
            return NULL;
        *n += strlen(one->valuestring) + (one != pieces->child);
    }
    char *text = arena_zalloc(a, *n + 1);
    cJSON_ArrayForEach(one, pieces)
    {
        const size_t bytes = strlen(one->valuestring);
        if (!text)
            return NULL;
        memcpy(text + at, one->valuestring, bytes);
        at += bytes + 1;
    }
    return text;
}

/* A copy in the arena; NULL: the member is missing. */
static const char *text_of(struct arena *a, const cJSON *object, const char *key, size_t *n)
{
    const cJSON *v = get(object, key);
    const char *text = cJSON_GetStringValue(v);
    *n = text ? strlen(text) : 0;
    if (cJSON_IsArray(v))
        return joined(a, v, n);
    return text ? arena_printf(a, "%s", text) : NULL;
}

/* The constant of a role; NULL: there is no such role. */
static const char *role_of(const cJSON *message)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const char *role = cJSON_GetStringValue(get(message, "role"));
    for (size_t i = 0; role && i < sizeof(roles) / sizeof(roles[0]); i++)
        if (strcmp(role, roles[i]) == 0)
            return roles[i];
    return NULL;
}

static bool read_calls(struct chat_message *m, const cJSON *list, struct arena *a)
{
    const int n = cJSON_GetArraySize(list);
    struct chat_call *calls = n > 0 ? arena_zalloc_n(a, (size_t)n, sizeof(*calls)) : NULL;
    const cJSON *one;
    size_t unused;
    if (n > 0 && !calls)
        return false;
    cJSON_ArrayForEach(one, list)
    {
        struct chat_call *c = &calls[m->n_calls++];
        c->id = text_of(a, one, "id", &unused);
        c->name = text_of(a, one, "name", &unused);
        c->arguments = text_of(a, one, "arguments", &c->arguments_bytes);
        if (!c->id || !c->name || !c->arguments)
            return false;
    }
    m->calls = calls;
    return true;
}

static bool read_messages(struct response_entry *e, const cJSON *list, struct arena *a)
{
    const int n = cJSON_GetArraySize(list);
    struct chat_message *messages = n > 0 ? arena_zalloc_n(a, (size_t)n, sizeof(*messages)) : NULL;
    const cJSON *one;
    size_t unused;
    if (n > 0 && !messages)
        return false;
    cJSON_ArrayForEach(one, list)
    {
        struct chat_message *m = &messages[e->n_messages++];
        m->role = role_of(one);
        m->name = text_of(a, one, "name", &unused);
        m->content = text_of(a, one, "content", &m->content_bytes);
        m->call_id = text_of(a, one, "call_id", &unused);
        if (!m->role || !m->content || !read_calls(m, get(one, "calls"), a))
            return false;
    }
    e->messages = messages;
    return true;
}

static bool read_entry(struct response_entry *e, int64_t *until_s, const cJSON *line,
                       struct arena *a)
{
    const char *id = cJSON_GetStringValue(get(line, "id"));
    const char *owner = cJSON_GetStringValue(get(line, "owner"));
    const cJSON *until = get(line, "until"), *input = get(line, "input");
    if (!id || !owner || strlen(id) >= sizeof(e->id) || strlen(owner) >= sizeof(e->owner) ||
        !cJSON_IsNumber(until) || !(until->valuedouble > 0 && until->valuedouble < 1e12) ||
        !cJSON_IsNumber(input) || !read_messages(e, get(line, "messages"), a) ||
        !(input->valuedouble >= 0 && input->valuedouble <= e->n_messages))
        return false;
    if (response_entry_is_conversation(id) ? e->n_messages > 0
                                           : input->valuedouble >= e->n_messages)
        return false;
    memcpy(e->id, id, strlen(id));
    memcpy(e->owner, owner, strlen(owner));
    *until_s = (int64_t)until->valuedouble;
    e->n_input = (uint32_t)input->valuedouble;
    e->json = text_of(a, line, "json", &e->json_bytes);
    return e->json && a->rc == 0;
}

bool response_file_read(struct response_entry *e, int64_t *until_s, const char *line, size_t n,
                        struct arena *a)
{
    struct json_scan scan;
    *e = (struct response_entry){.n_messages = 0};
    if (json_scan(&scan, line, n, MAX_VALUES, NULL) < 0)
        return false;
    cJSON *json = cJSON_ParseWithLength(line, n);
    const bool good = json && read_entry(e, until_s, json, a);
    cJSON_Delete(json);
    return good;
}
