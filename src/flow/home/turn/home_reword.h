/* home_reword.h - puts a text into the words that the models know: without hesitation and without
 * the reason in front of a request, "every light" as "all lights", and what is excepted apart.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_REWORD_H
#define SHOAL_FLOW_HOME_HOME_REWORD_H

#include "flow/home/site/home_file.h"
#include "flow/home/table/home_words.h"

/* Drops "um", and a reason before a request: "it's dark, could you turn on the lamp".  A condition
 * is no reason, and stays.  "Would you mind closing" is "close".  false: the words stay. */
bool home_reword_front(struct arena *a, const struct home_table *t, struct home_words *w);
/* Drops a reason behind a command: "turn off the tv, dinner is ready".  "Each lamp in every room"
 * becomes "all lamps"; "pump three" becomes "pump 3" where the home has a
 * thing of that name.  false: the words stay as they are. */
bool home_reword_things(struct arena *a, const struct home_table *t, const struct home_file *f,
                        struct home_words *w);
/* Takes "except the kitchen" out of the words and returns "the kitchen"; NULL: nothing that the
 * home knows is excepted. */
const char *home_reword_except(struct arena *a, const struct home_table *t,
                               const struct home_file *f, struct home_words *w);

#endif
