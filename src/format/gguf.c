/* gguf.c - see gguf.h.  One pass over the header with a bounded reader. */
#include "format/gguf.h"

#include <string.h>

#include "base/mem.h"
#include "base/rd.h"
#include "format/sealed_file.h"

/* The smallest encodings bound the counts that a file may claim by the remaining bytes. */
enum {
    MIN_KV_BYTES = 8 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8,
    MIN_STRING_BYTES = 8,
    MAX_NAME_BYTES = 256, /* the format allows 64 for tensors */
};

/* State that only the parser needs. */
struct parse {
    struct model_file *m;
    const uint8_t *bytes;
    size_t n_bytes;
    uint32_t alignment;
    size_t data_offset; /* where tensor data begins */
};

static struct str read_str(struct rd *r)
{
    struct str s = {NULL, 0};
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

static int read_string_array(struct model_file_value *kv, struct rd *r, struct err *e)
{
    if (kv->n_elems > rd_left(r) / MIN_STRING_BYTES)
        return err_set(e, SHOAL_EFORMAT, "key %.*s claims %llu strings, the file is too short",
                       (int)kv->key.n, kv->key.p, (unsigned long long)kv->n_elems);
    for (uint64_t i = 0; i < kv->n_elems; i++)
        (void)read_str(r);
    return r->bad ? truncated(r, "an array of strings", e) : 0;
}

static int read_kv(struct model_file_value *kv, struct rd *r, struct err *e)
{
    kv->key = read_str(r);
    uint32_t type = rd_u32(r);
    if (r->bad)
        return truncated(r, "a metadata key", e);
    if (kv->key.n == 0 || kv->key.n > 65535)
        return err_set(e, SHOAL_EFORMAT, "metadata key of %zu bytes at offset %zu", kv->key.n,
                       rd_pos(r));
    if (type >= MODEL_FILE_N_TYPES)
        return err_set(e, SHOAL_EFORMAT, "key %.*s has unknown type %u", (int)kv->key.n, kv->key.p,
                       type);
    kv->type = (enum model_file_type)type;
    kv->elem_type = kv->type;
    kv->n_elems = 1;
    if (kv->type == MODEL_FILE_ARRAY) {
        uint32_t elem = rd_u32(r);
        kv->n_elems = rd_u64(r);
        if (r->bad)
            return truncated(r, "an array header", e);
        if (elem >= MODEL_FILE_N_TYPES || elem == MODEL_FILE_ARRAY)
            return err_set(e, SHOAL_EFORMAT, "key %.*s is an array of unsupported type %u",
                           (int)kv->key.n, kv->key.p, elem);
        kv->elem_type = (enum model_file_type)elem;
    }
    size_t from = rd_pos(r);
    kv->data = r->p;
    if (kv->elem_type == MODEL_FILE_STRING) {
        if (kv->type == MODEL_FILE_ARRAY) {
            int rc = read_string_array(kv, r, e);
            if (rc < 0)
                return rc;
        } else {
            struct str s = read_str(r);
            from += s.p ? sizeof(uint64_t) : 0;
            kv->data = (const uint8_t *)s.p;
        }
    } else {
        uint64_t n;
        if (__builtin_mul_overflow(kv->n_elems, (uint64_t)model_file_type_bytes(kv->elem_type), &n))
            n = UINT64_MAX;
        (void)rd_take(r, n);
    }
    if (r->bad)
        return err_set(e, SHOAL_EFORMAT, "value of %.*s goes past the end of the file (offset %zu)",
                       (int)kv->key.n, kv->key.p, from);
    kv->n_bytes = rd_pos(r) - from;
    return 0;
}

static int read_tensor(struct model_file_tensor *t, uint64_t *offset, struct rd *r, struct err *e)
{
    t->name = read_str(r);
    t->n_dims = rd_u32(r);
    if (r->bad)
        return truncated(r, "a tensor's name", e);
    if (t->name.n == 0 || t->name.n > MAX_NAME_BYTES)
        return err_set(e, SHOAL_EFORMAT, "tensor name of %zu bytes at offset %zu", t->name.n,
                       rd_pos(r));
    if (t->n_dims == 0 || t->n_dims > MODEL_FILE_MAX_DIMS)
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s has %u dimensions", (int)t->name.n, t->name.p,
                       t->n_dims);
    for (uint32_t d = 0; d < MODEL_FILE_MAX_DIMS; d++)
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

static int place_tensor(const struct parse *g, struct model_file_tensor *t, uint64_t offset,
                        struct err *e)
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

static int read_directory(struct parse *g, struct rd *r, uint64_t n_tensors, struct err *e)
{
    struct model_file *m = g->m;
    int rc = 0;
    uint64_t *offsets = mem_zalloc_n((size_t)n_tensors, sizeof(*offsets));
    m->tensors = mem_zalloc_n((size_t)n_tensors, sizeof(*m->tensors));
    if (!offsets || !m->tensors) {
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the directory of %llu tensors",
                     (unsigned long long)n_tensors);
        goto out;
    }
    m->n_tensors = m->cap_tensors = (size_t)n_tensors;
    for (size_t i = 0; i < m->n_tensors && rc == 0; i++)
        rc = read_tensor(&m->tensors[i], &offsets[i], r, e);
    if (rc < 0)
        goto out;
    size_t pos = rd_pos(r), pad = (g->alignment - pos % g->alignment) % g->alignment;
    /* A vocabulary-only file may end right here. */
    g->data_offset = pad <= rd_left(r) ? pos + pad : g->n_bytes;
    for (size_t i = 0; i < m->n_tensors && rc == 0; i++)
        rc = place_tensor(g, &m->tensors[i], offsets[i], e);
out:
    mem_free(offsets);
    return rc;
}

