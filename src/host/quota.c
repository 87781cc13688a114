/* quota.c - see quota.h. */
#include "host/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "engine/cache_dir.h"
#include "host/counter.h"
#include "host/quota_file.h"

#define DAY_S 86400u
#define MAX_ACCOUNTS QUOTA_FILE_MAX_ROWS
#define SLICES 32u      /* a slice is this part of a limit ... */
#define MIN_SLICE 1000u /* ... or this many tokens, if that is more */
#define PAUSE_S 1       /* between two rounds of the thread */

struct quota {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct quota_opts o;
    char *file;
    int lock_fd; /* held while the file is ours; -1: not opened yet */
    struct quota_account *list;
    uint32_t n;
    bool dirty, stop, has_thread;
    pthread_t thread;
};

static uint64_t now_s(const struct quota *q)
{
    struct timespec ts;
    if (q->o.now_s)
        return q->o.now_s(q->o.now_ctx);
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec;
}

/* ---- accounts, under the lock ---- */

static uint64_t slice_of(uint64_t limit)
{
    uint64_t n = limit / SLICES > MIN_SLICE ? limit / SLICES : MIN_SLICE;
    return n < limit ? n : limit;
}

/* A clock that was set back does not start a day again. */
static void begin_day(const struct quota *q, struct quota_account *a)
{
    uint64_t day = now_s(q) / DAY_S;
    if (day > a->day) {
        a->day = day;
        a->used = a->granted = a->owed = 0;
        a->asked = false;
    }
    if (a->granted == 0 && a->limit > 0 && q->o.source)
        a->granted = a->owed = slice_of(a->limit);
}

/* Number of tokens to request from the source; 0: none. */
static uint64_t wanted(const struct quota *q, const struct quota_account *a)
{
    uint64_t slice = slice_of(a->limit);
    if (!q->o.source || a->limit == 0 || a->day == 0 || (a->asked && a->owed == 0))
        return 0;
    uint64_t ahead = a->used + slice > a->granted ? a->used + slice - a->granted : 0;
    bool low = a->granted < a->used + slice / 2;
    return a->owed + (low && !a->asked ? ahead : 0);
}

static struct quota_account *find(struct quota *q, const char *name)
{
    for (struct quota_account *a = q->list; a; a = a->next)
        if (strncmp(a->name, name, sizeof(a->name) - 1) == 0)
            return a;
    return NULL;
}

static struct quota_account *add(struct quota *q, const char *name)
{
    struct quota_account *a = q->n < MAX_ACCOUNTS ? mem_zalloc(sizeof(*a)) : NULL;
    if (!a)
        return NULL;
    snprintf(a->name, sizeof(a->name), "%s", name);
    a->next = q->list;
    q->list = a;
    q->n++;
    return a;
}

static void wake_thread(struct quota *q)
{
    q->dirty = true;
    pthread_cond_signal(&q->wake);
}

/* ---- the file ---- */

static void take_row(void *ctx, const struct quota_file_row *row)
{
    struct quota *q = ctx;
    struct quota_account *a = find(q, row->name);
    if (row->day < now_s(q) / DAY_S || (!a && !(a = add(q, row->name))))
        return;
    a->day = row->day;
    a->used = row->used;
    a->granted = row->granted;
}

