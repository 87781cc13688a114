/* node_models.h - where a node finds the bytes of models that the controller assigns to it: the
 * folders of its configuration and of the models included with Shoal.
 *
 * Thread:    the source's functions: as agent.h says.  Everything else: the owner's.
 * Ownership: open gives, close takes back (NULL is fine), after the agent has ended. */
#ifndef SHOAL_GATEWAY_NODE_NODE_MODELS_H
#define SHOAL_GATEWAY_NODE_NODE_MODELS_H

#include "base/err.h"

struct agent_source;
struct gw_config;
struct node_models;

SHOAL_MUST_CHECK int node_models_open(struct node_models **out, const struct gw_config *c,
                                      struct err *e);
void node_models_close(struct node_models *m);
const struct agent_source *node_models_source(const struct node_models *m);

#endif
