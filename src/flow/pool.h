/* pool.h - a few threads for work that would keep an owner thread too long: large templates, long
 * prompts.
 *
 * Thread:    pool_submit from any.
 * Ownership: a task belongs to the pool from submit until its fn runs.
 * Failure:   SHOAL_EBUSY when the queue is full. */
#ifndef SHOAL_FLOW_POOL_H
#define SHOAL_FLOW_POOL_H

#include <stdint.h>

#include "base/err.h"

struct pool;

struct pool_task {
    struct pool_task *next;
    void (*fn)(struct pool_task *t); /* on a thread of the pool */
};

SHOAL_MUST_CHECK int pool_create(struct pool **out, uint32_t n_threads, uint32_t max_waiting,
                                 struct err *e);
void pool_destroy(struct pool *p); /* runs waiting tasks, then joins */
SHOAL_MUST_CHECK int pool_submit(struct pool *p, struct pool_task *t);

#endif
