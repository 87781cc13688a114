/* executor.h - runs tasks and timers on the thread that owns an object.
 *
 * Events of a request come on threads of engines, of the registry and of a pool; its owner is one
 * thread.  Code that must not know what that thread runs (an event loop, a command) posts tasks
 * through this interface.  net/loop and executor_queue implement it.
 *
 * Thread:    post: any.  Everything else: the owner's.
 * Ownership: tasks and timers belong to the caller, are linked in, and must stay until they ran or
 *            were cleared.
 * Failure:   none: nothing here needs memory. */
#ifndef SHOAL_BASE_THREAD_EXECUTOR_H
#define SHOAL_BASE_THREAD_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The struct that has member as a part, from a pointer to the part. */
#define EXECUTOR_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* One call on the owner's thread; free to be used again once fn runs. */
struct executor_task {
    struct executor_task *next;
    void (*fn)(struct executor_task *t);
    bool queued; /* by `later` alone: already in the list */
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

/* fn runs once the owner has handled everything it received together; asking twice is asking
 * once. */
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
