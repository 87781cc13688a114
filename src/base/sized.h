/* sized.h - public structs that start with their size; include/shoal/shoal_base.h states the rules.
 *
 * Thread:    no state.
 * Ownership: both copy. */
#ifndef SHOAL_BASE_SIZED_H
#define SHOAL_BASE_SIZED_H

#include <stddef.h>

#include "base/err.h"

/* Reads a caller's struct of another version into ours: to is `known` bytes, name is the struct's
 * for messages.  SHOAL_EINVAL: from is NULL, or the size cannot be one.  SHOAL_EUNSUPPORTED: it has
 * members set that this version does not know. */
SHOAL_MUST_CHECK int sized_read(void *to, size_t known, const void *from, const char *name,
                                struct err *e);
/* Writes ours into a caller's struct, as far as it reaches, and sets its size to what was written.
 * SHOAL_EINVAL: to is NULL, or the size cannot be one. */
SHOAL_MUST_CHECK int sized_write(void *to, const void *from, size_t known, const char *name,
                                 struct err *e);

#endif
