/* grpc_read.h - messages of proto/shoal/v1 to requests.
 *
 * A message is unpacked into the arena of its request, which then points to the parts.  Limits are
 * those of the HTTP interface: both use the same tables of fields.
 *
 * Thread:    no state.
 * Failure:   SHOAL_EFORMAT: malformed bytes; SHOAL_EINVAL: an invalid request, described by e;
 *            SHOAL_ENOMEM. */
#ifndef SHOAL_GATEWAY_GRPC_GRPC_READ_H
#define SHOAL_GATEWAY_GRPC_GRPC_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/request.h"

struct fields_error;

struct grpc_method {
    const char *name;     /* "Generate" */
    enum shoal_kind kind; /* GENERATE, or a specialist's */
    bool stream;
};

/* NULL: there is no such method. */
const struct grpc_method *grpc_method(const char *name);
/* A message of the method into an empty request.  *top: number of labels to return; 0: all.
 * SHOAL_ELIMIT: it has more than max_fields fields. */
SHOAL_MUST_CHECK int grpc_read(struct request *r, uint32_t *top, const struct grpc_method *m,
                               const uint8_t *p, size_t n, size_t max_fields,
                               struct fields_error *e);

#endif
