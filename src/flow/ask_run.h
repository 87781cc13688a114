/* ask_run.h - the life of an ask: wait for its models, submit it to the home flow (home/ask/ask.h),
 * deliver the plan, the reply and the end to the sink.
 *
 * Thread:    the owner's. */
#ifndef SHOAL_FLOW_ASK_RUN_H
#define SHOAL_FLOW_ASK_RUN_H

#include "flow/flow.h"

/* Takes the request, of kind REQUEST_ASK. Events may arrive before this returns. */
void ask_run(struct flow_owner *o, struct request *r, struct sink *s);

#endif
