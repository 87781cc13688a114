/* web_parallel.h - the rest of a large file over several connections: one alone is often slower
 * than the line.
 *
 * Threads fetch segments of it into memory, a bounded number ahead; the caller gets them in order,
 * so that what arrived is always the beginning of the file, and an interrupted transfer resumes as
 * one over a single connection does. Small files, and servers that do not know ranges, use one.
 *
 * Thread:    the caller's, which blocks and is the only one that calls the sink and o->stopped.
 * Ownership: nothing is kept.
 * Failure:   as web_ask; bytes before the failure were written. */
#ifndef SHOAL_DEPOT_SOURCE_WEB_PARALLEL_H
#define SHOAL_DEPOT_SOURCE_WEB_PARALLEL_H

#include "depot/source/web.h"

#define WEB_PARALLEL_SEGMENT ((uint64_t)8 << 20)
#define WEB_PARALLEL_THREADS 4u

/* Bytes of the resource from offset to total. w: of these options; used for a single connection. */
SHOAL_MUST_CHECK int web_parallel(struct web *w, const struct web_opts *o, const char *url,
                                  uint64_t offset, uint64_t total, const struct byte_sink *to,
                                  struct web_reply *reply, struct err *e);

#endif
