/* queue.c - see queue.h. */
#include "engine/queue.h"

#include "base/clock.h"
#include "engine/engine_files.h"

/* Under the lock: t joins (or leaves) those that wait. */
static void count_waiting(struct shoal_engine *en, const struct shoal_task *t, bool joins)
{
    struct engine_load *l = &en->load;
    const uint32_t one = joins ? 1 : UINT32_MAX;
    const uint64_t prompt = joins ? t->n_prompt : UINT64_C(0) - t->n_prompt;
    const uint64_t decode = joins ? t->expected : UINT64_C(0) - t->expected;
    en->n_waiting += one;
    atomic_fetch_add_explicit(&l->n_waiting, one, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->waiting_prompt, prompt, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->waiting_decode, decode, memory_order_relaxed);
}

static void insert(struct shoal_engine *en, struct shoal_task *t)
{
    struct shoal_task **at = &en->waiting;
    while (*at && task_goes_before(*at, t))
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void queue_take(struct shoal_engine *en, struct shoal_task **at)
{
    const struct shoal_task *t = *at;
    *at = t->next;
    pthread_mutex_lock(&en->lock);
    count_waiting(en, t, false);
    pthread_mutex_unlock(&en->lock);
}

void queue_return(struct shoal_engine *en, struct shoal_task *t)
{
    insert(en, t);
    pthread_mutex_lock(&en->lock);
    count_waiting(en, t, true);
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
    int rc = engine_files_check(en, e);
    bool wake = false;
    if (rc < 0)
        return rc;
    t->submitted_ns = clock_ns();
    pthread_mutex_lock(&en->lock);
    if (en->n_waiting >= en->max_queue) {
        rc = err_set(e, SHOAL_EBUSY, "the queue is full: %u tasks are waiting", en->n_waiting);
    } else {
        t->serial = en->next_serial++;
        t->next = en->incoming;
        en->incoming = t;
        count_waiting(en, t, true);
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
        insert(en, list);
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
