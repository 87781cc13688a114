/* home_help.h - "what can you do?": what is there, and nothing else.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_HELP_H
#define SHOAL_APPS_HOME_HOME_HELP_H

#include "apps/home/home_answer.h"

/* Who speaks; "": the table does not say. */
const char *home_help_about(struct arena *a, const struct home_table *t);
/* The answer; simulated: nothing is connected. "": the table has none. */
const char *home_help_text(struct arena *a, const struct home_table *t,
                           const struct home_here *here, bool simulated);

#endif
