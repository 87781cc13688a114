/* model_file.c - see model_file.h. */
#include "format/model_file.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/room.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read in place");

#define MAX_OWN_BYTES ((size_t)1 << 31)
enum { MAX_KEY_BYTES = 65535 };

static const struct {
    const char *name;
    uint8_t bytes; /* 0: not a scalar of fixed size */
} types[MODEL_FILE_N_TYPES] = {
    [MODEL_FILE_U8] = {"u8", 1},         [MODEL_FILE_I8] = {"i8", 1},
    [MODEL_FILE_U16] = {"u16", 2},       [MODEL_FILE_I16] = {"i16", 2},
    [MODEL_FILE_U32] = {"u32", 4},       [MODEL_FILE_I32] = {"i32", 4},
    [MODEL_FILE_F32] = {"f32", 4},       [MODEL_FILE_BOOL] = {"bool", 1},
    [MODEL_FILE_STRING] = {"string", 0}, [MODEL_FILE_ARRAY] = {"array", 0},
    [MODEL_FILE_U64] = {"u64", 8},       [MODEL_FILE_I64] = {"i64", 8},
    [MODEL_FILE_F64] = {"f64", 8},
};

static const char *type_name(enum model_file_type t)
{
    return (unsigned)t < MODEL_FILE_N_TYPES ? types[t].name : "unknown";
}

size_t model_file_type_bytes(enum model_file_type t)
{
    return (unsigned)t < MODEL_FILE_N_TYPES ? types[t].bytes : 0;
}

int model_file_create(struct model_file **out, struct err *e)
{
    struct model_file *m = mem_zalloc(sizeof(*m));
    *out = m;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the model file");
    arena_init(&m->arena, MAX_OWN_BYTES);
    return 0;
}

void model_file_close(struct model_file *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_maps; i++)
        file_map_close(&m->maps[i]);
    for (size_t i = 0; i < m->n_documents; i++)
        file_map_close(&m->documents[i]);
    arena_fini(&m->arena);
    mem_free(m->values);
    mem_free(m->tensors);
    mem_free(m->maps);
    mem_free(m->documents);
    mem_free(m);
}

void model_file_trim(const struct model_file *m)
{
    for (size_t i = 0; i < m->n_maps; i++)
        file_map_trim(&m->maps[i], m->maps[i].n_bytes);
}

void model_file_trim_metadata(const struct model_file *m)
{
    if (m->n_maps > 0 && m->header_bytes > 0)
        file_map_trim(&m->maps[0], m->header_bytes);
    for (size_t i = 0; i < m->n_documents; i++)
        file_map_trim(&m->documents[i], m->documents[i].n_bytes);
}

bool model_file_changed(const struct model_file *m)
{
    for (size_t i = 0; i < m->n_maps; i++)
        if (file_map_changed(&m->maps[i]))
            return true;
    return false;
}

/* ---- tensors ------------------------------------------------------------------------------- */

int model_file_need(const struct model_file_tensor *t, struct err *e)
{
    return t->map && t->data
               ? file_map_need(t->map, (size_t)(t->data - t->map->bytes), t->n_bytes, e)
               : 0;
}

int model_file_fill(const struct model_file *m, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < m->n_maps && rc == 0; i++)
        rc = file_map_need(&m->maps[i], 0, m->maps[i].n_bytes, e);
    return rc;
}

void model_file_read(const struct model_file_tensor *t, size_t at, void *out, size_t n)
{
    if (!t->map || t->in_memory)
        memcpy(out, t->data + at, n);
    else
        file_map_read(t->map, (size_t)(t->data - t->map->bytes) + at, out, n);
}

/* out[r][c] = in[c][r] for cells of a type; in has rows of `stride` cells. */
#define TRANSPOSE(type)                                                                            \
    for (size_t c = 0; c < n_cols; c++)                                                            \
        for (size_t r = 0; r < n_rows; r++) {                                                      \
            type cell;                                                                             \
            memcpy(&cell, in + (c * stride + r) * sizeof(cell), sizeof(cell));                     \
            memcpy(out + (r * n_cols + c) * sizeof(cell), &cell, sizeof(cell));                    \
        }

static void transpose(uint8_t *out, const uint8_t *in, size_t stride, size_t n_rows, size_t n_cols,
                      size_t size)
{
    if (size == sizeof(uint32_t)) {
        TRANSPOSE(uint32_t)
    } else {
        TRANSPOSE(uint16_t)
    }
}
#undef TRANSPOSE

