/* routing.h - requests whose model is a route: gathers the candidates, lets the router decide, and
 * continues with the chosen model.
 *
 * If the route has a router model, that model reads the text first.
 *
 * Thread:    the owner's.
 * Ownership: as stages_run.  A choice lives in the arena of its request.
 * Failure:   a route without a model that can answer fails the request; the message says why. */
#ifndef SHOAL_FLOW_ROUTING_H
#define SHOAL_FLOW_ROUTING_H

#include "flow/flow.h"
#include "flow/routing_choice.h"

/* Knows the replicas of other nodes. */
struct routing_source {
    /* Calls fn for each replica of this `kind`; the candidate's model is left out, and its pointers
     * are valid for the call. */
    void (*each)(struct routing_source *s, struct request *r, unsigned kind,
                 void (*fn)(void *ctx, const char *model, const struct router_candidate *c),
                 void *ctx);
    /* False: more replicas may be discovered soon, since this process has just started. */
    bool (*settled)(struct routing_source *s);
};

/* STAGE_ROUTE: the request's model may be a route, or a flow of the configuration. */
bool routing_take(struct flow_owner *o, struct request *r, struct sink *s);

#endif
