/* home_speech.h - the speech act of the words of a text: command, question, denial, supposition,
 * report, retraction. The act model reads the whole text; the table's cues are a second line of
 * defence that can only keep a clause from acting. Stopping has a path of its own (stop/).
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_SPEECH_H
#define SHOAL_APPS_HOME_HOME_SPEECH_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

struct home_part { /* some words of a text, and their speech act */
    uint32_t from, to;
    enum home_speech speech;
    float p;
};

struct home_said { /* a piece of a text that is interpreted by itself */
    const char *text;
    enum home_speech speech;
    float p;
};

/* Turns parts in the order of the text, which may leave gaps (NONE), into pieces. Applies a
 * correction inside a command ("set it to 20, no, 22 degrees"): the command continues after it.
 * Splits commands into clauses. Returns how many, in *out; at most max. */
uint32_t home_speech_pieces(struct arena *a, const struct home_table *t,
                            const struct home_words *words, const struct home_part *parts,
                            uint32_t n_parts, struct home_said **out, uint32_t max);

/* The speech act according to the cues; COMMAND: no cue. covered[i]: word i is part of something
 * written, played or named, and is ignored. */
enum home_speech home_speech_cue(const struct home_table *t, const struct home_words *plain,
                                 const bool *covered);
/* How many words at its beginning retract what came before. */
uint32_t home_speech_takes_back(const struct home_table *t, const struct home_words *plain);

/* Words from *from to *to-1 without polite phrases at both ends: "kindly", "for me". */
void home_speech_unwrap(const struct home_table *t, const struct home_words *plain, uint32_t *from,
                        uint32_t *to);
/* Is "it", "them" among the words from `from` on? */
bool home_speech_pronoun(const struct home_table *t, const struct home_words *plain, uint32_t from);

#endif