static int lock_file(struct quota *q, struct err *e)
{
    struct buf path;
    char *folder = mem_strdup(q->file);
    if (folder)
        mkdir(dirname(folder), 0755); /* usually there */
    mem_free(folder);
    buf_init(&path, 4096);
    buf_printf(&path, "%s.lock", q->file);
    if (path.rc == 0)
        q->lock_fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    buf_fini(&path);
    if (q->lock_fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s.lock: %s", q->file, strerror(errno));
    if (flock(q->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(q->lock_fd);
    q->lock_fd = -1;
    return err_set(e, SHOAL_EBUSY,
                   "another server keeps its token quotas in %s: set 'quota.file' to another file",
                   q->file);
}

/* Under the lock, once, before anything is counted. */
static int open_file(struct quota *q, struct err *e)
{
    struct buf text;
    struct err why = {0};
    int rc = lock_file(q, e);
    if (rc < 0 || access(q->file, F_OK) < 0)
        return rc;
    buf_init(&text, QUOTA_FILE_MAX_BYTES);
    int bad = file_read(q->file, &text, &why);
    if (bad == 0)
        bad = quota_file_read(buf_str(&text), text.len, take_row, q, &why);
    buf_fini(&text);
    if (bad < 0)
        log_warn("quota", "%s is not used, counting starts from zero: %s", q->file, why.msg);
    return 0;
}

/* Under the lock: what the file will hold. */
static void write_rows(struct quota *q, struct buf *out)
{
    uint64_t today = now_s(q) / DAY_S;
    quota_file_begin(out);
    for (const struct quota_account *a = q->list; a; a = a->next) {
        struct quota_file_row row = {.day = a->day, .used = a->used, .granted = a->granted};
        if (a->day < today || (a->used == 0 && a->granted == 0))
            continue;
        memcpy(row.name, a->name, sizeof(row.name));
        quota_file_put(out, &row);
    }
    quota_file_end(out);
}

/* Under the lock, which is released in between. */
static void save(struct quota *q)
{
    struct buf text;
    struct err e = {0};
    if (!q->dirty || q->lock_fd < 0)
        return;
    q->dirty = false;
    buf_init(&text, QUOTA_FILE_MAX_BYTES);
    write_rows(q, &text);
    pthread_mutex_unlock(&q->lock);
    int rc = text.rc < 0 ? err_set(&e, text.rc, "out of memory")
                         : file_replace(q->file, text.data, text.len, &e);
    buf_fini(&text);
    pthread_mutex_lock(&q->lock);
    if (rc < 0) {
        log_warn("quota", "cannot save the tokens of today: %s", e.msg);
        q->dirty = true;
    }
}

/* ---- the thread ---- */

/* Under the lock, which is released in between. False: the source is unreachable. */
static bool lease_one(struct quota *q, struct quota_account *a)
{
    uint64_t want = wanted(q, a), got = 0, day = a->day, limit = a->limit, owed = a->owed;
    struct err e = {0};
    if (want == 0)
        return true;
    pthread_mutex_unlock(&q->lock);
    int rc = q->o.source->ops->lease(q->o.source, a->name, day, limit, want, &got, &e);
    pthread_mutex_lock(&q->lock);
    if (rc < 0 || a->day != day)
        return rc >= 0;
    a->granted = a->granted - owed + (got < want ? got : want);
    a->owed -= owed;
    a->asked = got < want;
    q->dirty = true;
    return true;
}

static bool lease_all(struct quota *q)
{
    bool reached = true;
    for (struct quota_account *a = q->list; a && reached && !q->stop; a = a->next)
        reached = lease_one(q, a); /* accounts are never removed */
    return reached;
}

static bool any_wanted(const struct quota *q)
{
    for (const struct quota_account *a = q->list; a; a = a->next)
        if (wanted(q, a) > 0)
            return true;
    return false;
}

static void *run(void *ctx)
{
    struct quota *q = ctx;
    struct timespec until;
    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        if (!q->dirty && !any_wanted(q)) {
            pthread_cond_wait(&q->wake, &q->lock);
            continue;
        }
        lease_all(q);
        save(q);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PAUSE_S;
        while (!q->stop && pthread_cond_timedwait(&q->wake, &q->lock, &until) == 0)
            ; /* later changes are written in the next round */
    }
    save(q);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* False: no memory. */
static bool choose_file(struct quota *q, const struct quota_opts *o)
{
    char dir[PATH_MAX], path[PATH_MAX + 8];
    const char *cache = cache_dir_wanted(o->cache_dir, dir, sizeof(dir));
    if (!o->file && !cache)
        return true;
    if (!o->file)
        snprintf(path, sizeof(path), "%s/quota", cache);
    q->file = mem_strdup(o->file ? o->file : path);
    return q->file != NULL;
}

int quota_create(struct quota **out, const struct quota_opts *o, struct err *e)
{
    struct quota *q = mem_zalloc(sizeof(*q));
    *out = NULL;
    if (!q)
        return err_set(e, SHOAL_ENOMEM, "quotas");
    pthread_mutex_init(&q->lock, NULL);
    cond_init(&q->wake);
    q->o = *o;
    q->lock_fd = -1;
    if (!choose_file(q, o)) {
        quota_destroy(q);
        return err_set(e, SHOAL_ENOMEM, "quotas");
    }
    *out = q;
    return 0;
}

void quota_destroy(struct quota *q)
{
    if (!q)
        return;
    if (q->has_thread) {
        pthread_mutex_lock(&q->lock);
        q->stop = true;
        pthread_cond_signal(&q->wake);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
    }
    if (q->lock_fd >= 0)
        close(q->lock_fd);
    while (q->list) {
        struct quota_account *a = q->list;
        q->list = a->next;
        mem_free(a);
    }
    mem_free(q->file);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->wake);
    mem_free(q);
}

/* Under the lock: what limits need, once. */
static int prepare(struct quota *q, struct err *e)
{
    int rc = q->file && q->lock_fd < 0 ? open_file(q, e) : 0;
    if (rc < 0 || q->has_thread || (!q->file && !q->o.source))
        return rc;
    rc = thread_create(&q->thread, "quota", run, q, e);
    q->has_thread = rc == 0;
    return rc;
}

int quota_open_account(struct quota *q, const char *name, uint64_t limit,
                       struct quota_account **out, struct err *e)
{
    pthread_mutex_lock(&q->lock);
    int rc = limit > 0 ? prepare(q, e) : 0;
    struct quota_account *a = rc == 0 ? find(q, name) : NULL;
    if (rc == 0 && !a && !(a = add(q, name)))
        rc = err_set(e, SHOAL_ELIMIT, "more than %u names of keys", MAX_ACCOUNTS);
    if (rc == 0) {
        a->listed = true;
        if (limit != a->limit)
            a->asked = false;
        a->limit = limit;
    }
    pthread_mutex_unlock(&q->lock);
    *out = a;
    return rc;
}

void quota_unlist_all(struct quota *q)
{
    pthread_mutex_lock(&q->lock);
    for (struct quota_account *a = q->list; a; a = a->next)
        a->listed = false;
    pthread_mutex_unlock(&q->lock);
}

/* ---- counting ---- */

bool quota_has_left(struct quota *q, struct quota_account *a, uint32_t *retry_s)
{
    *retry_s = 0;
    pthread_mutex_lock(&q->lock);
    begin_day(q, a);
    uint64_t most = q->o.source && a->granted < a->limit ? a->granted : a->limit;
    bool left = a->limit == 0 || a->used < most;
    if (!left)
        *retry_s = q->o.source && !a->asked ? 1 : (uint32_t)(DAY_S - now_s(q) % DAY_S);
    if (wanted(q, a) > 0)
        wake_thread(q);
    pthread_mutex_unlock(&q->lock);
    return left;
}

void quota_spend(struct quota *q, struct quota_account *a, uint64_t prompt, uint64_t generated)
{
    counter_add(&a->prompt_tokens, prompt);
    counter_add(&a->generated_tokens, generated);
    pthread_mutex_lock(&q->lock);
    begin_day(q, a);
    a->used += prompt + generated;
    if (a->limit > 0)
        wake_thread(q);
    pthread_mutex_unlock(&q->lock);
}

void quota_each(struct quota *q, void (*fn)(void *ctx, const struct quota_figures *f), void *ctx)
{
    pthread_mutex_lock(&q->lock);
    for (struct quota_account *a = q->list; a; a = a->next) {
        struct quota_figures f = {.name = a->name,
                                  .prompt_tokens = counter_read(&a->prompt_tokens),
                                  .generated_tokens = counter_read(&a->generated_tokens),
                                  .limit = a->limit};
        if (!a->listed)
            continue;
        begin_day(q, a);
        f.used = a->used;
        for (int i = 0; i < QUOTA_N_REFUSED; i++)
            f.refused[i] = counter_read(&a->refused[i]);
        fn(ctx, &f);
    }
    pthread_mutex_unlock(&q->lock);
}
