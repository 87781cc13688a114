/* home_spell.h - typos and slips of speech recognition in the words that a table and a home know.
 *
 * An unknown word becomes the known word that is clearly nearest to it, by letters or by sound.
 * Ordinary words that only look like a known one are listed in the table (slips.keep). What is
 * written or said to others (behind "tell", "remind") stays as it is.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table and the file.
 * Failure:   sticky in the arena; words then stay as they are. */
#ifndef SHOAL_APPS_HOME_HOME_SPELL_H
#define SHOAL_APPS_HOME_HOME_SPELL_H

#include "apps/home/site/home_file.h"
#include "apps/home/table/home_table.h"
#include "apps/home/table/home_words.h"

/* Is a word one of the language's common words?  NULL: not known. */
typedef bool (*home_spell_fn)(void *ctx, const char *word);

/* Replaces words; file NULL: none.  True: something changed. */
bool home_spell_fix(struct arena *a, const struct home_table *t, const struct home_file *f,
                    struct home_words *words, home_spell_fn common, void *ctx);

#endif
