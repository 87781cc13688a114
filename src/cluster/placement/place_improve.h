/* place_improve.h - moves replicas to better nodes, as long as the gain is worth the move.
 *
 * Each move lowers the cost of the whole placement, so this terminates, and planning again changes
 * nothing.
 *
 * Thread:    belongs to one call of placement_plan. */
#ifndef SHOAL_CLUSTER_PLACE_IMPROVE_H
#define SHOAL_CLUSTER_PLACE_IMPROVE_H

#include "cluster/placement/place_fit.h"

/* *n_moves counts the running replicas that were moved so far in this plan, up to the policy's
 * limit. */
void place_improve_run(struct place_fit *f, uint32_t *n_moves);

#endif
