/* thread.h - threads with a name, a fixed stack size and no signals.
 *
 * The name shows in `ps -L`, in debuggers and in /proc/PID/task/TID/comm.  The stack has the same
 * size on every machine, whatever `ulimit -s` says.  Signals sent to the process are handled by the
 * main thread: all but those that a thread raises itself (SIGSEGV and the like) are blocked.
 *
 * Thread:    any.
 * Ownership: the caller joins the thread with pthread_join.
 * Failure:   SHOAL_ENOMEM; then there is no thread. */
#ifndef SHOAL_BASE_THREAD_THREAD_H
#define SHOAL_BASE_THREAD_THREAD_H

#include <pthread.h>

#include "base/err.h"

#define THREAD_NAME_BYTES 16u /* including the NUL: Linux's limit */

typedef void *(*thread_fn)(void *arg);

/* A name longer than 15 bytes is cut. */
SHOAL_MUST_CHECK int thread_create(pthread_t *out, const char *name, thread_fn fn, void *arg,
                                   struct err *e);
/* The same with the name "role-i": "loop-0". */
SHOAL_MUST_CHECK int thread_create_numbered(pthread_t *out, const char *role, unsigned i,
                                            thread_fn fn, void *arg, struct err *e);

#endif
