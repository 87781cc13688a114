/* value_bytes.c - see value_bytes.h. */
#include "wire/value_bytes.h"

#include <string.h>

void value_bytes_put_uint(struct buf *b, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    buf_put(b, bytes, sizeof(bytes));
}

void value_bytes_put_text(struct buf *b, const char *p, size_t n)
{
    value_bytes_put_uint(b, n);
    buf_put(b, p, n);
}

void value_bytes_put(struct buf *b, const struct value *v)
{
    uint64_t bits;
    buf_putc(b, (char)v->kind);
    switch (v->kind) {
    case VALUE_NULL:
        break;
    case VALUE_BOOL:
        buf_putc(b, v->boolean ? 1 : 0);
        break;
    case VALUE_NUMBER:
        memcpy(&bits, &v->number, sizeof(bits));
        value_bytes_put_uint(b, bits);
        break;
    case VALUE_TEXT:
        value_bytes_put_text(b, v->text.p, v->text.n);
        break;
    case VALUE_LIST:
        value_bytes_put_uint(b, v->list.n);
        for (size_t i = 0; i < v->list.n; i++)
            value_bytes_put(b, &v->list.items[i]);
        break;
    case VALUE_MAP:
        value_bytes_put_uint(b, v->map.n);
        for (size_t i = 0; i < v->map.n; i++) {
            value_bytes_put_text(b, v->map.members[i].key, strlen(v->map.members[i].key));
            value_bytes_put(b, &v->map.members[i].value);
        }
        break;
    }
}

struct reader {
    struct arena *arena;
    const uint8_t *p, *end;
};

static int get_uint(struct reader *r, uint64_t *out)
{
    *out = 0;
    if (r->end - r->p < 8)
        return SHOAL_EFORMAT;
    for (int i = 0; i < 8; i++)
        *out |= (uint64_t)r->p[i] << (8 * i);
    r->p += 8;
    return 0;
}

/* A count of elements that take at least one byte each. */
static int get_count(struct reader *r, size_t *out)
{
    uint64_t n;
    int rc = get_uint(r, &n);
    if (rc == 0 && n > (uint64_t)(r->end - r->p))
        rc = SHOAL_EFORMAT;
    *out = rc == 0 ? (size_t)n : 0;
    return rc;
}

static int get_text(struct reader *r, const char **out, size_t *n)
{
    int rc = get_count(r, n);
    if (rc < 0)
        return rc;
    char *to = arena_bytes(r->arena, *n + 1);
    if (!to)
        return r->arena->rc;
    if (*n > 0)
        memcpy(to, r->p, *n);
    to[*n] = '\0';
    r->p += *n;
    *out = to;
    return 0;
}

static int get_value(struct reader *r, struct value *v, unsigned depth);

static int get_list(struct reader *r, struct value *v, unsigned depth)
{
    size_t n;
    int rc = get_count(r, &n);
    struct value *items = rc == 0 ? arena_zalloc_n(r->arena, n, sizeof(*items)) : NULL;
    if (rc == 0 && !items)
        return r->arena->rc;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = get_value(r, &items[i], depth);
    v->list.items = items;
    v->list.n = n;
    return rc;
}

static int get_map(struct reader *r, struct value *v, unsigned depth)
{
    size_t n;
    int rc = get_count(r, &n);
    struct value_member *members = rc == 0 ? arena_zalloc_n(r->arena, n, sizeof(*members)) : NULL;
    if (rc == 0 && !members)
        return r->arena->rc;
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t bytes;
        rc = get_text(r, &members[i].key, &bytes);
        if (rc == 0 && strlen(members[i].key) != bytes)
            rc = SHOAL_EFORMAT; /* a key has no NUL */
        if (rc == 0)
            rc = get_value(r, &members[i].value, depth);
    }
    v->map.members = members;
    v->map.n = n;
    return rc;
}

static int get_value(struct reader *r, struct value *v, unsigned depth)
{
    uint64_t bits;
    int rc = 0;
    if (depth == VALUE_BYTES_MAX_DEPTH)
        return SHOAL_ELIMIT;
    if (r->p == r->end || *r->p > VALUE_MAP)
        return SHOAL_EFORMAT;
    v->kind = (enum value_kind) * r->p++;
    switch (v->kind) {
    case VALUE_NULL:
        break;
    case VALUE_BOOL:
        if (r->p == r->end || *r->p > 1)
            return SHOAL_EFORMAT;
        v->boolean = *r->p++ == 1;
        break;
    case VALUE_NUMBER:
        rc = get_uint(r, &bits);
        memcpy(&v->number, &bits, sizeof(bits));
        break;
    case VALUE_TEXT:
        rc = get_text(r, &v->text.p, &v->text.n);
        break;
    case VALUE_LIST:
        rc = get_list(r, v, depth + 1);
        break;
    case VALUE_MAP:
        rc = get_map(r, v, depth + 1);
        break;
    }
    return rc;
}

int value_bytes_get(struct value *out, struct arena *a, const uint8_t *p, size_t n)
{
    struct reader r = {a, p, p + n};
    memset(out, 0, sizeof(*out));
    int rc = get_value(&r, out, 0);
    return rc == 0 && r.p != r.end ? SHOAL_EFORMAT : rc;
}
