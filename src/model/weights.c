/* weights.c - see weights.h. */
#include "model/weights.h"

#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/map_guard.h"
#include "base/mem.h"
#include "kernels/tiles.h"
#include "model/weights_int.h"

void weights_init(struct weights *w, const struct kern_layout *layout)
{
    *w = (struct weights){.layout = *layout};
}

void weights_fini(struct weights *w)
{
    map_guard_remove(w->guard);
    if (w->map)
        munmap(w->map, w->map_bytes);
    if (w->in_file)
        close(w->fd);
    mem_free(w->mats);
    mem_free(w->tensors);
    mem_free(w->offsets);
    mem_free(w->of);
    for (uint32_t i = 0; i < w->n_parts; i++)
        mem_free(w->parts[i]);
    mem_free(w->parts);
    *w = (struct weights){0};
}

static int grow(struct weights *w)
{
    uint32_t cap = w->cap ? w->cap * 2 : 64;
    void *mats = mem_realloc(w->mats, cap * sizeof(*w->mats));
    if (mats)
        w->mats = mats;
    void *tensors = mem_realloc(w->tensors, cap * sizeof(*w->tensors));
    if (tensors)
        w->tensors = tensors;
    void *offsets = mem_realloc(w->offsets, cap * sizeof(*w->offsets));
    if (offsets)
        w->offsets = offsets;
    void *of = mem_realloc(w->of, cap * sizeof(*w->of));
    if (of)
        w->of = of;
    if (!mats || !tensors || !offsets || !of)
        return SHOAL_ENOMEM;
    w->cap = cap;
    return 0;
}

static enum kern_fmt tiled_fmt(const struct weights *w, const struct model_file_tensor *t)
{
    const enum kern_fmt own = tiles_fmt_of(t->type);
    if (w->round == WEIGHTS_WIDE && t->dims[0] % KERN_WIDE == 0 && t->dims[0] <= KERN_WIDE_MAX)
        return KERN_Q8W;
    if (w->round == WEIGHTS_BLOCKS && kern_fmt_is_float(own) && t->dims[0] % 32 == 0)
        return KERN_Q8;
    return own;
}

static bool is_rounded(const struct weights *w, const struct model_file_tensor *t)
{
    return tiled_fmt(w, t) != tiles_fmt_of(t->type);
}

