/* buf.c - see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_fini(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->rc = 0;
    if (b->data)
        b->data[0] = '\0';
}

/* Makes room for n more bytes and the NUL. */
static int reserve(struct buf *b, size_t n)
{
    if (b->rc < 0)
        return b->rc;
    if (n > b->max - b->len) {
        b->rc = SHOAL_ELIMIT;
        return b->rc;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap + b->cap / 2 + 16; /* geometric growth */
    cap = cap < 64 ? 64 : cap;
    cap = cap < need ? need : cap;
    char *p = mem_realloc(b->data, cap);
    if (!p) {
        b->rc = SHOAL_ENOMEM;
        return b->rc;
    }
    b->data = p;
    b->cap = cap;
    return 0;
}

char *buf_room(struct buf *b, size_t n)
{
    return reserve(b, n) < 0 ? NULL : b->data + b->len;
}

/* Most texts fit into the memory at hand and are formatted once. */
void buf_printf(struct buf *b, const char *fmt, ...)
{
    const size_t there = b->rc == 0 ? b->cap - b->len : 0;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(there ? b->data + b->len : NULL, there, fmt, ap);
    va_end(ap);
    const bool fits = n >= 0 && (size_t)n < there && (size_t)n <= b->max - b->len;
    if (!fits && there)
        b->data[b->len] = '\0'; /* nothing was appended yet */
    if (n >= 0 && (fits || reserve(b, (size_t)n) == 0)) {
        if (!fits)
            vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b, size_t *len)
{
    if (!b->data)
        buf_put(b, "", 0);
    if (b->rc < 0 || !b->data)
        return NULL;
    char *p = b->data;
    if (len)
        *len = b->len;
    size_t max = b->max;
    buf_init(b, max);
    return p;
}
