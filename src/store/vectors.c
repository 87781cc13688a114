/* vectors.c - see vectors.h. */
#include "store/vectors.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/room.h"
#include "base/thread/thread.h"
#include "kernels/kern.h"
#include "kernels/tiles.h"
#include "store/hnsw.h"
#include "store/hnsw_file.h"

#define SLAB_ROWS 4096u /* divisible by the rows of a tile */
#define F16_ROUNDING (1.0f / 2048.0f)
#define FLOAT_ERROR 1e-4f  /* error of float sums, relative to the lengths */
#define LEAST_BREADTH 100u /* minimum breadth of a graph search */
/* share of the longest vector: the graph is used only if no vector is shorter */
#define EVEN_LENGTH 0.9f
#define MAX_GRAPH_BYTES ((size_t)4 << 30)
#define SAVE_PART 16u /* the graph is written when this part of it is new */

struct slab {
    float *rows;    /* [SLAB_ROWS][n_cols] */
    uint8_t *tiles; /* of the rows that fill whole tiles */
    int8_t *codes;  /* [SLAB_ROWS][n_cols], for the graph; NULL: no graph */
    float scales[SLAB_ROWS];
    int64_t ids[SLAB_ROWS];
    uint32_t sums[SLAB_ROWS]; /* hashes of the vectors */
    bool dead[SLAB_ROWS];
};

struct vectors {
    pthread_rwlock_t lock;
    const struct kern_ops *k;
    uint32_t n_dims, n_cols; /* n_cols: padded for the kernels */
    size_t tile_bytes;
    struct slab **slabs;
    size_t n_slabs, cap_slabs;
    size_t n_rows, n_dead;
    float min_len, max_len, max_error; /* of a vector, and of its 8-bit copy */
    /* the graph, above exact_rows vectors (0: never) */
    size_t exact_rows;
    struct hnsw *graph;       /* NULL: none yet */
    uint64_t moves;           /* counts compactions, which move all rows: an older plan is void */
    char *path;               /* of the graph's file; NULL: not saved */
    bool waits;               /* for vectors_restore */
    _Atomic uint32_t n_saved; /* rows of the graph that the file has */
    pthread_t linker;
    pthread_mutex_t wake_lock; /* taken alone */
    pthread_cond_t wake;
    bool linking, more,
        stop; /* linking: a linker thread exists; more: rows may be waiting for it */
};

int vectors_create(struct vectors **out, uint32_t n_dims, size_t exact_rows, struct err *e)
{
    *out = NULL;
    if (n_dims == 0 || n_dims > VECTORS_MAX_DIMS)
        return err_set(e, SHOAL_EINVAL, "vectors of %u dimensions are not supported", n_dims);
    struct vectors *v = mem_zalloc(sizeof(*v));
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for vectors");
    v->k = kern_select(NULL, e);
    if (!v->k) {
        mem_free(v);
        return SHOAL_ELIMIT;
    }
    v->n_dims = n_dims;
    v->n_cols = (n_dims + KERN_WIDE - 1) / KERN_WIDE * KERN_WIDE;
    v->tile_bytes = tiles_bytes(&v->k->layout, KERN_Q8W, v->n_cols);
    pthread_rwlockattr_t how; /* a stream of searches must not starve writers */
    pthread_rwlockattr_init(&how);
    pthread_rwlockattr_setkind_np(&how, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&v->lock, &how);
    pthread_rwlockattr_destroy(&how);
    pthread_mutex_init(&v->wake_lock, NULL);
    pthread_cond_init(&v->wake, NULL);
    v->exact_rows = exact_rows;
    v->min_len = INFINITY;
    *out = v;
    return 0;
}

/* ---- the graph's file ---- */

/* The keys of the first n rows; NULL: out of memory.  Under the lock. */
static struct hnsw_file_key *keys_of(const struct vectors *v, size_t n)
{
    struct hnsw_file_key *keys = mem_zalloc_n(n + 1, sizeof(*keys));
    for (size_t i = 0; keys && i < n; i++) {
        const struct slab *s = v->slabs[i / SLAB_ROWS];
        keys[i] = (struct hnsw_file_key){s->ids[i % SLAB_ROWS], s->sums[i % SLAB_ROWS]};
    }
    return keys;
}

/* Writes the graph if at least one in `part` of its rows is not in the file. A failure is logged
 * and not fatal: the graph is then rebuilt. */
