/* load_reply.c - see load_reply.h. */
#include "load/load_reply.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#define MAX_LINE_BYTES ((size_t)8 << 20)

static const cJSON *get(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(get(o, key));
    return s ? s : "";
}

/* The piece of text in an event of any of the APIs; "": none. */
static const char *find_text(const cJSON *event, const cJSON *choice)
{
    const cJSON *holders[] = {get(choice, "delta"), get(choice, "message"), choice,
                              get(event, "message"), event};
    static const char *const keys[] = {"content", "reasoning_content", "text", "response",
                                       "thinking"};
    for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
            const char *s = text_of(holders[i], keys[k]);
            if (s[0])
                return s;
        }
    return "";
}

static void note_error(struct load_reply *r, const cJSON *error)
{
    const char *s = cJSON_GetStringValue(error);
    snprintf(r->error, sizeof(r->error), "%s", s ? s : text_of(error, "message"));
    if (!r->error[0])
        snprintf(r->error, sizeof(r->error), "an error without a text");
}

static void read_event(struct load_reply *r, const cJSON *event, uint64_t now_ns)
{
    const cJSON *choice = cJSON_GetArrayItem(get(event, "choices"), 0);
    const cJSON *error = get(event, "error"), *delta = get(choice, "delta");
    const char *type = text_of(event, "type"), *text = "";
    if (error && !cJSON_IsNull(error))
        note_error(r, error);
    const bool is_done = strcmp(type, "done") == 0;
    r->done |= is_done || cJSON_IsTrue(get(event, "done")) || text_of(choice, "finish_reason")[0];
    const cJSON *n = get(get(event, "usage"), "completion_tokens");
    n = cJSON_IsNumber(n) ? n : get(event, "eval_count");
    if (cJSON_IsNumber(n) && n->valuedouble >= 0 && n->valuedouble < 1e9)
        r->n_tokens = (uint32_t)n->valuedouble;
    if (!is_done)
        text = find_text(event, choice);
    if (!text[0] && cJSON_GetArraySize(get(delta, "tool_calls")) == 0)
        return;
    if (r->n_pieces++ == 0)
        r->first_ns = now_ns;
    else if (r->gap)
        r->gap(r->ctx, now_ns - r->last_ns);
    r->last_ns = now_ns;
    if (r->text)
        buf_puts(r->text, text);
}

/* false: not JSON. */
static bool read_json(struct load_reply *r, const char *p, size_t n, uint64_t now_ns)
{
    cJSON *event = cJSON_ParseWithLength(p, n);
    const bool ok = cJSON_IsObject(event) || cJSON_IsArray(event);
    if (ok)
        read_event(r, event, now_ns);
    cJSON_Delete(event);
    return ok;
}

/* Returns whether the line was used up. */
static bool read_line(struct load_reply *r, uint64_t now_ns)
{
    const char *p = buf_str(&r->line);
    size_t n = r->line.len;
    if (r->whole)
        return false;
    while (n > 0 && (p[n - 1] == '\r' || p[n - 1] == '\n'))
        n--;
    if (n > 0 && (p[0] == '{' || p[0] == '[')) {
        r->whole = !read_json(r, p, n, now_ns); /* perhaps it goes on in the next line */
        return !r->whole;
    }
    if (n < 5 || memcmp(p, "data:", 5) != 0)
        return true; /* a name of an event, a comment, an empty line */
    p += 5;
    n -= 5;
    if (n > 0 && p[0] == ' ')
        p++, n--;
    if (n == 6 && memcmp(p, "[DONE]", 6) == 0)
        r->done = true;
    else if (n > 0 && !read_json(r, p, n, now_ns))
        r->bad = true;
    return true;
}

void load_reply_init(struct load_reply *r)
{
    *r = (struct load_reply){0};
    buf_init(&r->line, MAX_LINE_BYTES);
}

void load_reply_fini(struct load_reply *r)
{
    buf_fini(&r->line);
}

void load_reply_data(struct load_reply *r, const char *p, size_t n, uint64_t now_ns)
{
    while (n > 0) {
        const char *stop = memchr(p, '\n', n);
        const size_t len = stop ? (size_t)(stop - p) + 1 : n;
        buf_put(&r->line, p, len);
        if (stop && read_line(r, now_ns))
            buf_clear(&r->line);
        p += len;
        n -= len;
    }
}

void load_reply_end(struct load_reply *r, uint64_t now_ns)
{
    const bool rest = r->line.len > 0;
    if (r->whole || (rest && buf_str(&r->line)[0] != 'd')) {
        if (!read_json(r, buf_str(&r->line), r->line.len, now_ns))
            r->bad = true;
        r->done = true; /* there is nothing that could follow */
    } else if (rest) {
        read_line(r, now_ns);
    }
    if (r->line.rc < 0 || (r->text && r->text->rc < 0))
        r->bad = true;
    buf_clear(&r->line);
}
