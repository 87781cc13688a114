/* spool.c - see spool.h. */
#include "mqtt/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"

#define FILE_MAGIC "SHOALSP1"
#define RECORD_MAGIC 0x31525053u          /* "SPR1" */
#define REWRITE_BYTES ((size_t)256 << 10) /* smaller files are left alone */

enum { KIND_PUT = 1, KIND_DONE = 2 };

struct file_head {
    char magic[8];
    uint64_t salt, first_number;
    uint64_t sum;
};

struct record_head {
    uint32_t magic, kind;
    uint64_t number;
    uint64_t n_bytes;
    uint64_t sum; /* of the fields above and the bytes */
};

struct live {
    uint64_t number;
    size_t at, n; /* range of its bytes in the file */
};

struct spool {
    int fd;
    char *path;
    uint64_t salt, next;
    size_t max_bytes, size; /* size: of the file, all of it whole records */
    struct live *live;      /* by number */
    size_t n_live, n_room;
    struct spool_stats stats;
};

static uint64_t sum_of(const struct record_head *h, const void *bytes)
{
    uint64_t x = hash_bytes(h, offsetof(struct record_head, sum), 1);
    return hash_large(bytes ? bytes : "", bytes ? (size_t)h->n_bytes : 0, x);
}

static bool write_all(int fd, const void *p, size_t n, size_t at)
{
    const char *from = p;
    while (n > 0) {
        ssize_t k = pwrite(fd, from, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        from += k;
        at += (size_t)k;
        n -= (size_t)k;
    }
    return true;
}

static bool read_all(int fd, void *p, size_t n, size_t at)
{
    char *to = p;
    while (n > 0) {
        ssize_t k = pread(fd, to, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        to += k;
        at += (size_t)k;
        n -= (size_t)k;
    }
    return true;
}

static int keep_live(struct spool *s, uint64_t number, size_t at, size_t n)
{
    if (s->n_live == s->n_room) {
        size_t room = s->n_room ? 2 * s->n_room : 64;
        struct live *v = mem_realloc(s->live, room * sizeof(*v));
        if (!v)
            return SHOAL_ENOMEM;
        s->live = v;
        s->n_room = room;
    }
    s->live[s->n_live++] = (struct live){number, at, n};
    s->stats.live_bytes += n;
    return 0;
}

/* False: it is not live. */
static bool drop_live(struct spool *s, uint64_t number)
{
    size_t lo = 0, hi = s->n_live;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->live[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == s->n_live || s->live[lo].number != number)
        return false;
    s->stats.live_bytes -= s->live[lo].n;
    memmove(&s->live[lo], &s->live[lo + 1], (s->n_live - lo - 1) * sizeof(*s->live));
    s->n_live--;
    return true;
}

/* ---- writing ---- */

/* Appends; the file is as before if it fails. */
static int append(struct spool *s, uint32_t kind, uint64_t number, const void *bytes, size_t n,
                  bool sync)
{
    struct record_head h = {RECORD_MAGIC, kind, number, n, 0};
    h.sum = sum_of(&h, bytes);
    bool ok = write_all(s->fd, &h, sizeof(h), s->size) &&
              write_all(s->fd, bytes, n, s->size + sizeof(h)) && (!sync || fdatasync(s->fd) == 0);
    if (!ok) {
        int why = errno;
        (void)!ftruncate(s->fd, (off_t)s->size); /* if that fails, the next record overwrites it */
        errno = why;
        return SHOAL_EIO;
    }
    s->size += sizeof(h) + n;
    return 0;
}

static bool write_head(int fd, uint64_t salt, uint64_t first)
{
    struct file_head h = {FILE_MAGIC, salt, first, 0};
    h.sum = hash_bytes(&h, offsetof(struct file_head, sum), 2);
    return write_all(fd, &h, sizeof(h), 0);
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
}

/* The live records alone, in a new file.  The old one stays if anything fails. */
static void rewrite(struct spool *s)
{
    char path[PATH_MAX];
    struct spool next = *s;
    struct buf b;
    if (snprintf(path, sizeof(path), "%s.new", s->path) >= (int)sizeof(path))
        return;
    next.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (next.fd < 0)
        return;
    next.size = sizeof(struct file_head);
    next.live = mem_zalloc_n(s->n_live ? s->n_live : 1, sizeof(*next.live));
    buf_init(&b, SPOOL_MAX_RECORD);
    bool ok = next.live && flock(next.fd, LOCK_EX | LOCK_NB) == 0 &&
              write_head(next.fd, s->salt, s->next);
    for (size_t i = 0; ok && i < s->n_live; i++) {
        const struct live *l = &s->live[i];
        buf_clear(&b);
        char *at = buf_room(&b, l->n);
        ok = at && read_all(s->fd, at, l->n, l->at);
        if (!ok)
            break;
        next.live[i] = (struct live){l->number, next.size + sizeof(struct record_head), l->n};
        ok = append(&next, KIND_PUT, l->number, at, l->n, false) == 0;
    }
    buf_fini(&b);
    ok = ok && fsync(next.fd) == 0 && rename(path, s->path) == 0;
    if (!ok) {
        unlink(path);
        close(next.fd);
        mem_free(next.live);
        return;
    }
    sync_folder(s->path);
    close(s->fd);
    mem_free(s->live);
    s->fd = next.fd;
    s->size = next.size;
    s->live = next.live;
    s->n_room = s->n_live ? s->n_live : 1;
}

int spool_put(struct spool *s, const void *bytes, size_t n, uint64_t *number, struct err *e)
{
    if (n > SPOOL_MAX_RECORD || n > s->max_bytes || s->stats.live_bytes > s->max_bytes - n) {
        s->stats.n_refused++;
        return err_set(e, SHOAL_ELIMIT, "the queue on disk is full: %zu of %zu bytes wait",
                       s->stats.live_bytes, s->max_bytes);
    }
    size_t at = s->size + sizeof(struct record_head);
    if (keep_live(s, s->next, at, n) < 0)
        return err_set(e, SHOAL_ENOMEM, "queue on disk");
    if (append(s, KIND_PUT, s->next, bytes, n, true) < 0) {
        s->stats.n_refused++;
        drop_live(s, s->next);
        return err_set(e, SHOAL_EIO, "cannot write to %s: %s", s->path, strerror(errno));
    }
    *number = s->next++;
    s->stats.n_put++;
    return 0;
}

void spool_done(struct spool *s, uint64_t number)
{
    if (!drop_live(s, number))
        return;
    s->stats.n_done++;
    /* If this fails the record is returned again after a restart, which its receiver must
     * expect. */
    (void)append(s, KIND_DONE, number, NULL, 0, false);
    if (s->size > REWRITE_BYTES && s->size / 2 > s->stats.live_bytes)
        rewrite(s);
}

/* ---- opening ---- */

/* Reads the record at s->size; false: none, or it is damaged. */
static bool read_record(struct spool *s, size_t file_bytes, struct record_head *h, struct buf *b)
{
    size_t left = file_bytes - s->size;
    if (left < sizeof(*h) || !read_all(s->fd, h, sizeof(*h), s->size) || h->magic != RECORD_MAGIC ||
        h->n_bytes > left - sizeof(*h) || h->n_bytes > SPOOL_MAX_RECORD)
        return false;
    buf_clear(b);
    char *at = buf_room(b, (size_t)h->n_bytes);
    if (!at || !read_all(s->fd, at, (size_t)h->n_bytes, s->size + sizeof(*h)))
        return false;
    buf_used(b, (size_t)h->n_bytes);
    return h->sum == sum_of(h, h->n_bytes || h->kind == KIND_PUT ? at : NULL);
}

static int replay(struct spool *s, size_t file_bytes, struct err *e)
{
    struct record_head h;
    struct buf b;
    int rc = 0;
    buf_init(&b, SPOOL_MAX_RECORD);
    while (rc == 0 && read_record(s, file_bytes, &h, &b)) {
        if (h.kind == KIND_PUT && h.number >= s->next)
            s->next = h.number + 1;
        if (h.kind == KIND_PUT && (s->n_live == 0 || h.number > s->live[s->n_live - 1].number))
            rc = keep_live(s, h.number, s->size + sizeof(h), (size_t)h.n_bytes);
        else if (h.kind == KIND_DONE)
            drop_live(s, h.number);
        s->size += sizeof(h) + (size_t)h.n_bytes;
    }
    if (b.rc == SHOAL_ENOMEM)
        rc = SHOAL_ENOMEM;
    buf_fini(&b);
    if (rc < 0)
        return err_set(e, rc, "%s", s->path);
    s->stats.dropped_bytes = file_bytes - s->size;
    if (s->stats.dropped_bytes > 0 && ftruncate(s->fd, (off_t)s->size) < 0)
        return err_set(e, SHOAL_EIO, "cannot cut %s: %s", s->path, strerror(errno));
    return 0;
}

static int begin(struct spool *s, struct err *e)
{
    if (getrandom(&s->salt, sizeof(s->salt), 0) < 0)
        s->salt = hash_mix(clock_ns());
    s->next = 1;
    s->size = sizeof(struct file_head);
    if (ftruncate(s->fd, 0) < 0 || !write_head(s->fd, s->salt, s->next) || fsync(s->fd) < 0)
        return err_set(e, SHOAL_EIO, "cannot write to %s: %s", s->path, strerror(errno));
    sync_folder(s->path);
    return 0;
}

static int load(struct spool *s, struct err *e)
{
    struct file_head h;
    struct stat st;
    if (flock(s->fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, SHOAL_ELIMIT, "%s is used by another process: give each its own file",
                       s->path);
    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, SHOAL_EIO, "%s is not a regular file", s->path);
    size_t n = (size_t)st.st_size;
    bool read = n >= sizeof(h) && read_all(s->fd, &h, sizeof(h), 0);
    if (n < sizeof(h)) { /* new, or the process died while creating it: nothing was stored yet */
        s->stats.dropped_bytes = n;
        return begin(s, e);
    }
    if (!read || memcmp(h.magic, FILE_MAGIC, 8) != 0 ||
        h.sum != hash_bytes(&h, offsetof(struct file_head, sum), 2))
        return err_set(e, SHOAL_EFORMAT,
                       "%s is not a Shoal queue, or its header is damaged: move it away", s->path);
    s->salt = h.salt;
    s->next = h.first_number;
    s->size = sizeof(h);
    return replay(s, n, e);
}

static int tell(struct spool *s, spool_each_fn each, void *ctx, struct err *e)
{
    struct buf b;
    int rc = 0;
    buf_init(&b, SPOOL_MAX_RECORD);
    for (size_t i = 0; rc == 0 && i < s->n_live; i++) {
        buf_clear(&b);
        char *at = buf_room(&b, s->live[i].n);
        if (!at)
            rc = err_set(e, SHOAL_ENOMEM, "%s", s->path);
        else if (!read_all(s->fd, at, s->live[i].n, s->live[i].at))
            rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", s->path, strerror(errno));
        else if ((rc = each(ctx, s->live[i].number, at, s->live[i].n)) < 0)
            err_set(e, rc, "%s: %s", s->path, err_text(rc));
    }
    buf_fini(&b);
    return rc;
}

int spool_open(struct spool **out, const struct spool_opts *o, spool_each_fn each, void *ctx,
               struct err *e)
{
    struct spool *s = mem_zalloc(sizeof(*s));
    int rc;
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "queue on disk");
    s->max_bytes = o->max_bytes ? o->max_bytes : (size_t)16 << 20;
    s->path = mem_strdup(o->path);
    s->fd = open(o->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (!s->path)
        rc = err_set(e, SHOAL_ENOMEM, "queue on disk");
    else if (s->fd < 0)
        rc = err_set(e, SHOAL_EIO, "cannot open %s: %s", o->path, strerror(errno));
    else
        rc = load(s, e);
    if (rc == 0)
        rc = tell(s, each, ctx, e);
    if (rc < 0) {
        spool_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spool_close(struct spool *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    mem_free(s->live);
    mem_free(s->path);
    mem_free(s);
}

uint64_t spool_salt(const struct spool *s)
{
    return s->salt;
}

void spool_get_stats(const struct spool *s, struct spool_stats *out)
{
    *out = s->stats;
    out->n_live = s->n_live;
    out->file_bytes = s->size;
}
