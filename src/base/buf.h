/* buf.h - growing byte buffer with a hard limit on its size.
 *
 * Thread:    belongs to its caller.
 * Ownership: buf_fini frees; buf_take moves the bytes out (mem_free them).  The content is always
 *            followed by a NUL that len does not count.
 * Failure:   sticky: after NOMEM or LIMIT, rc is set and later appends do nothing; check once. */
#ifndef SHOAL_BASE_BUF_H
#define SHOAL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct buf {
    char *data; /* NULL until the first append */
    size_t len, cap, max;
    int rc;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_fini(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory, clears the error */
/* Makes room for n more bytes at the end; report those written with buf_used.  NULL: rc is set. */
char *buf_room(struct buf *b, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) SHOAL_PRINTF(2, 3);
const char *buf_str(const struct buf *b);   /* "" when empty */
char *buf_take(struct buf *b, size_t *len); /* NULL if rc is set or memory runs out */

static inline void buf_used(struct buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

/* Inline: most appends fit into the memory at hand and need no function call. */
static inline void buf_put(struct buf *b, const void *p, size_t n)
{
    bool there = b->rc == 0 && n < b->cap - b->len && n <= b->max - b->len;
    char *at = there ? b->data + b->len : buf_room(b, n);
    if (!at)
        return;
    if (n)
        memcpy(at, p, n);
    buf_used(b, n);
}

static inline void buf_putc(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

static inline void buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

#endif