static void save_graph(struct vectors *v, uint32_t part)
{
    struct err e = {0};
    struct buf out;
    uint32_t n = 0;
    if (!v->path)
        return;
    buf_init(&out, MAX_GRAPH_BYTES);
    pthread_rwlock_rdlock(&v->lock);
    const uint32_t saved = atomic_load_explicit(&v->n_saved, memory_order_relaxed);
    const uint32_t has = v->graph ? hnsw_count(v->graph) : 0;
    if (has > saved && has - saved >= has / (part > 1 ? part : has)) {
        struct hnsw_file_key *keys = keys_of(v, has);
        if (keys)
            hnsw_file_write(&out, v->graph, keys);
        mem_free(keys);
        n = keys ? has : 0;
        atomic_store_explicit(&v->n_saved, n, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&v->lock);
    int rc = n > 0 ? out.rc : 0;
    if (n > 0 && rc == 0)
        rc = file_replace(v->path, out.data, out.len, &e);
    if (rc < 0)
        log_warn("store", "cannot save the index of vectors: %s", e.msg[0] ? e.msg : err_text(rc));
    buf_fini(&out);
}

int vectors_keep_graph(struct vectors *v, const char *path, struct err *e)
{
    v->path = mem_strdup(path);
    v->waits = v->path != NULL;
    return v->path ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for vectors");
}

static void free_slab(struct slab *s)
{
    if (!s)
        return;
    mem_free(s->rows);
    mem_free(s->tiles);
    mem_free(s->codes);
    mem_free(s);
}

void vectors_destroy(struct vectors *v)
{
    if (!v)
        return;
    if (v->linking) {
        pthread_mutex_lock(&v->wake_lock);
        v->stop = true;
        pthread_cond_signal(&v->wake);
        pthread_mutex_unlock(&v->wake_lock);
        pthread_join(v->linker, NULL);
    }
    save_graph(v, 1);
    hnsw_destroy(v->graph);
    mem_free(v->path);
    for (size_t i = 0; i < v->n_slabs; i++)
        free_slab(v->slabs[i]);
    mem_free(v->slabs);
    pthread_cond_destroy(&v->wake);
    pthread_mutex_destroy(&v->wake_lock);
    pthread_rwlock_destroy(&v->lock);
    mem_free(v);
}

/* ---- changes ---- */

static bool add_slab(struct vectors *v)
{
    if (!room_make(&v->slabs, &v->cap_slabs, v->n_slabs, sizeof(*v->slabs), 8))
        return false;
    struct slab *s = mem_zalloc(sizeof(*s));
    if (s) {
        s->rows = mem_aligned((size_t)SLAB_ROWS * v->n_cols * sizeof(float));
        s->tiles = mem_aligned(SLAB_ROWS / v->k->layout.tile_rows * v->tile_bytes);
        s->codes = v->exact_rows > 0 ? mem_aligned((size_t)SLAB_ROWS * v->n_cols) : NULL;
    }
    if (!s || !s->rows || !s->tiles || (v->exact_rows > 0 && !s->codes)) {
        free_slab(s);
        return false;
    }
    v->slabs[v->n_slabs++] = s;
    return true;
}

/* Length of a row, and how far it is from its 8-bit copy. */
static void measure(const struct vectors *v, const float *row, float *len, float *error)
{
    double sum = 0, off = 0;
    for (uint32_t g = 0; g < v->n_cols; g += KERN_WIDE) {
        float amax = 0;
        for (uint32_t i = g; i < g + KERN_WIDE; i++)
            amax = fmaxf(amax, fabsf(row[i]));
        float scale = amax / 127.0f;
        for (uint32_t i = g; i < g + KERN_WIDE; i++) {
            float d = scale > 0 ? row[i] - rintf(row[i] / scale) * scale : 0;
            off += (double)d * (double)d;
            sum += (double)row[i] * (double)row[i];
        }
    }
    *len = (float)sqrt(sum);
    *error = (float)sqrt(off) + *len * F16_ROUNDING + *len * FLOAT_ERROR;
}

static void put_row(struct vectors *v, int64_t id, const float *row)
{
    struct slab *s = v->slabs[v->n_rows / SLAB_ROWS];
    uint32_t at = (uint32_t)(v->n_rows % SLAB_ROWS), per = v->k->layout.tile_rows;
    float *to = s->rows + (size_t)at * v->n_cols, len, error;
    memcpy(to, row, v->n_dims * sizeof(float));
    s->ids[at] = id;
    s->sums[at] = (uint32_t)hash_bytes(to, v->n_dims * sizeof(float), 0);
    s->dead[at] = false;
    if (s->codes)
        s->scales[at] = hnsw_encode(s->codes + (size_t)at * v->n_cols, to, v->n_cols);
    measure(v, to, &len, &error);
    v->min_len = fminf(v->min_len, len);
    v->max_len = fmaxf(v->max_len, len);
    v->max_error = fmaxf(v->max_error, error);
    v->n_rows++;
    if ((at + 1) % per == 0) {
        uint32_t first = at + 1 - per;
        tiles_fill_wide(&v->k->layout, s->rows + (size_t)first * v->n_cols, per, v->n_cols,
                        s->tiles + first / per * v->tile_bytes);
    }
}

/* ---- the graph ---- */

/* All three under the lock. */
static const float *graph_row(const void *ctx, uint32_t row)
{
    const struct vectors *v = ctx;
    return v->slabs[row / SLAB_ROWS]->rows + (size_t)(row % SLAB_ROWS) * v->n_cols;
}

static const int8_t *graph_code(const void *ctx, uint32_t row, float *scale)
{
    const struct vectors *v = ctx;
    const struct slab *s = v->slabs[row / SLAB_ROWS];
    *scale = s->scales[row % SLAB_ROWS];
    return s->codes + (size_t)(row % SLAB_ROWS) * v->n_cols;
}

static bool is_alive(const void *ctx, uint32_t row)
{
    const struct vectors *v = ctx;
    return !v->slabs[row / SLAB_ROWS]->dead[row % SLAB_ROWS];
}

/* Whether the graph should have more rows than it has.  Under the lock. */
static bool wants_links(const struct vectors *v)
{
    return !v->waits && v->exact_rows > 0 && v->n_rows - v->n_dead > v->exact_rows &&
           v->n_rows < UINT32_MAX && v->min_len >= EVEN_LENGTH * v->max_len &&
           (!v->graph || hnsw_count(v->graph) < v->n_rows);
}

/* Links one row; false: no row is left, or no memory: the rest is then searched exactly. */
static bool link_row(struct vectors *v, struct hnsw_plan *p)
{
    struct err e;
    uint64_t moves = 0;
    int rc = SHOAL_ENOTFOUND;
    pthread_rwlock_rdlock(&v->lock);
    if (wants_links(v)) {
        uint32_t row = hnsw_count(v->graph);
        int64_t id = v->slabs[row / SLAB_ROWS]->ids[row % SLAB_ROWS];
        moves = v->moves;
        rc = hnsw_plan(v->graph, (uint64_t)id, p, &e);
    }
    pthread_rwlock_unlock(&v->lock);
    if (rc < 0)
        return false;
    pthread_rwlock_wrlock(&v->lock);
    if (moves == v->moves)
        rc = hnsw_apply(v->graph, p, &e);
    pthread_rwlock_unlock(&v->lock);
    return rc == 0;
}

static void *run_linker(void *arg)
{
    struct vectors *v = arg;
    struct hnsw_plan *p = mem_zalloc(sizeof(*p));
    pthread_mutex_lock(&v->wake_lock);
    while (!v->stop) {
        if (!v->more || !p) {
            pthread_cond_wait(&v->wake, &v->wake_lock);
            continue;
        }
        v->more = false; /* set again by rows that arrive meanwhile */
        pthread_mutex_unlock(&v->wake_lock);
        bool linked = link_row(v, p);
        if (!linked)
            save_graph(v, SAVE_PART);
        pthread_mutex_lock(&v->wake_lock);
        v->more |= linked;
    }
    pthread_mutex_unlock(&v->wake_lock);
    mem_free(p);
    return NULL;
}

static int make_graph(struct vectors *v, struct err *e)
{
    const struct hnsw_rows rows = {.get = graph_row,
                                   .ctx = v,
                                   .dot = v->k->dot,
                                   .n_cols = v->n_cols,
                                   .code = graph_code,
                                   .dot_i8 = v->k->dot_i8};
    return v->graph ? 0 : hnsw_create(&v->graph, &rows, e);
}

/* Without memory or a thread the search stays exact. */
static void wake_linker(struct vectors *v)
{
    struct err e;
    pthread_rwlock_wrlock(&v->lock);
    bool wanted = wants_links(v);
    if (wanted && make_graph(v, &e) < 0)
        wanted = false;
    pthread_rwlock_unlock(&v->lock);
    if (!wanted)
        return;
    pthread_mutex_lock(&v->wake_lock);
    if (!v->linking)
        v->linking = thread_create(&v->linker, "vectors", run_linker, v, &e) == 0;
    v->more = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->wake_lock);
}

