/* loop.h - an epoll event loop: descriptors, timers, work posted by other threads, work put off to
 * the end of a turn.
 *
 * Thread:    a loop belongs to the thread that calls loop_run (before that: to its creator).  Only
 *            loop_post and loop_stop may be called from others.
 * Ownership: the caller's structs are linked in, nothing is copied; they must stay until taken out.
 * Failure:   loop_create and loop_io_add can fail; timers, posts and later work need no memory. */
#ifndef SHOAL_NET_LOOP_H
#define SHOAL_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/executor.h"

struct loop;

/* The struct that has member as a part, from a pointer to the part. */
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
/* One turn: waits at most max_wait_ms for something to happen. */
void loop_turn(struct loop *l, int max_wait_ms);
/* Runs what was posted and put off; only while nobody runs the loop. */
void loop_flush(struct loop *l);
/* For code that must not know of loops: posts, later work and timers of this one. */
struct executor *loop_executor(struct loop *l);
/* The time of the current turn. */
uint64_t loop_now(const struct loop *l);

SHOAL_MUST_CHECK int loop_io_add(struct loop *l, struct loop_io *io, uint32_t events,
                                 struct err *e);
void loop_io_set(struct loop *l, struct loop_io *io, uint32_t events);
/* Takes the descriptor out; an event already received for it may still come in this turn, so what
 * holds io is freed by loop_later. */
void loop_io_del(struct loop *l, struct loop_io *io);

/* Timers fire at or up to 5 ms after their time, once.  Setting one again moves it. */
void loop_timer_set(struct loop *l, struct executor_timer *t, uint64_t at_ns);
void loop_timer_clear(struct loop *l, struct executor_timer *t);

/* From any thread: fn runs soon on the loop's thread.  Posts of one thread keep their order. */
void loop_post(struct loop *l, struct executor_task *task);
/* From the loop's thread: fn runs after all events of this turn; asking twice is asking once. */
void loop_later(struct loop *l, struct executor_task *task);
/* Takes back what was put off, if it was. */
void loop_forget(struct loop *l, struct executor_task *task);

#endif
