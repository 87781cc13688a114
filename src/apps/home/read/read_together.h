/* read_together.h - things that a text names side by side belong to one act.
 *
 * A reader that sees "the fan and the radio" may point at one of them only. Which things have these
 * names is a fact of the home file: an act on one of them is an act on all.
 *
 * Thread:    any.
 * Ownership: borrows its arguments.
 * Failure:   sticky in the arena; the plan is left as it is. */
#ifndef SHOAL_APPS_HOME_READ_READ_TOGETHER_H
#define SHOAL_APPS_HOME_READ_READ_TOGETHER_H

#include "apps/home/read/read_lines.h"

/* Completes the acts of a plan; what it takes for unknown and is a whole name, is that thing. Left
 * alone: things of which an act has its own ("lock the front door and the garage open"), and things
 * that something else is said about ("turn the tv on, the radio is broken"), unless the reader
 * points at the last of them. */
void read_together(struct arena *a, const struct home_table *t, const struct read_lines *lines,
                   struct read_plan *plan);

#endif
