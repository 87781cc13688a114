/* trace_context.h - W3C's `traceparent`: which trace a request belongs to, and below which span.
 *
 * Thread:    no state but a counter; any.
 * Failure:   a text that is not a traceparent, or of zero ids, is refused as the standard asks: a
 * new
 *            trace begins. */
#ifndef SHOAL_TRACE_TRACE_CONTEXT_H
#define SHOAL_TRACE_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_CONTEXT_CHARS 55 /* without the NUL */

struct trace_context {
    uint8_t id[16];
    uint64_t span; /* 0: none */
    bool sampled;  /* the caller wants it to be recorded */
};

bool trace_context_read(struct trace_context *out, const char *traceparent);
void trace_context_write(char out[TRACE_CONTEXT_CHARS + 1], const struct trace_context *c);
/* 32 hex digits. */
void trace_context_id(char out[33], const struct trace_context *c);
/* A new trace, sampled, without a span. */
struct trace_context trace_context_new(void);
/* Id of a new span: never 0, not to be guessed from others. */
uint64_t trace_context_new_span(void);

#endif
