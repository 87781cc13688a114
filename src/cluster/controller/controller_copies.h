/* controller_copies.h - several replicas of a model on one node: a pure decision after the plan.
 *
 * The planner gives a node at most one replica of a model.  If that leaves some without a place and
 * the model may have several on a node (per_node), nodes that serve it already get copies: where
 * the plan leaves memory free, one for each core at most, evenly.  They give way when another node
 * has room, or when another model needs theirs: the planner does not see them.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_CONTROLLER_COPIES_H
#define SHOAL_CLUSTER_CONTROLLER_COPIES_H

#include <stdint.h>

#include "base/err.h"

struct arena;
struct controller_snapshot;
struct desired;
struct placement_input;
struct placement_plan;

/* A change, for people. */
typedef void (*controller_copies_fn)(void *ctx, const char *node, const char *model, uint32_t was,
                                     uint32_t now);

/* Before the plan is applied: a model is loaded where copies hold its memory only after they have
 * left, with one of the next plans. */
void controller_copies_hold(const struct desired *d, const struct placement_input *in,
                            struct placement_plan *plan);
/* Sets the copies of d's assignments, after the plan was applied to them. */
SHOAL_MUST_CHECK int controller_copies(struct desired *d, const struct controller_snapshot *s,
                                       const struct placement_input *in,
                                       const struct placement_plan *plan, struct arena *a,
                                       controller_copies_fn changed, void *ctx, struct err *e);

#endif
