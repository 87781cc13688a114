/* speech_text.h - a text as the words that are said: numbers, units, times, dates, money,
 * abbreviations and addresses are written out.
 *
 *   "It's 21.5 °C at 7:05 p.m."
 *   "it's twenty one point five degrees celsius at seven oh five p m."
 *
 * The result has words of a to z and ', single spaces, and , . ; : ! ? directly behind a word. What
 * cannot be said (emoji, control characters, other scripts) is left out.  A text in this
 * form stays as it is, unless it has an abbreviation.
 *
 * Thread: any; no state. */
#ifndef SHOAL_TEXT_SPEECH_SPEECH_TEXT_H
#define SHOAL_TEXT_SPEECH_SPEECH_TEXT_H

#include <stddef.h>

#include "base/buf.h"

/* Appends to out; its rc says if memory or its limit were not enough.  Any bytes are a text. */
void speech_text_normal(const char *text, size_t n, struct buf *out);

#define SPEECH_TEXT_PIECE 220u /* bytes */
/* Length of the first piece of a normalized text: one sentence, or what fits into
 * SPEECH_TEXT_PIECE up to a comma or a space.  0: nothing is left. */
size_t speech_text_cut(const char *text, size_t n);

#endif
