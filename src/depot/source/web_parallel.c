/* web_parallel.c - see web_parallel.h. */
#include "depot/source/web_parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "depot/source/byte_sink.h"

#define LOOK_NS 100000000 /* how often o->stopped is asked */
#define PIECE_BYTES ((size_t)256 << 10)

struct transfer;

struct worker { /* fetches every WEB_PARALLEL_THREADS-th segment */
    struct transfer *t;
    pthread_t thread;
    bool started;
    uint32_t first;
    /* under the lock */
    bool full; /* a segment, or a failure, waits for the caller */
    int rc;
    struct err error;
    struct web_reply reply;
    /* the worker's while not full, the caller's while full */
    char *bytes;
    size_t n, want;
};

struct transfer {
    const char *url;
    struct web_opts opts;
    uint64_t offset, total;
    uint64_t n_segments;
    _Atomic bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker workers[WEB_PARALLEL_THREADS];
};

/* ---- the workers ---- */

static bool is_stopping(void *ctx)
{
    return atomic_load(&((struct transfer *)ctx)->stop);
}

static int on_bytes(void *ctx, const char *p, size_t n, bool begins, uint64_t from, struct err *e)
{
    struct worker *w = ctx;
    if ((begins && from == 0 && w->t->offset + w->first > 0) || n > w->want - w->n)
        return err_set(e, SHOAL_EUNSUPPORTED, "the server does not know ranges");
    memcpy(w->bytes + w->n, p, n);
    w->n += n;
    return 0;
}

static int fetch_segment(struct worker *w, struct web *web, uint64_t k, struct err *e)
{
    struct transfer *t = w->t;
    const uint64_t from = t->offset + k * WEB_PARALLEL_SEGMENT;
    const uint64_t left = t->total - from;
    w->n = 0;
    w->want = (size_t)(left < WEB_PARALLEL_SEGMENT ? left : WEB_PARALLEL_SEGMENT);
    const struct web_request a = {
        .offset = from, .end = from + w->want, .write = on_bytes, .ctx = w};
    int rc = web_told(web, web_ask(web, t->url, &a, &w->reply, e), e);
    if (rc == 0 && w->reply.status == 200)
        return err_set(e, SHOAL_EUNSUPPORTED, "the server does not know ranges");
    if (rc == 0 && w->reply.status == 206 && w->n < w->want)
        return err_set(e, SHOAL_EIO, "the transfer was cut off");
    return rc;
}

/* Hands a segment over, and waits until it was taken; false: it must stop. */
static bool hand_over(struct worker *w, int rc, const struct err *e)
{
    struct transfer *t = w->t;
    pthread_mutex_lock(&t->lock);
    w->rc = rc;
    w->error = *e;
    w->full = true;
    pthread_cond_broadcast(&t->changed);
    while (w->full && !atomic_load(&t->stop))
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return rc == 0 && !atomic_load(&t->stop);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct transfer *t = w->t;
    struct web *web = NULL;
    struct err e = {0};
    int rc = web_open(&web, &t->opts, &e);
    bool go_on = true;
    for (uint64_t k = w->first; go_on && k < t->n_segments; k += WEB_PARALLEL_THREADS) {
        if (rc == 0)
            rc = fetch_segment(w, web, k, &e);
        go_on = hand_over(w, rc, &e) && w->reply.status == 206;
    }
    web_close(web);
    return NULL;
}

/* ---- the caller ---- */

/* Waits for the worker's next segment. */
static int await_full(struct transfer *t, struct worker *w, const struct web_opts *o, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    while (!w->full && rc == 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&t->changed, &t->lock, &until);
        pthread_mutex_unlock(&t->lock);
        if (o->stopped && o->stopped(o->ctx))
            rc = err_set(e, SHOAL_ECANCELLED, "stopped");
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static int write_out(const struct worker *w, const struct byte_sink *to, struct err *e)
{
    int rc = 0;
    for (size_t at = 0; at < w->n && rc == 0;) {
        size_t n = w->n - at < PIECE_BYTES ? w->n - at : PIECE_BYTES;
        rc = to->write(to->ctx, w->bytes + at, n, e);
        at += n;
    }
    return rc;
}

static void give_back(struct transfer *t, struct worker *w)
{
    pthread_mutex_lock(&t->lock);
    w->full = false;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* *taken: segments that were written. */
static int take_all(struct transfer *t, const struct web_opts *o, const struct byte_sink *to,
                    struct web_reply *reply, uint64_t *taken, struct err *e)
{
    int rc = 0;
    for (*taken = 0; *taken < t->n_segments && rc == 0; *taken += rc == 0) {
        struct worker *w = &t->workers[*taken % WEB_PARALLEL_THREADS];
        rc = await_full(t, w, o, e);
        if (rc < 0)
            break;
        *reply = w->reply;
        rc = w->rc;
        if (rc < 0)
            *e = w->error;
        else if (w->reply.status != 206)
            break; /* refused: the caller says why */
        else
            rc = write_out(w, to, e);
        give_back(t, w);
    }
    return rc;
}

static int start(struct transfer *t, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < WEB_PARALLEL_THREADS && i < t->n_segments && rc == 0; i++) {
        struct worker *w = &t->workers[i];
        w->t = t;
        w->first = i;
        w->bytes = mem_alloc(WEB_PARALLEL_SEGMENT);
        rc = w->bytes ? thread_create_numbered(&w->thread, "pull", i, work, w, e)
                      : err_set(e, SHOAL_ENOMEM, "a segment of a transfer");
        w->started = rc == 0;
    }
    return rc;
}

static void finish(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < WEB_PARALLEL_THREADS; i++) {
        if (t->workers[i].started)
            pthread_join(t->workers[i].thread, NULL);
        mem_free(t->workers[i].bytes);
    }
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

static int fetch_alone(struct web *w, const char *url, uint64_t offset, const struct byte_sink *to,
                       struct web_reply *reply, struct err *e)
{
    struct web_rest r = {.offset = offset, .to = to};
    const struct web_request a = {.offset = offset, .write = web_rest_write, .ctx = &r};
    return web_told(w, web_ask(w, url, &a, reply, e), e);
}

int web_parallel(struct web *w, const struct web_opts *o, const char *url, uint64_t offset,
                 uint64_t total, const struct byte_sink *to, struct web_reply *reply, struct err *e)
{
    uint64_t taken = 0;
    const uint64_t left = total > offset ? total - offset : 0;
    struct transfer *t = left >= 2 * WEB_PARALLEL_SEGMENT ? mem_zalloc(sizeof(*t)) : NULL;
    if (!t)
        return fetch_alone(w, url, offset, to, reply, e);
    t->url = url;
    t->opts = *o;
    t->opts.stopped = is_stopping;
    t->opts.ctx = t;
    t->offset = offset;
    t->total = total;
    t->n_segments = (left + WEB_PARALLEL_SEGMENT - 1) / WEB_PARALLEL_SEGMENT;
    pthread_mutex_init(&t->lock, NULL);
    cond_init(&t->changed);
    *reply = (struct web_reply){.status = 0};
    int rc = start(t, e);
    if (rc == 0)
        rc = take_all(t, o, to, reply, &taken, e);
    finish(t);
    if (rc == SHOAL_EUNSUPPORTED && taken == 0)
        return fetch_alone(w, url, offset, to, reply, e);
    return rc == SHOAL_EUNSUPPORTED ? err_set(e, SHOAL_EIO, "the server sent another range") : rc;
}
