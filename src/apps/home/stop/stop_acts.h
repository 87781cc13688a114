/* stop_acts.h - the actions that bring to rest what a text stops: at once, whatever the risk.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_STOP_STOP_ACTS_H
#define SHOAL_APPS_HOME_STOP_STOP_ACTS_H

#include "apps/home/home_act.h"
#include "apps/home/stop/stop.h"

/* Adds them to the draft; here is never NULL. */
void stop_acts(struct arena *a, const struct home_table *t, struct home_draft *draft,
               const struct stop *what, const struct home_here *here, const struct tm *now);

#endif
