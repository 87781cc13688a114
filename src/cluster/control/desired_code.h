/* desired_code.h - the desired state as bytes: proto/shoal/control/v1/control.proto.
 *
 * The encoding is strict: a decoded state encodes to the same bytes again. Unknown fields, a newer
 * format, and values that desired_check refuses are errors, so that no member acts on part of a
 * state or writes it back without the fields it did not know.
 *
 * Thread:    no state.
 * Ownership: decode returns a new state, which does not refer to the bytes.
 * Failure:   SHOAL_EFORMAT (the bytes), SHOAL_EINVAL (the state), SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_CONTROL_DESIRED_CODE_H
#define SHOAL_CLUSTER_CONTROL_DESIRED_CODE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct desired;

#define DESIRED_CODE_FORMAT 1u
#define DESIRED_CODE_MAX_BYTES (4u << 20) /* limit of an encoded state */

/* Appends the encoded state. */
SHOAL_MUST_CHECK int desired_code_put(struct buf *out, const struct desired *d, struct err *e);
SHOAL_MUST_CHECK int desired_code_get(struct desired **out, const void *bytes, size_t n,
                                      struct err *e);
/* True if the message or a part of it has fields that this program does not know. */
bool desired_code_unknown(const void *message);

#endif
