/* node_shard.h - this node computes parts of models for others, and has others compute parts of its
 * own (cluster/shard).
 *
 * Thread:    open before the models are loaded, stop before the registry ends, close after it. */
#ifndef SHOAL_GATEWAY_NODE_NODE_SHARD_H
#define SHOAL_GATEWAY_NODE_NODE_SHARD_H

#include "base/err.h"

struct arena;
struct buf;
struct chain;
struct gw;
struct node_state;

/* Does nothing for a process that is not a node, or has no certificate: then gw->shard stays NULL.
 */
SHOAL_MUST_CHECK int node_shard_open(struct gw *gw, struct err *e);
void node_shard_stop(struct gw *gw);
void node_shard_close(struct gw *gw);
/* The models of this process with layers on other nodes, for its state. */
void node_shard_fill(struct gw *gw, struct node_state *s, struct arena *a);
/* The same as Prometheus text; nothing if there are none.  Any thread. */
void node_shard_metrics(struct gw *gw, struct buf *b);
/* Another member is at this address; it may be used, if it is a node. */
void node_shard_found(struct gw *gw, const char *address);
void node_shard_gone(struct gw *gw, const char *address);
/* registry_opts.chain; ctx is a struct gw. */
SHOAL_MUST_CHECK int node_shard_chain(void *gw, const char *path, const char *shard,
                                      struct chain *out, struct err *e);

#endif
