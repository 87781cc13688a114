/* gguf.c - see gguf.h.  One pass over the header with a bounded reader; no byte is trusted. */
#include "format/gguf.h"

#include <string.h>

#include "base/mem.h"
#include "base/rd.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF is read in place as little-endian");

/* Smallest encodings: they bound the counts a file may claim by the bytes that are left. */
enum {
    MIN_KV_BYTES = 8 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8,
    MIN_STRING_BYTES = 8,
    MAX_NAME_BYTES = 256, /* the format allows 64 for tensors; be generous, not endless */
};

static const struct {
    const char *name;
    uint8_t bytes; /* 0: variable */
} types[] = {
    [GGUF_TYPE_U8] = {"u8", 1},         [GGUF_TYPE_I8] = {"i8", 1},
    [GGUF_TYPE_U16] = {"u16", 2},       [GGUF_TYPE_I16] = {"i16", 2},
    [GGUF_TYPE_U32] = {"u32", 4},       [GGUF_TYPE_I32] = {"i32", 4},
    [GGUF_TYPE_F32] = {"f32", 4},       [GGUF_TYPE_BOOL] = {"bool", 1},
    [GGUF_TYPE_STRING] = {"string", 0}, [GGUF_TYPE_ARRAY] = {"array", 0},
    [GGUF_TYPE_U64] = {"u64", 8},       [GGUF_TYPE_I64] = {"i64", 8},
    [GGUF_TYPE_F64] = {"f64", 8},
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

const char *gguf_type_name(enum gguf_type t)
{
    return (size_t)t < N_TYPES ? types[t].name : "unknown";
}

static struct gguf_str read_str(struct rd *r)
{
    struct gguf_str s = {NULL, 0};
    uint64_t n = rd_u64(r);
    const uint8_t *p = rd_take(r, n);
    if (p) {
        s.p = (const char *)p;
        s.n = (size_t)n;
    }
    return s;
}

static int truncated(const struct rd *r, const char *what, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "file ends inside %s at offset %zu", what, rd_pos(r));
}

static int read_string_array(struct gguf_kv *kv, struct rd *r, struct err *e)
{
    if (kv->n_elems > rd_left(r) / MIN_STRING_BYTES)
        return err_set(e, SHOAL_EFORMAT, "key %.*s claims %llu strings, the file is too short",
                       (int)kv->key.n, kv->key.p, (unsigned long long)kv->n_elems);
    for (uint64_t i = 0; i < kv->n_elems; i++)
        (void)read_str(r);
    return r->bad ? truncated(r, "an array of strings", e) : 0;
}

static int read_kv(struct gguf_kv *kv, struct rd *r, struct err *e)
{
    kv->key = read_str(r);
    uint32_t type = rd_u32(r);
    if (r->bad)
        return truncated(r, "a metadata key", e);
    if (kv->key.n == 0 || kv->key.n > 65535)
        return err_set(e, SHOAL_EFORMAT, "metadata key of %zu bytes at offset %zu", kv->key.n,
                       rd_pos(r));
    if (type >= N_TYPES)
        return err_set(e, SHOAL_EFORMAT, "key %.*s has unknown type %u", (int)kv->key.n, kv->key.p,
                       type);
    kv->type = (enum gguf_type)type;
    kv->elem_type = kv->type;
    kv->n_elems = 1;
    if (kv->type == GGUF_TYPE_ARRAY) {
        uint32_t elem = rd_u32(r);
        kv->n_elems = rd_u64(r);
        if (r->bad)
            return truncated(r, "an array header", e);
        if (elem >= N_TYPES || elem == GGUF_TYPE_ARRAY)
            return err_set(e, SHOAL_EFORMAT, "key %.*s is an array of unsupported type %u",
                           (int)kv->key.n, kv->key.p, elem);
        kv->elem_type = (enum gguf_type)elem;
    }
    size_t from = rd_pos(r);
    kv->data = r->p;
    if (kv->elem_type == GGUF_TYPE_STRING) {
        if (kv->type == GGUF_TYPE_ARRAY) {
            int rc = read_string_array(kv, r, e);
            if (rc < 0)
                return rc;
        } else {
            (void)read_str(r);
        }
    } else {
        uint64_t n;
        if (__builtin_mul_overflow(kv->n_elems, (uint64_t)types[kv->elem_type].bytes, &n))
            n = UINT64_MAX;
        (void)rd_take(r, n);
    }
    if (r->bad)
        return err_set(e, SHOAL_EFORMAT, "value of %.*s leaves the file (offset %zu)",
                       (int)kv->key.n, kv->key.p, from);
    kv->data_bytes = rd_pos(r) - from;
    return 0;
}

