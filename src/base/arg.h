/* arg.h - arguments of public functions that must not be NULL; include/shoal/shoal_base.h states
 * the rules.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EINVAL, with the name of the argument. */
#ifndef SHOAL_BASE_ARG_H
#define SHOAL_BASE_ARG_H

#include <stddef.h>

#include "base/err.h"

/* An argument that is required. */
SHOAL_MUST_CHECK int arg_check(const void *p, const char *name, struct err *e);
/* An array or a text with its count: NULL only if there is nothing in it. */
SHOAL_MUST_CHECK int arg_check_n(const void *p, size_t n, const char *name, struct err *e);

#endif
