/* grpc_frame.h - framing of gRPC messages: a compression flag, the length, the message.
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
    const uint8_t *p; /* the message, pointing into the input */
    size_t n, bytes;  /* bytes: with its head */
    bool packed;
};

/* The first frame of the bytes: 1; 0 if it is incomplete. */
SHOAL_MUST_CHECK int grpc_frame_next(struct grpc_frame *f, const uint8_t *p, size_t n, size_t max);
/* Decompresses a compressed message into plain (at most max bytes) and points f to it. */
SHOAL_MUST_CHECK int grpc_frame_unpack(struct grpc_frame *f, struct buf *plain, size_t max);
/* Compresses the message with gzip, if it is worthwhile; otherwise false, and out is empty. */
bool grpc_zip(struct buf *out, const void *p, size_t n);
void grpc_frame_head(char head[GRPC_HEAD_BYTES], size_t n, bool packed);
/* Whether a list like "identity, gzip" has gzip; NULL: no. */
bool grpc_accepts_gzip(const char *list);

#endif
