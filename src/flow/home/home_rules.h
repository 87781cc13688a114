/* home_rules.h - from what the models said about a clause to actions and lines (docs/ASK.md,
 * sections 2 to 6).  No model runs here, and nothing waits.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, which must outlive them.
 * Failure:   sticky in the arena (SHOAL_ENOMEM, SHOAL_ELIMIT): check arena->rc once. */
#ifndef SHOAL_FLOW_HOME_HOME_RULES_H
#define SHOAL_FLOW_HOME_HOME_RULES_H

#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "flow/home/home_draft.h"
#include "flow/home/home_memory.h"
#include "flow/home/home_table.h"

struct home_entity {
    const char *type;
    uint32_t from, to; /* words of the clause */
};

struct home_clause { /* as the models understood it */
    const char *text;
    const char *intent;
    float intent_p, threshold;
    const char *router, *flow; /* flow: what the router's label stands for: act, chat, ... */
    float router_p;
    const struct home_entity *entities;
    uint32_t n_entities;
    enum home_speech speech; /* as the act model understood it; the rules may still deny it */
    float speech_p;          /* how sure it is that the text commands something; 1: no such model */
    bool taken_back;         /* by what follows it */
};

/* Adds what the clause asks for to the draft.  now: local time.  focus: what "it" means; NULL:
 * nothing.  Returns what the clause was taken for. */
enum home_speech home_rules_decide(struct arena *a, const struct home_table *t,
                                   struct home_draft *draft, const struct home_clause *clause,
                                   const struct home_focus *focus, const struct tm *now);

#endif
