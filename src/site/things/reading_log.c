/* reading_log.c - see reading_log.h. */
#include "site/things/reading_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "host/prometheus.h"
#include "store/readings_store.h"

#define EVERY_NS 1000000000ull

struct reading_log {
    struct readings_store *store;
    pthread_t thread;
    bool has_thread, stop, complained;
    pthread_mutex_t lock; /* guards the queue and stop */
    pthread_cond_t changed;
    struct readings_store_row *waiting, *writing; /* exchanged when they are written */
    uint32_t n;
    _Atomic uint64_t n_stored, n_dropped;
};

/* Under the lock, which is released meanwhile. */
static void write_out(struct reading_log *l)
{
    struct readings_store_row *rows = l->waiting;
    struct err e = {0};
    uint32_t n = l->n;
    l->waiting = l->writing;
    l->writing = rows;
    l->n = 0;
    pthread_mutex_unlock(&l->lock);
    int rc = readings_store_add(l->store, rows, n, (int64_t)clock_unix_ms(), &e);
    atomic_fetch_add(rc == 0 ? &l->n_stored : &l->n_dropped, n);
    if (rc < 0 && !l->complained)
        log_warn("history", "readings are not stored: %s", e.msg);
    l->complained = rc < 0;
    pthread_mutex_lock(&l->lock);
}

static void *run(void *arg)
{
    struct reading_log *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        uint64_t next = clock_ns() + EVERY_NS;
        struct timespec ts = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        while (!l->stop && l->n < READING_LOG_MAX_WAITING / 2 &&
               pthread_cond_timedwait(&l->changed, &l->lock, &ts) == 0)
            ;
        if (l->n > 0)
            write_out(l);
    }
    if (l->n > 0)
        write_out(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int reading_log_create(struct reading_log **out, const char *path, int64_t keep_ms,
                       uint64_t max_bytes, struct err *e)
{
    const struct readings_store_opts o = {.keep_ms = keep_ms, .max_bytes = max_bytes};
    *out = NULL;
    if (!path)
        return 0;
    struct reading_log *l = mem_zalloc(sizeof(*l));
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "history");
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->changed);
    l->waiting = mem_zalloc_n(READING_LOG_MAX_WAITING, sizeof(*l->waiting));
    l->writing = mem_zalloc_n(READING_LOG_MAX_WAITING, sizeof(*l->writing));
    int rc = l->waiting && l->writing ? readings_store_open(&l->store, path, &o, e)
                                      : err_set(e, SHOAL_ENOMEM, "history");
    if (rc == 0)
        rc = thread_create(&l->thread, "history", run, l, e);
    l->has_thread = rc == 0;
    if (rc < 0) {
        reading_log_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

void reading_log_destroy(struct reading_log *l)
{
    if (!l)
        return;
    if (l->has_thread) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    readings_store_close(l->store);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    mem_free(l->waiting);
    mem_free(l->writing);
    mem_free(l);
}

void reading_log_put(struct reading_log *l, const char *sensor, const char *unit, int64_t time_ms,
                     double value)
{
    pthread_mutex_lock(&l->lock);
    if (l->n < READING_LOG_MAX_WAITING)
        l->waiting[l->n++] = (struct readings_store_row){sensor, unit, time_ms, value};
    else
        atomic_fetch_add(&l->n_dropped, 1);
    if (l->n == READING_LOG_MAX_WAITING / 2)
        pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void reading_log_metrics(struct reading_log *l, struct buf *b)
{
    if (!l)
        return;
    prometheus_help(b, "shoal_readings_stored_total", "counter", "Readings in the history.");
    buf_printf(b, "shoal_readings_stored_total %" PRIu64 "\n", atomic_load(&l->n_stored));
    prometheus_help(b, "shoal_readings_dropped_total", "counter",
                    "Readings that the disk did not take in time.");
    buf_printf(b, "shoal_readings_dropped_total %" PRIu64 "\n", atomic_load(&l->n_dropped));
}
