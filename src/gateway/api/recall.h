/* recall.h - maps repeated bodies to their answers in the prompt cache.
 *
 * The same bytes sent by a client to the same route are the same request, so a repeated one needs
 * neither parsing nor hashing of the prompt.  generate_replay checks that the model is unchanged
 * and the answer still cached.
 *
 * Thread:    the loop's: each has its own table.
 * Ownership: entries are copies; the result of recall_find is valid until the next recall_keep.
 * Failure:   keep may do nothing (no memory, too large), or replace another body. */
#ifndef SHOAL_GATEWAY_API_RECALL_H
#define SHOAL_GATEWAY_API_RECALL_H

#include "flow/generate/generate.h"
#include "gateway/api/openai/openai_shape.h"

struct call;
struct recall;

struct recalled {
    struct generate_memo memo;
    struct openai_shape shape;
};

SHOAL_MUST_CHECK int recall_create(struct recall **out, struct err *e);
void recall_destroy(struct recall *r);
/* The entry of the call's body; NULL: unknown. */
const struct recalled *recall_find(const struct call *c);
/* Remembers that the call's body leads to the answer of e. */
void recall_keep(const struct call *c, const struct openai_shape *shape,
                 const struct sink_start *e);

#endif
