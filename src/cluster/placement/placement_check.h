/* placement_check.h - checks a plan against its input, without the planner's code: tests and the
 * simulator use it on every plan.
 *
 * Checked for every wave, for any order of its steps: no node holds more than its memory, no model
 * has fewer ready replicas than its minimum or than at the start, and a load goes to a node that
 * may have the model. Checked after the last step: counts, zones, pins, and that every deviation is
 * listed as a gap.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINTERNAL says which step or model breaks which rule; SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_PLACEMENT_CHECK_H
#define SHOAL_CLUSTER_PLACEMENT_CHECK_H

#include "cluster/placement/placement.h"

SHOAL_MUST_CHECK int placement_check(const struct placement_input *in,
                                     const struct placement_plan *plan, struct err *e);

#endif
