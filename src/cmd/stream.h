/* stream.h - passes generated text from the engine's thread to stdout.
 *
 * The engine's thread only appends; the main thread waits for bytes, for Ctrl-C and for stdout
 * to accept data, so neither a slow reader nor a stopped terminal blocks the engine or the
 * handling of Ctrl-C.
 *
 * Thread:    stream_put and stream_end from the engine's thread, the rest from the main thread.
 * Ownership: init/fini over the caller's storage. */
#ifndef SHOAL_CMD_STREAM_H
#define SHOAL_CMD_STREAM_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct stream {
    pthread_mutex_t lock;
    struct buf waiting; /* under lock */
    bool ended;         /* under lock */
    struct buf writing; /* owned by the main thread */
    int event_fd;
    char last; /* last byte written; 0: none */
};

SHOAL_MUST_CHECK int stream_init(struct stream *s, struct err *e);
void stream_fini(struct stream *s);
void stream_put(struct stream *s, const void *p, size_t n);
void stream_end(struct stream *s);

/* Writes to fd until stream_end was called and everything is written.  Calls on_interrupt for
 * every Ctrl-C; if it returns true, unwritten bytes are dropped and the call returns.  SHOAL_EIO
 * with a text if writing fails. */
SHOAL_MUST_CHECK int stream_pump(struct stream *s, int fd, int interrupt_fd,
                                 bool (*on_interrupt)(void *ctx), void *ctx, struct err *e);

#endif
