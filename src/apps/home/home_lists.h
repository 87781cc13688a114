/* home_lists.h - the user's own lists: shopping, to do. Reads what a text does with a list, does
 * it, and says what came of it (docs/ASK.md, section 6).
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

/* Adds to the draft the action that a whole text asks for: "put milk and eggs on the shopping
 * list". The models would split the items. false: the text is about no list. `said` are the same
 * words as the user wrote them, for the items: hops are no misspelt mops. */
bool home_lists_read(struct arena *a, const struct home_table *t, const struct home_words *words,
                     const struct home_words *said, struct home_draft *draft);
/* Carries out the draft's actions on lists, and answers questions: their results and lines. */
void home_lists_settle(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       struct home_states *lists, const char *owner);

#endif
