/* read_make.h - an action on what an act is about, or the question which one is meant.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_MAKE_H
#define SHOAL_APPS_HOME_READ_READ_MAKE_H

#include "apps/home/read/read_work.h"

/* Is each of the things called by its name, or by that of its class? */
bool read_make_is_named(const struct read_work *r, const struct read_plan_act *p);
/* May the server's own sensors and alarms know what the home does not list? */
bool read_make_is_live(const struct read_work *r, const struct home_action *action);

void read_make_action(struct read_work *r, const struct home_action *action, struct read_doing *d);
/* Says that the home has no such thing. */
void read_make_not_here(struct read_work *r, const struct home_action *action,
                        struct read_doing *d);
/* Carries an action out on the target, whatever that is. */
void read_make_aim(struct read_work *r, const struct home_action *action, struct read_doing *d);

#endif
