/* run.h - runs a request of any kind.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_RUN_H
#define SHOAL_FLOW_RUN_H

#include "flow/flow.h"

/* Takes the request and answers it where it is answered best (flow/dispatch.h).  Events may come
 * before this returns; sink->job tells whether it is over already. */
void flow_run(struct flow_owner *o, struct request *r, struct sink *s);
/* The same, with the models of this server: in this process, or in a process of their own. */
void flow_run_here(struct flow_owner *o, struct request *r, struct sink *s);

#endif
