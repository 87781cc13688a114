/* queue.c - see queue.h. */
#include "engine/queue.h"

#include "base/clock.h"
#include "engine/engine_files.h"
#include "engine/job.h"

/* Under the lock: t joins (or leaves) the waiting tasks. */
static void count_waiting(struct shoal_engine *en, const struct shoal_task *t, bool joins)
{
    struct fair_client *c = t->client;
    const uint32_t one = joins ? 1 : UINT32_MAX;
    const uint64_t prompt = t->job ? t->job->cost : t->n_prompt;
    const uint64_t sign = joins ? 1 : UINT64_MAX; /* modulo 2^64: minus one */
    en->n_waiting += one;
    atomic_fetch_add_explicit(&en->load.n_waiting, one, memory_order_relaxed);
    c->n_waiting += one;
    c->waiting_prompt += sign * prompt;
    c->waiting_decode += sign * t->expected;
    if (t->job)
        en->fair_waiting_units += sign * prompt;
}

void queue_take(struct shoal_engine *en, struct shoal_task **at)
{
    const struct shoal_task *t = *at;
    fair_remove(&en->fair, at);
    pthread_mutex_lock(&en->lock);
    count_waiting(en, t, false);
    pthread_mutex_unlock(&en->lock);
}

void queue_return(struct shoal_engine *en, struct shoal_task *t)
{
    fair_add(&en->fair, t);
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
    t->client = fair_enter(&en->fair, t->client_id, t->weight, t->priority);
    if (!fair_has_place(t->client, en->n_waiting, en->max_queue)) {
        rc = err_set(e, SHOAL_EBUSY, "the queue is full: %u tasks are waiting", en->n_waiting);
        fair_leave(t->client);
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
    if (!en)
        return;
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
    fair_leave(t->client);
    pthread_cond_broadcast(&en->finished);
    pthread_mutex_unlock(&en->lock);
    task_unref(t);
}

bool queue_receive(struct shoal_engine *en)
{
    pthread_mutex_lock(&en->lock);
    while (!en->stop && !en->incoming && !en->page_jobs && !fair_best(&en->fair) &&
           en->n_active == 0) {
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
        fair_add(&en->fair, list);
        list = next;
    }
    return go_on;
}

int shoal_task_wait(struct shoal_task *t)
{
    if (!t)
        return SHOAL_EINVAL;
    struct shoal_engine *en = t->engine;
    pthread_mutex_lock(&en->lock);
    while (!t->done)
        pthread_cond_wait(&en->finished, &en->lock);
    int code = t->code;
    pthread_mutex_unlock(&en->lock);
    return code;
}