static int read_tensor(struct gguf_tensor *t, uint64_t *offset, struct rd *r, struct err *e)
{
    t->name = read_str(r);
    t->n_dims = rd_u32(r);
    if (r->bad)
        return truncated(r, "a tensor's name", e);
    if (t->name.n == 0 || t->name.n > MAX_NAME_BYTES)
        return err_set(e, SHOAL_EFORMAT, "tensor name of %zu bytes at offset %zu", t->name.n,
                       rd_pos(r));
    if (t->n_dims == 0 || t->n_dims > GGUF_MAX_DIMS)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s has %u dimensions", (int)t->name.n, t->name.p,
                       t->n_dims);
    for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++)
        t->dims[d] = d < t->n_dims ? rd_u64(r) : 1;
    uint32_t type = rd_u32(r);
    *offset = rd_u64(r);
    if (r->bad)
        return truncated(r, "a tensor's description", e);
    const struct quant_info *qi = quant_info(type);
    if (!qi)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s has unknown type number %u", (int)t->name.n,
                       t->name.p, type);
    if (!qi->supported)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.*s has type %s, which is not supported",
                       (int)t->name.n, t->name.p, qi->name);
    t->type = (enum quant_type)type;

    size_t n_rows = 1, n_bytes;
    bool ok = t->dims[0] > 0 && t->dims[0] <= INT32_MAX && t->dims[0] % qi->block == 0;
    for (uint32_t d = 1; ok && d < t->n_dims; d++)
        ok = t->dims[d] > 0 && mem_mul(&n_rows, n_rows, t->dims[d]);
    ok = ok && mem_mul(&n_bytes, (size_t)(t->dims[0] / qi->block) * qi->block_bytes, n_rows);
    if (!ok)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s has impossible dimensions for %s",
                       (int)t->name.n, t->name.p, qi->name);
    t->n_bytes = n_bytes;
    return 0;
}

static int place_tensor(struct gguf *g, struct gguf_tensor *t, uint64_t offset, struct err *e)
{
    uint64_t room = g->n_bytes - g->data_offset;
    if (offset % g->alignment != 0)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s is not aligned to %u", (int)t->name.n,
                       t->name.p, g->alignment);
    if (offset > room || t->n_bytes > room - offset)
        return err_set(e, SHOAL_EFORMAT,
                       "tensor %.*s needs %zu bytes at data offset %llu, the file has %llu",
                       (int)t->name.n, t->name.p, t->n_bytes, (unsigned long long)offset,
                       (unsigned long long)room);
    t->data = g->bytes + g->data_offset + offset;
    return 0;
}

static int read_directory(struct gguf *g, struct rd *r, uint64_t n_tensors, struct err *e)
{
    int rc = 0;
    uint64_t *offsets = mem_zalloc_n((size_t)n_tensors, sizeof(*offsets));
    g->tensors = mem_zalloc_n((size_t)n_tensors, sizeof(*g->tensors));
    if (!offsets || !g->tensors) {
        rc = err_set(e, SHOAL_ENOMEM, "directory of %llu tensors", (unsigned long long)n_tensors);
        goto out;
    }
    g->n_tensors = (size_t)n_tensors;
    for (size_t i = 0; i < g->n_tensors && rc == 0; i++)
        rc = read_tensor(&g->tensors[i], &offsets[i], r, e);
    if (rc < 0)
        goto out;
    size_t pos = rd_pos(r), pad = (g->alignment - pos % g->alignment) % g->alignment;
    /* A vocabulary-only file may end right here. */
    g->data_offset = pad <= rd_left(r) ? pos + pad : g->n_bytes;
    for (size_t i = 0; i < g->n_tensors && rc == 0; i++)
        rc = place_tensor(g, &g->tensors[i], offsets[i], e);
out:
    mem_free(offsets);
    return rc;
}

