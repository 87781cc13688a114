/* archive.h - one member of an archive, by its name: wheels (ZIP) and npm packages (gzipped tar).
 *
 * Nothing is unpacked: a name from an archive is compared, never used as a path. A member has the
 * size that the caller expects, or is refused before its first byte is given out.
 *
 * Thread:    no state; reads the file.
 * Failure:   SHOAL_ENOTFOUND (no such member), SHOAL_EFORMAT (not an archive, or damaged),
 *            SHOAL_ELIMIT (larger than we handle), SHOAL_EIO, SHOAL_ENOMEM, and what write
 *            returns. */
#ifndef SHOAL_DEPOT_SOURCE_ARCHIVE_H
#define SHOAL_DEPOT_SOURCE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct byte_sink;

/* The bytes of the member from `skip` on. fd: the archive; ZIP or gzip is told by its first bytes.
 * bytes: the size that the member must have. */
SHOAL_MUST_CHECK int archive_member(int fd, const char *name, uint64_t bytes, uint64_t skip,
                                    const struct byte_sink *to, struct err *e);

#endif
