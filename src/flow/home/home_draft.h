/* home_draft.h - a plan while the rules build it: actions, and lines that tell the reply model what
 * to say.
 *
 * Thread:    belongs to its caller.
 * Ownership: everything lives in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_DRAFT_H
#define SHOAL_FLOW_HOME_HOME_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "flow/ask_plan.h"

struct home_draft_line { /* a fact for the reply model */
    const char *text;
    bool joins; /* may share a context with other such lines */
};

struct home_draft {
    const struct ask_plan_action **actions;
    struct home_draft_line *lines; /* in order; an action's line has no other link to it */
    uint32_t n_actions, n_lines;
    uint32_t cap; /* of both */
};

/* Room for one more action and one more line; false: arena->rc says why. */
bool home_draft_reserve(struct arena *a, struct home_draft *d);
/* Lines to contexts, each of which is one generation: at most `together` lines that join are one
 * context.  Returns how many, in *out. */
uint32_t home_draft_contexts(struct arena *a, const struct home_draft *d, uint32_t together,
                             const char ***out);

#endif
