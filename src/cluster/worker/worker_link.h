/* worker_link.h - a worker process as one event loop sees it: a replica, with a connection while
 * the worker runs.
 *
 * Thread:    the loop's.
 * Ownership: destroy ends its requests: each sink gets fail and closed.
 * Failure:   a request fails with REPLICA_LOST when the worker is not running, ends, or sends
 *            invalid data. */
#ifndef SHOAL_CLUSTER_WORKER_WORKER_LINK_H
#define SHOAL_CLUSTER_WORKER_WORKER_LINK_H

#include "cluster/replica.h"
#include "net/loop.h"

struct worker_link;
struct workers_conn;

/* name: of the model, for people. */
SHOAL_MUST_CHECK int worker_link_create(struct worker_link **out, struct loop *l, const char *name,
                                        struct err *e);
void worker_link_destroy(struct worker_link *k); /* NULL is fine */
struct replica *worker_link_replica(struct worker_link *k);
/* Takes the connection to the worker that was just started. */
SHOAL_MUST_CHECK int worker_link_connect(struct worker_link *k, const struct workers_conn *c,
                                         struct err *e);
/* It takes requests. */
bool worker_link_ready(const struct worker_link *k);

#endif
