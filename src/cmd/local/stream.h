/* stream.h - writes generated text to stdout while requests run.
 *
 * The main thread owns the requests: it waits for their events, for Ctrl-C and for stdout to accept
 * data, so neither a slow reader nor a stopped terminal blocks the engine or the handling of
 * Ctrl-C.
 *
 * Thread:    the main thread.
 * Ownership: init/fini over the caller's storage.
 * Failure:   out of memory sticks, and stream_pump reports it. */
#ifndef SHOAL_CMD_LOCAL_STREAM_H
#define SHOAL_CMD_LOCAL_STREAM_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct executor_queue;

struct stream {
    struct buf waiting;
    size_t n_written; /* bytes of waiting that are already written */
    char last;        /* last byte written; 0: none */
};

void stream_init(struct stream *s);
void stream_fini(struct stream *s);
void stream_put(struct stream *s, const void *p, size_t n);

/* Runs the executor and writes to fd until *closed (set by the sink of the request) and everything
 * is written.  Calls on_interrupt for every Ctrl-C; if it returns true, unwritten bytes are dropped
 * and the call returns.  SHOAL_EIO with a text if writing fails. */
SHOAL_MUST_CHECK int stream_pump(struct stream *s, struct executor_queue *q, const bool *closed,
                                 int fd, int interrupt_fd, bool (*on_interrupt)(void *ctx),
                                 void *ctx, struct err *e);

#endif