/* What the file has; the lock is held for writing. */
static int read_graph(struct vectors *v, const struct buf *file, struct err *e)
{
    struct hnsw_file_key *keys = keys_of(v, v->n_rows);
    int rc = keys ? make_graph(v, e) : err_set(e, SHOAL_ENOMEM, "out of memory for vectors");
    if (rc == 0)
        rc = hnsw_file_read(v->graph, file->data, file->len, keys, (uint32_t)v->n_rows, e);
    if (rc == 0)
        atomic_store_explicit(&v->n_saved, hnsw_count(v->graph), memory_order_relaxed);
    mem_free(keys);
    return rc;
}

void vectors_restore(struct vectors *v, struct err *why)
{
    struct buf file;
    int rc = SHOAL_ENOTFOUND;
    *why = (struct err){.msg = ""};
    if (!v->waits)
        return;
    buf_init(&file, MAX_GRAPH_BYTES);
    if (vectors_count(v) > v->exact_rows && access(v->path, R_OK) == 0)
        rc = file_read(v->path, &file, why);
    pthread_rwlock_wrlock(&v->lock);
    v->waits = false;
    if (rc == 0 && wants_links(v))
        (void)read_graph(v, &file, why);
    pthread_rwlock_unlock(&v->lock);
    buf_fini(&file);
    wake_linker(v);
}