static int parse(struct parse *g, struct err *e)
{
    struct model_file *m = g->m;
    struct rd r = rd_make(g->bytes, g->n_bytes);
    const uint8_t *magic = rd_take(&r, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a GGUF file (it does not begin with \"GGUF\")");
    uint32_t version = m->gguf_version = rd_u32(&r);
    if (!r.bad && version != 2 && version != 3)
        return err_set(e, SHOAL_EUNSUPPORTED, "GGUF version %u (2 and 3 are supported%s)", version,
                       (version & 0xffff) == 0 ? "; this looks like a big-endian file" : "");
    uint64_t n_tensors = rd_u64(&r), n_values = rd_u64(&r);
    if (r.bad)
        return truncated(&r, "the header", e);
    if (n_values > rd_left(&r) / MIN_KV_BYTES || n_tensors > rd_left(&r) / MIN_TENSOR_BYTES)
        return err_set(e, SHOAL_EFORMAT,
                       "header claims %llu keys and %llu tensors, the file has %zu bytes",
                       (unsigned long long)n_values, (unsigned long long)n_tensors, g->n_bytes);
    m->values = mem_zalloc_n((size_t)n_values, sizeof(*m->values));
    if (!m->values)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %llu metadata keys",
                       (unsigned long long)n_values);
    m->cap_values = (size_t)n_values;
    for (; m->n_values < (size_t)n_values; m->n_values++) {
        int rc = read_kv(&m->values[m->n_values], &r, e);
        if (rc < 0)
            return rc;
    }
    uint64_t alignment = 32;
    (void)model_file_get_u64(m, "general.alignment", &alignment);
    if (alignment == 0 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
        return err_set(e, SHOAL_EFORMAT, "general.alignment of %llu is not a small power of two",
                       (unsigned long long)alignment);
    g->alignment = (uint32_t)alignment;
    return read_directory(g, &r, n_tensors, e);
}

/* map: the file that the bytes are, or NULL. */
static int load(struct model_file **out, const void *bytes, size_t n, struct file_map *map,
                struct err *e)
{
    struct parse g = {.bytes = bytes, .n_bytes = n};
    int rc = model_file_create(&g.m, e);
    *out = NULL;
    if (rc == 0)
        rc = parse(&g, e);
    if (rc < 0) {
        model_file_close(g.m);
        return rc;
    }
    g.m->n_bytes = n;
    if (map) { /* the mapping now belongs to the model */
        g.m->maps = map;
        g.m->n_maps = 1;
        g.m->header_bytes = g.data_offset;
        for (size_t i = 0; i < g.m->n_tensors; i++)
            g.m->tensors[i].map = map;
    }
    *out = g.m;
    return 0;
}

int gguf_parse(struct model_file **out, const void *bytes, size_t n, struct err *e)
{
    return load(out, bytes, n, NULL, e);
}

/* Maps the file, or decrypts it into memory. */
static int map_model(struct file_map *map, const char *path, const char *key_file, bool parts,
                     struct err *e)
{
    int rc = file_map_open(map, path, e);
    if (rc < 0 || !sealed_is(map->bytes, map->n_bytes))
        return rc;
    file_map_close(map);
    if (!key_file)
        return err_set(e, SHOAL_EINVAL,
                       "%s is encrypted; name the file with its key: --key-file FILE, or key_file "
                       "of the model in the configuration",
                       path);
    return parts ? sealed_open_parts(map, path, key_file, e) : sealed_open(map, path, key_file, e);
}

/* Where the header ends is known when it was read: more is decrypted until it is whole. */
static int load_parts(struct model_file **out, struct file_map *map, struct err *e)
{
    size_t have = (size_t)1 << 20;
    for (;; have *= 2) {
        struct err none = {0};
        have = have < map->n_bytes ? have : map->n_bytes;
        int rc = file_map_need(map, 0, have, e);
        if (rc < 0)
            return rc;
        rc = load(out, map->bytes, map->n_bytes, map, have < map->n_bytes ? &none : e);
        if (have == map->n_bytes)
            return rc;
        if (rc == 0 && (*out)->header_bytes <= have)
            break;
        if (rc == 0) { /* the map stays */
            (*out)->maps = NULL;
            (*out)->n_maps = 0;
            model_file_close(*out);
        }
    }
    int rc = 0;
    for (size_t i = 0; i < (*out)->n_tensors && rc == 0; i++) {
        const struct model_file_tensor *t = &(*out)->tensors[i];
        const bool later = t->n_dims > 1 && t->name.n > 4 && memcmp(t->name.p, "blk.", 4) == 0;
        rc = later ? 0 : model_file_need(t, e);
    }
    return rc;
}

static int open_model(struct model_file **out, const char *path, const char *key_file, bool parts,
                      struct err *e)
{
    struct file_map *map = mem_zalloc(sizeof(*map));
    *out = NULL;
    if (!map)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the model file");
    int rc = map_model(map, path, key_file, parts, e);
    if (rc == 0 && (rc = map->rest ? load_parts(out, map, e)
                                   : load(out, map->bytes, map->n_bytes, map, e)) < 0)
        err_wrap(e, "%s", path);
    if (rc < 0 && *out) {
        model_file_close(*out); /* with the map */
        *out = NULL;
    } else if (rc < 0) {
        file_map_close(map);
        mem_free(map);
    }
    return rc;
}

int gguf_open(struct model_file **out, const char *path, struct err *e)
{
    return open_model(out, path, NULL, false, e);
}

int gguf_open_parts(struct model_file **out, const char *path, const char *key_file, struct err *e)
{
    return open_model(out, path, key_file, true, e);
}
