/* pb.h - encodes protobuf-c messages, and checks encoded ones before they are decoded.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOMEM; pb_check: SHOAL_EFORMAT, SHOAL_ELIMIT. */
#ifndef SHOAL_WIRE_PB_H
#define SHOAL_WIRE_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Allocates through base/mem.h, so that tests can make it fail. */
ProtobufCAllocator *pb_heap(void);
/* Appends the encoded message. */
SHOAL_MUST_CHECK int pb_put(struct buf *out, const ProtobufCMessage *m);

/* Whether an encoded message can be decoded without loss and at a bounded price.  protobuf-c ends a
 * string at a NUL and needs up to a hundred bytes for every field.  SHOAL_EFORMAT: a string has a
 * NUL, and path names it ("messages[1].content").  SHOAL_ELIMIT: more fields than max_fields.  What
 * is malformed is for the decoder to refuse. */
SHOAL_MUST_CHECK int pb_check(const ProtobufCMessageDescriptor *d, const uint8_t *p, size_t n,
                              size_t max_fields, char *path, size_t cap);

#endif
