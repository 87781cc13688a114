/* stop_words.h - the words of a text that may say stop: without punctuation, which says where
 * sentences end, and without what only looks like a stop word ("bus stop").
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_STOP_STOP_WORDS_H
#define SHOAL_APPS_HOME_STOP_STOP_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

#define STOP_MAX_WORDS 160u /* of a text, more than a minute of speech; the rest is not read */

enum stop_end { STOP_END_NONE, STOP_END_COMMA, STOP_END_SENTENCE };

struct stop_words {
    struct home_words w; /* plain, lower case; "": masked */
    uint8_t *end;        /* enum stop_end behind the word */
};

struct stop_words stop_words_of(struct arena *a, const struct home_table *t, const char *text);
/* How many words from the i-th on, before `to`, match a phrase of the list: the longest; 0: none.
 * "#" matches a number. No comma or end of a sentence is inside a phrase. */
uint32_t stop_words_phrase(const struct home_table *t, const struct stop_words *x,
                           const struct home_list *l, uint32_t i, uint32_t to);
/* How many words before the i-th match a phrase; 0: none. */
uint32_t stop_words_before(const struct home_table *t, const struct stop_words *x,
                           const struct home_list *l, uint32_t i);
/* Is the i-th word the n bytes at p? */
bool stop_words_is(const struct home_table *t, const struct stop_words *x, uint32_t i,
                   const char *p, size_t n);
bool stop_words_is_number(const struct home_table *t, const char *word);
/* The same word, apart from drawn-out letters ("stooop") and the ending of a plural? */
bool stop_words_same(const char *said, const char *word);
/* The same number, as a numeral and as a word? */
bool stop_words_same_number(const struct home_table *t, const char *a, const char *b);

#endif
