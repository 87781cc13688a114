/* home_answer.h - answers from the states of things: is it on, and what is on.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_ANSWER_H
#define SHOAL_APPS_HOME_HOME_ANSWER_H

#include "apps/home/site/home_file.h"
#include "apps/home/site/home_states.h"
#include "apps/home/table/home_words.h"

struct home_later;
struct home_live;

struct home_here {                /* the home that a text is about */
    const struct home_file *file; /* NULL: no home; things are known only by their words */
    struct home_states *states;   /* NULL: none is known */
    struct home_later *later;     /* NULL: no schedule */
    struct home_live *live;       /* sensors and alarms; NULL: none */
};

/* The state that a clause names: "on" of "is the light on"; NULL: none. */
const struct home_effect *home_answer_asked(const struct home_table *t,
                                            const struct home_words *plain);
/* "19 degrees", "1 degree", "4 bar"; unit NULL: none. */
const char *home_answer_number(struct arena *a, const struct home_table *t, double number,
                               const char *unit);
/* The same as people say what was measured: "21.4 degrees", "1013 hPa". */
const char *home_answer_spoken(struct arena *a, const struct home_table *t, double number,
                               const char *unit);
/* The state of one thing, in words; asked NULL: the ability that was set last. NULL: not known. */
const char *home_answer_state(struct arena *a, const struct home_table *t,
                              const struct home_here *here, const char *id,
                              const struct home_effect *asked);

#endif
