/* loop.h - an epoll event loop: descriptors, timers, tasks posted by other threads, tasks
 * deferred to the end of a turn.
 *
 * Thread:    a loop belongs to the thread that calls loop_run (before that: to its creator).  Only
 *            loop_post and loop_stop may be called from others.
 * Ownership: the caller's structs are linked, not copied; they must live until they are removed.
 * Failure:   loop_create and loop_io_add can fail; timers, posts and deferred tasks need no memory.
 */
#ifndef SHOAL_NET_LOOP_H
#define SHOAL_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread/executor.h"

struct loop;

/* The struct that contains a member, from a pointer to the member. */
#define LOOP_OF(ptr, type, member) EXECUTOR_OF(ptr, type, member)

struct loop_io {
    int fd; /* set by the caller before add */
    uint32_t events;
    void (*fn)(struct loop_io *io, uint32_t events); /* EPOLLIN, ... */
};

SHOAL_MUST_CHECK int loop_create(struct loop **out, struct err *e);
void loop_destroy(struct loop *l); /* NULL is fine */
void loop_run(struct loop *l);     /* until loop_stop */
void loop_stop(struct loop *l);    /* any thread, also from a signal handler */
/* Runs one turn: waits at most max_wait_ms for events. */
void loop_turn(struct loop *l, int max_wait_ms);
/* Runs posted and deferred tasks; only while the loop is not running. */
void loop_flush(struct loop *l);
/* This loop's posts, deferred tasks and timers, for code that must not depend on loops. */
struct executor *loop_executor(struct loop *l);
/* The time of the current turn. */
uint64_t loop_now(const struct loop *l);

SHOAL_MUST_CHECK int loop_io_add(struct loop *l, struct loop_io *io, uint32_t events,
                                 struct err *e);
void loop_io_set(struct loop *l, struct loop_io *io, uint32_t events);
/* Removes the descriptor.  An event already received for it may still be delivered in this turn,
 * so free the struct that contains io with loop_later. */
void loop_io_del(struct loop *l, struct loop_io *io);

/* Timers fire once, at their time or up to 5 ms later.  Setting one again moves it. */
void loop_timer_set(struct loop *l, struct executor_timer *t, uint64_t at_ns);
void loop_timer_clear(struct loop *l, struct executor_timer *t);

/* From any thread: fn runs soon on the loop's thread.  Posts of one thread keep their order. */
void loop_post(struct loop *l, struct executor_task *task);
/* From the loop's thread: fn runs once after all events of this turn, however often it is
 * requested. */
void loop_later(struct loop *l, struct executor_task *task);
/* The same, but after the events of the next turn: for work done in parts, so that others get their
 * turn in between. */
void loop_next(struct loop *l, struct executor_task *task);
/* Cancels a task of loop_later or loop_next, if pending. */
void loop_forget(struct loop *l, struct executor_task *task);

#endif
