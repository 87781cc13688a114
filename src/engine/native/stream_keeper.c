/* stream_keeper.c - see stream_keeper.h. */
#include "engine/native/stream_keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "score/score_stream.h"
#include "score/score_stream_file.h"

#define MAX_MODEL_BYTES ((size_t)1 << 30)
#define MAX_FILE_BYTES ((size_t)1 << 30)
#define SLACK_BYTES ((size_t)256 << 10) /* outdated records that an appended file may hold */
#define TELL_NS 60000000000ull

struct stream_keeper {
    struct score_streams *streams;
    pthread_mutex_t lock; /* guards streams, changed and stop */
    pthread_cond_t wake;
    bool changed, stop;
    /* the thread's */
    pthread_t thread;
    char *path;
    uint64_t model;
    uint32_t every_ms;
    int lock_fd;       /* -1: the file is another process's, or cannot be written */
    bool rewrite;      /* the file must not be appended to */
    size_t file_bytes; /* whole records */
    uint64_t told_ns;
};

static struct score_stream_clock now(void)
{
    return (struct score_stream_clock){.now_ns = clock_ns(), .wall_ms = clock_unix_ms()};
}

/* ---- which model it is ---- */

static int is_part(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* A hash of the names and bytes of the folder's files. */
static int fingerprint(const char *folder, bool int8, uint64_t *out, struct err *e)
{
    struct dirent **list = NULL;
    struct stat st;
    char path[PATH_MAX];
    int n = scandir(folder, &list, is_part, alphasort), rc = 0;
    *out = int8;
    if (n < 0)
        return err_set(e, SHOAL_EIO, "cannot read %s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        struct buf bytes;
        buf_init(&bytes, MAX_MODEL_BYTES);
        snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
        if (rc == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            rc = file_read(path, &bytes, e);
            *out = hash_bytes(list[i]->d_name, strlen(list[i]->d_name), *out);
            *out = hash_large(buf_str(&bytes), bytes.len, *out);
        }
        buf_fini(&bytes);
        free(list[i]);
    }
    free(list);
    return rc;
}

/* ---- the file ---- */

/* Takes the file for this process. */
static int claim(struct stream_keeper *k, const char *dir, struct err *e)
{
    char path[PATH_MAX];
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", dir, strerror(errno));
    snprintf(path, sizeof(path), "%s.lock", k->path);
    k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    if (flock(k->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    int rc = err_set(e, SHOAL_EBUSY, "%s is locked: another server keeps its streams there", path);
    close(k->lock_fd);
    k->lock_fd = -1;
    return rc;
}

static void read_file(struct stream_keeper *k)
{
    struct buf bytes;
    struct err e = {0};
    k->rewrite = true;
    if (access(k->path, F_OK) < 0)
        return;
    buf_init(&bytes, MAX_FILE_BYTES);
    int rc = file_read(k->path, &bytes, &e);
    if (rc == 0)
        rc = score_stream_file_read(k->streams, buf_str(&bytes), bytes.len, k->model, now(),
                                    &k->file_bytes, &e);
    k->rewrite = rc < 0 || k->file_bytes != bytes.len;
    if (rc < 0)
        log_warn("streams", "file=%s: %s; its streams start afresh", k->path, e.msg);
    else
        log_info("streams", "file=%s: %u streams continue%s", k->path,
                 score_streams_count(k->streams), k->rewrite ? "; its end was damaged" : "");
    buf_fini(&bytes);
}

static int append(struct stream_keeper *k, const char *p, size_t n, struct err *e)
{
    int fd = open(k->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
    off_t at = (off_t)k->file_bytes;
    while (fd >= 0 && n > 0) {
        ssize_t m = pwrite(fd, p, n, at);
        if (m < 0 && errno == EINTR)
            continue;
        if (m < 0)
            break;
        p += m;
        n -= (size_t)m;
        at += m;
    }
    if (fd < 0 || n > 0 || fdatasync(fd) < 0)
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", k->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Under the lock, which is released while the disk works. */
static void save(struct stream_keeper *k)
{
    struct buf out;
    struct err e = {0};
    bool all = k->rewrite || k->file_bytes > 2 * score_streams_bytes(k->streams) + SLACK_BYTES;
    if (!k->changed || k->lock_fd < 0)
        return;
    k->changed = false;
    buf_init(&out, MAX_FILE_BYTES);
    if (all)
        score_stream_file_begin(&out, k->model);
    score_stream_file_put(&out, k->streams, now(), all);
    pthread_mutex_unlock(&k->lock);
    int rc = out.rc < 0 ? err_set(&e, out.rc, "out of memory for %zu bytes", out.len)
             : all      ? file_replace(k->path, out.data, out.len, &e)
                        : append(k, buf_str(&out), out.len, &e);
    pthread_mutex_lock(&k->lock);
    k->file_bytes = (all ? 0 : k->file_bytes) + out.len;
    k->rewrite = rc < 0;
    k->changed = k->changed || rc < 0;
    if (rc < 0 && (k->told_ns == 0 || clock_ns() - k->told_ns > TELL_NS)) {
        k->told_ns = clock_ns();
        log_warn("streams", "stream states could not be saved, retrying: %s", e.msg);
    }
    buf_fini(&out);
}

static void *run(void *ctx)
{
    struct stream_keeper *k = ctx;
    struct timespec until;
    pthread_mutex_lock(&k->lock);
    while (!k->stop) {
        if (!k->changed) {
            pthread_cond_wait(&k->wake, &k->lock);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += k->every_ms / 1000;
        until.tv_nsec += (long)(k->every_ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        while (!k->stop && pthread_cond_timedwait(&k->wake, &k->lock, &until) == 0)
            ; /* rows that arrive in the meantime are written with the others */
        save(k);
    }
    save(k);
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- lifetime ---- */

static void free_keeper(struct stream_keeper *k)
{
    if (k->lock_fd >= 0)
        close(k->lock_fd);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    mem_free(k->path);
    mem_free(k);
}

static struct stream_keeper *make(struct score_streams *t, const struct stream_keeper_opts *o)
{
    struct stream_keeper *k = mem_zalloc(sizeof(*k));
    if (!k)
        return NULL;
    k->streams = t;
    k->every_ms = o->every_ms;
    k->lock_fd = -1;
    pthread_mutex_init(&k->lock, NULL);
    cond_init(&k->wake);
    return k;
}

/* The file's name and lock, and its content. */
static int find_file(struct stream_keeper *k, const struct stream_keeper_opts *o, struct err *e)
{
    char path[PATH_MAX], hex[17];
    int rc = fingerprint(o->model, o->int8, &k->model, e);
    if (rc < 0)
        return rc;
    hash_hex(hex, k->model);
    snprintf(path, sizeof(path), "%s/%s", o->dir, hex);
    k->path = mem_strdup(path);
    if (!k->path)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the streams' file");
    rc = claim(k, o->dir, e);
    if (rc == 0)
        read_file(k);
    return rc;
}

int stream_keeper_open(struct stream_keeper **out, struct score_streams *t,
                       const struct stream_keeper_opts *o, struct err *e)
{
    struct stream_keeper *k = make(t, o);
    struct err why = {0};
    *out = NULL;
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the keeper of streams");
    if (find_file(k, o, &why) < 0) {
        log_warn("streams", "streams of %s will not survive a restart: %s", o->model, why.msg);
        free_keeper(k);
        return 0;
    }
    int rc = thread_create(&k->thread, "streams", run, k, e);
    if (rc < 0) {
        free_keeper(k);
        return rc;
    }
    *out = k;
    return 0;
}

void stream_keeper_close(struct stream_keeper *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    free_keeper(k);
}

void stream_keeper_lock(struct stream_keeper *k)
{
    if (k)
        pthread_mutex_lock(&k->lock);
}

void stream_keeper_unlock(struct stream_keeper *k, bool changed)
{
    if (!k)
        return;
    if (changed && !k->changed) {
        k->changed = true;
        pthread_cond_signal(&k->wake);
    }
    pthread_mutex_unlock(&k->lock);
}
