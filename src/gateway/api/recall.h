/* recall.h - bodies that were read before, and the answer of the prompt cache that they asked for.
 *
 * The same bytes sent to the same route are the same request: whether its answer is there can be
 * asked without parsing the body and hashing the prompt anew.  Whether the model is still the same
 * and the answer still there is for generate_replay to see.
 *
 * Thread:    the loop's: each has a table of its own.
 * Ownership: copies what it keeps; what recall_find gives is valid until the next recall_keep.
 * Failure:   keep may do nothing (no memory, too large), or replace another body. */
#ifndef SHOAL_GATEWAY_API_RECALL_H
#define SHOAL_GATEWAY_API_RECALL_H

#include "flow/generate.h"
#include "gateway/api/openai_shape.h"

struct call;
struct recall;

struct recalled {
    struct generate_memo memo;
    struct openai_shape shape;
};

SHOAL_MUST_CHECK int recall_create(struct recall **out, struct err *e);
void recall_destroy(struct recall *r);
/* What the call's body asks for; NULL: not known. */
const struct recalled *recall_find(const struct call *c);
/* The call's body asks for the answer that e tells of. */
void recall_keep(const struct call *c, const struct openai_shape *shape,
                 const struct sink_start *e);

#endif
