/* read_when.h - the times of an act: moments, delays, durations, repetitions.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_WHEN_H
#define SHOAL_APPS_HOME_READ_READ_WHEN_H

#include "apps/home/read/read_work.h"

/* NULL: all of them have a place in the action, else the words that have none. */
const char *read_when_fill(const struct read_work *r, const struct home_action *action,
                           struct home_fill *s, const struct read_plan_act *p);

#endif
