/* home_rules.h - turns the models' results for a clause into actions and lines (docs/ASK.md,
 * sections 2 to 6). No model runs here, and nothing waits.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, which must outlive them.
 * Failure:   sticky in the arena (SHOAL_ENOMEM, SHOAL_ELIMIT): check arena->rc once. */
#ifndef SHOAL_APPS_HOME_HOME_RULES_H
#define SHOAL_APPS_HOME_HOME_RULES_H

#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "apps/home/home_act.h"
#include "apps/home/home_draft.h"
#include "apps/home/home_memory.h"
#include "apps/home/stop/stop.h"
#include "apps/home/table/home_table.h"

/* Adds the clause's request to the draft. now: local time. focus: the meaning of "it"; NULL: none.
 * here: NULL: no home. Returns how the clause was understood. */
enum home_speech home_rules_decide(struct arena *a, const struct home_table *t,
                                   struct home_draft *draft, const struct home_clause *clause,
                                   const struct home_focus *focus, const struct home_here *here,
                                   const struct tm *now);

/* Adds the actions that stop what a text says must stop: at once, whatever the risk. clause: the
 * whole text. */
void home_rules_stop(struct arena *a, const struct home_table *t, struct home_draft *draft,
                     const struct stop *what, const struct home_clause *clause,
                     const struct home_here *here, const struct tm *now);

/* Removes the exceptions ("the kitchen") from the things of the draft's actions. If the actions
 * mean none of them, nothing happens, and the draft asks about it. */
void home_rules_except(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       const struct home_here *here, const char *what);

#endif
