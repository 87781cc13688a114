/* queue.c - the order of an engine's tasks, for whichever way they are computed. */
#include "base/clock.h"
#include "engine/engine_int.h"

bool task_goes_before(const struct shoal_task *a, const struct shoal_task *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    uint64_t da = a->deadline_ns ? a->deadline_ns : UINT64_MAX;
    uint64_t db = b->deadline_ns ? b->deadline_ns : UINT64_MAX;
    return da != db ? da < db : a->serial < b->serial;
}

void task_enqueue(struct shoal_engine *en, struct shoal_task *t)
{
    struct shoal_task **at = &en->waiting;
    while (*at && task_goes_before(*at, t))
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

int task_gave_up(const struct shoal_task *t, uint64_t now)
{
    if (atomic_load_explicit(&t->cancel, memory_order_relaxed))
        return SHOAL_ECANCELLED;
    return t->deadline_ns && now > t->deadline_ns ? SHOAL_EDEADLINE : 0;
}

void task_take_waiting(struct shoal_engine *en, struct shoal_task **at)
{
    *at = (*at)->next;
    pthread_mutex_lock(&en->lock);
    en->n_waiting--;
    pthread_mutex_unlock(&en->lock);
}

/* Under the lock.  true: the caller signals, after it has given up the lock: a thread that wakes
 * to a lock that is taken goes back to sleep. */
static bool must_wake(struct shoal_engine *en)
{
    bool wake = en->idle && en->incoming;
    if (wake)
        en->idle = false;
    return wake;
}

int task_submit(struct shoal_engine *en, struct shoal_task *t, bool held, struct err *e)
{
    int rc = 0;
    bool wake = false;
    t->submitted_ns = clock_ns();
    pthread_mutex_lock(&en->lock);
    if (en->n_waiting >= en->max_queue) {
        rc = err_set(e, SHOAL_EBUSY, "%u tasks are waiting already", en->n_waiting);
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

void task_done(struct shoal_engine *en, struct shoal_task *t, int code)
{
    pthread_mutex_lock(&en->lock);
    t->done = true;
    t->code = code;
    pthread_cond_broadcast(&en->finished);
    pthread_mutex_unlock(&en->lock);
    task_unref(t);
}

bool engine_receive(struct shoal_engine *en)
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
        task_enqueue(en, list);
        list = next;
    }
    return go_on;
}
