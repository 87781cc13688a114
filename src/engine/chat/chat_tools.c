/* chat_tools.c - see chat_tools.h. */
#include "engine/chat/chat_tools.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "wire/json_out.h"
#include "wire/value_json.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define MISTRAL_ID 9u

static struct value text_value(const char *s)
{
    return value_text(s, strlen(s));
}

/* A map with room for n members. */
static struct value_member *map_of(struct arena *a, struct value *out, size_t n)
{
    struct value_member *m = arena_zalloc_n(a, n, sizeof(*m));
    *out = (struct value){.kind = VALUE_MAP, .map = {m, 0}};
    return m;
}

static struct value list_of(struct arena *a, size_t n, struct value **items)
{
    *items = arena_zalloc_n(a, n, sizeof(**items));
    return (struct value){.kind = VALUE_LIST, .list = {*items, *items ? n : 0}};
}

/* JSON as values; invalid JSON stays text. */
static struct value json_value(struct arena *a, const char *p, size_t n)
{
    struct value v;
    return value_json_read(&v, a, p, n) == SHOAL_EFORMAT && a->rc == 0 ? value_text(p, n) : v;
}

static struct value wrap_function(struct arena *a, const char *id, struct value function)
{
    struct value out;
    struct value_member *m = map_of(a, &out, 3);
    if (!m)
        return out;
    if (id && id[0])
        m[out.map.n++] = (struct value_member){"id", text_value(id)};
    m[out.map.n++] = (struct value_member){"type", text_value("function")};
    m[out.map.n++] = (struct value_member){"function", function};
    return out;
}

static struct value tool_value(struct arena *a, const struct chat_tool *t)
{
    struct value f;
    struct value_member *m = map_of(a, &f, 3);
    if (!m)
        return f;
    m[f.map.n++] = (struct value_member){"name", text_value(t->name)};
    m[f.map.n++] = (struct value_member){"description", text_value(t->description)};
    if (t->parameters.kind != VALUE_NULL)
        m[f.map.n++] = (struct value_member){"parameters", t->parameters};
    return wrap_function(a, NULL, f);
}

struct value chat_tools_list(struct arena *a, const struct chat *c)
{
    struct value *items, out = list_of(a, c->n_tools, &items);
    for (uint32_t i = 0; items && i < c->n_tools; i++)
        items[i] = tool_value(a, &c->tools[i]);
    return out;
}

const char *chat_tools_id(struct arena *a, const char *id, enum tool_format f)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strlen(id);
    if (f != TOOL_FORMAT_MISTRAL || (n == MISTRAL_ID && strspn(id, digits) == n))
        return id;
    char *out = arena_bytes(a, MISTRAL_ID + 1);
    uint64_t h = hash_bytes(id, n, 0);
    if (!out)
        return "";
    for (size_t i = 0; i < MISTRAL_ID; i++, h /= 62)
        out[i] = digits[h % 62];
    out[MISTRAL_ID] = '\0';
    return out;
}

struct value chat_tools_calls(struct arena *a, const struct chat_message *m, enum tool_format f)
{
    struct value *items, out = list_of(a, m->n_calls, &items);
    for (uint32_t i = 0; items && i < m->n_calls; i++) {
        const struct chat_call *c = &m->calls[i];
        struct value function;
        struct value_member *at = map_of(a, &function, 2);
        if (!at)
            return out;
        at[function.map.n++] = (struct value_member){"name", text_value(c->name)};
        at[function.map.n++] =
            (struct value_member){"arguments", json_value(a, c->arguments, c->arguments_bytes)};
        items[i] = wrap_function(a, chat_tools_id(a, c->id, f), function);
    }
    return out;
}

/* ---- tools as text ---- */

bool chat_tools_used(const struct chat *c)
{
    if (chat_has_tools(c))
        return true;
    for (uint32_t i = 0; i < c->n_messages; i++)
        if (c->messages[i].n_calls > 0 || strcmp(c->messages[i].role, "tool") == 0)
            return true;
    return false;
}

static void put_tool(struct json_out *j, const struct chat_tool *t)
{
    json_out_object(j);
    json_out_member_str(j, "type", "function");
    json_out_member_object(j, "function");
    json_out_member_str(j, "name", t->name);
    json_out_member_str(j, "description", t->description);
    if (t->parameters.kind != VALUE_NULL) {
        json_out_key(j, "parameters");
        value_json_put(j, &t->parameters);
    }
    json_out_object_end(j);
    json_out_object_end(j);
}

static void put_list(struct buf *b, const struct chat *c)
{
    struct json_out j = json_out_make(b);
    json_out_array(&j);
    for (uint32_t i = 0; i < c->n_tools; i++)
        put_tool(&j, &c->tools[i]);
    json_out_array_end(&j);
}

struct value chat_tools_text(struct arena *a, const struct chat *c)
{
    struct value out = value_text("", 0);
    struct buf b;
    if (!chat_has_tools(c))
        return out;
    buf_init(&b, MAX_TEXT_BYTES);
    put_list(&b, c);
    const char *copy = arena_copy(a, buf_str(&b), b.len + 1);
    if (b.rc < 0)
        a->rc = b.rc;
    else if (copy)
        out = value_text(copy, b.len);
    buf_fini(&b);
    return out;
}