size_t vectors_linked(struct vectors *v)
{
    pthread_rwlock_rdlock(&v->lock);
    size_t n = v->graph ? hnsw_count(v->graph) : 0;
    pthread_rwlock_unlock(&v->lock);
    return n;
}

/* ---- changes ---- */

int vectors_add(struct vectors *v, const int64_t *ids, const float *rows, size_t n, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < n * v->n_dims; i++)
        if (!isfinite(rows[i]))
            return err_set(e, SHOAL_EINVAL, "a vector has values that are not finite");
    pthread_rwlock_wrlock(&v->lock);
    while (v->n_slabs * SLAB_ROWS < v->n_rows + n && rc == 0)
        if (!add_slab(v))
            rc = err_set(e, SHOAL_ENOMEM, "out of memory for %zu vectors", n);
    for (size_t i = 0; i < n && rc == 0; i++)
        put_row(v, ids[i], rows + i * v->n_dims);
    pthread_rwlock_unlock(&v->lock);
    if (rc == 0 && v->exact_rows > 0)
        wake_linker(v);
    return rc;
}

/* When half of the rows are dead, compacts the others and rebuilds the graph. */
static void compact(struct vectors *v)
{
    size_t n = v->n_rows;
    if (v->n_dead < SLAB_ROWS || v->n_dead * 2 < n)
        return;
    v->n_rows = v->n_dead = 0;
    v->max_len = v->max_error = 0;
    v->min_len = INFINITY;
    v->moves++;
    atomic_store_explicit(&v->n_saved, 0, memory_order_relaxed);
    if (v->graph)
        hnsw_clear(v->graph);
    for (size_t i = 0; i < n; i++) {
        struct slab *s = v->slabs[i / SLAB_ROWS];
        size_t at = i % SLAB_ROWS;
        if (!s->dead[at]) /* the write position never overtakes the read position */
            put_row(v, s->ids[at], s->rows + at * v->n_cols);
    }
    size_t need = (v->n_rows + SLAB_ROWS - 1) / SLAB_ROWS;
    while (v->n_slabs > need)
        free_slab(v->slabs[--v->n_slabs]);
}

