/* panel_run.h - runs a request to a route that several models answer.
 *
 * Thread:    the owner's.
 * Ownership: takes the request, as flow_run.
 * Failure:   a request that does not suit the ensemble fails, and the message says why. */
#ifndef SHOAL_FLOW_PANEL_PANEL_RUN_H
#define SHOAL_FLOW_PANEL_PANEL_RUN_H

#include "flow/flow.h"
#include "router/router.h"

void panel_run(struct flow_owner *o, const struct router_route *route, struct request *r,
               struct sink *s);

#endif
