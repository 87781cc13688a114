/* home_fill.h - the slots of an action while they are filled.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_FILL_H
#define SHOAL_APPS_HOME_HOME_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "flow/ask_plan.h"
#include "apps/home/table/home_table.h"

#define HOME_FILL_MAX_PLACES (HOME_MAX_SLOTS + HOME_MAX_WHEN)

/* A slot of its action, or a row of "when" of an action that has no such slot. */
struct home_place {
    const struct home_slot *slot;
    const struct home_when *when; /* NULL: the action's own slot */
};

struct home_fill { /* of one action: places with their texts, a list with several */
    struct {
        struct home_place place;
        const char *text;
    } s[HOME_FILL_MAX_PLACES];
    uint32_t n;
    const char *items[ASK_PLAN_MAX_ITEMS];
    uint32_t n_items;
};

struct home_place home_fill_own(const struct home_slot *s);
/* NULL: the place is free. */
const char *home_fill_get(const struct home_fill *s, struct home_place p);
/* The place must be free. */
void home_fill_set(struct home_fill *s, struct home_place p, const char *text);
bool home_fill_has_slot(const struct home_action *x, const struct home_slot *s);

/* Fills missing slots with the defaults of the table. */
void home_fill_defaults(const struct home_action *x, struct home_fill *s);

#endif
