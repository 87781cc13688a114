/* gguf_meta.c - see gguf_meta.h. */
#include "format/gguf_meta.h"

#include <string.h>

#include "base/mem.h"

static const uint8_t scalar_bytes[] = {
    [GGUF_TYPE_U8] = 1,  [GGUF_TYPE_I8] = 1,  [GGUF_TYPE_U16] = 2, [GGUF_TYPE_I16] = 2,
    [GGUF_TYPE_U32] = 4, [GGUF_TYPE_I32] = 4, [GGUF_TYPE_F32] = 4, [GGUF_TYPE_BOOL] = 1,
    [GGUF_TYPE_U64] = 8, [GGUF_TYPE_I64] = 8, [GGUF_TYPE_F64] = 8,
};

static size_t scalar_size(enum gguf_type t)
{
    return (size_t)t < sizeof(scalar_bytes) ? scalar_bytes[t] : 0;
}

static void kv_fini(struct gguf_meta_kv *kv)
{
    mem_free(kv->key);
    buf_fini(&kv->value);
}

void gguf_meta_fini(struct gguf_meta *m)
{
    for (size_t i = 0; i < m->n; i++)
        kv_fini(&m->kvs[i]);
    mem_free(m->kvs);
    *m = (struct gguf_meta){0};
}

static struct gguf_meta_kv *find(const struct gguf_meta *m, const char *key, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (strlen(m->kvs[i].key) == n && !memcmp(m->kvs[i].key, key, n))
            return &m->kvs[i];
    return NULL;
}

const struct gguf_meta_kv *gguf_meta_find(const struct gguf_meta *m, const char *key)
{
    return find(m, key, strlen(key));
}

/* Room for one more. */
static bool grow(struct gguf_meta *m)
{
    if (m->n < m->cap)
        return true;
    size_t want = m->cap ? m->cap * 2 : 32;
    struct gguf_meta_kv *p = mem_realloc(m->kvs, want * sizeof(*p));
    if (!p)
        return false;
    m->kvs = p;
    m->cap = want;
    return true;
}

/* The cleared value of a key, new or old; NULL when it failed. */
static struct buf *start(struct gguf_meta *m, const char *key, size_t n)
{
    if (m->first.code < 0)
        return NULL;
    if (n == 0 || n > 65535 || memchr(key, 0, n)) {
        err_set(&m->first, SHOAL_EINVAL, "metadata key of %zu bytes", n);
        return NULL;
    }
    struct gguf_meta_kv *kv = find(m, key, n);
    if (kv) {
        buf_clear(&kv->value);
        return &kv->value;
    }
    char *copy = grow(m) ? mem_strndup(key, n) : NULL;
    if (!copy) {
        err_set(&m->first, SHOAL_ENOMEM, "metadata key %.*s", (int)n, key);
        return NULL;
    }
    kv = &m->kvs[m->n++];
    kv->key = copy;
    buf_init(&kv->value, GGUF_META_MAX_BYTES);
    return &kv->value;
}

static void end(struct gguf_meta *m, const struct buf *value, const char *key, size_t n)
{
    if (value->rc < 0)
        err_set(&m->first, value->rc, "value of %.*s: %s", (int)n, key, err_text(value->rc));
}

void gguf_meta_put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof(v));
}

void gguf_meta_put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof(v));
}

void gguf_meta_put_str(struct buf *b, const char *s, size_t n)
{
    gguf_meta_put_u64(b, n);
    buf_put(b, s, n);
}

void gguf_meta_scalar(struct gguf_meta *m, const char *key, enum gguf_type type, const void *value)
{
    size_t n = strlen(key), size = scalar_size(type);
    struct buf *b = start(m, key, n);
    if (!b)
        return;
    if (size == 0) {
        err_set(&m->first, SHOAL_EINVAL, "%s is not a scalar type", gguf_type_name(type));
        return;
    }
    gguf_meta_put_u32(b, type);
    buf_put(b, value, size);
    end(m, b, key, n);
}