int weights_add(struct weights *w, const struct model_file_tensor *t, uint32_t *index,
                struct err *e)
{
    uint64_t n_rows = t->dims[1] * t->dims[2] * t->dims[3]; /* bounded by the file's size */
    if (n_rows > INT32_MAX)
        return err_set(e, SHOAL_ELIMIT, "tensor %.*s has too many rows", (int)t->name.n, t->name.p);
    struct kern_mat m = {.fmt = tiled_fmt(w, t),
                         .n_rows = (uint32_t)n_rows,
                         .n_cols = (uint32_t)t->dims[0],
                         .mul = 1.0f};
    m.tile_bytes = tiles_bytes(&w->layout, m.fmt, m.n_cols);
    if (m.tile_bytes == 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %.*s: rows of %u %s values are not supported",
                       (int)t->name.n, t->name.p, m.n_cols, quant_info(t->type)->name);
    if (w->n == w->cap && grow(w) < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the weight table");
    w->mats[w->n] = m;
    w->tensors[w->n] = t;
    w->offsets[w->n] = w->data_bytes;
    w->of[w->n] = (struct weights_of){NULL, 0, 0.0f};
    w->data_bytes += tiles_count(&w->layout, m.n_rows) * m.tile_bytes;
    *index = w->n++;
    return 0;
}

int weights_add_rows(struct weights *w, const struct model_file_tensor *t, uint32_t row0,
                     uint32_t n_rows, uint32_t *index, struct err *e)
{
    if (t->order != MODEL_FILE_PLAIN || t->n_dims != 2 || (uint64_t)row0 + n_rows > t->dims[1])
        return err_set(e, SHOAL_EFORMAT, "tensor %.*s has no rows %u to %u", (int)t->name.n,
                       t->name.p, row0, row0 + n_rows);
    void *bigger = mem_realloc(w->parts, (w->n_parts + 1) * sizeof(struct model_file_tensor *));
    if (bigger)
        w->parts = bigger;
    struct model_file_tensor *part = bigger ? mem_alloc(sizeof(*part)) : NULL;
    if (!part)
        return err_set(e, SHOAL_ENOMEM, "tensor %.*s", (int)t->name.n, t->name.p);
    const size_t row = t->n_bytes / (size_t)t->dims[1];
    *part = *t;
    part->dims[1] = n_rows;
    part->data += row * row0;
    part->n_bytes = row * n_rows;
    w->parts[w->n_parts++] = part;
    return weights_add(w, part, index, e);
}

int weights_add_part(struct weights *w, const struct model_file_tensor *t, uint32_t first,
                     uint32_t n_all, uint32_t row0, uint32_t n_rows, uint32_t *index, struct err *e)
{
    int rc = weights_add_rows(w, t, first + row0, n_rows, index, e);
    if (rc == 0)
        w->of[*index] =
            (struct weights_of){t->data + t->n_bytes / (size_t)t->dims[1] * first, n_all, 0.0f};
    return rc;
}

/* ---- tiling -------------------------------------------------------------------------------- */

struct tiling {
    struct weights *w;
    uint8_t *data;
    void **work;   /* per member */
    float **row;   /* per member: one row as floats */
    uint8_t *made; /* the current matrix, if its file stores the rows in another order */
    _Atomic size_t done_bytes;
    _Atomic bool stop;
    _Atomic uint32_t bad; /* 1 + a matrix with a value that is not finite; 0: none */
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

/* Tiles per chunk: a chunk should be a fraction of a millisecond of work. */
static uint32_t tiles_per_chunk(const struct tiling *p, uint32_t mat)
{
    size_t n = ((size_t)1 << 20) / p->w->mats[mat].tile_bytes;
    uint32_t tiles = tiles_count(&p->w->layout, p->w->mats[mat].n_rows);
    uint32_t least = tiles / CREW_MAX_CHUNKS + 1; /* stay within a phase's number of chunks */
    return n < least ? least : (uint32_t)n;
}

/* Work memory of a member for rows of n_cols values: that of tiles_fill, then a tile of rows as
 * floats, then one as Q8_0. */
static size_t fill_bytes(uint32_t n_cols)
{
    return (tiles_work_bytes(n_cols) + 63) / 64 * 64;
}

static size_t work_bytes(const struct weights *w, uint32_t n_cols)
{
    const size_t tile = (size_t)w->layout.tile_rows * n_cols;
    return fill_bytes(n_cols) +
           (w->round == WEIGHTS_AS_STORED ? 0 : tile * sizeof(float) + tile / 32 * 34);
}

static const uint8_t *source(const struct tiling *p, const struct model_file_tensor *t)
{
    return t->data ? t->data : p->made;
}

static void tile_rounded(const struct tiling *p, uint32_t mat, uint32_t tile, uint8_t *dst,
                         uint8_t *work)
{
    const struct kern_mat *m = &p->w->mats[mat];
    const struct model_file_tensor *t = p->w->tensors[mat];
    const struct quant_info *from = quant_info(t->type);
    const uint32_t height = p->w->layout.tile_rows, r0 = tile * height;
    const uint32_t rows = m->n_rows - r0 < height ? m->n_rows - r0 : height;
    const size_t row_bytes = (size_t)m->n_cols / from->block * from->block_bytes;
    float *values = (float *)(void *)(work + fill_bytes(m->n_cols));
    uint8_t *q8 = (uint8_t *)(values + (size_t)height * m->n_cols);
    quant_to_f32(t->type, source(p, t) + r0 * row_bytes, values, (size_t)rows * m->n_cols);
    if (m->fmt == KERN_Q8W) {
        tiles_fill_wide(&p->w->layout, values, rows, m->n_cols, dst);
        return;
    }
    (void)quant_from_f32(QUANT_Q8_0, values, q8, (size_t)rows * m->n_cols, NULL);
    tiles_fill(&p->w->layout, QUANT_Q8_0, q8, rows, m->n_cols, 1.0f, 0, dst, work);
}

/* Checks the values of a tile's rows: a non-finite one would spread to every answer. Only the first
 * start pays for this; the cache then holds checked matrices. */
static void check_tile(struct tiling *p, uint32_t mat, uint32_t tile, float *row)
{
    const struct kern_mat *m = &p->w->mats[mat];
    const struct model_file_tensor *t = p->w->tensors[mat];
    const struct quant_info *from = quant_info(t->type);
    const size_t row_bytes = (size_t)m->n_cols / from->block * from->block_bytes;
    const uint32_t height = p->w->layout.tile_rows, r0 = tile * height;
    for (uint32_t r = r0; r < m->n_rows && r < r0 + height; r++) {
        float sum = 0.0f; /* stays 0 unless a value is not finite */
        quant_to_f32(t->type, source(p, t) + r * row_bytes, row, m->n_cols);
        for (uint32_t i = 0; i < m->n_cols; i++)
            sum += row[i] * 0.0f;
        if (!(sum == 0.0f)) {
            atomic_store_explicit(&p->bad, mat + 1, memory_order_relaxed);
            atomic_store_explicit(&p->stop, true, memory_order_relaxed);
        }
    }
}

static void tile_chunk(void *ctx, const struct crew_phase *phase, uint32_t chunk, uint32_t member)
{
    struct tiling *p = ctx;
    const uint32_t mat = phase->arg;
    const struct kern_mat *m = &p->w->mats[mat];
    const struct model_file_tensor *t = p->w->tensors[mat];
    uint32_t per = tiles_per_chunk(p, mat), tiles = tiles_count(&p->w->layout, m->n_rows);
    uint32_t from = chunk * per, to = from + per < tiles ? from + per : tiles;
    if (atomic_load_explicit(&p->stop, memory_order_relaxed))
        return;
    for (uint32_t i = from; i < to; i++) {
        uint8_t *dst = p->data + p->w->offsets[mat] + i * m->tile_bytes;
        check_tile(p, mat, i, p->row[member]);
        if (is_rounded(p->w, t))
            tile_rounded(p, mat, i, dst, p->work[member]);
        else
            tiles_fill(&p->w->layout, t->type, source(p, t), m->n_rows, m->n_cols, m->mul, i, dst,
                       p->work[member]);
    }
    size_t done = atomic_fetch_add_explicit(&p->done_bytes, (to - from) * m->tile_bytes,
                                            memory_order_relaxed);
    if (member == 0 && p->progress &&
        p->progress(p->progress_ctx, (double)done / (double)p->w->data_bytes))
        atomic_store_explicit(&p->stop, true, memory_order_relaxed);
}

/* Releases the source pages of a tiled tensor, so that they no longer count as memory in use. */
static void tile_finish(void *ctx, const struct crew_phase *phase, uint32_t member)
{
    struct tiling *p = ctx;
    const struct model_file_tensor *t = p->w->tensors[phase->arg];
    (void)member;
    if (!t->map || t->in_memory) /* anonymous memory: its contents would be lost */
        return;
    uintptr_t at = (uintptr_t)(t->data ? t->data : t->stored);
    uintptr_t from = (at + 4095) / 4096 * 4096, to = (at + t->n_bytes) / 4096 * 4096;
    if (to > from)
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* Rows per chunk when a matrix is first brought into row order. */
enum { MAKE_ROWS = 64 };

static void make_chunk(void *ctx, const struct crew_phase *phase, uint32_t chunk, uint32_t member)
{
    struct tiling *p = ctx;
    const struct model_file_tensor *t = p->w->tensors[phase->arg];
    uint64_t from = (uint64_t)chunk * phase->n_items, left = t->dims[1] - from;
    size_t row_bytes = t->n_bytes / (size_t)t->dims[1];
    (void)member;
    model_file_rows(t, from, left < phase->n_items ? left : phase->n_items, 0, t->dims[0],
                    p->made + (size_t)from * row_bytes);
}

static void find_mul(struct tiling *p, uint32_t mat)
{
    const struct model_file_tensor *t = p->w->tensors[mat];
    struct kern_mat *m = &p->w->mats[mat];
    const struct weights_of *of = &p->w->of[mat];
    m->mul = is_rounded(p->w, t) ? 1.0f
             : of->n_rows        ? tiles_mul(t->type, of->data, of->n_rows, m->n_cols)
                                 : tiles_mul(t->type, source(p, t), m->n_rows, m->n_cols);
}

static void make_finish(void *ctx, const struct crew_phase *phase, uint32_t member)
{
    (void)member;
    find_mul(ctx, phase->arg);
}

/* Plans the phases that tile everything; returns their number. */
static uint32_t plan_phases(struct tiling *p, struct crew_phase *phases)
{
    struct weights *w = p->w;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct model_file_tensor *t = w->tensors[i];
        if (t->order != MODEL_FILE_PLAIN) {
            uint32_t rows = w->mats[i].n_rows / CREW_MAX_CHUNKS + MAKE_ROWS;
            phases[n++] = (struct crew_phase){.chunk = make_chunk,
                                              .finish = make_finish,
                                              .arg = i,
                                              .n_items = rows,
                                              .n_chunks = (w->mats[i].n_rows + rows - 1) / rows};
        } else {
            find_mul(p, i);
        }
        uint32_t per = tiles_per_chunk(p, i);
        uint32_t tiles = tiles_count(&w->layout, w->mats[i].n_rows);
        phases[n++] = (struct crew_phase){.chunk = tile_chunk,
                                          .finish = tile_finish,
                                          .arg = i,
                                          .n_chunks = (tiles + per - 1) / per};
    }
    return n;
}

static int tile_all(struct weights *w, uint8_t *data, struct crew_lane *lane,
                    bool (*progress)(void *ctx, double part), void *progress_ctx, struct err *e)
{
    struct tiling p = {.w = w, .data = data, .progress = progress, .progress_ctx = progress_ctx};
    uint32_t members = crew_lane_size(lane), widest = 32;
    size_t largest = 0;
    int rc = err_set(e, SHOAL_ENOMEM, "out of memory to tile the weights");
    struct crew_phase *phases = mem_zalloc_n(w->n, 2 * sizeof(*phases));
    p.work = mem_zalloc_n(members, sizeof(*p.work));
    for (uint32_t i = 0; i < w->n; i++) {
        const struct model_file_tensor *t = w->tensors[i];
        widest = w->mats[i].n_cols > widest ? w->mats[i].n_cols : widest;
        if (t->order != MODEL_FILE_PLAIN && t->n_bytes > largest)
            largest = t->n_bytes;
    }
    p.row = mem_zalloc_n(members, sizeof(*p.row));
    for (uint32_t i = 0; p.work && p.row && i < members; i++) {
        p.work[i] = mem_alloc(work_bytes(w, widest));
        p.row[i] = mem_alloc(widest * sizeof(float));
        if (!p.work[i] || !p.row[i])
            goto out;
    }
    if (!phases || !p.work || !p.row || (largest && !(p.made = mem_alloc(largest))))
        goto out;
    crew_run(lane, &p, phases, plan_phases(&p, phases), NULL);
    rc = atomic_load(&p.stop) ? err_set(e, SHOAL_ECANCELLED, "loading was cancelled") : 0;
    const uint32_t bad = atomic_load(&p.bad);
    if (bad)
        rc = err_set(e, SHOAL_EFORMAT, "tensor %.*s has a value that is not finite",
                     (int)w->tensors[bad - 1]->name.n, w->tensors[bad - 1]->name.p);
out:
    for (uint32_t i = 0; i < members; i++) {
        mem_free(p.work ? p.work[i] : NULL);
        mem_free(p.row ? p.row[i] : NULL);
    }
    mem_free(p.work);
    mem_free(p.row);
    mem_free(p.made);
    mem_free(phases);
    return rc;
}

static void place_mats(struct weights *w, uint8_t *data)
{
    for (uint32_t i = 0; i < w->n; i++)
        w->mats[i].data = data + w->offsets[i];
}

/* Tiles of a secret file (file_map.h) must reach no disk in plain, either. */
static const struct file_secret *secret_of(const struct weights *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->tensors[i]->map && w->tensors[i]->map->is_secret)
            return &w->tensors[i]->map->secret;
    return NULL;
}

void weights_scale(struct weights *w, uint32_t index, float scale)
{
    w->of[index].scale = scale;
}

/* After the tiles and their cache file are made: both know only the values as stored. */
static void apply_scales(struct weights *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->of[i].scale > 0.0f)
            w->mats[i].mul *= w->of[i].scale;
}

