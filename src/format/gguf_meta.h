/* gguf_meta.h - a growing list of GGUF metadata, in the file's own encoding.
 *
 * Keys keep the order of first mention; a key set again gets the new value.
 *
 * Thread:    belongs to its caller.
 * Ownership: fini frees (a zeroed list is an empty one).  All arguments are copied.
 * Failure:   sticky: the first failure stays in `first`, later calls do nothing; check once. */
#ifndef SHOAL_FORMAT_GGUF_META_H
#define SHOAL_FORMAT_GGUF_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "format/gguf.h"

struct gguf_meta_kv {
    char *key;
    struct buf value; /* type and value, as the file has them */
};

struct gguf_meta {
    struct gguf_meta_kv *kvs;
    size_t n, cap;
    struct err first;
};

#define GGUF_META_MAX_BYTES ((size_t)1 << 31)
#define GGUF_META_VERSION 3u /* of the header that is written */

void gguf_meta_fini(struct gguf_meta *m);
/* type is no STRING and no ARRAY, value points to one of it (BOOL: one byte). */
void gguf_meta_scalar(struct gguf_meta *m, const char *key, enum gguf_type type, const void *value);
void gguf_meta_u32(struct gguf_meta *m, const char *key, uint32_t v);
void gguf_meta_f32(struct gguf_meta *m, const char *key, float v);
void gguf_meta_bool(struct gguf_meta *m, const char *key, bool v);
void gguf_meta_str(struct gguf_meta *m, const char *key, const char *s, size_t n);
/* n elements of a scalar type. */
void gguf_meta_array(struct gguf_meta *m, const char *key, enum gguf_type elem, const void *v,
                     size_t n);
void gguf_meta_strings(struct gguf_meta *m, const char *key, const struct gguf_str *v, size_t n);
/* Every key of g as it is there. */
void gguf_meta_copy(struct gguf_meta *m, const struct gguf *g);
void gguf_meta_remove(struct gguf_meta *m, const char *key);
/* NULL when there is none. */
const struct gguf_meta_kv *gguf_meta_find(const struct gguf_meta *m, const char *key);

/* The file's header up to its tensor directory. */
void gguf_meta_encode(const struct gguf_meta *m, struct buf *out, uint64_t n_tensors);
void gguf_meta_put_u32(struct buf *b, uint32_t v);
void gguf_meta_put_u64(struct buf *b, uint64_t v);
void gguf_meta_put_str(struct buf *b, const char *s, size_t n);

#endif
