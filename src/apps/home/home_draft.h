/* home_draft.h - a plan while the rules build it: actions, and lines that tell the reply model what
 * to say.
 *
 * Thread:    belongs to its caller.
 * Ownership: everything lives in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_DRAFT_H
#define SHOAL_APPS_HOME_HOME_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "flow/ask_plan.h"

struct home_draft_line { /* a fact for the reply model */
    const char *text;
    const char *say;  /* the same in plain words; said if the model fails, or if there is no text */
    bool joins;       /* may share a context with other such lines */
    uint32_t action;  /* 1 + the index of its action; 0: none */
    const char *todo; /* what the action does, in words; NULL: not known */
};

struct home_draft_held { /* the confirmed form of an action that waits for a yes */
    const struct ask_plan_action *action;
    const char *line, *say, *todo;
};

struct home_draft_context { /* one generation of the reply model */
    const char *text;       /* NULL: say it as is */
    const char *say;
};

struct home_draft {
    const struct ask_plan_action **actions;
    struct home_draft_line *lines; /* in order */
    struct home_draft_held *held;
    uint32_t n_actions, n_lines, n_held;
    uint32_t cap; /* capacity of each array */
};

/* Room for one more of each; false: arena->rc says why. */
bool home_draft_reserve(struct arena *a, struct home_draft *d);
/* Turns lines into contexts: at most `together` lines that join share one. A line that repeats an
 * earlier one is dropped, unless both report deeds. Returns how many, in *out. */
uint32_t home_draft_contexts(struct arena *a, const struct home_draft *d, uint32_t together,
                             struct home_draft_context **out);

#endif
