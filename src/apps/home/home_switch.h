/* home_switch.h - switches things on and off by a few unambiguous words.
 *
 * "extraction on", "turn off lamp 17": the names are those of the home, which the models were not
 * trained on.  "Switch off at 10 pm" names nothing: the answer is a question.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_SWITCH_H
#define SHOAL_APPS_HOME_HOME_SWITCH_H

#include "apps/home/home_fill.h"
#include "apps/home/site/home_file.h"

struct home_switch {
    const struct home_action *action; /* NULL: the words do not tell */
    const struct home_entity *entities;
    uint32_t n_entities;
    uint32_t n_named; /* things, 1 at most */
    bool of_home;     /* ... whose name the home has; otherwise the clause has only a time */
};

/* file NULL: no names are known. */
struct home_switch home_switch_find(struct arena *a, const struct home_table *t,
                                    const struct home_file *file, const struct home_clause *c,
                                    const struct home_words *plain);

#endif
