/* read_ask.h - questions about states, values, alarms and events, answered from what is known now.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_ASK_H
#define SHOAL_APPS_HOME_READ_READ_ASK_H

#include "apps/home/read/read_work.h"

/* Does the server itself know what is asked, from its sensors and alarms? */
bool read_ask_is_live(const struct read_work *r, const struct read_plan_act *p);
void read_ask(struct read_work *r, const struct read_plan_act *p, struct read_target *x);

#endif
