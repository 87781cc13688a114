/* model_fetch.c - see model_fetch.h. */
#include "cluster/store/model_fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread/executor.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/store/byte_rate.h"
#include "cluster/store/fetch_peer.h"
#include "cluster/store/fetch_url.h"
#include "depot/source/byte_sink.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_put.h"
#include "depot/store/model_store.h"

#define MS_NS 1000000u
#define N_THREADS 2u
#define SLICE_NS (50u * MS_NS)
#define MAX_BACKOFF_NS (60000ull * MS_NS)
#define LIAR_NS (600000ull * MS_NS)
#define MAX_FAILURES 3u /* consecutive failures of a source without receiving a byte */
#define N_BLAMES 256u
#define MAX_FOLDERS 32u

/* A source that failed, kept for later fetches too. */
struct blame {
    uint64_t key; /* hash of the source and the model */
    uint64_t until_ns;
    uint32_t n; /* failures in a row */
};

struct source {
    char *address, *name;
    uint32_t failures; /* in this fetch, since the last byte received */
    bool liar;         /* it sent wrong bytes */
};

struct model_fetch {
    struct model_fetch *next;
    struct model_fetcher *all;
    char *name;
    uint8_t sha256[SHA256_BYTES];
    struct source sources[MODEL_FETCH_MAX_SOURCES];
    size_t n_sources;
    struct model_fetch_watch watch;
    _Atomic bool stop;
    struct executor_task task;
    /* under the fetcher's lock */
    bool running, over, posted, orphan; /* orphan: the fetcher was destroyed */
    uint64_t bytes, total;
    const char *source; /* one of sources, or "" */
    char error[200];
    /* the result, once it has ended */
    int rc;
    char path[PATH_MAX];
    struct err e;
};

struct model_fetcher {
    struct model_store *store;
    struct executor *executor;
    struct tls_client *tls;
    int (*trusted)(void *ctx, const char *name, const char *path, const _Atomic bool *stop,
                   struct err *e);
    void *trusted_ctx;
    char *ca;
    char *folders[MAX_FOLDERS];
    size_t n_folders;
    uint32_t silent_ms, backoff_ms;
    struct byte_rate rate;
    pthread_t threads[N_THREADS];
    uint32_t n_threads;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t work;
    struct model_fetch *jobs;
    uint32_t n_jobs;
    bool stop;
    struct blame blames[N_BLAMES];
};

/* ---- sources that failed ---- */

static uint64_t blame_key(const struct model_fetch *j, const struct source *s)
{
    return hash_bytes(s->address, strlen(s->address), hash_bytes(j->sha256, SHA256_BYTES, 1));
}

/* The entry of a source; a new one replaces the one that expires first. Locked. */
static struct blame *find_blame(struct model_fetcher *f, uint64_t key, bool make)
{
    struct blame *oldest = &f->blames[0];
    for (size_t i = 0; i < N_BLAMES; i++) {
        if (f->blames[i].key == key)
            return &f->blames[i];
        if (f->blames[i].until_ns < oldest->until_ns)
            oldest = &f->blames[i];
    }
    if (!make)
        return NULL;
    *oldest = (struct blame){.key = key};
    return oldest;
}

static uint64_t blamed_until(struct model_fetch *j, const struct source *s)
{
    struct model_fetcher *f = j->all;
    pthread_mutex_lock(&f->lock);
    const struct blame *b = find_blame(f, blame_key(j, s), false);
    uint64_t until = b ? b->until_ns : 0;
    pthread_mutex_unlock(&f->lock);
    return until;
}

static void blame(struct model_fetch *j, struct source *s, bool moved, bool liar, const char *why)
{
    struct model_fetcher *f = j->all;
    pthread_mutex_lock(&f->lock);
    struct blame *b = find_blame(f, blame_key(j, s), true);
    b->n = moved ? 0 : b->n;
    uint64_t wait = (uint64_t)f->backoff_ms * MS_NS << (b->n < 16 ? b->n : 16);
    wait = wait < MAX_BACKOFF_NS ? wait : MAX_BACKOFF_NS;
    b->n++;
    b->until_ns = clock_ns() + (liar ? LIAR_NS : wait);
    snprintf(j->error, sizeof(j->error), "%.80s: %.110s", s->address, why);
    pthread_mutex_unlock(&f->lock);
    s->failures = moved ? 0 : s->failures + 1;
    s->liar |= liar;
}

