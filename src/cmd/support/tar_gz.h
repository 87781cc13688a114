/* tar_gz.h - writes files into a .tar.gz.
 *
 * Thread:    the main thread.
 * Ownership: open gives, close takes back.
 * Failure:   SHOAL_EIO, SHOAL_EINVAL (a name that tar cannot hold), SHOAL_ENOMEM.  The file is
 *            removed if it could not be written whole. */
#ifndef SHOAL_CMD_SUPPORT_TAR_GZ_H
#define SHOAL_CMD_SUPPORT_TAR_GZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct tar_gz;

/* A new file, for its owner only; one that exists is an error. */
SHOAL_MUST_CHECK int tar_gz_open(struct tar_gz **out, const char *path, uint64_t now_s,
                                 struct err *e);
SHOAL_MUST_CHECK int tar_gz_add(struct tar_gz *t, const char *name, const void *p, size_t n,
                                struct err *e);
/* Always frees; keep false: the file is removed. */
SHOAL_MUST_CHECK int tar_gz_close(struct tar_gz *t, bool keep, struct err *e);

#endif
