/* home_risk.h - the risk of an action, and the limits of its numbers; both are data of the table
 * (risk, limits).
 *
 * Thread:    any.
 * Ownership: results belong to the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_RISK_H
#define SHOAL_APPS_HOME_HOME_RISK_H

#include "apps/home/table/home_table.h"

/* The highest class with a matching rule; thing: what the action acts on, in lower case. */
enum home_risk home_risk_of(struct arena *a, const struct home_table *t,
                            const struct home_action *action, const char *thing);
/* The limit that a number violates; NULL: none. unit NULL: the number has none. */
const struct home_limit *home_risk_limit(struct arena *a, const struct home_table *t,
                                         const struct home_action *action, const char *thing,
                                         const char *unit, double number);

#endif
