/* worker_links.h - the worker processes as one event loop knows them: sends requests for isolated
 * models to their workers.
 *
 * A request waits for its model like any other (flow/acquire.h), and is then relayed: if the worker
 * ends in the middle, the answer continues in the next one after the last token that the client
 * received.
 *
 * Thread:    the loop's, except create and destroy while the loop does not run.
 * Ownership: requests that are sent on must have ended before destroy. */
#ifndef SHOAL_CLUSTER_WORKER_WORKER_LINKS_H
#define SHOAL_CLUSTER_WORKER_WORKER_LINKS_H

#include "flow/dispatch.h"
#include "net/loop.h"

struct registry;
struct replica_counts;
struct worker_links;
struct workers;

/* wait_ms: for a worker to come back; see relay.h.  counts: borrowed. */
SHOAL_MUST_CHECK int worker_links_create(struct worker_links **out, struct loop *l,
                                         struct workers *w, struct registry *r, uint32_t wait_ms,
                                         struct replica_counts *counts, struct err *e);
void worker_links_destroy(struct worker_links *m); /* NULL is fine */
/* For flow_owner.apart. */
struct dispatch *worker_links_dispatch(struct worker_links *m);

#endif
