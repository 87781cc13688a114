/* home_turn.h - rewords a turn of a conversation for the models: words before the command move
 * after it, and a turn that only names another room or thing becomes the whole command.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_TURN_H
#define SHOAL_APPS_HOME_HOME_TURN_H

#include "apps/home/site/home_file.h"
#include "apps/home/home_memory.h"
#include "apps/home/table/home_words.h"

/* "At 7 pm close the blinds" becomes "close the blinds at 7 pm"; with several commands, each of
 * them. NULL: unchanged. */
const char *home_turn_order(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_words *words);
/* Removes "every night" from the words of one command, or from the front of several, and returns
 * it: the models have seen few such texts. NULL: no repetition, or unchanged. */
const char *home_turn_again(struct arena *a, const struct home_table *t, struct home_words *words);
/* "And the bedroom" after "turn on the kitchen lights" becomes "turn on the bedroom lights"; "the
 * other one too" means the one other thing of that kind there. NULL: not such a turn. */
const char *home_turn_whole(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_focus *last, const struct home_words *words);

/* The last command with another room, thing or value: "the radio" after "turn off the tv". NULL: it
 * has no place for it. */
const char *home_turn_instead(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct home_focus *last,
                              const char *fragment);

#endif
