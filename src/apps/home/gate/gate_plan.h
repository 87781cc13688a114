/* gate_plan.h - the deeds of an action of a plan, and whether all of them may be carried out.
 *
 * Thread:    any; no state.
 * Ownership: results live in the caller's arena, or in the table, the file and the action.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_GATE_GATE_PLAN_H
#define SHOAL_APPS_HOME_GATE_GATE_PLAN_H

#include "apps/home/gate/gate.h"
#include "flow/ask_plan.h"

/* What the action sets on its things, or on the things of its scene; returns how many. */
uint32_t gate_plan_deeds(struct arena *a, const struct gate *g, const struct ask_plan_action *o,
                         struct home_deed **out);
/* The strictest verdict about the deeds of an action, with the highest risk of all. An action that
 * acts on no thing has a risk too. */
struct gate_verdict gate_plan_check(struct arena *a, const struct gate *g,
                                    const struct ask_plan_action *o, bool confirmed);

#endif