/* ---- one source ---- */

static void show(struct model_fetch *j, const struct model_intake *k, const char *source)
{
    const struct model_manifest *m = model_intake_manifest(k);
    pthread_mutex_lock(&j->all->lock);
    j->bytes = model_intake_bytes(k);
    j->total = m ? model_manifest_bytes(m) : 0;
    j->source = source;
    pthread_mutex_unlock(&j->all->lock);
}

struct receiver {
    struct model_fetch *job;
    struct model_intake *intake;
    const struct source *source;
};

static int receive(void *ctx, const void *p, size_t n, struct err *e)
{
    struct receiver *r = ctx;
    int rc = model_intake_write(r->intake, r->source->address, p, n, e);
    show(r->job, r->intake, r->source->address);
    return rc;
}

static int get_manifest(struct fetch_transfer *t, struct model_intake *k, struct err *e)
{
    struct model_manifest m;
    model_manifest_init(&m);
    int rc = t->ops->manifest(t, &m, e);
    if (rc == 0)
        rc = model_intake_set_manifest(k, &m, e);
    model_manifest_fini(&m);
    return rc;
}

/* Everything that is missing. */
static int get_files(struct fetch_transfer *t, struct receiver *r, bool *liar, struct err *e)
{
    const struct byte_sink to = {r, receive};
    uint64_t offset;
    uint32_t i;
    int rc;
    while ((rc = model_intake_next(r->intake, &i, &offset, e)) > 0) {
        const struct model_manifest *m = model_intake_manifest(r->intake);
        show(r->job, r->intake, r->source->address);
        rc = offset < m->files[i].bytes ? t->ops->file(t, m, i, offset, &to, e) : 0;
        if (rc < 0)
            return rc;
        rc = model_intake_finish(r->intake, e);
        *liar = rc == SHOAL_EFORMAT && !model_intake_mixed(r->intake);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int open_transfer(struct fetch_transfer **out, struct model_fetch *j, const struct source *s,
                         struct err *e)
{
    struct model_fetcher *f = j->all;
    const struct fetch_transfer_opts o = {.model = j->sha256,
                                          .stop = &j->stop,
                                          .rate = &f->rate,
                                          .signature = f->trusted != NULL,
                                          .silent_ms = f->silent_ms};
    return strstr(s->address, "://") ? fetch_url_open(out, s->address, f->ca, &o, e)
                                     : fetch_peer_open(out, s->address, s->name, f->tls, &o, e);
}

/* file:///srv/models/reply.gguf, if it is in one of the folders. */
static int copy_file(struct model_fetch *j, const char *path, struct err *e)
{
    struct model_fetcher *f = j->all;
    char real[PATH_MAX];
    uint8_t sum[SHA256_BYTES];
    bool inside = false;
    if (!realpath(path, real))
        return err_set(e, SHOAL_ENOTFOUND, "cannot open %s: %s", path, strerror(errno));
    for (size_t i = 0; i < f->n_folders; i++) {
        size_t n = strlen(f->folders[i]);
        inside |= strncmp(real, f->folders[i], n) == 0 && (real[n] == '/' || real[n] == '\0');
    }
    if (!inside)
        return err_set(e, SHOAL_EINVAL, "%s is in none of the folders of model_dirs", real);
    return model_put(f->store, real, j->sha256, sum, &j->stop, e);
}

static const char *as_file(const struct source *s)
{
    return strncasecmp(s->address, "file://", 7) == 0 ? s->address + 7 : NULL;
}

static int try_source(struct model_fetch *j, struct model_intake *k, const struct source *s,
                      bool *liar, struct err *e)
{
    struct receiver r = {j, k, s};
    struct fetch_transfer *t = NULL;
    show(j, k, s->address);
    int rc = open_transfer(&t, j, s, e);
    if (rc == 0 && !model_intake_manifest(k))
        rc = get_manifest(t, k, e);
    if (rc == 0)
        rc = get_files(t, &r, liar, e);
    if (t)
        t->ops->close(t);
    return rc;
}

/* ---- one fetch ---- */

static bool wait_until(struct model_fetch *j, uint64_t until_ns)
{
    for (uint64_t now; (now = clock_ns()) < until_ns;) {
        const struct timespec t = {
            .tv_nsec = (long)(until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS)};
        if (atomic_load_explicit(&j->stop, memory_order_relaxed))
            return false;
        (void)nanosleep(&t, NULL);
    }
    return !atomic_load_explicit(&j->stop, memory_order_relaxed);
}

/* The next source to try: the first available one, otherwise the one available soonest. */
static struct source *choose(struct model_fetch *j, uint64_t *when)
{
    struct source *best = NULL;
    uint64_t now = clock_ns();
    for (size_t i = 0; i < j->n_sources; i++) {
        struct source *s = &j->sources[i];
        uint64_t until = blamed_until(j, s);
        until = until > now ? until : 0;
        if (s->liar || s->failures >= MAX_FAILURES || (best && until >= *when))
            continue;
        best = s;
        *when = until;
    }
    return best;
}

/* Retrying the same source would not help. */
static bool is_hopeless(int rc)
{
    return rc == SHOAL_ENOTFOUND || rc == SHOAL_EINVAL || rc == SHOAL_EUNSUPPORTED;
}

/* No other source helps. */
static bool is_final(int rc)
{
    return rc == SHOAL_ECANCELLED || rc == SHOAL_ELIMIT || rc == SHOAL_ENOMEM;
}

static int transfer(struct model_fetch *j, struct model_intake *k, struct err *e)
{
    struct source *s;
    uint64_t when = 0;
    int rc = err_set(e, SHOAL_ENOTFOUND, "no source has the model");
    while ((s = choose(j, &when)) != NULL) {
        struct err why = {0};
        bool liar = false;
        uint64_t before;
        if (!wait_until(j, when))
            return err_set(e, SHOAL_ECANCELLED, "stopped");
        before = model_intake_bytes(k);
        rc = try_source(j, k, s, &liar, &why);
        if (rc >= 0)
            return 0;
        err_set(e, rc, "%.100s: %.200s", s->address, why.msg);
        if (is_final(rc))
            return rc;
        log_warn("store", "model %s: %s%s", j->name, e->msg,
                 liar ? "; it is skipped for ten minutes" : "");
        blame(j, s, model_intake_bytes(k) > before, liar, why.msg);
        if (is_hopeless(rc))
            s->failures = MAX_FAILURES;
        if (liar ||
            rc == SHOAL_ECHANGED) /* sizes are not covered by the hash: fetch the manifest again */
            model_intake_restart(k);
    }
    return rc;
}

/* What has just arrived, and is not trusted, does not stay. */
static int check_trust(struct model_fetch *j, struct err *e)
{
    struct model_fetcher *f = j->all;
    struct err none = {0};
    int rc = f->trusted ? f->trusted(f->trusted_ctx, j->name, j->path, &j->stop, e) : 0;
    if (rc < 0 && model_store_discard(f->store, j->sha256, &none) < 0)
        log_warn("store", "model %s: %s", j->name, none.msg);
    return rc;
}

static int fetch_over_net(struct model_fetch *j, struct err *e)
{
    struct model_intake *k = NULL;
    int rc = model_intake_open(&k, j->all->store, j->sha256, &j->stop, e);
    if (rc == 0)
        rc = transfer(j, k, e);
    if (rc == 0) /* what could not be used makes way for what was verified */
        rc = model_store_discard(j->all->store, j->sha256, e);
    if (rc == 0)
        rc = model_intake_commit(k, j->path, e);
    model_intake_close(k);
    return rc < 0 ? rc : check_trust(j, e);
}

/* Whether the store has it, whole and as it should be. */
static bool is_here(struct model_fetch *j)
{
    struct err e = {0};
    if (model_store_find(j->all->store, j->sha256, j->path, NULL) < 0)
        return false;
    if (!j->watch.doubted || model_store_verify(j->all->store, j->sha256, &j->stop, &e) == 0)
        return true;
    if (e.code == SHOAL_EFORMAT)
        log_warn("store", "model %s is fetched again: %s", j->name, e.msg);
    return false;
}

static int fetch(struct model_fetch *j, struct err *e)
{
    struct model_fetcher *f = j->all;
    bool any = false;
    int rc = SHOAL_ENOTFOUND;
    if (is_here(j))
        return 0;
    if (atomic_load_explicit(&j->stop, memory_order_relaxed))
        return err_set(e, SHOAL_ECANCELLED, "stopped");
    for (size_t i = 0; i < j->n_sources; i++) {
        const char *path = as_file(&j->sources[i]);
        if (!path) {
            any = true;
            continue;
        }
        j->sources[i].liar = true; /* not for the network */
        rc = copy_file(j, path, e);
        if (rc == 0)
            rc = model_store_find(f->store, j->sha256, j->path, e);
        if (rc == 0)
            return check_trust(j, e);
        if (is_final(rc))
            return rc;
        log_warn("store", "model %s: %s", j->name, e->msg);
    }
    if (!any && rc == SHOAL_ENOTFOUND && !e->code)
        return err_set(e, rc, "no node has the model, and it has no source");
    return any ? fetch_over_net(j, e) : rc;
}

/* ---- threads ---- */

static void job_free(struct model_fetch *j)
{
    for (size_t i = 0; i < j->n_sources; i++) {
        mem_free(j->sources[i].address);
        mem_free(j->sources[i].name);
    }
    mem_free(j->name);
    mem_free(j);
}

/* Locked. */
static void unlink_job(struct model_fetcher *f, struct model_fetch *j)
{
    for (struct model_fetch **p = &f->jobs; *p; p = &(*p)->next)
        if (*p == j) {
            *p = j->next;
            f->n_jobs--;
            return;
        }
}

/* On the executor's thread. */
static void on_over(struct executor_task *t)
{
    struct model_fetch *j = EXECUTOR_OF(t, struct model_fetch, task);
    struct model_fetcher *f = j->orphan ? NULL : j->all;
    if (f) {
        pthread_mutex_lock(&f->lock);
        unlink_job(f, j);
        pthread_mutex_unlock(&f->lock);
        if (j->watch.done)
            j->watch.done(j->watch.ctx, j->rc, j->path, &j->e);
    }
    job_free(j);
}

static void run_job(struct model_fetcher *f, struct model_fetch *j)
{
    uint64_t began = clock_ns();
    j->rc = fetch(j, &j->e);
    double seconds = (double)(clock_ns() - began) / 1e9;
    if (j->rc == 0)
        log_info("store", "model %s is here: path=%s s=%.1f", j->name, j->path, seconds);
    else if (j->rc != SHOAL_ECANCELLED)
        log_warn("store", "model %s could not be fetched: %s", j->name, j->e.msg);
    pthread_mutex_lock(&f->lock);
    j->over = true;
    if (!f->stop) { /* otherwise destroy frees it */
        j->posted = true;
        executor_post(f->executor, &j->task);
    }
    pthread_mutex_unlock(&f->lock);
}

static void *fetch_main(void *arg)
{
    struct model_fetcher *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        struct model_fetch *j = f->jobs;
        while (j && (j->running || j->over))
            j = j->next;
        if (!j) {
            pthread_cond_wait(&f->work, &f->lock);
            continue;
        }
        j->running = true;
        pthread_mutex_unlock(&f->lock);
        run_job(f, j);
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- lifetime ---- */

int model_fetcher_create(struct model_fetcher **out, const struct model_fetcher_opts *o,
                         struct err *e)
{
    struct model_fetcher *f = mem_zalloc(sizeof(*f));
    bool ok = f != NULL;
    *out = NULL;
    if (!f)
        return err_set(e, SHOAL_ENOMEM, "fetching of models");
    f->store = o->store;
    f->executor = o->executor;
    f->tls = o->tls;
    f->trusted = o->trusted;
    f->trusted_ctx = o->ctx;
    f->silent_ms = o->silent_ms ? o->silent_ms : 30000;
    f->backoff_ms = o->backoff_ms ? o->backoff_ms : 500;
    byte_rate_init(&f->rate, o->bytes_per_s);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    if (o->ca)
        ok = (f->ca = mem_strdup(o->ca)) != NULL;
    for (size_t i = 0; ok && i < o->n_folders && f->n_folders < MAX_FOLDERS; i++) {
        char real[PATH_MAX];
        if (!realpath(o->folders[i], real)) {
            log_warn("store", "cannot open the folder %s: %s", o->folders[i], strerror(errno));
            continue;
        }
        ok = (f->folders[f->n_folders] = mem_strdup(real)) != NULL;
        f->n_folders += ok;
    }
    if (!ok) {
        model_fetcher_destroy(f);
        return err_set(e, SHOAL_ENOMEM, "fetching of models");
    }
    *out = f;
    return 0;
}

void model_fetcher_destroy(struct model_fetcher *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    for (struct model_fetch *j = f->jobs; j; j = j->next)
        atomic_store_explicit(&j->stop, true, memory_order_relaxed);
    pthread_cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < f->n_threads; i++)
        pthread_join(f->threads[i], NULL);
    for (struct model_fetch *j = f->jobs, *next; j; j = next) {
        next = j->next;
        if (j->posted)
            j->orphan = true; /* frees itself */
        else
            job_free(j);
    }
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    for (size_t i = 0; i < f->n_folders; i++)
        mem_free(f->folders[i]);
    mem_free(f->ca);
    mem_free(f);
}

static int start_threads(struct model_fetcher *f, struct err *e)
{
    while (f->n_threads < N_THREADS) {
        int rc = thread_create_numbered(&f->threads[f->n_threads], "fetch", f->n_threads,
                                        fetch_main, f, e);
        if (rc < 0)
            return f->n_threads > 0 ? 0 : rc;
        f->n_threads++;
    }
    return 0;
}

static struct model_fetch *make_job(struct model_fetcher *f, const char *name,
                                    const uint8_t sha256[SHA256_BYTES],
                                    const struct model_fetch_source *sources, size_t n)
{
    struct model_fetch *j = mem_zalloc(sizeof(*j));
    bool ok = j && (j->name = mem_strdup(name)) != NULL;
    if (!j)
        return NULL;
    j->all = f;
    j->source = "";
    j->task.fn = on_over;
    memcpy(j->sha256, sha256, SHA256_BYTES);
    for (size_t i = 0; ok && i < n && i < MODEL_FETCH_MAX_SOURCES; i++) {
        struct source *s = &j->sources[j->n_sources++];
        ok = (s->address = mem_strdup(sources[i].address)) != NULL &&
             (!sources[i].name || (s->name = mem_strdup(sources[i].name)));
    }
    if (ok)
        return j;
    job_free(j);
    return NULL;
}

int model_fetch_start(struct model_fetch **out, struct model_fetcher *f, const char *name,
                      const uint8_t sha256[SHA256_BYTES], const struct model_fetch_source *sources,
                      size_t n_sources, const struct model_fetch_watch *w, struct err *e)
{
    struct model_fetch **end = &f->jobs, *j = make_job(f, name, sha256, sources, n_sources);
    int rc = j ? start_threads(f, e) : err_set(e, SHOAL_ENOMEM, "fetch of %s", name);
    *out = NULL;
    pthread_mutex_lock(&f->lock);
    for (; rc == 0 && *end; end = &(*end)->next)
        if (!(*end)->over && memcmp((*end)->sha256, sha256, SHA256_BYTES) == 0)
            rc = err_set(e, SHOAL_EBUSY, "model %s is being fetched already", name);
    if (rc == 0 && f->n_jobs == MODEL_FETCH_MAX_JOBS)
        rc = err_set(e, SHOAL_EBUSY, "too many models are being fetched");
    if (rc == 0) {
        j->watch = *w;
        *end = *out = j;
        f->n_jobs++;
        pthread_cond_signal(&f->work);
        j = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    if (j)
        job_free(j);
    return rc;
}

void model_fetch_cancel(struct model_fetch *j)
{
    atomic_store_explicit(&j->stop, true, memory_order_relaxed);
}

void model_fetch_forget(struct model_fetch *j)
{
    j->watch.done = NULL; /* used only on the executor's thread, like this call */
    model_fetch_cancel(j);
}

void model_fetcher_each(struct model_fetcher *f,
                        void (*fn)(void *ctx, const struct model_fetch_state *s), void *ctx)
{
    pthread_mutex_lock(&f->lock);
    for (const struct model_fetch *j = f->jobs; j; j = j->next) {
        struct model_fetch_state s = {.name = j->name,
                                      .bytes = j->bytes,
                                      .total_bytes = j->total,
                                      .source = j->source,
                                      .error = j->error};
        memcpy(s.sha256, j->sha256, SHA256_BYTES);
        if (!j->over)
            fn(ctx, &s);
    }
    pthread_mutex_unlock(&f->lock);
}
