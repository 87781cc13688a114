/* read_acts.h - from a plan to actions: what its things, values and times are, and which action of
 * the table does it. What may happen is decided behind this (home_act.h).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the home file.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_READ_READ_ACTS_H
#define SHOAL_APPS_HOME_READ_READ_ACTS_H

#include <time.h>

#include "apps/home/home_answer.h"
#include "apps/home/home_draft.h"
#include "apps/home/read/read_lines.h"

struct read_acts {
    struct arena *a;
    const struct home_table *t;
    const struct home_here *here;
    const struct tm *now;
    struct read_lines *lines;
    const struct read_lines_state *state;
    const char *kept; /* words that the last plan had: "role text" lines; NULL: none */
    const char *text;
    float p;        /* probability of the plan */
    bool simulated; /* nothing is connected */
    struct home_draft *draft;
    /* the state of the conversation afterwards; NULL: as before */
    const char *last_out, *pending_out, *kept_out;
    bool quiet; /* nothing was done or asked that would end a pending question */
};

/* Adds the plan's actions and lines to the draft. */
void read_acts(struct read_acts *r, const struct read_plan *plan);

#endif
