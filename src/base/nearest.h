/* nearest.h - what was probably meant by a word that is not known.  Thread: any; no state. */
#ifndef SHOAL_BASE_NEAREST_H
#define SHOAL_BASE_NEAREST_H

/* The word of a list (NULL at its end) that is nearest to what was typed, or NULL when none is. */
const char *nearest_word(const char *typed, const char *const *words);

#endif
