/* home_clauses.h - splits a text into clauses, each of which is understood on its own
 * (docs/ASK.md, section 1).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   0 clauses, and arena->rc says why. */
#ifndef SHOAL_APPS_HOME_HOME_CLAUSES_H
#define SHOAL_APPS_HOME_HOME_CLAUSES_H

#include "base/arena.h"
#include "apps/home/table/home_table.h"

/* Returns how many, in *out. */
uint32_t home_clauses_split(struct arena *a, const struct home_table *t, const char *text,
                            const char ***out);

#endif
