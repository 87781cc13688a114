/* node_self.h - this process as a node: its state, for heartbeats.
 *
 * Thread:    the loop's.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_NODE_NODE_SELF_H
#define SHOAL_GATEWAY_NODE_NODE_SELF_H

#include "base/buf.h"

struct arena;
struct gw_loop;
struct node_state;

/* The state of this process for others. It lives in the arena, and as long as the configuration. */
void node_self_fill(struct node_state *s, struct arena *a, struct gw_loop *gl);
/* Appends an encoded node_state. prefixes_seen: with the prefixes that are new since then
 * (prefix_table.h); NULL: without them, for whoever sends no requests. */
SHOAL_MUST_CHECK int node_self_put(struct buf *out, struct gw_loop *gl, uint64_t *prefixes_seen);

#endif
