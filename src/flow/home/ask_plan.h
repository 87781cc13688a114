/* ask_plan.h - what a text asks for: actions for whoever carries them out, and lines that tell the
 * reply model what to say.
 *
 * Thread:    belongs to the request; read-only once it is complete.
 * Ownership: everything lives in the request's arena. */
#ifndef SHOAL_FLOW_HOME_ASK_PLAN_H
#define SHOAL_FLOW_HOME_ASK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "wire/json_out.h"

#define ASK_PLAN_MAX_FIELDS 24u
#define ASK_PLAN_MAX_ITEMS 32u

struct ask_plan_field { /* one member of an action's JSON object */
    const char *key;
    const char *text; /* NULL: a number, or items */
    double number;
    const char *const *items;
    uint32_t n_items;
};

struct ask_plan_action {
    const char *name;
    struct ask_plan_field fields[ASK_PLAN_MAX_FIELDS];
    uint32_t n_fields;
};

struct ask_plan_line { /* a fact for the reply model */
    const char *text;
    bool joins; /* may share a context with other such lines */
};

struct ask_plan {
    struct ask_plan_action **actions;
    struct ask_plan_line *lines; /* in order; an action's line has no other link to it */
    uint32_t n_actions, n_lines;
    uint32_t cap; /* of both */
};

/* Room for one more action and one more line; false: arena->rc says why. */
bool ask_plan_reserve(struct arena *a, struct ask_plan *p);
/* Lines to contexts, each of which is one generation: at most `together` lines that join are one
 * context.  Returns how many, in *out. */
uint32_t ask_plan_contexts(struct arena *a, const struct ask_plan *p, uint32_t together,
                           const char ***out);
/* The action as a JSON object. */
void ask_plan_action_json(struct json_out *j, const struct ask_plan_action *action);

#endif
