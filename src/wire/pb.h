/* pb.h - encodes protobuf-c messages.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_WIRE_PB_H
#define SHOAL_WIRE_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Allocates through base/mem.h, so that tests can make it fail. */
ProtobufCAllocator *pb_heap(void);
/* Appends the encoded message. */
SHOAL_MUST_CHECK int pb_put(struct buf *out, const ProtobufCMessage *m);

#endif
