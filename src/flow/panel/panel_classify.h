/* panel_classify.h - classifications by several models: cascade and vote.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_PANEL_PANEL_CLASSIFY_H
#define SHOAL_FLOW_PANEL_PANEL_CLASSIFY_H

#include "flow/flow.h"
#include "router/router.h"

/* An input is escalated to the next model only if the previous one was not confident. */
void panel_classify_cascade(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s);
void panel_classify_vote(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s);

#endif
