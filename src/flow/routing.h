/* routing.h - requests whose model is a route: the candidates are gathered, the router decides, and
 * the request goes on with the chosen model.
 *
 * If the route has a router model, that model reads the text first.
 *
 * Thread:    the owner's.
 * Ownership: as flow_run.  A choice lives in the arena of its request.
 * Failure:   a route without a model that can answer fails the request; the message says why. */
#ifndef SHOAL_FLOW_ROUTING_H
#define SHOAL_FLOW_ROUTING_H

#include "flow/flow.h"
#include "router/router.h"

/* A candidate as an explanation shows it. */
struct routing_candidate {
    const char *model, *node; /* node NULL: this process */
    double quality, cost;
    struct router_estimate estimate;
    enum router_verdict verdict;
};

struct routing_choice {
    const char *route, *model;
    const char *node; /* the one it was chosen for; NULL: this process */
    bool degraded;
    const char *domain; /* of the router model; NULL: not asked, or none of these */
    double domain_p;
    /* With explain; otherwise none. */
    const struct routing_candidate *candidates;
    uint32_t n_candidates;
    int32_t rule; /* that matched, from 0; -1: none */
    struct router_work work;
    double budget_ns;
    const char *policy; /* its steps, with blanks between them */
    uint64_t decide_ns; /* what the decision took */
};

/* Who knows the replicas of other nodes. */
struct routing_source {
    /* Calls fn for each replica that may do `kind`; the candidate's model is left out, and what it
     * points to stays for the call. */
    void (*each)(struct routing_source *s, unsigned kind,
                 void (*fn)(void *ctx, const char *model, const struct router_candidate *c),
                 void *ctx);
};

/* As flow_run; the request's model may be a route. */
void routing_run(struct flow_owner *o, struct request *r, struct sink *s);

#endif
