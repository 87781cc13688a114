/* grpc_status.h - the status of a failed gRPC call: a code, a text, and details for programs.
 *
 * Thread:    no state.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_STATUS_H
#define SHOAL_GATEWAY_GRPC_GRPC_STATUS_H

#include <stdint.h>

#include "base/buf.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_ABORTED = 10,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16
};

struct grpc_error {
    enum grpc_status status;
    const char *message;
    const char *reason; /* in upper or lower case; NULL: that of the status */
    const char *field;  /* the invalid field, or NULL */
    const char *model;  /* the requested model, or NULL */
    uint32_t retry_s;   /* 0: not stated */
};

/* "INVALID_ARGUMENT", ... */
const char *grpc_status_name(enum grpc_status s);
/* For a status of the HTTP interface. */
enum grpc_status grpc_status_of(int http);
/* google.rpc.Status with the available details, as the text of the trailer
 * grpc-status-details-bin. */
SHOAL_MUST_CHECK int grpc_details(struct buf *out, const struct grpc_error *e);
/* grpc-message: printable ASCII unchanged, the rest percent-encoded. */
void grpc_message_text(char *out, size_t cap, const char *msg);

#endif
