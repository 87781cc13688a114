/* pipeline_input.h - what a request passes to a flow: its text, and the fields that the flow
 * declares.
 *
 * Thread:    the owner's.
 * Ownership: the record is in the arena of the request. */
#ifndef SHOAL_PIPELINE_PIPELINE_INPUT_H
#define SHOAL_PIPELINE_PIPELINE_INPUT_H

#include "flow/failure.h"
#include "flow/request.h"
#include "pipeline/graph/graph.h"

/* The input as a record of the graph's type; false: *f has the error. */
bool pipeline_input_read(struct value *out, const struct graph *g, struct request *r,
                         struct failure *f);

#endif
