/* home_later_run.h - runs due schedule entries: an action goes to the things of the home as it is
 * now, after its limits are checked again; a timer, an alarm or a reminder rings.
 *
 * Thread:    home_later_run_entry is a home_later_run_fn; results come on the sink's threads.
 * Ownership: borrows everything, which must outlive every started entry.
 * Failure:   is the result of the entry. */
#ifndef SHOAL_APPS_HOME_HOME_LATER_RUN_H
#define SHOAL_APPS_HOME_HOME_LATER_RUN_H

#include "apps/home/later/home_later.h"

struct home_things;

struct home_later_run {
    const struct home_table *table;
    struct home_things *things;
    struct home_later *later; /* set once it exists */
};

/* ctx: struct home_later_run. */
void home_later_run_entry(void *ctx, const struct home_later_entry *x);

#endif
