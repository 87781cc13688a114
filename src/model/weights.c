/* weights.c - see weights.h. */
#include "model/weights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kernels/tiles.h"

/* Change this with every change of a tile layout. */
#define TILES_VERSION 1
#define CACHE_MAGIC "SHOALPK2" /* the last byte is the version of the header */
#define CACHE_SUFFIX ".tiles"
#define OLD_SUFFIX ".pack" /* of earlier versions: removed by prune() */
#define HEADER_BYTES 4096u /* header and table of factors; data begins on a page */

struct header {
    char magic[8];
    uint64_t key;
    uint64_t data_bytes;
    uint32_t n_mats, complete;
    char source[PATH_MAX]; /* path of the model that the tiles were made from */
};

void weights_init(struct weights *w, const struct kern_layout *layout)
{
    *w = (struct weights){.layout = *layout};
}

void weights_fini(struct weights *w)
{
    if (w->map)
        munmap(w->map, w->map_bytes);
    mem_free(w->mats);
    mem_free(w->tensors);
    mem_free(w->offsets);
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
    if (!mats || !tensors || !offsets)
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
    w->data_bytes += tiles_count(&w->layout, m.n_rows) * m.tile_bytes;
    *index = w->n++;
    return 0;
}

static size_t header_bytes(const struct weights *w)
{
    size_t n = sizeof(struct header) + w->n * sizeof(float);
    return (n + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES;
}

/* ---- the cache file ------------------------------------------------------------------------ */

/* Hashes all that the tiles depend on without reading the whole model: the identity of its
 * files, the plan, and some bytes from the middle of every tensor. */
static bool cache_key(const struct weights *w, const char *source, char *real, uint64_t *key,
                      uint64_t *name)
{
    if (!realpath(source, real))
        return false;
    uint64_t words[] = {TILES_VERSION | (uint64_t)w->round << 32 |
                            (uint64_t)(w->round && w->layout.wide_signed) << 40,
                        w->layout.tile_rows,
                        w->layout.group,
                        w->layout.q8_unsigned,
                        w->data_bytes,
                        w->n};
    *name = hash_bytes(real, strlen(real), hash_bytes(words, 4 * sizeof(words[0]), 0));
    *key = hash_bytes(words, sizeof(words), *name);
    for (uint32_t i = 0; i < w->n; i++) {
        const struct model_file_tensor *t = w->tensors[i];
        uint64_t shape[] = {t->type, t->dims[0], t->dims[1], t->n_bytes};
        size_t n = t->n_bytes < 64 ? t->n_bytes : 64;
        if (t->map && (i == 0 || t->map != w->tensors[i - 1]->map)) {
            uint64_t file[] = {t->map->n_bytes, (uint64_t)t->map->mtime_s,
                               (uint64_t)t->map->mtime_ns};
            *key = hash_bytes(file, sizeof(file), *key);
        }
        *key = hash_bytes(shape, sizeof(shape), *key);
        *key = hash_bytes((t->data ? t->data : t->stored) + (t->n_bytes - n) / 2, n, *key);
    }
    return true;
}

static void place_mats(struct weights *w, uint8_t *data)
{
    for (uint32_t i = 0; i < w->n; i++)
        w->mats[i].data = data + w->offsets[i];
}

static bool map_cached(struct weights *w, const char *path, uint64_t key)
{
    struct stat st;
    size_t head = header_bytes(w), total = head + w->data_bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *map = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == total)
        map = mmap(NULL, total, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    struct header h;
    memcpy(&h, map, sizeof(h));
    bool ok = memcmp(h.magic, CACHE_MAGIC, 8) == 0 && h.key == key && h.complete == 1 &&
              h.data_bytes == w->data_bytes && h.n_mats == w->n;
    for (uint32_t i = 0; ok && i < w->n; i++) {
        memcpy(&w->mats[i].mul, (uint8_t *)map + sizeof(h) + i * sizeof(float), sizeof(float));
        ok = isfinite(w->mats[i].mul) && w->mats[i].mul > 0.0f;
    }
    if (!ok) {
        munmap(map, total);
        return false;
    }
    (void)madvise(map, total, MADV_WILLNEED);
    w->map = map;
    w->map_bytes = total;
    w->in_file = w->from_cache = true;
    place_mats(w, (uint8_t *)map + head);
    return true;
}

/* A writable mapping of a new file of the given size, or NULL; the caller then uses memory. */
static uint8_t *create_file(const char *tmp, size_t total)
{
    int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    /* Allocate the blocks now: a full disk must fail here, not with SIGBUS while tiles are written.
     */
    if (posix_fallocate(fd, 0, (off_t)total) == 0)
        map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) {
        unlink(tmp);
        return NULL;
    }
    return map;
}

