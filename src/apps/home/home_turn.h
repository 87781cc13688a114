/* home_turn.h - what becomes of a scheduled entry that is paused, goes on or is changed.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_TURN_H
#define SHOAL_APPS_HOME_HOME_TURN_H

#include "apps/home/later/home_later.h"

/* Is it an action that pauses, resumes or changes what is scheduled? */
bool home_turn_is(const struct home_table *t, const struct ask_plan_action *o);
/* A copy of the waiting entry with this id; false: there is none. */
bool home_turn_find(struct arena *a, struct home_later *l, uint64_t id,
                    struct home_later_entry *out);
/* Turns an entry as an action says: `due_s` and the fields of duration and time of a change. False:
 * it is so already. */
bool home_turn_apply(struct arena *a, const struct home_table *t, const struct ask_plan_action *o,
                     int64_t now_ms, struct home_later_entry *x);
/* "9 minutes", "tomorrow, 07:00", "9 minutes, paused": when it comes. */
const char *home_turn_when(struct arena *a, const struct home_table *t,
                           const struct home_later_entry *x, int64_t now_ms);

#endif
