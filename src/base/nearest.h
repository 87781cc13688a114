/* nearest.h - spelling suggestions for unknown words.  Thread: any; no state. */
#ifndef SHOAL_BASE_NEAREST_H
#define SHOAL_BASE_NEAREST_H

/* The word of a NULL-terminated list that is closest to the typed one; NULL if none is close. */
const char *nearest_word(const char *typed, const char *const *words);

#endif
