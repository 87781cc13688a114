/* gguf.h - reader of GGUF v2 and v3 files: key-value metadata and tensor directory.  Other sources
 * of models are shown as such a file would be (model_file.h): whoever reads this needs no other.
 *
 * Thread:    immutable after open; any number of readers.
 * Ownership: gguf_open maps the file read-only, gguf_parse borrows the caller's bytes; both must
 *            stay until gguf_close.  Every pointer handed out points into those bytes, or into
 *            memory that the gguf owns.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (what and at which offset), SHOAL_EUNSUPPORTED (a tensor type
 *            by name), SHOAL_ENOMEM; then *out is NULL.  Nothing in the file is trusted: every
 *            count, length and offset is checked against what is really there. */
#ifndef SHOAL_FORMAT_GGUF_H
#define SHOAL_FORMAT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rd.h"
#include "kernels/quants/quant.h"
#include "base/file_map.h"

enum gguf_type {
    GGUF_TYPE_U8 = 0,
    GGUF_TYPE_I8 = 1,
    GGUF_TYPE_U16 = 2,
    GGUF_TYPE_I16 = 3,
    GGUF_TYPE_U32 = 4,
    GGUF_TYPE_I32 = 5,
    GGUF_TYPE_F32 = 6,
    GGUF_TYPE_BOOL = 7,
    GGUF_TYPE_STRING = 8,
    GGUF_TYPE_ARRAY = 9,
    GGUF_TYPE_U64 = 10,
    GGUF_TYPE_I64 = 11,
    GGUF_TYPE_F64 = 12,
};

struct gguf_str { /* not NUL-terminated */
    const char *p;
    size_t n;
};

struct gguf_kv {
    struct gguf_str key;
    enum gguf_type type;      /* of the value, or GGUF_TYPE_ARRAY */
    enum gguf_type elem_type; /* of an array's elements; arrays of arrays are refused */
    uint64_t n_elems;         /* of an array; 1 for scalars */
    const uint8_t *data;      /* first byte of the value (after type and count) */
    size_t data_bytes;
};

/* The strings of an array, one after the other: there is no index, since vocabularies are large and
 * read once.  Bounded again, since somebody may write to the file meanwhile. */
struct gguf_strings {
    struct rd r;
    uint64_t left;
};

/* How a tensor's values lie in its file.  Only views of other formats have anything but PLAIN. */
enum gguf_order {
    GGUF_ORDER_PLAIN,
    GGUF_ORDER_TURNED, /* transposed */
    GGUF_ORDER_HALVES, /* the even rows of a head, then its odd ones; head by head */
};

#define GGUF_MAX_DIMS 4
struct gguf_tensor {
    struct gguf_str name;
    enum quant_type type;
    uint32_t n_dims;
    uint64_t dims[GGUF_MAX_DIMS]; /* dims[0] is the row length (fastest); unused ones are 1 */
    const uint8_t *data;          /* at any alignment; NULL when not PLAIN: see gguf_rows */
    size_t n_bytes;
    const struct file_map *map; /* the file it comes from; NULL: bytes given to gguf_parse */
    bool in_memory;             /* made of that file's bytes: data is memory, not the mapping */
    enum gguf_order order;      /* other than PLAIN only for matrices of F32, F16 and BF16 */
    uint32_t n_heads;           /* of HALVES */
    const uint8_t *stored;      /* in the file, in that order */
};

struct gguf {
    const uint8_t *bytes; /* the header, and in a GGUF file all of it */
    size_t n_bytes;       /* of the model's files */
    struct file_map *maps;
    size_t n_maps;
    void **owned; /* memory of a view: mem_free each */
    size_t n_owned;
    uint32_t version; /* 0: no GGUF file */
    uint32_t alignment;
    size_t data_offset; /* where tensor data begins */
    struct gguf_kv *kvs;
    size_t n_kvs;
    struct gguf_tensor *tensors;
    size_t n_tensors;
};

SHOAL_MUST_CHECK int gguf_open(struct gguf **out, const char *path, struct err *e);
/* bytes: the whole file, at any alignment. */
SHOAL_MUST_CHECK int gguf_parse(struct gguf **out, const void *bytes, size_t n, struct err *e);
void gguf_close(struct gguf *g);
/* Gives the files' pages back: see file_map_trim; trim_meta: only those of a file's metadata. */
void gguf_trim(const struct gguf *g);
void gguf_trim_meta(const struct gguf *g);
/* Copies n bytes at offset `at` of a PLAIN tensor, which must be inside of it, without mapping
 * pages where it lies in a file. */
void gguf_read(const struct gguf *g, const struct gguf_tensor *t, size_t at, void *out, size_t n);

/* Columns [col, col + n_cols) of n_rows rows from `row` on, one after the other, of a matrix in any
 * order.  PLAIN ones of quantized types: whole blocks of columns. */
void gguf_rows(const struct gguf_tensor *t, uint64_t row, uint64_t n_rows, uint64_t col,
               uint64_t n_cols, void *out);

const char *gguf_type_name(enum gguf_type t);

/* NULL when there is none. */
const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);
/* Values in all tensors together. */
uint64_t gguf_n_params(const struct gguf *g);

/* true and the value when the key is there and its type converts without loss. */
bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *v); /* any integer >= 0, bool */
bool gguf_get_f64(const struct gguf *g, const char *key, double *v);   /* any number */
bool gguf_get_bool(const struct gguf *g, const char *key, bool *v);
bool gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v);
/* Element i of an array of numbers as double or of integers as int64; false when out of range or
 * of another kind. */
bool gguf_kv_f64(const struct gguf_kv *kv, uint64_t i, double *v);
bool gguf_kv_i64(const struct gguf_kv *kv, uint64_t i, int64_t *v);
/* kv may be NULL; what is no array of strings has none. */
static inline struct gguf_strings gguf_kv_strings(const struct gguf_kv *kv)
{
    if (!kv || kv->type != GGUF_TYPE_ARRAY || kv->elem_type != GGUF_TYPE_STRING)
        return (struct gguf_strings){0};
    return (struct gguf_strings){rd_make(kv->data, kv->data_bytes), kv->n_elems};
}
static inline bool gguf_strings_next(struct gguf_strings *it, struct gguf_str *s)
{
    if (it->left == 0)
        return false;
    it->left--;
    s->n = (size_t)rd_u64(&it->r);
    s->p = (const char *)rd_take(&it->r, s->n);
    return !it->r.bad;
}

#endif
