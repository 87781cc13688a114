/* decimal.h - decimal numbers in text that is not NUL-terminated, the same in every locale.
 *
 * Thread: any. */
#ifndef SHOAL_BASE_DECIMAL_H
#define SHOAL_BASE_DECIMAL_H

#include <stddef.h>

/* Length of the decimal literal (sign, digits, fraction, exponent) at the start of p; 0: no
 * literal. */
size_t decimal_span(const char *p, size_t n);
/* The value of a literal of n bytes, n being the result of decimal_span. */
double decimal_read(const char *p, size_t n);

#endif
