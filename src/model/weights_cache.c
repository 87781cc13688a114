/* weights_cache.c - see weights_int.h. */
#include "model/weights_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_open.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/file/map_guard.h"
#include "base/hash.h"
#include "base/mem.h"
#include "format/sealed_file.h"

/* Change this with every change of a tile layout. */
#define TILES_VERSION 1
#define CACHE_MAGIC "SHOALPK3" /* the last byte is the version of the header */
#define CACHE_SUFFIX ".tiles"
#define NOTE_SUFFIX ".tiles.ok"
#define SEALED_SUFFIX ".sealed"
#define SEALED_OF_SUFFIX ".sealed.of" /* the path of the model */
#define OLD_SUFFIX ".pack"            /* files of earlier versions: removed by prune() */
#define PAGE_BYTES 4096u              /* the data begins on a page */
#define BLOCK_BYTES ((size_t)1 << 20)
#define SETTLED_S 2 /* the coarsest times of a file system: those of FAT */

struct header { /* then n_mats factors (float), then a hash (uint64_t) of each block of data */
    char magic[8];
    uint64_t key;
    uint64_t data_bytes;
    uint32_t n_mats, n_blocks;
    uint64_t hash;         /* of the header with 0 here, and of both tables */
    char source[PATH_MAX]; /* path of the model that the tiles were made from */
};

struct verified_stamp {
    char magic[8];
    uint64_t dev, ino, size, mtime_s, mtime_ns, ctime_s, ctime_ns;
};

