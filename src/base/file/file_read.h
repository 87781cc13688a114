/* file_read.h - a whole file into a buffer.
 *
 * Thread:  any.
 * Failure: SHOAL_EIO, or SHOAL_ELIMIT when the file is larger than the buffer may become. */
#ifndef SHOAL_BASE_FILE_FILE_READ_H
#define SHOAL_BASE_FILE_FILE_READ_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the file to out.  "-" is stdin. */
SHOAL_MUST_CHECK int file_read(const char *path, struct buf *out, struct err *e);

#endif
