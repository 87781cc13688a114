/* node_store.h - the models of this node on disk: its store, fetching, and serving models to others
 * (cluster/store/).
 *
 * Thread:    open before the loops run; stop after they have ended, flush the loops, then close.
 *            Everything else: as it says.
 * Failure:   a store that the configuration names must be usable. Otherwise a node without one logs
 *            that, serves its configured models and cannot be assigned others. */
#ifndef SHOAL_GATEWAY_NODE_NODE_STORE_H
#define SHOAL_GATEWAY_NODE_NODE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/store/byte_rate.h"
#include "host/sha256.h"

struct gw;
struct model_fetcher;
struct model_store;
struct pool;

struct node_store {
    struct model_store *store;     /* NULL: none */
    struct model_fetcher *fetcher; /* NULL: none; calls back on the first loop */
    struct pool *readers;          /* read files for other nodes */
    struct byte_rate rate;         /* rate limit for sending */
    _Atomic uint32_t n_shares;     /* files that are being sent */
    _Atomic bool stop;
    char memo_dir[512]; /* where hashes are remembered; "": nowhere */
};

/* No effect if this process is not a node. */
SHOAL_MUST_CHECK int node_store_open(struct gw *gw, struct err *e);
void node_store_stop(struct gw *gw);
void node_store_close(struct gw *gw);

#endif
