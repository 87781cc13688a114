/* home_turn.h - puts a turn of a conversation into the form that the models know: what stands in
 * front of the command goes behind it, and a turn that only names another room or thing becomes the
 * whole command.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_TURN_H
#define SHOAL_FLOW_HOME_HOME_TURN_H

#include "flow/home/site/home_file.h"
#include "flow/home/home_memory.h"
#include "flow/home/table/home_words.h"

/* "At 7 pm close the blinds" is "close the blinds at 7 pm"; with several commands each of them gets
 * it.  NULL: the words stay as they are. */
const char *home_turn_order(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_words *words);
/* Takes "every night" out of the words of one command, or from the front of several, and
 * returns it: the models know few such texts.  NULL: nothing comes again, or the words stay. */
const char *home_turn_again(struct arena *a, const struct home_table *t, struct home_words *words);
/* "And the bedroom" after "turn on the kitchen lights" is "turn on the bedroom lights"; "the other
 * one too" is the one other thing of that kind there.  NULL: the words are no such turn. */
const char *home_turn_whole(struct arena *a, const struct home_table *t, const struct home_file *f,
                            const struct home_focus *last, const struct home_words *words);

/* The last command with another room, thing or value: "the radio" after "turn off the tv".  NULL:
 * it has no place for that. */
const char *home_turn_instead(struct arena *a, const struct home_table *t,
                              const struct home_file *f, const struct home_focus *last,
                              const char *fragment);

#endif
