/* node_join.h - connects this process to the NATS of its shoal (cluster/join.h): it sends
 * heartbeats, and the nodes that it hears become members of every loop.
 *
 * Thread:    open before the loops run, close after they have ended. */
#ifndef SHOAL_GATEWAY_NODE_NODE_JOIN_H
#define SHOAL_GATEWAY_NODE_NODE_JOIN_H

#include "base/err.h"

struct gw;

/* Before the members of the loops are opened.  Both do nothing if no NATS is configured. */
SHOAL_MUST_CHECK int node_join_prepare(struct gw *gw, struct err *e);
SHOAL_MUST_CHECK int node_join_open(struct gw *gw, struct err *e);
void node_join_close(struct gw *gw);

#endif
