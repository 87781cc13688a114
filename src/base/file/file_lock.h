/* file_lock.h - a file that belongs to one process at a time.
 *
 * The lock is on PATH.lock, not on the file itself, which may be replaced as a whole.  It ends with
 * the process, whatever happens to it.
 *
 * Thread:    any.
 * Ownership: the caller closes the descriptor, which gives the lock back.
 * Failure:   SHOAL_EBUSY: another one has it; SHOAL_EIO, SHOAL_ELIMIT.  Then *fd is -1. */
#ifndef SHOAL_BASE_FILE_LOCK_H
#define SHOAL_BASE_FILE_LOCK_H

#include "base/err.h"

SHOAL_MUST_CHECK int file_lock(int *fd, const char *path, struct err *e);

#endif
