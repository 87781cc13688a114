/* model_file.h - a model as its files describe it: metadata, tensors, and where their bytes are.
 *
 * Every format fills one directly: gguf.h, hf/hf_folder.h, convert/convert_llama2c.h.  Readers
 * (tokenizer, model, engine, eval, commands) see nothing else; model_open.h opens any of them.
 *
 * Metadata is a list of typed key-value pairs.  The common vocabulary is that of GGUF, prefixed
 * keys included: general.architecture, <architecture>.block_count, tokenizer.ggml.tokens.  A format
 * with settings of its own translates them.  The documents of a folder (tokenizer.json and others)
 * are strings under the keys that hf_folder.h lists; they point into the mapped documents.
 *
 * Thread:    filled by one thread; immutable afterwards: any number of readers.
 * Ownership: model_file_create gives the model to the caller, model_file_close takes it back (NULL
 *            is fine) with its mappings.  Every pointer handed out is borrowed until then.
 * Failure:   SHOAL_ENOMEM from create; the put functions are sticky: the first failure is kept,
 *            later calls do nothing, model_file_check reports it. */
#ifndef SHOAL_FORMAT_MODEL_FILE_H
#define SHOAL_FORMAT_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file/file_map.h"
#include "base/rd.h"
#include "base/str.h"
#include "kernels/quants/quant.h"

enum model_file_type { /* numbered as in GGUF */
                       MODEL_FILE_U8 = 0,
                       MODEL_FILE_I8 = 1,
                       MODEL_FILE_U16 = 2,
                       MODEL_FILE_I16 = 3,
                       MODEL_FILE_U32 = 4,
                       MODEL_FILE_I32 = 5,
                       MODEL_FILE_F32 = 6,
                       MODEL_FILE_BOOL = 7,
                       MODEL_FILE_STRING = 8,
                       MODEL_FILE_ARRAY = 9,
                       MODEL_FILE_U64 = 10,
                       MODEL_FILE_I64 = 11,
                       MODEL_FILE_F64 = 12,
                       MODEL_FILE_N_TYPES
};

struct model_file_value {
    struct str key;
    enum model_file_type type; /* of the value, or ARRAY */
    /* element type of an array (never ARRAY); otherwise the same as type */
    enum model_file_type elem_type;
    uint64_t n_elems; /* of an array; 1 for scalars */
    /* Numbers: one after the other, little-endian, at any alignment.  A string: its bytes.  An
     * array of strings: each a u64 length, then its bytes; so a vocabulary is read where it lies.
     */
    const uint8_t *data;
    size_t n_bytes;
};

/* Iterates over the strings of an array.  There is no index, since vocabularies are large and read
 * once.  Bounds are checked again, since the mapped file may change meanwhile. */
struct model_file_strings {
    struct rd r;
    uint64_t left;
};

/* How a tensor's values are stored.  A reader that wants another order than PLAIN's asks
 * model_file_rows. */
enum model_file_order {
    MODEL_FILE_PLAIN,      /* row by row */
    MODEL_FILE_TRANSPOSED, /* column by column */
    MODEL_FILE_HALVES,     /* per head: the even rows, then the odd ones */
    MODEL_FILE_QKV,        /* per head: the rows of its query, of its key, of its value */
    MODEL_FILE_COMPUTED,   /* made by `row`; type is F32.  Only converters have such tensors */
};

#define MODEL_FILE_MAX_DIMS 4
struct model_file_tensor {
    struct str name;
    enum quant_type type;
    uint32_t n_dims;
    uint64_t dims[MODEL_FILE_MAX_DIMS]; /* dims[0] is the row length (fastest); unused ones are 1 */
    const uint8_t *data;                /* at any alignment; NULL unless PLAIN */
    size_t n_bytes;                     /* as stored */
    const struct file_map *map;         /* the file it comes from; NULL: bytes of the caller */
    bool in_memory;              /* made of that file's bytes: data is memory, not the mapping */
    enum model_file_order order; /* other than PLAIN only for matrices of F32, F16 and BF16 */
    uint32_t n_heads;            /* of HALVES and QKV */
    const uint8_t *stored;       /* TRANSPOSED, HALVES, QKV: the bytes in that order */
    void (*row)(const void *ctx, uint64_t row, float *out); /* COMPUTED; any thread may call it */
    const void *row_ctx;
};

struct model_file {
    struct model_file_value *values;
    size_t n_values;
    struct model_file_tensor *tensors;
    size_t n_tensors;
    size_t n_bytes;        /* of the model's files */
    size_t n_maps;         /* files that hold tensors */
    uint32_t gguf_version; /* 0: not a GGUF file */
    /* private to src/format */
    struct file_map *maps;      /* [n_maps] */
    struct file_map *documents; /* [n_documents] */
    size_t n_documents;
    size_t header_bytes; /* first bytes of maps[0], which hold the metadata of a GGUF file */
    size_t cap_values, cap_tensors;
    struct arena arena; /* keys, values, names and tensors that are in no file */
    struct err first;   /* failure of a put function */
};