/* Where row r of a matrix in this order is stored. */
static uint64_t stored_row(const struct model_file_tensor *t, uint64_t r)
{
    if (t->order == MODEL_FILE_HALVES) {
        const uint64_t width = t->dims[1] / t->n_heads, in_head = r % width;
        return r - in_head + in_head / 2 + (in_head % 2) * (width / 2);
    }
    if (t->order == MODEL_FILE_QKV) {
        const uint64_t third = t->dims[1] / 3, width = third / t->n_heads;
        const uint64_t part = r / third, head = r % third / width;
        return (head * 3 + part) * width + r % width;
    }
    return r;
}

void model_file_rows(const struct model_file_tensor *t, uint64_t row, uint64_t n_rows, uint64_t col,
                     uint64_t n_cols, void *out)
{
    const struct quant_info *qi = quant_info(t->type);
    const size_t row_bytes = (size_t)(t->dims[0] / qi->block) * qi->block_bytes;
    const size_t part = (size_t)(n_cols / qi->block) * qi->block_bytes;
    const size_t at = (size_t)(col / qi->block) * qi->block_bytes;
    const uint8_t *data = t->order == MODEL_FILE_PLAIN ? t->data : t->stored;

    assert(t->order != MODEL_FILE_COMPUTED);
    if (t->order == MODEL_FILE_TRANSPOSED) {
        transpose(out, t->stored + (size_t)(col * t->dims[1] + row) * qi->block_bytes,
                  (size_t)t->dims[1], (size_t)n_rows, (size_t)n_cols, qi->block_bytes);
        return;
    }
    for (uint64_t r = row; r < row + n_rows; r++)
        memcpy((uint8_t *)out + (size_t)(r - row) * part,
               data + (size_t)stored_row(t, r) * row_bytes + at, part);
}

void model_file_row_f32(const struct model_file_tensor *t, uint64_t row, float *out)
{
    enum { PART = 256 }; /* columns at a time, where the stored order is another one */
    const struct quant_info *qi = quant_info(t->type);
    const size_t n = (size_t)t->dims[0];
    uint8_t cells[PART * sizeof(float)];

    if (t->order == MODEL_FILE_COMPUTED) {
        t->row(t->row_ctx, row, out);
        return;
    }
    if (t->order == MODEL_FILE_PLAIN) {
        quant_to_f32(t->type, t->data + (size_t)row * (n / qi->block) * qi->block_bytes, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += PART) {
        size_t part = n - at < PART ? n - at : PART;
        model_file_rows(t, row, 1, at, part, cells);
        quant_to_f32(t->type, cells, out + at, part);
    }
}

const struct model_file_tensor *model_file_find_tensor(const struct model_file *m, const char *name)
{
    for (size_t i = 0; i < m->n_tensors; i++)
        if (str_is(m->tensors[i].name, name))
            return &m->tensors[i];
    return NULL;
}

uint64_t model_file_n_params(const struct model_file *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n_tensors; i++) {
        const uint64_t *d = m->tensors[i].dims;
        n += d[0] * d[1] * d[2] * d[3];
    }
    return n;
}

/* ---- values -------------------------------------------------------------------------------- */

static struct model_file_value *find(const struct model_file *m, const char *key, size_t n)
{
    for (size_t i = 0; i < m->n_values; i++)
        if (m->values[i].key.n == n && memcmp(m->values[i].key.p, key, n) == 0)
            return &m->values[i];
    return NULL;
}

const struct model_file_value *model_file_find(const struct model_file *m, const char *key)
{
    return find(m, key, strlen(key));
}

bool model_file_i64_at(const struct model_file_value *value, uint64_t i, int64_t *v)
{
    if (i >= value->n_elems)
        return false;
    switch (value->elem_type) {
#define LOAD(T, ctype)                                                                             \
    case MODEL_FILE_##T: {                                                                         \
        ctype x;                                                                                   \
        memcpy(&x, value->data + i * sizeof(x), sizeof(x));                                        \
        *v = (int64_t)x;                                                                           \
        return true;                                                                               \
    }
        LOAD(U8, uint8_t)
        LOAD(I8, int8_t)
        LOAD(BOOL, uint8_t)
        LOAD(U16, uint16_t)
        LOAD(I16, int16_t)
        LOAD(U32, uint32_t)
        LOAD(I32, int32_t)
        LOAD(I64, int64_t)
#undef LOAD
    case MODEL_FILE_U64: {
        uint64_t x;
        memcpy(&x, value->data + i * sizeof(x), sizeof(x));
        *v = (int64_t)x;
        return x <= INT64_MAX;
    }
    default:
        return false;
    }
}

