/* rd.h - bounded reader over untrusted bytes.
 *
 * Thread:    belongs to its caller.
 * Ownership: borrows the bytes; rd_take returns pointers into them.
 * Failure:   sticky: the first read past the end sets bad, later reads return zeros, and the
 *            caller checks once after the last read. */
#ifndef SHOAL_BASE_RD_H
#define SHOAL_BASE_RD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rd {
    const uint8_t *start, *p, *end;
    bool bad;
};

static inline struct rd rd_make(const void *data, size_t n)
{
    const uint8_t *p = data;
    return (struct rd){p, p, p + n, false};
}

static inline size_t rd_left(const struct rd *r)
{
    return (size_t)(r->end - r->p);
}

static inline size_t rd_pos(const struct rd *r)
{
    return (size_t)(r->p - r->start);
}

static inline const uint8_t *rd_take(struct rd *r, uint64_t n)
{
    const uint8_t *at = r->p;
    if (r->bad || n > (uint64_t)(r->end - r->p)) { /* compare sizes, never p + n > end */
        r->bad = true;
        return NULL;
    }
    r->p += n;
    return at;
}

/* Little-endian scalars; the product runs on little-endian machines only (checked in gguf.c). */
#define RD_SCALAR(name, type)                                                                      \
    static inline type rd_##name(struct rd *r)                                                     \
    {                                                                                              \
        type v = 0;                                                                                \
        const uint8_t *at = rd_take(r, sizeof(v));                                                 \
        if (at)                                                                                    \
            memcpy(&v, at, sizeof(v));                                                             \
        return v;                                                                                  \
    }
RD_SCALAR(u8, uint8_t)
RD_SCALAR(u16, uint16_t)
RD_SCALAR(u32, uint32_t)
RD_SCALAR(u64, uint64_t)
RD_SCALAR(i32, int32_t)
RD_SCALAR(f32, float)
#undef RD_SCALAR

#endif
