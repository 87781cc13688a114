/* place_order.h - the steps from the current placement to the planned one, in a safe order.
 *
 * A replica that was moved twice while planning moves once, and steps that cancel each other out
 * are dropped. The steps are ordered in waves: first those that memory and minimums allow now, then
 * those that become possible. If that gets stuck (two full nodes that exchange models), the steps
 * are taken as they were planned, which is safe by construction.
 *
 * Thread:    belongs to one call of placement_plan.
 * Ownership: steps and texts are in the given arena. */
#ifndef SHOAL_CLUSTER_PLACE_ORDER_H
#define SHOAL_CLUSTER_PLACE_ORDER_H

#include "cluster/placement/place_core.h"

SHOAL_MUST_CHECK int place_order_steps(struct placement_plan *plan, struct arena *a,
                                       struct place_core *c, struct err *e);

#endif
