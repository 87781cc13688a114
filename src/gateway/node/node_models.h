/* node_models.h - where a node finds the bytes of models that the controller assigns to it: the
 * folders of its configuration and of the models included with Shoal, its store, other nodes, and
 * the sources that the desired state names.
 *
 * Thread:    the source's functions: as agent.h says.  Everything else: the owner's.
 * Ownership: open gives, close takes back (NULL is fine), after the agent has ended. */
#ifndef SHOAL_GATEWAY_NODE_NODE_MODELS_H
#define SHOAL_GATEWAY_NODE_NODE_MODELS_H

#include <stdbool.h>

#include "base/err.h"
#include "host/sha256.h"

struct agent_source;
struct config;
struct executor;
struct node_models;
struct node_state;
struct node_store;

/* store: borrowed, NULL: none; otherwise models come from other nodes and from their sources too.
 */
SHOAL_MUST_CHECK int node_models_open(struct node_models **out, const struct config *c,
                                      const struct node_store *store, struct err *e);
void node_models_close(struct node_models *m);
const struct agent_source *node_models_source(const struct node_models *m);
/* Reads the store again every every_ms (0: never), and reports damaged models on the executor. */
SHOAL_MUST_CHECK int node_models_scrub(struct node_models *m, struct executor *x, uint32_t every_ms,
                                       void (*found)(void *ctx, const uint8_t sha256[SHA256_BYTES]),
                                       void *ctx, struct err *e);
/* Whether it needs heartbeats now; and a heartbeat of another node. */
bool node_models_listens(const struct node_models *m);
void node_models_hear(struct node_models *m, const struct node_state *s);

#endif
