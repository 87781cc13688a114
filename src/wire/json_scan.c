/* json_scan.c - see json_scan.h. */
#include "wire/json_scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 16u /* levels of a reported path; deeper ones are left out */
#define SHORT_BYTES ((size_t)64 << 10)

struct level {
    bool list;
    uint32_t index;  /* of a list */
    const char *key; /* of an object; NULL: none yet */
    size_t key_bytes;
};

struct scanner {
    const char *p, *end;
    size_t depth, n_values;
    struct level levels[MAX_DEPTH];
};

static struct level *top(struct scanner *s)
{
    return s->depth > 0 && s->depth <= MAX_DEPTH ? &s->levels[s->depth - 1] : NULL;
}

static void put_path(const struct scanner *s, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < s->depth && i < MAX_DEPTH && n + 1 < cap; i++) {
        const struct level *l = &s->levels[i];
        int k = l->list  ? snprintf(out + n, cap - n, "[%u]", l->index)
                : l->key ? snprintf(out + n, cap - n, "%s%.*s", n ? "." : "",
                                    (int)(l->key_bytes < 64 ? l->key_bytes : 64), l->key)
                         : 0;
        n += k > 0 ? (size_t)k : 0;
    }
}

/* Behind the opening quote.  False: the string has a NUL, as a byte or escaped. */
static bool pass_string(struct scanner *s, const char **text, size_t *n)
{
    bool ok = true;
    *text = s->p;
    while (s->p < s->end && *s->p != '"') {
        if (*s->p == '\\' && s->end - s->p > 5 && memcmp(s->p + 1, "u0000", 5) == 0)
            ok = false;
        ok &= *s->p != '\0';
        s->p += *s->p == '\\' && s->end - s->p > 1 ? 2 : 1;
    }
    *n = (size_t)(s->p - *text);
    s->p += s->p < s->end;
    return ok;
}

static void open_level(struct scanner *s, bool list)
{
    s->n_values++;
    s->depth++;
    struct level *l = top(s);
    if (l)
        *l = (struct level){.list = list};
}

/* One character outside of strings.  False: it is a NUL. */
static bool pass_char(struct scanner *s, char c)
{
    struct level *l = top(s);
    if (c == '[' || c == '{') {
        open_level(s, c == '[');
    } else if (c == ']' || c == '}') {
        s->depth -= s->depth > 0;
    } else if (c == ',') {
        s->n_values++;
        if (l && l->list)
            l->index++;
        else if (l)
            l->key = NULL;
    }
    return c != '\0';
}

int json_scan(struct json_scan *out, const char *p, size_t n, size_t max_values, struct err *e)
{
    struct scanner s = {.p = p, .end = p + n, .n_values = 1};
    *out = (struct json_scan){.n_values = 0};
    if (n <= SHORT_BYTES && n / 2 < max_values && !memchr(p, '\0', n) &&
        !memmem(p, n, "\\u0000", 6))
        return 0;
    while (s.p < s.end) {
        char c = *s.p++;
        bool ok;
        if (c == '"') {
            struct level *l = top(&s);
            const char *text;
            size_t n_text;
            ok = pass_string(&s, &text, &n_text);
            if (l && !l->list && !l->key) {
                l->key = text;
                l->key_bytes = n_text;
            }
        } else {
            ok = pass_char(&s, c);
        }
        if (!ok) {
            put_path(&s, out->path, sizeof(out->path));
            return err_set(e, SHOAL_EFORMAT,
                           "%s%s%s contains NUL (\\u0000), which is not allowed in a request",
                           out->path[0] ? "'" : "", out->path[0] ? out->path : "the body",
                           out->path[0] ? "'" : "");
        }
        if (s.n_values > max_values)
            return err_set(e, SHOAL_ELIMIT, "the body holds more than %zu values", max_values);
    }
    out->n_values = s.n_values;
    return 0;
}
