/* home_later_action.h - the action of a schedule's entry as the file keeps it: a JSON object.
 *
 * Thread:    no state.
 * Ownership: what is read lives in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_LATER_ACTION_H
#define SHOAL_APPS_HOME_HOME_LATER_ACTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "flow/ask_plan.h"

#define HOME_LATER_ACTION_MAX 8192u /* bytes in the file */

/* Whether the file can keep it, and results have room in it. */
bool home_later_action_fits(const struct ask_plan_action *o);
/* NULL is written as "". */
void home_later_action_write(struct buf *out, const struct ask_plan_action *o);
/* NULL: it is no action that fits. */
struct ask_plan_action *home_later_action_read(struct arena *a, const char *json);

#endif
