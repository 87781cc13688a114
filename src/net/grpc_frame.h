/* grpc_frame.h - gRPC's messages on a stream: one byte whether it is compressed, its length,
 * itself.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT (longer than allowed), SHOAL_ENOMEM. */
#ifndef SHOAL_NET_GRPC_FRAME_H
#define SHOAL_NET_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define GRPC_HEAD_BYTES 5u
#define GRPC_ENCODINGS "identity,gzip"

struct grpc_frame {
    const uint8_t *p; /* the message, in the bytes it came in */
    size_t n, bytes;  /* bytes: with its head */
    bool packed;
};

/* The first frame of the bytes: 1; 0 when it is not whole yet. */
SHOAL_MUST_CHECK int grpc_frame_next(struct grpc_frame *f, const uint8_t *p, size_t n, size_t max);
/* Where the message was compressed, it is unpacked into plain (at most max bytes) and f shows
 * that. */
SHOAL_MUST_CHECK int grpc_frame_unpack(struct grpc_frame *f, struct buf *plain, size_t max);
/* The message compressed with gzip, if that is worth it; else false and out holds nothing. */
bool grpc_zip(struct buf *out, const void *p, size_t n);
void grpc_frame_head(char head[GRPC_HEAD_BYTES], size_t n, bool packed);
/* Whether a list like "identity, gzip" has gzip; NULL: no. */
bool grpc_accepts_gzip(const char *list);

#endif
