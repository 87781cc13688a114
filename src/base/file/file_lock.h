/* file_lock.h - an exclusive lock on a file between processes.
 *
 * The lock is on PATH.lock, not on the file itself, which may be replaced as a whole. The kernel
 * releases it when the process ends, however it ends.
 *
 * Thread:    any.
 * Ownership: the caller closes the descriptor, which releases the lock.
 * Failure:   SHOAL_EBUSY: another process holds it; SHOAL_EIO, SHOAL_ELIMIT. Then *fd is -1. */
#ifndef SHOAL_BASE_FILE_LOCK_H
#define SHOAL_BASE_FILE_LOCK_H

#include "base/err.h"

SHOAL_MUST_CHECK int file_lock(int *fd, const char *path, struct err *e);

#endif