/* ---- reading ------------------------------------------------------------------------------- */

void model_file_close(struct model_file *m);
/* Gives the files' pages back (file_map_trim): of all files; only of what holds metadata. */
void model_file_trim(const struct model_file *m);
void model_file_trim_metadata(const struct model_file *m);
/* True if a file that holds tensors was truncated or overwritten since it was opened. */
bool model_file_changed(const struct model_file *m);

size_t model_file_type_bytes(enum model_file_type t); /* 0: STRING and ARRAY */
/* NULL when there is none. */
const struct model_file_value *model_file_find(const struct model_file *m, const char *key);
const struct model_file_tensor *model_file_find_tensor(const struct model_file *m,
                                                       const char *name);
/* Values in all tensors together. */
uint64_t model_file_n_params(const struct model_file *m);

/* true and the value when the key is there and its type converts without loss. */
bool model_file_get_u64(const struct model_file *m, const char *key,
                        uint64_t *v); /* any integer >= 0, bool */
bool model_file_get_f64(const struct model_file *m, const char *key, double *v); /* any number */
bool model_file_get_bool(const struct model_file *m, const char *key, bool *v);
bool model_file_get_str(const struct model_file *m, const char *key, struct str *v);
/* Element i of an array of numbers as double, or of integers as int64; false when i is out of range
 * or the type is another one. */
bool model_file_f64_at(const struct model_file_value *value, uint64_t i, double *v);
bool model_file_i64_at(const struct model_file_value *value, uint64_t i, int64_t *v);
/* value may be NULL; anything but an array of strings has none. */
static inline struct model_file_strings model_file_strings(const struct model_file_value *value)
{
    if (!value || value->type != MODEL_FILE_ARRAY || value->elem_type != MODEL_FILE_STRING)
        return (struct model_file_strings){0};
    return (struct model_file_strings){rd_make(value->data, value->n_bytes), value->n_elems};
}
static inline bool model_file_strings_next(struct model_file_strings *it, struct str *s)
{
    if (it->left == 0)
        return false;
    it->left--;
    s->n = (size_t)rd_u64(&it->r);
    s->p = (const char *)rd_take(&it->r, s->n);
    return !it->r.bad;
}

/* Before the bytes of a tensor are read, if parts of its file may not be there yet
 * (model_open_parts); fill: of all tensors.  While the model has one reader. */
SHOAL_MUST_CHECK int model_file_need(const struct model_file_tensor *t, struct err *e);
SHOAL_MUST_CHECK int model_file_fill(const struct model_file *m, struct err *e);
/* Copies n bytes at offset `at` of a PLAIN tensor, which must be inside of it, without mapping
 * pages where it lies in a file. */
void model_file_read(const struct model_file_tensor *t, size_t at, void *out, size_t n);
/* Columns [col, col + n_cols) of n_rows rows from `row` on, one after the other, of a matrix in any
 * order but COMPUTED.  PLAIN ones of quantized types: whole blocks of columns. */
void model_file_rows(const struct model_file_tensor *t, uint64_t row, uint64_t n_rows, uint64_t col,
                     uint64_t n_cols, void *out);
/* One row of a tensor in any order, as dims[0] floats. */
void model_file_row_f32(const struct model_file_tensor *t, uint64_t row, float *out);

/* ---- filling ------------------------------------------------------------------------------- */

SHOAL_MUST_CHECK int model_file_create(struct model_file **out, struct err *e);
/* The first failure of the functions below, or 0. */
SHOAL_MUST_CHECK int model_file_check(const struct model_file *m, struct err *e);

/* Keys keep the order of first mention; a key put again gets the new value.  Everything is copied.
 * scalar: type is neither STRING nor ARRAY, value points to one of it (BOOL: one byte). */
void model_file_put_scalar(struct model_file *m, const char *key, enum model_file_type type,
                           const void *value);
void model_file_put_u32(struct model_file *m, const char *key, uint32_t v);
void model_file_put_f32(struct model_file *m, const char *key, float v);
void model_file_put_bool(struct model_file *m, const char *key, bool v);
void model_file_put_str(struct model_file *m, const char *key, const char *s, size_t n);
/* n elements of a scalar type. */
void model_file_put_array(struct model_file *m, const char *key, enum model_file_type elem,
                          const void *v, size_t n);
void model_file_put_strings(struct model_file *m, const char *key, const struct str *v, size_t n);
/* Every value of another model. */
void model_file_put_all(struct model_file *m, const struct model_file *from);
/* The whole of a mapped file as a string, or with `binary` as an array of bytes.  The mapping now
 * belongs to m. */
void model_file_put_document(struct model_file *m, const char *key, bool binary,
                             struct file_map *map);

/* A new zeroed tensor at the end, or NULL; valid until the next one is added. */
struct model_file_tensor *model_file_add_tensor(struct model_file *m);
/* Memory that lives as long as m; zeroed, or NULL. */
void *model_file_alloc(struct model_file *m, size_t n);

#endif
