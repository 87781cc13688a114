/* read_later.h - timers, alarms, reminders and events: set, changed, listed, cancelled.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_LATER_H
#define SHOAL_APPS_HOME_READ_READ_LATER_H

#include "apps/home/read/read_work.h"

void read_later(struct read_work *r, const struct read_plan_act *p, struct read_target *x);

#endif
