/* place_fit.h - adjusts the replica counts to their targets: replicas that must leave are moved,
 * missing ones are placed, surplus ones are removed.
 *
 * Models are handled by priority, then by size, largest first: first forced moves, then pins, the
 * minimum of every model, replicas above the minimum, and hot standby. A replica goes to the
 * cheapest node that has room. If none has, others are moved away from one, or, for a minimum or a
 * higher priority, unloaded if their model keeps its own minimum.
 *
 * Thread:    belongs to one call of placement_plan. */
#ifndef SHOAL_CLUSTER_PLACE_FIT_H
#define SHOAL_CLUSTER_PLACE_FIT_H

#include "cluster/placement/place_pick.h"

struct place_fit {
    struct place_core *c;
    struct place_pick pick;
    uint32_t *order; /* models, the most important first */
    uint64_t budget; /* node visits left for making room */
};

SHOAL_MUST_CHECK int place_fit_init(struct place_fit *f, struct place_core *c, struct err *e);
/* One pass; changes are in the core's ops. */
void place_fit_run(struct place_fit *f);
/* The cheapest spot that a replica could move to without worsening the spread over zones more than
 * needed; the cost includes the zone. Needs a pick of its model. */
bool place_fit_target(const struct place_fit *f, const struct place_replica *r,
                      struct place_spot *out);

#endif
