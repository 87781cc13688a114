/* executor.h - runs tasks and timers on the thread that owns an object.
 *
 * A request belongs to one thread, but its events arrive on threads of engines, the registry and a
 * pool. Code that must not know what the owner runs (an event loop, a command) posts tasks through
 * this interface. net/loop and executor_queue implement it.
 *
 * Thread:    post: any.  Everything else: the owner's.
 * Ownership: tasks and timers belong to the caller, are linked in, and must stay valid until they
 *            have run or were cleared.
 * Failure:   none: nothing here needs memory. */
#ifndef SHOAL_BASE_THREAD_EXECUTOR_H
#define SHOAL_BASE_THREAD_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The struct that contains member, from a pointer to the member. */
#define EXECUTOR_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* One call on the owner's thread; may be reused once fn runs. */
struct executor_task {
    struct executor_task *next;
    void (*fn)(struct executor_task *t);
    bool queued; /* used by `later` only: already in the list */
};

struct executor_timer {
    struct executor_timer *prev, *next; /* prev NULL: not set */
    uint64_t at_ns;
    void (*fn)(struct executor_timer *t);
};

struct executor;

struct executor_ops {
    void (*post)(struct executor *x, struct executor_task *t);
    void (*later)(struct executor *x, struct executor_task *t);
    void (*timer_set)(struct executor *x, struct executor_timer *t, uint64_t at_ns);
    void (*timer_clear)(struct executor *x, struct executor_timer *t);
};

struct executor {
    const struct executor_ops *ops;
};

/* From any thread: fn runs soon on the owner's thread.  Posts of one thread keep their order. */
static inline void executor_post(struct executor *x, struct executor_task *t)
{
    x->ops->post(x, t);
}

/* fn runs once the owner has handled the current batch of events; calling it twice runs fn once. */
static inline void executor_later(struct executor *x, struct executor_task *t)
{
    x->ops->later(x, t);
}

/* at_ns: CLOCK_MONOTONIC.  Fires once; setting it again moves it. */
static inline void executor_timer_set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    x->ops->timer_set(x, t, at_ns);
}

static inline void executor_timer_clear(struct executor *x, struct executor_timer *t)
{
    x->ops->timer_clear(x, t);
}

#endif
