/* queue.c - see queue.h. */
#include "engine/queue.h"

#include "base/clock.h"

void queue_insert(struct shoal_engine *en, struct shoal_task *t)
{
    struct shoal_task **at = &en->waiting;
    while (*at && task_goes_before(*at, t))
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void queue_take(struct shoal_engine *en, struct shoal_task **at)
{
    *at = (*at)->next;
    pthread_mutex_lock(&en->lock);
    en->n_waiting--;
    pthread_mutex_unlock(&en->lock);
}

/* Under the lock.  true: the caller must signal after it has released the lock, since a thread that
 * wakes up to a taken lock goes back to sleep. */
static bool must_wake(struct shoal_engine *en)
{
    bool wake = en->idle && en->incoming;
    if (wake)
        en->idle = false;
    return wake;
}

int queue_submit(struct shoal_engine *en, struct shoal_task *t, bool held, struct err *e)
{
    int rc = 0;
    bool wake = false;
    t->submitted_ns = clock_ns();
    pthread_mutex_lock(&en->lock);
    if (en->n_waiting >= en->max_queue) {
        rc = err_set(e, SHOAL_EBUSY, "the queue is full: %u tasks are waiting", en->n_waiting);
    } else {
        t->serial = en->next_serial++;
        t->next = en->incoming;
        en->incoming = t;
        en->n_waiting++;
        wake = !held && must_wake(en);
    }
    pthread_mutex_unlock(&en->lock);
    if (wake)
        pthread_cond_signal(&en->wake);
    return rc;
}

void shoal_engine_wake(struct shoal_engine *en)
{
    pthread_mutex_lock(&en->lock);
    bool wake = must_wake(en);
    pthread_mutex_unlock(&en->lock);
    if (wake)
        pthread_cond_signal(&en->wake);
}

#define MEASURED_SHARE 0.125 /* how much a new figure counts */
#define REFUSED_FADES 0.95

void measured(_Atomic double *average, double value)
{
    double old = atomic_load_explicit(average, memory_order_relaxed);
    atomic_store_explicit(average, old > 0.0 ? old + MEASURED_SHARE * (value - old) : value,
                          memory_order_relaxed);
}

int refuse_late(double need_ns, uint64_t deadline_ns, _Atomic double *const *averages,
                size_t n_averages, struct err *e)
{
    uint64_t now = clock_ns();
    double left = deadline_ns > now ? (double)(deadline_ns - now) : 0.0;
    if (deadline_ns == 0 || need_ns <= left)
        return 0;
    for (size_t i = 0; i < n_averages; i++) {
        double old = atomic_load_explicit(averages[i], memory_order_relaxed);
        atomic_store_explicit(averages[i], old * REFUSED_FADES, memory_order_relaxed);
    }
    return err_set(e, SHOAL_EDEADLINE, "about %.1f ms are needed, %.1f ms are left", need_ns / 1e6,
                   left / 1e6);
}

void queue_done(struct shoal_engine *en, struct shoal_task *t, int code)
{
    pthread_mutex_lock(&en->lock);
    t->done = true;
    t->code = code;
    pthread_cond_broadcast(&en->finished);
    pthread_mutex_unlock(&en->lock);
    task_unref(t);
}

bool queue_receive(struct shoal_engine *en)
{
    pthread_mutex_lock(&en->lock);
    while (!en->stop && !en->incoming && !en->waiting && en->n_active == 0) {
        en->idle = true;
        pthread_cond_wait(&en->wake, &en->lock);
    }
    en->idle = false;
    struct shoal_task *list = en->incoming;
    bool go_on = !en->stop;
    en->incoming = NULL;
    pthread_mutex_unlock(&en->lock);
    while (list) {
        struct shoal_task *next = list->next;
        queue_insert(en, list);
        list = next;
    }
    return go_on;
}

int shoal_task_wait(struct shoal_task *t)
{
    struct shoal_engine *en = t->engine;
    pthread_mutex_lock(&en->lock);
    while (!t->done)
        pthread_cond_wait(&en->finished, &en->lock);
    int code = t->code;
    pthread_mutex_unlock(&en->lock);
    return code;
}
