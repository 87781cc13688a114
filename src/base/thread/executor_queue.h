/* executor_queue.h - an executor for a thread without an event loop: a command, a test.
 *
 * The owner calls turn in a loop until its work is done; or it polls the descriptor along with
 * others and calls run.
 *
 * Thread:    posts: any.  Everything else: the owner's.
 * Ownership: init/fini over the caller's storage.  At fini nothing may be posted any more. */
#ifndef SHOAL_BASE_THREAD_EXECUTOR_QUEUE_H
#define SHOAL_BASE_THREAD_EXECUTOR_QUEUE_H

#include <pthread.h>

#include "base/err.h"
#include "base/thread/executor.h"

struct executor_queue {
    struct executor executor; /* first */
    int fd;                   /* readable: something was posted */
    /* private */
    pthread_mutex_t lock; /* guards posted and its end */
    struct executor_task *posted, **posted_end;
    struct executor_task *deferred, **deferred_end;
    struct executor_timer timers; /* head of a ring, the earliest first */
};

SHOAL_MUST_CHECK int executor_queue_init(struct executor_queue *q, struct err *e);
void executor_queue_fini(struct executor_queue *q);
/* Runs timers that are due, what was posted, and then what was deferred.  False: nothing to do. */
bool executor_queue_run(struct executor_queue *q);
/* How long the owner may wait on the descriptor, as for poll(): -1 means forever, 0 means not at
 * all.
 */
int executor_queue_wait_ms(const struct executor_queue *q);
/* Runs; if there was nothing to do, waits at most max_ms (-1: forever) and runs again. False:
 * nothing arrived. */
bool executor_queue_turn(struct executor_queue *q, int max_ms);

#endif
