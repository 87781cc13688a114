/* pb.h - encodes protobuf-c messages, decodes them, and checks encoded ones before they are
 * decoded.
 *
 * Thread:    no state.
 * Ownership: pb_text and pb_bytes borrow their arguments, which must outlive the message. Results
 *            of pb_list and pb_unpack live in the arena.
 * Failure:   SHOAL_ENOMEM; pb_check: SHOAL_EFORMAT, SHOAL_ELIMIT. */
#ifndef SHOAL_WIRE_PB_H
#define SHOAL_WIRE_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"

/* Allocates through base/mem.h, so that tests can make it fail. */
ProtobufCAllocator *pb_heap(void);
/* Appends the encoded message. */
SHOAL_MUST_CHECK int pb_put(struct buf *out, const ProtobufCMessage *m);

/* Fields of a message that is only encoded: protobuf-c has no const there.  A text that is NULL
 * counts as empty. */
char *pb_text(const char *s);
ProtobufCBinaryData pb_bytes(const void *p, size_t n);
/* A repeated field: n messages of one size, zeroed, and the pointers to them.  NULL: out of memory.
 */
void *pb_list(struct arena *a, size_t n, size_t size, void ***pointers);

/* Decodes into the arena.  NULL: malformed, or out of memory, which the arena's rc tells. */
void *pb_unpack(const ProtobufCMessageDescriptor *d, struct arena *a, const uint8_t *p, size_t n);

/* Whether an encoded message can be decoded without loss and at a bounded cost. protobuf-c ends a
 * string at a NUL and needs up to a hundred bytes for every field. SHOAL_EFORMAT: a string has a
 * NUL, and path names it ("messages[1].content"). SHOAL_ELIMIT: more fields than max_fields.
 * Malformed messages are left to the decoder. */
SHOAL_MUST_CHECK int pb_check(const ProtobufCMessageDescriptor *d, const uint8_t *p, size_t n,
                              size_t max_fields, char *path, size_t cap);

#endif
