/* read_acts.h - from a plan to actions: what its things, values and times are, and which action of
 * the table does it. What may happen is decided behind this (home_act.h).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_ACTS_H
#define SHOAL_APPS_HOME_READ_READ_ACTS_H

#include "apps/home/read/read_work.h"

/* Adds the plan's actions and lines to the draft. */
void read_acts(struct read_work *r, const struct read_plan *plan);

#endif