static int parse(struct gguf *g, struct err *e)
{
    struct rd r = rd_make(g->bytes, g->n_bytes);
    const uint8_t *magic = rd_take(&r, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a GGUF file (it does not begin with \"GGUF\")");
    g->version = rd_u32(&r);
    if (!r.bad && g->version != 2 && g->version != 3)
        return err_set(e, SHOAL_EUNSUPPORTED, "GGUF version %u (2 and 3 are supported%s)",
                       g->version,
                       (g->version & 0xffff) == 0 ? "; this looks like a big-endian file" : "");
    uint64_t n_tensors = rd_u64(&r), n_kvs = rd_u64(&r);
    if (r.bad)
        return truncated(&r, "the header", e);
    if (n_kvs > rd_left(&r) / MIN_KV_BYTES || n_tensors > rd_left(&r) / MIN_TENSOR_BYTES)
        return err_set(e, SHOAL_EFORMAT,
                       "header claims %llu keys and %llu tensors, the file has %zu bytes",
                       (unsigned long long)n_kvs, (unsigned long long)n_tensors, g->n_bytes);
    g->kvs = mem_zalloc_n((size_t)n_kvs, sizeof(*g->kvs));
    if (!g->kvs)
        return err_set(e, SHOAL_ENOMEM, "%llu metadata keys", (unsigned long long)n_kvs);
    g->n_kvs = (size_t)n_kvs;
    for (size_t i = 0; i < g->n_kvs; i++) {
        int rc = read_kv(&g->kvs[i], &r, e);
        if (rc < 0)
            return rc;
    }
    uint64_t alignment = 32;
    (void)gguf_get_u64(g, "general.alignment", &alignment);
    if (alignment == 0 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
        return err_set(e, SHOAL_EFORMAT, "general.alignment of %llu is not a small power of two",
                       (unsigned long long)alignment);
    g->alignment = (uint32_t)alignment;
    return read_directory(g, &r, n_tensors, e);
}

int gguf_parse(struct gguf **out, const void *bytes, size_t n, struct err *e)
{
    struct gguf *g = mem_zalloc(sizeof(*g));
    *out = NULL;
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "gguf handle");
    g->bytes = bytes;
    g->n_bytes = n;
    int rc = parse(g, e);
    if (rc < 0) {
        gguf_close(g);
        return rc;
    }
    *out = g;
    return 0;
}

int gguf_open(struct gguf **out, const char *path, struct err *e)
{
    struct file_map *map = mem_zalloc(sizeof(*map));
    *out = NULL;
    if (!map)
        return err_set(e, SHOAL_ENOMEM, "gguf handle");
    int rc = file_map_open(map, path, e);
    if (rc == 0) {
        rc = gguf_parse(out, map->bytes, map->n_bytes, e);
        if (rc < 0)
            err_wrap(e, "%s", path);
    }
    if (rc < 0) {
        file_map_close(map);
        mem_free(map);
        return rc;
    }
    (*out)->maps = map; /* mapping and file now belong to the handle */
    (*out)->n_maps = 1;
    for (size_t i = 0; i < (*out)->n_tensors; i++)
        (*out)->tensors[i].map = map;
    return 0;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_maps; i++)
        file_map_close(&g->maps[i]);
    for (size_t i = 0; i < g->n_owned; i++)
        mem_free(g->owned[i]);
    mem_free(g->kvs);
    mem_free(g->tensors);
    mem_free(g->maps);
    mem_free(g->owned);
    mem_free(g);
}

void gguf_trim(const struct gguf *g)
{
    for (size_t i = 0; i < g->n_maps; i++)
        file_map_trim(&g->maps[i], g->maps[i].n_bytes);
}

void gguf_trim_meta(const struct gguf *g)
{
    if (g->n_maps == 1 && g->bytes == g->maps[0].bytes)
        file_map_trim(&g->maps[0], g->data_offset);
}

void gguf_read(const struct gguf *g, const struct gguf_tensor *t, size_t at, void *out, size_t n)
{
    (void)g; /* the tensor knows its file; g shows whose it must be */
    if (!t->map || t->in_memory)
        memcpy(out, t->data + at, n);
    else
        file_map_read(t->map, (size_t)(t->data - t->map->bytes) + at, out, n);
}

/* out[r][c] = in[c][r] for cells of a type; in has rows of `stride` cells. */
#define TURN(type)                                                                                 \
    for (size_t c = 0; c < n_cols; c++)                                                            \
        for (size_t r = 0; r < n_rows; r++) {                                                      \
            type cell;                                                                             \
            memcpy(&cell, in + (c * stride + r) * sizeof(cell), sizeof(cell));                     \
            memcpy(out + (r * n_cols + c) * sizeof(cell), &cell, sizeof(cell));                    \
        }

