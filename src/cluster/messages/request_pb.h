/* request_pb.h - a typed request to the bytes of shoal.node.v1.RunRequest and back.
 *
 * Thread:    no state.
 * Ownership: a request that is read has everything in its own arena.
 * Failure:   put: SHOAL_ENOMEM. read: SHOAL_EFORMAT or SHOAL_EINVAL with what is wrong,
 *            SHOAL_ELIMIT, SHOAL_ENOMEM. The bytes come from another machine: nothing in them is
 *            trusted. */
#ifndef SHOAL_CLUSTER_MESSAGES_REQUEST_PB_H
#define SHOAL_CLUSTER_MESSAGES_REQUEST_PB_H

#include "base/buf.h"
#include "flow/request.h"

/* Appends the message. now_ns: CLOCK_MONOTONIC, to compute the remaining time. */
SHOAL_MUST_CHECK int request_pb_put(struct buf *out, const struct request *r, uint64_t now_ns);
/* r is empty before the call; now_ns: arrival time. */
SHOAL_MUST_CHECK int request_pb_read(struct request *r, const uint8_t *p, size_t n, uint64_t now_ns,
                                     struct err *e);

#endif
