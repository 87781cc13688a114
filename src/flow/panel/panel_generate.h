/* panel_generate.h - generations that a better model may take over: cascade and refine.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_PANEL_PANEL_GENERATE_H
#define SHOAL_FLOW_PANEL_PANEL_GENERATE_H

#include "flow/flow.h"
#include "router/router.h"

/* Switches to the next model as soon as the tokens are not likely enough. */
void panel_generate_cascade(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s);
/* Sends the first model's answer at once; the second one's replaces it when complete. */
void panel_generate_refine(struct flow_owner *o, const struct router_route *route,
                           struct request *r, struct sink *s);

#endif
