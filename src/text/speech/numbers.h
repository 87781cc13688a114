/* numbers.h - numbers as English words.  Each function appends words, with a space after each.
 *
 * Thread: any; no state. */
#ifndef SHOAL_TEXT_SPEECH_NUMBERS_H
#define SHOAL_TEXT_SPEECH_NUMBERS_H

#include <stdint.h>

#include "base/buf.h"

void numbers_cardinal(struct buf *out, uint64_t n);
void numbers_ordinal(struct buf *out, uint64_t n);
/* 1066 is "ten sixty six", 2005 "two thousand five". */
void numbers_year(struct buf *out, uint32_t n);
/* Digit by digit; other characters are skipped. */
void numbers_digits(struct buf *out, const char *p, size_t n);

#endif