static int by_id(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void mark(struct vectors *v, const int64_t *ids, size_t n, bool dead_if_listed)
{
    pthread_rwlock_wrlock(&v->lock);
    for (size_t i = 0; i < v->n_rows; i++) {
        struct slab *s = v->slabs[i / SLAB_ROWS];
        size_t at = i % SLAB_ROWS;
        bool listed = n > 0 && bsearch(&s->ids[at], ids, n, sizeof(*ids), by_id) != NULL;
        if (listed == dead_if_listed && !s->dead[at]) {
            s->dead[at] = true;
            v->n_dead++;
        }
    }
    compact(v);
    pthread_rwlock_unlock(&v->lock);
    if (v->exact_rows > 0)
        wake_linker(v);
}

void vectors_remove(struct vectors *v, const int64_t *ids, size_t n)
{
    if (n > 0)
        mark(v, ids, n, true);
}

void vectors_keep(struct vectors *v, const int64_t *ids, size_t n)
{
    mark(v, ids, n, false);
}

size_t vectors_count(struct vectors *v)
{
    pthread_rwlock_rdlock(&v->lock);
    size_t n = v->n_rows - v->n_dead;
    pthread_rwlock_unlock(&v->lock);
    return n;
}

size_t vectors_bytes(struct vectors *v)
{
    pthread_rwlock_rdlock(&v->lock);
    size_t n = v->n_slabs * (sizeof(struct slab) + (size_t)SLAB_ROWS * v->n_cols * sizeof(float) +
                             SLAB_ROWS / v->k->layout.tile_rows * v->tile_bytes +
                             (v->exact_rows > 0 ? (size_t)SLAB_ROWS * v->n_cols : 0));
    n += v->graph ? hnsw_bytes(v->graph) : 0;
    pthread_rwlock_unlock(&v->lock);
    return n;
}

/* ---- searching ---- */

/* The query as floats and in 8 bits; memory of one block. */
struct query {
    float *x;
    int8_t *q;
    float *scale;
    int32_t *sums;
    float *scores; /* of the rows from `first` on, which begins a slab */
    size_t first;
    size_t from;   /* the first row with a score: it begins a tile */
    size_t linked; /* rows that the graph has: their scores are -INFINITY */
    float len, error;
    struct kern_act act;
};

static int make_query(struct query *s, const struct vectors *v, const float *q, size_t linked,
                      struct err *e)
{
    uint32_t c = v->n_cols;
    size_t rows = (v->n_slabs - linked / SLAB_ROWS + 1) * SLAB_ROWS;
    char *m = mem_aligned(c * (2 * sizeof(float) + sizeof(int32_t) + 1) + rows * sizeof(float));
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a search");
    s->linked = linked;
    s->first = linked / SLAB_ROWS * SLAB_ROWS;
    s->from = linked / v->k->layout.tile_rows * v->k->layout.tile_rows;
    s->scores = (float *)(void *)m;
    s->x = s->scores + rows;
    s->scale = s->x + c;
    s->sums = (int32_t *)(void *)(s->scale + c);
    s->q = (int8_t *)(s->sums + c);
    memcpy(s->x, q, v->n_dims * sizeof(float));
    s->act = (struct kern_act){
        .x = s->x, .ld = c, .q = s->q, .scale = s->scale, .sums = s->sums, .n_cols = c};
    v->k->quantize_wide(&s->act, 0, 0, c / KERN_WIDE);
    double sum = 0, off = 0;
    for (uint32_t i = 0; i < c; i++) {
        double d = (double)s->x[i] - (double)s->scale[i / KERN_WIDE] * s->q[i];
        off += d * d;
        sum += (double)s->x[i] * (double)s->x[i];
    }
    s->len = (float)sqrt(sum);
    s->error = (float)sqrt(off) + s->len * FLOAT_ERROR;
    return 0;
}

/* Scores all unlinked rows approximately, and those of the last, partial tile exactly. */
static void score_all(const struct vectors *v, struct query *s)
{
    uint32_t per = v->k->layout.tile_rows;
    for (size_t first = s->first; first < v->n_rows; first += SLAB_ROWS) {
        const struct slab *b = v->slabs[first / SLAB_ROWS];
        float *to = s->scores + (first - s->first);
        uint32_t n = v->n_rows - first < SLAB_ROWS ? (uint32_t)(v->n_rows - first) : SLAB_ROWS;
        const struct kern_mat m = {.fmt = KERN_Q8W,
                                   .n_rows = n / per * per,
                                   .n_cols = v->n_cols,
                                   .mul = 1,
                                   .tile_bytes = v->tile_bytes,
                                   .data = b->tiles};
        const uint32_t begin = first < s->from ? (uint32_t)(s->from - first) : 0; /* of a tile */
        if (n / per > begin / per)
            v->k->gemm(&m, &s->act, 1, begin / per, n / per, to, SLAB_ROWS);
        for (uint32_t i = n / per * per; i < n; i++)
            to[i] = v->k->dot(s->x, b->rows + (size_t)i * v->n_cols, v->n_cols);
        for (uint32_t i = begin; i < n; i++)
            if (b->dead[i] || first + i < s->linked)
                to[i] = -INFINITY;
    }
}

static void sift(float *heap, uint32_t n, uint32_t i)
{
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= n)
            return;
        c += c + 1 < n && heap[c + 1] < heap[c];
        if (heap[i] <= heap[c])
            return;
        float t = heap[i];
        heap[i] = heap[c];
        heap[c] = t;
        i = c;
    }
}

