/* home_allow.h - whether an action may be carried out: what its things can do, the limits of its
 * numbers, and its risk.  The home file's own rules go before the table's (home_risk.h).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_ALLOW_H
#define SHOAL_FLOW_HOME_HOME_ALLOW_H

#include "flow/ask_plan.h"
#include "flow/home/site/home_file.h"
#include "flow/home/table/home_table.h"

struct home_allow { /* an action to be checked */
    struct arena *a;
    const struct home_table *t;
    const struct home_action *action;
    const struct ask_plan_action *o;
    const struct home_thing **things; /* that it acts on */
    uint32_t n_things;
};

/* Keeps the things that can do it; false: none can, and all stay. */
bool home_allow_able(struct home_allow *w);
/* What the action acts on, in lower case: the `thing` below. */
const char *home_allow_thing(const struct home_allow *w);
/* The risk of what is done: that of the things where the file says one, else the table's,
 * which alone counts for stopping. */
enum home_risk home_allow_risk(const struct home_allow *w, const char *thing);
/* A number outside the limits: why; NULL: all is well. */
const char *home_allow_limits(const struct home_allow *w, const char *thing);

/* What keeps a decided action from being carried out by the home as it is now: things that are
 * gone, abilities, limits, and a risk that nobody said yes to; NULL: nothing. */
const char *home_allow_denied(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct ask_plan_action *o,
                              bool confirmed);

#endif