bool model_file_f64_at(const struct model_file_value *value, uint64_t i, double *v)
{
    int64_t integer;
    if (i >= value->n_elems)
        return false;
    switch (value->elem_type) {
    case MODEL_FILE_F32: {
        float x;
        memcpy(&x, value->data + i * sizeof(x), sizeof(x));
        *v = (double)x;
        return true;
    }
    case MODEL_FILE_F64:
        memcpy(v, value->data + i * sizeof(*v), sizeof(*v));
        return true;
    default:
        if (!model_file_i64_at(value, i, &integer))
            return false;
        *v = (double)integer;
        return true;
    }
}

bool model_file_get_u64(const struct model_file *m, const char *key, uint64_t *v)
{
    const struct model_file_value *value = model_file_find(m, key);
    int64_t x;
    if (!value || value->type == MODEL_FILE_ARRAY || !model_file_i64_at(value, 0, &x) || x < 0)
        return false;
    *v = (uint64_t)x;
    return true;
}

bool model_file_get_f64(const struct model_file *m, const char *key, double *v)
{
    const struct model_file_value *value = model_file_find(m, key);
    return value && value->type != MODEL_FILE_ARRAY && model_file_f64_at(value, 0, v);
}

bool model_file_get_bool(const struct model_file *m, const char *key, bool *v)
{
    const struct model_file_value *value = model_file_find(m, key);
    if (!value || value->type != MODEL_FILE_BOOL)
        return false;
    *v = value->data[0] != 0;
    return true;
}

bool model_file_get_str(const struct model_file *m, const char *key, struct str *v)
{
    const struct model_file_value *value = model_file_find(m, key);
    if (!value || value->type != MODEL_FILE_STRING)
        return false;
    *v = (struct str){(const char *)value->data, value->n_bytes};
    return true;
}

/* ---- filling ------------------------------------------------------------------------------- */

int model_file_check(const struct model_file *m, struct err *e)
{
    if (m->first.code < 0 && e)
        *e = m->first;
    return m->first.code;
}

static void no_memory(struct model_file *m, const char *key, size_t n)
{
    int rc = m->arena.rc < 0 ? m->arena.rc : SHOAL_ENOMEM;
    if (m->first.code == 0)
        err_set(&m->first, rc, "metadata key %.*s: %s", (int)n, key, err_text(rc));
}

/* The value of a key, new or old; NULL when it failed. */
static struct model_file_value *start(struct model_file *m, const char *key, size_t n)
{
    if (m->first.code < 0)
        return NULL;
    if (n == 0 || n > MAX_KEY_BYTES || memchr(key, 0, n)) {
        err_set(&m->first, SHOAL_EINVAL, "metadata key of %zu bytes", n);
        return NULL;
    }
    struct model_file_value *value = find(m, key, n);
    if (value)
        return value;
    bool ok = room_make(&m->values, &m->cap_values, m->n_values, sizeof(*value), 32);
    const char *copy = ok ? arena_copy(&m->arena, key, n) : NULL;
    if (!copy) {
        no_memory(m, key, n);
        return NULL;
    }
    value = &m->values[m->n_values++];
    *value = (struct model_file_value){.key = {copy, n}};
    return value;
}

/* Sets a value to bytes that live as long as m. Failures have already been reported. */
static void set(struct model_file *m, const char *key, size_t n_key, enum model_file_type type,
                enum model_file_type elem, uint64_t n_elems, const void *data, size_t n)
{
    struct model_file_value *value = start(m, key, n_key);
    if (!value)
        return;
    value->type = type;
    value->elem_type = elem;
    value->n_elems = n_elems;
    value->data = data;
    value->n_bytes = n;
}

