/* grpc_codec.h - messages of proto/shoal/v1 to bodies of the HTTP interface and back.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT: bytes that are no such message; SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_CODEC_H
#define SHOAL_GATEWAY_GRPC_GRPC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

struct grpc_method {
    const char *name; /* "Generate" */
    const char *path; /* of the HTTP interface; NULL: by the message */
    const ProtobufCMessageDescriptor *request, *response;
    bool generate, stream;
};

/* NULL: there is no such method. */
const struct grpc_method *grpc_method(const char *name);
/* The JSON body of a message, and the path it goes to. */
SHOAL_MUST_CHECK int grpc_to_json(const struct grpc_method *m, struct buf *out, const char **path,
                                  const uint8_t *p, size_t n);
/* The message of an answer (or of one event), appended to out; 1: nothing to send. */
SHOAL_MUST_CHECK int grpc_to_message(const struct grpc_method *m, struct buf *out,
                                     const cJSON *answer);

#endif