static void make_dirs(const char *dir)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", dir);
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(part, 0700); /* open() reports any failure later */
            *p = '/';
        }
    (void)mkdir(part, 0700);
}

/* True for a cache file of ours whose model no longer exists, or of an older version. */
static bool is_stale(const char *path, bool old)
{
    struct header h = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &h, sizeof(h));
    if (fd >= 0)
        close(fd);
    if (n < 8 || memcmp(h.magic, CACHE_MAGIC, 7) != 0)
        return false; /* not our file: leave it alone */
    if (old || memcmp(h.magic, CACHE_MAGIC, 8) != 0 || n != (ssize_t)sizeof(h))
        return true;
    h.source[sizeof(h.source) - 1] = '\0';
    return access(h.source, F_OK) < 0 && errno == ENOENT;
}

/* Removes cache files that will never be mapped again. */
static void prune(const char *dir)
{
    char path[PATH_MAX + 64];
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d)) != NULL;) {
        const char *suffix = strlen(f->d_name) > 16 ? f->d_name + 16 : "";
        bool old = strcmp(suffix, OLD_SUFFIX) == 0;
        if (!old && strcmp(suffix, CACHE_SUFFIX) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
        if (is_stale(path, old))
            unlink(path); /* processes that have it mapped keep it */
    }
    if (d)
        closedir(d);
}

/* ---- tiling -------------------------------------------------------------------------------- */

struct tiling {
    struct weights *w;
    uint8_t *data;
    void **work;   /* per member */
    uint8_t *made; /* the current matrix, if its file stores the rows in another order */
    _Atomic size_t done_bytes;
    _Atomic bool stop;
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
    m->mul = is_rounded(p->w, t) ? 1.0f : tiles_mul(t->type, source(p, t), m->n_rows, m->n_cols);
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
    for (uint32_t i = 0; p.work && i < members; i++) {
        p.work[i] = mem_alloc(work_bytes(w, widest));
        if (!p.work[i])
            goto out;
    }
    if (!phases || !p.work || (largest && !(p.made = mem_alloc(largest))))
        goto out;
    crew_run(lane, &p, phases, plan_phases(&p, phases), NULL);
    rc = atomic_load(&p.stop) ? err_set(e, SHOAL_ECANCELLED, "loading was cancelled") : 0;
out:
    for (uint32_t i = 0; p.work && i < members; i++)
        mem_free(p.work[i]);
    mem_free(p.work);
    mem_free(p.made);
    mem_free(phases);
    return rc;
}

int weights_load(struct weights *w, const char *source, const char *cache_dir,
                 struct crew_lane *lane, bool (*progress)(void *ctx, double part),
                 void *progress_ctx, struct err *e)
{
    char real[PATH_MAX], path[PATH_MAX + 64], tmp[PATH_MAX + 96];
    uint64_t key = 0, name = 0;
    size_t head = header_bytes(w), total = head + w->data_bytes;
    uint8_t *map = NULL;

    if (cache_dir && cache_key(w, source, real, &key, &name)) {
        snprintf(path, sizeof(path), "%s/%016llx" CACHE_SUFFIX, cache_dir,
                 (unsigned long long)name);
        snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid());
        if (map_cached(w, path, key))
            return 0;
        make_dirs(cache_dir);
        map = create_file(tmp, total);
        w->in_file = map != NULL;
    }
    if (!map)
        map = mem_pages(total);
    if (!map)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes for tiled weights", total);
    w->map = map;
    w->map_bytes = total;
    place_mats(w, map + head);
    int rc = tile_all(w, map + head, lane, progress, progress_ctx, e);
    if (!w->in_file)
        return rc;
    if (rc < 0) {
        unlink(tmp);
        return rc;
    }
    struct header h = {.key = key, .data_bytes = w->data_bytes, .n_mats = w->n, .complete = 1};
    memcpy(h.magic, CACHE_MAGIC, 8);
    snprintf(h.source, sizeof(h.source), "%s", real);
    for (uint32_t i = 0; i < w->n; i++)
        memcpy(map + sizeof(h) + i * sizeof(float), &w->mats[i].mul, sizeof(float));
    memcpy(map, &h, sizeof(h));
    if (rename(tmp, path) < 0)
        unlink(tmp); /* the mapping stays valid; the next start just tiles again */
    prune(cache_dir);
    return 0;
}