int weights_load(struct weights *w, const char *source, const char *cache_dir,
                 struct crew_lane *lane, bool (*progress)(void *ctx, double part),
                 void *progress_ctx, struct err *e)
{
    struct weights_cache c;
    uint8_t *data = NULL;

    weights_cache_init(&c, w, source, cache_dir, secret_of(w));
    if (c.usable && weights_cache_open(&c, w, lane, &data)) {
        place_mats(w, data);
        apply_scales(w);
        return 0;
    }
    if (c.usable)
        data = weights_cache_create(&c, w);
    const bool kept = data != NULL;
    if (!data) {
        w->map_bytes = w->data_bytes + 1; /* a model without matrices is one too */
        w->map = data = mem_pages(w->map_bytes);
        w->unlocked = data && c.secret && !file_map_protect(data, w->map_bytes);
    }
    if (!data)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes for tiled weights",
                       w->data_bytes);
    place_mats(w, data);
    int rc = 0;
    for (uint32_t i = 0; i < w->n && rc == 0; i++)
        rc = model_file_need(w->tensors[i], e);
    if (rc == 0)
        rc = tile_all(w, data, lane, progress, progress_ctx, e);
    if (kept)
        weights_cache_finish(&c, w, lane, rc == 0);
    apply_scales(w);
    return rc;
}

bool weights_changed(const struct weights *w)
{
    struct stat st;
    if (!w->in_file)
        return false;
    return map_guard_is_broken(w->guard) || fstat(w->fd, &st) < 0 ||
           (uint64_t)st.st_size != w->map_bytes || st.st_mtim.tv_sec != w->mtime_s ||
           st.st_mtim.tv_nsec != w->mtime_ns;
}
