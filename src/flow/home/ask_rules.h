/* ask_rules.h - the rules of the ask flow between the models (docs/ASK.md): what a clause that was
 * understood makes of actions, and what the reply model is told about them.
 *
 * Thread:    any; all results live in the caller's arena.
 * Failure:   sticky in the arena (SHOAL_ENOMEM, SHOAL_ELIMIT): check arena->rc once. */
#ifndef SHOAL_FLOW_HOME_ASK_RULES_H
#define SHOAL_FLOW_HOME_ASK_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "wire/json_out.h"

struct ask_entity {
    const char *type;
    uint32_t from, to; /* words of the clause */
};

struct ask_clause { /* as the models understood it */
    const char *text;
    const char *intent; /* of the combined set */
    float intent_p, threshold;
    const char *router, *flow; /* flow: what the router's label stands for: act, chat, ... */
    float router_p;
    const struct ask_entity *entities;
    uint32_t n_entities;
};

#define ASK_MAX_FIELDS 16u
#define ASK_MAX_ITEMS 32u

struct ask_field { /* a member of an action's object */
    const char *key;
    const char *text; /* NULL: number, or items */
    double number;
    const char *const *items;
    uint32_t n_items;
};

struct ask_action {
    const char *name;
    struct ask_field fields[ASK_MAX_FIELDS];
    uint32_t n_fields;
};

struct ask_plan {
    struct ask_action **actions;
    uint32_t n_actions;
    const char **lines; /* context lines, in order */
    uint32_t n_lines;
    uint32_t cap;
};

/* Adds what the clause asks for to the plan.  now: local time. */
void ask_decide(struct arena *a, struct ask_plan *plan, const struct ask_clause *clause,
                const struct tm *now);
/* Lines to contexts: each is one generation; returns how many, in *out. */
uint32_t ask_contexts(struct arena *a, const struct ask_plan *plan, const char ***out);
/* The action as a JSON object. */
void ask_action_json(struct json_out *j, const struct ask_action *action);

#endif
