/* worker_frame.h - framing of requests and events between a server and a worker: a header of
 * sixteen bytes, then the message. Requests go over a socket, events come through a ring.
 *
 * Thread: no state. */
#ifndef SHOAL_CLUSTER_WORKER_WORKER_FRAME_H
#define SHOAL_CLUSTER_WORKER_WORKER_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define WORKER_FRAME_HEAD_BYTES 16u
#define WORKER_FRAME_MAX_BYTES ((size_t)64 << 20) /* of a message */

enum worker_frame_kind {
    /* to the worker */
    WORKER_FRAME_RUN = 1, /* a RunRequest */
    WORKER_FRAME_CANCEL,
    WORKER_FRAME_PAUSE,  /* the reader of the call is slow */
    WORKER_FRAME_RESUME, /* the reader has caught up */
    WORKER_FRAME_ROOM,   /* the ring has room again; belongs to no call */
    /* from the worker */
    WORKER_FRAME_EVENTS, /* RunEvents */
    WORKER_FRAME_CLOSED, /* last frame of this call */
};

struct worker_frame {
    uint32_t kind;
    uint64_t id; /* of the call */
    const uint8_t *p;
    size_t n, bytes; /* size of the message; with the header */
};

/* 1: *f is the first complete frame of p. 0: more bytes are needed. SHOAL_EFORMAT: it is too long,
 * or of an unknown kind. */
SHOAL_MUST_CHECK int worker_frame_next(struct worker_frame *f, const void *p, size_t n);
/* Appends a frame. */
void worker_frame_put(struct buf *out, enum worker_frame_kind kind, uint64_t id, const void *p,
                      size_t n);

#endif