void gguf_meta_u32(struct gguf_meta *m, const char *key, uint32_t v)
{
    gguf_meta_scalar(m, key, GGUF_TYPE_U32, &v);
}

void gguf_meta_f32(struct gguf_meta *m, const char *key, float v)
{
    gguf_meta_scalar(m, key, GGUF_TYPE_F32, &v);
}

void gguf_meta_bool(struct gguf_meta *m, const char *key, bool v)
{
    uint8_t byte = v;
    gguf_meta_scalar(m, key, GGUF_TYPE_BOOL, &byte);
}

void gguf_meta_str(struct gguf_meta *m, const char *key, const char *s, size_t n)
{
    size_t key_n = strlen(key);
    struct buf *b = start(m, key, key_n);
    if (!b)
        return;
    gguf_meta_put_u32(b, GGUF_TYPE_STRING);
    gguf_meta_put_str(b, s, n);
    end(m, b, key, key_n);
}

void gguf_meta_array(struct gguf_meta *m, const char *key, enum gguf_type elem, const void *v,
                     size_t n)
{
    size_t key_n = strlen(key), bytes;
    struct buf *b = start(m, key, key_n);
    if (!b)
        return;
    if (scalar_size(elem) == 0 || !mem_mul(&bytes, n, scalar_size(elem))) {
        err_set(&m->first, SHOAL_EINVAL, "%s: no array of %zu %s", key, n, gguf_type_name(elem));
        return;
    }
    gguf_meta_put_u32(b, GGUF_TYPE_ARRAY);
    gguf_meta_put_u32(b, elem);
    gguf_meta_put_u64(b, n);
    buf_put(b, v, bytes);
    end(m, b, key, key_n);
}

void gguf_meta_strings(struct gguf_meta *m, const char *key, const struct gguf_str *v, size_t n)
{
    size_t key_n = strlen(key);
    struct buf *b = start(m, key, key_n);
    if (!b)
        return;
    gguf_meta_put_u32(b, GGUF_TYPE_ARRAY);
    gguf_meta_put_u32(b, GGUF_TYPE_STRING);
    gguf_meta_put_u64(b, n);
    for (size_t i = 0; i < n; i++)
        gguf_meta_put_str(b, v[i].p, v[i].n);
    end(m, b, key, key_n);
}

void gguf_meta_copy(struct gguf_meta *m, const struct gguf *g)
{
    for (size_t i = 0; i < g->n_kvs; i++) {
        const struct gguf_kv *kv = &g->kvs[i];
        struct buf *b = start(m, kv->key.p, kv->key.n);
        if (!b)
            return;
        gguf_meta_put_u32(b, kv->type);
        if (kv->type == GGUF_TYPE_ARRAY) {
            gguf_meta_put_u32(b, kv->elem_type);
            gguf_meta_put_u64(b, kv->n_elems);
        }
        buf_put(b, kv->data, kv->data_bytes);
        end(m, b, kv->key.p, kv->key.n);
    }
}

void gguf_meta_remove(struct gguf_meta *m, const char *key)
{
    struct gguf_meta_kv *kv = m->first.code < 0 ? NULL : find(m, key, strlen(key));
    if (!kv)
        return;
    kv_fini(kv);
    memmove(kv, kv + 1, (size_t)(m->kvs + m->n - (kv + 1)) * sizeof(*kv));
    m->n--;
}

void gguf_meta_encode(const struct gguf_meta *m, struct buf *out, uint64_t n_tensors)
{
    buf_puts(out, "GGUF");
    gguf_meta_put_u32(out, GGUF_META_VERSION);
    gguf_meta_put_u64(out, n_tensors);
    gguf_meta_put_u64(out, m->n);
    for (size_t i = 0; i < m->n; i++) {
        gguf_meta_put_str(out, m->kvs[i].key, strlen(m->kvs[i].key));
        buf_put(out, m->kvs[i].value.data, m->kvs[i].value.len);
    }
}
