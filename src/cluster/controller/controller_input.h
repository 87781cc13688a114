/* controller_input.h - the planner's input (placement.h) from the desired state and the nodes'
 * heartbeats.
 *
 * A replica is an assignment of the desired state to a live node: ready, loading or failed as the
 * node reports. A model that a node has from its own configuration counts too, and cannot be moved.
 * Everything else that a node holds takes memory from it.
 *
 * Thread:    no state.
 * Ownership: everything is in the caller's arena, or borrows from the desired state and the
 *            snapshot.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT. */
#ifndef SHOAL_CLUSTER_CONTROLLER_INPUT_H
#define SHOAL_CLUSTER_CONTROLLER_INPUT_H

#include "base/err.h"
#include "cluster/placement/placement.h"

struct arena;
struct controller_memory;
struct controller_snapshot;
struct desired;
struct node_model;
struct node_state;

SHOAL_MUST_CHECK int controller_input_make(struct placement_input *out, const struct desired *d,
                                           const struct controller_snapshot *s,
                                           const struct controller_memory *m, struct arena *a,
                                           struct err *e);
/* The node's report about one version of a model; NULL: it has none. */
const struct node_model *controller_input_held(const struct node_state *s, const char *model,
                                               const uint8_t *sha256);

#endif
