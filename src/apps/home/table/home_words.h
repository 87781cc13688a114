/* home_words.h - a text as words: splitting, joining, lower case, punctuation.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena; a result may also be the argument itself.
 * Failure:   sticky in the arena: afterwards strings are "" and lists empty; check arena->rc once.
 */
#ifndef SHOAL_APPS_HOME_HOME_WORDS_H
#define SHOAL_APPS_HOME_HOME_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define HOME_WORDS_CLOSING ".,;:!?)" /* dropped at the end of an entity */

struct home_words {
    const char **w; /* NUL-terminated each */
    uint32_t n;
};

/* Splits at white space. */
struct home_words home_words_split(struct arena *a, const char *text);
/* Words from..to-1 joined by one space. */
const char *home_words_join(struct arena *a, const struct home_words *w, uint32_t from,
                            uint32_t to);
/* Lower case; bytes that are not UTF-8 stay. */
const char *home_words_lower(struct arena *a, const char *text);
/* Lower case, without .,;:!?"() at both ends; a typographic apostrophe becomes a plain one. */
const char *home_words_plain(struct arena *a, const char *word);
/* The same for every word. */
struct home_words home_words_plain_all(struct arena *a, const struct home_words *w);
/* Strips the bytes of `set` from the end. */
const char *home_words_trim_end(struct arena *a, const char *text, const char *set);
/* How many words from the i-th on match a phrase; 0: no match. */
uint32_t home_words_phrase(const struct home_words *w, uint32_t i, const char *phrase);

#endif
