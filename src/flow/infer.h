/* infer.h - the life of a request to a specialist: one task per input, results when all are
 * done.
 *
 * Thread:    the owner's; long inputs are submitted on a thread of the pool. */
#ifndef SHOAL_FLOW_INFER_H
#define SHOAL_FLOW_INFER_H

#include "flow/flow.h"

/* Takes the request, of kind REQUEST_INFER. Events may arrive before this returns. */
void infer_run(struct flow_owner *o, struct request *r, struct sink *s);

#endif
