/* store_lock.h - the lock of a store of models: held while something is moved in, out or renamed.
 *
 * Thread:    any; waits for another holder, which needs milliseconds.
 * Ownership: the caller closes the descriptor, which releases the lock.
 * Failure:   SHOAL_EIO, SHOAL_ELIMIT. */
#ifndef SHOAL_DEPOT_STORE_STORE_LOCK_H
#define SHOAL_DEPOT_STORE_STORE_LOCK_H

#include "base/err.h"

/* Creates the folders of the store. */
SHOAL_MUST_CHECK int store_lock_folders(const char *dir, struct err *e);
/* The same, and locks it: a descriptor. */
SHOAL_MUST_CHECK int store_lock(const char *dir, struct err *e);

#endif
