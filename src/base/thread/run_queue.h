/* run_queue.h - how long the compute threads of this process waited for a core.
 *
 * A thread that could run but has no core stands in the kernel's run queue. What waits there
 * because of other programs looks, by the clock, like slow work of our own; this tells the two
 * apart. The kernel counts both times of every thread (/proc/PID/task/TID/schedstat).
 *
 * Threads that compute join; the sums are over all that ever joined, so they only grow.
 *
 * Thread:  any.
 * Failure: none.  Where the kernel does not count, or its files cannot be opened (the sandbox of a
 *          worker), both times stay 0. */
#ifndef SHOAL_BASE_THREAD_RUN_QUEUE_H
#define SHOAL_BASE_THREAD_RUN_QUEUE_H

#include <stdint.h>

struct run_queue_time {
    uint64_t ran_ns, waited_ns;
};

/* The calling thread is counted from now until it leaves. Returns its place; -1: it is not
 * counted, which run_queue_leave accepts. */
int run_queue_join(void);
void run_queue_leave(int place);
/* One system call for each thread that has joined. */
struct run_queue_time run_queue_read(void);

#endif
