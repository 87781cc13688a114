/* roll_code.h - the messages of a roll call (roll_call.h) as bytes.
 *
 * Thread:    no state.
 * Ownership: parse allocates the state in the message; roll_code_free takes it back.
 * Failure:   SHOAL_EFORMAT, SHOAL_ENOMEM, SHOAL_ELIMIT. */
#ifndef SHOAL_CLUSTER_CONTROL_ROLL_CODE_H
#define SHOAL_CLUSTER_CONTROL_ROLL_CODE_H

#include "base/buf.h"
#include "base/err.h"
#include "cluster/control/roll_call.h"

struct desired;

struct roll_code {
    uint64_t number;
    struct roll_call_mark have; /* of the member that calls */
    struct desired *state;      /* an answer; NULL: a call */
};

SHOAL_MUST_CHECK int roll_code_put_call(struct buf *out, uint64_t number,
                                        struct roll_call_mark have);
/* state: encoded. */
SHOAL_MUST_CHECK int roll_code_put_copy(struct buf *out, uint64_t number, const void *state,
                                        size_t n);
SHOAL_MUST_CHECK int roll_code_parse(struct roll_code *out, const void *bytes, size_t n,
                                     struct err *e);
void roll_code_free(struct roll_code *c);

#endif
