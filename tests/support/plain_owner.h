/* plain_owner.h - a thread that owns requests without an event loop, as a command would: tasks that
 * other threads post wait in a list until the owner runs them.  No timers: nothing here loads
 * models while requests wait. */
#ifndef SHOAL_TESTS_PLAIN_OWNER_H
#define SHOAL_TESTS_PLAIN_OWNER_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/executor.h"

struct plain_owner {
    struct executor executor; /* first */
    pthread_mutex_t lock;
    pthread_cond_t posted;
    struct executor_task *first, **end; /* of other threads, under the lock */
    struct executor_task *later, **later_end;
};

static inline struct plain_owner *plain_owner_of(struct executor *x)
{
    return (struct plain_owner *)(void *)x;
}

static inline void plain_owner_post(struct executor *x, struct executor_task *t)
{
    struct plain_owner *o = plain_owner_of(x);
    pthread_mutex_lock(&o->lock);
    t->next = NULL;
    *o->end = t;
    o->end = &t->next;
    pthread_cond_signal(&o->posted);
    pthread_mutex_unlock(&o->lock);
}

static inline void plain_owner_later(struct executor *x, struct executor_task *t)
{
    struct plain_owner *o = plain_owner_of(x);
    if (t->queued)
        return;
    t->queued = true;
    t->next = NULL;
    *o->later_end = t;
    o->later_end = &t->next;
}

static inline void plain_owner_timer_set(struct executor *x, struct executor_timer *t,
                                         uint64_t at_ns)
{
    (void)x;
    (void)t;
    (void)at_ns;
    abort();
}

static inline void plain_owner_timer_clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    (void)t;
}

static inline void plain_owner_init(struct plain_owner *o)
{
    static const struct executor_ops ops = {plain_owner_post, plain_owner_later,
                                            plain_owner_timer_set, plain_owner_timer_clear};
    *o = (struct plain_owner){.executor = {&ops}};
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->posted, NULL);
    o->end = &o->first;
    o->later_end = &o->later;
}

static inline void plain_owner_fini(struct plain_owner *o)
{
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->posted);
}

/* One turn: what was put off, then what was posted; waits up to a second for the first post.  False
 * when none came. */
static inline bool plain_owner_turn(struct plain_owner *o)
{
    struct executor_task *t = o->later, *next;
    struct timespec ts;
    o->later = NULL;
    o->later_end = &o->later;
    for (; t; t = next) {
        next = t->next;
        t->queued = false;
        t->fn(t);
    }
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec++;
    pthread_mutex_lock(&o->lock);
    int rc = 0;
    while (!o->first && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&o->posted, &o->lock, &ts);
    t = o->first;
    o->first = NULL;
    o->end = &o->first;
    pthread_mutex_unlock(&o->lock);
    bool any = t != NULL;
    for (; t; t = next) {
        next = t->next;
        t->fn(t);
    }
    return any;
}

#endif