static void turn(uint8_t *out, const uint8_t *in, size_t stride, size_t n_rows, size_t n_cols,
                 size_t size)
{
    if (size == sizeof(uint32_t)) {
        TURN(uint32_t)
    } else {
        TURN(uint16_t)
    }
}
#undef TURN

void gguf_rows(const struct gguf_tensor *t, uint64_t row, uint64_t n_rows, uint64_t col,
               uint64_t n_cols, void *out)
{
    const struct quant_info *qi = quant_info(t->type);
    const size_t row_bytes = (size_t)(t->dims[0] / qi->block) * qi->block_bytes;
    const size_t part = (size_t)(n_cols / qi->block) * qi->block_bytes;
    const size_t at = (size_t)(col / qi->block) * qi->block_bytes;
    const uint64_t width = t->order == GGUF_ORDER_HALVES ? t->dims[1] / t->n_heads : 0;

    if (t->order == GGUF_ORDER_TURNED) {
        turn(out, t->stored + (size_t)(col * t->dims[1] + row) * qi->block_bytes,
             (size_t)t->dims[1], (size_t)n_rows, (size_t)n_cols, qi->block_bytes);
        return;
    }
    for (uint64_t r = row; r < row + n_rows; r++) {
        uint64_t from = r;
        if (width) {
            uint64_t in_head = r % width;
            from = r - in_head + in_head / 2 + (in_head % 2) * (width / 2);
        }
        memcpy((uint8_t *)out + (size_t)(r - row) * part,
               (width ? t->stored : t->data) + (size_t)from * row_bytes + at, part);
    }
}

static bool str_is(struct gguf_str s, const char *text)
{
    size_t n = strlen(text);
    return s.n == n && memcmp(s.p, text, n) == 0;
}

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key)
{
    for (size_t i = 0; i < g->n_kvs; i++)
        if (g->kvs[i].key.p && str_is(g->kvs[i].key, key))
            return &g->kvs[i];
    return NULL;
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (str_is(g->tensors[i].name, name))
            return &g->tensors[i];
    return NULL;
}

uint64_t gguf_n_params(const struct gguf *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const uint64_t *d = g->tensors[i].dims;
        n += d[0] * d[1] * d[2] * d[3];
    }
    return n;
}

bool gguf_kv_i64(const struct gguf_kv *kv, uint64_t i, int64_t *v)
{
    if (i >= kv->n_elems)
        return false;
    switch (kv->elem_type) {
#define LOAD(T, ctype)                                                                             \
    case GGUF_TYPE_##T: {                                                                          \
        ctype x;                                                                                   \
        memcpy(&x, kv->data + i * sizeof(x), sizeof(x));                                           \
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
    case GGUF_TYPE_U64: {
        uint64_t x;
        memcpy(&x, kv->data + i * sizeof(x), sizeof(x));
        *v = (int64_t)x;
        return x <= INT64_MAX;
    }
    default:
        return false;
    }
}

bool gguf_kv_f64(const struct gguf_kv *kv, uint64_t i, double *v)
{
    int64_t integer;
    if (i >= kv->n_elems)
        return false;
    switch (kv->elem_type) {
    case GGUF_TYPE_F32: {
        float x;
        memcpy(&x, kv->data + i * sizeof(x), sizeof(x));
        *v = (double)x;
        return true;
    }
    case GGUF_TYPE_F64:
        memcpy(v, kv->data + i * sizeof(*v), sizeof(*v));
        return true;
    default:
        if (!gguf_kv_i64(kv, i, &integer))
            return false;
        *v = (double)integer;
        return true;
    }
#undef LOAD
}

bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *v)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    int64_t x;
    if (!kv || kv->type == GGUF_TYPE_ARRAY || !gguf_kv_i64(kv, 0, &x) || x < 0)
        return false;
    *v = (uint64_t)x;
    return true;
}

bool gguf_get_f64(const struct gguf *g, const char *key, double *v)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    return kv && kv->type != GGUF_TYPE_ARRAY && gguf_kv_f64(kv, 0, v);
}

bool gguf_get_bool(const struct gguf *g, const char *key, bool *v)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    if (!kv || kv->type != GGUF_TYPE_BOOL)
        return false;
    *v = kv->data[0] != 0;
    return true;
}

bool gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v)
{
    const struct gguf_kv *kv = gguf_find(g, key);
    if (!kv || kv->type != GGUF_TYPE_STRING)
        return false;
    v->p = (const char *)kv->data + 8;
    v->n = kv->data_bytes - 8;
    return true;
}