static uint32_t n_blocks(const struct weights *w)
{
    return (uint32_t)((w->data_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
}

static size_t muls_bytes(const struct weights *w) /* keeps the hashes aligned */
{
    return (w->n * sizeof(float) + 7) / 8 * 8;
}

static size_t tables_bytes(const struct weights *w)
{
    return muls_bytes(w) + n_blocks(w) * sizeof(uint64_t);
}

static size_t head_bytes(const struct weights *w)
{
    size_t n = sizeof(struct header) + tables_bytes(w);
    return (n + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Hashes all that the tiles depend on without reading the whole model: the identity of its
 * files, the plan, and some bytes from the middle of every tensor. */
static bool make_key(const struct weights *w, const char *source, char *real, uint64_t *key,
                     uint64_t *name)
{
    if (!realpath(source, real))
        return false;
    uint64_t words[] = {TILES_VERSION | (uint64_t)w->round << 32 |
                            (uint64_t)(w->round && w->layout.wide_signed) << 40,
                        w->layout.tile_rows | (uint64_t)w->part << 32,
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
            const struct file_map *m = t->map; /* that of a secret one has a time of its own */
            uint64_t file[] = {m->n_bytes, m->is_secret ? m->secret.source : (uint64_t)m->mtime_s,
                               m->is_secret ? 0 : (uint64_t)m->mtime_ns};
            *key = hash_bytes(file, sizeof(file), *key);
        }
        *key = hash_bytes(shape, sizeof(shape), *key);
        if (t->map && t->map->is_secret) /* its source says it, and it may not be there yet */
            continue;
        *key = hash_bytes((t->data ? t->data : t->stored) + (t->n_bytes - n) / 2, n, *key);
    }
    return true;
}

void weights_cache_init(struct weights_cache *c, const struct weights *w, const char *source,
                        const char *cache_dir, const struct file_secret *secret)
{
    uint64_t name;
    c->dir = cache_dir;
    c->secret = secret;
    c->usable = cache_dir && make_key(w, source, c->source, &c->key, &name);
    if (!c->usable)
        return;
    snprintf(c->path, sizeof(c->path), "%s/%016llx%s", cache_dir, (unsigned long long)name,
             secret ? SEALED_SUFFIX : CACHE_SUFFIX);
    snprintf(c->tmp, sizeof(c->tmp), "%s.%ld.tmp", c->path, (long)getpid());
    snprintf(c->note, sizeof(c->note), "%s/%016llx%s", cache_dir, (unsigned long long)name,
             secret ? SEALED_OF_SUFFIX : NOTE_SUFFIX);
}

/* ---- hashes --------------------------------------------------------------------------------- */

struct hashing {
    const uint8_t *data;
    size_t n_bytes;
    uint64_t *made;        /* where they go; NULL: they are compared */
    const uint8_t *wanted; /* at any alignment */
    _Atomic bool differs;
};

static void hash_chunk(void *ctx, const struct crew_phase *phase, uint32_t chunk, uint32_t member)
{
    struct hashing *h = ctx;
    (void)member;
    for (uint32_t i = chunk * phase->n_items; i < (chunk + 1) * phase->n_items; i++) {
        size_t at = i * BLOCK_BYTES, left = at < h->n_bytes ? h->n_bytes - at : 0;
        if (left == 0)
            return;
        uint64_t wanted, got = hash_large(h->data + at, left < BLOCK_BYTES ? left : BLOCK_BYTES, i);
        if (h->made) {
            h->made[i] = got;
            continue;
        }
        memcpy(&wanted, h->wanted + i * sizeof(wanted), sizeof(wanted));
        if (wanted != got)
            atomic_store_explicit(&h->differs, true, memory_order_relaxed);
    }
}

/* The work is memory-bound and divided over the lane. */
static void hash_all(struct hashing *h, struct crew_lane *lane)
{
    uint32_t n = (uint32_t)((h->n_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
    uint32_t per = n / CREW_MAX_CHUNKS + 1;
    struct crew_phase phase = {
        .chunk = hash_chunk, .n_items = per, .n_chunks = (n + per - 1) / per};
    if (n > 0)
        crew_run(lane, h, &phase, 1, NULL);
}

static uint64_t head_hash(const struct header *h, const uint8_t *tables, size_t n)
{
    struct header copy = *h;
    copy.hash = 0;
    return hash_large(tables, n, hash_large(&copy, sizeof(copy), 0));
}

/* ---- what was verified ---------------------------------------------------------------------- */

static struct verified_stamp stamp_of(const struct stat *st)
{
    struct verified_stamp id = {.dev = st->st_dev,
                                .ino = st->st_ino,
                                .size = (uint64_t)st->st_size,
                                .mtime_s = (uint64_t)st->st_mtim.tv_sec,
                                .mtime_ns = (uint64_t)st->st_mtim.tv_nsec,
                                .ctime_s = (uint64_t)st->st_ctim.tv_sec,
                                .ctime_ns = (uint64_t)st->st_ctim.tv_nsec};
    memcpy(id.magic, CACHE_MAGIC, sizeof(id.magic));
    return id;
}

static bool was_verified(const struct weights_cache *c, const struct stat *st)
{
    struct verified_stamp want = stamp_of(st), have;
    int fd = file_open_regular(c->note, NULL);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, &have, sizeof(have));
    close(fd);
    return n == (ssize_t)sizeof(have) && memcmp(&want, &have, sizeof(have)) == 0;
}

/* A lost or torn note costs one verification. */
static void note_verified(const struct weights_cache *c, const struct stat *st)
{
    const struct verified_stamp id = stamp_of(st);
    if (time(NULL) - st->st_ctim.tv_sec <= SETTLED_S) /* a write now could leave the times as is */
        return;
    int fd = open(c->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool ok = write(fd, &id, sizeof(id)) == (ssize_t)sizeof(id);
    close(fd);
    if (!ok || rename(c->tmp, c->note) < 0)
        unlink(c->tmp);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* NULL if header and tables are intact; then the factors are set. "": the file belongs to another
 * version, which is not damage. */
static const char *check_head(const struct weights_cache *c, struct weights *w, const uint8_t *map)
{
    struct header h;
    memcpy(&h, map, sizeof(h));
    if (memcmp(h.magic, CACHE_MAGIC, 8) != 0)
        return "";
    if (h.key != c->key || h.data_bytes != w->data_bytes || h.n_mats != w->n ||
        h.n_blocks != n_blocks(w))
        return "";
    if (head_hash(&h, map + sizeof(h), tables_bytes(w)) != h.hash)
        return "its header is damaged";
    for (uint32_t i = 0; i < w->n; i++) {
        memcpy(&w->mats[i].mul, map + sizeof(h) + i * sizeof(float), sizeof(float));
        if (!isfinite(w->mats[i].mul) || w->mats[i].mul <= 0.0f)
            return "a factor of it is not valid";
    }
    return NULL;
}

static bool adopt(struct weights *w, int fd, uint8_t *map, size_t n, int prot)
{
    struct stat st;
    w->guard = map_guard_add(map, n, prot);
    if (!w->guard || fstat(fd, &st) < 0) {
        map_guard_remove(w->guard);
        w->guard = NULL;
        return false;
    }
    w->map = map;
    w->map_bytes = n;
    w->fd = fd;
    w->in_file = true;
    w->mtime_s = st.st_mtim.tv_sec;
    w->mtime_ns = st.st_mtim.tv_nsec;
    return true;
}

static void let_go(struct weights *w)
{
    map_guard_remove(w->guard);
    munmap(w->map, w->map_bytes);
    close(w->fd);
    w->guard = NULL;
    w->map = NULL;
    w->in_file = false;
}

/* Memory for the whole file of an encrypted model. */
static bool secret_memory(struct weights *w)
{
    const size_t total = head_bytes(w) + w->data_bytes;
    w->map = mem_pages(total);
    w->map_bytes = w->map ? total : 0;
    w->unlocked = w->map && !file_map_protect(w->map, total);
    return w->map != NULL;
}

static bool open_sealed(const struct weights_cache *c, struct weights *w, uint8_t **data)
{
    struct err e = {0};
    const size_t head = head_bytes(w);
    if (access(c->path, F_OK) < 0 || !secret_memory(w))
        return false;
    int rc = sealed_get(c->path, c->secret->key, w->map, w->map_bytes, &e);
    const char *damage = rc == 0              ? check_head(c, w, w->map)
                         : rc == SHOAL_EINVAL ? "" /* of a model that was encrypted anew */
                                              : "its encrypted bytes were changed";
    if (!damage) {
        w->from_cache = true;
        *data = w->map + head;
        return true;
    }
    w->damage = damage[0] ? damage : NULL;
    mem_pages_free(w->map, w->map_bytes);
    w->map = NULL;
    return false;
}

bool weights_cache_open(const struct weights_cache *c, struct weights *w, struct crew_lane *lane,
                        uint8_t **data)
{
    if (c->secret)
        return open_sealed(c, w, data);
    struct stat st;
    const size_t head = head_bytes(w), total = head + w->data_bytes;
    int fd = file_open_regular(c->path, &st);
    if (fd < 0)
        return false;
    void *map = MAP_FAILED;
    if ((uint64_t)st.st_size == total)
        map = mmap(NULL, total, PROT_READ, MAP_SHARED, fd, 0);
    else
        w->damage = "its size is wrong";
    if (map == MAP_FAILED || !adopt(w, fd, map, total, PROT_READ)) {
        if (map != MAP_FAILED)
            munmap(map, total);
        close(fd);
        return false;
    }
    (void)madvise(map, total, MADV_WILLNEED);
    const char *damage = check_head(c, w, map);
    if (!damage && !was_verified(c, &st)) {
        struct hashing h = {.data = (uint8_t *)map + head,
                            .n_bytes = w->data_bytes,
                            .wanted = (uint8_t *)map + sizeof(struct header) + muls_bytes(w)};
        hash_all(&h, lane);
        if (atomic_load(&h.differs) || map_guard_is_broken(w->guard))
            damage = "a block of it does not match its hash";
        else
            note_verified(c, &st);
    }
    if (damage) {
        w->damage = damage[0] ? damage : NULL;
        let_go(w);
        return false;
    }
    w->from_cache = true;
    *data = (uint8_t *)map + head;
    return true;
}

/* ---- making --------------------------------------------------------------------------------- */

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

uint8_t *weights_cache_create(const struct weights_cache *c, struct weights *w)
{
    const size_t head = head_bytes(w), total = head + w->data_bytes;
    make_dirs(c->dir);
    if (c->secret)
        return secret_memory(w) ? w->map + head : NULL;
    int fd = open(c->tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    /* Allocate the blocks now: a full disk must fail here, not while tiles are written. */
    if (posix_fallocate(fd, 0, (off_t)total) == 0)
        map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || !adopt(w, fd, map, total, PROT_READ | PROT_WRITE)) {
        if (map != MAP_FAILED)
            munmap(map, total);
        close(fd);
        unlink(c->tmp);
        return NULL;
    }
    return (uint8_t *)map + head;
}

/* True for a cache file of ours whose model no longer exists, or of an older version. */
static bool is_stale(const char *path, bool old)
{
    struct header h = {0};
    int fd = file_open_regular(path, NULL);
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

/* Removes an encrypted cache file whose model is gone. */
static void prune_sealed(const char *dir, const char *note)
{
    char path[PATH_MAX + 64];
    struct buf source;
    struct err e;
    buf_init(&source, PATH_MAX);
    snprintf(path, sizeof(path), "%s/%s", dir, note);
    if (file_read(path, &source, &e) == 0 && access(buf_str(&source), F_OK) < 0 &&
        errno == ENOENT) {
        unlink(path);
        snprintf(path, sizeof(path), "%s/%.16s" SEALED_SUFFIX, dir, note);
        unlink(path);
    }
    buf_fini(&source);
}

/* Removes cache files that will never be mapped again, each with its note. */
static void prune(const char *dir)
{
    char path[PATH_MAX + 64];
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d)) != NULL;) {
        const char *suffix = strlen(f->d_name) > 16 ? f->d_name + 16 : "";
        if (strcmp(suffix, SEALED_OF_SUFFIX) == 0)
            prune_sealed(dir, f->d_name);
        bool old = strcmp(suffix, OLD_SUFFIX) == 0;
        if (!old && strcmp(suffix, CACHE_SUFFIX) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
        if (!is_stale(path, old))
            continue;
        unlink(path); /* processes that have it mapped keep it */
        snprintf(path, sizeof(path), "%s/%.16s" NOTE_SUFFIX, dir, f->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
}

static void sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* Header, factors and hashes; false: memory ran out. */
static bool write_head(const struct weights_cache *c, struct weights *w, struct crew_lane *lane)
{
    struct header h = {
        .key = c->key, .data_bytes = w->data_bytes, .n_mats = w->n, .n_blocks = n_blocks(w)};
    uint8_t *tables = mem_zalloc(tables_bytes(w) + 1);
    if (!tables)
        return false;
    for (uint32_t i = 0; i < w->n; i++)
        memcpy(tables + i * sizeof(float), &w->mats[i].mul, sizeof(float));
    struct hashing all = {.data = w->map + head_bytes(w),
                          .n_bytes = w->data_bytes,
                          .made = (uint64_t *)(void *)(tables + muls_bytes(w))};
    hash_all(&all, lane);
    memcpy(h.magic, CACHE_MAGIC, 8);
    snprintf(h.source, sizeof(h.source), "%s", c->source);
    h.hash = head_hash(&h, tables, tables_bytes(w));
    memcpy(w->map + sizeof(h), tables, tables_bytes(w));
    memcpy(w->map, &h, sizeof(h));
    mem_free(tables);
    return true;
}

/* The note comes first: a file without one would never be removed.  Plain tiles of the time before
 * the file was encrypted go. */
static void finish_sealed(const struct weights_cache *c, struct weights *w, struct crew_lane *lane)
{
    char plain[sizeof(c->path)];
    struct err e = {0};
    snprintf(plain, sizeof(plain), "%.*s" CACHE_SUFFIX,
             (int)(strlen(c->path) - strlen(SEALED_SUFFIX)), c->path);
    unlink(plain);
    if (file_replace(c->note, c->source, strlen(c->source), &e) < 0 || !write_head(c, w, lane) ||
        sealed_put(c->tmp, c->secret->key, w->map, w->map_bytes, &e) < 0 ||
        rename(c->tmp, c->path) < 0) {
        unlink(c->tmp);
        unlink(c->path); /* what is there does not fit this model */
    }
    sync_dir(c->dir);
    prune(c->dir);
}

void weights_cache_finish(const struct weights_cache *c, struct weights *w, struct crew_lane *lane,
                          bool whole)
{
    if (c->secret) {
        if (whole)
            finish_sealed(c, w, lane);
        return;
    }
    struct stat st;
    whole = whole && write_head(c, w, lane) && !map_guard_is_broken(w->guard) &&
            fsync(w->fd) == 0 && rename(c->tmp, c->path) == 0;
    if (!whole) {
        unlink(c->tmp); /* the mapping stays valid; the next start just tiles again */
        return;
    }
    /* From now on the mapping is read-only: no accidental writes, and the file's time does not
     * change again. */
    (void)mprotect(w->map, w->map_bytes, PROT_READ);
    if (fstat(w->fd, &st) == 0) {
        w->mtime_s = st.st_mtim.tv_sec;
        w->mtime_ns = st.st_mtim.tv_nsec;
    }
    sync_dir(c->dir);
    prune(c->dir);
}
