/* sse.h - server-sent events: frames each event of a stream.
 *
 * Thread:    belongs to its caller.
 * Failure:   through the buf's sticky rc. */
#ifndef SHOAL_WIRE_SSE_H
#define SHOAL_WIRE_SSE_H

#include "base/buf.h"

#define SSE_TYPE "text/event-stream"

/* Writes the part before an event's data, which must not contain a line end.  name: NULL for
 * none. */
static inline void sse_begin(struct buf *b, const char *name)
{
    if (name) {
        buf_put(b, "event: ", 7);
        buf_puts(b, name);
        buf_putc(b, '\n');
    }
    buf_put(b, "data: ", 6);
}

static inline void sse_end(struct buf *b)
{
    buf_put(b, "\n\n", 2);
}

/* Writes OpenAI's end-of-stream marker. */
static inline void sse_done(struct buf *b)
{
    buf_put(b, "data: [DONE]\n\n", 14);
}

#endif
