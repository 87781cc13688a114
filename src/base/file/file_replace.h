/* file_replace.h - replaces a file atomically: after a crash either the old or the new content
 * exists.
 *
 * Thread:  any that may block.
 * Failure: SHOAL_EIO with the system's reason; the old file is then unchanged. */
#ifndef SHOAL_BASE_FILE_FILE_REPLACE_H
#define SHOAL_BASE_FILE_FILE_REPLACE_H

#include <stddef.h>

#include "base/err.h"

/* Writes PATH.new, readable only by its owner, syncs it and renames it. */
SHOAL_MUST_CHECK int file_replace(const char *path, const void *bytes, size_t n, struct err *e);

#endif
