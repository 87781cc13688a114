/* gguf_build.h - GGUF metadata in memory, for tests: no tensors, any content, right or wrong.
 *
 * Thread:    belongs to its caller.
 * Ownership: the bytes are in the caller's struct buf; buf_fini frees them.
 * Failure:   as struct buf: sticky rc. */
#ifndef SHOAL_TEST_GGUF_BUILD_H
#define SHOAL_TEST_GGUF_BUILD_H

#include <string.h>

#include "base/buf.h"
#include "format/gguf.h"

static inline void gb_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof(v));
}

static inline void gb_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof(v));
}

static inline void gb_text(struct buf *b, const char *p, size_t n)
{
    gb_u64(b, n);
    buf_put(b, p, n);
}

static inline void gb_begin(struct buf *b)
{
    buf_init(b, (size_t)1 << 26);
    buf_put(b, "GGUF", 4);
    gb_u32(b, 3);
    gb_u64(b, 0); /* tensors */
    gb_u64(b, 0); /* keys: counted by gb_key */
}

static inline void gb_key(struct buf *b, const char *key, enum model_file_type type)
{
    uint64_t n;
    gb_text(b, key, strlen(key));
    gb_u32(b, (uint32_t)type);
    if (b->rc < 0)
        return;
    memcpy(&n, b->data + 16, sizeof(n));
    n++;
    memcpy(b->data + 16, &n, sizeof(n));
}

static inline void gb_kv_str(struct buf *b, const char *key, const char *s)
{
    gb_key(b, key, MODEL_FILE_STRING);
    gb_text(b, s, strlen(s));
}

static inline void gb_kv_u32(struct buf *b, const char *key, uint32_t v)
{
    gb_key(b, key, MODEL_FILE_U32);
    gb_u32(b, v);
}

static inline void gb_kv_bool(struct buf *b, const char *key, bool v)
{
    gb_key(b, key, MODEL_FILE_BOOL);
    buf_putc(b, (char)v);
}

/* n elements must follow, each put by the caller. */
static inline void gb_kv_array(struct buf *b, const char *key, enum model_file_type elem,
                               uint64_t n)
{
    gb_key(b, key, MODEL_FILE_ARRAY);
    gb_u32(b, (uint32_t)elem);
    gb_u64(b, n);
}

#endif