/* The k-th largest of n scores; -INFINITY if there are fewer. */
static float kth_of(const float *scores, size_t n, uint32_t k, float *heap)
{
    for (uint32_t i = 0; i < k; i++)
        heap[i] = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (scores[i] > heap[0]) {
            heap[0] = scores[i];
            sift(heap, k, 0);
        }
    return heap[0];
}

static int best_first(const void *a, const void *b)
{
    const struct vectors_hit *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Compares as floats all rows that scored at least `least`, and those that the graph found. */
static int compare(const struct vectors *v, const struct query *s, float least, uint32_t k,
                   const struct hnsw_hit *found, uint32_t n_found, struct vectors_hit *hits,
                   uint32_t *n, struct err *e)
{
    const size_t begin = s->from - s->first, n_scores = v->n_rows - s->first;
    size_t many = n_found, at = 0;
    for (size_t i = begin; i < n_scores; i++)
        many += s->scores[i] >= least && s->scores[i] > -INFINITY;
    struct vectors_hit *list = mem_zalloc_n(many + 1, sizeof(*list));
    if (!list)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a search");
    for (uint32_t i = 0; i < n_found; i++)
        list[at++] = (struct vectors_hit){
            v->slabs[found[i].row / SLAB_ROWS]->ids[found[i].row % SLAB_ROWS], found[i].score};
    for (size_t i = begin; i < n_scores; i++) {
        if (!(s->scores[i] >= least && s->scores[i] > -INFINITY))
            continue;
        const struct slab *b = v->slabs[(s->first + i) / SLAB_ROWS];
        size_t row = (s->first + i) % SLAB_ROWS;
        list[at++] = (struct vectors_hit){b->ids[row],
                                          v->k->dot(s->x, b->rows + row * v->n_cols, v->n_cols)};
    }
    qsort(list, many, sizeof(*list), best_first);
    *n = many < k ? (uint32_t)many : k;
    memcpy(hits, list, *n * sizeof(*hits));
    mem_free(list);
    return 0;
}

/* Call under the lock. linked: number of rows to request from the graph. */
static int search(const struct vectors *v, const float *q, size_t linked, uint32_t k,
                  struct vectors_hit *hits, uint32_t *n, struct err *e)
{
    uint32_t breadth = 2 * k > LEAST_BREADTH ? 2 * k : LEAST_BREADTH, n_found = 0;
    struct hnsw_hit *found = linked > 0 ? mem_zalloc_n(breadth, sizeof(*found)) : NULL;
    float heap[VECTORS_MAX_NEAREST];
    struct query s = {.scores = NULL};
    if (linked > 0 && !found)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a search");
    int rc = make_query(&s, v, q, linked, e);
    if (rc == 0 && linked > 0)
        rc = hnsw_search(v->graph, s.x, breadth, v->n_dead > 0 ? is_alive : NULL, found, &n_found,
                         e);
    if (rc == 0) {
        score_all(v, &s);
        /* A score is off by at most this; so is the k-th. */
        float off = s.len * v->max_error + s.error * (v->max_len + v->max_error);
        float least = kth_of(s.scores + (s.from - s.first), v->n_rows - s.from, k, heap) - 2 * off;
        rc = compare(v, &s, least, k, found, n_found, hits, n, e);
    }
    mem_free(s.scores);
    mem_free(found);
    return rc;
}

int vectors_search(struct vectors *v, const float *q, uint32_t k, struct vectors_hit *hits,
                   uint32_t *n, struct err *e)
{
    *n = 0;
    if (k == 0 || k > VECTORS_MAX_NEAREST)
        return err_set(e, SHOAL_EINVAL, "at most %u results", VECTORS_MAX_NEAREST);
    for (uint32_t i = 0; i < v->n_dims; i++)
        if (!isfinite(q[i]))
            return err_set(e, SHOAL_EINVAL, "the query's vector has values that are not finite");
    pthread_rwlock_rdlock(&v->lock);
    bool even = v->min_len >= EVEN_LENGTH * v->max_len;
    bool many = v->n_rows - v->n_dead > v->exact_rows;
    int rc = search(v, q, v->graph && even && many ? hnsw_count(v->graph) : 0, k, hits, n, e);
    pthread_rwlock_unlock(&v->lock);
    return rc;
}
