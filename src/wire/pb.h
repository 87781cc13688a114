/* pb.h - protobuf-c messages by their descriptors: to bytes, to JSON and from it.
 *
 * The fields of proto/shoal/v1 have the names of the HTTP interface, so one walk over a descriptor
 * serves every message.  As in proto3's JSON a field that has its default is left out; a map is an
 * object.  Other than there, a message whose only field is `values` is the list itself.
 *
 * Thread:    no state.
 * Ownership: pb_from_json's message is freed with protobuf_c_message_free_unpacked and pb_heap().
 * Failure:   SHOAL_ENOMEM; pb_members through the buf. */
#ifndef SHOAL_WIRE_PB_H
#define SHOAL_WIRE_PB_H

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>

#include "wire/json_out.h"

/* Allocates through base/mem.h, so that tests can make it fail. */
ProtobufCAllocator *pb_heap(void);
/* The message's bytes, appended. */
SHOAL_MUST_CHECK int pb_put(struct buf *out, const ProtobufCMessage *m);
/* The members of m, inside of an object that the caller opened. */
void pb_members(struct json_out *j, const ProtobufCMessage *m);
/* What of v fits; a list of numbers is looked for as "embedding", "scores" and "score". */
SHOAL_MUST_CHECK int pb_from_json(ProtobufCMessage **out, const ProtobufCMessageDescriptor *d,
                                  const cJSON *v);

#endif
