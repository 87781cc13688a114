/* model_delta_make.c - model_delta_make: see model_delta.h. */
#include <stdlib.h>
#include <string.h>

#include "base/file/file_map.h"
#include "base/mem.h"
#include "depot/delta/delta_file.h"
#include "depot/delta/model_delta.h"
#include "format/gguf.h"

#define VALUES_PER_BLOCK ((size_t)1 << 18) /* whole blocks of every type */
#define PIECE_BYTES ((size_t)4 << 20)      /* of what is no tensor */
#define PREFIX_BYTES ((size_t)32 << 20)

struct side {
    struct file_map map;
    struct model_file *gguf; /* NULL: another kind of file */
};

struct making {
    struct side was, is;
    struct delta_file out;
    struct delta_work work;
    struct delta_record copy; /* not written yet: the next one may continue it */
    struct model_delta *done;
    uint8_t *packed[2];
    struct err *e;
};

/* ---- records ---- */

static int put_record(struct making *m, const struct delta_record *r, const uint8_t *packed)
{
    uint8_t head[DELTA_RECORD_BYTES];
    delta_record_write(head, r);
    int rc = delta_file_put(&m->out, head, sizeof(head), m->e);
    return rc < 0 || !r->packed ? rc : delta_file_put(&m->out, packed, r->packed, m->e);
}

static int flush_copy(struct making *m)
{
    int rc = m->copy.new_n ? put_record(m, &m->copy, NULL) : 0;
    m->copy.new_n = 0;
    return rc;
}

static int put_copy(struct making *m, uint64_t old_at, uint64_t n)
{
    int rc = 0;
    m->done->copied += n;
    if (m->copy.new_n && m->copy.old_at + m->copy.new_n != old_at)
        rc = flush_copy(m);
    if (!m->copy.new_n)
        m->copy = (struct delta_record){.kind = DELTA_COPY, .old_at = old_at};
    m->copy.new_n += n;
    m->copy.old_n = m->copy.new_n;
    return rc;
}

/* The smaller one of two records that make the same bytes; b may be NULL. */
static int put_best(struct making *m, struct delta_record *a, struct delta_record *b, uint64_t at)
{
    const uint8_t *was = m->was.map.bytes, *is = m->is.map.bytes + at;
    struct delta_record *all[2] = {a, b}, *best = NULL;
    for (int i = 0; i < 2; i++) {
        if (!all[i] || (best && best->packed < best->new_n / 10 * 9)) /* good enough */
            continue;
        all[i]->packed =
            (uint32_t)delta_pack(&m->work, all[i], was + all[i]->old_at, is, m->packed[i]);
        if (all[i]->packed && (!best || all[i]->packed < best->packed))
            best = all[i];
    }
    if (!best)
        return err_set(m->e, SHOAL_ENOMEM, "a part of a patch");
    *(best->kind == DELTA_DIFF ? &m->done->differed : &m->done->packed) += best->new_n;
    int rc = flush_copy(m);
    return rc < 0 ? rc : put_record(m, best, m->packed[best == a ? 0 : 1]);
}

/* ---- what is no tensor ---- */

/* Bytes of the new file that may be like some of the old one. */
static int put_piece(struct making *m, uint64_t at, size_t n, uint64_t old_at, uint64_t old_n)
{
    const uint64_t there = m->was.map.n_bytes;
    if (at <= there && n <= there - at &&
        memcmp(m->was.map.bytes + at, m->is.map.bytes + at, n) == 0)
        return put_copy(m, at, n);
    struct delta_record r = {.kind = DELTA_ZSTD, .old_at = old_at, .old_n = old_n, .new_n = n};
    return put_best(m, &r, NULL, at);
}

/* The same for any number of bytes, whose counterpart is [old_at, old_at + old_n). */
static int put_bytes(struct making *m, uint64_t at, uint64_t n, uint64_t old_at, uint64_t old_n)
{
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i += PIECE_BYTES) {
        const size_t k = n - i < PIECE_BYTES ? (size_t)(n - i) : PIECE_BYTES;
        uint64_t from = i > PREFIX_BYTES / 2 && old_n > PREFIX_BYTES ? i - PREFIX_BYTES / 2 : 0;
        from = from < old_n ? from : old_n;
        const uint64_t left = old_n - from;
        rc = put_piece(m, at + i, k, old_at + from, left < PREFIX_BYTES ? left : PREFIX_BYTES);
    }
    return rc;
}

/* ---- tensors ---- */

static uint64_t place(const struct side *s, const struct model_file_tensor *t)
{
    return (uint64_t)(t->data - s->gguf->maps[0].bytes);
}

static const struct model_file_tensor *counterpart(const struct making *m,
                                                   const struct model_file_tensor *t)
{
    char name[256];
    if (!m->was.gguf || t->name.n >= sizeof(name))
        return NULL;
    memcpy(name, t->name.p, t->name.n);
    name[t->name.n] = '\0';
    const struct model_file_tensor *old = model_file_find_tensor(m->was.gguf, name);
    return old && memcmp(old->dims, t->dims, sizeof(t->dims)) == 0 ? old : NULL;
}

