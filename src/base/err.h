/* err.h - errors as values: a negative code for the program, a text for the user.
 *
 * struct err is the public error struct of shoal_errors.h under its internal name.
 *
 * Thread:    no state; a struct err lives on its caller's stack.
 * Failure:   fallible functions return 0 or a negative SHOAL_E* and fill the caller's err once,
 *            where the cause is known.  Texts: lower case, no full stop, "cannot open X". */
#ifndef SHOAL_BASE_ERR_H
#define SHOAL_BASE_ERR_H

#include <stdarg.h>

#include "shoal/shoal_errors.h"

#define SHOAL_MUST_CHECK __attribute__((warn_unused_result))
#define SHOAL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fills e (NULL is fine) and returns code, for use as "return err_set(...)". */
int err_set(struct err *e, int code, const char *fmt, ...) SHOAL_PRINTF(3, 4);
/* Prepends "prefix: " to the text in e; returns e->code, or SHOAL_EINTERNAL when e is NULL: public
 * functions replace a caller's NULL with their own err. */
int err_wrap(struct err *e, const char *fmt, ...) SHOAL_PRINTF(2, 3);
/* "NOMEM", "IO", ... and the general text of a code. */
const char *err_name(int code);
const char *err_text(int code);

#endif
