/* home_rules.h - from what the models said about a clause to actions and lines (docs/ASK.md,
 * sections 2 to 6).  No model runs here, and nothing waits.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, which must outlive them.
 * Failure:   sticky in the arena (SHOAL_ENOMEM, SHOAL_ELIMIT): check arena->rc once. */
#ifndef SHOAL_FLOW_HOME_HOME_RULES_H
#define SHOAL_FLOW_HOME_HOME_RULES_H

#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "flow/home/home_act.h"
#include "flow/home/home_draft.h"
#include "flow/home/home_memory.h"
#include "flow/home/table/home_table.h"

/* Adds what the clause asks for to the draft.  now: local time.  focus: what "it" means; NULL:
 * nothing.  here: NULL: no home is known.  Returns what the clause was taken for. */
enum home_speech home_rules_decide(struct arena *a, const struct home_table *t,
                                   struct home_draft *draft, const struct home_clause *clause,
                                   const struct home_focus *focus, const struct home_here *here,
                                   const struct tm *now);

/* Takes what is excepted ("the kitchen") out of the things that the draft's actions mean.  If it is
 * none of them, nothing happens, and the draft asks about it. */
void home_rules_except(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       const struct home_here *here, const char *what);

#endif