static int put_block(struct making *m, const struct model_file_tensor *old,
                     const struct model_file_tensor *t, size_t first, size_t n)
{
    const struct quant_info *a = quant_info(old->type), *b = quant_info(t->type);
    struct delta_record diff = {.kind = DELTA_DIFF,
                                .from = (uint8_t)old->type,
                                .to = (uint8_t)t->type,
                                .old_at = place(&m->was, old) + first / a->block * a->block_bytes,
                                .old_n = n / a->block * a->block_bytes,
                                .new_n = n / b->block * b->block_bytes};
    const uint64_t at = place(&m->is, t) + first / b->block * b->block_bytes;
    if (old->type == t->type &&
        memcmp(m->was.map.bytes + diff.old_at, m->is.map.bytes + at, diff.new_n) == 0)
        return put_copy(m, diff.old_at, diff.new_n);
    struct delta_record alone = {.kind = DELTA_ZSTD, .new_n = diff.new_n};
    return put_best(m, &diff, &alone, at);
}

static int put_tensor(struct making *m, const struct model_file_tensor *t)
{
    const struct model_file_tensor *old = counterpart(m, t);
    if (!old)
        return put_bytes(m, place(&m->is, t), t->n_bytes, 0, 0);
    const struct quant_info *info = quant_info(t->type);
    const size_t n = t->n_bytes / info->block_bytes * info->block;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += VALUES_PER_BLOCK)
        rc = put_block(m, old, t, i, n - i < VALUES_PER_BLOCK ? n - i : VALUES_PER_BLOCK);
    return rc;
}

/* ---- the file ---- */

static int by_place(const void *a, const void *b)
{
    const struct model_file_tensor *const *x = a, *const *y = b;
    return ((*x)->data > (*y)->data) - ((*x)->data < (*y)->data);
}

static int put_tensors(struct making *m)
{
    const struct model_file *g = m->is.gguf;
    const uint64_t old_head = m->was.gguf ? m->was.gguf->header_bytes : 0;
    const struct model_file_tensor **list = mem_zalloc_n(g->n_tensors + 1, sizeof(*list));
    uint64_t at = 0;
    int rc = list ? 0 : err_set(m->e, SHOAL_ENOMEM, "a list of tensors");
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++)
        list[i] = &g->tensors[i];
    if (rc == 0)
        qsort(list, g->n_tensors, sizeof(*list), by_place);
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++) {
        const uint64_t begin = place(&m->is, list[i]);
        if (begin < at || list[i]->n_bytes == 0) /* overlaps: its bytes are there already */
            continue;
        rc = put_bytes(m, at, begin - at, 0, at == 0 ? old_head : 0);
        if (rc == 0)
            rc = put_tensor(m, list[i]);
        at = begin + list[i]->n_bytes;
    }
    if (rc == 0)
        rc = put_bytes(m, at, m->is.map.n_bytes - at, 0, 0);
    mem_free(list);
    return rc;
}

static int open_side(struct side *s, const char *path, struct err *e)
{
    struct err none = {0};
    int rc = file_map_open(&s->map, path, e);
    if (rc == 0 && gguf_open(&s->gguf, path, &none) < 0)
        s->gguf = NULL;
    return rc;
}

static void close_side(struct side *s)
{
    model_file_close(s->gguf);
    file_map_close(&s->map);
}

static int sum_of(const struct file_map *m, uint8_t out[SHA256_BYTES], struct err *e)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, m->bytes, m->n_bytes);
    return sha256_end(&s, out) ? 0 : err_set(e, SHOAL_ENOMEM, "a hash");
}

static int put_all(struct making *m)
{
    struct delta_head h = {.old_bytes = m->was.map.n_bytes, .new_bytes = m->is.map.n_bytes};
    uint8_t head[DELTA_HEAD_BYTES];
    int rc = sum_of(&m->was.map, h.old_sum, m->e);
    if (rc == 0)
        rc = sum_of(&m->is.map, h.new_sum, m->e);
    delta_head_write(head, &h);
    if (rc == 0)
        rc = delta_file_put(&m->out, head, sizeof(head), m->e);
    if (rc == 0)
        rc = m->is.gguf && m->was.gguf ? put_tensors(m)
                                       : put_bytes(m, 0, m->is.map.n_bytes, 0, m->was.map.n_bytes);
    return rc == 0 ? flush_copy(m) : rc;
}

int model_delta_make(const char *old_path, const char *new_path, const char *out,
                     struct model_delta *done, struct err *e)
{
    struct making m = {.out = {.fd = -1}, .done = done, .e = e};
    *done = (struct model_delta){0};
    int rc = open_side(&m.was, old_path, e);
    if (rc == 0)
        rc = open_side(&m.is, new_path, e);
    for (int i = 0; i < 2 && rc == 0; i++)
        if (!(m.packed[i] = mem_alloc(delta_bound(DELTA_MAX_NEW))))
            rc = err_set(e, SHOAL_ENOMEM, "a patch");
    if (rc == 0)
        rc = delta_file_open(&m.out, out, e);
    if (rc == 0)
        rc = put_all(&m);
    if (rc == 0 && (file_map_changed(&m.was.map) || file_map_changed(&m.is.map)))
        rc = err_set(e, SHOAL_EIO, "a model was changed while it was compared");
    rc = delta_file_end(&m.out, out, rc, e);
    done->old_bytes = m.was.map.n_bytes;
    done->new_bytes = m.is.map.n_bytes;
    done->patch_bytes = m.out.n;
    close_side(&m.was);
    close_side(&m.is);
    delta_work_fini(&m.work);
    mem_free(m.packed[0]);
    mem_free(m.packed[1]);
    return rc;
}
