/* sounds.h - how an English word sounds: a dictionary, and a model of letters and sounds for words
 * that it does not have.  training/voice/sounds.py makes the data and describes its form.
 *
 * The model is an n-gram over pairs of letters and sounds; a search over the word's letters finds
 * the likeliest row of pairs.  Costs are small integers, so every machine finds the same one.
 *
 * Thread:    immutable; any number of threads.
 * Ownership: borrows the data until sounds_destroy. */
#ifndef SHOAL_TEXT_SPEECH_SOUNDS_H
#define SHOAL_TEXT_SPEECH_SOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SOUNDS_MAX_WORD 64u /* letters; what is longer is cut */

struct sounds;

SHOAL_MUST_CHECK int sounds_create(struct sounds **out, const void *data, size_t n, struct err *e);
void sounds_destroy(struct sounds *s); /* NULL is fine */

/* Appends the sounds of a word of lower-case letters and apostrophes, as UTF-8.  In the dictionary,
 * false: it is not there, and nothing is appended. */
bool sounds_find(const struct sounds *s, const char *word, size_t n, struct buf *out);
/* By the model.  Other characters than letters are skipped. */
void sounds_guess(const struct sounds *s, const char *word, size_t n, struct buf *out);
/* By the dictionary, else without its ending (-s, -'s, -ed, -ing), else by the model. */
void sounds_say(const struct sounds *s, const char *word, size_t n, struct buf *out);

#endif
