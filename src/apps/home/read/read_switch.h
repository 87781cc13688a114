/* read_switch.h - verbs on things: which action of the table does it to each of them.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_SWITCH_H
#define SHOAL_APPS_HOME_READ_READ_SWITCH_H

#include "apps/home/read/read_work.h"

bool read_switch_can(const struct home_thing *x, const struct home_action *action);
/* Things that need different actions get one each. */
void read_switch(struct read_work *r, const struct read_plan_act *p, const char *verb,
                 const struct read_target *all);

#endif
