/* delta_file.h - the file that a delta or a patched model is written to: under another name until
 * it is whole.
 *
 * Thread:    belongs to its caller.
 * Ownership: open makes PATH.new, end renames or removes it.
 * Failure:   SHOAL_EIO with the system's reason. */
#ifndef SHOAL_DEPOT_DELTA_DELTA_FILE_H
#define SHOAL_DEPOT_DELTA_DELTA_FILE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct delta_file {
    char path[PATH_MAX];
    int fd; /* -1: not open */
    uint64_t n;
};

SHOAL_MUST_CHECK int delta_file_open(struct delta_file *f, const char *out, struct err *e);
SHOAL_MUST_CHECK int delta_file_put(struct delta_file *f, const void *p, size_t n, struct err *e);
/* rc: whether what was written is good.  Returns rc, or why it could not be completed. */
SHOAL_MUST_CHECK int delta_file_end(struct delta_file *f, const char *out, int rc, struct err *e);

#endif
