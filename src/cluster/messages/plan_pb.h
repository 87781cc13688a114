/* plan_pb.h - the plan of an ask (flow/ask_plan.h) as messages of shoal.node.v1 and back.
 *
 * Thread:    no state.
 * Ownership: results live in the arena or borrow from the argument: messages from the plan, and
 *            plans from the unpacked message.
 * Failure:   NULL, with the arena's rc; plan_pb_read: SHOAL_EFORMAT too. */
#ifndef SHOAL_CLUSTER_MESSAGES_PLAN_PB_H
#define SHOAL_CLUSTER_MESSAGES_PLAN_PB_H

#include <shoal/node/v1/node.pb-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "flow/ask_plan.h"

Shoal__Node__V1__Plan *plan_pb_of(struct arena *a, const struct ask_plan *plan);
Shoal__Node__V1__PlanStep **plan_pb_steps(struct arena *a, const struct ask_plan_step *steps,
                                          uint32_t n, size_t *n_out);
/* A copy in the arena: it does not refer to the message. */
SHOAL_MUST_CHECK int plan_pb_read(const struct ask_plan **out, struct arena *a,
                                  const Shoal__Node__V1__Plan *m);
/* Not NULL for 0 steps. */
const struct ask_plan_step *plan_pb_read_steps(struct arena *a, Shoal__Node__V1__PlanStep **steps,
                                               size_t n);

#endif