static void put_tools(struct buf *b, const struct chat *c)
{
    buf_puts(b, "You have access to the following tools:\n<tools>");
    put_list(b, c);
    buf_puts(b,
             "</tools>\n\nTo call tools, answer with nothing but a list of calls in this format. "
             "Make sure that the types of the arguments are right.\n"
             "<tool_call>[{\"name\": \"tool_name\", \"arguments\": {\"argument\": \"value\"}}]"
             "</tool_call>\n"
             "If no tool can help, answer without them.");
}

static void put_calls(struct buf *b, const struct chat_message *m)
{
    if (m->content_bytes > 0)
        buf_putc(b, '\n');
    buf_puts(b, "<tool_call>[");
    for (uint32_t i = 0; i < m->n_calls; i++) {
        struct json_out j = json_out_make(b);
        if (i > 0)
            buf_puts(b, ", ");
        buf_puts(b, "{\"name\": ");
        json_out_str(&j, m->calls[i].name);
        buf_puts(b, ", \"arguments\": ");
        buf_put(b, m->calls[i].arguments, m->calls[i].arguments_bytes);
        buf_putc(b, '}');
    }
    buf_puts(b, "]</tool_call>");
}

static void put_result(struct buf *b, const struct chat_message *m)
{
    buf_puts(b, b->len > 0 ? "\n<tool_response>\n" : "<tool_response>\n");
    buf_put(b, m->content, m->content_bytes);
    buf_puts(b, "\n</tool_response>");
}

static struct chat_message message_of(struct arena *a, const char *role, const struct buf *b)
{
    char *copy = arena_copy(a, buf_str(b), b->len + 1);
    if (b->rc < 0)
        a->rc = b->rc;
    return (struct chat_message){
        .role = role, .content = copy ? copy : "", .content_bytes = copy ? b->len : 0};
}

/* The message with the description of the tools before or after it. */
static struct chat_message with_tools(struct arena *a, const struct chat *c,
                                      const struct chat_message *m, bool in_front, struct buf *b)
{
    buf_clear(b);
    if (in_front)
        put_tools(b, c);
    if (m && in_front)
        buf_puts(b, "\n\n");
    if (m)
        buf_put(b, m->content, m->content_bytes);
    if (!in_front && m && m->content_bytes > 0)
        buf_puts(b, "\n\n");
    if (!in_front)
        put_tools(b, c);
    return message_of(a, m ? m->role : "system", b);
}

struct chat chat_tools_as_text(struct arena *a, const struct chat *c, bool no_system)
{
    struct chat out = *c;
    struct chat_message *list = arena_zalloc_n(a, (size_t)c->n_messages + 1, sizeof(*list));
    uint32_t n = 0;
    bool told = !chat_has_tools(c);
    struct buf b;
    out.tools = NULL;
    out.n_tools = 0;
    if (!list)
        return out;
    buf_init(&b, MAX_TEXT_BYTES);
    if (!told && !no_system && strcmp(c->messages[0].role, "system") != 0) {
        list[n++] = with_tools(a, c, NULL, true, &b);
        told = true;
    }
    for (uint32_t i = 0; i < c->n_messages; i++) {
        const struct chat_message *m = &c->messages[i];
        buf_clear(&b);
        if (!told) {
            list[n++] = with_tools(a, c, m, no_system, &b);
            told = true;
        } else if (m->n_calls > 0) {
            buf_put(&b, m->content, m->content_bytes);
            put_calls(&b, m);
            list[n++] = message_of(a, m->role, &b);
        } else if (strcmp(m->role, "tool") == 0) { /* results that follow each other are one */
            for (; i < c->n_messages && strcmp(c->messages[i].role, "tool") == 0; i++)
                put_result(&b, &c->messages[i]);
            i--;
            list[n++] = message_of(a, "user", &b);
        } else {
            list[n++] = *m;
        }
    }
    buf_fini(&b);
    out.messages = list;
    out.n_messages = n;
    return out;
}

struct chat chat_tools_in_system(struct arena *a, const struct chat *c, struct value *text)
{
    static const struct chat_message empty = {.role = "system", .content = ""};
    struct chat out = *c;
    struct buf b;
    buf_init(&b, MAX_TEXT_BYTES);
    put_list(&b, c);
    const struct chat_message m = message_of(a, "system", &b);
    *text = value_text(m.content, m.content_bytes);
    buf_fini(&b);
    if (strcmp(c->messages[0].role, "system") == 0)
        return out;
    struct chat_message *list = arena_zalloc_n(a, (size_t)c->n_messages + 1, sizeof(*list));
    if (!list)
        return out;
    list[0] = empty;
    memcpy(list + 1, c->messages, c->n_messages * sizeof(*list));
    out.messages = list;
    out.n_messages++;
    return out;
}
