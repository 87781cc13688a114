/* jinja_number.h - numbers to text and back, as Python does it.
 *
 * Thread:    no state.
 * Ownership: struct jinja_str borrows its bytes.
 * Failure:   readers return false when the text is not a number. */
#ifndef SHOAL_TEXT_JINJA_JINJA_NUMBER_H
#define SHOAL_TEXT_JINJA_JINJA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/jinja/jinja_text.h"

enum { JINJA_NUMBER_TEXT = 40 };

/* repr(v): the shortest digits that read back the same, "1.0", "1e-05", "inf", "nan". */
size_t jinja_number_repr(char out[JINJA_NUMBER_TEXT], double v);

enum jinja_number_kind { JINJA_NUMBER_BAD, JINJA_NUMBER_INT, JINJA_NUMBER_BIG, JINJA_NUMBER_FLOAT };

/* int(text, base): white space around it, a sign, digits with single _ between them.  BIG: it does
 * not fit *out. */
enum jinja_number_kind jinja_number_int(struct jinja_str text, unsigned base, int64_t *out);
/* float(text), with inf and nan. */
bool jinja_number_float(struct jinja_str text, double *out);

#endif
