/* place_index.h - builds the planner's working state from its input: validates it, numbers the
 * names, computes which node can have which model and how fast, and adds the current replicas.
 *
 * Failure:   SHOAL_EINVAL names the invalid item; SHOAL_ELIMIT, SHOAL_ENOMEM. The state must be
 *            freed with place_core_fini in any case. */
#ifndef SHOAL_CLUSTER_PLACE_INDEX_H
#define SHOAL_CLUSTER_PLACE_INDEX_H

#include "cluster/placement/place_core.h"

SHOAL_MUST_CHECK int place_index_build(struct place_core *c, const struct placement_input *in,
                                       struct err *e);

#endif
