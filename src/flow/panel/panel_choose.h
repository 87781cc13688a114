/* panel_choose.h - several answers of one model, of which the client gets one: consensus and
 * rerank.
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_PANEL_PANEL_CHOOSE_H
#define SHOAL_FLOW_PANEL_PANEL_CHOOSE_H

#include "flow/flow.h"
#include "router/router.h"

/* The answer that most samples agree on. */
void panel_choose_consensus(struct flow_owner *o, const struct router_route *route,
                            struct request *r, struct sink *s);
/* The answer that another model finds likeliest, by the mean log-probability of its tokens. */
void panel_choose_rerank(struct flow_owner *o, const struct router_route *route, struct request *r,
                         struct sink *s);

#endif
