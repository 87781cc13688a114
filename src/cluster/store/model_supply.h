/* model_supply.h - supplies a node's assigned models: from its store, from other nodes that have
 * them loaded, or from the model's own source, in this order.
 *
 * find is polled for each assigned model. If a model is not in the store, the first call listens to
 * heartbeats for a moment, so that other nodes are preferred to a remote source. A failed fetch is
 * retried after a while.
 *
 * Thread:    the executor's of the fetcher.
 * Ownership: create gives, destroy takes back (NULL is fine), before the fetcher and the store.
 * Failure:   reported by find. */
#ifndef SHOAL_CLUSTER_STORE_MODEL_SUPPLY_H
#define SHOAL_CLUSTER_STORE_MODEL_SUPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct model_fetcher;
struct model_store;
struct model_supply;
struct node_state;

enum model_supply_found {
    MODEL_SUPPLY_HERE,    /* path is the model to load; it stays in the store until release */
    MODEL_SUPPLY_COMING,  /* call again; e has the last error, if any */
    MODEL_SUPPLY_NOWHERE, /* e has the reason */
};

SHOAL_MUST_CHECK int model_supply_create(struct model_supply **out, struct model_store *store,
                                         struct model_fetcher *fetcher, struct err *e);
void model_supply_destroy(struct model_supply *s);
/* progress: in thousandths. */
enum model_supply_found model_supply_find(struct model_supply *s, const char *name,
                                          const uint8_t sha256[SHA256_BYTES], const char *source,
                                          char *path, size_t cap, uint32_t *progress,
                                          struct err *e);
/* Its bytes may be damaged: find reads them again, and brings others if they are.  False: it does
 * not come from the store. */
bool model_supply_doubt(struct model_supply *s, const uint8_t sha256[SHA256_BYTES]);
/* The model is no longer needed: its fetch is cancelled, and the store may evict it. */
void model_supply_release(struct model_supply *s, const uint8_t sha256[SHA256_BYTES]);
/* Whether it needs heartbeats now; and a heartbeat of another node. */
bool model_supply_listens(const struct model_supply *s);
void model_supply_hear(struct model_supply *s, const struct node_state *state);

#endif
