/* home_reword.h - rewords a text for the models: without hesitation and without the reason before a
 * request, "every light" as "all lights", and with exceptions split off.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_REWORD_H
#define SHOAL_APPS_HOME_HOME_REWORD_H

#include "apps/home/site/home_file.h"
#include "apps/home/table/home_words.h"

/* Drops "um", and a reason before a request: "it's dark, could you turn on the lamp". A condition
 * is not a reason, and stays. "Would you mind closing" becomes "close". false: unchanged. */
bool home_reword_front(struct arena *a, const struct home_table *t, struct home_words *w);
/* Drops a reason after a command: "turn off the tv, dinner is ready". "Each lamp in every room"
 * becomes "all lamps"; "pump three" becomes "pump 3" if the home has a thing of that name. false:
 * unchanged. */
bool home_reword_things(struct arena *a, const struct home_table *t, const struct home_file *f,
                        struct home_words *w);
/* Removes "except the kitchen" from the words and returns "the kitchen"; NULL: no exception that
 * the home knows. */
const char *home_reword_except(struct arena *a, const struct home_table *t,
                               const struct home_file *f, struct home_words *w);

#endif
