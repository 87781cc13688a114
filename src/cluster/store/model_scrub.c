/* model_scrub.c - see model_scrub.h. */
#include "cluster/store/model_scrub.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/executor.h"
#include "base/thread/thread.h"
#include "depot/store/model_store.h"

#define MS_NS 1000000u
#define MAX_FOUND 64u
#define PAUSE_PART 100u /* of the time between two passes, after each model */
#define IDLE_PRIORITY 3 /* of the disk: IOPRIO_CLASS_IDLE, which no header of libc names */
#define PRIORITY_SHIFT 13u
#define WHO_PROCESS 1

struct model_scrub {
    struct model_scrub_opts opts;
    pthread_t thread;
    bool threaded;
    _Atomic bool stop;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    uint8_t found[MAX_FOUND][SHA256_BYTES]; /* not reported yet */
    uint32_t n_found;
    struct executor_task task;
    bool posted;
};

static void scrub_free(struct model_scrub *s)
{
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

/* On the executor's thread. */
static void on_found(struct executor_task *t)
{
    struct model_scrub *s = EXECUTOR_OF(t, struct model_scrub, task);
    uint8_t found[MAX_FOUND][SHA256_BYTES];
    pthread_mutex_lock(&s->lock);
    const uint32_t n = s->n_found;
    memcpy(found, s->found, sizeof(found));
    s->n_found = 0;
    s->posted = false;
    pthread_mutex_unlock(&s->lock);
    if (atomic_load(&s->stop)) {
        scrub_free(s);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        s->opts.found(s->opts.ctx, found[i]);
}

static void report(struct model_scrub *s, const uint8_t sha256[SHA256_BYTES])
{
    pthread_mutex_lock(&s->lock);
    if (s->n_found < MAX_FOUND && !atomic_load(&s->stop)) { /* otherwise the next pass finds it */
        memcpy(s->found[s->n_found++], sha256, SHA256_BYTES);
        if (!s->posted)
            executor_post(s->opts.executor, &s->task);
        s->posted = true;
    }
    pthread_mutex_unlock(&s->lock);
}

/* False: it must stop. */
static bool pause_ms(struct model_scrub *s, uint32_t ms)
{
    const uint64_t until = clock_ns() + (uint64_t)ms * MS_NS;
    const struct timespec at = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stop) && pthread_cond_timedwait(&s->wake, &s->lock, &at) == 0)
        ;
    pthread_mutex_unlock(&s->lock);
    return !atomic_load(&s->stop);
}

static void pass(struct model_scrub *s)
{
    struct model_store_entry *list = NULL;
    struct err e = {0};
    size_t n = 0;
    if (model_store_list(s->opts.store, &list, &n, &e) < 0)
        return; /* there may be no store yet */
    for (size_t i = 0; i < n && !atomic_load(&s->stop); i++) {
        if (list[i].incoming)
            continue;
        int rc = model_store_verify(s->opts.store, list[i].sha256, &s->stop, &e);
        if (rc == SHOAL_EFORMAT || (rc == SHOAL_ENOTFOUND && !list[i].damaged)) {
            log_warn("store", "found damage: %s", e.msg);
            if (model_store_remove(s->opts.store, list[i].sha256, NULL) < 0) /* it is in use */
                report(s, list[i].sha256);
        }
        if (!pause_ms(s, s->opts.every_ms / PAUSE_PART))
            break;
    }
    mem_free(list);
}

static void *run(void *arg)
{
    struct model_scrub *s = arg;
    (void)syscall(SYS_ioprio_set, WHO_PROCESS, 0, IDLE_PRIORITY << PRIORITY_SHIFT);
    while (pause_ms(s, s->opts.every_ms))
        pass(s);
    return NULL;
}

int model_scrub_open(struct model_scrub **out, const struct model_scrub_opts *o, struct err *e)
{
    struct model_scrub *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "scrub of the store");
    s->opts = *o;
    s->task.fn = on_found;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->wake);
    int rc = thread_create(&s->thread, "scrub", run, s, e);
    s->threaded = rc == 0;
    if (rc < 0) {
        model_scrub_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void model_scrub_close(struct model_scrub *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stop, true);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->threaded)
        pthread_join(s->thread, NULL);
    if (!s->posted) /* else the task frees it */
        scrub_free(s);
}
