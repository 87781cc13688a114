/* home_allow.h - whether an action may be carried out: what its things can do, the limits of its
 * numbers, and its risk. The home file's own rules take precedence over the table's (home_risk.h).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_ALLOW_H
#define SHOAL_APPS_HOME_HOME_ALLOW_H

#include "flow/ask_plan.h"
#include "apps/home/site/home_file.h"
#include "apps/home/table/home_table.h"

struct home_allow { /* an action to check */
    struct arena *a;
    const struct home_table *t;
    const struct home_action *action;
    const struct ask_plan_action *o;
    const struct home_thing **things; /* the things it acts on */
    uint32_t n_things;
};

/* Keeps the things that can do it; false: none can, and all are kept. */
bool home_allow_able(struct home_allow *w);
/* The things that the action acts on, in lower case: the `thing` below. */
const char *home_allow_thing(const struct home_allow *w);
/* The risk of what is done: that of the things where the file says one, else the table's,
 * which alone counts for stopping. */
enum home_risk home_allow_risk(const struct home_allow *w, const char *thing);
/* Why a number is outside the limits; NULL: it is within them. */
const char *home_allow_limits(const struct home_allow *w, const char *thing);

/* Why a decided action may not be carried out by the home as it is now: missing things, abilities,
 * limits, or an unconfirmed risk; NULL: it may. */
const char *home_allow_denied(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct ask_plan_action *o,
                              bool confirmed);

#endif
