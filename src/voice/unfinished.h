/* unfinished.h - whether words are half a sentence: "turn on the" goes on, "lights off" does not.
 *
 * Thread:    pure function. */
#ifndef SHOAL_VOICE_UNFINISHED_H
#define SHOAL_VOICE_UNFINISHED_H

#include <stdbool.h>
#include <stddef.h>

/* n bytes of text; punctuation and case do not count.  No words at all are unfinished. */
bool unfinished(const char *text, size_t n);

#endif
