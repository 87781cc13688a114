/* read_value.h - values that are set or changed: which quantity, and by which action.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_VALUE_H
#define SHOAL_APPS_HOME_READ_READ_VALUE_H

#include "apps/home/read/read_work.h"

/* How a reply calls the quantity of an act; NULL: by nothing. */
const char *read_value_name(const struct read_work *r, const struct read_plan_act *p,
                            const struct home_plan_quantity *q);
void read_value(struct read_work *r, const struct read_plan_act *p, struct read_target *x);

#endif
