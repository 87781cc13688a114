/* coding.h - undoes the compression of a message: the Content-Encoding of a request, or gzip of
 * gRPC.
 *
 * Thread:    pure; decoding a body takes milliseconds, so it is work for the pool.
 * Ownership: appends to the caller's buffer, also before a failure.
 * Failure:   SHOAL_EFORMAT: the bytes are damaged, cut off, or more follow them.  SHOAL_ELIMIT:
 *            there is more than max in them; it stops there, whatever they claim. SHOAL_ENOMEM. */
#ifndef SHOAL_NET_CODING_H
#define SHOAL_NET_CODING_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define CODING_NAMES "gzip, br, zstd" /* as in Accept-Encoding */

enum coding { CODING_NONE, CODING_GZIP, CODING_BROTLI, CODING_ZSTD, CODING_UNKNOWN };

/* The coding that a Content-Encoding names; NULL, "" and "identity": none.  A list of several is
 * unknown. */
enum coding coding_of(const char *header);
/* c: GZIP, BROTLI or ZSTD. */
SHOAL_MUST_CHECK int coding_decode(struct buf *out, enum coding c, const void *p, size_t n,
                                   size_t max);

#endif