/* As set, but the bytes are copied. */
static void put(struct model_file *m, const char *key, size_t n_key, enum model_file_type type,
                enum model_file_type elem, uint64_t n_elems, const void *data, size_t n)
{
    char *copy = m->first.code < 0 ? NULL : arena_bytes(&m->arena, n ? n : 1);
    if (!copy) {
        no_memory(m, key, n_key);
        return;
    }
    if (n > 0)
        memcpy(copy, data, n);
    set(m, key, n_key, type, elem, n_elems, copy, n);
}

void model_file_put_scalar(struct model_file *m, const char *key, enum model_file_type type,
                           const void *value)
{
    size_t n = model_file_type_bytes(type);
    if (n > 0)
        put(m, key, strlen(key), type, type, 1, value, n);
    else if (m->first.code == 0)
        err_set(&m->first, SHOAL_EINVAL, "%s is not a scalar type", type_name(type));
}

void model_file_put_u32(struct model_file *m, const char *key, uint32_t v)
{
    model_file_put_scalar(m, key, MODEL_FILE_U32, &v);
}

void model_file_put_f32(struct model_file *m, const char *key, float v)
{
    model_file_put_scalar(m, key, MODEL_FILE_F32, &v);
}

void model_file_put_bool(struct model_file *m, const char *key, bool v)
{
    uint8_t byte = v;
    model_file_put_scalar(m, key, MODEL_FILE_BOOL, &byte);
}

void model_file_put_str(struct model_file *m, const char *key, const char *s, size_t n)
{
    put(m, key, strlen(key), MODEL_FILE_STRING, MODEL_FILE_STRING, 1, s, n);
}

void model_file_put_array(struct model_file *m, const char *key, enum model_file_type elem,
                          const void *v, size_t n)
{
    size_t bytes;
    if (model_file_type_bytes(elem) > 0 && mem_mul(&bytes, n, model_file_type_bytes(elem)))
        put(m, key, strlen(key), MODEL_FILE_ARRAY, elem, n, v, bytes);
    else if (m->first.code == 0)
        err_set(&m->first, SHOAL_EINVAL, "%s: an array of %zu %s is too large", key, n,
                type_name(elem));
}

void model_file_put_strings(struct model_file *m, const char *key, const struct str *v, size_t n)
{
    size_t total = 0, n_key = strlen(key);
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++)
        fits = mem_add(&total, total, v[i].n) && mem_add(&total, total, sizeof(uint64_t));
    char *all = fits && m->first.code == 0 ? arena_bytes(&m->arena, total ? total : 1) : NULL;
    if (!all) {
        no_memory(m, key, n_key);
        return;
    }
    char *p = all;
    for (size_t i = 0; i < n; i++) {
        uint64_t len = v[i].n;
        memcpy(p, &len, sizeof(len));
        p += sizeof(len);
        if (len > 0)
            memcpy(p, v[i].p, v[i].n);
        p += len;
    }
    set(m, key, n_key, MODEL_FILE_ARRAY, MODEL_FILE_STRING, n, all, total);
}

void model_file_put_all(struct model_file *m, const struct model_file *from)
{
    for (size_t i = 0; i < from->n_values; i++) {
        const struct model_file_value *v = &from->values[i];
        put(m, v->key.p, v->key.n, v->type, v->elem_type, v->n_elems, v->data, v->n_bytes);
    }
}

void model_file_put_document(struct model_file *m, const char *key, bool binary,
                             struct file_map *map)
{
    size_t n_key = strlen(key);
    struct file_map *all =
        m->first.code < 0 ? NULL : mem_realloc(m->documents, (m->n_documents + 1) * sizeof(*all));
    if (!all) {
        no_memory(m, key, n_key);
        file_map_close(map);
        return;
    }
    m->documents = all;
    all[m->n_documents++] = *map;
    set(m, key, n_key, binary ? MODEL_FILE_ARRAY : MODEL_FILE_STRING,
        binary ? MODEL_FILE_U8 : MODEL_FILE_STRING, binary ? map->n_bytes : 1, map->bytes,
        map->n_bytes);
    *map = (struct file_map){0};
}

struct model_file_tensor *model_file_add_tensor(struct model_file *m)
{
    if (!room_make(&m->tensors, &m->cap_tensors, m->n_tensors, sizeof(*m->tensors), 32))
        return NULL;
    struct model_file_tensor *t = &m->tensors[m->n_tensors++];
    *t = (struct model_file_tensor){0};
    return t;
}

void *model_file_alloc(struct model_file *m, size_t n)
{
    return arena_zalloc(&m->arena, n ? n : 1);
}
