/* home_lists.h - the user's own lists: shopping, to do. Does what actions want of a list, and says
 * what came of it (docs/ASK.md).
 *
 * A list belongs to an owner (the API key), so that all clients of the key share it. Lists are kept
 * like states, in a store of their own (home_things_lists): with `home_state`, across restarts.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_LISTS_H
#define SHOAL_APPS_HOME_HOME_LISTS_H

#include "apps/home/home_draft.h"
#include "apps/home/site/home_states.h"
#include "apps/home/table/home_table.h"

/* Carries out the draft's actions on lists, and answers questions: their results and lines. */
void home_lists_settle(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       struct home_states *lists, const char *owner);

#endif
