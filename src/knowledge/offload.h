/* offload.h - runs slow or blocking work of a flow on the pool, then continues on the owner's
 * thread.
 *
 * Thread:    the owner's; `work` runs on a thread of the pool, or on the owner's if there is none.
 * Ownership: part of the caller's job, which must live until `then` was called. */
#ifndef SHOAL_KNOWLEDGE_OFFLOAD_H
#define SHOAL_KNOWLEDGE_OFFLOAD_H

#include "flow/flow.h"
#include "flow/pool.h"

struct offload {
    void (*work)(void *ctx);
    void (*then)(void *ctx); /* on the owner's thread, never before offload_run has returned */
    void *ctx;
    /* private */
    struct flow_owner *owner;
    struct pool_task task;
    struct executor_task back;
};

/* work, then and ctx are set. SHOAL_EBUSY: too much is waiting, and neither will be called. */
SHOAL_MUST_CHECK int offload_run(struct offload *o, struct flow_owner *owner);

#endif
