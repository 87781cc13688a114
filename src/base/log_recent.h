/* log_recent.h - the last lines that log.h wrote, for whoever helps from afar.
 *
 * Thread:    any.
 * Failure:   those of the buffer. */
#ifndef SHOAL_BASE_LOG_RECENT_H
#define SHOAL_BASE_LOG_RECENT_H

#include "base/buf.h"

#define LOG_KEPT_BYTES ((size_t)64 << 10)

/* Appends the last lines, at most LOG_KEPT_BYTES, oldest first. */
void log_recent(struct buf *out);

#endif
