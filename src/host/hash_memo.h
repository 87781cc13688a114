/* hash_memo.h - SHA-256 of files that were hashed before, kept in the cache folder.
 *
 * A file is recognised by device, inode, size, and the times of its last change.  One small file
 * per hash, replaced atomically: processes may share the folder, and a damaged entry is ignored.
 *
 * Thread:    any.
 * Failure:   none: a hash that could not be stored is computed again. */
#ifndef SHOAL_HOST_HASH_MEMO_H
#define SHOAL_HOST_HASH_MEMO_H

#include <stdbool.h>
#include <sys/stat.h>

#include "host/sha256.h"

/* dir NULL: nothing is remembered. */
bool hash_memo_get(const char *dir, const struct stat *st, uint8_t out[SHA256_BYTES]);
/* Does nothing for a file that changed within the last two seconds: it could change again within
 * the resolution of the timestamps. */
void hash_memo_put(const char *dir, const struct stat *st, const uint8_t sum[SHA256_BYTES]);
/* The same without that wait, for a file that is no longer written. */
void hash_memo_put_final(const char *dir, const struct stat *st, const uint8_t sum[SHA256_BYTES]);

#endif
