/* panel_classify.h - classifications by several models: cascade and vote.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_PANEL_PANEL_CLASSIFY_H
#define SHOAL_FLOW_PANEL_PANEL_CLASSIFY_H

#include "flow/flow.h"
#include "router/router.h"

/* Each input goes to the next model only if the one before was not sure of it. */
void panel_classify_cascade(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s);
void panel_classify_vote(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s);

#endif
